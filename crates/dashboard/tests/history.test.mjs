// Histories of events, and the past that they and other entries tell. Run: node --test crates/dashboard/tests/*.test.mjs

import assert from "node:assert/strict";
import test from "node:test";

import { Histories } from "../page/history.js";
import { merged, placementAt, stateAt } from "../page/past.js";

const at = (minute) => `2026-11-18T04:${String(minute).padStart(2, "0")}:00Z`;
const millis = (minute) => Date.parse(at(minute));
let number = 0;
const entry = (minute, kind, text, more = {}) => ({ stream: "cluster-0", number: ++number, at: at(minute), kind, text, ...more });
const notice = (status, more = {}) => ({ event: "E1", status, type: "Reboot", tenant: "web", resources: ["web_0"], ...more });

function restart() {
  return [
    entry(0, "announced", "Reboot of web_0 (restart by the owner) is announced, not before …", { work: 1, events: ["E1"], machines: ["web/web_0"], hosts: ["h1"], notices: [notice("Scheduled", { not_before: at(15) })] }),
    entry(5, "approved", "Reboot of web_0 (restart by the owner) is approved, by machine web/web_0", { tenants: ["web"], events: ["E1"] }),
    entry(6, "started", "Reboot of web_0 (restart by the owner) has started, by approval", { work: 1, events: ["E1"], machines: ["web/web_0"], hosts: ["h1"], notices: [notice("Started")] }),
    entry(8, "completed", "Reboot of web_0 (restart by the owner) completed for web_0", { work: 1, events: ["E1"], machines: ["web/web_0"], hosts: ["h1"], notices: [notice("Completed")] }),
  ];
}

test("a history has its times, its approvals and its outcome", () => {
  const histories = new Histories();
  for (const one of restart()) histories.add(one);
  const history = histories.byId.get("E1");
  assert.equal(history.cause, "restart by the owner");
  assert.deepEqual([history.announced, history.started, history.ended, history.notBefore], [0, 6, 8, 15].map(millis));
  assert.deepEqual(history.approvals, [{ at: millis(5), by: "machine web/web_0", tenant: "web" }]);
  assert.equal(history.outcome, "Completed");
  assert.equal(history.startedBy, "by approval");
});

test("entries in any order, and twice, give the same history", () => {
  const [forward, backward] = [new Histories(), new Histories()];
  const entries = restart();
  for (const one of entries) assert.equal(forward.add(one), true);
  for (const one of [...entries, ...entries].reverse()) backward.add(one);
  assert.deepEqual(backward.byId.get("E1"), forward.byId.get("E1"));
});

test("the status at a time follows the log", () => {
  const histories = new Histories();
  for (const one of restart()) histories.add(one);
  const history = histories.byId.get("E1");
  const status = (minute) => Histories.statusAt(history, millis(minute));
  assert.deepEqual([0, 5, 6, 7, 8, 20].map(status), ["Scheduled", "Scheduled", "Started", "Started", "Completed", "Completed"]);
  assert.equal(Histories.statusAt(history, millis(0) - 1), "unknown");
});

test("an event that starts without an announcement ends, too", () => {
  const histories = new Histories();
  histories.add(entry(1, "started", "Reboot of db-0 (h2 has failed) has started, by the failure of its host", { events: ["E9"], work: 2, notices: [notice("Started", { event: "E9" })] }));
  histories.add(entry(2, "completed", "Reboot of db-0 (h2 has failed) completed for db-0", { events: ["E9"], work: 2, notices: [notice("Completed", { event: "E9" })] }));
  const history = histories.byId.get("E9");
  assert.equal(Histories.statusAt(history, millis(0)), "unknown");
  assert.equal(Histories.statusAt(history, millis(1)), "Started");
  assert.equal(Histories.statusAt(history, millis(3)), "Completed");
});

test("a failed action makes a failed event with its reason", () => {
  const histories = new Histories();
  histories.add(entry(1, "completed", "Reboot failed for web_0", { events: ["E1"], notices: [notice("Completed", { failures: [{ reason: "no such domain" }] })] }));
  const { outcome, reason } = histories.byId.get("E1");
  assert.deepEqual([outcome, reason], ["Failed", "no such domain"]);
});

test("the state at a time has events, ended ones and their approvals", () => {
  const entries = restart();
  const state = (minute) => stateAt(entries, millis(minute));
  assert.deepEqual(state(4).events.map(({ status, isApproved }) => [status, isApproved]), [["Scheduled", false]]);
  assert.deepEqual(state(5).events.map(({ status, isApproved }) => [status, isApproved]), [["Scheduled", true]]);
  assert.deepEqual(state(7).events.map(({ status }) => status), ["Started"]);
  assert.deepEqual([state(9).events.length, state(9).ended.length], [0, 1]);
  assert.equal(stateAt(entries, millis(8) + 3600_001).ended.length, 0);
});

