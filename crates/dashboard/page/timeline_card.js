// The card of a bar: what the log and the server know about an event, and the document that its machines read now.

import { get } from "./api.js";
import { h, mark, preformatted, replace } from "./dom.js";
import { duration, fullTime, relative, shortId } from "./format.js";
import { VERSIONS } from "./event.js";
import { model } from "./model.js";
import { stateOf, titleOf } from "./timeline_data.js";

const SHOW_AFTER = 180;
const HIDE_AFTER = 350;
const READ_AFTER = 150;
const LISTED_MAX = 10;
const LABEL = 20; // the height of the label above a bar

export class Card {
  #bars = null;
  #anchor = null;
  #timer = 0;
  #reading = 0;
  #version = VERSIONS[0];
  #known = new Map(); // what was read about active events, until the data change

  constructor() {
    this.facts = h("div", {});
    this.waits = h("div", { "aria-live": "polite" });
    const choose = (change) => ((this.#version = change.target.value), this.#readDocument());
    this.choice = h("select", { id: "card-version", on: { change: choose } },
      VERSIONS.map((one) => h("option", { value: one }, one)));
    this.text = h("div", {});
    this.document = h("div", {}, h("p", {}, h("label", { for: "card-version" }, "Document, api-version "), this.choice), this.text);
    this.element = h("div", { class: "timeline-card", role: "group", "aria-label": "Event", hidden: true, on: {
      pointerenter: () => clearTimeout(this.#timer),
      pointerleave: () => this.leave(),
      focusout: (focus) => !this.element.contains(focus.relatedTarget) && this.leave(),
      focusin: () => clearTimeout(this.#timer),
    } }, this.facts, this.waits, this.document);
    this.escape = (key) => key.key === "Escape" && this.isOpen && this.#escape(key);
    document.addEventListener("keydown", this.escape);
  }

  close() {
    this.hide();
    document.removeEventListener("keydown", this.escape);
  }

  get isOpen() {
    return !this.element.hidden;
  }

  isOf(bars) {
    return this.isOpen && this.#bars?.[0].key === bars[0].key && this.#bars.length === bars.length;
  }

  /** Shows a card soon, unless the pointer goes on. */
  plan(bars, anchor, x) {
    clearTimeout(this.#timer);
    if (this.isOf(bars)) return;
    this.#timer = setTimeout(() => this.show(bars, anchor, x), this.isOpen ? SHOW_AFTER / 2 : SHOW_AFTER);
  }

  /** Hides the card soon, unless the pointer or the focus reaches it. */
  leave() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => !this.element.contains(document.activeElement) && this.hide(), HIDE_AFTER);
  }

  hide() {
    clearTimeout(this.#timer);
    this.#reading++;
    this.#bars = null;
    this.element.hidden = true;
  }

  #escape(key) {
    key.preventDefault();
    const isInside = this.element.contains(document.activeElement);
    const bar = document.getElementById(`bar-${this.#bars[0].key}`);
    if (isInside) bar?.focus({ preventScroll: true });
    this.hide();
  }

  show(bars, anchor, x) {
    clearTimeout(this.#timer);
    this.#bars = bars;
    this.#anchor = { box: (anchor.querySelector(".hit") ?? anchor).getBoundingClientRect(), x };
    this.element.hidden = false;
    replace(this.waits);
    replace(this.text);
    this.#draw();
    if (bars.length === 1) this.#read();
  }

  /** The data have changed: draws the card again, with the event as it is now. `bars` finds the bars of a key. */
  update(found) {
    this.#known.clear();
    if (!this.isOpen) return;
    const now = found(this.#bars[0].key);
    if (!now) return this.hide();
    this.#bars = now.bars;
    this.#draw();
    if (now.bars.length === 1) this.#read();
  }

  tick() {
    if (!this.isOpen) return;
    for (const time of this.facts.querySelectorAll("[data-time]")) {
      const text = relative(Number(time.dataset.time), model.now());
      if (time.textContent !== text) time.textContent = text;
    }
  }

  #draw() {
    const bars = this.#bars;
    if (bars.length > 1) this.#drawMany(bars);
    else replace(this.facts, ...facts(bars[0].item));
    const { item } = bars[0];
    this.document.hidden = bars.length > 1 || !item.event;
    this.waits.hidden = bars.length > 1;
    if (bars.length === 1 && !item.event) {
      replace(this.waits, h("p", { class: "quiet" },
        "It is not active: the document that its machines read then is not recorded. The times above are from the log."));
    }
    this.#place();
  }

  #drawMany(bars) {
    const row = ({ item }) => h("li", {}, mark(stateOf(item)), " ",
      h("a", { href: `#/event/${item.id}`, id: `card-${item.id}` }, titleOf(item, 2)),
      h("span", { class: "quiet" }, ` ${relative(item.begin, model.now())}`));
    replace(this.facts, h("h2", {}, `${bars.length} events`), h("ul", { class: "plain-list" }, bars.slice(0, LISTED_MAX).map(row)),
      bars.length > LISTED_MAX && h("p", { class: "quiet" }, `and ${bars.length - LISTED_MAX} more: zoom in, or choose the table.`));
  }

  #place() {
    const { box, x } = this.#anchor;
    const { style } = this.element;
    style.maxHeight = "";
    const [width, height] = [this.element.offsetWidth, this.element.offsetHeight];
    const [wide, high] = [document.documentElement.clientWidth, innerHeight];
    if (wide <= 640) return void ([style.left, style.top] = ["", ""]);
    const [above, below] = [box.top - LABEL - 8, high - box.bottom - 14];
    const isBelow = below >= height || below >= above;
    style.maxHeight = `${Math.min(520, Math.max(160, isBelow ? below : above))}px`;
    const left = Math.max(box.left, Math.min(x === null ? box.left : x - 40, box.right - 40), 8);
    style.left = `${Math.max(8, Math.min(left, wide - width - 16))}px`;
    style.top = `${isBelow ? box.bottom + 6 : Math.max(8, box.top - this.element.offsetHeight - LABEL)}px`;
  }

  /** Reads who blocks an active event and its document: after a moment, and once until the data change. */
  async #read() {
    const { item } = this.#bars[0];
    if (!item.event) return;
    const reading = ++this.#reading;
    const known = this.#known.get(item.id);
    if (!known) {
      if (!this.waits.textContent) replace(this.waits, h("p", { class: "quiet" }, "Reading what it waits for…"));
      await new Promise((resolve) => setTimeout(resolve, READ_AFTER));
      if (reading !== this.#reading) return;
    }
    let explanation = known;
    try {
      explanation ??= await get(`/v1/events/${encodeURIComponent(item.id)}/explanation`, { cluster: model.cluster });
      this.#known.set(item.id, explanation);
    } catch (problem) {
      if (reading === this.#reading) replace(this.waits, h("p", { class: "error" }, problem.message));
      return;
    }
    if (reading !== this.#reading) return;
    const blockers = explanation.blockers ?? [];
    replace(this.waits,
      blockers.length > 0 && [h("p", {}, h("b", {}, "It waits:")),
        h("ul", {}, blockers.slice(0, LISTED_MAX).map((text) => h("li", {}, text)))],
      (explanation.next ?? []).map((text) => h("p", {}, text)));
    await this.#readDocument();
  }

  async #readDocument() {
    const { item } = this.#bars[0];
    const reading = this.#reading;
    const key = `${item.tenant}?${this.#version}`;
    let text = this.#known.get(key);
    try {
      const path = `/v1/tenants/${encodeURIComponent(item.tenant)}/document`;
      text ??= JSON.stringify(await get(path, { cluster: model.cluster, "api-version": this.#version }), null, 2);
      this.#known.set(key, text);
    } catch (problem) {
      text = problem.message;
    }
    if (reading !== this.#reading || !this.isOpen) return;
    replace(this.text, preformatted(text, { class: "document", "aria-label": "Scheduled Events document", id: "card-document" }));
    this.#place();
  }
}

function facts(item) {
  const now = model.now();
  const moment = (millis) => [h("time", { "data-time": millis, title: fullTime(millis) }, relative(millis, now)),
    h("span", { class: "quiet" }, `, ${fullTime(millis)}`)];
  const fact = (name, title, ...value) => [h("dt", { title }, name), h("dd", {}, value)];
  const when = (name, title, millis, ...more) => millis !== null && fact(name, title, moment(millis), more);
  const step = ({ host, begin, end }) => fact(`Step on ${host}`, "Work on the host itself, while its machines are stopped or paused",
    moment(begin), end === null ? ", under way" : `, took ${duration(end - begin)}`);
  return [
    h("h2", {}, mark(stateOf(item)), " ", h("a", { href: `#/event/${item.id}`, id: "card-link" }, titleOf(item))),
    h("p", {}, stateOf(item).name, item.reason && `: ${item.reason}`, item.failed.length > 0 && ` for ${item.failed.join(", ")}`,
      h("span", { class: "quiet" }, ` · tenant ${item.tenant} · ${shortId(item.id)}`)),
    h("dl", {},
      item.cause && fact("Cause", "Why the event exists", item.cause),
      when("Announced", "Its machines can read it since then", item.announced),
      item.ended === null && item.started === null && when("Not before",
        "Without approval it starts at this time, not before; an approval lets it start earlier", item.notBefore),
      item.expected !== null && fact("Expected", "The announced length of the interruption", duration(item.expected)),
      item.approvals.map(({ at, by }) => fact("Approved", "Allowed to start before the end of its notice", by && `by ${by}, `, moment(at))),
      item.ended === null && item.approvals.length === 0 && item.started === null
        && fact("Approved", "Allowed to start before the end of its notice", "no"),
      when("Started", "The interruption began", item.started, item.startedBy && `, ${item.startedBy}`),
      item.steps.map(step),
      when("Ended", "The event left the document", item.ended,
        item.started !== null && item.ended !== null && `, took ${duration(item.ended - item.started)}`)),
  ];
}
