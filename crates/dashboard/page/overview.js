// What needs attention, what comes next, what has ended.

import { actionBar, actionsOf, commandLine, openAction } from "./actions.js";
import { button, eventRow, h, mark, moment, quiet, replace, replaceRows, setText, tickTimes } from "./dom.js";
import { DAY, count, countdown, duration, eventTitle, fullTime, joined, parseTime, relative } from "./format.js";
import { STATES, model } from "./model.js";
import { paced } from "./pace.js";
import { stateOf } from "./timeline_data.js";
import { miniTimeline } from "./timeline_mini.js";

const ENDED_MAX = 8;
const ROWS_MAX = 25;
const UPDATE_PAUSE = 250;
const WAITING = ["paused-by-failures", "waits-for-confirmation", "waits-for-health"]; // states of a rollout

export function open(main) {
  const attention = attentionSection();
  const timeline = miniTimeline();
  const next = h("section", { id: "next" }, h("h2", {}, "Next"), timeline.element);
  const ended = endedSection();
  replace(main, h("h1", { class: "sr" }, "Overview"), attention.element, next, ended.element);

  const tick = () => {
    for (const time of main.querySelectorAll("[data-until]")) setText(time, timeLeft(Number(time.dataset.until)));
    tickTimes(main, model.now());
    timeline.tick();
  };
  const drawAttention = () => {
    const items = needsAttention();
    const isIdle = items.length === 0 && model.events.size === 0;
    attention.draw(items, isIdle);
    next.hidden = isIdle && model.histories.byId.size === 0;
  };
  const drawing = paced(UPDATE_PAUSE, [drawAttention, () => next.hidden || timeline.update(), ended.draw, tick]);

  return {
    update(topics) {
      if (!model.server || (topics.size === 1 && topics.has("tenants"))) return;
      if (["all", "connection", "clock"].some((topic) => topics.has(topic))) drawing.now();
      else drawing.request();
    },
    tick,
    close() {
      drawing.close();
      timeline.close();
    },
  };
}

const NO_REASON = "the driver has given no reason";

const timeLeft = (until) => (until > model.now() ? countdown(until - model.now()) : "due");

/** Everything that waits for a person, the most urgent first. Each has a key, and a `target` if something can be done. */
function needsAttention() {
  const items = [];
  const add = (order, state, key, title, text, more = {}) => items.push({ order, state, key, title, text, ...more });
  const cluster = model.clusters.find((one) => one.name === model.cluster);
  const { failed, started, approved, soon } = STATES;
  if (cluster?.failure) add(0, failed, "cluster", `Cluster ${cluster.name} has failed`, cluster.failure);
  for (const history of model.histories.byId.values()) {
    if (history.outcome !== "Failed" || model.now() - history.ended >= DAY) continue;
    add(1, failed, history.id, `${eventTitle(history)} failed`, history.reason || NO_REASON, { href: `#/event/${history.id}` });
  }
  for (const [machine, { at, what, reason, isEvent }] of model.histories.failedMachines) {
    // Work that started at once has no event.
    if (isEvent || model.now() - at >= DAY || !model.machines.has(machine)) continue;
    add(1, failed, machine, `Work on ${machine.slice(machine.indexOf("/") + 1)} failed`, `${what}: ${reason || NO_REASON}`,
      { href: `#/fleet?vm=${machine.split("/").map(encodeURIComponent).join("/")}` });
  }
  for (const host of model.hosts.values()) {
    const { name, health, step_since: since } = host;
    const addHost = (order, state, what, text, actions) =>
      add(order, state, `host-${name}`, `Host ${name} ${what}`, text, { target: ["host", host, actions] });
    if (host.attention) addHost(1, failed, "needs attention", host.attention, ["retry_host", "give_up_host", "clear_host"]);
    else if (host.manual && since) {
      const text = `${host.step_work ?? "work on the host"}, ${relative(parseTime(since), model.now())}`;
      addHost(2, started, "is ready for work", text, ["complete_host", "fail_step"]);
    } else if (health !== "healthy") {
      const isUnfenced = host.fence === "awaited";
      const text = isUnfenced ? "it is not known to be fenced: its machines cannot start elsewhere" : host.work ?? "";
      addHost(4, failed, `is ${health}`, text, ["fail_fenced", "recover_host"]);
    }
  }
  for (const event of model.events.values()) {
    const state = model.stateOf(event);
    if (state === approved || state === started) continue;
    add(state === soon ? 3 : 5, state, event.id, eventTitle(event), `${event.tenant} has not approved · ${event.cause}`, {
      target: ["event", event, ["approve"]], until: parseTime(event.not_before), href: `#/event/${event.id}`,
    });
  }
  for (const rollout of model.rollouts.values()) {
    if (!WAITING.includes(rollout.state)) continue;
    const target = ["rollout", rollout, ["resume_rollout"]];
    add(2, failed, `rollout-${rollout.id}`, `Rollout ${rollout.id} waits for you`, rollout.text, { target, href: "#/rollouts" });
  }
  if (model.brake === "on") {
    const target = ["cluster", cluster, ["brake_off"]];
    add(6, soon, "brake", "The brake is on", "nothing starts in this cluster until it is released", { target });
  }
  return items.sort((one, other) => one.order - other.order || (one.until ?? 0) - (other.until ?? 0) || (one.key < other.key ? -1 : 1));
}

