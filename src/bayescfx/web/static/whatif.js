// @ts-check
// What if: sliders for every feature, from the row or an answer; prediction and curve follow.
import { asApiError, latest, predict } from "./api.js";
import { badge } from "./badge.js";
import { clearLost, fail } from "./banner.js";
import { curvePanel } from "./curve.js";
import { announce, debounce, field, fill, h, icon, nameFilter } from "./dom.js";
import { isScale, same } from "./features.js";
import { clip, count, name, num, cell as text } from "./format.js";
import { levelList, slider } from "./inputs.js";
import { asEdited, emit, isRow, on, remember, setRow, space, state } from "./state.js";
import { show } from "./tabs.js";

/** @import { Cell, Child, Feature, Prediction } from "./types.js" */

/**
 * @typedef {object} Line
 * @property {Feature} feature
 * @property {HTMLElement} node
 * @property {HTMLElement} mark
 * @property {(cell: Cell) => void} update
 */

const requestPrediction = latest(predict);
const trial = state.whatif;
const MANY_FEATURES = 8; // from here on there is a search box
let curveFeature = ""; // the feature whose curve is shown

/** @param {number} index */
const answerAt = (index) => state.question?.answer?.counterfactuals[index];

/**
 * Start from the row or from an answer.
 * @param {"row" | number} from
 */
export function startWhatIf(from) {
  const found = from === "row" ? undefined : answerAt(from);
  trial.from = found ? from : "row";
  trial.cells = { ...(found ?? state.row).cells };
  if (found?.changes.length) curveFeature = found.changes[0].name;
  emit("whatif");
}

/**
 * Restore the trial from before a reload, if it is still valid.
 * @param {any} stored
 */
export function resumeWhatIf(stored) {
  if (!isRow(stored)) return;
  trial.cells = stored.cells;
  trial.from = Number.isInteger(stored.from) && answerAt(stored.from) ? stored.from : "row";
  emit("whatif");
}

/** Build the what-if part. */
export function whatifPanel() {
  const { features } = state.site;
  const curve = curvePanel();
  const output = outputBox();
  const start = startList();
  const moved = h("p", { class: "hint" });
  const lines = features.map((feature) => makeLine(feature, changeCell, focusOn));
  const filter = nameFilter("whatif-filter", lines);
  curveFeature = (features.find((f) => !f.derived) ?? features[0]).name;

  /**
   * @param {Feature} feature
   * @param {Cell} cell
   */
  function changeCell(feature, cell) {
    trial.cells = { ...trial.cells, [feature.name]: cell };
    curveFeature = feature.name;
    drawFocus();
    update();
    remember();
  }

  /** @param {Feature} feature */
  function focusOn(feature) {
    if (curveFeature === feature.name) return;
    curveFeature = feature.name;
    drawFocus();
    if (state.tab === "whatif") curve.follow(trial.cells, curveFeature);
  }

  function drawFocus() {
    for (const { feature, node } of lines) {
      node.classList.toggle("focus", feature.name === curveFeature);
    }
  }

  function update() {
    const n = lines.filter(drawMark).length;
    const verb = n === 1 ? "differs" : "differ";
    fill(moved, n ? `${count(n, "feature")} ${verb} from the row.` : "Same as the row.");
    if (state.tab !== "whatif") return;
    output.refresh();
    curve.follow(trial.cells, curveFeature);
  }

  function drawAll() {
    start.draw();
    for (const line of lines) line.update(trial.cells[line.feature.name] ?? null);
    drawFocus();
    update();
  }

  on("whatif", drawAll);
  on("row", () => startWhatIf("row"));
  on("question", () => {
    const isGone = trial.from !== "row" && !answerAt(trial.from);
    if (isGone) startWhatIf("row");
    else if (state.tab === "whatif" || state.question?.answer) drawAll();
  });
  on("tab target space", () => {
    if (state.tab === "whatif") update();
  });
  startWhatIf("row");
  const hasFilter = features.length > MANY_FEATURES;
  const reset = { "data-test": "whatif-reset", onclick: () => startWhatIf(trial.from) };
  const useRow = { class: "primary", "data-test": "use-as-row", onclick: adopt };
  return h(
    "div",
    { class: "whatif" },
    h(
      "section",
      { class: "panel", "aria-labelledby": "whatif-title" },
      h("div", { class: "row spread middle" }, h("h2", { id: "whatif-title" }, "What if"), moved),
      h(
        "div",
        { class: "row" },
        field("Start from", start.node),
        hasFilter ? field("Find a feature", filter, { wide: true }) : null,
        h("button", reset, "Back to the start"),
      ),
      h(
        "div",
        { class: "whatif-lines" },
        lines.map(({ node }) => node),
      ),
    ),
    h(
      "section",
      { class: "panel side", "aria-label": "Prediction" },
      output.node,
      h("button", useRow, "Use as new row"),
      curve.node,
    ),
  );
}

/** Return the list of rows and answers to start from. */
function startList() {
  const node = h("select", { "data-test": "whatif-from" });
  node.onchange = () => startWhatIf(node.value === "row" ? "row" : Number(node.value));
  const draw = () => {
    const answers = state.question?.answer?.counterfactuals ?? [];
    fill(
      node,
      h("option", { value: "row" }, `row ${clip(state.row.label ?? "", 40)}`),
      answers.map((_, k) => h("option", { value: k }, `answer ${k + 1}`)),
    );
    node.value = String(trial.from);
  };
  return { node, draw };
}

/**
 * Return the line of one feature.
 * @param {Feature} feature
 * @param {(feature: Feature, cell: Cell) => void} changeCell
 * @param {(feature: Feature) => void} focusOn
 * @returns {Line}
 */
