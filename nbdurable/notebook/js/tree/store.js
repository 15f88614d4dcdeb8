// @ts-check
/**
 * What a view knows of a session: columns, and the changes that grow them. Entries are known by
 * their number n (1..count); 0 is the root above the first. Nothing here touches the page.
 */

/** @typedef {import("../nodes.js").MarkdownNode} MarkdownNode */
/** @typedef {"waiting" | "streaming" | "tool" | "retry" | "error"} LiveState */
/** @typedef {{ run: string, parent: number, model: string | null, exp: number, state: LiveState, text: string, blocks: MarkdownNode[], tail: string, before: { blocks: MarkdownNode[], tail: string } | null, thinking: boolean, ttft: number | null, started: number, tokens: number | null, cost_usd: number | null, note: string }} Live */
/** @typedef {{ id: string, name: string, at: number, runs: number, done: number, failed: number, cancelled?: number, cost_usd: number | null, state: "running" | "done" | "stopped", axes: string[] }} Experiment */
/** @typedef {{ labels: string[], ratings: { name: string, score: number | boolean | string, by: string | null }[], preferred: boolean }} Marks */
/** @typedef {{ session: string, store: string, model: string | null, params: Record<string, any>, system: string | null, leaf: number, models: string[], entries: number, branches: number, cost_usd: number | null, tools: string[], is_closed: boolean, replay: boolean }} Head */
/** @typedef {{ id: string, run: string, tool: string, text: string }} Question */
/**
 * @typedef {object} Changed  what a batch of changes touched
 * @property {boolean} shape whether lines come, go or move
 * @property {Set<number>} entries entries with other facts or marks
 * @property {Set<string>} runs live rows with other facts or text
 * @property {boolean} rest whether the head, an experiment, a question or the notice changed
 * @property {number[]} added entries that came
 * @property {{ run: string, parent: number }[]} ended runs that ended, and where
 * @property {boolean} lost whether a change did not fit, so that the whole state is needed
 */

export const FLAG = { meta: 1, error: 2, aborted: 4, calls: 8, orphan: 16, human: 32, resultError: 64 };

const COLUMNS = ["parent", "role", "flags", "model", "tokens", "cost", "seconds", "at", "exp"];
const LIVE = { parent: 0, model: null, exp: -1, state: "waiting", text: "", blocks: [], tail: "", before: null, thinking: false, ttft: null, started: 0, tokens: null, cost_usd: null, note: "" };
const HEAD = { session: "", store: "", model: null, params: {}, system: null, leaf: 0, models: [], entries: 0, branches: 0, cost_usd: null, tools: [], is_closed: false, replay: false };

export class Store {
  constructor() {
    // children as lists: the first and last of an entry, and the next beside each
    this.parents = new Int32Array(0);
    this.first = new Int32Array(0);
    this.last = new Int32Array(0);
    this.next = new Int32Array(0);
    this.active = new Uint8Array(0);
    /** @type {Head} */
    this.head = HEAD;
    /** @type {Record<string, any[]>} */
    this.columns = {};
    this.load({});
  }

  /** Take the whole state. @param {any} body */
  load(body) {
    this.head = { ...HEAD, ...body.head };
    /** @type {string[]} */
    this.roles = body.roles ?? [];
    /** @type {string[]} */
    this.models = body.models ?? [];
    this.columns = Object.fromEntries(COLUMNS.map((name) => [name, body.columns?.[name] ?? []]));
    /** @type {Experiment[]} */
    this.experiments = body.experiments ?? [];
    /** @type {Map<number, Marks>} */
    this.marked = numbered(body.marks);
    /** @type {Map<number, string>} */
    this.notes = numbered(body.notes);
    /** @type {Map<number, string>} */
    this.previews = numbered(body.previews);
    /** @type {Map<string, Live>} */
    this.live = new Map((body.live ?? []).map((/** @type {Live} */ row) => [row.run, { ...LIVE, ...row }]));
    /** @type {Map<string, Question>} */
    this.questions = new Map((body.questions ?? []).map((/** @type {Question} */ question) => [question.id, question]));
    /** @type {string | null} */
    this.notice = body.notice ?? null;
    this.link();
  }

  // -- facts of one entry ----------------------------------------------------------------------

