// The second test fails on purpose: its service polls, but never approves.

import { test } from "node:test";

import { useForewarn } from "forewarn-test";

const SERVICE = `
const url = process.env.FOREWARN_METADATA + "/metadata/scheduledevents?api-version=2020-07-01";
console.log("polling without a look");
setInterval(() => fetch(url, { headers: { Metadata: "true" } }), 20);
`;

const forewarn = useForewarn();

test("passes", () => forewarn.poll("svc"));

test("fails", async () => {
    await forewarn.run([process.execPath, "-e", SERVICE], { vm: "svc" });
    await forewarn.wait({ enrolled: "svc" });
    await forewarn.announce("Reboot", "svc");
    await forewarn.wait({ approved: "svc", timeout: 1 });
});
