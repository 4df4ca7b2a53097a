// The side panel of a machine or a host: what it is now, what comes, what was, and what can be done.

import { actionBar } from "./actions.js";
import { get } from "./api.js";
import { actionButton, h, mark, preformatted, replace, visible } from "./dom.js";
import { VERSIONS } from "./event.js";
import { count, countdown, fullTime, list, parseTime, relative } from "./format.js";
import { STATES, model } from "./model.js";

const READ_PAUSE = 300;
const READ_EVERY = 5000;
const MACHINES_MAX = 200;
const HISTORY_PAGE = 20;
const HELP = {
  domain: "VMs of one tenant in one update domain may be interrupted together by planned work.",
  fault: "VMs in one fault domain share a point of failure, such as a rack.",
  poll: "The last time that the VM read its Scheduled Events document from the metadata endpoint.",
  boots: "The number of starts. Memory is lost with each.",
  disk: "The generation of the ephemeral disk. Its content is lost with each new one.",
  enrolled: "Only VMs of enrolled tenants get events with a notice. A tenant is enrolled by its first poll, or by a setting.",
  fence: "The separation of a failed host from the disks of its VMs.",
  step: "Work on the host itself, while its VMs wait.",
  maintenance: "The host is kept free of VMs, or is being emptied.",
  room: "The part of the host's capacity that its VMs take.",
};

const element = document.getElementById("panel");
let shown = null;

/** Opens the panel of a machine (`tenant/name`) or a host. */
export function openPanel(kind, name) {
  const isOpen = shown !== null;
  const back = shown?.back ?? document.activeElement;
  clearTimeout(shown?.timer);
  clearInterval(shown?.interval);
  shown = {
    kind, name, back, cluster: model.cluster, explanation: null, problem: "", version: "", documentText: "",
    history: new Map(), older: null, lastEntry: model.entries.at(-1), wasSeen: false, timer: 0, isReading: false, isAgain: false,
    signatures: new Map(), sections: {},
  };
  shown.interval = setInterval(tick, 500);
  shown.readAt = performance.now();
  build();
  if (!isOpen) {
    document.addEventListener("keydown", onKey);
    document.body.classList.add("has-panel");
    setInert(matchMedia("(max-width: 640px)").matches);
  }
  draw();
  read();
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
  const { back, timer, interval } = shown;
  clearTimeout(timer);
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
  if (topics.has("all") || isAbout || (topics.has("clock") && !shown.timer)) readSoon();
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
  let index = entries.length;
  while (index > 0 && entries[index - 1] !== shown.lastEntry) index -= 1;
  shown.lastEntry = entries.at(-1);
  return entries.slice(index);
}

function concerns(entry) {
  if (shown.kind === "host") return (entry.hosts ?? []).includes(shown.name);
  const tenant = shown.name.slice(0, shown.name.indexOf("/"));
  return (entry.machines ?? []).includes(shown.name) || (entry.tenants ?? []).includes(tenant);
}

function readSoon() {
  shown.timer ||= setTimeout(() => {
    shown.timer = 0;
    read();
  }, READ_PAUSE);
}

async function read() {
  const own = shown;
  if (own.isReading) return void (own.isAgain = true);
  if (!own.cluster) return;
  [own.isReading, own.readAt] = [true, performance.now()];
  try {
    if (own.kind === "machine") await readMachine(own);
    else await readHost(own);
    own.problem = "";
  } catch (problem) {
    own.problem = problem.status === 404 ? "missing" : problem.message;
  }
  own.isReading = false;
  if (own !== shown) return;
  draw();
  if (own.isAgain) (own.isAgain = false), readSoon();
}

const explanationPath = (name) => `/v1/machines/${name.split("/").map(encodeURIComponent).join("/")}/explanation`;

async function readMachine(own) {
  own.explanation = await get(explanationPath(own.name), { cluster: own.cluster, limit: HISTORY_PAGE });
  addHistory(own, own.explanation);
  const { edition } = own.explanation.last_poll ?? {};
  own.version ||= VERSIONS.includes(edition) ? edition : VERSIONS[0];
  if (own.explanation.machine) await readDocument(own);
}

async function readDocument(own) {
  const path = `/v1/tenants/${encodeURIComponent(own.name.split("/")[0])}/document`;
  try {
    own.documentText = JSON.stringify(await get(path, { cluster: own.cluster, "api-version": own.version }), null, 2);
  } catch (problem) {
    own.documentText = problem.message;
  }
}

