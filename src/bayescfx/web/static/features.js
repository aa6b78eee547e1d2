// @ts-check
// The cells of a feature: places on an axis, texts in a box, levels in a list.
import { clean, nice, snap } from "./format.js";

/** @import { Axis, Cell, Feature } from "./types.js" */

const DAY = /^(\d{4}-\d\d-\d\d)(?:([ T])(\d\d:\d\d)(:\d\d)?(\.\d+)?)?/;
const MILLISECONDS_PER_DAY = 864e5;
const MILLISECONDS_PER_MINUTE = 6e4;
const HANDLE_STEPS = 400; // steps of a handle along an axis without a step of its own

/**
 * Return whether a feature has numbers or points in time, and not levels.
 * @param {Feature} feature
 */
export const isScale = (feature) => feature.levels === null || feature.levels === undefined;

/**
 * Return the levels of a feature; a scale has none.
 * @param {Feature} feature
 */
export const levelsOf = (feature) => feature.levels ?? [];

/**
 * Return whether the values of a feature have a direction.
 * @param {Feature} feature
 */
export const hasDirection = (feature) => (isScale(feature) || feature.ordered) && !feature.cyclic;

/**
 * Return whether the operator lets a feature change.
 * @param {Feature} feature
 */
export const isFree = (feature) => !feature.fixed && !feature.derived;

/** @param {number} share */
const toShare = (share) => Math.min(1, Math.max(0, share));

/**
 * Return the number of a cell on its axis; milliseconds for a point in time.
 * @param {Feature} feature
 * @param {unknown} cell
 * @returns {number | null}
 */
export function toNumber(feature, cell) {
  if (cell === null || cell === undefined || cell === "") return null;
  const value = feature.kind === "moment" ? toMilliseconds(String(cell)) : Number(cell);
  return typeof cell !== "boolean" && Number.isFinite(value) ? value : null;
}

/** @param {string} text */
function toMilliseconds(text) {
  const match = DAY.exec(text);
  if (!match) return Number.NaN;
  const [, day, , minutes = "00:00", seconds = ":00", fraction = ""] = match;
  return Date.parse(`${day}T${minutes}${seconds}${fraction.slice(0, 4)}Z`);
}

/**
 * Return the cell of a number on the axis, written like the feature's own ends.
 * @param {Feature} feature
 * @param {number} value
 * @returns {Cell}
 */
function toCell(feature, value) {
  if (feature.kind === "integer") return Math.round(value);
  if (feature.kind !== "moment") return clean(value);
  const text = new Date(value).toISOString();
  const match = DAY.exec(String(feature.low ?? ""));
  if (!match?.[2]) return text.slice(0, 10);
  return text.slice(0, 10) + match[2] + text.slice(11, match[4] ? 19 : 16);
}

/**
 * Return the axis of a feature that includes the given cells; null if no end is known.
 * @param {Feature} feature
 * @param {unknown[]} [cells]
 * @returns {Axis | null}
 */
export function axis(feature, cells = []) {
  const ends = [feature.low, feature.high].map((end) => toNumber(feature, end));
  const included = ends.includes(null) ? [...cells, ...(feature.histogram?.edges ?? [])] : cells;
  const numbers = [...ends, ...included.map((cell) => toNumber(feature, cell))];
  const values = numbers.filter((value) => value !== null);
  if (!values.length) return null;
  const isPoint = Math.max(...values) === Math.min(...values);
  const margin = isPoint ? 0.5 : 0;
  const low = Math.min(...values) - margin;
  const high = Math.max(...values) + margin;
  return { low, high, step: handleStep(feature, high - low), origin: ends[0] ?? low };
}

/**
 * Return the step of a handle on an axis of some length.
 * @param {Feature} feature
 * @param {number} span
 */
function handleStep(feature, span) {
  if (feature.kind === "moment") {
    return span > 5 * MILLISECONDS_PER_DAY ? MILLISECONDS_PER_DAY : MILLISECONDS_PER_MINUTE;
  }
  const { step } = feature;
  if (step !== null && step > 0) return Math.max(step, snap(span / HANDLE_STEPS, step));
  return feature.kind === "integer" ? 1 : nice(span / HANDLE_STEPS);
}

/**
 * Return the place of a cell on an axis, between 0 and 1.
 * @param {Feature} feature
 * @param {Axis} scale
 * @param {unknown} cell
 */
export function place(feature, scale, cell) {
  const value = toNumber(feature, cell);
  return value === null ? null : toShare((value - scale.low) / (scale.high - scale.low));
}

/**
 * Return the cell at a place between 0 and 1, on the grid of the feature.
 * @param {Feature} feature
 * @param {Axis} scale
 * @param {number} share
 */
export function cellAt(feature, scale, share) {
  const value = scale.low + toShare(share) * (scale.high - scale.low);
  const snapped = snap(value, scale.step, scale.origin);
  return toCell(feature, Math.min(scale.high, Math.max(scale.low, snapped)));
}

/**
 * Return whether two cells are equal; undefined is missing.
 * @param {unknown} a
 * @param {unknown} b
 */
export const same = (a, b) => (a ?? null) === (b ?? null);

/**
 * Return the position of a cell among the levels, or -1.
 * @param {Feature} feature
 * @param {unknown} cell
 */
export const levelOf = (feature, cell) => levelsOf(feature).findIndex((level) => same(level, cell));

/**
 * Return the cell that a text in a box stands for, or an error.
 * @param {Feature} feature
 * @param {unknown} text
 * @returns {{cell: Cell, error: null} | {cell: null, error: string}}
 */
export function parse(feature, text) {
  const typed = String(text).trim();
  if (typed === "") return { cell: null, error: feature.missing ? null : "A value is needed." };
  if (feature.kind === "moment") return { cell: typed, error: null };
  const value = Number(typed.replace(/^−/, "-").replace(/^(-?\d+),(\d+)$/, "$1.$2"));
  if (!Number.isFinite(value)) return { cell: null, error: "This must be a number." };
  if (feature.kind === "integer" && !Number.isInteger(value)) {
    return { cell: null, error: "This must be a whole number." };
  }
  return { cell: value, error: null };
}

/**
 * Return a cell as the text of a box.
 * @param {Cell | undefined} cell
 */
export const boxText = (cell) => (cell === null || cell === undefined ? "" : String(cell));

/**
 * Return whether a stored value can be a cell of a feature.
 * @param {Feature} feature
 * @param {unknown} cell
 */
export function fits(feature, cell) {
  if (cell === null) return true;
  if (!isScale(feature)) return ["string", "number", "boolean"].includes(typeof cell);
  if (feature.kind === "moment") return typeof cell === "string";
  return typeof cell === "number" && Number.isFinite(cell);
}
