// Actions on hosts.

import { MOVED, NOTICES, RESTARTED, hostEffects, hostImpact, hostWorkEffects, settings } from "./action_effects.js";
import { REQUIRE_NOTICE, command, commandActions, given } from "./commands.js";
import { checks } from "./form.js";
import { duration, list, parseSpan, parseTime } from "./format.js";
import { model } from "./model.js";

const isFree = (host) => host.health !== "failed" && !host.attention && !host.maintenance && !host.work;
const isFenceAwaited = (host) => host.fence === "awaited";
const isManual = (host) => host.step_since && host.manual;
const isDrivers = (host) => (host.step_since && !host.manual) || isFenceAwaited(host);
const namesOf = (host) => list(host.machines, 5) || "there are none";

export const WORK = {
  id: "work", label: "Work on the host", placeholder: "kernel 6.12.9", hint: "For the driver and for people; may be empty.",
  check: checks.work, isShown: (values) => !values.no_work,
};
export const NO_WORK = { id: "no_work", type: "check", label: "No step on the host itself, only work on its VMs" };
export const DURATION = {
  id: "duration", label: "Announced length of the interruption", placeholder: "9s", hint: "Such as 45s; the usual length if empty.",
  check: checks.span("1s", "18h"),
};
const DURATION_OF_MOVE = { ...DURATION, placeholder: "5s" };

/** Work on a host that the server can simulate. */
const workAction = (name, kind, label, title, past, fields = [WORK, NO_WORK, DURATION]) => ({
  label, title, past, cli: `host ${name}`, applies: isFree, fields: [...fields, REQUIRE_NOTICE],
  effects: (host, { require_notice, ...values }) => hostWorkEffects(kind, host, given(values)),
  request: (host, { require_notice, ...values }) => (
    command(kind === "network" ? "update_network" : `${kind}_hosts`, { hosts: [host.name], ...given(values) }, { require_notice })
  ),
});

const MOVES = { live: "live: they keep running", redeploy: "redeploy: they restart on other hosts", stop: "stop: they are switched off" };
const MOVE_EVENTS = { live: "Freeze", redeploy: "Redeploy", stop: "Reboot" };
const STEPS = { "": "none, or an update if work is described", update: "update", reboot: "reboot" };

const describe = ({ name }) => ({ name, word: name, members: { host: name } });

