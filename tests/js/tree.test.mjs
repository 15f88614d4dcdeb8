import assert from "node:assert/strict";
import test, { afterEach } from "node:test";
import { Kernel, generated, support } from "./kernel.mjs";
import { page } from "./page.mjs";

const { document, window, draw } = page();
const { default: tree } = await import("../../nbdurable/notebook/js/tree/tree.js");

const open = new Set();
afterEach(() => {
  for (const close of open) close();
  open.clear();
  localStorage.clear();
});

const answered = async () => { for (let turn = 0; turn < 6; turn++) await null; draw(); };

/** Open a view, which is closed after the test. */
function render(kernel) {
  const host = document.createElement("div");
  document.body.appendChild(host);
  const end = tree.render({ model: kernel, el: host });
  const close = () => { open.delete(close); end(); };
  open.add(close);
  return { host, close };
}

/** Show a session; what is asked of it is `kernel.sent`. */
async function shown(state = support(), answers = {}) {
  const kernel = new Kernel(state);
  kernel.answers = answers;
  document.body.replaceChildren();
  const { host, close } = render(kernel);
  await answered();
  const all = (selector) => [...host.querySelectorAll(selector)];
  const list = host.querySelector("[role=tree]");
  const row = (n) => all(".nbd-row").find((at) => at.querySelector(".nbd-ord").textContent === String(n));
  const ordinals = () => all(".nbd-row").map((at) => at.querySelector(".nbd-ord").textContent);
  const press = (key, more = {}) => {
    const event = new window.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
    list.dispatchEvent(event);
    draw();
    return event;
  };
  const put = (...ops) => { kernel.put(...ops); draw(); };
  const chosen = () => host.querySelector("[aria-selected=true]");
  const chosenOrdinal = () => chosen()?.querySelector(".nbd-ord").textContent;
  return { kernel, host, close, all, list, row, ordinals, press, put, chosen, chosenOrdinal };
}

const entry = (n, parent, more = {}) => ({ op: "add", n, parent, role: 1, flags: 0, model: 0, tokens: 5, cost: 0.1, seconds: 1, at: 1, exp: -1, preview: `entry ${n}`, ...more });

test("a session is shown from its first entry to its leaf, one row each", async () => {
  const { ordinals, host } = await shown(support({ isLive: false }));

  assert.deepEqual(ordinals(), ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "", "19"]);
  assert.match(host.querySelector(".nbd-bar").textContent, /support-42.*19 entries · 8 branches · \$0\.0363/);
});

test("the leaf is chosen and announced as such, and rows off the path are told apart", async () => {
  const { chosenOrdinal, row, list, chosen } = await shown(support({ isLive: false }));

  assert.equal(chosenOrdinal(), "19");
  assert.equal(list.getAttribute("aria-activedescendant"), chosen().id);
  assert.match(row(19).textContent, /19assistant.*leaf/);
  assert.match(row(6).textContent, /assistant, not on the active path/);
  assert.ok(row(13).classList.contains("nbd-row-on") && row(6).classList.contains("nbd-row-off"));
});

test("of 100,000 entries only the rows in sight are there, with their words asked for", async () => {
  const { all, kernel } = await shown(generated(100_000));

  assert.ok(all(".nbd-row").length < 40);
  await new Promise((resolve) => setTimeout(resolve, 60));
  await answered();

  const { ns } = kernel.last("ask", "previews").args;
  assert.ok(ns.length < 200 && ns.includes(100_000));
  assert.match(all(".nbd-row").at(-1).textContent, /entry 100000 in a few words/);
});

test("words that come change the text of their row and nothing else", async () => {
  const { host, put } = await shown();
  const changes = [];
  const seen = new window.MutationObserver((records) => changes.push(...records));
  seen.observe(host.querySelector("[role=tree]"), { subtree: true, childList: true, attributes: true, characterData: true });

  put({ op: "text", run: "r1", text: " and on" });
  await answered();

  const row = host.querySelector("[aria-selected=true]");
  assert.match(row.textContent, /and on/);
  assert.ok(changes.length > 0 && changes.every(({ target }) => row.contains(target)));
  seen.disconnect();
});

test("a run that ends gives its place to the answer, which is then chosen", async () => {
  const { put, chosenOrdinal, host } = await shown();
  assert.equal(host.querySelectorAll(".nbd-row-writes").length, 1);

  put(entry(21, 20), { op: "head", leaf: 21 }, { op: "end", run: "r1" });

  assert.equal(chosenOrdinal(), "21");
  assert.equal(host.querySelectorAll(".nbd-row-writes").length, 0);
  assert.equal(host.querySelector("[role=status]").textContent, "Run finished");
});

test("who looks at another entry stays there while the session goes on", async () => {
  const { row, put, chosenOrdinal } = await shown();
  row(6).click();
  draw();

  put(entry(21, 20), { op: "head", leaf: 21 }, { op: "end", run: "r1" });

  assert.equal(chosenOrdinal(), "6");
});

