// Controls for the cells of a row: a box, a list of levels, or a slider with a box.
import { h, set } from "./dom.js";
import { axis, boxText, isScale, levelOf, parse, place, toNumber, cellAt } from "./features.js";
import { cell as text, clip } from "./format.js";

/** Return a list of a feature's levels; `changed(cell)` hears what is chosen. */
export function levelList(feature, current, changed, test) {
  const list = h("select", { "data-test": test, "data-feature": feature.name });
  const update = (now) => {
    const at = levelOf(feature, now);
    const options = feature.levels.map((level, k) => h("option", { value: k, selected: k === at }, clip(text(level), 60)));
    if (feature.missing || now === null) options.push(h("option", { value: "missing", selected: now === null && at < 0 }, "missing"));
    if (at < 0 && now !== null) options.unshift(h("option", { value: "other", selected: true }, clip(text(now), 60)));
    list.replaceChildren(...options);
    list.other = now;
  };
  list.onchange = () => changed(list.value === "missing" ? null : list.value === "other" ? list.other : feature.levels[Number(list.value)]);
  update(current);
  return { node: list, update };
}

/** Return a box for a number or a point in time; what can't be read is said and not taken. */
export function box(feature, current, changed, test) {
  const moment = feature.kind === "moment";
  const input = h("input", {
    type: "text", inputmode: moment ? null : "decimal", "data-test": test, "data-feature": feature.name, autocomplete: "off", spellcheck: "false",
    maxlength: 400, placeholder: feature.missing ? "missing" : null, value: boxText(current),
  });
  input.oninput = () => {
    const { cell, error } = parse(feature, input.value);
    set(input, { "aria-invalid": error ? "true" : null, title: error ?? null });
    if (!error) changed(cell);
  };
  const update = (now) => {
    if (document.activeElement === input) return;
    input.value = boxText(now);
    set(input, { "aria-invalid": null, title: null });
  };
  input.onblur = () => input.getAttribute("aria-invalid") && set(input, { "aria-invalid": "true" });
  return { node: input, update };
}

/** Return the control of a feature's cell in a form. */
export const cellInput = (feature, current, changed, test) =>
  (isScale(feature) ? box : levelList)(feature, current, changed, test);

/** Return a slider with a box for a number or a point in time. */
export function slider(feature, current, changed, { test, label }) {
  let scale = axis(feature, [current]);
  const boxed = box(feature, current, (cell) => { follow(cell); changed(cell); }, `${test}-box`);
  boxed.node.setAttribute("aria-label", `${label}, exact value`);
  if (scale === null) return { nodes: [boxed.node], update: boxed.update };
  const range = h("input", { type: "range", "data-test": test, "data-feature": feature.name, "aria-label": label, min: 0, max: 1, step: "any" });
  const follow = (cell) => {
    scale = axis(feature, [cell]);
    const steps = (scale.high - scale.low) / scale.step;
    set(range, { step: steps > 1 && steps <= 400 ? 1 / steps : 0.0025, "aria-valuetext": clip(text(cell), 60) });
    range.value = place(feature, scale, cell) ?? 0;
    range.classList.toggle("blank", toNumber(feature, cell) === null);
  };
  range.oninput = () => {
    const cell = cellAt(feature, scale, Number(range.value));
    boxed.node.value = boxText(cell);
    set(range, { "aria-valuetext": clip(text(cell), 60) });
    changed(cell);
  };
  follow(current);
  const update = (cell) => {
    if (document.activeElement !== range) follow(cell);
    boxed.update(cell);
  };
  return { nodes: [range, boxed.node], update };
}
