// The view of an earlier time: events, machines and hosts as the audit log tells them, and what it does not tell.

import { h, mark } from "./dom.js";
import { count, countdown, duration, fullTime, list } from "./format.js";
import { STATES } from "./model.js";
import { stateAt } from "./past.js";

const SOON = 5 * 60_000;
const ROWS_MAX = 50;
const HOSTS_MAX = 200;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `12 Nov 2026 14:03:00 UTC`. */
export function pastTitle(millis) {
  const date = new Date(millis);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()} ${date.toISOString().slice(11, 19)} UTC`;
}

/** The state of an event at a time. */
export function pastState({ history, status, isApproved }, time) {
  if (status === "Started") return STATES.started;
  if (isApproved) return STATES.approved;
  return history.notBefore !== null && history.notBefore - time < SOON ? STATES.soon : STATES.scheduled;
}

/** Everything that the log tells about a time. */
export function pastView(entries, time, live, { isSwept, isMore, back }) {
  const state = stateAt(entries, time, live);
  const unsure = [...state.machines.values()].filter(({ host }) => !host).length;
  return [
    h("p", { class: "banner past-banner", role: "status" }, `${pastTitle(time)}, not live `,
      h("button", { type: "button", id: "back-to-live", on: { click: back } }, "Back to live")),
    tiles(state),
    h("h2", {}, "Events at that time"),
    events(state, time),
    h("h2", {}, "Machines and hosts at that time"),
    placement(state),
    h("h2", {}, "Not known"),
    h("ul", { class: "unknown" },
      h("li", {}, "Polls are not recorded: nobody knows when a machine last asked, except for the first time."),
      h("li", {}, "Power states and contents of documents are not recorded; an event shows what its machines could read."),
      unsure > 0 && h("li", {}, `The host of ${count(unsure, "machine")}: the log has several candidates.`),
      state.brake === "unknown" && h("li", {}, "The brake: the loaded entries do not mention it."),
      isSwept && h("li", {}, "Older entries were deleted from the log (swept): what only they mention is missing."),
      isMore && h("li", {}, "Events that were announced before the oldest loaded entry may be missing: load earlier entries.")),
  ];
}

function tiles({ events: all, ended, hosts, machines, enrolled, brake }) {
  const of = (wanted) => all.filter(wanted).length;
  const failedHosts = [...hosts.values()].filter(({ health }) => /has failed/.test(health)).length;
  const failed = ended.filter(({ outcome }) => outcome === "Failed").length;
  const tile = (number, name, state) =>
    h("li", {}, h("b", { class: "number" }, number), h("span", {}, h("span", { "aria-hidden": "true" }, mark(state)), " ", name));
  return h("ul", { class: "past-tiles", "aria-label": "Numbers at that time" },
    tile(of((one) => one.status === "Scheduled" && !one.isApproved), "scheduled events", STATES.scheduled),
    tile(of((one) => one.status === "Scheduled" && one.isApproved), "approved events", STATES.approved),
    tile(of((one) => one.status === "Started"), "started events", STATES.started),
    tile(ended.length, `ended in the hour before, ${failed} failed`, STATES.done),
    tile(machines.size, "machines known", STATES.idle),
    tile(failedHosts, "failed hosts", failedHosts ? STATES.failed : STATES.idle),
    enrolled.size > 0 && tile([...enrolled.values()].filter(Boolean).length, "tenants enrolled by a poll", STATES.idle),
    brake === "on" && tile("on", "brake: nothing starts", STATES.soon));
}

const joined = (...texts) => texts.filter(Boolean).join(" · ");
const link = ({ id, kind, resources }) => h("a", { class: "what", href: `#/event/${id}` }, `${kind || "Event"} of ${list(resources)}`);

function events({ events: all, ended }, time) {
  if (!all.length && !ended.length) return h("p", { class: "quiet" }, "No event that the log knows of.");
  const row = (one) => {
    const { history } = one;
    const state = pastState(one, time);
    const approved = history.approvals.filter(({ at }) => at <= time).map(({ by }) => by).filter(Boolean);
    const approvers = approved.length > 0 && `approved by ${list(approved)}`;
    const left = one.status === "Scheduled" && history.notBefore !== null ? history.notBefore - time : null;
    return h("li", { class: state.id }, mark(state),
      link(history),
      h("span", { class: "why quiet" }, joined(history.tenant, history.cause, state.name, approvers)),
      left !== null && h("span", { class: "number left", title: `not before ${fullTime(history.notBefore)}` },
        left > 0 ? `in ${countdown(left)}` : "due"));
  };
  const endedRow = (history) => h("li", {}, mark(history.outcome === "Failed" ? STATES.failed : STATES.done),
    link(history),
    h("span", { class: "why quiet" }, joined(history.tenant, history.outcome.toLowerCase(), history.reason)),
    h("span", { class: "number left", title: fullTime(history.ended) }, `${duration(time - history.ended)} before`));
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
  if (!byHost.size && !unsure.length) return h("p", { class: "quiet" }, "The loaded entries mention no machine.");
  const isHealthKnown = [...hosts.values()].some(({ health }) => health);
  const row = ([host, names]) => h("tr", {}, h("th", { scope: "row" }, host),
    isHealthKnown && h("td", {}, hosts.get(host)?.health ?? ""),
    h("td", {}, names.length ? list(names.sort(), 20) : h("span", { class: "quiet" }, "no machine")));
  const head = h("tr", {}, h("th", { scope: "col" }, "Host"),
    isHealthKnown && h("th", { scope: "col", title: "The last change that the log has" }, "Health"),
    h("th", { scope: "col" }, "Machines"));
  const sorted = [...byHost].sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true }));
  return [
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Machines by host" }, h("table", { class: "placement" },
      h("thead", {}, head),
      h("tbody", {}, sorted.slice(0, HOSTS_MAX).map(row)))),
    sorted.length > HOSTS_MAX && h("p", { class: "quiet" }, `and ${count(sorted.length - HOSTS_MAX, "more host")}`),
    unsure.length > 0 && h("ul", {}, unsure.slice(0, ROWS_MAX).map((text) => h("li", {}, text))),
  ];
}
