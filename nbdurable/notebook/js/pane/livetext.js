// @ts-check
/** An answer while it is written: text is added to what stands there, step under step. */
import { el, setText } from "../dom.js";
import { countOf, durationText, modelText, usdText } from "../figures.js";

/** @typedef {import("../tree/store.js").Live} Live */

const STATE_WORDS = { waiting: "waiting for the first token", streaming: "writing", tool: "tool at work", retry: "trying again", error: "failed" };

export class LiveText {
  /** @param {Live} row @param {(n: number) => void} select goes to an entry */
  constructor(row, select) {
    this.run = row.run;
    this.row = row;
    this.select = select;
    this.parent = row.parent;
    this.text = "";
    this.node = document.createTextNode("");
    this.note = el("div", { class: "nbd-live-note", role: "status", hidden: true });
    this.current = el("div", { class: "nbd-plain", dir: "auto" }, this.node);
    this.root = el("div", { class: "nbd-live" }, this.current, this.note);
  }

  get isRunning() {
    return this.row.state !== "error";
  }

  /** @param {Live} row */
  update(row) {
    this.row = row;
    if (row.parent !== this.parent) this.nextStep(row);
    if (row.text.length >= this.text.length && row.text.startsWith(this.text)) this.node.appendData(row.text.slice(this.text.length));
    else this.node.data = row.text;
    this.text = row.text;
    const isLoud = row.state === "error" || row.state === "retry" || row.state === "tool";
    this.note.hidden = !(isLoud && row.note);
    this.note.classList.toggle("nbd-trouble", row.state === "error");
    setText(this.note, row.note && isLoud ? `${STATE_WORDS[row.state]}: ${row.note}` : "");
  }

  /** The text so far is stored: what follows belongs to the next step. @param {Live} row */
  nextStep(row) {
    const { parent } = row;
    this.parent = parent;
    if (!this.text) return; // its input was stored, or a tool's result: nothing stands here yet
    const stored = el("button", { class: "nbd-ref", onclick: () => this.select(parent) }, `#${parent}`);
    this.node = document.createTextNode("");
    this.text = "";
    this.current = el("div", { class: "nbd-plain", dir: "auto" }, this.node);
    this.root.insertBefore(el("div", { class: "nbd-step" }, stored, " is stored"), this.note);
    this.root.insertBefore(this.current, this.note);
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
