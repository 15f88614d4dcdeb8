// @ts-check
/** How fast runs go, by the page's own clock: the kernel's may be another machine's. */

/** @typedef {import("./store.js").Live} Live */
/** @typedef {{ rate: number | null, waited: number }} Pace  tokens per second, seconds since the run was first seen */

const SETTLED_MS = 400;
const CHARS_PER_TOKEN = 4;

export class Paces {
  /** @param {() => number} [now] milliseconds */
  constructor(now = () => performance.now()) {
    this.now = now;
    /** @type {Map<string, { seen: number, began: number, tokens: number }>} */
    this.runs = new Map();
  }

  /** @param {Live} row @returns {Pace} */
  of(row) {
    const now = this.now(), tokens = row.tokens ?? row.text.length / CHARS_PER_TOKEN;
    let run = this.runs.get(row.run);
    if (!run) this.runs.set(row.run, (run = { seen: now, began: 0, tokens: 0 }));
    if (row.state !== "streaming" || tokens < run.tokens) run.began = 0;
    else if (!run.began) Object.assign(run, { began: now, tokens });
    const passed = run.began ? now - run.began : 0;
    return { rate: passed > SETTLED_MS ? ((tokens - run.tokens) * 1000) / passed : null, waited: (now - run.seen) / 1000 };
  }

  /** Forget runs that ended. @param {Map<string, Live>} live */
  keep(live) {
    for (const run of this.runs.keys()) if (!live.has(run)) this.runs.delete(run);
  }
}
