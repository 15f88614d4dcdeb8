/** A kernel in the page: a model as a host gives it, that answers as a session's widget does. */

export class Kernel {
  /** @param {any} state the whole state of a session @param {(n: number) => string} [previewOf] */
  constructor(state, previewOf = (n) => `entry ${n} in a few words, and a few more of them to fill its row`) {
    this.state = state;
    this.previewOf = previewOf;
    this.seq = 0;
    this.sent = [];
    this.listeners = [];
    this.answers = {};
  }
  get(name) { return name === "uid" ? "demo" : undefined; }
  on(name, fn) { this.listeners.push([name, fn]); }
  off(name, fn) { this.listeners = this.listeners.filter((at) => at[0] !== name || at[1] !== fn); }
  say(message) { for (const [name, fn] of [...this.listeners]) if (name === "msg:custom") fn(message); }
  put(...ops) { this.say({ type: "ops", seq: ++this.seq, ops }); }
  last(type, name) { return this.sent.filter((message) => message.type === type && (!name || message.name === name)).at(-1); }
  send(message) {
    this.sent.push(JSON.parse(JSON.stringify(message)));
    queueMicrotask(() => this.answer(message));
  }
  answer({ type, cid, name, args, view }) {
    if (type === "resync") return this.say({ type: "snapshot", view, seq: this.seq, body: this.state });
    this.say({ type: "ack", cid });
    const answer = this.answers[name] ?? (name === "previews" ? ({ ns }) => ({ previews: Object.fromEntries(ns.map((n) => [n, this.previewOf(n)])) }) : () => null);
    try {
      this.say({ type: "done", cid, body: answer(args) });
    } catch (error) {
      this.say({ type: "fail", cid, error: error.message });
    }
  }
}

const NOTHING = { params: {}, system: null, models: ["gpt-5-mini", "sonnet-5"], tools: [], is_closed: false, replay: false };

/** A session of `count` entries: turns with forks every few, one experiment. */
export function generated(count) {
  const columns = { parent: [], role: [], flags: [], model: [], tokens: [], cost: [], seconds: [], at: [], exp: [] };
  for (let n = 1; n <= count; n++) {
    const parent = n === 1 ? 0 : n % 7 === 0 ? n - 3 : n % 31 === 0 ? n - 9 : n - 1;
    const isAnswer = parent % 2 === 1;
    columns.parent.push(parent);
    columns.role.push(isAnswer ? 1 : 0);
    columns.flags.push(0);
    columns.model.push(isAnswer ? n % 2 : -1);
    columns.tokens.push(isAnswer ? 100 + (n % 900) : null);
    columns.cost.push(isAnswer ? (n % 90) / 10_000 : null);
    columns.seconds.push(isAnswer ? (n % 40) / 10 : null);
    columns.at.push(1_760_000_000_000 + n * 1_000);
    columns.exp.push(-1);
  }
  return {
    head: { ...NOTHING, session: `generated-${count}`, store: "demo.duckdb", model: "gpt-5-mini", leaf: count, entries: count, branches: Math.floor(count / 7), cost_usd: 1.25 },
    roles: ["user", "assistant", "tool", "compaction"], models: ["gpt-5-mini", "sonnet-5"],
    columns, experiments: [], marks: {}, notes: {}, previews: {}, live: [], questions: [], notice: null,
  };
}

const U = "user", A = "assistant", T = "tool";
/** n, parent, role, text, model, tokens, cost, seconds, exp */
const SUPPORT = [
  [0, U, "The customer asked about order 1234.", null, null, null, null],
  [1, A, "", "gpt-5-mini", 64, 0.0001, 0.6],
  [2, T, "lookup_order(1234) → shipped 2 days late", null, null, null, 0.2],
  [3, A, "The order left the warehouse on Tuesday, two days late.", "gpt-5-mini", 212, 0.0004, 1.1],
  [4, U, "Draft a refund reply.", null, null, null, null],
  [5, A, "Dear Ravi, we are sorry for the delay. We have refunded the shipping costs.", "gpt-5-mini", 188, 0.0003, 0.9],
  [4, U, "Draft a replacement shipment reply.", null, null, null, null],
  [7, A, "Hello Ravi, a replacement is on its way to you today and should arrive by Friday.", "gpt-5-mini", 201, 0.0004, 1.0],
  [7, A, "Your replacement ships today.", "local", 34, 0, 0.3],
  [9, U, "Even shorter.", null, null, null, null],
  [10, A, "Ships today!", "local", 12, 0, 0.2],
  [10, A, "Out today.", "local", 10, 0, 0.2],
  [7, A, "Hi Ravi, good news: your replacement left our warehouse this morning and should reach you by Thursday.", "sonnet-5", 243, 0.0021, 1.4],
  [13, U, "Shorter, and warmer.", null, null, null, null],
  [14, A, "Ravi, it is on its way!", "gpt-5-mini", 41, 0.0001, 0.5, 0],
  [14, A, "On its way, Ravi. Warmly.", "sonnet-5", 52, 0.0005, 0.9, 0],
  [14, A, "It's coming!", "local", 9, 0, 0.1, 0],
  [14, A, "", "gpt-5-mini", null, null, 30.0, 0],
  [14, A, "Ravi, it's on its way! Your replacement shipped this morning.", "sonnet-5", 61, 0.0006, 0.8],
  [19, U, "مرحبا، اكتبها بالعربية من فضلك", null, null, null, null],
];

/** A session as people have them, with a run that grows. */
export function support({ isLive = true } = {}) {
  const roles = [U, A, T, "compaction"], models = ["gpt-5-mini", "local", "sonnet-5"];
  const rows = isLive ? SUPPORT : SUPPORT.slice(0, -1);
  const pick = (at, fill = null) => rows.map((row) => row[at] ?? fill);
  const flags = rows.map((row, at) => (at === 1 ? 8 : at === 17 ? 2 : 0));
  return {
    head: { ...NOTHING, session: "support-42", store: "demo.duckdb", model: "sonnet-5", leaf: rows.length, entries: rows.length, branches: 8, cost_usd: 0.0363 },
    roles, models,
    columns: {
      parent: pick(0), role: rows.map((row) => roles.indexOf(row[1])), flags, model: rows.map((row) => models.indexOf(row[3])),
      tokens: pick(4), cost: pick(5), seconds: pick(6), at: rows.map((_, at) => 1_760_000_000_000 + at * 1_000), exp: pick(7, -1),
    },
    experiments: [{ id: "x", name: "wording", at: 14, runs: 20, done: 17, failed: 1, cost_usd: 0.0312, state: "running", axes: ["4 models", "5 samples"] }],
    marks: { 6: { labels: ["sent"], ratings: [], preferred: false }, 13: { labels: [], ratings: [{ name: "score", score: 4, by: null }], preferred: true } },
    notes: { 18: "the connection was closed before the answer was complete" },
    previews: Object.fromEntries(rows.map((row, at) => [at + 1, row[2]])),
    live: isLive ? [{ run: "r1", parent: rows.length, model: "sonnet-5", exp: -1, state: "streaming", text: "رافي، إنها في الطريق", thinking: false, ttft: 0.42, started: 1_760_000_100_000, tokens: 12, cost_usd: 0.0002, note: "" }] : [],
    questions: [], notice: null,
  };
}
