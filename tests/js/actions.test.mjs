import assert from "node:assert/strict";
import test from "node:test";
import { page } from "./page.mjs";
import { actsOf, answer, buttonOf, FakeStore, press, refuse, settled, traps, viewOf } from "./view.mjs";

const { document } = page();
const { createActions } = await import("../../nbdurable/notebook/js/pane/actions.js");
const { HELD_MS } = await import("../../nbdurable/notebook/js/pane/desk.js");

const ROWS = {
  1: { role: "user" }, 2: { role: "assistant", model: "m1" }, 3: { role: "assistant", parent: 1, model: "m2" },
  4: { role: "assistant", parent: 1, flags: 2 }, 5: { role: "compaction", parent: 3 }, 6: { role: "note", parent: 5 }, 7: { role: "tool", parent: 6 },
};

function opened(head = {}) {
  const store = new FakeStore(structuredClone(ROWS), head);
  const made = viewOf(document, store);
  const button = document.createElement("button");
  made.root.appendChild(button);
  return { ...made, store, button, actions: createActions(made.context) };
}

const live = (more) => ({ run: "r1", parent: 3, model: "m1", exp: -1, state: "streaming", text: "", thinking: false, ttft: null, started: 0, tokens: null, cost_usd: null, note: "", ...more });
const named = (actions, n) => actions.list(n).map(({ name }) => name);
const alertOf = (root) => root.querySelector("[role=alert]")?.textContent ?? null;

test("each kind of entry offers what can be done with it", () => {
  const { actions } = opened();
  for (const name of ["branch", "rerun", "edit", "sample", "pin", "rerun_with", "label", "rate", "copy_id", "copy_code"])
    assert.ok(named(actions, 2).includes(name), name);
  assert.ok(!named(actions, 7).includes("edit"), "a tool's result");
  for (const name of ["rerun", "rerun_with", "edit", "sample"])
    for (const n of [5, 6]) assert.ok(!named(actions, n).includes(name), `${name} of #${n}`);
});

test("the row of an entry gets few actions, and the menu the rest", () => {
  const { actions } = opened();
  const primary = actions.list(2).filter(({ isPrimary }) => isPrimary).map(({ label }) => label);
  assert.deepEqual(primary, ["Branch", "Rerun", "Edit", "×n", "Pin", "⋯"]);
});

test("going on without input is offered after an error and where an answer is missing", () => {
  const { actions, store } = opened();
  assert.ok(named(actions, 4).includes("goon"));
  assert.ok(named(actions, 7).includes("goon"));
  assert.ok(!named(actions, 2).includes("goon"));
  store.live.set("r1", live({ parent: 7 }));
  assert.ok(!named(actions, 7).includes("goon"), "an answer is on its way");
});

test("a closed session is only read", () => {
  const { actions } = opened({ is_closed: true });
  assert.deepEqual(named(actions, 2), ["pin", "menu", "copy_id", "copy_code", "help"]);
});

const KEYS = { b: "branch", r: "rerun", w: "rerun_with", e: "edit", s: "sample", c: "continue", x: "cancel", p: "pin", v: "compare", l: "label", t: "rate", i: "copy_id", k: "copy_code", "?": "help" };
for (const [key, name] of Object.entries(KEYS))
  test(`the key ${key} means ${name}`, () => {
    const { actions, tree } = opened();
    const event = press(tree, key, { shiftKey: key === "?" });
    assert.equal(actions.keyFor(event), name);
  });

test("every action has a key of its own", () => {
  const { actions } = opened();
  const keys = actions.list(4).map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length);
  assert.ok(keys.every(Boolean));
});

for (const more of [{ ctrlKey: true }, { metaKey: true }, { altKey: true }, { shiftKey: true }, { repeat: true }])
  test(`a letter with ${Object.keys(more)[0]} means nothing`, () => {
    const { actions, tree } = opened();
    assert.equal(actions.keyFor(press(tree, "r", more)), null);
  });

