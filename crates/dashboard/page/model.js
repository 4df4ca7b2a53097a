// The state of the page: a snapshot of the API, kept current by the stream of audit entries, and the server's clock.
// Pages read it and never change it. Nothing in it is older than it says: see `connection`.

import { ApiError, all, get, watch } from "./api.js";
import { parseTime } from "./format.js";
import { Histories } from "./history.js";

const PULSE_MILLIS = 1500;
const PULSE_TIME_MAX = 2500;
const STALE_AFTER = 4000;
const RECONNECT_MILLIS = 1000;
const BATCH_MILLIS = 120;
const SINGLE_READS_MAX = 24;
const WHOLE_READ_PAUSE = 3000;
const HISTORY_ENTRIES = 2000;
const SOON = 5 * 60_000;
const FAILED_FOR = 24 * 3600_000;

/** States of a machine or an event: an id, which is also the class of its shape, and a name. */
export const STATES = {
  idle: { id: "idle", name: "nothing planned", order: 5 },
  scheduled: { id: "scheduled", name: "scheduled", order: 2 },
  soon: { id: "soon", name: "scheduled, less than 5 minutes left", order: 1 },
  approved: { id: "approved", name: "approved, waits for its start", order: 3 },
  started: { id: "started", name: "started", order: 1.5 },
  failed: { id: "failed", name: "needs attention", order: 0 },
  stopped: { id: "stopped", name: "stopped", order: 4 },
  done: { id: "done", name: "ended", order: 6 },
  cancelled: { id: "cancelled", name: "cancelled", order: 6 },
};

class Model {
  connection = "loading"; // loading, live, stale, login
  staleSince = null;
  problem = "";
  isProxied = false; // true behind `forewarn dashboard`, which has no login with a token
  server = null;
  caller = null;
  clusters = [];
  cluster = "";
  hosts = new Map();
  machines = new Map();
  tenants = new Map();
  events = new Map();
  rollouts = new Map();
  scaleSets = new Map();
  histories = new Histories();
  entries = []; // the newest audit entries, oldest first
  clock = null;
  loadedFrom = null; // the time of the oldest read entry if there are older ones

  #clockRead = 0;
  #listeners = new Set();
  #changed = new Set();
  #frame = 0;
  #pulse = 0;
  #lastAnswer = 0;
  #lastId = "";
  #stream = null;
  #dirty = null;
  #batch = 0;
  #wholeReads = new Map();
  #older = null;

