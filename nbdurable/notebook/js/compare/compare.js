// @ts-check
/** Answers side by side: one table, so that turns stand on one line and scroll together. */
import { el, forwardToHost, put, setAttr, setText } from "../dom.js";
import { isTyping, statusLine } from "../frame.js";

/**
 * @typedef {{ name: string, text: string, best: boolean }} Fact
 * @typedef {{ key: number, n: number | null, name: string, badges: string[], labels: string[], facts: Fact[], votable: boolean }} Column
 * @typedef {{ runs: [string, string][], n: number | null, hidden: string | null }} Cell
 * @typedef {{ id: string, title: string, columns: Column[], shared: { count: number, rows: { n: number | null, role: string, text: string }[] }, turns: { role: string, cells: (Cell | null)[] }[], base: number, blind: boolean, voted: number | null, votes: Record<string, number> }} ComparisonBody
 * @typedef {{ onClose?: () => void, onPrefer?: (winner: number, losers: number[]) => void }} ComparisonHandlers
 */

const COMPARE_KEYS = [
  ["1 … 9", "prefer that column"],
  ["b", "blind: shuffle, and hide what the columns are until the vote"],
  ["d", "compare with the next column"],
  ["s", "show or hide the differences"],
  ["Esc", "close"],
];
const LONG_CHARS = 24; // what is longer is said once where all columns share it
const BADGES = new Map([["on path", "nbd-chip-leaf"], ["preferred", "nbd-chip-label"]]);

/**
 * Show a comparison in `host`, after what is there, until it is closed. The kernel's side answers
 * the act `compared` with the whole comparison anew.
 * @param {HTMLElement} host @param {import("../link.js").Link} link @param {ComparisonBody} body
 * @param {ComparisonHandlers} [handlers]
 */
export function showComparison(host, link, body, handlers = {}) {
  const shown = new ComparisonView(link, body, handlers);
  host.append(shown.root);
  return shown;
}

