import assert from "node:assert/strict";
import { scoreText } from "../../nbdurable/notebook/js/figures.js";
import test from "node:test";
import { faceOfEntry, faceOfExperiment, faceOfRun, tailOf } from "../../nbdurable/notebook/js/tree/faces.js";
import { countOf, durationText, modelText, tokensText, unmarked, usdText } from "../../nbdurable/notebook/js/figures.js";
import { layOut } from "../../nbdurable/notebook/js/tree/lines.js";
import { Paces } from "../../nbdurable/notebook/js/tree/pace.js";
import { Store } from "../../nbdurable/notebook/js/tree/store.js";
import { support } from "./kernel.mjs";

function faces(shown = {}) {
  const store = new Store();
  store.load(support());
  const lines = layOut(store, { folded: new Set(), opened: new Set(), zoom: 0, keep: null, ...shown });
  return { store, lines, of: (n) => faceOfEntry(store, lines, lines.ofEntry(n), n) };
}

const LIVE = { run: "r", parent: 1, model: "m", exp: -1, state: "streaming", text: "so far", thinking: false, ttft: 0.42, started: 0, tokens: 40, cost_usd: 0.001, note: "" };

test("an entry's row says its words, marks, model and figures", () => {
  const face = faces().of(13);

  assert.match(face.text, /^Hi Ravi, good news/);
  assert.deepEqual(face.chips.map((chip) => chip.text), ["preferred", "★ 4"]);
  assert.deepEqual([face.model, ...face.figures], ["sonnet-5", "243", "$0.0021", "1.4 s"]);
  assert.deepEqual(face.sibling, { at: 3, of: 3 });
});

test("an error stands at its entry with the exception's text", () => {
  const face = faces({ opened: new Set([0]) }).of(18);

  assert.equal(face.text, "the connection was closed before the answer was complete");
  assert.deepEqual(face.chips.map(({ text, kind }) => [text, kind]), [["error", "bad"]]);
});

test("a message of calls alone says so, one whose words were not sent says nothing yet", () => {
  const { store, of } = faces();
  assert.equal(of(2).text, "calls tools");
  store.previews.delete(4);

  assert.deepEqual([of(4).text, of(4).isPending], ["", true]);
});

test("a folded row says how many entries it hides", () => {
  assert.equal(faces({ folded: new Set([5]) }).of(5).chips[0].text, "+1");
  assert.equal(faces({ folded: new Set([7]) }).of(7).chips[0].text, "+5");
});

test("only the leaf says that it is the leaf", () => {
  const { of } = faces();

  assert.deepEqual([13, 19, 20].map((n) => of(n).chips.some((chip) => chip.kind === "leaf")), [false, false, true]);
});

test("an experiment's row counts its runs and what they cost", () => {
  const { store, lines } = faces();
  const line = lines.ofExperiment(0), face = () => faceOfExperiment(store, lines, line, lines.groupAt(line));
  assert.deepEqual([face().text, face().figures[0], face().figures[1], face().chips[0].text], ["wording · 4 models × 5 samples", "18 of 20", "$0.0312", "1 failed"]);

  store.apply([{ op: "exp", index: 0, state: "done", done: 19 }]);

  assert.equal(face().figures[0], "20 runs");
});

test("a run that grows says its last words, its speed, time to first token and cost", () => {
  const face = faceOfRun(LIVE, { rate: 38.2, waited: 3 }, 40);
  assert.equal(faceOfRun({ ...LIVE, text: "A **bold** `word`" }, { rate: 1, waited: 3 }, 40).text, "A bold word");

  assert.deepEqual([face.text, ...face.figures, face.hasCaret], ["so far", "38 tok/s", "$0.0010", "0.42 s", true]);
});

test("a run says what it waits for", () => {
  const says = (more, pace = { rate: null, waited: 0 }) => faceOfRun({ ...LIVE, text: "", ...more }, pace, 40).text;

  assert.equal(says({ state: "waiting" }), "waiting");
  assert.equal(says({ state: "waiting" }, { rate: null, waited: 3.4 }), "waiting 3 s");
  assert.equal(says({ state: "tool", note: "lookup_order" }), "calls lookup_order");
  assert.equal(says({ state: "retry", note: "rate limit, 2 s" }), "tries again: rate limit, 2 s");
  assert.equal(says({ state: "error", note: "refused" }), "refused");
  assert.equal(says({ thinking: true }), "thinking");
});

