import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { BIT, layOut } from "../../nbdurable/notebook/js/tree/lines.js";
import { Store } from "../../nbdurable/notebook/js/tree/store.js";

const ALL = { folded: new Set(), opened: new Set(), zoom: 0, keep: null };

/** A store of entries by their parents; `exp` gives the experiment of some. */
function grown(parents, { leaf = parents.length, exp = {}, ...rest } = {}) {
  const store = new Store();
  const column = (value) => parents.map((_, at) => value(at + 1));
  store.load({
    head: { leaf }, roles: ["user", "assistant"], models: [],
    columns: { parent: parents, role: column((n) => n % 2), flags: column(() => 0), model: column(() => -1), tokens: [], cost: [], seconds: [], at: [], exp: column((n) => exp[n] ?? -1) },
    ...rest,
  });
  return store;
}

/** The lines in a few signs: depth as dots, then what it is. */
function drawn(store, shown = {}) {
  const lines = layOut(store, { ...ALL, ...shown });
  return Array.from({ length: lines.length }, (_, line) => {
    const group = lines.groupAt(line), run = lines.runAt(line);
    return ".".repeat(lines.depth[line]) + (group ? `x${group.exp}` : run ?? lines.entryAt(line)) + (lines.is(line, BIT.folded) ? "+" : "");
  }).join(" ");
}

const experiment = (at, more = {}) => ({ id: "x", name: "wording", at, runs: 3, done: 0, failed: 0, cost_usd: null, state: "running", axes: [], ...more });

test("the lines are those of the outline that terminal and static page show", () => {
  const trees = JSON.parse(readFileSync(new URL("../data/outlines.json", import.meta.url), "utf-8"));

  for (const { parents, leaf, lines: expected } of trees) {
    const store = grown(parents, { leaf }), lines = layOut(store, ALL);
    const got = Array.from({ length: lines.length }, (_, line) => {
      const n = lines.entryAt(line), siblings = store.siblingsOf(n);
      return [n, lines.depth[line], lines.is(line, BIT.side) ? 1 : 0, store.onPath(n) ? 1 : 0, siblings.indexOf(n) + 1, siblings.length];
    });
    assert.deepEqual(got, expected, JSON.stringify(parents));
  }
});

test("a straight run of 100,000 entries stays one level", () => {
  const lines = layOut(grown(Array.from({ length: 100_000 }, (_, at) => at)), ALL);

  assert.equal(lines.length, 100_000);
  assert.equal(lines.deepest, 0);
});

test("a hundred forks inside one another stand at most 24 levels deep", () => {
  const parents = [0];
  for (let n = 2; n <= 200; n += 2) parents.push(n - 1, n - 1);

  const lines = layOut(grown(parents, { leaf: 1 }), ALL);

  assert.equal(lines.length, parents.length);
  assert.ok(lines.deepest <= 24);
});

test("a branch that was left is folded at its first entry", () => {
  const store = grown([0, 1, 2, 1, 4]);
  assert.equal(drawn(store), "1 .2 .3 4 5");

  assert.equal(drawn(store, { folded: new Set([2]) }), "1 .2+ 4 5");
});

test("a fork folds its alternatives and the conversation goes on", () => {
  assert.equal(drawn(grown([0, 1, 2, 1, 4]), { folded: new Set([1]) }), "1+ 4 5");
});

test("an entry in the middle of a straight run does not fold", () => {
  assert.equal(drawn(grown([0, 1, 2]), { folded: new Set([2]) }), "1 2 3");
});

test("an experiment is one line until it is opened", () => {
  const store = grown([0, 1, 1, 1, 2, 1], { exp: { 2: 0, 3: 0, 4: 0, 5: 0 }, experiments: [experiment(1)] });
  assert.equal(drawn(store), "1 .x0+ 6");

  assert.equal(drawn(store, { opened: new Set([0]) }), "1 .x0 ..2 ..5 ..3 ..4 6");
});

test("an experiment that has no answer yet has its line", () => {
  assert.equal(drawn(grown([0], { experiments: [experiment(1)] })), "1 .x0");
});

test("the run of an experiment that the session goes on from stands in the conversation", () => {
  const store = grown([0, 1, 1, 3], { exp: { 2: 0, 3: 0 }, experiments: [experiment(1)] });

  assert.equal(drawn(store), "1 .x0+ 3 4");
});

test("a run that grows at the leaf stands where its answer will", () => {
  const live = [{ run: "r", parent: 2, state: "streaming" }];
  const store = grown([0, 1], { live });
  assert.equal(drawn(store), "1 2 r");

  store.apply([{ op: "add", n: 3, parent: 2, role: 1 }, { op: "end", run: "r" }]);

  assert.equal(drawn(store), "1 2 3");
});

test("a run beside the active answer stands beside it", () => {
  assert.equal(drawn(grown([0, 1], { live: [{ run: "r", parent: 1, state: "waiting" }] })), "1 .r 2");
});

test("the runs of an experiment that grow are inside its line", () => {
  const store = grown([0], { experiments: [experiment(1)], live: [{ run: "r", parent: 1, exp: 0, state: "streaming" }] });
  assert.equal(drawn(store), "1 .x0+");

  assert.equal(drawn(store, { opened: new Set([0]) }), "1 .x0 ..r");
});

test("what a filter keeps hangs under the nearest that is kept", () => {
  const store = grown([0, 1, 2, 3, 2, 5]);
  assert.equal(drawn(store), "1 2 .3 .4 5 6");

  assert.equal(drawn(store, { keep: (n) => n % 2 === 1 }), "1 .3 5");
});

test("a zoom shows one entry and what is below it", () => {
  assert.equal(drawn(grown([0, 1, 2, 3, 2, 5]), { zoom: 2 }), "2 .3 .4 5 6");
  assert.equal(drawn(grown([0, 1, 2, 3, 2, 5]), { zoom: 3 }), "3 4");
});

test("a lane passes by as long as something follows in it", () => {
  const lines = layOut(grown([0, 1, 2, 2, 1, 5]), ALL); // 1 .2 ..3 .4 5 6
  const passing = Array.from(lines.lanes.subarray(0, lines.length));

  assert.deepEqual(passing, [0, 1, 3, 1, 0, 0]);
});

test("under an open experiment the lane ends with its last run", () => {
  const store = grown([0, 1, 1, 1], { exp: { 2: 0, 3: 0 }, experiments: [experiment(1)] });
  const lines = layOut(store, { ...ALL, opened: new Set([0]) }); // 1 .x0 ..2 ..3 4

  assert.deepEqual(Array.from(lines.lanes.subarray(0, 5)), [0, 1, 3, 1, 0]);
});

test("levels and places are those of a hierarchy read aloud", () => {
  const lines = layOut(grown([0, 1, 2, 1, 1, 5]), ALL); // 1 .2 .3 .4 5 6
  const read = Array.from({ length: lines.length }, (_, line) => `${lines.level[line]}: ${lines.place[line]}/${lines.of[line]}`);

  assert.deepEqual(read, ["1: 1/3", "2: 1/2", "3: 1/1", "2: 2/2", "1: 2/3", "1: 3/3"]);
});

test("a lost parent and a ring in what was sent leave no walk without an end", () => {
  const store = grown([9, 3, 2, 4], { leaf: 3 });

  assert.equal(drawn(store), ".1 .4 2 3");
  assert.deepEqual(store.path(3), [2, 3]);
});
