// The pace of drawing. Run: node --test crates/dashboard/tests/*.test.mjs

import assert from "node:assert/strict";
import test from "node:test";

import { paced } from "../page/pace.js";

/** Steps that note their names, and frames that the test begins. */
function setUp(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let frames = [];
  globalThis.requestAnimationFrame = (callback) => frames.push(callback);
  globalThis.cancelAnimationFrame = (number) => (frames[number - 1] = () => {});
  const drawn = [];
  const drawing = paced(250, ["a", "b"].map((name) => () => drawn.push(name)));
  const frame = () => {
    const due = frames;
    frames = [];
    for (const callback of due) callback();
    return drawn.join("");
  };
  return { drawing, frame, drawn: () => drawn.join(""), pass: (millis) => t.mock.timers.tick(millis) };
}

test("each step has a frame, and a pause follows", (t) => {
  const { drawing, frame, drawn, pass } = setUp(t);
  drawing.request();
  assert.equal(drawn(), "a");
  assert.equal(frame(), "ab");
  drawing.request();
  assert.equal(frame(), "ab");
  pass(250);
  assert.deepEqual([frame(), frame(), frame()], ["aba", "abab", "abab"]);
});

test("what is requested between steps or during the pause is drawn afterwards, once", (t) => {
  const { drawing, frame, pass } = setUp(t);
  for (let time = 0; time < 3; time += 1) drawing.request();
  frame();
  for (let time = 0; time < 3; time += 1) drawing.request();
  pass(250);
  assert.deepEqual([frame(), frame()], ["aba", "abab"]);
  pass(1000);
  assert.equal(frame(), "abab");
});

test("everything can be drawn at once, instead of what is under way", (t) => {
  const { drawing, frame, drawn } = setUp(t);
  drawing.request();
  drawing.now();
  assert.equal(drawn(), "aab");
  assert.equal(frame(), "aab");
});

test("a page that is closed draws no more", (t) => {
  const { drawing, frame, pass } = setUp(t);
  drawing.request();
  drawing.request();
  drawing.close();
  pass(1000);
  assert.equal(frame(), "a");
});
