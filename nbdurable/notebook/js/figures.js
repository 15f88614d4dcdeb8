// @ts-check
/** Numbers and texts as they stand in one line. */

const GROUPED = new Intl.NumberFormat("en-US"); // made once: making it takes longer than using it

/** @param {number | null} value */
export function tokensText(value) {
  return value === null ? "" : value < 10_000 ? value.toLocaleString("en-US") : value < 1e6 ? `${Math.round(value / 1e3)}k` : `${(value / 1e6).toFixed(1)}M`;
}

/** @param {number | null} value US dollars */
export function usdText(value) {
  if (value === null) return "";
  if (value === 0) return "$0";
  return value < 0.00005 ? "<$0.0001" : value < 1 ? `$${value.toFixed(4)}` : `$${value.toFixed(2)}`;
}

/** @param {number | null} value */
export function durationText(value) {
  if (value === null) return "";
  if (value > 0 && value < 0.05) return "<0.1 s";
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  const minutes = Math.floor(value / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** @param {number | boolean | string} score a whole number beyond 2^53 crosses as text */
export function scoreText(score) {
  if (typeof score === "boolean") return score ? "yes" : "no";
  return `★ ${Number(Number(score).toPrecision(6))}`;
}

/** @param {number} count @param {string} one @param {string} [many] */
export function countOf(count, one, many = `${one}s`) {
  return `${GROUPED.format(count)} ${count === 1 ? one : many}`;
}

/** A model's name without its provider. @param {string | null} name */
export function modelText(name) {
  const last = (name ?? "").slice((name ?? "").lastIndexOf("/") + 1);
  return oneLine(last || (name ?? ""));
}

/** One line of Markdown as it reads, without its marks. @param {string} line */
export function unmarked(line) {
  const isTable = /\|\s*:?-{3,}/.test(line);
  const text = isTable ? line.replace(/\|(\s*:?-{3,}:?\s*\|?)+/g, "|").replace(/\s*(\|\s*)+/g, " · ").replace(/: · /g, ": ") : line;
  return text.replace(/```\w*/g, "").replace(/^#{1,6}\s+/, "").replace(/\*\*(\S|\S.*?\S)\*\*/g, "$1").replace(/`([^`]+)`/g, "$1").trim();
}

/** Text in one line. @param {string} text */
export function oneLine(text) {
  return text.replace(/\s+/g, " ").trim();
}
