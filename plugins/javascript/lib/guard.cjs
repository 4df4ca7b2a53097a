// The end of processes whose test process dies: it may crash, or end by a signal, and then no hook of it runs. Handlers
// of signals are no way out: Jest never calls those of a test, and runners have handlers of their own.

"use strict";

const { spawn } = require("node:child_process");

/** Waits for the end of its standard input, which comes with the end of the test process, however that ends. */
const SCRIPT = 'read -r _; kill -s KILL -- "$1"';

/**
 * Has a process killed with this one; a negative number is a process group. The result is a function that ends the
 * watch, to be called as soon as the process is known to have ended.
 */
function killAtEnd(pid) {
    // A session of its own: Ctrl-C in a terminal must not end it before its work.
    const options = { detached: true, stdio: ["pipe", "ignore", "ignore"] };
    const guard = spawn("/bin/sh", ["-c", SCRIPT, "forewarn-guard", String(pid)], options);
    for (const part of [guard, guard.stdin]) {
        // Without a guard, the test is as good as with one.
        part?.on("error", () => {});
        part?.unref?.();
    }
    return () => guard.kill("SIGKILL");
}

module.exports = { killAtEnd };
