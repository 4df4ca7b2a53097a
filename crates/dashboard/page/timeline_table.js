// The timeline as a table: the same events as in the chart.

import { h, headings, mark, quiet, quietSpan, replace } from "./dom.js";
import { count, duration, eventTitle, fullTime, list, relative } from "./format.js";
import { model } from "./model.js";
import { TERMS, isWithin, stateOf } from "./timeline_data.js";
import { rangeText } from "./timeline_axis.js";

const ROWS_MAX = 300;
const COLUMNS = ["Event", ["Tenant", "The owner of the machines"], "State", ...Object.entries(TERMS)];

/** Draws the table into an element. */
export function drawTable(place, items, range) {
  const found = items.filter((item) => isWithin(item, range));
  const dates = [range.from, range.to].map((millis) => fullTime(millis).slice(0, 10));
  const begin = dates[0] === dates[1] ? 11 : 0;
  const time = (millis) => (millis === null ? "–"
    : h("time", { title: `${relative(millis, model.now())}, ${fullTime(millis)}` }, fullTime(millis).slice(begin, 19)));
  const cells = ({ cause, hosts, announced, notBefore, approvals, started, ended }) => [
    [cause || "–", hosts.length > 0 && quietSpan(` · ${list(hosts)}`)],
    time(announced),
    time(notBefore),
    approvals.length ? approvals.map(({ at, by }) => h("div", {}, time(at), by && ` by ${by}`)) : "–",
    time(started),
    [time(ended), started !== null && ended !== null && h("span", { class: "quiet nowrap" }, ` after ${duration(ended - started)}`)],
  ];
  const row = (item) => h("tr", {},
    h("th", { scope: "row" }, h("a", { href: `#/event/${item.id}`, id: `row-${item.id}` }, eventTitle(item))),
    h("td", {}, item.tenant),
    h("td", { class: "nowrap" }, mark(stateOf(item)), " ", h("span", { "aria-hidden": "true" }, stateOf(item).name.split(",")[0])),
    cells(item).map((cell) => h("td", {}, cell)));
  replace(place,
    h("table", {},
      h("caption", {}, `${count(found.length, "event")} from ${rangeText(range.from, range.to)}`, model.isVirtual && " (virtual time)"),
      headings(COLUMNS),
      h("tbody", {}, found.slice(0, ROWS_MAX).map(row))),
    found.length > ROWS_MAX && quiet(`The first ${ROWS_MAX} of ${count(found.length, "event")}. Choose a shorter range, or filter.`));
}
