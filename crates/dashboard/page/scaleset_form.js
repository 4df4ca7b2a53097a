// Forms of scale sets: a new one, and changes of one, each with a review before it is sent.

import { confirmed, createSender, outcomeView } from "./action_dialog.js";
import { actionBar } from "./actions.js";
import { commandsView, given, optionWords } from "./commands.js";
import { actionButton, button, facts, h, replace } from "./dom.js";
import { checks, createForm, inGroup, isEmpty, zoneOptions } from "./form.js";
import { MINUTE, parseSpan, parseTime, relative } from "./format.js";
import { model } from "./model.js";
import { setPath } from "./scaleset_actions.js";

const TERMINATION = "Instance termination";
const MINUTES_MIN = 5;
const MINUTES_MAX = 15;
const APPROVALS = { asked: "wait for approval", automatic: "approved by itself" };

/** A scale set if nothing else is said. */
const USUAL = {
  orchestration: "uniform", terminate: null, os_image: false, upgrade: "manual",
  policy: { restart: "asked", redeploy: "asked", all_down: "automatic" },
};

/** Fields that a new set and a change have. `isSpot(values)` is true for spot VMs, which have no notice of deletion. */
function modelFields({ terminate, os_image, upgrade, policy }, isSpot) {
  const { batch_percent, pause } = upgrade.rolling ?? { batch_percent: 20, pause: "0s" };
  const isRolling = (values) => values.upgrade === "rolling";
  const approval = (id, label, title) => ({ id, type: "choice", label, title, options: APPROVALS, value: policy[id] });
  return [
    ...inGroup(TERMINATION, [
      {
        id: "notify", type: "check", isSwitch: true, label: "Notify instances before they are deleted", value: Boolean(terminate),
        hint: "Each instance then gets a Terminate event, and can save its work and approve.", isShown: (values) => !isSpot(values),
      },
      {
        id: "delay", type: "number", label: "Delay", unit: "minutes", min: MINUTES_MIN, max: MINUTES_MAX, isNeeded: true,
        value: terminate ? parseSpan(terminate) / MINUTE : MINUTES_MIN, isShown: (values) => !isSpot(values) && values.notify,
        hint: `From ${MINUTES_MIN} to ${MINUTES_MAX} minutes. An instance that does not approve is deleted after it.`,
      },
    ]),
    ...inGroup("Model", [
      { id: "os_image", type: "check", label: "Notify instances before a new OS image", value: os_image },
      {
        id: "upgrade", type: "choice", label: "Instances get a new model", value: upgrade.rolling ? "rolling" : upgrade,
        title: "The model is what this form describes. A change of it is a new version",
        options: { manual: "only when an operator upgrades them", automatic: "all at once", rolling: "batch by batch" },
      },
      {
        id: "batch_percent", type: "number", label: "Batch", unit: "% of the instances", min: 1, max: 100, value: batch_percent,
        isNeeded: true, isShown: isRolling,
      },
      {
        id: "batch_pause", label: "Pause between batches", value: pause, isNeeded: true, isShown: isRolling,
        check: checks.span("0s", "7d"),
      },
    ]),
    ...inGroup("Approval", [
      approval("restart", "Restarts by the owner", "Events wait for a VM of the tenant, or for the end of the notice"),
      approval("redeploy", "Redeployments by the owner"),
      approval("all_down", "All events while no VM of the tenant runs"),
    ]),
  ];
}

function newFields() {
  const zones = zoneOptions();
  const isOther = (name) => (model.scaleSets.has(name) ? "is the name of another scale set" : "");
  return [
    ...inGroup("Basics", [
      { id: "name", label: "Name", isNeeded: true, check: (value) => checks.name(value) || isOther(value) },
      { id: "instances", type: "number", label: "Instances", min: 0, max: 1000, value: 2, isNeeded: true },
      {
        id: "orchestration", type: "choice", label: "Grouping of instances",
        title: "Each placement group is a tenant: its VMs share one document of events",
        options: { uniform: "uniform: groups of at most 100", flexible: "flexible: one group for all" },
      },
      {
        id: "spot", type: "choice", label: "Spot VMs", title: "Spot VMs can be evicted at any time, with 30 seconds of notice",
        options: { "": "no", delete: "yes; deleted if evicted", deallocate: "yes; deallocated if evicted" },
      },
      { id: "cpus", type: "number", label: "CPUs of an instance", min: 1, hint: "May be empty." },
      { id: "memory", label: "Memory of an instance", placeholder: "8GiB", hint: "May be empty.", check: checks.memory },
      {
        id: "zones", type: "boxes", label: "Zones", options: zones, isShown: () => !isEmpty(Object.keys(zones)),
        title: "All zones if none is chosen",
      },
    ]),
    ...modelFields(USUAL, (values) => values.spot),
  ];
}

/** The members that differ from a base. */
const differing = (members, base) => Object.fromEntries(
  Object.entries(members).filter(([name, value]) => value !== undefined && JSON.stringify(value) !== JSON.stringify(base[name]))
);

/** The members of a request that differ from a set. A form without the notice of deletion does not change it. */
function differences(set, values) {
  const { orchestration, notify, delay, os_image, upgrade, batch_percent, batch_pause, restart, redeploy, all_down } = values;
  const policy = differing({ restart, redeploy, all_down }, set.policy);
  return differing({
    orchestration, os_image, terminate: notify ? `${delay ?? MINUTES_MIN}m` : notify === undefined ? undefined : null,
    upgrade: upgrade === "rolling" ? { rolling: { batch_percent, pause: batch_pause } } : upgrade,
    policy: isEmpty(Object.keys(policy)) ? undefined : policy,
  }, set);
}