async function readHost(own) {
  const page = await get("/v1/audit", { cluster: own.cluster, host: own.name, limit: HISTORY_PAGE });
  addHistory(own, { history: page.items, next: page.next });
  if (!model.hosts.has(own.name) && page.items.length === 0) own.problem = "missing";
}

/** Adds a page of the history. The first one is read again and again; the cursor of the oldest one stays. */
function addHistory(own, { history, next }) {
  const isOlder = own.history.size === 0 || history.some((entry) => entry.number < Math.min(...own.history.keys()));
  if (isOlder || own.older === null) own.older = isOlder ? next ?? null : own.older;
  for (const entry of history) own.history.set(entry.number, entry);
}

async function readOlder() {
  const own = shown;
  const parameters = { cluster: own.cluster, limit: 100, before: own.older };
  const isMachine = own.kind === "machine";
  const page = isMachine ? await get(explanationPath(own.name), parameters) : await get("/v1/audit", { ...parameters, host: own.name });
  addHistory(own, { history: page.history ?? page.items, next: page.next });
  if (own === shown) draw();
}

function build() {
  const names = ["title", "note", "actions", "events", "facts", "machines", "document", "history"];
  shown.sections = Object.fromEntries(names.map((name) => [name, h("section", { class: `part-${name}` })]));
  element.hidden = false;
  element.scrollTop = 0;
  element.setAttribute("role", "dialog");
  element.setAttribute("aria-labelledby", "panel-title");
  const close = h("button", {
    type: "button", id: "panel-close", class: "panel-close", "aria-label": "Close the panel", title: "Close (Esc)",
    on: { click: closePanel },
  }, "✕");
  const label = shown.kind === "machine" ? shown.name.slice(shown.name.indexOf("/") + 1) : shown.name;
  const kind = shown.kind === "machine" ? "VM" : "Host";
  const title = h("h2", { id: "panel-title", tabindex: "-1" }, `${kind} ${visible(label, 120)}`);
  replace(element, h("div", { class: "panel-head" }, title, close), Object.values(shown.sections));
}

/** Draws a section if what it shows has changed. */
function section(name, content, make) {
  const signature = JSON.stringify(content);
  if (shown.signatures.get(name) === signature) return;
  shown.signatures.set(name, signature);
  const parts = content === null ? [] : [make()].flat().filter(Boolean);
  shown.sections[name].hidden = parts.length === 0;
  replace(shown.sections[name], ...parts);
}

function draw() {
  if (shown.kind === "machine") drawMachine();
  else drawHost();
  section("history", [[...shown.history.keys()], shown.older], historyList);
  tick();
}

function drawMachine() {
  const { explanation, problem, name } = shown;
  const isLoading = model.connection === "loading" || (!explanation && !problem);
  const machine = model.machines.get(name) ?? null;
  shown.wasSeen ||= machine !== null;
  const state = machine && model.machineState(machine);
  section("title", [state?.id, explanation?.summary], () => [
    state && h("p", { class: "panel-state" }, mark(state), " ", h("b", { "aria-hidden": "true" }, state.name)),
    machine && explanation && h("p", { class: "quiet" }, explanation.summary),
  ]);
  const note = machine ? problem : isLoading ? "loading" : "gone";
  section("note", [note, explanation?.hints], () => [
    note === "loading" && h("p", { class: "quiet" }, "Loading…"),
    note === "gone" && gone(shown.wasSeen || explanation ? `The VM ${name} was deleted.` : `There is no VM ${name}.`, explanation),
    note && !["loading", "gone", "missing"].includes(note) && h("p", { class: "error", role: "alert" }, note),
    machine && (explanation?.hints ?? []).map((text) => h("p", { class: "hint" }, text)),
  ]);
  section("actions", machine && [machine, model.canOperate, model.canAdmin], () => actionBar("machine", machine));
  const { last_poll: poll, enrolled } = explanation ?? {};
  section("facts", machine && [machine, poll, enrolled, model.hosts.has(machine.host)], () => machineFacts(machine, poll, enrolled));
  const events = machine ? model.eventsOf(machine) : [];
  const planned = (explanation?.coming ?? []).filter(({ event }) => !event);
  section("events", machine && [events, planned, events.map((event) => model.stateOf(event).id)], () => eventList(events, planned));
  section("document", machine && explanation && [shown.documentText, shown.version], documentView);
}

const gone = (text, hasHistory) => h("p", { class: "panel-gone", role: "alert" },
  h("b", {}, text), hasHistory ? " Its history is still below." : "");

