// @ts-check
/**
 * Safe Markdown, which comes as data, as elements. The kernel made it from a fixed set of tags;
 * tags and attributes are looked up here once more, and what is not known becomes its text.
 */
import { el, put } from "./dom.js";
import { copyButton } from "./clipboard.js";

/** @typedef {string | [string, Record<string, unknown>, any[]]} MarkdownNode */

const TAGS = new Set(
  (
    "p br h3 h4 h5 h6 ul ol li blockquote pre code span strong em del a table tr th td hr " +
    "div bdi b details summary"
  ).split(" "),
);
const CLASSES = new Set(
  "nbd-lang nbd-img nbd-dim nbd-note nbd-err nbd-think nbd-unit nbd-foot".split(" "),
);
const SCHEMES = new Set(["http:", "https:", "mailto:"]);
const MAX_DEPTH = 60; // deeper than any the kernel makes; a longer chain would end in a stack error

/** @type {Record<string, (value: string, tag: string) => boolean>} */
const ATTRIBUTES = {
  dir: (value) => value === "auto" || value === "ltr" || value === "rtl",
  value: (value, tag) => tag === "li" && /^\d{1,9}$/.test(value),
  class: (value) => CLASSES.has(value),
  title: () => true,
  href: (value, tag) => tag === "a" && isLink(value),
};

/** @param {string} address @returns {boolean} whether it is one that a person may follow */
export function isLink(address) {
  const scheme = /^\s*([a-z][a-z0-9+.-]*:)/i.exec(address);
  return scheme !== null && SCHEMES.has(scheme[1].toLowerCase());
}

/** @param {MarkdownNode[]} nodes @param {number} [depth] @returns {DocumentFragment} */
export function nodesToDom(nodes, depth = 0) {
  const made = document.createDocumentFragment();
  for (const node of nodes) made.appendChild(nodeToDom(node, depth));
  return made;
}

/** @param {MarkdownNode} node @param {number} depth @returns {Node} */
function nodeToDom(node, depth) {
  if (typeof node === "string") return document.createTextNode(node);
  const [tag, attributes, inner] = node;
  if (!TAGS.has(tag) || depth > MAX_DEPTH) return document.createTextNode(plainText([node]));
  const made = el(/** @type {any} */ (tag), allowedProps(tag, attributes), nodesToDom(inner, depth + 1));
  if (tag === "pre") return codeBox(made, inner);
  if (tag === "table") return tableScroller(made);
  return made;
}

/** @param {string} tag @param {Record<string, unknown>} given @returns {Record<string, string>} */
function allowedProps(tag, given) {
  /** @type {Record<string, string>} */
  const props = {};
  for (const [name, value] of Object.entries(given ?? {}))
    if (Object.hasOwn(ATTRIBUTES, name) && ATTRIBUTES[name](String(value), tag)) props[name] = String(value);
  if (props.href) Object.assign(props, { target: "_blank", rel: "noopener noreferrer nofollow" });
  return props;
}

/** The characters of nodes, without the rest. @param {MarkdownNode[]} nodes @returns {string} */
export function plainText(nodes) {
  const parts = [];
  const stack = [...nodes].reverse();
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (typeof node === "string") parts.push(node);
    else if (Array.isArray(node?.[2])) for (let at = node[2].length; at-- > 0; ) stack.push(node[2][at]);
  }
  return parts.join("");
}

/** @param {HTMLElement} pre @param {MarkdownNode[]} inner */
function codeBox(pre, inner) {
  const code = inner.filter((node) => typeof node !== "string" && node[0] === "code");
  const read = () => plainText(code.length ? code : inner);
  return el("div", { class: "nbd-box" }, pre, copyButton("Copy", read, "copy this code"));
}

/** @param {HTMLElement} table */
function tableScroller(table) {
  const box = el("div", { class: "nbd-scroll", tabindex: 0, role: "group", "aria-label": "table" });
  put(box, table);
  return box;
}

/** A text that grows, block by block: what is the same as before stays untouched in the page. */
export class GrowingNodes {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {MarkdownNode[]} */
    this.nodes = [];
    /** @type {ChildNode[][]} */
    this.made = [];
  }

  /** Show nodes; those that are the very same as before, from the first on, are left alone. @param {MarkdownNode[]} nodes */
  show(nodes) {
    let same = 0;
    while (same < nodes.length && nodes[same] === this.nodes[same]) same++;
    if (growsInside(this.nodes[same], nodes[same])) growInside(/** @type {Element} */ (this.made[same][0]), partsOf(this.nodes[same]), partsOf(nodes[same++]));
    this.nodes = nodes;
    for (const block of this.made.splice(same)) block.forEach((node) => node.remove());
    for (const node of nodes.slice(same)) {
      const made = [...nodesToDom([node]).childNodes];
      put(this.root, ...made);
      this.made.push(made);
    }
  }
}

const HOLDS_PARTS = new Set(["ul", "ol", "blockquote"]);

/** Whether a block is an earlier one with other parts. @param {any} before @param {any} now */
function growsInside(before, now) {
  return Array.isArray(before) && Array.isArray(now) && before[0] === now[0] && HOLDS_PARTS.has(now[0]) && JSON.stringify(before[1]) === JSON.stringify(now[1]);
}

/** @param {MarkdownNode} node @returns {MarkdownNode[]} */
function partsOf(node) {
  return typeof node === "string" ? [] : node[2];
}

/** Change only the parts that are others than before. @param {Element} root @param {MarkdownNode[]} before @param {MarkdownNode[]} now */
function growInside(root, before, now) {
  let same = 0;
  while (same < now.length && now[same] === before[same]) same++;
  while (root.childNodes.length > same) root.lastChild?.remove();
  root.append(nodesToDom(now.slice(same), 1));
}

const HOLDS_TEXT = new Set(["P", "UL", "OL", "LI", "BLOCKQUOTE", "PRE"]);

/** Where characters belong that come after formatted text, before it is read with them. @param {Element} root @returns {Element} */
export function growthPoint(root) {
  for (let at = root; ; ) {
    const last = at.lastElementChild?.matches(".nbd-box") ? at.lastElementChild.firstElementChild : at.lastElementChild;
    if (at.tagName === "PRE") return last ?? at;
    if (!last || !HOLDS_TEXT.has(last.tagName)) return at;
    at = last;
  }
}
