import assert from "node:assert/strict";
import test from "node:test";
import { FakeModel, page } from "./page.mjs";

const { document } = page();
const { default: run } = await import("../../nbdurable/notebook/js/run.js");

function shown(state = { nodes: [], foot: "running …" }) {
  const model = new FakeModel();
  const host = document.createElement("div");
  document.body.appendChild(host);
  const close = run.render({ model, el: host });
  const view = model.sent[0].view;
  model.say({ type: "snapshot", view, seq: 0, body: state });
  let seq = 0;
  const look = (from, nodes, foot = "") =>
    model.say({ type: "ops", seq: ++seq, ops: [{ op: "look", from, nodes, foot }] });
  const body = host.querySelector(".nbd-run-body");
  return { model, host, close, look, body };
}

test("what changed is drawn anew, what stands before it is not touched", () => {
  const { look, body } = shown({ nodes: [["p", {}, ["done"]], ["p", {}, ["gro"]]], foot: "" });
  const first = body.firstChild;

  look(1, [["p", {}, ["growing"]], ["p", {}, ["new"]]]);

  assert.equal(body.firstChild, first);
  assert.equal(body.textContent, "donegrowingnew");
});

test("a page that comes late is shown the end, with nothing to stop", () => {
  const { host, model, close } = shown({ nodes: [["p", {}, ["all of it"]]], foot: "12 tokens", over: true });

  assert.equal(host.querySelector("button").hidden, true);
  assert.match(host.textContent, /all of it.*12 tokens/);
  close();
  assert.equal(model.sent.at(-1).type, "bye");
});

test("a text that looks like markup stays text", () => {
  const { look, body } = shown();

  look(0, [["script", {}, ["hit()"]], ["p", { onclick: "hit()" }, ["<img src=x onerror=hit()>"]]]);

  assert.equal(body.querySelector("script,img,[onclick]"), null);
  assert.match(body.textContent, /hit\(\).*<img/);
});

test("one press stops the run, a second is not taken", () => {
  const { model, host } = shown();
  const stop = host.querySelector("button");

  stop.click();
  stop.click();

  assert.equal(model.sent.filter((message) => message.type === "cmd").length, 1);
  assert.equal(model.last("cmd").name, "cancel");
  assert.ok(stop.disabled);
});

test("a refusal is shown and the button works again", async () => {
  const { model, host } = shown();
  const stop = host.querySelector("button");
  stop.click();

  model.say({ type: "fail", cid: model.last("cmd").cid, error: "it has ended" });
  await new Promise((done) => setTimeout(done));

  assert.equal(host.querySelector("[role=status]").textContent, "it has ended");
  assert.ok(!stop.disabled);
});

test("a view that is gone listens no more", () => {
  const { model, host, close } = shown();

  close();

  assert.equal(model.listeners.length, 0);
  assert.equal(host.childNodes.length, 0);
});

test("a view that goes says so once, so that its model can go too", () => {
  const { model, host, close } = shown();
  const before = model.sent.length;

  close();

  assert.deepEqual(model.sent.slice(before).map(({ type }) => type), ["bye"]);
  assert.equal(host.querySelector(".nbd-run"), null);
});
