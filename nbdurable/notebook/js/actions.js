// @ts-check
/** What can be done with an entry, by button, key and menu. */

/** @typedef {import("./tree.js").Context} Context */
/** @typedef {{ name: string, label: string, key: string, isPrimary: boolean }} Action */

/**
 * Make the actions of a view. `list` gives those an entry allows; the primary ones stand in its row.
 * @param {Context} _context
 * @returns {{ run(name: string, n: number, anchor: HTMLElement | null): void, list(n: number): Action[], keyFor(event: KeyboardEvent): string | null, help(): void, close(): void }}
 */
export function createActions(_context) {
  return { run() {}, list: () => [], keyFor: () => null, help() {}, close() {} };
}
