// Scale sets: a list, one of them with its placement groups and instances, and their forms.

import { actionBar } from "./actions.js";
import { get } from "./api.js";
import { h, mark, replace } from "./dom.js";
import { openWhenLive } from "./form.js";
import { count, fullTime, parseTime, relative } from "./format.js";
import { model } from "./model.js";
import { terminateText } from "./scaleset_actions.js";
import { openChangeForm, openCreateForm } from "./scaleset_form.js";

const ROWS_MAX = 300;

export function open(main, { id, parameters }) {
  if (id) return openSet(main, id, parameters.get("change") === "1");
  if (parameters.get("new")) return openWhenLive(main, () => model.canAdmin, () => openCreateForm(main));
  return openList(main);
}

const address = (name, query = "") => `#/scalesets/${encodeURIComponent(name)}${query}`;
const headings = (names) => h("thead", {}, h("tr", {}, names.map(([name, title]) => h("th", { scope: "col", title }, name))));
const scrolling = (label, table) => h("div", { class: "scroll wide", tabindex: "0", role: "region", "aria-label": label }, table);
const upgradeText = ({ upgrade }) => (upgrade.rolling ? `rolling, ${upgrade.rolling.batch_percent} %` : upgrade);

function openList(main) {
  const create = h("span", {});
  const content = h("section", {});
  replace(main, h("div", { class: "title" }, h("h1", {}, "Scale sets"), create), content);

  const row = (set) => h("tr", {},
    h("th", { scope: "row" }, h("a", { href: address(set.name), id: `set-${set.name}` }, set.name)),
    h("td", { class: "number" }, set.capacity, set.leaving > 0 && h("span", { class: "quiet" }, ` (${set.leaving} being deleted)`)),
    h("td", { class: "number" }, set.model),
    h("td", { class: "number" }, set.outdated ? h("span", { class: "warn" }, `${set.outdated} behind`) : "none behind"),
    h("td", {}, terminateText(set.terminate)),
    h("td", {}, upgradeText(set)),
    h("td", {}, set.spot ? `spot, ${set.spot}` : "regular"),
    h("td", {}, actionBar("scaleset", set, ["scale_set", "upgrade_instances"])));

  const draw = () => {
    replace(create, model.canAdmin && h("a", { class: "button primary", href: "#/scalesets?new=1", id: "new-set" }, "New scale set"));
    const sets = [...model.scaleSets.values()];
    if (!sets.length) return replace(
      content,
      h(
        "p", { class: "lead" },
        "There is no scale set. A scale set is a group of equal VMs that is scaled as a whole; its instances can be notified before they are deleted.",
      ),
    );
    replace(content, scrolling("Scale sets", h("table", {},
      headings([["Name"], ["Instances"], ["Model", "The version of the description of its instances"], [
        "Older models", "Instances that have an older version of the model",
      ],
        [
          "Instance termination", "Notice before an instance is deleted",
        ], ["Upgrade policy", "The way in which instances get a new model"], ["VMs"], [h("span", { class: "sr" }, "Actions")]]),
      h("tbody", {}, sets.map(row)))));
  };
  return { update: (topics) => ["all", "scaleSets", "machines", "connection"].some((topic) => topics.has(topic)) && draw() };
}

