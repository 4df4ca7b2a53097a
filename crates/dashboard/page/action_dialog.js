// The dialog of an action: consequences, fields, the same as commands, the request, and what was decided.

import { change, newKey } from "./api.js";
import { commandsView } from "./commands.js";
import { button, h, replace, visibleLines } from "./dom.js";
import { createForm } from "./form.js";
import { capital, countdown, dayTime, eventTitle, list, parseTime } from "./format.js";
import { model } from "./model.js";

const CONFIRM_MILLIS = 6000;
const READ_MILLIS = 500;
const DATA_TOPICS = ["all", "events", "machines", "hosts", "rollouts", "scaleSets", "clusters"];
const EFFECTS_PAUSE = 250;
const EVENTS_MAX = 20;

let dialogs = 0;

/**
 * Opens a dialog. `action` has: `title` (a sentence), `button`, `isDangerous`, `fields` (see form.js), `effects(values)` (consequences: texts or
 * elements, or a promise of them), `words(values)` (of the command line), `request(values)` ({ method, path, body, parameters }) and
 * `past` (a sentence for afterwards).
 */
export function openDialog(action) {
  const number = ++dialogs;
  const opener = document.activeElement?.id ?? "";
  const sender = createSender(action);
  const effects = effectsView(action);
  const commands = commandsView();
  const problem = h("p", { class: "error", role: "alert" });
  const progress = h("p", { class: "quiet", role: "status" });
  const refresh = (values) => {
    commands.update(action.words(values), action.request(values));
    if (form.isValid()) effects.update(values);
  };
  const { fields, isDangerous } = action;
  const form = createForm(fields, refresh);
  const isAsking = fields.length > 0 && fields[0].type !== "check";
  const cancel = button("Cancel", () => dialog.close(), { autofocus: !isAsking && isDangerous });
  const primary = h("button", {
    type: "submit", class: isDangerous ? "primary danger" : "primary", "data-write": true, autofocus: !isAsking && !isDangerous,
  }, action.button);
  const isBusy = () => primary.getAttribute("aria-busy") === "true";
  const content = h("form", { novalidate: true },
    h("h2", { id: `dialog-title-${number}` }, action.title),
    h("section", { class: "effects" }, h("h3", {}, "What happens"), effects.element),
    fields.length > 0 && form.element,
    commands.element,
    h("div", { class: "buttons" }, h("div", { class: "state" }, problem, progress), cancel, primary));
  const dialog = h("dialog", { class: "action-dialog", "aria-labelledby": `dialog-title-${number}` }, content);

  content.addEventListener("submit", async (submit) => {
    submit.preventDefault();
    if (isBusy() || !form.check()) return;
    primary.setAttribute("aria-busy", "true");
    replace(problem);
    replace(progress, "Sent; waiting for the server…");
    try {
      const outcome = await sender.send(form.values());
      replace(progress, "Decided; waiting for the page to show it…");
      await confirmed(outcome);
      if (dialog.open) showOutcome(dialog, action, outcome, number);
    } catch (error) {
      replace(progress);
      problem.textContent = visibleLines(error.message);
    } finally {
      primary.removeAttribute("aria-busy");
    }
  });
  dialog.addEventListener("cancel", (event) => isBusy() && event.preventDefault());
  show(dialog, opener);
  if (isAsking) form.focus();
  refresh(form.values());
  effects.update(form.values());
  return dialog;
}

/** Shows a dialog until it is closed. The focus then returns to the element that opened it, also if it was drawn again. */
function show(dialog, opener) {
  const close = () => dialog.close();
  window.addEventListener("hashchange", close);
  dialog.addEventListener("close", () => {
    window.removeEventListener("hashchange", close);
    dialog.remove();
    if (document.activeElement === document.body) (document.getElementById(opener) ?? document.getElementById("main")).focus();
  });
  document.body.append(dialog);
  dialog.showModal();
}

/** Sends the request of an action. The same request keeps its key, so that a retry is carried out once. */
export function createSender(action) {
  let [last, key] = ["", ""];
  return {
    send(values) {
      const request = action.request(values);
      const text = JSON.stringify(request);
      if (text !== last) [last, key] = [text, newKey()];
      const { method, path, body, parameters } = request;
      return change(method, path, body, { ...parameters, cluster: model.cluster }, key);
    },
  };
}

