// @ts-check
/** The forms of the actions that want to know more: what to run with, how many, which words. */
import { el, setText } from "../dom.js";
import { copyText } from "../clipboard.js";
import { deskOf, focused, textOf } from "./desk.js";
import { isGo, modelField, numberField, textField, tickField } from "./fields.js";

/**
 * @typedef {import("./desk.js").Context} Context
 * @typedef {import("./fields.js").Field} Field
 * @typedef {object} Order  what a form asks the kernel for
 * @property {string} act
 * @property {(values: any) => any} args made from the fields' values by name
 * @property {string} label on its button
 * @property {string} done said when it is done
 * @property {boolean} [isFree] sent whatever the fields hold, as what takes a label away is
 * @typedef {object} Form
 * @property {string} title
 * @property {string} [lead] a sentence under the title
 * @property {Record<string, Field>} fields
 * @property {Order[]} orders the first is the usual one
 * @property {boolean} [hasEstimate] whether the cost is asked for as the fields change
 */

const ESTIMATE_AFTER_MS = 250;

/** What a form says of temperature and system. @param {any} values */
function formSettings({ model, temperature, system, effects }) {
  /** @type {Record<string, any>} */
  const args = {};
  if (model !== undefined) args.model = model;
  if (system !== undefined) args.system = system;
  if (temperature !== undefined) args.params = { temperature };
  if (effects) args.effects = "run";
  return args;
}

/** What to do with tools that change something: no question where there are none. @param {Context["store"]} store @returns {Form["fields"]} */
function effectsField(store) {
  return store.head.tools?.length ? { effects: tickField("Also repeat tools with effects") } : {};
}

/** @param {Context} context @param {number} n @param {any} detail @returns {Form} */
export function rerunForm({ store }, n, detail) {
  const model = store.model(n) || detail?.model || store.head.model || "";
  return {
    title: `Rerun #${n} with`,
    fields: {
      model: modelField(store.head.models ?? [], model),
      temperature: temperatureField(detail?.params ?? store.head.params),
      system: textField({ label: "System", rows: 3, value: detail?.system ?? "", hint: "none" }),
      ...effectsField(store),
    },
    orders: [{ act: "rerun", args: (values) => ({ n, ...formSettings(values) }), label: "Rerun", done: `rerunning #${n}` }],
  };
}

/** @param {Context} context @param {number} n @returns {Form} */
export function sampleForm({ store }, n) {
  return {
    title: `Sample #${n}`,
    lead: "More answers beside each other; the leaf stays where it is.",
    fields: {
      count: numberField({ label: "Answers", value: "3", least: 1, most: 1_000, isWhole: true, isNeeded: true, hasFocus: true }),
      model: modelField(store.head.models ?? [], store.model(n) || store.head.model || ""),
      temperature: temperatureField(store.head.params),
      ...effectsField(store),
    },
    orders: [{ act: "sample", args: ({ count, ...values }) => ({ n, count, ...formSettings(values) }), label: "Sample", done: `sampling #${n}` }],
    hasEstimate: true,
  };
}

/** @param {Context} context @param {number} n @returns {Form} */
export function labelForm({ store }, n) {
  const [now = ""] = store.marks(n)?.labels ?? [];
  const set = { act: "label", args: (/** @type {any} */ { text }) => ({ n, text: (text ?? now).trim() || null }), label: "Label", done: `#${n} is labelled` };
  const away = { act: "label", args: () => ({ n, text: null }), label: "Remove", done: `#${n} has no label`, isFree: true };
  return {
    title: `Label #${n}`,
    fields: { text: textField({ label: "Label", value: now, hasFocus: true }) },
    orders: now ? [set, away] : [set],
  };
}

/** @param {Context} context @param {number} n @returns {Form} */
export function rateForm({ store }, n) {
  const now = store.marks(n)?.ratings?.[0];
  const name = now?.name ?? "rating";
  const named = (/** @type {any} */ values) => ({ n, name: (values.name ?? name).trim() || "rating" });
  /** @param {any} values */
  const args = (values) => ({ ...named(values), score: values.score, ...(values.note ? { note: values.note } : {}) });
  const set = { act: "rate", args, label: "Rate", done: `#${n} is rated` };
  const away = { act: "rate", args: (/** @type {any} */ values) => ({ ...named(values), score: null }), label: "Remove", done: `the rating of #${n} is taken back`, isFree: true };
  return {
    title: `Rate #${n}`,
    fields: {
      score: numberField({ label: "Score", value: now ? String(Number(now.score)) : "", isNeeded: true, hasFocus: true }),
      name: textField({ label: "What is rated", value: name, isShort: true }),
      note: textField({ label: "Why", hint: "optional" }),
    },
    orders: now ? [set, away] : [set],
  };
}