  get count() { return this.columns.parent.length; }
  get leaf() { return this.head.leaf; }
  /** @param {number} n */
  has(n) { return n >= 1 && n <= this.count; }
  /** @param {number} n @returns {number} */
  parentOf(n) { return this.has(n) ? this.parents[n] : 0; }
  /** @param {number} n @returns {string} */
  role(n) { return this.roles[this.columns.role[n - 1]] ?? "entry"; }
  /** @param {number} n @returns {number} */
  flags(n) { return this.columns.flags[n - 1] ?? 0; }
  /** @param {number} n @returns {string | null} */
  model(n) { return this.models[this.columns.model[n - 1]] ?? null; }
  /** @param {number} n @returns {number | null} */
  tokens(n) { return this.columns.tokens[n - 1] ?? null; }
  /** @param {number} n @returns {number | null} */
  cost(n) { return this.columns.cost[n - 1] ?? null; }
  /** @param {number} n @returns {number | null} */
  seconds(n) { return this.columns.seconds[n - 1] ?? null; }
  /** Epoch milliseconds. @param {number} n @returns {number | null} */
  at(n) { return this.columns.at[n - 1] ?? null; }
  /** The place of its experiment in `experiments`, or -1. @param {number} n @returns {number} */
  exp(n) { return this.columns.exp[n - 1] ?? -1; }
  /** Its first words; undefined when they were not sent yet. @param {number} n */
  preview(n) { return this.previews.get(n); }
  /** Its labels and ratings; null when it has none. @param {number} n @returns {Marks | null} */
  marks(n) { return this.marked.get(n) ?? null; }
  /** What went wrong with it. @param {number} n @returns {string | null} */
  note(n) { return this.notes.get(n) ?? null; }

  // -- places ----------------------------------------------------------------------------------

  /** Its children, oldest first. @param {number} n @returns {number[]} */
  childrenOf(n) {
    const found = [];
    for (let at = this.first[n]; at; at = this.next[at]) found.push(at);
    return found;
  }

  /** The entries it stands beside, itself among them, oldest first; those of an experiment are by themselves. @param {number} n @returns {number[]} */
  siblingsOf(n) {
    if (this.flags(n) & FLAG.orphan) return [n];
    const parent = this.parentOf(n), exp = this.exp(n);
    return this.childrenOf(parent).filter((at) => this.exp(at) === exp && !(this.flags(at) & FLAG.orphan));
  }

  /** Whether it lies on the way to the leaf. @param {number} n */
  onPath(n) { return this.active[n] === 1; }

  /** From the root to an entry, oldest first. @param {number} n @returns {number[]} */
  path(n) {
    const found = [];
    for (let at = n; this.has(at); at = this.parents[at]) found.push(at);
    return found.reverse();
  }

  /** The last entry of the branch that goes on below: the active one, else the newest. @param {number} n */
  end(n) {
    for (let at = n; ; ) {
      const below = this.childrenOf(at);
      if (!below.length) return at;
      at = below.find((child) => this.onPath(child)) ?? below[below.length - 1];
    }
  }

  /** Whether a run grows right under an entry. @param {number} n */
  isLive(n) {
    for (const row of this.live.values()) if (row.parent === n && row.state !== "error") return true;
    return false;
  }

  // -- changes ---------------------------------------------------------------------------------

  /** @param {any[]} ops @returns {Changed} */
  apply(ops) {
    const changed = nothing();
    for (const op of ops) {
      const change = CHANGES[op.op];
      if (change) change(this, op, changed);
    }
    return changed;
  }

  /** Count children and the path from the columns. */
  link() {
    const count = this.count;
    const room = Math.max(64, count * 2);
    this.parents = new Int32Array(room);
    this.first = new Int32Array(room);
    this.last = new Int32Array(room);
    this.next = new Int32Array(room);
    this.active = new Uint8Array(room);
    for (let n = 1; n <= count; n++) this.hang(n);
    this.walk();
  }

  /** Hang an entry under its parent. @param {number} n */
  hang(n) {
    const said = this.columns.parent[n - 1];
    const parent = said > 0 && said <= this.count && !(said >= n && this.isRing(n)) ? said : 0;
    this.parents[n] = parent;
    if (this.last[parent]) this.next[this.last[parent]] = n;
    else this.first[parent] = n;
    this.last[parent] = n;
  }

  /** Whether an entry is said to hang under itself: a ring is cut above its first. @param {number} n */
  isRing(n) {
    const said = this.columns.parent;
    for (let at = said[n - 1], step = 0; at > 0 && step <= said.length; at = said[at - 1], step++) if (at === n) return true;
    return false;
  }

  /** Mark the way to the leaf. */
  walk() {
    this.active.fill(0);
    for (let at = this.leaf; this.has(at) && !this.active[at]; at = this.parents[at]) this.active[at] = 1;
  }

  /** @param {number} leaf */
  moveTo(leaf) {
    const goesOn = this.has(leaf) && this.parents[leaf] === this.head.leaf;
    this.head.leaf = leaf;
    if (goesOn) this.active[leaf] = 1;
    else this.walk();
  }
}

/** @param {Record<string, any> | undefined} items @returns {Map<number, any>} */
function numbered(items) {
  return new Map(Object.entries(items ?? {}).map(([n, item]) => [Number(n), item]));
}

/** @returns {Changed} */
export function nothing() {
  return { shape: false, entries: new Set(), runs: new Set(), rest: false, added: [], ended: [], lost: false };
}

/** @param {Changed} changed */
export function hasChanges({ shape, entries, runs, rest }) {
  return shape || rest || entries.size > 0 || runs.size > 0;
}