function openSet(main, name, isChange) {
  let isReading = false;
  let isAgain = false;
  let isForm = false;

  const read = async () => {
    if (isForm) return;
    if (isReading) return void (isAgain = true);
    isReading = true;
    try {
      const set = await get(`/v1/scalesets/${encodeURIComponent(name)}`, { cluster: model.cluster });
      if (isChange && model.canAdmin) {
        isForm = true;
        openChangeForm(main, set);
      } else draw(set);
    } catch (problem) {
      replace(
        main, h("h1", {}, `Scale set ${name}`), h("p", { class: "error" }, problem.message),
        h("p", {}, h("a", { href: "#/scalesets" }, "All scale sets")),
      );
    } finally {
      isReading = false;
      if (isAgain) (isAgain = false), read();
    }
  };

  const fact = (title, value) => value !== null && value !== undefined && value !== false && [h("dt", {}, title), h("dd", {}, value)];
  const policyText = ({ restart, redeploy, all_down }) => `restart: ${restart}; redeploy: ${redeploy}; while no VM runs: ${all_down}`;

  const draw = (set) => replace(main,
    h("div", { class: "title" },
      h("h1", {}, `Scale set ${set.name}`),
      h(
        "span", { class: "actions" },
        model.canAdmin && h("a", { class: "button", href: address(set.name, "?change=1"), id: "change-set" }, "Change"),
        actionBar("scaleset", set, ["scale_set", "delete_instances", "remove_scale_set"]),
      )),
    set.outdated > 0 && h("div", { class: "callout" },
      h("p", {}, `${count(set.outdated, "instance")} ${set.outdated === 1 ? "has" : "have"} an older model than ${set.model}.`,
        set.next_batch !== null && ` The next batch gets it ${relative(parseTime(set.next_batch), model.now())}.`),
      actionBar("scaleset", set, ["upgrade_instances"])),
    h("dl", {},
      fact("Instances", `${set.capacity}${set.leaving ? `, and ${set.leaving} being deleted` : ""}`),
      fact("Instance termination", `${terminateText(set.terminate)}${set.terminate ? " they are deleted" : " before they are deleted"}`),
      fact("Model", `version ${set.model}; ${set.outdated ? `${count(set.outdated, "instance")} behind` : "no instance behind"}`),
      fact("New OS image", set.os_image ? "instances are notified" : "instances are not notified"),
      fact("Upgrade policy", upgradeText(set)),
      fact("Orchestration", set.orchestration),
      fact("Spot", set.spot && `yes; an eviction makes it ${set.spot}`),
      fact("Size of an instance", (set.cpus || set.memory) && [set.cpus && count(set.cpus, "CPU"), set.memory].filter(Boolean).join(", ")),
      fact("Approval", policyText(set.policy))),
    h("h2", {}, "Placement groups"),
    groups(set),
    h("h2", {}, `Instances (${set.instances.length})`),
    instances(set));

  const groups = (set) => {
    const row = (tenant) => {
      const known = model.tenants.get(tenant);
      const own = set.instances.filter((instance) => instance.tenant === tenant);
      return h("tr", {}, h("th", { scope: "row" }, tenant), h("td", { class: "number" }, own.length), h(
        "td", { class: "number" }, new Set(own.map(({ update_domain }) => update_domain)).size,
      ),
        h("td", { class: "number" }, new Set(own.map(({ fault_domain }) => fault_domain)).size),
        h("td", {}, known?.enrolled ? "yes" : "no: they get no notice before one of them polls"));
    };
    return scrolling("Placement groups", h("table", {},
      headings(
        [
          ["Tenant", "VMs of a tenant share one document of events"], ["Instances"],
          ["Update domains", "Groups that are never worked on at the same time"],
          ["Fault domains", "Groups of hosts that can fail together"], ["Enrolled", "Enabled for events, by polling"],
        ]
      ),
      h("tbody", {}, set.tenants.map(row))));
  };

  const instances = (set) => {
    const row = (instance) => {
      const machine = model.machines.get(`${instance.tenant}/${instance.name}`);
      const events = instance.events.map((id) => model.events.get(id)).filter(Boolean);
      return h("tr", {},
        h("th", { scope: "row" }, machine && mark(model.machineState(machine)), " ", instance.name),
        h("td", { class: "number" }, instance.id),
        h("td", {}, instance.host), h(
          "td", { class: "number" }, instance.update_domain,
        ), h("td", { class: "number" }, instance.fault_domain),
        h("td", {}, instance.leaving ? "being deleted" : instance.power),
        h("td", {}, instance.latest ? `${instance.model}` : h("span", { class: "warn" }, `${instance.model}, behind`)),
        h("td", {}, terminateText(instance.terminate)),
        h(
          "td", {},
          events.map(
            (event) => h(
              "a", { href: `#/event/${event.id}`, title: event.not_before && `not before ${fullTime(parseTime(event.not_before))}` },
              event.kind,
            )
          ),
        ));
    };
    return [
      scrolling(
        "Instances",
        h(
          "table", {},
          headings(
            [
              ["Name"], ["Number"], ["Host"], ["UD", "Update domain"], ["FD", "Fault domain"], ["State"], ["Model"],
              ["Termination", "Notice before it is deleted"], ["Events"],
            ]
          ),
          h("tbody", {}, set.instances.slice(0, ROWS_MAX).map(row)),
        ),
      ),
      set.instances.length > ROWS_MAX && h("p", { class: "quiet" }, `and ${count(set.instances.length - ROWS_MAX, "more instance")}`),
    ];
  };

  replace(main, h("p", { class: "quiet" }, "Loading…"));
  return {
    update: (topics) => ["all", "scaleSets", "machines", "events", "tenants", "connection"].some((topic) => topics.has(topic)) && read()
  };
}
