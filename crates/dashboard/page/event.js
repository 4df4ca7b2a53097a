// One event: what and when, who has polled and approved, what happens next, and what was logged.

import { get } from "./api.js";
import { h, mark, preformatted, replace } from "./dom.js";
import { fullTime, list, parseTime, relative, shortId } from "./format.js";
import { STATES, model } from "./model.js";
import { actionBar } from "./actions.js";

export const VERSIONS = ["2020-07-01", "2019-08-01", "2019-04-01", "2019-01-01", "2017-11-01", "2017-08-01", "2017-03-01"];

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

export function open(main, { id }) {
  let explanation = null;
  let version = VERSIONS[0];
  let documentText = "";
  let isReading = false;
  let isAgain = false;

  const read = async () => {
    if (isReading) return void (isAgain = true);
    isReading = true;
    try {
      explanation = await get(`/v1/events/${encodeURIComponent(id)}/explanation`, { cluster: model.cluster });
      await readDocument();
      draw();
    } catch (problem) {
      replace(main, h("h1", {}, `Event ${shortId(id)}`), h("p", { class: "error" }, problem.message));
    } finally {
      isReading = false;
      if (isAgain) (isAgain = false), read();
    }
  };

  const readDocument = async () => {
    try {
      const path = `/v1/tenants/${encodeURIComponent(explanation.tenant)}/document`;
      documentText = JSON.stringify(await get(path, { cluster: model.cluster, "api-version": version }), null, 2);
    } catch (problem) {
      documentText = problem.message;
    }
  };

  const draw = () => {
    const event = explanation.event;
    const history = model.histories.byId.get(explanation.id);
    const kind = event?.kind ?? history?.kind ?? "Event";
    const machines = event?.resources ?? history?.resources ?? [];
    const state = event ? model.stateOf(event) : STATES.done;
    replace(
      main,
      h("div", { class: "title" },
        h("h1", {}, mark(state), ` ${kind} of ${list(machines, 4)}`, explanation.why ? ` (${explanation.why})` : ""),
        event && actionBar("event", event)),
      h("p", { class: "lead" }, explanation.summary),
      h("div", { class: "columns" },
        h("section", {}, h("h2", {}, "What and when"), facts(event, history)),
        h("section", {}, h("h2", {}, "Who has seen and approved it"), people(event)),
        h("section", {}, h("h2", {}, "What happens next"), next())),
      h("section", {}, h("h2", {}, "The document that its machines read"), documentView()),
      h("section", {}, h("h2", {}, "Audit log"), log()),
    );
    tick();
  };

  const fact = (name, value) => value !== "" && value !== null && value !== undefined && value !== false && [h("dt", {}, name), h("dd", {}, value)];
  const moment = (millis) => millis !== null && millis !== undefined && h("time", { title: fullTime(millis), "data-time": millis }, relative(millis, model.now()));

  const facts = (event, history) => h("dl", {},
    fact("State", event ? model.stateOf(event).name : `${explanation.status ?? history?.outcome ?? "ended"}`),
    fact("Announced", moment(parseTime(explanation.announced) ?? history?.announced ?? null)),
    fact("Not before", moment(parseTime(explanation.not_before) ?? history?.notBefore ?? null)),
    fact("Started", moment(history?.started ?? null)),
    fact("Ended", moment(history?.ended ?? null)),
    fact("Tenant", explanation.tenant),
    fact("Requested by", explanation.request && `${explanation.request.by}: ${explanation.request.text}`),
    fact("Id", h("code", {}, explanation.id)),
    (explanation.machines ?? []).map(({ machine, text }) => fact(machine, text)));

  const people = (event) => {
    const approvals = explanation.approvals ?? [];
    const row = ({ machine, last, edition, shown }) => h("tr", {},
      h("td", {}, machine),
      h("td", {}, last ? moment(parseTime(last)) : "never"),
      h("td", {}, edition ?? "–"),
      h("td", {}, shown ? "✓ has seen it" : "– has not seen it"));
    return [
      event && h("p", { class: event.approved ? "good" : "" }, event.approved ? `✓ ${explanation.tenant} has approved` : `– ${explanation.tenant} has not approved`),
      approvals.map((one) => h("p", {}, typeof one === "string" ? one : one.text ?? JSON.stringify(one))),
      (explanation.polls ?? []).length > 0 && h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Polls of its machines" }, h("table", {},
        h("thead", {}, h("tr", {}, ["Machine", "Last poll", "Version", "This event"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, explanation.polls.map(row)))),
    ];
  };

  const next = () => [
    (explanation.blockers ?? []).length > 0 && [h("p", {}, "It waits:"), h("ul", {}, explanation.blockers.map((text) => h("li", {}, text)))],
    (explanation.next ?? []).map((text) => h("p", {}, sentence(text))),
    (explanation.hints ?? []).map((text) => h("p", { class: "hint" }, sentence(text))),
    !(explanation.next ?? []).length && !(explanation.hints ?? []).length && h("p", { class: "quiet" }, "Nothing: it has ended."),
  ];

  const documentView = () => {
    const choose = h("select", { id: "version", on: { change: async (change) => ((version = change.target.value), await readDocument(), draw()) } },
      VERSIONS.map((one) => h("option", { value: one, selected: one === version }, one)));
    return [h("p", {}, h("label", { for: "version" }, "api-version "), choose), preformatted(documentText, { class: "document", "aria-label": "Scheduled Events document" })];
  };

  const log = () => h("ol", { class: "log" }, (explanation.history ?? []).map((entry) =>
    h("li", {}, h("time", { class: "number", title: fullTime(parseTime(entry.at)) }, fullTime(parseTime(entry.at)).slice(11, 19)), " ", entry.text, h("span", { class: "quiet" }, ` · ${entry.by}`))));

  const tick = () => {
    for (const time of main.querySelectorAll("[data-time]")) time.textContent = relative(Number(time.dataset.time), model.now());
  };

  replace(main, h("p", { class: "quiet" }, "Loading…"));
  return {
    update: (topics) => (topics.has("all") || topics.has("events") || topics.has("entries") || topics.has("connection")) && read(),
    tick,
  };
}
