// @ts-check
/** The lines and shapes left of a row's text: where it hangs, and what it is. */

import { svg } from "../dom.js";
import { BIT } from "./lines.js";

/** @typedef {import("./lines.js").Lines} Lines */
/** @typedef {"user" | "assistant" | "tool" | "experiment" | "compaction" | "other"} Shape */

export const ROW_PX = 26;
const MIDDLE = ROW_PX / 2;
const INSET = 11;

/** The centre of a lane. @param {number} depth @param {number} step pixels a level takes */
export function laneX(depth, step) {
  return INSET + depth * step;
}

/** @param {string} role @returns {Shape} */
export function shapeOf(role) {
  return role === "user" || role === "assistant" || role === "tool" || role === "compaction" ? role : "other";
}

/**
 * What a rail looks like, as text: equal texts look alike, so that an unchanged one is left alone.
 * @param {Lines} lines @param {number} line @param {Shape} shape @param {boolean} isOn on the active path
 * @param {boolean} isPassed whether the active path passes by, or comes from above
 * @param {boolean} goesOn whether the active path goes on below @param {number} step
 */
export function railOf(lines, line, shape, isOn, isPassed, goesOn, step) {
  return [lines.depth[line], lines.lanes[line], lines.bits[line], shape, isOn ? 1 : 0, isPassed ? 1 : 0, goesOn ? 1 : 0, step].join(" ");
}

/** Draw what `railOf` says. @param {string} rail @returns {SVGElement} */
export function drawRail(rail) {
  const said = rail.split(" ");
  const [depth, lanes, bits] = said.map(Number);
  const [isOn, isPassed, goesOn, step] = said.slice(4).map(Number);
  const x = laneX(depth, step), width = x + INSET;
  const root = svg("svg", { class: "nbd-rail", "aria-hidden": "true", width, height: ROW_PX, viewBox: `0 0 ${width} ${ROW_PX}` });
  for (let lane = 0; lane < depth; lane++)
    if (lanes & (1 << lane)) root.append(way(`M${laneX(lane, step)} 0V${ROW_PX}`, isPassed === 1 && lane === 0));
  const isSide = bits & BIT.side, isRoot = bits & BIT.root;
  if (isSide && !isRoot) {
    const from = laneX(depth - 1, step);
    root.append(way(depth ? `M${from} -3C${from} 8 ${x} 1 ${x} ${MIDDLE}` : `M${x} 0V${MIDDLE}`, false));
  } else if (!isRoot) root.append(way(`M${x} 0V${MIDDLE}`, isOn === 1));
  if (bits & BIT.goesOn) root.append(way(`M${x} ${MIDDLE}V${ROW_PX}`, goesOn === 1));
  root.append(glyph(/** @type {Shape} */ (said[3]), x, isOn === 1));
  return root;
}

/** @param {string} d @param {boolean} isActive */
function way(d, isActive) {
  return svg("path", { class: isActive ? "nbd-way nbd-way-on" : "nbd-way", d });
}

/** The shape of a role: it is told by its form, its colour only repeats it. @param {Shape} shape @param {number} x @param {boolean} isOn */
function glyph(shape, x, isOn) {
  const look = `nbd-glyph nbd-glyph-${shape}${isOn ? " nbd-glyph-on" : ""}`;
  if (shape === "user") return svg("circle", { class: look, cx: x, cy: MIDDLE, r: 4.3 });
  if (shape === "assistant") return svg("path", { class: look, d: `M${x} ${MIDDLE - 5.3}l5.3 5.3l-5.3 5.3l-5.3 -5.3z` });
  const [half, round] = shape === "experiment" ? [5.2, 2.6] : [4.1, shape === "tool" ? 1 : 4];
  if (shape === "compaction") return svg("path", { class: look, d: `M${x - 5} ${MIDDLE - 3}h10M${x - 5} ${MIDDLE}h10M${x - 5} ${MIDDLE + 3}h10` });
  if (shape === "other") return svg("path", { class: look, d: `M${x} ${MIDDLE - 5}l5 9h-10z` });
  return svg("rect", { class: look, x: x - half, y: MIDDLE - half, width: 2 * half, height: 2 * half, rx: round });
}
