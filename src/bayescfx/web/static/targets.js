// @ts-check
// Targets as text: the mode of a text, the handles on the ruler, and the text for their values.
import { clean, snap } from "./format.js";
import { rulerStep } from "./ruler.js";

/** @import { Histogram, Interval } from "./types.js" */

/** @typedef {"least" | "most" | "exact" | "between" | "change" | "typed"} Mode */

/** @type {[Mode, string][]} */
export const MODES = [
  ["least", "at least"],
  ["most", "at most"],
  ["exact", "exactly"],
  ["between", "between"],
  ["change", "change by at least"],
  ["typed", "as typed"],
];

/**
 * Return the mode of a target's text.
 * @param {string} text
 * @returns {Mode}
 */
export function modeOf(text) {
  const given = text.trim().toLowerCase();
  if (/^(>=|=>|≥|>|at least)/.test(given)) return "least";
  if (/^(<=|=<|≤|<|at most)/.test(given)) return "most";
  if (/^(±|\+\/-|\+-|==?\s*[+\-−])/.test(given)) return "typed";
  if (/^[+\-−]\s*[\d.]+(e[+-]?\d+)?\s*(%|percent)?$/.test(given)) return "change";
  if (/^(\[|between)|\.\.|…|\bto\b|\d\s*:/.test(given)) return "between";
  return /^(=|reach|exactly|[\d.])/.test(given) ? "exact" : "typed";
}

const AMOUNT = /^([+\-−])\s*([\d.]+(?:e[+-]?\d+)?)\s*(%|percent)?$/i;

/**
 * Return the amount of a target such as "+20%", at least so much; null for any other text.
 * @param {string} text
 */
export function parseAmount(text) {
  const match = AMOUNT.exec(text.trim());
  if (!match) return null;
  const sign = match[1] === "+" ? 1 : -1;
  return { amount: sign * Number(match[2]), isPercent: Boolean(match[3]) };
}

/**
 * Return the text of a relative target.
 * @param {number} amount
 * @param {boolean} isPercent
 */
export const changeText = (amount, isPercent) =>
  `${amount < 0 ? "-" : "+"}${Math.abs(amount)}${isPercent ? "%" : ""}`;

/** @param {number} value */
export const atLeast = (value) => `>= ${value}`;

/** @param {number} value */
export const atMost = (value) => `<= ${value}`;

/**
 * Return the text of one output; after "=", a sign would make it a change.
 * @param {number} value
 */
export const exactly = (value) => (value < 0 ? `reach ${value}` : `= ${value}`);

/**
 * Return the text of a target for handles at some outputs, and the intervals that it asks for.
 * @param {Mode} mode
 * @param {number[]} values
 * @param {{text: string, output: number | null}} current  the text so far, and the row's output
 * @returns {{text: string, wanted: Interval[]}}
 */
export function toText(mode, values, { text, output }) {
  const [value] = values;
  if (mode === "least") return { text: atLeast(value), wanted: [[value, null]] };
  if (mode === "most") return { text: atMost(value), wanted: [[null, value]] };
  if (mode === "between") {
    const low = Math.min(...values);
    const high = Math.max(...values);
    return { text: `[${low}, ${high}]`, wanted: [[low, high]] };
  }
  if (mode !== "change" || output === null)
    return { text: exactly(value), wanted: [[value, value]] };
  const isPercent = parseAmount(text)?.isPercent ?? output !== 0;
  const difference = value - output;
  const amount = isPercent && output ? (difference / Math.abs(output)) * 100 : difference;
  const shown = changeText(Number(amount.toPrecision(4)), isPercent);
  return { text: shown, wanted: [amount < 0 ? [null, value] : [value, null]] };
}

/**
 * Return the outputs of a target's handles, in the order of the ruler.
 * @param {string} text
 * @param {Interval[] | null} wanted
 * @returns {number[]}
 */
export function handleValues(text, wanted) {
  if (!wanted?.length) return [];
  const [low, high] = wanted[0];
  const mode = modeOf(text);
  if (mode === "typed") return [];
  if (mode === "exact") return low === null || high === null ? [] : [(low + high) / 2];
  const ends = { least: [low], most: [high], between: [low, high], change: [low, high] };
  return ends[mode].filter((end) => end !== null);
}

/**
 * Return the labels of a mode's handles.
 * @param {Mode} mode
 */
export function handleLabels(mode) {
  if (mode === "between") return ["lower end of the target", "upper end of the target"];
  const labels = {
    least: "target, at least",
    most: "target, at most",
    exact: "target, exactly",
    change: "target after the change",
    typed: "target",
  };
  return [labels[mode]];
}

/** @param {number[]} edges */
const spanOf = (edges) => edges[edges.length - 1] - edges[0];

/**
 * Return the step of target values on the ruler of some predictions.
 * @param {number[]} edges
 */
const stepOf = (edges) => rulerStep([edges[0], edges[edges.length - 1]]);

/**
 * Return handle values for another mode, near the present ones.
 * @param {Mode} mode
 * @param {number[]} values  of the present mode
 * @param {number} output  of the row
 * @param {number[]} edges  of the histogram of predictions
 */
export function valuesFor(mode, values, output, edges) {
  const tenth = (spanOf(edges) || 1) / 10;
  const rounded = values.map((value) => Number(value.toPrecision(6)));
  const first = rounded[0] ?? clean(Number((output + tenth).toPrecision(4)));
  if (mode === "between") return [first, rounded[1] ?? snap(first + tenth, stepOf(edges))];
  if (mode === "change" && first === output) return [output + tenth];
  return [first];
}

/**
 * Return a target to begin with: the upper quarter of the predictions or, from there, the lower.
 * @param {Histogram} predictions
 * @param {number} output  of the row
 * @param {boolean} isProbability
 */
export function firstTarget({ edges, counts }, output, isProbability) {
  const isInUnit = edges[0] >= 0 && edges[edges.length - 1] <= 1;
  if (isProbability && isInUnit) return output < 0.5 ? ">= 0.5" : "<= 0.5";
  const upper = quantile(edges, counts, 0.75);
  return output < upper ? atLeast(upper) : atMost(quantile(edges, counts, 0.25));
}

/**
 * Return a quantile of a histogram, rounded for reading.
 * @param {number[]} edges
 * @param {number[]} counts
 * @param {number} share
 */
export function quantile(edges, counts, share) {
  const total = counts.reduce((sum, n) => sum + n, 0);
  let sum = 0;
  let k = 0;
  while (k < counts.length - 1 && sum + counts[k] < share * total) {
    sum += counts[k];
    k += 1;
  }
  return snap((edges[k] + edges[k + 1]) / 2, stepOf(edges) * 5);
}

/**
 * Return the distance of an output from the target; 0 inside, null without a target.
 * @param {number | null | undefined} output
 * @param {Interval[] | null | undefined} wanted
 */
export function gap(output, wanted) {
  if (!wanted?.length || output === null || output === undefined) return null;
  const distances = wanted.map(([low, high]) => {
    const below = low === null ? 0 : low - output;
    const above = high === null ? 0 : output - high;
    return Math.max(below, above, 0);
  });
  return Math.min(...distances);
}

/**
 * Return a target at an output that was reached, on the side of the intervals asked for; it is
 * rounded to five digits, never beyond the output.
 * @param {number} output
 * @param {Interval[]} wanted
 */
export function targetAt(output, wanted) {
  const [low, high] = wanted[0] ?? [null, null];
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(output) || 1)) - 4);
  /** @param {(value: number) => number} round */
  const rounded = (round) => clean(round(output / unit) * unit);
  if (high === null && low !== null) return atLeast(rounded(Math.floor));
  if (low === null && high !== null) return atMost(rounded(Math.ceil));
  return exactly(rounded(Math.round));
}
