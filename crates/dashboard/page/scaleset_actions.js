// Actions on scale sets.

import { settings, startText } from "./action_effects.js";
import { REQUIRE_NOTICE, command, requireNotice } from "./commands.js";
import { checks, spanMillis } from "./form.js";
import { count, list } from "./format.js";
import { model } from "./model.js";

const INSTANCES_MAX = 1000;

const path = (set, verb) => `/v1/scalesets/${encodeURIComponent(set.name)}/${verb}`;
const request = (set, verb, body, values) => (
  { method: "POST", path: path(set, verb), body, parameters: values.require_notice ? { require_notice: "true" } : undefined }
);
const setAction = (action) => ({ kind: "scaleset", fields: () => [], ...action });

/** The machines of a scale set, in the order of their numbers. */
export function instancesOf(set) {
  const machines = set.tenants.flatMap(
    (tenant) => (model.tenants.get(tenant)?.machines ?? []).map((name) => model.machines.get(`${tenant}/${name}`))
  );
  return machines.filter(Boolean);
}

/** The notice of deletion in words. */
export function terminateText(terminate) {
  return terminate ? `notified ${spanMillis(terminate) / 60_000} min before` : "not notified";
}

async function deletionTexts(set, machines) {
  if (!machines.length) return [];
  const known = await settings();
  const byNotice = Map.groupBy(machines, ({ terminate }) => terminate ?? "");
  return [...byNotice].flatMap(([terminate, some]) => [
    `${list(some.map(({ name }) => name), 5)}: deleted, everything on ${some.length === 1 ? "it" : "them"} is lost; ${terminate ? `${terminateText(terminate)} the deletion` : "its model has no notice of deletion"}.`,
    ...startText(some[0].tenant, { event: terminate && "Terminate", millis: spanMillis(terminate), what: "deletion" }, known),
  ]);
}

export const SCALE_SET_ACTIONS = {
  scale_set: setAction({
    label: "Scale", button: "Scale", applies: () => true,
    title: (set) => `Change the number of instances of ${set.name}`,
    past: (set) => `The capacity of ${set.name} was set`,
    fields: (set) => [
      {
        id: "capacity", type: "number", label: "Instances", min: 0, max: INSTANCES_MAX, value: set.capacity,
        check: (value) => checks.required(value) || checks.number(0, INSTANCES_MAX)(value),
      },
      { ...REQUIRE_NOTICE, isShown: (values) => values.capacity !== null && values.capacity < set.capacity },
    ],
    effects: async (set, { capacity }) => {
      const more = (capacity ?? set.capacity) - set.capacity;
      if (more === 0) return [`${set.name} has ${count(set.capacity, "instance")} already: nothing changes.`];
      if (more > 0) return [
        `${count(more, "new instance")}: placed on healthy hosts without announced work, spread over zones, fault domains and update domains, with model ${set.model}.`
      ];
      const some = instancesOf(set);
      const models = new Set(some.map(({ terminate }) => terminate ?? ""));
      const notice = models.size === 1 ? some[0]?.terminate : set.terminate;
      return [
        `${count(-more, "instance")} ${more === -1 ? "is" : "are"} deleted, the newest of the zone and fault domain with the most instances: everything on ${more === -1 ? "it" : "them"} is lost.`,
        models.size > 1 && "Instances have different models, and so different notices of deletion.",
        ...startText(set.tenants.at(-1), { event: notice && "Terminate", millis: spanMillis(notice), what: "deletion" }, await settings()),
      ];
    },
    words: (set, values) => ["scaleset", "scale", set.name, String(values.capacity ?? set.capacity), ...requireNotice(values)],
    request: (set, values) => request(set, "scale", { capacity: values.capacity ?? set.capacity }, values),
  }),
  upgrade_instances: setAction({
    label: "Upgrade instances", button: "Upgrade", applies: (set) => set.outdated > 0,
    title: (set) => `Upgrade ${count(set.outdated, "instance")} of ${set.name} to model ${set.model}`,
    past: (set) => `The instances of ${set.name} have the latest model`,
    effects: (set) => [
      `${list(instancesOf(set).filter(({ model: version }) => version < set.model).map(({ name }) => name), 10)}: model ${set.model} from now on. Deletions: ${terminateText(set.terminate)}.`,
      "This changes only what Forewarn knows about them: nothing is restarted, and there is no event.",
    ],
    words: (set) => ["scaleset", "upgrade", set.name, "--all"],
    request: (set) => request(set, "upgrade", { instances: "all" }, {}),
  }),
  delete_instances: setAction({
    label: "Delete instances", button: "Delete", isDangerous: true, applies: (set) => set.capacity > 0,
    title: (set) => `Delete instances of ${set.name}`,
    past: (set) => `The deletion of instances of ${set.name} was requested`,
    fields: (set) => [
      { id: "instances", type: "boxes", label: "Instances", options: instancesOf(set).map(({ name }) => name), check: checks.required },
      REQUIRE_NOTICE,
    ],
    effects: (set, { instances }) => (
      instances.length ? deletionTexts(
        set, instancesOf(set).filter(({ name }) => instances.includes(name)),
      ) : ["Choose the instances to delete."]
    ),
    words: (set, values) => [
      "scaleset", "delete-instances", set.name, ...(values.instances.length ? values.instances : ["INSTANCE"]), ...requireNotice(values),
    ],
    request: (set, values) => request(set, "delete-instances", { instances: values.instances }, values),
  }),
  remove_scale_set: setAction({
    label: "Delete scale set", button: "Delete", isDangerous: true, isAdmin: true, applies: (set) =>
      set.capacity === 0 && set.leaving === 0,
    title: (set) => `Delete scale set ${set.name}`,
    past: (set) => `Scale set ${set.name} is deleted`,
    effects: (set) => [`${set.name} has no instances: only its model, its policy and its name are deleted.`],
    words: (set) => ["scaleset", "delete", set.name],
    request: (set) => command("remove_scale_set", { scale_set: set.name }),
  }),
};
