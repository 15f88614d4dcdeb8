// @ts-check
/** The comparison as a widget of its own. */
import { showComparison } from "./compare.js";
import { statusLine, widgetRoot } from "../frame.js";
import { Link } from "../link.js";

/** @param {{ model: import("../link.js").Model, el: HTMLElement }} props */
function render({ model, el: host }) {
  const root = widgetRoot(model, host, "nbd-comparison");
  const status = statusLine();
  root.append(status.element);
  /** @type {ReturnType<typeof showComparison> | null} */
  let view = null;
  /** @param {any} body */
  const show = (body) => { status.say(""); if (view) view.update(body); else view = showComparison(root, link, body); };
  const link = new Link(model, {
    onSnapshot: show,
    onOps: (ops) => { for (const op of ops) if (op.op === "body") show(op.body); },
    onTrouble: (text) => status.say(text, true),
  });
  return () => { link.close(); root.remove(); };
}

export default { render };
