// A new rollout: its form, its preview, and its start.

import { confirmed, createSender, outcomeView } from "./action_dialog.js";
import { DURATION, NO_WORK, WORK } from "./action_hosts.js";
import { REQUIRE_NOTICE, command, commandsView, given, optionWords } from "./commands.js";
import { actionButton, h, replace } from "./dom.js";
import { createForm, inGroup, isEmpty, zoneOptions } from "./form.js";
import { count, list } from "./format.js";
import { model } from "./model.js";
import { previewView, readPreview } from "./rollout_preview.js";
import { changedTerms, termFields, termWords } from "./rollout_terms.js";

const KINDS = {
  update: "update: VMs pause for seconds",
  reboot: "reboot: VMs are restarted",
  migrate: "migrate: VMs are moved live",
  network: "network: VMs lose connections",
};

const hostOption = ({ name, machines, zone, work, health }) => ({
  value: name, label: name,
  title: [count(machines.length, "VM"), zone !== null && `zone ${zone}`, health !== "healthy" && health, work].filter(Boolean).join(", "),
});

function fields() {
  const hosts = [...model.hosts.values()];
  const zones = zoneOptions();
  const busy = hosts.filter(({ work }) => work).map(({ name }) => name);
  const zoneChoice = isEmpty(Object.keys(zones)) ? {} : { zone: "those of a zone" };
  const isNames = ({ which }) => which === "names";
  return [
    ...inGroup("Work", [
      { id: "kind", type: "choice", label: "Kind of work", options: KINDS }, { ...WORK, label: "Work on each host" }, NO_WORK, DURATION,
    ]),
    ...inGroup("Hosts", [
      { id: "which", type: "choice", label: "Hosts", options: { all: "all that can have work", ...zoneChoice, names: "these" } },
      {
        id: "zone", type: "choice", label: "Zone", options: zones, isShown: ({ which }) => which === "zone",
        title: "A zone is a separate building or power supply",
      },
      { id: "names", type: "boxes", label: "Hosts to work on", options: hosts.map(hostOption), isNeeded: true, isShown: isNames },
      {
        id: "except", type: "boxes", label: "Except", options: hosts.map(hostOption), value: busy, isShown: (values) => !isNames(values),
        hint: busy.length ? `A host with other planned work cannot join: ${list(busy, 5)}.` : null,
      },
    ]),
    ...termFields(),
    { ...REQUIRE_NOTICE, group: "Start" },
  ];
}

function entry(values) {
  const { kind, zone, names, except, work, no_work, duration } = values;
  const hosts = names ?? (zone ? { zone: Number(zone) } : "all");
  return { kind, hosts, ...given({ except, work, no_work, duration }), terms: changedTerms(values) };
}

function words(values) {
  const { kind, zone, names, except, work, no_work, duration, require_notice } = values;
  const hosts = names?.length === 0 ? ["HOST"] : names ?? optionWords({ zone, all: !zone });
  const options = { except, kind: kind !== "update" && kind, work, no_work, duration };
  return ["rollout", "start", ...hosts, ...optionWords(options), ...termWords(changedTerms(values)), ...optionWords({ require_notice })];
}

const request = (values) => command("start_rollout", entry(values), values);

/** The number of hosts that the form selects: of those that can have work, if they are not named. */
function hostsChosen({ zone, names, except }) {
  const isChosen = (host) => host.health !== "failed" && !host.attention && !host.maintenance
    && (!zone || host.zone === Number(zone)) && !except.includes(host.name);
  return names?.length ?? [...model.hosts.values()].filter(isChosen).length;
}

/** Opens the form on the page. */
export function openRolloutForm(main) {
  const sender = createSender({ request });
  const commands = commandsView("h2");
  const result = h("section", { id: "preview", "aria-live": "polite" });
  const chosen = h("p", { class: "quiet", role: "status" });
  let previewed = "";

  const update = (values) => {
    commands.update(words(values), request(values));
    replace(chosen, `${count(hostsChosen(values), "host")} chosen.`);
    start.hidden = !previewed;
    result.classList.toggle("outdated", !isCurrent());
    start.querySelector("button").title = isCurrent() ? "" : "The form has changed: preview it again first";
  };

  const form = createForm(fields(), update);
  const isCurrent = () => JSON.stringify(entry(form.values())) === previewed;

  const preview = actionButton("Preview", async () => {
    if (!form.check()) throw new Error("Correct the fields above first.");
    const wanted = entry(form.values());
    const simulated = await readPreview(wanted);
    previewed = JSON.stringify(wanted);
    replace(result, h("h2", {}, `Preview: ${simulated.work} of ${count(simulated.hosts, "host")}`), previewView(simulated));
    update(form.values());
    result.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }, { id: "preview-button" });

  const start = actionButton("Start rollout", async () => {
    if (!isCurrent()) throw new Error("The form has changed since the preview: preview it again.");
    const outcome = await sender.send(form.values());
    await confirmed(outcome);
    replace(main,
      h("h1", {}, `Rollout ${outcome.rollouts[0] ?? ""} is planned`),
      outcomeView(outcome),
      h("p", {}, h("a", { href: "#/rollouts", id: "to-rollouts" }, "See its progress")));
    document.getElementById("to-rollouts").focus();
  }, { class: "primary", id: "start-button", "data-write": true });

  replace(main,
    h("h1", {}, "New rollout"),
    h("p", { class: "lead" }, "A rollout works on many hosts, group by group: no tenant has planned work in two ",
      h("span", { class: "term", title: "Groups of a tenant's VMs that are never worked on at the same time" }, "update domains"),
      " at once. Preview it first: nothing is announced before you start it."),
    h("div", { class: "form-page" },
      h("div", {}, form.element, chosen,
        h("div", { class: "buttons" }, h("a", { href: "#/rollouts", id: "back" }, "Back to the list"), preview, start)),
      h("div", {}, commands.element)),
    result);
  update(form.values());
}
