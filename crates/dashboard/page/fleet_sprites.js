// Pictures of the states for the canvas of the fleet: the same shapes and colours as elsewhere on the page.

import { SHAPES, h } from "./dom.js";
import { MACHINE_STATES } from "./fleet_layout.js";

/** The strength of the outline of a state that pulses, step by step. */
export const PHASES = [1, 0.7, 0.35, 0.7];

/** One picture for each state, in the colours of the theme. The colours are read from the style sheet. */
export function makeSprites(parent, cell, dpr) {
  const probe = h("span");
  parent.append(probe);
  const colourOf = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = Object.fromEntries(["text", "quiet", "line", "link", "ground"].map((name) => [name, colourOf(name)]));
  const sprite = (id, ringAlpha = 1, size = cell, edge = cell >= 20 ? 2 : 1) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = Math.round(size * dpr);
    const context = canvas.getContext("2d");
    const scale = (canvas.width - 2 * edge * dpr) / 20;
    context.setTransform(scale, 0, 0, scale, edge * dpr, edge * dpr);
    probe.className = id;
    for (const part of SHAPES[id]) paint(context, part, colourOf("state"), colours.ground, ringAlpha);
    return canvas;
  };
  const made = {
    colours,
    states: MACHINE_STATES.map(({ id }) => sprite(id)),
    pulses: PHASES.map((alpha) => sprite("soon", alpha)),
    marks: Object.fromEntries(["failed", "started", "scheduled"].map((id) => [id, sprite(id, 1, 16, 0)])),
  };
  probe.remove();
  return made;
}

function paint(context, { d, class: style }, colour, ground, ringAlpha) {
  const path = new Path2D(d);
  const is = (name) => style.split(" ").includes(name);
  context.fillStyle = colour;
  if (is("solid")) return context.fill(path);
  context.globalAlpha = is("ring") ? ringAlpha : 1;
  context.strokeStyle = is("cut") ? ground : colour;
  context.lineWidth = is("thick") ? 3.4 : is("ring") ? 1.4 : 2;
  if (is("dashed")) context.setLineDash([3, 2.4]);
  // Outlines come first in a shape: their corners are sharp.
  if (!is("outline")) context.lineCap = context.lineJoin = "round";
  context.stroke(path);
}
