// @ts-check
/** The session tree: one view of it. */

import { el, put } from "./dom.js";
import { Link } from "./link.js";

/** @param {{ model: import("./link.js").Model, el: HTMLElement }} host */
function render(host) {
  const link = new Link(host.model, { onSnapshot() {}, onOps() {}, onTrouble() {} });
  put(host.el, el("div", { class: "nbd-widget tex2jax_ignore mathjax_ignore" }));
  return () => link.close();
}

export default { render };
