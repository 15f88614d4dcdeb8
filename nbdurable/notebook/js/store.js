// @ts-check
/** What a view knows of a session: columns, and the changes that grow them. */

/** @typedef {{ run: string, parent: number, model: string | null, exp: number, state: "waiting" | "streaming" | "tool" | "retry" | "error", text: string, thinking: boolean, ttft: number | null, started: number, tokens: number | null, cost_usd: number | null, note: string }} Live */

export class Store {
  /** @param {number} _n @returns {string | null} */
  preview(_n) { return null; }
}
