// Actions on machines, events, rollouts and the cluster: when they apply, their words, requests and consequences.

import { HOST_ACTIONS } from "./action_hosts.js";
import { approvalText, eventImpacts, machineEffects, sameWork } from "./action_effects.js";
import { REQUIRE_NOTICE, command, requireNotice } from "./commands.js";
import { count, countdown, list, parseTime, relative, shortId } from "./format.js";
import { model } from "./model.js";
import { ROLLOUT_STATES, TERM_FIELDS, changedTerms, termWords } from "./rollout_terms.js";
import { SCALE_SET_ACTIONS } from "./scaleset_actions.js";

/** The name of a machine: short if no other tenant has such a machine. */
export function shortName(machine) {
  let same = 0;
  for (const other of model.machines.values()) if (other.name === machine.name) same += 1;
  return same > 1 ? `${machine.tenant}/${machine.name}` : machine.name;
}

function machineAction(name, label, { isDangerous = false, hasNotice = true, applies, sentence, past }) {
  return {
    kind: "machine", label, isDangerous, applies,
    title: (machine) => `${sentence} ${machine.name} of tenant ${machine.tenant}`,
    button: label,
    past: (machine) => `${past} of ${machine.name} was requested`,
    fields: () => (hasNotice ? [REQUIRE_NOTICE] : []),
    effects: (machine) => machineEffects(name, machine),
    words: (machine, values) => ["vm", name, shortName(machine), ...requireNotice(values)],
    request: (machine, values) => command(name, { machine: shortName(machine) }, values),
  };
}

const isAllocated = (machine) => machine.power !== "deallocated";

const MACHINE_ACTIONS = {
  restart: machineAction(
    "restart", "Restart", { sentence: "Restart", past: "The restart", applies: (machine) => machine.power === "running" },
  ),
  redeploy: machineAction("redeploy", "Redeploy", { sentence: "Redeploy", past: "The redeployment", applies: isAllocated }),
  evict: machineAction(
    "evict", "Evict",
    {
      isDangerous: true, sentence: "Evict spot VM", past: "The eviction",
      applies: (machine) => machine.spot !== null && isAllocated(machine),
    },
  ),
  start: machineAction(
    "start", "Start", { hasNotice: false, sentence: "Start", past: "The start", applies: (machine) => machine.power !== "running" },
  ),
  stop: machineAction(
    "stop", "Stop", { hasNotice: false, sentence: "Stop", past: "The stop", applies: (machine) => machine.power === "running" },
  ),
  deallocate: machineAction(
    "deallocate", "Deallocate", { hasNotice: false, sentence: "Deallocate", past: "The deallocation", applies: isAllocated },
  ),
  reimage: machineAction("reimage", "Reimage", { isDangerous: true, sentence: "Reimage", past: "The new image", applies: isAllocated }),
  delete: machineAction("delete", "Delete", { isDangerous: true, sentence: "Delete", past: "The deletion", applies: () => true }),
};

const isScheduled = (event) => event.status === "Scheduled";
const eventName = (event) => `${event.kind} of ${list(event.resources)}`;
const leftText = (event) => countdown((parseTime(event.not_before) ?? model.now()) - model.now());

/** A prefix of the event's id that no other event has. */
function idWord(event) {
  const short = shortId(event.id);
  const isOnly = [...model.events.keys()].filter((id) => id.startsWith(short)).length <= 1;
  return isOnly ? short : event.id;
}

const eventAction = (action) => ({ kind: "event", fields: () => [], ...action });

