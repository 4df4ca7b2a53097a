// The fleet as rows of tiles: grouping, order, search, and the place of each tile. No element is touched here.

import { model, STATES } from "./model.js";
import { parseTime } from "./format.js";

/** The states of a machine, the most urgent first. A tile knows its state by the index in this list. */
export const MACHINE_STATES = ["failed", "soon", "started", "scheduled", "approved", "stopped", "idle"].map((id) => STATES[id]);

/** What rows can be. `domain` has no columns: the row is the update domain. */
export const GROUPS = {
  host: { label: "host", rowHead: "Host", hasColumns: true },
  tenant: { label: "tenant", rowHead: "Tenant", hasColumns: true },
  domain: { label: "update domain", rowHead: "Update domain", hasColumns: false },
  set: { label: "scale or availability set", rowHead: "Set", hasColumns: true },
};

const SECTIONS = { "scale set": "Scale sets", "availability set": "Availability sets", "cloud service": "Cloud services" };
const STANDALONE = "Standalone VMs";
const ROW_PAD = 4;
const SECTION_HEIGHT = 36;
const CELL_PAD = 12;
const DENSE_FROM = 2000;
const NAMED_MAX = 300;
const PAGE_STEPS = 10;

const keys = new Map();

/** A key that sorts `h2` before `h10`. */
function naturalKey(text) {
  let key = keys.get(text);
  if (key === undefined) {
    if (keys.size > 100_000) keys.clear();
    key = text.toLowerCase().replace(/\d{1,15}/g, (digits) => digits.padStart(15, "0"));
    keys.set(text, key);
  }
  return key;
}

const byKey = (one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0);

export const nameOf = (machine) => `${machine.tenant}/${machine.name}`;

/** The time at which the first event of a machine may start, or null. */
export function startOf(machine) {
  let first = null;
  for (const id of machine.events) {
    const event = model.events.get(id);
    const time = event && event.status !== "Started" ? parseTime(event.not_before) : null;
    if (time !== null && (first === null || time < first)) first = time;
  }
  return first;
}

