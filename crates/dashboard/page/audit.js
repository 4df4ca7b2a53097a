// History: the audit log with filters, and the state at an earlier time.

import { get } from "./api.js";
import { actionButton, button, h, headings, quiet, quietSpan, replace } from "./dom.js";
import { count, fullTime, oneLine, parseTime, shortId } from "./format.js";
import { model } from "./model.js";
import { merged } from "./past.js";
import { pastTitle, pastView } from "./past_view.js";

const PAGE_ENTRIES = 100;
const ROWS_MAX = 2000;
const TRAVEL_PAGES = 1000;

const FIELDS = [
  { name: "text", label: "Text", title: "Only entries whose sentence contains this, among those that are loaded" },
  { name: "tenant", label: "Tenant", title: "The VM or the group of VMs that share a document", list: () => [...model.tenants.keys()] },
  { name: "machine", label: "Machine", title: "TENANT/NAME", list: () => [...model.machines.keys()] },
  { name: "host", label: "Host", list: () => [...model.hosts.keys()] },
  { name: "event", label: "Event", title: "The id of an event, or its first characters" },
  { name: "by", label: "Who", title: "token NAME, socket, anyone, machine TENANT/NAME, or forewarn itself", list: () => seen("by") },
  { name: "kind", label: "Kind", title: "command, announced, approved, started, completed, withdrawn, …", list: () => seen("kind") },
  { name: "since", label: "Since (UTC)", type: "datetime-local" },
  { name: "until", label: "Until (UTC)", type: "datetime-local" },
];

/** The values of a member in the newest entries. */
const seen = (member) => [...new Set(model.entries.map((entry) => entry[member]))].sort();
const keyOf = (entry) => `${entry.stream}/${entry.number}`;

/** The parameters of the API for a filter. `text` is compared here, with the entries that are loaded. */
export function filterParameters({ text, ...rest }) {
  const isTime = (name) => name === "since" || name === "until";
  const moment = (value) => value && `${value.length === 16 ? `${value}:00` : value.slice(0, 19)}Z`;
  return Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, isTime(name) ? moment(value) : value.trim()]));
}

