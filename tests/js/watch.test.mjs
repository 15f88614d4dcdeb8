import assert from "node:assert/strict";
import test from "node:test";
import { Watch } from "../../nbdurable/notebook/js/tree/watch.js";

function watched() {
  const asked = [], told = [];
  const link = { heardAt: 0, ask(name) { asked.push(name); return Promise.resolve(); } };
  const clock = { now: 0 };
  const watch = new Watch(link, (isHeard) => told.push(isHeard), () => clock.now);
  const look = (now, isRunning = true) => { clock.now = now; watch.look(isRunning); };
  return { link, look, asked, told };
}

test("a kernel that says nothing is asked once, and missed when it does not answer", () => {
  const { look, asked, told } = watched();
  look(4_000);
  assert.deepEqual(asked, []);
  look(6_000);
  look(8_000);
  assert.deepEqual([asked.length, told], [1, []]);
  look(11_000);
  look(12_000);
  assert.deepEqual([asked.length, told], [1, [false]]);
});

test("what is heard again is told, and a kernel that answers is not missed", () => {
  const { link, look, told, asked } = watched();
  look(6_000);
  link.heardAt = 6_100;
  look(10_500);
  assert.deepEqual(told, []);
  look(12_000);
  look(17_000);
  link.heardAt = 17_500;
  look(18_000);
  assert.deepEqual([told, asked.length], [[false, true], 2]);
});

test("where nothing runs nobody is asked", () => {
  const { look, asked } = watched();
  look(60_000, false);
  assert.deepEqual(asked, []);
});
