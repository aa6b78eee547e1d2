// The row as a form: every cell can be edited, and the prediction follows.
import { newest, predict } from "./api.js";
import { fail, heard } from "./banner.js";
import { debounce, field, fill, h, nameFilter } from "./dom.js";
import { clip, name, num } from "./format.js";
import { cellInput } from "./inputs.js";
import { editCell, emit, on, state, takeRow } from "./state.js";

const asked = newest((cells, signal) => predict({ cells, query: null, space: null, target: null, tolerance: state.settings.tolerance }, signal));

/** Ask for the prediction of the row. */
async function predictRow() {
  const { row } = state, { cells } = row;
  const old = () => row !== state.row || cells !== row.cells;
  try {
    const found = await asked(cells);
    if (!found || old()) return;
    row.output = found.output;
    row.error = null;
    heard();
  } catch (error) {
    if (old()) return;
    if (error.lost) return fail(error, predictRow);
    row.error = error.message;
  }
  emit("output");
}
const predictSoon = debounce(predictRow, 150);

/** Keep the row's prediction up to date. */
export function livePrediction() {
  on("row", () => (state.row.output === null ? predictSoon() : emit("output")));
}

/** Build the form of the row. */
export function formPanel() {
  const { site } = state;
  const inputs = site.features.map((feature) => {
    const input = cellInput(feature, state.row.cells[feature.name], (cell) => editCell(feature.name, cell), "row-input");
    const node = field(name(feature.name), input.node);
    node.append(h("p", { class: "hint clip", title: clip(feature.words, 600) }, clip(feature.words, 80)));
    return { feature, input, node };
  });
  const filter = nameFilter("form-filter", inputs);
  const reset = h("button", { class: "quiet", "data-test": "row-reset", onclick: () => takeRow(state.row.base) });
  const output = h("p", { class: "lead", "data-test": "row-output", "aria-live": "polite" });

  function draw() {
    const { row } = state;
    for (const { feature, input } of inputs) input.update(row.cells[feature.name]);
    const edited = row.base !== null && row.label !== row.base.label;
    reset.hidden = !edited;
    reset.textContent = edited ? `Undo the edits of row ${clip(String(row.base.label).replace(/, edited$/, ""), 30)}` : "";
  }

  function drawOutput() {
    const { row } = state;
    if (row.error) return fill(output, h("span", { class: "wrong", dir: "auto" }, clip(row.error, 600)));
    return fill(output, `${site.output.name} `, row.output === null ? "…" : h("strong", null, num(row.output, { unit: site.output.unit })));
  }

  on("row", () => { draw(); drawOutput(); });
  on("output", drawOutput);
  draw();
  drawOutput();
  return h("section", { class: "panel", "aria-labelledby": "form-title" },
    h("div", { class: "row spread middle" }, h("h2", { id: "form-title" }, "Or edit it"), output),
    h("div", { class: "row" }, site.features.length > 12 ? field("Find a feature", filter) : null, reset),
    h("div", { class: "form-grid" }, inputs.map(({ node }) => node)));
}
