// The timeline: past, running and coming events as bars in lanes, or as a table. The address carries lanes, range and filter.

import { actionButton, h, replace, s } from "./dom.js";
import { count, fullTime, parseTime } from "./format.js";
import { model } from "./model.js";
import { RANGES, parseSpan, rangeText, spanText } from "./timeline_axis.js";
import { cap } from "./timeline_bars.js";
import { Card } from "./timeline_card.js";
import { Chart } from "./timeline_chart.js";
import { LANES, collect, endOf, filtered, lanesOf } from "./timeline_data.js";
import { savePng, saveSvg, standalone } from "./timeline_export.js";
import { connectBars, connectView, zoomTo } from "./timeline_input.js";
import { drawTable, within } from "./timeline_table.js";

export { miniTimeline } from "./timeline_mini.js";

const DATA_PAUSE = 150;
const ADDRESS_PAUSE = 250;
const RECENT = 20;
const TOPICS = ["all", "entries", "events", "rollouts", "machines", "clock"];
const OLDER_PAGES_MAX = 40;

export function open(main, { parameters }) {
  const state = {
    lane: LANES[parameters.get("lane")] ? parameters.get("lane") : "tenant",
    view: parameters.get("view") === "table" ? "table" : "chart",
    q: parameters.get("q") ?? "", kind: parameters.get("kind") ?? "", tenant: parameters.get("tenant") ?? "",
  };
  let all = [];
  let items = [];
  let isReady = false;
  let timer = 0;
  let addressTimer = 0;
  let olderPages = 0;
  let isReadingOlder = false;

  const empty = h("div", { class: "empty" });
  const status = h("p", { class: "quiet timeline-status", id: "timeline-status" });
  const table = h("div", { class: "timeline-table scroll", id: "timeline-table", tabindex: "0", role: "region",
    "aria-label": "Events as a table", hidden: true });
  const chart = new Chart({ label: "Timeline of events. Arrow keys pan, plus and minus zoom, n goes to now; Tab goes to the bars.",
    heightMax: () => heightFor(chart.element), onDraw: () => drawStatus() });
  const card = new Card();
  const legend = legendOf();
  const bar = toolbar();
  replace(empty, h("p", { class: "quiet" }, "Loading…"));
  for (const part of [status, chart.element, legend]) part.hidden = true;
  bar.fill();
  replace(main, h("h1", { class: "sr" }, "Timeline"), bar.element, empty, status, chart.element, card.element, table, legend);

  const viewChanged = () => {
    writeAddress();
    bar.mark();
    if (state.view === "table") drawTable(table, items, chart.range());
    readOlder();
  };
  connectBars(chart, card, { zoomTo: (bars) => zoomTo(chart, bars) && (viewChanged(), true), moved: viewChanged });
  connectView(chart, card, viewChanged);
  const resize = () => chart.request();
  window.addEventListener("resize", resize);

  function toolbar() {
    const button = (id, label, title, action) =>
      h("button", { type: "button", id, title, "aria-label": title, on: { click: action } }, label);
    const choice = (name, id, label, title, action) =>
      h("button", { type: "button", id: `${name}-${id}`, title, "data-choice": `${name}=${id}`, on: { click: action } }, label);
    const group = (label, ...buttons) => h("span", { class: "segments", role: "group", "aria-label": label }, buttons);
    const set = (name, value) => ((state[name] = value), writeAddress(), apply());
    const show = (...range) => (chart.show(...range), viewChanged());
    const search = h("input", { id: "timeline-q", type: "search", value: state.q, placeholder: "machine, host, cause…",
      "aria-label": "Filter events by text", on: { input: (input) => set("q", input.target.value) } });
    const kind = h("select", { id: "timeline-kind", "aria-label": "Kind of event",
      on: { change: (change) => set("kind", change.target.value) } });
    const tenant = h("select", { id: "timeline-tenant", "aria-label": "Tenant",
      on: { change: (change) => set("tenant", change.target.value) } });
    const picture = () => standalone(chart, `Forewarn timeline, cluster ${model.cluster}`, subtitle());
    const save = (label, action) => {
      const properties = { id: `save-${label}`, title: `Save the visible chart as ${label}`, "data-chart": true };
      return actionButton(label, () => action(picture()), properties);
    };
    const element = h("div", { class: "timeline-bar" },
      group("Lanes", Object.entries(LANES).map(([id, { label, title }]) => choice("lane", id, label, title, () => set("lane", id)))),
      search, kind, tenant,
      h("span", { class: "spacer" }),
      group("View", choice("view", "chart", "Chart", "Events as bars", () => set("view", "chart")),
        choice("view", "table", "Table", "The same events as a table", () => set("view", "table"))),
      h("span", { class: "break" }),
      group("Range", RANGES.map(([id, label]) => choice("range", id, label, `Show ${label}`, () => show(parseSpan(id))))),
      group("Zoom and move",
        button("zoom-out", "−", "Zoom out (key −)", () => (chart.zoom(2), viewChanged())),
        button("zoom-in", "+", "Zoom in (key +)", () => (chart.zoom(0.5), viewChanged())),
        button("pan-left", "◀", "Earlier (key ←)", () => (chart.pan(-0.5 * chart.span), viewChanged())),
        button("pan-now", "Now", "Go to now and follow it (key n)", () => show(chart.span)),
        button("pan-right", "▶", "Later (key →)", () => (chart.pan(0.5 * chart.span), viewChanged()))),
      h("span", { class: "spacer" }),
      h("span", { class: "actions" }, save("SVG", saveSvg), save("PNG", savePng)));
    const options = (select, name, values, selected) => {
      const known = [...new Set([...values, selected].filter(Boolean))].sort();
      if (select.dataset.known === known.join("\n") && select.value === selected) return;
      select.dataset.known = known.join("\n");
      replace(select, h("option", { value: "" }, name), known.map((one) => h("option", { value: one, selected: one === selected }, one)));
    };
    return {
      element,
      fill: () => {
        options(kind, "all kinds", all.map((item) => item.kind), state.kind);
        options(tenant, "all tenants", all.map((item) => item.tenant), state.tenant);
        for (const id of ["host", "rollout"]) element.querySelector(`#lane-${id}`).hidden = !model.seesHosts;
      },
      mark: () => {
        const now = { lane: state.lane, view: state.view, range: spanText(chart.span) };
        for (const one of element.querySelectorAll("[data-choice]")) {
          const [name, id] = one.dataset.choice.split("=");
          one.setAttribute("aria-pressed", String(now[name] === id));
        }
        element.querySelector("#pan-now").setAttribute("aria-pressed", String(chart.follow));
        for (const one of element.querySelectorAll("[data-chart]")) one.disabled = state.view === "table" || items.length === 0;
      },
    };
  }

  const filterText = () => [state.kind, state.tenant && `tenant ${state.tenant}`, state.q && `“${state.q}”`].filter(Boolean).join(", ");
  const subtitle = () => {
    const { from, to } = chart.range();
    const time = `${rangeText(from, to)}${model.isVirtual ? ", virtual time" : ""}`;
    return [time, `lanes by ${state.lane}`, filterText() && `only ${filterText()}`].filter(Boolean).join("; ");
  };

  /** Keeps the address current, after a moment: browsers limit how often it changes. */
  function writeAddress() {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(setAddress, ADDRESS_PAUSE);
  }

  /** No new entry in the history of the browser. */
  function setAddress() {
    const query = new URLSearchParams();
    if (state.lane !== "tenant") query.set("lane", state.lane);
    query.set("range", spanText(chart.span));
    if (!chart.follow) query.set("from", new Date(chart.from).toISOString().slice(0, 19) + "Z");
    for (const name of ["q", "kind", "tenant"]) if (state[name]) query.set(name, state[name]);
    if (state.view === "table") query.set("view", "table");
    window.history.replaceState(null, "", `#/timeline?${query.toString().replaceAll("%3A", ":")}`);
  }

  /** The range of the address, or one that shows what is active, or else what ended last. */
  const firstRange = () => {
    const now = model.now();
    const active = items.filter((item) => item.ended === null);
    chart.fraction = active.length || !items.length ? 0.6 : 0.85;
    const span = parseSpan(parameters.get("range"));
    const from = parseTime(parameters.get("from"));
    if (span !== null) return chart.show(span, from);
    const wanted = active.length ? active : items.toSorted((one, other) => other.ended - one.ended).slice(0, RECENT);
    const before = Math.max(0, ...wanted.map((item) => now - item.begin)) / chart.fraction;
    const after = Math.max(0, ...wanted.map((item) => endOf(item, now) - now)) / (1 - chart.fraction);
    const need = Math.max(before, after) * 1.05;
    const spans = RANGES.map(([text]) => parseSpan(text));
    chart.show(spans.find((one) => one >= need) ?? (active.length ? spans.at(-1) : 6 * 3600_000));
  };

  /** Reads the data of the model, and draws them. */
  const read = () => {
    timer = 0;
    all = collect();
    if (!isReady) {
      items = filtered(all, state);
      firstRange();
      isReady = true;
    }
    apply();
    if (state.view === "chart") chart.draw();
    card.update((key) => chart.found(key));
    readOlder();
  };

  const apply = () => {
    items = filtered(all, state);
    const rollouts = filterText() ? [] : [...model.rollouts.values()].filter((rollout) => !rollout.ended_at);
    chart.setLanes(lanesOf(items, state.lane, { rollouts }));
    const isTable = state.view === "table";
    const isEmpty = chart.lanes.length === 0;
    if (isEmpty) replace(empty, ...emptyText());
    empty.hidden = !isEmpty;
    status.hidden = isTable || isEmpty;
    chart.element.hidden = isTable || isEmpty;
    legend.hidden = isTable || isEmpty;
    table.hidden = !isTable || isEmpty;
    if (isTable) (card.hide(), drawTable(table, items, chart.range()));
    bar.fill();
    bar.mark();
    drawStatus();
  };

  const emptyText = () => {
    if (all.length > 0) {
      const clear = () => {
        Object.assign(state, { q: "", kind: "", tenant: "" });
        document.getElementById("timeline-q").value = "";
        writeAddress();
        apply();
      };
      return [h("h2", {}, "No event matches"), h("p", {}, `None of ${count(all.length, "event")} matches ${filterText()}. `,
        h("button", { type: "button", id: "timeline-clear", on: { click: clear } }, "Clear the filter"))];
    }
    return [
      h("h2", {}, "No event yet"),
      h("p", { class: "lead" }, "Each event becomes a bar here: from its announcement, through its notice and its approvals, to its start,",
        " its end and its outcome. Coming events are to the right of now, past ones to the left."),
      model.canOperate && h("p", { class: "quiet" }, "Restart a machine to see the first one: ", h("code", {}, "forewarn vm restart NAME")),
    ];
  };

  function drawStatus() {
    if (!isReady || status.hidden) return;
    const range = chart.range();
    const shown = within(items, range);
    const others = items.length - shown.length;
    const showAll = h("button", { type: "button", class: "plain", id: "timeline-fit", on: { click: fit } }, "show all");
    const isOlder = model.loadedFrom !== null && range.from < model.loadedFrom;
    replace(status,
      `${count(shown.length, "event")} from ${rangeText(range.from, range.to)}`, model.isVirtual && " (virtual time)",
      others > 0 && [`, ${others.toLocaleString("en")} before or after; `, showAll],
      isOlder && (olderPages < OLDER_PAGES_MAX ? `. Reading older entries of the log, before ${fullTime(model.loadedFrom)}…`
        : `. Entries before ${fullTime(model.loadedFrom)} are not loaded: see the history.`));
  }

  const fit = () => {
    const now = model.now();
    const end = Math.max(now, ...items.map((item) => endOf(item, now)));
    const span = (end - items[0].begin) * 1.06;
    chart.show(span, items[0].begin - span * 0.03);
    viewChanged();
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
      if (!isReady) read();
      else timer ||= setTimeout(read, DATA_PAUSE);
    },
    tick() {
      if (!isReady) return;
      if (state.view === "chart") chart.tick();
      card.tick();
    },
    close() {
      clearTimeout(timer);
      clearTimeout(addressTimer);
      window.removeEventListener("resize", resize);
      chart.close();
      card.close();
    },
  };
}

