// @ts-check
/** The line below the tree that continues the session. */

import { el } from "./dom.js";

/** @typedef {import("./tree.js").Context} Context */

/**
 * Make the composer; `update` follows the leaf, the models and what runs.
 * @param {Context} _context
 * @returns {{ root: HTMLElement, update(): void, focus(): void, close(): void }}
 */
export function createComposer(_context) {
  const root = el("div", { class: "nbd-compose" });
  return { root, update() {}, focus() {}, close() {} };
}
