// The timeline: past, running and coming events as bars in lanes, or as a table. The address carries lanes, range and filter.

import { actionButton, button, h, options, quiet, replace, s } from "./dom.js";
import { HOUR, count, fullTime, joined, parseSpan, parseTime } from "./format.js";
import { model } from "./model.js";
import { paced } from "./pace.js";
import { RANGES, rangeText, spanText } from "./timeline_axis.js";
import { cap } from "./timeline_bars.js";
import { Card } from "./timeline_card.js";
import { Chart } from "./timeline_chart.js";
import { LANES, collect, endOf, filtered, isWithin, lanesOf } from "./timeline_data.js";
import { savePng, saveSvg, standalone } from "./timeline_export.js";
import { connectBars, connectView } from "./timeline_input.js";
import { drawTable } from "./timeline_table.js";

const UPDATE_PAUSE = 250;
const ADDRESS_PAUSE = 250;
const RECENT = 20;
const TOPICS = ["all", "entries", "events", "rollouts", "machines", "clock"];
const OLDER_PAGES_MAX = 40;

export function open(main, { parameters }) {
  const given = (name) => parameters.get(name) ?? "";
  const state = {
    lane: Object.hasOwn(LANES, given("lane")) ? given("lane") : "tenant", view: given("view") === "table" ? "table" : "chart",
    q: given("q"), kind: given("kind"), tenant: given("tenant"),
  };
  let all = [];
  let items = [];
  let lanes = [];
  let isReady = false;
  let addressTimer = 0;
  let olderPages = 0;
  let isReadingOlder = false;

  const empty = h("div", { class: "empty" }, quiet("Loading…"));
  const status = h("p", { class: "quiet timeline-status", id: "timeline-status" });
  const table = h("div", { class: "timeline-table scroll", id: "timeline-table", tabindex: "0", role: "region",
    "aria-label": "Events as a table", hidden: true });
  const card = new Card();

  /** The visible time has changed. */
  const moved = () => {
    if (!isReady) return;
    writeAddress();
    bar.update();
    if (state.view === "table") drawTable(table, items, chart.range());
    readOlder();
  };
  const chart = new Chart({ label: "Timeline of events. Arrow keys pan, plus and minus zoom, n goes to now; Tab goes to the bars.",
    onMove: moved, onDraw: () => (drawStatus(), card.update(chart.found)) });
  const bar = toolbar();
  const chartView = h("div", { hidden: true }, status, chart.element, card.element, legendOf());
  replace(main, h("h1", { class: "sr" }, "Timeline"), bar.element, empty, chartView, table);
  connectBars(chart, card);
  connectView(chart, card);
  const resize = () => chart.request();
  window.addEventListener("resize", resize);

  function toolbar() {
    const choices = []; // buttons, each with a function that tells if it is pressed
    const choice = (id, label, title, action, isPressed) => {
      const element = button(label, action, { id, title });
      choices.push([element, isPressed]);
      return element;
    };
    const act = (id, label, title, action) => button(label, action, { id, title, "aria-label": title });
    const group = (label, ...buttons) => h("span", { class: "segments", role: "group", "aria-label": label }, buttons);
    const set = (name, value) => change({ [name]: value });
    const chooseState = (name, id, label, title) =>
      choice(`${name}-${id}`, label, title, () => set(name, id), () => state[name] === id);
    const search = h("input", { id: "timeline-q", type: "search", value: state.q, placeholder: "machine, host, cause…",
      "aria-label": "Filter events by text", on: { input: () => set("q", search.value) } });
    const select = (name, label) => {
      const element = h("select", { id: `timeline-${name}`, "aria-label": label, on: { change: () => set(name, element.value) } });
      return [name, element];
    };
    const selects = [select("kind", "Kind of event"), select("tenant", "Tenant")];
    const lanes = Object.entries(LANES).map(([id, { label, title }]) => chooseState("lane", id, label, title));
    const save = (label, action) => {
      const picture = () => standalone(chart, `Forewarn timeline, cluster ${model.cluster}`, subtitle());
      return actionButton(label, () => action(picture()), { id: `save-${label}`, title: `Save the visible chart as ${label}` });
    };
    const saves = h("span", { class: "actions" }, save("SVG", saveSvg), save("PNG", savePng));
    const element = h("div", { class: "timeline-bar" },
      group("Lanes", lanes),
      search, selects.map(([, one]) => one),
      h("span", { class: "spacer" }),
      group("View", chooseState("view", "chart", "Chart", "Events as bars"),
        chooseState("view", "table", "Table", "The same events as a table")),
      h("span", { class: "break" }),
      group("Range", RANGES.map(([span, label]) =>
        choice(`range-${spanText(span)}`, label, `Show ${label}`, () => chart.show(span), () => chart.span === span))),
      group("Zoom and move",
        act("zoom-out", "−", "Zoom out (key −)", () => chart.zoom(2)),
        act("zoom-in", "+", "Zoom in (key +)", () => chart.zoom(0.5)),
        act("pan-left", "◀", "Earlier (key ←)", () => chart.pan(-0.5 * chart.span)),
        choice("pan-now", "Now", "Go to now and follow it (key n)", () => chart.show(chart.span), () => chart.follow),
        act("pan-right", "▶", "Later (key →)", () => chart.pan(0.5 * chart.span))),
      h("span", { class: "spacer" }),
      saves);
    const update = () => {
      search.value = state.q;
      // A select that is open closes when its options change.
      for (const [name, one] of selects) {
        const known = [...new Set([...all.map((item) => item[name]), state[name]])].filter(Boolean).sort();
        if (one.dataset.known !== String(known)) replace(one, options([["", `all ${name}s`], ...known]));
        one.dataset.known = known;
        one.value = state[name];
      }
      for (const one of lanes.slice(1)) one.hidden = !model.seesHosts;
      for (const [one, isPressed] of choices) one.setAttribute("aria-pressed", isPressed());
      for (const one of saves.querySelectorAll("button")) one.disabled = state.view === "table" || items.length === 0;
    };
    return { element, update };
  }

  const filterText = () => joined([state.kind, state.tenant && `tenant ${state.tenant}`, state.q && `“${state.q}”`]);
  const subtitle = () => {
    const { from, to } = chart.range();
    const time = joined([rangeText(from, to), model.isVirtual && "virtual time"]);
    return joined([time, `lanes by ${state.lane}`, filterText() && `only ${filterText()}`], "; ");
  };

  /** Keeps the address current, after a moment: browsers limit how often it changes. The history of the browser stays as it is. */
  const writeAddress = () => {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => {
      const from = chart.follow ? "" : `${new Date(chart.from).toISOString().slice(0, 19)}Z`;
      const members = Object.entries({ ...state, range: spanText(chart.span), from }).filter(([, value]) => value);
      window.history.replaceState(null, "", `#/timeline?${new URLSearchParams(members).toString().replaceAll("%3A", ":")}`);
    }, ADDRESS_PAUSE);
  };

  /** The range of the address, or one that shows what is active, or else what ended last. */
  const firstRange = () => {
    const now = model.now();
    const active = items.filter((item) => item.ended === null);
    chart.fraction = active.length || !items.length ? 0.6 : 0.85;
    const span = parseSpan(given("range"));
    if (span !== null) return chart.show(span, parseTime(given("from")));
    const wanted = active.length ? active : items.toSorted((one, other) => other.ended - one.ended).slice(0, RECENT);
    const before = Math.max(0, ...wanted.map((item) => now - item.begin)) / chart.fraction;
    const after = Math.max(0, ...wanted.map((item) => endOf(item, now) - now)) / (1 - chart.fraction);
    const spans = RANGES.map(([one]) => one);
    chart.show(spans.find((one) => one >= Math.max(before, after) * 1.05) ?? (active.length ? spans.at(-1) : 6 * HOUR));
  };

  /** Reads the data of the model. */
  const read = () => {
    all = collect();
    items = filtered(all, state);
    if (!isReady) firstRange();
    isReady = true;
    apply();
    readOlder();
  };
  const draw = () => chart.update(lanes);
  const drawing = paced(UPDATE_PAUSE, [read, draw]);

  const apply = () => {
    items = filtered(all, state);
    const rollouts = filterText() ? [] : [...model.rollouts.values()].filter((rollout) => !rollout.ended_at);
    lanes = lanesOf(items, state.lane, { rollouts });
    const isTable = state.view === "table";
    const isEmpty = lanes.length === 0;
    if (isEmpty) replace(empty, ...emptyText());
    empty.hidden = !isEmpty;
    chartView.hidden = isTable || isEmpty;
    table.hidden = !isTable || isEmpty;
    if (isTable) (card.hide(), drawTable(table, items, chart.range()));
    bar.update();
  };

  const change = (members) => {
    Object.assign(state, members);
    writeAddress();
    apply();
    draw();
  };

  const emptyText = () => all.length > 0 ? [
    h("h2", {}, "No event matches"),
    h("p", {}, `None of ${count(all.length, "event")} matches ${filterText()}. `,
      button("Clear the filter", () => change({ q: "", kind: "", tenant: "" }), { id: "timeline-clear" })),
  ] : [
    h("h2", {}, "No event yet"),
    h("p", { class: "lead" }, "Each event becomes a bar here: from its announcement, through its notice and its approvals, to its start,",
      " its end and its outcome. Coming events are to the right of now, past ones to the left."),
    model.canOperate && quiet("Restart a machine to see the first one: ", h("code", {}, "forewarn vm restart NAME")),
  ];

  function drawStatus() {
    if (!isReady || chartView.hidden) return;
    const range = chart.range();
    const shown = items.filter((item) => isWithin(item, range)).length;
    const isOlder = model.loadedFrom !== null && range.from < model.loadedFrom;
    replace(status,
      `${count(shown, "event")} from ${rangeText(range.from, range.to)}`, model.isVirtual && " (virtual time)",
      shown < items.length && [`, ${(items.length - shown).toLocaleString("en")} before or after; `,
        button("show all", fit, { class: "plain", id: "timeline-fit" })],
      isOlder && `. Entries of the log before ${fullTime(model.loadedFrom)} are ${
        olderPages < OLDER_PAGES_MAX ? "being read…" : "not loaded: see the history."}`);
  }

  const fit = () => {
    const now = model.now();
    const [{ begin }] = items;
    const span = (Math.max(now, ...items.map((item) => endOf(item, now))) - begin) * 1.06;
    chart.show(span, begin - span * 0.03);
  };

  /** The log is read backwards as far as the chart reaches. */
  const readOlder = async () => {
    if (isReadingOlder || model.loadedFrom === null || chart.range().from >= model.loadedFrom || olderPages >= OLDER_PAGES_MAX) return;
    isReadingOlder = true;
    olderPages++;
    await model.readOlder().catch(() => {});
    isReadingOlder = false;
  };

  return {
    update(topics) {
      if (model.connection === "loading" || !TOPICS.some((topic) => topics.has(topic))) return;
      if (isReady) drawing.request();
      else drawing.now();
    },
    tick: () => (chart.tick(), card.tick()),
    close() {
      drawing.close();
      clearTimeout(addressTimer);
      window.removeEventListener("resize", resize);
      chart.close();
      card.close();
    },
  };
}

/** The meaning of the shapes. */
function legendOf() {
  const box = (name, fill) => s("rect", { class: name, x: 1, y: 2, width: 26, height: 10, fill });
  const entry = (text, state, ...parts) => h("li", {},
    s("svg", { class: "timeline-svg", width: 28, height: 14, viewBox: "0 0 28 14", "aria-hidden": "true" },
      s("g", { class: `bar ${state}` }, parts)), text);
  const outcome = (id, text = id) => entry(text, id, cap(id, 14, 7));
  return h("ul", { class: "timeline-legend", "aria-label": "Legend" },
    entry("notice", "", box("notice", "url(#hatch-scheduled)")),
    entry("approval", "", box("notice", "url(#hatch-approved)"), s("path", { class: "approval", d: "M14 0v14" })),
    entry("under way", "started", box("run")),
    entry("step on the host", "started", box("run"), s("rect", { class: "step", x: 7, y: 4, width: 14, height: 6 })),
    entry("expected", "", box("expected")),
    outcome("done", "completed"), outcome("failed"), outcome("cancelled"));
}
