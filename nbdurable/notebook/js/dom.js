// @ts-check
/** Elements, made without markup: a text can only ever become a text node. */

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Props
 */

const FOCUSABLE = new Set(["button", "input", "textarea", "select", "summary", "a"]);
const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element. `on…` properties are listeners, `class` is the class list, others attributes;
 * false, null and undefined leave an attribute out, true sets it empty.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Props} [props] @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  give(made, props);
  if (tag === "button" && !made.hasAttribute("type")) made.setAttribute("type", "button");
  if (FOCUSABLE.has(tag) || "tabindex" in props) suppressShortcuts(made);
  put(made, ...children);
  return made;
}

/**
 * Make an SVG element; the same rules.
 * @param {string} tag @param {Props} [props] @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, props = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  give(made, props);
  put(made, ...children);
  return made;
}

/** @param {Element} target @param {Props} props */
function give(target, props) {
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") target.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      target.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Add children; what is not a node becomes text. @param {Node} parent @param {...Child} children */
export function put(parent, ...children) {
  for (const child of children)
    if (child !== null && child !== undefined && child !== false)
      parent.appendChild(typeof child === "object" ? child : document.createTextNode(String(child)));
}

/** Set the text, if it is another. @param {Node} target @param {string} text */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Set an attribute, or take it away (null), if it is another. @param {Element} target @param {string} name @param {string | number | boolean | null} value */
export function setAttr(target, name, value) {
  if (value === null) target.removeAttribute(name);
  else if (target.getAttribute(name) !== String(value)) target.setAttribute(name, String(value));
}

/**
 * Keep Jupyter's own shortcuts out of an element that takes the focus: its bindings look at the
 * focused element itself, so that an ancestor with the attribute would not do.
 * @param {HTMLElement} target
 */
export function suppressShortcuts(target) {
  target.dataset.lmSuppressShortcuts = "true";
}

const EDITS = new Set(["a", "c", "v", "x", "y", "z"]);

/**
 * Give keys with Ctrl or Meta that nobody here took back to the cell, such as Ctrl+S; a text field
 * keeps those it edits with.
 * @param {HTMLElement} root @param {KeyboardEvent} event
 * @returns {boolean} whether the key was such a one
 */
export function forwardToHost(root, event) {
  if (!(event.ctrlKey || event.metaKey) || event.defaultPrevented) return false;
  if (EDITS.has(event.key.toLowerCase()) && event.target instanceof Element && event.target.matches("input, textarea, select")) return false;
  const cell = root.closest(".jp-Cell");
  if (cell && !cell.dispatchEvent(new KeyboardEvent("keydown", event))) event.preventDefault();
  return true;
}

/**
 * Return a function that asks for one call of `draw` in the next frame, however often it is called.
 * @param {() => void} draw @returns {(() => void) & { cancel(): void }}
 */
export function oncePerFrame(draw) {
  let asked = 0;
  const ask = () => {
    if (!asked) asked = requestAnimationFrame(() => { asked = 0; draw(); });
  };
  return Object.assign(ask, { cancel() { cancelAnimationFrame(asked); asked = 0; } });
}
