// @ts-check
/** The session tree: entry module. It joins the parts of a view and holds what they share. */

import { createActions } from "../pane/actions.js";
import { Bar } from "./bar.js";
import { Choice } from "./choice.js";
import { createComposer } from "../pane/composer.js";
import { el, forwardToHost, oncePerFrame, put, setText } from "../dom.js";
import { countOf, oneLine } from "../figures.js";
import { TypeAhead, stepOf } from "./keys.js";
import { Link } from "../link.js";
import { memoryKey, recall, remember } from "./memory.js";
import { Overlay } from "./overlay.js";
import { createPane } from "../pane/pane.js";
import { Previews } from "./previews.js";
import { Rows } from "./rows.js";
import { wholeOf } from "../pane/stopping.js";
import { Store, hasChanges, merge, nothing } from "./store.js";
import { Watch } from "./watch.js";

/**
 * @typedef {object} View  what the parts of one view share
 * @property {HTMLElement} root the widget's root element; forms and menus are put inside it
 * @property {number} selected the entry chosen, 0 for none
 * @property {string | null} selectedRun the run chosen, when a row that still grows is
 * @property {Set<number>} pins the entries pinned for a comparison
 * @property {(n: number) => void} select choose an entry, unfold and scroll to it
 * @property {(n: number) => void} pin pin an entry for a comparison, or take the pin away
 * @property {(text: string) => void} say write the status line, read out by screen readers
 * @property {() => void} changed ask for a redraw
 * @property {(ns: number[]) => void} compare show entries side by side
 * @property {(n: number) => boolean} isLive whether a run grows under the entry
 * @property {(n: number) => void} zoom show only what is under an entry; 0 for everything
 * @property {(run: string) => void} follow choose a run's row as soon as it is there
 * @property {() => void} focus give the focus back to the tree
 */
/** @typedef {import("./store.js").Changed} Changed */
/** @typedef {{ link: Link, store: Store, view: View }} Context */

const SAID_MS = 6_000;
const UNHEARD_MS = 4_000;
const TICK_MS = 500;
const KEPT_AFTER_MS = 300;
const COMPARED_AT_ONCE = 6;
const UNHEARD = "The kernel does not answer. Run the cell again for the live tree.";
const LOST = "The kernel is not heard any more. If it has ended, run the cells again: what came is kept.";

let made = 0;

class TreeView {
  /** @param {import("../link.js").Model} model @param {HTMLElement} host */
  constructor(model, host) {
    this.uid = String(model.get("uid") ?? "").replace(/[^\w-]/g, "");
    this.store = new Store();
    this.root = el("div", { class: "nbd-widget nbd-session tex2jax_ignore mathjax_ignore", role: "group", "aria-label": "Session" });
    this.view = viewOf(this);
    this.isOpen = false;
    this.memory = "";
    this.previews = new Previews(this);
    /** @type {Changed} */
    this.pending = nothing();
    this.wasFollowing = this.wasInSight = false;
    this.searches = 0;
    this.typeAhead = new TypeAhead();
    this.rows = new Rows({
      store: this.store, prefix: `nbd-${this.uid}-${++made}`, pins: () => this.view.pins,
      buttons: (line) => this.buttons(line),
      wantPreviews: (ns) => this.previews.want(ns),
      tell: (what, line, detail, anchor) => this.told(what, line, detail, anchor),
    });
    this.choice = new Choice(this.store, this.rows, this.view, () => this.chosen());
    this.bar = new Bar({
      onFind: (text, isSure) => this.search(text, isSure),
      onFilter: (filter) => this.sift(filter),
      onWhole: () => { this.view.zoom(0); this.view.focus(); },
      onCompare: () => this.view.compare([...this.view.pins]),
      onHelp: () => this.actions.help(),
    });
    this.flush = oncePerFrame(() => this.update());
    this.link = new Link(model, { onSnapshot: (body) => this.open(body), onOps: (ops) => this.take(ops), onTrouble: (text) => this.view.say(text) });
    const context = { link: this.link, store: this.store, view: this.view };
    this.actions = createActions(context);
    this.pane = createPane(context);
    this.composer = createComposer(context);
    this.hider = el("style");
    this.notice = el("div", { class: "nbd-tree-notice", hidden: true });
    this.status = el("div", { class: "nbd-tree-status", role: "status" });
    this.empty = el("div", { class: "nbd-tree-empty", hidden: true });
    this.body = el("div", { class: "nbd-tree-body" }, el("div", { class: "nbd-tree-side" }, this.rows.root, this.empty, this.status), this.pane.root);
    this.main = el("div", { class: "nbd-tree-main", hidden: true }, this.bar.root, this.body, this.composer.root);
    this.overlay = new Overlay(this);
    put(this.root, this.hider, this.notice, this.main, this.overlay.root);
    this.silent = setTimeout(() => this.notify(UNHEARD), UNHEARD_MS);
    this.watch = new Watch(this.link, (isHeard) => this.heard(isHeard));
    this.tick = setInterval(() => this.ticked(), TICK_MS);
    this.saidFor = 0;
    this.listen(host);
  }

