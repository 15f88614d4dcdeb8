// @ts-check
/** The frame of a widget of its own: one root, its static twin hidden while it lives. */
import { el } from "./dom.js";

/**
 * Make a widget's root in the host's element.
 * @param {import("./link.js").Model} model @param {HTMLElement} host @param {string} name a class
 * @returns {HTMLElement}
 */
export function widgetRoot(model, host, name) {
  const root = el("div", { class: `nbd-widget ${name} tex2jax_ignore mathjax_ignore` });
  const uid = String(model.get("uid") ?? "").replace(/[^\w-]/g, "");
  if (uid) root.append(el("style", {}, `[data-nbd-twin="${uid}"]{display:none}`));
  host.append(root);
  return root;
}

/**
 * Make a line that says what goes on, heard by screen readers.
 * @returns {{ element: HTMLElement, say(text: string, isBad?: boolean): void }}
 */
export function statusLine() {
  const element = el("div", { class: "nbd-said", role: "status" });
  return {
    element,
    say(text, isBad = false) {
      element.textContent = text;
      element.classList.toggle("nbd-bad", isBad);
    },
  };
}

/** Whether a key is typed into a field, where it means itself. @param {KeyboardEvent} event */
export function isTyping(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  return /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}
