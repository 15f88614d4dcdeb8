// @ts-check
/** What an entry holds, block by block: text, thinking, a call with its result, pictures, files. */
import { el } from "../dom.js";
import { copyButton } from "../clipboard.js";
import { countOf, durationText } from "../figures.js";
import { nodesToDom } from "../nodes.js";

/**
 * @typedef {{ media_type: string, data: string, alt?: string }} Picture
 * @typedef {{ text: string, is_error?: boolean, seconds?: number | null, n?: number | null, images?: Picture[] }} CallResult
 * @typedef {{ type: string, [field: string]: any }} Block
 */

export const TEXT_CHARS = 60_000; // shown at once; more would take the page over 0.1 s to lay out
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const BASE64 = /^[A-Za-z0-9+/=\s]*$/;
// numbers that JavaScript would write another way than they were written
const TOUCHY_NUMBER = /\d{16}|\d\.\d*0(?!\d)|\d[eE][+-]?\d/;

/**
 * @param {Block} block @param {(n: number) => void} select goes to another entry
 * @returns {Node}
 */
export function blockToDom(block, select) {
  switch (block.type) {
    case "markdown":
      return el("div", { class: "nbd-md" }, nodesToDom(block.nodes));
    case "text":
      return longText(block.text);
    case "thinking":
      return foldedPart(block.tokens ? `thinking, ${countOf(block.tokens, "token")}` : "thinking", longText(block.text));
    case "call":
      return callUnit(block, select);
    case "image":
      return pictureOf(/** @type {any} */ (block));
    case "file":
      return fileLine(block);
    case "json":
      return longText(block.text, "nbd-pre");
    default:
      return longText(JSON.stringify(block), "nbd-pre");
  }
}

/**
 * A text that may be very long: its beginning, and a button that shows the rest.
 * @param {string} text @param {string} [className]
 */
export function longText(text, className = "nbd-plain") {
  const isCode = className === "nbd-pre";
  const made = el("div", { class: className, dir: isCode ? "ltr" : "auto" });
  if (text.length <= TEXT_CHARS) {
    made.textContent = text;
    return made;
  }
  // a pair of surrogates is not cut in two
  const cut = /[\uD800-\uDBFF]/.test(text[TEXT_CHARS - 1]) ? TEXT_CHARS - 1 : TEXT_CHARS;
  made.textContent = text.slice(0, cut);
  const all = () => {
    made.textContent = text;
    const body = /** @type {HTMLElement | null} */ (made.closest("[tabindex]"));
    body?.focus({ preventScroll: true });
  };
  made.appendChild(moreButton(`${(text.length - cut).toLocaleString("en")} characters more`, all));
  return made;
}

/** @param {string} what "n characters more" @param {() => void} show */
export function moreButton(what, show) {
  return el("button", { class: "nbd-more", onclick: show }, `… ${what}, show all`);
}

/** @param {string} label @param {...Node} inner */
export function foldedPart(label, ...inner) {
  return el("details", { class: "nbd-fold" }, el("summary", {}, label), el("div", {}, ...inner));
}

// -- calls, pictures, files ----------------------------------------------------------------------

/** @param {Block} block @param {(n: number) => void} select */
function callUnit(block, select) {
  const result = /** @type {CallResult | null} */ (block.result);
  const args = callArguments(String(block.arguments ?? ""));
  const call = el("div", { class: "nbd-call" }, el("i", {}, block.name), `(${args.slice(0, TEXT_CHARS)})`);
  if (args.length > TEXT_CHARS) call.appendChild(longText(args));
  const unit = el("div", { class: "nbd-callbox", role: "group", "aria-label": `call of ${block.name}` }, call);
  unit.appendChild(result ? resultPart(result, select) : el("div", { class: "nbd-faded" }, "no result yet"));
  return unit;
}

/** @param {CallResult} result @param {(n: number) => void} select */
function resultPart(result, select) {
  const side = el("span", { class: "nbd-callside" }, durationText(result.seconds ?? null));
  const n = result.n;
  if (n) side.appendChild(el("button", { class: "nbd-ref", title: `go to #${n}`, onclick: () => select(n) }, `#${n}`));
  return el(
    "div",
    { class: result.is_error ? "nbd-result nbd-bad" : "nbd-result" },
    side,
    result.is_error && el("b", {}, "error: "),
    longText(result.text, "nbd-out"),
    ...(result.images ?? []).map(pictureOf),
  );
}

/** JSON arguments as one would write them in a call. @param {string} text @returns {string} */
export function callArguments(text) {
  if (TOUCHY_NUMBER.test(text) || text.length > TEXT_CHARS) return text;
  try {
    const given = JSON.parse(text);
    if (given === null || typeof given !== "object" || Array.isArray(given)) return text;
    return Object.entries(given).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
  } catch {
    return text; // half a call, as a cut stream leaves it
  }
}

/** @param {Picture} block */
function pictureOf(block) {
  if (!PICTURES.has(block.media_type) || !BASE64.test(block.data ?? ""))
    return fileLine({ type: "file", name: block.alt || "image", media_type: block.media_type, size: null });
  const source = `data:${block.media_type};base64,${block.data}`;
  return el("img", { class: "nbd-picture", src: source, alt: block.alt || "image" });
}

/** @param {Block} block */
function fileLine(block) {
  const size = typeof block.size === "number" ? `${Math.ceil(block.size / 1024).toLocaleString("en")} kB` : "";
  const facts = [block.media_type, size].filter(Boolean).join(" · ");
  return el("div", { class: "nbd-file" }, el("b", { dir: "auto" }, block.name || "file"), ` ${facts}`);
}

/** A box of text with a copy button. @param {string} text */
export function sourceBox(text) {
  return el("div", { class: "nbd-box" }, longText(text, "nbd-pre"), copyButton("Copy", () => text, "copy all of it"));
}
