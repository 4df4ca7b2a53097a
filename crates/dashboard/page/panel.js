// The side panel of a machine or a host: what it is now, what comes, what was, and what can be done.

import { actionBar } from "./actions.js";
import { get } from "./api.js";
import {
  actionButton, button, facts, h, mark, moment, options, preformatted, quiet, quietSpan, replace, setText, tickTimes, visible,
} from "./dom.js";
import { VERSIONS } from "./event.js";
import { count, countdown, eventTitle, fullTime, list, parseTime, sizeText } from "./format.js";
import { STATES, model } from "./model.js";

const READ_EVERY = 5000;
const MACHINES_MAX = 200;
const HISTORY_PAGE = 20;
const OLDER_PAGE = 100;
const SECTIONS = ["title", "note", "actions", "events", "facts", "machines", "document", "history"];

const element = document.getElementById("panel");
let shown = null;

/** Opens the panel of a machine (`tenant/name`) or a host. */
export function openPanel(kind, name) {
  const isOpen = shown !== null;
  const back = shown?.back ?? document.activeElement;
  clearInterval(shown?.interval);
  shown = {
    kind, name, back, isMachine: kind === "machine", cluster: model.cluster, explanation: null, problem: "", version: "", documentText: "",
    history: new Map(), older: null, lastEntry: model.entries.at(-1), wasSeen: false, isReading: false, readAt: -Infinity,
    signatures: new Map(),
    sections: Object.fromEntries(SECTIONS.map((section) => [section, h("section", { class: `part-${section}` })])),
    interval: setInterval(tick, 500),
  };
  build();
  if (!isOpen) {
    document.addEventListener("keydown", onKey);
    document.body.classList.add("has-panel");
    setInert(matchMedia("(max-width: 640px)").matches);
  }
  draw();
  element.querySelector("h2").focus({ preventScroll: true });
  element.dispatchEvent(new CustomEvent("panel"));
}

/** Closes the panel. The focus returns to where it was before. */
export function closePanel() {
  if (!shown) return;
  end();
  element.dispatchEvent(new CustomEvent("panel"));
}

function end() {
  const { back, interval } = shown;
  clearInterval(interval);
  shown = null;
  const hadFocus = element.contains(document.activeElement) || document.activeElement === document.body;
  element.hidden = true;
  replace(element);
  setInert(false);
  document.removeEventListener("keydown", onKey);
  document.body.classList.remove("has-panel");
  const isThere = back?.isConnected && back !== document.body;
  if (hadFocus) (isThere ? back : document.getElementById(back?.id || "main"))?.focus({ preventScroll: true });
}

/** What the panel shows: { kind, name }, or null. */
export const panelObject = () => shown && { kind: shown.kind, name: shown.name };

/** After changes of the model. */
export function update(topics) {
  if (!shown) return;
  shown.cluster ||= model.cluster;
  if (shown.cluster !== model.cluster || model.connection === "login") return closePanel();
  const isAbout = topics.has("entries") && newEntries().some(concerns);
  if (isAbout || topics.has("all") || topics.has("clock")) shown.readAt = -Infinity;
  draw();
}

// The address has changed already: the page that is left must not write it.
window.addEventListener("hashchange", () => shown && end());

function onKey(event) {
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.target.matches?.("input, select, textarea") && !element.contains(event.target)) return;
  event.preventDefault();
  closePanel();
}

/** On a phone the panel covers the page, which then takes no focus. */
function setInert(isInert) {
  for (const id of ["header", "main", "footer"]) document.getElementById(id).inert = isInert;
}

function newEntries() {
  const { entries } = model;
  const index = entries.lastIndexOf(shown.lastEntry) + 1;
  shown.lastEntry = entries.at(-1);
  return entries.slice(index);
}

const tenantOf = (name) => name.slice(0, name.indexOf("/"));

function concerns({ hosts = [], machines = [], tenants = [] }) {
  const { isMachine, name } = shown;
  return isMachine ? machines.includes(name) || tenants.includes(tenantOf(name)) : hosts.includes(name);
}

