// Requests of commands, and the same change as a command line and as a request, to copy.

import { h, preformatted, visible } from "./dom.js";
import { shellWord } from "./format.js";
import { model } from "./model.js";

const USUAL_ADDRESSES = ["127.0.0.1:1339", "localhost:1339"];

/** The text of a command line from its words. It names the server and the cluster if they are not the usual ones. */
export function commandText(words) {
  const isElsewhere = model.server?.mode === "dev" && !USUAL_ADDRESSES.includes(location.host);
  const all = ["forewarn", ...words];
  if (model.clusters.length > 1) all.push("--cluster", model.cluster);
  if (isElsewhere) all.push("--api", location.origin);
  return all.map(shellWord).join(" ");
}

/** The text of a `curl` command for a request { method, path, body, parameters }. */
export function curlText({ method, path, body, parameters }) {
  const query = new URLSearchParams(parameters ?? {});
  if (model.clusters.length > 1) query.set("cluster", model.cluster);
  const address = `${location.origin}${path}${query.size ? `?${query}` : ""}`;
  const words = ["curl", "-X", method];
  if (body !== undefined) words.push("-H", "Content-Type: application/json", "-d", JSON.stringify(body));
  const token = model.server?.mode === "dev" ? "" : ' -H "Authorization: Bearer $FOREWARN_TOKEN"';
  return `${words.map(shellWord).join(" ")}${token} ${shellWord(address)}`;
}

/** The request of a command. */
export const command = (name, members, values = {}) => ({
  method: "POST",
  path: "/v1/commands",
  body: { command: name, ...members },
  parameters: values.require_notice ? { require_notice: "true" } : undefined,
});

/** The field for actions that are to fail if they would notify nobody. */
export const REQUIRE_NOTICE = {
  id: "require_notice", type: "check", label: "Reject it if no VM would be notified",
  title: "If none of the affected tenants is enrolled, the server rejects the request and changes nothing",
};

export const requireNotice = (values) => (values.require_notice ? ["--require-notice"] : []);

/** A section with both texts, with a heading of the given level. `update(words, request)` changes them. */
export function commandsView(level = "h3") {
  const status = h("span", { class: "sr", role: "status" });
  const row = (name, id) => {
    const text = preformatted("", { "aria-label": name, class: "command" });
    const button = h(
      "button", { type: "button", class: "copy", "aria-label": `Copy: ${name}`, on: { click: () => copy(text, button, status) } }, "Copy",
    );
    return { text, element: h("div", { class: "command-row", "data-command": id }, h("span", { class: "quiet" }, name), text, button) };
  };
  const [line, request] = [row("Command line", "cli"), row("HTTP request", "curl")];
  return {
    element: h("section", { class: "commands" }, h(level, {}, "The same by command line"), line.element, request.element, status),
    update(words, change) {
      line.text.textContent = visible(commandText(words), 8192);
      request.text.textContent = visible(curlText(change), 8192);
    },
  };
}

async function copy(text, button, status) {
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {
    // Without a secure connection there is no clipboard: the text is selected, ready to be copied by hand.
    getSelection().selectAllChildren(text);
    status.textContent = "The text is selected.";
    return;
  }
  button.textContent = "Copied";
  status.textContent = "Copied.";
  setTimeout(() => ((button.textContent = "Copy"), (status.textContent = "")), 2000);
}
