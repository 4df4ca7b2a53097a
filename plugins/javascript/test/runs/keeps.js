// The second test needs what the first one has left.

import assert from "node:assert/strict";
import { test } from "node:test";

import { useForewarn } from "forewarn-test";

const forewarn = useForewarn({ scope: "file" });

test("first", async () => {
    await forewarn.poll("svc");
    await forewarn.announce("Reboot", "svc");
});

test("second", async () => {
    assert.deepEqual((await forewarn.events()).map((event) => event.kind), ["Reboot"]);
});
