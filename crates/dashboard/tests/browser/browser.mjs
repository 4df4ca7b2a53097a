// Servers, pages and pictures for the tests of the dashboard. Everything that a test starts ends with it.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";

const { FOREWARN_PROGRAM: PROGRAM, FOREWARN_CHROMIUM: CHROMIUM, FOREWARN_BROWSER_TOOLS: TOOLS, FOREWARN_PICTURES: PICTURES, FOREWARN_AZ: AZ } = process.env;
assert.ok(PROGRAM && CHROMIUM && TOOLS, "run these tests with `cargo xtask dashboard`");
const require = createRequire(path.join(TOOLS, "node_modules/"));
const { chromium } = require("playwright-core");
const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const run = promisify(execFile);

export const START = "2026-01-01T00:00:00Z";

/** A directory that is removed after the test. */
export function directory(test) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), "forewarn-dashboard-"));
  test.after(() => fs.rmSync(made, { recursive: true, force: true }));
  return made;
}

/** Waits until `condition` returns something, which it returns. */
export async function until(what, condition, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) assert.fail(`not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

class Server {
  constructor(child, addresses, environment) {
    Object.assign(this, { child, environment });
    [this.metadata, this.api, this.arm] = [addresses.metadata, addresses.api, addresses.arm];
  }

  /** Runs a command line against the server, and returns its output. */
  async cli(...words) {
    const { stdout } = await run(PROGRAM, ["--api", this.socket ?? this.api, ...words], { env: this.environment });
    return stdout;
  }

  async json(...words) {
    return JSON.parse(await this.cli(...words, "-o", "json"));
  }

  stop() {
    return new Promise((resolve) => {
      this.child.once("exit", resolve);
      this.child.kill("SIGTERM");
    });
  }
}

async function start(test, words, environment, addressesOf) {
  const home = directory(test);
  const file = path.join(home, "addresses");
  const env = { ...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_STATE_HOME: home, ...environment };
  for (const name of Object.keys(env)) if (name.startsWith("FOREWARN_") && !(name in environment)) delete env[name];
  const child = spawn(PROGRAM, [...words, "--addresses-file", file], { env, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  child.stderr.on("data", (text) => (log += text));
  test.after(() => child.exitCode === null && child.kill("SIGKILL"));
  const text = await until("the server is ready", () => {
    assert.equal(child.exitCode, null, log);
    return fs.existsSync(file) && fs.readFileSync(file, "utf8").trim();
  }, 60);
  return new Server(child, addressesOf(JSON.parse(text)), env);
}

/** `forewarn dev` on ports of its own, with a clock that stands still. */
export function dev(test, words = [], { port = 0 } = {}) {
  const all = [
    "dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", `127.0.0.1:${port}`, "--arm-listen", "127.0.0.1:0",
    ...(words.includes("--clock") ? [] : ["--clock", "frozen", "--clock-start", START]), ...words,
  ];
  return start(test, all, {}, (addresses) => addresses);
}

export const LARGE_FLEET_HOSTS = 500;
const LARGE_FLEET_SET = 250;

/** A fleet file with scale sets of 250 machines, `set0` and so on, spread over all hosts and five update domains. */
export function largeFleet(machines) {
  const hosts = Array.from({ length: LARGE_FLEET_HOSTS }, (_, host) => `{ name = "h${host}" }`);
  const set = (first) => {
    const instance = (_, number) => `{ host = "h${(first + number) % LARGE_FLEET_HOSTS}", update_domain = ${number % 5} }`;
    const instances = Array.from({ length: LARGE_FLEET_SET }, instance).join(", ");
    return `[[scale_set]]\nname = "set${first / LARGE_FLEET_SET}"\ninstance = [${instances}]\n`;
  };
  const sets = Array.from({ length: machines / LARGE_FLEET_SET }, (_, number) => set(number * LARGE_FLEET_SET));
  return `enrolment = "always"\nhost = [${hosts.join(", ")}]\n${sets.join("\n")}`;
}

/** `forewarn serve` with a socket, and with tokens on a loopback address: `server.token("me", "--role", "viewer")`. */
export async function serve(test, fleet, driver = "{ kind = 'simulated' }") {
  const home = directory(test);
  fs.writeFileSync(path.join(home, "fleet.toml"), fleet);
  fs.writeFileSync(path.join(home, "serve.toml"), `
data_dir = '${home}/data'
fleet = '${home}/fleet.toml'
api = { listen = '127.0.0.1:0', socket = '${home}/api.sock' }
metadata = { listen = [{ address = '127.0.0.1:0' }] }
driver = ${driver}
`);
  const server = await start(test, ["serve", "--config", path.join(home, "serve.toml")], {}, (addresses) => addresses);
  const token = (...words) => run(PROGRAM, ["--api", `unix:${home}/api.sock`, "token", "create", ...words], { env: server.environment });
  server.token = async (...words) => (await token(...words)).stdout.trim();
  server.socket = `unix:${home}/api.sock`;
  return server;
}

/** The real `az`, logged in to the server as its guide says. */
export async function az(server, ...words) {
  const { stdout: settings } = await run(PROGRAM, ["--api", server.api, "az", "env"], { env: server.environment });
  const script = `${settings}\n"$0" login --identity --output none && exec "$0" "$@"`;
  const { stdout } = await run("sh", ["-c", script, AZ, ...words, "--output", "json"], { env: server.environment });
  return stdout && JSON.parse(stdout);
}

/** A page of the dashboard. A test that fails saves a picture of it. */
export async function open(test, server, hash = "", { scheme = "light", width = 1360, height = 860, live = true, bypassCSP = false } = {}) {
  const browser = await chromium.launch({ executablePath: fs.existsSync(CHROMIUM) ? CHROMIUM : `/usr/bin/${CHROMIUM}`, args: ["--no-sandbox"] });
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height }, bypassCSP, acceptDownloads: true });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (problem) => problems.push(problem.message));
  page.on("console", (message) => message.type() === "error" && !/Failed to load resource/.test(message.text()) && problems.push(message.text()));
  page.on("request", (request) => new URL(request.url()).origin !== server.api && !request.url().startsWith("blob:") && !request.url().startsWith("data:") && problems.push(`a request to another host: ${request.url()}`));
  page.unanswered = new Set();
  page.on("request", (request) => !request.url().includes("/v1/watch") && page.unanswered.add(request));
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => page.unanswered.delete(request));
  test.after(async () => {
    await browser.close();
  });
  await page.goto(`${server.api}/${hash}`);
  if (live) await page.waitForSelector("body[data-connection=live]");
  page.problems = problems;
  return page;
}

/** Goes to another page of the dashboard, and waits until its requests are answered and it is drawn. */
export async function visit(page, hash) {
  await page.evaluate((to) => (location.hash = to), hash);
  const name = hash.match(/^#\/(\w+)/)[1];
  await page.waitForSelector(`main.page-${name}`);
  await until(`${hash} is complete`, async () => {
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    return page.unanswered.size === 0;
  });
}

/** Runs the steps of a test; if one fails, saves a picture of the page. */
export async function watched(page, name, steps) {
  try {
    await steps();
    assert.deepEqual(page.problems, [], "errors in the page");
  } catch (problem) {
    if (PICTURES) {
      fs.mkdirSync(PICTURES, { recursive: true });
      const file = path.join(PICTURES, `${name.replace(/[^a-z0-9]+/gi, "-")}.png`);
      await page.screenshot({ path: file, fullPage: true }).catch(() => {});
      problem.message += `\npicture: ${file}`;
    }
    throw problem;
  }
}

/** The serious problems that axe finds on a page, as text. */
export async function axe(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, help, nodes }) => `${id}: ${help}\n  ${nodes.slice(0, 4).map((node) => node.target.join(" ") + " " + (node.any[0]?.message ?? "")).join("\n  ")}`).join("\n");
}

/** Saves a picture for people, if the caller wants some. */
export async function picture(page, name) {
  if (process.env.FOREWARN_SAVE_PICTURES) await page.screenshot({ path: path.join(process.env.FOREWARN_SAVE_PICTURES, `${name}.png`) });
}
