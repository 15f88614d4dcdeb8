// @ts-check
/**
 * The lines a tree is shown in, without the page. A straight run is not a hierarchy: only a fork
 * indents. What goes on to the leaf (or else the newest branch) keeps the level of its parent,
 * branches that were left stand above it, one level deeper; an experiment is one line of its own.
 */

/** @typedef {import("./store.js").Store} Store */
/** @typedef {{ at: number, exp: number, tops: number[], runs: string[] }} Group  the entries an experiment began under one entry */
/**
 * @typedef {object} Shown  what is to be seen
 * @property {Set<number>} folded entries whose branches are folded away
 * @property {Set<number>} opened experiments (their places) whose runs are listed
 * @property {number} zoom show only what is under this entry; 0 for everything
 * @property {((n: number) => boolean) | null} keep the filter, null for everything
 */

export const DEEPEST = 24;
export const BIT = { side: 1, goesOn: 2, foldable: 4, folded: 8, root: 16 };
const RUNS = 2 ** 30;

/** One line per row of the tree; each field is an array over the lines. */
export class Lines {
  /** @param {number} room */
  constructor(room) {
    this.length = 0;
    this.deepest = 0;
    /** An entry's number, or what `groupAt` and `runAt` know. */
    this.key = new Int32Array(room);
    this.depth = new Uint8Array(room);
    /** Which lanes pass by to lines below, a bit each. */
    this.lanes = new Uint32Array(room);
    this.bits = new Uint8Array(room);
    /** The place in the hierarchy as read to people: level, and place among those of that level. */
    this.level = new Int32Array(room);
    this.place = new Int32Array(room);
    this.of = new Int32Array(room);
    /** @type {Group[]} */
    this.groups = [];
    /** @type {string[]} */
    this.runs = [];
  }

  /** The entry of a line, or 0. @param {number} line */
  entryAt(line) { const key = this.key[line]; return key > 0 && key < RUNS ? key : 0; }
  /** The experiment of a line. @param {number} line @returns {Group | null} */
  groupAt(line) { const key = this.key[line]; return key < 0 ? this.groups[-key - 1] : null; }
  /** The live run of a line. @param {number} line @returns {string | null} */
  runAt(line) { const key = this.key[line]; return key >= RUNS ? this.runs[key - RUNS] : null; }
  /** @param {number} line @param {number} bit */
  is(line, bit) { return (this.bits[line] & bit) !== 0; }

  /** The line of an entry, or -1. @param {number} n */
  ofEntry(n) { return n > 0 ? this.key.subarray(0, this.length).lastIndexOf(n) : -1; }
  /** The line of a live run, or -1. @param {string} run */
  ofRun(run) {
    const at = this.runs.indexOf(run);
    return at < 0 ? -1 : this.key.subarray(0, this.length).lastIndexOf(RUNS + at);
  }
  /** The first line of an experiment, or -1. @param {number} exp */
  ofExperiment(exp) {
    for (let line = 0; line < this.length; line++) if (this.groupAt(line)?.exp === exp) return line;
    return -1;
  }

  /** The line it hangs under in the hierarchy, or -1 at the top. @param {number} line */
  above(line) {
    for (let at = line - 1; at >= 0; at--) if (this.level[at] < this.level[line]) return at;
    return -1;
  }

  /** A line's name, the same as long as it is the same thing. @param {number} line */
  name(line) {
    const group = this.groupAt(line);
    return group ? `x${group.exp}.${group.at}` : this.runAt(line) ?? String(this.key[line]);
  }
}

/** Lay out what is to be seen. @param {Store} store @param {Shown} shown @returns {Lines} */
export function layOut(store, shown) {
  return new Layout(store, shown).run();
}

class Layout {
  /** @param {Store} store @param {Shown} shown */
  constructor(store, shown) {
    this.store = store;
    this.shown = shown;
    this.isWhole = shown.keep === null;
    const room = store.count + store.experiments.length + store.live.size + 8;
    this.lines = new Lines(room);
    this.first = store.first;
    this.next = store.next;
    if (shown.keep) this.thin(shown.keep);
    /** @type {Map<number, string[]>} */
    this.runsAt = new Map();
    /** @type {Map<number, number[]>} */
    this.experimentsAt = new Map();
    if (this.isWhole) {
      for (const row of store.live.values()) append(this.runsAt, store.has(row.parent) ? row.parent : 0, row.run);
      store.experiments.forEach((experiment, at) => append(this.experimentsAt, experiment.at, at));
    }
    this.key = new Int32Array(room);
    this.depth = new Int32Array(room);
    this.lanes = new Int32Array(room);
    this.level = new Int32Array(room);
    this.place = new Int32Array(room);
    this.bits = new Int32Array(room);
    this.top = 0;
  }

