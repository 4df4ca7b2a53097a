// The chart of the timeline: lanes, axis, bars and the line of now. Only what is visible is in the document. A tick moves the
// line of now and the growing bars; everything else is drawn again only when data or view change.

import { h, s } from "./dom.js";
import { clockTime, fullTime, parseTime } from "./format.js";
import { model } from "./model.js";
import { SPAN_MAX, SPAN_MIN, fullDay, marks } from "./timeline_axis.js";
import { cutText, drawBar, drawCluster, hatches } from "./timeline_bars.js";
import { endOf, rolloutText, stateOf } from "./timeline_data.js";

const AXIS = 44;
const LANE_PAD = 5;
const ROLLOUT_ROW = 30;
const NARROW = 8;
const OVERSCAN = 0.2; // the part of the width that is drawn beyond each edge, for moving without drawing
const SETTLE = 160;
const ELEMENTS_MAX = 1200;
const SIZES = { full: { row: 36, bar: 12, above: 18 }, small: { row: 22, bar: 12, above: 6 } };

export class Chart {
  lanes = [];
  total = 0; // the height of all lanes
  span = 3600_000;
  follow = true;
  fraction = 0.6; // the place of now while the chart follows it
  from = 0;
  drawn = { from: 0, to: 1, now: 0 };
  byKey = new Map(); // drawn elements: { element, labels, bars, grow, state, item }
  moving = []; // groups that move with the time
  current = "";
  cost = 0; // milliseconds of the last drawing

  #owners = new Map();
  #frame = 0;
  #order = null;
  #width = 0;
  #settle = 0;
  #overscan = 0;

  /** `heightMax()` is the height in pixels that the chart may take; `drawn()` is called after each drawing. */
  constructor({ size = "full", label = "Timeline", heightMax = () => Infinity, onDraw = () => {} }) {
    Object.assign(this, { size: SIZES[size], isSmall: size === "small", heightMax, onDraw });
    this.svg = s("svg", { class: `timeline-svg ${size}`, role: "group", "aria-label": label });
    this.spacer = h("div", { class: "timeline-spacer" }, this.svg);
    this.element = h("div", { class: "timeline-chart", id: `timeline-${size}`,
      ...(this.isSmall ? {} : { tabindex: "0", role: "region", "aria-label": label }) }, this.spacer);
    this.element.addEventListener("scroll", () => this.request());
    this.observer = new ResizeObserver(() => this.element.clientWidth !== this.#width && this.request());
    this.observer.observe(this.element);
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#settle);
  }

  setLanes(lanes) {
    this.lanes = lanes;
    this.#order = null;
    this.request();
  }

  /** Places the lanes: each is as high as its rows with bars in the visible time need. */
  #layout() {
    const { from, to } = this.range();
    const now = model.now();
    const isVisible = ({ item }) => item.begin <= to && endOf(item, now) >= from;
    let top = 0;
    for (const lane of this.lanes) {
      const own = lane.rollout ? ROLLOUT_ROW : 0;
      const count = Math.max(1, lane.rows.findLastIndex((row) => row.some(isVisible)) + 1);
      Object.assign(lane, { top, own, height: own + count * this.size.row + LANE_PAD });
      top += lane.height;
    }
    this.total = top;
  }

  /** The visible time. */
  range() {
    const from = this.follow ? model.now() - this.fraction * this.span : this.from;
    return { from, to: from + this.span };
  }

