// Terms of rollouts: fields of a form, members of a request, options of the command line, and words.

import { given, optionWords } from "./commands.js";
import { checks, inGroup } from "./form.js";
import { count, parseSpan } from "./format.js";

/** Terms that a rollout has if nothing else is said. */
const USUAL_TERMS = {
  at_once: 0, tenant_share: 100, one_fault_domain: false, windows: "any", pause_between: "0s", confirm: "never", stop_after: 1, health: "awaited",
};

/** States of a rollout: a mark, a name, and whether it can be resumed. */
export const ROLLOUT_STATES = {
  going: { mark: "started", name: "under way" },
  "waits-for-room": { mark: "scheduled", name: "waits for other work" },
  "waits-for-window": { mark: "scheduled", name: "waits for a window" },
  "waits-for-health": { mark: "failed", name: "waits for healthy hosts", canResume: true },
  "waits-for-brake": { mark: "soon", name: "held by the brake" },
  "waits-for-confirmation": { mark: "soon", name: "waits for your confirmation", canResume: true },
  rests: { mark: "scheduled", name: "pauses between groups" },
  paused: { mark: "stopped", name: "paused", canResume: true },
  "paused-by-failures": { mark: "failed", name: "paused by failures", canResume: true },
  finished: { mark: "done", name: "finished" },
  cancelled: { mark: "stopped", name: "cancelled" },
};

/** Fields for terms, with the values of `terms`. */
export const termFields = (terms = USUAL_TERMS) => inGroup("Terms", [
  { id: "at_once", type: "number", label: "Hosts at once", min: 0, value: terms.at_once, hint: "0: no limit.", isNeeded: true },
  {
    id: "tenant_share", type: "number", label: "VMs of a tenant at once, at most", unit: "%", min: 1, max: 100, value: terms.tenant_share,
    title: "Percentage of a tenant's VMs in planned work at once, rounded down, but at least one VM", isNeeded: true,
  },
  {
    id: "one_fault_domain", type: "check", label: "Only one fault domain of a tenant at once", value: terms.one_fault_domain,
    title: "A fault domain is a group of hosts that can fail together, such as a rack. Update domains are always worked on one after the other",
  },
  {
    id: "windows", type: "lines", label: "Windows for the start of groups", value: terms.windows === "any" ? [] : terms.windows,
    placeholder: "mon-fri 22:00-06:00 +01:00", hint: "One per line; any time if empty.", check: checks.windows,
  },
  {
    id: "pause_between", label: "Pause between groups", value: terms.pause_between, hint: "Such as 10m; 0s for none, at most 7d.",
    isNeeded: true, check: checks.span("0s", "7d"),
  },
  {
    id: "confirm", type: "choice", label: "Wait for a person", value: terms.confirm,
    options: { never: "never", first: "after the first group", each: "after each group" },
  },
  {
    id: "stop_after", type: "number", label: "Pause after", unit: "failures", min: 0, value: terms.stop_after, hint: "0: never.",
    isNeeded: true,
  },
  {
    id: "health", type: "check", label: "Wait until hosts are healthy before the next group", value: terms.health === "awaited",
    title: "A rollout waits while one of its hosts, or a host with a VM of the last group, is degraded or has failed",
  },
]);

/** The members of `terms` that differ from `base`. */
export function changedTerms(values, base = USUAL_TERMS) {
  const { windows, health } = values;
  const wanted = given({ ...values, windows: windows.length ? windows : "any", health: health ? "awaited" : "ignored" });
  wanted.one_fault_domain = values.one_fault_domain;
  const text = (value) => JSON.stringify(parseSpan(value) ?? value);
  const names = Object.keys(USUAL_TERMS).filter((name) => name in wanted && text(wanted[name]) !== text(base[name]));
  return Object.fromEntries(names.map((name) => [name, wanted[name]]));
}

/** The options of the command line for terms. */
export function termWords({ tenant_share: share, one_fault_domain: isOne, windows: window, health, ...others }) {
  const flag = (name, isSet) => (isSet ? name : `${name}=false`);
  return [
    ...optionWords({ ...others, tenant_share: share && `${share}%`, window }),
    isOne !== undefined && flag("--one-fault-domain", isOne),
    health && flag("--ignore-health", health === "ignored"),
  ].filter(Boolean);
}

/** Terms in words. */
export function termsText(terms) {
  const parts = [
    terms.at_once ? `at most ${count(terms.at_once, "host")} at once` : "any number of hosts at once",
    terms.tenant_share < 100 && `at most ${terms.tenant_share} % of a tenant's VMs at once`,
    terms.one_fault_domain && "one fault domain of a tenant at once",
    terms.windows !== "any" && `starts only in ${terms.windows.join(", ")}`,
    parseSpan(terms.pause_between) > 0 && `pauses ${terms.pause_between} between groups`,
    terms.confirm !== "never" && `waits for a person after ${terms.confirm === "first" ? "the first group" : "each group"}`,
    terms.stop_after ? `pauses after ${count(terms.stop_after, "failure")}` : "never pauses by itself after failures",
    terms.health === "ignored" && "ignores the health of hosts",
  ];
  return parts.filter(Boolean).join("; ");
}