  /** @returns {Lines} */
  run() {
    const { zoom } = this.shown;
    if (this.store.has(zoom)) this.push(zoom, 0, 0, 1, 1, BIT.root);
    else this.below(0, 0, 0, 0, 0, BIT.side | BIT.root, false);
    while (this.top) this.line();
    this.count();
    return this.lines;
  }

  /** Put one more on the pile of what is still to be shown. @param {number} key @param {number} depth @param {number} lanes @param {number} level @param {number} place @param {number} bits */
  push(key, depth, lanes, level, place, bits) {
    if (this.top === this.key.length) this.grow();
    const at = this.top++;
    this.key[at] = key;
    this.depth[at] = depth;
    this.lanes[at] = lanes;
    this.level[at] = level;
    this.place[at] = place;
    this.bits[at] = bits;
  }

  /** Experiments met under several entries take more lines than were counted on. */
  grow() {
    for (const name of /** @type {const} */ (["key", "depth", "lanes", "level", "place", "bits"])) this[name] = larger(this[name]);
  }

  /** Show the topmost of the pile, and put what is below it there. */
  line() {
    const at = --this.top, key = this.key[at], lines = this.lines;
    if (lines.length === lines.key.length) this.growLines();
    const line = lines.length++, depth = this.depth[at], lanes = this.lanes[at], level = this.level[at];
    lines.key[line] = key;
    lines.depth[line] = Math.min(depth, DEEPEST);
    lines.deepest = Math.max(lines.deepest, lines.depth[line]);
    lines.lanes[line] = lanes;
    lines.level[line] = level;
    lines.place[line] = this.place[at];
    let bits = this.bits[at];
    if (key < 0) bits |= this.inGroup(lines.groups[-key - 1], depth, lanes, level);
    else if (key < RUNS) bits |= this.below(key, depth, lanes, level, this.place[at], bits, this.shown.folded.has(key));
    lines.bits[line] = bits;
  }

  growLines() {
    const lines = this.lines;
    lines.key = larger(lines.key);
    lines.level = larger(lines.level);
    lines.place = larger(lines.place);
    lines.depth = larger(lines.depth);
    lines.lanes = larger(lines.lanes);
    lines.bits = larger(lines.bits);
  }

  /**
   * Pile up what is below an entry, the last to be shown first.
   * @param {number} n @param {number} depth @param {number} lanes @param {number} level @param {number} place @param {number} bits @param {boolean} isFolded
   * @returns {number} what its own line is besides
   */
  below(n, depth, lanes, level, place, bits, isFolded) {
    const only = this.first[n];
    const isHead = (bits & BIT.side) !== 0;
    if (this.isStraight(n, only)) {
      if (isHead && isFolded) return BIT.foldable | BIT.folded;
      this.push(only, depth, lanes, isHead ? level + 1 : level, isHead ? 1 : place + 1, n ? 0 : BIT.root);
      return isHead ? BIT.goesOn | BIT.foldable : BIT.goesOn;
    }
    const { main, sides } = this.fork(n);
    const isFoldable = sides.length > 0 || (isHead && main !== 0);
    if (!isFoldable && !main) return 0;
    const isShut = isFolded && isFoldable;
    if (main && !(isShut && isHead))
      this.push(main, depth, lanes, isHead ? level + 1 : level, isHead ? (isShut ? 0 : sides.length) + 1 : place + 1, n ? 0 : BIT.root);
    if (!isShut) this.pileSides(sides, depth, lanes, level, n !== 0, main !== 0);
    const goesOn = (main && !(isShut && isHead)) || (sides.length && !isShut);
    return (goesOn ? BIT.goesOn : 0) | (isFoldable ? BIT.foldable : 0) | (isShut ? BIT.folded : 0);
  }

  /** @param {number[]} sides @param {number} depth @param {number} lanes @param {number} level @param {boolean} hangs whether the lane comes from above @param {boolean} goesOn whether something follows in the lane */
  pileSides(sides, depth, lanes, level, hangs, goesOn) {
    const lane = hangs && depth <= DEEPEST ? (1 << depth) >>> 0 : 0;
    for (let at = sides.length - 1; at >= 0; at--)
      this.push(sides[at], depth + 1, goesOn || at < sides.length - 1 ? lanes | lane : lanes, level + 1, at + 1, hangs ? BIT.side : BIT.side | BIT.root);
  }

