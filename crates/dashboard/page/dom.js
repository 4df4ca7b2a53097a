// Elements from data. Everything that comes from outside becomes text, never markup.

import { eventTitle, fullTime, relative } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const LENGTH_MAX = 512;

// Characters that change the direction of text or are not visible.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\uffff]/gu;

/** The text with invisible characters made visible, and cut if it is long. */
export function visible(value, lengthMax = LENGTH_MAX) {
  let text = String(value ?? "");
  const length = text.length;
  if (length > lengthMax) text = `${text.slice(0, lengthMax)}… (${length - lengthMax} more characters)`;
  return text.replace(HIDDEN, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** The same for text of several lines, such as an error with a hint. */
export function visibleLines(value) {
  return String(value ?? "").split("\n").map((line) => visible(line.trim())).join("\n");
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return element;
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") listen(element, value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") element[name] = value;
    else element.setAttribute(name, value === true ? "" : visible(value, 4096));
  }
  return append(element, children);
}

/** Calls handlers of events: `listen(element, { click: … })`. */
export function listen(element, handlers) {
  for (const [event, handler] of Object.entries(handlers)) element.addEventListener(event, handler);
}

/** True for a key that is meant for the browser. */
export const hasModifier = (key) => key.ctrlKey || key.metaKey || key.altKey;

export const byId = (id) => document.getElementById(id);

/** An HTML element: `h("a", { href, on: { click } }, "text", …)`. */
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function s(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

/** Changes the content of an element. The focus stays on its element, or goes to the new one with the same `id`. */
function keepFocus(element, change) {
  const focused = element.contains(document.activeElement) ? document.activeElement : null;
  change();
  if (!focused || document.activeElement === focused) return;
  (focused.isConnected ? focused : byId(focused.id))?.focus({ preventScroll: true });
}

/** Replaces the content of an element. The focus stays on the element with the same `id`. */
export function replace(element, ...children) {
  const fragment = append(document.createDocumentFragment(), children);
  keepFocus(element, () => element.replaceChildren(fragment));
}

const rowsOf = new WeakMap(); // the rows of a list by key: { element, signature }

/**
 * Shows items, each with a `key`, as rows of a list; of several with the same key the first. `content(item)` is everything that
 * `render(item)` uses: a row with the same content stays in the document, which saves the browser its style and its layout.
 */
export function replaceRows(list, items, { content, render }) {
  const [before, after] = [rowsOf.get(list), new Map()];
  for (const item of items) {
    if (after.has(item.key)) continue;
    const signature = JSON.stringify(content(item));
    const known = before?.get(item.key);
    after.set(item.key, known?.signature === signature ? known : { element: render(item), signature });
  }
  rowsOf.set(list, after);
  const rows = new Set([...after.values()].map(({ element }) => element));
  keepFocus(list, () => {
    // Rows that stay move only if their order has changed.
    for (const row of [...list.children]) if (!rows.has(row)) row.remove();
    let place = list.firstChild;
    for (const row of rows) {
      if (row === place) place = place.nextSibling;
      else list.insertBefore(row, place);
    }
  });
}

/** Preformatted text, such as a JSON document. Line breaks and tabs stay. */
export function preformatted(text, properties) {
  const lines = String(text ?? "").split("\n").map((line) => visible(line, 4096));
  const element = document.createElement("pre");
  element.textContent = lines.join("\n");
  element.tabIndex = 0;
  return fill(element, properties, []);
}

/** A button. While its action runs it is disabled; an error is shown beside it. */
export function actionButton(label, action, properties = {}) {
  const error = h("span", { class: "error", role: "alert" });
  const button = h("button", { type: "button", ...properties }, label);
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-busy") === "true") return;
    button.setAttribute("aria-busy", "true");
    error.textContent = "";
    try {
      await action(button);
    } catch (problem) {
      error.textContent = visibleLines(problem.message);
    } finally {
      button.removeAttribute("aria-busy");
    }
  });
  return h("span", { class: "action" }, button, error);
}

