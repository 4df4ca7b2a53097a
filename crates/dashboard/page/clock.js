// The footer of a server with a virtual clock: its time, its speed, and buttons that advance it.

import { change } from "./api.js";
import { actionButton, h, options, setText } from "./dom.js";
import { DAY, MINUTE, clockTime, countdown, duration, fullTime, parseSpan } from "./format.js";
import { model } from "./model.js";

const SPEEDS = [[0, "frozen"], ...[1, 10, 60, 600].map((speed) => [speed, `${speed}x`])];
const WIDE = "(min-width: 900px)";
const TOPICS = ["all", "connection", "clock"]; // the footer keeps the rest current itself

let parts = null;

/** Twice the time until the next change, or a day if nothing is due, in milliseconds. */
export const horizon = (nextIn) => (nextIn === null ? DAY : Math.max(2 * nextIn, 10 * MINUTE));

/** A caller sets the clock if it may operate the whole server: the clock is common to all clusters and tenants. */
const isPermitted = () => ["operator", "admin"].includes(model.caller?.role) && !model.caller.clusters && !model.caller.tenants;

export function update(footer, topics) {
  if (!TOPICS.some((topic) => topics.has(topic))) return;
  footer.hidden = !model.isVirtual;
  if (footer.hidden) return;
  parts ??= build(footer);
  refresh();
}

async function set(body) {
  await change("POST", "/v1/clock", body);
  await model.refresh();
  refresh();
}

/** The elements are built once; later only texts and values change, so that a control keeps its focus. */
function build(footer) {
  const control = (id, label, title, action) => actionButton(label, action, { id: `clock-${id}`, title, "data-write": true });
  const state = h("b", { id: "clock-state" });
  const time = h("time", { id: "clock-time", class: "number" });
  const due = h("span", { id: "clock-due", class: "quiet number", title: "Time on this clock until an event starts or an action ends" });
  const speedError = h("span", { class: "error", role: "alert" });
  const speed = h("select",
    { id: "clock-speed", "data-write": true, title: "Seconds on this clock per second", on: { change: chooseSpeed } }, options(SPEEDS));
  const slider = h("input", {
    type: "range", id: "clock-slider", "data-write": true, min: 0, max: 1000, step: 1, value: 0,
    "aria-label": "Time to go to", list: "clock-marks", on: { input: choose },
  });
  const mark = h("option", {});
  const chosen = h("span", { id: "clock-chosen", class: "number quiet" });
  footer.setAttribute("aria-label", "Virtual clock");
  footer.replaceChildren(
    h("span", { class: "clock-face", title: "A virtual clock: it stands still, or runs at the speed that you choose" }, state, " ", time),
    due,
    h("span", { class: "clock-buttons" },
      control("minute", "+1m", "Advance the clock by one minute", () => set({ clock: "advance", by: "1m" })),
      control("quarter", "+15m", "Advance the clock by fifteen minutes", () => set({ clock: "advance", by: "15m" })),
      control("next", "next change ▸", "Advance the clock until something is due, and let it happen", () => set({ clock: "next" })),
      h("span", { class: "clock-speed" }, h("label", { for: "clock-speed" }, "speed "), speed, speedError)),
    h("details", { class: "clock-travel", open: matchMedia(WIDE).matches },
      h("summary", { id: "clock-travel" }, "go to"),
      h("span", { class: "clock-slide" }, slider, h("datalist", { id: "clock-marks" }, mark), chosen,
        control("go", "go there", "Move the slider to choose a time", goThere))));
  setInterval(() => !document.hidden && refresh(), 500);
  return { footer, state, time, due, speed, speedError, slider, chosen, mark, span: DAY, target: null };
}

async function chooseSpeed() {
  const speed = Number(parts.speed.value);
  parts.speedError.textContent = "";
  try {
    await set(speed === 0 ? { clock: "freeze" } : { clock: "scale", speed });
  } catch (problem) {
    parts.speedError.textContent = problem.message;
    parts.speed.value = model.clock.speed;
  }
}

/** A chosen time stays, even if the clock goes on. Whole seconds are enough. */
function choose() {
  const offset = (Number(parts.slider.value) / 1000) * parts.span;
  parts.target = offset > 0 ? Math.ceil((model.now() + offset) / 1000) * 1000 : null;
  refresh();
}

function forget() {
  parts.target = null;
  parts.slider.value = 0;
}

async function goThere() {
  const at = new Date(parts.target).toISOString();
  forget();
  await set({ clock: "until", at });
}

function refresh() {
  if (!model.clock || parts.footer.hidden) return;
  const { footer, speed, slider } = parts;
  const now = model.now();
  const current = model.clock.speed;
  const nextIn = parseSpan(model.clock.next_in);
  setText(parts.state, current === 0 ? "❚❚ frozen" : `▶ running, ${current}x`);
  setText(parts.time, clockTime(now));
  parts.time.title = fullTime(now);
  setText(parts.due, nextIn === null ? "nothing is due" : `next in ${countdown(nextIn)}`);
  if (document.activeElement !== speed) {
    speed.value = current;
    if (!speed.value) speed.append(h("option", { value: current, selected: true }, `${current}x`));
  }
  if (parts.target !== null && parts.target <= now) forget();
  const isChosen = parts.target !== null;
  if (!isChosen && document.activeElement !== slider) {
    parts.span = horizon(nextIn);
    parts.mark.value = nextIn === null ? "" : Math.round((nextIn / parts.span) * 1000);
  }
  const text = isChosen ? `${clockTime(parts.target)}, in ${countdown(parts.target - now)}` : `the next ${duration(parts.span)}`;
  setText(parts.chosen, text);
  slider.setAttribute("aria-valuetext", text);
  const isAllowed = isPermitted();
  for (const control of footer.querySelectorAll("[data-write]")) {
    control.disabled = model.connection !== "live" || !isAllowed || (control.id === "clock-go" && !isChosen);
  }
  footer.title = isAllowed ? "" : "Only a token with the role operator for the whole server sets the clock";
}