  /** @param {HTMLElement} host */
  listen(host) {
    this.rows.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("keydown", (event) => { forwardToHost(this.root, event); });
    host.append(this.root);
    if (typeof ResizeObserver === "undefined") return;
    this.sizes = new ResizeObserver(() => this.rows.resize(this.rows.root.clientWidth, this.rows.root.clientHeight));
    this.sizes.observe(this.rows.root);
  }

  // -- from the kernel -------------------------------------------------------------------------

  /** Take the whole state. @param {any} body */
  open(body) {
    const isFirst = !this.isOpen, wasFollowing = this.choice.isFollowing();
    this.store.load(body);
    this.previews.forget();
    this.rows.paces.keep(this.store.live);
    this.pending = nothing();
    if (isFirst) this.begin();
    this.choice.layOut();
    if (isFirst || this.choice.line < 0) this.start(isFirst);
    else this.choice.follow(this.pending, wasFollowing, false);
    this.draw();
  }

  /** Show the view for the first time: the twin gives way to it. */
  begin() {
    this.isOpen = true;
    clearTimeout(this.silent);
    this.main.hidden = false;
    this.rows.resize(this.rows.root.clientWidth, this.rows.root.clientHeight);
    if (this.uid) this.hider.textContent = `[data-nbd-twin="${this.uid}"]{display:none}`;
    this.root.setAttribute("aria-label", `Session ${oneLine(this.store.head.session)}`);
    this.memory = memoryKey(this.store.head);
    const { folded, opened } = recall(this.memory), { shown } = this.choice;
    if (Array.isArray(folded)) shown.folded = new Set(folded.map(Number));
    if (Array.isArray(opened)) this.store.experiments.forEach(({ id }, at) => { if (opened.includes(id)) shown.opened.add(at); });
  }

  /** Choose the leaf, where the last visit left off or else in sight. @param {boolean} isFirst */
  start(isFirst) {
    const { store, choice, rows } = this, top = isFirst ? recall(this.memory).top : undefined;
    const runs = [...store.live.values()].filter((row) => row.parent === store.leaf && row.exp < 0);
    if (runs.length) choice.choose(choice.lines.ofRun(runs[0].run));
    else if (store.leaf) choice.chooseEntry(store.leaf);
    else if (choice.lines.length) choice.choose(choice.lines.length - 1);
    else this.pane.show(0);
    if (typeof top === "number") rows.root.scrollTop = top;
  }

  /** Take changes; they are drawn together, once a frame. @param {any[]} ops */
  take(ops) {
    if (!hasChanges(this.pending)) {
      this.wasFollowing = this.choice.isFollowing();
      this.wasInSight = this.choice.isEndInSight();
    }
    const changed = this.store.apply(ops);
    if (changed.lost) return this.link.resync();
    merge(this.pending, changed);
    this.flush();
  }

  /** Draw what changed since the last frame. */
  update() {
    const changed = this.pending;
    this.pending = nothing();
    const run = this.view.selectedRun;
    if (changed.shape) {
      this.choice.layOut();
      this.rows.paces.keep(this.store.live);
      this.choice.follow(changed, this.wasFollowing, this.wasInSight);
      if (changed.ended.length) this.view.say(changed.ended.length === 1 ? "Run finished" : `${changed.ended.length} runs finished`);
    }
    if (run !== null && run === this.view.selectedRun && changed.runs.has(run)) this.showLive(run);
    if (changed.entries.has(this.view.selected) || changed.rest) this.pane.refresh();
    if (changed.shape || changed.entries.size || changed.rest || this.isRedraw) this.draw();
    else this.rows.drawRuns(changed.runs);
  }

  isRedraw = false;

