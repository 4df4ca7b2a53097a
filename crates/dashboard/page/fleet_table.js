// The fleet as a table: the same machines as on the map, a page at a time.

import { h, mark } from "./dom.js";
import { count } from "./format.js";
import { DOMAIN_HELP, TENANT_HELP, short, startOf, startTime } from "./fleet_layout.js";
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
  Start: "The time until the first announced event may start without an approval.",
};

/** The table of the fleet. `openObject(kind, name)` is called for a machine or a host that is chosen. */
export function createTable(openObject) {
  let machines = [];
  let page = 0;
  let rows = [];
  const heads = Object.entries(HEADS).filter(([name]) => name !== "Host" || model.seesHosts);
  const body = h("tbody");
  const scroller = h("div", { tabindex: "0", role: "region", "aria-label": "VMs", id: "fleet-table" },
    h("table", {},
      h("caption", { class: "sr" }, "VMs of the fleet with state, place and next event"),
      h("thead", {}, h("tr", {}, heads.map(([name, title]) => h("th", { scope: "col", title }, name)))),
      body));
  const range = h("span", { role: "status" });
  const previous = h("button", { type: "button", id: "fleet-previous", on: { click: () => turn(-1) } }, "Previous");
  const next = h("button", { type: "button", id: "fleet-next", on: { click: () => turn(1) } }, "Next");
  const pages = h("nav", { class: "fleet-pages", "aria-label": "Pages of the table" }, previous, range, next);

  const turn = (step) => {
    page += step;
    draw();
    scroller.scrollTop = 0;
    const { activeElement } = document;
    if (activeElement === document.body || activeElement?.disabled) (step > 0 ? previous : next).focus();
  };

  /** Rows that are the same stay. */
  const draw = () => {
    const first = page * PAGE;
    const focused = body.contains(document.activeElement) ? document.activeElement.id : "";
    const known = rows;
    const shown = machines.slice(first, first + PAGE).map((machine) => model.machines.get(nameOf(machine)) ?? machine);
    rows = shown.map((machine, index) => createRow(machine, known[index], openObject));
    if (rows.length !== known.length) body.replaceChildren(...rows.map(({ element }) => element));
    else rows.forEach(({ element }, index) => element !== known[index].element && known[index].element.replaceWith(element));
    if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus({ preventScroll: true });
    const total = machines.length;
    const [from, to] = [first + 1, first + shown.length].map((number) => number.toLocaleString("en"));
    range.textContent = `${from} to ${to} of ${count(total, "VM")}`;
    previous.disabled = page === 0;
    next.disabled = first + PAGE >= total;
    pages.hidden = total <= PAGE;
  };

  return {
    element: h("div", {}, scroller, pages),
    /** Shows these machines, in this order. */
    set(shown) {
      machines = shown;
      page = Math.max(0, Math.min(page, Math.ceil(machines.length / PAGE) - 1));
      draw();
    },
  };
}

/** The row of a machine: the known one, if it shows the same. */
function createRow(machine, known, openObject) {
  const name = nameOf(machine);
  const state = model.machineState(machine);
  const until = startOf(machine);
  const { host, update_domain: domain, fault_domain: faultDomain, power } = machine;
  const signature = [name, state.id, host, domain, faultDomain, power, until].join("\n");
  if (known?.signature === signature) return known;
  const link = (kind, target, text) => h("button", {
    type: "button", class: "plain", id: `fleet-${kind}-of-${name}`, on: { click: () => openObject(kind, target) },
  }, short(text));
  const cells = [
    [mark(state), " ", h("span", { class: "state-name", "aria-hidden": "true" }, state.name)],
    short(machine.tenant), model.seesHosts && (host ? link("host", host, host) : "–"), domain, faultDomain, power,
    until === null ? "–" : startTime(until),
  ].map((cell) => cell !== false && h("td", {}, cell));
  cells.splice(1, 0, h("th", { scope: "row" }, link("machine", name, machine.name)));
  return { signature, element: h("tr", {}, cells) };
}