/** Add changes to earlier ones. @param {Changed} into @param {Changed} changed */
export function merge(into, changed) {
  into.shape ||= changed.shape;
  into.rest ||= changed.rest;
  into.added.push(...changed.added);
  into.ended.push(...changed.ended);
  changed.entries.forEach((n) => into.entries.add(n));
  changed.runs.forEach((run) => into.runs.add(run));
}

// -- one change each ---------------------------------------------------------------------------

/** @type {Record<string, (store: Store, op: any, changed: Changed) => void>} */
const CHANGES = {
  add(store, op, changed) {
    if (op.n <= store.count) return CHANGES.set(store, op, changed);
    if (op.n !== store.count + 1) { changed.lost = true; return; }
    for (const name of COLUMNS) store.columns[name].push(op[name] ?? (name === "exp" || name === "model" ? -1 : null));
    if (op.preview !== undefined) store.previews.set(op.n, op.preview);
    if (op.n >= store.first.length) store.link();
    else store.hang(op.n);
    changed.added.push(op.n);
    changed.shape = true;
  },
  set(store, op, changed) {
    if (!store.has(op.n)) { changed.lost = true; return; }
    for (const name of COLUMNS) if (name in op) store.columns[name][op.n - 1] = op[name];
    if (op.preview !== undefined) store.previews.set(op.n, op.preview);
    if ("parent" in op && op.parent !== store.parents[op.n]) store.link();
    if ("parent" in op || "exp" in op) changed.shape = true;
    changed.entries.add(op.n);
  },
  marks(store, op, changed) {
    const { labels = [], ratings = [], preferred = false } = op;
    if (labels.length || ratings.length || preferred) store.marked.set(op.n, { labels, ratings, preferred });
    else store.marked.delete(op.n);
    changed.entries.add(op.n);
  },
  note(store, op, changed) {
    if (op.text) store.notes.set(op.n, op.text);
    else store.notes.delete(op.n);
    changed.entries.add(op.n);
  },
  head(store, op, changed) {
    const { op: _, leaf, ...fields } = op;
    Object.assign(store.head, fields);
    if (leaf !== undefined && leaf !== store.leaf) {
      store.moveTo(leaf);
      changed.shape = true;
    }
    changed.rest = true;
  },
  names(store, op, changed) {
    if (op.roles) store.roles = op.roles;
    if (op.models) store.models = op.models;
    changed.rest = true;
  },
  exp(store, op, changed) {
    const { op: _, index, ...fields } = op;
    if (index > store.experiments.length) { changed.lost = true; return; }
    const known = store.experiments[index] ?? { id: "", name: "", at: 0, runs: 0, done: 0, failed: 0, cost_usd: null, state: "running", axes: [] };
    if (!(index in store.experiments) || ("at" in fields && fields.at !== known.at)) changed.shape = true;
    store.experiments[index] = { ...known, ...fields };
    changed.rest = true;
  },
  live(store, op, changed) {
    const { op: _, ...fields } = op;
    const known = store.live.get(op.run);
    // the last words of a step may come with the beginning of the next
    const anew = "text" in fields ? { blocks: [], tail: fields.text, before: known ? { blocks: known.blocks, tail: known.tail } : null } : null;
    const row = { ...LIVE, ...known, ...anew, ...fields };
    store.live.set(op.run, row);
    if (!known || known.parent !== row.parent || known.exp !== row.exp) changed.shape = true;
    changed.runs.add(op.run);
  },
  text(store, op, changed) {
    const row = store.live.get(op.run);
    if (!row) return;
    row.text += op.text;
    row.tail += op.text;
    changed.runs.add(op.run);
  },
  // what came so far, formatted: blocks from one on, of which the first may keep some children
  md(store, op, changed) {
    const row = store.live.get(op.run);
    if (!row) return;
    const held = row.blocks[op.from], hasKept = Array.isArray(held) && held[2].length >= op.keep;
    if (op.from > row.blocks.length || (op.keep && !hasKept)) { changed.lost = true; return; }
    const nodes = [...op.nodes];
    if (op.keep) nodes[0] = [nodes[0][0], nodes[0][1], [...held[2].slice(0, op.keep), ...nodes[0][2]]];
    row.blocks = [...row.blocks.slice(0, op.from), ...nodes];
    row.tail = op.tail ?? "";
    changed.runs.add(op.run);
  },
  end(store, op, changed) {
    const row = store.live.get(op.run);
    if (!row) return;
    store.live.delete(op.run);
    changed.ended.push({ run: op.run, parent: row.parent });
    changed.shape = true;
  },
  question(store, op, changed) {
    const { op: _, ...question } = op;
    store.questions.set(op.id, question);
    changed.rest = true;
  },
  answered(store, op, changed) {
    store.questions.delete(op.id);
    changed.rest = true;
  },
  notice(store, op, changed) {
    store.notice = op.text || null;
    changed.rest = true;
  },
};
