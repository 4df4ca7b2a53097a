// Pictures of the states for the canvas of the fleet: the same shapes and colours as elsewhere on the page.

import { SHAPES, h } from "./dom.js";
import { MACHINE_STATES } from "./fleet_layout.js";

/** The strength of the outline of a state that pulses, step by step. */
export const PHASES = [1, 0.7, 0.35, 0.7];

/** One picture for each state, in the colours of the theme. The colours are read from the style sheet. */
export function makeSprites(parent, cell, dpr) {
  const probe = h("span", { class: "mark" });
  parent.append(probe);
  const colourOf = (name) => ((probe.style.color = `var(--${name})`), getComputedStyle(probe).color);
  const colours = Object.fromEntries(["text", "quiet", "line", "link", "on-solid"].map((name) => [name, colourOf(name)]));
  const inset = cell >= 20 ? 2 : 1;
  const sprite = (id, size, edge, ringAlpha) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = Math.round(size * dpr);
    const context = canvas.getContext("2d");
    const scale = (canvas.width - 2 * edge * dpr) / 20;
    context.setTransform(scale, 0, 0, scale, edge * dpr, edge * dpr);
    for (const part of SHAPES[id]) paint(context, part, colourOf(id), colours["on-solid"], ringAlpha);
    return canvas;
  };
  const made = {
    colours,
    states: MACHINE_STATES.map(({ id }) => sprite(id, cell, inset, 1)),
    pulses: PHASES.map((alpha) => sprite("soon", cell, inset, alpha)),
    marks: Object.fromEntries(["failed", "started", "scheduled"].map((id) => [id, sprite(id, 16, 0, 1)])),
  };
  probe.remove();
  return made;
}

function paint(context, { d, class: style }, colour, onSolid, ringAlpha) {
  const path = new Path2D(d);
  const classes = style.split(" ");
  context.globalAlpha = classes.includes("ring") ? ringAlpha : 1;
  context.fillStyle = colour;
  if (classes.includes("solid")) return context.fill(path);
  context.strokeStyle = classes.includes("cut") ? onSolid : colour;
  context.lineWidth = classes.includes("thick") ? 3.4 : classes.includes("ring") ? 1.4 : 2.1;
  context.lineCap = context.lineJoin = classes.includes("outline") ? "butt" : "round";
  if (classes.includes("outline")) context.lineJoin = "miter";
  context.setLineDash(classes.includes("dashed") ? [3, 2.4] : []);
  context.stroke(path);
  context.globalAlpha = 1;
}
