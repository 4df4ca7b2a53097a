// The fleet as rows of tiles: grouping, order, search, and the place of each tile. And what the map and the table share.

import { h, visible } from "./dom.js";
import { countdown, fullTime, parseTime } from "./format.js";
import { STATES, model } from "./model.js";

/** The states of a machine, the most urgent first. A tile knows its state by the index in this list. */
export const MACHINE_STATES = Object.values(STATES).filter(({ order }) => order <= STATES.idle.order);

export const TENANT_HELP =
  "A tenant owns VMs that get one Scheduled Events document: a scale set, an availability set, or one VM.";
export const DOMAIN_HELP = "Update domain: VMs of one tenant that may be interrupted together. "
  + "Planned work touches one update domain of a tenant at a time.";

const tenantOf = (machine) => machine.tenant;

/** What rows can be: `keyOf` a machine decides its row. */
export const GROUPS = {
  host: { label: "host", rowHead: "Host", keyOf: (machine) => machine.host ?? "" },
  tenant: { label: "tenant", rowHead: "Tenant", keyOf: tenantOf },
  domain: { label: "update domain", rowHead: "Update domain", keyOf: (machine) => machine.update_domain },
  set: { label: "scale or availability set", rowHead: "Set", keyOf: tenantOf },
};

const SECTIONS = { "scale set": "Scale sets", "availability set": "Availability sets", "cloud service": "Cloud services" };
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

/** A name, cut if it is long. */
export const short = (name) => visible(name, 80);

/** The time at which the first event of a machine may start, or null. */
export function startOf(machine) {
  const waiting = model.eventsOf(machine).filter((event) => event.status !== "Started");
  const times = waiting.map((event) => parseTime(event.not_before)).filter((time) => time !== null);
  return times.length ? Math.min(...times) : null;
}

/** `in 4:59`: the start of an event that may start at a time. */
export const startText = (until) => (until > model.now() ? `in ${countdown(until - model.now())}` : "due");

/** The same, kept current by the page. */
export const startTime = (until) => h("time", { "data-until": until, title: `not before ${fullTime(until)}` }, startText(until));

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

/** For a group, a function from the key of a machine to its row: [label, section]. */
function rowFinder(group) {
  if (group === "tenant") return (tenant) => [tenant, ""];
  if (group === "domain") return (domain) => [`UD ${domain}`, ""];
  if (group === "host") {
    return (name) => {
      const zone = model.hosts.get(name)?.zone ?? null;
      return [name, zone === null ? "" : `Zone ${zone}`];
    };
  }
  const setOf = new Map();
  for (const set of model.scaleSets.values()) for (const tenant of set.tenants ?? []) setOf.set(tenant, set.name);
  return (tenant) => {
    const kind = model.tenants.get(tenant)?.kind;
    if (!SECTIONS[kind]) return ["standalone", "Standalone VMs"];
    return [(kind === "scale set" && setOf.get(tenant)) || tenant, SECTIONS[kind]];
  };
}

/** The rows, in order: `{ label, section, machines }`, the machines by update domain and name. `isWhole` adds empty hosts. */
export function groupRows(machines, group, isWhole) {
  const find = rowFinder(group);
  const { keyOf } = GROUPS[group];
  const rows = new Map();
  const byRowKey = new Map();
  const rowOf = (key) => {
    if (byRowKey.has(key)) return byRowKey.get(key);
    const [label, section] = find(key);
    const id = `${section}\n${label}`;
    const row = rows.get(id) ?? { label, section, key: `${naturalKey(section)}\n${naturalKey(label)}`, machines: [] };
    rows.set(id, row);
    byRowKey.set(key, row);
    return row;
  };
  for (const machine of machines) rowOf(keyOf(machine)).machines.push(machine);
  if (isWhole && group === "host") for (const name of model.hosts.keys()) rowOf(name);
  const list = [...rows.values()].sort(byKey);
  for (const row of list) row.machines = inOrder(row.machines);
  return list;
}

function inOrder(machines) {
  const known = machines.map((machine) => ({ machine, key: naturalKey(machine.name) }));
  known.sort((one, other) => one.machine.update_domain - other.machine.update_domain || byKey(one, other));
  return known.map(({ machine }) => machine);
}

/**
 * The place of everything, for a width in pixels. Tiles are parallel arrays, in the order of the rows:
 * `machines`, `x`, `y`, `rowOf`. Rows: { label, y, height, first, count }. `columns` are update domains.
 * A tile has the size `cell`; `stride` is larger if there is room for the name beside it.
 */
