// @ts-check
/** The rows in sight, and a few around them, whatever the tree's size. */

import { el, oncePerFrame, setAttr, suppressShortcuts } from "../dom.js";
import { faceOfEntry, faceOfExperiment, faceOfRun } from "./faces.js";
import { BIT, Lines } from "./lines.js";
import { Paces } from "./pace.js";
import { ROW_PX, railOf } from "./rails.js";
import { Row } from "./row.js";

/** @typedef {import("./store.js").Store} Store */
/**
 * @typedef {object} Host  what rows need of the view around them
 * @property {Store} store
 * @property {string} prefix of the ids
 * @property {() => Set<number>} pins
 * @property {(line: number) => import("./row.js").Button[]} buttons for a selected line
 * @property {(ns: number[]) => void} wantPreviews asks for first words that are not there
 * @property {(what: string, line: number, detail: string, anchor: HTMLElement) => void} tell
 */

const OVERSCAN = 8;
const AHEAD = 60;
const SPARE = 40;
const TALLEST_PX = 33_000_000; // browsers cut elements off a little above
const WIDEST_RAILS = 0.38;
const LANE_PX = 16;
const CHAR_PX = 8; // of a wide letter: the last words of a run shall be in sight
const BESIDE_PX = 400; // what stands beside the words of a run
const EDGE_PX = 4; // room above the first row and below the last

export class Rows {
  /** @param {Host} host */
  constructor(host) {
    this.host = host;
    this.lines = new Lines(1);
    this.paces = new Paces();
    this.selected = "";
    this.height = 372;
    this.width = 560;
    this.pathEnd = -1;
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {Row[]} */
    this.spare = [];
    this.window = el("div", { class: "nbd-rows", role: "presentation" });
    this.spacer = el("div", { class: "nbd-spacer", role: "presentation" }, this.window);
    this.root = el("div", { class: "nbd-tree-list", role: "tree", tabindex: 0, "aria-label": "Entries" }, this.spacer);
    suppressShortcuts(this.root);
    this.draw = oncePerFrame(() => this.drawNow());
    this.top = 0;
    this.scrolled = () => {
      if (this.root.clientHeight) this.top = this.root.scrollTop;
      this.draw();
    };
    this.root.addEventListener("scroll", this.scrolled, { passive: true });
  }

  /** How many rows are in sight at once. */
  get page() { return Math.max(1, Math.floor(this.height / ROW_PX)); }

  /** Take the list's size. A host that took it out of the page gave its scroll up. @param {number} width @param {number} height */
  resize(width, height) {
    if (!height) return;
    if (this.root.scrollTop !== this.top) this.root.scrollTop = this.top;
    this.width = width;
    this.height = height;
    this.draw();
  }

  /** Take new lines; what was in sight stays where it was. @param {Lines} lines */
  take(lines) {
    const before = this.lines, top = Math.floor(this.root.scrollTop / ROW_PX);
    const anchor = before.length > top ? before.key[top] : 0;
    const isEntry = before.length > top && before.entryAt(top) > 0;
    this.lines = lines;
    this.spacer.style.height = `${Math.min(lines.length * ROW_PX + 2 * EDGE_PX, TALLEST_PX)}px`;
    this.pathEnd = lines.ofEntry(this.host.store.leaf);
    if (this.pathEnd < 0) for (let line = 0; line < lines.length; line++) if (this.isOn(line)) this.pathEnd = line;
    const next = this.pathEnd + 1;
    if (next < lines.length && lines.runAt(next) !== null && this.isOn(next)) this.pathEnd = next;
    const now = isEntry ? lines.ofEntry(anchor) : -1;
    if (now >= 0 && now !== top) this.root.scrollTop += (now - top) * ROW_PX;
    this.draw();
  }

  /** Whether a line lies on the active path; a run does when it grows at the leaf. @param {number} line */
  isOn(line) {
    const { lines, host } = this, n = lines.entryAt(line);
    if (n) return host.store.onPath(n);
    const run = lines.runAt(line);
    return run !== null && !lines.is(line, BIT.side) && host.store.live.get(run)?.parent === host.store.leaf;
  }

  /** Whether a line is in sight, whole. @param {number} line */
  inSight(line) {
    const top = EDGE_PX + line * ROW_PX - this.root.scrollTop;
    return line >= 0 && top >= 0 && top + ROW_PX <= this.height + 1;
  }

