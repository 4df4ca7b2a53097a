// A server for all tests of a file: started before the first, reset before each, stopped after the last.

"use strict";

const { Forewarn } = require("./kit.cjs");

/** Registers the hooks with Jest, or a runner with the same globals, or else with node:test. */
function useForewarn(options = {}) {
    const forewarn = new Forewarn(options);
    const hooks = findHooks();
    let isFresh = false;
    hooks.before(async () => {
        await forewarn.start();
        isFresh = true;
    });
    hooks.beforeEach(async () => {
        if (!isFresh && options.scope !== "file") {
            await forewarn.reset();
        }
        isFresh = false;
    });
    hooks.afterEach(async (test) => {
        // node:test passes its test; Jest passes nothing, so there is `explained` for it.
        if (test?.passed === false) {
            process.stderr.write(await forewarn.report());
        }
        if (options.scope !== "file") {
            await forewarn.stopPrograms();
        }
    });
    hooks.after(() => forewarn.stop());
    return forewarn;
}

function findHooks() {
    const { beforeAll, beforeEach, afterEach, afterAll } = globalThis;
    if (typeof beforeAll === "function" && typeof afterAll === "function") {
        // Jest takes a hook with a parameter for one that calls back.
        return { before: beforeAll, beforeEach, afterEach: (hook) => afterEach(() => hook()), after: afterAll };
    }
    const { before, beforeEach: nodeBeforeEach, afterEach: nodeAfterEach, after } = require("node:test");
    return { before, beforeEach: nodeBeforeEach, afterEach: nodeAfterEach, after };
}

module.exports = { useForewarn };
