// @ts-check
/** Numbers and texts as they stand in one line. */

const GROUPED = new Intl.NumberFormat("en-US"); // made once: making it takes longer than using it

/** @param {number | null} value */
export function tokensText(value) {
  return value === null ? "" : value < 10_000 ? String(value) : value < 1e6 ? `${Math.round(value / 1e3)}k` : `${(value / 1e6).toFixed(1)}M`;
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
  if (value < 60) return `${value < 10 ? value.toFixed(1) : Math.round(value)} s`;
  const minutes = Math.floor(value / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** @param {number} count @param {string} one @param {string} [many] */
export function countOf(count, one, many = `${one}s`) {
  return `${GROUPED.format(count)} ${count === 1 ? one : many}`;
}

/** Text in one line. @param {string} text */
export function oneLine(text) {
  return text.replace(/\s+/g, " ").trim();
}