/** The height that is left for the chart in the window. */
function heightFor(element) {
  const footer = document.getElementById("footer");
  const top = element.getBoundingClientRect().top + window.scrollY;
  return Math.max(320, window.innerHeight - top - (footer.hidden ? 0 : footer.offsetHeight) - 72);
}

/** The meaning of the shapes. */
function legendOf() {
  const picture = (...parts) => s("svg", { class: "timeline-svg", width: 28, height: 14, viewBox: "0 0 28 14", "aria-hidden": "true" },
    parts);
  const box = (name, fill) => s("rect", { class: name, x: 1, y: 2, width: 26, height: 10, fill });
  const entry = (text, ...parts) => h("li", {}, picture(...parts), text);
  return h("ul", { class: "timeline-legend", "aria-label": "Legend" },
    entry("notice", s("g", { class: "bar" }, box("notice", "url(#hatch-scheduled)"))),
    entry("approval", s("g", { class: "bar" }, box("notice", "url(#hatch-approved)"), s("path", { class: "approval", d: "M14 0v14" }))),
    entry("under way", s("g", { class: "bar started" }, box("run"))),
    entry("step on the host", s("g", { class: "bar started" }, box("run"), s("rect", { class: "step", x: 7, y: 4, width: 14, height: 6 }))),
    entry("expected", s("g", { class: "bar" }, box("expected"))),
    ["done", "failed", "cancelled"].map((id) => entry(id === "done" ? "completed" : id, s("g", { class: `bar ${id}` }, cap(id, 14, 7)))));
}
