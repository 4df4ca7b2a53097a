// The last hour and the next hours, for the overview.

import { h, replace } from "./dom.js";
import { HOUR, count } from "./format.js";
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
  const chart = new Chart({ size: "small", label: "The last hour and the next hours" });
  const card = new Card();
  const more = h("p", { class: "quiet" });
  const element = h("div", { class: "timeline-mini" }, chart.element, card.element, more);
  connectBars(chart, card);

  const update = () => {
    const now = model.now();
    const items = collect();
    const last = Math.max(...items.filter(isScheduled).map((item) => endOf(item, now)));
    const hours = ROUND.find((one) => now + one * HOUR >= last) ?? 24;
    chart.fraction = 1 / (1 + hours);
    chart.show((1 + hours) * HOUR);
    const visible = items.filter((item) => isWithin(item, chart.range()));
    // Tenants whose event starts first, then those whose event ended last.
    const urgency = ({ item }) => (item.ended === null ? item.notBefore ?? item.begin : 2 * now + 24 * HOUR - item.ended);
    const soonest = (lane) => Math.min(...lane.rows.flat().map(urgency));
    const lanes = lanesOf(visible, "tenant", { rowsMax: ROWS_MAX });
    const shown = lanes.toSorted((one, other) => soonest(one) - soonest(other)).slice(0, LANES_MAX);
    chart.setLanes(lanes.filter((lane) => shown.includes(lane)));
    chart.element.hidden = visible.length === 0;
    const hidden = lanes.length - shown.length;
    replace(more,
      visible.length === 0 && `No event in the last hour, and none in the next ${hours === 1 ? "hour" : `${hours} hours`}. `,
      hidden > 0 && `${count(hidden, "more tenant")} with events. `,
      h("a", { href: "#/timeline", id: "mini-all" }, "Timeline"));
    chart.draw();
    card.update(chart.found);
  };

  return { element, update, tick: () => (chart.tick(), card.tick()), close: () => (chart.close(), card.close()) };
}
