// Consequences of actions, in words: which machines and tenants, what is lost, how long the notice is, when it starts.

import { get } from "./api.js";
import { clockTime, count, countdown, duration, fullTime, list, parseTime, relative } from "./format.js";
import { spanMillis } from "./form.js";
import { model } from "./model.js";
import { readPreview } from "./rollout_preview.js";

const MINUTE = 60_000;
const DAY = 86_400_000;
const NAMES_MAX = 5;
const TENANTS_MAX = 8;

/** Notices of events that have a fixed one, in milliseconds. */
export const NOTICES = { Freeze: 15 * MINUTE, Reboot: 15 * MINUTE, Redeploy: 10 * MINUTE, Preempt: 30_000 };

const RESTARTED = "memory is lost, disks are kept";
const MOVED = "memory and the ephemeral disk are lost, other disks are kept";

/** The impact on a machine, by command. */
export const IMPACTS = {
  restart: () => `is restarted: ${RESTARTED}`,
  redeploy: () => `is moved to another host: ${MOVED}`,
  delete: () => "is deleted: everything on it is lost",
  reimage: () => "gets a new operating-system image: memory and the system disk are lost, data disks are kept",
  stop: () => `is stopped and stays on its host: ${RESTARTED}`,
  start: () => "is started",
  deallocate: () => `is stopped and leaves its host: ${MOVED}`,
  evict: (machine) => (
    machine.spot === "delete" ? "is evicted and deleted: everything on it is lost" : `is evicted and deallocated: ${MOVED}`
  ),
};

/** Settings of the cluster that change what happens; the usual ones if the caller may not see them. */
export async function settings() {
  const usual = { unenrolled: "runs", failure: "redeploy" };
  return model.seesHosts ? get("/v1/settings", { cluster: model.cluster }).catch(() => usual) : usual;
}

const brakeText = () => model.brake === "on" && "The brake is on: nothing starts before it is released.";

/** When work on machines of one tenant starts, and what the tenant is told. */
export function startText(tenantName, { event, millis, policy, what }, { unenrolled }) {
  const tenant = model.tenants.get(tenantName);
  if (!event) return ["There is no event for this: no VM is notified, and it happens at once."];
  if (!tenant?.enrolled) {
    const start = unenrolled === "waits" ? `waits as long as a notice, ${countdown(millis)}` : "starts at once";
    return [
      `Tenant ${tenantName} is not enrolled, because none of its VMs has polled for events in the last 24 hours.`,
      `It gets no notice, and the ${what} ${start}.`, brakeText(),
    ];
  }
  const readers = tenant.machines.length === 1 ? "its VM reads" : `its ${count(tenant.machines.length, "VM")} read`;
  const told = `Tenant ${tenantName} is notified: ${readers} a ${event} event in the metadata.`;
  const isDown = !tenant.machines.some((name) => model.machines.get(`${tenantName}/${name}`)?.power === "running");
  if (policy && tenant.policy[policy] === "automatic") {
    return [told, `The policy of ${tenantName} approves a ${what} by itself: it starts at once.`, brakeText()];
  }
  if (isDown && tenant.policy.all_down === "automatic") {
    return [told, `No VM of ${tenantName} runs, so its policy approves the event: it starts at once.`, brakeText()];
  }
  const approves = event === "Terminate" ? "has approved all Terminate events of the tenant" : "approves";
  return [
    told,
    `It starts as soon as a VM of ${tenantName} ${approves}, or without approval ${noticeEnd(millis)}.`,
    brakeText(),
  ];
}

/** The time after a length of time from now, with its day if that is not clear. */
const timeText = (millis) => (millis < DAY ? clockTime : fullTime)(model.now() + millis);

const noticeEnd = (millis) => `when the notice of ${noticeText(millis)} ends, at ${timeText(millis)}`;

function noticeText(millis) {
  if (millis < MINUTE) return `${millis / 1000} s`;
  return millis % DAY === 0
    ? count(millis / DAY, "day")
    : millis % 3_600_000 === 0 ? `${millis / 3_600_000} h` : `${Math.round(millis / MINUTE)} min`;
}

/** Consequences of a command for one machine. */
export async function machineEffects(command, machine) {
  const where = `${machine.name} (tenant ${machine.tenant}, host ${machine.host})`;
  const others = model.eventsOf(machine);
  return [
    `${where} ${IMPACTS[command](machine)}.`,
    ...startText(machine.tenant, machineNotice(command, machine), await settings()),
    others.length > 0
      && `It has ${count(others.length, "event")} already: ${list(others.map((event) => `${event.kind}, ${event.progress}`))}.`,
  ];
}

function machineNotice(command, machine) {
  switch (command) {
    case "restart": return { event: "Reboot", millis: NOTICES.Reboot, policy: "restart", what: "restart" };
    case "redeploy": return { event: "Redeploy", millis: NOTICES.Redeploy, policy: "redeploy", what: "redeployment" };
    case "evict": return { event: "Preempt", millis: NOTICES.Preempt, what: "eviction" };
    case "delete": return { event: machine.terminate && "Terminate", millis: spanMillis(machine.terminate), what: "deletion" };
    case "reimage": return { event: machine.os_image && "Reboot", millis: NOTICES.Reboot, what: "new image" };
    default: return {};
  }
}

/** The consequences of an event's start for its machines, from the server's explanation. */
export async function eventImpacts(event) {
  const explanation = await get(`/v1/events/${encodeURIComponent(event.id)}/explanation`, { cluster: model.cluster });
  const texts = explanation.machines.map(({ machine, text }) => `${machine} ${text}`);
  const more = texts.length > NAMES_MAX ? [`the same for ${count(texts.length - NAMES_MAX, "more VM")}`] : [];
  return [...texts.slice(0, NAMES_MAX), ...more].map((text) => `${text}.`);
}

