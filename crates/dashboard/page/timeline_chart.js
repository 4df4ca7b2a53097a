// The chart of the timeline: lanes, axis, bars and the line of now. Only what is visible is in the document. A tick moves the
// line of now and the growing bars; a lane is drawn again when its bars change, everything when the view or the lanes change.

import { h, s } from "./dom.js";
import { DAY, HOUR, SECOND, clamp, clockTime, fullDay, fullTime } from "./format.js";
import { model } from "./model.js";
import { marks } from "./timeline_axis.js";
import { cutText, hatches } from "./timeline_bars.js";
import { isWithin, stateOf } from "./timeline_data.js";
import { AXIS, LANE_PAD, contentOfLane, drawLane } from "./timeline_lane.js";

const NOW_WIDTH = 70; // between now and a date, so that their texts do not overlap
const ROLLOUT_ROW = 30;
const OVERSCAN = 0.2; // the part of the width that is drawn beyond each edge, for moving without drawing
const SETTLE = 160;
const SIGHT = "200px";
const clampSpan = (span) => clamp(span, 10 * SECOND, 90 * DAY);
const ELEMENTS_MAX = 1200;
const LANES_PER_FRAME = 3;
const SIZES = { full: { row: 36, bar: 12, above: 18 }, small: { row: 22, bar: 12, above: 6 } };

export class Chart {
  lanes = [];
  total = 0; // the height of all lanes
  height = Infinity; // of the visible part, after the first drawing
  span = HOUR;
  follow = true;
  fraction = 0.6; // the place of now while the chart follows it
  from = 0;
  drawn = { from: 0, to: 1, now: 0 };
  current = "";

  #drawnLanes = new Map(); // by key: { lane, element, shown, content }
  #byKey = new Map(); // drawn bars and clusters by the key of each bar
  #outdated = new Map(); // lanes to draw again, by key
  #part = 0; // the frame that draws some of them
  #places = ""; // of all lanes
  #top = 0;
  #dates = []; // { at, element } of the days on the axis
  #moving = []; // groups that move with the time
  #frame = 0;
  #width = 0;
  #settle = 0;
  #isUnseen = false;

