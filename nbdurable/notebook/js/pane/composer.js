// @ts-check
/** The line below the tree that continues the session, and the questions of its tools. */
import { canGoOn, placeOf } from "./actions.js";
import { copyText } from "../clipboard.js";
import { deskOf, textOf } from "./desk.js";
import { el, setAttr, setText } from "../dom.js";
import { growArea, isGo, keepEditing, modelField, numberField } from "./fields.js";
import { readFields } from "./forms.js";
import { stoppable } from "./stopping.js";

/** @typedef {import("./desk.js").Context} Context @typedef {import("./desk.js").Question} Question */

const DRAFT_AFTER_MS = 400;

/** Make the composer; `update` follows the leaf, the models, what runs and what is asked. @param {Context} context */
export function createComposer(context) {
  return new Composer(context);
}

export class Composer {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.desk = deskOf(context);
    this.desk.composer = this;
    this.at = 0; // the entry to go on from, 0 for the leaf wherever it is
    this.isRestored = false;
    /** @type {any} */
    this.timer = null;
    this.model = modelField([], "", { isHidden: true });
    this.temperature = numberField({ label: "Temperature", hint: "T", least: 0, most: 5 });
    this.area = el("textarea", { rows: 1, dir: "auto", "aria-label": "Message", "aria-keyshortcuts": "Control+Enter", onkeydown: keepEditing, oninput: () => this.typed() });
    this.spot = el("button", { class: "nbd-spot", hidden: true, title: "Continue from the leaf instead", onclick: () => this.from(0) });
    this.code = el("button", { class: "nbd-quiet", hidden: true, onclick: () => this.copyCode() }, "Copy as code");
    this.stop = el("button", { class: "nbd-edge", disabled: true, hidden: true, onclick: () => this.stopAll() }, "Stop");
    this.go = el("button", { type: "submit", class: "nbd-key" }, "Run ⌃⏎");
    this.questions = el("div", { class: "nbd-questions", role: "region", "aria-label": "Questions of tools", hidden: true });
    this.line = el("div", { class: "nbd-form-foot nbd-compose-foot", role: "status" });
    this.form = el("form", { class: "nbd-compose-form", "aria-label": "Continue the session", novalidate: true, onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.run(); }, onkeydown: (/** @type {KeyboardEvent} */ event) => this.press(event) },
      el("div", { class: "nbd-compose-text" }, this.spot, this.area, this.code),
      el("div", { class: "nbd-compose-side" }, this.stop, this.model.root, el("label", { class: "nbd-pair nbd-t" }, el("span", { "aria-hidden": true }, "T"), el("span", { class: "nbd-hidden" }, "Temperature"), this.temperature.input), this.go));
    this.root = el("div", { class: "nbd-compose" }, this.questions, this.form, this.line);
    this.update();
  }

  /** Follow the store. */
  update() {
    const { head, live } = this.context.store;
    if (!head) return;
    this.restore();
    this.model.set(head.models ?? [], head.model ?? "");
    setAttr(this.temperature.input, "placeholder", String(head.params?.temperature ?? "–"));
    const { isClosed, isRunning } = this.state();
    setAttr(this.area, "placeholder", this.hint());
    this.area.disabled = isClosed;
    this.stop.disabled = live.size === 0;
    this.stop.hidden = live.size === 0;
    this.go.disabled = isClosed || isRunning || (!this.area.value.trim() && !this.canGoOn());
    setText(this.go, !this.area.value.trim() && this.canGoOn() ? "Go on ⌃⏎" : "Run ⌃⏎");
    setAttr(this.go, "title", isRunning ? "A run is going on; stop it or wait" : "Run (Ctrl+Enter)");
    this.spot.hidden = !this.at;
    this.code.hidden = !this.area.value.trim();
    setText(this.spot, `from #${this.at} ×`);
    this.drawQuestions();
  }

  state() {
    const { head, live } = this.context.store;
    return { isClosed: Boolean(head?.is_closed), isRunning: [...live.values()].some((row) => row.exp < 0 && row.state !== "error") };
  }

  /** @returns {number} the entry that would be gone on from */
  place() {
    return this.at || this.context.store.head?.leaf || 0;
  }

  canGoOn() {
    const n = this.place();
    return n > 0 && canGoOn(placeOf(this.context, n));
  }

  hint() {
    const { head } = this.context.store;
    if (head.is_closed) return "The session is closed; open it again to go on";
    const n = this.place();
    return n ? `Continue from #${n} …` : "Say something …";
  }

  /** Go on from an entry, or from the leaf (0). @param {number} n */
  from(n) {
    this.at = n === this.context.store.head?.leaf ? 0 : n;
    this.update();
    this.focus();
  }

  focus() {
    this.area.focus({ preventScroll: true });
  }

  close() {
    this.keep();
  }

  // -- running -------------------------------------------------------------------------------------

  async run() {
    const text = this.area.value;
    const { isClosed, isRunning } = this.state();
    if (isClosed || isRunning) return this.tell(isRunning ? "a run is going on; stop it or wait for its end" : "the session is closed");
    const { problem, args } = this.order();
    if (problem) return this.tell(problem);
    if (text.trim()) return this.send("run", args, "running");
    return this.canGoOn() ? this.send("goon", { n: this.place() }, "going on") : this.tell("write something first");
  }

  /** What the line and its fields ask for. @returns {{ problem: string | null, args: any }} */
  order() {
    const { problem, values } = readFields({ model: this.model, temperature: this.temperature });
    /** @type {Record<string, any>} */
    const args = { text: this.area.value };
    if (this.at) args.at = this.at;
    if (values.model !== undefined) args.model = values.model;
    if (values.temperature !== undefined) args.params = { temperature: values.temperature };
    return { problem, args };
  }

  async copyCode() {
    const { problem, args } = this.order();
    if (problem) return this.tell(problem);
    try {
      const { code } = await this.context.link.ask("code", { name: "run", args });
      this.line.classList.remove("nbd-bad");
      setText(this.line, (await copyText(code, this.area)) ? `copied ${code}` : code);
    } catch (error) {
      this.tell(textOf(error));
    }
  }

  /** @param {string} name @param {any} args @param {string} done */
  async send(name, args, done) {
    const outcome = await this.desk.actIn(this.line, name, args, "composer", done);
    if (!outcome.isDone) return this.update();
    // what was written meanwhile stays
    if (name === "run" && this.area.value === args.text) this.area.value = "";
    this.at = 0;
    this.typed();
    this.keep();
  }

  stopAll() {
    const rows = [...this.context.store.live.values()];
    const first = rows.filter((row) => row.exp < 0);
    for (const { name, args, about } of stoppable(this.context.store, first.length ? first : rows)) this.desk.act(name, args, about, this.stop, "stopped");
  }

  /** @param {string} text */
  tell(text) {
    this.line.classList.add("nbd-bad");
    setText(this.line, text);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (isGo(event)) {
      event.preventDefault();
      event.stopPropagation();
      if (!event.repeat) this.run();
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.context.view.focus();
    }
  }

  // -- what is written -----------------------------------------------------------------------------

  typed() {
    growArea(this.area);
    this.line.classList.remove("nbd-bad");
    if (!this.desk.busy.size) setText(this.line, "");
    this.update();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.keep(), DRAFT_AFTER_MS);
  }

  draftName() {
    const { store, session } = this.context.store.head ?? {};
    return `nbd-draft:${JSON.stringify([store, session])}`;
  }

  /** Keep the draft over a reload, where the browser allows it. */
  keep() {
    clearTimeout(this.timer);
    if (!this.isRestored) return;
    try {
      if (this.area.value) localStorage.setItem(this.draftName(), this.area.value);
      else localStorage.removeItem(this.draftName());
    } catch {
      // private windows and full storages refuse; the draft then lives as long as the view
    }
  }

  restore() {
    if (this.isRestored) return;
    this.isRestored = true;
    try {
      const kept = localStorage.getItem(this.draftName());
      if (kept && !this.area.value) this.area.value = kept;
    } catch {
      return; // as in keep()
    }
    if (this.area.value) requestAnimationFrame(() => growArea(this.area));
  }

  // -- questions -----------------------------------------------------------------------------------

  drawQuestions() {
    const asked = [...this.context.store.questions.values()];
    const ids = asked.map(({ id }) => id).join("\n");
    if (ids === (this.questions.dataset.ids ?? "")) return;
    const isMore = asked.length > this.questions.children.length;
    this.questions.dataset.ids = ids;
    this.questions.hidden = !asked.length;
    this.questions.replaceChildren(...asked.map((question) => this.question(question)));
    if (isMore) this.context.view.say(`a tool asks: ${asked.at(-1)?.text ?? ""}`);
  }

  /** @param {Question} question */
  question({ id, tool, text }) {
    const answer = (/** @type {boolean} */ allow, /** @type {HTMLElement} */ button) => this.desk.act("answer", { id, allow }, id, button, allow ? "allowed" : "denied");
    const yes = el("button", { class: "nbd-edge", onclick: () => answer(true, yes) }, "Allow");
    const no = el("button", { class: "nbd-edge", onclick: () => answer(false, no) }, "Deny");
    return el("div", { class: "nbd-question", role: "group", "aria-label": `May ${tool} run?` }, el("b", { dir: "auto" }, tool), el("span", { class: "nbd-question-text", dir: "auto", tabindex: 0 }, text), yes, no);
  }
}
