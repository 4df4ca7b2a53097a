// The simulation of a rollout, and its drawing: the groups in their order, with times, without and with approvals.

import { send } from "./api.js";
import { h, s } from "./dom.js";
import { clockTime, count, duration, fullTime, list, parseTime } from "./format.js";
import { model } from "./model.js";

const BAR_WIDTH = 400;
const ROW_HEIGHT = 16;
const PART_MIN = 3;
const DAY_MILLIS = 86_400_000;
const GROUPS_MAX = 100;

/** Asks the server to simulate a rollout. Nothing is changed. */
export const readPreview = (entry) => send("POST", "/v1/rollouts/preview", entry, { cluster: model.cluster });

/** The drawing of a simulation. Both courses have the same scale. */
export function previewView(preview) {
  const courses = [
    { course: preview.longest, title: "If nobody approves", text: "each group starts when its notice ends" },
    { course: preview.shortest, title: "If everybody approves at once", text: "each group starts when it is announced" },
  ];
  const ends = courses.flatMap(({ course }) => course.steps.map((step) => parseTime(step.ends)));
  const begins = courses.flatMap(({ course }) => course.steps.map((step) => parseTime(step.announced)));
  const from = Math.min(model.now(), ...begins);
  const to = Math.max(from + 1000, ...ends);
  return h("div", { class: "preview" },
    h(
      "p", { class: "legend quiet" }, swatch("notice"), " notice ", swatch("work"),
      ` work. Times are UTC. Both drawings begin at ${clockTime(from)} and have the same scale, ${duration(to - from)}.`,
    ),
    courses.map(({ course, title, text }) => courseView(course, title, text, from, to)),
    preview.manual && h(
      "p", { class: "hint" }, "Persons work on the hosts: a step ends when an operator reports it, not after the simulated time.",
    ),
    (preview.notes ?? []).map((note) => h("p", { class: "hint" }, note)));
}

function swatch(part) {
  return s("svg", { class: "swatch", width: 24, height: 10, "aria-hidden": "true" }, bar(part, 0, 24, 10));
}

const bar = (part, x, width, height) => s("rect", { class: `preview-${part}`, x, y: 1, width, height: height - 2, rx: 1 });

function courseView(course, title, text, from, to) {
  const groups = course.steps.slice(0, GROUPS_MAX);
  const rows = groups.map((step, index) => {
    const [announced, starts, ends] = [step.announced, step.starts, step.ends].map(parseTime);
    const time = (millis) => h(
      "time", { title: fullTime(millis) }, to - from > DAY_MILLIS ? fullTime(millis).slice(5, 16) : clockTime(millis).slice(0, 8),
    );
    return h("tr", {},
      h("th", { scope: "row" }, index + 1),
      h("td", { class: "hosts", title: list(step.hosts, 50) }, list(step.hosts, 3)),
      h("td", { class: "bar" }, stepBar(announced, starts, ends, from, to)),
      h("td", { class: "number" }, time(announced)),
      h("td", { class: "number" }, time(starts)),
      h("td", { class: "number" }, time(ends)),
      h("td", { title: list(step.tenants.map(tenantText), 20) }, tenantsText(step.tenants)));
  });
  const head = ["Group", "Hosts", "", "Announced", "Starts", "Ends", "Tenants"].map(
    (name) => h("th", { scope: "col", class: name ? null : "bar" }, name || h("span", { class: "sr" }, "Course"))
  );
  return h("figure", {},
    h("figcaption", {}, h("b", {}, `${title}: ${course.lasts}`), ` in ${count(course.steps.length, "group")}; ${text}.`),
    course.stuck && h("p", { class: "error" }, `It does not end: ${course.stuck}.`),
    h(
      "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
      h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
    ),
    course.steps.length > GROUPS_MAX && h("p", { class: "quiet" }, `and ${count(course.steps.length - GROUPS_MAX, "more group")}`));
}

const tenantText = ({ tenant, event, machines }) => `${tenant}: ${event ?? "no notice"}, ${list(machines)}`;

function tenantsText(tenants) {
  if (!tenants.length) return "none";
  const unnotified = tenants.filter(({ event }) => event === null).length;
  return `${list(tenants.map(({ tenant }) => tenant), 3)}${unnotified ? `; ${unnotified} of them without notice` : ""}`;
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