  /** `onMove()` is called after each change of the visible time, `onDraw()` after each drawing and update. */
  constructor({ size = "full", label, onMove = () => {}, onDraw = () => {} }) {
    Object.assign(this, { size: SIZES[size], isSmall: size === "small", onMove, onDraw });
    this.svg = s("svg", { class: `timeline-svg ${size}`, role: "group", "aria-label": label });
    this.spacer = h("div", { class: "timeline-spacer" }, this.svg);
    this.element = h("div", { class: "timeline-chart", id: `timeline-${size}`,
      on: { scroll: () => this.request() },
      ...(this.isSmall ? {} : { tabindex: "0", role: "region", "aria-label": label }) }, this.spacer);
    this.observer = new ResizeObserver(() => this.element.clientWidth !== this.#width && this.request());
    this.observer.observe(this.element);
    // A chart beyond the edge of the window is drawn when it comes near.
    this.sight = new IntersectionObserver((entries) => {
      this.#isUnseen = !entries.at(-1).isIntersecting;
      this.request();
    }, { rootMargin: SIGHT });
    if (this.isSmall) this.sight.observe(this.element);
  }

  close() {
    this.observer.disconnect();
    this.sight.disconnect();
    this.#cancel();
  }

  /** Cancels what was to be drawn. */
  #cancel() {
    for (const frame of [this.#frame, this.#part]) cancelAnimationFrame(frame);
    clearTimeout(this.#settle);
    [this.#frame, this.#part] = [0, 0];
    this.#outdated.clear();
  }

  /** Shows lanes. If their places are the same, only those are drawn whose bars have changed: a tick moves the others. */
  update(lanes) {
    this.lanes = lanes;
    if (this.#isUnseen) return;
    this.#layout();
    if (this.#placesOf() !== this.#places || !this.#shift()) return void this.draw();
    this.#outdated = new Map(this.#inView().filter((lane) => !this.#adopt(lane)).map((lane) => [lane.key, lane]));
    this.#move();
    this.#drawSome();
  }

  #placesOf() {
    return JSON.stringify([model.loadedFrom, this.lanes.map(({ key, title, top, height }) => [key, title, top, height])]);
  }

  /** The time that is drawn, which is longer than the visible one. */
  #margins() {
    const { from, to } = this.range();
    return { from: from - this.span * OVERSCAN, to: to + this.span * OVERSCAN };
  }

  /** Takes the bars of a lane for those that are drawn. False if they do not look the same. */
  #adopt(lane) {
    const drawn = this.#drawnLanes.get(lane.key);
    if (!drawn?.content || drawn.content !== contentOfLane(lane, this.#margins())) return false;
    const bars = new Map(lane.rows.flat().map((bar) => [bar.key, bar]));
    for (const found of drawn.shown) {
      found.bars = found.bars.map((bar) => bars.get(bar.key) ?? bar);
      found.item = found.bars[0].item;
    }
    drawn.lane = lane;
    return true;
  }

  /** Draws outdated lanes, some in each frame. */
  #drawSome() {
    if (this.#outdated.size === 0) return this.onDraw();
    const focused = this.#focused;
    for (const lane of [...this.#outdated.values()].slice(0, LANES_PER_FRAME)) {
      this.#outdated.delete(lane.key);
      const before = this.#drawnLanes.get(lane.key);
      for (const { bars } of before.shown) for (const { key } of bars) this.#byKey.delete(key);
      before.element.replaceWith(this.#drawLane(lane).element);
    }
    this.#setFocus(focused);
    this.#part ||= requestAnimationFrame(() => {
      this.#part = 0;
      this.#drawSome();
    });
  }

  #drawLane(lane) {
    const gap = this.#shown.length > ELEMENTS_MAX ? 40 : 2;
    const view = { x: this.x, left: this.left, width: this.#width, height: this.height, scale: this.scale, overscan: this.#overscan,
      drawn: this.drawn, size: this.size, isSmall: this.isSmall, gap };
    const drawn = { lane, content: contentOfLane(lane, this.#margins()), ...drawLane(lane, AXIS + lane.top - this.#top, view) };
    this.#drawnLanes.set(lane.key, drawn);
    for (const found of drawn.shown) for (const { key } of found.bars) this.#byKey.set(key, found);
    return drawn;
  }

  get #shown() {
    return [...this.#drawnLanes.values()].flatMap(({ shown }) => shown);
  }

  #inView() {
    return this.lanes.filter((lane) => lane.top + lane.height >= this.#top && lane.top <= this.#top + this.height);
  }

  get #focused() {
    return document.activeElement?.closest?.(".bar")?.dataset.key;
  }

  /** Gives the focus back to a bar. One bar is in the tab order: the current one, or the first. */
  #setFocus(focused) {
    this.svg.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    (this.found(this.current) ?? this.#shown[0])?.element.setAttribute("tabindex", "0");
    const bar = this.found(focused)?.element;
    if (bar !== document.activeElement) bar?.focus({ preventScroll: true });
  }

  get #overscan() {
    return this.#width * OVERSCAN;
  }

  /** Places the lanes: each is as high as its rows with bars in the visible time need. */
  #layout() {
    this.total = 0;
    for (const lane of this.lanes) {
      const own = lane.rollout ? ROLLOUT_ROW : 0;
      const count = Math.max(1, lane.rows.findLastIndex((row) => row.some(this.#isVisible)) + 1);
      Object.assign(lane, { top: this.total, own, height: own + count * this.size.row + LANE_PAD });
      this.total += lane.height;
    }
  }

  #isVisible = ({ item }) => isWithin(item, this.range());

  /** The visible time. */
  range() {
    const from = this.follow ? model.now() - this.fraction * this.span : this.from;
    return { from, to: from + this.span };
  }

  /** Shows a length of time; without `from`, around now. */
  show(span, from = null) {
    const isMove = span === this.span;
    this.span = clampSpan(span);
    this.follow = from === null;
    this.from = from ?? 0;
    clearTimeout(this.#settle);
    if (isMove && this.#shift()) this.#settle = setTimeout(() => this.draw(), SETTLE);
    else this.request();
    this.onMove();
  }

  /** Moves what is drawn to the visible time. False if it has to be drawn again. */
  #shift() {
    const shift = (this.range().from - this.drawn.from) * this.scale;
    if (!(Math.abs(shift) < this.#overscan)) return false;
    const transform = shift ? `translate(${(-shift).toFixed(2)} 0)` : "";
    for (const group of this.#moving) group.setAttribute("transform", transform);
    return true;
  }

  pan(millis) {
    this.show(this.span, this.range().from + millis);
  }

  /** Zooms by a factor around a time: that of the pointer, or now, or the middle. */
  zoom(factor, anchor = null) {
    const { from } = this.range();
    const span = clampSpan(this.span * factor);
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
    return this.lanes.flatMap((lane) => lane.rows.flat()).sort((one, other) =>
      one.item.begin - other.item.begin || (one.key < other.key ? -1 : 1));
  }

  request() {
    if (!this.#isUnseen) this.#frame ||= requestAnimationFrame(() => this.draw());
  }

  tick() {
    if (this.#isUnseen) return;
    if (!this.#shift()) return this.request();
    if (model.now() === this.drawn.now) return;
    this.#move();
    if (this.#outdated.size) this.#drawSome();
  }

  /** Moves what depends on the time. Time alone changes states, too. */
  #move() {
    this.drawn.now = model.now();
    const isOther = ({ state, item }) => state && state !== stateOf(item);
    for (const { lane, shown } of this.#drawnLanes.values()) {
      if (this.#outdated.has(lane.key)) continue;
      if (shown.some(isOther)) this.#outdated.set(lane.key, lane);
      else for (const { grow } of shown) grow?.(this.drawn.now);
    }
    this.#moveNow(this.drawn.now);
  }

  x = (time) => clamp(this.left + (time - this.drawn.from) * this.scale, -this.#width / 2, this.#width * 1.5);

  draw() {
    this.#cancel();
    this.#places = "";
    // Everything is measured before anything changes: otherwise the browser would lay the page out in between.
    const { clientWidth: width, scrollTop } = this.element;
    if (!width || this.lanes.length === 0) return;
    const heightMax = this.isSmall ? Infinity : roomFor(this.element);
    this.#layout();
    this.#resize(width, Math.min(AXIS + this.total, heightMax));
    const { height } = this;
    this.#top = Math.min(scrollTop, AXIS + this.total - height);
    const longest = Math.max(8, ...this.lanes.map(({ name }) => name.length));
    this.left = Math.round(Math.min(longest * 7.4 + 20, width * 0.22));
    this.drawn = { ...this.range(), now: model.now() };
    this.scale = (width - this.left) / this.span;
    const focused = this.#focused;
    const [axis, grid] = this.#axis();
    const [names, rows, bars] = this.#lanes();
    this.line = s("g", { class: "now" },
      s("path", { class: "now-line" }), s("text", { class: "now-text", y: 14, "text-anchor": "middle" }));
    this.#moving = [s("g", {}, grid, axis, this.line), s("g", {}, bars)];
    const clipped = (id, x, y, clipWidth, ...content) => [
      s("clipPath", { id }, s("rect", { x, y, width: clipWidth, height })), s("g", { "clip-path": `url(#${id})` }, content)];
    this.svg.replaceChildren(
      s("defs", {}, hatches()),
      s("rect", { class: "ground", width, height }),
      ...clipped("plot-axis", this.left, 0, width - this.left, this.#moving[0]),
      ...clipped("names", 0, AXIS, this.left, names),
      ...clipped("plot", this.left, AXIS, width - this.left, rows, this.#moving[1]),
      this.#corner());
    this.#moveNow(this.drawn.now);
    this.#setFocus(focused);
    this.#places = this.#placesOf();
    this.onDraw();
  }

  #resize(width, height) {
    this.spacer.style.height = `${AXIS + this.total}px`;
    if (width === this.#width && height === this.height) return;
    [this.#width, this.height] = [width, height];
    this.element.style.height = `${height}px`;
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
  }

  #axis() {
    const { from, to } = this.drawn;
    const margin = this.#overscan / this.scale;
    const found = marks(from - margin, to + margin, this.#width - this.left + 2 * this.#overscan);
    const isWhole = ({ at }) => [this.left, this.#width].every((edge) => Math.abs(this.x(at) - edge) > 20);
    const textAt = (at, y, name, text) => s("text", { class: name, x: this.x(at).toFixed(1), y, "text-anchor": "middle" }, text);
    const whole = found.filter(isWhole);
    this.#dates = whole.filter(({ date }) => date).map(({ at, date }) => ({ at, element: textAt(at, 14, "mark-date", date) }));
    const axis = [whole.map(({ at, text }) => textAt(at, 32, "mark-text", text)), this.#dates.map(({ element }) => element)];
    const line = ({ at, date }) => s("path", { class: date ? "grid day" : "grid",
      d: `M${this.x(at).toFixed(1)} ${AXIS - 6}V${this.height}` });
    const area = (name, x, width) => s("rect", { class: name, x, y: AXIS, width: Math.max(0, width), height: this.height });
    const begin = this.x(from - margin);
    this.future = area("future", 0, 0);
    return [axis, [this.future, area("unread", begin, this.x(model.loadedFrom ?? -Infinity) - begin), found.map(line)]];
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
    this.#drawnLanes.clear();
    this.#byKey.clear();
    for (const lane of this.#inView()) {
      const y = AXIS + lane.top - this.#top;
      rows.push(s("path", { class: "edge", d: `M${this.left} ${y + lane.height - 0.5}H${this.#width}` }));
      names.push(
        s("path", { class: "edge", d: `M0 ${y + lane.height - 0.5}H${this.left}` }),
        s("text", { class: "lane", x: 4, y: y + Math.min(lane.height / 2 + 4, 22) }, cutText(lane.name, this.left - 2),
          s("title", {}, lane.title)));
      bars.push(this.#drawLane(lane).element);
    }
    return [names, rows, bars];
  }

  #moveNow(now) {
    const x = this.x(now).toFixed(1);
    this.future.setAttribute("x", x);
    this.future.setAttribute("width", Math.max(0, this.#width + this.#overscan - x).toFixed(1));
    const [path, text] = this.line.children;
    path.setAttribute("d", `M${x} ${AXIS - 6}V${this.height}`);
    text.setAttribute("x", x);
    text.textContent = `now ${clockTime(now).slice(0, 8)}`;
    this.line.setAttribute("aria-label", `now, ${fullTime(now)}`);
    for (const { at, element } of this.#dates) {
      element.setAttribute("visibility", Math.abs(this.x(at) - x) < NOW_WIDTH ? "hidden" : "visible");
    }
  }

  /** The drawn bar or cluster that shows a bar. */
  found = (key) => this.#byKey.get(key);

  /** Makes a bar visible, and gives it the focus. */
  focus(bar) {
    if (!this.#isVisible(bar)) this.show(this.span, bar.item.begin - this.span * 0.3);
    this.draw();
    const top = bar.lane.top + bar.lane.own + bar.row * this.size.row;
    this.element.scrollTop = clamp(this.element.scrollTop, top + this.size.row + AXIS - this.height, top);
    this.current = bar.key;
    this.draw();
    this.found(bar.key)?.element.focus({ preventScroll: true });
  }
}

/** The height that is left for a chart in the window. */
function roomFor(element) {
  const footer = document.getElementById("footer");
  const top = element.getBoundingClientRect().top + window.scrollY;
  return Math.max(320, window.innerHeight - top - footer.offsetHeight - 72);
}
