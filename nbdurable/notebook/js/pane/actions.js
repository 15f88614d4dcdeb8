// @ts-check
/** What can be done with an entry, by button, key and menu; each has its twin in Python. */
import { copyText } from "../clipboard.js";
import { deskOf, textOf } from "./desk.js";
import { sourceOf } from "./editor.js";
import { compactForm, labelForm, openForm, rateForm, rerunForm, sampleForm } from "./forms.js";
import { codeMenu, openHelp, openMenu } from "./menus.js";
import { runOf, stoppable } from "./stopping.js";

/**
 * @typedef {import("./desk.js").Context} Context
 * @typedef {{ name: string, label: string, key: string, isPrimary: boolean, long: string }} Action
 * @typedef {Action & { fits: (at: Place) => boolean }} Known
 * @typedef {{ n: number, role: string, flags: number, isLeaf: boolean, isOpen: boolean, isLast: boolean, live: number, pins: number, siblings: number }} Place
 */

const CUT_SHORT = 2 | 4; // ERROR or ABORTED

const isSaid = (/** @type {Place} */ { role }) => role === "user" || role === "assistant" || role === "tool";
const isStored = (/** @type {Place} */ { n }) => n > 0;

/** @type {Known[]} */
const ALL_ACTIONS = [
  { name: "branch", label: "Branch", long: "Branch here", key: "b", isPrimary: true, fits: (at) => at.isOpen && isStored(at) },
  { name: "rerun", label: "Rerun", long: "Rerun", key: "r", isPrimary: true, fits: (at) => at.isOpen && isSaid(at) },
  { name: "edit", label: "Edit", long: "Edit and rerun…", key: "e", isPrimary: true, fits: (at) => at.isOpen && (at.role === "user" || at.role === "assistant") },
  { name: "sample", label: "×n", long: "Sample ×n…", key: "s", isPrimary: true, fits: (at) => at.isOpen && isSaid(at) },
  { name: "pin", label: "Pin", long: "Pin for compare", key: "p", isPrimary: true, fits: isStored },
  { name: "menu", label: "⋯", long: "More actions", key: "m", isPrimary: true, fits: isStored },
  { name: "rerun_with", label: "Rerun with…", long: "Rerun with…", key: "w", isPrimary: false, fits: (at) => at.isOpen && isSaid(at) },
  { name: "continue", label: "Continue…", long: "Continue from here…", key: "c", isPrimary: false, fits: (at) => at.isOpen },
  { name: "goon", label: "Go on", long: "Go on without input", key: "g", isPrimary: false, fits: (at) => at.isOpen && canGoOn(at) },
  { name: "cancel", label: "Cancel", long: "Cancel what runs", key: "x", isPrimary: false, fits: (at) => at.live > 0 },
  { name: "compare", label: "Compare", long: "Compare what is pinned", key: "v", isPrimary: false, fits: (at) => at.pins > 0 },
  { name: "label", label: "Label…", long: "Label…", key: "l", isPrimary: false, fits: (at) => at.isOpen && isStored(at) },
  { name: "rate", label: "Rate…", long: "Rate…", key: "t", isPrimary: false, fits: (at) => at.isOpen && isStored(at) },
  { name: "prefer", label: "Prefer", long: "Prefer to its siblings", key: "f", isPrimary: false, fits: (at) => at.isOpen && isStored(at) && at.siblings > 1 },
  { name: "copy_id", label: "Copy id", long: "Copy id", key: "i", isPrimary: false, fits: isStored },
  { name: "copy_code", label: "Copy as code…", long: "Copy as code…", key: "k", isPrimary: false, fits: isStored },
  { name: "compact", label: "Compact…", long: "Compact…", key: "o", isPrimary: false, fits: (at) => at.isOpen && at.isLeaf },
  { name: "help", label: "Keys", long: "Keys", key: "?", isPrimary: false, fits: () => true },
];

/** Whether a run without input has something to do. @param {{ role: string, flags: number, isLast: boolean }} at */
export function canGoOn({ role, flags, isLast }) {
  if (role === "assistant") return (flags & CUT_SHORT) !== 0;
  return isLast && (role === "user" || role === "tool");
}

