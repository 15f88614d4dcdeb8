// @ts-check
/** What a row says: its words, chips and figures, without the page. */

import { countOf, durationText, oneLine, scoreText, tokensText, unmarked, usdText } from "../figures.js";
import { FLAG } from "./store.js";
import { BIT } from "./lines.js";
import { shapeOf } from "./rails.js";

/** @typedef {import("./store.js").Store} Store @typedef {import("./store.js").Live} Live @typedef {import("./lines.js").Lines} Lines */
/** @typedef {{ text: string, kind: "leaf" | "label" | "bad" | "plain" | "fold", title?: string }} Chip */
/**
 * @typedef {object} Face
 * @property {string} name @property {string} ordinal @property {string} text @property {boolean} isPending the words were not sent yet
 * @property {import("./rails.js").Shape} shape @property {string} role @property {boolean} isOn on the active path
 * @property {boolean} isLive @property {boolean} hasCaret
 * @property {Chip[]} chips @property {{ at: number, of: number } | null} sibling
 * @property {string} model @property {string[]} figures tokens, cost, seconds; "" for what is not known
 * @property {string} said what shape and colour tell those who see them
 */

const TAIL_CHARS = 400;
const LOOKED_BACK = 40; // entries looked at for another model

/** @type {import("./store.js").Marks} */
const UNMARKED = { labels: [], ratings: [], preferred: false };

/** The end of a text that still grows, in one line of about `chars`. @param {string} text @param {number} chars */
export function tailOf(text, chars) {
  const line = text.slice(-TAIL_CHARS).replace(/\s+/g, " ");
  const start = text.length > TAIL_CHARS ? line : line.trimStart();
  return text.length <= TAIL_CHARS && start.length <= chars ? start : `…${Array.from(start).slice(-chars).join("")}`;
}

/** What an entry's row says. @param {Store} store @param {Lines} lines @param {number} line @param {number} n @returns {Face} */
export function faceOfEntry(store, lines, line, n) {
  const flags = store.flags(n), role = store.role(n), preview = store.preview(n), note = store.note(n);
  const around = store.siblingsOf(n);
  const chips = chipsOf(store, n, flags);
  const words = oneLine(preview ?? "");
  const text = (role === "assistant" ? unmarked(words) : words) || words || (note ? oneLine(note) : preview === undefined ? "" : flags & FLAG.calls ? "calls tools" : "no text");
  if (lines.is(line, BIT.folded)) chips.unshift({ text: `+${hiddenBelow(store, lines, line, n)}`, kind: "fold", title: "entries folded away" });
  return {
    name: lines.name(line), ordinal: String(n), text, isPending: preview === undefined,
    shape: shapeOf(role), role, isOn: store.onPath(n), isLive: false, hasCaret: false, chips,
    sibling: around.length > 1 ? { at: around.indexOf(n) + 1, of: around.length } : null,
    model: tellsModel(store, n, around) ? store.model(n) ?? "" : "",
    figures: [tokensText(store.tokens(n)), usdText(store.cost(n)), durationText(store.seconds(n))],
    said: store.onPath(n) ? role : `${role}, not on the active path`,
  };
}

/** @param {Store} store @param {number} n @param {number} flags @returns {Chip[]} */
function chipsOf(store, n, flags) {
  /** @type {Chip[]} */
  const chips = [];
  const { labels, ratings, preferred } = store.marks(n) ?? UNMARKED, note = store.note(n);
  if (flags & FLAG.error) chips.push({ text: "error", kind: "bad", title: note ?? undefined });
  else if (flags & FLAG.aborted) chips.push({ text: "stopped", kind: "bad", title: note ?? undefined });
  else if (flags & FLAG.resultError) chips.push({ text: "failed", kind: "bad", title: note ?? undefined });
  if (flags & FLAG.orphan) chips.push({ text: "parent missing", kind: "bad" });
  for (const label of labels.slice(0, 2)) chips.push({ text: oneLine(label), kind: "label", title: label });
  if (preferred) chips.push({ text: "preferred", kind: "label" });
  for (const { name, score, by } of ratings.slice(0, 1))
    chips.push({ text: `${name === "score" || !name ? "" : `${oneLine(name)} `}${scoreText(score)}`, kind: "plain", title: `${name || "score"} ${scoreText(score)}${by ? ` by ${by}` : ""}` });
  const more = Math.max(0, labels.length - 2) + Math.max(0, ratings.length - 1);
  if (more) chips.push({ text: `+${more} marks`, kind: "plain" });
  if (n === store.leaf) chips.push({ text: "leaf", kind: "leaf" });
  return chips;
}

