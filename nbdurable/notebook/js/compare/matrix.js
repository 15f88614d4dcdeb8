// @ts-check
/** An experiment as a matrix: rows of what varies, columns of samples; chosen cells are compared. */
import { showComparison } from "./compare.js";
import { el, forwardToHost, setAttr, setText } from "../dom.js";
import { durationText, usdText } from "../figures.js";
import { isTyping, statusLine, widgetRoot } from "../frame.js";
import { Link } from "../link.js";

/**
 * @typedef {{ i: number, n: number | null, state: string, text: string, group: number | null, scores: Record<string, number> }} MatrixCell
 * @typedef {{ labels: string[], cells: (MatrixCell | null)[], agreement: number | null, scores: Record<string, number | null>, cost: number | null, seconds: number | null }} MatrixRow
 * @typedef {{ title: string, axes: string[], across: string, heads: string[], scores: string[], running: number, rows: MatrixRow[] }} MatrixBody
 * @typedef {{ name: string, of: (row: MatrixRow) => string | number | null, form?: (value: any) => string }} MatrixColumn
 */

const ROWS_SHOWN = 300;
const LOOK_EVERY_MS = 1000;
const CELLS_COMPARED = 24;
const ARROWS = new Map([["ArrowUp", [-1, 0]], ["ArrowDown", [1, 0]], ["ArrowLeft", [0, -1]], ["ArrowRight", [0, 1]]]);

/** Compare two values for sorting; what is unknown comes last either way. @param {any} a @param {any} b @param {number} sign */
export function inOrder(a, b, sign) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), undefined, { numeric: true });
}

export class MatrixView {
  /** @param {import("../link.js").Model} model @param {HTMLElement} host */
  constructor(model, host) {
    /** @type {MatrixBody} */
    this.body = { title: "", axes: [], across: "", heads: [], scores: [], running: 0, rows: [] };
    /** @type {Set<number>} */
    this.chosen = new Set();
    this.sorted = { by: "", sign: 1 };
    this.at = [0, 0];
    /** @type {any} */
    this.timer = 0;
    this.status = statusLine();
    this.title = el("b", {});
    this.compare = el("button", { class: "nbd-edge", disabled: true, onclick: () => this.compareChosen() }, "Compare");
    this.clear = el("button", { hidden: true, onclick: () => this.choose([]) }, "Clear");
    this.scroll = el("div", { class: "nbd-cmp-scroll nbd-matrix-scroll", tabindex: 0, role: "region", "aria-label": "Cells of the experiment" });
    this.below = el("div", { class: "nbd-matrix-below" });
    this.root = widgetRoot(model, host, "nbd-matrix");
    this.root.append(el("div", { class: "nbd-bar" }, this.title, el("span", { class: "nbd-num nbd-matrix-hint" }, "choose cells to compare them"),
      el("span", { class: "nbd-gap" }), this.clear, this.compare), this.scroll, this.status.element, this.below);
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.link = new Link(model, { onSnapshot: (body) => this.update(body), onOps: () => {}, onTrouble: (text) => this.status.say(text, true) });
  }

  /** @param {MatrixBody} body */
  update(body) {
    this.body = body;
    this.draw();
    clearTimeout(this.timer);
    if (body.running) this.timer = setTimeout(() => this.look(), LOOK_EVERY_MS);
  }

  /** Look again while cells run. */
  async look() {
    try {
      this.update(await this.link.ask("look"));
    } catch (error) {
      this.status.say(/** @type {Error} */ (error).message, true);
    }
  }

  /** @returns {MatrixColumn[]} */
  figures() {
    return [
      { name: "agreement", of: (row) => row.agreement, form: (value) => `${Math.round(value * 100)}%` },
      ...this.body.scores.map((name) => ({ name, of: (/** @type {MatrixRow} */ row) => row.scores[name] ?? null, form: (/** @type {number} */ value) => String(Number(value.toPrecision(4))) })),
      { name: "cost", of: (row) => row.cost, form: usdText },
      { name: "time", of: (row) => row.seconds, form: durationText },
    ];
  }

  draw() {
    const { body } = this;
    const hadFocus = this.scroll.contains(document.activeElement) && document.activeElement !== this.scroll;
    setText(this.title, body.title);
    const axes = body.axes.map((name, at) => ({ name, of: (/** @type {MatrixRow} */ row) => row.labels[at] }));
    const figures = this.figures();
    const rows = this.rowsInOrder([...axes, ...figures]);
    const heads = body.heads.map((head) => el("th", { scope: "col", dir: "auto" }, body.heads.length > 1 ? `${body.across} ${head}` : "answer"));
    const { scrollTop, scrollLeft } = this.scroll;
    this.scroll.replaceChildren(el("table", { class: "nbd-matrix-table" },
      el("caption", { class: "nbd-hidden" }, body.title),
      el("thead", {}, el("tr", {}, ...axes.map((axis) => this.head(axis)), ...heads, ...figures.map((figure) => this.head(figure, true)))),
      el("tbody", {}, ...rows.slice(0, ROWS_SHOWN).map((row, at) => this.row(row, at, figures)))));
    if (rows.length > ROWS_SHOWN) this.scroll.append(el("div", { class: "nbd-num nbd-matrix-more" }, `… ${rows.length - ROWS_SHOWN} more rows; df() has all`));
    Object.assign(this.scroll, { scrollTop, scrollLeft });
    this.mark();
    if (hadFocus) this.button(this.at[0], this.at[1])?.focus();
  }

  /** @param {MatrixColumn[]} columns */
  rowsInOrder(columns) {
    const column = columns.find((one) => one.name === this.sorted.by);
    if (!column) return this.body.rows;
    return [...this.body.rows].sort((a, b) => inOrder(column.of(a), column.of(b), this.sorted.sign));
  }

