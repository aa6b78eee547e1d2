// What a feature's cells mean to the page: places on an axis, texts in a box, levels in a list.
import { clean, nice, snap } from "./format.js";

const DAY = /^(\d{4}-\d\d-\d\d)(?:([ T])(\d\d:\d\d)(:\d\d)?(\.\d+)?)?/;

/** Return whether a feature has numbers or points in time, and not levels. */
export const isScale = (feature) => feature.levels === null || feature.levels === undefined;

/** Return whether up and down mean something. */
export const hasDirection = (feature) => (isScale(feature) || feature.ordered) && !feature.cyclic;

/** Return whether whoever started the server lets a feature change. */
export const isFree = (feature) => !feature.fixed && !feature.derived;

/** Return the number that a cell stands for on its axis, or null. */
export function toNumber(feature, cell) {
  if (cell === null || cell === undefined || cell === "") return null;
  if (feature.kind !== "moment") {
    const value = typeof cell === "boolean" ? NaN : Number(cell);
    return Number.isFinite(value) ? value : null;
  }
  const match = DAY.exec(String(cell));
  if (!match) return null;
  const value = Date.parse(`${match[1]}T${match[3] ?? "00:00"}${match[4] ?? ":00"}${(match[5] ?? "").slice(0, 4)}Z`);
  return Number.isFinite(value) ? value : null;
}

/** Return the cell of a place on the axis: written like the feature's own ends. */
function toCell(feature, value) {
  if (feature.kind !== "moment") return feature.kind === "integer" ? Math.round(value) : clean(value);
  const text = new Date(value).toISOString();
  const match = DAY.exec(String(feature.low ?? ""));
  if (!match || !match[2]) return text.slice(0, 10);
  return text.slice(0, 10) + match[2] + text.slice(11, match[4] ? 19 : 16);
}

/** Return the axis of a feature: its ends, wide enough for some cells, and a step for handles. */
export function axis(feature, cells = []) {
  const ends = [feature.low, feature.high].map((end) => toNumber(feature, end));
  const edges = feature.histogram?.edges ?? [];
  const seen = [...ends, ...cells.map((c) => toNumber(feature, c))].filter((v) => v !== null);
  if (ends.includes(null)) seen.push(...edges.map((c) => toNumber(feature, c)).filter((v) => v !== null));
  if (!seen.length) return null;
  let low = Math.min(...seen), high = Math.max(...seen);
  if (!(high > low)) [low, high] = [low - 0.5, high + 0.5];
  const step = stepOf(feature, high - low);
  return { low, high, step, origin: ends[0] ?? low };
}

function stepOf(feature, span) {
  if (feature.kind === "moment") return span > 5 * 864e5 ? 864e5 : 6e4;
  if (typeof feature.step === "number" && feature.step > 0) return Math.max(feature.step, snap(span / 400, feature.step));
  return feature.kind === "integer" ? 1 : nice(span / 400);
}

/** Return the place of a cell between 0 and 1. */
export function place(feature, scale, cell) {
  const value = toNumber(feature, cell);
  return value === null ? null : Math.min(1, Math.max(0, (value - scale.low) / (scale.high - scale.low)));
}

/** Return the cell at a place between 0 and 1, on the grid of the feature. */
export function cellAt(feature, scale, share) {
  const value = scale.low + Math.min(1, Math.max(0, share)) * (scale.high - scale.low);
  const snapped = snap(value, scale.step, scale.origin);
  return toCell(feature, Math.min(scale.high, Math.max(scale.low, snapped)));
}

/** Return whether two cells are the same. */
export const same = (a, b) => (a ?? null) === (b ?? null);

/** Return the position of a cell among the levels, or -1. */
export const levelOf = (feature, cell) => feature.levels.findIndex((level) => same(level, cell));

/** Return what a text in a box means: `{cell}`, or `{error}` in words. */
export function parse(feature, text) {
  const given = String(text).trim();
  if (given === "") return feature.missing ? { cell: null } : { error: "A value is needed." };
  if (feature.kind === "moment") return { cell: given };
  const value = Number(given.replace(/^−/, "-").replace(/^(-?\d+),(\d+)$/, "$1.$2"));
  if (!Number.isFinite(value)) return { error: "This must be a number." };
  if (feature.kind === "integer" && !Number.isInteger(value)) return { error: "This must be a whole number." };
  return { cell: value };
}

/** Return a cell as it is written into a box. */
export const boxText = (cell) => (cell === null || cell === undefined ? "" : String(cell));

/** Return whether a stored cell can be one of a feature. */
export function fits(feature, cell) {
  if (cell === null) return true;
  if (!isScale(feature)) return ["string", "number", "boolean"].includes(typeof cell);
  return feature.kind === "moment" ? typeof cell === "string" : typeof cell === "number" && Number.isFinite(cell);
}
