// @ts-check
/** Fields of forms: each knows its label, and reads as a value or as nothing when left alone. */
import { el } from "../dom.js";
import { modelText } from "../figures.js";
import { isOwn } from "./desk.js";

/**
 * @typedef {object} Field
 * @property {HTMLElement} root what stands in the form, with its label
 * @property {HTMLElement} input what takes the focus
 * @property {() => any} read the value; undefined when it was left as it is
 * @property {() => string | null} problem what is wrong with it, if something is
 * @typedef {{ label: string, value?: string, hint?: string, isShort?: boolean, rows?: number, hasFocus?: boolean, isHidden?: boolean }} TextOptions
 */

const OTHER_MODEL = "other…";
const MAX_ROWS = 8;

/** @param {TextOptions} options @returns {Field & { input: HTMLInputElement | HTMLTextAreaElement }} */
export function textField({ label, value = "", hint = "", isShort = false, rows = 1, hasFocus = false, isHidden = false }) {
  const props = { placeholder: hint, autofocus: hasFocus, class: isShort ? "nbd-short" : "nbd-wide", dir: "auto" };
  const input = rows > 1 ? el("textarea", { ...props, rows, onkeydown: keepEditing }) : el("input", { ...props, type: "text", onkeydown: keepEditing });
  input.value = value;
  const name = el("span", { class: isHidden ? "nbd-hidden" : "nbd-name" }, label);
  return {
    root: el("label", { class: rows > 1 ? "nbd-field nbd-field-tall" : "nbd-field" }, name, input),
    input,
    read: () => (input.value === value ? undefined : input.value),
    problem: () => null,
  };
}

/**
 * @param {TextOptions & { least?: number, most?: number, isWhole?: boolean, isNeeded?: boolean }} options
 * @returns {Field & { input: HTMLInputElement }}
 */
export function numberField({ least = -Infinity, most = Infinity, isWhole = false, isNeeded = false, ...options }) {
  const field = textField({ isShort: true, ...options });
  const input = /** @type {HTMLInputElement} */ (field.input);
  input.setAttribute("inputmode", isWhole ? "numeric" : "decimal");
  input.setAttribute("autocomplete", "off");
  const number = () => Number(input.value.trim().replace(",", "."));
  const problem = () => {
    if (!input.value.trim()) return isNeeded ? `${options.label}: a number is needed` : null;
    const isRight = Number.isFinite(number()) && number() >= least && number() <= most && (!isWhole || Number.isInteger(number()));
    return isRight ? null : `${options.label} ${JSON.stringify(input.value.slice(0, 40))} is not a ${rangeText(least, most, isWhole)}`;
  };
  const read = () => (!input.value.trim() || (!isNeeded && input.value === (options.value ?? "")) ? undefined : number());
  return { ...field, input, problem, read };
}

/** @param {number} least @param {number} most @param {boolean} isWhole @returns {string} */
function rangeText(least, most, isWhole) {
  const kind = isWhole ? "whole number" : "number";
  if (Number.isFinite(least) && Number.isFinite(most)) return `${kind} from ${least} to ${most}`;
  return Number.isFinite(least) ? `${kind} of ${least} or more` : kind;
}

/** A choice of models, where any other name may be typed. @param {string[]} names @param {string} value @param {{ isHidden?: boolean }} [options] @returns {Field & { set(names: string[], value: string): void }} */
export function modelField(names, value, { isHidden = false } = {}) {
  const select = el("select", { class: "nbd-pick", onchange: change });
  const own = el("input", { type: "text", class: "nbd-wide", "aria-label": "Name of the model", placeholder: "name of the model", hidden: true, onkeydown: keepEditing });
  let usual = value;
  const offer = () => {
    const all = [...new Set([usual, ...names].filter(Boolean))];
    select.replaceChildren(...all.map((name) => el("option", { value: name }, shortest(name, all))), el("option", { value: OTHER_MODEL }, OTHER_MODEL));
    select.value = usual;
  };
  function change() {
    own.hidden = select.value !== OTHER_MODEL;
    if (!own.hidden) own.focus();
  }
  offer();
  const now = () => (own.hidden ? select.value : own.value.trim());
  const name = el("span", { class: isHidden ? "nbd-hidden" : "nbd-name" }, "Model");
  return {
    root: el("span", { class: "nbd-field" }, el("label", { class: "nbd-pair" }, name, select), own),
    input: select,
    read: () => (now() && now() !== usual ? now() : undefined),
    problem: () => (!own.hidden && !own.value.trim() ? "name the model, or choose one" : null),
    set(given, chosen) {
      if (given.join("\n") === names.join("\n") && chosen === usual) return;
      const kept = select.value !== usual && given.includes(select.value) ? select.value : null;
      [names, usual] = [given, chosen];
      offer();
      if (kept) select.value = kept;
      if (!own.hidden) select.value = OTHER_MODEL;
    },
  };
}

/** A name without its provider, unless two of them would read the same. @param {string} name @param {string[]} all */
function shortest(name, all) {
  const isClear = all.every((other) => other === name || modelText(other) !== modelText(name));
  return isClear ? modelText(name) : name;
}

/** @param {string} label @returns {Field & { input: HTMLInputElement }} reads true or undefined */
export function tickField(label) {
  const input = el("input", { type: "checkbox" });
  const root = el("label", { class: "nbd-tick" }, input, el("span", {}, label));
  return { root, input, read: () => input.checked || undefined, problem: () => null };
}

/** Let a text area grow with its text, up to eight lines. @param {HTMLTextAreaElement} area */
export function growArea(area) {
  area.style.height = "auto";
  const style = getComputedStyle(area);
  const line = parseFloat(style.lineHeight) || 18;
  const frame = area.offsetHeight - area.clientHeight;
  const inner = parseFloat(style.paddingTop) + parseFloat(style.paddingBottom) || 8;
  const most = line * MAX_ROWS + inner;
  area.style.height = `${Math.ceil(Math.min(area.scrollHeight, most) + frame)}px`;
  area.style.overflowY = area.scrollHeight > most + 1 ? "auto" : "hidden";
}

/** Whether a key says "go": Ctrl or Cmd with Enter; never Shift+Enter, which is the notebook's. @param {KeyboardEvent} event */
export function isGo(event) {
  return event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && !event.isComposing;
}

/** Keep what edits a text from the tree and the notebook around it. @param {KeyboardEvent} event */
export function keepEditing(event) {
  if (event.key !== "Escape" && event.key !== "Tab" && !isGo(event) && isOwn(event)) event.stopPropagation();
}
