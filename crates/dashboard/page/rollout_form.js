// A new rollout: its form, its preview, and its start.

import { confirmed, createSender, outcomeView } from "./action_dialog.js";
import { REQUIRE_NOTICE, command, commandsView, requireNotice } from "./commands.js";
import { actionButton, h, replace } from "./dom.js";
import { checks, createForm } from "./form.js";
import { count, list } from "./format.js";
import { model } from "./model.js";
import { previewView, readPreview } from "./rollout_preview.js";
import { TERM_FIELDS, changedTerms, termWords } from "./rollout_terms.js";

const KINDS = [
  { value: "update", label: "update: VMs pause for seconds" },
  { value: "reboot", label: "reboot: VMs are restarted" },
  { value: "migrate", label: "migrate: VMs are moved live" },
  { value: "network", label: "network: VMs lose connections" },
];

function zones() {
  const all = [...model.hosts.values()].map(({ zone }) => zone).filter((zone) => zone !== null);
  return [...new Set(all)].sort((one, other) => one - other);
}

/** Hosts that `all` and a zone select: those that can have work. */
const selectable = (zone) => [...model.hosts.values()].filter((host) =>
  host.health !== "failed" && !host.attention && !host.maintenance && (zone === undefined || host.zone === zone));

const hostOption = ({ name, machines, zone, work, health }) => ({
  value: name, label: name, title: [
    count(machines.length, "VM"), zone !== null && `zone ${zone}`, health !== "healthy" && health, work,
  ].filter(Boolean).join(", "),
});

function fields() {
  const hosts = [...model.hosts.values()];
  const known = zones();
  const busy = hosts.filter(({ work }) => work).map(({ name }) => name);
  const which = [
    { value: "all", label: "all that can have work" }, ...(known.length ? [{ value: "zone", label: "those of a zone" }] : []),
    { value: "names", label: "these" },
  ];
  return [
    { id: "kind", group: "Work", type: "choice", label: "Kind of work", options: KINDS, value: "update" },
    {
      id: "work", group: "Work", type: "text", label: "Work on each host", placeholder: "kernel 6.12.9",
      hint: "For the driver and for people; may be empty.", check: checks.work, isShown: ({ no_work }) => !no_work,
    },
    { id: "no_work", group: "Work", type: "check", label: "No step on the hosts themselves, only work on their VMs" },
    {
      id: "duration", group: "Work", type: "text", label: "Announced length of the interruption", placeholder: "9s",
      hint: "The usual length if empty.", check: checks.span("1s", "18h"),
    },
    { id: "which", group: "Hosts", type: "choice", label: "Hosts", options: which, value: "all" },
    {
      id: "zone", group: "Hosts", type: "choice", label: "Zone", options: known.map(String), isShown: ({ which: one }) => one === "zone",
      title: "A zone is a separate building or power supply",
    },
    {
      id: "names", group: "Hosts", type: "boxes", label: "Hosts to work on", options: hosts.map(hostOption), check: checks.required,
      isShown: ({ which: one }) => one === "names",
    },
    {
      id: "except", group: "Hosts", type: "boxes", label: "Except", options: hosts.map(hostOption), value: busy,
      isShown: ({ which: one }) => one !== "names",
      hint: busy.length ? `A host with other planned work cannot join: ${list(busy, 5)}.` : null,
    },
    ...TERM_FIELDS(),
    { ...REQUIRE_NOTICE, group: "Start" },
  ];
}

function entry(values) {
  const { kind, which, zone, names, except, work, no_work, duration } = values;
  return {
    kind,
    hosts: which === "all" ? "all" : which === "zone" ? { zone: Number(zone) } : names,
    ...(except?.length ? { except } : {}),
    ...(work ? { work } : {}),
    ...(no_work ? { no_work } : {}),
    ...(duration ? { duration } : {}),
    terms: changedTerms(values),
  };
}

function words(values) {
  const { kind, which, zone, names, except, work, no_work, duration } = values;
  const hosts = which === "all" ? ["--all"] : which === "zone" ? ["--zone", zone] : names.length ? names : ["HOST"];
  return [
    "rollout", "start", ...hosts, ...(except ?? []).flatMap((name) => ["--except", name]), ...(kind === "update" ? [] : ["--kind", kind]),
    ...(work ? ["--work", work] : []), ...(no_work ? ["--no-work"] : []), ...(duration ? ["--duration", duration] : []),
    ...termWords(changedTerms(values)), ...requireNotice(values),
  ];
}

const request = (values) => command("start_rollout", entry(values), values);

/** Opens the form on the page. */
export function openRolloutForm(main) {
  const sender = createSender({ request });
  const commands = commandsView("h2");
  const result = h("section", { id: "preview", "aria-live": "polite" });
  const chosen = h("p", { class: "quiet", role: "status" });
  let previewed = "";

  const update = (values) => {
    commands.update(words(values), request(values));
    const number = values.which === "names" ? values.names.length
      : selectable(values.which === "zone" ? Number(values.zone) : undefined).filter(({ name }) => !values.except?.includes(name)).length;
    replace(chosen, `${count(number, "host")} chosen.`);
    const isCurrent = JSON.stringify(entry(values)) === previewed;
    result.classList.toggle("outdated", previewed !== "" && !isCurrent);
    start.hidden = !previewed;
    const button = start.querySelector("button");
    button.toggleAttribute("data-outdated", !isCurrent);
    button.title = isCurrent ? "" : "The form has changed: preview it again first";
  };

  const form = createForm(fields(), update);

  const preview = actionButton("Preview", async () => {
    if (!form.check()) throw new Error("Correct the fields above first.");
    const wanted = entry(form.values());
    const simulated = await readPreview(wanted);
    previewed = JSON.stringify(wanted);
    replace(result, h("h2", {}, `Preview: ${simulated.work} of ${count(simulated.hosts, "host")}`), previewView(simulated));
    update(form.values());
    result.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }, { id: "preview-button" });

  const start = actionButton("Start rollout", async (button) => {
    if (button.hasAttribute("data-outdated")) throw new Error("The form has changed since the preview: preview it again.");
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
      h(
        "span", { class: "term", title: "Update domains are groups of a tenant's VMs that are never worked on at the same time" },
        "update domains",
      ), " at once. Preview it first: nothing is announced before you start it."),
    h("div", { class: "form-page" },
      h(
        "div", {}, form.element, chosen,
        h("div", { class: "buttons" }, h("a", { href: "#/rollouts", id: "back" }, "Back to the list"), preview, start),
      ),
      h("div", {}, commands.element)),
    result);
  update(form.values());
}
