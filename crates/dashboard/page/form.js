// Forms: fields with a label, a hint and a message, and their values.

import { h, replace } from "./dom.js";
import { model } from "./model.js";

const SPAN = /^(?:(\d{1,5})d)?(?:(\d{1,3})h)?(?:(\d{1,5})m)?(?:(\d{1,7})s)?$/;
const WINDOW = /^((daily|[a-z]{3}(-[a-z]{3})?(,[a-z]{3}(-[a-z]{3})?)*) )?\d\d:\d\d-\d\d:\d\d( \S+)?$/;

let forms = 0;

/** The milliseconds of a length of time such as `90s`, `15m` or `1h30m`, or null. */
export function spanMillis(text) {
  const parts = text ? SPAN.exec(text) : null;
  if (!parts) return null;
  const [days, hours, minutes, seconds] = parts.slice(1).map((part) => Number(part ?? 0));
  return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000;
}

/** Checks of values. Each returns a message, or an empty text. */
export const checks = {
  required: (value) => (value === "" || value === null || value?.length === 0 ? "is needed" : ""),
  span: (min, max) => (value) => {
    const millis = spanMillis(value);
    if (value && millis === null) return "is a length of time such as 90s, 15m or 2h";
    const isOutside = value && (millis < spanMillis(min) || millis > spanMillis(max));
    return isOutside ? `is from ${min} to ${max}` : "";
  },
  number: (min, max) => (value) =>
    value === null || (Number.isInteger(value) && value >= min && value <= max) ? "" : `is a whole number from ${min} to ${max}`,
  work: (value) => (!value || (/^[ -~]+$/.test(value) && value.length <= 256) ? "" : "is one line of at most 256 plain characters"),
  windows: (lines) => {
    const wrong = lines.find((line) => !WINDOW.test(line));
    return wrong ? `is not a window: ${wrong}; write one such as mon-fri 22:00-06:00 +01:00` : "";
  },
  memory: (value) => (!value || /^[1-9]\d*(MiB|GiB|TiB)$/.test(value) ? "" : "is an amount such as 512MiB or 8GiB"),
  name: (value) => {
    if (!value) return "is needed";
    return /^(\.{0,2}[A-Za-z0-9_-]|\.{3})[A-Za-z0-9._-]*$/.test(value) && value.length <= 80
      ? ""
      : "has letters, digits, . _ and - only, at most 80";
  },
};

/**
 * A form of fields. A field has: `id`, `label`, `type` (`text`, `number`, `check`, `choice`, `lines`, `boxes`), and optionally `value`, `options`
 * (of a choice and of boxes: values, or { value, label, title }), `hint`, `title`, `placeholder`, `unit`, `group` (a heading), `check(value, values)` (a
 * message, or an empty text) and `isShown(values)`. `changed` is called after each input.
 */
export function createForm(fields, changed = () => {}) {
  const prefix = `form${++forms}-`;
  const controls = fields.map((field) => createControl(field, prefix));
  const byId = new Map(controls.map((control) => [control.field.id, control]));

  const values = () => {
    const raw = Object.fromEntries(controls.map((control) => [control.field.id, control.read()]));
    for (const { field } of controls) if (field.isShown && !field.isShown(raw)) raw[field.id] = undefined;
    return raw;
  };

  const draw = () => {
    const now = values();
    for (const control of controls) {
      control.element.hidden = now[control.field.id] === undefined;
      control.show(control.isTouched ? problem(control, now) : "");
    }
    return now;
  };

  const problem = ({ field, isUnreadable }, now) => {
    const value = now[field.id];
    if (value === undefined) return "";
    return isUnreadable() ? "is a whole number" : field.check?.(value, now) ?? "";
  };

  const element = h("div", { class: "fields" }, grouped(controls));
  element.addEventListener("input", (input) => {
    const control = controls.find((one) => one.element.contains(input.target));
    if (control && (control.field.type !== "text" || control.isTouched)) control.isTouched = true;
    changed(draw());
  });
  element.addEventListener("change", (input) => {
    const control = controls.find((one) => one.element.contains(input.target));
    if (control) control.isTouched = true;
    changed(draw());
  });
  draw();

  return {
    element,
    values,
    /** Shows what is wrong. Returns true if nothing is; otherwise the focus goes to the first such field. */
    check() {
      for (const control of controls) control.isTouched = true;
      const now = draw();
      const first = controls.find((control) => problem(control, now));
      first?.focus();
      return !first;
    },
    isValid: () => {
      const now = values();
      return controls.every((control) => !problem(control, now));
    },
    set: (id, value) => (byId.get(id).write(value), changed(draw())),
    focus: () => controls[0]?.focus(),
  };
}

