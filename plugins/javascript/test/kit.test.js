// The object that tests get: each method once, against a running server.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ForewarnError, ForewarnTimeout, startForewarn, useForewarn } from "forewarn-test";
import { FLEET, SERVICE, TWO_TENANTS } from "./fleet.js";

const forewarn = useForewarn({ fleet: FLEET });

test("a machine polls, approves and is restarted", async () => {
    assert.deepEqual((await forewarn.poll("svc")).Events, []);
    const event = await forewarn.announce("Reboot", "svc");
    assert.deepEqual([event.kind, event.status], ["Reboot", "Scheduled"]);
    assert.deepEqual((await forewarn.poll("svc")).Events.map((read) => read.EventId), [event.id]);
    await forewarn.approve(event);
    assert.deepEqual((await forewarn.events("svc")).map((one) => one.status), ["Started"]);
    assert.deepEqual(await forewarn.events("my-db"), []);
    await forewarn.clock.next();
    assert.deepEqual(await forewarn.events(), []);
    assert.equal((await forewarn.fleet.machine("svc")).boots, 2);
});

test("the test before has left nothing", async () => {
    assert.equal((await forewarn.fleet.machine("svc")).boots, 1);
    assert.equal((await forewarn.api.get("/v1/tenants/svc")).enrolled, false);
});

test("a notice runs out on the virtual clock", async () => {
    await forewarn.poll("svc");
    const begin = await forewarn.clock.now();
    await forewarn.announce("Redeploy", "svc");
    assert.equal((await forewarn.clock.advance("9m59s")) - begin, 599_000);
    assert.equal((await forewarn.events())[0].status, "Scheduled");
    await forewarn.clock.advance(1);
    assert.equal((await forewarn.events())[0].status, "Started");
});

test("every type can be announced", async () => {
    const cheap = { name: "cheap", host: "h3", spot: "delete" };
    await forewarn.fleet.apply({ host: [{ name: "h3" }], vm: [cheap, { name: "short", host: "h3", terminate: "5m" }] });
    const names = await forewarn.fleet.names();
    assert.deepEqual(new Set(names), new Set(["svc", "my-db", "cheap", "short"]));
    for (const vm of names) {
        await forewarn.poll(vm);
    }
    const announced = { Freeze: "my-db", Reboot: "svc", Preempt: "cheap", Terminate: "short" };
    for (const [type, vm] of Object.entries(announced)) {
        assert.equal((await forewarn.announce(type, vm)).kind, type);
    }
    await assert.rejects(forewarn.announce("Restart", "svc"), /no such event type: Restart\n {2}hint: one of Freeze/);
});

test("a machine that never polled gets no event and is left alone", async () => {
    const rejected = (error) => error instanceof ForewarnError && error.status === 409 && error.hint !== undefined;
    await assert.rejects(forewarn.announce("Reboot", "svc"), rejected);
    assert.equal((await forewarn.fleet.machine("svc")).boots, 1);
    assert.equal(await forewarn.announce("Reboot", "svc", { requireNotice: false }), null);
    assert.equal((await forewarn.fleet.machine("svc")).boots, 2);
});

test("an error has the sentence and the hint of the server", async () => {
    await assert.rejects(forewarn.announce("Reboot", "svd"), {
        message: "no such machine: svd\n  hint: did you mean svc?",
        detail: "no such machine: svd",
        status: 404,
        type: "/problems/not-found",
    });
    await assert.rejects(forewarn.command("vm", "show", "svd"), /no such machine: svd/);
    await assert.rejects(forewarn.wait({ idle: true, timeout: "10x" }), /no duration: "10x"/);
});

test("the environment names every machine", async () => {
    process.env.FOREWARN_TOKEN = process.env.FOREWARN_CA = process.env.FOREWARN_CLUSTER = "of another server";
    const env = await forewarn.env("my-db");
    for (const name of ["FOREWARN_TOKEN", "FOREWARN_CA", "FOREWARN_CLUSTER"]) {
        delete process.env[name];
        assert.ok(!(name in env), name);
    }
    assert.equal(env.FOREWARN_METADATA, forewarn.metadata("my-db"));
    assert.equal(env.FOREWARN_VM_MY_DB, forewarn.metadata("my-db"));
    assert.ok(env.FOREWARN_VM_SVC.endsWith("/vm/svc"));
    assert.equal(env.FOREWARN_API, forewarn.api.url);
    assert.equal(env.PATH, process.env.PATH);
    assert.equal(forewarn.metadata(), forewarn.metadata("svc"));
});

