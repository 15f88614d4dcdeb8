import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { FakeModel, page } from "./page.mjs";

const { document } = page();
const { showComparison } = await import("../../nbdurable/notebook/js/compare/compare.js");
const comparison = (await import("../../nbdurable/notebook/js/compare/comparison.js")).default;
const { Link } = await import("../../nbdurable/notebook/js/link.js");

const column = (key, over = {}) => ({
  key, n: key + 3, session: "s", name: `#${key + 3}`, badges: [], labels: [], votable: true,
  facts: [{ name: "cost", text: `$0.0${key}`, best: key === 1 }], ...over,
});
const comparisonBody = (over = {}) => ({
  id: "c1", title: "2 answers to #3", axes: [], base: 1, blind: false, voted: null, votes: {},
  columns: [column(1, { badges: ["base"] }), column(2)],
  shared: { count: 1, rows: [{ n: 3, role: "user", text: "Why?" }] },
  turns: [{ role: "assistant", cells: [
    { runs: [["same", "Hello you"]], n: 4, hidden: null },
    { runs: [["del", "Hello"], ["add", "Hi"], ["same", " you"]], n: 5, hidden: "… 7 more characters" },
  ] }],
  ...over,
});

function shown(body = comparisonBody(), handlers = {}) {
  const model = new FakeModel();
  const link = new Link(model, { onSnapshot() {}, onOps() {}, onTrouble() {} });
  const host = document.createElement("div");
  document.body.append(host);
  const view = showComparison(host, link, body, handlers);
  const answer = async (body) => { model.say({ type: "done", cid: model.last("cmd").cid, body }); await null; await null; };
  const press = (key, over = {}) => view.scroll.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...over }));
  const text = (selector) => [...host.querySelectorAll(selector)].map((found) => found.textContent);
  return { model, link, host, view, answer, press, text };
}

test("columns stand beside each other with their facts and what changed", () => {
  const { text } = shown();
  assert.deepEqual(text(".nbd-cmp-name"), ["#4", "#5"]);
  assert.deepEqual(text(".nbd-cmp-fact td"), ["$0.01 (best)", "$0.02"]);
  assert.deepEqual(text(".nbd-cmp-said td"), ["Hello you", "HelloHi you… 7 more characters"]);
  assert.deepEqual(text("ins"), ["Hi"]);
  assert.deepEqual(text(".nbd-beside"), ["Hi"]); // set apart from what is gone, where no blank does it
  assert.deepEqual(text("summary"), ["1 shared entry"]);
});

test("a key prefers the column of its number, once", async () => {
  const preferred = [];
  const { model, press, answer, view } = shown(comparisonBody(), { onPrefer: (...given) => preferred.push(given) });
  press("2");
  press("2");
  assert.equal(model.sent.filter((message) => message.type === "cmd").length, 1);
  assert.deepEqual(model.last("cmd").args, { id: "c1", prefer: 2 });
  await answer(comparisonBody({ voted: 2, votes: { 2: 1 } }));
  assert.deepEqual(preferred, [[5, [4]]]);
  assert.equal(view.status.element.textContent, "#5 preferred");
});

test("a key without its column does nothing, nor does one typed with Ctrl or into a field", () => {
  const { model, press, view } = shown();
  press("7");
  press("1", { ctrlKey: true });
  view.base.dispatchEvent(new KeyboardEvent("keydown", { key: "1", bubbles: true }));
  assert.equal(model.last("cmd"), undefined);
});

test("a blind vote is told with the name that was hidden", async () => {
  const hidden = { n: null, facts: [] };
  const { press, answer, view, text } = shown(comparisonBody({
    blind: true, columns: [column(1, { ...hidden, name: "A" }), column(2, { ...hidden, name: "B" })] }));
  assert.deepEqual(text(".nbd-cmp-name"), ["A", "B"]);
  press("1");
  await answer(comparisonBody({ voted: 1 }));
  assert.equal(view.status.element.textContent, "A was #4: preferred");
  assert.deepEqual(text(".nbd-cmp-name"), ["#4", "#5"]);
});

test("base and blindness are asked of the kernel", async () => {
  const { model, press, answer, view } = shown();
  press("d");
  assert.deepEqual(model.last("cmd").args, { id: "c1", base: 2 });
  await answer(comparisonBody({ base: 2 }));
  assert.equal(view.base.value, "2");
  press("b");
  assert.deepEqual(model.last("cmd").args, { id: "c1", blind: true });
});

