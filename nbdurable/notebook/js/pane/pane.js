// @ts-check
/** The whole entry beside the tree: what it holds, the request it came from, its raw form. */
import { el, setAttr, setText } from "../dom.js";
import { longText, sourceBox } from "./blocks.js";
import { deskOf, focused, textOf } from "./desk.js";
import { EntryEditor, sourceOf } from "./editor.js";
import { entryFacts, entryFigures, entryParts, markChips, sessionParts } from "./entryview.js";
import { LiveText } from "./livetext.js";

/**
 * @typedef {import("./desk.js").Context} Context
 * @typedef {import("../tree/store.js").Live} Live
 * @typedef {"text" | "request" | "json"} Tab
 */

/** @type {[Tab, string][]} */
const PANE_TABS = [["text", "Text"], ["request", "Request"], ["json", "JSON"]];
const KEPT_DETAILS = 30;
const PREVIEW_AFTER_MS = 150; // a kernel that is idle answers sooner, and nothing flickers

let panes = 0;

/** Make the pane; `show` takes an entry's number (0 for none), `live` a run's row as it grows. @param {Context} context */
export function createPane(context) {
  return new Pane(context);
}

export class Pane {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.desk = deskOf(context);
    this.desk.pane = this;
    this.n = -1;
    this.wanted = 0; // counts what was asked for, so that a late answer is passed over
    this.drawn = ""; // what stands in the body, to leave alone what is the same
    this.sort = ""; // what the buttons depend on
    /** @type {Tab} */
    this.tab = "text";
    /** @type {Map<number, Promise<any>>} */
    this.details = new Map();
    /** @type {any} the entry that is drawn */
    this.current = null;
    this.state = "";
    /** @type {any} */
    this.timer = null;
    this.editor = new EntryEditor(context);
    /** @type {LiveText | null} */
    this.growing = null;
    this.id = `nbd-pane-${++panes}`;
    this.title = el("b", {});
    this.facts = el("span", { class: "nbd-pane-facts" });
    this.tabs = PANE_TABS.map(([name, label]) => el("button", { role: "tab", id: `${this.id}-${name}`, "aria-controls": this.id, onclick: () => this.choose(name) }, label));
    this.tablist = el("div", { class: "nbd-tabs", role: "tablist", "aria-label": "What to show", onkeydown: (/** @type {KeyboardEvent} */ event) => this.turn(event) }, ...this.tabs);
    this.marks = el("div", { class: "nbd-marks", hidden: true });
    this.body = el("div", { class: "nbd-pane-body", id: this.id, role: "tabpanel", tabindex: 0 });
    this.buttons = el("div", { class: "nbd-pane-acts", role: "group", "aria-label": "Actions" });
    this.figures = el("span", { class: "nbd-figures" });
    this.code = el("button", { class: "nbd-quiet", onclick: () => this.desk.actions?.run("copy_code", this.n, this.code) }, "Copy as code");
    this.root = el("section", { class: "nbd-pane", "aria-label": "Entry" },
      el("div", { class: "nbd-pane-head" }, this.title, this.facts, el("span", { class: "nbd-gap" }), this.tablist),
      this.marks, this.body,
      el("div", { class: "nbd-pane-foot" }, this.figures, this.buttons, this.code));
    this.root.addEventListener("keydown", (event) => this.press(event));
    this.drawTabs();
  }

  // -- which entry ---------------------------------------------------------------------------------

  /** @param {number} n */
  show(n) {
    if (n === this.n && !this.growing) return;
    if (n !== this.n) this.current = null;
    this.editor.leave();
    this.n = n;
    this.drawHead();
    this.load();
  }

  /** Draw again what may have changed of the entry: its marks, its error, a result of its calls. */
  refresh() {
    if (this.growing || this.n < 0) return;
    this.drawHead();
    if (this.stateNow() === this.state) return;
    this.details.delete(this.n);
    if (!this.editor.isOpen) this.load();
  }

  /** A run's row, as it grows. @param {Live} row */
  live(row) {
    if (this.growing?.run !== row.run) this.follow(row);
    const growing = /** @type {LiveText} */ (this.growing);
    const isAtEnd = this.isAtEnd();
    growing.update(row);
    setText(this.title, growing.title());
    setText(this.facts, growing.facts());
    setText(this.figures, growing.figures());
    this.drawButtons();
    if (isAtEnd) this.body.scrollTop = this.body.scrollHeight;
  }

  focus() {
    this.body.focus({ preventScroll: true });
  }

  close() {
    clearTimeout(this.timer);
    this.wanted++;
  }

  /** The whole entry, asked for once. @param {number} n @param {boolean} [isWhole] without any cap @returns {Promise<any>} */
  detail(n, isWhole = false) {
    const known = this.details.get(n);
    if (known && !isWhole) return known;
    const asked = this.context.link.ask("detail", isWhole ? { n, whole: true } : { n });
    this.details.delete(n);
    this.details.set(n, asked);
    asked.catch(() => this.details.delete(n));
    while (this.details.size > KEPT_DETAILS) this.details.delete([...this.details.keys()][0]);
    return asked;
  }

  /** Open the editor for an entry, with its text. @param {number} n */
  async edit(n) {
    const { view } = this.context;
    if (this.n !== n || this.growing) {
      view.select(n);
      this.show(n);
    }
    try {
      const detail = await this.detail(n);
      const text = sourceOf(detail) ?? sourceOf(await this.detail(n, true));
      if (this.n !== n) return;
      if (text === null) throw new Error(`#${n} has no text that could be edited here; use edit() in a cell`);
      this.wanted++;
      clearTimeout(this.timer);
      this.drawn = "";
      this.body.replaceChildren(this.editor.open(n, detail, text, () => this.restore()));
      this.root.classList.add("nbd-editing");
      this.editor.focus();
    } catch (error) {
      this.desk.say(this.body).fail(textOf(error));
    }
  }

  // -- what is seen of it --------------------------------------------------------------------------

  /** Show another way to see the entry. @param {Tab} tab */
  choose(tab) {
    this.tab = tab;
    this.editor.leave();
    this.drawTabs();
    this.load();
  }

  /** Go on with the entry after its editor closed. */
  restore() {
    this.load();
    this.context.view.focus();
  }

  /** @param {Live} row */
  follow(row) {
    clearTimeout(this.timer);
    this.editor.leave();
    this.wanted++;
    this.n = 0;
    this.current = null;
    this.drawn = "";
    this.root.classList.remove("nbd-editing");
    this.growing = new LiveText(row, (n) => this.context.view.select(n));
    this.marks.hidden = true;
    this.code.hidden = true;
    this.tablist.hidden = true;
    setAttr(this.root, "aria-label", "The answer that is being written");
    this.body.replaceChildren(this.growing.root);
    this.body.scrollTop = this.body.scrollHeight;
  }

  async load() {
    const mine = ++this.wanted;
    const { n, tab } = this;
    clearTimeout(this.timer);
    this.state = this.stateNow();
    if (n <= 0) return this.put("session", sessionParts(this.context.store.head));
    const isNew = !this.drawn.startsWith(`${n} ${tab} `);
    if (isNew && !this.growing)
      this.timer = setTimeout(() => this.put(`${n} wait`, [longText(this.context.store.preview(n) ?? "…")]), PREVIEW_AFTER_MS);
    try {
      const given = await (tab === "request" ? this.context.link.ask("request", { n }) : this.detail(n));
      if (!given) throw new Error(`#${n} could not be read; run the cell again if the kernel was restarted`);
      if (mine === this.wanted) this.draw(n, tab, given);
    } catch (error) {
      if (mine !== this.wanted) return;
      this.put(`${n} trouble`, [el("div", { class: "nbd-trouble", role: "alert", dir: "auto" }, textOf(error))]);
    } finally {
      if (mine === this.wanted) clearTimeout(this.timer);
    }
  }

  /** @param {number} n @param {Tab} tab @param {any} given an entry, or a request's text */
  draw(n, tab, given) {
    const isEntry = tab !== "request";
    const mark = `${n} ${tab} ${JSON.stringify(given)}`;
    if (isEntry) this.current = given;
    this.drawHead();
    // a result may have come for a call while this was on its way
    this.state = this.stateNow();
    if (mark === this.drawn && !this.growing) return;
    if (tab === "text") return this.put(mark, entryParts(this.context, n, given, () => this.showAll(n)));
    const text = isEntry ? String(given.json ?? "") : typeof given === "string" ? given : JSON.stringify(given, null, 2);
    this.put(mark, [sourceBox(text)]);
  }

  /** @param {number} n */
  async showAll(n) {
    await this.detail(n, true).catch(() => {}); // load() says what is wrong
    this.load();
    this.focus();
  }

  /** @param {string} mark @param {Node[]} parts */
  put(mark, parts) {
    const { body } = this;
    const isSame = sameEntry(mark, this.drawn);
    const isAtEnd = this.growing !== null && this.isAtEnd();
    const top = isSame || this.growing ? body.scrollTop : 0;
    const open = isSame ? [...body.querySelectorAll("details")].map((part) => part.open) : [];
    const hadFocus = body.contains(focused(body)) && body !== focused(body);
    this.growing = null;
    this.drawn = mark;
    this.root.classList.remove("nbd-editing");
    body.replaceChildren(...parts);
    body.querySelectorAll("details").forEach((part, at) => { part.open = open[at] ?? false; });
    body.scrollTop = isAtEnd ? body.scrollHeight : top;
    if (hadFocus) this.focus();
    this.drawButtons();
  }

  isAtEnd() {
    return this.body.scrollHeight - this.body.scrollTop - this.body.clientHeight < 24;
  }

  /** What the entry's body depends on, as one text. @returns {string} */
  stateNow() {
    const { store } = this.context;
    if (this.n <= 0) return JSON.stringify(store.head ?? null);
    const waits = this.current?.blocks?.some((/** @type {any} */ block) => block.type === "call" && !block.result);
    return [this.n, store.flags(this.n), store.note(this.n) ?? "", waits ? store.count : ""].join(" ");
  }

  drawTabs() {
    for (const [at, [name]] of PANE_TABS.entries()) {
      const isChosen = name === this.tab;
      setAttr(this.tabs[at], "aria-selected", isChosen);
      setAttr(this.tabs[at], "tabindex", isChosen ? 0 : -1);
      if (isChosen) setAttr(this.body, "aria-labelledby", this.tabs[at].id);
    }
  }

  drawHead() {
    const { n, current } = this;
    const { store } = this.context;
    setText(this.title, n > 0 ? `#${n} ${store.role(n)}` : String(store.head?.session ?? "Session"));
    setAttr(this.title, "title", current?.created_at ?? null);
    setAttr(this.root, "aria-label", n > 0 ? `Entry #${n}` : "Session");
    setText(this.facts, n > 0 ? entryFacts(store.model(n), current) : "");
    setText(this.figures, entryFigures(current));
    this.code.hidden = n <= 0;
    this.tablist.hidden = n <= 0;
    const chips = n > 0 ? markChips(store.marks(n)) : [];
    const text = chips.map((chip) => chip.textContent).join("\n");
    if (text !== this.marks.dataset.text) this.marks.replaceChildren(...chips);
    this.marks.dataset.text = text;
    this.marks.hidden = !chips.length;
    this.drawButtons();
  }

  /** The buttons stay the same elements while the same things can be done, and keep the focus. */
  drawButtons() {
    const { actions } = this.desk;
    const run = this.growing?.isRunning ? this.growing.run : null;
    const listed = this.growing || this.n <= 0 ? [] : (actions?.list(this.n) ?? []).filter((action) => action.isPrimary);
    const live = run ? { name: "cancel", label: "Cancel", long: "Cancel this run", key: "x" } : { name: "goon", label: "Continue", long: "Ask again", key: "g" };
    const shown = this.growing ? [live] : listed;
    const n = this.growing ? this.growing.parent : this.n;
    const isInRow = !this.growing;
    const sort = JSON.stringify([n, run, shown.map(({ label }) => label)]);
    if (sort === this.sort) return;
    this.sort = sort;
    this.buttons.replaceChildren(...shown.map(({ name, label, long, key }) => {
      const press = () => actions?.run(name, n, button);
      const button = el("button", { class: (isInRow && name !== "menu") || run ? "nbd-quiet nbd-twice" : "nbd-quiet", title: `${long} (${key})`, "aria-label": long === label ? null : `${label}: ${long}`, "aria-keyshortcuts": key, "data-run": run, onclick: press }, label);
      return button;
    }));
  }

  // -- keys ----------------------------------------------------------------------------------------

  /** @param {KeyboardEvent} event */
  turn(event) {
    const at = PANE_TABS.findIndex(([name]) => name === this.tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const tab = /** @type {[Tab, string]} */ (PANE_TABS.at(to % PANE_TABS.length));
    this.choose(tab[0]);
    this.tabs[PANE_TABS.indexOf(tab)].focus();
  }

  /** Keys do in the pane what they do in the tree; Escape goes back there. @param {KeyboardEvent} event */
  press(event) {
    if (event.defaultPrevented) return;
    const name = event.key === "Escape" ? "" : this.desk.actions?.keyFor(event);
    if (name === null || name === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (name) this.desk.actions?.run(name, this.n, null);
    else this.context.view.focus();
  }
}

/** Whether two marks are of one entry, seen one way. @param {string} one @param {string} other */
function sameEntry(one, other) {
  const begin = (/** @type {string} */ mark) => mark.split(" ", 2).join(" ");
  return begin(one) === begin(other);
}