/** A page that is a form: it opens once the data is there, and only if the caller may send it. */
export function openWhenLive(main, mayOpen, openForm) {
  let isOpen = false;
  replace(main, h("p", { class: "quiet" }, "Loading…"));
  return {
    update() {
      if (isOpen || model.connection !== "live") return;
      isOpen = true;
      if (mayOpen()) openForm();
      else replace(main, h("p", {}, `Your role, ${model.caller.role}, does not permit this.`));
    },
  };
}

/** Fields with the same heading stand together. */
function grouped(controls) {
  const parts = [];
  for (const control of controls) {
    const { group } = control.field;
    let last = parts.at(-1);
    if (!last || last.group !== group) parts.push((last = { group, elements: [] }));
    last.elements.push(control.element);
  }
  return parts.map(({ group, elements }) => (group ? h("fieldset", {}, h("legend", {}, group), elements) : elements));
}

function createControl(field, prefix) {
  const id = prefix + field.id;
  const message = h("span", { class: "error", id: `${id}-message`, role: "alert" });
  const hint = field.hint ? h("span", { class: "quiet", id: `${id}-hint` }, field.hint) : null;
  const common = {
    id, name: field.id, title: field.title, "aria-describedby": [hint && `${id}-hint`, `${id}-message`].filter(Boolean).join(" "),
  };
  const build = { check: checkBox, choice: choice, lines: lines, boxes: boxes }[field.type] ?? input;
  const control = { field, isTouched: false, isUnreadable: () => false, ...build(field, common, id) };
  const label = field.type === "boxes" ? null : h("label", { for: id, title: field.title }, field.label);
  const parts = field.type === "check"
    ? [h("span", { class: "line-of-check" }, control.input, label), hint, message]
    : [label, h("span", { class: "input" }, control.input, field.unit && h("span", { class: "quiet" }, ` ${field.unit}`)), hint, message];
  control.element = h("div", { class: `field ${field.type ?? "text"}` }, parts);
  const target = () => (field.type === "boxes" ? control.input.querySelector("input") : control.input);
  control.focus = () => target()?.focus();
  control.show = (text) => {
    const sentence = text ? `${field.label} ${text}.` : "";
    if (message.textContent === sentence) return;
    replace(message, sentence);
    if (text) target()?.setAttribute("aria-invalid", "true");
    else target()?.removeAttribute("aria-invalid");
  };
  return control;
}

function input(field, common) {
  const isNumber = field.type === "number";
  const element = h("input", {
    ...common, type: isNumber ? "number" : "text", value: field.value ?? "", placeholder: field.placeholder,
    min: field.min, max: field.max, step: isNumber
      ? 1
      : null, autocomplete: "off", spellcheck: "false", inputmode: isNumber ? "numeric" : null,
  });
  return {
    input: element,
    read: () => (!isNumber ? element.value.trim() : element.value === "" ? null : Number(element.value)),
    write: (value) => (element.value = value ?? ""),
    isUnreadable: () => isNumber && element.validity.badInput,
  };
}

function checkBox(field, common) {
  const element = h("input", { ...common, type: "checkbox", checked: field.value ?? false, role: field.isSwitch ? "switch" : null });
  return { input: element, read: () => element.checked, write: (value) => (element.checked = value) };
}

const option = (one) => (typeof one === "object" ? one : { value: one, label: one });

function choice(field, common) {
  const options = field.options.map(option).map(({ value, label }) => h("option", { value, selected: value === field.value }, label));
  const element = h("select", common, options);
  return { input: element, read: () => element.value, write: (value) => (element.value = value) };
}

function lines(field, common) {
  const element = h("textarea", { ...common, rows: 2, placeholder: field.placeholder, spellcheck: "false" });
  const write = (value) => (element.value = (value ?? []).join("\n"));
  write(field.value);
  return { input: element, read: () => element.value.split("\n").map((line) => line.trim()).filter(Boolean), write };
}

function boxes(field, common, id) {
  const chosen = new Set(field.value ?? []);
  const all = field.options.map(option).map(({ value, label, title }, index) => {
    const box = h("input", { type: "checkbox", id: `${id}-${index}`, name: field.id, value, checked: chosen.has(value) });
    return { box, value, element: h("label", { title }, box, " ", label) };
  });
  const group = h(
    "fieldset", { class: "boxes", "aria-describedby": common["aria-describedby"] }, h("legend", { title: field.title }, field.label),
    all.map(({ element }) => element),
  );
  return {
    input: group,
    read: () => all.filter(({ box }) => box.checked).map(({ value }) => value),
    write: (values) => all.forEach(({ box, value }) => (box.checked = values.includes(value))),
  };
}