  /** Scroll as little as brings a line in sight. @param {number} line */
  reveal(line) {
    if (line < 0) return;
    const top = line * ROW_PX, bottom = top + ROW_PX + 2 * EDGE_PX, { scrollTop } = this.root;
    if (top < scrollTop) this.root.scrollTop = top;
    else if (bottom > scrollTop + this.height) this.root.scrollTop = bottom - this.height;
    this.draw();
  }

  /** The element of a line, when it is in sight. @param {number} line */
  element(line) {
    return line < 0 || line >= this.lines.length ? null : this.rows.get(this.lines.name(line))?.root ?? null;
  }

  /** Draw the window of rows; rows that stay keep their elements. */
  drawNow() {
    const { lines } = this, { scrollTop } = this.root;
    const from = Math.max(0, Math.floor(scrollTop / ROW_PX) - OVERSCAN);
    const to = Math.min(lines.length, Math.ceil((scrollTop + this.height) / ROW_PX) + OVERSCAN);
    const names = [];
    for (let line = from; line < to; line++) names.push(lines.name(line));
    const staying = new Set(names);
    for (const [name, row] of this.rows)
      if (!staying.has(name)) {
        this.rows.delete(name);
        this.spare.push(row); // stays in its place: the next row mostly stands there
      }
    this.window.style.transform = `translateY(${EDGE_PX + from * ROW_PX}px)`;
    let cursor = this.window.firstChild;
    names.forEach((name, at) => {
      const row = this.rows.get(name) ?? this.spare.shift() ?? new Row((told, what, detail, anchor) => this.host.tell(what, told.line, detail, anchor));
      this.rows.set(name, row);
      this.drawRow(row, name, from + at);
      if (row.root === cursor) cursor = cursor.nextSibling;
      else this.window.insertBefore(row.root, cursor);
    });
    for (const row of this.spare) row.root.remove();
    this.spare.length = Math.min(this.spare.length, SPARE);
    setAttr(this.root, "aria-activedescendant", this.rows.has(this.selected) ? this.idOf(this.selected) : null);
    this.wantTexts(from, to);
  }

  /** @param {string} name */
  idOf(name) {
    return `${this.host.prefix}-${name.replace(/[^\w-]/g, "_")}`;
  }

  /** @param {Row} row @param {string} name @param {number} line */
  drawRow(row, name, line) {
    const { lines, host } = this;
    row.line = line;
    const face = this.face(line), isOn = this.isOn(line), isSelected = name === this.selected;
    const isPassed = isOn ? false : line < this.pathEnd;
    row.draw({ ...face, isOn }, {
      id: this.idOf(name),
      rail: railOf(lines, line, face.shape, isOn, isPassed, isOn && line < this.pathEnd, this.step()),
      isSelected,
      isPinned: host.pins().has(lines.entryAt(line)),
      isOpen: lines.is(line, BIT.foldable) ? !lines.is(line, BIT.folded) : null,
      level: lines.level[line],
      place: lines.place[line],
      of: lines.of[line],
      buttons: isSelected ? host.buttons(line) : [],
    });
  }

  /** Pixels a level takes: fewer where the tree is deep and the room small. */
  step() {
    return Math.max(3, Math.min(LANE_PX, Math.floor((this.width * WIDEST_RAILS) / (this.lines.deepest + 1))));
  }

  /** What a line says. @param {number} line @returns {import("./faces.js").Face} */
  face(line) {
    const { lines, host: { store } } = this, group = lines.groupAt(line), run = lines.runAt(line);
    if (group) return faceOfExperiment(store, lines, line, group);
    const live = run === null ? null : store.live.get(run);
    if (!live) return faceOfEntry(store, lines, line, lines.entryAt(line));
    const chars = Math.max(12, Math.floor((this.width - BESIDE_PX - lines.depth[line] * this.step()) / CHAR_PX));
    return faceOfRun(live, this.paces.of(live), chars);
  }

  /** Write only what runs said, in their own rows. @param {Iterable<string>} runs */
  drawRuns(runs) {
    for (const run of runs) {
      const row = this.rows.get(run);
      if (row && this.lines.runAt(row.line) === run) row.write(this.face(row.line));
    }
  }

  /** Ask for the first words of rows in sight and of those that come next. @param {number} from @param {number} to */
  wantTexts(from, to) {
    const wanted = [];
    for (let line = Math.max(0, from - AHEAD); line < Math.min(this.lines.length, to + AHEAD); line++) {
      const n = this.lines.entryAt(line);
      if (n && this.host.store.preview(n) === undefined) wanted.push(n);
    }
    if (wanted.length) this.host.wantPreviews(wanted);
  }

  close() {
    this.draw.cancel();
    this.root.removeEventListener("scroll", this.scrolled);
  }
}