/** @param {Context} context @param {number} n @returns {Place} */
export function placeOf({ store, view }, n) {
  return {
    n,
    role: n ? store.role(n) : "",
    flags: n ? store.flags(n) : 0,
    isLeaf: n > 0 && n === store.head?.leaf,
    isOpen: !store.head?.is_closed,
    isLast: n > 0 && store.childrenOf(n).length === 0 && !view.isLive(n),
    live: store.live.size,
    pins: view.pins.size,
    siblings: n ? store.siblingsOf(n).length : 0,
  };
}

/** @param {Context} context */
export function createActions(context) {
  return new Actions(context);
}

export class Actions {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.desk = deskOf(context);
    this.desk.actions = this;
  }

  /** What an entry allows; the primary ones stand in its row. @param {number} n @returns {Action[]} */
  list(n) {
    const place = placeOf(this.context, n);
    const allowed = ALL_ACTIONS.filter((action) => action.fits(place));
    return allowed.map(({ fits: _, ...action }) => (action.name === "pin" && this.context.view.pins.has(n) ? { ...action, label: "Unpin", long: "Take the pin away" } : action));
  }

  /** The action a key means where no text is being typed, held keys meaning nothing. @param {KeyboardEvent} event @returns {string | null} */
  keyFor(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return null;
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest("input, textarea, select, [contenteditable], .nbd-float")) return null;
    const key = event.shiftKey && event.key !== "?" ? "" : event.key.toLowerCase();
    return ALL_ACTIONS.find((action) => action.key === key)?.name ?? null;
  }

  /**
   * Do it; what an entry does not allow is said instead.
   * @param {string} name @param {number} n @param {HTMLElement | null} anchor the button that was pressed
   */
  run(name, n, anchor) {
    const action = ALL_ACTIONS.find((known) => known.name === name);
    if (!action) return;
    const growing = n ? undefined : this.context.store.live.get(this.context.view.selectedRun ?? "");
    // a run's row has no number yet: one goes on from what it answers
    if (growing && (name === "goon" || name === "continue")) n = growing.parent;
    if (!action.fits(placeOf(this.context, n))) return this.refuse(action, n, anchor);
    if (name !== "menu" && name !== "help") this.desk.float?.close();
    const deeds = /** @type {Record<string, () => unknown>} */ ({
      branch: () => this.desk.act("branch", { n }, n, anchor, `the leaf is #${n}`),
      rerun: () => this.desk.act("rerun", { n }, n, anchor, `rerunning #${n}`),
      goon: () => this.desk.act("goon", { n }, n, anchor, `going on from #${n}`),
      edit: () => this.desk.pane?.edit(n),
      sample: () => openForm(this.context, sampleForm(this.context, n), n, anchor),
      rerun_with: () => this.rerunWith(n, anchor),
      continue: () => this.desk.composer?.from(n),
      cancel: () => this.cancel(n, anchor),
      pin: () => this.context.view.pin(n),
      compare: () => this.compare(n, anchor),
      label: () => openForm(this.context, labelForm(this.context, n), n, anchor),
      rate: () => openForm(this.context, rateForm(this.context, n), n, anchor),
      prefer: () => this.desk.act("prefer", { winner: n, losers: this.losers(n) }, n, anchor, `#${n} is preferred`),
      compact: () => openForm(this.context, compactForm(this.context), n, anchor),
      copy_id: () => this.copyId(n, anchor),
      copy_code: () => this.copyCode(n, anchor),
      menu: () => openMenu(this.context, n, this.list(n).filter(({ name: other }) => other !== "menu"), anchor),
      help: () => this.help(),
    });
    deeds[name]?.();
  }

  help() {
    openHelp(this.context, ALL_ACTIONS);
  }

  close() {
    this.desk.close();
  }

  /** @param {Action} action @param {number} n @param {Element | null} anchor */
  refuse(action, n, anchor) {
    const { store } = this.context;
    /** @type {Record<string, string>} */
    const why = {
      goon: "there is nothing to go on with: it is a finished reply, or others follow it",
      cancel: "nothing runs",
      compare: "pin two or more entries first (p)",
      prefer: "it has no siblings to be preferred to",
      compact: "only what leads to the leaf is compacted; branch here first (b)",
    };
    const closed = store.head?.is_closed ? "the session is closed; open it again" : null;
    const kind = n ? `a ${store.role(n)} entry does not have it` : "choose an entry first";
    this.desk.say(anchor).fail(`${action.long.replace("…", "")}: ${closed ?? why[action.name] ?? kind}`);
  }

  /** @param {number} n @param {Element | null} anchor */
  async rerunWith(n, anchor) {
    const detail = await this.desk.pane?.detail(n).catch(() => null); // the form can do without
    openForm(this.context, rerunForm(this.context, n, detail), n, anchor);
  }

  /** The answers that are not preferred when this one is: the pinned siblings, or all. @param {number} n @returns {number[]} */
  losers(n) {
    const { store, view } = this.context;
    const others = store.siblingsOf(n).filter((other) => other !== n);
    const pinned = others.filter((other) => view.pins.has(other));
    return pinned.length ? pinned : others;
  }

  /** @param {number} n @param {HTMLElement | null} anchor */
  compare(n, anchor) {
    const { view } = this.context;
    const ns = [...view.pins];
    if (ns.length === 1 && n && n !== ns[0]) ns.push(n);
    if (ns.length > 1) view.compare(ns);
    else this.desk.say(anchor).fail("Compare: pin two or more entries first (p)");
  }

  /** Cancel the chosen run, or those under the entry, or what runs; several are asked about. @param {number} n @param {HTMLElement | null} anchor */
  cancel(n, anchor) {
    const { store, view } = this.context;
    const rows = [...store.live.values()];
    const chosen = anchor?.dataset.run ?? view.selectedRun;
    const own = rows.filter((row) => row.run === chosen).map(runOf);
    const some = [rows.filter((row) => row.parent === n), rows.filter((row) => row.exp < 0), rows].find((those) => those.length) ?? [];
    const meant = own.length ? own : stoppable(store, some);
    const stop = (/** @type {import("./stopping.js").Stoppable[]} */ those) => those.forEach(({ name, args, about }) => this.desk.act(name, args, about, anchor, "cancelled"));
    if (meant.length < 2) return stop(meant);
    const items = meant.map((one) => ({ label: one.label, run: () => stop([one]) }));
    const all = { label: `All ${meant.length}`, run: () => stop(meant) };
    return openMenu(this.context, n, [...items, all], anchor, "Cancel which?");
  }

  /** @param {number} n @param {HTMLElement | null} anchor */
  async copyId(n, anchor) {
    const { link, view } = this.context;
    try {
      const { id } = await (this.desk.pane?.detail(n) ?? link.ask("detail", { n }));
      if (await copyText(id, view.root)) view.say(`copied the id of #${n}`);
      else this.desk.say(anchor).fail(`the page may not write to the clipboard; the id is ${id}`);
      view.focus();
    } catch (error) {
      this.desk.say(anchor).fail(textOf(error));
    }
  }

  /** @param {number} n @param {HTMLElement | null} anchor */
  async copyCode(n, anchor) {
    const detail = await this.desk.pane?.detail(n).catch(() => null); // only edit() needs it
    codeMenu(this.context, n, this.codes(n, sourceOf(detail)), anchor);
  }

  /** What to ask for as code, the usual first. @param {number} n @param {string | null} text what the entry says @returns {{ label: string, name: string, args: any }[]} */
  codes(n, text) {
    const { store, view } = this.context;
    const [label = "label"] = store.marks(n)?.labels ?? [];
    /** @type {[string, any][]} */
    const codes = [
      ["rerun", { n }], ["branch", { n }], ["goon", { n }], ["sample", { n, count: 3 }],
      ["edit", { n, text, run: store.role(n) === "user" }], ["label", { n, text: label }], ["rate", { n, score: 1 }],
      ["prefer", { winner: n, losers: this.losers(n) }],
    ];
    const allowed = new Map(this.list(n).map((action) => [action.name, action.long.replace("…", "")]));
    const offered = codes.filter(([name]) => allowed.has(name) && (name !== "edit" || text !== null));
    const pins = [...view.pins];
    const [copied, compared] = [{ label: "Its id", name: "copy", args: { n } }, { label: "Compare", name: "compare", args: { ns: pins } }];
    return [...offered.map(([name, args]) => ({ label: allowed.get(name) ?? name, name, args })), ...(pins.length > 1 ? [compared] : []), copied];
  }
}
