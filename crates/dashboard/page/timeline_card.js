// The card of a bar: what the log and the server know about an event, and the document that its machines read now.

import { h, mark, moment, quiet, quietSpan, replace, tickTimes } from "./dom.js";
import { clamp, eventTitle, fullTime, relative, shortId } from "./format.js";
import { VERSIONS, documentBox, readDocument, readExplanation, versionChoice, waitsFor } from "./event.js";
import { model } from "./model.js";
import { factsOf, stateOf } from "./timeline_data.js";

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
  #facts = h("div", {});
  #waits = h("div", { "aria-live": "polite" });
  #text = h("div", {});

  constructor() {
    const choose = (version) => ((this.#version = version), this.#readDocument());
    this.document = h("div", {}, versionChoice("card-version", "Document, api-version ", this.#version, choose), this.#text);
    this.element = h("div", { class: "timeline-card", role: "group", "aria-label": "Event", hidden: true, on: {
      pointerenter: () => clearTimeout(this.#timer),
      pointerleave: () => this.leave(),
      focusout: (focus) => !this.element.contains(focus.relatedTarget) && this.leave(),
      focusin: () => clearTimeout(this.#timer),
    } }, this.#facts, this.#waits, this.document);
    document.addEventListener("keydown", this.#escape);
  }

  #escape = (key) => {
    if (key.key !== "Escape" || !this.isOpen) return;
    key.preventDefault();
    if (this.element.contains(document.activeElement)) {
      document.getElementById(`bar-${this.#bars[0].key}`)?.focus({ preventScroll: true });
    }
    this.hide();
  };

  close() {
    this.hide();
    document.removeEventListener("keydown", this.#escape);
  }

  get isOpen() {
    return !this.element.hidden;
  }

  isOf(bars) {
    return this.isOpen && this.#bars[0].key === bars[0].key && this.#bars.length === bars.length;
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
    this.element.hidden = true;
  }

  show(bars, anchor, x) {
    this.hide();
    this.#bars = bars;
    this.#anchor = { box: (anchor.querySelector(".hit") ?? anchor).getBoundingClientRect(), x };
    this.element.hidden = false;
    replace(this.#waits);
    replace(this.#text);
    this.#draw();
  }

  /** The data have changed: draws the card again, with the event as it is now. `found` finds the bars of a key. */
  update(found) {
    if (!this.isOpen) return;
    const now = found(this.#bars[0].key);
    if (!now) return this.hide();
    this.#bars = now.bars;
    this.#draw();
  }

  tick() {
    if (this.isOpen) tickTimes(this.#facts, model.now());
  }

  #draw() {
    const [{ item }] = this.#bars;
    const isOne = this.#bars.length === 1;
    replace(this.#facts, isOne ? facts(item) : summary(this.#bars));
    this.document.hidden = !isOne || !item.event;
    this.#waits.hidden = !isOne;
    if (!item.event) {
      replace(this.#waits, quiet("It is not active, and the document that its machines read then is not recorded."));
    }
    this.#place();
    if (!this.document.hidden) this.#read(item.id);
  }

  #place() {
    const { box, x } = this.#anchor;
    const { style } = this.element;
    style.maxHeight = "";
    const [width, height] = [this.element.offsetWidth, this.element.offsetHeight];
    const wide = document.documentElement.clientWidth;
    if (wide <= 640) return void ([style.left, style.top] = ["", ""]);
    const [above, below] = [box.top - LABEL - 8, innerHeight - box.bottom - 14];
    const isBelow = below >= height || below >= above;
    style.maxHeight = `${clamp(isBelow ? below : above, 160, 520)}px`;
    const left = clamp(x === null ? box.left : x - 40, box.left, box.right - 40);
    style.left = `${clamp(left, 8, wide - width - 16)}px`;
    style.top = `${isBelow ? box.bottom + 6 : Math.max(8, box.top - this.element.offsetHeight - LABEL)}px`;
  }

  /** Reads who blocks an active event and its document, after a moment. */
  async #read(id) {
    const reading = ++this.#reading;
    if (!this.#waits.textContent) replace(this.#waits, quiet("Reading what it waits for…"));
    await new Promise((resolve) => setTimeout(resolve, READ_AFTER));
    if (reading !== this.#reading) return;
    const waits = await readExplanation(id).then(waitsFor, (problem) => h("p", { class: "error" }, problem.message));
    if (reading !== this.#reading) return;
    replace(this.#waits, waits);
    await this.#readDocument();
  }

  async #readDocument() {
    const reading = this.#reading;
    const text = await readDocument(this.#bars[0].item.tenant, this.#version);
    if (reading !== this.#reading) return;
    replace(this.#text, documentBox(text, "card-document"));
    this.#place();
  }
}

const link = (item, id, machinesMax) =>
  [mark(stateOf(item)), " ", h("a", { href: `#/event/${item.id}`, id }, eventTitle(item, machinesMax))];

/** Several events that are one bar. */
function summary(bars) {
  const more = bars.length - LISTED_MAX;
  const row = ({ item }) => h("li", {}, link(item, `card-${item.id}`, 2), quietSpan(` ${relative(item.begin, model.now())}`));
  return [
    h("h2", {}, `${bars.length} events`),
    h("ul", { class: "plain-list" }, bars.slice(0, LISTED_MAX).map(row)),
    more > 0 && quiet(`and ${more} more: zoom in, or choose the table.`),
  ];
}

function facts(item) {
  const fact = ({ name, title, at, text }) => [h("dt", { title }, name),
    h("dd", {}, at !== null && [moment(at, model.now()), quietSpan(`, ${fullTime(at)}`), text && ", "], text)];
  return [
    h("h2", {}, link(item, "card-link")),
    h("p", {}, stateOf(item).name, item.reason && `: ${item.reason}`, item.failed.length > 0 && ` for ${item.failed.join(", ")}`,
      quietSpan(` · tenant ${item.tenant} · ${shortId(item.id)}`)),
    h("dl", {}, factsOf(item).map(fact)),
  ];
}
