// Scale sets: a list, one of them with its placement groups and instances, and their forms.

import { actionBar } from "./actions.js";
import { get } from "./api.js";
import { facts, h, headings, mark, quiet, quietSpan, replace, row, scrollable } from "./dom.js";
import { openWhenLive } from "./form.js";
import { count, fullTime, parseTime, sizeText } from "./format.js";
import { model } from "./model.js";
import { setPath, terminateText } from "./scaleset_actions.js";
import { openChangeForm, openCreateForm, upgradeView } from "./scaleset_form.js";

const ROWS_MAX = 300;

export function open(main, { id, parameters }) {
  if (id) return openSet(main, id, parameters.get("change") === "1");
  if (parameters.get("new")) return openWhenLive(main, () => model.canAdmin, openCreateForm);
  return openList(main);
}

const warn = (text) => h("span", { class: "warn" }, text);
const upgradeText = ({ upgrade }) => (upgrade.rolling ? `rolling, ${upgrade.rolling.batch_percent} %` : upgrade);

/** A table that is as high as its rows need. */
function table(label, columns, rows) {
  const element = scrollable(label, h("table", {}, headings(columns), h("tbody", {}, rows.slice(0, ROWS_MAX))));
  element.classList.add("wide");
  const more = rows.length - ROWS_MAX;
  return [element, more > 0 && quiet(`and ${count(more, "more row")}`)];
}

const setColumns = () => [
  "Name", "Instances", ["Model", "The version of the description of its instances"],
  ["Older models", "Instances that have an older version of the model"], ["Instance termination", "Notice before an instance is deleted"],
  ["Upgrade policy", "The way in which instances get a new model"], "VMs", [h("span", { class: "sr" }, "Actions")],
];

const setRow = (set) => row(
  h("a", { href: `#${setPath(set.name)}`, id: `set-${set.name}` }, set.name),
  h("td", { class: "number" }, set.capacity, set.leaving > 0 && quietSpan(` (${set.leaving} being deleted)`)),
  set.model,
  set.outdated ? warn(`${set.outdated} behind`) : "none behind",
  terminateText(set.terminate),
  upgradeText(set),
  set.spot ? `spot, ${set.spot}` : "regular",
  actionBar("scaleset", set, ["scale_set", "upgrade_instances"]),
);

function openList(main) {
  const create = h("span", {});
  const content = h("section", {});
  replace(main, h("div", { class: "title" }, h("h1", {}, "Scale sets"), create), content);
  const draw = () => {
    replace(create, model.canAdmin && h("a", { class: "button primary", href: "#/scalesets?new=1", id: "new-set" }, "New scale set"));
    const sets = [...model.scaleSets.values()];
    replace(content, sets.length ? table("Scale sets", setColumns(), sets.map(setRow)) : h("p", { class: "lead" },
      "There is no scale set. A scale set is a group of equal VMs that is scaled as a whole; its instances can be notified before they are deleted."));
  };
  return { update: (topics) => ["all", "scaleSets", "machines", "connection"].some((topic) => topics.has(topic)) && draw() };
}

function openSet(main, name, isChange) {
  let [isForm, isReading, isAgain] = [false, false, false];
  const read = async () => {
    isAgain = isReading;
    if (isForm || isReading) return;
    isReading = true;
    try {
      const set = await get(`/v1${setPath(name)}`, { cluster: model.cluster });
      isForm = isChange && model.canAdmin;
      if (isForm) openChangeForm(main, set);
      else draw(main, set);
    } catch (problem) {
      replace(main, h("h1", {}, `Scale set ${name}`), h("p", { class: "error" }, problem.message),
        h("p", {}, h("a", { href: "#/scalesets" }, "All scale sets")));
    }
    isReading = false;
    if (isAgain) read();
  };
  replace(main, quiet("Loading…"));
  return {
    update: (topics) => ["all", "scaleSets", "machines", "events", "tenants", "connection"].some((topic) => topics.has(topic)) && read()
  };
}

function draw(main, set) {
  const { restart, redeploy, all_down: allDown } = set.policy;
  replace(main,
    h("div", { class: "title" },
      h("h1", {}, `Scale set ${set.name}`),
      h("span", { class: "actions" },
        model.canAdmin && h("a", { class: "button", href: `#${setPath(set.name)}?change=1`, id: "change-set" }, "Change"),
        actionBar("scaleset", set, ["scale_set", "delete_instances", "remove_scale_set"]))),
    upgradeView(set),
    facts([
      ["Instances", `${set.capacity}${set.leaving ? `, and ${set.leaving} being deleted` : ""}`],
      ["Instance termination", `${terminateText(set.terminate)}${set.terminate ? "" : " before"} they are deleted`],
      ["Model", `version ${set.model}; ${set.outdated ? `${count(set.outdated, "instance")} behind` : "no instance behind"}`],
      ["New OS image", `instances are ${set.os_image ? "" : "not "}notified`],
      ["Upgrade policy", upgradeText(set)],
      ["Orchestration", set.orchestration],
      ["Spot", set.spot && `yes; an eviction makes it ${set.spot}`],
      ["Size of an instance", sizeText(set)],
      ["Approval", `restart: ${restart}; redeploy: ${redeploy}; while no VM runs: ${allDown}`],
    ]),
    h("h2", {}, "Placement groups"),
    table("Placement groups", GROUP_COLUMNS, set.tenants.map((tenant) => groupRow(set, tenant))),
    h("h2", {}, `Instances (${set.instances.length})`),
    table("Instances", INSTANCE_COLUMNS, set.instances.map(instanceRow)));
}

const GROUP_COLUMNS = [
  ["Tenant", "VMs of a tenant share one document of events"], "Instances",
  ["Update domains", "Groups that are never worked on at the same time"],
  ["Fault domains", "Groups of hosts that can fail together"], ["Enrolled", "Enabled for events, by polling"],
];

function groupRow({ instances }, tenant) {
  const own = instances.filter((instance) => instance.tenant === tenant);
  const domains = (member) => new Set(own.map((instance) => instance[member])).size;
  return row(tenant, own.length, domains("update_domain"), domains("fault_domain"),
    model.tenants.get(tenant)?.enrolled ? "yes" : "no: they get no notice before one of them polls");
}

const INSTANCE_COLUMNS = [
  "Name", "Number", "Host", ["UD", "Update domain"], ["FD", "Fault domain"], "State", "Model",
  ["Termination", "Notice before it is deleted"], "Events",
];

function instanceRow({ id, name, tenant, host, power, leaving, latest, terminate, events, ...instance }) {
  const machine = model.machines.get(`${tenant}/${name}`);
  const link = (event) => h("a", {
    href: `#/event/${event.id}`, title: event.not_before && `not before ${fullTime(parseTime(event.not_before))}`,
  }, event.kind);
  return row([machine && mark(model.machineState(machine)), " ", name], id, host, instance.update_domain, instance.fault_domain,
    leaving ? "being deleted" : power, latest ? String(instance.model) : warn(`${instance.model}, behind`), terminateText(terminate),
    h("td", {}, model.eventsOf({ events }).map(link)));
}
