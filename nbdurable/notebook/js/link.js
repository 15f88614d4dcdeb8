// @ts-check
/** The line to the kernel: states in order, actions with an answer, large messages in pieces. */

import { countOf } from "./figures.js";

/**
 * @typedef {{ get(name: string): any, on(name: string, fn: any): void, off(name: string, fn: any): void, send(message: any): void }} Model
 * @typedef {{ onSnapshot(body: any): void, onOps(ops: any[]): void, onTrouble(text: string): void }} Handlers
 * @typedef {"sent" | "queued" | "taken"} Stage  an action's way: sent, not heard of for a while, taken by the kernel
 * @typedef {{ resolve(value: any): void, reject(error: Error): void, stage: (stage: Stage) => void, timers: any[] }} Waiting
 */

export const QUEUED_AFTER_MS = 700;
// A server ends the line to the kernel, for all of the notebook, at a message of more than 10 MB;
// a character takes up to three bytes.
export const MOST_CHARS = 3_000_000;
// A page's first messages can miss the kernel's side road past a running cell, which the host is
// still making then: what got no answer is sent again. The kernel takes nothing twice.
const AGAIN_AFTER_MS = [300, 700, 1500, 4000];

let views = 0;

/** One view's line to its model; `close` it when the view goes. */
export class Link {
  /** @param {Model} model @param {Handlers} handlers */
  constructor(model, handlers) {
    this.model = model;
    this.handlers = handlers;
    this.seq = -1;
    this.name = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}${++views}`;
    this.count = 0;
    /** @type {Map<string, Waiting>} */
    this.waiting = new Map();
    /** @type {Map<string, string[]>} */
    this.pieces = new Map();
    this.isResyncing = false;
    this.heardAt = performance.now();
    /** @type {any[]} */
    this.timers = [];
    this.receive = this.receive.bind(this);
    model.on("msg:custom", this.receive);
    this.resync();
  }

  /** Ask for the whole state; what comes before it is passed over. */
  resync() {
    if (this.isResyncing) return;
    this.isResyncing = true;
    this.timers = this.sendUntilAnswered({ type: "resync", have: this.seq, view: this.name });
  }

  /** @param {any} message @returns {any[]} timers to clear when the answer is there */
  sendUntilAnswered(message) {
    this.post(message);
    return AGAIN_AFTER_MS.map((after) => setTimeout(() => this.post(message), after));
  }

  /** Send a message; a kernel that is dead gives no answer, which is told in its time. @param {any} message */
  post(message) {
    try {
      this.model.send(message);
    } catch {
      // the host throws when the kernel has ended
    }
  }

  /** Ask for something to read. @param {string} name @param {any} [args] @returns {Promise<any>} */
  ask(name, args = {}) {
    return this.request("ask", name, args, () => {});
  }

  /**
   * Ask for something to be done, once. @param {string} name @param {any} [args]
   * @param {(stage: Stage) => void} [stage] told how far it is
   * @returns {Promise<any>} rejected with the kernel's words when it is refused
   */
  act(name, args = {}, stage = () => {}) {
    return this.request("cmd", name, args, stage);
  }

  /** @param {"ask" | "cmd"} type @param {string} name @param {any} args @param {(stage: Stage) => void} stage @returns {Promise<any>} */
  request(type, name, args, stage) {
    const cid = `${this.name}:${++this.count}`, chars = JSON.stringify(args).length;
    if (chars > MOST_CHARS) return Promise.reject(new Error(`these ${countOf(chars, "character")} are too many for a page to send; do it in a cell`));
    return new Promise((resolve, reject) => {
      stage("sent");
      const timers = this.sendUntilAnswered({ type, cid, name, args, view: this.name });
      timers.push(setTimeout(() => stage("queued"), QUEUED_AFTER_MS));
      this.waiting.set(cid, { resolve, reject, stage, timers });
    });
  }

  /** @param {any} message */
  receive(message) {
    this.heardAt = performance.now();
    if (message.type === "piece") message = this.whole(message);
    if (!message) return;
    if (message.type === "snapshot") {
      if (message.view && message.view !== this.name && this.seq >= 0) return;
      this.isResyncing = false;
      this.timers.forEach(clearTimeout);
      this.seq = message.seq;
      this.handlers.onSnapshot(message.body);
    } else if (message.type === "ops") {
      if (this.isResyncing || message.seq <= this.seq) return;
      if (message.seq !== this.seq + 1) return this.resync();
      this.seq = message.seq;
      this.handlers.onOps(message.ops);
    } else if (message.type === "trouble") {
      if (message.view && message.view !== this.name) return;
      this.isResyncing = false;
      this.timers.forEach(clearTimeout);
      this.handlers.onTrouble(message.text);
    } else this.answer(message);
  }

  /** @param {any} message ack, done, reply or fail */
  answer(message) {
    const waiting = this.waiting.get(message.cid);
    if (!waiting) return;
    waiting.timers.forEach(clearTimeout);
    if (message.type === "ack") return waiting.stage("taken");
    this.waiting.delete(message.cid);
    if (message.type === "fail") waiting.reject(new Error(message.error));
    else waiting.resolve(message.body);
  }

  /** Put a piece to its fellows. @param {any} piece @returns {any} the message, when all are there */
  whole(piece) {
    const texts = this.pieces.get(piece.of) ?? [];
    texts[piece.part] = piece.text;
    this.pieces.set(piece.of, texts);
    for (let at = 0; at < piece.parts; at++) if (texts[at] === undefined) return null;
    this.pieces.delete(piece.of);
    return JSON.parse(texts.join(""));
  }

  close() {
    this.model.off("msg:custom", this.receive);
    this.timers.forEach(clearTimeout);
    this.post({ type: "bye", view: this.name });
    for (const waiting of this.waiting.values()) waiting.timers.forEach(clearTimeout);
    this.waiting.clear();
  }
}