function makeLine(feature, changeCell, focusOn) {
  const changed = (/** @type {Cell} */ cell) => changeCell(feature, cell);
  const control = whatifControl(feature, changed);
  const mark = h("span", { class: "was" });
  const button = h(
    "button",
    { class: "link name-button", title: "Show its curve", onclick: () => focusOn(feature) },
    name(feature.name),
  );
  const node = h(
    "div",
    { class: "whatif-line", "data-test": "whatif-line", "data-feature": feature.name },
    h("div", { class: "whatif-name" }, button, mark),
    h("div", { class: "whatif-controls" }, control.nodes),
  );
  node.addEventListener("focusin", () => focusOn(feature));
  if (feature.derived) {
    for (const input of node.querySelectorAll("input")) input.disabled = true;
    for (const list of node.querySelectorAll("select")) list.disabled = true;
  }
  return { feature, node, mark, update: control.update };
}

/**
 * @param {Feature} feature
 * @param {(cell: Cell) => void} changed
 */
function whatifControl(feature, changed) {
  const now = state.row.cells[feature.name];
  const label = `${clip(feature.name, 80)}, what if`;
  if (isScale(feature)) return slider(feature, now, changed, { test: "whatif-input", label });
  const list = levelList(feature, now, changed, "whatif-input");
  list.node.setAttribute("aria-label", label);
  return { nodes: [list.node], update: list.update };
}

/**
 * Mark a line whose value differs from the row; returns whether it does.
 * @param {Line} line
 */
function drawMark({ feature, node, mark }) {
  const before = state.row.cells[feature.name];
  const isMoved = !same(before, trial.cells[feature.name]);
  const hint = feature.derived ? "derived from others" : "";
  node.classList.toggle("moved", isMoved);
  fill(mark, isMoved ? `was ${clip(text(before), 30)}` : hint);
  return isMoved;
}

/** Return the prediction of the trial: {node, refresh}. */
function outputBox() {
  const node = h("div", {
    class: "whatif-output",
    "data-test": "whatif-output",
    "aria-live": "polite",
  });

  async function load() {
    const { cells } = trial;
    try {
      const { found, error } = await predictTrial();
      if (!found || cells !== trial.cells) return;
      clearLost();
      fill(node, predictionNodes(found, error));
    } catch (thrown) {
      const error = asApiError(thrown);
      if (error.lost) fail(error, load);
      else fill(node, errorNode(error.message));
    }
  }
  return { node, refresh: debounce(load, 120) };
}

/**
 * Return the prediction of the trial; without the constraints if they cannot be read.
 * @returns {Promise<{found: Prediction | undefined, error: string | null}>}
 */
async function predictTrial() {
  const { cells } = trial;
  const { tolerance } = state.settings;
  const target = state.target.error ? null : state.target.text;
  const whole = { cells, query: state.row.cells, space: space(), target, tolerance };
  try {
    return { found: await requestPrediction(whole), error: null };
  } catch (thrown) {
    const error = asApiError(thrown);
    if (error.status !== 422) throw error;
    // A rule may be half typed: show the prediction all the same.
    const bare = { cells, query: null, space: null, target: null, tolerance };
    return { found: await requestPrediction(bare), error: error.message };
  }
}

/** @param {string} message */
const errorNode = (message) =>
  h("p", { class: "wrong", dir: "auto" }, icon("warn"), clip(message, 600));

/**
 * @param {Prediction} found
 * @param {string | null} error
 * @returns {Child}
 */
function predictionNodes(found, error) {
  const { unit, name: title } = state.site.output;
  const before = state.row.output;
  const difference = before === null ? null : num(found.output - before, { signs: true });
  const others = found.reached === false ? state.target.wanted?.flat() : [];
  return [
    h("p", { class: "soft" }, title),
    h("p", { class: "huge" }, num(found.output, { unit, test: "whatif-value", others })),
    difference ? h("p", { class: "soft" }, difference, " compared with the row") : null,
    targetNode(found),
    costNode(found),
    found.follows.map((text) => h("p", { class: "soft", dir: "auto" }, clip(text, 300))),
    error ? errorNode(error) : null,
    found.broken.length ? brokenNode(found.broken) : null,
  ];
}

/** @param {Prediction} found */
function targetNode({ reached, miss }) {
  const { meaning } = state.target;
  if (reached) return h("p", null, badge("reached"), ` ${meaning}`);
  if (miss === null) return null;
  const distance = h("strong", { "data-test": "whatif-miss" }, num(miss));
  return h("p", null, icon("near"), distance, ` from the target (${meaning})`);
}

/** @param {Prediction} found */
function costNode({ cost, distance, n_changes: nChanges }) {
  if (cost === null || !nChanges) return null;
  return h(
    "p",
    { class: "soft", "data-test": "whatif-cost" },
    "cost ",
    num(cost, { digits: 3 }),
    " (distance ",
    num(distance, { digits: 3 }),
    `, ${count(nChanges, "change")})`,
  );
}

/** @param {string[]} broken */
function brokenNode(broken) {
  return h(
    "div",
    { class: "broken", "data-test": "whatif-broken" },
    h("p", null, icon("warn"), "Breaks these constraints:"),
    h(
      "ul",
      null,
      broken.map((rule) => h("li", { dir: "auto" }, clip(rule, 300))),
    ),
  );
}

/** Use the trial as the row. */
function adopt() {
  const { label, base } = state.row;
  setRow({ label: asEdited(label), cells: trial.cells, base });
  announce("The trial is the new row.");
  show("row");
}
