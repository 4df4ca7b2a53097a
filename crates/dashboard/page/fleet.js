// The fleet: every VM as a tile or as a row of a table, by host, tenant, update domain or set, with search and filter.

import { h, mark, replace } from "./dom.js";
import { count } from "./format.js";
import { GROUPS, MACHINE_STATES, TENANT_HELP, groupRows, matcher, startText } from "./fleet_layout.js";
import { FleetMap } from "./fleet_map.js";
import { createTable } from "./fleet_table.js";
import { model } from "./model.js";
import { openPanel, panelObject } from "./panel.js";

const TOPICS = ["all", "connection", "machines", "hosts", "events", "clock", "tenants", "scaleSets"];
const PLACE = ["name", "tenant", "host", "update_domain"];

export function open(main, { parameters }) {
  const wanted = (parameters.get("state") ?? "").split(",");
  const choice = {
    group: Object.hasOwn(GROUPS, parameters.get("group")) ? parameters.get("group") : "",
    query: parameters.get("q") ?? "",
    states: new Set(MACHINE_STATES.map(({ id }) => id).filter((id) => wanted.includes(id))),
    isTable: parameters.get("view") === "table",
  };
  let shown = { machines: [], places: "" };
  let frame = 0;
  const group = () => (choice.group && choice.group !== "host" ? choice.group : model.seesHosts ? "host" : "tenant");
  const map = new FleetMap(openPanel, () => later(true));
  const table = createTable(openPanel);

  const search = h("input", {
    type: "search", id: "fleet-search", placeholder: "name, tenant, host or tag", value: choice.query,
    autocomplete: "off", spellcheck: "false", on: { input: () => change({ query: search.value.trim() }) },
  });
  const groupChoice = h("select", {
    id: "fleet-group", title: TENANT_HELP, on: { change: () => change({ group: groupChoice.value }) },
  });
  const views = h("span", { class: "segments", role: "group", "aria-label": "View" });
  const toggle = (id) => {
    const states = new Set(choice.states);
    if (!states.delete(id)) states.add(id);
    change({ states });
  };
  const filter = (state) => h("button", {
    type: "button", id: `fleet-state-${state.id}`, class: "fleet-filter", on: { click: () => toggle(state.id) },
  }, mark(state), h("span", { "aria-hidden": "true" }, state.name), h("b", {}, "0"));
  const buttons = MACHINE_STATES.map(filter);
  const filters = h("div", { class: "fleet-filters", role: "group", "aria-label": "States: each filters the VMs" }, buttons);
  const total = h("p", { class: "quiet", role: "status", id: "fleet-total" });
  const content = h("div");
  replace(main,
    h("h1", { class: "sr" }, "Fleet"),
    h("div", { class: "fleet-bar" },
      h("label", {}, "Search ", search), h("label", {}, "Group by ", groupChoice), views, total),
    filters, content);

  const write = () => {
    const object = panelObject();
    const query = new URLSearchParams();
    const all = {
      group: choice.group, q: choice.query, state: [...choice.states].join(","), view: choice.isTable && "table",
      [object?.kind === "machine" ? "vm" : "host"]: object?.name,
    };
    for (const [name, value] of Object.entries(all)) if (value) query.set(name, value);
    const text = query.toString().replace(/%(2F|2C|3A)/g, decodeURIComponent);
    history.replaceState(history.state, "", text ? `#/fleet?${text}` : "#/fleet");
  };

  /** Draws with the next frame, however often it is called before. */
  const later = (isNew) => {
    if (isNew) shown.places = "";
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      if (content.isConnected) refresh();
    });
  };

  const change = (changes) => {
    Object.assign(choice, changes);
    write();
    drawControls();
    later(true);
  };

  const drawControls = () => {
    const options = Object.entries(GROUPS).filter(([id]) => id !== "host" || model.seesHosts);
    replace(groupChoice, options.map(([id, { label }]) => h("option", { value: id, selected: id === group() }, label)));
    const view = (isTable, label) => h("button", {
      type: "button", id: `fleet-view-${label.toLowerCase()}`, "aria-pressed": String(choice.isTable === isTable),
      on: { click: () => change({ isTable }) },
    }, label);
    replace(views, view(false, "Map"), view(true, "Table"));
  };

  const drawFilters = (counts) => buttons.forEach((button, index) => {
    button.lastChild.textContent = counts[index].toLocaleString("en");
    button.classList.toggle("none", counts[index] === 0);
    button.setAttribute("aria-pressed", choice.states.has(MACHINE_STATES[index].id));
  });

  const refresh = () => {
    if (model.connection === "loading") return void replace(content, h("p", { class: "quiet" }, "Loading…"));
    const { names, machines, states, counts } = select(choice);
    const countText = counts.join(" ") + [...choice.states].join(" ");
    if (countText !== shown.countText) drawFilters(counts);
    const places = `${choice.isTable} ${group()} ${signature(group())}`;
    const isSame = places === shown.places && isSamePlace(machines, shown.machines);
    const isFiltered = choice.query !== "" || choice.states.size > 0;
    shown = { machines, places, countText, rows: isSame ? shown.rows : groupRows(machines, group(), !isFiltered) };
    const all = count(model.machines.size, "VM");
    total.textContent = isFiltered ? `${machines.length.toLocaleString("en")} of ${all}` : all;
    filters.hidden = model.machines.size === 0;
    if (shown.rows.length === 0) return void replace(content, emptyText(isFiltered && model.machines.size));
    const view = choice.isTable ? table : map;
    if (content.firstChild !== view.element) content.replaceChildren(view.element);
    if (choice.isTable) return table.set(shown.rows.flatMap((row) => row.machines));
    if (!isSame) map.setRows(shown.rows, group());
    map.setStates(names, machines, states);
  };

  const emptyText = (hasOthers) => {
    const clear = () => {
      search.value = "";
      change({ query: "", states: new Set() });
      search.focus();
    };
    const text = (title, sentence, more) =>
      h("div", { class: "fleet-empty" }, h("h2", {}, title), h("p", { class: "quiet" }, sentence), more);
    if (hasOthers) {
      return text("No VM matches",
        "The search looks at the names of VMs, tenants and hosts, and at tags. All words have to match.",
        h("button", { type: "button", id: "fleet-clear", on: { click: clear } }, "Clear search and filter"));
    }
    if (!model.canAdmin) return text("There are no VMs", "VMs appear here as soon as they are added.");
    const command = h("p", {}, h("code", {}, "forewarn fleet apply fleet.toml"));
    return text("There are no VMs", "Apply a fleet file, or create a VM:", command);
  };

  const panel = document.getElementById("panel");
  const onPanel = () => {
    const object = panelObject();
    map.select(object?.kind === "machine" ? object.name : "");
    write();
  };
  panel.addEventListener("panel", onPanel);
  drawControls();
  const [vm, host] = [parameters.get("vm"), parameters.get("host")];
  if (vm) openPanel("machine", vm.includes("/") ? vm : `${vm}/${vm}`);
  else if (host) openPanel("host", host);

  return {
    update(topics) {
      if (topics.has("all") || topics.has("connection")) drawControls();
      // The names of hosts may get or lose a mark.
      if (topics.has("hosts") && group() === "host") map.redraw();
      if (TOPICS.some((topic) => topics.has(topic))) refresh();
    },
    tick() {
      // Time alone changes states.
      later(false);
      for (const time of content.querySelectorAll("[data-until]")) {
        const text = startText(Number(time.dataset.until));
        if (time.textContent !== text) time.textContent = text;
      }
    },
    close() {
      panel.removeEventListener("panel", onPanel);
      map.close();
    },
  };
}

/** The machines that match, with names and states, and the number of machines in each state that match the search. */
function select({ query, states: wanted }) {
  const [names, machines, states] = [[], [], []];
  const counts = MACHINE_STATES.map(() => 0);
  const matches = matcher(query);
  for (const [name, machine] of model.machines) {
    if (matches && !matches(machine)) continue;
    const { id, order } = model.machineState(machine);
    counts[order] += 1;
    if (wanted.size && !wanted.has(id)) continue;
    names.push(name);
    machines.push(machine);
    states.push(order);
  }
  return { names, machines, states, counts };
}

/** What else the rows depend on. */
function signature(group) {
  if (group === "host") return Array.from(model.hosts.values(), ({ name, zone }) => `${name} ${zone}`).join("\n");
  if (group !== "set") return "";
  const kinds = Array.from(model.tenants.values(), ({ name, kind }) => `${name} ${kind}`);
  return [...kinds, ...Array.from(model.scaleSets.values(), ({ name, tenants }) => `${name} ${tenants}`)].join("\n");
}

function isSamePlace(machines, others) {
  const isSame = (one, other) => one === other || PLACE.every((part) => one[part] === other[part]);
  return machines.length === others.length && machines.every((machine, index) => isSame(machine, others[index]));
}
