/** What the page of `tests/tree_page.py` can do, as `window.bench`: open trees and time them. */
import { Kernel, generated, support } from "./kernel.mjs";

const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve(performance.now())));
const painted = async () => { await frame(); return frame(); };

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
      times.sort((a, b) => a - b);
      return { p50: times[Math.floor(times.length / 2)], p95: times[Math.floor(times.length * 0.95)], max: times.at(-1) };
    },
    /** Add one entry at the leaf; milliseconds to the painted row. */
    async add() {
      const { head } = window.kernel.state, n = (head.leaf = ++head.entries), began = performance.now();
      window.kernel.put({ op: "add", n, parent: n - 1, role: 0, flags: 0, model: -1, tokens: null, cost: null, seconds: null, at: 0, exp: -1, preview: "new" }, { op: "head", leaf: n, entries: n });
      return (await painted()) - began;
    },
    /** Stream `perSecond` tokens in 30 batches a second; lag from a batch to its frame, layout shifts. */
    async stream(perSecond = 2000, seconds = 2) {
      const kernel = window.kernel, leaf = kernel.state.head.leaf, lags = [], batch = Math.round(perSecond / 30);
      let shift = 0, sent = 0;
      const moved = [];
      const seen = new PerformanceObserver((list) => list.getEntries().forEach((entry) => { shift += entry.value; moved.push(...entry.sources.map(({ node }) => node?.className ?? node?.parentElement?.className)); }));
      kernel.put({ op: "live", run: "bench", parent: leaf, model: "gpt-5-mini", state: "streaming", started: 0, tokens: 0 });
      await painted();
      seen.observe({ type: "layout-shift", buffered: false });
      for (let at = 0; at < seconds * 30; at++) {
        sent += batch;
        const began = performance.now(), tokens = Array.from({ length: batch }, (_, token) => ` w${sent - batch + token + 1}`).join("");
        kernel.put({ op: "text", run: "bench", text: tokens }, { op: "live", run: "bench", tokens: sent });
        await frame();
        lags.push(performance.now() - began);
        if (!host.querySelector(".nbd-row-selected .nbd-row-words").textContent.endsWith(`w${sent}`)) throw new Error(`w${sent} is not in the row`);
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, 33 - (performance.now() - began))));
      }
      seen.disconnect();
      lags.sort((a, b) => a - b);
      return { p50: lags[Math.floor(lags.length / 2)], p95: lags[Math.floor(lags.length * 0.95)], shift, moved: [...new Set(moved)] };
    },
  };
}