const EVENT_ACTIONS = {
  approve: eventAction({
    label: "Approve", button: "Approve",
    applies: (event) => isScheduled(event) && !event.approved,
    title: (event) => `Approve the ${eventName(event)} in place of tenant ${event.tenant}`,
    past: (event) => `The ${eventName(event)} is approved`,
    effects: async (event) => [
      `Tenant ${event.tenant} no longer has the rest of the notice, ${leftText(event)}.`, approvalText(event),
      ...(await eventImpacts(event)).map((text) => `Then ${text}`),
    ],
    words: (event) => ["event", "approve", idWord(event)],
    request: (event) => command("approve", { tenant: event.tenant, events: [event.id] }),
  }),
  force_start: eventAction({
    label: "Start now", button: "Start now", isDangerous: true,
    applies: isScheduled,
    title: (event) => `Start the ${eventName(event)} now`,
    past: (event) => `The start of the ${eventName(event)} was requested`,
    effects: async (event) => {
      const others = sameWork(event);
      const unapproved = [event, ...others].filter((one) => !one.approved).map(({ tenant }) => tenant);
      return [
        unapproved.length > 0
          && `It starts without the approval of ${list(unapproved, 5)}; the rest of the notice, ${leftText(event)}, is dropped.`,
        others.length > 0 && `The same work starts for ${list(others.map(eventName), 5)}.`,
        ...(await eventImpacts(event)),
        "It does not wait for a window or for other update domains either. It is rejected while the brake is on.",
      ];
    },
    words: (event) => ["event", "start", idWord(event)],
    request: (event) => command("force_start", { event: event.id }),
  }),
  cancel: eventAction({
    label: "Cancel event", button: "Cancel the event", isDangerous: true,
    applies: isScheduled,
    title: (event) => `Cancel the ${eventName(event)}`,
    past: (event) => `The ${eventName(event)} is cancelled`,
    effects: (event) => {
      const others = sameWork(event);
      return [
        `Nothing happens to ${list(event.resources, 5)}: the event disappears from the document of ${event.tenant}.`,
        others.length > 0 && `The whole work is withdrawn, also the ${list(others.map(eventName), 5)}.`,
        `Its cause was: ${event.cause}.`,
      ];
    },
    words: (event) => ["event", "cancel", idWord(event)],
    request: (event) => command("cancel", { event: event.id }),
  }),
  retry: eventAction({
    label: "Retry", button: "Retry",
    applies: (event) => event.status === "Started",
    title: (event) => `Repeat the unfinished actions of the ${eventName(event)}`,
    past: (event) => `The unfinished actions of the ${eventName(event)} are repeated`,
    effects: (event) => [
      `Now: ${event.progress}.`, "The driver gets each unfinished action again, at once, also those whose result is unknown.",
      "An action that has succeeded without a report is carried out a second time if the driver does not notice that.",
    ],
    words: (event) => ["event", "retry", idWord(event)],
    request: (event) => command("retry", { event: event.id }),
  }),
  give_up: eventAction({
    label: "Give up", button: "Give up", isDangerous: true,
    applies: (event) => event.status === "Started",
    title: (event) => `Give up the unfinished actions of the ${eventName(event)}`,
    past: (event) => `The unfinished actions of the ${eventName(event)} count as failed`,
    effects: (event) => [
      `Now: ${event.progress}.`, "Unfinished actions count as failed: the event ends as failed for their VMs, whose real state you have to check yourself.",
    ],
    words: (event) => ["event", "give-up", idWord(event)],
    request: (event) => command("give_up", { event: event.id }),
  }),
};

const hasEnded = (rollout) => rollout.ended_at !== null;
const rolloutAction = (action) => (
  { kind: "rollout", fields: () => [], title: (rollout) => `${action.label} rollout ${rollout.id}, ${rollout.work}`, ...action }
);
const announced = (rollout) => (rollout.current_hosts.length ? `work on ${list(rollout.current_hosts, 5)}` : "nothing");