async function read() {
  const own = shown;
  let problem = "";
  Object.assign(own, { isReading: true, readAt: performance.now() });
  try {
    const page = await readHistory(own, HISTORY_PAGE);
    if (own.isMachine) await readDocument(own, page);
  } catch (error) {
    problem = error.status === 404 ? "missing" : error.message;
  }
  Object.assign(own, { isReading: false, problem });
  if (own === shown) draw();
}

/** Reads a page of the history. The first one is read again and again; the cursor of the oldest one stays. */
async function readHistory(own, limit, before) {
  const { isMachine, name, cluster, history } = own;
  const parameters = { cluster, limit, before };
  const page = await (isMachine
    ? get(`/v1/machines/${name.split("/").map(encodeURIComponent).join("/")}/explanation`, parameters)
    : get("/v1/audit", { ...parameters, host: name }));
  const entries = page.history ?? page.items;
  const isOlder = history.size === 0 || entries.some(({ number }) => number < Math.min(...history.keys()));
  if (isOlder) own.older = page.next ?? null;
  for (const entry of entries) history.set(entry.number, entry);
  return page;
}

async function readDocument(own, explanation = own.explanation) {
  own.explanation = explanation;
  const { edition } = explanation.last_poll ?? {};
  own.version ||= VERSIONS.includes(edition) ? edition : VERSIONS[0];
  if (!explanation.machine) return;
  const path = `/v1/tenants/${encodeURIComponent(tenantOf(own.name))}/document`;
  try {
    own.documentText = JSON.stringify(await get(path, { cluster: own.cluster, "api-version": own.version }), null, 2);
  } catch (problem) {
    own.documentText = problem.message;
  }
}

async function readOlder() {
  const own = shown;
  await readHistory(own, OLDER_PAGE, own.older);
  if (own === shown) draw();
}

function build() {
  const { isMachine, name, sections } = shown;
  element.hidden = false;
  element.scrollTop = 0;
  element.setAttribute("role", "dialog");
  element.setAttribute("aria-labelledby", "panel-title");
  const label = isMachine ? `VM ${visible(name.slice(name.indexOf("/") + 1), 120)}` : `Host ${visible(name, 120)}`;
  replace(element,
    h("div", { class: "panel-head" },
      h("h2", { id: "panel-title", tabindex: "-1" }, label),
      button("✕", closePanel, { id: "panel-close", class: "panel-close", "aria-label": "Close the panel", title: "Close (Esc)" })),
    Object.values(sections));
}

/** Draws a section if what it shows has changed. */
function section(name, content, make) {
  const signature = JSON.stringify(content);
  if (shown.signatures.get(name) === signature) return;
  shown.signatures.set(name, signature);
  const parts = content ? [make()].flat(2).filter(Boolean) : [];
  shown.sections[name].hidden = parts.length === 0;
  replace(shown.sections[name], parts);
}

function draw() {
  const { isMachine, kind, name, problem, explanation, history } = shown;
  const object = (isMachine ? model.machines : model.hosts).get(name) ?? null;
  shown.wasSeen ||= object !== null;
  const state = object && (isMachine ? model.machineState(object) : hostState(object));
  const summary = object && explanation?.summary;
  section("title", [state?.name, summary], () => [
    state && h("p", { class: "panel-state" }, mark(state), " ", h("b", { "aria-hidden": "true" }, state.name)),
    summary && quiet(summary),
  ]);
  const isLoading = model.connection === "loading" || (isMachine && !explanation && !problem);
  const hasHistory = history.size > 0;
  const hints = (object && explanation?.hints) ?? [];
  section("note", [Boolean(object), isLoading, problem, shown.wasSeen, hasHistory, hints, object?.attention], () => [
    !object && (isLoading ? quiet("Loading…") : goneText(hasHistory)),
    object && problem && problem !== "missing" && h("p", { class: "error", role: "alert" }, problem),
    object?.attention && h("p", { class: "error" }, `Needs attention: ${object.attention}`),
    hints.map((text) => h("p", { class: "hint" }, text)),
  ]);
  section("actions", object && [object, model.canOperate, model.canAdmin], () => actionBar(kind, object));
  if (isMachine) drawMachine(object);
  else drawHost(object);
  section("history", [[...history.keys()], shown.older], historyList);
  tick();
}

