// @ts-check
// Answers side by side, also of several questions: a table, and a chart on the features' scales.
import { getQuestion } from "./api.js";
import { badge } from "./badge.js";
import { chartBox, draw as drawChart, plain } from "./charts.js";
import { crossButton, fill, h, uid } from "./dom.js";
import { axis, isScale, levelOf, levelsOf, place } from "./features.js";
import { clip, count, name, num, percentile, shown, cell as text } from "./format.js";
import { emit, on, state } from "./state.js";

/**
 * @import { Answer, Cell, Child, Colours, Compared, Counterfactual, Feature, Question } from "./types.js"
 */

/** @typedef {Compared & {question: Question, answer: Answer, found: Counterfactual}} Item */

const SYMBOLS = [
  "circle",
  "square",
  "diamond",
  "triangle-up",
  "star",
  "hexagon",
  "cross",
  "pentagon",
  "x",
  "star-square",
];

/**
 * Questions by id, so that each is requested once.
 * @type {Map<number, Question>}
 */
const questions = new Map();

/**
 * Return whether an answer is compared.
 * @param {number} id
 * @param {number} index
 */
export const isCompared = (id, index) =>
  state.compare.some((one) => one.id === id && one.index === index);

/**
 * Add an answer to the comparison, or remove it.
 * @param {number} id
 * @param {number} index
 */
export function toggleCompare(id, index) {
  const others = state.compare.filter((one) => one.id !== id || one.index !== index);
  const extended = [...state.compare, { id, index }].slice(-SYMBOLS.length);
  state.compare = isCompared(id, index) ? others : extended;
  emit("compare");
}

/**
 * Compare these answers and no others.
 * @param {Compared[]} items
 */
export function setCompared(items) {
  state.compare = items.slice(0, SYMBOLS.length);
  emit("compare");
}

/**
 * Return a question with its answer.
 * @param {number} id
 */
async function loadQuestion(id) {
  const { question } = state;
  if (question?.id === id && question.answer) questions.set(id, question);
  const found = questions.get(id) ?? (await getQuestion(id));
  questions.set(id, found);
  return found;
}

/**
 * Return the compared answers that still exist.
 * @returns {Promise<Item[]>}
 */
async function loadItems() {
  const items = [];
  for (const one of state.compare) {
    try {
      const question = await loadQuestion(one.id);
      const { answer } = question;
      const found = answer?.counterfactuals[one.index];
      if (answer && found) items.push({ ...one, question, answer, found });
    } catch {
      // Deleted since: it can no longer be compared.
    }
  }
  return items;
}

/** Build the comparison. */
export function comparePanel() {
  const table = h("div", { class: "wide-table" });
  const label = "The compared answers on the scales of the features they change";
  const chart = chartBox(label, "compare-chart", 300);
  const every = h("input", { type: "checkbox", id: uid("all"), onchange: draw });
  const title = uid("compare");
  const clear = {
    class: "quiet",
    "data-test": "compare-clear",
    onclick: () => setCompared([]),
  };
  const node = h(
    "section",
    { class: "panel", hidden: true, "aria-labelledby": title, "data-test": "comparison" },
    h(
      "div",
      { class: "row spread middle" },
      h("h2", { id: title }, "Side by side"),
      h(
        "div",
        { class: "row tight middle" },
        h("label", { class: "switch", for: every.id }, every, "all features"),
        h("button", clear, "Clear"),
      ),
    ),
    table,
    h("h3", null, "On the features’ own scales"),
    chart,
  );
  let nDrawn = 0; // an earlier draw whose questions come late is dropped

  async function draw() {
    nDrawn += 1;
    const mine = nDrawn;
    const items = await loadItems();
    if (mine !== nDrawn) return;
    node.hidden = items.length === 0;
    if (!items.length) return;
    const { features } = state.site;
    const changed = features.filter((f) => items.some(({ found }) => changeOf(found, f)));
    fill(table, compareTable(items, every.checked ? features : changed));
    drawScales(chart, items, changed);
  }

  on("compare question", draw);
  return node;
}

/**
 * @param {Counterfactual} found
 * @param {Feature} feature
 */
const changeOf = (found, feature) => found.changes.find((change) => change.name === feature.name);

/** @param {Item[]} items */
const hasSeveralQuestions = (items) => new Set(items.map(({ id }) => id)).size > 1;

/**
 * @param {Item[]} items
 * @param {Item} item
 */
const label = (items, { id, index }) =>
  hasSeveralQuestions(items) ? `Question ${id}, answer ${index + 1}` : `Answer ${index + 1}`;

/**
 * Return the column title of an answer.
 * @param {Item[]} items
 * @param {Item} item
 */
function columnTitle(items, item) {
  const title = label(items, item);
  const question = h("span", { class: "hint" }, clip(item.question.title, 60));
  const remove = crossButton(`Remove ${title} from the comparison`, () =>
    toggleCompare(item.id, item.index),
  );
  const hint = hasSeveralQuestions(items) ? question : null;
  return h("th", { scope: "col" }, h("div", null, h("span", null, title, hint), remove));
}

/**
 * Return the present value of a feature, if all compared questions have the same.
 * @param {Item[]} items
 * @param {Feature} feature
 */
function queryCell(items, feature) {
  const cells = items.map(({ answer }) => answer.query[feature.name]);
  const isShared = cells.every((cell) => cell === cells[0]);
  return isShared ? shown(cells[0]) : "differs";
}