const ROLLOUT_ACTIONS = {
  pause_rollout: rolloutAction({
    label: "Pause", button: "Pause",
    applies: (rollout) => !hasEnded(rollout) && rollout.state !== "paused",
    past: (rollout) => `Rollout ${rollout.id} is paused`,
    fields: () => [
      {
        id: "take_back", type: "check", label: "Withdraw announced events that have not started",
        title: "Their hosts wait again, and are announced anew after the pause",
      }
    ],
    effects: (rollout, { take_back }) => [
      `The ${count(rollout.waiting.length, "host")} that ${rollout.waiting.length === 1 ? "waits is" : "wait are"} not announced until the rollout is resumed.`,
      take_back
        ? `Announced now: ${announced(rollout)}. Events of it that have not started disappear from the documents; their hosts wait again.`
        : `Announced now: ${announced(rollout)}. It keeps its time: it starts when it is approved, or when its notice ends.`,
      "Work that has started continues.",
    ],
    words: (rollout, { take_back }) => ["rollout", "pause", String(rollout.id), ...(take_back ? ["--take-back"] : [])],
    request: (rollout, { take_back }) => command("pause_rollout", { rollout: rollout.id, ...(take_back ? { take_back: true } : {}) }),
  }),
  resume_rollout: rolloutAction({
    label: "Resume", button: "Resume",
    applies: (rollout) => ROLLOUT_STATES[rollout.state]?.canResume ?? false,
    past: (rollout) => `Rollout ${rollout.id} is resumed`,
    effects: (rollout) => [
      `Now: ${rollout.text}.`,
      rollout.waiting.length > 0
        ? `The next of ${count(rollout.waiting.length, "waiting host")} are announced when its terms allow: ${list(rollout.waiting, 5)}.`
        : "No host waits.",
      rollout.failures > 0
        && `The ${count(rollout.failures, "failure")} since its start or last resume no longer ${rollout.failures === 1 ? "counts" : "count"}.`,
    ],
    words: (rollout) => ["rollout", "resume", String(rollout.id)],
    request: (rollout) => command("resume_rollout", { rollout: rollout.id }),
  }),
  change_rollout: rolloutAction({
    label: "Change terms", button: "Change terms",
    applies: (rollout) => !hasEnded(rollout) && rollout.work !== "maintenance mode",
    title: (rollout) => `Change the terms of rollout ${rollout.id}, ${rollout.work}`,
    past: (rollout) => `The terms of rollout ${rollout.id} are changed`,
    fields: (rollout) => [
      ...TERM_FIELDS(rollout.terms),
      {
        id: "remove", type: "boxes", label: "Leave out waiting hosts", options: rollout.waiting.slice(0, 200),
        isShown: () => rollout.waiting.length > 0,
      },
    ],
    effects: (rollout, values) => {
      const names = Object.keys(changedTerms(values, rollout.terms));
      return [
        names.length
          ? `Changed terms: ${names.map((name) => name.replaceAll("_", " ")).join(", ")}. They hold for the ${count(rollout.waiting.length, "host")} not announced yet.`
          : "No term is changed yet.",
        values.remove?.length > 0 && `${list(values.remove, 5)} will not be worked on.`,
        "Announced events stay as they are.",
      ];
    },
    words: (rollout, values) => [
      "rollout", "set", String(rollout.id), ...termWords(changedTerms(values, rollout.terms)),
      ...(values.remove ?? []).flatMap((host) => ["--remove", host]),
    ],
    request: (rollout, values) => command(
      "change_rollout",
      { rollout: rollout.id, terms: changedTerms(values, rollout.terms), ...(values.remove?.length ? { remove: values.remove } : {}) },
    ),
  }),
  cancel_rollout: rolloutAction({
    label: "Cancel rollout", button: "Cancel the rollout", isDangerous: true,
    applies: (rollout) => !hasEnded(rollout),
    title: (rollout) => `Cancel rollout ${rollout.id}, ${rollout.work}`,
    past: (rollout) => `Rollout ${rollout.id} is cancelled`,
    effects: (rollout) => [
      `Announced now: ${announced(rollout)}. Events of it that have not started are withdrawn; work that has started continues.`,
      `${count(rollout.waiting.length, "waiting host")} ${rollout.waiting.length === 1 ? "is" : "are"} not worked on; ${rollout.done.length} done until now.`,
      "A cancelled rollout cannot be resumed.",
    ],
    words: (rollout) => ["rollout", "cancel", String(rollout.id)],
    request: (rollout) => command("cancel_rollout", { rollout: rollout.id }),
  }),
};

const waitingEvents = () => [...model.events.values()].filter(isScheduled);

const CLUSTER_ACTIONS = {
  brake_on: {
    kind: "cluster", label: "Set the brake", button: "Set the brake", isDangerous: true, fields: () => [],
    applies: () => model.brake === "off",
    title: (cluster) => `Hold every start in cluster ${cluster.name}`,
    past: () => "The brake is on",
    effects: () => [
      `No event starts, approved or not, until the brake is released. Events that wait now: ${waitingEvents().length}.`,
      "Rollouts announce nothing. Work that has started continues, and a failed host is still handled.",
      "Machines see nothing of it: their events stay in the document.",
    ],
    words: () => ["brake", "on"],
    request: () => command("brake_on", {}),
  },
  brake_off: {
    kind: "cluster", label: "Release the brake", button: "Release the brake", fields: () => [],
    applies: () => model.brake === "on",
    title: (cluster) => `Let events start again in cluster ${cluster.name}`,
    past: () => "The brake is released",
    effects: () => {
      const due = waitingEvents().filter((event) => event.approved || (parseTime(event.not_before) ?? Infinity) <= model.now());
      const next = waitingEvents().filter((event) => !due.includes(event)).map((event) => parseTime(event.not_before)).sort((one, other) => one - other)[0];
      return [
        due.length ? `At once, as far as nothing else holds it: ${list(due.map(eventName), 5)}.` : "Nothing starts at once.",
        next !== undefined && `The next other event starts ${relative(next, model.now())}, unless it is approved before.`,
        "Rollouts continue by their terms.",
      ];
    },
    words: () => ["brake", "off"],
    request: () => command("brake_off", {}),
  },
};

/** All actions by name. */
export const ACTIONS = {
  ...MACHINE_ACTIONS, ...HOST_ACTIONS, ...EVENT_ACTIONS, ...ROLLOUT_ACTIONS, ...CLUSTER_ACTIONS, ...SCALE_SET_ACTIONS,
};
