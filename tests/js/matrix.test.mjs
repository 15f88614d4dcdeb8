import assert from "node:assert/strict";
import test from "node:test";
import { FakeModel, page } from "./page.mjs";

const { document } = page();
const { MatrixView, inOrder } = await import("../../nbdurable/notebook/js/compare/matrix.js");

const cell = (i, text, over = {}) => ({ i, n: i + 2, state: "done", text, group: 0, scores: {}, ...over });
const matrixBody = (over = {}) => ({
  title: "grid-1 · 6 runs", axes: ["model"], across: "sample", heads: ["1", "2"], scores: ["tone"], running: 0,
  rows: [
    { labels: ["b"], cells: [cell(0, "One."), cell(1, "Two.", { group: 1 })], agreement: 0.5, scores: { tone: 3 }, cost: 0.5, seconds: 1 },
    { labels: ["a"], cells: [cell(2, "Same."), cell(3, "Same.")], agreement: 1, scores: { tone: null }, cost: null, seconds: 2 },
    { labels: ["c"], cells: [cell(4, "x"), cell(5, "", { n: null, state: "missing", group: null })], agreement: null, scores: { tone: 4 }, cost: 0, seconds: null },
  ],
  ...over,
});

function shown(body = matrixBody()) {
  const model = new FakeModel({ uid: "m" });
  const host = document.createElement("div");
  document.body.append(host);
  const view = new MatrixView(model, host);
  model.say({ type: "snapshot", view: view.link.name, seq: 0, body });
  const labels = () => [...host.querySelectorAll(".nbd-matrix-label")].map((found) => found.textContent);
  const button = (i) => host.querySelector(`button[data-i="${i}"]`);
  const press = (target, key) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  return { model, host, view, labels, button, press };
}

test("figures are told, unknown ones as a dash, and only rows that differ have letters", () => {
  const { host } = shown();
  const rows = [...host.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll(".nbd-matrix-figure")].map((one) => one.textContent));
  assert.deepEqual(rows, [["50%", "3", "$0.5000", "1.0 s"], ["100%", "–", "–", "2.0 s"], ["–", "4", "$0", "–"]]);
  assert.deepEqual([...host.querySelectorAll(".nbd-matrix-group")].map((one) => one.textContent), ["a", "b"]);
});

test("a head sorts figures from the highest, then from the lowest, then as given", () => {
  const { host, labels } = shown();
  const click = (name) => [...host.querySelectorAll("thead button")].find((one) => one.textContent.startsWith(name)).click();
  click("agreement");
  assert.deepEqual(labels(), ["a", "b", "c"]);
  assert.equal(host.querySelector('[aria-sort="descending"]').textContent, "agreement ↓");
  click("agreement");
  assert.deepEqual(labels(), ["b", "a", "c"]);
  click("agreement");
  assert.deepEqual(labels(), ["b", "a", "c"]);
  click("model");
  assert.deepEqual(labels(), ["a", "b", "c"]);
});

test("unknown values come last in both directions", () => {
  assert.deepEqual([null, 2, 10].sort((a, b) => inOrder(a, b, 1)), [2, 10, null]);
  assert.deepEqual([null, 2, 10].sort((a, b) => inOrder(a, b, -1)), [10, 2, null]);
  assert.deepEqual(["x10", "x9"].sort((a, b) => inOrder(a, b, 1)), ["x9", "x10"]);
});

test("two chosen cells are compared below, by the button or a key", async () => {
  const { model, view, button, press, host } = shown();
  assert.equal(view.compare.disabled, true);
  button(0).click();
  button(3).click();
  assert.equal(view.compare.textContent, "Compare (2)");
  press(button(3), "v");
  assert.deepEqual(model.last("ask").args, { cells: [0, 3] });
  model.say({ type: "done", cid: model.last("ask").cid, body: {
    id: "c", title: "two", columns: [{ key: 1, n: 2, name: "#2", badges: [], labels: [], facts: [], votable: true }],
    shared: { count: 0, rows: [] }, turns: [], base: 1, blind: false, voted: null, votes: {} } });
  await null; await null; await null;
  assert.equal(host.querySelectorAll(".nbd-matrix-below .nbd-cmp").length, 1);
});

test("arrows walk over cells, past those without an answer, and one cell takes the focus", () => {
  const { host, button, press, view } = shown();
  button(1).focus();
  view.at = [0, 1];
  press(button(1), "ArrowDown");
  assert.equal(document.activeElement, button(3));
  press(button(3), "ArrowDown");
  assert.equal(document.activeElement, button(3));
  assert.equal(host.querySelectorAll('button[data-i][tabindex="0"]').length, 1);
});

test("Escape takes the choice back", () => {
  const { view, button, press } = shown();
  button(0).click();
  press(button(0), "Escape");
  assert.equal(view.chosen.size, 0);
  assert.equal(button(0).getAttribute("aria-pressed"), "false");
});

test("a view looks again while cells run, and no longer when it is closed", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { model, view } = shown(matrixBody({ running: 2 }));
  t.mock.timers.tick(1000);
  assert.equal(model.last("ask").name, "look");
  view.close();
  assert.equal(model.listeners.length, 0);
});

test("many rows are cut and the rest counted", () => {
  const row = matrixBody().rows[0];
  const { host } = shown(matrixBody({ rows: Array.from({ length: 310 }, () => row) }));
  assert.equal(host.querySelectorAll("tbody tr").length, 300);
  assert.match(host.textContent, /… 10 more rows/);
});

test("a hostile text stays text in every place", () => {
  const trap = '"><img src=x onerror="window.__hit=1">';
  const { host } = shown(matrixBody({ title: trap, axes: [trap], across: trap, heads: [trap, "2"], scores: [trap],
    rows: [{ labels: [trap], cells: [cell(0, trap, { state: trap }), null], agreement: 1, scores: { [trap]: 1 }, cost: 0, seconds: 0 }] }));
  assert.equal(host.querySelector("img, script, svg"), null);
});
