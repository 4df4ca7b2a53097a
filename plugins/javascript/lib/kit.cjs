// The object that tests use: one running server, and the requests that a test makes of it.

"use strict";

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const { Api, segment, send } = require("./api.cjs");
const { toSeconds, toText } = require("./durations.cjs");
const { ForewarnError } = require("./errors.cjs");
const { DEFAULT_FLEET, fleetFile } = require("./fleets.cjs");
const { Program } = require("./programs.cjs");
const { Server } = require("./server.cjs");

const EDITION = "2020-07-01";

/** The command that makes an event of this type; work on a host makes the others. */
const OF_MACHINE = { Reboot: "restart", Redeploy: "redeploy", Terminate: "delete", Preempt: "evict" };
const TYPES = ["Freeze", ...Object.keys(OF_MACHINE)];

const AUDIT_ENTRIES = 30;

/** Variables of the user that would lead a `forewarn` inside of a program to another server. */
const CLEARED = ["FOREWARN_TOKEN", "FOREWARN_CA", "FOREWARN_CLUSTER"];

/** Machines with an environment variable. */
const VARIABLES_MAX = 1000;

/** Characters of a command in the title of its output. */
const TITLE_MAX = 60;

/** Time beyond the timeout of a wait, for the program itself. */
const MARGIN_SECONDS = 30;

/** The virtual clock of the server. It stands still until a test moves it. */
class Clock {
    #kit;

    constructor(kit) {
        this.#kit = kit;
    }

