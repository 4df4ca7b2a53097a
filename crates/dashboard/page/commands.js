// Requests of commands, and the same change as a command line and as a request, to copy.

import { button, h, preformatted, quietSpan, visible } from "./dom.js";
import { isEmpty } from "./form.js";
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
function curlText({ method, path, body, parameters }) {
  const query = new URLSearchParams(parameters ?? {});
  if (model.clusters.length > 1) query.set("cluster", model.cluster);
  const address = `${location.origin}${path}${query.size ? `?${query}` : ""}`;
  const words = ["curl", "-X", method];
  if (body !== undefined) words.push("-H", "Content-Type: application/json", "-d", JSON.stringify(body));
  const token = model.server?.mode === "dev" ? "" : ' -H "Authorization: Bearer $FOREWARN_TOKEN"';
  return `${words.map(shellWord).join(" ")}${token} ${shellWord(address)}`;
}

/** The request of a command. */
export const command = (name, members, values) => ({
  method: "POST", path: "/v1/commands", body: { command: name, ...members }, parameters: noticeParameters(values),
});

/** The field for actions that are to fail if they would notify nobody. */
export const REQUIRE_NOTICE = {
  id: "require_notice", type: "check", label: "Reject it if no VM would be notified",
  title: "If none of the affected tenants is enrolled, the server rejects the request and changes nothing",
};

export const noticeParameters = (values) => (values?.require_notice ? { require_notice: "true" } : undefined);

/** The members that have a value. */
export const given = (members) => Object.fromEntries(Object.entries(members).filter(([, value]) => !isEmpty(value)));

/** Members of a request as options of the command line: `{ no_work: true, except: ["h1"] }` is `--no-work --except h1`. */
export function optionWords(members) {
  const words = (name, value) => [value].flat().flatMap((one) => (one === true ? [name] : [name, String(one)]));
  return Object.entries(given(members)).flatMap(([name, value]) => words(`--${name.replaceAll("_", "-")}`, value));
}

/**
 * Actions of a kind that are commands, by their names. `describe(object)` returns the `name` of an object in sentences, its `fullName` in titles,
 * its `word` on the command line and its `members` in a request. An action has: `label`, `title` and `past` (texts with `{}` for the name, or
 * functions of the object), `applies(object)`, `effects(object, values)`, `cli` (its words), and optionally `button`, `isDangerous`, `isAdmin`, `fields`
 * (a list, or a function of the object), `members(values, object)` (further members, which are also options; the values of its fields if nothing
 * else is said), and what differs from other commands: `command`, `words`, `request`.
 */
export function commandActions(kind, describe, actions) {
  const complete = ([name, action]) => {
    const { label, cli, fields = [], members = (values) => values } = action;
    const text = (one, nameOf) => (object) => one.replace?.("{}", () => nameOf(describe(object))) ?? one(object);
    const own = (object, { require_notice, ...values }) => given(members(values, object));
    return [name, {
      kind, button: label,
      words: (object, values) => {
        const { require_notice } = values;
        return [...cli.split(" "), describe(object).word, ...optionWords({ ...own(object, values), require_notice })].filter(Boolean);
      },
      request: (object, values) => command(action.command ?? name, { ...describe(object).members, ...own(object, values) }, values),
      ...action,
      title: text(action.title, (one) => one.fullName ?? one.name),
      past: text(action.past, (one) => one.name),
      fields: (object) => (Array.isArray(fields) ? fields : fields(object)),
    }];
  };
  return Object.fromEntries(Object.entries(actions).map(complete));
}

/** A section with both texts, with a heading of the given level. `update(words, request)` changes them. */
export function commandsView(level = "h3") {
  const status = h("span", { class: "sr", role: "status" });
  const row = (name, id) => {
    const text = preformatted("", { "aria-label": name, class: "command" });
    const copyButton = button("Copy", () => copy(text, copyButton, status), { class: "copy", "aria-label": `Copy: ${name}` });
    return { text, element: h("div", { class: "command-row", "data-command": id }, quietSpan(name), text, copyButton) };
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

async function copy(text, copyButton, status) {
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {
    // Without a secure connection there is no clipboard: the text is selected, ready to be copied by hand.
    getSelection().selectAllChildren(text);
    status.textContent = "The text is selected.";
    return;
  }
  const say = (label, sentence) => {
    copyButton.textContent = label;
    status.textContent = sentence;
  };
  say("Copied", "Copied.");
  setTimeout(say, 2000, "Copy", "");
}
