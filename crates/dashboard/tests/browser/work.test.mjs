// What people do in the page: a scale set with terminate notification, the clock, a story, a rollout, times gone by.

import assert from "node:assert/strict";
import { test } from "node:test";

import { az, dev, open, until, watched } from "./browser.mjs";

test("a scale set with terminate notification that the page creates is read back by az", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  const page = await open(t, server, "#/scalesets?new=1");
  await watched(page, t.name, async () => {
    await page.getByLabel("Name", { exact: true }).fill("books");
    const delay = page.getByLabel("Delay");
    const notify = page.getByLabel("Notify instances before they are deleted");
    if (!(await notify.isChecked())) await notify.check();
    assert.equal(await delay.inputValue(), "5");
    for (const wrong of ["4", "16"]) {
      await delay.fill(wrong);
      await page.locator("#review-button").click();
      assert.equal(await page.locator("#send-button").isVisible(), false, `a delay of ${wrong} minutes`);
    }
    await delay.fill("10");
    await page.locator("#review-button").click();
    await page.locator("#send-button").click();
    await page.locator("#to-set").waitFor();
    const set = await az(server, "vmss", "show", "--resource-group", "forewarn", "--name", "books");
    const profile = set.virtualMachineProfile.scheduledEventsProfile.terminateNotificationProfile;
    assert.deepEqual(profile, { enable: true, notBeforeTimeout: "PT10M" });
  });
});

test("the clock is set in the page, and the next change happens", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  await server.cli("vm", "restart", "web_0");
  const page = await open(t, server);
  await watched(page, t.name, async () => {
    await page.getByRole("button", { name: "+1m" }).click();
    await until("the clock shows one minute", async () => (await server.json("clock", "show")).now === "2026-01-01T00:01:00Z");
    await page.locator("#attention .left", { hasText: "14:00" }).waitFor();
    await page.getByRole("button", { name: /next change/ }).click();
    await page.locator("#attention", { hasText: "Nothing needs your attention" }).waitFor();
    await page.locator("#clock-speed").selectOption({ label: "60x" });
    await until("the clock runs", async () => (await server.json("clock", "show")).speed === 60);
  });
});

test("a story is played step by step and its documents change", async (t) => {
  const server = await dev(t);
  const page = await open(t, server, "#/story");
  await watched(page, t.name, async () => {
    await page.locator("#story-editor").fill("host h1\nvm solo on h1\npoll solo\nat 10s restart solo\nexpect solo Scheduled\napprove solo by solo\nexpect solo Started\n");
    await page.locator("#story-run").click();
    await page.locator("#story-slider").waitFor();
    const texts = [];
    for (let step = 0; step < 20; step += 1) {
      texts.push(await page.locator("#story-step").innerText());
      const next = page.getByRole("button", { name: /next/i }).filter({ hasNotText: "change" });
      if ((await next.getAttribute("aria-disabled")) === "true" || (await next.isDisabled())) break;
      await next.click();
    }
    const all = texts.join("\n");
    assert.match(all, /"EventStatus": ?"Scheduled"/);
    assert.match(all, /"EventStatus": ?"Started"/);
    assert.equal((await server.json("vm", "ls")).length ?? (await server.json("vm", "ls")).items.length, 14, "the fleet of the server stays");
  });
});

test("a rollout is previewed and started in the page", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  const page = await open(t, server, "#/rollouts?new=1");
  await watched(page, t.name, async () => {
    await page.getByRole("button", { name: "Preview" }).click();
    const start = page.getByRole("button", { name: "Start rollout" });
    await start.click();
    await until("the rollout is planned", async () => {
      const rollouts = await server.json("rollout", "ls");
      return (rollouts.items ?? rollouts).length === 1;
    });
  });
});

test("the history shows events as they were, and offers nothing to do there", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  await server.cli("vm", "restart", "web_0");
  await server.cli("clock", "advance", "20m");
  const page = await open(t, server, "#/audit");
  await watched(page, t.name, async () => {
    await page.getByText("Reboot of web_0 (restart by the owner) is announced").first().waitFor();
    const slider = page.locator("main input[type=range]").first();
    await slider.evaluate((input) => {
      input.value = String((Number(input.min) + Number(input.max)) / 2);
      input.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await page.getByText("not live").first().waitFor();
    const text = await page.locator("main").innerText();
    assert.match(text, /scheduled/i);
    assert.equal(await page.locator("[data-write]:visible").count(), 0);
    await page.getByRole("button", { name: "Back to live" }).click();
    await until("the page is live", async () => (await page.getByText("not live").count()) === 0);
  });
});
