// Rollouts: their progress host by host, and new ones.

import { actionBar } from "./actions.js";
import { h, mark, replace } from "./dom.js";
import { openWhenLive } from "./form.js";
import { count, fullTime, list, parseTime, relative } from "./format.js";
import { model } from "./model.js";
import { openRolloutForm } from "./rollout_form.js";
import { ROLLOUT_STATES, termsText } from "./rollout_terms.js";

const MARKS_MAX = 400;

const PARTS = [
  { id: "done", mark: "approved", name: "done", hosts: (rollout) => rollout.done },
  { id: "failed", mark: "failed", name: "failed", hosts: (rollout) => rollout.failed },
  { id: "skipped", mark: "stopped", name: "skipped", hosts: (rollout) => rollout.skipped },
  { id: "current", mark: currentMark, name: "announced or in work", hosts: (rollout) => rollout.current_hosts },
  { id: "waiting", mark: "idle", name: "waiting", hosts: (rollout) => rollout.waiting },
];

export function open(main, { parameters }) {
  if (parameters.get("new")) return openWhenLive(main, () => model.canOperate, () => openRolloutForm(main));
  const create = h("span", {});
  const going = h("section", { id: "going" });
  const ended = h("section", { id: "ended-rollouts" });
  replace(main, h("div", { class: "title" }, h("h1", {}, "Rollouts"), create), going, ended);

  const draw = () => {
    const all = [...model.rollouts.values()].sort((one, other) => other.id - one.id);
    const running = all.filter((rollout) => rollout.ended_at === null);
    const past = all.filter((rollout) => rollout.ended_at !== null);
    replace(create, model.canOperate && h("a", { class: "button primary", href: "#/rollouts?new=1", id: "new-rollout" }, "New rollout"));
    replace(going, running.length ? [h("h2", { class: "sr" }, "Running"), running.map(rolloutView)] : empty(past.length));
    replace(ended, past.length > 0 && [h("h2", {}, "Ended"), past.map(rolloutView)]);
    tick();
  };
  const tick = () => {
    for (const time of main.querySelectorAll("[data-time]")) time.textContent = ago(Number(time.dataset.time));
  };
  return {
    update(topics) {
      if (["all", "rollouts", "events", "connection"].some((topic) => topics.has(topic))) draw();
    },
    tick,
  };
}

const ago = (millis) => (model.now() - millis < 1000 ? "just now" : relative(millis, model.now()));

/** The mark of hosts that are announced or in work: have their events started? */
function currentMark(rollout) {
  const events = [...model.events.values()].filter((event) => event.work === rollout.current);
  return events.length > 0 && events.every((event) => event.status === "Scheduled") ? "scheduled" : "started";
}

const empty = (hasPast) => [
  h(
    "p", { class: "lead" },
    "No rollout is going. A rollout works on many hosts, group by group, so that no tenant loses too much at once: it announces a group, waits for approvals or for the end of the notice, works, and goes on.",
  ),
  !hasPast && h("p", { class: "quiet" }, `${count(model.hosts.size, "host")} in this cluster.`),
];

function rolloutView(rollout) {
  const state = ROLLOUT_STATES[rollout.state] ?? { mark: "idle", name: rollout.state };
  const total = PARTS.reduce((sum, part) => sum + part.hosts(rollout).length, 0);
  const moment = (text) => h("time", { "data-time": parseTime(text), title: fullTime(parseTime(text)) });
  return h("article", {
    class: `rollout ${rollout.ended_at === null ? "" : "ended"}`, id: `rollout-${rollout.id}`, "aria-label": `Rollout ${rollout.id}`,
  },
    h("div", { class: "title" },
      h(
        "h3", {}, mark({ id: state.mark, name: state.name }),
        ` Rollout ${rollout.id}: ${rollout.work} of ${count(total, "host")}, ${state.name}`,
      ),
      actionBar("rollout", rollout)),
    rollout.ended_at === null && h("p", {}, `${rollout.text.charAt(0).toUpperCase()}${rollout.text.slice(1)}.`),
    progressView(rollout, total),
    h(
      "p", { class: "quiet" }, `Terms: ${termsText(rollout.terms)}. Planned `, moment(rollout.planned_at),
      rollout.ended_at !== null && [", ended ", moment(rollout.ended_at)], ".",
    ));
}

/** A mark for each host, and counts. */
function progressView(rollout, total) {
  const parts = PARTS.map(
    (part) => ({ ...part, mark: part.mark instanceof Function ? part.mark(rollout) : part.mark, names: part.hosts(rollout) })
  ).filter(({ names }) => names.length > 0);
  const summary = parts.map(({ names, name }) => `${names.length} ${name}`).join(", ");
  const one = (part) => (name) => h(
    "span", { class: `host-mark ${part.id}`, title: `${name}: ${part.name}` }, mark({ id: part.mark, name: "" }),
  );
  return [
    total <= MARKS_MAX && h(
      "div", { class: "host-marks", role: "img", "aria-label": `${rollout.done.length} of ${count(total, "host")} done: ${summary}` },
      parts.map((part) => part.names.map(one(part))),
    ),
    h("p", {}, h("b", { class: "number" }, `${rollout.done.length} of ${total} done`), " · ",
      parts.map(
        ({ id, names, name }, index) => [
          index > 0 && " · ",
          h("span", { class: id === "failed" ? "error" : "", title: list(names, 50) }, `${names.length} ${name}: ${list(names, 4)}`),
        ]
      )),
  ];
}
