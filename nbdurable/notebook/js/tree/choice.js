// @ts-check
/** What of the tree is seen, and which row of it is chosen. */

import { FLAG } from "./store.js";
import { BIT, layOut } from "./lines.js";

/** @typedef {import("./store.js").Store} Store @typedef {import("./store.js").Changed} Changed @typedef {import("./rows.js").Rows} Rows @typedef {import("./tree.js").View} View */

export class Choice {
  /** @param {Store} store @param {Rows} rows @param {View} view @param {() => void} onChange told when another row is chosen */
  constructor(store, rows, view, onChange) {
    this.store = store;
    this.rows = rows;
    this.view = view;
    this.onChange = onChange;
    /** @type {import("./lines.js").Shown} */
    this.shown = { folded: new Set(), opened: new Set(), zoom: 0, keep: null };
    /** @type {import("./bar.js").Filter} */
    this.filter = "all";
    /** @type {Set<number> | null} */
    this.found = null;
    /** @type {string | null} */
    this.awaited = null;
  }

  get lines() { return this.rows.lines; }

  /** The line that is chosen, or -1. */
  get line() {
    const { selected, selectedRun } = this.view;
    if (selectedRun !== null) return this.lines.ofRun(selectedRun);
    if (selected) return this.lines.ofEntry(selected);
    const { selected: name } = this.rows;
    for (let line = 0; name.startsWith("x") && line < this.lines.length; line++) if (this.lines.groupAt(line) && this.lines.name(line) === name) return line;
    return -1;
  }

  /** Lay the tree out anew. */
  layOut() {
    this.shown.keep = this.keep();
    this.rows.take(layOut(this.store, this.shown));
  }

  /** @returns {((n: number) => boolean) | null} */
  keep() {
    const { store, found, filter } = this;
    if (!found && filter === "all") return null;
    return (n) => (!found || found.has(n)) && (filter === "all" || (filter === "marked" ? store.marks(n) !== null : store.role(n) === "user" && !(store.flags(n) & FLAG.meta)));
  }

  /** Choose a line and bring it in sight. @param {number} line */
  choose(line) {
    if (line < 0 || line >= this.lines.length) return;
    this.view.selected = this.lines.entryAt(line);
    this.view.selectedRun = this.lines.runAt(line);
    this.rows.selected = this.lines.name(line);
    this.rows.reveal(line);
    this.onChange();
  }

  /** Choose an entry, wherever it is hidden. @param {number} n */
  chooseEntry(n) {
    if (!this.store.has(n)) return;
    if (this.lines.ofEntry(n) < 0) this.uncover(n);
    this.choose(this.lines.ofEntry(n));
  }

  /** Unfold, and leave filter and zoom, as far as an entry needs it. @param {number} n */
  uncover(n) {
    if (this.shown.keep && !this.shown.keep(n)) {
      this.found = null;
      this.filter = "all";
    }
    const path = this.store.path(n);
    if (this.shown.zoom && !path.includes(this.shown.zoom)) this.shown.zoom = 0;
    for (const at of path) {
      if (at !== n) this.shown.folded.delete(at);
      if (this.store.exp(at) >= 0) this.shown.opened.add(this.store.exp(at));
    }
    this.layOut();
  }

  /** Fold or unfold a line; what was chosen inside gives way to it. @param {number} line @param {boolean} [isOpen] as it shall be */
  fold(line, isOpen = this.lines.is(line, BIT.folded)) {
    const group = this.lines.groupAt(line), n = this.lines.entryAt(line), name = this.lines.name(line);
    if (!this.lines.is(line, BIT.foldable)) return;
    if (group) toggle(this.shown.opened, group.exp, isOpen);
    else toggle(this.shown.folded, n, !isOpen);
    const hadChosen = this.line >= 0;
    this.layOut();
    if (hadChosen && this.line < 0) this.choose(this.lineOf(name));
  }

  /** @param {string} name */
  lineOf(name) {
    for (let line = 0; line < this.lines.length; line++) if (this.lines.name(line) === name) return line;
    return -1;
  }

  /** Show only what is below an entry; 0 for everything. @param {number} n */
  zoom(n) {
    this.shown.zoom = this.store.has(n) ? n : 0;
    this.layOut();
    if (this.line < 0) this.choose(0);
    else this.rows.reveal(this.line);
  }

  /** Choose the sibling before (-1) or after (1) an entry. @param {number} n @param {number} step */
  sibling(n, step) {
    const around = this.store.siblingsOf(n);
    const next = around[(around.indexOf(n) + step + around.length) % around.length];
    if (next !== n) this.chooseEntry(next);
  }

  /** Whether the view is where the session grows, so that it goes along. */
  isFollowing() {
    const { view, store } = this;
    return view.selectedRun === null && this.line < 0 ? view.selected === 0 : view.selected === store.leaf;
  }

  /** Whether the place where the session grows is in sight. */
  isEndInSight() {
    return this.lines.length === 0 || this.rows.inSight(Math.max(0, this.rows.pathEnd));
  }

  /** Go along with what came. @param {Changed} changed @param {boolean} wasFollowing @param {boolean} wasInSight */
  follow(changed, wasFollowing, wasInSight) {
    const { store, view } = this;
    if (this.awaited !== null && store.live.has(this.awaited)) {
      const line = this.lines.ofRun(this.awaited);
      this.awaited = null;
      if (line >= 0) return this.choose(line);
    }
    const ended = changed.ended.find(({ run }) => run === view.selectedRun);
    if (ended) return this.chooseEntry(changed.added.findLast((n) => store.parentOf(n) === ended.parent) ?? (ended.parent || store.leaf));
    if (wasFollowing) {
      for (const row of store.live.values())
        if (row.parent === store.leaf && row.exp < 0 && this.lines.ofRun(row.run) >= 0) return this.choose(this.lines.ofRun(row.run));
      if (view.selected !== store.leaf && store.leaf) this.chooseEntry(store.leaf);
    } else if (wasInSight && this.rows.pathEnd >= 0) this.rows.reveal(this.rows.pathEnd);
  }
}

/** @template T @param {Set<T>} set @param {T} item @param {boolean} isIn */
function toggle(set, item, isIn) {
  if (isIn) set.add(item);
  else set.delete(item);
}
