// The dialog of an action: consequences, fields, the same as commands, the request, and what was decided.

import { change, newKey } from "./api.js";
import { commandsView } from "./commands.js";
import { h, replace, visibleLines } from "./dom.js";
import { createForm } from "./form.js";
import { clockTime, countdown, fullTime, list, parseTime } from "./format.js";
import { model } from "./model.js";

const CONFIRM_MILLIS = 6000;
const READ_MILLIS = 500;
const DATA_TOPICS = ["all", "events", "machines", "hosts", "rollouts", "scaleSets", "clusters"];
const EFFECTS_PAUSE = 250;
const EVENTS_MAX = 20;

let dialogs = 0;

/**
 * Opens a dialog. `action` has: `title` (a sentence), `button`, `isDangerous`, `fields` (see form.js), `effects(values)` (consequences: texts or
 * elements, or a promise of them), `words(values)` (of the command line), `request(values)` ({ method, path, body, parameters }), `past`
 * (a sentence for afterwards) and optionally `after(outcome)` (further elements for afterwards).
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
  const form = createForm(action.fields ?? [], refresh);
  const hasFields = (action.fields ?? []).length > 0;
  const isAsking = hasFields && action.fields[0].type !== "check";
  const cancel = h("button", { type: "button", autofocus: !isAsking && action.isDangerous, on: { click: () => dialog.close() } }, "Cancel");
  const primary = h("button", {
    type: "submit", class: action.isDangerous
      ? "primary danger"
      : "primary", "data-write": true, autofocus: !isAsking && !action.isDangerous,
  }, action.button);
  const content = h("form", { novalidate: true },
    h("h2", { id: `dialog-title-${number}` }, action.title),
    h("section", { class: "effects" }, h("h3", {}, "What happens"), effects.element),
    hasFields && form.element,
    commands.element,
    h("div", { class: "buttons" }, h("div", { class: "state" }, problem, progress), cancel, primary));
  const dialog = h("dialog", { class: "action-dialog", "aria-labelledby": `dialog-title-${number}` }, content);

  content.addEventListener("submit", async (submit) => {
    submit.preventDefault();
    if (primary.getAttribute("aria-busy") === "true" || !form.check()) return;
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
  dialog.addEventListener("cancel", (event) => primary.getAttribute("aria-busy") === "true" && event.preventDefault());
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
    async send(values) {
      const { method, path, body, parameters } = action.request(values);
      const text = JSON.stringify([method, path, body, parameters]);
      if (text !== last) [last, key] = [text, newKey()];
      return change(method, path, body, { ...parameters, cluster: model.cluster }, key);
    },
  };
}

/** Waits until the stream has told what the outcome contains and the model has read it, at most some seconds. */
export async function confirmed(outcome) {
  const isTold = () => {
    const isLogged = outcome.entry === undefined || outcome.entry === null ||
      model.entries.some((entry) => entry.cluster === model.cluster && entry.number >= outcome.entry);
    return isLogged && (outcome.events ?? []).every(({ id }) => model.events.has(id) || model.histories.byId.get(id)?.ended);
  };
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
      const text = h("span", { class: "error" });
      text.textContent = visibleLines(error.message);
      texts = [text];
    }
    if (mine === wanted) replace(element, texts.flat().filter(Boolean).map((text) => h("li", {}, text)));
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
  const ok = h("button", { type: "button", class: "primary", on: { click: () => dialog.close() } }, "OK");
  replace(dialog,
    h("h2", { id: `dialog-title-${number}` }, outcome.changes === 0 ? "Nothing has changed" : action.past),
    outcomeView(outcome),
    action.after?.(outcome),
    h("div", { class: "buttons" }, ok));
  ok.focus();
}

const timeText = (millis) => (millis - model.now() < 86_400_000 ? clockTime : fullTime)(millis);

/** What was decided: events as links, and the start of each piece of work. */
export function outcomeView(outcome) {
  const rows = [];
  const events = outcome.events ?? [];
  const link = (event) => h("a", { href: `#/event/${event.id}` }, `${event.kind} of ${list(event.resources)}`);
  for (const start of outcome.starts ?? []) {
    const own = events.filter((event) => event.work === start.work);
    const known = own.length ? own : [...model.events.values()].filter((event) => event.work === start.work);
    const names = known.slice(0, EVENTS_MAX).flatMap((event, index) => [index > 0 && ", ", link(event)]);
    const notBefore = parseTime(start.not_before);
    rows.push([
      names.length ? [names, ": ", start.progress] : `${start.progress.charAt(0).toUpperCase()}${start.progress.slice(1)}`,
      notBefore !== null && `, not before ${timeText(notBefore)} (in ${countdown(notBefore - model.now())})`,
      start.unapproved?.length
        ? `. Not approved by ${list(start.unapproved)}${start.unapproved_others ? ` and ${start.unapproved_others} others` : ""}`
        : "",
      start.notice === "none" && !names.length ? ". There is no event for this" : "",
      start.remedy ? `. ${start.remedy}` : "", ".",
    ]);
  }
  const isShown = new Set((outcome.starts ?? []).map(({ work }) => work));
  for (
    const event of events.filter(({ work }) => !isShown.has(work)).slice(0, EVENTS_MAX)
  ) rows.push([link(event), `: ${event.progress}.`]);
  if (outcome.unnotified?.length) rows.push(
    `No notice to ${list(outcome.unnotified)}: not enrolled, because no VM there polls for events.`
  );
  for (const id of outcome.rollouts ?? []) rows.push([h("a", { href: "#/rollouts" }, `Rollout ${id}`), " is planned."]);
  if (outcome.staying?.length) rows.push(`These VMs do not return: ${list(outcome.staying, 10)}.`);
  if (outcome.changes === 0) rows.push("It was already so.");
  return rows.length ? h("ul", { class: "outcome" }, rows.map((row) => h("li", {}, row))) : null;
}
