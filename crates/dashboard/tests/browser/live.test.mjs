// The page follows the server: events appear, are approved and end without a reload; a server that is gone makes it stale.

import assert from "node:assert/strict";
import { test } from "node:test";

import { dev, directory, open, until, visit, watched } from "./browser.mjs";

const textOf = (page, selector) => page.locator(selector).innerText();

test("an event appears, is approved in the page, starts and ends, without a reload", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  const page = await open(t, server);
  await watched(page, t.name, async () => {
    await page.evaluate(() => (globalThis.isSamePage = true));
    assert.match(await textOf(page, "#attention"), /Nothing is planned/);
    await server.cli("vm", "restart", "web_0");
    const row = page.locator("#attention li", { hasText: "Reboot of web_0" });
    await row.waitFor();
    assert.match(await row.innerText(), /web has not approved/);
    assert.match(await row.locator(".left").innerText(), /^1[45]:\d\d$/);
    await row.getByRole("button", { name: "Approve" }).click();
    await page.locator("dialog").getByRole("button", { name: "Approve", exact: true }).click();
    await page.locator("#attention", { hasText: "Nothing needs your attention" }).waitFor();
    const [event] = (await server.json("event", "ls")).items ?? (await server.json("event", "ls"));
    assert.equal(event.status, "Started");
    await page.keyboard.press("Escape");
    await server.cli("clock", "advance", "2m");
    await page.locator("#ended li", { hasText: "Reboot of web_0" }).waitFor();
    assert.equal(await page.evaluate(() => globalThis.isSamePage), true);
  });
});

test("the tile of a VM and a bar of the timeline follow an event without a reload", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  const [fleet, timeline] = [await open(t, server, "#/fleet"), await open(t, server, "#/timeline")];
  await watched(fleet, t.name, async () => {
    const drawing = () => fleet.locator("main canvas").evaluate((canvas) => canvas.toDataURL());
    const counted = (state, wanted) => until(`${wanted} ${state}`, async () => (await textOf(fleet, `#fleet-state-${state} b`)) === wanted);
    await counted("scheduled", "0");
    let before = "";
    await until("the map is drawn", async () => {
      const [first, second] = [before, await drawing()];
      before = second;
      return first === second;
    });
    assert.equal(await timeline.locator("a.bar").count(), 0);
    await server.cli("vm", "restart", "web_0");
    await counted("scheduled", "1");
    await until("the tile is drawn anew", async () => (await drawing()) !== before);
    await timeline.locator("a.bar.scheduled").waitFor();
    const scheduled = await drawing();
    await server.cli("event", "approve", "--tenant", "web");
    await counted("started", "1");
    await until("the tile is another one", async () => (await drawing()) !== scheduled);
    await timeline.locator("a.bar.started").waitFor();
    await server.cli("clock", "advance", "2m");
    await counted("started", "0");
    await until("the tile is as it was", async () => (await drawing()) === before);
    await timeline.locator("a.bar.done").waitFor();
  });
});

test("a row of the overview stays, with its focus, while others come and go", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  await server.cli("vm", "restart", "web_1");
  const page = await open(t, server);
  await watched(page, t.name, async () => {
    const row = (name) => page.locator("#attention li", { hasText: `Reboot of ${name}` });
    const approve = row("web_1").getByRole("button", { name: "Approve" });
    const isFocused = () => approve.evaluate((button) => document.activeElement === button);
    await approve.focus();
    await row("web_1").evaluate((element) => (element.isFirst = true));
    await server.cli("vm", "restart", "web_0");
    await row("web_0").waitFor();
    assert.deepEqual([await row("web_1").evaluate((element) => element.isFirst), await isFocused()], [true, true]);
    // Another content makes another row: the focus goes to the same button in it.
    await server.cli("clock", "advance", "11m");
    await page.locator("#attention li.soon", { hasText: "Reboot of web_1" }).waitFor();
    assert.deepEqual([await row("web_1").evaluate((element) => element.isFirst), await isFocused()], [undefined, true]);
    await page.keyboard.press("Enter");
    await page.locator("dialog", { hasText: "Approve the Reboot of web_1" }).waitFor();
  });
});

