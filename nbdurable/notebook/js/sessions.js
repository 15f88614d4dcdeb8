// @ts-check
/** The sessions of a store: a table that sorts, searches and holds only the rows in sight. */
import { el, forwardToHost, oncePerFrame, setAttr, setText } from "./dom.js";
import { isTyping, statusLine, widgetRoot } from "./frame.js";
import { Link } from "./link.js";

/**
 * @typedef {{ id: string, title: string, entries: number, branches: number, models: string, cost: number, at: number, parent: string | null, found: string | null }} SessionRow
 * @typedef {{ total: number, found: number, first: number, rows: SessionRow[], forks?: boolean }} SessionWindow
 * @typedef {{ key: string, name: string, isNumber?: boolean, of: (row: SessionRow) => string }} SessionColumn
 */

const SESSION_ROW_PX = 26;
const SESSION_ROWS_IN_SIGHT = 14;
const SESSION_WINDOW = 100;
const SESSION_OVERSCAN = 6;
const SEARCH_AFTER_MS = 250;

/** @type {SessionColumn[]} */
const SESSION_COLUMNS = [
  { key: "title", name: "session", of: (row) => row.title || "(no text)" },
  { key: "entries", name: "entries", isNumber: true, of: (row) => row.entries.toLocaleString("en") },
  { key: "branches", name: "branches", isNumber: true, of: (row) => row.branches.toLocaleString("en") },
  { key: "models", name: "models", of: (row) => row.models },
  { key: "cost", name: "cost", isNumber: true, of: (row) => (row.cost ? costOf(row.cost) : "") },
  { key: "at", name: "last activity", isNumber: true, of: (row) => timeOf(row.at) },
  { key: "parent", name: "forked from", of: (row) => row.parent ?? "" },
];

