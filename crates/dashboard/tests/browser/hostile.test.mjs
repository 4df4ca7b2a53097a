// Whatever comes from outside is text: tags, texts of work, reasons of a driver, bodies of Azure clients.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

import { az, dev, directory, open, serve, until, visit, watched } from "./browser.mjs";

const SCRIPT = "<script>globalThis.isHacked=1</script><img src=x onerror=globalThis.isHacked=1>";
const REVERSED = "safe\u202egpj.exe";

const FLEET = `
enrolment = 'always'
host = [{ name = 'h1' }, { name = 'h2' }]
[[vm]]
name = 'solo'
host = 'h1'
tags = { script = '''${SCRIPT}''', reversed = "safe\\u202egpj.exe", long = "${"x".repeat(512)}" }
`;

/** Goes to a page and checks that nothing on it is an element, runs, or reverses the text. */
async function checkText(page, hash) {
  await visit(page, hash);
  assert.equal(await page.evaluate(() => globalThis.isHacked), undefined, hash);
  assert.equal(await page.locator("main script, #panel script, main img, #panel img").count(), 0, hash);
  const text = await page.evaluate(() => document.body.innerText);
  assert.ok(!text.includes("\u202e"), `${hash}: a character that reverses the text`);
}

test("hostile tags, texts of work and reasons of a driver are shown as text", async (t) => {
  const home = directory(t);
  const driver = path.join(home, "driver");
  fs.writeFileSync(driver, `#!/bin/sh\ncat >/dev/null\nprintf '%s' '{"result":"failed","message":"${SCRIPT.replaceAll('"', '\\"')} ${REVERSED} ${"y".repeat(600)}"}'\n`, { mode: 0o755 });
  const server = await serve(t, FLEET, `{ kind = 'program', program = '${driver}' }`);
  const token = await server.token("me", "--role", "operator");
  await server.cli("host", "update", "h1", "--work", `${SCRIPT.slice(0, 200)}`);
  await server.cli("vm", "restart", "solo").catch(() => {});
  const page = await open(t, server, "", { live: false });
  await watched(page, t.name, async () => {
    await page.locator("#token").fill(token);
    await page.locator("#log-in").click();
    await page.waitForSelector("body[data-connection=live]");
    await server.cli("event", "approve", "--tenant", "solo").catch(() => {});
    for (const hash of ["#/overview", "#/fleet?vm=solo/solo", "#/fleet?host=h1", "#/fleet?view=table", "#/timeline", "#/rollouts", "#/audit"]) {
      await checkText(page, hash);
    }
    await visit(page, "#/fleet?vm=solo/solo");
    await until("the tags are shown as text", async () => {
      const text = await page.locator("#panel").innerText();
      return text.includes("<script>globalThis") && text.includes("safe⟨U+202E⟩gpj.exe");
    });
  });
});

test("hostile bodies of Azure clients are shown as text", async (t) => {
  const server = await dev(t, ["--enrolled"]);
  const file = path.join(directory(t), "body.json");
  const hostile = `${SCRIPT} ${REVERSED}`;
  const long = `${hostile} ${"z".repeat(600)}`;
  const put = async (kind, body) => {
    fs.writeFileSync(file, JSON.stringify(body));
    const url = `/subscriptions/{subscriptionId}/resourceGroups/forewarn/providers/Microsoft.Compute/${kind}?api-version=2024-07-01`;
    return az(server, "rest", "--method", "put", "--url", url, "--body", `@${file}`);
  };
  const profile = {
    storageProfile: { imageReference: { publisher: hostile, offer: long, sku: hostile, version: REVERSED } },
    osProfile: { computerName: "named", adminUsername: hostile, customData: long },
    userData: long,
    diagnosticsProfile: { bootDiagnostics: { enabled: true, storageUri: hostile } },
  };
  const common = { location: "local", tags: { script: hostile, [REVERSED]: "x".repeat(256) } };
  await put("virtualMachines/lone", { ...common, properties: { ...profile, hardwareProfile: { vmSize: hostile } } });
  await put("virtualMachineScaleSets/many", {
    ...common, sku: { name: hostile, tier: hostile, capacity: 2 },
    properties: { orchestrationMode: "Uniform", upgradePolicy: { mode: "Manual" }, virtualMachineProfile: profile },
  });
  const page = await open(t, server);
  await watched(page, t.name, async () => {
    for (const hash of ["#/overview", "#/fleet?vm=lone/lone", "#/fleet?view=table", "#/timeline", "#/scalesets", "#/scalesets/many", "#/audit"]) {
      await checkText(page, hash);
    }
    await visit(page, "#/fleet?vm=lone/lone");
    await until("the tags of the body are shown as text", async () => {
      const text = await page.locator("#panel").innerText();
      return text.includes("<script>globalThis") && text.includes("safe⟨U+202E⟩gpj.exe");
    });
  });
});
