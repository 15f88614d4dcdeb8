// @ts-check
/** The line above the tree: whose it is, how much, what is shown of it. */

import { el, setAttr, setText } from "../dom.js";
import { usdText, countOf, oneLine } from "../figures.js";

/** @typedef {"all" | "turns" | "marked"} Filter */
/** @typedef {{ onFind(text: string, isSure: boolean): void, onFilter(filter: Filter): void, onWhole(): void, onCompare(): void, onHelp(): void }} Handlers */

const FIND_AFTER_MS = 200;

/** @type {[Filter, string][]} */
const FILTERS = [["all", "All"], ["turns", "User turns"], ["marked", "Labelled"]];

export class Bar {
  /** @param {Handlers} handlers */
  constructor(handlers) {
    this.handlers = handlers;
    this.timer = 0;
    this.title = el("b", { dir: "auto" });
    this.facts = el("span", { class: "nbd-num nbd-tree-facts" });
    this.found = el("span", { class: "nbd-num nbd-tree-found" });
    this.whole = el("button", { class: "nbd-edge", hidden: true, title: "Show everything (z)", onclick: () => handlers.onWhole() });
    this.find = el("input", {
      type: "search", class: "nbd-tree-find", placeholder: "Find in tree", "aria-label": "Find in tree", title: "Find (/)", dir: "auto",
      oninput: () => this.typed(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.filter = el("select", { class: "nbd-tree-filter", "aria-label": "Show", onchange: () => handlers.onFilter(/** @type {Filter} */ (this.filter.value)) },
      ...FILTERS.map(([value, label]) => el("option", { value }, label)));
    this.compare = el("button", { class: "nbd-compare-pins", title: "Pin two or more entries, then compare them", onclick: () => handlers.onCompare() });
    this.root = el("div", { class: "nbd-bar", role: "toolbar", "aria-label": "Tree" }, this.title, this.facts, el("span", { class: "nbd-gap" }),
      this.found, this.whole, this.find, this.filter, this.compare, el("button", { title: "Keys (?)", "aria-label": "Keys and actions", onclick: () => handlers.onHelp() }, "?"));
  }

  /** @param {import("./store.js").Store} store @param {number} pins @param {number} zoom @param {number | null} found how many a search found @param {Filter} filter */
  draw(store, pins, zoom, found, filter) {
    const { session, entries, branches, cost_usd, is_closed, replay } = store.head;
    const title = oneLine(session);
    setText(this.title, title);
    setAttr(this.title, "title", title);
    setText(this.facts, [...(entries || store.count ? [countOf(Math.max(entries, store.count), "entry", "entries"), countOf(branches, "branch", "branches")] : ["empty"]), usdText(cost_usd), is_closed && "closed", replay && "replay only"].filter(Boolean).join(" · "));
    if (this.filter.value !== filter) this.filter.value = filter;
    if (found === null && this.found.textContent) this.clear();
    setText(this.found, found === null ? "" : `${countOf(found, "entry", "entries")} found`);
    this.whole.hidden = zoom === 0;
    setText(this.whole, zoom ? `Below #${zoom} ×` : "");
    setText(this.compare, pins ? `Compare (${pins})` : "Compare");
    this.compare.disabled = pins < 2;
    this.compare.hidden = !pins;
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = /** @type {any} */ (setTimeout(() => this.handlers.onFind(this.find.value, false), FIND_AFTER_MS));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    clearTimeout(this.timer);
    if (event.key === "Escape") this.find.value = "";
    this.handlers.onFind(this.find.value, true);
  }

  clear() {
    clearTimeout(this.timer);
    this.find.value = "";
  }

  close() {
    clearTimeout(this.timer);
  }
}
