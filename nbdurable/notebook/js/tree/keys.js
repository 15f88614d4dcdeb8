// @ts-check
/** The keys of a tree, as the ARIA practices have them; what they do is told, not done. */

import { BIT } from "./lines.js";

/** @typedef {import("./lines.js").Lines} Lines */
/** @typedef {{ to: number } | { fold: number } | { unfold: number } | { enter: number } | { sibling: number } | { does: "find" | "zoom" | "help" | "leave" } | null} Step */
/** @typedef {{ key: string, ctrlKey: boolean, metaKey: boolean, altKey: boolean, shiftKey: boolean }} Key */

/** What `?` lists beside the actions. */
export const ROW_KEYS = [
  ["↑ ↓", "row above, row below"],
  ["←", "fold, or go up a level"],
  ["→", "unfold, or go down one"],
  ["Home End", "first row, last row"],
  ["PgUp PgDn", "a screen up, down"],
  ["[ ]", "sibling before, after"],
  ["1 2 …", "go to that entry"],
  ["Enter", "read it, or open it"],
  ["z", "only what is below"],
  ["/", "find"],
  ["Esc", "leave search, zoom"],
];

/**
 * What a key does in the tree; null for one that is not the tree's.
 * @param {Key} event @param {Lines} lines @param {number} line the row that is chosen, -1 for none @param {number} page rows in sight
 * @returns {Step}
 */
export function stepOf(event, lines, line, page) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (event.shiftKey && !"?/[]".includes(event.key)) return null; // where a layout needs Shift for them
  const last = lines.length - 1;
  const to = (/** @type {number} */ at) => (last < 0 ? null : { to: Math.max(0, Math.min(last, at)) });
  switch (event.key) {
    case "ArrowDown": return to(line + 1);
    case "ArrowUp": return to(line < 0 ? last : line - 1);
    case "Home": return to(0);
    case "End": return to(last);
    case "PageDown": return to(line + page - 1);
    case "PageUp": return to(line - page + 1);
    case "ArrowLeft": return back(lines, line);
    case "ArrowRight": return on(lines, line);
    case "Enter": return line < 0 ? null : { enter: line };
    case "[": return { sibling: -1 };
    case "]": return { sibling: 1 };
    case "/": return { does: "find" };
    case "z": return { does: "zoom" };
    case "?": return { does: "help" };
    case "Escape": return { does: "leave" };
    default: return null;
  }
}

/** @param {Lines} lines @param {number} line @returns {Step} */
function back(lines, line) {
  if (line < 0) return null;
  if (lines.is(line, BIT.foldable) && !lines.is(line, BIT.folded)) return { fold: line };
  const above = lines.above(line);
  return above < 0 ? null : { to: above };
}

/** @param {Lines} lines @param {number} line @returns {Step} */
function on(lines, line) {
  if (line < 0 || !lines.is(line, BIT.foldable)) return null;
  if (lines.is(line, BIT.folded)) return { unfold: line };
  return line + 1 < lines.length && lines.level[line + 1] > lines.level[line] ? { to: line + 1 } : null;
}

const PAUSE_MS = 700;

/** Typing ahead: what was typed without a pause, and where it leads. */
export class TypeAhead {
  /** @param {() => number} [now] milliseconds */
  constructor(now = () => performance.now()) {
    this.now = now;
    this.typed = "";
    this.at = -PAUSE_MS;
  }

  /** Whether letters go on with what was typed, so that none of them is an action's key. */
  get isTyping() { return this.typed !== "" && this.now() - this.at < PAUSE_MS; }

  /**
   * @param {string} key @param {Lines} lines @param {number} line where to look on from
   * @param {(line: number) => string} textOf
   * @returns {number} the line it leads to, or -1
   */
  lineFor(key, lines, line, textOf) {
    this.typed = (this.isTyping ? this.typed : "") + key.toLowerCase();
    this.at = this.now();
    if (/^\d+$/.test(this.typed)) return lines.ofEntry(Number(this.typed));
    const start = this.typed.length > 1 ? line : line + 1;
    for (let step = 0; step < lines.length; step++) {
      const at = (Math.max(0, start) + step) % lines.length;
      if (textOf(at).toLowerCase().startsWith(this.typed)) return at;
    }
    return -1;
  }
}