test("who is at the leaf goes along with a run that begins there", async () => {
  const { put, chosen } = await shown(support({ isLive: false }));

  put(entry(20, 19, { role: 0 }), { op: "head", leaf: 20 }, { op: "live", run: "r", parent: 20, state: "waiting", model: "m" });

  assert.match(chosen().textContent, /waiting/);
});

test("a row is chosen by a click, and its siblings by the switcher", async () => {
  const { row, chosenOrdinal } = await shown();
  row(8).click();
  draw();
  assert.equal(chosenOrdinal(), "8");

  row(8).querySelector("[title='Next sibling']").click();
  draw();

  assert.equal(chosenOrdinal(), "9");
});

test("keys move, fold and jump, and are kept from the notebook", async () => {
  const { press, chosenOrdinal, ordinals } = await shown();
  const event = press("Home");
  assert.equal(chosenOrdinal(), "1");
  assert.equal(event.defaultPrevented, true);

  press("7");
  assert.equal(chosenOrdinal(), "7");
  press("ArrowLeft");
  assert.deepEqual(ordinals().slice(6, 8), ["7", "13"]);
  press("ArrowRight");
  assert.deepEqual(ordinals().slice(6, 8), ["7", "8"]);
});

test("Ctrl+S pressed in the tree reaches the cell around it", async () => {
  const { host, press } = await shown();
  const cell = document.createElement("div"), got = [];
  cell.className = "jp-Cell";
  document.body.appendChild(cell);
  cell.appendChild(host);
  cell.addEventListener("keydown", (event) => { if (event.target === cell) got.push(`${event.ctrlKey} ${event.key}`); });

  press("s", { ctrlKey: true });

  assert.deepEqual(got, ["true s"]);
});

test("every element that takes the focus keeps the notebook's shortcuts out", async () => {
  const { all } = await shown();

  for (const element of all("button, input, select, textarea, a, summary, [tabindex]"))
    assert.equal(element.dataset.lmSuppressShortcuts, "true", element.outerHTML.slice(0, 80));
});

test("a fold that hides the chosen row takes its place", async () => {
  const { row, chosenOrdinal } = await shown();
  row(6).click();
  draw();

  row(5).querySelector(".nbd-twist").click();
  draw();

  assert.equal(chosenOrdinal(), "5");
  assert.equal(row(6), undefined);
  assert.equal(row(5).getAttribute("aria-expanded"), "false");
});

test("an experiment opens to its runs and closes again", async () => {
  const { all, row } = await shown();
  const line = () => all(".nbd-is-experiment")[0];
  assert.match(line().textContent, /wording · 4 models × 5 samples.*1 failed.*18 of 20/);

  line().querySelector(".nbd-twist").click();
  draw();
  assert.match(row(18).textContent, /the connection was closed/);
  line().dispatchEvent(new window.MouseEvent("dblclick", { bubbles: true }));
  draw();

  assert.equal(row(18), undefined);
});

test("a filter shows user turns, and marked entries", async () => {
  const { host, ordinals } = await shown();
  const filter = host.querySelector("select");
  const choose = (value) => { filter.value = value; filter.dispatchEvent(new window.Event("change")); draw(); };

  choose("turns");
  assert.deepEqual(ordinals(), ["1", "5", "7", "10", "14", "20"]);
  choose("marked");

  assert.deepEqual(ordinals(), ["6", "13"]);
});

