/** A page without a browser and a kernel made of a list, for tests of the widgets' modules. */
import { Window } from "happy-dom";

/** Make a page and put its names where a browser has them. */
export function page() {
  const window = new Window({ url: "http://localhost/" });
  for (const name of ["document", "Node", "Element", "HTMLElement", "KeyboardEvent", "MouseEvent", "Event", "InputEvent"])
    globalThis[name] = name === "document" ? window.document : window[name];
  globalThis.window = window;
  globalThis.getComputedStyle = window.getComputedStyle.bind(window);
  globalThis.localStorage = window.localStorage;
  const frames = [];
  globalThis.requestAnimationFrame = (draw) => frames.push(draw);
  globalThis.cancelAnimationFrame = (at) => { frames[at - 1] = null; };
  return {
    window,
    document: window.document,
    /** Draw what was asked for, until nothing is. */
    draw() {
      for (let at = 0; at < frames.length; at++) { const next = frames[at]; frames[at] = null; next?.(0); }
    },
  };
}

/** A model as a host gives it: `sent` holds what the view said, `say` is the kernel speaking. */
export class FakeModel {
  constructor(traits = {}) {
    this.traits = traits;
    this.sent = [];
    this.listeners = [];
  }
  get(name) { return this.traits[name]; }
  on(name, fn) { this.listeners.push([name, fn]); }
  off(name, fn) { this.listeners = this.listeners.filter((at) => at[0] !== name || at[1] !== fn); }
  send(message) { this.sent.push(JSON.parse(JSON.stringify(message))); }
  say(message) { for (const [name, fn] of this.listeners) if (name === "msg:custom") fn(message); }
  /** The last message of a type, such as "cmd". */
  last(type) { return this.sent.filter((message) => message.type === type).at(-1); }
}
