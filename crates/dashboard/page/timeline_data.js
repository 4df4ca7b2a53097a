// The data of the timeline: events of the past, from the log, joined with those that are active; their lanes and rows.

import { count, duration, fullTime, list, parseTime, relative } from "./format.js";
import { Histories } from "./history.js";
import { STATES, model } from "./model.js";

const ROWS_MAX = 12;
const GAP = 30_000; // between bars of a row, for their caps
const CANCELLED = { id: "cancelled", name: "cancelled" };
const COMPLETED = { id: "done", name: "completed" };
const FAILED = { id: "failed", name: "failed" };

/** The kinds of lanes, by their name in the address. */
export const LANES = {
  tenant: { label: "Tenant", title: "One lane per tenant: the owner of machines, who reads and approves events" },
  host: { label: "Host", title: "One lane per host: the physical server on which machines run" },
  rollout: { label: "Rollout", title: "One lane per rollout: work on many hosts, group by group" },
};

/**
 * Every known event, in the order of its begin. Each has the properties of a history, and: event (the active event, or
 * null), steps, expected (milliseconds of interruption, or null), begin (its first known time).
 */
export function collect() {
  const items = [];
  for (const history of model.histories.byId.values()) {
    if (history.kind) items.push(itemOf(history, model.events.get(history.id) ?? null));
  }
  for (const event of model.events.values()) {
    if (!model.histories.byId.get(event.id)?.kind) items.push(itemOf(unlogged(event), event));
  }
  return items.sort((one, other) => one.begin - other.begin || (one.id < other.id ? -1 : 1));
}

function itemOf(history, event) {
  const hosts = hostsOf(history);
  const notBefore = parseTime(event?.not_before) ?? history.notBefore;
  const seconds = event?.duration_seconds ?? history.duration;
  const steps = model.histories.steps(history).filter((step) => hosts.includes(step.host));
  const begin = history.announced ?? history.started ?? history.ended ?? model.loadedFrom ?? model.now();
  return { ...history, hosts, event, notBefore, steps, begin, cause: event?.cause ?? history.cause,
    expected: seconds > 0 ? seconds * 1000 : null };
}

/** An active event whose announcement is older than the entries that were read. */
function unlogged(event) {
  return {
    id: event.id, kind: event.kind, tenant: event.tenant, resources: event.resources, cause: event.cause, source: event.source,
    description: event.description, announced: null, notBefore: null, approvals: [], started: null, startedBy: "", ended: null,
    outcome: "", failed: [], reason: "", duration: -1, work: event.work ?? null, rollout: null, hosts: [],
  };
}

/** The hosts of an event. The log names all hosts of its work: those of other tenants are left out where that is known. */
function hostsOf(history) {
  const own = history.resources.map((name) => model.machines.get(`${history.tenant}/${name}`)?.host);
  const known = history.hosts.filter((host) => own.includes(host));
  return known.length ? known : history.hosts.length ? history.hosts : [...new Set(own.filter(Boolean))];
}

/** The state of an event: an id, which is also the class of its bar, and a name. */
export function stateOf(item) {
  if (item.ended !== null) return item.outcome === "Failed" ? FAILED : item.outcome === "Completed" ? COMPLETED : CANCELLED;
  if (item.event) return model.stateOf(item.event);
  return Histories.statusAt(item, model.now()) === "Started" ? STATES.started : item.approvals.length ? STATES.approved : STATES.scheduled;
}

export const isRunning = (item) => item.ended === null && (item.started !== null || item.event?.status === "Started");
export const isScheduled = (item) => item.ended === null && !isRunning(item);

/** The last time that the bar of an event reaches. */
export function endOf(item, now) {
  if (item.ended !== null) return item.ended;
  if (isRunning(item)) return now;
  return Math.max(now, (item.notBefore ?? now) + (item.expected ?? 0));
}

export const titleOf = (item, machinesMax = 3) => `${item.kind} of ${list(item.resources, machinesMax)}`;

/** The events that match a filter: { q, kind, tenant }. */
export function filtered(items, { q, kind, tenant }) {
  const words = (q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const isMatch = (item) => {
    if ((kind && item.kind !== kind) || (tenant && item.tenant !== tenant)) return false;
    if (!words.length) return true;
    const { id, resources, hosts, cause, reason, description } = item;
    const rollout = item.rollout === null ? "" : `rollout ${item.rollout}`;
    const text = [item.kind, item.tenant, id, ...resources, ...hosts, cause, reason, description, stateOf(item).name,
      rollout].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return items.filter(isMatch);
}

/**
 * Lanes of a kind: { key, name, title, rows, rollout }. A row is a list of bars ({ key, item, lane, row }) in time order that do
 * not overlap, except in the last row of a crowded lane. A rollout has its own row before them. `rollouts` have a lane also
 * without events.
 */
export function lanesOf(items, kind, { rollouts = [], rowsMax = ROWS_MAX } = {}) {
  const lanes = new Map();
  const laneOf = (key, name, title) => {
    if (!lanes.has(key)) lanes.set(key, { key, name, title, rows: [], ends: [], rollout: null });
    return lanes.get(key);
  };
  for (const item of items) {
    for (const [key, name, title] of keysOf(item, kind)) place(laneOf(key, name, title), item, rowsMax);
  }
  for (const { id, text } of kind === "rollout" ? rollouts : []) laneOf(String(id), `rollout ${id}`, text);
  for (const lane of kind === "rollout" ? lanes.values() : []) {
    lane.rollout = lane.key === "" ? null : model.rollouts.get(Number(lane.key)) ?? null;
  }
  const inOrder = new Intl.Collator("en", { numeric: true }).compare;
  return [...lanes.values()].sort((one, other) => (one.key === "") - (other.key === "") || inOrder(one.key, other.key));
}

function keysOf(item, kind) {
  if (kind === "host") return item.hosts.length ? item.hosts.map((host) => [host, host, `host ${host}`])
    : [["", "no host", "Events whose host is not known"]];
  if (kind === "rollout") {
    if (item.rollout === null) return [["", "no rollout", "Events that belong to no rollout, such as the restart of a single machine"]];
    return [[String(item.rollout), `rollout ${item.rollout}`, model.rollouts.get(item.rollout)?.text ?? ""]];
  }
  return [[item.tenant, item.tenant, `tenant ${item.tenant}`]];
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

/** An event as sentences, for screen readers. */
export function sentence(item) {
  const now = model.now();
  const when = (millis) => `${relative(millis, now)}, ${fullTime(millis)}`;
  const parts = [`${titleOf(item)}, tenant ${item.tenant}${item.cause ? `, cause: ${item.cause}` : ""}: ${stateOf(item).name}`];
  if (item.announced !== null) parts.push(`Announced ${when(item.announced)}`);
  if (isScheduled(item) && item.notBefore !== null) parts.push(`Not before ${when(item.notBefore)}`);
  for (const { at, by } of item.approvals) parts.push(`Approved${by ? ` by ${by}` : ""} ${when(at)}`);
  if (item.started !== null) parts.push(`Started ${when(item.started)}${item.startedBy ? `, ${item.startedBy}` : ""}`);
  for (const { host, begin, end } of item.steps) {
    parts.push(`Step on host ${host} ${end === null ? "under way" : `took ${duration(end - begin)}`}`);
  }
  if (item.ended !== null) parts.push(`Ended ${when(item.ended)}: ${stateOf(item).name}${item.reason ? `, ${item.reason}` : ""}`);
  return `${parts.join(". ")}.`;
}
