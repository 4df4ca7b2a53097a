// Forms: fields with a label, a hint and a message, and their values.

import { h, quiet, quietSpan, replace } from "./dom.js";
import { parseSpan } from "./format.js";
import { model } from "./model.js";

const WINDOW = /^((daily|[a-z]{3}(-[a-z]{3})?(,[a-z]{3}(-[a-z]{3})?)*) )?\d\d:\d\d-\d\d:\d\d( \S+)?$/;

let forms = 0;

/** Checks of values. Each returns a message, or an empty text. */
export const checks = {
  span: (min, max) => (value) => {
    const millis = parseSpan(value);
    if (value && millis === null) return "is a length of time such as 90s, 15m or 2h";
    return value && (millis < parseSpan(min) || millis > parseSpan(max)) ? `is from ${min} to ${max}` : "";
  },
  work: (value) => (/^[ -~]{0,256}$/.test(value) ? "" : "is one line of at most 256 plain characters"),
  windows: (lines) => {
    const wrong = lines.find((line) => !WINDOW.test(line));
    return wrong ? `is not a window: ${wrong}; write one such as mon-fri 22:00-06:00 +01:00` : "";
  },
  memory: (value) => (/^([1-9]\d*[MGT]iB)?$/.test(value) ? "" : "is an amount such as 512MiB or 8GiB"),
  name: (value) => (
    /^(\.{0,2}[A-Za-z0-9_-]|\.{3})[A-Za-z0-9._-]*$/.test(value) && value.length <= 80
      ? ""
      : "has letters, digits, . _ and - only, at most 80"
  ),
};

/** True for a value that is not there. */
export const isEmpty = (value) => value === undefined || value === null || value === false || value.length === 0;

/** The same group for several fields. */
export const inGroup = (group, fields) => fields.map((field) => ({ group, ...field }));

/** The zones of the hosts, as options. An object has its numbers once, and in their order. */
export function zoneOptions() {
  const zones = [...model.hosts.values()].map(({ zone }) => zone).filter((zone) => zone !== null);
  return Object.fromEntries(zones.map((zone) => [zone, `zone ${zone}`]));
}

/**
 * A form of fields. A field has: `id`, `label`, and optionally `type` (`text`, `number`, `check`, `choice`, `lines`, `boxes`), `value`, `options`
 * (of a choice and of boxes: { value: label }, or a list of values or of { value, label, title }), `hint`, `title`, `placeholder`, `unit`,
 * `min` and `max` (of a number), `group` (a heading), `isNeeded`, `check(value)` (a message, or an empty text) and `isShown(values)`. `changed` is
 * called after each input.
 */
export function createForm(fields, changed = () => {}) {
  const prefix = `form${++forms}-`;
  const controls = fields.map((field) => createControl({ type: "text", ...field }, prefix));

  const values = () => {
    const raw = Object.fromEntries(controls.map((control) => [control.field.id, control.read()]));
    for (const { field } of controls) if (field.isShown && !field.isShown(raw)) raw[field.id] = undefined;
    return raw;
  };

  const problem = ({ field, isUnreadable }, now) => {
    const value = now[field.id];
    if (value === undefined) return "";
    if (isUnreadable?.()) return "is a whole number";
    return field.isNeeded && isEmpty(value) ? "is needed" : (field.check ?? checkNumber)(value, field);
  };

  const draw = () => {
    const now = values();
    for (const control of controls) {
      control.element.hidden = now[control.field.id] === undefined;
      control.show(control.isTouched ? problem(control, now) : "");
    }
    return now;
  };

  const element = h("div", { class: "fields" }, grouped(controls));
  // A text that is being written is not wrong before it is left.
  const onInput = ({ type, target }) => {
    const control = controls.find((one) => one.element.contains(target));
    control.isTouched ||= type === "change" || control.field.type !== "text";
    changed(draw());
  };
  element.addEventListener("input", onInput);
  element.addEventListener("change", onInput);
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
    focus: () => controls[0]?.focus(),
  };
}

