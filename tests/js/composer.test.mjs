import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";
import { actsOf, answer, buttonOf, FakeStore, press, refuse, traps, viewOf } from "./view.mjs";

const { document } = page();
const { createActions } = await import("../../nbdurable/notebook/js/pane/actions.js");
const { createComposer } = await import("../../nbdurable/notebook/js/pane/composer.js");

const ROWS = { 1: { role: "user" }, 2: { role: "assistant" }, 3: { role: "user" }, 4: { role: "assistant" } };

function opened({ head = {}, rows = ROWS, isFresh = true } = {}) {
  if (isFresh) localStorage.clear();
  const made = viewOf(document, new FakeStore(structuredClone(rows), head));
  const actions = createActions(made.context);
  const composer = createComposer(made.context);
  made.root.appendChild(composer.root);
  return { ...made, store: made.context.store, actions, composer, area: composer.area };
}

function write({ area }, text) {
  area.value = text;
  area.dispatchEvent(new Event("input", { bubbles: true }));
}

const live = (more) => ({ run: "r1", parent: 4, model: "m1", exp: -1, state: "streaming", text: "", ...more });

test("what is written is run from the leaf by Ctrl+Enter, and the line is empty again", async () => {
  const made = opened();
  assert.equal(made.area.getAttribute("placeholder"), "Continue from #4 …");
  write(made, "Shorter.");
  press(made.area, "Enter", { ctrlKey: true });
  assert.deepEqual(made.model.last("cmd").args, { text: "Shorter." });
  assert.equal(made.area.value, "Shorter.");
  await answer(made.model, "cmd", { run: "r1" });
  assert.equal(made.area.value, "");
});

test("Cmd+Enter runs, Enter and Shift+Enter do not", () => {
  const made = opened();
  write(made, "Shorter.");
  press(made.area, "Enter");
  press(made.area, "Enter", { shiftKey: true });
  press(made.area, "Enter", { ctrlKey: true, shiftKey: true });
  assert.equal(actsOf(made.model).length, 0);
  press(made.area, "Enter", { metaKey: true });
  assert.equal(actsOf(made.model).length, 1);
});

test("a held or repeated key runs once", () => {
  const made = opened();
  write(made, "Shorter.");
  press(made.area, "Enter", { ctrlKey: true });
  press(made.area, "Enter", { ctrlKey: true, repeat: true });
  press(made.area, "Enter", { ctrlKey: true });
  assert.equal(actsOf(made.model).length, 1);
});

test("a refused run keeps what was written and says why", async () => {
  const made = opened();
  write(made, "Shorter.");
  buttonOf(made.root, "Run ⌃⏎").click();
  await refuse(made.model, "no key for m1");
  assert.equal(made.area.value, "Shorter.");
  assert.equal(made.composer.line.textContent, "no key for m1");
});

test("another model and temperature are sent, the session's own are not", () => {
  const made = opened();
  write(made, "Shorter.");
  made.composer.model.input.value = "m2";
  made.composer.temperature.input.value = "0.9";
  press(made.area, "Enter", { ctrlKey: true });
  assert.deepEqual(made.model.last("cmd").args, { text: "Shorter.", model: "m2", params: { temperature: 0.9 } });
});

test("what would be run is copied as code", async () => {
  let copied = "";
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: { clipboard: { async writeText(text) { copied = text; } } } });
  const made = opened();
  assert.equal(made.composer.code.hidden, true);
  write(made, "Shorter.");
  made.composer.code.click();
  const asked = await answer(made.model, "ask", { code: "chat.run('Shorter.')" });
  assert.deepEqual(asked.args, { name: "run", args: { text: "Shorter." } });
  assert.equal(copied, "chat.run('Shorter.')");
});

test("a chosen model stays when the head changes", () => {
  const made = opened();
  made.composer.model.input.value = "m2";
  made.store.head = { ...made.store.head, leaf: 2, models: ["m1", "m2", "m3"] };
  made.composer.update();
  assert.equal(made.composer.model.read(), "m2");
});

test("it goes on from another entry when asked to, and back to the leaf after", async () => {
  const made = opened();
  made.actions.run("continue", 2, null);
  assert.equal(document.activeElement, made.area);
  assert.equal(made.area.getAttribute("placeholder"), "Continue from #2 …");
  write(made, "Why?");
  press(made.area, "Enter", { ctrlKey: true });
  assert.deepEqual(made.model.last("cmd").args, { text: "Why?", at: 2 });
  await answer(made.model, "cmd", { run: "r1" });
  assert.equal(made.area.getAttribute("placeholder"), "Continue from #4 …");
});

