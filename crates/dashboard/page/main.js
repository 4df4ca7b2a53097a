// The shell of the page: header, navigation, connection, footer, and the page that the address names.

import { actionButton, h, replace } from "./dom.js";
import { clockTime, fullTime } from "./format.js";
import { model } from "./model.js";
import { send } from "./api.js";
import * as audit from "./audit.js";
import * as clock from "./clock.js";
import * as event from "./event.js";
import * as fleet from "./fleet.js";
import * as login from "./login.js";
import * as overview from "./overview.js";
import * as panel from "./panel.js";
import * as rollouts from "./rollouts.js";
import * as scaleSets from "./scalesets.js";
import * as story from "./story.js";
import * as timeline from "./timeline.js";

// A page has a title and `open(main, parameters)`, which returns { update(topics), tick(), close() }, each optional.
const PAGES = [
  { path: "overview", page: overview, title: "Overview" },
  { path: "fleet", page: fleet, title: "Fleet" },
  { path: "timeline", page: timeline, title: "Timeline" },
  { path: "rollouts", page: rollouts, title: "Rollouts", isShown: () => model.seesHosts },
  { path: "scalesets", page: scaleSets, title: "Scale sets" },
  { path: "audit", page: audit, title: "History" },
  { path: "story", page: story, title: "Stories", isShown: () => model.server?.mode === "dev" },
  { path: "event", page: event, title: "Event", isShown: () => false },
];

const header = document.getElementById("header");
const banner = document.getElementById("banner");
const main = document.getElementById("main");
const footer = document.getElementById("footer");

let current = null;

/** The address: `#/fleet?group=host` is the page `fleet` with a parameter; `#/event/ID` has an id. */
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = path.split("/");
  return { name: name || "overview", id: decodeURIComponent(id ?? ""), parameters: new URLSearchParams(query ?? "") };
}

function open() {
  current?.close?.();
  const { name, id, parameters } = address();
  const found = PAGES.find((one) => one.path === name) ?? PAGES[0];
  document.title = `${found.title} · Forewarn`;
  main.className = `page-${found.path}`;
  main.replaceChildren();
  current = { ...found.page.open(main, { id, parameters }), path: found.path };
  drawHeader();
  model.server && current.update?.(new Set(["all"]));
}

function drawHeader() {
  if (model.connection === "login") {
    replace(header, brand());
    return;
  }
  const link = ({ path, title, isShown }) =>
    (isShown?.() ?? true) &&
    h("a", { href: `#/${path}`, "aria-current": current?.path === path ? "page" : null, id: `nav-${path}` }, title);
  replace(
    header,
    brand(),
    clusterChoice(),
    h("nav", { "aria-label": "Pages" }, PAGES.map(link)),
    h("span", { class: "spacer" }),
    connection(),
    h("time", { id: "now", class: "number" }),
    model.caller && model.server?.mode !== "dev" ? userMenu() : null,
  );
  drawNow();
}

const brand = () => h("a", { class: "brand", href: "#/overview", id: "brand" }, h("img", { src: "/dashboard/icon.svg", alt: "" }), "forewarn");

function clusterChoice() {
  if (model.clusters.length < 2) return null;
  const option = ({ name }) => h("option", { value: name, selected: name === model.cluster }, name);
  return h("select", { id: "cluster", "aria-label": "Cluster", on: { change: (change) => model.choose(change.target.value) } }, model.clusters.map(option));
}

function connection() {
  const texts = { live: "live", stale: "stale", loading: "connecting…" };
  return h("span", { class: `connection ${model.connection}`, id: "connection", role: "status" }, h("span", { class: "dot", "aria-hidden": "true" }), texts[model.connection]);
}

function userMenu() {
  const { by, role } = model.caller;
  const logout = actionButton("Log out", async () => {
    await send("DELETE", "/session");
    location.reload();
  }, { class: "plain" });
  const isTokens = by.startsWith("token ");
  return h("span", { class: "user" }, h("span", { title: `role: ${role}` }, `${by.replace(/^token /, "")} (${role})`), isTokens && logout);
}

function drawNow() {
  const now = document.getElementById("now");
  if (!now || !model.clock) return;
  const millis = model.now();
  now.textContent = clockTime(millis);
  now.title = `${fullTime(millis)}, ${model.isVirtual ? "a virtual clock" : "the clock of the server"}`;
  now.classList.toggle("virtual", model.isVirtual);
}

function drawConnection() {
  const { connection } = model;
  document.body.classList.toggle("stale", connection === "stale");
  document.body.dataset.connection = connection;
  if (connection === "stale") {
    const since = clockTime(model.now());
    const reason = model.problem && model.server ? ` (${model.problem})` : "";
    replace(banner, h("p", { class: "banner" }, model.server
      ? `Stale since ${since}: the server does not respond${reason}. Nothing here is newer than that. Trying again…`
      : "The server does not respond. Trying again…"));
  } else {
    replace(banner);
  }
  for (const button of document.querySelectorAll("[data-write]")) button.disabled = connection !== "live";
}

function update(topics) {
  if (topics.has("connection")) drawConnection();
  if (model.connection === "login") {
    current?.close?.();
    current = null;
    footer.hidden = true;
    drawHeader();
    login.open(main, model);
    return;
  }
  if (topics.has("connection") || topics.has("clusters") || topics.has("all")) drawHeader();
  if (!current && model.server) open();
  current?.update?.(topics);
  panel.update(topics);
  clock.update(footer, topics);
}

window.addEventListener("hashchange", () => model.connection !== "login" && open());
model.subscribe(update);
setInterval(() => {
  drawNow();
  if (!document.hidden) current?.tick?.();
}, 500);
login.prepare().then(() => model.start());
