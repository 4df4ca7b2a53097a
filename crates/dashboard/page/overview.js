// What needs attention, what comes next, what has ended.

import { actionBar, commandLine, openAction } from "./actions.js";
import { h, mark, replace } from "./dom.js";
import { count, countdown, duration, fullTime, list, parseTime, relative } from "./format.js";
import { STATES, model } from "./model.js";
import { miniTimeline } from "./timeline.js";

const ENDED_MAX = 8;
const FAILED_FOR = 24 * 3600_000;
const ROWS_MAX = 50;

export function open(main) {
  const attention = h("section", { id: "attention", "aria-live": "polite" });
  const next = h("section", { id: "next" });
  const ended = h("section", { id: "ended" });
  const timeline = miniTimeline();
  next.append(h("h2", {}, "Next"), timeline.element);
  replace(main, h("h1", { class: "sr" }, "Overview"), attention, next, ended);

  const draw = () => {
    if (!model.server) return;
    const items = needsAttention();
    const isIdle = items.length === 0 && model.events.size === 0;
    replace(attention, ...(isIdle ? idle() : attentionList(items)));
    next.hidden = isIdle && model.histories.byId.size === 0;
    if (!next.hidden) timeline.update();
    replace(ended, ...recentlyEnded());
  };

  const tick = () => {
    for (const time of main.querySelectorAll("[data-until]")) {
      const left = Number(time.dataset.until) - model.now();
      time.textContent = left > 0 ? countdown(left) : "due";
    }
    for (const time of main.querySelectorAll("[data-time]")) time.textContent = relative(Number(time.dataset.time), model.now());
    timeline.tick();
  };

  return {
    update(topics) {
      if (topics.size === 1 && topics.has("tenants")) return;
      draw();
      tick();
    },
    tick,
    close: () => timeline.close(),
  };
}

/** Everything that waits for a person, the most urgent first. */
export function needsAttention() {
  const items = [];
  const add = (order, state, key, title, text, controls, until = null, href = null) => items.push({ order, state, key, title, text, controls, until, href });
  const cluster = model.clusters.find((one) => one.name === model.cluster);
  if (cluster?.failure) add(0, STATES.failed, "cluster", `Cluster ${cluster.name} has failed`, cluster.failure, null);
  for (const history of model.histories.byId.values()) {
    if (history.outcome === "Failed" && model.now() - history.ended < FAILED_FOR) {
      add(1, STATES.failed, history.id, `${history.kind} of ${list(history.resources)} failed`, history.reason || "the driver has given no reason", null, null, `#/event/${history.id}`);
    }
  }
  for (const host of model.hosts.values()) {
    if (host.attention) add(1, STATES.failed, host.name, `Host ${host.name} needs attention`, host.attention, actionBar("host", host, ["retry_host", "give_up_host", "clear_host"]));
    else if (host.manual && host.step_since) {
      add(2, STATES.started, host.name, `Host ${host.name} is ready for work`, `${host.step_work ?? "work on the host"}, ${relative(parseTime(host.step_since), model.now())}`, actionBar("host", host, ["complete_host", "fail_step"]));
    } else if (host.health !== "healthy") add(4, STATES.failed, host.name, `Host ${host.name} is ${host.health}`, host.fence === "awaited" ? "it is not known to be fenced: its machines cannot start elsewhere" : host.work ?? "", actionBar("host", host, ["fail_fenced", "recover_host"]));
  }
  for (const event of model.events.values()) {
    const state = model.stateOf(event);
    if (state === STATES.approved || state === STATES.started) continue;
    const title = `${event.kind} of ${list(event.resources)}`;
    add(state === STATES.soon ? 3 : 5, state, event.id, title, `${event.tenant} has not approved · ${event.cause}`, actionBar("event", event, ["approve"]), parseTime(event.not_before), `#/event/${event.id}`);
  }
  for (const rollout of model.rollouts.values()) {
    if (["paused-by-failures", "waits-for-confirmation", "waits-for-health"].includes(rollout.state)) {
      add(2, STATES.failed, `rollout-${rollout.id}`, `Rollout ${rollout.id} waits for you`, rollout.text, actionBar("rollout", rollout, ["resume_rollout"]), null, "#/rollouts");
    }
  }
  if (model.brake === "on") add(6, STATES.soon, "brake", "The brake is on", "nothing starts in this cluster until it is released", actionBar("cluster", cluster, ["brake_off"]));
  return items.sort((one, other) => one.order - other.order || (one.until ?? 0) - (other.until ?? 0) || (one.key < other.key ? -1 : 1));
}

