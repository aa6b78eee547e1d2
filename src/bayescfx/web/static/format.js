// Numbers and cells for reading; the exact value stays in a title, and is what gets copied.
import { h } from "./dom.js";

/** Return a number with some significant digits, with exponents only where a person would. */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "not a number" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-5)) return minus(Number(value.toPrecision(digits)).toExponential());
  if (size >= 10 ** digits) return minus(value.toFixed(0));
  return minus(String(Number(value.toPrecision(digits))));
}

const minus = (text) => (text === "-0" ? "0" : text.replace(/^-/, "−"));

/** Return a difference with its sign. */
const signed = (value, digits = 3) => (value > 0 ? "+" : "") + number(value, digits);

/** Return an output for reading as an element: click it and it is selected; copied, it is exact. */
export function num(value, { unit = "", digits = 4, signs = false, test = null } = {}) {
  const text = signs ? signed(value, digits) : number(value, digits);
  const exact = value === null || value === undefined ? "" : String(value);
  return h("data", { class: "num", value: exact, title: exact, "data-test": test }, text, unit ? ` ${unit}` : "");
}

/** Return a cell of a table for reading. */
export function cell(value, digits = 6) {
  if (value === null || value === undefined) return "missing";
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "number") return Number.isInteger(value) && Math.abs(value) < 1e15 ? minus(String(value)) : number(value, digits);
  return value === "" ? "(empty)" : String(value).trim() === "" ? "(blank)" : String(value);
}

/** Return a text cut to a length. */
export function clip(text, length = 160) {
  const letters = String(text);
  if (letters.length <= length) return letters;
  return `${letters.slice(0, length).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** Return the name of a feature as an element, whatever its direction of writing and length. */
export function name(text, tag = "bdi") {
  const shown = String(text).trim() === "" ? "(no name)" : clip(text);
  return h(tag, { class: "name", dir: "auto", title: clip(text, 1000) }, shown);
}

/** Return a cell as an element, with its exact value. */
export function shown(value, tag = "bdi") {
  const exact = value === null || value === undefined ? "missing" : String(value);
  return h(tag, { class: "cell", dir: "auto", title: clip(exact, 1000) }, clip(cell(value)));
}

/** Return "1 thing", "2 things". */
export const count = (n, word, many = `${word}s`) => `${n} ${n === 1 ? word : many}`;

/** Return a share in percent. */
export const percent = (share) => `${Math.round(100 * share)} %`;

/** Return seconds for reading. */
export function seconds(value) {
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < 119.5) return `${Math.round(value)} s`;
  return `${Math.round(value / 60)} min`;
}

/** Return a step of 1, 2 or 5 times a power of ten that is near a size. */
export function nice(size) {
  if (!(size > 0) || !Number.isFinite(size)) return 1;
  const power = 10 ** Math.floor(Math.log10(size));
  const part = size / power;
  return (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10) * power;
}

/** Return a number on a grid of a step, without the dust of binary fractions. */
export function snap(value, step, origin = 0) {
  if (!(step > 0)) return clean(value);
  return clean(origin + Math.round((value - origin) / step) * step);
}

/** Return a number without the dust of binary fractions. */
export const clean = (value) => Number(value.toPrecision(12));

/** Return about `n` round numbers between two. */
export function ticks(low, high, n = 6) {
  if (!(high > low)) return [low];
  const step = nice((high - low) / n);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(clean(k * step));
  return found;
}

/** Return a number without an exponent, as attributes for screen readers need it. */
export function decimal(value) {
  const text = String(value);
  if (!text.includes("e")) return text;
  return Math.abs(value) < 1 ? value.toFixed(40).replace(/0+$/, "") : BigInt(Math.round(value)).toString();
}

/** Let a copied number be the exact one. */
export function copyExact() {
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    const node = selection?.anchorNode;
    const data = (node?.nodeType === Node.TEXT_NODE ? node.parentElement : node)?.closest?.("data.num");
    if (!data || !data.contains(selection.focusNode) || !event.clipboardData) return;
    event.clipboardData.setData("text/plain", data.value);
    event.preventDefault();
  });
}