function goneText(hasHistory) {
  const { isMachine, name, wasSeen } = shown;
  const noun = isMachine ? "VM" : "host";
  const text = wasSeen || hasHistory ? `The ${noun} ${name} was ${isMachine ? "deleted" : "removed"}.` : `There is no ${noun} ${name}.`;
  return h("p", { class: "panel-gone", role: "alert" }, h("b", {}, text), hasHistory && " Its history is still below.");
}

function drawMachine(machine) {
  const { explanation, documentText, version } = shown;
  const { last_poll: poll, enrolled } = explanation ?? {};
  section("facts", machine && [machine, poll, enrolled, model.hosts.has(machine.host)], () => machineFacts(machine, poll, enrolled));
  const events = machine ? model.eventsOf(machine) : [];
  const planned = (explanation?.coming ?? []).filter(({ event }) => !event);
  section("events", machine && [events, planned, events.map((event) => model.stateOf(event).id)], () => eventList(events, planned));
  section("document", machine && explanation && [documentText, version], documentView);
}

/** A time in the past, also if the clock of the page is behind. */
const past = (text) => moment(Math.min(parseTime(text), model.now()), model.now());
const link = (kind, name) => button(visible(name, 80), () => openPanel(kind, name), { class: "plain", id: `panel-${kind}-${name}` });
const tag = ([name, value]) => h("li", {}, h("code", {}, `${name}=`, value));

function machineFacts(machine, poll, enrolled) {
  const isExplained = enrolled !== undefined;
  const tags = Object.entries(machine.tags ?? {});
  const notices = [machine.terminate && `${machine.terminate} before its deletion`, machine.os_image && "before a new OS image"];
  return facts([
    ["Tenant", machine.tenant],
    ["Host", model.hosts.has(machine.host) ? link("host", machine.host) : machine.host],
    ["Update domain", machine.update_domain, "VMs of one tenant in one update domain may be interrupted together by planned work."],
    ["Fault domain", machine.fault_domain, "VMs in one fault domain share a point of failure, such as a rack."],
    ["Power", machine.power],
    ["Boots", machine.boots, "The number of starts. Memory is lost with each."],
    ["Ephemeral disk", `generation ${machine.disk}`, "Its content is lost with each new generation."],
    [
      "Last poll", poll?.last ? past(poll.last) : isExplained && "none since the server started",
      "The last time that the VM read its Scheduled Events document.",
    ],
    ["api-version", poll?.edition, "The version of the Scheduled Events document that the VM has asked for."],
    [
      "Enrolled", isExplained && (enrolled ? "yes" : "no: it gets no notice"),
      "Only VMs of enrolled tenants get events with a notice. A tenant is enrolled by its first poll, or by a setting.",
    ],
    ["Spot", machine.spot && `may be evicted: ${machine.spot}`],
    ["Notice", notices.filter(Boolean).join(", ")],
    ["Size", sizeText(machine)],
    ["Addresses", machine.addresses?.join(", ")],
    ["Tags", tags.length > 0 && h("ul", { class: "panel-tags" }, tags.map(tag))],
  ]);
}

function eventList(events, planned) {
  const row = (event) => {
    const until = event.status === "Started" ? null : parseTime(event.not_before);
    return h("li", {}, mark(model.stateOf(event)),
      h("a", { href: `#/event/${event.id}`, id: `panel-event-${event.id}` }, eventTitle(event)),
      until !== null && h("time", { class: "number", "data-until": until, title: `not before ${fullTime(until)}` }),
      quietSpan(`${event.cause}: ${event.progress}`));
  };
  return [
    h("h3", {}, "Events"),
    events.length + planned.length === 0 && quiet("None: nothing is planned for this VM."),
    h("ul", { class: "panel-events" }, events.map(row), planned.map(({ text }) => h("li", {}, quietSpan(text)))),
  ];
}

function documentView() {
  const own = shown;
  const choose = async ({ target }) => {
    own.version = target.value;
    await readDocument(own);
    if (own === shown) draw();
  };
  return [
    h("h3", {}, "Scheduled Events document"),
    h("p", {}, h("label", { for: "panel-version" }, "api-version "),
      h("select", { id: "panel-version", on: { change: choose } }, options(VERSIONS, own.version))),
    preformatted(own.documentText, { class: "document", id: "panel-document", "aria-label": "The document as the VM reads it now" }),
  ];
}

