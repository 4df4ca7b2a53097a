// Durations in the form of the command line: `90s`, `15m`, `2h`. Numbers are seconds.

"use strict";

const UNITS = { s: 1, m: 60, h: 3600, d: 86400 };

/** A duration for the server, rounded up to whole seconds. */
function toText(duration) {
    return typeof duration === "string" ? duration : `${Math.ceil(duration)}s`;
}

/** The length of a duration, for timeouts. */
function toSeconds(duration) {
    if (typeof duration === "number") {
        return duration;
    }
    if (!/^(\d+[smhd])+$/.test(duration)) {
        throw new TypeError(`no duration: ${JSON.stringify(duration)}; write 90s, 15m or 2h`);
    }
    const parts = duration.match(/\d+[smhd]/g);
    return parts.reduce((sum, part) => sum + parseInt(part, 10) * UNITS[part.at(-1)], 0);
}

module.exports = { toText, toSeconds };
