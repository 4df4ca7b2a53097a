// Every page for every reader: axe finds nothing serious, in light and dark; nothing is wider than a phone.

import assert from "node:assert/strict";
import { test } from "node:test";

import { axe, dev, open, picture, serve, visit, watched } from "./browser.mjs";

const PAGES = [
  "#/overview", "#/fleet", "#/fleet?view=table", "#/fleet?vm=web/web_0", "#/fleet?host=h1", "#/timeline", "#/timeline?view=table", "#/rollouts",
  "#/rollouts?new=1", "#/scalesets", "#/scalesets/web", "#/scalesets/web?change=1", "#/scalesets?new=1", "#/audit", "#/story",
];

/** The pages of a server: those of everyone, and that of an event. */
async function pagesOf(server) {
  const events = await server.json("event", "ls");
  return [...PAGES, `#/event/${(events.items ?? events)[0].id}`];
}

/** A server on which something has happened, is happening, and will. */
async function busy(t) {
  const server = await dev(t, ["--enrolled"]);
  await server.cli("vm", "restart", "web_0");
  await server.cli("event", "approve", "--tenant", "web");
  await server.cli("clock", "advance", "3m");
  await server.cli("host", "update", "h2", "--work", "kernel 6.12.9");
  await server.cli("vm", "restart", "web_1");
  await server.cli("rollout", "start", "h5", "h7", "--kind", "reboot");
  return server;
}

for (const scheme of ["light", "dark"]) {
  test(`axe finds no serious problem on any page, ${scheme}`, async (t) => {
    const server = await busy(t);
    const page = await open(t, server, "", { scheme, bypassCSP: true });
    await watched(page, t.name, async () => {
      for (const hash of await pagesOf(server)) {
        await visit(page, hash);
        assert.equal(await axe(page), "", `${hash} in ${scheme}`);
        await picture(page, `${scheme}-${hash.slice(2).replace(/\W+/g, "-")}`);
      }
    });
  });
}

for (const scheme of ["light", "dark"]) {
  test(`axe finds no serious problem in a dialog, in the past and at the login, ${scheme}`, async (t) => {
    const server = await busy(t);
    const page = await open(t, server, "", { scheme, bypassCSP: true });
    await watched(page, t.name, async () => {
      await page.locator("#attention").getByRole("button", { name: "Approve" }).first().click();
      await page.locator("dialog[open]").waitFor();
      assert.equal(await axe(page), "", `a dialog in ${scheme}`);
      await page.keyboard.press("Escape");
      await visit(page, "#/audit");
      await page.getByRole("button", { name: "entry" }).first().click();
      await page.locator("main", { hasText: "not live" }).waitFor();
      assert.equal(await axe(page), "", `the past in ${scheme}`);
    });
    const guarded = await serve(t, "host = [{ name = 'h1' }]\n");
    const login = await open(t, guarded, "", { scheme, bypassCSP: true, live: false });
    await watched(login, t.name, async () => {
      await login.locator("#token").waitFor();
      assert.equal(await axe(login), "", `the login in ${scheme}`);
    });
  });
}

test("no page is wider than a phone", async (t) => {
  const server = await busy(t);
  const page = await open(t, server, "", { width: 390, height: 844 });
  await watched(page, t.name, async () => {
    for (const hash of await pagesOf(server)) {
      await visit(page, hash);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 390, `${hash}: ${wide} px`);
      await picture(page, `phone-${hash.slice(2).replace(/\W+/g, "-")}`);
    }
  });
});
