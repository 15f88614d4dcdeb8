// @ts-check
/**
 * Where a view's actions are carried out: each once at a time, with what became of it said beside
 * the button it came from; and the forms and menus that stand over the view meanwhile.
 */
import { el, setText } from "../dom.js";

/**
 * @typedef {import("../tree/tree.js").Context} Context
 * @typedef {import("../tree/store.js").Question} Question
 * @typedef {{ isDone: boolean, body: any }} Outcome
 * @typedef {{ set(text: string): void, fail(text: string): void, close(): void }} Word
 * @typedef {{ label: string, isMenu?: boolean, back?: Element | null, onClose?: () => void }} FloatOptions
 */

export const HELD_MS = 500; // the second click of a double click comes within this
const SILENT_MS = 20_000;
const SLOW_MS = 1_500;
const FLOAT_GAP = 8;
const STAGE_WORDS = { sent: "", queued: "kernel busy, request queued", taken: "" };
const SLOW_WORDS = "the kernel is at it …"; // a store that others hold may take its time
const SILENT_WORDS = "no word from the kernel yet; if it was restarted, run the cell again";

/** @type {WeakMap<object, Desk>} */
const desks = new WeakMap();

/** The desk that the parts of one view share. @param {Context} context @returns {Desk} */
export function deskOf(context) {
  const desk = desks.get(context) ?? new Desk(context);
  desks.set(context, desk);
  return desk;
}

export class Desk {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    /** @type {Set<string>} what waits for its answer, as "rerun:12" */
    this.busy = new Set();
    /** @type {{ node: HTMLElement, close(): void } | null} */
    this.float = null;
    /** @type {Set<Word>} */
    this.words = new Set();
    /** @type {Set<any>} timers of what is not answered yet */
    this.waits = new Set();
    /** @type {import("./pane.js").Pane | null} */
    this.pane = null;
    /** @type {import("./composer.js").Composer | null} */
    this.composer = null;
    /** @type {import("./actions.js").Actions | null} */
    this.actions = null;
  }

  /**
   * Have something done by the kernel, once: while it is not answered, and a moment longer, the
   * same thing is not asked for again.
   * @param {string} name @param {any} args @param {number | string} about the entry or run it is about
   * @param {Element | null} anchor what was pressed @param {string} [done] said when it is done
   * @returns {Promise<Outcome>}
   */
  async act(name, args, about, anchor, done = "") {
    return this.once(name, args, about, this.say(anchor), done, anchor);
  }

  /** The same, with what became of it said in a line of a form. @param {HTMLElement} line @param {string} name @param {any} args @param {number | string} about @param {string} [done] */
  async actIn(line, name, args, about, done = "") {
    line.classList.remove("nbd-bad");
    const set = (/** @type {string} */ text) => setText(line, text);
    const fail = (/** @type {string} */ text) => {
      line.classList.add("nbd-bad");
      set(text);
    };
    return this.once(name, args, about, { set, fail, close: () => set("") }, done);
  }

  /** @param {string} name @param {any} args @param {number | string} about @param {Word} word @param {string} done @param {Element | null} [anchor] @returns {Promise<Outcome>} */
  async once(name, args, about, word, done, anchor = null) {
    const key = `${name}:${about}`;
    if (this.busy.has(key)) return { isDone: false, body: null };
    this.busy.add(key);
    anchor?.setAttribute("aria-disabled", "true");
    /** @type {any[]} */
    const timers = [];
    const later = (/** @type {string} */ text, /** @type {number} */ ms) => {
      timers.push(setTimeout(() => word.set(text), ms));
      this.waits.add(timers.at(-1));
    };
    later(SILENT_WORDS, SILENT_MS);
    const { leaf } = this.context.store.head;
    try {
      const body = await this.context.link.act(name, args, (stage) => {
        word.set(STAGE_WORDS[stage]);
        if (stage === "taken") later(SLOW_WORDS, SLOW_MS);
      });
      word.close();
      if (done) this.context.view.say(done);
      if (body?.run && name !== "sample") this.follow(body.run, leaf);
      setTimeout(() => this.busy.delete(key), HELD_MS);
      return { isDone: true, body };
    } catch (error) {
      word.fail(textOf(error));
      this.busy.delete(key);
      return { isDone: false, body: null };
    } finally {
      for (const timer of timers) {
        clearTimeout(timer);
        this.waits.delete(timer);
      }
      anchor?.removeAttribute("aria-disabled");
      this.context.view.changed();
    }
  }

  /** Choose a run's row, or what it has stored already. @param {string} run @param {number} leaf where the session was before */
  follow(run, leaf) {
    const { store, view } = this.context;
    // a short answer may be there before the word that its run began
    if (!store.live.has(run) && store.head.leaf !== leaf) view.select(store.head.leaf);
    view.follow(run);
  }

  /** A word beside what was pressed; nothing is seen of it while it is empty. @param {Element | null} anchor @returns {Word} */
  say(anchor) {
    const text = el("span", { dir: "auto" });
    const node = el("div", { class: "nbd-word", role: "status" }, text);
    const spot = anchor ? this.rect(anchor) : null;
    const word = {
      /** @param {string} said */
      set: (said) => {
        setText(text, said);
        if (said && !node.isConnected) this.context.view.root.appendChild(node);
        if (said) this.place(node, spot ?? this.rect(this.fallback()));
        else node.remove();
      },
      /** @param {string} said */
      fail: (said) => {
        for (const other of [...this.words]) if (other !== word) other.close();
        node.setAttribute("role", "alert");
        node.classList.add("nbd-word-bad");
        node.appendChild(el("button", { "aria-label": "Close this message", onclick: close }, "×"));
        word.set(said);
      },
      close: () => close(),
    };
    const close = () => {
      if (node.contains(focused(node))) this.context.view.focus();
      node.remove();
      this.words.delete(word);
    };
    node.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
      event.stopPropagation();
    });
    this.words.add(word);
    return word;
  }

  /**
   * Open a form or menu near what was pressed, in place of any other; Escape closes it and the
   * focus goes back. @param {HTMLElement} node @param {Element | null} anchor @param {FloatOptions} options
   */
  open(node, anchor, { label, isMenu = false, back = null, onClose }) {
    const spot = this.rect(anchor?.isConnected ? anchor : this.fallback());
    const came = back ?? this.comingFrom();
    this.float?.close();
    this.clearWords();
    node.classList.add("nbd-float");
    node.setAttribute("role", isMenu ? "menu" : "dialog");
    node.setAttribute("aria-label", label);
    this.context.view.root.appendChild(node);
    const outside = (/** @type {Event} */ event) => {
      if (isMenu && !event.composedPath().includes(node)) close();
    };
    const close = () => {
      if (this.float?.node !== node) return;
      this.float = null;
      document.removeEventListener("pointerdown", outside, true);
      const hadFocus = node.contains(focused(node));
      node.remove();
      if (hadFocus) this.giveBack(came);
      onClose?.();
    };
    node.addEventListener("keydown", (event) => keepInside(event, node, close));
    document.addEventListener("pointerdown", outside, true);
    this.float = { node, close };
    this.place(node, spot);
    firstField(node)?.focus({ preventScroll: true });
    return { close };
  }

  /** What has the focus, if it will still be there when a form closes. @returns {Element | null} */
  comingFrom() {
    const { root } = this.context.view;
    const now = focused(root);
    const stays = now && root.contains(now) && !now.closest('[role="treeitem"], .nbd-float');
    return stays ? now : null;
  }

  /** @param {Element | null} target */
  giveBack(target) {
    if (target instanceof HTMLElement && target.isConnected) target.focus({ preventScroll: true });
    else this.context.view.focus();
  }

  /** Where something is said that no button asked for: at the chosen row. @returns {Element} */
  fallback() {
    const { root } = this.context.view;
    return root.querySelector('[role="treeitem"][aria-selected="true"]') ?? root;
  }

  /** A place in the root's own coordinates. @param {Element} target @returns {{ left: number, top: number, bottom: number }} */
  rect(target) {
    const base = this.context.view.root.getBoundingClientRect();
    const at = target.getBoundingClientRect();
    const isWhole = target === this.context.view.root;
    return { left: at.left - base.left, top: isWhole ? 40 : at.top - base.top, bottom: isWhole ? 40 : at.bottom - base.top };
  }

  /** Put a node under a place, above it where there is no room, and always inside the root. @param {HTMLElement} node @param {{ left: number, top: number, bottom: number }} spot */
  place(node, spot) {
    const { root } = this.context.view;
    const [width, height] = [root.clientWidth, root.clientHeight];
    const left = Math.max(FLOAT_GAP, Math.min(spot.left, width - node.offsetWidth - FLOAT_GAP));
    let top = spot.bottom + 4;
    if (top + node.offsetHeight + FLOAT_GAP > height && spot.top - node.offsetHeight - 4 >= FLOAT_GAP) top = spot.top - node.offsetHeight - 4;
    node.style.left = `${left}px`;
    node.style.top = `${Math.max(FLOAT_GAP, Math.min(top, height - node.offsetHeight - FLOAT_GAP))}px`;
  }

  clearWords() {
    for (const word of [...this.words]) word.close();
  }

  close() {
    this.float?.close();
    this.clearWords();
    this.waits.forEach(clearTimeout);
    desks.delete(this.context);
  }
}