  /** Calls `listener(topics)` at most once per frame after changes. Returns a function that ends it. */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Milliseconds on the server's clock. It stands still while the page is stale. */
  now() {
    if (!this.clock) return Date.now();
    const at = this.connection === "stale" ? this.staleSince : performance.now();
    return this.clock.millis + Math.max(0, at - this.#clockRead) * this.clock.speed;
  }

  get isVirtual() {
    return this.clock?.kind === "virtual";
  }

  get canOperate() {
    return this.connection === "live" && ["operator", "admin"].includes(this.caller?.role);
  }

  get canAdmin() {
    return this.connection === "live" && this.caller?.role === "admin";
  }

  /** True if the caller sees hosts, rollouts and settings. */
  get seesHosts() {
    return !this.caller?.tenants;
  }

  get brake() {
    return this.clusters.find((one) => one.name === this.cluster)?.brake ?? "off";
  }

  eventsOf(machine) {
    return machine.events.map((id) => this.events.get(id)).filter(Boolean);
  }

  /** The state of an event. */
  stateOf(event) {
    if (event.status === "Started") return STATES.started;
    if (event.approved) return STATES.approved;
    const left = (parseTime(event.not_before) ?? Infinity) - this.now();
    return left < SOON ? STATES.soon : STATES.scheduled;
  }

  /** True if the last work on a machine failed within a day, or its host has failed. */
  isFailed(machine) {
    const { failedMachines } = this.histories;
    const failed = failedMachines.size ? failedMachines.get(`${machine.tenant}/${machine.name}`) : undefined;
    if (failed !== undefined && this.now() - failed < FAILED_FOR) return true;
    return machine.power !== "deallocated" && this.hosts.get(machine.host)?.health === "failed";
  }

  /** The state of a machine: that of its most urgent event, or `failed`. */
  machineState(machine) {
    if (this.isFailed(machine)) return STATES.failed;
    let state = machine.power === "running" ? STATES.idle : STATES.stopped;
    for (const id of machine.events) {
      const event = this.events.get(id);
      const one = event && this.stateOf(event);
      if (one && one.order < state.order) state = one;
    }
    return state;
  }

  /** Reads everything, then follows the log, until the page is closed. */
  async start() {
    this.#beat();
    setInterval(() => this.#beat(), PULSE_MILLIS);
    setInterval(() => this.#checkAge(), 250);
    document.addEventListener("visibilitychange", () => document.hidden || this.#beat());
    for (;;) {
      try {
        await this.#readAll();
        await this.#follow();
      } catch (problem) {
        this.#fail(problem);
        if (this.connection === "login") return;
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MILLIS));
    }
  }

  /** Shows another cluster. */
  async choose(cluster) {
    this.cluster = cluster;
    this.#lastId = "";
    this.#stream?.abort();
  }

  /** Reads what a change of this page has affected, before the stream tells it. */
  async refresh() {
    await Promise.all([this.#readEvents(), this.#readRollouts(), this.#readClock()]);
  }

  /** Reads the clock now, after it was set. */
  async readClock() {
    await this.#readClock();
  }

  async #readAll() {
    const [server, caller, clusters] = await Promise.all([get("/v1/server"), get("/v1/caller"), all("/v1/clusters")]);
    Object.assign(this, { server, caller, clusters });
    if (!clusters.some((one) => one.name === this.cluster)) this.cluster = clusters[0]?.name ?? "";
    await this.#readClock();
    // The stream begins before the snapshot, so that nothing between them is missed.
    this.#stream = new AbortController();
    let opened;
    const isOpen = new Promise((resolve) => (opened = resolve));
    this.following = watch({ cluster: this.cluster }, "", {
      open: opened,
      entry: (entry) => this.#entry(entry),
      seen: (id) => (this.#lastId = id),
      signal: this.#stream.signal,
    });
    this.following.catch(() => {});
    await Promise.race([isOpen, this.following]);
    await Promise.all([
      this.#readEvents(), this.#readMachines(), this.#readHosts(), this.#readTenants(), this.#readRollouts(),
      this.#readScaleSets(), this.#readHistory(),
    ]);
    this.#live();
    this.#notify("all");
  }

  async #follow() {
    await this.following;
    throw new ApiError(0, null);
  }

  #live() {
    this.#lastAnswer = performance.now();
    Object.assign(this, { connection: "live", staleSince: null, problem: "" });
    this.#notify("connection");
  }

  #fail(problem) {
    if (problem?.status === 401) {
      this.connection = "login";
      this.isProxied = problem.type === "/problems/dashboard-session";
      this.problem = this.isProxied ? problem.message : this.caller ? "The session is over." : "";
      this.#notify("connection");
      return;
    }
    this.problem = problem instanceof ApiError ? problem.message : "";
    this.#stale();
  }

  #stale() {
    if (this.connection === "stale" || this.connection === "login") return;
    if (this.connection === "loading" && !this.server) this.problem ||= "the server does not respond";
    this.staleSince = performance.now();
    this.connection = "stale";
    this.#notify("connection");
  }

  /** A page that is not heard from is stale, even if its connection looks open. */
  #checkAge() {
    if (this.connection !== "live" || performance.now() - this.#lastAnswer < STALE_AFTER) return;
    this.#stale();
    this.#stream?.abort();
  }

  async #beat() {
    const pulse = ++this.#pulse;
    if (this.connection === "login" || this.connection === "loading") return;
    try {
      await this.#readClock();
      if (pulse === this.#pulse && this.connection === "live") this.#lastAnswer = performance.now();
    } catch (problem) {
      if (problem.status === 401) this.#fail(problem);
    }
  }

  async #readClock() {
    const view = await get("/v1/clock", {}, { timeMax: PULSE_TIME_MAX });
    this.#clockRead = performance.now();
    this.#lastAnswer = this.#clockRead;
    const millis = parseTime(view.now);
    const isOther = !this.clock || this.clock.speed !== view.speed || (view.speed === 0 && this.clock.millis !== millis);
    // Times of the API have whole seconds: a running clock is not set back by less than one.
    const running = this.clock && view.speed > 0 && this.clock.speed === view.speed ? this.now() : null;
    const isClose = running !== null && Math.abs(running - millis) < 1500 * Math.max(1, view.speed);
    this.clock = { ...view, millis: isClose ? Math.max(running, millis) : millis };
    if (isOther) this.#notify("clock");
  }

