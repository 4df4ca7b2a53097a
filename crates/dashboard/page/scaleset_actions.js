// Actions on scale sets.

import { deletionTexts } from "./action_effects.js";
import { REQUIRE_NOTICE, commandActions, noticeParameters, optionWords } from "./commands.js";
import { MINUTE, count, list, parseSpan } from "./format.js";
import { model } from "./model.js";

const INSTANCES_MAX = 1000;

/** The path of a scale set, of the API and of the page. */
export const setPath = (name) => `/scalesets/${encodeURIComponent(name)}`;

const request = (set, verb, body, values) => (
  { method: "POST", path: `/v1${setPath(set.name)}/${verb}`, body, parameters: noticeParameters(values) }
);

/** The machines of a scale set, in the order of their numbers. */
function instancesOf(set) {
  const instances = (tenant) => (model.tenants.get(tenant)?.machines ?? []).map((name) => model.machines.get(`${tenant}/${name}`));
  return set.tenants.flatMap(instances).filter(Boolean);
}

const namesOf = (machines) => machines.map(({ name }) => name);

/** The notice of deletion in words. */
export function terminateText(terminate) {
  return terminate ? `notified ${parseSpan(terminate) / MINUTE} min before` : "not notified";
}

/** Consequences of the deletion of machines: those with the same notice together. */
async function instanceTexts(machines) {
  const byNotice = Map.groupBy(machines, ({ terminate }) => terminate);
  const texts = [...byNotice].map(async ([terminate, some]) => [
    `${list(namesOf(some), 5)}: deleted, everything on ${some.length === 1 ? "it" : "them"} is lost; ${terminateText(terminate)}.`,
    ...(await deletionTexts(some[0].tenant, terminate)),
  ]);
  return (await Promise.all(texts)).flat();
}

const describe = ({ name }) => ({ name, word: name, members: { scale_set: name } });

export const SCALE_SET_ACTIONS = commandActions("scaleset", describe, {
  scale_set: {
    label: "Scale", applies: () => true,
    title: "Change the number of instances of {}",
    past: "The capacity of {} was set",
    fields: (set) => [
      { id: "capacity", type: "number", label: "Instances", min: 0, max: INSTANCES_MAX, value: set.capacity, isNeeded: true },
      { ...REQUIRE_NOTICE, isShown: ({ capacity }) => capacity !== null && capacity < set.capacity },
    ],
    effects: async (set, { capacity }) => {
      const more = (capacity ?? set.capacity) - set.capacity;
      if (more === 0) return [`${set.name} has ${count(set.capacity, "instance")} already: nothing changes.`];
      if (more > 0) return [
        `${count(more, "new instance")} with model ${set.model}: placed on healthy hosts without announced work.`,
        "They are spread over zones, fault domains and update domains.",
      ];
      const notices = new Set(instancesOf(set).map(({ terminate }) => terminate));
      const [notice] = notices.size === 1 ? notices : [set.terminate];
      return [
        `The server deletes ${count(-more, "instance")}, the newest of the zone and fault domain with the most instances: no data is kept.`,
        notices.size > 1 && "Instances have different models, and so different notices of deletion.",
        ...(await deletionTexts(set.tenants.at(-1), notice)),
      ];
    },
    words: ({ name, capacity: old }, { capacity, require_notice }) => [
      "scaleset", "scale", name, String(capacity ?? old), ...optionWords({ require_notice }),
    ],
    request: (set, values) => request(set, "scale", { capacity: values.capacity ?? set.capacity }, values),
  },
  upgrade_instances: {
    label: "Upgrade instances", button: "Upgrade", applies: (set) => set.outdated > 0,
    title: (set) => `Upgrade ${count(set.outdated, "instance")} of ${set.name} to model ${set.model}`,
    past: "The instances of {} have the latest model",
    effects: (set) => {
      const outdated = instancesOf(set).filter((machine) => machine.model < set.model);
      return [
        `${list(namesOf(outdated), 10)}: model ${set.model} from now on. Deletions: ${terminateText(set.terminate)}.`,
        "This changes only what Forewarn knows about them: nothing is restarted, and there is no event.",
      ];
    },
    words: (set) => ["scaleset", "upgrade", set.name, "--all"],
    request: (set) => request(set, "upgrade", { instances: "all" }),
  },
  delete_instances: {
    label: "Delete instances", button: "Delete", isDangerous: true, applies: (set) => set.capacity > 0,
    title: "Delete instances of {}",
    past: "The deletion of instances of {} was requested",
    fields: (set) => [
      { id: "instances", type: "boxes", label: "Instances", options: namesOf(instancesOf(set)), isNeeded: true }, REQUIRE_NOTICE,
    ],
    effects: (set, { instances }) => (instances.length
      ? instanceTexts(instancesOf(set).filter(({ name }) => instances.includes(name)))
      : ["Choose the instances to delete."]),
    words: (set, { instances, require_notice }) => [
      "scaleset", "delete-instances", set.name, ...(instances.length ? instances : ["INSTANCE"]), ...optionWords({ require_notice }),
    ],
    request: (set, values) => request(set, "delete-instances", { instances: values.instances }, values),
  },
  remove_scale_set: {
    label: "Delete scale set", button: "Delete", isDangerous: true, isAdmin: true, cli: "scaleset delete",
    applies: (set) => set.capacity === 0 && set.leaving === 0,
    title: "Delete scale set {}",
    past: "Scale set {} is deleted",
    effects: (set) => [`${set.name} has no instances: only its model, its policy and its name are deleted.`],
  },
});
