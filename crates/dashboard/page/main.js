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

// Paths, pages, titles, and when the navigation hides them. A page has `open(main, parameters)`, which returns
// { update(topics), tick(), close() }, each optional.
const PAGES = [
  ["overview", overview, "Overview"],
  ["fleet", fleet, "Fleet"],
  ["timeline", timeline, "Timeline"],
  ["rollouts", rollouts, "Rollouts", () => !model.seesHosts],
  ["scalesets", scaleSets, "Scale sets"],
  ["audit", audit, "History"],
  ["story", story, "Stories", () => model.server?.mode !== "dev"],
  ["event", event, "Event", () => true],
];

const [header, banner, main, footer] = ["header", "banner", "main", "footer"].map((id) => document.getElementById(id));

const TICK_MILLIS = 500;

let current = null;

/** Opens the page of the address: `#/fleet?group=host` is `fleet` with a parameter; `#/event/ID` has an id. */
function open() {
  current?.close?.();
  const [address, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = address.split("/");
  const [path, page, title] = PAGES.find((one) => one[0] === name) ?? PAGES[0];
  document.title = `${title} · Forewarn`;
  main.className = `page-${path}`;
  main.replaceChildren();
  current = { ...page.open(main, { id: decodeURIComponent(id ?? ""), parameters: new URLSearchParams(query ?? "") }), path };
  drawHeader();
  if (model.server) current.update?.(new Set(["all"]));
}

function drawHeader() {
  const icon = h("img", { src: "/dashboard/icon.svg", alt: "" });
  const brand = h("a", { class: "brand", href: "#/overview", id: "brand" }, icon, "forewarn");
  if (model.connection === "login") return replace(header, brand);
  const link = ([path, , title, isHidden]) => !isHidden?.()
    && h("a", { href: `#/${path}`, "aria-current": current?.path === path ? "page" : null, id: `nav-${path}` }, title);
  const text = { live: "live", stale: "stale", loading: "connecting…" }[model.connection];
  replace(
    header,
    brand,
    model.clusters.length > 1 && clusterChoice(),
    h("nav", { "aria-label": "Pages" }, PAGES.map(link)),
    h("span", { class: "spacer" }),
    h("span", { class: `connection ${model.connection}`, id: "connection", role: "status" },
      h("span", { class: "dot", "aria-hidden": "true" }), text),
    h("time", { id: "now" }),
    model.caller && model.server?.mode !== "dev" && userMenu(),
  );
  drawNow();
}

function clusterChoice() {
  const option = ({ name }) => h("option", { value: name, selected: name === model.cluster }, name);
  const choose = (change) => model.choose(change.target.value);
  return h("select", { id: "cluster", "aria-label": "Cluster", on: { change: choose } }, model.clusters.map(option));
}

function userMenu() {
  const { by, role } = model.caller;
  const logout = actionButton("Log out", async () => {
    await send("DELETE", "/session");
    location.reload();
  }, { class: "plain" });
  const name = by.replace(/^token /, "");
  return h("span", { class: "user" }, h("span", { title: `role: ${role}` }, `${name} (${role})`), name !== by && logout);
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
  const { connection, problem, server } = model;
  document.body.dataset.connection = connection;
  const reason = problem && ` (${problem})`;
  const since = `Stale since ${clockTime(model.now())}: the server does not respond${reason}. Nothing here is newer than that.`;
  const text = server ? since : "The server does not respond.";
  replace(banner, connection === "stale" && h("p", { class: "banner" }, `${text} Trying again…`));
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
const tick = () => {
  drawNow();
  if (!document.hidden) current?.tick?.();
};
// Between the requests of the model for the clock, so that no frame does both.
setTimeout(() => setInterval(tick, TICK_MILLIS), TICK_MILLIS / 2);
login.prepare().then(() => model.start());