  /** Draw all that may have changed outside the pane. */
  draw() {
    const { store, choice } = this;
    this.isRedraw = false;
    this.rows.drawNow();
    this.bar.draw(store, this.view.pins.size, choice.shown.zoom, choice.found ? choice.found.size : null, choice.filter);
    this.composer.update();
    this.notify(this.watch.isHeard ? store.notice ?? "" : LOST);
    this.body.classList.toggle("nbd-tree-bare", !store.count && !store.live.size);
    const nothingSeen = this.rows.lines.length === 0;
    this.empty.hidden = !nothingSeen;
    if (nothingSeen) setText(this.empty, store.count ? "Nothing here matches." : "Nothing here yet. Write below to begin.");
  }

  // -- what is chosen --------------------------------------------------------------------------

  /** Another row is chosen. */
  chosen() {
    const { selected, selectedRun } = this.view;
    if (selectedRun !== null) this.showLive(selectedRun);
    else this.pane.show(selected || (this.choice.lines.groupAt(this.choice.line)?.at ?? 0));
    this.view.changed();
  }

  /** @param {string} run */
  showLive(run) {
    const row = this.store.live.get(run);
    if (row) this.pane.live(row);
  }

  /** The buttons of the chosen row. @param {number} line @returns {import("./row.js").Button[]} */
  buttons(line) {
    const { lines } = this.choice, n = lines.entryAt(line), group = lines.groupAt(line);
    if (n) return this.actions.list(n).filter((action) => action.isPrimary);
    const stop = { name: "cancel", label: "Stop", key: "x" };
    if (!group) return [stop];
    return [...(this.store.experiments[group.exp].state === "running" ? [stop] : []), ...(group.tops.length > 1 ? [{ name: "compare", label: "Compare", key: "" }] : [])];
  }

  /** Do what a button of a row says. @param {string} name @param {number} line @param {HTMLElement | null} anchor */
  act(name, line, anchor) {
    const { lines } = this.choice, n = lines.entryAt(line), group = lines.groupAt(line), run = lines.runAt(line);
    if (n) this.actions.run(name, n, anchor);
    else if (group && name === "compare") this.view.compare(group.tops.slice(0, COMPARED_AT_ONCE).map((top) => this.store.end(top)));
    else if (name === "cancel" && (group || run !== null)) {
      const { name: act, args } = group ? wholeOf(this.store, group.exp) : { name: "cancel", args: { run } };
      this.link.act(act, args).catch((error) => this.view.say(error.message));
    }
    else if (!group) this.actions.run(name, 0, anchor);
  }

  /** @param {string} what @param {number} line @param {string} detail @param {HTMLElement} anchor */
  told(what, line, detail, anchor) {
    const n = this.choice.lines.entryAt(line);
    if (what === "twist") this.choice.fold(line);
    else if (what === "back" || what === "on") this.choice.sibling(n, what === "on" ? 1 : -1);
    else if (what === "act") this.act(detail, line, anchor);
    else if (what === "enter") this.enter(line);
    else this.choice.choose(line);
    this.keep();
  }

  /** Open what a row stands for. @param {number} line */
  enter(line) {
    if (this.choice.lines.groupAt(line)) this.choice.fold(line);
    else this.pane.focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { choice, rows } = this, { lines, line } = choice;
    const letter = event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey && event.key !== " ";
    const step = letter && this.typeAhead.isTyping ? null : stepOf(event, lines, line, rows.page);
    const name = step || (letter && this.typeAhead.isTyping) ? null : this.actions.keyFor(event);
    if (step) this.walk(step);
    else if (name !== null) this.act(name, line, rows.element(line));
    else if (letter && !event.repeat) this.goTo(this.typeAhead.lineFor(event.key, lines, line, (at) => this.store.preview(lines.entryAt(at)) ?? ""));
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.keep();
  }

  /** Choose what was typed; an entry that is folded away is brought to light. @param {number} line */
  goTo(line) {
    const { choice, typeAhead, store } = this, n = Number(typeAhead.typed);
    if (line >= 0) choice.choose(line);
    else if (store.has(n) && !choice.shown.keep) choice.chooseEntry(n);
  }