describe("a program", () => {
    test("is the machine, and waits see it", async () => {
        const program = await forewarn.run([process.execPath, "-e", SERVICE], { vm: "svc" });
        await forewarn.wait({ enrolled: "svc" });
        const event = await forewarn.announce("Reboot", "svc");
        await forewarn.wait({ approved: event });
        await forewarn.wait({ approved: "svc" });
        await forewarn.wait({ event: "Reboot:svc" });
        await forewarn.clock.advance("1m");
        await forewarn.wait({ idle: true });
        assert.ok(program.isRunning);
        assert.equal(program.output, "approving Reboot\n");
        await program.stop();
        assert.equal(program.signal, "SIGTERM");
    });

    test("that does not exist is over at once", async () => {
        const program = await forewarn.run(["no-program-of-this-name"], { vm: "svc" });
        await program.ended();
        assert.match(program.output, /ENOENT/);
        assert.ok(!program.isRunning);
    });
});

test("a wait has an end", async () => {
    await forewarn.poll("svc");
    await forewarn.announce("Reboot", "svc");
    const late = (error) => error instanceof ForewarnTimeout && error.message.startsWith("timed out after 1s: svc");
    await assert.rejects(forewarn.wait({ approved: "svc", timeout: 1 }), late);
});

test("a verdict tells an approved event from one that ran out", async () => {
    await forewarn.poll("svc");
    await forewarn.approve(await forewarn.announce("Reboot", "svc"));
    await forewarn.clock.next();
    assert.equal((await forewarn.verdict()).passed, true);
    await forewarn.poll("my-db");
    await forewarn.announce("Reboot", "my-db");
    await forewarn.poll("my-db");
    await forewarn.clock.advance("16m");
    assert.equal((await forewarn.verdict()).passed, false);
    assert.match(await forewarn.report(), /Forewarn verdict[^]*my-db[^]*Forewarn audit log[^]*is announced/);
});

test("polls fail as often as asked", async () => {
    await forewarn.poll("svc");
    await forewarn.fault("svc", 500, { next: 2 });
    await assert.rejects(forewarn.poll("svc"), { status: 500 });
    await assert.rejects(forewarn.poll("svc"), { status: 500 });
    assert.deepEqual((await forewarn.poll("svc")).Events, []);
});

test("an enrolled fleet gets events without a poll", async () => {
    const other = await startForewarn({ fleet: FLEET, enrolled: true });
    try {
        assert.equal((await other.announce("Reboot")).status, "Scheduled");
    } finally {
        await other.stop();
    }
});

test("machines with the same name are told apart by their tenants", async () => {
    const other = await startForewarn({ fleet: TWO_TENANTS, enrolled: true });
    try {
        assert.equal(other.defaultVm, "a/web_0");
        const env = await other.env();
        assert.equal(env.FOREWARN_METADATA, other.metadata("a/web_0"));
        assert.equal(env.FOREWARN_VM_WEB_0, other.metadata("b/web_0"), "the last one, as in forewarn test");
        const tenants = async (vm) => (await other.events(vm)).map((event) => event.tenant);
        assert.equal((await other.announce("Freeze", "b/web_0")).tenant, "b");
        assert.deepEqual(await tenants("a/web_0"), ["a"]);
        assert.deepEqual(await tenants("b/web_0"), ["b"]);
        assert.deepEqual((await tenants("web_0")).sort(), ["a", "b"]);
        assert.deepEqual(await tenants("c/web_0"), []);
    } finally {
        await other.stop();
    }
});

test("the server says why it does not start", async () => {
    await assert.rejects(startForewarn({ fleet: { vm: [{ name: "a", host: "h9" }] } }), /no such host: h9/);
});
