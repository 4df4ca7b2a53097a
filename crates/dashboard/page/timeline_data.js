// The data of the timeline: events of the past, from the log, joined with those that are active; their lanes and rows.

import { count, duration, eventTitle, fullTime, joined, list, parseTime, relative } from "./format.js";
import { emptyHistory } from "./history.js";
import { STATES, model } from "./model.js";

const ROWS_MAX = 12;
const inOrder = new Intl.Collator("en", { numeric: true }).compare;
const GAP = 30_000; // between bars of a row, for their caps
const OUTCOMES = { Completed: { id: "done", name: "completed" }, Failed: { id: "failed", name: "failed" } };

/** The kinds of lanes, by their name in the address. */
export const LANES = {
  tenant: { label: "Tenant", title: "One lane per tenant: the owner of machines, who reads and approves events" },
  host: { label: "Host", title: "One lane per host: the physical server on which machines run" },
  rollout: { label: "Rollout", title: "One lane per rollout: work on many hosts, group by group" },
};

/** What is known about an event, in the order of time. */
export const TERMS = {
  Cause: "Why the event exists",
  Announced: "Its machines can read it since then",
  "Not before": "Without approval it starts at this time, not before; an approval lets it start earlier",
  Approved: "Allowed to start before the end of its notice",
  Started: "The interruption began",
  Ended: "The event left the document",
};

/**
 * Every known event, in the order of its begin. Each has the properties of a history, and: event (the active event, or
 * null), steps, expected (milliseconds of interruption, or null), begin (its first known time).
 */
export function collect() {
  const { byId } = model.histories;
  const logged = [...byId.values()].filter(({ kind }) => kind);
  const unlogged = [...model.events.values()].filter(({ id }) => !byId.get(id)?.kind).map(historyOf);
  return [...logged, ...unlogged].map(itemOf).sort((one, other) => one.begin - other.begin || (one.id < other.id ? -1 : 1));
}

function itemOf(history) {
  const event = model.events.get(history.id) ?? null;
  const notBefore = parseTime(event?.not_before) ?? history.notBefore;
  const seconds = event?.duration_seconds ?? history.duration;
  const begin = history.announced ?? history.started ?? history.ended ?? model.loadedFrom ?? model.now();
  // Hosts and steps are looked up for those events only that show them.
  let [hosts, steps] = [null, null];
  return { ...history, event, notBefore, begin, cause: event?.cause ?? history.cause, expected: seconds > 0 ? seconds * 1000 : null,
    get hosts() {
      return (hosts ??= hostsOf(history));
    },
    get steps() {
      return (steps ??= model.histories.steps(history).filter((step) => this.hosts.includes(step.host)));
    } };
}

/** The history of an active event whose announcement is older than the entries that were read. */
function historyOf({ id, kind, tenant, resources, cause, description, work = null }) {
  return { ...emptyHistory(id), kind, tenant, resources, cause, description, work };
}

/** The hosts of an event. The log names all hosts of its work: those of other tenants are left out where that is known. */
function hostsOf(history) {
  const own = new Set(history.resources.map((name) => model.machines.get(`${history.tenant}/${name}`)?.host).filter(Boolean));
  const known = history.hosts.filter((host) => own.has(host));
  return known.length ? known : history.hosts.length ? history.hosts : [...own];
}

/** The state of an event: an id, which is also the class of its bar, and a name. */
export function stateOf(item) {
  if (item.ended !== null) return OUTCOMES[item.outcome] ?? STATES.cancelled;
  if (item.event) return model.stateOf(item.event);
  return isRunning(item) ? STATES.started : item.approvals.length ? STATES.approved : STATES.scheduled;
}

export const isRunning = (item) => item.ended === null && (item.started !== null || item.event?.status === "Started");
export const isScheduled = (item) => item.ended === null && !isRunning(item);

/** The last time that the bar of an event reaches. */
export function endOf(item, now) {
  if (item.ended !== null) return item.ended;
  if (isRunning(item)) return now;
  return Math.max(now, (item.notBefore ?? now) + (item.expected ?? 0));
}

/** True if a part of the bar of an event is in a time. */
export const isWithin = (item, { from, to }) => item.begin <= to && endOf(item, model.now()) >= from;

/** Everything that is drawn of an event, also if the model has a new object for it. */
export const contentOf = (item) => [stateOf(item).id, isRunning(item), { ...item, event: item.event !== null }];