test("Shift and Enter is the notebook's", () => {
  const { actions, tree } = opened();
  const event = press(tree, "Enter", { shiftKey: true });
  assert.equal(actions.keyFor(event), null);
  assert.equal(event.defaultPrevented, false);
});

test("a letter that is typed into a text means nothing", () => {
  const { actions, root } = opened();
  const field = root.appendChild(document.createElement("textarea"));
  assert.equal(actions.keyFor(press(field, "r")), null);
});

test("a double click starts one run, also where the kernel answers between the clicks", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { actions, model, button } = opened();
  actions.run("rerun", 2, button);
  actions.run("rerun", 2, button);
  assert.equal(actsOf(model).length, 1);
  await answer(model, "cmd", { run: "r1" });
  actions.run("rerun", 2, button);
  assert.equal(actsOf(model).length, 1);
  t.mock.timers.tick(HELD_MS);
  actions.run("rerun", 2, button);
  assert.equal(actsOf(model).length, 2);
});

test("a run that was started is followed, samples are not", async () => {
  const { actions, model, told, root } = opened();
  actions.run("rerun", 2, null);
  await answer(model, "cmd", { run: "r1" });
  actions.run("sample", 2, null);
  buttonOf(root, "Sample").click();
  await answer(model, "cmd", { run: "s1" });
  assert.deepEqual([told.followed, told.selected], [["r1"], []]);
});

test("an answer that was there before its run was heard of is chosen", async () => {
  const { actions, model, told, store } = opened();
  actions.run("rerun", 2, null);
  store.head = { ...store.head, leaf: 7 };
  await answer(model, "cmd", { run: "r1" });
  assert.deepEqual(told.selected, [7]);
});

test("the same action on another entry does not wait", () => {
  const { actions, model, button } = opened();
  actions.run("rerun", 2, button);
  actions.run("rerun", 3, button);
  assert.deepEqual(actsOf(model).map(({ args }) => args), [{ n: 2 }, { n: 3 }]);
});

test("a refused action says why beside the button, which can be pressed again at once", async () => {
  const { actions, model, button, root } = opened();
  actions.run("rerun", 2, button);
  assert.equal(button.getAttribute("aria-disabled"), "true");
  await refuse(model, "the session is running; wait for it");
  assert.equal(root.querySelector("[role=alert] span").textContent, "the session is running; wait for it");
  assert.equal(button.hasAttribute("aria-disabled"), false);
  actions.run("rerun", 2, button);
  assert.equal(actsOf(model).length, 2);
});

test("Escape closes what was said and gives the focus back to the tree", async () => {
  const { actions, model, button, root, tree } = opened();
  actions.run("rerun", 2, button);
  await refuse(model, "no");
  const close = root.querySelector("[role=alert] button");
  close.focus();
  press(close, "Escape");
  assert.equal(alertOf(root), null);
  assert.equal(document.activeElement, tree);
});

test("a kernel that is busy is told of, until it takes the action", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { actions, model, button, root } = opened();
  actions.run("rerun", 2, button);
  assert.equal(root.querySelector("[role=status]"), null);
  t.mock.timers.tick(700);
  assert.equal(root.querySelector("[role=status]").textContent, "kernel busy, request queued");
  model.say({ type: "ack", cid: model.last("cmd").cid });
  assert.equal(root.querySelector("[role=status]"), null);
});

test("an action that takes long is said to be under way", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { actions, model, button, root } = opened();
  actions.run("rerun", 2, button);
  model.say({ type: "ack", cid: model.last("cmd").cid });
  t.mock.timers.tick(1_500);
  assert.equal(root.querySelector("[role=status]").textContent, "the kernel is at it …");
  await answer(model, "cmd", {});
  assert.equal(root.querySelector("[role=status]"), null);
});

