// @ts-check
/** The first words of entries, asked for in windows as rows come in sight. */

/** @typedef {{ link: import("../link.js").Link, store: import("./store.js").Store, view: import("./tree.js").View }} Around */

const AFTER_MS = 40;
const AT_ONCE = 500;

export class Previews {
  /** @param {Around} around */
  constructor(around) {
    this.around = around;
    /** @type {Set<number>} */
    this.asked = new Set();
    /** @type {Set<number>} */
    this.wanted = new Set();
    /** @type {any} */
    this.timer = 0;
  }

  /** Ask for those not asked for yet, soon and together; only what was wanted last, when much scrolled by. @param {number[]} ns */
  want(ns) {
    const fresh = ns.filter((n) => !this.asked.has(n));
    if (!fresh.length) return;
    this.wanted = new Set(fresh.slice(0, AT_ONCE));
    this.timer ||= setTimeout(() => this.ask(), AFTER_MS);
  }

  async ask() {
    const ns = [...this.wanted], { link, store, view } = this.around;
    this.timer = 0;
    this.wanted.clear();
    ns.forEach((n) => this.asked.add(n));
    try {
      const body = await link.ask("previews", { ns });
      const texts = body?.previews ?? body ?? {};
      for (const n of ns) if (store.preview(n) === undefined) store.previews.set(n, texts[n] ?? "");
      view.changed();
    } catch (error) {
      view.say(/** @type {Error} */ (error).message);
    }
  }

  /** Ask again for what the whole state did not hold. */
  forget() {
    this.asked.clear();
  }

  close() {
    clearTimeout(this.timer);
  }
}
