import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";
import { actsOf, answer, buttonOf, FakeStore, press, refuse, settled, traps, viewOf } from "./view.mjs";

const { document } = page();
const { createPane } = await import("../../nbdurable/notebook/js/pane/pane.js");
const { createActions } = await import("../../nbdurable/notebook/js/pane/actions.js");

const ROWS = {
  1: { role: "user" }, 2: { role: "assistant", model: "m1" }, 3: { role: "assistant", parent: 1, model: "m2" }, 4: { role: "assistant", parent: 1, flags: 2 },
};
const SAID = { n: 2, id: "id-2", role: "assistant", model: "m1", params: { temperature: 0.2, top_p: 1 }, tokens: { input: 10, output: 5 }, cost_usd: 0.0021, seconds: 1.4, ttft: 0.42, stop_reason: "stop", blocks: [{ type: "text", text: "It left." }], text: "It left.", json: '{"n": 2}' };
const ASKED = { n: 1, id: "id-1", role: "user", params: {}, blocks: [{ type: "text", text: "Where?" }], text: "Where?", json: "{}" };

function opened(store = new FakeStore(structuredClone(ROWS))) {
  const made = viewOf(document, store);
  const actions = createActions(made.context);
  const pane = createPane(made.context);
  made.root.appendChild(pane.root);
  return { ...made, store, actions, pane, body: pane.body };
}

const live = (more) => ({ run: "r1", parent: 3, model: "m1", exp: -1, state: "streaming", text: "", blocks: [], tail: more?.text ?? "", thinking: false, ttft: null, started: 0, tokens: null, cost_usd: null, note: "", ...more });

test("an entry is shown with what it is, what it says and what it cost", async () => {
  const { pane, model } = opened();
  pane.show(2);
  assert.equal(pane.title.textContent, "#2 assistant");
  await answer(model, "ask", SAID);
  assert.equal(pane.body.textContent, "It left.");
  assert.equal(pane.facts.textContent, "m1 · T 0.2 · top_p 1");
  assert.equal(pane.figures.textContent, "10 → 5 tokens · $0.0021 · 0.4 s to first · 1.4 s");
});

test("a late answer about another entry is passed over", async () => {
  const { pane, model } = opened();
  pane.show(2);
  const first = model.last("ask");
  pane.show(1);
  await answer(model, "ask", ASKED);
  model.say({ type: "done", cid: first.cid, body: SAID });
  await settled();
  assert.equal(pane.body.textContent, "Where?");
});

test("an entry that was seen is not asked for again", async () => {
  const { pane, model } = opened();
  for (const [n, detail] of [[2, SAID], [1, ASKED]]) {
    pane.show(n);
    await answer(model, "ask", detail);
  }
  pane.show(2);
  await settled();
  assert.equal(pane.body.textContent, "It left.");
  assert.equal(model.sent.filter(({ name }) => name === "detail").length, 2);
});

test("the request and the raw form stand behind tabs that arrows reach", async () => {
  const { pane, model } = opened();
  pane.show(2);
  await answer(model, "ask", SAID);
  press(pane.tabs[0], "ArrowRight");
  await answer(model, "ask", '{"messages": []}', { name: "request" });
  assert.match(pane.body.textContent, /"messages"/);
  press(pane.tabs[1], "ArrowRight");
  await settled();
  assert.match(pane.body.textContent, /\{"n": 2\}/);
  assert.equal(pane.tabs[2].getAttribute("aria-selected"), "true");
  assert.equal(document.activeElement, pane.tabs[2]);
});

test("an error that the kernel gives for an entry is shown in its place", async () => {
  const { pane, model } = opened();
  pane.show(2);
  model.say({ type: "fail", cid: model.last("ask").cid, error: "entry #2 is not there" });
  await settled();
  assert.equal(pane.body.querySelector("[role=alert]").textContent, "entry #2 is not there");
});

test("an entry's error stands first, with a way to go on", async () => {
  const { pane, model } = opened();
  pane.show(4);
  await answer(model, "ask", { ...SAID, n: 4, error: "the line was closed" });
  assert.match(pane.body.firstChild.textContent, /the line was closed/);
  buttonOf(pane.body, "Continue").click();
  assert.deepEqual(model.last("cmd").args, { n: 4 });
  assert.equal(model.last("cmd").name, "goon");
});

test("what is hidden is shown whole when asked for", async () => {
  const { pane, model } = opened();
  pane.show(2);
  await answer(model, "ask", { ...SAID, hidden: "… 1,200,000 characters more" });
  buttonOf(pane.body, "… 1,200,000 characters more, show all").click();
  const asked = await answer(model, "ask", { ...SAID, blocks: [{ type: "text", text: "all" }] });
  assert.deepEqual(asked.args, { n: 2, whole: true });
  assert.equal(pane.body.textContent, "all");
});

