// @ts-check
/** The session tree: entry module. */

import { Link } from "./link.js";
import { Store } from "./store.js";

/**
 * @typedef {object} View  what the parts of one view share
 * @property {HTMLElement} root the widget's root element; forms and menus are put inside it
 * @property {number} selected the entry chosen, 0 for none
 * @property {string | null} selectedRun the run chosen, when a row that still grows is
 * @property {Set<number>} pins the entries pinned for a comparison
 * @property {(n: number) => void} select choose an entry, unfold and scroll to it
 * @property {(n: number) => void} pin pin an entry for a comparison, or take the pin away
 * @property {(text: string) => void} say write the status line, read out by screen readers
 * @property {() => void} changed ask for a redraw
 * @property {(ns: number[]) => void} compare show entries side by side
 * @property {(n: number) => boolean} isLive whether a run grows under the entry
 * @property {(n: number) => void} zoom show only what is under an entry; 0 for everything
 * @property {() => void} focus give the focus back to the tree
 */
/** @typedef {{ link: Link, store: Store, view: View }} Context */

export default { render() {} };
