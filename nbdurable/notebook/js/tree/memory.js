// @ts-check
/** What a browser keeps of a view between visits: folds and scroll. Best effort: hosts may forbid it. */

/** @typedef {{ folded: number[], opened: string[], top: number }} Kept */

const PREFIX = "nbdurable:tree:";

/** @param {import("./store.js").Head} head */
export function memoryKey({ session, store }) {
  return `${PREFIX}${store}:${session}`;
}

/** @param {string} key @returns {Partial<Kept>} */
export function recall(key) {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "{}");
    return kept && typeof kept === "object" ? kept : {};
  } catch {
    return {}; // no storage here, or not ours
  }
}

/** @param {string} key @param {Kept} kept */
export function remember(key, kept) {
  try {
    localStorage.setItem(key, JSON.stringify(kept));
  } catch {
    // full or forbidden: the view opens as new next time
  }
}