/** @param {number} usd */
function costOf(usd) {
  if (usd < 0.00005) return "<$0.0001";
  return usd < 1 ? `$${usd.toFixed(4)}` : `$${usd.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** Say a time of this place, to the minute. @param {number} ms @param {Date} [now] */
export function timeOf(ms, now = new Date()) {
  const date = new Date(ms);
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (date.toDateString() === now.toDateString()) return `today ${time}`;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

/** A store's name without its folder; the address of a server is one name. @param {string} store */
export function fileOf(store) {
  return store.includes("://") ? store : store.replace(/^.*[/\\](?=.)/, "");
}

let sessionViews = 0;

export class SessionsView {
  /** @param {import("./link.js").Model} model @param {HTMLElement} host */
  constructor(model, host) {
    this.name = `nbd-sessions-${++sessionViews}`;
    this.asked = { query: "", sort: "at", down: true };
    this.version = 0;
    this.total = this.found = 0;
    this.at = 0;
    /** @type {string | null} */
    this.open = null;
    /** @type {Map<number, SessionRow>} */
    this.rows = new Map();
    /** @type {Set<number>} */
    this.wanted = new Set();
    /** @type {any} */
    this.typing = 0;
    this.drawSoon = oncePerFrame(() => this.draw());
    this.status = statusLine();
    this.title = el("b", {});
    this.count = el("span", { class: "nbd-num" });
    this.query = el("input", { type: "search", placeholder: "Find a session or a text", "aria-label": "Find a session or a text", oninput: () => this.typed() });
    this.heads = new Map(SESSION_COLUMNS.map((column) => [column.key, el("button", { onclick: () => this.sort(column) }, column.name)]));
    this.head = el("div", { class: "nbd-sess-row nbd-sess-head", role: "row", "aria-rowindex": 1 }, ...SESSION_COLUMNS.map((column) =>
      el("div", { role: "columnheader", "aria-sort": "none", class: column.isNumber && "nbd-sess-number" }, this.heads.get(column.key))));
    this.space = el("div", { class: "nbd-sess-space", role: "presentation" });
    this.empty = el("div", { class: "nbd-sess-empty", hidden: true });
    this.grid = el("div", { class: "nbd-sess-grid", role: "grid", tabindex: 0, "aria-label": "Sessions", "aria-colcount": SESSION_COLUMNS.length,
      onscroll: () => this.drawSoon() }, this.head, this.space);
    this.shut = el("button", { hidden: true, onclick: () => this.close_() }, "Close session");
    this.root = widgetRoot(model, host, "nbd-sessions");
    this.root.append(el("div", { class: "nbd-bar" }, this.title, this.count, el("span", { class: "nbd-gap" }), this.shut, this.query,
      el("button", { onclick: () => this.ask(true), "aria-label": "Read the store again", title: "Read the store again" }, "↻")), this.grid, this.empty, this.status.element);
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.link = new Link(model, {
      onSnapshot: (body) => this.load(body),
      onOps: (ops) => { for (const op of ops) if (op.op === "open") { this.open = op.id; this.draw(); } },
      onTrouble: (text) => this.status.say(text, true),
    });
  }

  /** Take the whole state. @param {SessionWindow & { store: string, open: string | null }} body */
  load(body) {
    setText(this.title, fileOf(body.store));
    this.title.title = body.store;
    this.open = body.open;
    if (this.asked.query || this.asked.sort !== "at" || !this.asked.down) this.ask();
    else this.take(body, ++this.version);
  }

  /** Take some rows. @param {SessionWindow} body @param {number} version */
  take(body, version) {
    if (version !== this.version) return;
    if (body.first === 0) this.rows.clear();
    this.total = body.total;
    this.found = body.found;
    this.root.classList.toggle("nbd-sess-flat", body.forks === false);
    setAttr(this.grid, "aria-colcount", SESSION_COLUMNS.length - (body.forks === false ? 1 : 0));
    body.rows.forEach((row, at) => this.rows.set(body.first + at, row));
    this.wanted.delete(body.first);
    this.at = Math.max(0, Math.min(this.at, this.found - 1));
    this.draw();
  }

  /** Ask for the rows from the first on, as they are sorted and searched for now. @param {boolean} [fresh] */
  async ask(fresh = false) {
    const version = ++this.version;
    this.wanted.clear();
    try {
      const body = await this.link.ask("rows", { ...this.asked, first: 0, size: SESSION_WINDOW, fresh });
      if (version !== this.version) return;
      this.grid.scrollTop = 0;
      this.at = 0;
      this.take(body, version);
      this.status.say("");
    } catch (error) {
      this.status.say(/** @type {Error} */ (error).message, true);
    }
  }

  /** Ask for a window of rows that is in sight and not here. @param {number} first */
  async want(first) {
    if (this.wanted.has(first)) return;
    this.wanted.add(first);
    const { version } = this;
    try {
      this.take(await this.link.ask("rows", { ...this.asked, first, size: SESSION_WINDOW }), version);
    } catch (error) {
      this.status.say(/** @type {Error} */ (error).message, true);
    }
  }

  // -- drawing -----------------------------------------------------------------------------------

  draw() {
    const { grid, found } = this;
    setText(this.count, `${found.toLocaleString("en")}${found === this.total ? "" : ` of ${this.total.toLocaleString("en")}`} ${this.total === 1 ? "session" : "sessions"}`);
    for (const { key } of SESSION_COLUMNS) {
      const order = this.asked.sort !== key ? "none" : this.asked.down ? "descending" : "ascending";
      const button = /** @type {HTMLElement} */ (this.heads.get(key));
      setAttr(/** @type {HTMLElement} */ (button.parentElement), "aria-sort", order);
      setText(button, `${SESSION_COLUMNS.find((one) => one.key === key)?.name}${{ none: "", ascending: " ↑", descending: " ↓" }[order]}`);
    }
    setAttr(grid, "aria-rowcount", found + 1);
    this.shut.hidden = this.open === null;
    this.empty.hidden = found > 0;
    setText(this.empty, this.total ? "No session fits." : "No sessions yet; nb.open() makes one.");
    this.grid.style.height = `${(Math.min(Math.max(found, 1), SESSION_ROWS_IN_SIGHT) + 1) * SESSION_ROW_PX + 2}px`;
    this.space.style.height = `${found * SESSION_ROW_PX}px`;
    const top = Math.max(0, Math.floor(grid.scrollTop / SESSION_ROW_PX) - SESSION_OVERSCAN);
    const end = Math.min(found, top + SESSION_ROWS_IN_SIGHT + 2 * SESSION_OVERSCAN);
    const made = [];
    for (let at = top; at < end; at++) {
      const row = this.rows.get(at);
      if (row) made.push(this.row(row, at));
      else this.want(Math.floor(at / SESSION_WINDOW) * SESSION_WINDOW);
    }
    this.space.replaceChildren(...made);
    setAttr(grid, "aria-activedescendant", this.rows.has(this.at) && this.at >= top && this.at < end ? `${this.name}-${this.at}` : null);
  }

  /** @param {SessionRow} row @param {number} at */
  row(row, at) {
    const isOpen = row.id === this.open;
    return el("div", { class: `nbd-sess-row${at === this.at ? " nbd-sess-at" : ""}${isOpen ? " nbd-sess-open" : ""}`, role: "row", id: `${this.name}-${at}`,
      "aria-rowindex": at + 2, "aria-selected": at === this.at, style: `top: ${at * SESSION_ROW_PX}px`, onclick: () => { this.at = at; this.openRow(); } },
    ...SESSION_COLUMNS.map((column) => {
      const text = column.of(row);
      return el("div", { role: "gridcell", class: column.isNumber ? "nbd-sess-number" : column.key === "title" ? "nbd-sess-title" : null, title: column.key === "title" ? `${row.title}\n${row.id}` : text },
        column.key === "title" && isOpen && el("span", { class: "nbd-chip nbd-chip-leaf" }, "open"),
        el("bdi", {}, text), column.key === "title" && el("span", { class: "nbd-num", dir: "auto" }, row.found ?? row.id));
    }));
  }

  // -- what is done ------------------------------------------------------------------------------

  typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.search(), SEARCH_AFTER_MS);
  }

  search() {
    clearTimeout(this.typing);
    if (this.query.value.trim() === this.asked.query) return;
    this.asked.query = this.query.value.trim();
    this.ask();
  }

  /** @param {SessionColumn} column */
  sort(column) {
    const isSame = this.asked.sort === column.key;
    this.asked = { ...this.asked, sort: column.key, down: isSame ? !this.asked.down : Boolean(column.isNumber) };
    this.ask();
  }

  /** Open the chosen row's session; while one is being opened, only the last that is wanted is next. */
  async openRow() {
    const row = this.rows.get(this.at);
    if (!row) return;
    this.draw();
    const isOpening = this.toOpen !== "";
    this.toOpen = row.id;
    if (isOpening) return;
    try {
      for (let opened = ""; opened !== this.toOpen; ) {
        opened = this.toOpen;
        this.status.say("opening …");
        const { code } = await this.link.act("open", { id: opened }, (stage) => { if (stage === "queued") this.status.say("kernel busy, queued"); });
        this.status.say(code);
      }
    } catch (error) {
      this.status.say(/** @type {Error} */ (error).message, true);
    }
    this.toOpen = "";
  }

  toOpen = "";

  async close_() {
    try {
      await this.link.act("shut");
      this.status.say("");
      this.grid.focus();
    } catch (error) {
      this.status.say(/** @type {Error} */ (error).message, true);
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (forwardToHost(this.root, event)) return;
    if (isTyping(event)) {
      if (event.key === "Enter" || event.key === "ArrowDown") { this.search(); this.grid.focus(); }
      else if (event.key === "Escape" && this.query.value) { this.query.value = ""; this.search(); }
      else return;
    } else if (event.key === "/") this.query.focus();
    else if (event.target !== this.grid || !this.move(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} key @returns {boolean} */
  move(key) {
    const by = new Map([["ArrowDown", 1], ["ArrowUp", -1], ["PageDown", SESSION_ROWS_IN_SIGHT - 1], ["PageUp", 1 - SESSION_ROWS_IN_SIGHT], ["Home", -Infinity], ["End", Infinity]]).get(key);
    if (key === "Enter") this.openRow();
    else if (by === undefined) return false;
    else {
      this.at = Math.max(0, Math.min(this.found - 1, this.at + by));
      const top = this.at * SESSION_ROW_PX, inSight = SESSION_ROWS_IN_SIGHT * SESSION_ROW_PX;
      if (top < this.grid.scrollTop) this.grid.scrollTop = top;
      else if (top + SESSION_ROW_PX > this.grid.scrollTop + inSight) this.grid.scrollTop = top + SESSION_ROW_PX - inSight;
      this.draw();
    }
    return true;
  }

  close() {
    clearTimeout(this.typing);
    this.drawSoon.cancel();
    this.link.close();
    this.root.remove();
  }
}

/** @param {{ model: import("./link.js").Model, el: HTMLElement }} props */
function render({ model, el: host }) {
  const view = new SessionsView(model, host);
  return () => view.close();
}

export default { render };
