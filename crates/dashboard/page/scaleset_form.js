// Forms of scale sets: a new one, and changes of one, each with a review before it is sent.

import { confirmed, createSender, outcomeView } from "./action_dialog.js";
import { actionBar } from "./actions.js";
import { commandsView } from "./commands.js";
import { actionButton, h, replace } from "./dom.js";
import { checks, createForm, spanMillis } from "./form.js";
import { count } from "./format.js";
import { model } from "./model.js";

const TERMINATION = "Instance termination";
const MINUTES_MIN = 5;
const MINUTES_MAX = 15;

const word = (value, label) => ({ value, label });
const APPROVALS = [word("asked", "wait for approval"), word("automatic", "approved by itself")];

function checkMinutes(value) {
  if (value === null) return "is needed";
  const isInside = Number.isInteger(value) && value >= MINUTES_MIN && value <= MINUTES_MAX;
  return isInside ? "" : `must be ${MINUTES_MIN} to ${MINUTES_MAX} minutes, not ${value}`;
}

/** Fields that a new set and a change have. `isSpot(values)` is true for spot VMs, which have no notice of deletion. */
function modelFields(set, isSpot) {
  const rolling = set.upgrade?.rolling;
  const isRolling = (values) => values.upgrade === "rolling";
  return [
    {
      id: "notify", group: TERMINATION, type: "check", isSwitch: true, label: "Notify instances before they are deleted",
      value: Boolean(set.terminate), hint: "Each instance then gets a Terminate event, and can save its work and approve.",
      isShown: (values) => !isSpot(values),
    },
    {
      id: "delay", group: TERMINATION, type: "number", label: "Delay", unit: "minutes", min: MINUTES_MIN, max: MINUTES_MAX,
      value: set.terminate ? spanMillis(set.terminate) / 60_000 : MINUTES_MIN, isShown: (values) => !isSpot(values) && values.notify,
      hint: `From ${MINUTES_MIN} to ${MINUTES_MAX} minutes. An instance that does not approve is deleted after it.`, check: checkMinutes,
    },
    { id: "os_image", group: "Model", type: "check", label: "Notify instances before a new OS image", value: set.os_image ?? false },
    {
      id: "upgrade", group: "Model", type: "choice", label: "Instances get a new model",
      value: rolling ? "rolling" : set.upgrade ?? "manual", title: "The model is what this form describes. A change of it is a new version",
      options: [word("manual", "only when an operator upgrades them"), word("automatic", "all at once"), word("rolling", "batch by batch")],
    },
    {
      id: "batch_percent", group: "Model", type: "number", label: "Batch", unit: "% of the instances", min: 1, max: 100,
      value: rolling?.batch_percent ?? 20, isShown: isRolling, check: (value) => checks.required(value) || checks.number(1, 100)(value),
    },
    {
      id: "batch_pause", group: "Model", type: "text", label: "Pause between batches", value: rolling?.pause ?? "0s", isShown: isRolling,
      check: (value) => checks.required(value) || checks.span("0s", "7d")(value),
    },
    {
      id: "restart", group: "Approval", type: "choice", label: "Restarts by the owner",
      title: "Events wait for a VM of the tenant, or for the end of the notice", options: APPROVALS, value: set.policy?.restart ?? "asked",
    },
    {
      id: "redeploy", group: "Approval", type: "choice", label: "Redeployments by the owner", options: APPROVALS,
      value: set.policy?.redeploy ?? "asked",
    },
    {
      id: "all_down", group: "Approval", type: "choice", label: "All events while no VM of the tenant runs", options: APPROVALS,
      value: set.policy?.all_down ?? "automatic",
    },
  ];
}

function newFields() {
  const zones = [
    ...new Set([...model.hosts.values()].map(({ zone }) => zone).filter((zone) => zone !== null))
  ].sort((one, other) => one - other);
  return [
    {
      id: "name", group: "Basics", type: "text", label: "Name",
      check: (value) => checks.name(value) || (model.scaleSets.has(value) ? "is the name of another scale set" : ""),
    },
    {
      id: "instances", group: "Basics", type: "number", label: "Instances", min: 0, max: 1000, value: 2,
      check: (value) => checks.required(value) || checks.number(0, 1000)(value),
    },
    {
      id: "orchestration", group: "Basics", type: "choice", label: "Grouping of instances", value: "uniform",
      title: "Each placement group is a tenant: its VMs share one document of events",
      options: [word("uniform", "uniform: groups of at most 100"), word("flexible", "flexible: one group for all")],
    },
    {
      id: "spot", group: "Basics", type: "choice", label: "Spot VMs", value: "",
      title: "Spot VMs can be evicted at any time, with 30 seconds of notice",
      options: [word("", "no"), word("delete", "yes; deleted if evicted"), word("deallocate", "yes; deallocated if evicted")],
    },
    {
      id: "cpus", group: "Basics", type: "number", label: "CPUs of an instance", min: 1, hint: "May be empty.", value: null,
      check: checks.number(1, 65535),
    },
    {
      id: "memory", group: "Basics", type: "text", label: "Memory of an instance", placeholder: "8GiB", hint: "May be empty.",
      check: checks.memory,
    },
    {
      id: "zones", group: "Basics", type: "boxes", label: "Zones", options: zones.map((zone) => ({ value: zone, label: `zone ${zone}` })),
      isShown: () => zones.length > 0, title: "All zones if none is chosen",
    },
    ...modelFields({}, (values) => Boolean(values.spot)),
  ];
}

