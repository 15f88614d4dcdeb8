// @ts-check
/** One row of the tree: elements made once, changed only where what they say is another. */

import { el, setAttr, setText } from "../dom.js";
import { countOf, modelText } from "../figures.js";
import { drawRail } from "./rails.js";

/** @typedef {import("./faces.js").Face} Face */
/** @typedef {{ name: string, label: string, key: string }} Button */
/**
 * @typedef {object} Place  what a row is beside its face
 * @property {string} id the element's id @property {string} rail as `railOf` says
 * @property {boolean} isSelected @property {boolean} isPinned @property {boolean | null} isOpen null when nothing folds
 * @property {number} level @property {number} place @property {number} of
 * @property {Button[]} buttons only when it is selected
 */

export class Row {
  /** @param {(row: Row, what: "twist" | "back" | "on" | "pick" | "enter" | "act", detail: string, anchor: HTMLElement) => void} tell */
  constructor(tell) {
    this.line = -1;
    this.rail = "";
    this.chips = "";
    this.buttons = "";
    const say = (/** @type {any} */ what, detail = "") => (/** @type {MouseEvent} */ event) => {
      event.stopPropagation();
      // the second click of a double click on a button is no second wish, nor one to open the row
      const isOnButton = event.target instanceof Element && event.target.closest("button") !== null;
      if ((what === "act" && event.detail > 1) || (what === "enter" && isOnButton)) return;
      tell(this, what, detail, /** @type {HTMLElement} */ (event.currentTarget));
    };
    this.say = say;
    this.twist = forMouse({ class: "nbd-twist", onclick: say("twist") });
    this.ordinal = el("span", { class: "nbd-ord" });
    this.spoken = el("span", { class: "nbd-hidden" });
    this.railHost = el("span", { class: "nbd-rails" });
    this.words = document.createTextNode("");
    this.text = el("span", { class: "nbd-row-words" }, el("span", { dir: "auto" }, this.words));
    this.chipHost = el("span", { class: "nbd-row-chips" });
    this.counter = el("span", { class: "nbd-row-count" });
    this.switcher = el("span", { class: "nbd-row-switch", hidden: true },
      forMouse({ onclick: say("back"), title: "Previous sibling" }, "‹"), this.counter, forMouse({ onclick: say("on"), title: "Next sibling" }, "›"));
    this.buttonHost = el("span", { class: "nbd-row-acts", hidden: true });
    this.model = el("span", { class: "nbd-row-model" });
    this.figures = ["tokens", "cost", "time"].map((name) => el("span", { class: `nbd-num nbd-row-${name}` }));
    this.meta = el("span", { class: "nbd-row-meta" }, ...this.figures);
    this.root = el("div", { class: "nbd-row", role: "treeitem", onclick: say("pick"), ondblclick: say("enter"), onmousedown: keepFocus },
      this.twist, this.ordinal, this.spoken, this.railHost, this.text, this.chipHost, this.model, this.switcher, this.buttonHost, this.meta);
  }

  /** @param {Face} face @param {Place} place */
  draw(face, place) {
    const { root } = this;
    setAttr(root, "id", place.id);
    setAttr(root, "class", ["nbd-row", `nbd-is-${face.shape}`, face.isOn ? "nbd-row-on" : "nbd-row-off", face.isLive && "nbd-row-live", face.hasCaret && "nbd-row-writes", place.isSelected && "nbd-row-selected", place.isPinned && "nbd-row-pinned"].filter(Boolean).join(" "));
    setAttr(root, "aria-level", place.level);
    setAttr(root, "aria-posinset", place.place);
    setAttr(root, "aria-setsize", place.of);
    setAttr(root, "aria-selected", place.isSelected);
    setAttr(root, "aria-expanded", place.isOpen);
    setAttr(root, "data-n", face.ordinal || null);
    setText(this.spoken, face.said);
    setText(this.twist, place.isOpen === null ? "" : place.isOpen ? "▾" : "▸");
    setAttr(this.twist, "title", place.isOpen === null ? null : place.isOpen ? "Fold" : "Unfold");
    setText(this.ordinal, face.ordinal);
    if (this.rail !== place.rail) {
      this.rail = place.rail;
      this.railHost.replaceChildren(drawRail(place.rail));
    }
    this.write(face);
    this.drawChips(face, place.isPinned);
    this.drawSwitch(face);
    this.drawButtons(place);
  }

  /** Write only what changes while a run grows. @param {Face} face */
  write(face) {
    if (this.words.data !== face.text) this.words.data = face.text;
    if (this.root.classList.contains("nbd-row-writes") !== face.hasCaret) this.root.classList.toggle("nbd-row-writes", face.hasCaret);
    setText(this.model, modelText(face.model));
    setAttr(this.model, "title", face.model || null);
    // where nothing stands beside the words, they take its room
    this.meta.hidden = !face.isLive && face.sibling === null && face.figures.every((figure) => !figure);
    this.figures.forEach((figure, at) => setText(figure, face.figures[at]));
  }

  /** @param {Face} face @param {boolean} isPinned */
  drawChips(face, isPinned) {
    const chips = isPinned ? [{ text: "pinned", kind: "pin" }, ...face.chips] : face.chips;
    const said = JSON.stringify(chips);
    if (said === this.chips) return;
    this.chips = said;
    this.chipHost.replaceChildren(...chips.map((chip) => el("span", { class: `nbd-chip nbd-chip-${chip.kind}`, title: "title" in chip ? chip.title : chip.text, dir: "auto" }, chip.text)));
  }

  /** @param {Face} face */
  drawSwitch({ sibling }) {
    this.switcher.hidden = sibling === null;
    if (sibling === null) return;
    setText(this.counter, `${sibling.at} / ${sibling.of}`);
    setAttr(this.switcher, "title", `answer ${sibling.at} of ${countOf(sibling.of, "sibling")}`);
  }

  /** @param {Place} place */
  drawButtons({ buttons, isSelected }) {
    this.buttonHost.hidden = !isSelected || !buttons.length;
    const said = JSON.stringify(buttons);
    if (said === this.buttons) return;
    this.buttons = said;
    this.buttonHost.replaceChildren(...buttons.map(({ name, label, key }) =>
      forMouse({ class: "nbd-edge", onclick: this.say("act", name), title: key ? `${label} (${key})` : label, "data-action": name }, label)));
  }
}

/** A button for the mouse only: the same is done by key, so that it is no stop of its own. @param {import("../dom.js").Props} props @param {...string} children */
function forMouse(props, ...children) {
  return el("button", { tabindex: -1, "aria-hidden": "true", ...props }, ...children);
}

/** Leave the focus with the tree, which holds it for all rows. @param {MouseEvent} event */
function keepFocus(event) {
  event.preventDefault();
  const tree = /** @type {HTMLElement} */ (event.currentTarget).closest("[role=tree]");
  if (tree instanceof HTMLElement) tree.focus({ preventScroll: true });
}
