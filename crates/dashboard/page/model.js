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
const PAGE_PAUSE = 50; // between the pages of such a read, so that frames between them have room for the page
const HISTORY_ENTRIES = 2000;
const SOON = 5 * 60_000;
const FAILED_FOR = 24 * 3600_000;

const STATE_NAMES = {
  failed: "needs attention",
  soon: "scheduled, less than 5 minutes left",
  started: "started",
  scheduled: "scheduled",
  approved: "approved, waits for its start",
  stopped: "stopped",
  idle: "nothing planned",
  done: "ended",
  cancelled: "cancelled",
};

/** States of a machine or an event, the most urgent first: an id, which is also the class of its shape, and a name. */
export const STATES = Object.fromEntries(Object.entries(STATE_NAMES).map(([id, name], order) => [id, { id, name, order }]));

/** The name of a machine that is unique in its cluster. */
export const nameOf = (machine) => `${machine.tenant}/${machine.name}`;

const byId = (item) => item.id;
const byName = (item) => item.name;

/** The lists of the API, of each of which the model has a map (`model.hosts`, …), and the keys of their items. */
const LISTS = { events: byId, machines: nameOf, hosts: byName, tenants: byName, rollouts: byId, scaleSets: byName };

class Model {
  // loading, live, stale, login
  connection = "loading";
  staleSince = null;
  problem = "";
  // True behind `forewarn dashboard`, which has no login with a token.
  isProxied = false;
  server = null;
  caller = null;
  clusters = [];
  cluster = "";
  histories = new Histories();
  // The newest audit entries, oldest first.
  entries = [];
  clock = null;
  // The time of the oldest read entry if there are older ones.
  loadedFrom = null;

  #listeners = new Set();
  #changed = new Set();
  #frame = 0;
  #lastAnswer = 0;
  #stream = null;
  // Lists with the names of items to read again; without names, the whole list.
  #dirty = new Map();
  #batch = 0;
  #wholeReads = new Set();
  // Lists that are being read: { topic, items }, of which the items were read alone meanwhile, and are newer.
  #reading = new Set();
  #older = null;

  constructor() {
    for (const topic in LISTS) this[topic] = new Map();
  }

  /** Calls `listener(topics)` at most once per frame after changes. Returns a function that ends it. */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Milliseconds on the server's clock. It stands still while the page is stale. */
  now() {
    if (!this.clock) return Date.now();
    const at = this.connection === "stale" ? this.staleSince : performance.now();
    return this.clock.millis + Math.max(0, at - this.clock.readAt) * this.clock.speed;
  }

  get isVirtual() {
    return this.clock?.kind === "virtual";
  }