export function place(rows, group, width, isTouch) {
  const domains = group === "domain" ? [] : domainsOfFleet();
  const count = rows.reduce((sum, row) => sum + row.machines.length, 0);
  const cell = count > DENSE_FROM ? 14 : isTouch ? 26 : 22;
  const longest = rows.reduce((length, row) => Math.max(length, row.label.length), 6);
  const labelWidth = Math.round(Math.min(longest * 8 + 28, Math.max(96, Math.min(240, width * 0.3))));
  const room = Math.max(cell, width - labelWidth);
  const columnWidth = Math.floor(room / Math.max(1, domains.length));
  const names = count > NAMED_MAX ? [] : rows.flatMap((row) => row.machines.map((machine) => machine.name.length));
  const named = cell + 8 + 8 * Math.max(1, ...names);
  const stride = names.length && named <= columnWidth - CELL_PAD ? named : cell;
  const perColumn = Math.floor((columnWidth - CELL_PAD) / stride);
  const hasColumns = domains.length > 0 && perColumn >= 1;
  const perLine = hasColumns ? perColumn : Math.max(1, Math.floor(room / stride));
  const layout = {
    group, width, cell, stride, labelWidth, columnWidth, columns: hasColumns ? domains : [], rows: [], sections: [],
    machines: new Array(count), x: new Int32Array(count), y: new Int32Array(count), rowOf: new Int32Array(count),
  };
  let [y, tile, section] = [0, 0, ""];
  for (const row of rows) {
    if (row.section !== section) {
      section = row.section;
      layout.sections.push({ label: section, y });
      y += SECTION_HEIGHT;
    }
    const first = tile;
    let [lines, inCell, domain, left] = [1, 0, null, labelWidth];
    for (const machine of row.machines) {
      if (hasColumns && machine.update_domain !== domain) {
        [domain, inCell] = [machine.update_domain, 0];
        left = labelWidth + domains.indexOf(domain) * columnWidth;
      }
      const line = Math.floor(inCell / perLine);
      layout.machines[tile] = machine;
      layout.x[tile] = left + (inCell % perLine) * stride;
      layout.y[tile] = y + ROW_PAD + line * cell;
      layout.rowOf[tile] = layout.rows.length;
      lines = Math.max(lines, line + 1);
      inCell += 1;
      tile += 1;
    }
    const height = Math.max(lines * cell + 2 * ROW_PAD, 28);
    layout.rows.push({ label: row.label, y, height, first, count: tile - first });
    y += height;
  }
  return { ...layout, height: y };
}

/** The update domains of all machines, so that a filter leaves the columns where they are. */
function domainsOfFleet() {
  const domains = Array.from(model.machines.values(), (machine) => machine.update_domain);
  return [...new Set(domains)].sort((one, other) => one - other);
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

/** The nearest tile above (`direction` -1) or below (1) a tile, or the tile itself. A line counts more than a column. */
function tileBeyond({ machines, x, y }, from, direction) {
  let [best, least] = [from, Infinity];
  for (let tile = 0; tile < machines.length; tile += 1) {
    const dy = (y[tile] - y[from]) * direction;
    const distance = dy * 100_000 + Math.abs(x[tile] - x[from]);
    if (dy > 0 && distance < least) [best, least] = [tile, distance];
  }
  return best;
}

/**
 * The focus after a key: { tile } or { row }, or null if the key does not move it. Left of the first tile is the head of
 * its row, if `hasHead(row)`.
 */
export function nextFocus(layout, { tile, row }, key, isControl, hasHead) {
  const { machines, rows, rowOf } = layout;
  const isTile = tile !== undefined;
  const own = isTile && !isControl ? rows[rowOf[tile]] : { first: 0, count: machines.length };
  if (key === "Home") return { tile: own.first };
  if (key === "End") return { tile: own.first + own.count - 1 };
  if (key === "ArrowRight" && isTile) return { tile: Math.min(machines.length - 1, tile + 1) };
  if (key === "ArrowRight") return rows[row].count ? { tile: rows[row].first } : null;
  if (key === "ArrowLeft" && tile === own.first && hasHead(own)) return { row: rowOf[tile] };
  if (key === "ArrowLeft" && isTile) return { tile: Math.max(0, tile - 1) };
  const direction = { ArrowUp: -1, ArrowDown: 1, PageUp: -1, PageDown: 1 }[key];
  if (!direction) return null;
  const steps = key.startsWith("Page") ? PAGE_STEPS : 1;
  if (!isTile) return { row: Math.max(0, Math.min(rows.length - 1, row + direction * steps)) };
  let found = tile;
  for (let step = 0; step < steps; step += 1) found = tileBeyond(layout, found, direction);
  return { tile: found };
}