export const HOST_ACTIONS = commandActions("host", describe, {
  complete_host: {
    label: "Done", applies: isManual, cli: "host done",
    title: "Report that the work on {} is done",
    past: "The work on {} is done",
    effects: (host) => [
      `The work was: ${host.step_work || "not described"}; the host is ready for ${duration(model.now() - parseTime(host.step_since))}.`,
      host.machines.length ? `Its VMs return at once: ${namesOf(host)}.` : "No VM has to return.",
      "Their events end. A rollout goes on to its next hosts.",
    ],
  },
  fail_step: {
    label: "Failed…", button: "Report the failure", isDangerous: true, applies: isManual, cli: "host done", command: "complete_host",
    title: "Report that the work on {} failed",
    past: "The failure of the work on {} is recorded",
    fields: [{ id: "failed", label: "The reason", placeholder: "does not boot the new kernel", isNeeded: true, check: checks.work }],
    // Without a reason, the command would say that the work is done.
    members: ({ failed }) => ({ failed: failed || "REASON" }),
    effects: (host) => [
      `The VMs of ${host.name} return, if they can: ${namesOf(host)}.`,
      "The host then needs attention: it gets no VMs and no work until it is cleared. A rollout counts a failure, and pauses by its terms.",
    ],
  },
  clear_host: {
    label: "Clear", applies: (host) => host.attention, cli: "host clear",
    title: "Let {} have VMs and work again",
    past: "{} no longer needs attention",
    effects: (host) => [
      `It needed attention: ${host.attention}.`, "You say that the host was examined: VMs can be placed on it, and rollouts can include it.",
    ],
  },
  retry_host: {
    label: "Retry", applies: isDrivers, cli: "host retry",
    title: (host) => (isFenceAwaited(host) ? `Fence ${host.name} again` : `Repeat the step on ${host.name}`),
    past: "The driver tries {} again",
    effects: (host) => [
      isFenceAwaited(host)
        ? "The driver gets the order to fence the host again: to make sure that its VMs can no longer write to their disks."
        : "The driver gets the step on the host again, also if its result is unknown."
    ],
  },
  give_up_host: {
    label: "Give up", isDangerous: true, applies: isDrivers, cli: "host give-up",
    title: (host) => `Give up the ${isFenceAwaited(host) ? "fence of" : "step on"} ${host.name}`,
    past: "The step on {} counts as failed",
    effects: (host) => (isFenceAwaited(host)
      ? ["The order to fence the host counts as failed.", "Its VMs start elsewhere only once a person confirms that they cannot write to their disks."]
      : ["The step counts as failed. The VMs of the host return, and it needs attention."]),
  },
  update_hosts: workAction("update", "update", "Update", "Update host {}", "The update of {} is planned"),
  update_network: workAction(
    "update --network", "network", "Update network", "Update the network of host {}", "The network update of {} is planned", [DURATION],
  ),
  migrate_hosts: workAction(
    "migrate", "migrate", "Migrate", "Move all VMs live away from host {}", "The live migration of {} is planned",
    [WORK, NO_WORK, DURATION_OF_MOVE],
  ),
  reboot_hosts: workAction("reboot", "reboot", "Reboot", "Restart host {}", "The restart of {} is planned"),
  enter_maintenance: {
    label: "Enter maintenance", cli: "host maintenance enter",
    applies: (host) => host.health !== "failed" && !host.attention && (host.maintenance || !host.work),
    title: "Empty host {} and keep it closed",
    past: "{} enters maintenance mode",
    fields: ({ maintenance }) => [
      { id: "move", type: "choice", label: "VMs leave", options: MOVES, value: maintenance?.move ?? "live" },
      { ...NO_WORK, isShown: () => maintenance?.step, label: "No step on the empty host, although one was asked for" },
      { id: "kind", type: "choice", label: "Step on the empty host", options: STEPS, isShown: WORK.isShown },
      { ...WORK, label: "Work on the empty host", placeholder: "new power supply" },
      DURATION_OF_MOVE, REQUIRE_NOTICE,
    ],
    effects: async (host, { move, kind, work, no_work, duration: pause }) => {
      const event = MOVE_EVENTS[move];
      return [
        "No VM is placed on the host from now on.",
        ...(await hostEffects(host, hostImpact(move, pause), { event, millis: NOTICES[event] })),
        !no_work && (work || kind) && `Once it is empty, it is ${kind === "reboot" ? "restarted" : "updated"}${work ? `: ${work}` : ""}.`,
        "It stays closed until it leaves maintenance mode.",
      ];
    },
  },
  exit_maintenance: {
    label: "Exit maintenance", applies: (host) => host.maintenance, cli: "host maintenance exit",
    title: "Open host {} to VMs again",
    past: "{} is open again",
    fields: (host) => [
      {
        id: "return", type: "check", label: "Bring the VMs that left back", value: host.maintenance.left.length > 0,
        title: "In the way in which they left; stopped VMs are started",
      },
      REQUIRE_NOTICE,
    ],
    effects: ({ maintenance: { move, left, text } }, values) => {
      const isStop = move === "stop";
      const back = isStop
        ? "started again, without an event"
        : `${hostImpact(`back_${move}`)}; each tenant gets a ${MOVE_EVENTS[move]} event`;
      const leftText = values.return ? `return: ${back}` : isStop ? "stay switched off" : "stay where they are";
      return [
        `Now: ${text}.`,
        "VMs can be placed on the host again. Work of the maintenance mode that has not started is withdrawn.",
        left.length ? `${list(left, 5)} ${leftText}.` : "No VM has left, so none returns.",
      ];
    },
  },
  recover_host: {
    label: "Recover", button: "Mark as healthy", applies: (host) => host.health !== "healthy", cli: "host recover",
    title: "Mark host {} as healthy again",
    past: "{} is healthy",
    effects: (host) => [
      host.health === "degraded"
        ? "Announced moves away from it that have not started are withdrawn."
        : "VMs that were restarted elsewhere stay there; those that still wait stay on the host.",
      "VMs can be placed on it, and rollouts can include it.",
    ],
  },
  degrade_host: {
    label: "Mark as degraded", applies: (host) => host.health === "healthy", cli: "host degrade",
    title: "Host {} is going to fail: move its VMs away",
    past: "{} is degraded",
    fields: [
      { id: "fails_in", label: "It is expected to fail in", value: "7d", isNeeded: true, check: checks.span("1s", "365d") }, REQUIRE_NOTICE,
    ],
    effects: (host, { fails_in }) => hostEffects(host, hostImpact("redeploy"), {
      event: "Redeploy", isSeparate: true, millis: Math.max(NOTICES.Redeploy, parseSpan(fails_in)),
    }),
  },
  fail_host: {
    label: "Mark as failed", isDangerous: true, applies: (host) => host.health !== "failed", cli: "host fail",
    title: "Host {} has failed: start its VMs elsewhere",
    past: "{} has failed",
    fields: [{
      id: "fenced", type: "check", label: "It is fenced: its VMs can no longer write to their disks",
      title: "For example, because its power is off. If this is not true, a VM may run twice on one disk",
    }],
    effects: async (host, { fenced }) => {
      const [event, lost] = (await settings()).failure === "redeploy" ? ["Redeploy", MOVED] : ["Reboot", RESTARTED];
      const realText = fenced
        ? "They start elsewhere at once. If the host still runs, VMs run twice on one disk and damage it."
        : "The driver fences the host first: it switches off a host that may still work. Only then do its VMs start elsewhere.";
      return [
        ...(await hostEffects(host, `started again, on another host if there is one: ${lost}`, { event })),
        model.server?.driver === "program" && realText,
        "Planned work on the host is withdrawn, and it gets no VMs until it is healthy again.",
      ];
    },
  },
  fail_fenced: {
    label: "Confirm the fence", button: "It is fenced", isDangerous: true, cli: "host fail", command: "fail_host",
    applies: (host) => host.health === "failed" && isFenceAwaited(host),
    title: "Confirm that host {} is fenced",
    past: "{} is fenced",
    members: () => ({ fenced: true }),
    effects: (host) => [
      "You say that the VMs of the host can no longer write to their disks, for example because its power is off.",
      `They start elsewhere at once: ${namesOf(host)}.`,
      "If this is not true, a VM may run twice on one disk and damage it.",
    ],
  },
});