test("a kernel that is silent for long is told of", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { actions, button, root } = opened();
  actions.run("rerun", 2, button);
  t.mock.timers.tick(20_000);
  assert.match(root.querySelector("[role=status]").textContent, /if it was restarted, run the cell again/);
});

test("what an entry does not have is said", () => {
  const { actions, model, root, button } = opened();
  actions.run("edit", 7, button);
  assert.match(alertOf(root), /Edit and rerun: a tool entry does not have it/);
  actions.run("cancel", 2, button);
  assert.match(alertOf(root), /nothing runs/);
  assert.equal(actsOf(model).length, 0);
});

test("rerun with sends what was changed and nothing else", async () => {
  const { actions, model, root } = opened();
  actions.run("rerun_with", 2, null);
  await settled();
  const form = root.querySelector("[role=dialog]");
  assert.equal(form.getAttribute("aria-label"), "Rerun #2 with");
  form.querySelector("select").value = "m2";
  const [temperature] = [...form.querySelectorAll("input")].filter((input) => input.getAttribute("inputmode") === "decimal");
  temperature.value = "0,9";
  press(temperature, "Enter", { ctrlKey: true });
  assert.deepEqual(model.last("cmd").args, { n: 2, model: "m2", params: { temperature: 0.9 } });
  await answer(model, "cmd", { run: "r1" });
  assert.equal(root.querySelector("[role=dialog]"), null);
});

test("rerun with can name a model that is not offered, and allow effects", async () => {
  const { actions, model, root, store } = opened();
  store.head.tools = ["pay"];
  actions.run("rerun_with", 2, null);
  await settled();
  const form = root.querySelector("[role=dialog]");
  const select = form.querySelector("select");
  select.value = "other…";
  select.dispatchEvent(new Event("change", { bubbles: true }));
  buttonOf(form, "Rerun").click();
  assert.equal(actsOf(model).length, 0);
  assert.match(form.querySelector(".nbd-bad").textContent, /name the model/);
  form.querySelector("input[aria-label]").value = "openai/gpt-9";
  form.querySelector("[type=checkbox]").checked = true;
  buttonOf(form, "Rerun").click();
  assert.deepEqual(model.last("cmd").args, { n: 2, model: "openai/gpt-9", effects: "run" });
});

test("where a session has no tools nothing is asked of them", async () => {
  const { actions, root } = opened();
  actions.run("rerun_with", 2, null);
  await settled();
  assert.equal(root.querySelector("[role=dialog] [type=checkbox]"), null);
});

test("a number that is none is said before anything is sent", async () => {
  const { actions, model, root } = opened();
  actions.run("sample", 2, null);
  const [count] = root.querySelectorAll("[role=dialog] input");
  for (const wrong of ["", "0", "2.5", "many", "1e9"]) {
    count.value = wrong;
    buttonOf(root, "Sample").click();
    assert.match(root.querySelector(".nbd-bad").textContent, /^Answers/, wrong);
    assert.equal(count.getAttribute("aria-invalid"), "true");
  }
  assert.equal(actsOf(model).length, 0);
});

test("samples say what they would cost, again as the fields change", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { actions, model, root } = opened();
  actions.run("sample", 2, null);
  await answer(model, "ask", { text: "about $0.01", cost_usd: 0.01 }, { name: "estimate" });
  const foot = root.querySelector(".nbd-form-foot");
  assert.equal(foot.textContent, "about $0.01");
  const [count] = root.querySelectorAll("[role=dialog] input");
  count.value = "8";
  count.dispatchEvent(new Event("input", { bubbles: true }));
  t.mock.timers.tick(250);
  const asked = await answer(model, "ask", { text: "about $0.03" }, { name: "estimate" });
  assert.deepEqual(asked.args, { n: 2, count: 8 });
  assert.equal(foot.textContent, "about $0.03");
  buttonOf(root, "Sample").click();
  assert.deepEqual(model.last("cmd").args, { n: 2, count: 8 });
});

