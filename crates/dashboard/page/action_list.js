// Actions on machines, events, rollouts and the cluster: when they apply, their words, requests and consequences.

import { HOST_ACTIONS } from "./action_hosts.js";
import { MOVED, RESTARTED, approvalText, eventImpacts, machineEffects, sameWork } from "./action_effects.js";
import { REQUIRE_NOTICE, command, commandActions, optionWords } from "./commands.js";
import { capital, count, countdown, eventTitle, list, parseTime, relative, shortId } from "./format.js";
import { model } from "./model.js";
import { ROLLOUT_STATES, changedTerms, termFields, termWords } from "./rollout_terms.js";
import { SCALE_SET_ACTIONS } from "./scaleset_actions.js";

/** The name of a machine: short if no other tenant has such a machine. */
function shortName({ tenant, name }) {
  const same = [...model.machines.values()].filter((other) => other.name === name);
  return same.length > 1 ? `${tenant}/${name}` : name;
}

const isRunning = (machine) => machine.power === "running";
const isAllocated = (machine) => machine.power !== "deallocated";

/** Work on a machine: see also `machineEffects`. */
const MACHINE_WORK = {
  restart: { noun: "restart", applies: isRunning, impact: `is restarted: ${RESTARTED}`, event: "Reboot", policy: "restart" },
  redeploy: {
    noun: "redeployment", applies: isAllocated, impact: `is moved to another host: ${MOVED}`, event: "Redeploy", policy: "redeploy",
  },
  evict: {
    noun: "eviction", isDangerous: true, applies: (machine) => machine.spot !== null && isAllocated(machine), event: "Preempt",
    impact: ({ spot }) => `is evicted and ${spot === "delete" ? "deleted: everything on it is lost" : `deallocated: ${MOVED}`}`,
  },
  start: { noun: "start", applies: (machine) => !isRunning(machine), impact: "is started" },
  stop: { noun: "stop", applies: isRunning, impact: `is stopped and stays on its host: ${RESTARTED}` },
  deallocate: { noun: "deallocation", applies: isAllocated, impact: `is stopped and leaves its host: ${MOVED}` },
  reimage: {
    noun: "new image", isDangerous: true, applies: isAllocated, event: "Reboot", setting: "os_image",
    impact: "gets a new operating-system image: memory and the system disk are lost, data disks are kept",
  },
  delete: {
    noun: "deletion", isDangerous: true, applies: () => true, event: "Terminate", setting: "terminate",
    impact: "is deleted: everything on it is lost",
  },
};

const machineAction = ([name, work]) => [name, {
  label: capital(name), isDangerous: work.isDangerous, applies: work.applies, cli: `vm ${name}`,
  title: `${capital(name)} {}`,
  past: `The ${work.noun} of {} was requested`,
  fields: work.event ? [REQUIRE_NOTICE] : [],
  effects: (machine) => machineEffects(machine, work),
}];

const MACHINE_ACTIONS = commandActions("machine", (machine) => {
  const { name, tenant } = machine;
  const word = shortName(machine);
  return { name, fullName: `${name} of tenant ${tenant}`, word, members: { machine: word } };
}, Object.fromEntries(Object.entries(MACHINE_WORK).map(machineAction)));

const isScheduled = (event) => event.status === "Scheduled";
const isStarted = (event) => event.status === "Started";
const leftText = (event) => countdown((parseTime(event.not_before) ?? model.now()) - model.now());
const titles = (events) => list(events.map((event) => eventTitle(event)), 5);

/** A prefix of the event's id that no other event has. */
function idWord({ id }) {
  const same = [...model.events.keys()].filter((other) => other.startsWith(shortId(id)));
  return same.length > 1 ? id : shortId(id);
}

const describeEvent = (event) => ({ name: eventTitle(event), word: idWord(event), members: { event: event.id } });