  /** Whether an entry has one child and nothing else below. @param {number} n @param {number} only */
  isStraight(n, only) {
    if (!only || this.next[only] || this.runsAt.has(n) || this.experimentsAt.has(n)) return false;
    return !this.isWhole || this.inExperiment(n, only) < 0;
  }

  /** The experiment an entry begins under its parent, or -1. @param {number} parent @param {number} n */
  inExperiment(parent, n) {
    const exp = this.store.exp(n);
    return exp >= 0 && !this.store.onPath(n) && (!parent || this.store.exp(parent) !== exp) ? exp : -1;
  }

  /** Tell what goes on below an entry from what stands beside it. @param {number} n @returns {{ main: number, sides: number[] }} */
  fork(n) {
    /** @type {number[]} */
    const keys = [];
    /** @type {Map<number, number>} */
    const groups = new Map();
    const group = (/** @type {number} */ exp) => {
      if (!groups.has(exp)) {
        keys.push(-this.lines.groups.push({ at: n, exp, tops: [], runs: [] }));
        groups.set(exp, keys[keys.length - 1]);
      }
      return this.lines.groups[-/** @type {number} */ (groups.get(exp)) - 1];
    };
    let main = 0;
    for (let at = this.first[n]; at; at = this.next[at]) {
      const exp = this.isWhole ? this.inExperiment(n, at) : -1;
      if (exp >= 0) group(exp).tops.push(at);
      else {
        keys.push(at);
        if (!main || !this.store.onPath(main)) main = at;
      }
    }
    for (const exp of this.experimentsAt.get(n) ?? []) group(exp);
    for (const run of this.runsAt.get(n) ?? []) {
      const exp = this.store.live.get(run)?.exp ?? -1;
      if (exp >= 0 && (!n || this.store.exp(n) !== exp)) group(exp).runs.push(run);
      else {
        const key = RUNS + this.lines.runs.push(run) - 1;
        keys.push(key);
        if (!main || !this.store.onPath(main)) main = key;
      }
    }
    return { main, sides: keys.filter((key) => key !== main) };
  }

  /** Pile up the runs of an experiment that is open. @param {Group} group @param {number} depth @param {number} lanes @param {number} level */
  inGroup(group, depth, lanes, level) {
    if (!group.tops.length && !group.runs.length) return 0;
    if (!this.shown.opened.has(group.exp)) return BIT.foldable | BIT.folded;
    const keys = [...group.tops, ...group.runs.map((run) => RUNS + this.lines.runs.push(run) - 1)];
    this.pileSides(keys, depth, lanes, level, true, false);
    return BIT.foldable | BIT.goesOn;
  }

  /** Keep some entries only, each under the nearest kept one above it. @param {(n: number) => boolean} keep */
  thin(keep) {
    const { first, next, count } = this.store;
    const above = new Int32Array(count + 1), stack = [0];
    this.first = new Int32Array(count + 1);
    this.next = new Int32Array(count + 1);
    const holder = new Int32Array(count + 1);
    while (stack.length) {
      const n = /** @type {number} */ (stack.pop());
      const kept = n && keep(n) ? n : above[n];
      holder[n] = n && kept === n ? above[n] : -1;
      for (let at = first[n]; at; at = next[at]) { above[at] = kept; stack.push(at); }
    }
    for (let n = count; n >= 1; n--)
      if (holder[n] >= 0 && keep(n)) { this.next[n] = this.first[holder[n]]; this.first[holder[n]] = n; }
  }

  /** Count how many stand at each place, last line first. */
  count() {
    const { length, level, place } = this.lines;
    const of = (this.lines.of = new Int32Array(this.lines.key.length));
    /** @type {number[]} */
    const open = [];
    for (let line = length - 1; line >= 0; line--) {
      const at = level[line];
      of[line] = open[at] = open[at] || place[line];
      if (place[line] === 1) open[at] = 0;
    }
  }
}

/** @template K, V @param {Map<K, V[]>} lists @param {K} key @param {V} item */
function append(lists, key, item) {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}

/** @template {Int32Array | Uint32Array | Uint8Array} A @param {A} array @returns {A} */
function larger(array) {
  const made = /** @type {A} */ (new (/** @type {any} */ (array.constructor))(array.length * 2));
  made.set(array);
  return made;
}
