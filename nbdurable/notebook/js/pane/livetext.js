// @ts-check
/**
 * An answer while it is written, step under step: what was formatted, and the characters that came
 * since in the place where they belong.
 */
import { el, setText } from "../dom.js";
import { countOf, durationText, modelText, usdText } from "../figures.js";
import { GrowingNodes, growthPoint } from "../nodes.js";
import { focused } from "./desk.js";

/** @typedef {import("../tree/store.js").Live} Live */

const STATE_WORDS = { waiting: "waiting for the first token", streaming: "writing", tool: "tool at work", retry: "trying again", error: "failed" };

/** One answer of a run. */
class LiveStep {
  constructor() {
    this.tail = document.createTextNode("");
    this.tailHost = el("span", { class: "nbd-tail" }, this.tail);
    this.root = el("div", { class: "nbd-md", dir: "auto" }, this.tailHost);
    this.grown = new GrowingNodes(this.root);
  }

  get isEmpty() {
    return !this.grown.nodes.length && !this.tail.data;
  }

  /** @param {Pick<Live, "blocks" | "tail">} text */
  write({ blocks, tail }) {
    if (blocks !== this.grown.nodes) {
      const holder = this.root.closest("[tabindex]"), hadFocus = this.root.contains(focused(this.root));
      this.tailHost.remove();
      this.grown.show(blocks);
      growthPoint(this.root).append(this.tailHost);
      // a button that had it may be another element now
      if (hadFocus && !this.root.contains(focused(this.root))) /** @type {HTMLElement | null} */ (holder)?.focus({ preventScroll: true });
    }
    if (tail.startsWith(this.tail.data)) this.tail.appendData(tail.slice(this.tail.data.length));
    else this.tail.data = tail;
  }
}

export class LiveText {
  /** @param {Live} row @param {(n: number) => void} select goes to an entry */
  constructor(row, select) {
    this.run = row.run;
    this.row = row;
    this.select = select;
    this.parent = row.parent;
    this.step = new LiveStep();
    this.note = el("div", { class: "nbd-live-note", role: "status", hidden: true });
    this.root = el("div", { class: "nbd-live" }, this.step.root, this.note);
  }

  get isRunning() {
    return this.row.state !== "error";
  }

  /** @param {Live} row */
  update(row) {
    this.row = row;
    if (row.parent !== this.parent) this.nextStep(row);
    this.step.write(row);
    const isLoud = row.state === "error" || row.state === "retry" || row.state === "tool";
    this.note.hidden = !(isLoud && row.note);
    this.note.classList.toggle("nbd-trouble", row.state === "error");
    setText(this.note, row.note && isLoud ? `${STATE_WORDS[row.state]}: ${row.note}` : "");
  }

  /** The text so far is stored: what follows belongs to the next step. @param {Live} row */
  nextStep(row) {
    const { parent } = row;
    this.parent = parent;
    if (row.before) this.step.write(row.before);
    if (this.step.isEmpty) return; // its input was stored, or a tool's result: nothing stands here yet
    const stored = el("button", { class: "nbd-ref", onclick: () => this.select(parent) }, `#${parent}`);
    this.step = new LiveStep();
    this.root.insertBefore(el("div", { class: "nbd-step" }, stored, " is stored"), this.note);
    this.root.insertBefore(this.step.root, this.note);
  }

  title() {
    return this.row.parent ? `Answer to #${this.row.parent}` : "Answer";
  }

  facts() {
    const state = this.row.thinking ? "thinking" : STATE_WORDS[this.row.state];
    return [modelText(this.row.model), state].filter(Boolean).join(" · ");
  }

  figures() {
    const { tokens, cost_usd: cost, ttft } = this.row;
    const first = durationText(ttft);
    return [tokens && countOf(tokens, "token"), usdText(cost), first && `${first} to first`].filter(Boolean).join(" · ");
  }
}
