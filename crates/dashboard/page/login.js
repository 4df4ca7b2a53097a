// Login: with a token, which the server exchanges for a cookie that scripts cannot read; or with the one-time code of
// `forewarn dashboard`, which has the token itself.

import { send } from "./api.js";
import { actionButton, h, replace } from "./dom.js";

const CODE = /^#code=([A-Za-z0-9]+)$/;

/** A one-time code in the address (`forewarn dashboard` puts it there) is used at once, and removed. */
export async function prepare() {
  // Another address for a tab that is already open changes only what follows the `#`.
  window.addEventListener("hashchange", () => CODE.test(location.hash) && location.reload());
  const code = location.hash.match(CODE)?.[1];
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  await send("POST", "/session", { code }).catch(() => {});
}

/** Shows the login, or the text of `forewarn dashboard` on how to get one. */
export function open(main, { problem, isProxied }) {
  if (isProxied) return openProxied(main, problem);
  const input = h("input", {
    id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true, placeholder: "fwt_…",
  });
  const button = actionButton("Log in", async () => {
    await send("POST", "/session", { token: input.value });
    location.reload();
  }, { id: "log-in", class: "primary" });
  const submit = (event) => {
    event.preventDefault();
    button.firstChild.click();
  };
  replace(main, h("form", { class: "login", on: { submit } },
    h("h1", {}, "Log in"),
    problem && h("p", { class: "error" }, problem),
    h("label", { for: "token" }, "Token"),
    input,
    button,
    h("p", { class: "quiet" }, "An admin creates tokens with ", h("code", {}, "forewarn token create NAME --role viewer"),
      ". The token is sent once and kept in no storage of the browser that scripts can read.")));
  input.focus();
}

function openProxied(main, problem) {
  const [detail, hint] = problem.split("\n  hint: ");
  const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1).replaceAll("\u0060", "")}.`;
  const click = () => location.reload();
  const again = h("button", { id: "again", type: "button", class: "primary", on: { click } }, "Try again");
  replace(main, h("div", { class: "login", role: "alert" },
    h("h1", {}, "No session"),
    h("p", {}, sentence(detail)),
    hint && h("p", { id: "remedy" }, sentence(hint)),
    again));
  again.focus();
}
