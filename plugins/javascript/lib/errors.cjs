// Errors of the server, with its sentence and its hint.

"use strict";

/** A rejected request, or a command that failed. */
class ForewarnError extends Error {
    constructor(detail, { hint, status, type } = {}) {
        super(hint ? `${detail}\n  hint: ${hint}` : detail);
        this.name = this.constructor.name;
        this.detail = detail;
        this.hint = hint;
        this.status = status;
        this.type = type;
    }

    /** The error for a problem document of the operator API, whose `detail` also ends with the hint. */
    static fromProblem(status, problem) {
        const { detail, hint } = splitHint(problem.detail ?? problem.title ?? `status ${status}`);
        return new ForewarnError(detail, { hint: problem.hint ?? hint, status, type: problem.type });
    }
}

/** A condition that did not become true in time. */
class ForewarnTimeout extends ForewarnError {}

/** Divides a message into its sentence and its hint, which is on a line of its own. */
function splitHint(text) {
    const lines = text.trim().split("\n");
    const place = lines.findIndex((line) => line.trim().startsWith("hint: "));
    if (place < 0) {
        return { detail: lines.join("\n") };
    }
    const hint = [lines[place].trim().slice("hint: ".length), ...lines.slice(place + 1)];
    return { detail: lines.slice(0, place).join("\n").trim(), hint: hint.join("\n").trim() };
}

module.exports = { ForewarnError, ForewarnTimeout, splitHint };