/** One comparison in the page. */
export class ComparisonView {
  /** @param {import("../link.js").Link} link @param {ComparisonBody} body @param {ComparisonHandlers} handlers */
  constructor(link, body, handlers) {
    this.link = link;
    this.body = body;
    this.handlers = handlers;
    this.isBusy = false;
    this.showsDiff = true;
    this.status = statusLine();
    this.title = el("span", { class: "nbd-num nbd-cmp-title" });
    this.base = el("select", { "aria-label": "Compare with", onchange: () => this.choose({ base: Number(this.base.value) }) });
    this.diff = el("button", { "aria-pressed": "true", onclick: () => this.toggleDiff() }, "Diff");
    this.blind = el("button", { "aria-pressed": "false", onclick: () => this.toggleBlind() }, "Blind");
    this.shared = el("details", { class: "nbd-cmp-shared" });
    this.scroll = el("div", { class: "nbd-cmp-scroll", tabindex: 0, role: "region", "aria-label": "Columns side by side" });
    this.help = el("dl", { class: "nbd-cmp-help", hidden: true }, ...COMPARE_KEYS.flatMap(([key, text]) => [
      el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]));
    this.root = el("section", { class: "nbd-cmp", "aria-label": "Comparison", onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) },
      this.bar(), this.help, this.shared, this.scroll, this.status.element);
    this.update(body);
  }

  bar() {
    const help = el("button", { "aria-label": "Keys", "aria-expanded": "false", onclick: () => {
      this.help.hidden = !this.help.hidden;
      setAttr(help, "aria-expanded", !this.help.hidden);
    } }, "?");
    this.helpButton = help;
    return el("div", { class: "nbd-bar" }, el("b", {}, "Compare"), this.title, el("span", { class: "nbd-gap" }),
      el("label", { class: "nbd-num nbd-cmp-base" }, "against ", this.base), this.diff, this.blind, help,
      this.handlers.onClose && el("button", { "aria-label": "Close the comparison", onclick: () => this.close() }, "✕"));
  }

  /** Show the comparison as it is now; scrolling, focus and open parts stay. @param {ComparisonBody} body */
  update(body) {
    const { scrollTop, scrollLeft } = this.scroll;
    const focused = this.root.contains(document.activeElement) ? document.activeElement?.getAttribute("data-nbd-key") : null;
    this.body = body;
    setText(this.title, body.title);
    this.title.title = body.title;
    this.base.replaceChildren(...body.columns.map((column) =>
      el("option", { value: column.key, selected: column.key === body.base }, column.name)));
    setAttr(this.blind, "aria-pressed", body.blind);
    this.showShared();
    this.scroll.replaceChildren(this.table());
    Object.assign(this.scroll, { scrollTop, scrollLeft });
    if (focused) /** @type {HTMLElement | null} */ (this.scroll.querySelector(`[data-nbd-key="${focused}"]`))?.focus();
  }

  showShared() {
    const { count, rows } = this.body.shared;
    this.shared.hidden = !count;
    const items = rows.map((row) => el("li", { dir: "auto" },
      el("span", { class: "nbd-num" }, row.n === null ? "" : `#${row.n} `, row.role, " "), row.text));
    if (count > rows.length) items.unshift(el("li", {}, `… ${count - rows.length} more`));
    this.shared.replaceChildren(
      el("summary", {}, count === 1 ? "1 shared entry" : `${count} shared entries`), el("ul", {}, ...items));
  }

  table() {
    const { columns, turns } = this.body;
    const width = `calc(${columns.length} * var(--nbd-cmp-column) + 104px)`;
    const facts = columns[0].facts.map((fact, at) => el("tr", { class: "nbd-cmp-fact" },
      el("th", { scope: "row" }, fact.name), ...factCells(columns.map((column) => column.facts[at]))));
    return el("table", { class: "nbd-cmp-table", style: `min-width: ${width}` },
      el("caption", { class: "nbd-hidden" }, this.body.title),
      el("thead", {}, el("tr", {}, el("td", {}), ...columns.map(headCell))),
      el("tbody", {}, ...facts),
      el("tbody", {}, ...turns.map((turn) => el("tr", { class: "nbd-cmp-said" },
        el("th", { scope: "row" }, turn.role), ...turn.cells.map((cell) => this.saidCell(cell))))),
      el("tfoot", {}, el("tr", {}, el("th", { scope: "row" }, el("span", { class: "nbd-hidden" }, "vote")),
        ...columns.map((column) => this.voteCell(column)))));
  }

  /** @param {Cell | null} cell */
  saidCell(cell) {
    const made = el("td", { dir: "auto" });
    let before = "same";
    for (const [kind, text] of cell?.runs ?? []) {
      if (kind === "same" || (kind === "add" && !this.showsDiff)) put(made, text);
      else if (this.showsDiff) {
        // a blank before a change, struck or marked, would look like a change of its own
        const blanks = text.trim() ? text.length - text.trimStart().length : 0;
        put(made, text.slice(0, blanks));
        made.append(el(kind === "add" ? "ins" : "del", { class: blanks || before === "same" ? false : "nbd-beside" }, text.slice(blanks)));
      }
      before = kind;
    }
    if (cell?.hidden) made.append(el("div", { class: "nbd-num", dir: "ltr" }, cell.hidden));
    return made;
  }

  /** @param {Column} column */
  voteCell(column) {
    const votes = this.body.votes[column.key];
    return el("td", {}, el("button", {
      class: this.body.voted === column.key ? "nbd-edge nbd-cmp-voted" : "nbd-edge", disabled: !column.votable,
      "data-nbd-key": column.key, onclick: () => this.prefer(column.key),
    }, "Prefer", el("span", { class: "nbd-hidden" }, ` ${column.name} `), column.key <= 9 && el("kbd", {}, column.key)), votes && el("span", { class: "nbd-num" }, `preferred ${votes}×`));
  }

  // -- what is done ------------------------------------------------------------------------------

  /** Ask the kernel for the comparison with other choices. @param {Record<string, any>} choices @returns {Promise<boolean>} */
  async choose(choices) {
    if (this.isBusy) return false;
    this.isBusy = true;
    setAttr(this.root, "aria-busy", true);
    try {
      this.update(await this.link.act("compared", { id: this.body.id, ...choices },
        (stage) => { if (stage === "queued") this.status.say("kernel busy, queued"); }));
      this.status.say("");
      return true;
    } catch (error) {
      this.status.say(String(/** @type {Error} */ (error).message), true);
      this.update(this.body);
      return false;
    } finally {
      this.isBusy = false;
      setAttr(this.root, "aria-busy", null);
    }
  }

  /** @param {number} key */
  async prefer(key) {
    const wasBlind = this.body.blind;
    const letter = this.body.columns[key - 1]?.name;
    if (!this.body.columns[key - 1]?.votable || !(await this.choose({ prefer: key }))) return;
    const { columns } = this.body;
    const chosen = columns[key - 1];
    this.status.say(wasBlind ? `${letter} was ${chosen.name}: preferred` : `${chosen.name} preferred`);
    if (chosen.n !== null)
      this.handlers.onPrefer?.(chosen.n, columns.flatMap((other) => (other === chosen || other.n === null ? [] : [other.n])));
  }

  toggleBlind() { return this.choose({ blind: !this.body.blind }); }

  toggleDiff() {
    this.showsDiff = !this.showsDiff;
    setAttr(this.diff, "aria-pressed", this.showsDiff);
    this.update(this.body);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (forwardToHost(this.root, event) || event.altKey) return;
    if (event.key === "Escape" && this.handlers.onClose) this.close();
    else if (isTyping(event)) return;
    else if (/^[1-9]$/.test(event.key)) this.prefer(Number(event.key));
    else if (event.key === "b") this.toggleBlind();
    else if (event.key === "d") this.choose({ base: (this.body.base % this.body.columns.length) + 1 });
    else if (event.key === "s") this.toggleDiff();
    else if (event.key === "?") this.helpButton?.click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  focus() { this.scroll.focus(); }

  close() {
    if (!this.root.isConnected) return;
    this.root.remove();
    this.handlers.onClose?.();
  }
}

/** @param {Column} column */
function headCell(column) {
  return el("th", { scope: "col" }, el("bdi", { class: "nbd-cmp-name" }, column.name), ...column.badges.map((badge) =>
    el("span", { class: `nbd-chip ${BADGES.get(badge) ?? ""}` }, badge)),
  ...column.labels.map((label) => el("span", { class: "nbd-chip nbd-chip-label", title: label, dir: "auto" }, label)));
}

/** The cells of one line of facts; a long text that all share stands there once. @param {Fact[]} facts */
function factCells(facts) {
  const [first] = facts;
  const isShared = facts.length > 1 && first.text.length > LONG_CHARS && facts.every(({ text }) => text === first.text);
  return isShared ? [factCell(first, facts.length)] : facts.map((fact) => factCell(fact));
}

/** @param {Fact} fact @param {number | null} [span] columns it is said of, when several */
function factCell(fact, span = null) {
  return el("td", { colspan: span, dir: "auto", class: fact.best && "nbd-best", title: fact.text }, fact.text,
    fact.best && el("span", { class: "nbd-hidden" }, " (best)"));
}
