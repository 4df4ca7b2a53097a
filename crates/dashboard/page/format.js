// Times and numbers as people read them.

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
const UNITS = { d: DAY, h: HOUR, m: MINUTE, s: SECOND, ms: 1 };
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const two = (number) => String(number).padStart(2, "0");

/** The milliseconds of a time of the API, or null. */
export function parseTime(text) {
  const millis = text ? Date.parse(text) : NaN;
  return Number.isNaN(millis) ? null : millis;
}

/** The milliseconds of a length of time such as `15m`, `1h30m` or `500ms`; null if it is none. */
export function parseSpan(text) {
  const words = [...String(text ?? "").matchAll(/(\d+)(ms|[dhms])/g)];
  if (!words.length || words.map(([word]) => word).join("") !== text) return null;
  return words.reduce((sum, [, number, unit]) => sum + Number(number) * UNITS[unit], 0);
}

/** `11:42`, `2:03:04`, `3d 4h`: a length of time that counts down. */
export function countdown(millis) {
  const seconds = Math.max(0, Math.ceil(millis / SECOND));
  if (seconds >= 2 * 86400) return `${Math.floor(seconds / 86400)}d ${Math.floor((seconds % 86400) / 3600)}h`;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** `9 s`, `4 min`, `3 h`, `2 d`: a length of time, roughly. */
export function duration(millis) {
  const size = Math.abs(millis);
  if (size < MINUTE) return `${Math.round(millis / SECOND)} s`;
  if (size < 2 * HOUR) return `${Math.round(millis / MINUTE)} min`;
  if (size < 2 * DAY) return `${Math.round(millis / HOUR)} h`;
  return `${Math.round(millis / DAY)} d`;
}

/** `in 11:42`, `3 min ago`. */
export function relative(millis, now) {
  if (millis === null) return "";
  if (Math.abs(millis - now) < SECOND) return "now";
  return millis >= now ? `in ${countdown(millis - now)}` : `${duration(now - millis)} ago`;
}

/** `12:04:31 UTC`. */
export function clockTime(millis) {
  return `${new Date(millis).toISOString().slice(11, 19)} UTC`;
}

/** `2026-11-18 12:04:31 UTC`. */
export function fullTime(millis) {
  return millis === null ? "" : `${new Date(millis).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** The time of day, with its day if that is not the next one. */
export function dayTime(millis, now) {
  return (millis - now < DAY ? clockTime : fullTime)(millis);
}

/** The text with a capital letter. */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `18 Nov`. */
export function day(millis) {
  const date = new Date(millis);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
}

/** `18 Nov 2026`. */
export const fullDay = (millis) => `${day(millis)} ${new Date(millis).getUTCFullYear()}`;

/** The number, or the limit that it exceeds. */
export const clamp = (number, min, max) => Math.max(min, Math.min(number, max));

/** `1 VM`, `3 VMs`. */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** `web_0, web_1 and 3 more`. */
export function list(names, max = 3) {
  if (names.length <= max) return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join("");
  return `${names.slice(0, max).join(", ")} and ${names.length - max} more`;
}

/** The texts that are there, as one. */
export const joined = (texts, separator = ", ") => texts.filter(Boolean).join(separator);

/** `4 CPUs, 8GiB`: the size of a VM, or an empty text. */
export const sizeText = ({ cpus, memory }) => joined([cpus && count(cpus, "CPU"), memory]);

/** `Reboot of web_0 and web_1`: the title of an event or of its history. */
export const eventTitle = ({ kind, resources }, machinesMax) => `${kind || "Event"} of ${list(resources, machinesMax)}`;

/** The message of an error on one line. */
export const oneLine = (problem) => problem.message.replace(/\s*\n\s*/g, "; ");

/** The first eight characters of an event id. */
export function shortId(id) {
  return id.slice(0, 8);
}

/** A word for a shell: quoted if it has to be. */
export function shellWord(text) {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`;
}