const isKnown = (value) => value !== "" && value !== null && value !== undefined && value !== false;
const fact = (name, value, help) => isKnown(value) && [h("dt", { title: help }, name), h("dd", {}, value)];
const ago = (millis) => (millis >= model.now() ? "just now" : relative(millis, model.now()));
const moment = (text) => h("time", { title: fullTime(parseTime(text)), "data-time": parseTime(text) }, ago(parseTime(text)));
const link = (kind, name) => h("button", {
  type: "button", class: "plain", id: `panel-${kind}-${name}`, on: { click: () => openPanel(kind, name) },
}, visible(name, 80));

const tag = ([name, value]) => h("li", {}, h("code", {}, `${name}=`, value));

function machineFacts(machine, poll, enrolled) {
  const tags = Object.entries(machine.tags ?? {});
  const size = [machine.cpus && count(machine.cpus, "CPU"), machine.memory].filter(Boolean).join(", ");
  const notices = [machine.terminate && `${machine.terminate} before its deletion`, machine.os_image && "before a new OS image"];
  return h("dl", {},
    fact("Tenant", machine.tenant),
    fact("Host", machine.host && (model.hosts.has(machine.host) ? link("host", machine.host) : machine.host)),
    fact("Update domain", machine.update_domain, HELP.domain),
    fact("Fault domain", machine.fault_domain, HELP.fault),
    fact("Power", machine.power),
    fact("Boots", machine.boots, HELP.boots),
    fact("Ephemeral disk", `generation ${machine.disk}`, HELP.disk),
    fact("Last poll", poll?.last ? moment(poll.last) : shown.explanation && "none since the server started", HELP.poll),
    fact("api-version", poll?.edition ?? null, "The version of the Scheduled Events document that the VM has asked for."),
    fact("Enrolled", enrolled === undefined ? null : enrolled ? "yes" : "no: it gets no notice", HELP.enrolled),
    fact("Spot", machine.spot && `may be evicted: ${machine.spot}`),
    fact("Notice", notices.filter(Boolean).join(", ")),
    fact("Size", size),
    fact("Addresses", (machine.addresses ?? []).join(", ")),
    tags.length > 0 && fact("Tags", h("ul", { class: "panel-tags" }, tags.map(tag))));
}

function eventList(events, planned) {
  const row = (event) => {
    const until = event.status === "Started" ? null : parseTime(event.not_before);
    return h("li", {}, mark(model.stateOf(event)),
      h("a", { href: `#/event/${event.id}`, id: `panel-event-${event.id}` }, `${event.kind} of ${list(event.resources)}`),
      until !== null && h("time", { class: "number", "data-until": until, title: `not before ${fullTime(until)}` }),
      h("span", { class: "quiet" }, `${event.cause}: ${event.progress}`));
  };
  return [
    h("h3", {}, "Events"),
    events.length + planned.length === 0 && h("p", { class: "quiet" }, "None: nothing is planned for this VM."),
    h("ul", { class: "panel-events" }, events.map(row), planned.map(({ text }) => h("li", {}, h("span", { class: "quiet" }, text)))),
  ];
}

function documentView() {
  const own = shown;
  const choose = async (event) => {
    own.version = event.target.value;
    await readDocument(own);
    if (own === shown) draw();
  };
  const option = (one) => h("option", { value: one, selected: one === own.version }, one);
  const select = h("select", { id: "panel-version", on: { change: choose } }, VERSIONS.map(option));
  return [
    h("h3", {}, "Scheduled Events document"),
    h("p", {}, h("label", { for: "panel-version" }, "api-version "), select),
    preformatted(own.documentText, { class: "document", id: "panel-document", "aria-label": "The document as the VM reads it now" }),
  ];
}

function drawHost() {
  const { name, problem } = shown;
  const isLoading = model.connection === "loading";
  const host = model.hosts.get(name) ?? null;
  shown.wasSeen ||= host !== null;
  const state = host && hostState(host);
  section("title", host && [state[1]], () => h("p", { class: "panel-state" },
    mark({ id: state[0].id, name: state[1] }), " ", h("b", { "aria-hidden": "true" }, state[1])));
  const note = host ? problem : isLoading ? "loading" : "gone";
  const wasThere = shown.wasSeen || shown.history.size > 0;
  section("note", [note, wasThere, host?.attention], () => [
    note === "loading" && h("p", { class: "quiet" }, "Loading…"),
    note === "gone" && gone(wasThere ? `The host ${name} was removed.` : `There is no host ${name}.`, shown.history.size > 0),
    note && !["loading", "gone", "missing"].includes(note) && h("p", { class: "error", role: "alert" }, note),
    host?.attention && h("p", { class: "error" }, `Needs attention: ${host.attention}`),
  ]);
  section("actions", host && [host, model.canOperate, model.canAdmin], () => actionBar("host", host));
  section("facts", host && [host], () => hostFacts(host));
  const states = host && host.machines.map((one) => model.machines.get(one)).map((machine) => machine && model.machineState(machine).id);
  section("machines", host && [host.machines, states], () => hostMachines(host, states));
}