function drawHost(host) {
  section("facts", host && [host], () => hostFacts(host));
  const states = host?.machines.map((name) => model.machines.get(name)).map((machine) => machine && model.machineState(machine).id);
  section("machines", host && [host.machines, states], () => hostMachines(host, states));
}

function hostState({ attention, health, manual, step_since: since, work }) {
  if (attention) return STATES.failed;
  if (health !== "healthy") return { ...STATES.failed, name: health };
  if (since) return { ...STATES.started, name: manual ? "ready for work" : "work in progress" };
  return work ? { ...STATES.scheduled, name: "healthy, with work planned" } : { ...STATES.idle, name: "healthy" };
}

const step = (host) => [
  host.step_work ?? "work on the host", ", began ", past(host.step_since), host.manual && "; a person has to report its end",
];

function hostFacts(host) {
  const { maintenance, fence, returning } = host;
  return facts([
    ["Health", host.health],
    ["Zone", host.zone],
    [
      "Fence", fence === "awaited" ? "not confirmed: its VMs cannot start elsewhere" : fence,
      "The separation of a failed host from the disks of its VMs.",
    ],
    ["Work", host.work ?? "none"],
    ["Step", host.step_since && step(host), "Work on the host itself, while its VMs wait."],
    [
      "Maintenance", maintenance && [`${maintenance.state}: ${maintenance.text}; began `, past(maintenance.since)],
      "The host is kept free of VMs, or is being emptied.",
    ],
    ["Returning", returning && list(returning, 8), "VMs that return to the host after its maintenance."],
    ["Room", host.room && room(host.room), "The part of the host's capacity that its VMs take."],
  ]);
}

function room({ cpus, memory_mib: memory, used_cpus: usedCpus, used_memory_mib: used, exceeded }) {
  const gib = (mib) => `${Number((mib / 1024).toFixed(1)).toLocaleString("en")} GiB`;
  const part = (taken, whole, unit) => (whole ? `${taken} of ${unit(whole)}` : `${taken} used, no limit`);
  const texts = [part(usedCpus, cpus, (number) => count(number, "CPU")), part(gib(used), memory, gib)];
  return `${texts.join(", ")}${exceeded ? "; exceeded: it gets no further VM with a size" : ""}`;
}

function hostMachines({ machines }, states) {
  const row = (name, index) => h("li", {}, states[index] && mark(STATES[states[index]]), link("machine", name));
  const more = machines.length - MACHINES_MAX;
  return [
    h("h3", {}, count(machines.length, "VM")),
    h("ul", { class: "panel-machines" }, machines.slice(0, MACHINES_MAX).map(row)),
    more > 0 && quiet(`and ${count(more, "more VM")}`),
  ];
}

function historyList() {
  const entries = [...shown.history.values()].sort((one, other) => other.number - one.number);
  const row = ({ number, at, text, by, events = [] }) => {
    const time = fullTime(parseTime(at));
    return h("li", {},
      h("time", { class: "number quiet", title: time }, time.slice(5, 19)), " ",
      events.length === 1 ? h("a", { href: `#/event/${events[0]}`, id: `panel-entry-${number}` }, text) : text,
      quietSpan(` · ${by}`));
  };
  return [
    h("h3", {}, "History"),
    entries.length === 0 && quiet("The audit log has no entry."),
    h("ol", { class: "log" }, entries.map(row)),
    shown.older !== null && actionButton("Older entries", readOlder, { id: "panel-older" }),
  ];
}

/** Twice a second: countdowns, and times that have passed. Polls leave no entry, so the object is read every few seconds. */
function tick() {
  if (!shown || document.hidden) return;
  const now = model.now();
  for (const time of element.querySelectorAll("[data-until]")) {
    const left = Number(time.dataset.until) - now;
    setText(time, left > 0 ? `in ${countdown(left)}` : "due");
  }
  tickTimes(element, now);
  if (shown.cluster && !shown.isReading && performance.now() - shown.readAt > READ_EVERY && model.connection === "live") read();
}