export function open(main, { parameters }) {
  const filter = Object.fromEntries(FIELDS.map(({ name }) => [name, parameters.get(name) ?? ""]));
  let entries = []; // of the table, newest first
  let older = []; // of all kinds, older than those of the model
  let next; // the cursor of the next page of the table
  let olderNext; // the cursor of entries that are older than all of `older`; empty if there are none
  let swept = false;
  let time = null; // milliseconds, or null for now
  let reads = 0;
  let range = { first: 0, seconds: 1 }; // of the slider

  const isFiltered = () => Object.values(filter).some(Boolean);
  const travel = h("section", { class: "travel", "aria-label": "Time" });
  const past = h("section", { id: "past" });
  const form = h("form", { class: "filters", on: { submit: (event) => (event.preventDefault(), search()) } });
  const status = h("p", { class: "quiet", id: "audit-status", role: "status" });
  const body = h("tbody", {});
  const more = h("p", { class: "actions" });
  const isWide = matchMedia("(min-width: 900px)").matches;
  replace(main, h("h1", {}, "History"), travel, past, h("h2", {}, "Audit log"),
    h("details", { class: "filter-box", open: isWide || isFiltered() }, h("summary", { id: "filters" }, "Filter"), form), status,
    h("table", { class: "audit" }, headings(["Time (UTC)", "Kind", "Who", "What"]), body), more);

  const drawForm = () => {
    const field = ({ name, label, title, type = "text", list }) => h("span", { class: `filter-field ${type}` },
      h("label", { for: `filter-${name}`, title }, label),
      h("input", {
        id: `filter-${name}`, name, type, title, value: filter[name], step: type === "datetime-local" && 1,
        list: list && `list-${name}`, autocomplete: "off", spellcheck: "false",
      }),
      list && h("datalist", { id: `list-${name}` }, list().slice(0, 200).map((value) => h("option", { value }))));
    replace(form, FIELDS.map(field), h("button", { type: "submit", id: "filter-search", class: "primary" }, "Search"),
      isFiltered() && button("Clear", clear, { id: "filter-clear" }));
  };

  const search = () => {
    for (const { name } of FIELDS) filter[name] = form.elements[name].value;
    const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value)).toString();
    history.replaceState(null, "", query ? `#/audit?${query}` : "#/audit");
    drawForm();
    read();
  };

  const clear = () => {
    for (const input of form.elements) input.value = "";
    search();
  };

  const readPage = async (wanted) => {
    const page = await get("/v1/audit", { cluster: model.cluster, ...wanted });
    swept ||= Boolean(page.swept);
    return page;
  };

  /** Reads the next page of the table. A later read of the first page makes an earlier read void. */
  const readNext = async () => {
    const mine = reads;
    const page = await readPage({ ...filterParameters(filter), limit: PAGE_ENTRIES, before: next });
    if (mine !== reads) return;
    entries = next ? [...entries, ...page.items] : page.items;
    next = page.next;
    drawTable();
  };

  /** Reads the newest page of the table. */
  const read = async () => {
    const mine = ++reads;
    next = undefined;
    try {
      await readNext();
    } catch (problem) {
      if (mine !== reads) return;
      entries = [];
      drawTable();
      replace(status, h("span", { class: "error" }, oneLine(problem)));
    }
  };

  /** Extends the range of the slider. */
  const readEarlier = async () => {
    const known = new Set(model.entries.map(keyOf));
    let page;
    // The first pages may be known: the model has the newest entries.
    do {
      page = await readPage({ limit: TRAVEL_PAGES, before: olderNext });
      olderNext = page.next ?? "";
    } while (olderNext && page.items.every((entry) => known.has(keyOf(entry))));
    older = [...older, ...page.items];
    goTo(null);
  };

  const row = (entry) => {
    const { kind, by, text, reason, events = [], machines = [], hosts = [] } = entry;
    const time = fullTime(parseTime(entry.at));
    const event = (id) => h("a", { href: `#/event/${id}`, class: "tag", title: `Event ${id}` }, shortId(id));
    return h("tr", {},
      h("td", { class: "number" }, h("time", { title: time }, time.slice(0, 19))),
      h("td", {}, h("span", { class: kind === "command" ? "tag command" : "tag" }, kind)),
      h("td", {}, by),
      h("td", {}, h("span", { title: [...machines, ...hosts].slice(0, 20).join(", ") || null }, text),
        reason && quietSpan(` (${reason})`), " ", events.slice(0, 3).map(event)));
  };

  const drawTable = () => {
    const text = filter.text.trim().toLowerCase();
    const isWanted = (entry) => entry.text.toLowerCase().includes(text) && (time === null || parseTime(entry.at) <= time);
    const shown = entries.filter(isWanted).slice(0, ROWS_MAX);
    body.replaceChildren(...shown.map(row));
    drawStatus(shown.length);
    const isFull = entries.length >= ROWS_MAX;
    replace(more,
      next && (isFull ? quietSpan("Use filters to see older entries.")
        : actionButton("Older entries", readNext, { id: "audit-older" })),
      !next && swept && quietSpan("Older entries were deleted from the log."));
  };

  const drawStatus = (shown) => {
    const refresh = () => button("Read again", read, { class: "plain", id: "audit-refresh" });
    replace(status, count(shown, "entry").replace("entrys", "entries"),
      time !== null ? ", later ones are hidden" : !isFiltered() ? ", new ones appear at the top"
        : [", filtered: new ones do not appear by themselves. ", refresh()]);
  };

  /** Puts entries that the stream has brought on top, without drawing the others again. */
  const addNew = () => {
    const known = new Set(entries.slice(0, 500).map(keyOf));
    const added = [];
    for (const entry of model.entries.toReversed()) {
      if (known.has(keyOf(entry)) || added.length >= PAGE_ENTRIES) break;
      added.push(entry);
    }
    if (added.length >= PAGE_ENTRIES) return void read();
    entries = [...added, ...entries].slice(0, ROWS_MAX);
    if (time !== null) return;
    body.prepend(...added.map(row));
    while (body.children.length > ROWS_MAX) body.lastElementChild.remove();
    drawStatus(body.children.length);
  };

  const known = () => merged(older, model.entries, isFiltered() ? [] : entries);

  // The slider is built once: a slider that is replaced while it is dragged lets go.
  const slider = h("input", { type: "range", id: "travel-slider", min: 0, step: 1, "aria-label": "Time to look at", on: {
    input: () => goTo(Number(slider.value) >= range.seconds ? null : range.first + Number(slider.value) * 1000),
    blur: () => drawTravel(),
  } });
  const before = () => parseTime(known().findLast(({ at }) => parseTime(at) < (time ?? Infinity))?.at) ?? time;
  const after = () => (time === null ? null : parseTime(known().find(({ at }) => parseTime(at) > time)?.at));
  const forward = button("entry ▸", () => goTo(after()), { id: "travel-on", title: "The time of the entry after" });
  const extent = h("span", { class: "number quiet" });
  const earlier = actionButton("Earlier", readEarlier, { id: "travel-more", title: "Load older entries of the log" });
  const explanation = quiet("Move the slider to see events, machines and hosts as they were.");
  replace(travel, h("div", { class: "travel-bar" },
    button("◂ entry", () => goTo(before()), { id: "travel-back", title: "The time of the entry before" }),
    slider,
    forward,
    extent, earlier), explanation);

  const hasMore = (all) => olderNext !== "" && !all.some((entry) => entry.number === 1 && entry.stream !== "shared");

  const drawTravel = () => {
    const all = known();
    travel.hidden = !all.length;
    if (!all.length) return;
    if (time === null && document.activeElement !== slider) {
      const [first, last] = [parseTime(all[0].at), Math.max(model.now(), parseTime(all.at(-1).at))];
      range = { first, seconds: Math.max(1, Math.ceil((last - first) / 1000)) };
      slider.max = range.seconds;
    }
    slider.value = time === null ? range.seconds : Math.round((time - range.first) / 1000);
    slider.setAttribute("aria-valuetext", time === null ? "now" : pastTitle(time));
    extent.textContent = `${fullTime(range.first)} to now`;
    earlier.hidden = !hasMore(all);
    explanation.hidden = time !== null;
    forward.setAttribute("aria-disabled", time === null);
  };

  const goTo = (millis) => {
    time = millis;
    document.body.classList.toggle("past", time !== null);
    drawTravel();
    drawPast();
    drawTable();
  };

  const drawPast = () => {
    if (time === null) return replace(past);
    const live = new Map([...model.machines].map(([name, machine]) => [name, machine.host]));
    replace(past, pastView(known(), time, live, { isSwept: swept, isMore: hasMore(known()), back: () => goTo(null) }));
  };

  const update = (topics) => {
    if (topics.has("all")) {
      drawForm();
      read();
      drawPast();
    } else if (topics.has("entries") && !isFiltered()) addNew();
    if (topics.has("all") || (topics.has("entries") && time === null)) drawTravel();
  };

  return { update, close: () => document.body.classList.remove("past") };
}
