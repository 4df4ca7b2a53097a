// The cost of the dashboard with 10,000 machines during a rollout: work of the browser's main thread in each frame, from a
// trace of the browser; the first paint; and the processor time and memory of the server for each open dashboard.
// Prints one line of JSON. `cargo xtask bench dashboard` runs it.

import fs from "node:fs";
import path from "node:path";

import { LARGE_FLEET_HOSTS, dev, directory, largeFleet, open, until } from "./browser/browser.mjs";

const MACHINES = 10_000;
const FRAME_MICROS = 16_667;
const FULL_MICROS = 16_000;
const TRACE_MILLIS = 10_000;
const PAINTS = 5;
const DASHBOARDS = 20;
const SERVER_MILLIS = 10_000;

const ended = [];
const test = { after: (end) => ended.push(end) };

/** Processor time of a process in milliseconds, and its memory in KiB. */
function usage(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  const [user, system] = [Number(fields[11]), Number(fields[12])];
  const rss = fs.readFileSync(`/proc/${pid}/status`, "utf8").match(/VmRSS:\s+(\d+)/)[1];
  return { millis: (user + system) * 10, kibibytes: Number(rss) };
}

const sleep = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

/** The first paint in milliseconds: the median of several pages in one browser, each without a cache. */
async function firstPaint(browser, url) {
  const paints = [];
  for (let number = 0; number < PAINTS; number += 1) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(url);
    const paint = () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    paints.push(await until("the first paint", paint));
    await context.close();
  }
  return paints.sort((one, other) => one - other)[Math.floor(PAINTS / 2)];
}

/**
 * Busy time of the main thread in each frame of a trace, in milliseconds, for frames with work; the part of them that was full;
 * and the longest task.
 */
function frames(events) {
  const names = events.filter((event) => event.name === "thread_name" && event.args.name === "CrRendererMain");
  const tasks = events.filter((event) => event.name === "RunTask" && event.ph === "X" && names.some(({ pid, tid }) => event.pid === pid && event.tid === tid));
  const busy = new Map();
  for (const { ts, dur } of tasks) {
    for (let at = ts; at < ts + dur; ) {
      const frame = Math.floor(at / FRAME_MICROS);
      const end = Math.min(ts + dur, (frame + 1) * FRAME_MICROS);
      busy.set(frame, (busy.get(frame) ?? 0) + end - at);
      at = end;
    }
  }
  const sorted = [...busy.values()].sort((one, other) => one - other);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] / 1000;
  const full = sorted.filter((micros) => micros > FULL_MICROS).length / sorted.length;
  return { frames: sorted.length, full, p50: at(0.5), p95: at(0.95), p99: at(0.99), longest: Math.max(...tasks.map(({ dur }) => dur)) / 1000 };
}

async function trace(page) {
  const session = await page.context().newCDPSession(page);
  const events = [];
  session.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const isComplete = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
  await session.send("Tracing.start", { traceConfig: { includedCategories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"] }, transferMode: "ReportEvents" });
  await sleep(TRACE_MILLIS);
  await session.send("Tracing.end");
  await isComplete;
  return events;
}

try {
  const file = path.join(directory(test), "fleet.toml");
  fs.writeFileSync(file, largeFleet(MACHINES));
  const server = await dev(test, ["--fleet", file, "--clock", "60x"]);
  const page = await open(test, server, "#/fleet");
  const paint = await firstPaint(page.context().browser(), server.api);
  await until("all machines are shown", () => page.evaluate((wanted) => document.body.innerText.replaceAll(",", "").includes(wanted), String(MACHINES)));
  await server.cli("rollout", "start", "--all", "--no-work");
  await until("events are announced", async () => (await server.json("event", "ls")).length > 0 || (await server.json("event", "ls")).items?.length > 0);
  const pages = {};
  for (const name of ["fleet", "overview", "timeline"]) {
    await page.evaluate((hash) => (location.hash = hash), `#/${name}`);
    await sleep(2000);
    pages[name] = frames(await trace(page));
  }
  await page.context().browser().close();

  // The server alone, then with dashboards that only look.
  await server.cli("clock", "freeze");
  const measure = async () => {
    const before = usage(server.child.pid);
    await sleep(SERVER_MILLIS);
    const after = usage(server.child.pid);
    return { millis: ((after.millis - before.millis) * 1000) / SERVER_MILLIS, kibibytes: after.kibibytes };
  };
  const idle = await measure();
  const end = new AbortController();
  const headers = { "Forewarn-Dashboard": "1" };
  const follow = async () => {
    const response = await fetch(`${server.api}/v1/watch`, { headers, signal: end.signal });
    for await (const _ of response.body);
  };
  for (let number = 0; number < DASHBOARDS; number += 1) {
    follow().catch(() => {});
    const beat = setInterval(() => fetch(`${server.api}/v1/clock`, { headers }).then((answer) => answer.text()).catch(() => {}), 1500);
    end.signal.addEventListener("abort", () => clearInterval(beat));
  }
  await sleep(1000);
  const loaded = await measure();
  end.abort();
  const each = {
    micros_per_second: Math.round(((loaded.millis - idle.millis) * 1000) / DASHBOARDS),
    kibibytes: Math.round((loaded.kibibytes - idle.kibibytes) / DASHBOARDS),
  };
  console.log(JSON.stringify({ machines: MACHINES, hosts: LARGE_FLEET_HOSTS, first_paint: paint, pages, dashboards: DASHBOARDS, each }));
} finally {
  for (const finish of ended.reverse()) await finish();
}
