// The same package in Jest, as CommonJS and without options.

const { ForewarnTimeout, useForewarn } = require("forewarn-test");

const forewarn = useForewarn();

test("a machine polls, approves and is restarted", async () => {
    await forewarn.poll("svc");
    await forewarn.approve(await forewarn.announce("Reboot", "svc"));
    await forewarn.clock.next();
    expect((await forewarn.fleet.machine("svc")).boots).toBe(2);
});

test("the test before has left nothing", async () => {
    expect((await forewarn.fleet.machine("svc")).boots).toBe(1);
});

test("a wait has an end", async () => {
    await expect(forewarn.wait({ enrolled: "svc", timeout: 1 })).rejects.toThrow(ForewarnTimeout);
});

// Only in a run that is expected to fail.
(process.env.FOREWARN_FAIL ? test : test.skip)(
    "a failed test is explained",
    forewarn.explained(async () => {
        await forewarn.poll("svc");
        await forewarn.announce("Reboot", "svc");
        expect((await forewarn.events()).map((event) => event.approved)).toEqual([true]);
    }),
);