    async now() {
        return new Date((await this.#kit.api.get("/v1/clock")).now);
    }

    advance(by) {
        return this.#move({ clock: "advance", by: toText(by) });
    }

    next(within) {
        return this.#move({ clock: "next", ...(within === undefined ? {} : { within: toText(within) }) });
    }

    async #move(request) {
        return new Date((await this.#kit.api.post("/v1/clock", request)).now);
    }
}

/** The hosts, tenants and machines of the server. */
class FleetView {
    #kit;

    constructor(kit) {
        this.#kit = kit;
    }

    async apply(fleet) {
        const directory = fs.mkdtempSync(path.join(os.tmpdir(), "forewarn-"));
        try {
            return await this.#kit.command("fleet", "apply", fleetFile(fleet, directory));
        } finally {
            fs.rmSync(directory, { recursive: true, force: true });
        }
    }

    machines() {
        return this.#kit.api.list("/v1/machines");
    }

    async names() {
        return (await this.machines()).map((machine) => machine.name);
    }

    machine(vm) {
        return this.#kit.api.get(`/v1/machines/${segment(vm)}`);
    }

    hosts() {
        return this.#kit.api.list("/v1/hosts");
    }
}

/** A server for tests; `index.d.ts` describes each member. */
class Forewarn {
    #server;
    #options;
    #programs = [];
    #defaultVm;

    constructor({ fleet = DEFAULT_FLEET, enrolled = false, options = [] } = {}) {
        this.#options = { fleet, options: [...(enrolled ? ["--enrolled"] : []), ...options] };
        this.clock = new Clock(this);
        this.fleet = new FleetView(this);
    }

    async start() {
        const server = new Server(this.#options);
        await server.start();
        this.#server = server;
        this.api = new Api(server.api);
        const named = (await this.api.get("/v1/server")).default_machine;
        this.#defaultVm = named ?? references(await this.fleet.machines())[0]?.vm;
    }

    async stop() {
        await this.stopPrograms();
        await this.#server?.stop();
        this.#server = undefined;
    }

    async reset() {
        await this.stopPrograms();
        await this.api.post("/v1/reset");
    }

    get defaultVm() {
        return this.#defaultVm;
    }

    metadata(vm = this.#defaultVm) {
        return `${this.#started.metadata}/vm/${segment(vm)}`;
    }

    async env(vm = this.#defaultVm) {
        const env = { ...process.env, FOREWARN_METADATA: this.metadata(vm), FOREWARN_API: this.api.url };
        for (const name of CLEARED) {
            delete env[name];
        }
        for (const { name, vm: named } of references(await this.fleet.machines()).slice(0, VARIABLES_MAX)) {
            env[`FOREWARN_VM_${name.toUpperCase().replace(/[^A-Z0-9]/g, "_")}`] = this.metadata(named);
        }
        return env;
    }

    async run(command, { vm, env = {}, cwd } = {}) {
        const program = new Program(command, { env: { ...(await this.env(vm)), ...env }, cwd });
        this.#programs.push(program);
        return program;
    }

    async announce(type, vm = this.#defaultVm, { requireNotice = true } = {}) {
        if (!TYPES.includes(type)) {
            throw new ForewarnError(`no such event type: ${type}`, { hint: `one of ${TYPES.join(", ")}` });
        }
        const command =
            type in OF_MACHINE
                ? { command: OF_MACHINE[type], machine: vm }
                : { command: "update_hosts", hosts: [(await this.fleet.machine(vm)).host] };
        const isConcerned = await this.#concerns(vm);
        const query = requireNotice ? "?require_notice=true" : "";
        const outcome = await this.api.post(`/v1/commands${query}`, command);
        return outcome.events.find(isConcerned) ?? null;
    }

    async events(vm) {
        const found = await this.api.list("/v1/events");
        return vm === undefined ? found : found.filter(await this.#concerns(vm));
    }

    poll(vm) {
        return send(this.#scheduledEvents(vm), { headers: { Metadata: "true" } });
    }

    async approve(event, vm) {
        const named = typeof event === "string" ? vm : (vm ?? `${event.tenant}/${event.resources[0]}`);
        const body = { StartRequests: [{ EventId: typeof event === "string" ? event : event.id }] };
        await send(this.#scheduledEvents(named), { method: "POST", headers: { Metadata: "true" }, body });
    }

    async wait({ approved, enrolled, event, idle, timeout = 10 }) {
        const words = ["wait"];
        if (approved) {
            words.push("--approved", approved === true ? this.#defaultVm : (approved.id ?? approved));
        }
        if (enrolled) {
            words.push("--enrolled", enrolled === true ? this.#defaultVm : enrolled);
        }
        if (event) {
            words.push("--event", event === true ? "" : event);
        }
        if (idle) {
            words.push("--idle");
        }
        const seconds = toSeconds(timeout) + MARGIN_SECONDS;
        await this.#started.command([...words, "--timeout", toText(timeout)], seconds);
    }

    fault(vm, answer, { next = 1 } = {}) {
        return this.command("fault", "create", vm, "--next", String(next), "--answer", String(answer));
    }

    async verdict() {
        const { stdout, stderr } = await this.#started.run(["--output", "json", "verdict"]);
        try {
            return JSON.parse(stdout);
        } catch {
            throw new ForewarnError(stderr.trim() || "forewarn verdict printed nothing");
        }
    }

    async verdictText() {
        const { stdout, stderr } = await this.#started.run(["verdict"]);
        return stdout.trim() || stderr.trim();
    }

    async audit(limit = AUDIT_ENTRIES) {
        const newest = (await this.api.get("/v1/audit", { limit: 1000 })).items;
        return newest.filter((entry) => !isOfSetUp(entry)).slice(0, limit).reverse();
    }

    async command(...words) {
        const said = await this.#started.command(["--output", "json", ...words]);
        try {
            return said.trim() === "" ? null : JSON.parse(said);
        } catch {
            return said;
        }
    }

    /** Verdict, audit log and programs as text. A dead server must not hide the failure of a test. */
    async report() {
        const sections = [];
        try {
            sections.push(["Forewarn verdict", await this.verdictText()]);
            const entries = (await this.audit()).map((entry) => `${entry.at}  ${entry.by}: ${entry.text}`);
            sections.push(["Forewarn audit log", entries.join("\n")]);
        } catch (failure) {
            sections.push(["Forewarn", failure.message]);
        }
        for (const program of this.#programs) {
            const state = program.isRunning ? "still running" : `ended: ${program.signal ?? program.exitCode}`;
            sections.push([`output of ${oneLine(program.command)} (${state})`, program.output.trimEnd() || "nothing"]);
        }
        return sections.map(([title, text]) => `--- ${title} ---\n${text}\n`).join("");
    }

    /** A test that prints the report if it fails, for runners that do not tell their hooks. */
    explained(test) {
        return async (...values) => {
            try {
                return await test(...values);
            } catch (failure) {
                process.stderr.write(await this.report());
                throw failure;
            }
        };
    }

    async stopPrograms() {
        await Promise.all(this.#programs.splice(0).map((program) => program.stop()));
    }

    get #started() {
        if (this.#server === undefined) {
            throw new ForewarnError("the server is not running", { hint: "await start() first" });
        }
        return this.#server;
    }

    /** A test of events: whether one concerns this machine. */
    async #concerns(vm) {
        const place = vm.indexOf("/");
        if (place < 0) {
            return (event) => event.resources.includes(vm);
        }
        let tenant = vm.slice(0, place);
        try {
            // It may also be the scale set of several tenants.
            ({ tenant } = await this.fleet.machine(vm));
        } catch (failure) {
            // The machine may be deleted by now.
            if (failure.status !== 404) {
                throw failure;
            }
        }
        return (event) => event.tenant === tenant && event.resources.includes(vm.slice(place + 1));
    }

    #scheduledEvents(vm) {
        return `${this.metadata(vm)}/metadata/scheduledevents?api-version=${EDITION}`;
    }
}

/** True for the fleet file that the server has read at its start, and for each object in it. */
function isOfSetUp(entry) {
    return entry.kind === "admitted" || (entry.kind === "command" && entry.by === "forewarn");
}

function oneLine(command) {
    const [program, ...rest] = command.split(/\s+/);
    const words = [path.basename(program), ...rest].join(" ");
    return words.length <= TITLE_MAX ? words : `${words.slice(0, TITLE_MAX)}…`;
}

/** Machines as requests name them: `tenant/name` for one whose name is not unique. */
function references(machines) {
    const count = new Map();
    for (const { name } of machines) {
        count.set(name, (count.get(name) ?? 0) + 1);
    }
    return machines.map(({ name, tenant }) => ({ name, vm: count.get(name) === 1 ? name : `${tenant}/${name}` }));
}

module.exports = { Forewarn };