const ATTENTION = {
  content: ({ state, title, text, until, href, target }) => [state.id, title, text, until, href, target && actionsOf(...target)],
  render: ({ state, key, title, text, target, until = null, href }) => h("li", { id: `attention-${key}`, class: state.id },
    mark(state),
    h("span", { class: "what" }, href ? h("a", { href, id: `link-${key}` }, title) : h("b", {}, title)),
    h("span", { class: "why quiet" }, text),
    until !== null && h("time", { class: "number left", "data-until": until, title: `not before ${fullTime(until)}` }, timeLeft(until)),
    target && actionBar(...target)),
};

/** The list of what needs attention: { element, draw(items, isIdle) }. */
function attentionSection() {
  const [title, rows, text] = [h("h2", {}), h("ul", { class: "rows" }), h("span", {})];
  const link = h("a", { href: "#/timeline" }, "see the timeline");
  const rest = quiet(text, link);
  const element = h("section", { id: "attention", "aria-live": "polite" });
  const draw = (items, isIdle) => {
    if (isIdle) return replace(element, idle());
    if (rows.parentNode !== element) replace(element, title, rows, rest);
    const more = items.length - ROWS_MAX;
    setText(title, items.length ? `Needs attention (${items.length})` : "Nothing needs your attention");
    replaceRows(rows, items.slice(0, ROWS_MAX), ATTENTION);
    setText(text, items.length === 0 ? startedText() : more > 0 ? `and ${count(more, "more item")}; ` : "");
    rows.hidden = items.length === 0;
    link.hidden = more <= 0;
    rest.hidden = !text.textContent;
  };
  return { element, draw };
}

function startedText() {
  const started = [...model.events.values()].filter((event) => event.status === "Started").length;
  return `${count(model.events.size, "event")}, of which ${started} started.`;
}

/** The first thing that a newcomer sees. */
function idle() {
  const machines = [...model.machines.values()];
  const intro = [
    h("h2", {}, "Nothing is planned"),
    h("p", { class: "lead" }, "Forewarn tells virtual machines what is about to happen to them, waits until they are ready, and then "
      + "does it. An event is announced, the machines read it in their metadata, approve it or let the notice end, and it starts."),
  ];
  if (model.server.mode !== "dev" || !model.canOperate) {
    return [intro, quiet(`${count(machines.length, "VM")} on ${count(model.hosts.size, "host")}.`)];
  }
  const isRunning = ({ power }) => power === "running";
  const running = machines.find((machine) => isRunning(machine) && !machine.spot) ?? machines[0];
  const spot = machines.find((machine) => isRunning(machine) && machine.spot);
  const host = [...model.hosts.values()].find((one) => one.machines.length > 0 && one.health === "healthy" && !one.work);
  const attempt = (label, action, target) => h("li", {},
    button(label, () => openAction(action, target), { class: "primary", id: `try-${action}`, "data-write": true }),
    h("code", {}, commandLine(action, target)));
  const name = (machine) => ({ machine: `${machine.tenant}/${machine.name}` });
  return [intro, h("p", {}, "Try one of these:"), h("ul", { class: "tries" },
    running && attempt("Restart a VM", "restart", name(running)),
    host && attempt("Update a host", "update_hosts", { host: host.name }),
    spot && attempt("Evict a spot VM", "evict", name(spot)))];
}

const ENDED = {
  content: ({ history }) => [stateOf(history).id, eventTitle(history), endedText(history), history.ended],
  render: ({ history }) =>
    eventRow(history, stateOf(history), endedText(history), moment(history.ended, model.now(), { class: "number left" })),
};

/** The list of what has ended: { element, draw() }. */
function endedSection() {
  const rows = h("ul", { class: "rows" });
  const element = h("section", { id: "ended" }, h("h2", {}, "Recently ended"), rows);
  const draw = () => {
    const all = [...model.histories.byId.values()].filter((history) => history.ended !== null);
    const newest = all.sort((one, other) => other.ended - one.ended).slice(0, ENDED_MAX);
    element.hidden = newest.length === 0;
    replaceRows(rows, newest.map((history) => ({ key: history.id, history })), ENDED);
  };
  return { element, draw };
}

function endedText(history) {
  const { started, notBefore, approvals } = history;
  const early = approvals.length && started !== null && notBefore !== null ? notBefore - started : null;
  return joined([
    stateOf(history).name,
    started !== null && `took ${duration(history.ended - started)}`,
    early === null ? history.startedBy : early > 0 && `approved ${duration(early)} before its time`,
  ]);
}