/** A button that acts at once, and never fails. */
export function button(label, click, properties) {
  return h("button", { type: "button", ...properties, on: { click } }, label);
}

/** A paragraph that stands back, and the same within a line. */
export const quiet = (...children) => h("p", { class: "quiet" }, children);
export const quietSpan = (...children) => h("span", { class: "quiet" }, children);

/** The options of a select: values, or pairs of a value and a label. */
export function options(values, selected) {
  const option = ([value, label = value]) => h("option", { value, selected: value === selected }, label);
  return values.map((one) => option([one].flat()));
}

/** The head of a table. A column is a name and optionally a title, or false. */
export function headings(columns) {
  const heading = ([name, title]) => h("th", { scope: "col", title }, name);
  return h("thead", {}, h("tr", {}, columns.filter(Boolean).map((column) => heading([column].flat()))));
}

/** A part of the page that scrolls by itself, also with the keyboard. */
export function scrollable(label, ...children) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, children);
}

/** A time in relation to now. `tickTimes` keeps it current. */
export function moment(millis, now, properties) {
  return h("time", { ...properties, "data-time": millis, title: fullTime(millis) }, relative(millis, now));
}

/** Makes the moments in an element current. */
export function tickTimes(element, now) {
  for (const time of element.querySelectorAll("[data-time]")) setText(time, relative(Number(time.dataset.time), now));
}

/** Changes the text of an element only if it is another one, which keeps a selection. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The shape of a state, drawn, with its name for screen readers. */
export function mark(state) {
  return h("span", { class: `mark ${state.id}`, title: state.name }, shape(state.id), h("span", { class: "sr" }, state.name));
}

/** A row of a list: an event or its history, its state, a text, and more. */
export function eventRow(event, state, text, ...more) {
  const link = h("a", { class: "what", href: `#/event/${event.id}` }, eventTitle(event));
  return h("li", { class: state.id }, mark(state), link, h("span", { class: "why quiet" }, text), more);
}

const BOX = "M5 3h10a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2z";
const CLOCK = { d: "M10 6v4.5l3 1.8", class: "cut" };

/** The shape of each state, in a box of 20 by 20: paths, and the classes that say how they are drawn. */
export const SHAPES = {
  idle: [{ d: BOX, class: "outline" }],
  scheduled: [{ d: BOX, class: "solid" }, CLOCK],
  soon: [{ d: BOX, class: "solid" }, CLOCK, { d: "M.5.5h19v19H.5z", class: "ring" }],
  approved: [{ d: BOX, class: "outline" }, { d: "M6 10.2l3 3 5.2-6.2", class: "line" }],
  started: [{ d: "M10 1.5 18.5 10 10 18.5 1.5 10z", class: "solid" }],
  failed: [{ d: "M4 4l12 12M16 4 4 16", class: "line thick" }],
  stopped: [{ d: BOX, class: "outline dashed" }],
  done: [{ d: "M14 10a4 4 0 1 1-8 0 4 4 0 0 1 8 0z", class: "solid" }],
  cancelled: [{ d: "M16 10a6 6 0 1 1-12 0 6 6 0 0 1 12 0z", class: "outline" }, { d: "M6 14 14 6", class: "line" }],
};

function shape(id) {
  const parts = (SHAPES[id] ?? SHAPES.idle).map((part) => s("path", part));
  return s("svg", { viewBox: "0 0 20 20", width: 16, height: 16, "aria-hidden": "true" }, parts);
}

/** A list of facts: a name, a value and optionally an explanation. Facts without a value are left out. */
export function facts(rows) {
  const known = rows.filter(([, value]) => value || value === 0);
  return h("dl", {}, known.map(([name, value, title]) => [h("dt", { title }, name), h("dd", {}, value)]));
}

/** A row of a table: its heading, and cells. */
export function row(heading, ...cells) {
  const cell = (one) => (one instanceof HTMLTableCellElement ? one : h("td", { class: typeof one === "number" && "number" }, one));
  return h("tr", {}, h("th", { scope: "row" }, heading), cells.flat().map(cell));
}