/** @param {unknown} error @returns {string} */
export function textOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** What has the focus, also inside a shadow root, as some hosts have it. @param {Element} near @returns {Element | null} */
export function focused(near) {
  const base = /** @type {Document | ShadowRoot} */ (near.getRootNode());
  return base.activeElement ?? null;
}

const FIELD_SELECTOR = "input:not([type=hidden]), textarea, select, button, summary, [tabindex='0']";

/** @param {HTMLElement} node @returns {HTMLElement[]} */
function fieldsOf(node) {
  const all = /** @type {HTMLElement[]} */ ([...node.querySelectorAll(FIELD_SELECTOR)]);
  return all.filter((field) => !field.hasAttribute("disabled") && !field.closest("[hidden]"));
}

/** @param {HTMLElement} node @returns {HTMLElement | undefined} */
function firstField(node) {
  const fields = fieldsOf(node);
  return fields.find((field) => field.hasAttribute("autofocus")) ?? fields[0];
}

/** Escape closes, Tab goes round, and no letter reaches the tree. @param {KeyboardEvent} event @param {HTMLElement} node @param {() => void} close */
function keepInside(event, node, close) {
  if (event.key === "Escape") {
    event.preventDefault();
    close();
  } else if (event.key === "Tab") {
    const fields = fieldsOf(node);
    const [first, last] = [fields[0], fields.at(-1)];
    const now = focused(node);
    const turn = event.shiftKey ? now === first && last : now === last && first;
    if (turn) {
      event.preventDefault();
      turn.focus();
    }
  }
  if (isOwn(event)) event.stopPropagation();
}

const EDITING = new Set("acvxzy".split(""));

/** Whether a key belongs to the field it was pressed in, and not to the notebook, as Ctrl+S does. @param {KeyboardEvent} event */
export function isOwn(event) {
  const isCombined = event.ctrlKey || event.metaKey;
  return !isCombined || event.key.length > 1 || EDITING.has(event.key.toLowerCase());
}