/** The events that match a filter: { q, kind, tenant }. */
export function filtered(items, { q, kind, tenant }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const textOf = (item) => [item.kind, item.tenant, item.id, ...item.resources, ...item.hosts, item.cause, item.reason,
    item.description, stateOf(item).name, item.rollout !== null && `rollout ${item.rollout}`].join(" ").toLowerCase();
  const hasWords = (text) => words.every((word) => text.includes(word));
  return items.filter((item) =>
    (!kind || item.kind === kind) && (!tenant || item.tenant === tenant) && (!words.length || hasWords(textOf(item))));
}

/**
 * Lanes of a kind: { key, name, title, rows, rollout }. A row is a list of bars ({ key, item, lane, row }) in time order that do
 * not overlap, except in the last row of a crowded lane. A rollout has its own row before them. `rollouts` have a lane also
 * without events.
 */
export function lanesOf(items, kind, { rollouts = [], rowsMax = ROWS_MAX } = {}) {
  const lanes = new Map();
  const laneOf = ([key, name, title, rollout = null]) => {
    if (!lanes.has(key)) lanes.set(key, { key, name, title, rows: [], ends: [], rollout });
    return lanes.get(key);
  };
  for (const item of items) for (const known of keysOf(item, kind)) place(laneOf(known), item, rowsMax);
  if (kind === "rollout") for (const { id } of rollouts) laneOf(keyOfRollout(id));
  return [...lanes.values()].sort((one, other) => (one.key === "") - (other.key === "") || inOrder(one.key, other.key));
}

function keysOf(item, kind) {
  const { tenant, rollout } = item;
  if (kind === "tenant") return [[tenant, tenant, `tenant ${tenant}`]];
  if (kind === "rollout") return [rollout === null ? NO_ROLLOUT : keyOfRollout(rollout)];
  return item.hosts.length ? item.hosts.map((host) => [host, host, `host ${host}`]) : [NO_HOST];
}

const NO_HOST = ["", "no host", "Events whose host is not known"];
const NO_ROLLOUT = ["", "no rollout", "Events that belong to no rollout, such as the restart of a single machine"];

function keyOfRollout(id) {
  const rollout = model.rollouts.get(id);
  return [String(id), `rollout ${id}`, rollout?.text ?? "", rollout];
}

function place(lane, item, rowsMax) {
  let row = lane.ends.findIndex((end) => end + GAP <= item.begin);
  if (row < 0) row = Math.min(lane.ends.length, rowsMax - 1);
  (lane.rows[row] ??= []).push({ key: `${lane.key}/${item.id}`, item, lane, row });
  lane.ends[row] = Math.max(lane.ends[row] ?? 0, item.ended ?? Infinity);
}

/** The text of a rollout's row: its work, its state and the hosts that still wait. */
export function rolloutText(rollout) {
  const waiting = rollout.waiting ?? [];
  const rest = waiting.length ? `; ${count(waiting.length, "host")} to go: ${list(waiting, 4)}` : "";
  return `${rollout.work} of hosts: ${rollout.text}${rest}`;
}

/**
 * The facts of an event: { name, title, at, text }, of which `at` is a time that may be missing, and `text` is what else is known.
 * A fact of which nothing is known is left out.
 */
export function factsOf(item) {
  const { started, ended, approvals } = item;
  const took = (from, to) => `took ${duration(to - from)}`;
  const fact = (name, at, text, title = TERMS[name]) => ({ name, title, at, text });
  const step = ({ host, begin, end }) => fact(`Step on ${host}`, begin, end === null ? "under way" : took(begin, end),
    "Work on the host itself, while its machines are stopped or paused");
  return [
    fact("Cause", null, item.cause),
    fact("Announced", item.announced),
    fact("Not before", isScheduled(item) ? item.notBefore : null),
    fact("Expected", null, item.expected && duration(item.expected), "The announced length of the interruption"),
    approvals.map(({ at, by }) => fact("Approved", at, by && `by ${by}`)),
    fact("Approved", null, isScheduled(item) && !approvals.length && "no"),
    fact("Started", started, item.startedBy),
    item.steps.map(step),
    fact("Ended", ended, started && ended && took(started, ended)),
  ].flat().filter(({ at, text }) => at ?? text);
}

/** An event as sentences, for screen readers. */
export function sentence(item) {
  const when = (millis) => `${relative(millis, model.now())}, ${fullTime(millis)}`;
  const texts = factsOf(item).map(({ name, at, text }) => `${name} ${joined([at !== null && when(at), text])}`);
  return `${[`${eventTitle(item)}, tenant ${item.tenant}: ${joined([stateOf(item).name, item.reason])}`, ...texts].join(". ")}.`;
}
