/** A duration: `"90s"`, `"15m"`, `"2h"`, or a number of seconds. */
export type Duration = string | number;

/** A fleet: the path of a fleet file, its text, or an object with the same keys. */
export type Fleet = string | Record<string, unknown>;

export type EventType = "Freeze" | "Reboot" | "Redeploy" | "Preempt" | "Terminate";

export interface Options {
    /** The fleet of the server; without it, the machine `svc`, and the spot machine `spot`. */
    fleet?: Fleet;
    /** Every machine gets notices, also before it has polled. */
    enrolled?: boolean;
    /** More options of `forewarn dev`. */
    options?: string[];
}

export interface FileOptions extends Options {
    /** `"test"` resets the server before each test (default); `"file"` does not. */
    scope?: "test" | "file";
}

/** An active event, as the operator API shows it. */
export interface ForewarnEvent {
    id: string;
    tenant: string;
    kind: EventType;
    status: "Scheduled" | "Started";
    resources: string[];
    source: string;
    description: string;
    duration_seconds: number;
    not_before: string | null;
    approved: boolean;
    by: string | null;
    cause: string;
    progress: string;
}

/** A document as a machine reads it. */
export interface ScheduledEvents {
    DocumentIncarnation: number;
    Events: {
        EventId: string;
        EventType: EventType;
        EventStatus: "Scheduled" | "Started";
        ResourceType: string;
        Resources: string[];
        NotBefore: string;
        Description: string;
        EventSource: string;
        DurationInSeconds: number;
    }[];
}

export interface Machine {
    name: string;
    tenant: string;
    host: string;
    power: string;
    boots: number;
    events: string[];
    [member: string]: unknown;
}

export interface AuditEntry {
    number: number;
    at: string;
    by: string;
    kind: string;
    text: string;
    [member: string]: unknown;
}

export interface Verdict {
    passed: boolean;
    [member: string]: unknown;
}

/** One condition, and the real time for it: 10 s by default. What has happened before the call counts. */
export interface Condition {
    /** A machine, an event, the id of one, or true for the default machine. */
    approved?: string | ForewarnEvent | true;
    /** A machine, or true for the default one. */
    enrolled?: string | true;
    /** A type, `TYPE:VM`, `:VM`, or true for any. */
    event?: string | true;
    idle?: boolean;
    timeout?: Duration;
}

/** A rejected request, or a command that failed, with the sentence and the hint of the server. */
export class ForewarnError extends Error {
    readonly detail: string;
    readonly hint?: string;
    /** The HTTP status, or the exit code of a command. */
    readonly status?: number;
    /** The kind of the problem, for programs. */
    readonly type?: string;
}

/** A condition that did not become true in time. */
export class ForewarnTimeout extends ForewarnError {}

/** The operator API. Paths begin with `/v1`. */
export interface Api {
    readonly url: string;
    get(path: string, parameters?: Record<string, unknown>): Promise<any>;
    post(path: string, body?: unknown): Promise<any>;
    /** The items of all pages of a list. */
    list(path: string, parameters?: Record<string, unknown>): Promise<any[]>;
    request(method: string, path: string, body?: unknown): Promise<any>;
}

/** The virtual clock. It stands still until a test moves it. */
export interface Clock {
    now(): Promise<Date>;
    /** Moves the clock, with everything that happens on the way. */
    advance(by: Duration): Promise<Date>;
    /** Moves the clock to the next change of a document, by at most `within`. */
    next(within?: Duration): Promise<Date>;
}

export interface FleetView {
    /** Changes the fleet to match this one. */
    apply(fleet: Fleet): Promise<any>;
    machines(): Promise<Machine[]>;
    names(): Promise<string[]>;
    /** A machine by its name, or `tenant/name`. */
    machine(vm: string): Promise<Machine>;
    hosts(): Promise<any[]>;
}

/** A program that a test has started as a machine. */
export class Program {
    readonly command: string;
    /** All that the program has printed so far, on both streams. */
    readonly output: string;
    /** null while the program runs, and after a signal. */
    readonly exitCode: number | null;
    readonly signal: string | null;
    readonly isRunning: boolean;
    /** Waits until the program ends by itself. */
    ended(): Promise<number | null>;
    /** Ends the program and its children. */
    stop(): Promise<void>;
}

/** A server for tests. Where `vm` may be left out, it is `defaultVm`. */
export class Forewarn {
    constructor(options?: Options);
    readonly api: Api;
    readonly clock: Clock;
    readonly fleet: FleetView;
    /** The machine of requests that name none: that of the server, or the first one of the fleet. */
    readonly defaultVm: string;

    start(): Promise<void>;
    /** Ends programs that the test has started, and the server. */
    stop(): Promise<void>;
    /** Ends programs that the test has started, and puts the server back to its start. */
    reset(): Promise<void>;

    /** The base URL of the metadata endpoint for a machine; `/metadata/…` is appended. */
    metadata(vm?: string): string;
    /** A complete environment with FOREWARN_METADATA, FOREWARN_API and FOREWARN_VM_NAME of each machine. */
    env(vm?: string): Promise<Record<string, string>>;
    /** Starts a program as a machine: a list of words, or a line for `sh`. It is ended with the test. */
    run(
        command: string | string[],
        options?: { vm?: string; env?: Record<string, string>; cwd?: string },
    ): Promise<Program>;

    /**
     * Announces an event for a machine. If the machine would get no notice, this fails and nothing happens; with
     * `requireNotice: false` the operation starts at once instead, and the result is null.
     */
    announce(type: EventType, vm?: string, options?: { requireNotice?: true }): Promise<ForewarnEvent>;
    announce(type: EventType, vm: string | undefined, options: { requireNotice: boolean }): Promise<ForewarnEvent | null>;
    /** The active events of all machines, or of one. */
    events(vm?: string): Promise<ForewarnEvent[]>;
    /** Polls as a machine, which enrols it. */
    poll(vm?: string): Promise<ScheduledEvents>;
    /** Approves as a machine; without `vm` as the first one that the event names. */
    approve(event: ForewarnEvent | string, vm?: string): Promise<void>;
    /** Waits for a condition; a ForewarnTimeout if it is not met. */
    wait(condition: Condition): Promise<void>;
    /** Has the next polls of a machine fail: 500, 429, `"hang"`, `"reset"`, `"slow=2s"`, … */
    fault(vm: string, answer: string | number, options?: { next?: number }): Promise<any>;

    /** The verdict on all events so far, as `forewarn verdict --output json` prints it. */
    verdict(): Promise<Verdict>;
    verdictText(): Promise<string>;
    /** The newest entries of the audit log, oldest first. */
    audit(limit?: number): Promise<AuditEntry[]>;
    /** Runs any command of the program on this server. */
    command(...words: string[]): Promise<any>;
    /** Verdict, audit log and output of programs, as text. */
    report(): Promise<string>;
    /** A test that prints the report if it fails, for runners that do not tell their hooks, such as Jest. */
    explained<Values extends unknown[]>(test: (...values: Values) => unknown): (...values: Values) => Promise<void>;
    stopPrograms(): Promise<void>;
}

/** Starts a server, and returns it when it is ready. */
export function startForewarn(options?: Options): Promise<Forewarn>;

/**
 * A server for all tests of a file: started before the first, reset before each, stopped after the last. It registers
 * the hooks of Jest, of a runner with the same globals, or of node:test, which also prints the report of a failed test.
 */
export function useForewarn(options?: FileOptions): Forewarn;
