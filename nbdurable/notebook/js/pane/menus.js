// @ts-check
/** Menus over the view: the rest of the actions, an action as code, and the keys. */
import { el } from "../dom.js";
import { copyText } from "../clipboard.js";
import { deskOf, focused, textOf } from "./desk.js";
import { ROW_KEYS } from "../tree/keys.js";

/**
 * @typedef {import("./desk.js").Context} Context
 * @typedef {{ label: string, long?: string, name?: string, key?: string, isCode?: boolean, run?: () => void }} Item
 */

const WRITING_KEYS = [["Ctrl ⏎", "run what is written, send a form"]];

/**
 * Open a menu; an item is run by click, Enter or its key.
 * @param {Context} context @param {number} n @param {Item[]} items @param {HTMLElement | null} anchor @param {string} [label]
 */
export function openMenu(context, n, items, anchor, label = `Actions on #${n}`) {
  const desk = deskOf(context);
  const rows = items.map((item) =>
    el("button", { role: "menuitem", tabindex: -1, class: "nbd-item", title: item.isCode ? item.long : null, onclick: () => choose(item) },
      el("span", { class: item.isCode ? "nbd-code" : "", dir: "auto" }, item.isCode ? item.label : item.long ?? item.label),
      item.key && el("kbd", { "aria-hidden": true }, item.key)));
  const node = el("div", { class: "nbd-menu", onkeydown }, ...rows);
  const { close } = desk.open(node, anchor, { label, isMenu: true });
  rows[0]?.focus({ preventScroll: true });

  /** @param {Item} item */
  function choose(item) {
    close();
    if (item.run) item.run();
    else if (item.name) desk.actions?.run(item.name, n, anchor);
  }
  /** @param {KeyboardEvent} event */
  function onkeydown(event) {
    const at = rows.indexOf(/** @type {any} */ (focused(node)));
    const steps = /** @type {Record<string, number>} */ ({ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 });
    const isCombined = event.ctrlKey || event.metaKey || event.altKey;
    const meant = isCombined ? undefined : items.find((item) => item.key && item.key === event.key.toLowerCase());
    if (event.key in steps) rows.at(steps[event.key] % rows.length)?.focus({ preventScroll: true });
    else if (event.key === "Tab") close();
    else if (meant && !event.repeat) choose(meant);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  return { close };
}

/**
 * Offer what could be done with an entry as lines of Python; the chosen one is copied.
 * @param {Context} context @param {number} n @param {{ label: string, name: string, args: any }[]} codes @param {HTMLElement | null} anchor
 */
export async function codeMenu(context, n, codes, anchor) {
  const { link, view } = context;
  const desk = deskOf(context);
  const asked = await Promise.allSettled(codes.map(({ name, args }) => link.ask("code", { name, args })));
  /** @type {Item[]} */
  const items = [];
  for (const [at, answer] of asked.entries())
    if (answer.status === "fulfilled") items.push({ label: answer.value.code, long: codes[at].label, isCode: true, run: () => copy(answer.value.code) });
  const [first] = asked;
  if (items.length) openMenu(context, n, items, anchor, `Copy as code, for #${n}`);
  else desk.say(anchor).fail(first?.status === "rejected" ? textOf(first.reason) : "there is nothing to copy as code");

  /** @param {string} code */
  async function copy(code) {
    if (await copyText(code, view.root)) view.say(`copied ${code}`);
    else desk.say(anchor).fail(`the page may not write to the clipboard; the code is ${code}`);
    view.focus();
  }
}

/** @param {Context} context @param {Item[]} actions */
export function openHelp(context, actions) {
  const keys = [...ROW_KEYS, ...WRITING_KEYS, ...actions.map(({ key = "", long = "" }) => [key, long.replace("…", "")])];
  const rows = keys.map(([key, does]) => el("div", {}, el("dt", {}, ...key.split(" ").map((one) => el("kbd", {}, one))), el("dd", {}, does)));
  const close = el("button", { class: "nbd-edge", onclick: () => float.close() }, "Close");
  const node = el("div", { class: "nbd-help" }, el("b", {}, "Keys"), el("dl", {}, ...rows), close);
  const float = deskOf(context).open(node, null, { label: "Keys" });
}
