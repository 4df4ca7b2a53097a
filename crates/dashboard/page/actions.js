// Actions on an object: their buttons, their dialogs and their command lines.

import { ACTIONS } from "./action_list.js";
import { openDialog } from "./action_dialog.js";
import { commandText } from "./commands.js";
import { button, h } from "./dom.js";
import { createForm } from "./form.js";
import { model } from "./model.js";

/** The objects of a kind by their keys, and the key of an object. */
const KINDS = {
  machine: [() => model.machines, ({ tenant, name }) => `${tenant}/${name}`],
  host: [() => model.hosts, ({ name }) => name],
  event: [() => model.events, ({ id }) => id],
  rollout: [() => model.rollouts, ({ id }) => id],
  cluster: [() => new Map(model.clusters.map((cluster) => [cluster.name, cluster])), ({ name }) => name],
  scaleset: [() => model.scaleSets, ({ name }) => name],
};

const isAllowed = (action) => (action.isAdmin ? model.canAdmin : model.canOperate);

/**
 * The names of the actions that apply now to an object of a kind (`machine`, `host`, `event`, `rollout`, `cluster`, `scaleset`).
 * `names` selects some of them.
 */
export function actionsOf(kind, object, names = Object.keys(ACTIONS)) {
  if (!object || !model.canOperate) return [];
  return names.filter((name) => ACTIONS[name].kind === kind && isAllowed(ACTIONS[name]) && ACTIONS[name].applies(object));
}

/** Buttons of these actions, or null if there are none. An action looks its object up when it is chosen. */
export function actionBar(kind, object, names) {
  const found = actionsOf(kind, object, names);
  if (found.length === 0) return null;
  const key = KINDS[kind][1](object);
  return h("span", { class: "actions" }, found.map((name) =>
    button(ACTIONS[name].label, () => openAction(name, { [kind]: key }), {
      id: `do-${names?.join("-") ?? "all"}-${name}-${key}`, class: ACTIONS[name].isDangerous && "danger", "data-action": name,
      "data-write": true, "aria-haspopup": "dialog",
    })));
}

/** The action for a target, such as `{ machine: "web/web_0" }`, in the form that its dialog needs; null if the target is gone. */
function bound(name, target) {
  const action = ACTIONS[name];
  const object = KINDS[action.kind][0]().get(target[action.kind]);
  return object ? {
    title: action.title(object),
    button: action.button,
    isDangerous: action.isDangerous,
    past: action.past(object),
    fields: action.fields(object),
    effects: (values) => action.effects(object, values),
    words: (values) => action.words(object, values),
    request: (values) => action.request(object, values),
  } : null;
}

/** Opens the dialog of an action for a target. */
export function openAction(name, target) {
  const action = bound(name, target);
  if (action) openDialog(action);
}

/** The command line of an action, with the usual values of its fields. */
export function commandLine(name, target) {
  const action = bound(name, target);
  return action ? commandText(action.words(createForm(action.fields).values())) : "";
}