test("a long text shows its end, cut between whole characters", () => {
  const tail = tailOf(`${"x".repeat(5_000)}${"🚀".repeat(20)} end`, 12);

  assert.equal(tail, `…${"🚀".repeat(8)} end`);
  assert.equal(tailOf("  short\ntext", 40), "short text");
});

test("a speed is measured from the first words on", () => {
  let now = 0;
  const paces = new Paces(() => now);
  paces.of({ ...LIVE, state: "waiting", text: "", tokens: null });
  now = 5_000;
  assert.deepEqual(paces.of({ ...LIVE, tokens: 1 }), { rate: null, waited: 5 });
  now = 7_000;

  assert.equal(paces.of({ ...LIVE, tokens: 101 }).rate, 50);
  paces.keep(new Map());
  assert.equal(paces.of({ ...LIVE, tokens: 101 }).rate, null);
});

test("figures are short and never more exact than known", () => {
  assert.deepEqual([null, 0, 999, 12_345, 2_500_000].map(tokensText), ["", "0", "999", "12k", "2.5M"]);
  assert.deepEqual([null, 0, 0.00001, 0.0021, 12.5].map(usdText), ["", "$0", "<$0.0001", "$0.0021", "$12.50"]);
  assert.deepEqual([null, 0.25, 12.4, 300, 7_300].map(durationText), ["", "0.3 s", "12 s", "5 min", "2 h 1 min"]);
  assert.deepEqual([countOf(1, "entry", "entries"), countOf(1_200, "run")], ["1 entry", "1,200 runs"]);
});

test("a model is named where it is another than that of the answer before or of a sibling", () => {
  const store = new Store();
  const column = (value) => Array(6).fill(value);
  store.load({ roles: ["user", "assistant"], models: ["openai/mini", "lab/large"],
    columns: { parent: [0, 1, 2, 3, 3, 5], role: [0, 1, 0, 1, 1, 1], flags: column(0), model: [null, 0, null, 0, 1, 1], tokens: column(null), cost: column(null), seconds: column(null), at: column(0), exp: column(-1) } });
  const lines = layOut(store, { folded: new Set(), opened: new Set(), zoom: 0, keep: null });

  const told = [2, 4, 5, 6].map((n) => faceOfEntry(store, lines, lines.ofEntry(n), n).model);

  assert.deepEqual(told, ["openai/mini", "openai/mini", "lab/large", ""]);
});

test("an experiment's cancelled runs are not called failed", () => {
  const { store, lines } = faces();
  store.apply([{ op: "exp", index: 0, state: "stopped", failed: 0, cancelled: 2 }]);

  const line = lines.ofExperiment(0), { chips } = faceOfExperiment(store, lines, line, lines.groupAt(line));

  assert.deepEqual(chips.map(({ text, kind }) => [text, kind]), [["2 cancelled", "plain"]]);
});

test("a preview is read without the marks of Markdown", () => {
  assert.equal(unmarked("## Look at the **pool**, `wait_ms` and __init__ first"), "Look at the pool, wait_ms and __init__ first");
  assert.equal(unmarked("Not the queries: | | a | | --- | --- | | b | 4"), "Not the queries: a · b · 4");
  assert.equal(unmarked("2 ** 3 | 4"), "2 ** 3 | 4");
});

test("a model's name stands without its provider", () => {
  assert.deepEqual(["openai/gpt-5-mini", "local", "a/b/c", "odd/", null].map(modelText), ["gpt-5-mini", "local", "c", "odd/", ""]);
});

test("a score beyond what a number holds, which crosses as text, is shown", () => {
  assert.equal(scoreText("1152921504606846976"), "★ 1152920000000000000");
  assert.equal(scoreText(0.5), "★ 0.5");
  assert.equal(scoreText(false), "no");
});
