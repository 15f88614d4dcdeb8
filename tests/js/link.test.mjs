import assert from "node:assert/strict";
import test from "node:test";
import { FakeModel } from "./page.mjs";
import { Link, MOST_CHARS } from "../../nbdurable/notebook/js/link.js";

function linked() {
  const model = new FakeModel();
  const got = { snapshots: [], ops: [], troubles: [] };
  const link = new Link(model, {
    onSnapshot: (body) => got.snapshots.push(body),
    onOps: (ops) => got.ops.push(...ops),
    onTrouble: (text) => got.troubles.push(text),
  });
  return { model, link, got };
}

const snapshot = (link, seq, body = {}) => ({ type: "snapshot", view: link.name, seq, body });

test("a view asks for the whole state when it opens", () => {
  const { model, link } = linked();
  assert.deepEqual(model.sent, [{ type: "resync", have: -1, view: link.name }]);
  link.close();
});

test("changes in order are passed on, repeated ones are not", () => {
  const { model, link, got } = linked();
  model.say(snapshot(link, 4));
  model.say({ type: "ops", seq: 4, ops: ["old"] });
  model.say({ type: "ops", seq: 5, ops: ["new"] });
  assert.deepEqual(got.ops, ["new"]);
  link.close();
});

test("a missed change asks for the whole state, once", () => {
  const { model, link, got } = linked();
  model.say(snapshot(link, 4));
  model.say({ type: "ops", seq: 6, ops: ["after a gap"] });
  model.say({ type: "ops", seq: 7, ops: ["more"] });
  assert.deepEqual(got.ops, []);
  assert.equal(model.sent.filter((message) => message.type === "resync").length, 2);
  model.say(snapshot(link, 7, { rows: 3 }));
  model.say({ type: "ops", seq: 8, ops: ["on"] });
  assert.deepEqual(got.ops, ["on"]);
  link.close();
});

test("a whole state asked for by another view is left to it", () => {
  const { model, link, got } = linked();
  model.say(snapshot(link, 4));
  model.say({ type: "snapshot", view: "another", seq: 4, body: {} });
  assert.equal(got.snapshots.length, 1);
  link.close();
});

test("a state that cannot be made is said, and asked for again with the next change", () => {
  const { model, link, got } = linked();
  model.say({ type: "trouble", view: "another", text: "not this one" });
  model.say({ type: "trouble", view: link.name, text: "the store is gone" });
  assert.deepEqual(got.troubles, ["the store is gone"]);
  model.say({ type: "ops", seq: 3, ops: ["new"] });
  assert.equal(model.sent.filter((message) => message.type === "resync").length, 2);
  model.say(snapshot(link, 3));
  assert.equal(got.snapshots.length, 1);
  link.close();
});

test("pieces in any order make one message", () => {
  const { model, link, got } = linked();
  const text = JSON.stringify(snapshot(link, 1, { text: "long".repeat(9) }));
  const cut = [text.slice(0, 20), text.slice(20, 40), text.slice(40)];
  for (const part of [2, 0, 1]) model.say({ type: "piece", of: "m", part, parts: 3, text: cut[part] });
  assert.equal(got.snapshots[0].text, "long".repeat(9));
  link.close();
});

test("an action goes from sent to queued to taken, and ends with the kernel's answer", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { model, link } = linked();
  const stages = [];
  const done = link.act("rerun", { n: 3 }, (stage) => stages.push(stage));
  t.mock.timers.tick(700);
  const { cid } = model.last("cmd");
  model.say({ type: "ack", cid });
  model.say({ type: "done", cid, body: { n: 9 } });
  assert.deepEqual(await done, { n: 9 });
  assert.deepEqual(stages, ["sent", "queued", "taken"]);
  link.close();
});

test("what got no answer is sent again as it was, until there is one", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { model, link } = linked();
  link.act("rerun", { n: 3 });
  t.mock.timers.tick(800);
  const [first, again] = model.sent.filter((message) => message.type === "cmd");
  assert.deepEqual(again, first);
  model.say({ type: "ack", cid: first.cid });
  model.say(snapshot(link, 0));
  const count = model.sent.length;
  t.mock.timers.tick(60_000);
  assert.equal(model.sent.length, count);
  link.close();
});

test("a refused action rejects with the kernel's words", async () => {
  const { model, link } = linked();
  const done = link.act("rerun", { n: 3 });
  model.say({ type: "fail", cid: model.last("cmd").cid, error: "entry #3 is not there" });
  await assert.rejects(done, { message: "entry #3 is not there" });
  link.close();
});

test("what would end the line to the kernel is refused and not sent", async () => {
  const { link, model } = linked();
  const before = model.sent.length;

  await assert.rejects(link.act("run", { text: "x".repeat(MOST_CHARS) }), /3,000,011 characters are too many for a page to send; do it in a cell/);

  assert.equal(model.sent.length, before);
  link.close();
});