const EVENT_ACTIONS = commandActions("event", describeEvent, {
  approve: {
    label: "Approve", applies: (event) => isScheduled(event) && !event.approved, cli: "event approve",
    title: (event) => `Approve the ${eventTitle(event)} in place of tenant ${event.tenant}`,
    past: "The {} is approved",
    effects: async (event) => [
      `Tenant ${event.tenant} no longer has the rest of the notice, ${leftText(event)}.`, approvalText(event),
      ...(await eventImpacts(event)).map((text) => `Then ${text}`),
    ],
    request: ({ tenant, id }) => command("approve", { tenant, events: [id] }),
  },
  force_start: {
    label: "Start now", isDangerous: true, applies: isScheduled, cli: "event start",
    title: "Start the {} now",
    past: "The start of the {} was requested",
    effects: async (event) => {
      const others = sameWork(event);
      const unapproved = [event, ...others].filter((one) => !one.approved).map(({ tenant }) => tenant);
      return [
        unapproved.length > 0
          && `It starts without the approval of ${list(unapproved, 5)}; the rest of the notice, ${leftText(event)}, is dropped.`,
        others.length > 0 && `The same work starts for ${titles(others)}.`,
        ...(await eventImpacts(event)),
        "It does not wait for a window or for other update domains either. It is rejected while the brake is on.",
      ];
    },
  },
  cancel: {
    label: "Cancel event", button: "Cancel the event", isDangerous: true, applies: isScheduled, cli: "event cancel",
    title: "Cancel the {}",
    past: "The {} is cancelled",
    effects: (event) => {
      const others = sameWork(event);
      return [
        `Nothing happens to ${list(event.resources, 5)}: the event disappears from the document of ${event.tenant}.`,
        others.length > 0 && `The whole work is withdrawn, also the ${titles(others)}.`,
        `Its cause was: ${event.cause}.`,
      ];
    },
  },
  retry: {
    label: "Retry", applies: isStarted, cli: "event retry",
    title: "Repeat the unfinished actions of the {}",
    past: "The unfinished actions of the {} are repeated",
    effects: (event) => [
      `Now: ${event.progress}.`, "The driver gets each unfinished action again, at once, also those whose result is unknown.",
      "An action that has succeeded without a report is carried out a second time if the driver does not notice that.",
    ],
  },
  give_up: {
    label: "Give up", isDangerous: true, applies: isStarted, cli: "event give-up",
    title: "Give up the unfinished actions of the {}",
    past: "The unfinished actions of the {} count as failed",
    effects: (event) => [
      `Now: ${event.progress}.`, "Unfinished actions count as failed: the event ends as failed for their VMs, whose real state you have to check yourself.",
    ],
  },
});

const isGoing = (rollout) => rollout.ended_at === null;
const announced = (rollout) => `Announced now: ${rollout.current_hosts.length ? `work on ${list(rollout.current_hosts, 5)}` : "nothing"}.`;

const describeRollout = ({ id, work }) => ({ name: id, fullName: `${id}, ${work}`, word: String(id), members: { rollout: id } });

