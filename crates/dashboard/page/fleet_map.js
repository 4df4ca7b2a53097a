// The fleet on a canvas. It has the size of the visible part; only that part is drawn, and of a change only its tiles.

import { h, mark, replace, visible } from "./dom.js";
import { count, countdown, fullTime } from "./format.js";
import { GROUPS, MACHINE_STATES, nameOf, nextFocus, place, rowAt, startOf, tileAt } from "./fleet_layout.js";
import { PHASES, makeSprites } from "./fleet_sprites.js";
import { STATES, model } from "./model.js";

const SOON = MACHINE_STATES.indexOf(STATES.soon);
const PHASE_MILLIS = 300;
const LABEL_FONT = "14px system-ui, sans-serif";
const SECTION_FONT = "600 14px system-ui, sans-serif";
const DOMAIN_HELP = "Update domain: VMs of one tenant that may be interrupted together. "
  + "Planned work touches one update domain of a tenant at a time.";

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
  #group = "host";
  #sprites = null;
  #dpr = 0;
  #size = { width: 0, height: 0 };
  #dirty = new Set();
  #isWholeDirty = false;
  #frame = 0;
  #phase = 0;
  #pulse = 0;
  #hovered = -1;
  #focus = null; // { tile } or { row }
  #focusName = "";
  #selected = "";
  #selectedTile = -1;
  #ends = new AbortController();

  constructor(openObject, relayout) {
    [this.#openObject, this.#relayout] = [openObject, relayout];
    this.head = h("div", { class: "fleet-columns", "aria-hidden": "true" });
    const role = { role: "application", "aria-roledescription": "fleet map" };
    this.canvas = h("canvas", { id: "fleet-canvas", class: "fleet-canvas", tabindex: "0", ...role });
    this.space = h("div", { class: "fleet-space" }, this.canvas);
    this.scroller = h("div", { class: "fleet-scroller", id: "fleet-scroller" }, this.space);
    this.tip = h("div", { class: "fleet-tip", role: "tooltip", hidden: true });
    this.live = h("p", { class: "sr", "aria-live": "polite" });
    this.element = h("div", { class: "fleet-map" }, this.head, this.scroller, this.tip, this.live);
    this.context = this.canvas.getContext("2d");
    this.#listen();
  }

  #listen() {
    const { signal } = this.#ends;
    const on = (target, type, handler) => target.addEventListener(type, handler, { signal });
    on(this.scroller, "scroll", () => (this.#hide(), this.#wholeSoon()));
    on(this.canvas, "pointermove", (event) => event.pointerType !== "touch" && this.#hover(event));
    on(this.canvas, "pointerleave", () => this.#hide());
    on(this.canvas, "click", (event) => this.#click(event));
    on(this.canvas, "keydown", (event) => this.#key(event));
    on(this.canvas, "focus", () => this.#focusIn());
    on(this.canvas, "blur", () => (this.#hide(), this.#wholeSoon()));
    for (const query of ["(prefers-color-scheme: dark)", "(prefers-reduced-motion: reduce)", "(forced-colors: active)"]) {
      on(matchMedia(query), "change", () => ((this.#sprites = null), this.#wholeSoon()));
    }
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.scroller);
    this.#pulse = setInterval(() => this.#beat(), PHASE_MILLIS);
  }

  close() {
    this.#ends.abort();
    this.observer.disconnect();
    clearInterval(this.#pulse);
    cancelAnimationFrame(this.#frame);
  }

  /** Shows other rows, or the same rows after machines have moved. `setStates` follows. */
  setRows(rows, group) {
    const width = this.scroller.clientWidth;
    if (group !== this.#group) [this.#focus, this.#focusName] = [null, ""];
    this.#group = group;
    this.#layout = place(rows, group, width, matchMedia("(pointer: coarse)").matches);
    const { machines, columns, height } = this.#layout;
    this.#tiles = new Map(machines.map((machine, tile) => [nameOf(machine), tile]));
    this.#states = new Uint8Array(machines.length);
    this.#sprites = null;
    this.#selectedTile = this.#tiles.get(this.#selected) ?? -1;
    this.#keepFocus();
    this.space.style.height = `${height}px`;
    this.#drawHead(columns);
    this.canvas.setAttribute("aria-label", this.#label());
    this.#resize();
    this.#wholeSoon();
  }

  /** The machine of `tenant/name` that the panel shows. */
  select(name) {
    if (name === this.#selected) return;
    this.#selected = name;
    this.#selectedTile = this.#tiles.get(name) ?? -1;
    this.#wholeSoon();
  }

  /** Takes the machines of the rows, in any order, with their names (`tenant/name`) and their states. */
  setStates(names, machines, states) {
    if (!this.#layout) return;
    for (let index = 0; index < names.length; index += 1) {
      const tile = this.#tiles.get(names[index]);
      if (tile === undefined) continue;
      this.#layout.machines[tile] = machines[index];
      if (this.#states[tile] === states[index]) continue;
      this.#states[tile] = states[index];
      if (!this.#isWholeDirty) this.#dirty.add(tile);
    }
    if (this.#dirty.size) this.#soon();
  }

  /** Hosts have changed: their names may get or lose a mark. */
  drawHosts() {
    if (this.#group === "host") this.#wholeSoon();
  }

  /** Twice a second: the countdown in the tooltip. */
  tick() {
    const time = this.tip.querySelector("[data-until]");
    if (time && !this.tip.hidden) time.textContent = left(Number(time.dataset.until));
  }

  #label() {
    const { machines, rows } = this.#layout;
    return `Map of ${count(machines.length, "VM")}, ${count(rows.length, "row")}, one per ${GROUPS[this.#group].label}. `
      + "Arrow keys move between VMs, Enter opens a VM. The table has the same content.";
  }

  #drawHead(columns) {
    const text = (domain, width) => (width >= 130 ? `update domain ${domain}` : width >= 48 ? `UD ${domain}` : domain);
    const head = h("span", { class: "fleet-column", title: this.#group === "domain" ? DOMAIN_HELP : null }, GROUPS[this.#group].rowHead);
    const cells = (columns ?? []).map(({ domain, x, width }) => {
      const cell = h("span", { class: "fleet-column", title: DOMAIN_HELP }, text(domain, width));
      cell.style.left = `${x}px`;
      return cell;
    });
    replace(this.head, head, cells);
  }

  #resize() {
    const [width, height] = [this.scroller.clientWidth, this.scroller.clientHeight];
    if (!width || !height || !this.#layout) return;
    if (this.#layout.width !== width) return this.#relayout();
    const dpr = window.devicePixelRatio || 1;
    if (this.#size.width === width && this.#size.height === height && this.#dpr === dpr) return;
    if (this.#dpr !== dpr) this.#sprites = null;
    [this.#size, this.#dpr] = [{ width, height }, dpr];
    this.canvas.width = Math.round(width * dpr);
    this.canvas.height = Math.round(height * dpr);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.#wholeSoon();
  }

  #soon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw(this.#isWholeDirty);
    });
  }

  #wholeSoon() {
    this.#isWholeDirty = true;
    this.#soon();
  }

  /** Moves the pulsing outlines on, if any is visible. */
  #beat() {
    if (document.hidden || !this.#layout || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    this.#phase = (this.#phase + 1) % PHASES.length;
    this.#eachVisible((tile) => this.#states[tile] === SOON && this.#dirty.add(tile));
    if (this.#dirty.size) this.#soon();
  }

  #eachVisible(visit) {
    const { rows, y, cell } = this.#layout;
    const top = this.scroller.scrollTop;
    const bottom = top + this.#size.height;
    for (let index = rowAt(this.#layout, top); index < rows.length && rows[index].y < bottom; index += 1) {
      const row = rows[index];
      for (let tile = row.first; tile < row.first + row.count; tile += 1) {
        if (y[tile] + cell > top && y[tile] < bottom) visit(tile);
      }
    }
  }

  #draw(isWhole) {
    if (!this.#layout || !this.canvas.width) return;
    if ((window.devicePixelRatio || 1) !== this.#dpr) return this.#resize();
    this.#sprites ??= makeSprites(this.element, this.#layout.cell, this.#dpr);
    const { context } = this;
    const { cell, x, y } = this.#layout;
    const top = this.scroller.scrollTop;
    context.setTransform(this.#dpr, 0, 0, this.#dpr, 0, 0);
    if (isWhole) {
      context.clearRect(0, 0, this.#size.width, this.#size.height);
      this.#drawRows(top);
      this.#eachVisible((tile) => this.#drawTile(tile, top));
      if (this.#layout.stride > cell) this.#drawNames(top);
    } else {
      for (const tile of this.#dirty) {
        if (y[tile] + cell <= top || y[tile] >= top + this.#size.height) continue;
        context.clearRect(x[tile], y[tile] - top, cell, cell);
        this.#drawTile(tile, top);
      }
    }
    this.#isWholeDirty = false;
    this.#dirty.clear();
  }

  #drawTile(tile, top) {
    const { cell, x, y } = this.#layout;
    const state = this.#states[tile];
    const sprite = state === SOON ? this.#sprites.pulses[this.#phase] : this.#sprites.states[state];
    this.context.drawImage(sprite, x[tile], y[tile] - top, cell, cell);
    const isFocus = this.#focus?.tile === tile && document.activeElement === this.canvas;
    const { link, text } = this.#sprites.colours;
    if (isFocus || tile === this.#selectedTile) this.#frameTile(x[tile], y[tile] - top, cell, cell, isFocus ? link : text);
  }

  #drawNames(top) {
    const { cell, x, y, machines } = this.#layout;
    this.context.font = LABEL_FONT;
    this.context.textBaseline = "middle";
    this.context.fillStyle = this.#sprites.colours.text;
    this.#eachVisible((tile) => this.context.fillText(visible(machines[tile].name, 80), x[tile] + cell + 2, y[tile] - top + cell / 2));
  }

  #frameTile(x, y, width, height, colour) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = 2;
    this.context.strokeRect(x + 1, y + 1, width - 2, height - 2);
  }

  #drawRows(top) {
    const { context } = this;
    const { rows, sections, labelWidth, width } = this.#layout;
    const { colours } = this.#sprites;
    const bottom = top + this.#size.height;
    context.textBaseline = "middle";
    context.fillStyle = colours.quiet;
    context.font = SECTION_FONT;
    for (const { label, y } of sections) if (y + 40 > top && y < bottom) context.fillText(label, 0, y - top + 22);
    context.font = LABEL_FONT;
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    for (let index = rowAt(this.#layout, top); index < rows.length && rows[index].y < bottom; index += 1) {
      const row = rows[index];
      const y = row.y - top;
      context.beginPath();
      context.moveTo(0, Math.round(y) + 0.5);
      context.lineTo(width, Math.round(y) + 0.5);
      context.stroke();
      const state = this.#group === "host" ? hostState(row.id) : null;
      const isLink = this.#isHost(row);
      context.fillStyle = isLink ? colours.link : colours.text;
      row.text ??= fit(context, visible(row.label, 80), labelWidth - 28);
      const textY = y + 15;
      if (state) context.drawImage(this.#sprites.marks[state], 0, textY - 8, 16, 16);
      context.fillText(row.text, state ? 20 : 0, textY);
      if (this.#focus?.row === index && document.activeElement === this.canvas) this.#frameTile(0, y + 2, labelWidth - 6, 26, colours.link);
    }
  }

  #isHost = (row) => this.#group === "host" && model.hosts.has(row.id);

  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top + this.scroller.scrollTop];
    if (!this.#layout) return {};
    const tile = tileAt(this.#layout, x, y);
    if (tile >= 0) return { tile };
    const index = rowAt(this.#layout, y);
    const row = this.#layout.rows[index];
    return row && x < this.#layout.labelWidth - 6 && y >= row.y && y < row.y + row.height && this.#isHost(row) ? { row: index } : {};
  }

  #hover(event) {
    const { tile = -1, row } = this.#at(event);
    this.canvas.style.cursor = tile >= 0 || row !== undefined ? "pointer" : "";
    if (tile === this.#hovered) return;
    this.#hovered = tile;
    if (tile < 0) this.#hide();
    else this.#show(tile);
  }

  #show(tile) {
    const { x, y, cell, machines, width } = this.#layout;
    const machine = machines[tile];
    const until = startOf(machine);
    replace(this.tip,
      h("p", {}, mark(MACHINE_STATES[this.#states[tile]]), " ", h("b", {}, visible(machine.name, 80))),
      h("p", {}, MACHINE_STATES[this.#states[tile]].name,
        until !== null && [" · starts in ", h("time", { class: "number", "data-until": until, title: fullTime(until) }, left(until))]),
      h("p", { class: "quiet" },
        `tenant ${visible(machine.tenant, 80)}`,
        machine.host && ` · host ${visible(machine.host, 80)}`,
        ` · update domain ${machine.update_domain}`));
    this.tip.hidden = false;
    const tip = this.tip.getBoundingClientRect();
    const top = y[tile] - this.scroller.scrollTop + this.scroller.offsetTop;
    const isBelow = top + cell + tip.height + 8 < this.#size.height + this.scroller.offsetTop;
    this.tip.style.left = `${Math.max(0, Math.min(x[tile], width - tip.width))}px`;
    this.tip.style.top = `${isBelow ? top + cell + 4 : top - tip.height - 4}px`;
  }

  #hide() {
    this.#hovered = -1;
    this.tip.hidden = true;
  }

  #click(event) {
    const { tile, row } = this.#at(event);
    this.#hide();
    if (tile !== undefined) this.#setFocus({ tile }, true);
    else if (row !== undefined) this.#setFocus({ row }, true);
    else return;
    this.#choose();
  }

  #choose() {
    const { tile, row } = this.#focus ?? {};
    if (tile !== undefined) this.#openObject("machine", nameOf(this.#layout.machines[tile]));
    else if (row !== undefined) this.#openObject("host", this.#layout.rows[row].id);
  }

  #focusIn() {
    if (!this.#layout?.machines.length) return;
    if (this.#focus && !this.canvas.matches(":focus-visible")) return;
    this.#setFocus(this.#focus ?? { tile: 0 });
  }

  #key(event) {
    if (!this.#layout?.machines.length || event.altKey || event.metaKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return this.#choose();
    }
    const next = nextFocus(this.#layout, this.#focus ?? { tile: 0 }, event.key, event.ctrlKey, this.#isHost);
    if (!next) return;
    event.preventDefault();
    this.#setFocus(next);
  }

  /** Moves the focus, scrolls to it, and says what it is. */
  #setFocus(focus, isQuiet = false) {
    this.#focus = focus;
    const { rows, y, cell, machines } = this.#layout;
    const isTile = focus.tile !== undefined;
    this.#focusName = isTile ? nameOf(machines[focus.tile]) : rows[focus.row].id;
    const [top, height] = isTile ? [y[focus.tile], cell] : [rows[focus.row].y, 28];
    const { scrollTop } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = Math.max(0, top - 48);
    else if (top + height > scrollTop + this.#size.height) this.scroller.scrollTop = top + height - this.#size.height + 16;
    this.#wholeSoon();
    if (isQuiet) return;
    this.live.textContent = isTile ? this.#sentence(focus.tile) : hostSentence(rows[focus.row]);
    if (isTile) requestAnimationFrame(() => this.#focus === focus && document.activeElement === this.canvas && this.#show(focus.tile));
    else this.#hide();
  }

  /** After a new layout, the focus is on the same object, if it is still there. */
  #keepFocus() {
    if (!this.#focus) return;
    const tile = this.#tiles.get(this.#focusName);
    const row = this.#layout.rows.findIndex((one) => one.id === this.#focusName);
    if (this.#focus.tile !== undefined) this.#focus = tile === undefined ? null : { tile };
    else this.#focus = row < 0 ? null : { row };
  }

  #sentence(tile) {
    const machine = this.#layout.machines[tile];
    const until = startOf(machine);
    const parts = [visible(machine.name, 80), MACHINE_STATES[this.#states[tile]].name];
    if (until !== null) parts.push(`starts in ${left(until)}`);
    parts.push(`tenant ${visible(machine.tenant, 80)}`);
    if (machine.host) parts.push(`host ${visible(machine.host, 80)}`);
    return `${parts.join(", ")}, update domain ${machine.update_domain}`;
  }
}

const left = (until) => countdown(until - model.now());

function hostSentence(row) {
  const host = model.hosts.get(row.id);
  return `host ${visible(row.label, 80)}, ${host?.health ?? "unknown"}, ${count(row.count, "VM")}. Enter opens it.`;
}

/** The mark beside the name of a host, or null. */
function hostState(name) {
  const host = model.hosts.get(name);
  if (!host) return null;
  if (host.attention || host.health !== "healthy") return "failed";
  if (host.step_since) return "started";
  return host.work ? "scheduled" : null;
}

function fit(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = Math.max(1, Math.floor((text.length * width) / context.measureText(text).width));
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}
