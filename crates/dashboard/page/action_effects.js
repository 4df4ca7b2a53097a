// Consequences of actions, in words: which machines and tenants, what is lost, how long the notice is, when it starts.

import { get } from "./api.js";
import { MINUTE, clockTime, count, countdown, dayTime, duration, list, parseSpan, parseTime, relative } from "./format.js";
import { model } from "./model.js";
import { readPreview } from "./rollout_preview.js";

const NAMES_MAX = 5;
const TENANTS_MAX = 8;

/** Notices of events that have a fixed one, in milliseconds. */
export const NOTICES = { Freeze: 15 * MINUTE, Reboot: 15 * MINUTE, Redeploy: 10 * MINUTE, Preempt: 30_000 };

export const RESTARTED = "memory is lost, disks are kept";
export const MOVED = "memory and the ephemeral disk are lost, other disks are kept";

/** Settings of the cluster that change what happens; the usual ones if the caller may not see them. */
export async function settings() {
  const usual = { unenrolled: "runs", failure: "redeploy" };
  return model.seesHosts ? get("/v1/settings", { cluster: model.cluster }).catch(() => usual) : usual;
}

const brakeText = () => model.brake === "on" && "The brake is on: nothing starts before it is released.";
const noticeEnd = (millis) => (
  `without approval when the notice of ${duration(millis)} ends, at ${dayTime(model.now() + millis, model.now())}`
);

/** When work on machines of one tenant starts, and what the tenant is told. */
export async function startTexts(name, { event, millis, policy, noun }) {
  if (!event) return ["There is no event for this: no VM is notified, and it happens at once."];
  const tenant = model.tenants.get(name);
  if (!tenant?.enrolled) {
    const { unenrolled } = await settings();
    const start = unenrolled === "waits" ? `waits as long as a notice, ${countdown(millis)}` : "starts at once";
    return [
      `Tenant ${name} is not enrolled, because none of its VMs has polled for events in the last 24 hours.`,
      `It gets no notice, and the ${noun} ${start}.`, brakeText(),
    ];
  }
  const { machines, policy: policies } = tenant;
  const readers = machines.length === 1 ? "its VM reads" : `its ${count(machines.length, "VM")} read`;
  const isDown = !machines.some((machine) => model.machines.get(`${name}/${machine}`)?.power === "running");
  const approves = event === "Terminate" ? "has approved all Terminate events of the tenant" : "approves";
  let start = `It starts as soon as a VM of ${name} ${approves}, or ${noticeEnd(millis)}.`;
  if (policies[policy] === "automatic") start = `The policy of ${name} approves a ${noun} by itself: it starts at once.`;
  else if (isDown && policies.all_down === "automatic") start = `No VM of ${name} runs, so its policy approves it: it starts at once.`;
  return [`Tenant ${name} is notified: ${readers} a ${event} event in the metadata.`, start, brakeText()];
}

/** The same for a deletion with a notice of deletion, or without one. */
export const deletionTexts = (tenant, terminate) => startTexts(tenant, {
  event: terminate && "Terminate", millis: parseSpan(terminate), noun: "deletion",
});

/** Consequences of work on one machine. Some work has an event only if a setting of the machine says so. */
export async function machineEffects(machine, { noun, impact, event, policy, setting }) {
  const { name, tenant, host, terminate } = machine;
  const others = model.eventsOf(machine);
  const isNotified = !setting || machine[setting];
  return [
    `${name} (tenant ${tenant}, host ${host}) ${impact instanceof Function ? impact(machine) : impact}.`,
    ...(await startTexts(tenant, { event: isNotified && event, millis: NOTICES[event] ?? parseSpan(terminate), policy, noun })),
    others.length > 0
      && `It has ${count(others.length, "event")} already: ${list(others.map(({ kind, progress }) => `${kind}, ${progress}`))}.`,
  ];
}

/** The first texts, and the number of the others. */
function firstTexts(texts, max, noun) {
  const more = texts.length - max;
  return more > 0 ? [...texts.slice(0, max), `The same for ${count(more, noun)}.`] : texts;
}

/** The consequences of an event's start for its machines, from the server's explanation. */
export async function eventImpacts(event) {
  const { machines } = await get(`/v1/events/${encodeURIComponent(event.id)}/explanation`, { cluster: model.cluster });
  return firstTexts(machines.map(({ machine, text }) => `${machine} ${text}.`), NAMES_MAX, "more VM");
}

/** Other events of the same work: work on a host has an event for each tenant on it. */
export const sameWork = (event) => [...model.events.values()].filter((other) => other.work === event.work && other.id !== event.id);

