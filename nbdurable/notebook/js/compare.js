// @ts-check
/** Answers side by side. */

/**
 * Show a comparison in `host`, over what is there, until it is closed.
 * @param {HTMLElement} _host @param {import("./link.js").Link} _link @param {any} _body the comparison as the kernel gives it
 * @param {{ onClose?: () => void, onPrefer?: (winner: number, losers: number[]) => void }} [_handlers]
 * @returns {{ close(): void }}
 */
export function showComparison(_host, _link, _body, _handlers = {}) {
  return { close() {} };
}
