// The bar of an event: hatched notice, ticks for approvals, a solid part while it is under way, darker steps on hosts, and a
// cap by outcome. Colours come from the class of its state.

import { s } from "./dom.js";
import { count, eventTitle, joined } from "./format.js";
import { endOf, isRunning, isScheduled, sentence, stateOf } from "./timeline_data.js";

const LETTER = 6.5; // the mean width of a letter in pixels
const HATCHES = ["scheduled", "soon", "approved", "done"];
const CIRCLE = "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0";
const CAPS = { done: CIRCLE, failed: "M-4.5 -4.5 4.5 4.5M4.5 -4.5 -4.5 4.5", cancelled: `${CIRCLE}M-3.2 3.2 3.2 -3.2` };
const DETAIL_MIN = 20; // the width in pixels from which approvals and steps are drawn

/** The patterns of the notice, to be placed into an SVG once. */
export function hatches() {
  const properties = { width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  return HATCHES.map((id) => s("pattern", { id: `hatch-${id}`, ...properties },
    s("rect", { width: 6, height: 6, class: `hatch-ground ${id}` }), s("rect", { width: 2.5, height: 6, class: `hatch ${id}` })));
}

/** The text, cut to a width. */
export function cutText(text, width) {
  const letters = Math.floor(width / LETTER);
  return text.length <= letters ? text : letters >= 4 ? `${text.slice(0, letters - 1)}…` : "";
}

/** A cap by outcome, at a place. */
export function cap(id, x, y) {
  return s("path", { class: `cap ${id}`, d: CAPS[id], transform: `translate(${x.toFixed(1)} ${y})` });
}

/**
 * Draws one bar. `place` has: x(time), y (of the bar), height, room (the x up to which labels may reach), left (the x where the
 * plot begins), hasLabels. Returns { element, labels, grow, state }: `grow(now)` moves what depends on the time; it and the
 * state are null if nothing does.
 */
export function drawBar({ key, item }, place, now) {
  const state = stateOf(item);
  const { x, y, height } = place;
  const isActive = item.ended === null;
  const end = endOf(item, now);
  const hasDetails = isActive || x(end) - x(item.begin) >= DETAIL_MIN;
  const hatch = `url(#hatch-${HATCHES.includes(state.id) ? state.id : "done"})`;
  const boxes = boxesOf(item, hasDetails, now).map(([name, from, to, inset]) =>
    rect(place, name, x(from), x(to), inset, { fill: name.startsWith("notice") ? hatch : null }));
  const grow = (time) => boxesOf(item, hasDetails, time).forEach(([, from, to], index) => {
    boxes[index].setAttribute("x", x(from).toFixed(1));
    boxes[index].setAttribute("width", width(x(from), x(to)));
  });
  const approvals = hasDetails ? item.approvals : [];
  const element = barLink(`#/event/${item.id}`, state.id, key, sentence(item), boxes,
    approvals.map(({ at }) => s("path", { class: "approval", d: `M${x(at).toFixed(1)} ${y - 3}v${height + 6}` })),
    !isActive && cap(state.id, x(item.ended), y + height / 2));
  const labels = place.hasLabels ? labelsOf(item, place) : isActive ? shortLabel(eventTitle(item, 2), x(end) + 8, place) : [];
  return { element, labels, grow: isActive ? grow : null, state: isActive ? state : null };
}

/** The parts of a bar at a time: [class, from, to, inset]. The time does not change their number. */
function boxesOf(item, hasDetails, now) {
  const { begin, announced, started, ended } = item;
  const boxes = [["hit", begin, endOf(item, now), -4]];
  if (isScheduled(item)) {
    const due = item.notBefore ?? now;
    boxes.push(["notice", begin, now], ["notice coming", now, Math.max(now, due)]);
    if (item.expected !== null) boxes.push(["expected", due, due + item.expected, 2]);
    return [...boxes, ["due", due, due]];
  }
  if (announced !== null) boxes.push(["notice", announced, started ?? ended ?? now]);
  if (started === null && !isRunning(item)) return boxes;
  const steps = hasDetails ? item.steps : [];
  return [...boxes, ["run", started ?? begin, ended ?? now],
    ...steps.map((step) => ["step", step.begin, step.end ?? ended ?? now, 2])];
}

const barLink = (href, state, key, label, ...parts) =>
  s("a", { href, class: `bar ${state}`, "data-key": key, id: `bar-${key}`, tabindex: "-1", "aria-label": label }, parts);

const textAt = (x, y, text, name = "label") => s("text", { class: name, x: x.toFixed(1), y, "aria-hidden": "true" }, text);

const width = (from, to) => Math.max(1, to - from).toFixed(1);

const rect = ({ y, height }, name, from, to, inset = 0, more = {}) =>
  s("rect", { class: name, x: from.toFixed(1), y: y + inset, height: height - 2 * inset, width: width(from, to), ...more });

/** The title of an event, and the names of those who approved it, above its bar. */
function labelsOf(item, { x, y, room, left }) {
  const begin = Math.max(x(item.begin), left + 4);
  const title = cutText(eventTitle(item, 2), room - begin);
  if (!title) return [];
  const labels = [textAt(begin, y - 6, title)];
  let free = begin + title.length * LETTER + 8;
  for (const { at, by } of item.approvals) {
    const name = `✓ ${by}`;
    const place = x(at) - 2;
    if (!by || place < free || place + name.length * LETTER > room) continue;
    labels.push(textAt(place, y - 6, name, "label by"));
    free = place + name.length * LETTER + 8;
  }
  return labels;
}

/** A text after a bar. */
function shortLabel(text, begin, { y, height, room }) {
  const found = cutText(text, room - begin);
  return found ? [textAt(begin, y + height - 1.5, found)] : [];
}

/** Several events that are too close to be drawn one by one. */
export function drawCluster(bars, place, now) {
  const { x, y, room, left, hasLabels } = place;
  const [{ key, lane, item }] = bars;
  const begin = x(item.begin);
  const endAt = (time) => Math.max(begin + 8, ...bars.map((bar) => x(endOf(bar.item, time))));
  const end = endAt(now);
  const failed = bars.filter((bar) => stateOf(bar.item).id === "failed").length;
  const active = bars.filter((bar) => bar.item.ended === null).length;
  const text = joined([count(bars.length, "event"), failed && `${failed} failed`, active && `${active} not ended`]);
  const state = failed ? "failed" : active ? "started" : "done";
  const boxes = [rect(place, "hit", begin, end, -4), rect(place, "many", begin, end, 0, { rx: 2 })];
  const grow = (time) => boxes.forEach((box) => box.setAttribute("width", width(begin, endAt(time))));
  const element = barLink("#/timeline", `cluster ${state}`, key,
    `${text} of ${lane.title || lane.name}, too close to tell apart. Press Enter to zoom in.`, boxes);
  const from = Math.max(begin, left) + 1;
  const above = hasLabels ? cutText(text, room - from - 4) || cutText(String(bars.length), room - from + 16) : "";
  const labels = above ? [textAt(from, y - 6, above)] : !hasLabels && active ? shortLabel(text, end + 8, place) : [];
  return { element, labels, grow: active ? grow : null, state: null };
}
