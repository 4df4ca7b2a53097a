// The fleet on a canvas. It has the size of the visible part; only that part is drawn, and of a change only its tiles.

import { h, mark, replace } from "./dom.js";
import { count } from "./format.js";
import {
  DOMAIN_HELP, GROUPS, MACHINE_STATES, nextFocus, place, rowAt, short, startOf, startText, startTime, tileAt,
} from "./fleet_layout.js";
import { PHASES, makeSprites } from "./fleet_sprites.js";
import { STATES, model, nameOf } from "./model.js";

const SOON = STATES.soon.order;
const PHASE_MILLIS = 300;
const LABEL_FONT = "14px system-ui, sans-serif";
const REDUCED_MOTION = "(prefers-reduced-motion: reduce)";

/**
 * The map of the fleet. Calls `openObject(kind, name)` for a machine or a host that is chosen, and `relayout()` when its
 * width has changed.
 */
export class FleetMap {
  #openObject;
  #relayout;
  #layout = null;
  #states = new Uint8Array(0);
  #tiles = new Map();
  #sprites = null;
  #dpr = 0;
  #height = 0;
  #top = 0;
  #dirty = new Set();
  #isWholeDirty = false;
  #frame = 0;
  #phase = 0;
  #hovered = -1;
  // { tile } or { row }
  #focus = null;
  #selected = "";
  #ends = new AbortController();
  #observer = new ResizeObserver(() => this.#resize());
  #pulse = 0;

