// The operator API: requests, pages and the stream of audit entries. Nothing else is used.

const OWN_PAGE = { "Forewarn-Dashboard": "1" };
const TIME_MAX = 20_000;
const PAGE_ITEMS = 1000;

/** An error response, with the hint of the server. */
export class ApiError extends Error {
  constructor(status, body) {
    super(body?.detail ?? (status ? `the server responded with ${status}` : "the server does not respond"));
    this.status = status;
    this.type = body?.type ?? "";
    this.hint = body?.hint ?? "";
  }
}

function url(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    if (value !== undefined && value !== null && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

async function request(method, path, { parameters, body, headers, timeMax = TIME_MAX, signal } = {}) {
  const signals = [AbortSignal.timeout(timeMax), signal].filter(Boolean);
  let response;
  try {
    response = await fetch(url(path, parameters), {
      method,
      headers: { ...OWN_PAGE, ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any(signals),
      cache: "no-store",
    });
  } catch {
    throw new ApiError(0, null);
  }
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  const content = isJson ? await response.json().catch(() => null) : await response.text();
  if (!response.ok) throw new ApiError(response.status, isJson ? content : null);
  return content;
}

export const get = (path, parameters, options) => request("GET", path, { parameters, ...options });

/** A change. Its key makes it safe to repeat: the server carries out a request with the same key only once. */
export function change(method, path, body, parameters, key = newKey()) {
  return request(method, path, { body, parameters, headers: { "Idempotency-Key": key } });
}

/** A change of a route that takes no key. */
export const send = (method, path, body, parameters) => request(method, path, { body, parameters });

/** A new key for a change. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Every item of a list, page by page, with a pause between pages. */
export async function all(path, parameters, pause = 0) {
  const items = [];
  let after;
  do {
    if (after && pause) await new Promise((resolve) => setTimeout(resolve, pause));
    const page = await get(path, { limit: PAGE_ITEMS, ...parameters, after });
    items.push(...page.items);
    after = page.next;
  } while (after);
  return items;
}

/** Follows the audit log until it breaks off or is aborted. Calls `open` once, and `entry(entry)` for each entry. */
export async function watch(parameters, { open, entry, signal }) {
  const response = await fetch(url("/v1/watch", parameters), { headers: OWN_PAGE, signal, cache: "no-store" });
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => null));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  open();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines) if (line.startsWith("data: ")) entry(JSON.parse(line.slice(6)));
  }
}
