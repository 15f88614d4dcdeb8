import assert from "node:assert/strict";
import test from "node:test";
import { Store } from "../../nbdurable/notebook/js/tree/store.js";
import { generated, support } from "./kernel.mjs";

function loaded(state = support()) {
  const store = new Store();
  store.load(state);
  return store;
}

const added = (n, parent, more = {}) => ({ op: "add", n, parent, role: 1, flags: 0, model: 0, tokens: 5, cost: 0.1, seconds: 1, at: 1, exp: -1, preview: `entry ${n}`, ...more });

test("the facts of an entry are read from its columns", () => {
  const store = loaded();

  assert.deepEqual([store.role(13), store.model(13), store.tokens(13), store.cost(13), store.seconds(13)], ["assistant", "sonnet-5", 243, 0.0021, 1.4]);
  assert.deepEqual([store.model(1), store.tokens(1), store.exp(15), store.exp(13)], [null, null, 0, -1]);
  assert.deepEqual(store.marks(6), { labels: ["sent"], ratings: [], preferred: false });
  assert.equal(store.marks(7), null);
});

test("the path to the leaf is known, and follows it", () => {
  const store = loaded();
  assert.deepEqual([5, 7, 13, 20].map((n) => store.onPath(n)), [false, true, true, true]);

  store.apply([{ op: "head", leaf: 6 }]);

  assert.deepEqual([5, 7, 13, 20].map((n) => store.onPath(n)), [true, false, false, false]);
});

test("an entry that comes is in its place, and a thousand more are", () => {
  const store = loaded(generated(10));

  for (let n = 11; n <= 1_010; n++) store.apply([added(n, n - 1), { op: "head", leaf: n }]);

  assert.equal(store.count, 1_010);
  assert.deepEqual(store.childrenOf(500), [501]);
  assert.equal(store.path(1_010).length, store.path(10).length + 1_000);
  assert.ok(store.path(1_010).every((n) => store.onPath(n)));
});

test("an entry that comes twice is one", () => {
  const store = loaded(generated(3));

  store.apply([added(4, 3), added(4, 3, { preview: "again" })]);

  assert.equal(store.count, 4);
  assert.deepEqual(store.childrenOf(3), [4]);
  assert.equal(store.preview(4), "again");
});

test("a change that does not fit says that something was lost", () => {
  const store = loaded(generated(3));

  assert.equal(store.apply([added(6, 3)]).lost, true);
  assert.equal(store.apply([{ op: "set", n: 9, tokens: 1 }]).lost, true);
  assert.equal(store.apply([{ op: "exp", index: 4, name: "x" }]).lost, true);
  assert.equal(store.count, 3);
});

test("siblings are counted without those of an experiment, which count by themselves", () => {
  const store = loaded();

  assert.deepEqual(store.siblingsOf(9), [8, 9, 13]);
  assert.deepEqual(store.siblingsOf(19), [19]);
  assert.deepEqual(store.siblingsOf(16), [15, 16, 17, 18]);
});

test("texts of a run are put together, and a next message begins anew", () => {
  const store = loaded(generated(2));
  store.apply([{ op: "live", run: "r", parent: 2, state: "streaming" }, { op: "text", run: "r", text: "one " }, { op: "text", run: "r", text: "two" }]);
  assert.equal(store.live.get("r").text, "one two");

  const changed = store.apply([added(3, 2), { op: "live", run: "r", parent: 3, text: "", state: "tool" }]);

  assert.equal(store.live.get("r").text, "");
  assert.equal(changed.shape, true);
  assert.equal(store.isLive(3), true);
});

test("a text alone changes no line", () => {
  const store = loaded();

  const changed = store.apply([{ op: "text", run: "r1", text: "more" }, { op: "live", run: "r1", tokens: 3 }]);

  assert.deepEqual([changed.shape, changed.rest, changed.entries.size, [...changed.runs]], [false, false, 0, ["r1"]]);
});