function checkNumber(value, { type, min = 0, max = 65535, unit = "" }) {
  const isRight = type !== "number" || value === null || (Number.isInteger(value) && value >= min && value <= max);
  return isRight ? "" : `is a whole number from ${min} to ${max} ${unit}`.trim();
}

/** A page that is a form: it opens once the data is there, and only if the caller may send it. */
export function openWhenLive(main, mayOpen, openForm) {
  let isOpen = false;
  replace(main, quiet("Loading…"));
  return {
    update() {
      if (isOpen || model.connection !== "live") return;
      isOpen = true;
      if (mayOpen()) openForm(main);
      else replace(main, h("p", {}, `Your role, ${model.caller.role}, does not permit this.`));
    },
  };
}

/** Fields with the same heading stand together. */
function grouped(controls) {
  const parts = Map.groupBy(controls, ({ field }) => field.group);
  return [...parts].map(([group, some]) => {
    const elements = some.map(({ element }) => element);
    return group ? h("fieldset", {}, h("legend", {}, group), elements) : elements;
  });
}

function createControl(field, prefix) {
  const { type, hint, label: name, title, unit } = field;
  const id = prefix + field.id;
  const message = h("span", { class: "error", id: `${id}-message`, role: "alert" });
  const common = { id, name: field.id, title, "aria-describedby": `${hint ? `${id}-hint ` : ""}${id}-message` };
  const control = { field, ...BUILD[type](field, common) };
  const label = type !== "boxes" && h("label", { for: id, title }, name);
  control.element = h("div", { class: `field ${type}` },
    type === "check"
      ? h("span", { class: "line-of-check" }, control.input, label)
      : [label, h("span", { class: "input" }, control.input, unit && quietSpan(` ${unit}`))],
    hint && h("span", { class: "quiet", id: `${id}-hint` }, hint),
    message);
  const target = type === "boxes" ? control.input.querySelector("input") : control.input;
  control.focus = () => target?.focus();
  control.show = (text) => {
    const sentence = text && `${name} ${text}.`;
    if (message.textContent === sentence) return;
    replace(message, sentence);
    if (text) target?.setAttribute("aria-invalid", "true");
    else target?.removeAttribute("aria-invalid");
  };
  return control;
}

function text({ value, placeholder }, common) {
  const input = h("input", { ...common, type: "text", value: value ?? "", placeholder, autocomplete: "off", spellcheck: "false" });
  return { input, read: () => input.value.trim() };
}

function number({ value, min, max }, common) {
  const input = h("input", { ...common, type: "number", value: value ?? "", min, max, step: 1, autocomplete: "off", inputmode: "numeric" });
  return { input, read: () => (input.value === "" ? null : Number(input.value)), isUnreadable: () => input.validity.badInput };
}

function check({ value, isSwitch }, common) {
  const input = h("input", { ...common, type: "checkbox", checked: value, role: isSwitch && "switch" });
  return { input, read: () => input.checked };
}

function optionsOf({ options }) {
  if (!Array.isArray(options)) return Object.entries(options).map(([value, label]) => ({ value, label }));
  return options.map((one) => (typeof one === "object" ? one : { value: one, label: one }));
}

function choice(field, common) {
  const option = ({ value, label }) => h("option", { value, selected: value === field.value }, label);
  const input = h("select", common, optionsOf(field).map(option));
  return { input, read: () => input.value };
}

function lines({ value = [], placeholder }, common) {
  const input = h("textarea", { ...common, rows: 2, placeholder, spellcheck: "false", value: value.join("\n") });
  return { input, read: () => input.value.split("\n").map((line) => line.trim()).filter(Boolean) };
}

function boxes(field, { id, name, title, "aria-describedby": describedBy }) {
  const box = ({ value, label, title: boxTitle }, index) => h("label", { title: boxTitle },
    h("input", { type: "checkbox", id: `${id}-${index}`, name, value, checked: field.value?.includes(value) }), " ", label);
  const input = h("fieldset", { class: "boxes", "aria-describedby": describedBy },
    h("legend", { title }, field.label), optionsOf(field).map(box));
  return { input, read: () => [...input.querySelectorAll(":checked")].map(({ value }) => value) };
}

const BUILD = { text, number, check, choice, lines, boxes };
