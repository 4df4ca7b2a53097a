// The fleet as a table: the same machines as on the map, a page at a time.

import { h, mark, visible } from "./dom.js";
import { count, countdown, fullTime } from "./format.js";
import { nameOf, startOf } from "./fleet_layout.js";
import { model } from "./model.js";

const PAGE = 100;
const HEADS = [
  ["State", ""],
  ["VM", ""],
  ["Tenant", "The owner of VMs that get one Scheduled Events document: a scale set, an availability set, or one VM."],
  ["Host", ""],
  ["Update domain", "VMs of one tenant that may be interrupted together."],
  ["Fault domain", "VMs that share a point of failure, such as a rack."],
  ["Power", ""],
  ["Starts in", "The time until the first announced event may start without an approval."],
];

/** The table of the fleet. `openObject(kind, name)` is called for a machine or a host that is chosen. */
export class FleetTable {
  #openObject;
  #machines = [];
  #page = 0;
  #rows = [];

  constructor(openObject) {
    this.#openObject = openObject;
    this.body = h("tbody");
    this.range = h("span", { class: "number", role: "status" });
    this.previous = h("button", { type: "button", id: "fleet-previous", on: { click: () => this.#turn(-1) } }, "Previous");
    this.next = h("button", { type: "button", id: "fleet-next", on: { click: () => this.#turn(1) } }, "Next");
    const heads = HEADS.filter(([name]) => name !== "Host" || model.seesHosts);
    this.scroller = h("div", { class: "fleet-table", tabindex: "0", role: "region", "aria-label": "VMs", id: "fleet-table" },
      h("table", {},
        h("caption", { class: "sr" }, "VMs of the fleet with state, place and next event"),
        h("thead", {}, h("tr", {}, heads.map(([name, title]) => h("th", { scope: "col", title: title || null }, name)))),
        this.body));
    this.pages = h("nav", { class: "fleet-pages", "aria-label": "Pages of the table" }, this.previous, this.range, this.next);
    this.element = h("div", {}, this.scroller, this.pages);
  }

  /** Shows these machines, in this order. Rows that are the same stay. */
  set(machines) {
    this.#machines = machines;
    this.#page = Math.max(0, Math.min(this.#page, Math.ceil(machines.length / PAGE) - 1));
    this.#draw();
  }

  /** Twice a second: the countdowns. */
  tick() {
    for (const time of this.body.querySelectorAll("[data-until]")) {
      const text = left(Number(time.dataset.until));
      if (time.textContent !== text) time.textContent = text;
    }
  }

  #turn(step) {
    this.#page += step;
    this.#draw();
    this.scroller.scrollTop = 0;
    const other = step > 0 ? this.previous : this.next;
    if (document.activeElement === document.body || document.activeElement?.disabled) other.focus();
  }

  #draw() {
    const first = this.#page * PAGE;
    const shown = this.#machines.slice(first, first + PAGE);
    const focused = this.body.contains(document.activeElement) ? document.activeElement.id : "";
    const rows = shown.map((machine, index) => this.#row(machine, this.#rows[index]));
    if (rows.length !== this.#rows.length) this.body.replaceChildren(...rows.map(({ element }) => element));
    else rows.forEach(({ element }, index) => element !== this.#rows[index].element && this.#rows[index].element.replaceWith(element));
    this.#rows = rows;
    if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus({ preventScroll: true });
    const total = this.#machines.length;
    const [from, to] = [first + 1, first + shown.length].map((number) => number.toLocaleString("en"));
    this.range.textContent = total ? `${from} to ${to} of ${count(total, "VM")}` : "";
    this.previous.disabled = this.#page === 0;
    this.next.disabled = first + PAGE >= total;
    this.pages.hidden = total <= PAGE;
  }

  #row(machine, known) {
    const name = nameOf(machine);
    const state = model.machineState(machine);
    const until = startOf(machine);
    const signature = [name, state.id, machine.host, machine.update_domain, machine.fault_domain, machine.power, until].join("\n");
    if (known?.signature === signature) return known;
    const link = (kind, target, text) => h("button", {
      type: "button", class: "plain", id: `fleet-${kind}-of-${name}`, on: { click: () => this.#openObject(kind, target) },
    }, visible(text, 80));
    const element = h("tr", { class: state.id },
      h("td", {}, mark(state), " ", h("span", { class: "state-name", "aria-hidden": "true" }, state.name)),
      h("th", { scope: "row" }, link("machine", name, machine.name)),
      h("td", {}, visible(machine.tenant, 80)),
      model.seesHosts && h("td", {}, machine.host ? link("host", machine.host, machine.host) : "–"),
      h("td", { class: "number" }, machine.update_domain),
      h("td", { class: "number" }, machine.fault_domain),
      h("td", {}, machine.power),
      h("td", { class: "number" },
        until === null ? "–" : h("time", { "data-until": until, title: `not before ${fullTime(until)}` }, left(until))));
    return { signature, element };
  }
}

function left(until) {
  const millis = until - model.now();
  return millis > 0 ? countdown(millis) : "due";
}