test("a label that comes is shown without asking for the entry again", async () => {
  const { pane, model, store } = opened();
  pane.show(2);
  await answer(model, "ask", SAID);
  const text = pane.body.firstChild;
  store.rows[2].marks = { labels: ["sent"], ratings: [{ name: "tone", score: 4, by: "ana" }], preferred: true };
  pane.refresh();
  assert.deepEqual([...pane.marks.children].map((chip) => chip.textContent), ["sent", "tone ★ 4 by ana", "preferred"]);
  assert.equal(pane.body.firstChild, text);
  assert.equal(model.sent.filter(({ name }) => name === "detail").length, 1);
});

test("a call without its result is asked for again when entries come", async () => {
  const { pane, model, store } = opened();
  pane.show(2);
  const call = { type: "call", name: "look", arguments: "{}", id: "c", result: null };
  await answer(model, "ask", { ...SAID, blocks: [call] });
  assert.match(pane.body.textContent, /no result yet/);
  store.rows[5] = { role: "tool", parent: 2 };
  pane.refresh();
  await answer(model, "ask", { ...SAID, blocks: [{ ...call, result: { text: "found" } }] });
  assert.match(pane.body.textContent, /found/);
});

test("a run's text is added to what stands there, and the stored entry takes its place", async () => {
  const { pane, model, body } = opened();
  pane.live(live({ text: "It" }));
  const grown = body.querySelector(".nbd-tail").firstChild;
  pane.live(live({ text: "It left", tokens: 2, ttft: 0.42 }));
  assert.equal(body.querySelector(".nbd-tail").firstChild, grown);
  assert.equal(grown.data, "It left");
  assert.equal(pane.figures.textContent, "2 tokens · 0.4 s to first");
  pane.show(2);
  assert.equal(body.textContent, "It left");
  await answer(model, "ask", SAID);
  assert.equal(body.textContent, "It left.");
});

test("a run's formatted blocks stay while they are the same, and later characters stand in the last", () => {
  const { pane, body } = opened();
  const first = ["h3", {}, ["Why"]];
  pane.live(live({ text: "x", tail: "", blocks: [first, ["p", {}, ["It **le"]]] }));
  const heading = body.querySelector("h3");
  pane.live(live({ text: "x", tail: " by", blocks: [first, ["p", {}, ["It ", ["strong", {}, ["left"]]]]] }));
  assert.equal(body.querySelector("h3"), heading);
  assert.equal(body.querySelector("p").textContent, "It left by");
  pane.live(live({ text: "x", tail: "\nb", blocks: [["pre", {}, [["code", {}, ["a"]]]]] }));
  assert.equal(body.querySelector("pre code").textContent, "a\nb");
  assert.equal(body.querySelector("h3"), null);
});

test("the steps of a run stand under each other while it goes on", () => {
  const { pane, body } = opened();
  pane.live(live({ text: "Let me look." }));
  pane.live(live({ parent: 5, text: "", state: "tool", note: "look_up" }));
  assert.match(body.textContent, /tool at work: look_up/);
  pane.live(live({ parent: 6, text: "Found." }));
  assert.equal(body.querySelector(".nbd-live").textContent, "Let me look.#5 is storedFound.");
});

test("nothing is said of the input of a run being stored", () => {
  const { pane, body } = opened();
  pane.live(live({ state: "waiting" }));
  pane.live(live({ parent: 5, text: "Found." }));
  assert.equal(body.textContent, "Found.");
});

test("a run that grows can be cancelled from the pane", () => {
  const { pane, model, store } = opened();
  store.live.set("r1", live({ text: "It" }));
  store.live.set("r2", live({ run: "r2" }));
  pane.live(store.live.get("r1"));
  buttonOf(pane.root, "Cancel").click();
  assert.deepEqual(actsOf(model).map(({ name, args }) => [name, args]), [["cancel", { run: "r1" }]]);
});

test("a key does in the pane what it does in the tree, and Escape goes back there", async () => {
  const { pane, model, tree } = opened();
  pane.show(2);
  await answer(model, "ask", SAID);
  pane.focus();
  press(pane.body, "r");
  assert.equal(model.last("cmd").name, "rerun");
  press(pane.body, "Escape");
  assert.equal(document.activeElement, tree);
});