test("what follows the end of a run is passed over", () => {
  const store = loaded();

  const changed = store.apply([{ op: "end", run: "r1" }, { op: "text", run: "r1", text: "late" }, { op: "end", run: "r1" }]);

  assert.deepEqual(changed.ended, [{ run: "r1", parent: 20 }]);
  assert.equal(store.live.size, 0);
});

test("marks, notes, names, questions, experiments and the notice are taken", () => {
  const store = loaded(generated(3));

  store.apply([
    { op: "marks", n: 2, labels: ["good"] }, { op: "note", n: 3, text: "it broke" }, { op: "names", models: ["a", "b", "c"] },
    { op: "question", id: "q", run: "r", tool: "shell", text: "rm?" }, { op: "exp", index: 0, id: "x", name: "grid", at: 3, runs: 4 }, { op: "notice", text: "another writes" },
  ]);

  assert.deepEqual(store.marks(2).labels, ["good"]);
  assert.equal(store.note(3), "it broke");
  assert.equal(store.models.length, 3);
  assert.equal(store.questions.get("q").tool, "shell");
  assert.equal(store.experiments[0].state, "running");
  assert.equal(store.notice, "another writes");
  store.apply([{ op: "marks", n: 2, labels: [] }, { op: "note", n: 3, text: "" }, { op: "answered", id: "q" }, { op: "notice", text: "" }]);
  assert.deepEqual([store.marks(2), store.note(3), store.questions.size, store.notice], [null, null, 0, null]);
});

test("a kind of change that is not known yet is passed over", () => {
  assert.equal(loaded().apply([{ op: "of the future" }]).lost, false);
});

test("the end of a branch is the active one, else the newest", () => {
  const store = loaded();

  assert.equal(store.end(7), 20);
  assert.equal(store.end(9), 12);
  assert.equal(store.end(6), 6);
});

test("a whole state takes the place of what was known", () => {
  const store = loaded();

  store.load(generated(2));

  assert.deepEqual([store.count, store.live.size, store.marks(6), store.head.session], [2, 0, null, "generated-2"]);
});

test("formatted text takes the place of characters, from one block on", () => {
  const store = new Store();
  store.load(generated(2));
  const say = (text) => ({ op: "text", run: "r", text }), md = (from, ...nodes) => ({ op: "md", run: "r", from, nodes });
  store.apply([{ op: "live", run: "r", parent: 2 }, say("# a\n\nb"), md(0, "A", "B"), say(" c")]);
  const row = store.live.get("r");
  assert.deepEqual([row.text, row.blocks, row.tail], ["# a\n\nb c", ["A", "B"], " c"]);
  const [kept] = row.blocks;
  store.apply([md(1, "B c", "D")]);
  assert.deepEqual([row.blocks, row.tail], [["A", "B c", "D"], ""]);
  assert.equal(row.blocks[0], kept);
  assert.equal(store.apply([md(4, "E")]).lost, true);
  store.apply([{ op: "live", run: "r", text: "" }]);
  assert.deepEqual([store.live.get("r").blocks, store.live.get("r").tail], [[], ""]);
});

test("what is finished of a list that grows is kept, and what does not fit is asked for", () => {
  const store = new Store();
  store.load({ live: [{ run: "r", parent: 0 }] });
  const li = (text) => ["li", {}, [text]], md = (keep, ...items) => ({ op: "md", run: "r", from: 0, keep, nodes: [["ul", {}, items], ["p", {}, ["after"]]] });

  store.apply([md(0, li("a"), li("b"))]);
  const first = store.live.get("r").blocks[0][2][0];
  const changed = store.apply([md(1, li("b more"), li("c"))]);

  const [list] = store.live.get("r").blocks;
  assert.deepEqual(list, ["ul", {}, [li("a"), li("b more"), li("c")]]);
  assert.equal(list[2][0], first);
  assert.equal(changed.lost, false);
  assert.equal(store.apply([md(9, li("d"))]).lost, true);
});
