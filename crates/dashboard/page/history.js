// Histories of events, from audit entries. The same entries give the same histories, whatever their order of arrival.

import { parseTime } from "./format.js";

/**
 * The history of an event of which nothing is known yet. `approvals` are { at, by, tenant }, `outcome` is `Completed`, `Canceled`
 * or `Failed`, `failed` names machines, `duration` is expected, in seconds (-1: unknown). Times are milliseconds; a time that
 * the log does not have is null.
 */
export const emptyHistory = (id) => ({
  id, kind: "", tenant: "", resources: [], cause: "", description: "", announced: null, notBefore: null, approvals: [],
  started: null, startedBy: "", ended: null, outcome: "", failed: [], reason: "", duration: -1, work: null, rollout: null, hosts: [],
});

export class Histories {
  byId = new Map();
  failedMachines = new Map(); // { at, what, reason, isEvent } of machines whose last work failed, by `tenant/name`
  #workSteps = new Map(); // { host, begin, end } by work
  #seen = new Set();

  /** Adds an entry. Returns true if it was new. */
  add(entry) {
    const key = `${entry.stream}/${entry.number}`;
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    const at = parseTime(entry.at);
    const events = entry.events ?? [];
    if (entry.kind === "completed" && entry.work !== undefined) this.#outcome(entry, at);
    for (const notice of entry.notices ?? []) this.#notice(notice, entry, at);
    if (entry.kind === "approved") for (const id of events) this.#approval(id, entry, at);
    if (entry.work !== undefined && !events.length) this.#step(entry, at);
    return true;
  }

  #of(id) {
    if (!this.byId.has(id)) this.byId.set(id, emptyHistory(id));
    return this.byId.get(id);
  }

  #notice(notice, entry, at) {
    const history = this.#of(notice.event);
    Object.assign(history, {
      kind: notice.type, tenant: notice.tenant, description: notice.description ?? "", duration: notice.duration ?? -1,
      work: entry.work ?? history.work, rollout: entry.rollout ?? history.rollout,
    });
    if (notice.resources.length) history.resources = notice.resources;
    if (entry.hosts?.length) history.hosts = [...new Set([...history.hosts, ...entry.hosts])].sort();
    if (notice.status === "Scheduled") {
      history.announced = Math.min(history.announced ?? at, at);
      history.notBefore = parseTime(notice.not_before) ?? history.notBefore;
      history.cause = entry.text.match(/\((.*?)\) is announced/)?.[1] ?? history.cause;
    } else if (notice.status === "Started") {
      history.started = Math.min(history.started ?? at, at);
      history.startedBy = entry.text.match(/has started, (.*)$/)?.[1] ?? history.startedBy;
    } else {
      history.ended = Math.max(history.ended ?? at, at);
      const isFailed = history.failed.length || notice.failures?.length || entry.kind === "failed";
      history.outcome = isFailed ? "Failed" : notice.status;
      history.reason = notice.failures?.[0]?.reason ?? entry.reason ?? history.reason;
    }
  }

  /** An entry completes the work for one machine; the one for its last machine also ends the event. */
  #outcome(entry, at) {
    const [machine] = entry.machines ?? [];
    if (!machine) return;
    const name = machine.slice(machine.indexOf("/") + 1);
    const [what, end] = entry.text.split(` failed for ${name}`);
    if (end !== "" && !end?.startsWith(": ")) return void this.failedMachines.delete(machine);
    const events = entry.events ?? [];
    this.failedMachines.set(machine, { at, what: what.replace(/, for .*/, ""), reason: entry.reason ?? end.slice(2), isEvent: events.length > 0 });
    for (const id of events) {
      const history = this.#of(id);
      if (!history.failed.includes(name)) history.failed.push(name);
      if (entry.reason) history.reason = entry.reason;
    }
  }

  #approval(id, entry, at) {
    const history = this.#of(id);
    const by = entry.text.match(/, by (.*)$/)?.[1] ?? "";
    history.approvals.push({ at, by, tenant: entry.tenants?.[0] ?? history.tenant });
    history.approvals.sort((one, other) => one.at - other.at);
  }

  #step(entry, at) {
    const steps = this.#workSteps.get(entry.work) ?? [];
    this.#workSteps.set(entry.work, steps);
    const host = entry.hosts?.[0] ?? "";
    let step = steps.find((known) => known.host === host);
    if (!step) steps.push((step = { host, begin: null, end: null }));
    if (entry.kind === "step") step.begin = at;
    else if (entry.kind === "completed" || entry.kind === "failed") step.end = at;
  }

  /** The steps on hosts during an event. */
  steps(history) {
    return (this.#workSteps.get(history.work) ?? []).filter(({ begin }) => begin !== null);
  }

  /** The status of a history at a time, as far as the log tells it. */
  static statusAt(history, time) {
    const isPast = (millis) => millis !== null && millis <= time;
    if (isPast(history.ended)) return history.outcome;
    return isPast(history.started) ? "Started" : isPast(history.announced) ? "Scheduled" : "unknown";
  }
}