test("an edited prompt is saved as a sibling and run", async () => {
  const { pane, model, tree, actions } = opened();
  pane.show(1);
  await answer(model, "ask", ASKED);
  actions.run("edit", 1, null);
  await settled();
  const area = pane.body.querySelector("textarea");
  assert.equal(area.value, "Where?");
  area.value = "Where is it?";
  press(area, "Enter", { ctrlKey: true });
  assert.deepEqual(model.last("cmd").args, { n: 1, text: "Where is it?", run: true });
  await answer(model, "cmd", { run: "r9" });
  assert.equal(pane.body.querySelector("textarea"), null);
  assert.equal(document.activeElement, tree);
});

test("an edit that is only saved leads to the new entry", async () => {
  const { pane, model, told, actions } = opened();
  pane.show(1);
  await answer(model, "ask", ASKED);
  actions.run("edit", 1, null);
  await settled();
  pane.body.querySelector("textarea").value = "Where is it?";
  buttonOf(pane.body, "Save only").click();
  assert.equal(model.last("cmd").args.run, false);
  await answer(model, "cmd", { n: 5 });
  assert.deepEqual(told.selected, [5]);
});

test("a person's words for an answer are saved and not run", async () => {
  const { pane, model, actions } = opened();
  pane.show(2);
  await answer(model, "ask", SAID);
  actions.run("edit", 2, null);
  await settled();
  assert.equal(buttonOf(pane.body, "Save only"), undefined);
  buttonOf(pane.body, "Save").click();
  assert.deepEqual(model.last("cmd").args, { n: 2, text: "It left.", run: false });
});

test("a refused edit keeps the text and says why", async () => {
  const { pane, model, actions } = opened();
  pane.show(1);
  await answer(model, "ask", ASKED);
  actions.run("edit", 1, null);
  await settled();
  const area = pane.body.querySelector("textarea");
  area.value = "Where is it?";
  buttonOf(pane.body, "Save and rerun").click();
  await refuse(model, "the session is running");
  assert.equal(pane.body.querySelector(".nbd-bad").textContent, "the session is running");
  assert.equal(area.value, "Where is it?");
});

test("a text that was being edited is there again after a look elsewhere", async () => {
  const { pane, model, actions } = opened();
  pane.show(1);
  await answer(model, "ask", ASKED);
  actions.run("edit", 1, null);
  await settled();
  pane.body.querySelector("textarea").value = "half a th";
  pane.show(2);
  await answer(model, "ask", SAID);
  pane.show(1);
  actions.run("edit", 1, null);
  await settled();
  assert.equal(pane.body.querySelector("textarea").value, "half a th");
});

test("a cut text is asked for whole before it is edited", async () => {
  const { pane, model, actions } = opened();
  pane.show(1);
  await answer(model, "ask", { ...ASKED, text: null, hidden: "… 3 characters more" });
  actions.run("edit", 1, null);
  await settled();
  await answer(model, "ask", { ...ASKED, text: "all of it" });
  assert.equal(pane.body.querySelector("textarea").value, "all of it");
});

test("everything in the pane that takes the focus keeps Jupyter's shortcuts out", async () => {
  const { pane, model, actions } = opened();
  pane.show(1);
  await answer(model, "ask", { ...ASKED, system: "s", blocks: [{ type: "markdown", nodes: [["pre", {}, [["code", {}, ["x"]]]], ["table", {}, []], ["a", { href: "https://h" }, ["x"]]] }] });
  const check = () => {
    for (const element of pane.root.querySelectorAll("button, a, input, textarea, select, summary, [tabindex]"))
      assert.equal(element.dataset.lmSuppressShortcuts, "true", element.outerHTML.slice(0, 80));
  };
  check();
  actions.run("edit", 1, null);
  await settled();
  check();
});

test("hostile texts stay texts wherever the pane shows one", async () => {
  for (const { name, text } of traps()) {
    const { pane, model, store } = opened(new FakeStore({ 2: { role: text, model: text, note: text, preview: text, marks: { labels: [text], ratings: [{ name: text, score: 1, by: text }], preferred: false } } }, { session: text, model: text, system: text, params: { stop: text }, tools: [text], models: [text] }));
    pane.show(0);
    pane.show(2);
    await answer(model, "ask", { ...SAID, model: text, params: { stop: text }, author: text, error: text, system: text, hidden: text, stop_reason: text, created_at: text, json: text });
    assert.equal(pane.root.querySelector("script, img, svg, iframe, [onload], [onerror]"), null, name);
    pane.live(live({ model: text, text, note: text, state: "error" }));
    assert.equal(pane.root.querySelector("script, img, svg, iframe, [onload], [onerror]"), null, name);
    assert.ok(pane.body.textContent.includes(text), name);
    store.live.clear();
  }
});

test("an entry of which the kernel says nothing is told in words", async () => {
  const { pane, model } = opened();
  pane.show(2);
  await answer(model, "ask", undefined);
  assert.match(pane.body.textContent, /^#2 could not be read; run the cell again/);
});
