// @ts-check
/** A comparison in place of the tree, until it is closed. */

import { showComparison } from "../compare/compare.js";
import { el } from "../dom.js";

/** @typedef {{ link: import("../link.js").Link, view: import("./tree.js").View, main: HTMLElement }} Around */

export class Overlay {
  /** @param {Around} around */
  constructor(around) {
    this.around = around;
    this.root = el("div", { class: "nbd-tree-over", hidden: true });
    /** @type {{ close(): void, focus(): void } | null} */
    this.comparison = null;
  }

  /** @param {number[]} ns */
  async show(ns) {
    const { link, view, main } = this.around;
    if (ns.length < 2) return view.say("Pin two entries or more to compare them");
    try {
      const body = await link.ask("compare", { ns });
      this.close();
      this.root.style.height = main.offsetHeight ? `${main.offsetHeight}px` : ""; // nothing below moves
      main.hidden = true;
      this.root.hidden = false;
      // the comparison has stored it already
      const onPrefer = (/** @type {number} */ winner) => view.say(`#${winner} preferred`);
      this.comparison = showComparison(this.root, link, body, { onClose: () => this.leave(), onPrefer });
      this.comparison.focus(); // what had the focus is hidden now, and the keys are the comparison's
    } catch (error) {
      view.say(/** @type {Error} */ (error).message);
    }
  }

  /** Go back to the tree. */
  leave() {
    this.close();
    this.around.main.hidden = false;
    this.around.view.focus();
  }

  close() {
    const shown = this.comparison;
    this.comparison = null;
    shown?.close();
    this.root.replaceChildren();
    this.root.hidden = true;
  }
}
