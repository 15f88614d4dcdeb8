import assert from "node:assert/strict";
import test from "node:test";
import { FakeModel, page } from "./page.mjs";

const { document, draw } = page();
const { SessionsView, fileOf, timeOf } = await import("../../nbdurable/notebook/js/sessions.js");

const sessionRow = (at, over = {}) => ({ id: `s${at}`, title: `Title ${at}`, entries: at, branches: 1, models: "small", cost: 0, at: 0, parent: null, found: null, ...over });
const sessionWindow = (first, count, found = 1000) => ({ total: found, found, first, rows: Array.from({ length: count }, (_, at) => sessionRow(first + at)) });

function shown(body = sessionWindow(0, 100)) {
  const model = new FakeModel({ uid: "x" });
  const host = document.createElement("div");
  document.body.append(host);
  const view = new SessionsView(model, host);
  model.say({ type: "snapshot", view: view.link.name, seq: 0, body: { store: "chats.duckdb", open: null, ...body } });
  const titles = () => [...host.querySelectorAll(".nbd-sess-title bdi")].map((found) => found.textContent);
  const press = (key, target = view.grid) => target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const answer = async (body, type = "ask") => { model.say({ type: "done", cid: model.last(type).cid, body }); await null; await null; await null; };
  return { model, host, view, titles, press, answer };
}

test("only the rows in sight are in the page, however many there are", () => {
  const { titles, host } = shown();
  assert.equal(titles().length, 26);
  assert.equal(host.querySelector(".nbd-sess-space").style.height, "26000px");
  assert.equal(host.querySelector("[role=grid]").getAttribute("aria-rowcount"), "1001");
});

test("scrolling asks once for a window that is not here, and shows it when it comes", async () => {
  const { view, model, titles, answer } = shown();
  view.grid.scrollTop = 26 * 500;
  view.grid.dispatchEvent(new Event("scroll"));
  draw();
  view.draw();
  const asked = model.sent.filter((message) => message.type === "ask").map((message) => message.args.first);
  assert.deepEqual(asked, [400, 500]);
  await answer(sessionWindow(500, 100));
  assert.ok(titles().includes("Title 505"));
});

test("a head sorts numbers from the highest, texts from the first, and turns", async () => {
  const { view, model, host, answer } = shown();
  const click = (key) => view.heads.get(key).click();
  click("entries");
  assert.deepEqual([model.last("ask").args.sort, model.last("ask").args.down], ["entries", true]);
  await answer(sessionWindow(0, 3, 3));
  assert.equal(host.querySelector('[aria-sort="descending"]').textContent, "entries ↓");
  click("entries");
  assert.equal(model.last("ask").args.down, false);
  click("title");
  assert.deepEqual([model.last("ask").args.sort, model.last("ask").args.down], ["title", false]);
});

test("an answer to an older question is passed over", async () => {
  const { view, model, titles } = shown();
  view.heads.get("entries").click();
  const first = model.last("ask").cid;
  view.heads.get("title").click();
  model.say({ type: "done", cid: model.last("ask").cid, body: sessionWindow(0, 2, 2) });
  model.say({ type: "done", cid: first, body: sessionWindow(0, 50, 50) });
  await null; await null; await null;
  assert.equal(titles().length, 2);
});

test("typing searches after a pause, Enter at once", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { view, model, press } = shown();
  view.query.value = " tea ";
  view.query.dispatchEvent(new Event("input"));
  assert.equal(model.last("ask"), undefined);
  t.mock.timers.tick(250);
  assert.equal(model.last("ask").args.query, "tea");
  view.query.value = "coffee";
  press("Enter", view.query);
  assert.equal(model.last("ask").args.query, "coffee");
  assert.equal(document.activeElement, view.grid);
});

test("keys walk over rows and open one", async () => {
  const { view, model, press, answer } = shown();
  press("ArrowDown");
  press("ArrowDown");
  press("ArrowUp");
  assert.equal(view.grid.getAttribute("aria-activedescendant"), `${view.name}-1`);
  press("Enter");
  assert.deepEqual(model.last("cmd").args, { id: "s1" });
  await answer({ id: "s1", code: "nb.open('s1')" }, "cmd");
  assert.equal(view.status.element.textContent, "nb.open('s1')");
  press("End");
  assert.equal(view.at, 999);
  press("/");
  assert.equal(document.activeElement, view.query);
});

test("the open session is marked, and can be closed", () => {
  const { host, view, model } = shown();
  assert.equal(view.shut.hidden, true);
  model.say({ type: "ops", seq: 1, ops: [{ op: "open", id: "s2" }] });
  assert.equal(host.querySelector(".nbd-sess-open .nbd-chip").textContent, "open");
  view.shut.click();
  assert.equal(model.last("cmd").name, "shut");
});

test("what is refused is told", async () => {
  const { view, model, press } = shown();
  press("Enter");
  model.say({ type: "fail", cid: model.last("cmd").cid, error: "session 's0' is no longer there" });
  await null; await null; await null;
  assert.equal(view.status.element.textContent, "session 's0' is no longer there");
});

test("an empty store and a search without a find say so", () => {
  assert.match(shown(sessionWindow(0, 0, 0)).view.empty.textContent, /No sessions yet/);
  const { view } = shown();
  view.take({ total: 5, found: 0, first: 0, rows: [] }, view.version);
  assert.equal(view.empty.textContent, "No session fits.");
});

test("a store is called by its file, a server by its address, and forks have a column where there are some", () => {
  assert.deepEqual(["/tmp/a b/chats.duckdb", "C:\\x\\c.duckdb", "postgresql://host/db", ":memory:"].map(fileOf), ["chats.duckdb", "c.duckdb", "postgresql://host/db", ":memory:"]);
  const { view } = shown();
  view.take({ total: 1, found: 1, first: 0, rows: [sessionRow(0, {})], forks: false }, view.version);
  assert.equal(view.grid.getAttribute("aria-colcount"), "6");
  assert.ok(view.root.classList.contains("nbd-sess-flat"));
});

test("a time of today is told by the clock", () => {
  const now = new Date(2026, 10, 30, 18, 0);
  assert.equal(timeOf(new Date(2026, 10, 30, 9, 5).getTime(), now), "today 09:05");
  assert.equal(timeOf(new Date(2026, 0, 2, 9, 5).getTime(), now), "2026-01-02 09:05");
});

test("hostile text stays text, and nothing is left behind", () => {
  const trap = '"><img src=x onerror="window.__hit=1">';
  const { host, view, model } = shown({ ...sessionWindow(0, 0, 1), store: trap, open: trap, rows: [sessionRow(0, { id: trap, title: trap, models: trap, parent: trap, found: trap })] });
  assert.equal(host.querySelector("img, script, svg"), null);
  view.close();
  assert.equal(host.childElementCount, 0);
  assert.equal(model.listeners.length, 0);
});

test("of rows that are opened faster than they can be, the first and the last are", async () => {
  const { view, model, answer } = shown(sessionWindow(0, 4, 4));
  const opened = () => model.sent.filter(({ name }) => name === "open").map(({ args }) => args.id);

  for (view.at = 0; view.at < 3; view.at++) { view.openRow(); view.openRow(); }
  await answer({ id: "s0", code: "nb.open('s0')" }, "cmd");
  await answer({ id: "s2", code: "nb.open('s2')" }, "cmd");

  assert.deepEqual(opened(), ["s0", "s2"]);
  assert.equal(view.status.element.textContent, "nb.open('s2')");
});