/** When an event starts once its tenant has approved. */
export function approvalText(event) {
  if (model.brake === "on") return "It is held until the brake is released.";
  const { id, kind, tenant } = event;
  const isTerminate = (other) => other.tenant === tenant && other.kind === "Terminate" && other.id !== id && !other.approved;
  const terminates = kind === "Terminate" ? [...model.events.values()].filter(isTerminate) : [];
  const anyway = `Without approvals it starts ${relative(parseTime(event.not_before), model.now())}.`;
  if (terminates.length) {
    const names = list(terminates.flatMap(({ resources }) => resources), NAMES_MAX);
    return `It waits for the approval of the other Terminate events of ${tenant}: ${names}. ${anyway}`;
  }
  const missing = sameWork(event).filter((other) => !other.approved && other.status === "Scheduled").map((other) => other.tenant);
  if (!missing.length) return "Nothing else has to be approved for this work: it starts at once, unless a window or other work holds it.";
  return `It does not start yet: the same work is not approved by ${list(missing, NAMES_MAX)}. ${anyway}`;
}

/** The impact of work on a host on its machines. */
export function hostImpact(kind, pause) {
  const movedLive = (where) => `moved live ${where}, with a pause of about ${pause || "5s"}: memory and disks are kept`;
  const texts = {
    update: `paused for about ${pause || "9s"}: memory, disks and connections are kept`,
    network: "without network for a moment: no data is lost",
    migrate: movedLive("to another host"),
    reboot: `restarted: ${RESTARTED}`,
    live: movedLive("to another host"),
    redeploy: `moved to another host: ${MOVED}`,
    stop: `stopped until started again: ${RESTARTED}`,
    back_live: movedLive("back"),
    back_redeploy: `moved back: ${MOVED}`,
  };
  return texts[kind];
}

/** The impact on the machines of each tenant, and its event. */
function tenantTexts(tenants, impact) {
  const told = (event) => (event ? `gets a ${event} event` : "is not enrolled and gets no notice");
  const text = ({ tenant, machines, event }) => `${list(machines, NAMES_MAX)} of tenant ${tenant}: ${impact}. ${tenant} ${told(event)}.`;
  return firstTexts(tenants.map(text), TENANTS_MAX, "more tenant");
}

/** Consequences of work on a host, from a simulation by the server. */
export async function hostWorkEffects(kind, host, members) {
  const { longest, shortest, manual, notes } = await readPreview({ kind, hosts: [host.name], ...members });
  if (longest.stuck) return [`It would not end: ${longest.stuck}.`];
  const [step] = longest.steps;
  const tenants = step?.tenants ?? [];
  if (!tenants.length) {
    return [`No running VM is affected: ${host.name} has none. Nothing is announced, and the work begins at once.`, brakeText()];
  }
  const [latest, earliest, ends] = [step.starts, shortest.steps[0].starts, step.ends].map(parseTime);
  const approved = tenants.length === 1 ? `${tenants[0].tenant} approves` : "all these tenants have approved";
  const start = tenants.some(({ event }) => event) && latest > earliest
    ? `It starts when ${approved}, and without approvals at ${clockTime(latest)} (${relative(latest, model.now())}).`
    : `It starts at ${clockTime(latest)}: nobody has to approve.`;
  let end = ends > latest ? ` It then takes about ${duration(ends - latest)}.` : "";
  if (manual) end = " The host is then ready for a person, who reports the end of the work.";
  return [...tenantTexts(tenants, hostImpact(kind, members.duration)), start + end, ...(notes ?? []), brakeText()];
}

/** Consequences for all machines of a host, if there is no simulation: their tenants, and their notice. */
export async function hostEffects(host, impact, { event, millis, isSeparate }) {
  const machines = host.machines.map((name) => model.machines.get(name)).filter((machine) => machine?.host === host.name);
  if (!machines.length) return [`No VM is on ${host.name}.`];
  const tenants = [...Map.groupBy(machines, ({ tenant }) => tenant)].map(([tenant, own]) => ({
    tenant, machines: own.map(({ name }) => name), event: model.tenants.get(tenant)?.enrolled && event,
  }));
  const texts = tenantTexts(tenants, impact);
  if (!millis) return [...texts, "There is no notice: it starts at once."];
  const isAtOnce = !tenants.some((tenant) => tenant.event) && (await settings()).unenrolled === "runs";
  const approved = isSeparate ? "Each starts when its tenant has approved" : "It starts when all these tenants have approved";
  const start = isAtOnce ? "It starts at once: none of these tenants is enrolled." : `${approved}, or ${noticeEnd(millis)}.`;
  return [...texts, start, brakeText()];
}
