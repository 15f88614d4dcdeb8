/** A view as the tree makes it, with a session that tests write down, and the traps of the wild. */
import { readFileSync } from "node:fs";
import { after } from "node:test";
import { FakeModel } from "./page.mjs";
import { deskOf } from "../../nbdurable/notebook/js/pane/desk.js";
import { Link } from "../../nbdurable/notebook/js/link.js";

const TRAPS = new URL("../data/text_traps.jsonl", import.meta.url);

/** Texts that have broken other displays, by name. */
export function traps() {
  const lines = readFileSync(TRAPS, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return lines.map(({ name, text, unit, repeat }) => ({ name, text: text ?? unit.repeat(repeat) }));
}

/** What the kernel would tell of a session; `rows` by number. */
export class FakeStore {
  constructor(rows = {}, head = {}) {
    this.rows = rows;
    this.head = { session: "support", store: "demo.duckdb", model: "m1", params: { temperature: 0.2 }, leaf: 4, models: ["m1", "m2"], tools: [], is_closed: false, ...head };
    this.live = new Map();
    this.experiments = [{ id: "x", name: "wording", at: 2, runs: 50, done: 3, failed: 0, cost_usd: null, state: "running", axes: [] }];
    this.questions = new Map();
  }
  get count() { return Object.keys(this.rows).length; }
  role(n) { return this.rows[n]?.role ?? "assistant"; }
  parentOf(n) { return this.rows[n]?.parent ?? n - 1; }
  flags(n) { return this.rows[n]?.flags ?? 0; }
  model(n) { return this.rows[n]?.model ?? null; }
  marks(n) { return this.rows[n]?.marks ?? null; }
  note(n) { return this.rows[n]?.note ?? null; }
  preview(n) { return this.rows[n]?.preview ?? `preview ${n}`; }
  childrenOf(n) { return Object.keys(this.rows).map(Number).filter((at) => this.parentOf(at) === n); }
  siblingsOf(n) { return this.childrenOf(this.parentOf(n)); }
}

/** @type {any[]} */
const contexts = [];
// what was never answered would keep the process waiting
after(() => {
  for (const context of contexts) {
    deskOf(context).close();
    context.link.close();
  }
});

/** A root with a tree that takes the focus, in the page, and all that the parts are given. */
export function viewOf(document, store = new FakeStore()) {
  const model = new FakeModel();
  const link = new Link(model, { onSnapshot() {}, onOps() {}, onTrouble() {} });
  const root = document.createElement("div");
  root.className = "nbd-widget";
  const tree = document.createElement("div");
  tree.setAttribute("role", "tree");
  tree.setAttribute("tabindex", "0");
  root.appendChild(tree);
  document.body.appendChild(root);
  const told = { said: [], selected: [], compared: [], followed: [] };
  const view = {
    root, selected: 0, selectedRun: null, pins: new Set(),
    select(n) { told.selected.push(n); this.selected = n; },
    pin(n) { if (!this.pins.delete(n)) this.pins.add(n); },
    say(text) { told.said.push(text); },
    changed() {}, zoom() {}, follow(run) { told.followed.push(run); },
    compare(ns) { told.compared.push(ns); },
    isLive: (n) => [...store.live.values()].some((row) => row.parent === n && row.state !== "error"),
    focus() { tree.focus(); },
  };
  const context = { link, store, view };
  contexts.push(context);
  return { context, model, told, tree, root };
}

/** Answer the last thing a view asked for, and let it go on. */
export async function answer(model, type, body, { name } = {}) {
  const asked = model.sent.filter((message) => message.type === type && (!name || message.name === name)).at(-1);
  model.say({ type: "done", cid: asked.cid, body });
  await settled();
  return asked;
}

/** Refuse the last action. */
export async function refuse(model, error) {
  model.say({ type: "fail", cid: model.last("cmd").cid, error });
  await settled();
}

/** Let what was promised happen. */
export async function settled() {
  for (let at = 0; at < 12; at++) await Promise.resolve();
}

export const actsOf = (model) => model.sent.filter((message) => message.type === "cmd");

/** Press a key where an element is. */
export function press(target, key, more = {}) {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  target.dispatchEvent(event);
  return event;
}

export const buttonOf = (root, label) => [...root.querySelectorAll("button")].find((button) => button.textContent === label);
