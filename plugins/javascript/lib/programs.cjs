// Programs that a test starts as a machine: the service under test.

"use strict";

const { spawn } = require("node:child_process");
const { once } = require("node:events");

const { killAtEnd } = require("./guard.cjs");

/** Time to end by itself after SIGTERM. */
const GRACE_MS = 5000;

/** Time to read what an ended program has printed, while a process that has left its group keeps the streams open. */
const DRAIN_MS = 500;

/** A running program with a process group of its own, ended with the test. */
class Program {
    #child;
    #chunks = [];
    #ended;
    #release = () => {};

    constructor(command, { env, cwd }) {
        const [file, ...words] = typeof command === "string" ? ["sh", "-c", command] : command;
        this.command = typeof command === "string" ? command : command.join(" ");
        this.#child = spawn(file, words, { env, cwd, detached: true, stdio: ["ignore", "pipe", "pipe"] });
        for (const stream of [this.#child.stdout, this.#child.stderr]) {
            stream.on("data", (chunk) => this.#chunks.push(chunk));
        }
        if (this.#child.pid !== undefined) {
            this.#release = killAtEnd(-this.#child.pid);
        }
        this.#ended = new Promise((resolve) => {
            this.#child.once("error", (failure) => {
                this.#chunks.push(Buffer.from(`${failure.message}\n`));
                resolve();
            });
            this.#child.once("exit", () => resolve());
        });
    }

    /** All that the program has printed so far, on both streams. */
    get output() {
        return Buffer.concat(this.#chunks).toString();
    }

    /** The exit code; null while the program runs, and after a signal. */
    get exitCode() {
        return this.#child.exitCode;
    }

    /** The signal that has ended the program, or null. */
    get signal() {
        return this.#child.signalCode;
    }

    /** True until the program has ended. */
    get isRunning() {
        return this.#child.pid !== undefined && this.exitCode === null && this.signal === null;
    }

    /** Waits until the program ends by itself; the result is its exit code. */
    async ended() {
        await this.#ended;
        return this.exitCode;
    }

    /** Ends the program and its children: SIGTERM, and SIGKILL after five seconds. */
    async stop() {
        if (this.isRunning) {
            this.#signal("SIGTERM");
            const timer = setTimeout(() => this.#signal("SIGKILL"), GRACE_MS);
            await this.#ended;
            clearTimeout(timer);
        }
        this.#signal("SIGKILL");
        this.#release();
        if (this.#child.pid !== undefined) {
            await Promise.all([this.#child.stdout, this.#child.stderr].map(closed));
        }
    }

    #signal(name) {
        try {
            process.kill(-this.#child.pid, name);
        } catch {
            // The whole group has ended.
        }
    }
}

/** Waits until a stream has ended, and closes one that does not. */
async function closed(stream) {
    if (!stream.closed) {
        const timer = setTimeout(() => stream.destroy(), DRAIN_MS);
        await once(stream, "close");
        clearTimeout(timer);
    }
}

module.exports = { Program };
