// Fleet files from what a test gives: a path, the text of a TOML file, or an object with the same keys.

"use strict";

const fs = require("node:fs");
const path = require("node:path");

/** The fleet of tests that name none: the service, which gets every type of event but Preempt, and a spot machine. */
const DEFAULT_FLEET = {
    host: [{ name: "h1" }, { name: "h2" }],
    vm: [
        { name: "svc", host: "h1", terminate: "5m" },
        { name: "spot", host: "h2", spot: "delete" },
    ],
};

/** The file of a fleet; one that is no file is written into the directory. */
function fleetFile(fleet, directory) {
    if (typeof fleet === "string" && !isText(fleet)) {
        return fleet;
    }
    const file = path.join(directory, "fleet.toml");
    fs.writeFileSync(file, typeof fleet === "string" ? fleet : toToml(fleet));
    return file;
}

/** True for the text of a file; a path has one line and no `=`. */
function isText(fleet) {
    return fleet.includes("\n") || fleet.includes("=");
}

/** An object in the form of a fleet file, one line for each key. */
function toToml(fleet) {
    return Object.entries(fleet)
        .map(([name, value]) => `${quote(name)} = ${toValue(value)}\n`)
        .join("");
}

function toValue(value) {
    if (Array.isArray(value)) {
        return `[${value.map(toValue).join(", ")}]`;
    }
    if (value !== null && typeof value === "object") {
        const entries = Object.entries(value).filter(([, one]) => one !== undefined);
        return `{ ${entries.map(([name, one]) => `${quote(name)} = ${toValue(one)}`).join(", ")} }`;
    }
    if (typeof value === "string") {
        return quote(value);
    }
    if (typeof value === "boolean" || Number.isInteger(value)) {
        return String(value);
    }
    throw new TypeError(`a fleet file has no value of this type: ${value}`);
}

/** The same text in JSON and in TOML, except for one character. */
function quote(text) {
    return JSON.stringify(text).replaceAll("\x7f", "\\u007f");
}

module.exports = { DEFAULT_FLEET, fleetFile, toToml };
