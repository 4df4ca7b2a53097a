// Stories: choose or write one, run it in the rules of the server, and step through what happened.

import { get, send } from "./api.js";
import { diffLines } from "./diff.js";
import { actionButton, button, byId, h, hasModifier, options, preformatted, quiet, replace } from "./dom.js";
import { clamp, count, fullTime, oneLine, parseTime } from "./format.js";

const OWN = `host h1
vm solo on h1
poll solo
at 10s  restart solo
expect  solo Scheduled
at 5m   approve solo by solo
await   solo nothing within 5m
expect  solo boots 2
`;

// The text and the last run stay while other pages are shown.
const kept = { name: "", text: "", run: null, step: 0, library: null, isEditing: true };

export function open(main) {
  const chooser = h("div", { class: "story-choice" });
  const editor = h("section", { class: "story-text" });
  const player = h("section", { class: "story-player", "aria-label": "Run of the story" });
  replace(
    main,
    h("h1", {}, "Stories"),
    h("p", { class: "lead" }, "A story sets up a fleet, lets things happen to it at given times, and states what its machines must "
      + "see. It runs on a clock of its own, in an instant, and does not touch the fleet of this server."),
    chooser,
    h("div", { class: "story-columns" }, editor, player),
  );
  let isOpen = true;

  const drawChooser = () => {
    const names = [["", "a story of your own"], ...kept.library.map(({ name, title }) => [name, `${name}: ${title}`])];
    replace(chooser, h("label", { for: "story-name" }, "Story"),
      h("select", { id: "story-name", on: { change: (change) => chosen(change.target.value) } }, options(names, kept.name)),
      actionButton("Run", runStory, { id: "story-run", class: "primary" }),
      !kept.isEditing && button("Edit", startEditing, { id: "story-edit" }));
  };

  const chosen = (name) => {
    const story = kept.library.find((one) => one.name === name);
    Object.assign(kept, { name, text: story?.text ?? OWN, isEditing: true });
    draw();
  };

  /** A story of the library that is changed is one of your own. */
  const edited = (text) => {
    Object.assign(kept, { text, name: "" });
    byId("story-name").value = "";
  };

  const startEditing = () => {
    kept.isEditing = true;
    draw();
    byId("story-editor")?.focus();
  };

  const runStory = async () => {
    const { text } = kept;
    const run = await send("POST", "/v1/stories/run", { story: text });
    Object.assign(kept, { run, text, step: 0, isEditing: false });
    if (!isOpen) return;
    draw();
    byId(run.steps.length ? "story-next" : "story-error-line")?.focus();
  };

  const drawText = () => {
    if (kept.isEditing) {
      return replace(editor, h("textarea", {
        id: "story-editor", spellcheck: "false", "aria-label": "Text of the story", value: kept.text,
        rows: clamp(kept.text.split("\n").length + 1, 12, 30), on: { input: (event) => edited(event.target.value) },
      }));
    }
    // Some lines are statements that the run has carried out: they can be chosen.
    const line = (text, index) => {
      const number = index + 1;
      const first = kept.run.steps.findIndex((step) => step.line === number);
      const code = h("code", {}, text || " ");
      return h("li", { id: `story-line-${number}`, class: kept.run.error?.line === number && "wrong" },
        h("span", { class: "line-number", "aria-hidden": "true" }, number),
        first < 0 ? code : button(code, () => go(first), { class: "line", tabindex: "-1" }));
    };
    const lines = kept.text.replace(/\n$/, "").split("\n").map(line);
    replace(editor, h("ol", { class: "story-lines", tabindex: "0", "aria-label": "Text of the story" }, lines));
  };

  const go = (step) => {
    kept.step = clamp(step, 0, kept.run.steps.length - 1);
    drawStep();
  };

  /** Marks a line of the text. Only the list scrolls, not the page. */
  const markLine = (number) => {
    editor.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const line = byId(`story-line-${number}`);
    if (!line) return;
    line.setAttribute("aria-current", "step");
    const list = line.parentElement;
    const top = line.offsetTop - list.offsetTop;
    const isShown = top >= list.scrollTop && top + line.offsetHeight <= list.scrollTop + list.clientHeight;
    if (!isShown) list.scrollTop = top - list.clientHeight / 2;
  };

  const drawPlayer = () => {
    if (kept.isEditing) return replace(player, quiet("Run the story to step through it."));
    const { steps, error } = kept.run;
    if (!steps.length) {
      replace(player, result(kept.run));
      return void (error && markLine(error.line));
    }
    const last = steps.length - 1;
    const jump = (id, label, title, target) => button(label, () => go(target()), { id: `story-${id}`, title });
    replace(player, result(kept.run), h("div", { class: "story-bar", role: "group", "aria-label": "Steps" },
      jump("first", "First", "First step (Home)", () => 0),
      jump("previous", "◂ Previous", "Previous step (left arrow)", () => kept.step - 1),
      jump("next", "Next ▸", "Next step (right arrow)", () => kept.step + 1),
      jump("last", "Last", "Last step (End)", () => last),
      h("input", { type: "range", id: "story-slider", min: 0, max: last, step: 1, "aria-label": "Step",
        on: { input: (event) => go(Number(event.target.value)) } })), h("div", { id: "story-step" }));
    drawStep();
  };

  const drawStep = () => {
    const { steps, events, machines, result: outcome } = kept.run;
    const [index, last, step] = [kept.step, steps.length - 1, steps[kept.step]];
    markLine(step.line);
    const slider = byId("story-slider");
    slider.value = index;
    slider.setAttribute("aria-valuetext", `step ${index + 1} of ${last + 1}, after ${step.elapsed}`);
    for (const [id, end] of [["first", 0], ["previous", 0], ["next", last], ["last", last]]) {
      byId(`story-${id}`).setAttribute("aria-disabled", index === end);
    }
    const checks = step.expectations.map(({ expected, holds, found }) =>
      h("li", { class: holds ? "good" : "error" }, holds ? `✓ ${expected}` : `✕ ${expected}: found ${found}`));
    const isEnd = index === last;
    replace(
      byId("story-step"),
      h("p", { class: "story-when", role: "status" },
        h("b", { class: "number" }, `Step ${index + 1} of ${last + 1}`), " · ",
        h("span", { title: `${fullTime(parseTime(step.at))} on the clock of the story` }, `${step.elapsed} after the beginning`),
        ` · line ${step.line}`),
      h("pre", { class: "story-statement" }, step.statement),
      checks.length > 0 && h("ul", { class: "story-checks" }, checks),
      step.text.length > 0 && h("pre", { class: "story-happened" }, step.text.map((line) => h("span", { class: "same" }, line || " "))),
      !step.text.length && !checks.length && quiet("No document changes."),
      documentCards(documentsAt(steps, index)),
      events.length > 0 && h("details", { class: "story-names" }, h("summary", { id: "story-names" }, "Ids of the events"),
        h("ul", {}, events.map((id, number) => h("li", {}, `E${number + 1}: `, h("code", {}, id))))),
      isEnd && outcome === "passed" && h("h2", {}, "In the end"),
      isEnd && h("ul", { class: "story-checks" }, machines.map((line) => h("li", {}, line))),
    );
  };

  const result = ({ result: outcome, steps, error }) => {
    const checked = steps.flatMap((step) => step.expectations).length;
    const passed = `✓ Passed: ${count(steps.length, "step")}, ${count(checked, "expectation")} met`;
    if (outcome === "passed") return h("p", { class: "story-result good", role: "status" }, passed);
    const jump = button(`line ${error.line}, column ${error.column}`, () => jumpTo(error.line),
      { id: "story-error-line", class: "plain" });
    return h("div", { class: "story-result", role: "alert" },
      h("p", { class: "error" }, outcome === "stopped" ? "■ Stopped at " : "✕ Failed at ", jump, `: ${error.message}`),
      preformatted(`${error.text}\n${" ".repeat(Math.max(0, error.column - 1))}${"^".repeat(Math.max(1, error.width))}`),
      error.expected && h("p", {}, `Expected: ${error.expected}. Found: ${error.found}.`),
      error.hint && h("p", { class: "hint" }, error.hint));
  };

  const jumpTo = (line) => {
    const step = kept.run.steps.findLastIndex((one) => one.line === line);
    if (step >= 0) go(step);
    else markLine(line);
    byId(`story-line-${line}`)?.scrollIntoView({ block: "nearest" });
  };

  const draw = () => (drawChooser(), drawText(), drawPlayer());

  const keys = (event) => {
    const isInput = event.target.matches?.("input, textarea, select, dialog *");
    if (isInput || hasModifier(event) || event.shiftKey || kept.isEditing || !kept.run.steps.length) return;
    const target = { ArrowLeft: kept.step - 1, ArrowRight: kept.step + 1, Home: 0, End: kept.run.steps.length - 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    go(target);
  };
  document.addEventListener("keydown", keys);

  const readLibrary = async () => {
    try {
      kept.library ??= (await get("/v1/stories")).items;
      if (!kept.text) chosen(kept.library[0]?.name ?? "");
      else draw();
    } catch (problem) {
      replace(chooser, h("p", { class: "error" }, oneLine(problem)));
    }
  };

  readLibrary();
  return {
    close() {
      isOpen = false;
      document.removeEventListener("keydown", keys);
    },
  };
}

/**
 * The documents of all tenants after a step: [{ tenant, before, after, isChanged }], in the order of their first
 * appearance. A document that no longer exists is null; its tenant is left out after the step in which it went.
 */
export function documentsAt(steps, index) {
  const all = new Map();
  steps.slice(0, index + 1).forEach(({ documents }) => {
    for (const [tenant, { after }] of all) {
      if (after === null) all.delete(tenant);
      else all.set(tenant, { tenant, before: after, after, isChanged: false });
    }
    for (const { tenant, document: after = null } of documents) {
      all.set(tenant, { tenant, before: all.get(tenant)?.before ?? null, after, isChanged: true });
    }
  });
  return [...all.values()];
}

/** A JSON text with one member per line; another text, or null, as it is. */
export function spread(text) {
  try {
    return text && JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function documentCards(documents) {
  if (!documents.length) return quiet("No tenant has read an event yet.");
  const signs = { same: "  ", added: "+ ", removed: "− " };
  const card = ({ tenant, before, after, isChanged }) => {
    const isNew = before === null;
    const title = after === null ? "the tenant is gone" : !isChanged ? "unchanged" : isNew ? "first document" : "changed in this step";
    const line = ({ kind, text }) => h("span", { class: isNew ? "same" : kind }, isChanged && !isNew && signs[kind], text);
    const changed = isChanged ? " changed" : "";
    return h("section", { class: `story-document${changed}` },
      h("h2", {}, tenant, " ", h("span", { class: `tag${changed}` }, isChanged && "● ", title)),
      h("pre", { tabindex: "0", "aria-label": `Document of ${tenant}` }, diffLines(spread(before), spread(after)).map(line)));
  };
  return h("div", { class: "story-documents" }, documents.map(card));
}
