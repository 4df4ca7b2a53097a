// The timeline as a table: the same events as in the chart.

import { h, mark, replace } from "./dom.js";
import { count, duration, fullTime, list, relative } from "./format.js";
import { model } from "./model.js";
import { endOf, stateOf, titleOf } from "./timeline_data.js";
import { rangeText } from "./timeline_axis.js";

const ROWS_MAX = 300;
const COLUMNS = [
  ["Event", ""], ["Tenant", "The owner of the machines"], ["State", ""], ["Cause", "Why the event exists"],
  ["Announced", "Its machines can read it since then"], ["Not before", "Without approval it starts at this time, not before"],
  ["Approved", "Allowed to start before the end of its notice"], ["Started", "The interruption began"],
    ["Ended", "The event left the document"],
];

/** The events that are visible in a range. */
export function within(items, { from, to }) {
  const now = model.now();
  return items.filter((item) => item.begin <= to && endOf(item, now) >= from);
}

/** Draws the table into an element. */
export function drawTable(place, items, range) {
  const found = within(items, range);
  const now = model.now();
  const isOneDay = fullTime(range.from).slice(0, 10) === fullTime(range.to).slice(0, 10);
  const text = (millis) => (isOneDay ? fullTime(millis).slice(11, 19) : fullTime(millis).slice(0, 19));
  const time = (millis) => (millis === null ? "–" : h("time", { title: `${relative(millis, now)}, ${fullTime(millis)}` }, text(millis)));
  const row = (item) => h("tr", {},
    h("th", { scope: "row" }, h("a", { href: `#/event/${item.id}`, id: `row-${item.id}` }, titleOf(item))),
    h("td", {}, item.tenant),
    h("td", { class: "nowrap" }, mark(stateOf(item)), " ", h("span", { "aria-hidden": "true" }, shortState(item))),
    h("td", {}, item.cause || "–", item.hosts.length > 0 && h("span", { class: "quiet" }, ` · ${list(item.hosts)}`)),
    h("td", {}, time(item.announced)),
    h("td", {}, time(item.notBefore)),
    h("td", {}, item.approvals.length ? item.approvals.map(({ at, by }) => h("div", {}, time(at), by && ` by ${by}`)) : "–"),
    h("td", {}, time(item.started)),
    h("td", {}, time(item.ended), item.started !== null && item.ended !== null
      && h("span", { class: "quiet nowrap" }, ` after ${duration(item.ended - item.started)}`)));
  replace(place,
    h("table", {},
      h("caption", {}, `${count(found.length, "event")} from ${rangeText(range.from, range.to)}`, model.isVirtual && " (virtual time)"),
      h("thead", {}, h("tr", {}, COLUMNS.map(([name, title]) => h("th", { scope: "col", title: title || null }, name)))),
      h("tbody", {}, found.slice(0, ROWS_MAX).map(row))),
    found.length > ROWS_MAX && h("p", { class: "quiet" },
      `The first ${ROWS_MAX} of ${count(found.length, "event")}. Choose a shorter range, or filter.`));
}

const shortState = (item) => stateOf(item).name.split(",")[0];
