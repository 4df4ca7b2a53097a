// Differences between two texts, line by line.

const CELLS_MAX = 250_000;

/**
 * The lines of both texts in order, each as { kind: "same" | "added" | "removed", text }. The number of lines that are the
 * same is the largest possible, except for very long texts, where everything between equal beginnings and ends differs.
 */
export function diffLines(before, after) {
  const [old, now] = [lines(before), lines(after)];
  let begin = 0;
  while (begin < old.length && begin < now.length && old[begin] === now[begin]) begin += 1;
  let end = 0;
  while (end < old.length - begin && end < now.length - begin && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const middle = between(old.slice(begin, old.length - end), now.slice(begin, now.length - end));
  return [...all("same", now.slice(0, begin)), ...middle, ...all("same", now.slice(now.length - end))];
}

const lines = (text) => (text ? text.split("\n") : []);
const all = (kind, texts) => texts.map((text) => ({ kind, text }));

function between(old, now) {
  if (old.length * now.length > CELLS_MAX) return [...all("removed", old), ...all("added", now)];
  // common[i][j] is the number of common lines of old from i and now from j.
  const common = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      common[i][j] = old[i] === now[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < now.length) {
    if (old[i] === now[j]) {
      found.push({ kind: "same", text: now[j++] });
      i += 1;
    } else if (common[i + 1][j] >= common[i][j + 1]) found.push({ kind: "removed", text: old[i++] });
    else found.push({ kind: "added", text: now[j++] });
  }
  return [...found, ...all("removed", old.slice(i)), ...all("added", now.slice(j))];
}
