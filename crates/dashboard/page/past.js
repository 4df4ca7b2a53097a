// The state at an earlier time, as far as the audit log tells it. Functions of entries, without a page.

import { HOUR, parseTime } from "./format.js";
import { Histories } from "./history.js";

// Entries that tell on which hosts machines are: before the work (their own host), or after it.
const BEFORE_WORK = new Set(["announced", "started"]);
const AFTER_WORK = new Set(["admitted", "completed", "moved"]);

/** Entries of several lists, each once, oldest first. */
export function merged(...lists) {
  const all = new Map();
  for (const entry of lists.flat()) all.set(`${entry.stream}/${entry.number}`, entry);
  return [...all.values()].sort((one, other) =>
    (parseTime(one.at) - parseTime(other.at)) || (one.stream === other.stream ? one.number - other.number : 0));
}

/**
 * The state at a time: { events [{ history, status, isApproved }], ended, hosts, machines, enrolled, brake }.
 * `ended` are histories that ended in the hour before. `hosts` maps names to { health }, `machines` names to
 * { host, candidates }: the host is empty if the log leaves several, which are the candidates. `live` are the machines of
 * now, names to hosts. Entries are oldest first.
 */
export function stateAt(entries, time, live = new Map()) {
  const histories = new Histories();
  for (const entry of entries) histories.add(entry);
  const events = [];
  const ended = [];
  for (const history of histories.byId.values()) {
    const status = Histories.statusAt(history, time);
    const isApproved = history.approvals.some(({ at }) => at <= time);
    if (status === "Scheduled" || status === "Started") events.push({ history, status, isApproved });
    else if (status === history.outcome && time - history.ended <= HOUR) ended.push(history);
  }
  events.sort((one, other) => (one.history.notBefore ?? 0) - (other.history.notBefore ?? 0));
  ended.sort((one, other) => other.ended - one.ended);
  const past = entries.filter((entry) => parseTime(entry.at) <= time);
  return {
    events, ended, machines: placementAt(entries, time, live), hosts: hostsOf(past), enrolled: enrolledOf(past), brake: brakeOf(past),
  };
}

function hostsOf(past) {
  const hosts = new Map();
  for (const { kind, hosts: names, text } of past) {
    const name = names?.[0];
    if (!name || names.length !== 1) continue;
    if (kind === "admitted" && text === `host ${name} was added`) hosts.set(name, { health: "" });
    if (kind === "removed" && text === `host ${name} was removed`) hosts.delete(name);
    if (kind === "health") hosts.set(name, { health: text.replace(`host ${name} `, "") });
  }
  return hosts;
}

/** Tenants that are enrolled, as far as the log tells it: true or false by name. */
function enrolledOf(past) {
  const enrolled = new Map();
  for (const { kind, tenants } of past) {
    if (kind === "enrolled" || kind === "disabled") enrolled.set(tenants[0], kind === "enrolled");
  }
  return enrolled;
}

function brakeOf(past) {
  const last = past.findLast(({ kind }) => kind === "brake");
  return !last ? "unknown" : last.text.includes("is on") ? "on" : "off";
}

/** What each entry tells about the host of a machine: names to lists of { at, kind, hosts, isGone }, oldest first. */
function sightings(entries) {
  const all = new Map();
  for (const { at, kind, machines = [], hosts = [], notices = [] } of entries) {
    const isGone = kind === "forgotten" || (kind === "completed" && notices.some(({ type }) => type === "Terminate"));
    const isPlace = hosts.length && (BEFORE_WORK.has(kind) || AFTER_WORK.has(kind));
    for (const name of isGone || isPlace ? machines : []) {
      if (!all.has(name)) all.set(name, []);
      all.get(name).push({ at: parseTime(at), kind, isGone, hosts: kind === "moved" ? hosts.slice(-1) : hosts });
    }
  }
  return all;
}

/** The hosts of machines at a time: names to { host, candidates }. */
export function placementAt(entries, time, live = new Map()) {
  const seen = sightings(entries);
  const placement = new Map();
  for (const name of new Set([...seen.keys(), ...live.keys()])) {
    const found = placeOf(seen.get(name) ?? [], time, live.get(name));
    if (found) placement.set(name, found);
  }
  return placement;
}

function placeOf(sights, time, liveHost) {
  const known = sights.filter(({ at }) => at <= time);
  const later = sights.slice(known.length);
  const last = known.at(-1);
  if (last?.isGone || (!last && later[0]?.kind === "admitted")) return null;
  if (last?.hosts.length === 1) return place(last.hosts);
  if (last && BEFORE_WORK.has(last.kind)) {
    // The work may move the machine, but has not done so yet: it is where it was.
    const before = placeOf(known.slice(0, -1), time);
    const candidates = before?.candidates.filter((host) => last.hosts.includes(host));
    return place(candidates?.length ? candidates : last.hosts);
  }
  return narrowed(last?.hosts, later, liveHost);
}

/** The candidates that later entries leave: until the next work begins, the machine stays where it is. */
function narrowed(candidates, later, liveHost) {
  let left = candidates;
  let isStill = true; // no entry says that the machine may have moved since
  for (const { kind, hosts, isGone } of later) {
    isStill = !isGone && BEFORE_WORK.has(kind);
    if (!isStill) break;
    left = left?.filter((host) => hosts.includes(host)) ?? hosts;
    if (left.length === 1) break;
  }
  if (isStill && liveHost && (left?.includes(liveHost) ?? true)) left = [liveHost];
  return place(left?.length ? left : candidates);
}

const place = (candidates) => candidates && { host: candidates.length === 1 ? candidates[0] : "", candidates };
