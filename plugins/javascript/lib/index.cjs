// All that the package exports.

"use strict";

const { ForewarnError, ForewarnTimeout } = require("./errors.cjs");
const { Forewarn } = require("./kit.cjs");
const { Program } = require("./programs.cjs");
const { useForewarn } = require("./runners.cjs");

/** Starts a server, and returns the object for tests when it is ready. */
async function startForewarn(options = {}) {
    const forewarn = new Forewarn(options);
    await forewarn.start();
    return forewarn;
}

module.exports = { Forewarn, ForewarnError, ForewarnTimeout, Program, startForewarn, useForewarn };
