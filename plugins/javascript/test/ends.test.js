// How servers and programs end, also where the test process or the program does not end as it should.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Program, startForewarn } from "forewarn-test";

const DIES = path.join(path.dirname(fileURLToPath(import.meta.url)), "runs", "dies.js");

const WAIT_MS = 20_000;

async function until(isTrue, what) {
    const end = Date.now() + WAIT_MS;
    while (!(await isTrue())) {
        assert.ok(Date.now() < end, `timed out: ${what}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
}

function listens(port) {
    return new Promise((resolve) => {
        const socket = net.connect(port, "127.0.0.1");
        socket.on("error", () => resolve(false));
        socket.on("connect", () => {
            socket.destroy();
            resolve(true);
        });
    });
}

describe("server and program end with the test process", () => {
    for (const end of ["SIGTERM", "SIGINT", "SIGKILL", "crash"]) {
        test(end, async (t) => {
            const place = fs.mkdtempSync(path.join(os.tmpdir(), "ends-"));
            t.after(() => fs.rmSync(place, { recursive: true }));
            const env = { ...process.env, TMPDIR: place };
            const child = spawn(process.execPath, [DIES, end], { env, stdio: ["ignore", "pipe", "ignore"] });
            const ended = once(child, "exit");
            let said = "";
            child.stdout.on("data", (chunk) => (said += chunk));
            await until(() => said.endsWith("\n") || child.exitCode !== null, "the addresses");
            const ports = JSON.parse(said);
            if (end !== "crash") {
                assert.deepEqual(await Promise.all(ports.map(listens)), [true, true]);
                child.kill(end);
            }
            assert.deepEqual(await ended, end === "crash" ? [1, null] : [null, end]);
            for (const port of ports) {
                await until(async () => !(await listens(port)), `the end of port ${port}`);
            }
        });
    }
});

test("a process that has left the group of a program does not delay its end", async () => {
    const lines = `
        const { spawn } = require("node:child_process");
        const left = spawn("sleep", ["600"], { detached: true, stdio: "inherit" });
        console.log(left.pid);
        setInterval(() => {}, 60000);
    `;
    const program = new Program([process.execPath, "-e", lines], { env: process.env });
    await until(() => program.output.endsWith("\n"), "the number of the process");
    try {
        let isOver = false;
        program.stop().then(() => (isOver = true));
        await until(() => isOver, "the end of the program");
        assert.equal(program.signal, "SIGTERM");
    } finally {
        process.kill(Number(program.output), "SIGKILL");
    }
});

test("the last words of a program are kept", async () => {
    const lines = `
        process.on("SIGTERM", () => { console.log("last words"); process.exitCode = 7; clearInterval(timer); });
        const timer = setInterval(() => {}, 60000);
        console.log("ready");
    `;
    const program = new Program([process.execPath, "-e", lines], { env: process.env });
    await until(() => program.output === "ready\n", "its first word");
    await program.stop();
    assert.equal(program.output, "ready\nlast words\n");
    assert.equal(program.exitCode, 7);
});

describe("a server that does not start leaves no directory", () => {
    const place = fs.mkdtempSync(path.join(os.tmpdir(), "ends-"));
    const { TMPDIR, FOREWARN_BIN } = process.env;

    async function fails(options, program, message) {
        process.env.TMPDIR = place;
        process.env.FOREWARN_BIN = program ?? FOREWARN_BIN ?? "forewarn";
        try {
            await assert.rejects(startForewarn(options), message);
        } finally {
            for (const [name, value] of Object.entries({ TMPDIR, FOREWARN_BIN })) {
                value === undefined ? delete process.env[name] : (process.env[name] = value);
            }
        }
        assert.deepEqual(fs.readdirSync(place), program === undefined ? [] : ["killed.sh"]);
    }

    test("because of its fleet", () => fails({ fleet: { host: 1.5 } }, undefined, /no value of this type: 1.5/));

    test("because of a signal", async () => {
        const program = path.join(place, "killed.sh");
        fs.writeFileSync(program, "#!/bin/sh\nkill -9 $$\n", { mode: 0o755 });
        await fails({}, program, /the server does not start: forewarn dev ended with SIGKILL/);
        fs.rmSync(place, { recursive: true });
    });
});