test("without differences each column reads as it is", () => {
  const { press, text, view } = shown();
  press("s");
  assert.deepEqual(text(".nbd-cmp-said td"), ["Hello you", "Hi you… 7 more characters"]);
  assert.deepEqual(text("del"), []);
  assert.equal(view.diff.getAttribute("aria-pressed"), "false");
});

test("what the kernel refuses is told, and it can be tried again", async () => {
  const { model, press, view } = shown();
  press("1");
  model.say({ type: "fail", cid: model.last("cmd").cid, error: "session 's' was closed" });
  await null; await null; await null;
  assert.equal(view.status.element.textContent, "session 's' was closed");
  press("1");
  assert.equal(model.sent.filter((message) => message.type === "cmd").length, 2);
});

test("it closes by its button and by Escape, and tells so", () => {
  let closed = 0;
  const { press, host } = shown(comparisonBody(), { onClose: () => { closed++; } });
  press("Escape");
  assert.equal(host.childElementCount, 0);
  assert.equal(closed, 1);
});

test("all that takes the focus keeps Jupyter's shortcuts out", () => {
  const { host } = shown();
  for (const found of host.querySelectorAll("button, select, summary, [tabindex]"))
    assert.equal(found.dataset.lmSuppressShortcuts, "true", found.outerHTML);
});

// case 43
const TRAPS = readFileSync(new URL("../data/text_traps.jsonl", import.meta.url), "utf8").split("\n").filter(Boolean)
  .map((line) => JSON.parse(line)).map((trap) => [trap.name, trap.text ?? trap.unit.repeat(50)]);
for (const [name, trap] of TRAPS)
  test(`text trap ${name} stays text in every place`, () => {
    const before = shown().host.querySelectorAll("*").length;
    const { host } = shown(comparisonBody({
      title: trap,
      columns: [1, 2].map((key) => column(key, { name: trap, badges: key === 1 ? [trap] : [], facts: [{ name: trap, text: key === 1 ? trap : "other", best: key === 1 }] })),
      shared: { count: 1, rows: [{ n: 3, role: trap, text: trap }] },
      turns: [{ role: trap, cells: [{ runs: [["same", trap]], n: 4, hidden: null },
        { runs: [["del", trap], ["add", trap], ["same", trap]], n: 5, hidden: trap || "x" }] }],
    }));
    assert.equal(host.querySelectorAll("*").length, before);
    assert.equal(host.querySelector("script, img, svg, a"), null);
  });

test("the widget shows what the kernel says, hides its twin, and leaves nothing behind", () => {
  const model = new FakeModel({ uid: "abc" });
  const host = document.createElement("div");
  const close = comparison.render({ model, el: host });
  const { view } = model.last("resync");
  model.say({ type: "snapshot", view, seq: 0, body: comparisonBody() });
  model.say({ type: "ops", seq: 1, ops: [{ op: "body", body: comparisonBody({ title: "changed" }) }] });
  assert.equal(host.querySelector(".nbd-cmp-title").textContent, "changed");
  assert.equal(host.querySelectorAll(".nbd-cmp").length, 1);
  assert.match(host.querySelector("style").textContent, /data-nbd-twin="abc"/);
  close();
  assert.equal(host.childElementCount, 0);
  assert.equal(model.listeners.length, 0);
});

test("a long text that all columns share stands there once, a short one in each", () => {
  const system = "Check before you claim, and be brief.";
  const facts = [{ name: "system", text: system, best: false }, { name: "model", text: "mini", best: false }];
  const { text, host } = shown(comparisonBody({ columns: [column(1, { facts }), column(2, { facts })] }));
  assert.deepEqual(text(".nbd-cmp-fact td"), [system, "mini", "mini"]);
  assert.equal(host.querySelector(".nbd-cmp-fact td").getAttribute("colspan"), "2");
});

test("a blank before a change is not marked, one that is all of it is", () => {
  const { text } = shown(comparisonBody({ turns: [{ role: "assistant", cells: [null, { runs: [["same", "a"], ["del", " b"], ["add", "\n\n c"], ["same", "d"], ["add", "  "]], n: 5, hidden: null }] }] }));

  assert.deepEqual([text("del"), text("ins")], [["b"], ["c", "  "]]);
  assert.deepEqual(text(".nbd-cmp-said td"), ["", "a b\n\n cd  "]);
});
