// Actions on hosts.

import { hostEffects, hostImpact, hostWorkEffects, settings, NOTICES } from "./action_effects.js";
import { REQUIRE_NOTICE, command, requireNotice } from "./commands.js";
import { checks, spanMillis } from "./form.js";
import { duration, list, parseTime } from "./format.js";
import { model } from "./model.js";

const isFree = (host) => host.health !== "failed" && !host.attention && !host.maintenance && !host.work;
const hasStep = (host) => Boolean(host.step_since);
const hostAction = (action) => ({ kind: "host", fields: () => [], ...action });
const given = (members) => Object.fromEntries(
  Object.entries(members).filter(([, value]) => value !== undefined && value !== "" && value !== false)
);
const option = (name, value) => (
  value === undefined || value === "" || value === false ? [] : value === true ? [name] : [name, String(value)]
);

const WORK = {
  id: "work", type: "text", label: "Work on the host", placeholder: "kernel 6.12.9", hint: "For the driver and for people; may be empty.",
  check: checks.work, isShown: (values) => !values.no_work,
};
const NO_WORK = { id: "no_work", type: "check", label: "No step on the host itself, only work on its VMs" };
const DURATION = {
  id: "duration", type: "text", label: "Announced length of the interruption", placeholder: "9s",
  hint: "Such as 45s; the usual length if empty.", check: checks.span("1s", "18h"),
};

/** Work on a host that the server can simulate. */
function workAction(name, kind, label, { sentence, cli, past }) {
  const fields = kind === "network" ? [DURATION, REQUIRE_NOTICE] : [WORK, NO_WORK, DURATION, REQUIRE_NOTICE];
  const body = ({ work, no_work, duration }) => given({ work, no_work, duration });
  return hostAction({
    label, button: label, applies: isFree,
    title: (host) => `${sentence} ${host.name}`,
    past: (host) => `${past} of ${host.name} is planned`,
    fields: () => fields.map((field) => (field === DURATION && kind === "migrate" ? { ...field, placeholder: "5s" } : field)),
    effects: (host, values) => hostWorkEffects(kind, host, body(values)),
    words: (host, values) => [
      "host", ...cli, host.name, ...option("--work", values.work), ...option("--no-work", values.no_work),
      ...option("--duration", values.duration), ...requireNotice(values),
    ],
    request: (host, values) => command(name, { hosts: [host.name], ...body(values) }, values),
  });
}

const MOVES = [
  { value: "live", label: "live: they keep running" },
  { value: "redeploy", label: "redeploy: they restart on other hosts" },
  { value: "stop", label: "stop: they are switched off" },
];
const MOVE_EVENTS = { live: "Freeze", redeploy: "Redeploy", stop: "Reboot" };

const hasSteps = ({ work, kind, no_work }) => !no_work && (work || kind);

