// The footer of a server with a virtual clock: its time, its speed, and buttons that advance it.

import { change } from "./api.js";
import { actionButton, h } from "./dom.js";
import { clockTime, countdown, duration, fullTime } from "./format.js";
import { model } from "./model.js";

const SPEEDS = [[0, "frozen"], [1, "1x"], [10, "10x"], [60, "60x"], [600, "600x"]];
const DAY = 24 * 3600_000;
const HORIZON_MIN = 10 * 60_000;
const WIDE = "(min-width: 900px)";
const UNITS = { d: DAY, h: 3600_000, m: 60_000, s: 1000, ms: 1 };

let parts = null;

/** The milliseconds of a length of time of the API, such as `1h30m`; null if it is none. */
export function parseSpan(text) {
  const words = [...String(text ?? "").matchAll(/(\d+)(ms|[dhms])/g)];
  if (!words.length || words.map((word) => word[0]).join("") !== text) return null;
  return words.reduce((sum, [, number, unit]) => sum + Number(number) * UNITS[unit], 0);
}

/** Twice the time until the next change, or a day if nothing is due, in milliseconds. */
export function horizon(nextIn) {
  return nextIn === null ? DAY : Math.max(2 * nextIn, HORIZON_MIN);
}

/** A caller sets the clock if it may operate the whole server: the clock is common to all clusters and tenants. */
const isPermitted = () => ["operator", "admin"].includes(model.caller?.role) && !model.caller.clusters && !model.caller.tenants;

export function update(footer, topics) {
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
  const button = (id, label, title, body) => actionButton(label, () => set(body), { id: `clock-${id}`, title, "data-write": true });
  const state = h("b", { id: "clock-state" });
  const time = h("time", { id: "clock-time", class: "number" });
  const due = h("span", { id: "clock-due", class: "quiet number", title: "Time on this clock until an event starts or an action ends" });
  const speedError = h("span", { class: "error", role: "alert" });
  const speed = h("select",
    { id: "clock-speed", "data-write": true, title: "Seconds on this clock per second", on: { change: chooseSpeed } },
    SPEEDS.map(([value, name]) => h("option", { value }, name)));
  const slider = h("input", {
    type: "range", id: "clock-slider", "data-write": true, min: 0, max: 1000, step: 1, value: 0,
    "aria-label": "Time to go to", list: "clock-marks", on: { input: choose },
  });
  const go = actionButton("go there", goThere, { id: "clock-go", "data-write": true, title: "Move the slider to choose a time" });
  const chosen = h("span", { id: "clock-chosen", class: "number quiet" });
  const marks = h("datalist", { id: "clock-marks" });
  const travel = h("details", { class: "clock-travel" },
    h("summary", { id: "clock-travel" }, "go to"), h("span", { class: "clock-slide" }, slider, marks, chosen, go));
  travel.open = matchMedia(WIDE).matches;
  footer.setAttribute("aria-label", "Virtual clock");
  footer.replaceChildren(
    h("span", { class: "clock-face", title: "A virtual clock: it stands still, or runs at the speed that you choose" }, state, " ", time),
    due,
    h("span", { class: "clock-buttons" },
      button("minute", "+1m", "Advance the clock by one minute", { clock: "advance", by: "1m" }),
      button("quarter", "+15m", "Advance the clock by fifteen minutes", { clock: "advance", by: "15m" }),
      button("next", "next change ▸", "Advance the clock until something is due, and let it happen", { clock: "next" }),
      h("span", { class: "clock-speed" }, h("label", { for: "clock-speed" }, "speed "), speed, speedError)),
    travel,
  );
  setInterval(() => !document.hidden && refresh(), 500);
  return { footer, state, time, due, speed, speedError, slider, chosen, marks, span: horizon(null), target: null };
}

async function chooseSpeed() {
  const speed = Number(parts.speed.value);
  parts.speedError.textContent = "";
  try {
    await set(speed === 0 ? { clock: "freeze" } : { clock: "scale", speed });
  } catch (problem) {
    parts.speedError.textContent = problem.message;
    parts.speed.value = String(model.clock.speed);
  }
}

/** A chosen time stays, even if the clock goes on. Whole seconds are enough. */
function choose() {
  const offset = (Number(parts.slider.value) / 1000) * parts.span;
  parts.target = offset > 0 ? Math.ceil((model.now() + offset) / 1000) * 1000 : null;
  refresh();
}

async function goThere() {
  if (parts.target === null) return;
  const at = parts.target;
  parts.target = null;
  parts.slider.value = 0;
  await set({ clock: "until", at: new Date(at).toISOString() });
}

function refresh() {
  if (!parts || !model.clock || parts.footer.hidden) return;
  const { state, time, due, speed, slider, chosen, marks } = parts;
  const now = model.now();
  const { speed: current } = model.clock;
  const nextIn = parseSpan(model.clock.next_in);
  write(state, current === 0 ? "❚❚ frozen" : `▶ running, ${current}x`);
  write(time, clockTime(now));
  time.title = fullTime(now);
  write(due, nextIn === null ? "nothing is due" : `next in ${countdown(nextIn)}`);
  if (document.activeElement !== speed) {
    const isListed = [...speed.options].some((option) => Number(option.value) === current);
    if (!isListed) speed.append(h("option", { value: current }, `${current}x`));
    speed.value = String(current);
  }
  if (parts.target !== null && parts.target <= now) {
    parts.target = null;
    slider.value = 0;
  }
  if (parts.target === null && document.activeElement !== slider) {
    parts.span = horizon(nextIn);
    const mark = nextIn === null ? "" : String(Math.round((nextIn / parts.span) * 1000));
    if (marks.dataset.mark !== mark) {
      marks.dataset.mark = mark;
      marks.replaceChildren(...(mark ? [h("option", { value: mark })] : []));
    }
  }
  const isChosen = parts.target !== null;
  const text = isChosen ? `${clockTime(parts.target)}, in ${countdown(parts.target - now)}` : `the next ${duration(parts.span)}`;
  write(chosen, text);
  slider.setAttribute("aria-valuetext", text);
  allow();
}

function allow() {
  const [isAllowed, isLive] = [isPermitted(), model.connection === "live"];
  for (const control of parts.footer.querySelectorAll("[data-write]")) {
    control.disabled = !isLive || !isAllowed || (control.id === "clock-go" && parts.target === null);
  }
  parts.footer.title = isAllowed ? "" : "Only a token with the role operator for the whole server sets the clock";
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