test("an empty line goes on only where something waits for an answer", async () => {
  const finished = opened();
  assert.equal(finished.composer.go.disabled, true);
  const cut = opened({ rows: { ...ROWS, 4: { role: "assistant", flags: 4 } } });
  assert.equal(cut.composer.go.textContent, "Go on ⌃⏎");
  press(cut.area, "Enter", { ctrlKey: true });
  assert.deepEqual([cut.model.last("cmd").name, cut.model.last("cmd").args], ["goon", { n: 4 }]);
});

test("while a run goes on it can be stopped and no other started", () => {
  const made = opened();
  write(made, "More.");
  made.store.live.set("r1", live());
  made.store.live.set("s1", live({ run: "s1", exp: 0 }));
  made.composer.update();
  assert.equal(made.composer.go.disabled, true);
  press(made.area, "Enter", { ctrlKey: true });
  assert.match(made.composer.line.textContent, /a run is going on/);
  buttonOf(made.root, "Stop").click();
  assert.deepEqual(actsOf(made.model).map(({ args }) => args), [{ run: "r1" }]);
});

test("samples do not keep a run from starting, and Stop ends them all", () => {
  const made = opened();
  write(made, "More.");
  for (const run of ["s1", "s2"]) made.store.live.set(run, live({ run, exp: 0 }));
  made.composer.update();
  assert.equal(made.composer.go.disabled, false);
  buttonOf(made.root, "Stop").click();
  assert.deepEqual(actsOf(made.model).map(({ args }) => args), [{ experiment: "x" }]);
});

test("a draft is there again after a reload, for its own session only", () => {
  const made = opened();
  write(made, "half a th");
  made.composer.close();
  assert.equal(opened({ isFresh: false }).area.value, "half a th");
  assert.equal(opened({ isFresh: false, head: { session: "other" } }).area.value, "");
});

test("a draft that is run is forgotten", async () => {
  const made = opened();
  write(made, "Shorter.");
  press(made.area, "Enter", { ctrlKey: true });
  await answer(made.model, "cmd", { run: "r1" });
  assert.equal(opened({ isFresh: false }).area.value, "");
});

test("a browser that keeps nothing is written in all the same", (t) => {
  const storage = globalThis.localStorage;
  t.after(() => { globalThis.localStorage = storage; });
  const refuses = () => { throw new Error("denied"); };
  globalThis.localStorage = { getItem: refuses, setItem: refuses, removeItem: refuses, clear() {} };
  const made = opened();
  write(made, "Shorter.");
  made.composer.close();
  assert.equal(made.area.value, "Shorter.");
});

test("a closed session takes no input", () => {
  const made = opened({ head: { is_closed: true } });
  assert.equal(made.area.disabled, true);
  assert.equal(made.composer.go.disabled, true);
});

test("a tool that asks is answered, once", async () => {
  const made = opened();
  made.store.questions.set("q1", { id: "q1", run: "r1", tool: "refund", text: "refund(order=1234)" });
  made.composer.update();
  assert.match(made.composer.questions.textContent, /refund\(order=1234\)/);
  assert.deepEqual(made.told.said, ["a tool asks: refund(order=1234)"]);
  buttonOf(made.root, "Deny").click();
  buttonOf(made.root, "Allow").click();
  assert.deepEqual(actsOf(made.model).map(({ args }) => args), [{ id: "q1", allow: false }]);
  made.store.questions.delete("q1");
  made.composer.update();
  assert.equal(made.composer.questions.hidden, true);
});

test("Escape goes back to the tree, and what edits a text stays with it", () => {
  const made = opened();
  let heard = 0;
  made.root.addEventListener("keydown", () => { heard++; });
  made.composer.focus();
  for (const key of ["b", "ArrowUp", "Backspace"]) press(made.area, key);
  press(made.area, "z", { ctrlKey: true });
  assert.equal(heard, 0);
  press(made.area, "Escape");
  assert.equal(document.activeElement, made.tree);
});

test("hostile texts stay texts", () => {
  for (const { name, text } of traps()) {
    const made = opened({ head: { models: [text], model: text, session: text, store: text, params: { temperature: text } } });
    made.store.questions.set("q", { id: "q", run: "r", tool: text, text });
    made.composer.update();
    assert.equal(made.root.querySelector("script, img, svg, iframe, [onload], [onerror]"), null, name);
    made.root.remove();
  }
});
