// Rollouts: their progress host by host, and new ones.

import { actionBar } from "./actions.js";
import { h, mark, moment, quiet, replace, tickTimes } from "./dom.js";
import { openWhenLive } from "./form.js";
import { capital, count, list, parseTime } from "./format.js";
import { model } from "./model.js";
import { openRolloutForm } from "./rollout_form.js";
import { ROLLOUT_STATES, termsText } from "./rollout_terms.js";

const MARKS_MAX = 400;

/** The parts of a rollout's hosts: a member, a mark, and a name. */
const PARTS = [
  ["done", "approved", "done"], ["failed", "failed", "failed"], ["skipped", "stopped", "skipped"],
  ["current_hosts", "started", "announced or in work"], ["waiting", "idle", "waiting"],
];

export function open(main, { parameters }) {
  if (parameters.get("new")) return openWhenLive(main, () => model.canOperate, openRolloutForm);
  const create = h("span", {});
  const going = h("section", { id: "going" });
  const ended = h("section", { id: "ended-rollouts" });
  replace(main, h("div", { class: "title" }, h("h1", {}, "Rollouts"), create), going, ended);

  const draw = () => {
    const all = [...model.rollouts.values()].sort((one, other) => other.id - one.id);
    const running = all.filter((rollout) => rollout.ended_at === null);
    const past = all.filter((rollout) => rollout.ended_at !== null);
    replace(create, model.canOperate && h("a", { class: "button primary", href: "#/rollouts?new=1", id: "new-rollout" }, "New rollout"));
    replace(going, running.length ? [h("h2", { class: "sr" }, "Running"), running.map(rolloutView)] : empty());
    replace(ended, past.length > 0 && [h("h2", {}, "Ended"), past.map(rolloutView)]);
  };
  return {
    update: (topics) => ["all", "rollouts", "events", "connection"].some((topic) => topics.has(topic)) && draw(),
    tick: () => tickTimes(main, model.now()),
  };
}

/** The mark of hosts that are announced or in work: have their events started? */
function currentMark(rollout) {
  const events = [...model.events.values()].filter((event) => event.work === rollout.current);
  return events.length > 0 && events.every((event) => event.status === "Scheduled") ? "scheduled" : "started";
}

const empty = () => [h("p", { class: "lead" }, EMPTY), quiet(`${count(model.hosts.size, "host")} in this cluster.`)];

const EMPTY = "No rollout is under way. A rollout works on many hosts, group by group, so that no tenant loses too much at once: "
  + "it announces a group, waits for approvals or for the end of the notice, works, and goes on.";

function rolloutView(rollout) {
  const { id, ended_at: endedAt, planned_at: plannedAt, work, text, terms } = rollout;
  const state = ROLLOUT_STATES[rollout.state] ?? { mark: "idle", name: rollout.state };
  const total = count(PARTS.reduce((sum, [member]) => sum + rollout[member].length, 0), "host");
  const time = (at) => moment(parseTime(at), model.now());
  return h("article", { class: `rollout ${endedAt === null ? "" : "ended"}`, id: `rollout-${id}`, "aria-label": `Rollout ${id}` },
    h("div", { class: "title" },
      h("h3", {}, mark({ id: state.mark, name: state.name }), ` Rollout ${id}: ${work} of ${total}, ${state.name}`),
      actionBar("rollout", rollout)),
    endedAt === null && h("p", {}, `${capital(text)}.`),
    progressView(rollout, total),
    quiet(`Terms: ${termsText(terms)}. Planned `, time(plannedAt), endedAt !== null && [", ended ", time(endedAt)], "."));
}

/** A mark for each host, and counts. */
function progressView(rollout, total) {
  const done = `${rollout.done.length} of ${total} done`;
  const parts = PARTS.map(([member, id, name]) => ({
    id: member === "current_hosts" ? currentMark(rollout) : id, name, hosts: rollout[member],
  })).filter(({ hosts }) => hosts.length > 0);
  const summary = parts.map(({ hosts, name }) => `${hosts.length} ${name}`).join(", ");
  const hostMark = ({ id, name }) => (host) => h("span", { class: "host-mark", title: `${host}: ${name}` }, mark({ id, name: "" }));
  const marks = parts.flatMap((part) => part.hosts.map(hostMark(part)));
  const partText = ({ id, name, hosts }) => [
    " · ", h("span", { class: id === "failed" && "error", title: list(hosts, 50) }, `${hosts.length} ${name}: ${list(hosts, 4)}`),
  ];
  return [
    marks.length <= MARKS_MAX && h("div", { class: "host-marks", role: "img", "aria-label": `${done}: ${summary}` }, marks),
    h("p", {}, h("b", { class: "number" }, done), parts.map(partText)),
  ];
}