test("bars are drawn again when they change, and when they come into view", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  await server.cli("vm", "restart", "web_0");
  const [timeline, overview] = [await open(t, server, "#/timeline"), await open(t, server, "", { height: 150 })];
  await watched(timeline, t.name, async () => {
    const bar = timeline.locator("a.bar");
    await bar.evaluate((element) => (element.isFirst = true));
    await server.cli("clock", "advance", "1m");
    await until("the time is another one", async () => /00:01:00/.test(await timeline.locator(".now-text").textContent()));
    assert.equal(await bar.evaluate((element) => element.isFirst), true);
    await server.cli("event", "approve", "--tenant", "web");
    await timeline.locator("a.bar.started").waitFor();
    assert.equal(await bar.evaluate((element) => element.isFirst), undefined);
  });
  await watched(overview, t.name, async () => {
    for (const name of ["web_1", "web_2", "db-0", "db-1", "solo"]) await server.cli("vm", "restart", name);
    await until("all are listed", async () => (await overview.locator("#attention li").count()) === 5);
    await overview.locator("#next h2").scrollIntoViewIfNeeded();
    await until("all have bars", async () => (await overview.locator("a.bar.scheduled").count()) === 5);
  });
});

test("a map of the fleet that is left draws no more", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  await server.cli("vm", "restart", "web_0");
  await server.cli("clock", "advance", "11m");
  const page = await open(t, server, "#/fleet");
  await watched(page, t.name, async () => {
    await page.evaluate(() => {
      const { drawImage } = CanvasRenderingContext2D.prototype;
      globalThis.drawn = 0;
      CanvasRenderingContext2D.prototype.drawImage = function draw(...words) {
        globalThis.drawn += 1;
        return drawImage.apply(this, words);
      };
    });
    const drawn = () => page.evaluate(() => globalThis.drawn);
    await until("an outline pulses", async () => (await drawn()) > 4);
    await visit(page, "#/overview");
    const before = await drawn();
    await page.waitForTimeout(1000);
    assert.equal(await drawn(), before);
  });
});

test("a page explains an event and shows the document of each version", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  await server.cli("vm", "restart", "web_0");
  const page = await open(t, server);
  await watched(page, t.name, async () => {
    await page.locator("#attention a", { hasText: "Reboot of web_0" }).click();
    await page.getByRole("heading", { name: /Reboot of web_0/ }).waitFor();
    const text = await textOf(page, "main");
    assert.match(text, /tenant web has not approved/);
    assert.match(text, /It starts as soon as its tenant approves/);
    assert.match(await textOf(page, "pre.document"), /"EventSource": "User"/);
    await page.locator("#version").selectOption("2017-08-01");
    await until("the document of 2017-08-01 has no EventSource", async () => !/EventSource/.test(await textOf(page, "pre.document")));
  });
});

test("a server that stops responding makes the page stale within five seconds, and is live again afterwards", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  await server.cli("vm", "restart", "web_0");
  const page = await open(t, server);
  await watched(page, t.name, async () => {
    await page.locator("#attention button").first().waitFor();
    server.child.kill("SIGSTOP");
    t.after(() => server.child.kill("SIGCONT"));
    await page.waitForSelector("body[data-connection=stale]", { timeout: 5000 });
    assert.match(await textOf(page, "#banner"), /Stale since \d\d:\d\d:\d\d UTC/);
    assert.equal(await page.locator("#attention button:not(:disabled)").count(), 0);
    server.child.kill("SIGCONT");
    await page.waitForSelector("body[data-connection=live]");
    assert.equal(await textOf(page, "#banner"), "");
    await page.locator("#attention button:not(:disabled)").first().waitFor();
  });
});

test("the page reconnects after a restart of the server and shows what happened meanwhile", async (t) => {
  const data = directory(t);
  const words = ["--enrolled", "--data-dir", data];
  const first = await dev(t, words);
  const page = await open(t, first);
  await watched(page, t.name, async () => {
    const port = new URL(first.api).port;
    await first.stop();
    await page.waitForSelector("body[data-connection=stale]");
    const second = await dev(t, words, { port });
    await second.cli("vm", "restart", "web_1");
    await page.waitForSelector("body[data-connection=live]");
    await page.locator("#attention li", { hasText: "Reboot of web_1" }).waitFor();
  });
});
