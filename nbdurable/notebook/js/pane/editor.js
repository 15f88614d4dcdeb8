// @ts-check
/** The inline editor of an entry: what is saved becomes a sibling, the original stays. */
import { el, setText } from "../dom.js";
import { copyText } from "../clipboard.js";
import { deskOf, textOf } from "./desk.js";
import { growArea, isGo, keepEditing, modelField } from "./fields.js";
import { readFields, temperatureField } from "./forms.js";

/** @typedef {import("./desk.js").Context} Context */

export class EntryEditor {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.desk = deskOf(context);
    /** @type {Map<number, string>} texts that were left without being saved */
    this.drafts = new Map();
    this.n = 0;
    this.original = "";
    this.area = el("textarea", { rows: 3, dir: "auto", class: "nbd-edit-text", onkeydown: keepEditing, oninput: () => growArea(this.area) });
    this.foot = el("div", { class: "nbd-form-foot", role: "status" });
    /** @type {HTMLElement | null} */
    this.form = null;
    this.done = () => {};
  }

  get isOpen() {
    return this.form !== null;
  }

  /** Make the form. @param {number} n @param {any} detail @param {string} text @param {() => void} done called when it closes @returns {HTMLElement} */
  open(n, detail, text, done) {
    const { store } = this.context;
    const canRun = store.role(n) === "user";
    this.n = n;
    this.original = text;
    this.done = done;
    this.area.value = this.drafts.get(n) ?? text;
    this.foot.classList.remove("nbd-bad");
    setText(this.foot, "");
    /** @type {Record<string, import("./fields.js").Field>} */
    const fields = canRun ? { model: modelField(store.head.models ?? [], store.head.model ?? ""), temperature: temperatureField(store.head.params) } : {};
    const save = (/** @type {boolean} */ isRun) => this.save(isRun, fields);
    const go = el("button", { type: "submit", class: "nbd-key" }, canRun ? "Save and rerun" : "Save");
    const only = canRun && el("button", { class: "nbd-edge", onclick: () => save(false) }, "Save only");
    const cancel = el("button", { class: "nbd-edge", onclick: () => this.cancel() }, "Cancel");
    const code = el("button", { class: "nbd-quiet", onclick: () => this.copyCode(canRun, fields) }, "Copy as code");
    const lead = canRun ? "The original stays; the new text becomes its sibling." : "The original stays; the new text becomes its sibling, in your words.";
    this.form = el("form", { class: "nbd-editor", "aria-label": `Edit #${n}`, novalidate: true,
      onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); save(canRun); },
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.press(event, () => save(canRun)) },
      el("label", { class: "nbd-field nbd-field-tall" }, el("span", { class: "nbd-name" }, `Edit #${n}`), this.area),
      el("p", { class: "nbd-lead" }, lead),
      Object.keys(fields).length > 0 && el("div", { class: "nbd-pair" }, ...Object.values(fields).map((field) => field.root)),
      this.foot,
      el("div", { class: "nbd-form-ends" }, code, el("span", { class: "nbd-gap" }), cancel, only, go));
    return this.form;
  }

  focus() {
    growArea(this.area);
    this.area.focus({ preventScroll: true });
    this.area.setSelectionRange(this.area.value.length, this.area.value.length);
  }

  /** Put it away and keep what was written, for when the entry is edited again. */
  leave() {
    if (!this.form) return;
    if (this.area.value === this.original) this.drafts.delete(this.n);
    else this.drafts.set(this.n, this.area.value);
    this.form = null;
  }

  cancel() {
    this.form = null;
    this.drafts.delete(this.n);
    this.done();
  }

  /** @param {KeyboardEvent} event @param {() => void} save */
  press(event, save) {
    if (event.key !== "Escape" && !isGo(event)) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Escape") this.cancel();
    else save();
  }

  /** @param {boolean} isRun @param {Record<string, import("./fields.js").Field>} fields */
  order(isRun, fields) {
    const { problem, values } = readFields(isRun ? fields : {});
    /** @type {Record<string, any>} */
    const args = { n: this.n, text: this.area.value, run: isRun };
    if (values.model !== undefined) args.model = values.model;
    if (values.temperature !== undefined) args.params = { temperature: values.temperature };
    return { problem: problem ?? (this.area.value.trim() ? null : "write something; an entry cannot be blank"), args };
  }

  /** @param {string} text @param {boolean} isBad */
  tell(text, isBad) {
    this.foot.classList.toggle("nbd-bad", isBad);
    setText(this.foot, text);
  }

  /** @param {boolean} isRun @param {Record<string, import("./fields.js").Field>} fields */
  async save(isRun, fields) {
    const { n, form } = this;
    const { problem, args } = this.order(isRun, fields);
    if (problem) return this.tell(problem, true);
    const outcome = await this.desk.actIn(this.foot, "edit", args, n, isRun ? `rerunning the edited #${n}` : `the edited #${n} is stored`);
    if (!outcome.isDone) return;
    this.drafts.delete(n);
    if (form !== this.form) return;
    this.cancel();
    if (outcome.body?.n) this.context.view.select(outcome.body.n);
  }

  /** @param {boolean} isRun @param {Record<string, import("./fields.js").Field>} fields */
  async copyCode(isRun, fields) {
    const { problem, args } = this.order(isRun, fields);
    if (problem) return this.tell(problem, true);
    try {
      const { code } = await this.context.link.ask("code", { name: "edit", args });
      this.tell((await copyText(code, this.area)) ? "copied" : code, false);
    } catch (error) {
      this.tell(textOf(error), true);
    }
  }
}

/** The text an entry was written with; null where a part of it is not here, or there is none. @param {any} detail @returns {string | null} */
export function sourceOf(detail) {
  if (typeof detail?.text === "string") return detail.text;
  if (detail?.hidden) return null;
  try {
    const entry = JSON.parse(detail?.json ?? "");
    const message = entry.message ?? entry.payload?.message ?? entry.payload ?? entry;
    const blocks = message.blocks ?? message.content;
    if (typeof blocks === "string") return blocks;
    const texts = blocks.filter((/** @type {any} */ block) => typeof block.text === "string" && block.type === "text");
    return texts.length ? texts.map((/** @type {any} */ block) => block.text).join("\n\n") : null;
  } catch {
    return null; // no JSON of a message
  }
}