const ROLLOUT_ACTIONS = commandActions("rollout", describeRollout, {
  pause_rollout: {
    label: "Pause", applies: (rollout) => isGoing(rollout) && rollout.state !== "paused", cli: "rollout pause",
    title: "Pause rollout {}",
    past: "Rollout {} is paused",
    fields: [{
      id: "take_back", type: "check", label: "Withdraw announced events that have not started",
      title: "Their hosts wait again, and are announced anew after the pause",
    }],
    effects: (rollout, { take_back }) => [
      `No waiting host is announced until the rollout is resumed: ${list(rollout.waiting, 5) || "there are none"}.`,
      `${announced(rollout)} ${take_back
        ? "Events of it that have not started disappear from the documents; their hosts wait again."
        : "It keeps its time: it starts when it is approved, or when its notice ends."}`,
      "Work that has started continues.",
    ],
  },
  resume_rollout: {
    label: "Resume", applies: (rollout) => ROLLOUT_STATES[rollout.state]?.canResume, cli: "rollout resume",
    title: "Resume rollout {}",
    past: "Rollout {} is resumed",
    effects: ({ text, waiting, failures }) => [
      `Now: ${text}.`,
      waiting.length > 0
        ? `The next of ${count(waiting.length, "waiting host")} are announced when its terms allow: ${list(waiting, 5)}.`
        : "No host waits.",
      failures > 0 && `Failures until now no longer count: ${failures}.`,
    ],
  },
  change_rollout: {
    label: "Change terms", applies: (rollout) => isGoing(rollout) && rollout.work !== "maintenance mode", cli: "rollout set",
    title: "Change the terms of rollout {}",
    past: "The terms of rollout {} are changed",
    fields: ({ terms, waiting }) => [
      ...termFields(terms),
      { id: "remove", type: "boxes", label: "Leave out waiting hosts", options: waiting.slice(0, 200), isShown: () => waiting.length > 0 },
    ],
    members: ({ remove, ...values }, { terms }) => ({ terms: changedTerms(values, terms), remove }),
    effects: ({ terms, waiting }, { remove, ...values }) => {
      const names = Object.keys(changedTerms(values, terms)).map((name) => name.replaceAll("_", " "));
      return [
        names.length
          ? `Changed terms: ${names.join(", ")}. They hold for the ${count(waiting.length, "host")} not announced yet.`
          : "No term is changed yet.",
        remove?.length > 0 && `${list(remove, 5)} will not be worked on.`,
        "Announced events stay as they are.",
      ];
    },
    words: ({ id, terms }, { remove, ...values }) => [
      "rollout", "set", String(id), ...termWords(changedTerms(values, terms)), ...optionWords({ remove }),
    ],
  },
  cancel_rollout: {
    label: "Cancel rollout", button: "Cancel the rollout", isDangerous: true, applies: isGoing, cli: "rollout cancel",
    title: "Cancel rollout {}",
    past: "Rollout {} is cancelled",
    effects: (rollout) => [
      `${announced(rollout)} Events of it that have not started are withdrawn; work that has started continues.`,
      `Hosts that are not worked on: ${rollout.waiting.length}; done until now: ${rollout.done.length}.`,
      "A cancelled rollout cannot be resumed.",
    ],
  },
});

const waitingEvents = () => [...model.events.values()].filter(isScheduled);

const CLUSTER_ACTIONS = commandActions("cluster", ({ name }) => ({ name }), {
  brake_on: {
    label: "Set the brake", isDangerous: true, applies: () => model.brake === "off", cli: "brake on",
    title: "Hold every start in cluster {}",
    past: "The brake is on",
    effects: () => [
      `No event starts, approved or not, until the brake is released. Events that wait now: ${waitingEvents().length}.`,
      "Rollouts announce nothing. Work that has started continues, and a failed host is still handled.",
      "Machines see nothing of it: their events stay in the document.",
    ],
  },
  brake_off: {
    label: "Release the brake", applies: () => model.brake === "on", cli: "brake off",
    title: "Let events start again in cluster {}",
    past: "The brake is released",
    effects: () => {
      const startOf = (event) => (event.approved ? 0 : parseTime(event.not_before) ?? Infinity);
      const due = waitingEvents().filter((event) => startOf(event) <= model.now());
      const next = Math.min(...waitingEvents().map(startOf).filter((start) => start > model.now()));
      return [
        due.length ? `At once, as far as nothing else holds it: ${titles(due)}.` : "Nothing starts at once.",
        next < Infinity && `The next other event starts ${relative(next, model.now())}, unless it is approved before.`,
        "Rollouts continue by their terms.",
      ];
    },
  },
});

/** All actions by name. */
export const ACTIONS = {
  ...MACHINE_ACTIONS, ...HOST_ACTIONS, ...EVENT_ACTIONS, ...ROLLOUT_ACTIONS, ...CLUSTER_ACTIONS, ...SCALE_SET_ACTIONS,
};