const upgradeOf = ({ upgrade, batch_percent, batch_pause }) => (
  upgrade === "rolling" ? { rolling: { batch_percent, pause: batch_pause } } : upgrade
);
const upgradeWords = ({ upgrade, batch_percent, batch_pause }) => [
  "--upgrade", upgrade, ...(upgrade === "rolling" ? ["--batch-percent", String(batch_percent), "--batch-pause", batch_pause] : []),
];
const terminateOf = ({ notify, delay }) => (notify ? `${delay ?? MINUTES_MIN}m` : null);
const policyOf = ({ restart, redeploy, all_down }) => ({ restart, redeploy, all_down });
const USUAL_POLICY = { restart: "asked", redeploy: "asked", all_down: "automatic" };
const changed = (values, base) => Object.fromEntries(Object.entries(values).filter(([name, value]) => value !== base[name]));
const policyWords = (policy) => Object.entries(policy).flatMap(([name, value]) => [`--${name.replaceAll("_", "-")}`, value]);
const terminateWords = (terminate) => (
  terminate ? ["--terminate-notification", "on", "--terminate-delay", terminate] : ["--terminate-notification", "off"]
);

function createWords(values) {
  const { name, instances, orchestration, spot, cpus, memory, zones, os_image, upgrade } = values;
  const terminate = terminateOf(values);
  return [
    "scaleset", "create", name || "NAME", "--instances", String(instances ?? 0),
    ...(orchestration === "uniform" ? [] : ["--orchestration", orchestration]),
    ...(spot ? ["--spot", spot] : []), ...(cpus ? ["--cpus", String(cpus)] : []), ...(memory ? ["--memory", memory] : []),
    ...(terminate ? terminateWords(terminate) : []), ...(os_image ? ["--os-image", "on"] : []),
    ...(upgrade === "manual" ? [] : upgradeWords(values)),
    ...policyWords(changed(policyOf(values), USUAL_POLICY)), ...(zones?.length ? ["--zones", ...zones.map(String)] : []),
  ];
}

function createRequest(values) {
  const { name, instances, orchestration, spot, cpus, memory, zones, os_image, upgrade } = values;
  const [terminate, policy] = [terminateOf(values), changed(policyOf(values), USUAL_POLICY)];
  const body = {
    name, instances: instances ?? 0,
    ...(orchestration === "uniform" ? {} : { orchestration }),
    ...(spot ? { spot } : {}), ...(cpus ? { cpus } : {}), ...(memory ? { memory } : {}),
    ...(terminate ? { terminate } : {}), ...(os_image ? { os_image } : {}),
    ...(upgrade === "manual" ? {} : { upgrade: upgradeOf(values) }),
    ...(Object.keys(policy).length ? { policy } : {}), ...(zones?.length ? { zones: zones.map(Number) } : {}),
  };
  return { method: "POST", path: "/v1/scalesets", body };
}

/** The members of a change that differ from the set. */
function changeBody(set, values) {
  const body = {};
  if (values.notify !== undefined && terminateOf(values) !== set.terminate) body.terminate = terminateOf(values);
  if (values.os_image !== set.os_image) body.os_image = values.os_image;
  if (JSON.stringify(upgradeOf(values)) !== JSON.stringify(set.upgrade)) body.upgrade = upgradeOf(values);
  const policy = changed(policyOf(values), set.policy);
  if (Object.keys(policy).length) body.policy = policy;
  return body;
}

function changeWords(set, values) {
  const body = changeBody(set, values);
  return [
    "scaleset", "set", set.name, ...("terminate" in body ? terminateWords(body.terminate) : []),
    ...("os_image" in body ? [
      "--os-image", body.os_image ? "on" : "off",
    ] : []), ...("upgrade" in body ? upgradeWords(values) : []), ...policyWords(body.policy ?? {}),
  ];
}

