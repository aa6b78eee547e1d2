// @ts-check
// Controls for the cells of a row: a box, a list of levels, or a slider with a box.
import { h, set } from "./dom.js";
import {
  axis,
  boxText,
  cellAt,
  isScale,
  levelOf,
  levelsOf,
  parse,
  place,
  toNumber,
} from "./features.js";
import { clip, cell as text } from "./format.js";

/** @import { Axis, Cell, Feature } from "./types.js" */
/** @typedef {(cell: Cell) => void} Changed */
/** @typedef {{node: HTMLElement, update: Changed}} Control */

/**
 * Return a list of a feature's levels; `changed` gets the chosen cell.
 * @param {Feature} feature
 * @param {Cell} current
 * @param {Changed} changed
 * @param {string} test
 * @returns {Control}
 */
export function levelList(feature, current, changed, test) {
  const levels = levelsOf(feature);
  const list = h("select", { "data-test": test, "data-feature": feature.name });
  let shownCell = current;

  /** @param {Cell} cell */
  function update(cell) {
    shownCell = cell;
    const at = levelOf(feature, cell);
    const options = levels.map((level, k) =>
      h("option", { value: k, selected: k === at }, clip(text(level), 60)),
    );
    if (feature.missing || cell === null) {
      const isMissing = cell === null && at < 0;
      options.push(h("option", { value: "missing", selected: isMissing }, "missing"));
    }
    if (at < 0 && cell !== null) {
      options.unshift(h("option", { value: "other", selected: true }, clip(text(cell), 60)));
    }
    list.replaceChildren(...options);
  }

  function chosenCell() {
    if (list.value === "missing") return null;
    return list.value === "other" ? shownCell : levels[Number(list.value)];
  }
  list.onchange = () => changed(chosenCell());
  update(current);
  return { node: list, update };
}

/**
 * Return a box for a number or a point in time; `changed` gets only what can be read.
 * @param {Feature} feature
 * @param {Cell} current
 * @param {Changed} changed
 * @param {string} test
 */
export function box(feature, current, changed, test) {
  const input = h("input", {
    type: "text",
    inputmode: feature.kind === "moment" ? null : "decimal",
    "data-test": test,
    "data-feature": feature.name,
    autocomplete: "off",
    spellcheck: "false",
    maxlength: 400,
    placeholder: feature.missing ? "missing" : null,
    value: boxText(current),
  });
  input.oninput = () => {
    const { cell, error } = parse(feature, input.value);
    set(input, { "aria-invalid": error ? "true" : null, title: error });
    if (!error) changed(cell);
  };
  /** @param {Cell} cell */
  const update = (cell) => {
    if (document.activeElement === input) return;
    input.value = boxText(cell);
    set(input, { "aria-invalid": null, title: null });
  };
  return { node: input, update };
}

/**
 * Return the control of a feature's cell in a form.
 * @param {Feature} feature
 * @param {Cell} current
 * @param {Changed} changed
 * @param {string} test
 * @returns {Control}
 */
export const cellInput = (feature, current, changed, test) =>
  (isScale(feature) ? box : levelList)(feature, current, changed, test);

/**
 * Return the step of a range input from 0 to 1.
 * @param {Axis} scale
 */
export function rangeStep(scale) {
  const n = (scale.high - scale.low) / scale.step;
  return n > 1 && n <= 400 ? 1 / n : 0.0025;
}

/**
 * Return a slider with a box for a number or a point in time.
 * @param {Feature} feature
 * @param {Cell} current
 * @param {Changed} changed
 * @param {{test: string, label: string}} options
 * @returns {{nodes: HTMLElement[], update: Changed}}
 */
export function slider(feature, current, changed, { test, label }) {
  const range = h("input", {
    type: "range",
    "data-test": test,
    "data-feature": feature.name,
    "aria-label": label,
    min: 0,
    max: 1,
    step: "any",
  });
  const typed = (/** @type {Cell} */ cell) => {
    follow(cell);
    changed(cell);
  };
  const exact = box(feature, current, typed, `${test}-box`);
  exact.node.setAttribute("aria-label", `${label}, exact value`);
  if (axis(feature, [current]) === null) return { nodes: [exact.node], update: exact.update };
  let shownCell = current;

  /** @param {Cell} cell */
  function follow(cell) {
    shownCell = cell;
    const scale = axis(feature, [cell]);
    if (!scale) return;
    set(range, { step: rangeStep(scale), "aria-valuetext": clip(text(cell), 60) });
    range.value = String(place(feature, scale, cell) ?? 0);
    range.classList.toggle("blank", toNumber(feature, cell) === null);
  }

  range.oninput = () => {
    const scale = axis(feature, [shownCell]);
    if (!scale) return;
    const cell = cellAt(feature, scale, Number(range.value));
    exact.node.value = boxText(cell);
    set(range, { "aria-valuetext": clip(text(cell), 60) });
    changed(cell);
  };
  follow(current);
  /** @param {Cell} cell */
  const update = (cell) => {
    if (document.activeElement !== range) follow(cell);
    exact.update(cell);
  };
  return { nodes: [range, exact.node], update };
}