function hostState(host) {
  if (host.attention) return [STATES.failed, "needs attention"];
  if (host.health !== "healthy") return [STATES.failed, host.health];
  if (host.manual && host.step_since) return [STATES.started, "ready for work"];
  if (host.step_since) return [STATES.started, "work in progress"];
  return host.work ? [STATES.scheduled, "healthy, with work planned"] : [STATES.idle, "healthy"];
}

const step = (host) => [
  host.step_work ?? "work on the host", ", began ", moment(host.step_since), host.manual && "; a person has to report its end",
];

function hostFacts(host) {
  const mode = host.maintenance;
  return h("dl", {},
    fact("Health", host.health),
    fact("Zone", host.zone),
    fact("Fence", host.fence === "awaited" ? "not confirmed: its VMs cannot start elsewhere" : host.fence, HELP.fence),
    fact("Work", host.work ?? "none"),
    fact("Step", host.step_since && step(host), HELP.step),
    fact("Maintenance", mode && [`${mode.state}: ${mode.text}; began `, moment(mode.since)], HELP.maintenance),
    fact("Returning", host.returning?.length ? list(host.returning, 8) : null, "VMs that return to the host after its maintenance."),
    fact("Room", host.room && room(host.room), HELP.room));
}

function room({ cpus, memory_mib: memory, used_cpus: usedCpus, used_memory_mib: used, exceeded }) {
  const gib = (mib) => `${Number((mib / 1024).toFixed(1)).toLocaleString("en")} GiB`;
  const part = (taken, whole, unit) => (whole ? `${taken} of ${unit(whole)}` : `${taken} used, no limit`);
  const texts = [part(usedCpus, cpus, (number) => count(number, "CPU")), part(gib(used), memory, gib)];
  return `${texts.join(", ")}${exceeded ? "; exceeded: it gets no further VM with a size" : ""}`;
}

function hostMachines(host, states) {
  const names = host.machines.slice(0, MACHINES_MAX);
  const row = (name, index) => h("li", {}, states[index] && mark(STATES[states[index]]), link("machine", name));
  return [
    h("h3", {}, count(host.machines.length, "VM")),
    h("ul", { class: "panel-machines" }, names.map(row)),
    host.machines.length > names.length && h("p", { class: "quiet" }, `and ${count(host.machines.length - names.length, "more VM")}`),
  ];
}

function historyList() {
  const entries = [...shown.history.values()].sort((one, other) => other.number - one.number);
  const row = (entry) => h("li", {},
    h("time", { class: "number quiet", title: fullTime(parseTime(entry.at)) }, fullTime(parseTime(entry.at)).slice(5, 19)), " ",
    (entry.events ?? []).length === 1
      ? h("a", { href: `#/event/${entry.events[0]}`, id: `panel-entry-${entry.number}` }, entry.text)
      : entry.text,
    h("span", { class: "quiet" }, ` · ${entry.by}`));
  return [
    h("h3", {}, "History"),
    entries.length === 0 && h("p", { class: "quiet" }, "The audit log has no entry."),
    h("ol", { class: "log" }, entries.map(row)),
    shown.older !== null && actionButton("Older entries", readOlder, { id: "panel-older" }),
  ];
}

/** Twice a second: countdowns, and times that have passed. Polls leave no entry, so the explanation is read every few seconds. */
function tick() {
  if (!shown || document.hidden) return;
  const now = model.now();
  for (const time of element.querySelectorAll("[data-until]")) {
    const left = Number(time.dataset.until) - now;
    time.textContent = left > 0 ? `in ${countdown(left)}` : "due";
  }
  for (const time of element.querySelectorAll("[data-time]")) time.textContent = ago(Number(time.dataset.time));
  if (model.connection === "live" && performance.now() - shown.readAt > READ_EVERY) read();
}