export const HOST_ACTIONS = {
  complete_host: hostAction({
    label: "Done", button: "Done", applies: (host) => hasStep(host) && host.manual,
    title: (host) => `Report that the work on ${host.name} is done`,
    past: (host) => `The work on ${host.name} is done`,
    effects: (host) => [
      `The work was: ${host.step_work || "not described"}; the host is ready for ${duration(model.now() - parseTime(host.step_since))}.`,
      host.machines.length ? `Its VMs return at once: ${list(host.machines, 5)}.` : "No VM has to return.",
      "Their events end. A rollout goes on to its next hosts.",
    ],
    words: (host) => ["host", "done", host.name],
    request: (host) => command("complete_host", { host: host.name }),
  }),
  fail_step: hostAction({
    label: "Failed…", button: "Report the failure", isDangerous: true, applies: (host) => hasStep(host) && host.manual,
    title: (host) => `Report that the work on ${host.name} failed`,
    past: (host) => `The failure of the work on ${host.name} is recorded`,
    fields: () => [
      {
        id: "failed", type: "text", label: "The reason", placeholder: "does not boot the new kernel",
        check: (value) => checks.required(value) || checks.work(value),
      }
    ],
    effects: (host) => [
      `The VMs of ${host.name} return, if they can: ${list(host.machines, 5) || "there are none"}.`,
      "The host then needs attention: it gets no VMs and no work until it is cleared. A rollout counts a failure, and pauses by its terms.",
    ],
    words: (host, { failed }) => ["host", "done", host.name, "--failed", failed || "REASON"],
    request: (host, { failed }) => command("complete_host", { host: host.name, failed: failed || "REASON" }),
  }),
  clear_host: hostAction({
    label: "Clear", button: "Clear", applies: (host) => Boolean(host.attention),
    title: (host) => `Let ${host.name} have VMs and work again`,
    past: (host) => `${host.name} no longer needs attention`,
    effects: (host) => [
      `It needed attention: ${host.attention}.`, "You say that the host was examined: VMs can be placed on it, and rollouts can include it.",
    ],
    words: (host) => ["host", "clear", host.name],
    request: (host) => command("clear_host", { host: host.name }),
  }),
  retry_host: hostAction({
    label: "Retry", button: "Retry", applies: (host) => (hasStep(host) && !host.manual) || host.fence === "awaited",
    title: (host) => (host.fence === "awaited" ? `Fence ${host.name} again` : `Repeat the step on ${host.name}`),
    past: (host) => `The driver tries ${host.name} again`,
    effects: (host) => [
      host.fence === "awaited"
        ? `The driver gets the order to fence ${host.name} again: to make sure that its VMs can no longer write to their disks.`
        : `The driver gets the step on ${host.name} again, also if its result is unknown.`
    ],
    words: (host) => ["host", "retry", host.name],
    request: (host) => command("retry_host", { host: host.name }),
  }),
  give_up_host: hostAction({
    label: "Give up", button: "Give up", isDangerous: true, applies: (host) => (hasStep(host) && !host.manual) || host.fence === "awaited",
    title: (host) => (host.fence === "awaited" ? `Give up the fence of ${host.name}` : `Give up the step on ${host.name}`),
    past: (host) => `The step on ${host.name} counts as failed`,
    effects: (host) => host.fence === "awaited"
      ? ["The order to fence the host counts as failed.", "Its VMs start elsewhere only once a person confirms that they cannot write to their disks."]
      : [`The step counts as failed. The VMs of ${host.name} return, and the host needs attention.`],
    words: (host) => ["host", "give-up", host.name],
    request: (host) => command("give_up_host", { host: host.name }),
  }),
  update_hosts: workAction("update_hosts", "update", "Update", { sentence: "Update host", cli: ["update"], past: "The update" }),
  update_network: workAction(
    "update_network", "network", "Update network",
    { sentence: "Update the network of host", cli: ["update", "--network"], past: "The network update" },
  ),
  migrate_hosts: workAction(
    "migrate_hosts", "migrate", "Migrate", { sentence: "Move all VMs live away from host", cli: ["migrate"], past: "The live migration" },
  ),
  reboot_hosts: workAction("reboot_hosts", "reboot", "Reboot", { sentence: "Restart host", cli: ["reboot"], past: "The restart" }),
  enter_maintenance: hostAction({
    label: "Enter maintenance", button: "Enter maintenance",
    applies: (host) => host.health !== "failed" && !host.attention && (Boolean(host.maintenance) || !host.work),
    title: (host) => `Empty host ${host.name} and keep it closed`,
    past: (host) => `${host.name} enters maintenance mode`,
    fields: (host) => [
      { id: "move", type: "choice", label: "VMs leave", options: MOVES, value: host.maintenance?.move ?? "live" },
      { ...NO_WORK, isShown: () => Boolean(host.maintenance?.step), label: "No step on the empty host, although one was asked for" },
      {
        id: "kind", type: "choice", label: "Step on the empty host",
        options: [
          { value: "", label: "none, or an update if work is described" }, { value: "update", label: "update" },
          { value: "reboot", label: "reboot" },
        ],
        value: "", isShown: (values) => !values.no_work,
      },
      { ...WORK, label: "Work on the empty host", placeholder: "new power supply" },
      { ...DURATION, placeholder: "5s" },
      REQUIRE_NOTICE,
    ],
    effects: async (host, values) => [
      "No VM is placed on the host from now on.",
      ...(
        await hostEffects(
          host, hostImpact(values.move, values.duration), { event: MOVE_EVENTS[values.move], millis: NOTICES[MOVE_EVENTS[values.move]] },
        )
      ),
      hasSteps(values)
        ? `Once it is empty, it is ${values.kind === "reboot" ? "restarted" : "updated"}${values.work ? `: ${values.work}` : ""}.`
        : null,
      "It stays closed until it leaves maintenance mode.",
    ],
    words: (host, { move, kind, work, no_work, duration, ...values }) => [
      "host", "maintenance", "enter", host.name, ...option("--move", move === "live" ? "" : move), ...option("--kind", kind), ...option("--work", work),
      ...option("--no-work", no_work), ...option("--duration", duration), ...requireNotice(values),
    ],
    request: (host, { move, kind, work, no_work, duration, ...values }) =>
      command(
        "enter_maintenance", { host: host.name, ...given({ move: move === "live" ? "" : move, kind, work, no_work, duration }) }, values,
      ),
  }),
  exit_maintenance: hostAction({
    label: "Exit maintenance", button: "Exit maintenance", applies: (host) => Boolean(host.maintenance),
    title: (host) => `Open host ${host.name} to VMs again`,
    past: (host) => `${host.name} is open again`,
    fields: (host) => [
      {
        id: "return", type: "check", label: "Bring the VMs that left back", value: host.maintenance.left.length > 0,
        title: "In the way in which they left; stopped VMs are started",
      },
      REQUIRE_NOTICE,
    ],
    effects: (host, values) => {
      const { move, left, text } = host.maintenance;
      const back = move === "stop"
        ? "started again, without an event"
        : `${hostImpact(`back_${move}`)}; each tenant gets a ${MOVE_EVENTS[move]} event`;
      const stay = move === "stop" ? "stay switched off" : "stay where they are";
      return [
        `Now: ${text}.`,
        "VMs can be placed on the host again. Work of the maintenance mode that has not started is withdrawn.",
        !left.length && "No VM has left, so none returns.",
        left.length > 0 && (values.return ? `${list(left, 5)} return: ${back}.` : `${list(left, 5)} ${stay}.`),
      ];
    },
    words: (host, values) => ["host", "maintenance", "exit", host.name, ...option("--return", values.return), ...requireNotice(values)],
    request: (host, values) => command("exit_maintenance", { host: host.name, ...(values.return ? { return: true } : {}) }, values),
  }),
  recover_host: hostAction({
    label: "Recover", button: "Mark as healthy", applies: (host) => host.health !== "healthy",
    title: (host) => `Mark host ${host.name} as healthy again`,
    past: (host) => `${host.name} is healthy`,
    effects: (host) => [
      host.health === "degraded"
        ? "Announced moves away from it that have not started are withdrawn."
        : "VMs that were restarted elsewhere stay there; those that still wait stay on the host.",
      "VMs can be placed on it, and rollouts can include it.",
    ],
    words: (host) => ["host", "recover", host.name],
    request: (host) => command("recover_host", { host: host.name }),
  }),
  degrade_host: hostAction({
    label: "Mark as degraded", button: "Mark as degraded", applies: (host) => host.health === "healthy",
    title: (host) => `Host ${host.name} is going to fail: move its VMs away`,
    past: (host) => `${host.name} is degraded`,
    fields: () => [
      {
        id: "fails_in", type: "text", label: "It is expected to fail in", value: "7d",
        check: (value) => checks.required(value) || checks.span("1s", "365d")(value),
      },
      REQUIRE_NOTICE,
    ],
    effects: (host, values) => hostEffects(host, hostImpact("redeploy"), {
      event: "Redeploy", isSeparate: true, millis: Math.max(NOTICES.Redeploy, spanMillis(values.fails_in) ?? 0),
    }),
    words: (host, values) => [
      "host", "degrade", host.name, ...option("--fails-in", values.fails_in === "7d" ? "" : values.fails_in), ...requireNotice(values),
    ],
    request: (host, values) => command(
      "degrade_host", { host: host.name, ...given({ fails_in: values.fails_in === "7d" ? "" : values.fails_in }) }, values,
    ),
  }),
  fail_host: hostAction({
    label: "Mark as failed", button: "Mark as failed", isDangerous: true, applies: (host) => host.health !== "failed",
    title: (host) => `Host ${host.name} has failed: start its VMs elsewhere`,
    past: (host) => `${host.name} has failed`,
    fields: () => [{
      id: "fenced", type: "check", label: "It is fenced: its VMs can no longer write to their disks",
      title: "For example, because its power is off. If this is not true, a VM may run twice on one disk",
    }],
    effects: async (host, values) => {
      const { failure } = await settings();
      const isReal = model.server?.driver === "program";
      return [
        ...(
          await hostEffects(
            host,
            `started again, on another host if there is one: ${failure === "redeploy" ? "memory and the ephemeral disk are lost" : "memory is lost, disks are kept"}`,
            { event: failure === "redeploy" ? "Redeploy" : "Reboot" },
          )
        ),
        isReal && !values.fenced
          && "The driver fences the host first: it switches off a host that may still work. Only then do its VMs start elsewhere.",
        isReal && values.fenced && "They start elsewhere at once. If the host still runs, VMs run twice on one disk and damage it.",
        "Planned work on the host is withdrawn, and it gets no VMs until it is healthy again.",
      ];
    },
    words: (host, values) => ["host", "fail", host.name, ...option("--fenced", values.fenced)],
    request: (host, values) => command("fail_host", { host: host.name, ...(values.fenced ? { fenced: true } : {}) }),
  }),
  fail_fenced: hostAction({
    label: "Confirm the fence", button: "It is fenced", isDangerous: true, applies: (host) =>
      host.health === "failed" && host.fence === "awaited",
    title: (host) => `Confirm that host ${host.name} is fenced`,
    past: (host) => `${host.name} is fenced`,
    effects: (host) => [
      `You say that the VMs of ${host.name} can no longer write to their disks, for example because its power is off.`,
      `They start elsewhere at once: ${list(host.machines, 5) || "there are none"}.`,
      "If this is not true, a VM may run twice on one disk and damage it.",
    ],
    words: (host) => ["host", "fail", host.name, "--fenced"],
    request: (host) => command("fail_host", { host: host.name, fenced: true }),
  }),
};
