// The time axis: marks at round times, ranges as text.

import { fullTime } from "./format.js";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 2 * 86_400, 7 * 86_400, 14 * 86_400,
    28 * 86_400,
];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export const SPAN_MIN = 10 * SECOND;
export const SPAN_MAX = 90 * DAY;

/** The choices of the length of time that the chart shows. */
export const RANGES = [["15m", "15 min"], ["1h", "1 h"], ["6h", "6 h"], ["24h", "24 h"], ["7d", "7 d"]];

/** The milliseconds of `90s`, `15m`, `6h`, `7d`, or null. */
export function parseSpan(text) {
  const [, number, unit] = /^(\d{1,6})([smhd])$/.exec(text ?? "") ?? [];
  if (!number) return null;
  const millis = Number(number) * { s: SECOND, m: MINUTE, h: HOUR, d: DAY }[unit];
  return Math.min(SPAN_MAX, Math.max(SPAN_MIN, millis));
}

/** A length of time for the address: the text of a choice, or a whole number of a unit. */
export function spanText(millis) {
  const [unit, size] = [["d", DAY], ["h", HOUR], ["m", MINUTE]].find(([, one]) => millis % one === 0) ?? ["s", SECOND];
  return RANGES.find(([text]) => parseSpan(text) === millis)?.[0] ?? `${Math.round(millis / size)}${unit}`;
}

const day = (at) => `${new Date(at).getUTCDate()} ${MONTHS[new Date(at).getUTCMonth()]}`;

/** Marks between two times, at least `pixelsMin` apart: { at, text, date } with a date where the day changes. */
export function marks(from, to, width, pixelsMin = 76) {
  const wanted = ((to - from) / width) * pixelsMin;
  const step = STEPS.map((seconds) => seconds * SECOND).find((one) => one >= wanted) ?? 90 * DAY;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const isDay = at % DAY === 0;
    const clock = new Date(at).toISOString().slice(11, step < MINUTE ? 19 : 16);
    found.push({ at, text: step >= DAY ? day(at) : clock, date: isDay && step < DAY ? day(at) : "" });
  }
  return found;
}

/** The day of a time, with the year: `18 Nov 2026`. */
export const fullDay = (at) => `${day(at)} ${new Date(at).getUTCFullYear()}`;

/** `2026-11-18 04:00:00 to 05:00:00 UTC`. */
export function rangeText(from, to) {
  const [begin, end] = [fullTime(from).replace(" UTC", ""), fullTime(to)];
  return begin.slice(0, 10) === end.slice(0, 10) ? `${begin} to ${end.slice(11)}` : `${begin} to ${end}`;
}
