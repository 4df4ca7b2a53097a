// The last hour and the next hours, for the overview.

import { h, setText } from "./dom.js";
import { HOUR, count, joined } from "./format.js";
import { model } from "./model.js";
import { Card } from "./timeline_card.js";
import { Chart } from "./timeline_chart.js";
import { collect, endOf, isScheduled, isWithin, lanesOf } from "./timeline_data.js";
import { connectBars } from "./timeline_input.js";

const LANES_MAX = 8;
const ROWS_MAX = 4;
const ROUND = [1, 2, 3, 6, 12, 24]; // hours ahead

/** A small live chart: { element, update(), tick(), close() }. */
export function miniTimeline() {
  const card = new Card();
  const chart = new Chart({ size: "small", label: "The last hour and the next hours", onDraw: () => card.update(chart.found) });
  const moreText = h("span", {});
  const more = h("p", { class: "quiet" }, moreText, h("a", { href: "#/timeline", id: "mini-all" }, "Timeline"));
  const element = h("div", { class: "timeline-mini" }, chart.element, card.element, more);
  connectBars(chart, card);

  const update = () => {
    const now = model.now();
    const items = collect();
    const last = Math.max(...items.filter(isScheduled).map((item) => endOf(item, now)));
    const hours = ROUND.find((one) => now + one * HOUR >= last) ?? 24;
    const from = now - HOUR;
    const visible = items.filter((item) => isWithin(item, { from, to: now + hours * HOUR }));
    // Tenants whose event starts first, then those whose event ended last.
    const urgency = ({ item }) => (item.ended === null ? item.notBefore ?? item.begin : 2 * now + 24 * HOUR - item.ended);
    const soonest = new Map(lanesOf(visible, "tenant", { rowsMax: ROWS_MAX })
      .map((lane) => [lane, Math.min(...lane.rows.flat().map(urgency))]));
    const lanes = [...soonest.keys()];
    const shown = new Set(lanes.toSorted((one, other) => soonest.get(one) - soonest.get(other)).slice(0, LANES_MAX));
    chart.element.hidden = visible.length === 0;
    const hidden = lanes.length - shown.size;
    setText(moreText, joined([
      visible.length === 0 && `No event in the last hour, and none in the next ${hours === 1 ? "hour" : `${hours} hours`}. `,
      hidden > 0 && `${count(hidden, "more tenant")} with events. `], ""));
    chart.fraction = 1 / (1 + hours);
    if (chart.span !== (1 + hours) * HOUR) chart.show((1 + hours) * HOUR);
    chart.update(lanes.filter((lane) => shown.has(lane)));
  };

  return { element, update, tick: () => (chart.tick(), card.tick()), close: () => (chart.close(), card.close()) };
}
