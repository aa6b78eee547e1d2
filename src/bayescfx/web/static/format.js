// @ts-check
// Numbers and cells for reading; the exact value stays in a title, and is what gets copied.
import { h } from "./dom.js";

/** @import { Cell } from "./types.js" */

/** @param {string} text */
const withMinus = (text) => (text === "-0" ? "0" : text.replace(/^-/, "−"));

/**
 * Return a number with some significant digits, and an exponent only if it is very large or small.
 * @param {number | null | undefined} value
 * @param {number} [digits]
 */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-5)) {
    return withMinus(Number(value.toPrecision(digits)).toExponential());
  }
  if (size >= 10 ** digits) return withMinus(value.toFixed(0));
  return withMinus(String(Number(value.toPrecision(digits))));
}

/**
 * Return a number with as many digits as tell it from the numbers that it is compared with.
 * @param {number | null | undefined} value
 * @param {(number | null | undefined)[]} others
 * @param {number} [digits]  at least
 */
export function numberApart(value, others, digits = 4) {
  const different = others.filter((other) => other !== value);
  let shown = digits;
  while (shown < 17 && different.some((other) => number(other, shown) === number(value, shown))) {
    shown += 1;
  }
  return number(value, shown);
}

/**
 * Return a difference with its sign.
 * @param {number | null | undefined} value
 * @param {number} [digits]
 */
export const signed = (value, digits = 3) => ((value ?? 0) > 0 ? "+" : "") + number(value, digits);

/**
 * Return a number as an element: a click selects it, and a copy of it is exact.
 * @param {number | null | undefined} value
 * @param {{unit?: string, digits?: number, signs?: boolean, test?: string | null,
 *   others?: (number | null)[] | undefined}} [options]  `others` are numbers that it is compared with
 */
export function num(value, options = {}) {
  const { unit = "", digits = 4, signs = false, test = null, others = [] } = options;
  const text = signs ? signed(value, digits) : numberApart(value, others, digits);
  const exact = value === null || value === undefined ? "" : String(value);
  const props = { class: "num", value: exact, title: exact, "data-test": test };
  return h("data", props, text, unit ? ` ${unit}` : "");
}

/**
 * Return a cell of a table: a number with all its digits, or with some for long tables.
 * @param {Cell | undefined} value
 * @param {number | null} [digits]
 */
export function cell(value, digits = null) {
  if (value === null || value === undefined) return "missing";
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "number") {
    const isShort = Number.isInteger(value) && Math.abs(value) < 1e15;
    return isShort || digits === null ? withMinus(String(value)) : number(value, digits);
  }
  if (value === "") return "(empty)";
  return value.trim() === "" ? "(blank)" : value;
}

/**
 * Return a text cut to a length, with an ellipsis.
 * @param {unknown} text
 * @param {number} [length]
 */
export function clip(text, length = 160) {
  const letters = String(text);
  if (letters.length <= length) return letters;
  return `${letters.slice(0, length).replace(/[\ud800-\udbff]$/, "")}…`;
}

/**
 * Return a name from the data as an element, for any length and writing direction.
 * @param {unknown} text
 * @param {"bdi" | "strong"} [tag]
 */
export function name(text, tag = "bdi") {
  const visible = String(text).trim() === "" ? "(no name)" : clip(text);
  return h(tag, { class: "name", dir: "auto", title: clip(text, 1000) }, visible);
}

/**
 * Return a cell as an element, with its exact value.
 * @param {Cell | undefined} value
 * @param {"bdi" | "strong"} [tag]
 * @param {number | null} [digits]
 */
export function shown(value, tag = "bdi", digits = null) {
  const exact = value === null || value === undefined ? "missing" : String(value);
  const props = { class: "cell", dir: "auto", title: clip(exact, 1000) };
  return h(tag, props, clip(cell(value, digits)));
}

/**
 * Return a count with its noun: "1 row", "2 rows".
 * @param {number} n
 * @param {string} word
 */
export const count = (n, word, plural = `${word}s`) => `${n} ${n === 1 ? word : plural}`;

/**
 * Return a share as a percentage.
 * @param {number} share
 */
export const percent = (share) => `${Math.round(100 * share)} %`;

/**
 * Return a share as a percentile of the training rows: "15th percentile".
 * @param {number} share
 */
export function percentile(share) {
  const rank = Math.round(100 * share);
  if (rank < 1) return "below the 1st percentile";
  if (rank > 99) return "above the 99th percentile";
  const isTeen = rank % 100 >= 11 && rank % 100 <= 13;
  const ending = isTeen ? "th" : (["th", "st", "nd", "rd"][rank % 10] ?? "th");
  return `${rank}${ending} percentile`;
}

/**
 * Return the share of the training rows that are less plausible, in words.
 * @param {number} share
 */
export function plausibility(share) {
  const rank = percentile(share);
  let explanation = `${percent(share)} are less typical`;
  if (rank.startsWith("below")) explanation = "nearly all are more typical";
  if (rank.startsWith("above")) explanation = "nearly all are less typical";
  return `${rank} of the training rows (${explanation})`;
}

/**
 * Return a duration for reading.
 * @param {number} value  in seconds
 */
export function seconds(value) {
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < 119.5) return `${Math.round(value)} s`;
  return `${Math.round(value / 60)} min`;
}

/**
 * Return the step of 1, 2 or 5 times a power of ten that is nearest to a size.
 * @param {number} size
 */
export function nice(size) {
  if (!(size > 0) || !Number.isFinite(size)) return 1;
  const power = 10 ** Math.floor(Math.log10(size));
  const part = size / power;
  if (part < 1.5) return power;
  if (part < 3.5) return 2 * power;
  return (part < 7.5 ? 5 : 10) * power;
}

/**
 * Return a number without the rounding error of binary fractions.
 * @param {number} value
 */
export const clean = (value) => Number(value.toPrecision(12));

/**
 * Return the nearest number on the grid `origin + k * step`.
 * @param {number} value
 * @param {number} step
 * @param {number} [origin]
 */
export function snap(value, step, origin = 0) {
  if (!(step > 0)) return clean(value);
  return clean(origin + Math.round((value - origin) / step) * step);
}

/**
 * Return about `n` round numbers in an interval.
 * @param {number} low
 * @param {number} high
 * @param {number} [n]
 */
export function ticks(low, high, n = 6) {
  if (!(high > low)) return [low];
  const step = nice((high - low) / n);
  const marks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
    marks.push(clean(k * step));
  }
  return marks;
}

/**
 * Return a number without an exponent, as ARIA attributes need it.
 * @param {number} value
 */
export function decimal(value) {
  const text = String(value);
  if (!text.includes("e")) return text;
  if (Math.abs(value) < 1) return value.toFixed(40).replace(/0+$/, "");
  return BigInt(Math.round(value)).toString();
}

/** Copy the exact value when a shown number is copied. */
export function copyExact() {
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    const node = selection?.anchorNode;
    const element = node instanceof Element ? node : node?.parentElement;
    const data = element?.closest("data");
    if (!data?.contains(selection?.focusNode ?? null) || !event.clipboardData) return;
    event.clipboardData.setData("text/plain", data.value);
    event.preventDefault();
  });
}
