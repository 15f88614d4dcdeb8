// @ts-check
/** The whole entry beside the tree. */

import { el } from "./dom.js";

/** @typedef {import("./tree.js").Context} Context @typedef {import("./store.js").Live} Live */

/**
 * Make the pane; `show` takes the entry's number (0 for none), `live` a run's row as it grows.
 * @param {Context} context
 * @returns {{ root: HTMLElement, show(n: number): void, live(row: Live): void, refresh(): void, close(): void }}
 */
export function createPane(context) {
  const root = el("section", { class: "nbd-pane", "aria-label": "Entry" });
  return {
    root,
    show(n) { root.textContent = n ? context.store.preview(n) ?? "" : ""; },
    live(row) { root.textContent = row.text; },
    refresh() {},
    close() {},
  };
}
