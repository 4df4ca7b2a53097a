// Runs of node:test of their own: a failed test is explained, and a file may keep the state of the server.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const FIXTURES = path.join(path.dirname(fileURLToPath(import.meta.url)), "runs");

function run(name) {
    // Without the variable, the run would take itself for a part of this one.
    const { NODE_TEST_CONTEXT, ...env } = process.env;
    const done = spawnSync(process.execPath, ["--test", "--test-reporter=tap", path.join(FIXTURES, name)], {
        env,
        encoding: "utf8",
    });
    return { status: done.status, output: done.stdout + done.stderr };
}

test("a failed test prints verdict, audit log and the output of programs", () => {
    const { status, output } = run("fails.js");
    assert.equal(status, 1, output);
    const expected = ["--- Forewarn verdict ---", "--- Forewarn audit log ---", "Reboot of svc (restart by the owner)"];
    for (const part of [...expected, "(still running) ---", "polling without a look"]) {
        assert.ok(output.includes(part), `${part} is missing:\n${output}`);
    }
    assert.match(output, /Forewarn verdict ---\n.*svc.*Reboot/);
    assert.equal(output.split("--- Forewarn verdict ---").length, 2, "only the failed test is explained");
});

test("with the scope of a file, a test finds what the one before has left", () => {
    const { status, output } = run("keeps.js");
    assert.equal(status, 0, output);
});

test("the types name everything that the package exports", async () => {
    const types = fs.readFileSync(path.join(FIXTURES, "../../index.d.ts"), "utf8");
    const exported = await import("forewarn-test");
    for (const name of Object.keys(exported)) {
        assert.match(types, new RegExp(`export (class|function) ${name}\\b`));
    }
    for (const member of Object.getOwnPropertyNames(exported.Forewarn.prototype)) {
        assert.match(types, new RegExp(`\\b${member}[(<:]`), member);
    }
});
