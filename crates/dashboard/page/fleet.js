// The fleet: every VM as a tile or as a row of a table, by host, tenant, update domain or set, with search and filter.

import { h, mark, replace } from "./dom.js";
import { count } from "./format.js";
import { GROUPS, MACHINE_STATES, groupRows, matcher } from "./fleet_layout.js";
import { FleetMap } from "./fleet_map.js";
import { FleetTable } from "./fleet_table.js";
import { model } from "./model.js";
import { openPanel, panelObject } from "./panel.js";

const INDEX = new Map(MACHINE_STATES.map((state, index) => [state, index]));
const TOPICS = ["all", "connection", "machines", "hosts", "events", "clock"];
const TENANT_HELP = "A tenant owns VMs that get one Scheduled Events document: a scale set, an availability set, or one VM.";

export function open(main, { parameters }) {
  const choice = {
    group: Object.hasOwn(GROUPS, parameters.get("group")) ? parameters.get("group") : "",
    query: parameters.get("q") ?? "",
    states: new Set((parameters.get("state") ?? "").split(",").filter((id) => MACHINE_STATES.some((state) => state.id === id))),
    isTable: parameters.get("view") === "table",
  };
  let shown = { names: [], machines: [], places: "" };
  let isDue = false;
  const group = () => (choice.group && (model.seesHosts || choice.group !== "host") ? choice.group : model.seesHosts ? "host" : "tenant");
  const map = new FleetMap(openPanel, () => later(true));
  const table = new FleetTable(openPanel);

  const search = h("input", {
    type: "search", id: "fleet-search", placeholder: "name, tenant, host or tag", value: choice.query,
    autocomplete: "off", spellcheck: "false",
  });
  const groupChoice = h("select", { id: "fleet-group", title: TENANT_HELP });
  const views = h("span", { class: "fleet-views", role: "group", "aria-label": "View" });
  const filters = h("div", { class: "fleet-filters", role: "group", "aria-label": "States: each filters the VMs" });
  const total = h("p", { class: "quiet number", role: "status", id: "fleet-total" });
  const content = h("div", { class: "fleet-content" });
  replace(main,
    h("h1", { class: "sr" }, "Fleet"),
    h("div", { class: "fleet-bar" },
      h("label", {}, "Search ", search), h("label", {}, "Group by ", groupChoice), views, total),
    filters, content);

  const write = () => {
    const query = new URLSearchParams();
    if (choice.group) query.set("group", choice.group);
    if (choice.query) query.set("q", choice.query);
    if (choice.states.size) query.set("state", [...choice.states].join(","));
    if (choice.isTable) query.set("view", "table");
    const object = panelObject();
    if (object) query.set(object.kind === "machine" ? "vm" : "host", object.name);
    const text = query.toString().replaceAll("%2F", "/").replaceAll("%2C", ",").replaceAll("%3A", ":");
    history.replaceState(history.state, "", text ? `#/fleet?${text}` : "#/fleet");
  };

  /** Draws with the next frame, however often it is called before. */
  const later = (isNew) => {
    if (isNew) shown.places = "";
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
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

  const toggle = (id) => {
    const states = new Set(choice.states);
    if (!states.delete(id)) states.add(id);
    change({ states });
  };

  const buttons = MACHINE_STATES.map((state) => {
    const number = h("b", { class: "number" }, "0");
    const own = { type: "button", id: `fleet-state-${state.id}`, class: "fleet-filter", on: { click: () => toggle(state.id) } };
    const button = h("button", own, mark(state), h("span", { "aria-hidden": "true" }, state.name), number);
    return { button, number, id: state.id };
  });
  replace(filters, buttons.map(({ button }) => button));
  const drawFilters = (counts) => buttons.forEach(({ button, number, id }, index) => {
    number.textContent = counts[index].toLocaleString("en");
    button.classList.toggle("none", counts[index] === 0);
    button.setAttribute("aria-pressed", String(choice.states.has(id)));
  });

  const refresh = () => {
    if (model.connection === "loading") return void replace(content, h("p", { class: "quiet" }, "Loading…"));
    const { names, machines, states, counts } = select(choice);
    const countText = counts.join(" ") + [...choice.states].join(" ");
    if (countText !== shown.countText) drawFilters(counts);
    const places = `${choice.isTable} ${group()} ${signature(group())}`;
    const isSame = places === shown.places && isSamePlace(machines, shown.machines);
    const isFiltered = choice.query !== "" || choice.states.size > 0;
    shown = { names, machines, places, countText, rows: isSame ? shown.rows : null };
    const all = count(model.machines.size, "VM");
    total.textContent = isFiltered ? `${machines.length.toLocaleString("en")} of ${all}` : all;
    filters.hidden = model.machines.size === 0;
    const empty = machines.length === 0 && emptyText(isFiltered);
    if (empty) return void replace(content, empty);
    const view = choice.isTable ? table : map;
    if (content.firstChild !== view.element) content.replaceChildren(view.element);
    if (!isSame) shown.rows = groupRows(machines, group(), !isFiltered);
    if (choice.isTable) {
      const current = (machine) => model.machines.get(`${machine.tenant}/${machine.name}`) ?? machine;
      return table.set(shown.rows.flatMap((row) => row.machines).map(current));
    }
    if (!isSame) map.setRows(shown.rows, group());
    map.setStates(names, machines, states);
  };

  const emptyText = (isFiltered) => {
    const clear = () => {
      search.value = "";
      change({ query: "", states: new Set() });
      search.focus();
    };
    if (isFiltered && model.machines.size) {
      return h("div", { class: "fleet-empty" }, h("h2", {}, "No VM matches"),
        h("p", { class: "quiet" }, "The search looks at the names of VMs, tenants and hosts, and at tags. All words have to match."),
        h("button", { type: "button", id: "fleet-clear", on: { click: clear } }, "Clear search and filter"));
    }
    if (model.hosts.size && group() === "host") return null;
    return h("div", { class: "fleet-empty" }, h("h2", {}, "There are no VMs"),
      h("p", { class: "quiet" }, model.canAdmin ? "Apply a fleet file, or create a VM:" : "VMs appear here as soon as they are added."),
      model.canAdmin && h("p", {}, h("code", {}, "forewarn fleet apply fleet.toml")));
  };

  search.addEventListener("input", () => change({ query: search.value.trim() }));
  groupChoice.addEventListener("change", () => change({ group: groupChoice.value }));
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
      if (topics.has("hosts")) map.drawHosts();
      const wanted = group() === "set" ? [...TOPICS, "tenants", "scaleSets"] : TOPICS;
      if (wanted.some((topic) => topics.has(topic))) refresh();
    },
    tick() {
      later(false); // time alone changes states
      (choice.isTable ? table : map).tick();
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
    const state = model.machineState(machine);
    const index = INDEX.get(state);
    counts[index] += 1;
    if (wanted.size && !wanted.has(state.id)) continue;
    names.push(name);
    machines.push(machine);
    states.push(index);
  }
  return { names, machines, states, counts };
}

/** What else the rows depend on. */
function signature(group) {
  if (group === "host") return [...model.hosts.values()].map(({ name, zone }) => `${name} ${zone}`).join("\n");
  if (group !== "set") return "";
  const kinds = [...model.tenants.values()].map(({ name, kind }) => `${name} ${kind}`);
  return [...kinds, ...[...model.scaleSets.values()].map(({ name, tenants }) => `${name} ${tenants}`)].join("\n");
}

function isSamePlace(machines, others) {
  if (machines.length !== others.length) return false;
  for (let index = 0; index < machines.length; index += 1) {
    const [one, other] = [machines[index], others[index]];
    if (one === other) continue;
    if (one.name !== other.name || one.tenant !== other.tenant) return false;
    if (one.host !== other.host || one.update_domain !== other.update_domain) return false;
  }
  return true;
}