test("a label is given and taken away", async () => {
  const { actions, model, root, store } = opened();
  actions.run("label", 2, null);
  root.querySelector("[role=dialog] input").value = " sent ";
  buttonOf(root, "Label").click();
  assert.deepEqual(model.last("cmd").args, { n: 2, text: "sent" });
  await answer(model, "cmd", null);
  store.rows[3].marks = { labels: ["good"], ratings: [], preferred: false };
  actions.run("label", 3, null);
  assert.equal(root.querySelector("[role=dialog] input").value, "good");
  buttonOf(root, "Remove").click();
  assert.deepEqual(model.last("cmd").args, { n: 3, text: null });
});

test("a rating has a score, a name and a reason", async () => {
  const { actions, model, root } = opened();
  actions.run("rate", 2, null);
  const [score, name, note] = root.querySelectorAll("[role=dialog] input");
  [score.value, name.value, note.value] = ["4.5", "tone", "kind"];
  buttonOf(root, "Rate").click();
  assert.deepEqual(model.last("cmd").args, { n: 2, name: "tone", score: 4.5, note: "kind" });
});

test("an answer is preferred to its pinned siblings, or to all", async () => {
  const { actions, model, context } = opened();
  actions.run("prefer", 2, null);
  assert.deepEqual(model.last("cmd").args, { winner: 2, losers: [3, 4] });
  context.view.pins.add(4);
  actions.run("prefer", 3, null);
  assert.deepEqual(model.last("cmd").args, { winner: 3, losers: [4] });
});

test("what is pinned is compared; one pin is compared with the chosen entry", () => {
  const { actions, root, told, context } = opened();
  context.view.pins.add(2);
  actions.run("compare", 2, null);
  assert.match(alertOf(root), /pin two or more/);
  actions.run("compare", 3, null);
  context.view.pins.add(4);
  actions.run("compare", 0, null);
  assert.deepEqual(told.compared, [[2, 3], [2, 4]]);
});

test("after a run that failed one goes on from what it was to answer", () => {
  const { actions, model, store, context } = opened();
  store.live.set("r1", live({ parent: 7, state: "error", note: "no key" }));
  context.view.selectedRun = "r1";
  actions.run("goon", 0, null);
  assert.deepEqual([model.last("cmd").name, model.last("cmd").args], ["goon", { n: 7 }]);
});

test("of several runs one can be cancelled", () => {
  const { actions, model, root, store } = opened();
  for (const run of ["r1", "r2", "r3"]) store.live.set(run, live({ run, text: `text of ${run}`, exp: -1 }));
  actions.run("cancel", 3, null);
  const items = [...root.querySelectorAll("[role=menu] [role=menuitem]")];
  assert.equal(items.length, 4);
  items[1].click();
  assert.deepEqual(actsOf(model).map(({ args }) => args), [{ run: "r2" }]);
});

test("the runs of an experiment are cancelled with it, so that no other one begins", () => {
  const { actions, model, root, store } = opened();
  for (const run of ["r1", "r2"]) store.live.set(run, live({ run, exp: 0 }));
  actions.run("cancel", 3, null);
  assert.equal(root.querySelector("[role=menu]"), null);
  assert.deepEqual(actsOf(model).map(({ name, args }) => [name, args]), [["stop", { experiment: "x" }]]);
});

test("a menu goes by arrows and keys, and Escape gives the focus back", () => {
  const { actions, model, root, tree } = opened();
  tree.focus();
  actions.run("menu", 2, null);
  const items = [...root.querySelectorAll("[role=menuitem]")];
  assert.equal(document.activeElement, items[0]);
  press(items[0], "ArrowUp");
  assert.equal(document.activeElement, items.at(-1));
  press(items.at(-1), "ArrowDown");
  assert.equal(document.activeElement, items[0]);
  press(items[0], "Escape");
  assert.equal(root.querySelector("[role=menu]"), null);
  assert.equal(document.activeElement, tree);
  actions.run("menu", 2, null);
  press(document.activeElement, "r");
  assert.equal(model.last("cmd").name, "rerun");
});