/** True for machines that have every word of the search in their name, tenant, host or tags. */
export function matcher(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return null;
  return (machine) => {
    let text = `${machine.tenant}/${machine.name} ${machine.host ?? ""}`;
    for (const name in machine.tags) text += ` ${name}=${machine.tags[name]}`;
    text = text.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

/** For each group, a function from a machine to its row: { id, label, section }. */
function rowFinder(group) {
  if (group === "tenant") return (machine) => ({ id: machine.tenant, label: machine.tenant, section: "" });
  if (group === "domain") return ({ update_domain: domain }) => ({ id: domain, label: `UD ${domain}`, section: "" });
  if (group === "host") return (machine) => hostRow(machine.host ?? "");
  const setOf = new Map();
  for (const set of model.scaleSets.values()) for (const tenant of set.tenants ?? []) setOf.set(tenant, set.name);
  return ({ tenant }) => {
    const kind = model.tenants.get(tenant)?.kind;
    const section = SECTIONS[kind];
    if (!section) return { id: STANDALONE, label: "standalone", section: STANDALONE };
    const label = (kind === "scale set" && setOf.get(tenant)) || tenant;
    return { id: `${kind}/${label}`, label, section };
  };
}

function hostRow(name) {
  const zone = model.hosts.get(name)?.zone ?? null;
  return { id: name, label: name, section: zone === null ? "" : `Zone ${zone}` };
}

/**
 * The rows, in order: `{ id, label, section, machines }`, the machines by update domain and name. `isWhole` adds hosts
 * without machines.
 */
export function groupRows(machines, group, isWhole) {
  const find = rowFinder(group);
  const rows = new Map();
  const idOf = { host: (machine) => machine.host ?? "", tenant: (machine) => machine.tenant, domain: (machine) => machine.update_domain };
  const cache = new Map();
  const rowAt = (row) => {
    let known = rows.get(row.id);
    if (!known) rows.set(row.id, (known = { ...row, key: `${naturalKey(row.section)}\n${naturalKey(String(row.label))}`, machines: [] }));
    return known;
  };
  const quick = idOf[group] ?? ((machine) => machine.tenant);
  for (const machine of machines) {
    const id = quick(machine);
    let row = cache.get(id);
    if (!row) cache.set(id, (row = rowAt(find(machine))));
    row.machines.push(machine);
  }
  if (isWhole && group === "host") for (const name of model.hosts.keys()) rowAt(hostRow(name));
  const list = [...rows.values()].sort(byKey);
  for (const row of list) row.machines = inOrder(row.machines);
  return list;
}

function inOrder(machines) {
  const known = machines.map((machine) => ({ machine, domain: machine.update_domain, key: naturalKey(machine.name) }));
  known.sort((one, other) => one.domain - other.domain || byKey(one, other));
  return known.map(({ machine }) => machine);
}

/**
 * The place of everything, for a width in pixels. Tiles are parallel arrays, in the order of the rows:
 * `machines`, `x`, `y`, `rowOf`. Rows: { label, section, y, height, first, count }. `columns` is null without columns.
 * A tile has the size `cell`; `stride` is larger if there is room for the name beside it.
 */
export function place(rows, group, width, isTouch) {
  const domains = GROUPS[group].hasColumns ? domainsOfFleet() : [];
  const count = rows.reduce((sum, row) => sum + row.machines.length, 0);
  const cell = count > DENSE_FROM ? 14 : isTouch ? 26 : 22;
  const longest = rows.reduce((length, row) => Math.max(length, String(row.label).length), 4);
  const labelWidth = Math.round(Math.min(Math.max(longest * 8 + 28, 72), Math.max(96, Math.min(240, width * 0.3))));
  const room = Math.max(cell, width - labelWidth);
  const columnWidth = Math.floor(room / Math.max(1, domains.length));
  const named = cell + 8 + 8 * longestName(rows);
  const isNamed = count <= NAMED_MAX && named <= columnWidth - CELL_PAD;
  const stride = isNamed ? named : cell;
  const perColumn = Math.floor((columnWidth - CELL_PAD) / stride);
  const columns = domains.length > 0 && perColumn >= 1
    ? domains.map((domain, index) => ({ domain, x: labelWidth + index * columnWidth, width: columnWidth }))
    : null;
  const perLine = columns ? perColumn : Math.max(1, Math.floor(room / stride));
  const columnX = new Map((columns ?? []).map(({ domain, x }) => [domain, x]));
  const layout = {
    group, width, cell, stride, labelWidth, columns, rows: [], sections: [], height: 0,
    machines: new Array(count), x: new Int32Array(count), y: new Int32Array(count), rowOf: new Int32Array(count),
  };
  let [y, tile, section] = [0, 0, ""];
  for (const { id, label, section: ownSection, machines } of rows) {
    if (ownSection !== section) {
      section = ownSection;
      layout.sections.push({ label: section, y });
      y += SECTION_HEIGHT;
    }
    const row = { id, label, section, y, height: 0, first: tile, count: machines.length };
    let [lines, inCell, domain] = [1, 0, null];
    for (const machine of machines) {
      if (columns && machine.update_domain !== domain) [domain, inCell] = [machine.update_domain, 0];
      const line = Math.floor(inCell / perLine);
      layout.machines[tile] = machine;
      layout.x[tile] = (columns ? columnX.get(domain) : labelWidth) + (inCell % perLine) * stride;
      layout.y[tile] = y + ROW_PAD + line * cell;
      layout.rowOf[tile] = layout.rows.length;
      lines = Math.max(lines, line + 1);
      inCell += 1;
      tile += 1;
    }
    row.height = Math.max(lines * cell + 2 * ROW_PAD, 28);
    y += row.height;
    layout.rows.push(row);
  }
  layout.height = y;
  return layout;
}

function longestName(rows) {
  let length = 1;
  for (const row of rows) for (const machine of row.machines) length = Math.max(length, machine.name.length);
  return length;
}

/** The update domains of all machines, so that a filter leaves the columns where they are. */
function domainsOfFleet() {
  const domains = new Set();
  for (const machine of model.machines.values()) domains.add(machine.update_domain);
  return [...domains].sort((one, other) => one - other);
}

/** The index of the last row that begins at or above `y`. */
export function rowAt(layout, y) {
  let [low, high] = [0, layout.rows.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (layout.rows[middle].y <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The tile at a point, or -1. */
export function tileAt(layout, x, y) {
  const row = layout.rows[rowAt(layout, y)];
  if (!row) return -1;
  for (let tile = row.first; tile < row.first + row.count; tile += 1) {
    const [dx, dy] = [x - layout.x[tile], y - layout.y[tile]];
    if (dx >= 0 && dx < layout.stride && dy >= 0 && dy < layout.cell) return tile;
  }
  return -1;
}

/** The nearest tile above (`direction` -1) or below (1) a tile, or -1. */
function tileBeyond(layout, from, direction) {
  let [best, bestY, bestX] = [-1, Infinity, Infinity];
  for (let tile = 0; tile < layout.machines.length; tile += 1) {
    const dy = (layout.y[tile] - layout.y[from]) * direction;
    if (dy <= 0 || dy > bestY) continue;
    const dx = Math.abs(layout.x[tile] - layout.x[from]);
    if (dy < bestY || dx < bestX) [best, bestY, bestX] = [tile, dy, dx];
  }
  return best;
}

/**
 * The focus after a key: { tile } or { row }, or null if the key does not move it. Left of the first tile is the head of
 * its row, if `hasHead(row)`.
 */
export function nextFocus(layout, { tile, row }, key, isControl, hasHead) {
  const { machines, rows, rowOf } = layout;
  const isPage = key.startsWith("Page");
  const vertical = { ArrowUp: -1, ArrowDown: 1, PageUp: -1, PageDown: 1 }[key];
  const own = tile === undefined || isControl ? { first: 0, count: machines.length } : rows[rowOf[tile]];
  if (key === "Home") return { tile: own.first };
  if (key === "End") return { tile: own.first + own.count - 1 };
  if (tile === undefined) {
    if (key === "ArrowRight" && rows[row].count) return { tile: rows[row].first };
    return vertical ? { row: Math.max(0, Math.min(rows.length - 1, row + vertical * (isPage ? PAGE_STEPS : 1))) } : null;
  }
  if (key === "ArrowRight") return { tile: Math.min(machines.length - 1, tile + 1) };
  if (key === "ArrowLeft") return tile === own.first && hasHead(own) ? { row: rowOf[tile] } : { tile: Math.max(0, tile - 1) };
  if (!vertical) return null;
  let found = tile;
  for (let step = 0; step < (isPage ? PAGE_STEPS : 1); step += 1) {
    const beyond = tileBeyond(layout, found, vertical);
    if (beyond >= 0) found = beyond;
  }
  return { tile: found };
}
