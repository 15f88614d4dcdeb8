import assert from "node:assert/strict";
import test from "node:test";
import { ROW_KEYS, TypeAhead, stepOf } from "../../nbdurable/notebook/js/tree/keys.js";
import { layOut } from "../../nbdurable/notebook/js/tree/lines.js";
import { Store } from "../../nbdurable/notebook/js/tree/store.js";
import { support } from "./kernel.mjs";

const store = new Store();
store.load(support({ isLive: false })); // 1 2 3 4 .5 .6 7 .8 .9 .10 ..11 .12 13 14 .x0+ 19
const lines = layOut(store, { folded: new Set(), opened: new Set(), zoom: 0, keep: null });
const PLAIN = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
const press = (key, n, more = {}) => stepOf({ key, ...PLAIN, ...more }, lines, n < 0 ? -1 : lines.ofEntry(n), 10);
const at = (n) => ({ to: lines.ofEntry(n) });

test("arrows go up and down, and stop at the ends", () => {
  assert.deepEqual(press("ArrowDown", 4), at(5));
  assert.deepEqual(press("ArrowUp", 7), at(6));
  assert.deepEqual(press("ArrowUp", 1), at(1));
  assert.deepEqual(press("ArrowDown", 19), at(19));
  assert.deepEqual(press("ArrowDown", -1), at(1));
});

test("Home, End and the page keys go far", () => {
  assert.deepEqual(press("Home", 9), at(1));
  assert.deepEqual(press("End", 9), at(19));
  assert.deepEqual(press("PageDown", 1), { to: 9 });
  assert.deepEqual(press("PageUp", 19), { to: 6 });
});

test("left folds what is open, then goes to what it hangs under", () => {
  assert.deepEqual(press("ArrowLeft", 4), { fold: lines.ofEntry(4) });
  assert.deepEqual(press("ArrowLeft", 6), at(5));
  assert.deepEqual(press("ArrowLeft", 11), at(10));
  assert.equal(press("ArrowLeft", 3), null);
});

test("right unfolds what is folded, then goes to the first below", () => {
  const experiment = lines.ofExperiment(0);
  assert.deepEqual(stepOf({ key: "ArrowRight", ...PLAIN }, lines, experiment, 10), { unfold: experiment });
  assert.deepEqual(press("ArrowRight", 4), at(5));
  assert.equal(press("ArrowRight", 3), null);
});

test("brackets go to siblings, slash finds, z zooms, Escape leaves", () => {
  assert.deepEqual(press("[", 9), { sibling: -1 });
  assert.deepEqual(press("]", 9), { sibling: 1 });
  assert.deepEqual(["/", "z", "?", "Escape"].map((key) => press(key, 9).does), ["find", "zoom", "help", "leave"]);
  assert.deepEqual(press("/", 9, { shiftKey: true }), { does: "find" });
});

test("keys with Ctrl, Meta, Alt, and Shift+Enter are not the tree's", () => {
  for (const key of ["ArrowDown", "Enter", "z", "Home"])
    for (const held of ["ctrlKey", "metaKey", "altKey"]) assert.equal(press(key, 4, { [held]: true }), null);
  assert.equal(press("Enter", 4, { shiftKey: true }), null);
  assert.deepEqual(press("Enter", 4), { enter: lines.ofEntry(4) });
});

test("numbers typed without a pause lead to the entry of that number", () => {
  let now = 0;
  const ahead = new TypeAhead(() => now);
  assert.equal(ahead.lineFor("1", lines, 5, () => ""), lines.ofEntry(1));
  now += 300;
  assert.equal(ahead.lineFor("3", lines, 0, () => ""), lines.ofEntry(13));
  now += 2_000;
  assert.equal(ahead.lineFor("4", lines, 0, () => ""), lines.ofEntry(4));
});

test("letters lead to the next row that begins with them, round the end", () => {
  let now = 0;
  const ahead = new TypeAhead(() => now), textOf = (line) => store.preview(lines.entryAt(line)) ?? "";
  assert.equal(ahead.lineFor("d", lines, 0, textOf), lines.ofEntry(5));
  assert.equal(ahead.isTyping, true);
  now += 100;
  assert.equal(ahead.lineFor("e", lines, lines.ofEntry(5), textOf), lines.ofEntry(6));
  now += 2_000;
  assert.equal(ahead.isTyping, false);
  assert.equal(ahead.lineFor("d", lines, lines.ofEntry(7), textOf), lines.ofEntry(5));
  now += 2_000;
  assert.equal(ahead.lineFor("§", lines, 0, textOf), -1);
});

test("the list of keys names each once", () => {
  const keys = ROW_KEYS.map(([key]) => key);

  assert.equal(new Set(keys).size, keys.length);
});
