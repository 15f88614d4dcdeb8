// @ts-check
/** What can be stopped: a run, or an experiment with all of it that has not begun yet. */
import { modelText, oneLine } from "../figures.js";

/** @typedef {import("../tree/store.js").Store} Store @typedef {import("../tree/store.js").Live} Live */
/** @typedef {{ label: string, name: "cancel" | "stop", args: Record<string, string>, about: string }} Stoppable */

const LABEL_CHARS = 60;

/** @param {Store} store @param {number} exp its place @returns {Stoppable} */
export function wholeOf(store, exp) {
  const { id, name, done, failed, cancelled = 0, runs } = store.experiments[exp];
  return { label: `${oneLine(name ?? "").slice(0, LABEL_CHARS) || "experiment"} · ${done + failed + cancelled} of ${runs}`, name: "stop", args: { experiment: id }, about: id };
}

/** @param {Pick<Live, "run" | "model" | "text" | "state">} row @returns {Stoppable} */
export function runOf({ run, model, text, state }) {
  return { label: `${modelText(model) || "run"} · ${oneLine(text).slice(0, LABEL_CHARS) || state}`, name: "cancel", args: { run }, about: run };
}

/** What runs, each experiment once: of one whose runs were cancelled the next would begin. @param {Store} store @param {Live[]} rows @returns {Stoppable[]} */
export function stoppable(store, rows) {
  const wholes = new Set(rows.map((row) => row.exp).filter((exp) => store.experiments[exp]));
  return [...rows.filter((row) => !wholes.has(row.exp)).map(runOf), ...[...wholes].map((exp) => wholeOf(store, exp))];
}