test("hosts, enrolment and the brake are those of the last entry before the time", () => {
  const entries = [
    entry(0, "admitted", "host h1 was added", { hosts: ["h1"] }),
    entry(1, "health", "host h1 has failed", { hosts: ["h1"] }),
    entry(2, "brake", "the brake is on: nothing starts"),
    entry(3, "enrolled", "web is enrolled", { tenants: ["web"] }),
    entry(4, "disabled", "web is disabled: …", { tenants: ["web"] }),
    entry(5, "removed", "host h1 was removed", { hosts: ["h1"] }),
    entry(6, "brake", "the brake is off"),
  ];
  const state = (minute) => stateAt(entries, millis(minute));
  assert.deepEqual([...state(0).hosts], [["h1", { health: "" }]]);
  assert.deepEqual([...state(1).hosts], [["h1", { health: "has failed" }]]);
  assert.equal(state(5).hosts.size, 0);
  assert.deepEqual([state(1).brake, state(2).brake, state(6).brake], ["unknown", "on", "off"]);
  assert.deepEqual([state(3).enrolled.get("web"), state(4).enrolled.get("web"), state(2).enrolled.get("web")], [true, false, undefined]);
});

const of = (machine, hosts) => ({ machines: [machine], hosts });

test("a machine is where it was added, until the log moves it", () => {
  const entries = [
    entry(0, "admitted", "machine web_0 was added", of("web/web_0", ["h1"])),
    entry(1, "moved", "machine web_0 now runs on h2", of("web/web_0", ["h1", "h2"])),
  ];
  const host = (minute) => placementAt(entries, millis(minute)).get("web/web_0")?.host;
  assert.deepEqual([host(0), host(1), host(2)], ["h1", "h2", "h2"]);
  assert.equal(placementAt(entries, millis(0) - 1).has("web/web_0"), false);
});

test("a move is known from what comes after it, and only then", () => {
  const entries = [
    entry(0, "admitted", "machine web_1 was added", of("web/web_1", ["h3"])),
    entry(1, "started", "Redeploy of web_1 has started", of("web/web_1", ["h3", "h4"])),
    entry(2, "completed", "Redeploy completed for web_1", of("web/web_1", ["h3", "h4"])),
  ];
  const place = (more, live, minute) => placementAt([...entries, ...more], millis(minute), live).get("web/web_1");
  assert.equal(place([], new Map(), 1).host, "h3");
  assert.deepEqual(place([], new Map(), 3), { host: "", candidates: ["h3", "h4"] });
  assert.equal(place([], new Map([["web/web_1", "h4"]]), 3).host, "h4");
  const announced = entry(4, "announced", "Freeze of web_1 is announced", of("web/web_1", ["h4"]));
  assert.equal(place([announced], new Map([["web/web_1", "h9"]]), 3).host, "h4");
});

test("a machine whose arrival is not in the log is where the next entry or the present has it", () => {
  const live = new Map([["db/db-0", "h2"], ["db/db-1", "h4"]]);
  const entries = [entry(5, "announced", "Freeze of db-0 is announced", of("db/db-0", ["h1"]))];
  const placement = placementAt(entries, millis(1), live);
  assert.deepEqual([placement.get("db/db-0").host, placement.get("db/db-1").host], ["h1", "h4"]);
});

test("a machine is gone after its deletion", () => {
  const entries = [
    entry(0, "admitted", "machine solo was added", of("solo/solo", ["h1"])),
    entry(3, "completed", "Terminate completed for solo", { ...of("solo/solo", ["h1"]), notices: [notice("Completed", { type: "Terminate" })] }),
    entry(4, "admitted", "machine web_0 was added", of("web/web_0", ["h1"])),
    entry(5, "forgotten", "machine web_0 is no longer managed", of("web/web_0", ["h1"])),
  ];
  const names = (minute) => [...placementAt(entries, millis(minute)).keys()];
  assert.deepEqual([names(2), names(3), names(4), names(5)], [["solo/solo"], [], ["web/web_0"], []]);
});

test("merged entries are each once and oldest first", () => {
  const [first, second, third] = [entry(0, "a", ""), entry(0, "b", ""), entry(1, "c", "")];
  assert.deepEqual(merged([third, first], [second, third]), [first, second, third]);
});

test("failed work without an event is known by its machine, until work on it completes", () => {
  const histories = new Histories();
  const completed = (minute, text) => histories.add(entry(minute, "completed", text, { work: minute, machines: ["web/web_0"] }));
  completed(1, "restart by the owner, for web_0, failed for web_0: no such domain");
  assert.deepEqual(histories.failedMachines.get("web/web_0"), { at: millis(1), what: "restart by the owner", reason: "no such domain", isEvent: false });
  completed(2, "restart by the owner, for web_0, failed for web_0");
  assert.equal(histories.failedMachines.get("web/web_0").reason, "");
  completed(3, "restart by the owner, for web_0, completed for web_0");
  assert.equal(histories.failedMachines.size, 0);
});