/**
 * @param {Counterfactual} found
 * @param {Feature} feature
 */
function changeCell(found, feature) {
  const change = changeOf(found, feature);
  if (!change) return h("td", { class: "soft" }, "–");
  const title = clip(change.after ?? "missing", 1000);
  const after = h("bdi", { class: "cell", dir: "auto", title }, clip(change.after_text, 80));
  return h("td", { class: "changed" }, h("span", { class: "hidden" }, "becomes "), after);
}

/**
 * Return the table of compared answers.
 * @param {Item[]} items
 * @param {Feature[]} features
 */
function compareTable(items, features) {
  /**
   * @param {string} title
   * @param {(found: Counterfactual) => Child} value
   */
  const line = (title, value) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, title),
      h("td"),
      items.map(({ found }) => h("td", null, value(found))),
    );
  /** @param {Feature} feature */
  const featureLine = (feature) =>
    h(
      "tr",
      null,
      h("th", { scope: "row" }, name(feature.name)),
      h("td", { class: "soft" }, queryCell(items, feature)),
      items.map(({ found }) => changeCell(found, feature)),
    );
  return h(
    "table",
    { class: "compare", "data-test": "compare-table" },
    h("caption", { class: "hidden" }, "Answers side by side"),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, h("span", { class: "hidden" }, "feature")),
        h("th", { scope: "col" }, "now"),
        items.map((item) => columnTitle(items, item)),
      ),
    ),
    h("tbody", null, features.map(featureLine)),
    h(
      "tfoot",
      null,
      h(
        "tr",
        { class: "sum" },
        h("th", { scope: "row" }, name(state.site.output.name)),
        h("td", null, hasSeveralQuestions(items) ? "" : num(items[0].answer.output)),
        items.map(({ found, answer }) => {
          const others = found.valid ? [] : answer.wanted.flat();
          return h("td", null, num(found.output, { others }));
        }),
      ),
      line("result", (found) => badge(found.valid ? "reached" : "best_guess")),
      line("cost", (found) => num(found.cost, { digits: 3 })),
      line("distance", (found) => num(found.distance, { digits: 3 })),
      line("changes", (found) => count(found.n_changes, "feature")),
      line("plausibility", (found) =>
        found.plausibility === null ? "–" : percentile(found.plausibility),
      ),
    ),
  );
}

/**
 * Return the place of a cell on its feature's scale, between 0 and 1.
 * @param {Feature} feature
 * @param {Cell} cell
 */
function scalePlace(feature, cell) {
  if (isScale(feature)) {
    const scale = axis(feature);
    return scale === null ? null : place(feature, scale, cell);
  }
  const last = levelsOf(feature).length - 1;
  return last > 0 ? levelOf(feature, cell) / last : 0.5;
}

/**
 * @param {Feature} feature
 * @param {string} word
 * @param {Cell} cell
 */
const hoverText = (feature, word, cell) =>
  `${plain(feature.name)}<br>${word}: ${plain(text(cell))}`;

/**
 * Return the markers of the query.
 * @param {Answer} answer
 * @param {Feature[]} features
 * @param {Colours} colour
 */
function queryTrace({ query }, features, colour) {
  const line = { width: 2, color: colour.ink };
  return {
    x: features.map((f) => scalePlace(f, query[f.name])),
    y: features.map((_, k) => k),
    mode: "markers",
    name: "now",
    marker: { symbol: "line-ns-open", size: 22, color: colour.ink, line },
    hoverinfo: "text",
    text: features.map((f) => hoverText(f, "now", query[f.name])),
  };
}

/**
 * Return the markers of one answer, shifted so that answers lie beside each other.
 * @param {Item[]} items
 * @param {number} k
 * @param {Feature[]} features
 * @param {Colours} colour
 */
function answerTrace(items, k, features, colour) {
  const { found } = items[k];
  const palette = [colour.accent, colour.miss, colour.good, colour.second, colour.soft];
  const shift = ((k - (items.length - 1) / 2) * 0.5) / Math.max(items.length, 3);
  const title = plain(label(items, items[k]));
  return {
    x: features.map((f) => (changeOf(found, f) ? scalePlace(f, found.cells[f.name]) : null)),
    y: features.map((_, row) => row + shift),
    mode: "markers",
    name: title,
    hoverinfo: "text",
    marker: {
      symbol: SYMBOLS[k],
      size: 12,
      color: palette[k % palette.length],
      line: { width: 1, color: colour.card },
    },
    text: features.map((f) => hoverText(f, title, found.cells[f.name])),
  };
}

/**
 * Draw the compared answers on the scales of the changed features.
 * @param {HTMLElement} node
 * @param {Item[]} items
 * @param {Feature[]} features
 */
function drawScales(node, items, features) {
  const height = Math.max(160, 44 * features.length + 90);
  node.style.height = `${height}px`;
  drawChart(node, (colour) => ({
    data: [
      queryTrace(items[0].answer, features, colour),
      ...items.map((_, k) => answerTrace(items, k, features, colour)),
    ],
    layout: {
      height,
      showlegend: true,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
      xaxis: {
        range: [-0.04, 1.04],
        tickvals: [0, 1],
        ticktext: ["lowest or first", "highest or last"],
      },
      yaxis: {
        tickvals: features.map((_, k) => k),
        ticktext: features.map((f) => plain(f.name, 22)),
        range: [features.length - 0.5, -0.5],
      },
      margin: { l: 120, r: 24, t: 36, b: 32 },
    },
  }));
}