  /** @param {MatrixColumn} column @param {boolean} [isFigure] */
  head(column, isFigure = false) {
    const { by, sign } = this.sorted;
    const order = by !== column.name ? "none" : sign > 0 ? "ascending" : "descending";
    const arrow = { none: "", ascending: " ↑", descending: " ↓" }[order];
    return el("th", { scope: "col", "aria-sort": order, class: isFigure && "nbd-matrix-figure" },
      el("button", { dir: "auto", onclick: () => this.sort(column.name, isFigure) }, column.name, arrow));
  }

  /** Sort by a column: figures the highest first; a third time gives the given order back. @param {string} by @param {boolean} isFigure */
  sort(by, isFigure) {
    const first = isFigure ? -1 : 1;
    if (this.sorted.by !== by) this.sorted = { by, sign: first };
    else if (this.sorted.sign === first) this.sorted = { by, sign: -first };
    else this.sorted = { by: "", sign: 1 };
    this.draw();
    const names = [...this.body.axes, ...this.figures().map((one) => one.name)];
    const heads = /** @type {NodeListOf<HTMLElement>} */ (this.scroll.querySelectorAll("thead button"));
    heads[names.indexOf(by)]?.focus();
  }

  /** @param {MatrixRow} row @param {number} at @param {MatrixColumn[]} figures */
  row(row, at, figures) {
    const shares = row.cells.some((cell) => cell?.group);
    return el("tr", {}, ...row.labels.map((label, place) => el(place ? "td" : "th", { scope: place ? null : "row", dir: "auto", class: "nbd-matrix-label", title: label }, label)),
      ...row.cells.map((cell, place) => el("td", { class: "nbd-matrix-cell" }, cell && this.cell(cell, at, place, shares))),
      ...figures.map(({ of, form }) => {
        const value = of(row);
        return el("td", { class: "nbd-matrix-figure" }, value === null ? "–" : form?.(value));
      }));
  }

  /** @param {MatrixCell} cell @param {number} row @param {number} column @param {boolean} shares */
  cell(cell, row, column, shares) {
    const group = shares && cell.group !== null ? String.fromCharCode(97 + Math.min(cell.group, 25)) : null;
    return el("button", { "data-i": cell.i, "data-at": `${row}:${column}`, tabindex: -1, "aria-pressed": "false", title: cell.text,
      class: cell.group ? "nbd-matrix-other" : null, disabled: cell.n === null, onclick: () => { this.at = [row, column]; this.toggle(cell.i); } },
    group && el("span", { class: "nbd-matrix-group", title: "equal answers of a row have the same letter" }, group),
    cell.state !== "done" && el("span", { class: `nbd-chip ${cell.state === "error" ? "nbd-chip-bad" : ""}` }, cell.state),
    el("span", { class: "nbd-matrix-text", dir: "auto" }, cell.text));
  }

  // -- what is chosen ----------------------------------------------------------------------------

  /** @param {number} i */
  toggle(i) {
    const chosen = new Set(this.chosen);
    if (!chosen.delete(i)) chosen.add(i);
    this.choose(chosen);
  }

  /** @param {Iterable<number>} chosen */
  choose(chosen) {
    this.chosen = new Set(chosen);
    this.mark();
  }

  mark() {
    const size = this.chosen.size;
    this.compare.disabled = size < 2 || size > CELLS_COMPARED;
    setText(this.compare, size ? `Compare (${size})` : "Compare");
    this.clear.hidden = !size;
    const buttons = /** @type {NodeListOf<HTMLElement>} */ (this.scroll.querySelectorAll("button[data-i]"));
    for (const button of buttons) setAttr(button, "aria-pressed", this.chosen.has(Number(button.dataset.i)));
    const current = this.button(this.at[0], this.at[1]) ?? buttons[0];
    for (const button of buttons) setAttr(button, "tabindex", button === current ? 0 : -1);
  }

  /** @param {number} row @param {number} column @returns {HTMLElement | null} */
  button(row, column) {
    return this.scroll.querySelector(`button[data-at="${row}:${column}"]`);
  }

  async compareChosen() {
    if (this.compare.disabled) return;
    try {
      const body = await this.link.ask("compare_cells", { cells: [...this.chosen] });
      this.comparison?.close();
      this.comparison = showComparison(this.below, this.link, body, { onClose: () => this.compare.focus() });
      this.comparison.focus();
      this.status.say("");
    } catch (error) {
      this.status.say(/** @type {Error} */ (error).message, true);
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (forwardToHost(this.root, event) || isTyping(event) || this.below.contains(/** @type {Node} */ (event.target))) return;
    const step = ARROWS.get(event.key);
    const isOnCell = /** @type {HTMLElement} */ (event.target).dataset?.at !== undefined;
    if (step && isOnCell) this.walk(step[0], step[1]);
    else if (event.key === "v") this.compareChosen();
    else if (event.key === "Escape" && this.chosen.size) this.choose([]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} down @param {number} right */
  walk(down, right) {
    let [row, column] = this.at;
    for (let tries = 0; tries < this.body.rows.length + this.body.heads.length; tries++) {
      row += down;
      column += right;
      const found = /** @type {HTMLButtonElement | null} */ (this.button(row, column));
      if (row < 0 || column < 0 || row >= this.body.rows.length || column >= this.body.heads.length) return;
      if (!found || found.disabled) continue;
      this.at = [row, column];
      this.mark();
      return found.focus();
    }
  }

  close() {
    clearTimeout(this.timer);
    this.link.close();
    this.root.remove();
  }
}

/** @param {{ model: import("../link.js").Model, el: HTMLElement }} props */
function render({ model, el: host }) {
  const view = new MatrixView(model, host);
  return () => view.close();
}

export default { render };
