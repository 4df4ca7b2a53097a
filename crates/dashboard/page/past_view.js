// The view of an earlier time: events, machines and hosts as the audit log tells them, and what it does not tell.

import { button, eventRow, h, headings, mark, quiet, quietSpan, scrollable } from "./dom.js";
import { MINUTE, clockTime, count, countdown, duration, fullDay, fullTime, joined, list } from "./format.js";
import { STATES } from "./model.js";
import { stateAt } from "./past.js";
import { stateOf } from "./timeline_data.js";

const SOON = 5 * MINUTE;
const ROWS_MAX = 50;
const HOSTS_MAX = 200;

/** `12 Nov 2026 14:03:00 UTC`. */
export const pastTitle = (millis) => `${fullDay(millis)} ${clockTime(millis)}`;

/** The state of an event at a time. */
function pastState({ history, status, isApproved }, time) {
  if (status === "Started") return STATES.started;
  if (isApproved) return STATES.approved;
  return (history.notBefore ?? Infinity) - time < SOON ? STATES.soon : STATES.scheduled;
}

/** Everything that the log tells about a time. */
export function pastView(entries, time, live, { isSwept, isMore, back }) {
  const state = stateAt(entries, time, live);
  const unsure = [...state.machines.values()].filter(({ host }) => !host).length;
  const unknown = [
    "When a machine polled, except for the first time; power states; contents of documents. They are not recorded.",
    unsure > 0 && `The host of ${count(unsure, "machine")}: the log has several candidates.`,
    state.brake === "unknown" && "The brake: the loaded entries do not mention it.",
    isSwept && "Whatever only older entries mention: they were deleted from the log (swept).",
    isMore && "Events that were announced before the oldest loaded entry: load earlier entries.",
  ];
  return [
    h("p", { class: "banner past-banner", role: "status" }, `${pastTitle(time)}, not live `,
      button("Back to live", back, { id: "back-to-live" })),
    tiles(state),
    h("h2", {}, "Events at that time"),
    events(state, time),
    h("h2", {}, "Machines and hosts at that time"),
    placement(state),
    h("h2", {}, "Not known"),
    h("ul", { class: "unknown" }, unknown.filter(Boolean).map((text) => h("li", {}, text))),
  ];
}

function tiles({ events: all, ended, hosts, machines, enrolled, brake }) {
  const scheduled = all.filter(({ status }) => status === "Scheduled");
  const approved = scheduled.filter(({ isApproved }) => isApproved).length;
  const failedHosts = [...hosts.values()].filter(({ health }) => /has failed/.test(health)).length;
  const failed = ended.filter(({ outcome }) => outcome === "Failed").length;
  const tile = (number, name, state) =>
    h("li", {}, h("b", { class: "number" }, number), h("span", {}, h("span", { "aria-hidden": "true" }, mark(state)), " ", name));
  return h("ul", { class: "past-tiles", "aria-label": "Numbers at that time" },
    tile(scheduled.length - approved, "scheduled events", STATES.scheduled),
    tile(approved, "approved events", STATES.approved),
    tile(all.length - scheduled.length, "started events", STATES.started),
    tile(ended.length, `ended in the hour before, ${failed} failed`, STATES.done),
    tile(machines.size, "machines known", STATES.idle),
    tile(failedHosts, "failed hosts", failedHosts ? STATES.failed : STATES.idle),
    enrolled.size > 0 && tile([...enrolled.values()].filter(Boolean).length, "tenants enrolled by a poll", STATES.idle),
    brake === "on" && tile("on", "brake: nothing starts", STATES.soon));
}

const timeLeft = (title, text) => h("span", { class: "number left", title }, text);

function events({ events: all, ended }, time) {
  if (!all.length && !ended.length) return quiet("No event that the log knows of.");
  const row = (one) => {
    const { history } = one;
    const state = pastState(one, time);
    const approvers = history.approvals.filter(({ at, by }) => at <= time && by).map(({ by }) => by);
    const left = history.notBefore - time;
    const text = joined([history.tenant, history.cause, state.name, approvers.length && `approved by ${list(approvers)}`], " · ");
    return eventRow(history, state, text,
      one.status === "Scheduled" && history.notBefore !== null
        && timeLeft(`not before ${fullTime(history.notBefore)}`, left > 0 ? `in ${countdown(left)}` : "due"));
  };
  const endedRow = (history) => eventRow(history, stateOf(history),
    joined([history.tenant, stateOf(history).name, history.reason], " · "),
    timeLeft(fullTime(history.ended), `${duration(time - history.ended)} before`));
  return h("ul", { class: "rows" }, all.slice(0, ROWS_MAX).map(row), ended.slice(0, ROWS_MAX).map(endedRow));
}

function placement({ machines, hosts }) {
  const byHost = new Map([...hosts.keys()].map((name) => [name, []]));
  const unsure = [];
  for (const [name, { host, candidates }] of machines) {
    if (!host) unsure.push(`${name}: on ${candidates.join(" or ")}`);
    else if (byHost.has(host)) byHost.get(host).push(name);
    else byHost.set(host, [name]);
  }
  if (!byHost.size && !unsure.length) return quiet("The loaded entries mention no machine.");
  const isHealthKnown = [...hosts.values()].some(({ health }) => health);
  const row = ([host, names]) => h("tr", {}, h("th", { scope: "row" }, host),
    isHealthKnown && h("td", {}, hosts.get(host)?.health ?? ""),
    h("td", {}, names.length ? list(names.sort(), 20) : quietSpan("no machine")));
  const sorted = [...byHost].sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true }));
  return [
    scrollable("Machines by host", h("table", { class: "placement" },
      headings(["Host", isHealthKnown && ["Health", "The last change that the log has"], "Machines"]),
      h("tbody", {}, sorted.slice(0, HOSTS_MAX).map(row)))),
    sorted.length > HOSTS_MAX && quiet(`and ${count(sorted.length - HOSTS_MAX, "more host")}`),
    unsure.length > 0 && h("ul", {}, unsure.slice(0, ROWS_MAX).map((text) => h("li", {}, text))),
  ];
}
