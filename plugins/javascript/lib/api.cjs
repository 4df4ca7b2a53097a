// Requests to the operator API and to the metadata endpoint. They never go through a proxy, and leave no connection open.

"use strict";

const http = require("node:http");

const { ForewarnError } = require("./errors.cjs");

/** Longer than the server waits for anything. */
const TIMEOUT_MS = 90_000;

/** The most entries that the server puts into one page. */
const PAGE = 1000;

/** The operator API of one server, at `url`. Paths begin with `/v1`. */
class Api {
    constructor(url) {
        this.url = url;
    }

    toString() {
        return this.url;
    }

    /** Gets a resource; parameters that are undefined are left out. */
    get(path, parameters = {}) {
        const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
        return this.request("GET", given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path);
    }

    /** Sends a body as JSON. */
    post(path, body) {
        return this.request("POST", path, body);
    }

    /** The items of all pages of a list. */
    async list(path, parameters = {}) {
        const items = [];
        let after;
        do {
            const page = await this.get(path, { ...parameters, limit: PAGE, after });
            items.push(...page.items);
            after = page.next;
        } while (after !== undefined);
        return items;
    }

    /** Sends a request, and returns the decoded response; a rejected one is a ForewarnError. */
    request(method, path, body) {
        const headers = body === undefined ? {} : { "Content-Type": "application/json" };
        return send(this.url + path, { method, headers, body });
    }
}

/** A name as a part of a path. The `/` of `tenant/name` stays. */
function segment(name) {
    return name.split("/").map(encodeURIComponent).join("/");
}

/** Sends any request of a test to the server. */
async function send(url, { method = "GET", headers = {}, body } = {}) {
    const data = body === undefined ? undefined : JSON.stringify(body);
    let answer;
    try {
        answer = await exchange(url, { method, headers }, data);
    } catch (failure) {
        throw new ForewarnError(`no response from ${url}: ${failure.message}`, { hint: "has the server ended?" });
    }
    const { status, text } = answer;
    const value = decode(text);
    if (status < 400) {
        return value;
    }
    if (value === null || typeof value !== "object") {
        throw ForewarnError.fromProblem(status, { detail: `status ${status}: ${text}` });
    }
    // The metadata endpoint has a format of its own.
    throw ForewarnError.fromProblem(status, "error" in value ? { detail: String(value.error) } : value);
}

function exchange(url, options, data) {
    return new Promise((resolve, reject) => {
        const headers = { ...options.headers, "Content-Length": Buffer.byteLength(data ?? "") };
        const request = http.request(url, { ...options, headers, agent: false, timeout: TIMEOUT_MS }, (response) => {
            const chunks = [];
            response.on("data", (chunk) => chunks.push(chunk));
            response.on("error", reject);
            response.on("end", () => resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString() }));
        });
        request.on("timeout", () => request.destroy(new Error("timed out")));
        request.on("error", reject);
        request.end(data);
    });
}

function decode(text) {
    try {
        return text === "" ? null : JSON.parse(text);
    } catch {
        return text;
    }
}

module.exports = { Api, segment, send };
