// @ts-check
/** Copying a text, also where the page may not write to the clipboard itself. */
import { el, setText } from "./dom.js";

const COPIED_MS = 1_500;

/**
 * Put a text on the clipboard. @param {string} text @param {Element} near an element of the page
 * @returns {Promise<boolean>} whether it is there
 */
export async function copyText(text, near) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // an insecure page, or a frame without the permission
    return copyBySelection(text, near);
  }
}

/** @param {string} text @param {Element} near @returns {boolean} */
function copyBySelection(text, near) {
  const host = near.closest(".nbd-widget") ?? near;
  const area = el("textarea", { class: "nbd-hidden", "aria-hidden": true, tabindex: -1 });
  area.value = text;
  host.appendChild(area);
  area.select();
  const isDone = typeof document.execCommand === "function" && document.execCommand("copy");
  area.remove();
  return isDone;
}

/**
 * Make a button that copies what `read` gives when it is pressed, and says so on itself.
 * @param {string} label @param {() => string | Promise<string>} read @param {string} [title]
 */
export function copyButton(label, read, title = "") {
  /** @type {any} */
  let timer;
  const button = el("button", { class: "nbd-copy", title, onclick: copy }, label);
  async function copy() {
    let said = "Copied";
    try {
      if (!(await copyText(await read(), button))) said = "Not allowed here";
    } catch (error) {
      said = error instanceof Error ? error.message : String(error);
    }
    button.setAttribute("aria-live", "polite");
    setText(button, said);
    clearTimeout(timer);
    timer = setTimeout(() => setText(button, label), COPIED_MS);
  }
  return button;
}
