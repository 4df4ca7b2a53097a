// The simulation of a rollout, and its drawing: the groups in their order, with times, without and with approvals.

import { send } from "./api.js";
import { h, headings, quiet, row, s, scrollable } from "./dom.js";
import { DAY, clockTime, count, duration, fullTime, list, parseTime } from "./format.js";
import { model } from "./model.js";

const BAR_WIDTH = 400;
const ROW_HEIGHT = 16;
const PART_MIN = 3;
const GROUPS_MAX = 100;

/** Asks the server to simulate a rollout. Nothing is changed. */
export const readPreview = (entry) => send("POST", "/v1/rollouts/preview", entry, { cluster: model.cluster });

/** The drawing of a simulation. Both courses have the same scale. */
export function previewView({ longest, shortest, manual, notes }) {
  const times = [longest, shortest].flatMap(({ steps }) => steps).flatMap(({ announced, ends }) => [announced, ends]).map(parseTime);
  const from = Math.min(model.now(), ...times);
  const to = Math.max(from + 1000, ...times);
  const hint = (text) => h("p", { class: "hint" }, text);
  return h("div", { class: "preview" },
    h("p", { class: "legend quiet" }, swatch("notice"), " notice ", swatch("work"),
      ` work. Times are UTC. Both drawings begin at ${clockTime(from)} and have the same scale, ${duration(to - from)}.`),
    courseView(longest, "If nobody approves", "each group starts when its notice ends", from, to),
    courseView(shortest, "If everybody approves at once", "each group starts when it is announced", from, to),
    manual && hint("Persons work on the hosts: a step ends when an operator reports it, not after the simulated time."),
    notes?.map(hint));
}

function swatch(part) {
  return s("svg", { class: "swatch", width: 24, height: 10, "aria-hidden": "true" }, bar(part, 0, 24, 10));
}

const bar = (part, x, width, height) => s("rect", { class: `preview-${part}`, x, y: 1, width, height: height - 2, rx: 1 });

function courseView({ steps, lasts, stuck }, title, text, from, to) {
  const timeText = (millis) => (to - from > DAY ? fullTime(millis).slice(5, 16) : clockTime(millis).slice(0, 8));
  const time = (millis) => h("td", { class: "number" }, h("time", { title: fullTime(millis) }, timeText(millis)));
  const stepRow = ({ hosts, tenants, announced, starts, ends }, index) => {
    const times = [announced, starts, ends].map(parseTime);
    return row(index + 1,
      h("td", { class: "hosts", title: list(hosts, 50) }, list(hosts)),
      h("td", { class: "bar" }, stepBar(...times, from, to)),
      times.map(time),
      h("td", { title: list(tenants.map(tenantText), 20) }, tenantsText(tenants)));
  };
  const head = headings(["Group", "Hosts", [h("span", { class: "sr" }, "Course")], "Announced", "Starts", "Ends", "Tenants"]);
  const more = steps.length - GROUPS_MAX;
  return h("figure", {},
    h("figcaption", {}, h("b", {}, `${title}: ${lasts}`), ` in ${count(steps.length, "group")}; ${text}.`),
    stuck && h("p", { class: "error" }, `It does not end: ${stuck}.`),
    scrollable(title, h("table", {}, head, h("tbody", {}, steps.slice(0, GROUPS_MAX).map(stepRow)))),
    more > 0 && quiet(`and ${count(more, "more group")}`));
}

const tenantText = ({ tenant, event, machines }) => `${tenant}: ${event ?? "no notice"}, ${list(machines)}`;

function tenantsText(tenants) {
  if (!tenants.length) return "none";
  const unnotified = tenants.filter(({ event }) => event === null).length;
  return `${list(tenants.map(({ tenant }) => tenant))}${unnotified ? `; ${unnotified} of them without notice` : ""}`;
}

function stepBar(announced, starts, ends, from, to) {
  const x = (millis) => ((millis - from) / (to - from)) * BAR_WIDTH;
  const width = (begin, end) => Math.max(end > begin ? PART_MIN : 0, x(end) - x(begin));
  const work = Math.max(PART_MIN, width(starts, ends));
  const left = Math.min(x(starts), BAR_WIDTH - work);
  return s("svg", { viewBox: `0 0 ${BAR_WIDTH} ${ROW_HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    s("line", { class: "preview-axis", x1: 0, x2: BAR_WIDTH, y1: ROW_HEIGHT / 2, y2: ROW_HEIGHT / 2 }),
    starts > announced && bar("notice", x(announced), left - x(announced), ROW_HEIGHT),
    bar("work", left, work, ROW_HEIGHT));
}