test("an action is copied as the line of Python that does the same", async () => {
  let copied = "";
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: { clipboard: { async writeText(text) { copied = text; } } } });
  const { actions, model, root } = opened();
  actions.run("copy_code", 2, null);
  await settled();
  for (const { cid, args } of model.sent.filter(({ name }) => name === "code"))
    model.say({ type: "done", cid, body: { code: `chat.${args.name}(${args.args.n})` } });
  await settled();
  root.querySelector("[role=menuitem]").click();
  await settled();
  assert.equal(copied, "chat.rerun(2)");
});

test("a form copies what it would do as code", async () => {
  let copied = "";
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: { clipboard: { async writeText(text) { copied = text; } } } });
  const { actions, model, root } = opened();
  actions.run("label", 2, null);
  root.querySelector("[role=dialog] input").value = "sent";
  buttonOf(root, "Copy as code").click();
  const asked = await answer(model, "ask", { code: 'chat.label(2, "sent")' });
  assert.deepEqual(asked.args, { name: "label", args: { n: 2, text: "sent" } });
  assert.equal(copied, 'chat.label(2, "sent")');
});

test("an id that cannot be put on the clipboard is shown", async () => {
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: {} });
  document.execCommand = () => false;
  const { actions, model, root } = opened();
  actions.run("copy_id", 2, null);
  await answer(model, "ask", { id: "01a2-7000" });
  assert.match(alertOf(root), /the id is 01a2-7000/);
});

test("Tab goes round inside a form, and letters stay in it", () => {
  const { actions, root } = opened();
  let heard = 0;
  root.addEventListener("keydown", () => { heard++; });
  actions.run("label", 2, null);
  const form = root.querySelector("[role=dialog]");
  const last = buttonOf(form, "Label");
  last.focus();
  press(last, "Tab");
  assert.equal(document.activeElement, form.querySelector("input"));
  press(document.activeElement, "Tab", { shiftKey: true });
  assert.equal(document.activeElement, last);
  press(form.querySelector("input"), "b");
  assert.equal(heard, 0);
  press(form.querySelector("input"), "s", { ctrlKey: true });
  assert.equal(heard, 1, "Ctrl+S is the notebook's");
});

test("the help lists every key", () => {
  const { actions, root } = opened();
  actions.help();
  const keys = [...root.querySelectorAll("[role=dialog] kbd")].map((key) => key.textContent);
  for (const key of Object.keys(KEYS)) assert.ok(keys.includes(key), key);
});

test("every field has a label", async () => {
  const { actions, root } = opened();
  for (const name of ["rerun_with", "sample", "label", "rate"]) {
    actions.run(name, 2, null);
    await settled();
    for (const field of root.querySelectorAll("[role=dialog] :is(input, textarea, select)"))
      assert.ok(field.closest("label") || field.hasAttribute("aria-label"), `${name}: ${field.outerHTML}`);
  }
});

test("hostile texts stay texts in forms, menus and words", async () => {
  for (const { name, text } of traps()) {
    const { actions, root, store, model, button } = opened({ models: [text], model: text, params: { temperature: text }, system: text });
    store.rows[2].marks = { labels: [text], ratings: [{ name: text, score: 1 }], preferred: false };
    store.live.set("a", live({ run: "a", model: text, text }));
    store.live.set("b", live({ run: "b", model: text, text }));
    for (const deed of ["label", "rate", "sample", "cancel", "rerun_with", "rerun"]) {
      actions.run(deed, 2, button);
      await settled();
      assert.equal(root.querySelector("script, img, svg, iframe, [onload], [onerror]"), null, `${deed} ${name}`);
    }
    await refuse(model, text);
    assert.equal(root.querySelector("script, img, svg, iframe, [onload], [onerror]"), null, name);
    root.remove();
  }
});
