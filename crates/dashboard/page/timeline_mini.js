// The last hour and the next hours, for the overview.

import { h, replace } from "./dom.js";
import { count } from "./format.js";
import { model } from "./model.js";
import { Card } from "./timeline_card.js";
import { Chart } from "./timeline_chart.js";
import { collect, endOf, isScheduled, lanesOf } from "./timeline_data.js";
import { connectBars } from "./timeline_input.js";

const HOUR = 3600_000;
const AHEAD_MAX = 24 * HOUR;
const LANES_MAX = 8;
const ROWS_MAX = 4;
const ROUND = [1, 2, 3, 6, 12, 24];

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
    const ahead = Math.min(AHEAD_MAX, Math.max(HOUR, ...items.filter(isScheduled).map((item) => endOf(item, now) - now)));
    const hours = ROUND.find((one) => one * HOUR >= ahead) ?? 24;
    chart.fraction = 1 / (1 + hours);
    chart.show((1 + hours) * HOUR);
    const visible = items.filter((item) => item.begin <= now + hours * HOUR && endOf(item, now) >= now - HOUR);
    const lanes = lanesOf(visible, "tenant", { rowsMax: ROWS_MAX });
    const soonest = (lane) => Math.min(...lane.rows.flat().map(({ item }) =>
      (item.ended === null ? item.notBefore ?? item.begin : now + AHEAD_MAX + now - item.ended)));
    const shown = lanes.length > LANES_MAX ? lanes.toSorted((one, other) => soonest(one) - soonest(other)).slice(0, LANES_MAX) : lanes;
    chart.setLanes(lanes.filter((lane) => shown.includes(lane)));
    chart.element.hidden = visible.length === 0;
    const hidden = lanes.length - shown.length;
    replace(more,
      visible.length === 0 ? `No event in the last hour, and none in the next ${hours === 1 ? "hour" : `${hours} hours`}. ` : hidden > 0
        && `${count(hidden, "more tenant")} with events. `,
      h("a", { href: "#/timeline", id: "mini-all" }, "Timeline"));
    if (visible.length > 0) chart.draw();
    card.update((key) => chart.found(key));
  };

  return { element, update, tick: () => (chart.tick(), card.tick()), close: () => (chart.close(), card.close()) };
}