  get canOperate() {
    return this.canAdmin || (this.connection === "live" && this.caller?.role === "operator");
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
    const failed = failedMachines.size ? failedMachines.get(nameOf(machine)) : undefined;
    if (failed && this.now() - failed.at < FAILED_FOR) return true;
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
    setInterval(() => this.#beat(), PULSE_MILLIS);
    setInterval(() => this.#checkAge(), 250);
    document.addEventListener("visibilitychange", () => document.hidden || this.#beat());
    for (;;) {
      try {
        await this.#follow();
      } catch (problem) {
        this.#fail(problem);
        if (this.connection === "login") return;
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MILLIS));
    }
  }

  /** Shows another cluster. */
  choose(cluster) {
    this.cluster = cluster;
    this.#stream?.abort();
  }

  /** Reads what a change of this page has affected, before the stream tells it. */
  async refresh() {
    await Promise.all([this.#read("events"), this.#read("rollouts"), this.#readClock()]);
  }

  /** Reads everything and follows the log until it breaks off, which is an error. */
  async #follow() {
    const [server, caller, clusters] = await Promise.all([get("/v1/server"), get("/v1/caller"), all("/v1/clusters")]);
    Object.assign(this, { server, caller, clusters });
    if (!clusters.some((one) => one.name === this.cluster)) this.cluster = clusters[0]?.name ?? "";
    await this.#readClock();
    // The stream begins before the snapshot, so that nothing between them is missed.
    this.#stream = new AbortController();
    const { promise: isOpen, resolve: open } = Promise.withResolvers();
    const { signal } = this.#stream;
    const following = watch({ cluster: this.cluster }, { open, entry: (entry) => this.#entry(entry), signal });
    following.catch(() => {});
    await Promise.race([isOpen, following]);
    await Promise.all([this.#readHistory(), ...Object.keys(LISTS).map((topic) => this.#read(topic))]);
    this.#lastAnswer = performance.now();
    Object.assign(this, { connection: "live", staleSince: null, problem: "" });
    this.#notify("connection");
    this.#notify("all");
    await following;
    throw new ApiError(0, null);
  }

  #fail(problem) {
    if (problem?.status !== 401) {
      this.problem = problem instanceof ApiError ? problem.message : "";
      return this.#stale();
    }
    this.connection = "login";
    this.isProxied = problem.type === "/problems/dashboard-session";
    this.problem = this.isProxied ? problem.message : this.caller ? "The session is over." : "";
    this.#notify("connection");
  }

  #stale() {
    if (this.connection === "stale" || this.connection === "login") return;
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
    if (this.connection === "login" || this.connection === "loading") return;
    try {
      await this.#readClock();
    } catch (problem) {
      if (problem.status === 401) this.#fail(problem);
    }
  }

  async #readClock() {
    const view = await get("/v1/clock", {}, { timeMax: PULSE_TIME_MAX });
    const millis = parseTime(view.now);
    const isSameSpeed = this.clock?.speed === view.speed;
    const isOther = !isSameSpeed || (view.speed === 0 && this.clock.millis !== millis);
    // Times of the API have whole seconds: a running clock is not set back by less than one.
    const running = isSameSpeed && view.speed > 0 ? this.now() : -Infinity;
    const isClose = Math.abs(running - millis) < 1500 * Math.max(1, view.speed);
    this.#lastAnswer = performance.now();
    this.clock = { ...view, millis: isClose ? Math.max(running, millis) : millis, readAt: this.#lastAnswer };
    if (isOther) this.#notify("clock");
  }

  #entry(entry) {
    if (entry.kind === "missed") return this.#stream?.abort();
    this.#lastAnswer = performance.now();
    this.entries.push(entry);
    this.entries.splice(0, Math.max(0, this.entries.length - HISTORY_ENTRIES));
    this.histories.add(entry);
    const add = (topic, name) => {
      const names = this.#dirty.get(topic) ?? new Set();
      this.#dirty.set(topic, name ? names.add(name) : names);
    };
    for (const topic of ["machines", "hosts", "tenants"]) entry[topic]?.forEach((name) => add(topic, name));
    if (entry.work !== undefined || entry.events?.length) add("events");
    if (entry.rollout !== undefined) add("rollouts");
    if (/scale.?set|model|instance|admit|remov|upgrade/.test(`${entry.kind} ${entry.text}`)) add("scaleSets");
    if (/brake/.test(entry.text)) add("clusters");
    this.#batch ||= setTimeout(() => this.#readDirty(), BATCH_MILLIS);
    this.#notify("entries");
  }

  async #readDirty() {
    const dirty = [...this.#dirty];
    [this.#dirty, this.#batch] = [new Map(), 0];
    try {
      await Promise.all(dirty.map(([topic, names]) => (names.size ? this.#readSome(topic, names) : this.#read(topic))));
    } catch (problem) {
      this.#fail(problem);
    }
  }

  /** Reads single objects; many of them as a whole, but not more often than every few seconds. */
  async #readSome(topic, names) {
    if (topic === "hosts" && !this.seesHosts) return;
    if (names.size > SINGLE_READS_MAX) {
      if (this.#wholeReads.has(topic)) return;
      this.#wholeReads.add(topic);
      setTimeout(() => {
        this.#wholeReads.delete(topic);
        this.#read(topic, PAGE_PAUSE).catch((problem) => this.#fail(problem));
      }, this.machines.size > 1000 ? WHOLE_READ_PAUSE : BATCH_MILLIS);
      return;
    }
    await Promise.all([...names].map(async (name) => {
      const path = encodeURIComponent(name).replaceAll("%2F", "/");
      try {
        this.#put(topic, name, await get(`/v1/${topic}/${path}`, { cluster: this.cluster }));
      } catch (problem) {
        if (problem.status !== 404) throw problem;
        this.#put(topic, name, null);
      }
    }));
    this.#notify(topic);
  }

  /** Takes an item that was read alone; null if it is gone. */
  #put(topic, name, item) {
    for (const reading of this.#reading) if (reading.topic === topic) reading.items.set(name, item);
    if (item) this[topic].set(name, item);
    else this[topic].delete(name);
  }

  /** Reads a whole list. */
  async #read(topic, pause = 0) {
    if ((topic === "hosts" || topic === "rollouts") && !this.seesHosts) return;
    if (topic === "clusters") this.clusters = await all("/v1/clusters");
    else await this.#readList(topic, pause);
    this.#notify(topic);
  }

  async #readList(topic, pause) {
    const stream = this.#stream;
    const reading = { topic, items: new Map() };
    this.#reading.add(reading);
    try {
      const ended = topic === "rollouts" ? true : null;
      const items = await all(`/v1/${topic.toLowerCase()}`, { cluster: this.cluster, ended }, pause);
      // After a new beginning, perhaps with another cluster, a newer list is there or comes.
      if (stream !== this.#stream) return;
      this[topic] = new Map(items.map((item) => [LISTS[topic](item), item]));
    } finally {
      this.#reading.delete(reading);
    }
    for (const [name, item] of reading.items) this.#put(topic, name, item);
  }

  #readEntries = (before) => get("/v1/audit", { cluster: this.cluster, limit: 1000, before });

  async #readHistory() {
    const histories = new Histories();
    const entries = [];
    let before;
    do {
      const page = await this.#readEntries(before);
      entries.push(...page.items);
      before = page.next;
    } while (before && entries.length < HISTORY_ENTRIES);
    entries.reverse();
    for (const entry of entries) histories.add(entry);
    Object.assign(this, { entries, histories });
    this.#setOlder(before, entries[0]);
  }

  /** Reads a page of older entries into the histories, if there is one. */
  async readOlder() {
    if (!this.#older) return;
    const page = await this.#readEntries(this.#older);
    for (const entry of page.items) this.histories.add(entry);
    this.#setOlder(page.next, page.items.at(-1));
  }

  #setOlder(before, oldest) {
    this.#older = before;
    this.loadedFrom = before ? parseTime(oldest?.at) ?? this.loadedFrom : null;
    this.#notify("entries");
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