/** @param {Context} context @returns {Form} */
export function compactForm({ store }) {
  return {
    title: "Compact",
    lead: `The model reads a summary in place of what leads to #${store.head.leaf}; every entry stays.`,
    fields: {},
    orders: [{ act: "compact", args: () => ({}), label: "Compact", done: "compacting" }],
  };
}

/** @param {Record<string, any> | null | undefined} params */
export function temperatureField(params) {
  const now = params?.temperature;
  return numberField({ label: "Temperature", value: now === undefined || now === null ? "" : String(now), hint: "default", least: 0, most: 5 });
}

/** A field's problem, or the values by name. @param {Record<string, Field>} fields @returns {{ problem: string | null, values: Record<string, any> }} */
export function readFields(fields) {
  /** @type {Record<string, any>} */
  const values = {};
  let problem = null;
  for (const [name, field] of Object.entries(fields)) {
    const wrong = field.problem();
    field.input.setAttribute("aria-invalid", String(Boolean(wrong)));
    problem ??= wrong;
    values[name] = field.read();
  }
  return { problem, values };
}

/**
 * Open a form; it closes when the kernel has taken its order, and says what was wrong when not.
 * @param {Context} context @param {Form} form @param {number} n @param {Element | null} anchor
 */
export function openForm(context, form, n, anchor) {
  const desk = deskOf(context);
  const foot = el("div", { class: "nbd-form-foot", role: "status" });
  const inner = el("form", { class: "nbd-form", novalidate: true, onsubmit, onkeydown });
  const node = el("div", {}, inner);
  const buttons = form.orders.map((order, at) =>
    el("button", { type: at ? "button" : "submit", class: at ? "nbd-edge" : "nbd-key", onclick: at > 0 && (() => send(order)) }, order.label));
  const code = el("button", { class: "nbd-quiet", onclick: copyCode }, "Copy as code");
  const roots = Object.values(form.fields).map((field) => field.root);
  const lead = form.lead && el("p", { class: "nbd-lead" }, form.lead);
  const cancel = el("button", { class: "nbd-edge", onclick: () => float.close() }, "Cancel");
  inner.append(el("b", {}, form.title), ...(lead ? [lead] : []), ...roots, foot,
    el("div", { class: "nbd-form-ends" }, code, el("span", { class: "nbd-gap" }), cancel, ...buttons.reverse()));
  if (form.hasEstimate) estimateAsTyped(context, form, node, foot);
  const float = desk.open(node, anchor, { label: form.title });

  /** @param {string} text */
  function tell(text, isBad = true) {
    foot.classList.toggle("nbd-bad", isBad);
    setText(foot, text);
  }
  /** @param {Event} event */
  function onsubmit(event) {
    event.preventDefault();
    send(form.orders[0]);
  }
  /** @param {KeyboardEvent} event */
  function onkeydown(event) {
    if (!isGo(event)) return;
    event.preventDefault();
    event.stopPropagation();
    send(form.orders[0]);
  }
  /** @param {Order} order */
  async function send(order) {
    const { problem, values } = readFields(form.fields);
    if (problem && !order.isFree) return tell(problem);
    const outcome = await desk.actIn(foot, order.act, order.args(values), n, order.done);
    if (outcome.isDone) float.close();
  }
  async function copyCode() {
    const { problem, values } = readFields(form.fields);
    if (problem) return tell(problem);
    const [order] = form.orders;
    try {
      const { code: text } = await context.link.ask("code", { name: order.act, args: order.args(values) });
      tell((await copyText(text, node)) ? `copied ${text}` : text, false);
    } catch (error) {
      tell(textOf(error));
    }
  }
  return { close: float.close, hasFocus: () => node.contains(focused(node)) };
}

/** Say what the order would cost, as its fields change. @param {Context} context @param {Form} form @param {HTMLElement} node @param {HTMLElement} foot */
function estimateAsTyped({ link }, form, node, foot) {
  let asked = 0;
  /** @type {any} */
  let timer;
  const ask = async () => {
    const { problem, values } = readFields(form.fields);
    const mine = ++asked;
    if (problem) return;
    try {
      const { text } = await link.ask("estimate", form.orders[0].args(values));
      if (mine === asked && node.isConnected && !foot.classList.contains("nbd-bad")) setText(foot, text);
    } catch (error) {
      if (mine === asked) setText(foot, textOf(error));
    }
  };
  node.addEventListener("input", () => {
    foot.classList.remove("nbd-bad");
    clearTimeout(timer);
    timer = setTimeout(ask, ESTIMATE_AFTER_MS);
  });
  ask();
}
