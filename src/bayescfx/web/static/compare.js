// Answers side by side, also of several questions: a table of what differs, and a chart on the features' scales.
import { question as askQuestion } from "./api.js";
import { badge } from "./badge.js";
import { chartBox, draw as drawChart, plain } from "./charts.js";
import { crossButton, fill, h, uid } from "./dom.js";
import { axis, isScale, levelOf, place } from "./features.js";
import { cell as text, clip, count, name, num, percent, shown } from "./format.js";
import { emit, on, state } from "./state.js";

const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "star", "hexagon", "cross", "pentagon", "x", "star-square"];
const known = new Map(); // questions by id

/** Return whether an answer is being compared. */
export const isCompared = (id, index) => state.compare.some((one) => one.id === id && one.index === index);

/** Compare an answer, or no longer. */
export function toggleCompare(id, index) {
  state.compare = isCompared(id, index) ? state.compare.filter((one) => one.id !== id || one.index !== index) : [...state.compare, { id, index }].slice(-SYMBOLS.length);
  emit("compare");
}

/** Compare these answers and no others. */
export function compareOnly(items) {
  state.compare = items.slice(0, SYMBOLS.length);
  emit("compare");
}

async function load(id) {
  if (state.question?.id === id && state.question.answer) known.set(id, state.question);
  if (!known.has(id)) known.set(id, await askQuestion(id));
  return known.get(id);
}

/** Build the comparison: {node}. */
export function comparePanel() {
  const table = h("div", { class: "wide-table" });
  const chart = chartBox("The compared answers on the scales of the features they change", "compare-chart", 300);
  const every = h("input", { type: "checkbox", id: uid("all"), onchange: draw });
  const title = uid("compare");
  const node = h("section", { class: "panel", hidden: true, "aria-labelledby": title, "data-test": "comparison" },
    h("div", { class: "row spread middle" }, h("h2", { id: title }, "Side by side"),
      h("div", { class: "row tight middle" }, h("label", { class: "switch", for: every.id }, every, "all features"),
        h("button", { class: "quiet", "data-test": "compare-clear", onclick: () => compareOnly([]) }, "Clear"))),
    table, h("h3", null, "On the features’ own scales"), chart);
  let turn = 0;

  async function draw() {
    const mine = ++turn;
    const items = [];
    for (const one of state.compare) {
      try {
        const question = await load(one.id);
        const found = question.answer?.counterfactuals[one.index];
        if (found) items.push({ ...one, question, found });
      } catch {
        // Deleted since: it can no longer be compared.
      }
    }
    if (mine !== turn) return;
    node.hidden = items.length === 0;
    if (!items.length) return;
    const changed = state.site.features.filter((f) => items.some(({ found }) => changeOf(found, f)));
    fill(table, tableOf(items, every.checked ? state.site.features : changed));
    plotOf(chart, items, changed);
  }

  on("compare question", draw);
  return { node };
}

const changeOf = (found, feature) => found.changes.find((change) => change.name === feature.name);
const several = (items) => new Set(items.map(({ id }) => id)).size > 1;
const label = (items, { question, index }) => (several(items) ? `Question ${question.id}, answer ${index + 1}` : `Answer ${index + 1}`);

function headOf(items, item) {
  const which = label(items, item);
  const question = several(items) ? h("span", { class: "hint" }, clip(item.question.words, 60)) : null;
  const away = crossButton(`Take ${which} out of the comparison`, () => toggleCompare(item.id, item.index));
  return h("th", { scope: "col" }, h("div", null, h("span", null, which, question), away));
}

function tableOf(items, features) {
  const cells = (word, value) => h("tr", null, h("th", { scope: "row" }, word), h("td"), items.map((item) => h("td", null, value(item))));
  const first = items[0].question.answer;
  const whatNow = (f) => (several(items) && items.some(({ question }) => question.answer.query[f.name] !== first.query[f.name]) ? "differs" : shown(first.query[f.name]));
  return h("table", { class: "compare", "data-test": "compare-table" },
    h("caption", { class: "hidden" }, "Answers side by side"),
    h("thead", null, h("tr", null, h("th", { scope: "col" }, h("span", { class: "hidden" }, "feature")), h("th", { scope: "col" }, "now"),
      items.map((item) => headOf(items, item)))),
    h("tbody", null,
      features.map((f) => h("tr", null, h("th", { scope: "row" }, name(f.name)), h("td", { class: "soft" }, whatNow(f)), items.map(({ found }) => {
        const change = changeOf(found, f);
        if (!change) return h("td", { class: "soft" }, "–");
        const after = h("bdi", { class: "cell", dir: "auto", title: clip(change.after ?? "missing", 1000) }, clip(change.after_text, 80));
        return h("td", { class: "changed" }, h("span", { class: "hidden" }, "becomes "), after);
      })))),
    h("tfoot", null,
      h("tr", { class: "sum" }, h("th", { scope: "row" }, name(state.site.output.name)), h("td", null, several(items) ? "" : num(first.output)),
        items.map(({ found }) => h("td", null, num(found.output)))),
      cells("result", ({ found }) => badge(found.valid ? "reached" : "best_guess")),
      cells("cost", ({ found }) => num(found.cost, { digits: 3 })),
      cells("changes", ({ found }) => count(found.n_changes, "feature")),
      cells("plausibility", ({ found }) => (found.plausibility === null ? "–" : `above ${percent(found.plausibility)} of the training rows`))));
}

function where(feature, cell) {
  if (!isScale(feature)) return feature.levels.length > 1 ? levelOf(feature, cell) / (feature.levels.length - 1) : 0.5;
  const scale = axis(feature);
  return scale === null ? null : place(feature, scale, cell);
}

function plotOf(node, items, features) {
  const height = Math.max(160, 44 * features.length + 90);
  node.style.height = `${height}px`;
  const rows = features.map((_, k) => k);
  const hover = (f, word, cell) => `${plain(f.name)}<br>${word}: ${plain(text(cell))}`;
  drawChart(node, (colour) => {
    const palette = [colour.accent, colour.miss, colour.good, colour.second, colour.soft];
    const query = items[0].question.answer.query;
    const now = { symbol: "line-ns-open", size: 22, color: colour.ink, line: { width: 2, color: colour.ink } };
    const moved = (found, f) => (changeOf(found, f) ? where(f, found.cells[f.name]) : null);
    const apart = (k) => ((k - (items.length - 1) / 2) * 0.5) / Math.max(items.length, 3); // signs beside each other
    return {
      data: [
        { x: features.map((f) => where(f, query[f.name])), y: rows, mode: "markers", name: "now", marker: now, hoverinfo: "text",
          text: features.map((f) => hover(f, "now", query[f.name])) },
        ...items.map((item, k) => ({
          x: features.map((f) => moved(item.found, f)), y: rows.map((y) => y + apart(k)),
          mode: "markers", name: plain(label(items, item)), hoverinfo: "text",
          marker: { symbol: SYMBOLS[k], size: 12, color: palette[k % palette.length], line: { width: 1, color: colour.card } },
          text: features.map((f) => hover(f, plain(label(items, item)), item.found.cells[f.name])),
        })),
      ],
      layout: {
        height, showlegend: true, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
        xaxis: { range: [-0.04, 1.04], tickvals: [0, 1], ticktext: ["lowest or first", "highest or last"] },
        yaxis: { tickvals: rows, ticktext: features.map((f) => plain(f.name, 22)), range: [features.length - 0.5, -0.5] },
        margin: { l: 120, r: 24, t: 36, b: 32 },
      },
    };
  });
}
