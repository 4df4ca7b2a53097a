// Tokens: the login, what viewers and users of single tenants see, and pages of others.

import assert from "node:assert/strict";
import { test } from "node:test";

import { open, serve, until, watched } from "./browser.mjs";

const FLEET = `
enrolment = 'always'
host = [{ name = 'h1' }, { name = 'h2' }]
vm = [{ name = 'solo', host = 'h1' }, { name = 'other', host = 'h2' }]
`;

async function logIn(page, token) {
  await page.locator("#token").fill(token);
  await page.locator("#log-in").click();
  await page.waitForSelector("body[data-connection=live]");
}

test("a login keeps the token where scripts cannot read it, and ends with the token", async (t) => {
  const server = await serve(t, FLEET);
  const token = await server.token("me", "--role", "operator");
  const page = await open(t, server, "", { live: false });
  await watched(page, t.name, async () => {
    await page.locator("#token").fill("fwt_0_00");
    await page.locator("#log-in").click();
    await page.locator(".login [role=alert]", { hasText: "the token is missing or invalid" }).waitFor();
    await logIn(page, token);
    const readable = await page.evaluate(() => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, location.href]));
    assert.ok(!readable.includes("fwt_") && !readable.includes("session_"), readable);
    const [cookie] = await page.context().cookies();
    assert.ok(cookie.httpOnly && cookie.sameSite === "Strict", JSON.stringify(cookie));
    assert.ok(!cookie.value.includes(token.slice(6)), "the cookie is not the token");
    await server.cli("token", "delete", "me");
    await page.waitForSelector("body[data-connection=login]");
    assert.match(await page.locator("main").innerText(), /session is over/);
  });
});

test("a viewer sees no buttons, and a user of one tenant sees only it", async (t) => {
  const server = await serve(t, FLEET);
  const [viewer, tenant] = [await server.token("viewer", "--role", "viewer"), await server.token("tenant", "--role", "operator", "--tenant", "solo")];
  for (const name of ["solo", "other"]) await server.cli("vm", "restart", name);
  const page = await open(t, server, "", { live: false });
  await watched(page, t.name, async () => {
    await logIn(page, viewer);
    await page.locator("#attention li", { hasText: "Reboot of other" }).waitFor();
    assert.equal(await page.locator("[data-write]").count(), 0);
    const refused = await page.evaluate(async () => (await fetch("/v1/commands", {
      method: "POST", headers: { "Forewarn-Dashboard": "1", "Content-Type": "application/json" }, body: JSON.stringify({ command: "restart", machine: "solo" }),
    })).status);
    assert.equal(refused, 403);
    await page.getByRole("button", { name: "Log out" }).click();
    await logIn(page, tenant);
    await page.locator("#attention li", { hasText: "Reboot of solo" }).waitFor();
    const text = await page.locator("body").innerText();
    assert.ok(!text.includes("other") && !text.includes("Rollouts"), text);
    assert.ok((await page.locator("[data-write]").count()) > 0);
  });
});

test("a page of another origin and a rebound name get nothing", async (t) => {
  const server = await serve(t, FLEET);
  const token = await server.token("me", "--role", "operator");
  const page = await open(t, server, "", { live: false });
  await watched(page, t.name, async () => {
    await logIn(page, token);
    const [cookie] = await page.context().cookies();
    const headers = { Cookie: `${cookie.name}=${cookie.value}` };
    const get = async (more) => (await fetch(`${server.api}/v1/machines`, { headers: { ...headers, ...more } })).status;
    assert.equal(await get({ "Forewarn-Dashboard": "1" }), 200);
    assert.equal(await get({}), 401, "a cookie alone");
    assert.equal(await get({ "Forewarn-Dashboard": "1", Origin: "http://evil.example" }), 403);
    assert.equal(await get({ "Forewarn-Dashboard": "1", "Sec-Fetch-Site": "cross-site" }), 403);
    const other = await page.context().newPage();
    await other.goto("data:text/html,<form id=f method=post action=" + server.api + "/v1/commands enctype=text/plain><input name=x></form>");
    const before = (await server.json("audit", "ls")).items.length;
    const [response] = await Promise.all([other.waitForNavigation(), other.evaluate(() => document.getElementById("f").submit())]);
    assert.equal(response.status(), 403);
    await until("nothing was logged", async () => (await server.json("audit", "ls")).items.length === before);
    const name = await page.evaluate(async () => (await fetch("/v1/machines", { headers: { "Forewarn-Dashboard": "1" } })).status);
    assert.equal(name, 200);
  });
});
