// One event: what and when, who has polled and approved, what happens next, and what was logged.

import { actionBar } from "./actions.js";
import { get } from "./api.js";
import { h, headings, mark, moment, options, preformatted, quiet, quietSpan, replace, scrollable, tickTimes } from "./dom.js";
import { eventTitle, fullTime, parseTime, shortId } from "./format.js";
import { emptyHistory } from "./history.js";
import { STATES, model } from "./model.js";

export const VERSIONS = ["2020-07-01", "2019-08-01", "2019-04-01", "2019-01-01", "2017-11-01", "2017-08-01", "2017-03-01"];

/** Why an event has not started or ended yet, who has seen it, and what was logged about it. */
export const readExplanation = (id) => get(`/v1/events/${encodeURIComponent(id)}/explanation`, { cluster: model.cluster });

/** The document that the machines of a tenant read now, or why there is none. */
export async function readDocument(tenant, version) {
  try {
    const path = `/v1/tenants/${encodeURIComponent(tenant)}/document`;
    return JSON.stringify(await get(path, { cluster: model.cluster, "api-version": version }), null, 2);
  } catch (problem) {
    return problem.message;
  }
}

export const documentBox = (text, id) => preformatted(text, { id, class: "document", "aria-label": "Scheduled Events document" });

/** The choice of the version of a document. */
export function versionChoice(id, label, version, choose) {
  const on = { change: (change) => choose(change.target.value) };
  return h("p", {}, h("label", { for: id }, label), h("select", { id, on }, options(VERSIONS, version)));
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** What an event waits for, and what happens next. */
export const waitsFor = ({ blockers, next }) => [
  blockers.length > 0 && [h("p", {}, "It waits:"), h("ul", {}, blockers.map((text) => h("li", {}, text)))],
  next.map((text) => h("p", {}, sentence(text))),
];

export function open(main, { id }) {
  let explanation = null;
  let version = VERSIONS[0];
  let documentText = "";
  let isReading = false;
  let isAgain = false;

  const read = async () => {
    isAgain = isReading;
    if (isReading) return;
    isReading = true;
    try {
      explanation = await readExplanation(id);
      await readText();
    } catch (problem) {
      replace(main, h("h1", {}, `Event ${shortId(id)}`), h("p", { class: "error" }, problem.message));
    }
    isReading = false;
    if (isAgain) read();
  };

  const readText = async () => {
    documentText = await readDocument(explanation.tenant, version);
    draw();
  };

  const draw = () => {
    const { event, why } = explanation;
    const history = model.histories.byId.get(explanation.id) ?? emptyHistory(id);
    const section = (title, ...content) => h("section", {}, h("h2", {}, title), content);
    replace(
      main,
      h("div", { class: "title" },
        h("h1", {}, mark(event ? model.stateOf(event) : STATES.done), " ", eventTitle(event ?? history, 4), why && ` (${why})`),
        event && actionBar("event", event)),
      h("p", { class: "lead" }, explanation.summary),
      h("div", { class: "columns" },
        section("What and when", facts(event, history)),
        section("Who has seen and approved it", people(event)),
        section("What happens next", next())),
      section("The document that its machines read",
        versionChoice("version", "api-version ", version, (chosen) => ((version = chosen), readText())), documentBox(documentText)),
      section("Audit log", h("ol", { class: "log" }, explanation.history.map(logged))),
    );
  };

  const fact = (name, value) => value && [h("dt", {}, name), h("dd", {}, value)];
  const when = (millis) => millis !== null && moment(millis, model.now());

  const facts = (event, history) => h("dl", {},
    fact("State", event ? model.stateOf(event).name : explanation.status),
    fact("Announced", when(parseTime(explanation.announced) ?? history.announced)),
    fact("Not before", when(parseTime(explanation.not_before) ?? history.notBefore)),
    fact("Started", when(history.started)),
    fact("Ended", when(history.ended)),
    fact("Tenant", explanation.tenant),
    fact("Requested by", explanation.request && `${explanation.request.by}: ${explanation.request.text}`),
    fact("Id", h("code", {}, explanation.id)),
    explanation.machines.map(({ machine, text }) => fact(machine, text)));

  const people = (event) => {
    const { approvals, polls, tenant } = explanation;
    const row = ({ machine, last, edition, shown }) => h("tr", {},
      [machine, last ? when(parseTime(last)) : "never", edition ?? "–", shown ? "✓ has seen it" : "– has not seen it"]
        .map((cell) => h("td", {}, cell)));
    return [
      event && h("p", { class: event.approved ? "good" : "" },
        event.approved ? `✓ ${tenant} has approved` : `– ${tenant} has not approved`),
      approvals.map(({ by, at }) => h("p", {}, `Approved by ${by} `, when(parseTime(at)))),
      polls.length > 0 && scrollable("Polls of its machines",
        h("table", {}, headings(["Machine", "Last poll", "Version", "This event"]), h("tbody", {}, polls.map(row)))),
    ];
  };

  const next = () => [
    waitsFor(explanation),
    explanation.hints.map((text) => h("p", { class: "hint" }, sentence(text))),
    !explanation.next.length && !explanation.hints.length && quiet("Nothing: it has ended."),
  ];

  const logged = ({ at, text, by }) => {
    const time = fullTime(parseTime(at));
    return h("li", {}, h("time", { class: "number", title: time }, time.slice(11, 19)), " ", text, quietSpan(` · ${by}`));
  };

  replace(main, quiet("Loading…"));
  return {
    update: (topics) => ["all", "events", "entries", "connection"].some((topic) => topics.has(topic)) && read(),
    tick: () => tickTimes(main, model.now()),
  };
}