  /** Shows a length of time; without `from`, around now. */
  show(span, from = null) {
    const isMove = span === this.span;
    this.span = Math.min(SPAN_MAX, Math.max(SPAN_MIN, span));
    this.follow = from === null;
    this.from = from ?? 0;
    if (!isMove || !this.#shift()) return this.request();
    clearTimeout(this.#settle);
    this.#settle = setTimeout(() => this.draw(), SETTLE);
  }

  /** Moves what is drawn to the visible time. False if it has to be drawn again. */
  #shift() {
    const shift = (this.range().from - this.drawn.from) * this.scale;
    if (!(Math.abs(shift) < this.#overscan)) return false;
    const transform = shift ? `translate(${(-shift).toFixed(2)} 0)` : "";
    for (const group of this.moving) group.setAttribute("transform", transform);
    return true;
  }

  pan(millis) {
    this.show(this.span, this.range().from + millis);
  }

  /** Zooms by a factor around a time: that of the pointer, or now, or the middle. */
  zoom(factor, anchor = null) {
    const { from } = this.range();
    const span = Math.min(SPAN_MAX, Math.max(SPAN_MIN, this.span * factor));
    if (anchor === null && this.follow) return this.show(span);
    const at = anchor ?? from + this.span / 2;
    this.show(span, at - ((at - from) / this.span) * span);
  }

  /** The time at a place of the window. */
  timeAt(clientX) {
    const { from } = this.range();
    const { left } = this.svg.getBoundingClientRect();
    return from + ((clientX - left - this.left) / (this.#width - this.left)) * this.span;
  }

  /** Every bar, in time order. */
  get order() {
    this.#order ??= this.lanes.flatMap((lane) => lane.rows.flat()).sort((one, other) =>
      one.item.begin - other.item.begin || (one.key < other.key ? -1 : 1));
    return this.#order;
  }

  request() {
    this.#frame ||= requestAnimationFrame(() => this.draw());
  }

  tick() {
    const now = model.now();
    const isOther = [...this.byKey.values()].some(({ state, item }) => state && state !== stateOf(item));
    if (isOther || !this.#shift()) return this.request();
    if (now === this.drawn.now) return;
    this.drawn.now = now;
    for (const { grow } of this.byKey.values()) grow?.(now);
    this.#moveNow(now);
  }

  x = (time) => Math.min(this.#width * 1.5, Math.max(-this.#width / 2, this.left + (time - this.drawn.from) * this.scale));

  draw() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#settle);
    this.#frame = 0;
    const begin = performance.now();
    const width = this.element.clientWidth;
    if (!width || this.lanes.length === 0) return;
    this.#layout();
    const height = Math.min(AXIS + this.total, Math.max(240, this.heightMax()));
    this.#width = width;
    this.#overscan = this.isSmall ? 48 : Math.round(width * OVERSCAN);
    this.element.style.height = `${height}px`;
    this.spacer.style.height = `${AXIS + this.total}px`;
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const longest = this.lanes.reduce((most, { name }) => Math.max(most, name.length), 8);
    this.left = Math.round(Math.min(longest * 7.4 + 20, width * 0.22));
    this.drawn = { ...this.range(), now: model.now() };
    this.scale = (width - this.left) / this.span;
    this.height = height;
    const focused = document.activeElement?.closest?.(".bar")?.dataset.key;
    const [axis, grid] = this.#axis();
    const [names, rows, bars] = this.#lanes();
    this.line = s("g", { class: "now" }, s("path", { class: "now-line" }), s("text", { class: "now-text", "text-anchor": "middle" }));
    const plot = s("clipPath", { id: "plot" }, s("rect", { x: this.left, y: AXIS, width: Math.max(0, width - this.left), height }));
    const all = s("clipPath", { id: "plot-axis" }, s("rect", { x: this.left, y: 0, width: Math.max(0, width - this.left), height }));
    const text = s("clipPath", { id: "names" }, s("rect", { x: 0, y: AXIS, width: this.left, height }));
    this.moving = [s("g", {}, grid, axis, this.line), s("g", {}, bars)];
    this.svg.replaceChildren(
      s("defs", {}, hatches(), plot, all, text),
      s("rect", { class: "ground", width, height }),
      s("g", { "clip-path": "url(#plot-axis)" }, this.moving[0]),
      s("g", { "clip-path": "url(#names)" }, names),
      s("g", { "clip-path": "url(#plot)" }, rows, this.moving[1]),
      this.#corner());
    this.#moveNow(this.drawn.now);
    this.#rove(focused);
    this.cost = performance.now() - begin;
    this.onDraw();
  }

  #axis() {
    const { from, to } = this.drawn;
    const margin = this.#overscan / this.scale;
    const found = marks(from - margin, to + margin, this.#width - this.left + 2 * this.#overscan);
    const isWhole = ({ at }) => Math.abs(this.x(at) - this.left) > 20 && Math.abs(this.x(at) - this.#width) > 20;
    const axis = found.filter(isWhole).map(({ at, text, date }) => [
      s("text", { class: "mark-text", x: this.x(at).toFixed(1), y: 32, "text-anchor": "middle" }, text),
      date && s("text", { class: "mark-date", x: this.x(at).toFixed(1), y: 14, "text-anchor": "middle" }, date),
    ]);
    const line = ({ at, date }) => s("path", { class: date ? "grid day" : "grid",
      d: `M${this.x(at).toFixed(1)} ${AXIS - 6}V${this.height}` });
    const area = (name, begin, end) => end > begin && s("rect",
      { class: name, x: this.x(begin), y: AXIS, width: this.x(end) - this.x(begin), height: this.height });
    const unread = model.loadedFrom ?? -Infinity;
    this.future = s("rect", { class: "future", y: AXIS, height: this.height });
    return [axis, [this.future, area("unread", from - margin, Math.min(unread, to)), found.map(line)]];
  }

  #corner() {
    const zone = model.isVirtual ? "UTC, virtual" : "UTC";
    return s("g", {},
      s("path", { class: "edge", d: `M0 ${AXIS - 0.5}H${this.#width}M${this.left + 0.5} ${AXIS}V${this.height}` }),
      s("text", { class: "mark-date", x: 4, y: 14 }, cutText(fullDay(this.drawn.from), this.left)),
      s("text", { class: "mark-text", x: 4, y: 32 }, zone, s("title", {},
        model.isVirtual ? "The server has a virtual clock: these are not the times of the real world" : "Coordinated Universal Time")));
  }

  #lanes() {
    const [names, rows, bars] = [[], [], []];
    const top = this.element.scrollTop;
    this.byKey.clear();
    this.#owners.clear();
    for (const lane of this.lanes) {
      if (lane.top + lane.height < top || lane.top > top + this.height) continue;
      const y = AXIS + lane.top - top;
      rows.push(s("path", { class: "edge", d: `M${this.left} ${y + lane.height - 0.5}H${this.#width}` }));
      names.push(
        s("path", { class: "edge", d: `M0 ${y + lane.height - 0.5}H${this.left}` }),
        s("text", { class: "lane", x: 4, y: y + Math.min(lane.height / 2 + 4, 22) }, cutText(lane.name, this.left - 2),
          s("title", {}, lane.title)));
      if (lane.rollout) bars.push(this.#rollout(lane.rollout, y));
      const bottom = y + lane.height - LANE_PAD;
      const rowTop = (index) => y + lane.own + index * this.size.row;
      lane.rows.forEach((row, index) => rowTop(index) < bottom && bars.push(this.#row(row, rowTop(index))));
    }
    return [names, rows, bars];
  }

  /** The row of a rollout itself: a thin line from its plan to its end, and what is left to do. */
  #rollout(rollout, y) {
    const begin = parseTime(rollout.planned_at) ?? this.drawn.now;
    const end = parseTime(rollout.ended_at) ?? this.drawn.now;
    const from = Math.max(this.x(begin), this.left + 4);
    if (this.x(end) < this.left || from > this.#width) return null;
    return s("g", { class: `rollout ${rollout.ended_at ? "done" : "started"}` },
      s("rect", { class: "whole", x: this.x(begin), y: y + 20, height: 4, rx: 2, width: Math.max(2, this.x(end) - this.x(begin)) }),
      s("text", { class: "label", x: from, y: y + 15 }, cutText(rolloutText(rollout), this.#width - from),
        s("title", {}, rolloutText(rollout))));
  }

  /** The visible bars of a row; those that are too close are one. */
  #row(row, y) {
    if (y > this.height || y + this.size.row < AXIS) return null;
    const { from, to, now } = this.drawn;
    const margin = (this.#overscan + 24) / this.scale;
    const groups = [];
    const gap = this.byKey.size > ELEMENTS_MAX ? 40 : 2;
    for (const bar of row) {
      if (bar.item.begin > to + margin) break;
      const end = endOf(bar.item, now);
      if (end < from - margin) continue;
      const [left, right] = [this.x(bar.item.begin), this.x(end)];
      const isNarrow = right - left < NARROW;
      const last = groups.at(-1);
      if (last && left < last.right + (isNarrow || last.isNarrow ? gap : -0.5)) {
        last.bars.push(bar);
        last.right = Math.max(last.right, right);
      } else groups.push({ bars: [bar], left, right: Math.max(right, left + NARROW), isNarrow });
    }
    return groups.map(({ bars, left }, index) => {
      const room = Math.min(groups[index + 1]?.left ?? Infinity, left < this.#width ? this.#width : Infinity) - 6;
      const place = { x: this.x, y: y + this.size.above, height: this.size.bar, room, left: this.left, hasLabels: !this.isSmall };
      const found = bars.length > 1 ? drawCluster(bars, place, now) : drawBar(bars[0], place, now);
      this.byKey.set(bars[0].key, { ...found, bars, item: bars[0].item });
      for (const bar of bars) this.#owners.set(bar.key, bars[0].key);
      return [found.element, found.labels];
    });
  }

  #moveNow(now) {
    const x = this.x(now).toFixed(1);
    this.future.setAttribute("x", x);
    this.future.setAttribute("width", Math.max(0, this.#width + this.#overscan - x).toFixed(1));
    const [path, text] = this.line.children;
    path.setAttribute("d", `M${x} ${AXIS - 6}V${this.height}`);
    text.setAttribute("x", x);
    text.setAttribute("y", 14);
    text.textContent = `now ${clockTime(now).slice(0, 8)}`;
    this.line.setAttribute("aria-label", `now, ${fullTime(now)}`);
  }

  /** One bar is in the tab order: the current one, or the first. */
  #rove(focused) {
    const drawnKey = this.#owners.get(this.current);
    const first = drawnKey ?? this.byKey.keys().next().value;
    this.byKey.get(first)?.element.setAttribute("tabindex", "0");
    if (focused !== undefined) this.byKey.get(this.#owners.get(focused))?.element.focus({ preventScroll: true });
  }

  /** The drawn bar or cluster that shows a bar. */
  found(key) {
    return this.byKey.get(this.#owners.get(key));
  }

  /** Makes a bar visible, and gives it the focus. */
  focus(bar) {
    const { from, to } = this.range();
    if (bar.item.begin > to || endOf(bar.item, model.now()) < from) this.show(this.span, bar.item.begin - this.span * 0.3);
    this.draw();
    const top = bar.lane.top + bar.lane.own + bar.row * this.size.row;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    const bottom = top + this.size.row + AXIS - this.height;
    if (bottom > this.element.scrollTop) this.element.scrollTop = bottom;
    this.current = bar.key;
    this.draw();
    this.found(bar.key)?.element.focus({ preventScroll: true });
  }
}