const terminationText = (values) => (
  values.notify ? `instances are notified ${count(values.delay, "minute")} before they are deleted` : "instances are deleted without notice"
);
const optionLabel = (options, value) => options.find((one) => one.value === value)?.label ?? value;

function summary(fields, values) {
  return fields.filter(({ id }) => values[id] !== undefined && values[id] !== "" && values[id] !== null && id !== "delay").map((field) => {
    const value = values[field.id];
    if (field.id === "notify") return [TERMINATION, terminationText(values)];
    if (field.type === "check") return [field.label, value ? "yes" : "no"];
    if (field.type === "choice") return [field.label, optionLabel(field.options, value)];
    if (field.type === "boxes") return [field.label, value.length ? value.join(", ") : "all"];
    return [field.label, `${value}${field.unit ? ` ${field.unit}` : ""}`];
  });
}

/** Opens the form of a new scale set on the page. */
export function openCreateForm(main) {
  const fields = newFields();
  openForm(main, {
    title: "New scale set", fields, reviewLabel: "Review and create", sendLabel: "Create",
    lead: "A scale set is a group of equal VMs. The server places its instances on healthy hosts.",
    check: () => "",
    summary: (values) => summary(fields, values),
    words: createWords, request: createRequest,
    back: "#/scalesets",
    past: (values) => `Scale set ${values.name} is created`,
    after: async (values) => h(
      "p", {}, h("a", { href: `#/scalesets/${encodeURIComponent(values.name)}`, id: "to-set" }, `See ${values.name} and its instances`),
    ),
  });
}

/** Opens the form of a change of a scale set on the page. */
export function openChangeForm(main, set) {
  const fields = modelFields(set, () => set.spot !== null);
  openForm(main, {
    title: `Change ${set.name}`, fields, reviewLabel: "Review the change", sendLabel: "Change",
    lead: `A change of the model is a new version of it, after version ${set.model}. Instances that exist keep theirs until they are upgraded, unless they get a new model by themselves.`,
    check: (values) => (Object.keys(changeBody(set, values)).length ? "" : "Nothing differs from the scale set as it is."),
    summary: (values) => {
      const body = changeBody(set, values);
      const ids = Object.keys(body).flatMap(
        (name) => (
          name === "terminate" ? ["notify"] : name === "policy" ? Object.keys(body.policy) : name === "upgrade" ? [
            "upgrade", "batch_percent", "batch_pause",
          ] : [name]
        )
      );
      return summary(fields.filter(({ id }) => ids.includes(id)), values);
    },
    words: (values) => changeWords(set, values),
    request: (values) => ({ method: "PATCH", path: `/v1/scalesets/${encodeURIComponent(set.name)}`, body: changeBody(set, values) }),
    back: `#/scalesets/${encodeURIComponent(set.name)}`,
    past: () => `Scale set ${set.name} is changed`,
    after: async () => [
      upgradeOffer(set.name),
      h("p", {}, h("a", { href: `#/scalesets/${encodeURIComponent(set.name)}`, id: "to-set" }, `See ${set.name} and its instances`)),
    ],
  });
}

/** The offer to upgrade instances with an older model, as long as there are any. */
function upgradeOffer(name) {
  const offer = h("div", {});
  const draw = () => {
    const set = model.scaleSets.get(name);
    const text = set?.outdated > 0
      && `${count(set.outdated, "instance")} with an older model than ${set.model}, and with its notice of deletion.`;
    replace(offer, text && h("div", { class: "callout" }, h("p", {}, text), actionBar("scaleset", set, ["upgrade_instances"])));
  };
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
    const problem = task.check(values);
    if (problem) throw new Error(problem);
    commands.update(task.words(values), task.request(values));
    edit.hidden = true;
    review.hidden = false;
    const back = h("button", { type: "button", id: "back-button", on: { click: showEdit } }, "Back");
    replace(review,
      h("h2", {}, "Review"),
      h("dl", {}, task.summary(values).map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
      commands.element,
      h("div", { class: "buttons" }, back, send));
    document.getElementById("send-button").focus();
  }, { class: "primary", id: "review-button" });

  const send = actionButton(task.sendLabel, async () => {
    const values = form.values();
    const outcome = await sender.send(values);
    await confirmed(outcome);
    replace(main, h("h1", {}, task.past(values)), outcomeView(outcome), await task.after(values));
    document.getElementById("to-set")?.focus();
  }, { class: "primary", id: "send-button", "data-write": true });

  replace(edit, form.element, h("div", { class: "buttons" }, h("a", { href: task.back, id: "back" }, "Cancel"), toReview));
  replace(main, h("h1", {}, task.title), h("p", { class: "lead" }, task.lead), edit, review);
  form.focus();
}
