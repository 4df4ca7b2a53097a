// The fleet as a table: the same machines as on the map, a page at a time.

import { h, mark } from "./dom.js";
import { count, countdown, fullTime } from "./format.js";
import { DOMAIN_HELP, TENANT_HELP, short, startOf } from "./fleet_layout.js";
import { model, nameOf } from "./model.js";

const PAGE = 100;
const HEADS = {
  State: null,
  VM: null,
  Tenant: TENANT_HELP,
  Host: null,
  "Update domain": DOMAIN_HELP,
  "Fault domain": "VMs that share a point of failure, such as a rack.",
  Power: null,
  "Starts in": "The time until the first announced event may start without an approval.",
};

/** The table of the fleet. `openObject(kind, name)` is called for a machine or a host that is chosen. */
export class FleetTable {
  #openObject;
  #machines = [];
  #page = 0;
  #rows = [];

  constructor(openObject) {
    this.#openObject = openObject;
    this.body = h("tbody");
    this.range = h("span", { role: "status" });
    const turn = (name, step) =>
      h("button", { type: "button", id: `fleet-${name.toLowerCase()}`, on: { click: () => this.#turn(step) } }, name);
    [this.previous, this.next] = [turn("Previous", -1), turn("Next", 1)];
    const heads = Object.entries(HEADS).filter(([name]) => name !== "Host" || model.seesHosts);
    this.scroller = h("div", { class: "fleet-table", tabindex: "0", role: "region", "aria-label": "VMs", id: "fleet-table" },
      h("table", {},
        h("caption", { class: "sr" }, "VMs of the fleet with state, place and next event"),
        h("thead", {}, h("tr", {}, heads.map(([name, title]) => h("th", { scope: "col", title }, name)))),
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
    const rows = shown.map((machine, index) => this.#row(model.machines.get(nameOf(machine)) ?? machine, this.#rows[index]));
    rows.forEach(({ element }, index) => {
      const old = this.#rows[index]?.element;
      if (!old) this.body.append(element);
      else if (old !== element) old.replaceWith(element);
    });
    for (const { element } of this.#rows.slice(rows.length)) element.remove();
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
    const { host, tenant, update_domain: domain, fault_domain: faultDomain, power } = machine;
    const signature = [name, state.id, host, domain, faultDomain, power, until].join("\n");
    if (known?.signature === signature) return known;
    const link = (kind, target, text) => h("button", {
      type: "button", class: "plain", id: `fleet-${kind}-of-${name}`, on: { click: () => this.#openObject(kind, target) },
    }, short(text));
    const element = h("tr", {},
      h("td", {}, mark(state), " ", h("span", { class: "state-name", "aria-hidden": "true" }, state.name)),
      h("th", { scope: "row" }, link("machine", name, machine.name)),
      h("td", {}, short(tenant)),
      model.seesHosts && h("td", {}, host ? link("host", host, host) : "–"),
      h("td", {}, domain),
      h("td", {}, faultDomain),
      h("td", {}, power),
      h("td", {},
        until === null ? "–" : h("time", { "data-until": until, title: `not before ${fullTime(until)}` }, left(until))));
    return { signature, element };
  }
}

function left(until) {
  const millis = until - model.now();
  return millis > 0 ? countdown(millis) : "due";
}
