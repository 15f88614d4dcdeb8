// @ts-check
/** What can be stopped: a run, or an experiment with all of it that has not begun yet. */
import { modelText } from "../figures.js";

/** @typedef {import("../tree/store.js").Store} Store @typedef {import("../tree/store.js").Live} Live */
/** @typedef {{ label: string, name: "cancel" | "stop", args: Record<string, string>, about: string }} Stoppable */

/** @param {Store} store @param {number} exp its place @returns {Stoppable} */
export function wholeOf(store, exp) {
  const { id, name, done, failed, cancelled = 0, runs } = store.experiments[exp];
  return { label: `${name || "experiment"} · ${done + failed + cancelled} of ${runs}`, name: "stop", args: { experiment: id }, about: id };
}

/** @param {Pick<Live, "run" | "model" | "text" | "state">} row @returns {Stoppable} */
export function runOf({ run, model, text, state }) {
  return { label: `${modelText(model) || "run"} · ${text.slice(0, 60) || state}`, name: "cancel", args: { run }, about: run };
}

/** What runs, each experiment once: of one whose runs were cancelled the next would begin. @param {Store} store @param {Live[]} rows @returns {Stoppable[]} */
export function stoppable(store, rows) {
  const wholes = new Set(rows.map((row) => row.exp).filter((exp) => store.experiments[exp]));
  return [...rows.filter((row) => !wholes.has(row.exp)).map(runOf), ...[...wholes].map((exp) => wholeOf(store, exp))];
}
