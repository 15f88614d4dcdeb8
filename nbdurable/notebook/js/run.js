// @ts-check
/** A run while it goes on: what has come, a closing line that ticks, and a button that stops it. */
import { el, forwardToHost, setText } from "./dom.js";
import { Link } from "./link.js";
import { GrowingNodes } from "./nodes.js";

/**
 * @typedef {import("./nodes.js").MarkdownNode} MarkdownNode
 * @typedef {{ nodes: MarkdownNode[], foot: string, over?: boolean }} RunState
 */

/** @param {{ model: import("./link.js").Model, el: HTMLElement }} context */
function render({ model, el: host }) {
  const body = el("div", { class: "nbd-run-body" });
  const foot = el("span", { class: "nbd-foot" });
  const said = el("span", { class: "nbd-foot", role: "status" });
  const stop = el("button", { class: "nbd-edge", title: "Stop this run; what came is kept" }, "Stop");
  const root = el(
    "div",
    { class: "nbd nbd-widget nbd-run tex2jax_ignore mathjax_ignore" },
    body,
    el("div", { class: "nbd-run-foot" }, stop, foot, said),
  );
  root.addEventListener("keydown", (event) => {
    forwardToHost(root, event);
    event.stopPropagation();
  });
  const end = () => {
    stop.hidden = true;
    setText(said, "");
  };
  const grown = new GrowingNodes(body);
  const link = new Link(model, {
    onSnapshot: (/** @type {RunState} */ state) => {
      grown.show(state.nodes);
      setText(foot, state.foot);
      if (state.over) end();
    },
    onOps: (ops) => {
      for (const op of ops) {
        if (op.op === "over") { end(); continue; }
        if (op.from > grown.nodes.length) return link.resync();
        grown.show([...grown.nodes.slice(0, op.from), ...op.nodes]);
        setText(foot, op.foot);
      }
    },
    onTrouble: (text) => setText(said, text),
  });

  stop.addEventListener("click", () => {
    stop.disabled = true;
    const stage = (/** @type {string} */ at) =>
      setText(said, at === "queued" ? "the kernel is busy; Interrupt stops it too" : "stopping …");
    link.act("cancel", {}, stage).catch((error) => {
      stop.disabled = false;
      setText(said, error.message);
    });
  });
  host.appendChild(root);
  return () => {
    link.close(); // with a last word: the kernel keeps the model until then
    root.remove();
  };
}

export default { render };