  constructor(openObject, relayout) {
    [this.#openObject, this.#relayout] = [openObject, relayout];
    this.head = h("div", { class: "fleet-columns", "aria-hidden": "true" });
    this.canvas = h("canvas", {
      id: "fleet-canvas", tabindex: "0", role: "application", "aria-roledescription": "fleet map",
    });
    this.space = h("div", {}, this.canvas);
    this.scroller = h("div", { id: "fleet-scroller" }, this.space);
    this.tip = h("div", { class: "fleet-tip", role: "tooltip", hidden: true });
    this.live = h("p", { class: "sr", "aria-live": "polite" });
    this.element = h("div", { class: "fleet-map" }, this.head, this.scroller, this.tip, this.live);
    this.context = this.canvas.getContext("2d");
    this.#listen();
  }

  #listen() {
    const { signal } = this.#ends;
    const on = (target, type, handler) => target.addEventListener(type, handler, { signal });
    const hide = () => {
      this.#hide();
      this.redraw();
    };
    on(this.scroller, "scroll", hide);
    on(this.canvas, "pointermove", (event) => event.pointerType !== "touch" && this.#hover(event));
    on(this.canvas, "pointerleave", () => this.#hide());
    on(this.canvas, "click", (event) => this.#click(event));
    on(this.canvas, "keydown", (event) => this.#key(event));
    on(this.canvas, "focus", () => this.#focusIn());
    on(this.canvas, "blur", hide);
    for (const query of ["(prefers-color-scheme: dark)", REDUCED_MOTION, "(forced-colors: active)"]) {
      on(matchMedia(query), "change", () => {
        this.#sprites = null;
        this.redraw();
      });
    }
    this.#observer.observe(this.scroller);
    this.#pulse = setInterval(() => this.#beat(), PHASE_MILLIS);
  }

  close() {
    this.#ends.abort();
    this.#observer.disconnect();
    clearInterval(this.#pulse);
    cancelAnimationFrame(this.#frame);
  }

  /** Shows other rows, or the same rows after machines have moved. `setStates` follows. */
  setRows(rows, group) {
    const focused = this.#layout?.group === group && this.#focus ? this.#focusName() : null;
    this.#layout = place(rows, group, this.scroller.clientWidth, matchMedia("(pointer: coarse)").matches);
    const { machines, height } = this.#layout;
    this.#tiles = new Map(machines.map((machine, tile) => [nameOf(machine), tile]));
    this.#states = new Uint8Array(machines.length);
    this.#sprites = null;
    this.#focus = this.#find(focused);
    this.space.style.height = `${height}px`;
    this.#drawHead();
    const size = `Map of ${count(machines.length, "VM")}, ${count(rows.length, "row")}, one per ${GROUPS[group].label}.`;
    const help = "Arrow keys move between VMs, Enter opens a VM. The table has the same content.";
    this.canvas.setAttribute("aria-label", `${size} ${help}`);
    this.#resize();
    this.redraw();
  }

  /** The machine of `tenant/name` that the panel shows. */
  select(name) {
    if (name === this.#selected) return;
    this.#selected = name;
    this.redraw();
  }

  /** Takes the machines of the rows, in any order, with their names (`tenant/name`) and their states. */
  setStates(names, machines, states) {
    for (let index = 0; index < names.length; index += 1) {
      const tile = this.#tiles.get(names[index]);
      if (tile === undefined) continue;
      this.#layout.machines[tile] = machines[index];
      if (this.#states[tile] === states[index]) continue;
      this.#states[tile] = states[index];
      this.#dirty.add(tile);
    }
    if (this.#dirty.size) this.#soon();
  }

  #drawHead() {
    const { group, columns, labelWidth, columnWidth } = this.#layout;
    const text = columnWidth >= 130 ? "update domain " : columnWidth >= 48 ? "UD " : "";
    const head = h("span", { class: "fleet-column", title: group === "domain" ? DOMAIN_HELP : null }, GROUPS[group].rowHead);
    const cells = columns.map((domain, index) => {
      const cell = h("span", { class: "fleet-column", title: DOMAIN_HELP }, `${text}${domain}`);
      cell.style.left = `${labelWidth + index * columnWidth}px`;
      return cell;
    });
    replace(this.head, head, cells);
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.scroller;
    if (!width || !height || !this.#layout) return;
    if (this.#layout.width !== width) return this.#relayout();
    const { canvas } = this;
    const dpr = devicePixelRatio;
    const size = [width, height].map((length) => Math.round(length * dpr));
    if (canvas.width === size[0] && canvas.height === size[1] && this.#dpr === dpr) return;
    if (this.#dpr !== dpr) this.#sprites = null;
    [this.#height, this.#dpr] = [height, dpr];
    [canvas.width, canvas.height] = size;
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    this.redraw();
  }

  #soon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  /** Draws everything with the next frame. */
  redraw() {
    this.#isWholeDirty = true;
    this.#soon();
  }

  /** Moves the pulsing outlines on, if any is visible. */
  #beat() {
    if (document.hidden || !this.#layout || matchMedia(REDUCED_MOTION).matches) return;
    this.#phase = (this.#phase + 1) % PHASES.length;
    this.#eachVisible((tile) => this.#states[tile] === SOON && this.#dirty.add(tile));
    if (this.#dirty.size) this.#soon();
  }

  #eachVisibleRow(visit) {
    const { rows } = this.#layout;
    const bottom = this.#top + this.#height;
    for (let index = rowAt(this.#layout, this.#top); rows[index]?.y < bottom; index += 1) visit(rows[index]);
  }

  #eachVisible(visit) {
    this.#eachVisibleRow(({ first, count }) => {
      for (let tile = first; tile < first + count; tile += 1) if (this.#isVisible(tile)) visit(tile);
    });
  }

  #isVisible(tile) {
    const y = this.#layout.y[tile] - this.#top;
    return y + this.#layout.cell > 0 && y < this.#height;
  }

  #draw() {
    if (!this.#layout || !this.#dpr) return;
    if (devicePixelRatio !== this.#dpr) return this.#resize();
    this.#sprites ??= makeSprites(this.element, this.#layout.cell, this.#dpr);
    const { context } = this;
    const { cell, stride, x, y, width, machines } = this.#layout;
    this.#top = this.scroller.scrollTop;
    // Tiles and rows have places in the whole fleet.
    context.setTransform(this.#dpr, 0, 0, this.#dpr, 0, -Math.round(this.#top * this.#dpr));
    if (this.#isWholeDirty) {
      context.clearRect(0, this.#top - 1, width, this.#height + 2);
      this.#drawRows();
      this.#eachVisible((tile) => this.#drawTile(tile));
      context.fillStyle = this.#sprites.colours.text;
      const drawName = (tile) => context.fillText(short(machines[tile].name), x[tile] + cell + 2, y[tile] + cell / 2);
      if (stride > cell) this.#eachVisible(drawName);
    } else {
      for (const tile of this.#dirty) {
        if (!this.#isVisible(tile)) continue;
        context.clearRect(x[tile], y[tile], cell, cell);
        this.#drawTile(tile);
      }
    }
    this.#drawFrames();
    this.#isWholeDirty = false;
    this.#dirty.clear();
  }

  #drawTile(tile) {
    const { cell, x, y } = this.#layout;
    const state = this.#states[tile];
    const sprite = state === SOON ? this.#sprites.pulses[this.#phase] : this.#sprites.states[state];
    this.context.drawImage(sprite, x[tile], y[tile], cell, cell);
  }

  /** The frames of the machine in the panel, and of the focus. */
  #drawFrames() {
    const { text, link } = this.#sprites.colours;
    const frame = (object, colour) => {
      const [x, y, width, height] = this.#boxOf(object);
      this.context.strokeStyle = colour;
      this.context.lineWidth = 2;
      this.context.strokeRect(x + 1, y + 1, width - 2, height - 2);
    };
    const tile = this.#tiles.get(this.#selected);
    if (tile !== undefined) frame({ tile }, text);
    if (this.#focus && document.activeElement === this.canvas) frame(this.#focus, link);
  }

  /** The place of a tile, or of the head of a row. */
  #boxOf({ tile, row }) {
    const { cell, x, y, rows, labelWidth } = this.#layout;
    return row === undefined ? [x[tile], y[tile], cell, cell] : [0, rows[row].y + 2, labelWidth - 6, 26];
  }

  #drawRows() {
    const { context } = this;
    const { sections, labelWidth, width } = this.#layout;
    const { colours, marks } = this.#sprites;
    context.textBaseline = "middle";
    context.fillStyle = colours.quiet;
    context.font = `600 ${LABEL_FONT}`;
    for (const { label, y } of sections) context.fillText(label, 0, y + 22);
    context.font = LABEL_FONT;
    this.#eachVisibleRow((row) => {
      context.fillStyle = colours.line;
      context.fillRect(0, row.y, width, 1);
      const isHost = this.#isHost(row);
      const state = isHost && hostState(row.label);
      context.fillStyle = isHost ? colours.link : colours.text;
      row.text ??= fit(context, short(row.label), labelWidth - 28);
      if (state) context.drawImage(marks[state], 0, row.y + 7, 16, 16);
      context.fillText(row.text, state ? 20 : 0, row.y + 15);
    });
  }

  #isHost = (row) => this.#layout.group === "host" && model.hosts.has(row.label);

  /** What is at the pointer: { tile } or { row }, or null. */
  #at(event) {
    if (!this.#layout) return null;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + this.scroller.scrollTop];
    const tile = tileAt(this.#layout, x, y);
    if (tile >= 0) return { tile };
    const index = rowAt(this.#layout, y);
    const row = this.#layout.rows[index];
    const isIn = row && x < this.#layout.labelWidth - 6 && y >= row.y && y < row.y + row.height;
    return isIn && this.#isHost(row) ? { row: index } : null;
  }

  #hover(event) {
    const found = this.#at(event);
    const tile = found?.tile ?? -1;
    this.canvas.style.cursor = found ? "pointer" : "";
    if (tile === this.#hovered) return;
    if (tile < 0) return this.#hide();
    this.#hovered = tile;
    this.#show(tile);
  }

  #show(tile) {
    const { x, y, cell, machines, width } = this.#layout;
    const machine = machines[tile];
    const state = MACHINE_STATES[this.#states[tile]];
    const until = startOf(machine);
    replace(this.tip,
      h("p", {}, mark(state), " ", h("b", {}, short(machine.name))),
      h("p", {}, state.name, until !== null && [" · start ", startTime(until)]),
      h("p", { class: "quiet" }, placeOf(machine).join(" · ")));
    this.tip.hidden = false;
    const tip = this.tip.getBoundingClientRect();
    const { scrollTop, offsetTop } = this.scroller;
    const top = y[tile] - scrollTop + offsetTop;
    const isBelow = top + cell + tip.height + 8 < this.#height + offsetTop;
    this.tip.style.left = `${Math.max(0, Math.min(x[tile], width - tip.width))}px`;
    this.tip.style.top = `${isBelow ? top + cell + 4 : top - tip.height - 4}px`;
  }

  #hide() {
    this.#hovered = -1;
    this.tip.hidden = true;
  }

  #click(event) {
    const found = this.#at(event);
    this.#hide();
    if (!found) return;
    this.#setFocus(found, true);
    this.#choose();
  }

  #choose() {
    if (this.#focus) this.#openObject(this.#focus.row === undefined ? "machine" : "host", this.#focusName());
  }

  #focusName() {
    const { tile, row } = this.#focus;
    return row === undefined ? nameOf(this.#layout.machines[tile]) : this.#layout.rows[row].label;
  }

  /** The focus on the object that had it before, if it is still there. */
  #find(name) {
    const isTile = this.#focus?.tile !== undefined;
    const index = isTile ? this.#tiles.get(name) ?? -1 : this.#layout.rows.findIndex((row) => row.label === name);
    if (index < 0) return null;
    return isTile ? { tile: index } : { row: index };
  }

  #focusIn() {
    if (!this.#layout?.machines.length) return;
    if (this.#focus && !this.canvas.matches(":focus-visible")) return;
    this.#setFocus(this.#focus ?? { tile: 0 });
  }

  #key(event) {
    if (!this.#layout?.machines.length || event.altKey || event.metaKey) return;
    const isChoice = event.key === "Enter" || event.key === " ";
    const next = nextFocus(this.#layout, this.#focus ?? { tile: 0 }, event.key, event.ctrlKey, this.#isHost);
    if (isChoice || next) event.preventDefault();
    if (isChoice) this.#choose();
    else if (next) this.#setFocus(next);
  }

  /** Moves the focus, scrolls to it, and says what it is. */
  #setFocus(focus, isQuiet = false) {
    this.#focus = focus;
    const { tile } = focus;
    const row = this.#layout.rows[focus.row];
    const [, top, , height] = this.#boxOf(focus);
    const below = top + height - this.#height;
    const { scrollTop } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top - 48;
    else if (below > scrollTop) this.scroller.scrollTop = below + 16;
    this.redraw();
    if (isQuiet) return;
    this.live.textContent = row ? hostSentence(row) : this.#sentence(tile);
    if (row) this.#hide();
    else requestAnimationFrame(() => this.#focus === focus && document.activeElement === this.canvas && this.#show(tile));
  }

  #sentence(tile) {
    const machine = this.#layout.machines[tile];
    const until = startOf(machine);
    const start = until === null ? [] : [`start ${startText(until)}`];
    return [short(machine.name), MACHINE_STATES[this.#states[tile]].name, ...start, ...placeOf(machine)].join(", ");
  }
}

function placeOf({ tenant, host, update_domain: domain }) {
  return [`tenant ${short(tenant)}`, ...(host ? [`host ${short(host)}`] : []), `update domain ${domain}`];
}

function hostSentence({ label, count: machines }) {
  return `host ${short(label)}, ${model.hosts.get(label)?.health ?? "unknown"}, ${count(machines, "VM")}. Enter opens it.`;
}

/** The mark beside the name of a host, or null. */
function hostState(name) {
  const host = model.hosts.get(name);
  if (host.attention || host.health !== "healthy") return "failed";
  if (host.step_since) return "started";
  return host.work ? "scheduled" : null;
}

function fit(context, text, width) {
  let fitting = text;
  for (let end = text.length - 1; end > 0 && context.measureText(fitting).width > width; end -= 1) {
    fitting = `${text.slice(0, end)}…`;
  }
  return fitting;
}
