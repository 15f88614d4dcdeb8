// @ts-check
/** An entry as it is read: its blocks, the system text of its run, its error, marks and figures. */
import { el } from "../dom.js";
import { blockToDom, foldedPart, longText, moreButton } from "./blocks.js";
import { deskOf } from "./desk.js";
import { countOf, durationText, modelText, scoreText, usdText } from "../figures.js";

/** @typedef {import("./desk.js").Context} Context @typedef {import("../tree/store.js").Marks} Marks */

/** @param {Context} context @param {number} n @param {any} detail @param {() => void} showAll @returns {Node[]} */
export function entryParts(context, n, detail, showAll) {
  const { store, view } = context;
  const select = (/** @type {number} */ other) => view.select(other);
  const parts = [];
  const error = detail.error || store.note(n);
  if (error) parts.push(troublePart(context, n, String(error))); // first: a long text would hide it
  if (detail.system) parts.push(foldedPart("system prompt", longText(detail.system)));
  parts.push(...(detail.blocks ?? []).map((/** @type {any} */ block) => blockToDom(block, select)));
  if (detail.hidden) parts.push(moreButton(String(detail.hidden).replace(/^…\s*/, ""), showAll));
  if (!parts.length) parts.push(el("div", { class: "nbd-faded" }, "no text"));
  return parts;
}

/** @param {Context} context @param {number} n @param {string} error */
function troublePart(context, n, error) {
  const { actions } = deskOf(context);
  const canContinue = actions?.list(n).some(({ name }) => name === "goon");
  const press = () => actions?.run("goon", n, button);
  const button = el("button", { class: "nbd-edge", title: "Ask again from here (g)", onclick: press }, "Continue");
  return el("div", { class: "nbd-trouble" }, el("b", {}, "Error"), longText(error), canContinue && button);
}

/** What stands where no entry is chosen. @param {any} head @returns {Node[]} */
export function sessionParts(head) {
  if (!head) return [];
  const params = Object.entries(head.params ?? {}).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  const facts = [["store", head.store], ["model", head.model], ["parameters", params.join(", ")], ["tools", (head.tools ?? []).join(", ")]];
  const rows = facts.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", { dir: "auto" }, value)]);
  const parts = [el("dl", { class: "nbd-about" }, ...rows)];
  return head.system ? [...parts, foldedPart("system prompt", longText(head.system))] : parts;
}

/** @param {Marks | null | undefined} marks @returns {HTMLElement[]} */
export function markChips(marks) {
  if (!marks) return [];
  const chip = (/** @type {string} */ text, more = "") => el("span", { class: `nbd-chip ${more}`, title: text, dir: "auto" }, text);
  return [
    ...marks.labels.map((label) => chip(label, "nbd-chip-label")),
    ...marks.ratings.map(({ name, score, by }) => chip(`${name} ${scoreText(score)}${by ? ` by ${by}` : ""}`)),
    ...(marks.preferred ? [chip("preferred", "nbd-chip-label")] : []),
  ];
}

/** @param {string | null} model @param {any} detail @returns {string} */
export function entryFacts(model, detail) {
  const { temperature, ...others } = detail?.params ?? {};
  const changed = Object.entries(others).map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`);
  const isT = temperature !== undefined && temperature !== null;
  const author = detail?.author && detail.author !== detail.role ? `by ${detail.author}` : "";
  return [modelText(detail?.model || model), isT && `T ${temperature}`, ...changed, author, detail?.meta && "meta"].filter(Boolean).join(" · ");
}

/** @param {any} detail @returns {string} */
export function entryFigures(detail) {
  if (!detail) return "";
  const tokens = tokensOf(detail.tokens);
  const stop = detail.stop_reason && !["stop", "tool_calls"].includes(detail.stop_reason) ? detail.stop_reason : "";
  const first = durationText(detail.ttft ?? null);
  return [tokens, usdText(detail.cost_usd ?? null), first && `${first} to first`, durationText(detail.seconds ?? null), stop].filter(Boolean).join(" · ");
}

/** @param {Record<string, number> | number | null | undefined} tokens by kind @returns {string} */
function tokensOf(tokens) {
  if (tokens === null || tokens === undefined) return "";
  if (typeof tokens === "number") return countOf(tokens, "token");
  const of = (/** @type {string} */ kind) => tokens[kind] ?? tokens[`${kind}_tokens`] ?? 0;
  const input = of("input") + of("cache_read") + of("cache_write");
  const output = of("output");
  if (!input && !output) return "";
  return input ? `${input.toLocaleString("en")} → ${countOf(output, "token")}` : countOf(output, "token");
}
