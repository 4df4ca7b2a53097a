// The time axis: marks at round times, ranges as text.

import { DAY, HOUR, MINUTE, SECOND, day, fullTime } from "./format.js";

const times = (unit, ...numbers) => numbers.map((number) => number * unit);
const STEPS = [
  times(SECOND, 1, 2, 5, 10, 15, 30), times(MINUTE, 1, 2, 5, 10, 15, 30), times(HOUR, 1, 2, 3, 6, 12), times(DAY, 1, 2, 7, 14, 28),
].flat();

/** The choices of the length of time that the chart shows. */
export const RANGES = [[15 * MINUTE, "15 min"], [HOUR, "1 h"], [6 * HOUR, "6 h"], [DAY, "24 h"], [7 * DAY, "7 d"]];

/** A length of time for the address: a whole number of the largest unit. */
export function spanText(millis) {
  const [unit, size] = [["d", DAY], ["h", HOUR], ["m", MINUTE]].find(([, one]) => millis % one === 0) ?? ["s", SECOND];
  return `${Math.round(millis / size)}${unit}`;
}

/** Marks between two times, at least `pixelsMin` apart: { at, text, date } with a date where the day changes. */
export function marks(from, to, width, pixelsMin = 76) {
  const wanted = ((to - from) / width) * pixelsMin;
  const step = STEPS.find((one) => one >= wanted) ?? 90 * DAY;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const clock = fullTime(at).slice(11, step < MINUTE ? 19 : 16);
    found.push(step >= DAY ? { at, text: day(at), date: "" } : { at, text: clock, date: at % DAY === 0 ? day(at) : "" });
  }
  return found;
}

/** `2026-11-18 04:00:00 to 05:00:00 UTC`. */
export function rangeText(from, to) {
  const [begin, end] = [fullTime(from).replace(" UTC", ""), fullTime(to)];
  return begin.slice(0, 10) === end.slice(0, 10) ? `${begin} to ${end.slice(11)}` : `${begin} to ${end}`;
}