test("a search shows what is found, and Escape brings everything back", async () => {
  const { host, ordinals, kernel, press } = await shown(support(), { search: () => ({ ns: [6, 16] }) });
  const find = host.querySelector("input[type=search]");
  find.value = "dear";
  find.dispatchEvent(new window.KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await answered();
  assert.deepEqual(kernel.last("ask", "search").args, { text: "dear" });
  assert.deepEqual(ordinals(), ["6", "16"]);
  assert.match(host.querySelector(".nbd-bar").textContent, /2 entries found/);

  press("Escape");

  assert.ok(ordinals().length > 10);
  assert.equal(find.value, "");
});

test("an answer to an older search is passed over", async () => {
  const { host, kernel, ordinals } = await shown();
  const find = host.querySelector("input[type=search]"), held = [];
  const answer = kernel.answer.bind(kernel);
  kernel.answer = (message) => (message.name === "search" ? held.push(message) : answer(message));
  for (const text of ["a", "ab"]) {
    find.value = text;
    find.dispatchEvent(new window.KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    await answered();
  }
  kernel.say({ type: "done", cid: held[1].cid, body: { ns: [6] } });
  kernel.say({ type: "done", cid: held[0].cid, body: { ns: [1, 2, 3] } });
  await answered();

  assert.deepEqual(ordinals(), ["6"]);
});

test("z shows what is below an entry, and again everything", async () => {
  const { row, press, ordinals, host } = await shown();
  row(9).click();
  draw();

  press("z");
  assert.deepEqual(ordinals(), ["9", "10", "11", "12"]);
  assert.match(host.querySelector(".nbd-bar").textContent, /Below #9/);
  press("z");

  assert.ok(ordinals().length > 10);
});

test("the twin gives way once the state is there, and comes back with the view's end", async () => {
  const kernel = new Kernel(support()), { host, close } = render(kernel);
  assert.equal(host.querySelector("style").textContent, "");
  await answered();
  assert.equal(host.querySelector("style").textContent, '[data-nbd-twin="demo"]{display:none}');

  close();

  assert.equal(host.childNodes.length, 0);
  assert.equal(kernel.listeners.length, 0);
});

test("a kernel that does not answer is said, and no empty tree is shown", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const kernel = new Kernel(support());
  kernel.answer = () => {};
  const { host } = render(kernel);

  t.mock.timers.tick(10_000);

  assert.match(host.querySelector(".nbd-tree-notice").textContent, /kernel does not answer/);
  assert.equal(host.querySelector(".nbd-tree-main").hidden, true);
});

test("two views of one session fold and choose apart", async () => {
  const first = await shown();
  const { host } = render(first.kernel);
  await answered();
  first.row(6).click();
  draw();

  first.put({ op: "marks", n: 13, labels: ["both see it"], ratings: [], preferred: false });

  const rows = [...host.querySelectorAll("[aria-selected=true]")];
  assert.notEqual(rows[0].querySelector(".nbd-ord").textContent, "6");
  for (const view of [first.host, host]) assert.match(view.textContent, /both see it/);
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
});

test("folds are found again on the next visit", async () => {
  const first = await shown();
  first.row(5).querySelector(".nbd-twist").click();
  first.close();

  const { row } = await shown();

  assert.equal(row(5).getAttribute("aria-expanded"), "false");
});

test("a change that was lost asks for the whole state, which keeps what is chosen", async () => {
  const { row, put, kernel, chosenOrdinal } = await shown();
  row(6).click();
  draw();

  put(entry(40, 20));
  await answered();

  assert.equal(kernel.sent.filter(({ type }) => type === "resync").length, 2);
  assert.equal(chosenOrdinal(), "6");
});

test("hostile words stay words", async () => {
  const trap = "<img src=x onerror=hit()><script>hit()</script>\u202e";
  const state = support();
  state.previews[13] = trap;
  state.head.session = trap;
  state.notice = trap;
  state.marks[13].labels = [trap];
  state.models[2] = trap;
  state.experiments[0].name = trap;
  state.live[0].text = trap;
  const { host } = await shown(state);

  assert.equal(host.querySelector("img, script, [onerror]"), null);
  assert.match(host.textContent, /<img src=x onerror=hit\(\)>/);
});

test("an empty session says how to begin", async () => {
  const state = generated(0);
  const { host, put, chosenOrdinal } = await shown(state);
  assert.match(host.querySelector(".nbd-tree-empty").textContent, /Nothing here yet/);

  put(entry(1, 0, { role: 0 }), { op: "head", leaf: 1 });

  assert.equal(host.querySelector(".nbd-tree-empty").hidden, true);
  assert.equal(chosenOrdinal(), "1");
});

test("a key that needs an entry says so where there is none", async () => {
  const { host, press, kernel } = await shown(generated(0));

  const words = ["x", "r", "l"].map((key) => { press(key); return host.querySelector(".nbd-word")?.textContent; });

  assert.deepEqual(words.map((word) => word.split(": ")[1]), ["nothing runs×", "choose an entry first×", "choose an entry first×"]);
  assert.equal(kernel.sent.some(({ type }) => type === "cmd"), false);
});

test("a refused stop is said with the kernel's words", async () => {
  const { chosen, host } = await shown(support(), { cancel: () => { throw new Error("the run has ended"); } });

  chosen().querySelector("[data-action=cancel]").click();
  await answered();

  assert.equal(host.querySelector("[role=status]").textContent, "the run has ended");
});

test("the number of an entry that is folded away into an experiment leads there", async () => {
  const { press, chosenOrdinal, row } = await shown();
  assert.equal(row(18), undefined);

  press("1");
  press("8");

  assert.equal(chosenOrdinal(), "18");
});

test("a double click on a button is one click, and does not open its row", async () => {
  const { row, chosen, host } = await shown();
  const click = (type, detail) => chosen().querySelector("[data-action=pin]").dispatchEvent(new window.MouseEvent(type, { bubbles: true, detail }));
  row(3).click();
  draw();

  click("click", 1);
  click("click", 2);
  click("dblclick", 2);
  draw();

  assert.match(host.querySelector(".nbd-bar").textContent, /Compare \(1\)/);
  assert.equal(host.querySelector(".nbd-pane").contains(document.activeElement), false);
});

test("an experiment that runs is stopped by its row's button", async () => {
  const { all, kernel } = await shown();
  all(".nbd-is-experiment")[0].click();
  draw();

  all(".nbd-is-experiment")[0].querySelector("[data-action=cancel]").click();

  const { name, args } = kernel.sent.filter(({ type }) => type === "cmd").at(-1);
  assert.deepEqual([name, args], ["stop", { experiment: "x" }]);
});
