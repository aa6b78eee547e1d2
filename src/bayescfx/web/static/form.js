// @ts-check
// The row as a form: every cell can be edited, and the prediction follows.
import { asApiError, latest, predict } from "./api.js";
import { clearLost, fail } from "./banner.js";
import { debounce, field, fill, h, nameFilter } from "./dom.js";
import { clip, name, num } from "./format.js";
import { cellInput } from "./inputs.js";
import { editCell, emit, on, setRow, state } from "./state.js";

const requestPrediction = latest(predict);
const MANY_FEATURES = 12; // from here on the form has a search box

/** Ask for the prediction of the row. */
async function predictRow() {
  const { row } = state;
  const { cells } = row;
  const isOutdated = () => row !== state.row || cells !== row.cells;
  const { tolerance } = state.settings;
  try {
    const body = { cells, query: null, space: null, target: null, tolerance };
    const found = await requestPrediction(body);
    if (!found || isOutdated()) return;
    row.output = found.output;
    row.error = null;
    clearLost();
  } catch (thrown) {
    const error = asApiError(thrown);
    if (isOutdated()) return;
    if (error.lost) {
      fail(error, predictRow);
      return;
    }
    row.error = error.message;
  }
  emit("output");
}
const predictSoon = debounce(predictRow, 150);

/** Keep the row's prediction up to date. */
export function livePrediction() {
  on("row", () => {
    if (state.row.output === null) predictSoon();
    else emit("output");
  });
}

/** Build the form of the row. */
export function formPanel() {
  const { site } = state;
  const inputs = site.features.map((feature) => {
    const { name: key, description } = feature;
    const changed = (/** @type {import("./types.js").Cell} */ cell) => editCell(key, cell);
    const input = cellInput(feature, state.row.cells[key], changed, "row-input");
    const node = field(name(key), input.node);
    const title = clip(description, 600);
    node.append(h("p", { class: "hint clip", title }, clip(description, 80)));
    return { feature, input, node };
  });
  const filter = nameFilter("form-filter", inputs);
  const reset = h("button", {
    class: "quiet",
    "data-test": "row-reset",
    onclick: () => state.row.base && setRow(state.row.base),
  });
  const output = h("p", { class: "lead", "data-test": "row-output", "aria-live": "polite" });

  function drawCells() {
    const { row } = state;
    for (const { feature, input } of inputs) input.update(row.cells[feature.name]);
    const isEdited = row.base !== null && row.label !== row.base.label;
    const label = String(row.base?.label).replace(/, edited$/, "");
    reset.hidden = !isEdited;
    reset.textContent = isEdited ? `Undo the edits of row ${clip(label, 30)}` : "";
  }

  function drawOutput() {
    const { error, output: value } = state.row;
    if (error) {
      fill(output, h("span", { class: "wrong", dir: "auto" }, clip(error, 600)));
      return;
    }
    const shown = value === null ? "…" : h("strong", null, num(value, { unit: site.output.unit }));
    fill(output, `${site.output.name} `, shown);
  }

  function draw() {
    drawCells();
    drawOutput();
  }
  on("row", draw);
  on("output", drawOutput);
  draw();
  const hasFilter = site.features.length > MANY_FEATURES;
  return h(
    "section",
    { class: "panel", "aria-labelledby": "form-title" },
    h("div", { class: "row spread middle" }, h("h2", { id: "form-title" }, "Or edit it"), output),
    h("div", { class: "row" }, hasFilter ? field("Find a feature", filter) : null, reset),
    h(
      "div",
      { class: "form-grid" },
      inputs.map(({ node }) => node),
    ),
  );
}
