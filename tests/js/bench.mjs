/** What the page of `tests/tree_page.py` can do, as `window.bench`: open trees and time them. */
import { Kernel, generated, support } from "./kernel.mjs";

const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve(performance.now())));
const painted = async () => { await frame(); return frame(); };
/** The moment after a frame was drawn: a message posted in it comes once layout and paint are done. */
const drawn = () => new Promise((resolve) => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => resolve(performance.now());
  port2.postMessage(0);
}));
const percentiles = (times) => {
  times.sort((a, b) => a - b);
  return { p50: times[Math.floor(times.length / 2)], p95: times[Math.floor(times.length * 0.95)], max: times.at(-1) };
};

const BATCHES_IN_PARAGRAPH = 20, BATCHES_IN_LOOK = 3; // at 30 batches a second

export function bench(render) {
  const host = document.getElementById("host");
  let end = () => {};
  const show = (state) => {
    end();
    window.kernel = new Kernel(state);
    end = render({ model: window.kernel, el: host });
    return window.kernel;
  };
  return {
    support: (options) => { show(support(options)); },
    /** Open `count` entries; milliseconds from the arrival of the data to painted rows. */
    async open(count) {
      const state = generated(count);
      const kernel = show({ ...state, columns: undefined });
      await painted();
      kernel.state = state;
      const began = performance.now();
      kernel.say({ type: "snapshot", seq: kernel.seq, body: state });
      const ended = await painted();
      const rows = host.querySelectorAll(".nbd-row").length;
      if (!rows) throw new Error("no row was painted");
      return { ms: ended - began, rows };
    },
    /** Frames of the page while nothing is shown in it: what the machine gives at best. */
    async still(frames = 90) {
      end();
      end = () => {};
      const times = [];
      let before = await frame();
      for (let at = 0; at <= frames; at++) {
        const now = await frame();
        times.push(now - before);
        before = now;
      }
      return percentiles(times);
    },
    /** Scroll from top to bottom in `frames` steps; the 50th and 95th percentile of the frames. */
    async scroll(frames = 90) {
      const list = host.querySelector(".nbd-tree-list"), times = [];
      const far = list.scrollHeight - list.clientHeight;
      let before = await frame();
      for (let at = 0; at <= frames; at++) {
        list.scrollTop = (far * at) / frames;
        const now = await frame();
        times.push(now - before);
        before = now;
      }
      return percentiles(times);
    },
    /** Add one entry at the leaf; milliseconds to the painted row. */
    async add() {
      const { head } = window.kernel.state, n = (head.leaf = ++head.entries), began = performance.now();
      window.kernel.put({ op: "add", n, parent: n - 1, role: 0, flags: 0, model: -1, tokens: null, cost: null, seconds: null, at: 0, exp: -1, preview: "new" }, { op: "head", leaf: n, entries: n });
      return (await painted()) - began;
    },
    /** Stream `perSecond` tokens in 30 batches a second; lag from a batch to its drawn frame, layout shifts, tokens lost. */
    async stream(perSecond = 2000, seconds = 2) {
      const kernel = window.kernel, leaf = kernel.state.head.leaf, lags = [], batch = Math.round(perSecond / 30);
      let shift = 0, sent = 0, told = 0;
      /** As the kernel formats it: each block again until the next has begun. */
      const paragraphs = [""];
      const moved = [];
      const seen = new PerformanceObserver((list) => list.getEntries().forEach((entry) => { shift += entry.value; moved.push(...entry.sources.map(({ node }) => node?.className ?? node?.parentElement?.className)); }));
      kernel.put({ op: "live", run: "bench", parent: leaf, model: "gpt-5-mini", state: "streaming", started: 0, tokens: 0 });
      await painted();
      seen.observe({ type: "layout-shift", buffered: false });
      for (let at = 0; at < seconds * 30; at++) {
        sent += batch;
        const began = performance.now(), tokens = Array.from({ length: batch }, (_, token) => ` w${sent - batch + token + 1}`).join("");
        const begins = at % BATCHES_IN_PARAGRAPH === 0 && at > 0;
        if (begins) paragraphs.push("");
        paragraphs[paragraphs.length - 1] += tokens;
        kernel.put({ op: "text", run: "bench", text: (begins ? "\n\n" : "") + tokens }, { op: "live", run: "bench", tokens: sent });
        if (at % BATCHES_IN_LOOK === 0) {
          kernel.put({ op: "md", run: "bench", from: told, nodes: paragraphs.slice(told).map((text) => ["p", { dir: "auto" }, [text.trim()]]) });
          told = paragraphs.length - 1;
        }
        lags.push((await drawn()) - began);
        if (!host.querySelector(".nbd-row-selected .nbd-row-words").textContent.endsWith(`w${sent}`)) throw new Error(`w${sent} is not in the row`);
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, 33 - (performance.now() - began))));
      }
      seen.disconnect();
      const said = host.querySelector(".nbd-pane-body .nbd-live .nbd-md").innerText.trim().split(/\s+/);
      const lost = sent - said.filter((word, at) => word === `w${at + 1}`).length;
      return { ...percentiles(lags), shift, moved: [...new Set(moved)], sent, lost };
    },
  };
}
