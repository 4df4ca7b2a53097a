// Times, numbers, hostile texts, differences and filters. Run: node --test crates/dashboard/tests/*.test.mjs

import assert from "node:assert/strict";
import test from "node:test";

import { filterParameters } from "../page/audit.js";
import { horizon } from "../page/clock.js";
import { diffLines } from "../page/diff.js";
import { visible } from "../page/dom.js";
import { count, countdown, duration, fullTime, list, parseSpan, parseTime, relative, shellWord } from "../page/format.js";
import { pastTitle } from "../page/past_view.js";
import { documentsAt, spread } from "../page/story.js";

const SECOND = 1000;

test("a countdown rounds up and grows with its length", () => {
  assert.deepEqual([0, 1, 59 * SECOND, 702 * SECOND, 7384 * SECOND, 3 * 86400 * SECOND, -5].map(countdown), ["0:00", "0:01", "0:59", "11:42", "2:03:04", "3d 0h", "0:00"]);
});

test("a duration has a unit", () => {
  assert.deepEqual([9, 240, 3 * 3600, 3 * 86400].map((seconds) => duration(seconds * SECOND)), ["9 s", "4 min", "3 h", "3 d"]);
});

test("times are UTC, and relative to the clock of the server", () => {
  const now = Date.parse("2026-11-18T12:04:31Z");
  assert.equal(fullTime(now), "2026-11-18 12:04:31 UTC");
  assert.equal(fullTime(null), "");
  assert.equal(pastTitle(now), "18 Nov 2026 12:04:31 UTC");
  assert.equal(relative(now + 60 * SECOND, now), "in 1:00");
  assert.equal(relative(now - 180 * SECOND, now), "3 min ago");
  assert.deepEqual([parseTime(undefined), parseTime("nonsense"), parseTime("2026-11-18T12:04:31Z")], [null, null, now]);
});

test("numbers have nouns and lists are cut", () => {
  assert.deepEqual([count(1, "VM"), count(1200, "VM")], ["1 VM", "1,200 VMs"]);
  assert.deepEqual([list([]), list(["a"]), list(["a", "b"]), list(["a", "b", "c", "d", "e"])], ["", "a", "a and b", "a, b, c and 2 more"]);
});

test("a word for a shell is quoted if it has to be", () => {
  assert.deepEqual([shellWord("web/web_0"), shellWord("it's"), shellWord("a b; rm -rf /")], ["web/web_0", "'it'\\''s'", "'a b; rm -rf /'"]);
});

test("characters that hide or reorder text are made visible", () => {
  assert.equal(visible("web\u202e0_tset"), "web⟨U+202E⟩0_tset");
  assert.equal(visible("a\u0000b\nc\u200bd\ufeff"), "a⟨U+0000⟩b⟨U+000A⟩c⟨U+200B⟩d⟨U+FEFF⟩");
  assert.equal(visible("Grüße, 世界 <b>&amp;</b>"), "Grüße, 世界 <b>&amp;</b>");
  assert.deepEqual([visible(null), visible(undefined), visible(0)], ["", "", "0"]);
});

test("a long text is cut, and says so", () => {
  assert.equal(visible("x".repeat(600)), `${"x".repeat(512)}… (88 more characters)`);
  assert.equal(visible("abcdef", 4), "abcd… (2 more characters)");
});

const shown = (lines) => lines.map(({ kind, text }) => `${{ same: " ", added: "+", removed: "-" }[kind]}${text}`).join("\n");

test("a difference keeps as many lines as possible", () => {
  assert.equal(shown(diffLines("a\nb\nc\nd", "a\nc\nx\nd")), " a\n-b\n c\n+x\n d");
  assert.equal(shown(diffLines("", "a\nb")), "+a\n+b");
  assert.equal(shown(diffLines("a\nb", "")), "-a\n-b");
  assert.equal(shown(diffLines("a\na\na", "a\na")), " a\n a\n-a");
  assert.deepEqual(diffLines("", ""), []);
  assert.ok(diffLines("a\nb", "a\nb").every(({ kind }) => kind === "same"));
});

test("a difference gives both texts back, whatever they are", () => {
  let seed = 7;
  const random = (max) => (seed = (seed * 48271) % 2147483647) % max;
  const text = () => Array.from({ length: random(12) }, () => "abcd"[random(4)]).join("\n");
  for (let round = 0; round < 500; round += 1) {
    const [before, after] = [text(), text()];
    const lines = diffLines(before, after);
    const without = (kind) => lines.filter((line) => line.kind !== kind).map((line) => line.text).join("\n");
    assert.deepEqual([without("added"), without("removed")], [before, after]);
  }
});

test("a difference of long texts takes no time", () => {
  const long = (word) => Array.from({ length: 20_000 }, (_, index) => `${word} ${index}`).join("\n");
  const lines = diffLines(`same\n${long("a")}`, `same\n${long("b")}`);
  assert.deepEqual([lines.length, lines[0]], [40_001, { kind: "same", text: "same" }]);
});

test("the documents after a step are the last ones of each tenant", () => {
  const step = (...documents) => ({ documents });
  const steps = [step(), step({ tenant: "a", document: "1" }, { tenant: "b", document: "1" }), step({ tenant: "a", document: "2" }), step({ tenant: "b" }), step()];
  assert.deepEqual(documentsAt(steps, 0), []);
  assert.deepEqual(documentsAt(steps, 1).map(({ before, after }) => [before, after]), [[null, "1"], [null, "1"]]);
  assert.deepEqual(documentsAt(steps, 2), [{ tenant: "a", before: "1", after: "2", isChanged: true }, { tenant: "b", before: "1", after: "1", isChanged: false }]);
  assert.deepEqual(documentsAt(steps, 3)[1], { tenant: "b", before: "1", after: null, isChanged: true });
  assert.deepEqual(documentsAt(steps, 4).map(({ tenant }) => tenant), ["a"]);
  assert.deepEqual([spread('{"a":1}'), spread("no JSON")], ['{\n  "a": 1\n}', "no JSON"]);
});

test("a length of time of the API has one or more units", () => {
  assert.deepEqual(["9m50s", "1d2h", "0s", "500ms", "", null, "soon", "5"].map(parseSpan), [590_000, 93_600_000, 0, 500, null, null, null, null]);
  assert.deepEqual([horizon(null), horizon(3600_000), horizon(SECOND)], [86_400_000, 7_200_000, 600_000]);
});

test("a filter sends times of the API, and keeps the text for the page", () => {
  const filter = { text: "reboot", tenant: " web ", since: "2026-11-18T12:04", until: "2026-11-18T12:04:31" };
  assert.deepEqual(filterParameters(filter), { tenant: "web", since: "2026-11-18T12:04:00Z", until: "2026-11-18T12:04:31Z" });
});