  #entry(entry) {
    if (entry.kind === "missed") {
      this.#stream?.abort();
      return;
    }
    this.#lastAnswer = performance.now();
    this.entries.push(entry);
    if (this.entries.length > HISTORY_ENTRIES) this.entries.splice(0, this.entries.length - HISTORY_ENTRIES);
    this.histories.add(entry);
    this.#dirty ??= { machines: new Set(), hosts: new Set(), tenants: new Set(), events: false, rollouts: false, sets: false, brake: false };
    const dirty = this.#dirty;
    for (const name of entry.machines ?? []) dirty.machines.add(name);
    for (const name of entry.hosts ?? []) dirty.hosts.add(name);
    for (const name of entry.tenants ?? []) dirty.tenants.add(name);
    dirty.events ||= entry.work !== undefined || (entry.events ?? []).length > 0;
    dirty.rollouts ||= entry.rollout !== undefined;
    dirty.sets ||= /scale.?set|model|instance|admit|remov|upgrade/.test(`${entry.kind} ${entry.text}`);
    dirty.brake ||= /brake/.test(entry.text);
    this.#batch ||= setTimeout(() => this.#readDirty(), BATCH_MILLIS);
    this.#notify("entries");
  }

  async #readDirty() {
    const dirty = this.#dirty;
    [this.#dirty, this.#batch] = [null, 0];
    if (!dirty) return;
    try {
      await Promise.all([
        dirty.events && this.#readEvents(),
        dirty.rollouts && this.#readRollouts(),
        dirty.sets && this.#readScaleSets(),
        dirty.brake && this.#readClusters(),
        this.#readSome("machines", [...dirty.machines], () => this.#readMachines()),
        this.#readSome("hosts", [...dirty.hosts], () => this.#readHosts()),
        this.#readSome("tenants", [...dirty.tenants], () => this.#readTenants()),
      ]);
    } catch (problem) {
      this.#fail(problem);
    }
  }

  /** Reads single objects; many of them as a whole, but not more often than every few seconds. */
  async #readSome(topic, names, readAll) {
    if (!names.length || (topic === "hosts" && !this.seesHosts)) return;
    if (names.length > SINGLE_READS_MAX) {
      const waits = this.#wholeReads.get(topic);
      if (waits) return;
      this.#wholeReads.set(topic, setTimeout(() => {
        this.#wholeReads.delete(topic);
        readAll().catch((problem) => this.#fail(problem));
      }, this.machines.size > 1000 ? WHOLE_READ_PAUSE : BATCH_MILLIS));
      return;
    }
    await Promise.all(names.map(async (name) => {
      const path = name.split("/").map(encodeURIComponent).join("/");
      try {
        this[topic].set(name, await get(`/v1/${topic}/${path}`, { cluster: this.cluster }));
      } catch (problem) {
        if (problem.status !== 404) throw problem;
        this[topic].delete(name);
      }
    }));
    this.#notify(topic);
  }

  async #readInto(topic, path, key, parameters = {}) {
    const items = await all(path, { cluster: this.cluster, ...parameters });
    this[topic] = new Map(items.map((item) => [key(item), item]));
    this.#notify(topic);
  }

  #readEvents = () => this.#readInto("events", "/v1/events", (event) => event.id);
  #readMachines = () => this.#readInto("machines", "/v1/machines", (machine) => `${machine.tenant}/${machine.name}`);
  #readTenants = () => this.#readInto("tenants", "/v1/tenants", (tenant) => tenant.name);
  #readScaleSets = () => this.#readInto("scaleSets", "/v1/scalesets", (set) => set.name);
  #readHosts = async () => this.seesHosts && this.#readInto("hosts", "/v1/hosts", (host) => host.name);
  #readRollouts = async () => this.seesHosts && this.#readInto("rollouts", "/v1/rollouts", (rollout) => rollout.id, { ended: true });

  async #readClusters() {
    this.clusters = await all("/v1/clusters");
    this.#notify("clusters");
  }

  async #readHistory() {
    const histories = new Histories();
    const entries = [];
    let before;
    do {
      const page = await get("/v1/audit", { cluster: this.cluster, limit: 1000, before });
      entries.push(...page.items);
      before = page.next;
    } while (before && entries.length < HISTORY_ENTRIES);
    entries.reverse();
    for (const entry of entries) histories.add(entry);
    Object.assign(this, { entries, histories });
    this.#setOlder(before, entries[0]);
    this.#notify("entries");
  }

  /** Reads a page of older entries into the histories, if there is one. */
  async readOlder() {
    if (!this.#older) return;
    const page = await get("/v1/audit", { cluster: this.cluster, limit: 1000, before: this.#older });
    for (const entry of page.items) this.histories.add(entry);
    this.#setOlder(page.next, page.items.at(-1));
    this.#notify("entries");
  }

  #setOlder(before, oldest) {
    this.#older = before ?? null;
    this.loadedFrom = this.#older ? parseTime(oldest?.at) ?? this.loadedFrom : null;
  }

  #notify(topic) {
    this.#changed.add(topic);
    this.#frame ||= requestAnimationFrame(() => {
      const topics = this.#changed;
      [this.#frame, this.#changed] = [0, new Set()];
      for (const listener of [...this.#listeners]) listener(topics);
    });
  }
}

export const model = new Model();