/** The options of the command line for such members. */
function memberWords({ terminate, os_image, upgrade, policy, ...others }) {
  const onOff = (value) => value !== undefined && (value ? "on" : "off");
  const { batch_percent, pause: batch_pause } = upgrade?.rolling ?? {};
  return optionWords({
    ...others, terminate_notification: onOff(terminate), terminate_delay: terminate, os_image: onOff(os_image),
    upgrade: upgrade?.rolling ? "rolling" : upgrade, batch_percent, batch_pause, ...policy,
  });
}

/** The members of a new set. */
const newMembers = (values) => {
  const { instances, spot, cpus, memory, zones } = values;
  return { instances: instances ?? 0, ...given({ spot, cpus, memory, zones: zones?.map(Number) }), ...differences(USUAL, values) };
};

/** `--zones` is the last one: it takes several words. */
function createWords(values) {
  const { zones, ...others } = newMembers(values);
  return ["scaleset", "create", values.name || "NAME", ...memberWords(others), ...(zones ? ["--zones", ...zones.map(String)] : [])];
}

function summaryText({ id, type, options, unit = "" }, values) {
  const value = values[id];
  if (id === "notify") return value ? `instances are notified ${values.delay} minutes before they are deleted` : "no notice of deletion";
  if (type === "check") return value ? "yes" : "no";
  if (type === "choice") return options[value];
  return type === "boxes" ? value.join(", ") || "all" : `${value} ${unit}`.trim();
}

/** Facts of a review. */
function summary(fields, values) {
  const shown = fields.filter(({ id }) => !["", null, undefined].includes(values[id]) && id !== "delay");
  return shown.map((field) => [field.id === "notify" ? TERMINATION : field.label, summaryText(field, values)]);
}

/** Opens the form of a new scale set on the page. */
export function openCreateForm(main) {
  const fields = newFields();
  openForm(main, {
    title: "New scale set", fields, reviewLabel: "Review and create", sendLabel: "Create",
    lead: "A scale set is a group of equal VMs. The server places its instances on healthy hosts.",
    summary: (values) => summary(fields, values),
    words: createWords,
    request: (values) => ({ method: "POST", path: "/v1/scalesets", body: { name: values.name, ...newMembers(values) } }),
    back: "#/scalesets", verb: "created",
  });
}

/** Opens the form of a change of a scale set on the page. */
export function openChangeForm(main, set) {
  const { name } = set;
  const fields = modelFields(set, () => set.spot !== null);
  openForm(main, {
    title: `Change ${name}`, fields, reviewLabel: "Review the change", sendLabel: "Change",
    lead: `A change of the model is a new version of it, after version ${set.model}. Instances that exist keep theirs until they are upgraded, unless they get a new model by themselves.`,
    summary: (values) => {
      const { terminate, policy, upgrade, ...others } = differences(set, values);
      const ids = Object.keys({ ...others, ...policy });
      if (terminate !== undefined) ids.push("notify");
      if (upgrade) ids.push("upgrade", "batch_percent", "batch_pause");
      return summary(fields.filter(({ id }) => ids.includes(id)), values);
    },
    words: (values) => ["scaleset", "set", name, ...memberWords(differences(set, values))],
    request: (values) => ({ method: "PATCH", path: `/v1${setPath(name)}`, body: differences(set, values) }),
    back: `#${setPath(name)}`, verb: "changed", name,
  });
}

/** The offer to upgrade instances with an older model, if there are any. */
export const upgradeView = (set) => set?.outdated > 0 && h("div", { class: "callout" },
  h("p", {}, `Instances with an older model than ${set.model}, and with its notice of deletion: ${set.outdated}.`,
    set.next_batch && ` The next batch is upgraded ${relative(parseTime(set.next_batch), model.now())}.`),
  actionBar("scaleset", set, ["upgrade_instances"]));

/** The same, current as long as it is shown. */
function upgradeOffer(name) {
  const offer = h("div", {});
  const draw = () => replace(offer, upgradeView(model.scaleSets.get(name)));
  const end = model.subscribe(() => (offer.isConnected ? draw() : end()));
  draw();
  return offer;
}

function openForm(main, task) {
  const form = createForm(task.fields);
  const sender = createSender(task);
  const commands = commandsView();
  const review = h("section", { hidden: true });
  const edit = h("div", { class: "form-page one" });

  const showEdit = () => {
    review.hidden = true;
    edit.hidden = false;
    form.focus();
  };
  const toReview = actionButton(task.reviewLabel, async () => {
    if (!form.check()) throw new Error("Correct the marked fields first.");
    const values = form.values();
    const rows = task.summary(values);
    if (!rows.length) throw new Error("Nothing differs from the scale set as it is.");
    commands.update(task.words(values), task.request(values));
    edit.hidden = true;
    review.hidden = false;
    replace(review, h("h2", {}, "Review"), facts(rows), commands.element,
      h("div", { class: "buttons" }, button("Back", showEdit, { id: "back-button" }), send));
    document.getElementById("send-button").focus();
  }, { class: "primary", id: "review-button" });

  const send = actionButton(task.sendLabel, async () => {
    const values = form.values();
    const outcome = await sender.send(values);
    await confirmed(outcome);
    const name = task.name ?? values.name;
    replace(main, h("h1", {}, `Scale set ${name} is ${task.verb}`), outcomeView(outcome), upgradeOffer(name),
      h("p", {}, h("a", { href: `#${setPath(name)}`, id: "to-set" }, `See ${name} and its instances`)));
    document.getElementById("to-set").focus();
  }, { class: "primary", id: "send-button", "data-write": true });

  replace(edit, form.element, h("div", { class: "buttons" }, h("a", { href: task.back, id: "back" }, "Cancel"), toReview));
  replace(main, h("h1", {}, task.title), h("p", { class: "lead" }, task.lead), edit, review);
  form.focus();
}
