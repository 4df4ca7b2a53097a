// The process of a server: `forewarn dev` on free ports of loopback, with a clock that stands still.

"use strict";

const { execFile, spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const { ForewarnError, ForewarnTimeout, splitHint } = require("./errors.cjs");
const { fleetFile } = require("./fleets.cjs");
const { killAtEnd } = require("./guard.cjs");

const START_MS = 30_000;
const POLL_MS = 10;
const END_MS = 10_000;
const COMMAND_SECONDS = 60;

/** The exit code of a command whose time is over. */
const TIMED_OUT = 3;

/** The program: `FOREWARN_BIN`, or `forewarn` in the path. */
function findProgram() {
    const chosen = process.env.FOREWARN_BIN;
    if (chosen) {
        return chosen;
    }
    const places = (process.env.PATH ?? "").split(path.delimiter).map((place) => path.join(place, "forewarn"));
    const found = places.find((file) => fs.existsSync(file));
    if (!found) {
        throw new ForewarnError("forewarn is not in PATH", { hint: "set FOREWARN_BIN to the program, or install it" });
    }
    return found;
}

/** The environment without settings of another server. */
function cleanEnvironment() {
    return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("FOREWARN_")));
}

/** A running server. `metadata` and `api` are its addresses. */
class Server {
    #child;
    #directory;

    constructor({ fleet, options = [] }) {
        this.program = findProgram();
        this.#directory = fs.mkdtempSync(path.join(os.tmpdir(), "forewarn-"));
        try {
            this.#child = this.#spawn(fleet, options);
        } catch (failure) {
            this.#remove();
            throw failure;
        }
        if (this.#child.pid !== undefined) {
            this.#child.once("exit", killAtEnd(this.#child.pid));
        }
    }

    #spawn(fleet, options) {
        const words = ["dev", "--clock", "frozen", "--arm-listen", "off"];
        words.push("--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0");
        words.push("--addresses-file", this.#file("addresses.json"));
        words.push("--fleet", fleetFile(fleet, this.#directory));
        const log = fs.openSync(this.#file("log"), "w");
        try {
            const streams = { stdio: ["ignore", log, log] };
            return spawn(this.program, [...words, ...options], { env: cleanEnvironment(), ...streams });
        } finally {
            fs.closeSync(log);
        }
    }

    /** Waits until the server listens. */
    async start() {
        let failure;
        this.#child.once("error", (problem) => (failure = problem));
        const end = Date.now() + START_MS;
        while (Date.now() < end) {
            const { exitCode, signalCode } = this.#child;
            if (failure || exitCode !== null || signalCode !== null) {
                const said = failure?.message || this.log || `forewarn dev ended with ${exitCode ?? signalCode}`;
                const { detail, hint } = splitHint(said);
                this.#remove();
                throw new ForewarnError(`the server does not start: ${detail}`, { hint });
            }
            // The file appears complete, when the server is ready.
            if (fs.existsSync(this.#file("addresses.json"))) {
                const addresses = JSON.parse(fs.readFileSync(this.#file("addresses.json"), "utf8"));
                this.metadata = addresses.metadata;
                this.api = addresses.api;
                return;
            }
            await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        }
        const { log } = this;
        await this.stop();
        throw new ForewarnTimeout(`the server is not ready after ${START_MS / 1000} s\n${log}`);
    }

    /** The output of the server so far. */
    get log() {
        return fs.readFileSync(this.#file("log"), "utf8");
    }

    /** Runs a command of the program on this server: exit code and both streams. */
    run(words, seconds = COMMAND_SECONDS) {
        const options = { env: cleanEnvironment(), timeout: seconds * 1000, maxBuffer: 64 * 1024 * 1024 };
        return new Promise((resolve, reject) => {
            execFile(this.program, ["--api", this.api, ...words], options, (failure, stdout, stderr) => {
                if (failure?.killed) {
                    reject(new ForewarnTimeout(`no end after ${seconds} s: forewarn ${words.join(" ")}`));
                } else if (failure && typeof failure.code !== "number") {
                    reject(failure);
                } else {
                    resolve({ code: failure?.code ?? 0, stdout, stderr });
                }
            });
        });
    }

    /** Runs a command; the result is its output. A failed one is a ForewarnError. */
    async command(words, seconds = COMMAND_SECONDS) {
        const { code, stdout, stderr } = await this.run(words, seconds);
        if (code === 0) {
            return stdout;
        }
        const text = stderr.trim() || stdout.trim() || `forewarn ${words.join(" ")} failed`;
        // Messages of the program begin with its name, which an error does not need.
        const { detail, hint } = splitHint(text.replace(/^forewarn: /, ""));
        throw new (code === TIMED_OUT ? ForewarnTimeout : ForewarnError)(detail, { hint, status: code });
    }

    /** Ends the server, and removes its files. */
    async stop() {
        if (this.#child.exitCode === null && this.#child.signalCode === null) {
            const ended = new Promise((resolve) => this.#child.once("exit", resolve));
            this.#child.kill("SIGTERM");
            const timer = setTimeout(() => this.#child.kill("SIGKILL"), END_MS);
            await ended;
            clearTimeout(timer);
        }
        this.#remove();
    }

    #file(name) {
        return path.join(this.#directory, name);
    }

    #remove() {
        fs.rmSync(this.#directory, { recursive: true, force: true });
    }
}

module.exports = { Server };