/** Waits until the stream has told what the outcome contains and the model has read it, at most some seconds. */
export async function confirmed(outcome) {
  const number = outcome.entry ?? -Infinity;
  const isLogged = () => number === -Infinity || model.entries.some((entry) => entry.cluster === model.cluster && entry.number >= number);
  const isKnown = ({ id }) => model.events.has(id) || model.histories.byId.get(id)?.ended;
  const isTold = () => isLogged() && (outcome.events ?? []).every(isKnown);
  await until(isTold, CONFIRM_MILLIS);
  if (outcome.changes > 0) await until((topics) => DATA_TOPICS.some((topic) => topics.has(topic)), READ_MILLIS);
}

/** Waits until a condition holds after a change of the model, or for some time. */
function until(holds, millis) {
  return new Promise((resolve) => {
    const finish = () => (clearTimeout(timer), end(), resolve());
    const timer = setTimeout(finish, millis);
    const end = model.subscribe((topics) => holds(topics) && finish());
    if (holds(new Set())) finish();
  });
}

/** A list of consequences that follows the form. A slow answer for older values is not shown. */
function effectsView(action) {
  const element = h("ul", { "aria-live": "polite" });
  let [wanted, timer, last] = [0, 0, ""];
  const draw = async (values, mine) => {
    let texts;
    try {
      texts = await action.effects(values);
    } catch (error) {
      texts = error.message.split("\n").map((line) => h("span", { class: "error" }, line));
    }
    if (mine === wanted) replace(element, texts.filter(Boolean).map((text) => h("li", {}, text)));
  };
  return {
    element,
    update(values) {
      const text = JSON.stringify(values);
      if (text === last) return;
      const mine = ++wanted;
      clearTimeout(timer);
      timer = setTimeout(() => draw(values, mine), last ? EFFECTS_PAUSE : 0);
      last = text;
    },
  };
}

function showOutcome(dialog, action, outcome, number) {
  const ok = button("OK", () => dialog.close(), { class: "primary" });
  replace(dialog,
    h("h2", { id: `dialog-title-${number}` }, outcome.changes === 0 ? "Nothing has changed" : action.past),
    outcomeView(outcome),
    h("div", { class: "buttons" }, ok));
  ok.focus();
}

const eventLink = (event) => h("a", { href: `#/event/${event.id}` }, eventTitle(event));

/** One piece of work that was decided: its events, and its start. */
function startText({ work, progress, not_before, unapproved, unapproved_others: others, notice, remedy }, events) {
  const isOwn = (event) => event.work === work;
  const own = events.some(isOwn) ? events : [...model.events.values()];
  const links = own.filter(isOwn).slice(0, EVENTS_MAX).flatMap((event) => [", ", eventLink(event)]).slice(1);
  const notBefore = parseTime(not_before);
  return [
    links.length ? [links, ": ", progress] : capital(progress),
    notBefore !== null && `, not before ${dayTime(notBefore, model.now())} (in ${countdown(notBefore - model.now())})`,
    unapproved?.length > 0 && `. Not approved by ${list(unapproved)}${others ? ` and ${others} others` : ""}`,
    notice === "none" && !links.length && ". There is no event for this",
    remedy && `. ${remedy}`, ".",
  ];
}

/** What was decided: events as links, and the start of each piece of work. */
export function outcomeView({ events = [], starts = [], unnotified = [], rollouts = [], staying = [], changes }) {
  const others = events.filter(({ work }) => !starts.some((start) => start.work === work)).slice(0, EVENTS_MAX);
  const rows = [
    ...starts.map((start) => startText(start, events)),
    ...others.map((event) => [eventLink(event), `: ${event.progress}.`]),
    unnotified.length > 0 && `No notice to ${list(unnotified)}: not enrolled, because no VM there polls for events.`,
    ...rollouts.map((id) => [h("a", { href: "#/rollouts" }, `Rollout ${id}`), " is planned."]),
    staying.length > 0 && `These VMs do not return: ${list(staying, 10)}.`,
    changes === 0 && "It was already so.",
  ].filter(Boolean);
  return rows.length > 0 && h("ul", { class: "outcome" }, rows.map((row) => h("li", {}, row)));
}
