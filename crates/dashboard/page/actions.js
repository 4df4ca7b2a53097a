// Actions on an object: their buttons, their dialogs and their command lines.

import { ACTIONS } from "./action_list.js";
import { openDialog } from "./action_dialog.js";
import { commandText } from "./commands.js";
import { h } from "./dom.js";
import { createForm } from "./form.js";
import { model } from "./model.js";

const KEYS = {
  machine: (machine) => `${machine.tenant}/${machine.name}`,
  host: (host) => host.name,
  event: (event) => event.id,
  rollout: (rollout) => rollout.id,
  cluster: (cluster) => cluster.name,
  scaleset: (set) => set.name,
};

const FIND = {
  machine: (name) => model.machines.get(name) ?? [...model.machines.values()].find((machine) => machine.name === name),
  host: (name) => model.hosts.get(name),
  event: (id) => model.events.get(id),
  rollout: (id) => model.rollouts.get(Number(id)),
  cluster: (name) => model.clusters.find((cluster) => cluster.name === name),
  scaleset: (name) => model.scaleSets.get(name),
};

const isAllowed = (action) => (action.isAdmin ? model.canAdmin : model.canOperate);

/**
 * Buttons of an object of a kind (`machine`, `host`, `event`, `rollout`, `cluster`, `scaleset`): those of its actions that apply to it now.
 * `names` selects some of them. Null if there are none.
 */
export function actionBar(kind, object, names) {
  if (!object || !model.canOperate) return null;
  const applying = (names ?? Object.keys(ACTIONS)).filter(
    (name) => ACTIONS[name]?.kind === kind && isAllowed(ACTIONS[name]) && ACTIONS[name].applies(object)
  );
  if (!applying.length) return null;
  const key = KEYS[kind](object);
  const button = (name) => h("button", {
    type: "button", id: `do-${names ? names.join("-") : "all"}-${name}-${key}`, class: ACTIONS[name].isDangerous ? "danger" : null,
    "data-action": name, "data-write": true, "aria-haspopup": "dialog", on: { click: () => openAction(name, { [kind]: key }) },
  }, ACTIONS[name].label);
  return h("span", { class: "actions" }, applying.map(button));
}

function find(name, target) {
  const action = ACTIONS[name];
  const object = action && FIND[action.kind](target[action.kind]);
  return object ? [action, object] : [null, null];
}

/** Opens the dialog of an action for a target, such as `openAction("restart", { machine: "web/web_0" })`. Returns the dialog; null if it is gone. */
export function openAction(name, target) {
  const [action, object] = find(name, target);
  if (!action) return null;
  return openDialog({
    title: action.title(object),
    button: action.button,
    isDangerous: action.isDangerous,
    past: action.past(object),
    fields: action.fields(object),
    effects: (values) => action.effects(object, values),
    words: (values) => action.words(object, values),
    request: (values) => action.request(object, values),
    after: action.after && ((outcome) => action.after(object, outcome)),
  });
}

/** The command line of an action, with the usual values of its fields. */
export function commandLine(name, target) {
  const [action, object] = find(name, target);
  if (!action) return "";
  return commandText(action.words(object, createForm(action.fields(object)).values()));
}