/**
 * Whether a row names its model: where it is another than that of the answer before it, or than a
 * sibling's. The same name on each row says nothing.
 * @param {Store} store @param {number} n @param {number[]} around its siblings
 */
function tellsModel(store, n, around) {
  const model = store.model(n);
  let at = store.parentOf(n);
  for (let hops = 0; at && store.model(at) === null && hops < LOOKED_BACK; hops++) at = store.parentOf(at);
  return store.model(at) !== model || around.slice(0, LOOKED_BACK).some((other) => ![null, model].includes(store.model(other)));
}

/** How many entries a folded line hides. @param {Store} store @param {Lines} lines @param {number} line @param {number} n */
export function hiddenBelow(store, lines, line, n) {
  const isHead = lines.is(line, BIT.side);
  const main = isHead || !lines.is(line, BIT.goesOn) ? 0 : lines.entryAt(line + 1);
  const stack = store.childrenOf(n).filter((child) => child !== main);
  let hidden = 0;
  while (stack.length) {
    hidden++;
    for (let at = store.first[/** @type {number} */ (stack.pop())]; at; at = store.next[at]) stack.push(at);
  }
  return hidden;
}

/** What an experiment's row says. @param {Store} store @param {Lines} lines @param {number} line @param {import("./lines.js").Group} group @returns {Face} */
export function faceOfExperiment(store, lines, line, group) {
  const { name, runs, done, failed, cancelled = 0, cost_usd, state, axes } = store.experiments[group.exp];
  const text = [oneLine(name) || "experiment", axes.length ? axes.map(oneLine).join(" × ") : ""].filter(Boolean).join(" · ");
  const going = state === "running" ? `${done + failed + cancelled} of ${runs}` : countOf(runs, "run");
  /** @type {Chip[]} */
  const chips = failed ? [{ text: `${failed} failed`, kind: "bad" }] : [];
  if (cancelled) chips.push({ text: `${cancelled} cancelled`, kind: "plain" });
  else if (state === "stopped") chips.push({ text: "stopped", kind: "plain" });
  return {
    name: lines.name(line), ordinal: "", text, isPending: false, shape: "experiment", role: "experiment", isOn: false,
    isLive: state === "running", hasCaret: false, chips, sibling: null, model: "", figures: [going, usdText(cost_usd), ""],
    said: "experiment",
  };
}

/** What a run's row says while it grows. @param {Live} row @param {{ rate: number | null, waited: number }} pace @param {number} chars @returns {Face} */
export function faceOfRun(row, pace, chars) {
  const isFailed = row.state === "error";
  const rate = pace.rate === null ? "" : `${pace.rate < 10 ? pace.rate.toFixed(1) : Math.round(pace.rate)} tok/s`;
  const stage = {
    waiting: pace.waited >= 1 ? `waiting ${Math.floor(pace.waited)} s` : "waiting",
    streaming: row.thinking ? "thinking" : "",
    tool: `calls ${oneLine(row.note) || "a tool"}`,
    retry: `tries again: ${oneLine(row.note)}`,
    error: oneLine(row.note) || "failed",
  }[row.state];
  const text = row.text ? unmarked(tailOf(row.text, chars)) : stage;
  /** @type {Chip[]} */
  const chips = [];
  if (row.state === "tool" || row.state === "retry") chips.push({ text: row.state === "tool" ? oneLine(row.note) || "tool" : "retry", kind: "plain", title: row.note });
  else if (isFailed) chips.push({ text: "error", kind: "bad", title: row.note });
  else if (row.thinking) chips.push({ text: "thinking", kind: "plain" });
  return {
    name: row.run, ordinal: "", text, isPending: false, shape: "assistant", role: "assistant", isOn: !isFailed, isLive: true,
    hasCaret: !isFailed && row.state === "streaming", chips, sibling: null, model: row.model ?? "",
    figures: [row.state === "streaming" ? rate : "", usdText(row.cost_usd), row.ttft === null ? "" : `${row.ttft.toFixed(2)} s`],
    said: isFailed ? "answer that failed" : "answer that still grows",
  };
}
