// The bars of one lane of the timeline, and the row of its rollout. A view of the chart tells where they are: x(time), left (the
// x where the plot begins), width, height, scale (pixels per millisecond), overscan (pixels beyond each edge), drawn (the times),
// size (of rows and bars), isSmall, and gap (pixels between narrow bars that are drawn apart).

import { s } from "./dom.js";
import { parseTime } from "./format.js";
import { cutText, drawBar, drawCluster } from "./timeline_bars.js";
import { contentOf, endOf, isWithin, rolloutText } from "./timeline_data.js";

export const AXIS = 44; // the height of the time axis
export const LANE_PAD = 5;
const NARROW = 8;
const MARGIN = 24;
const CONTENT_MAX = 200; // bars

/** Draws a lane at a place: its element, and its bars and clusters ({ element, labels, bars, grow, state, item }). */
export function drawLane(lane, y, view) {
  const bottom = y + lane.height - LANE_PAD;
  const rowTop = (index) => y + lane.own + index * view.size.row;
  const shown = lane.rows.flatMap((row, index) => (rowTop(index) < bottom ? drawRow(row, rowTop(index), view) : []));
  const element = s("g", {}, lane.rollout && drawRollout(lane.rollout, y, view), shown.map(({ element: bar, labels }) => [bar, labels]));
  return { element, shown };
}

/** What a lane shows in a time, as text; empty if the text would be long, or does not tell everything. */
export function contentOfLane(lane, time) {
  const visible = lane.rows.flat().filter(({ item }) => isWithin(item, time));
  if (visible.length > CONTENT_MAX || lane.rollout) return "";
  return JSON.stringify(visible.map(({ key, row, item }) => [key, row, contentOf(item)]));
}

/** The row of a rollout itself: a thin line from its plan to its end, and what is left to do. */
function drawRollout(rollout, y, { x, left, width, drawn }) {
  const begin = parseTime(rollout.planned_at) ?? drawn.now;
  const end = parseTime(rollout.ended_at) ?? drawn.now;
  const from = Math.max(x(begin), left + 4);
  if (x(end) < left || from > width) return null;
  return s("g", { class: `rollout ${rollout.ended_at ? "done" : "started"}` },
    s("rect", { class: "whole", x: x(begin), y: y + 20, height: 4, rx: 2, width: Math.max(2, x(end) - x(begin)) }),
    s("text", { class: "label", x: from, y: y + 15 }, cutText(rolloutText(rollout), width - from), s("title", {}, rolloutText(rollout))));
}

/** The visible bars of a row; those that are too close are one. */
function drawRow(row, y, { x, left: plotLeft, width, height, scale, overscan, drawn, size, isSmall, gap }) {
  if (y > height || y + size.row < AXIS) return [];
  const { from, to, now } = drawn;
  const margin = (overscan + MARGIN) / scale;
  const groups = [];
  for (const bar of row) {
    if (bar.item.begin > to + margin) break;
    const end = endOf(bar.item, now);
    if (end < from - margin) continue;
    const [left, right] = [x(bar.item.begin), x(end)];
    const isNarrow = right - left < NARROW;
    const last = groups.at(-1);
    if (last && left < last.right + (isNarrow || last.isNarrow ? gap : -0.5)) {
      last.bars.push(bar);
      last.right = Math.max(last.right, right);
    } else groups.push({ bars: [bar], left, right: Math.max(right, left + NARROW), isNarrow });
  }
  return groups.map(({ bars, left }, index) => {
    const room = Math.min(groups[index + 1]?.left ?? Infinity, left < width ? width : Infinity) - 6;
    const place = { x, y: y + size.above, height: size.bar, room, left: plotLeft, hasLabels: !isSmall };
    const found = bars.length > 1 ? drawCluster(bars, place, now) : drawBar(bars[0], place, now);
    return Object.assign(found, { bars, item: bars[0].item });
  });
}