function attentionList(items) {
  if (items.length === 0) {
    const started = [...model.events.values()].filter((event) => event.status === "Started").length;
    return [h("h2", {}, "Nothing needs your attention"), h("p", { class: "quiet" }, `${count(model.events.size, "event")}, of which ${started} started.`)];
  }
  const row = ({ state, key, title, text, controls, until, href }) => h("li", { id: `attention-${key}`, class: state.id },
    mark(state),
    h("span", { class: "what" }, href ? h("a", { href, id: `link-${key}` }, title) : h("b", {}, title)),
    h("span", { class: "why quiet" }, text),
    until !== null && h("time", { class: "number left", "data-until": until, title: `not before ${fullTime(until)}` }, countdown(until - model.now())),
    controls);
  const more = items.length > ROWS_MAX && h("p", { class: "quiet" }, `and ${count(items.length - ROWS_MAX, "more item")}; `, h("a", { href: "#/timeline" }, "see the timeline"));
  return [h("h2", {}, `Needs attention (${items.length})`), h("ul", { class: "rows" }, items.slice(0, ROWS_MAX).map(row)), more];
}

/** The first thing that a newcomer sees. */
function idle() {
  const machines = [...model.machines.values()];
  const running = machines.find((machine) => machine.power === "running" && !machine.spot) ?? machines[0];
  const spot = machines.find((machine) => machine.spot && machine.power === "running");
  const host = [...model.hosts.values()].find((one) => one.machines.length > 0 && one.health === "healthy" && !one.work);
  const intro = [
    h("h2", {}, "Nothing is planned"),
    h("p", { class: "lead" }, "Forewarn tells virtual machines what is about to happen to them, waits until they are ready, and then does it. An event is announced, the machines read it in their metadata, approve it or let the notice end, and it starts."),
  ];
  if (model.server.mode !== "dev" || !model.canOperate) return [...intro, h("p", { class: "quiet" }, `${count(machines.length, "VM")} on ${count(model.hosts.size, "host")}.`)];
  const name = (machine) => `${machine.tenant}/${machine.name}`;
  const tries = [
    running && { label: "Restart a VM", action: "restart", target: { machine: name(running) } },
    host && { label: "Update a host", action: "update_hosts", target: { host: host.name } },
    spot && { label: "Evict a spot VM", action: "evict", target: { machine: name(spot) } },
  ].filter(Boolean);
  const card = ({ label, action, target }) => h("li", {},
    h("button", { type: "button", class: "primary", id: `try-${action}`, "data-write": true, on: { click: () => openAction(action, target) } }, label),
    h("code", {}, commandLine(action, target)));
  return [...intro, h("p", {}, "Try one of these:"), h("ul", { class: "tries" }, tries.map(card))];
}

function recentlyEnded() {
  const ended = [...model.histories.byId.values()].filter((history) => history.ended !== null);
  ended.sort((one, other) => other.ended - one.ended);
  if (ended.length === 0) return [];
  const row = (history) => h("li", {},
    mark(STATES[{ Failed: "failed", Canceled: "cancelled" }[history.outcome] ?? "done"] ?? STATES.done),
    h("a", { href: `#/event/${history.id}`, class: "what" }, `${history.kind} of ${list(history.resources)}`),
    h("span", { class: "why quiet" }, endedText(history)),
    h("time", { class: "number left", "data-time": history.ended, title: fullTime(history.ended) }, relative(history.ended, model.now())));
  return [h("h2", {}, "Recently ended"), h("ul", { class: "rows" }, ended.slice(0, ENDED_MAX).map(row))];
}

function endedText(history) {
  const parts = [{ Canceled: "cancelled" }[history.outcome] ?? history.outcome.toLowerCase()];
  if (history.started !== null) parts.push(`took ${duration(history.ended - history.started)}`);
  if (history.started !== null && history.notBefore !== null && history.approvals.length) {
    const early = history.notBefore - history.started;
    if (early > 0) parts.push(`approved ${duration(early)} before its time`);
  } else if (history.startedBy) parts.push(history.startedBy);
  return parts.join(", ");
}