/** Other events of the same work: work on a host has an event for each tenant on it. */
export const sameWork = (event) => [...model.events.values()].filter((other) => other.work === event.work && other.id !== event.id);

/** When an event starts once its tenant has approved. */
export function approvalText(event) {
  const missing = sameWork(event).filter((other) => !other.approved && other.status === "Scheduled");
  if (model.brake === "on") return "It is held until the brake is released.";
  const isTerminate = (other) => other.tenant === event.tenant && other.kind === "Terminate" && other.id !== event.id && !other.approved;
  const terminates = event.kind === "Terminate" ? [...model.events.values()].filter(isTerminate) : [];
  const anyway = `Without approvals it starts ${relative(parseTime(event.not_before), model.now())}.`;
  if (terminates.length) {
    const names = list(terminates.flatMap(({ resources }) => resources), NAMES_MAX);
    return `It waits for the approval of the other Terminate events of ${event.tenant}: ${names}. ${anyway}`;
  }
  if (!missing.length) return "Nothing else has to be approved for this work: it starts at once, unless a window or other work holds it.";
  const tenants = list(missing.map(({ tenant }) => tenant), NAMES_MAX);
  return `It does not start yet: ${tenants} ${missing.length === 1 ? "has" : "have"} not approved the same work. ${anyway}`;
}

/** The impact of work on a host on its machines. */
export function hostImpact(kind, duration) {
  const pause = duration || { update: "9s", migrate: "5s" }[kind];
  const texts = {
    update: `paused for about ${pause}: memory, disks and connections are kept`,
    network: "without network for a moment: no data is lost",
    migrate: `moved live to another host, with a pause of about ${pause}: memory and disks are kept`,
    reboot: `restarted: ${RESTARTED}`,
    live: `moved live to another host, with a pause of about ${duration || "5s"}: memory and disks are kept`,
    redeploy: `moved to another host: ${MOVED}`,
    stop: `stopped until started again: ${RESTARTED}`,
    back_live: "moved live back, with a pause of about 5s: memory and disks are kept",
    back_redeploy: `moved back: ${MOVED}`,
  };
  return texts[kind];
}

/** Consequences of work on a host, from a simulation by the server. */
export async function hostWorkEffects(kind, host, body) {
  const preview = await readPreview({ kind, hosts: [host.name], ...body });
  const step = preview.longest.steps[0];
  const tenants = step?.tenants ?? [];
  if (preview.longest.stuck) return [`It would not end: ${preview.longest.stuck}.`];
  if (!tenants.length) {
    return [`No running VM is affected: ${host.name} has none. Nothing is announced, and the work begins at once.`, brakeText()];
  }
  const impact = hostImpact(kind, body.duration);
  const affected = ({ tenant, machines, event }) => {
    const told = event ? `gets a ${event} event` : "is not enrolled and gets no notice";
    return `${list(machines, NAMES_MAX)} of tenant ${tenant}: ${impact}. ${tenant} ${told}.`;
  };
  const [latest, earliest] = [parseTime(step.starts), parseTime(preview.shortest.steps[0].starts)];
  const isAnnounced = tenants.some(({ event }) => event);
  const approved = tenants.length === 1 ? `${tenants[0].tenant} approves` : "all these tenants have approved";
  const start = isAnnounced && latest > earliest
    ? `It starts when ${approved}, and without approvals at ${clockTime(latest)} (${relative(latest, model.now())}).`
    : `It starts at ${clockTime(latest)}: nobody has to approve.`;
  const end = preview.manual
    ? "The host is then ready for a person, who reports the end of the work."
    : parseTime(step.ends) > latest ? `It then takes about ${duration(parseTime(step.ends) - latest)}.` : "";
  return [
    ...tenants.slice(0, TENANTS_MAX).map(affected),
    tenants.length > TENANTS_MAX && `The same for ${count(tenants.length - TENANTS_MAX, "more tenant")}.`,
    `${start} ${end}`.trim(), ...(preview.notes ?? []), brakeText(),
  ];
}

/** Consequences for all machines of a host, if there is no simulation: their tenants, and their notice. */
export async function hostEffects(host, impact, notice) {
  const machines = host.machines.map((name) => model.machines.get(name)).filter((machine) => machine && machine.host === host.name);
  if (!machines.length) return [`No VM is on ${host.name}.`];
  const byTenant = Map.groupBy(machines, ({ tenant }) => tenant);
  const { unenrolled } = await settings();
  const line = ([tenant, own]) => {
    const isEnrolled = model.tenants.get(tenant)?.enrolled;
    const told = isEnrolled ? `${tenant} gets a ${notice.event} event` : `${tenant} is not enrolled and gets no notice`;
    return `${list(own.map(({ name }) => name), NAMES_MAX)} of tenant ${tenant}: ${impact}. ${told}.`;
  };
  const isAnyEnrolled = [...byTenant.keys()].some((tenant) => model.tenants.get(tenant)?.enrolled);
  const approved = notice.isSeparate ? "Each starts when its tenant has approved" : "It starts when all these tenants have approved";
  let start = "There is no notice: it starts at once.";
  if (notice.millis && !isAnyEnrolled && unenrolled === "runs") start = "It starts at once: none of these tenants is enrolled.";
  else if (notice.millis) start = `${approved}, or without approval ${noticeEnd(notice.millis)}.`;
  const rows = [...byTenant].map(line);
  const more = rows.length > TENANTS_MAX && `The same for ${count(rows.length - TENANTS_MAX, "more tenant")}.`;
  return [...rows.slice(0, TENANTS_MAX), more, start, notice.millis && brakeText()];
}