  /** @param {Exclude<import("./keys.js").Step, null>} step */
  walk(step) {
    const { choice, view } = this;
    if ("to" in step) choice.choose(step.to);
    else if ("fold" in step) choice.fold(step.fold, false);
    else if ("unfold" in step) choice.fold(step.unfold, true);
    else if ("enter" in step) this.enter(step.enter);
    else if ("sibling" in step) choice.sibling(view.selected, step.sibling);
    else if (step.does === "find") this.bar.find.focus();
    else if (step.does === "help") this.actions.help();
    else if (step.does === "zoom") view.zoom(choice.shown.zoom ? 0 : view.selected);
    else if (choice.found || choice.filter !== "all") this.sift("all");
    else view.zoom(0);
  }

  // -- what is seen ----------------------------------------------------------------------------

  /** Search, and show what is found; an empty text shows everything again. @param {string} text @param {boolean} isSure whether Enter or Escape was pressed */
  async search(text, isSure) {
    const search = ++this.searches, { choice, view } = this;
    let found = null;
    try {
      if (text.trim()) found = new Set((await this.link.ask("search", { text })).ns);
    } catch (error) {
      return view.say(/** @type {Error} */ (error).message);
    }
    if (search !== this.searches) return;
    choice.found = found;
    this.reshape();
    if (found) view.say(`${countOf(found.size, "entry", "entries")} found`);
    if (!isSure) return;
    if (choice.line < 0) choice.choose(0);
    view.focus();
  }

  /** @param {import("./bar.js").Filter} filter */
  sift(filter) {
    this.searches++;
    if (filter === "all") this.choice.found = null;
    this.choice.filter = filter;
    this.reshape();
  }

  reshape() {
    const { selected } = this.view;
    this.choice.layOut();
    if (selected && this.choice.line >= 0) this.rows.reveal(this.choice.line);
    this.draw();
  }

  /** Keep folds and scroll for the next visit, soon. */
  keep() {
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => this.store.count && remember(this.memory, this.kept()), KEPT_AFTER_MS);
  }

  /** @type {any} */
  keeping = 0;

  kept() {
    const { shown } = this.choice;
    return { folded: [...shown.folded], opened: [...shown.opened].map((at) => this.store.experiments[at]?.id), top: this.rows.top };
  }

  ticked() {
    const { live } = this.store;
    if (live.size) this.rows.drawRuns(live.keys());
    this.watch.look([...live.values()].some((row) => row.state !== "error"));
  }

  /** Nothing grows any more where nothing is heard; what is heard again tells how it is. @param {boolean} isHeard */
  heard(isHeard) {
    if (isHeard) return this.link.resync();
    this.take([...this.store.live.keys()].map((run) => ({ op: "live", run, state: "error", note: "the kernel is not heard any more" })));
    this.draw();
  }

  // -- words -----------------------------------------------------------------------------------

  /** @param {string} text */
  notify(text) {
    this.notice.hidden = !text;
    setText(this.notice, text);
  }

  /** @param {string} text */
  say(text) {
    clearTimeout(this.saidFor);
    setText(this.status, text);
    if (text) this.saidFor = /** @type {any} */ (setTimeout(() => setText(this.status, ""), SAID_MS));
  }

  close() {
    for (const timer of [this.silent, this.saidFor, this.keeping]) clearTimeout(timer);
    clearInterval(this.tick);
    if (this.isOpen && this.store.count) remember(this.memory, this.kept());
    this.flush.cancel();
    this.sizes?.disconnect();
    for (const part of [this.overlay, this.previews, this.bar, this.composer, this.pane, this.actions, this.rows, this.link]) part?.close();
    this.root.remove();
  }
}

/** What the parts of a view share. @param {TreeView} tree @returns {View} */
function viewOf(tree) {
  return {
    root: tree.root, selected: 0, selectedRun: null, pins: new Set(),
    select: (n) => tree.choice.chooseEntry(n),
    pin(n) {
      if (!this.pins.delete(n)) this.pins.add(n);
      this.changed();
    },
    say: (text) => tree.say(text),
    changed() { tree.isRedraw = true; tree.flush(); },
    compare: (ns) => { void tree.overlay.show(ns); },
    isLive: (n) => tree.store.isLive(n),
    zoom: (n) => { tree.choice.zoom(n); tree.draw(); },
    follow: (run) => { tree.choice.awaited = run; },
    focus: () => tree.rows.root.focus({ preventScroll: true }),
  };
}

/** Show a session in `el`. @param {{ model: import("../link.js").Model, el: HTMLElement }} host @returns {() => void} what takes it away again */
function render({ model, el: host }) {
  const tree = new TreeView(model, host);
  return () => tree.close();
}

export default { render };
