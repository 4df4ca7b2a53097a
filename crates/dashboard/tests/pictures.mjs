// Pictures of the dashboard: those of the guide, and every page in every state for a review by eye. The first argument is
// the directory of the guide's pictures, the second that of the others. `cargo xtask dashboard --pictures` runs it.

import fs from "node:fs";
import path from "node:path";

import { dev, directory, largeFleet, open, serve, visit } from "./browser/browser.mjs";

const [GUIDE, REVIEW] = process.argv.slice(2);
const PAGES = ["overview", "fleet", "timeline", "rollouts", "scalesets", "audit", "story"];
/** Light, dark, and a phone. */
const LOOKS = {
  light: {}, dark: { scheme: "dark" }, phone: { width: 390, height: 844 },
};

const ended = [];
const test = { after: (end) => ended.push(end) };

async function save(page, directory, name) {
  fs.mkdirSync(directory, { recursive: true });
  await page.screenshot({ path: path.join(directory, `${name}.png`) });
}

/** A fleet on which something has happened, is under way, and will happen. */
async function usual() {
  const server = await dev(test, ["--enrolled", "--host-work", "manual"]);
  const steps = [
    "vm restart web_0", "clock advance 2m", "event approve --tenant web", "clock advance 3m",
    "host update h2 --work kernel-6.12.9", "vm restart web_0", "clock advance 3m",
    "event approve --tenant db", "event approve --tenant batch", "clock advance 1m", "vm evict spot-0", "vm restart web_1",
  ];
  for (const step of steps) await server.cli(...step.split(" ").map((word) => word.replace("kernel-", "kernel ")));
  return server;
}

async function guide() {
  const server = await usual();
  const page = await open(test, server, "#/overview", { width: 1200, height: 700 });
  for (const name of ["overview", "fleet", "timeline"]) {
    await visit(page, `#/${name}`);
    await save(page, GUIDE, `dashboard-${name}`);
  }
  await visit(page, "#/overview");
  await page.getByRole("button", { name: "Done" }).click();
  await page.locator("dialog[open]").waitFor();
  await save(page, GUIDE, "dashboard-approve");
  const dark = await open(test, server, "#/timeline", { ...LOOKS.dark, width: 1200, height: 700 });
  await visit(dark, "#/timeline");
  await save(dark, GUIDE, "dashboard-dark");
  const phone = await open(test, server, "#/overview", LOOKS.phone);
  await visit(phone, "#/overview");
  await save(phone, GUIDE, "dashboard-phone");
}

/** Every page of a server, in every look. */
async function all(server, state, pages = PAGES) {
  for (const [look, options] of Object.entries(LOOKS)) {
    const page = await open(test, server, "", options);
    for (const name of pages) {
      await visit(page, `#/${name}`);
      await save(page, REVIEW, `${state}-${name.replace(/\W+/g, "-")}-${look}`);
    }
    await page.context().browser().close();
  }
}

async function busy() {
  const file = path.join(directory(test), "fleet.toml");
  fs.writeFileSync(file, largeFleet(10_000));
  const server = await dev(test, ["--fleet", file]);
  await server.cli("rollout", "start", "--all", "--no-work");
  const restarts = Array.from({ length: 200 }, (_, number) => ["vm", "restart", `set${number % 40}_${number}`]);
  for (const words of restarts) await server.cli(...words);
  await server.cli("clock", "advance", "11m");
  await all(server, "busy", ["overview", "fleet", "timeline", "rollouts", "audit"]);
}

async function failed() {
  const driver = path.join(directory(test), "driver");
  fs.writeFileSync(driver, "#!/bin/sh\ncat >/dev/null\nprintf '%s' '{\"result\":\"failed\",\"message\":\"no such domain\"}'\n", { mode: 0o755 });
  const fleet = "host = [{ name = 'h1' }, { name = 'h2' }]\nvm = [{ name = 'db_1', host = 'h1' }, { name = 'db_2', host = 'h2' }]\n";
  const server = await serve(test, fleet, `{ kind = 'program', program = '${driver}' }`);
  await server.cli("vm", "restart", "db_1");
  const tokens = { failed: await server.token("ann", "--role", "operator"), viewer: await server.token("bob", "--role", "viewer") };
  for (const [state, token] of Object.entries(tokens)) {
    for (const [look, options] of Object.entries(LOOKS)) {
      const page = await open(test, server, "", { ...options, live: false });
      await page.locator("#token").waitFor();
      if (state === "failed") await save(page, REVIEW, `login-${look}`);
      await page.locator("#token").fill(token);
      await page.locator("#log-in").click();
      await page.waitForSelector("body[data-connection=live]");
      await page.locator("#attention", { hasText: "failed" }).waitFor();
      for (const hash of ["#/overview", "#/fleet?vm=db_1/db_1"]) {
        await visit(page, hash);
        await save(page, REVIEW, `${state}-${hash.slice(2).replace(/\W+/g, "-")}-${look}`);
      }
    }
  }
}

async function stale() {
  const server = await usual();
  for (const [look, options] of Object.entries(LOOKS)) {
    const page = await open(test, server, "#/overview", options);
    server.child.kill("SIGSTOP");
    await page.waitForSelector("body[data-connection=stale]");
    await save(page, REVIEW, `stale-overview-${look}`);
    server.child.kill("SIGCONT");
    await page.context().browser().close();
  }
}

try {
  await guide();
  await all(await dev(test), "empty");
  await all(await usual(), "usual", [...PAGES, "fleet?vm=web/web_0", "fleet?host=h2", "scalesets?new=1"]);
  await failed();
  await stale();
  await busy();
} finally {
  for (const finish of ended.reverse()) await finish();
}
