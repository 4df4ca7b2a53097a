// Stories: choose or write one, run it in the rules of the server, and step through what happened.

import { get, send } from "./api.js";
import { diffLines } from "./diff.js";
import { actionButton, h, preformatted, replace } from "./dom.js";
import { count, fullTime, parseTime } from "./format.js";

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
const kept = { name: "", text: "", ranText: "", run: null, step: 0, library: null, isEditing: true };

export function open(main) {
  const chooser = h("div", { class: "story-choice" });
  const editor = h("section", { class: "story-text" });
  const player = h("section", { class: "story-player", "aria-label": "Run of the story" });
  replace(
    main,
    h("h1", {}, "Stories"),
    h("p", { class: "lead" }, "A story is a short text that sets up a fleet, lets things happen to it at given times, and states "
      + "what its machines must see; it runs on a clock of its own, in an instant, and does not touch the fleet of this server."),
    chooser,
    h("div", { class: "story-columns" }, editor, player),
  );
  let isOpen = true;

  const drawChooser = () => {
    const option = ({ name, title }) => h("option", { value: name, selected: name === kept.name }, `${name}: ${title}`);
    const choose = h("select", { id: "story-name", on: { change: (change) => chosen(change.target.value) } },
      h("option", { value: "", selected: kept.name === "" }, "a story of your own"), (kept.library ?? []).map(option));
    const run = actionButton("Run", runStory, { id: "story-run", class: "primary" });
    const edit = h("button", { type: "button", id: "story-edit", on: { click: startEditing } }, "Edit");
    replace(chooser, h("label", { for: "story-name" }, "Story"), choose, run, !kept.isEditing && edit);
  };

  const chosen = (name) => {
    const story = kept.library.find((one) => one.name === name);
    Object.assign(kept, { name, text: story?.text ?? OWN, run: null, step: 0, isEditing: true });
    draw();
  };

  /** A story of the library that is changed is one of your own. */
  const edited = (text) => {
    Object.assign(kept, { text, name: "" });
    document.getElementById("story-name").value = "";
  };

  const startEditing = () => {
    kept.isEditing = true;
    draw();
    document.getElementById("story-editor")?.focus();
  };

  const runStory = async () => {
    const text = kept.text;
    const run = await send("POST", "/v1/stories/run", { story: text });
    Object.assign(kept, { run, ranText: text, step: 0, isEditing: false });
    if (!isOpen) return;
    draw();
    document.getElementById(run.steps.length ? "story-next" : "story-error-line")?.focus();
  };

  const drawText = () => {
    if (kept.isEditing) {
      const input = h("textarea", {
        id: "story-editor", spellcheck: "false", "aria-label": "Text of the story",
        rows: Math.min(30, Math.max(12, kept.text.split("\n").length + 1)),
        on: { input: (event) => edited(event.target.value) },
      });
      input.value = kept.text;
      replace(editor, input);
      return;
    }
    // Some lines are statements that the run has carried out: they can be chosen.
    const ran = new Map();
    kept.run.steps.forEach(({ line }, index) => ran.has(line) || ran.set(line, index));
    const line = (text, index) => {
      const [number, first] = [index + 1, ran.get(index + 1)];
      const code = h("code", {}, text || " ");
      return h("li", { id: `story-line-${number}`, class: kept.run.error?.line === number ? "wrong" : null },
        h("span", { class: "line-number", "aria-hidden": "true" }, number),
        first === undefined ? code : h("button", { type: "button", class: "line", tabindex: "-1", on: { click: () => go(first) } }, code));
    };
    const lines = kept.ranText.replace(/\n$/, "").split("\n").map(line);
    replace(editor, h("ol", { class: "story-lines", tabindex: "0", "aria-label": "Text of the story" }, lines));
  };

  const go = (step) => {
    kept.step = Math.min(Math.max(0, step), kept.run.steps.length - 1);
    drawStep();
  };

  /** Marks a line of the text. Only the list scrolls, not the page. */
  const markLine = (number) => {
    editor.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const line = document.getElementById(`story-line-${number}`);
    line?.setAttribute("aria-current", "step");
    const list = line?.parentElement;
    if (!list) return;
    const top = line.offsetTop - list.offsetTop;
    const isShown = top >= list.scrollTop && top + line.offsetHeight <= list.scrollTop + list.clientHeight;
    if (!isShown) list.scrollTop = top - list.clientHeight / 2;
  };

  const drawPlayer = () => {
    if (!kept.run || kept.isEditing) {
      replace(player, h("p", { class: "quiet" }, "Run the story to step through it."));
      return;
    }
    const last = kept.run.steps.length - 1;
    const button = (id, label, title, target) =>
      h("button", { type: "button", id: `story-${id}`, title, on: { click: () => go(target()) } }, label);
    const slide = (event) => go(Number(event.target.value));
    const slider = h("input", {
      type: "range", id: "story-slider", min: 0, max: Math.max(0, last), step: 1, "aria-label": "Step", on: { input: slide },
    });
    const bar = h("div", { class: "story-bar", role: "group", "aria-label": "Steps" },
      button("first", "First", "First step (Home)", () => 0),
      button("previous", "◂ Previous", "Previous step (left arrow)", () => kept.step - 1),
      button("next", "Next ▸", "Next step (right arrow)", () => kept.step + 1),
      button("last", "Last", "Last step (End)", () => last),
      slider);
    replace(player, result(kept.run), last >= 0 && bar, last >= 0 && h("div", { id: "story-step" }));
    if (last >= 0) drawStep();
    else if (kept.run.error) markLine(kept.run.error.line);
  };

  const drawStep = () => {
    const { steps, events, machines, result: outcome } = kept.run;
    const [index, last, step] = [kept.step, steps.length - 1, steps[kept.step]];
    markLine(step.line);
    const slider = document.getElementById("story-slider");
    slider.value = index;
    slider.setAttribute("aria-valuetext", `step ${index + 1} of ${last + 1}, after ${step.elapsed}`);
    for (const id of ["first", "previous"]) document.getElementById(`story-${id}`).setAttribute("aria-disabled", index === 0);
    for (const id of ["next", "last"]) document.getElementById(`story-${id}`).setAttribute("aria-disabled", index === last);
    const check = ({ expected, holds, found }) =>
      h("li", { class: holds ? "good" : "error" }, holds ? `✓ ${expected}` : `✕ ${expected}: found ${found}`);
    const checks = step.expectations.map(check);
    const isNothing = !step.text.length && !checks.length;
    replace(
      document.getElementById("story-step"),
      h("p", { class: "story-when", role: "status" },
        h("b", { class: "number" }, `Step ${index + 1} of ${last + 1}`), " · ",
        h("span", { title: `${fullTime(parseTime(step.at))} on the clock of the story` }, `${step.elapsed} after the beginning`),
        ` · line ${step.line}`),
      h("pre", { class: "story-statement" }, step.statement),
      checks.length > 0 && h("ul", { class: "story-checks" }, checks),
      step.text.length > 0 && h("pre", { class: "story-happened" }, step.text.map((line) => h("span", { class: "same" }, line || " "))),
      isNothing && h("p", { class: "quiet" }, "No document changes."),
      documentCards(documentsAt(steps, index)),
      events.length > 0 && h("details", { class: "story-names" }, h("summary", { id: "story-names" }, "Ids of the events"),
        h("ul", {}, events.map((id, number) => h("li", {}, `E${number + 1}: `, h("code", {}, id))))),
      index === last && outcome === "passed" && h("h2", {}, "In the end"),
      index === last && h("ul", { class: "story-checks" }, machines.map((line) => h("li", {}, line))),
    );
  };

  const result = ({ result: outcome, steps, error }) => {
    const checked = steps.reduce((sum, step) => sum + step.expectations.length, 0);
    const passed = `✓ Passed: ${count(steps.length, "step")}, ${count(checked, "expectation")} met`;
    if (outcome === "passed") return h("p", { class: "story-result good", role: "status" }, passed);
    const jump = h("button", { type: "button", id: "story-error-line", class: "plain", on: { click: () => jumpTo(error.line) } },
      `line ${error.line}, column ${error.column}`);
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
    document.getElementById(`story-line-${line}`)?.scrollIntoView({ block: "nearest" });
  };

  const draw = () => (drawChooser(), drawText(), drawPlayer());

  const keys = (event) => {
    const isInput = event.target.matches?.("input, textarea, select, dialog *");
    const isOther = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;
    if (isInput || isOther || kept.isEditing || !kept.run?.steps.length) return;
    const target = { ArrowLeft: kept.step - 1, ArrowRight: kept.step + 1, Home: 0, End: kept.run.steps.length - 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    go(target);
  };
  document.addEventListener("keydown", keys);

  const readLibrary = async () => {
    try {
      kept.library = (await get("/v1/stories")).items;
      if (!kept.text) chosen(kept.library[0]?.name ?? "");
      else draw();
    } catch (problem) {
      replace(chooser, h("p", { class: "error" }, problem.message.replace(/\s*\n\s*/g, "; ")));
      replace(player);
    }
  };

  if (kept.library) draw();
  else readLibrary();
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
  const documents = new Map();
  for (const step of steps.slice(0, index)) {
    for (const { tenant, document } of step.documents) {
      if (document === undefined) documents.delete(tenant);
      else documents.set(tenant, document);
    }
  }
  const all = new Map([...documents].map(([tenant, text]) => [tenant, { tenant, before: text, after: text, isChanged: false }]));
  for (const { tenant, document } of steps[index].documents) {
    all.set(tenant, { tenant, before: documents.get(tenant) ?? null, after: document ?? null, isChanged: true });
  }
  return [...all.values()];
}

/** A JSON text with one member per line; another text as it is. */
export function spread(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function documentCards(documents) {
  if (!documents.length) return h("p", { class: "quiet" }, "No tenant has read an event yet.");
  const signs = { same: "  ", added: "+ ", removed: "− " };
  const card = ({ tenant, before, after, isChanged }) => {
    const isNew = before === null;
    const change = isNew ? "first document" : "changed in this step";
    const title = after === null ? "the tenant is gone" : isChanged ? change : "unchanged";
    const lines = diffLines(isNew ? "" : spread(before), after === null ? "" : spread(after));
    const line = ({ kind, text }) => h("span", { class: isNew ? "same" : kind }, isChanged && !isNew ? signs[kind] : "", text);
    return h("section", { class: isChanged ? "story-document changed" : "story-document" },
      h("h2", {}, tenant, " ", h("span", { class: isChanged ? "tag changed" : "tag" }, isChanged && "● ", title)),
      h("pre", { tabindex: "0", "aria-label": `Document of ${tenant}` }, lines.map(line)));
  };
  return h("div", { class: "story-documents" }, documents.map(card));
}
