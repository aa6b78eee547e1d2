// The response curve of one feature: the surrogate's mean and band against the true model.
import { curve as askCurve, newest } from "./api.js";
import { chartBox, draw as drawChart, plain, rangeOf, wantedShapes } from "./charts.js";
import { debounce, fill, h, icon } from "./dom.js";
import { clip, count, name, number } from "./format.js";
import { on, state } from "./state.js";

const asked = newest(askCurve);

/** Build the curve: {node, follow(cells, feature)}. */
export function curvePanel() {
  const chart = chartBox("Response curve", "curve-chart", 300);
  const title = h("h3");
  const note = h("p", { class: "hint", "data-test": "curve-note" });
  const button = h("button", { hidden: true, "data-test": "curve-ask", onclick: () => load(true) });
  const node = h("div", { class: "curve", "data-test": "curve" }, title, chart, h("div", { class: "row middle" }, button, note));
  let cells = null, feature = null;

  async function load(ask) {
    if (!cells || feature === null) return;
    try {
      const question = state.question?.state === "done" ? state.question.id : null;
      const found = await asked({ cells, feature, question, ask });
      if (found) draw(found);
    } catch (error) {
      fill(note, h("span", { class: "wrong", dir: "auto" }, clip(error.message, 400)));
      button.hidden = true;
    }
  }
  const soon = debounce(() => load(state.site.local), 250);

  function draw(found) {
    const n = found.values.length;
    button.hidden = found.model !== null;
    fill(button, icon("play"), `Ask the true model (${count(n, "row")})`);
    const signs = found.numeric ? ["Line and band", "Dotted"] : ["Bars", "Dots"];
    const band = found.mean ? `${signs[0]}: what the search has learnt, with two deviations.` : "No search has learnt anything for this curve yet.";
    const model = found.model ? ` ${signs[1]}: the true model${found.rows ? `, ${count(found.rows, "row")} asked` : ""}.` : "";
    fill(note, band + model);
    chart.setAttribute("aria-label", described(found));
    drawChart(chart, (colour) => figure(found, colour));
  }

  on("question", () => soon());
  return {
    node,
    follow(newCells, newFeature) {
      cells = newCells;
      if (feature !== newFeature) fill(title, "If only ", name(newFeature), " changes");
      feature = newFeature;
      soon();
    },
  };
}

function described(found) {
  const outputs = (found.model ?? found.mean ?? []).filter(Number.isFinite);
  const span = outputs.length ? `, outputs from ${number(Math.min(...outputs))} to ${number(Math.max(...outputs))}` : "";
  return `Response curve of ${clip(found.feature, 80)}${span}`;
}

function figure(found, colour) {
  const { x, texts, model, mean, low, high, numeric, at } = found;
  const hover = (word, values) => values.map((y, k) => `${plain(texts[k])}<br>${word} ${number(y)}`);
  const dots = numeric ? (x.length > 40 ? "lines" : "lines+markers") : "markers";
  const data = [];
  if (mean && low && high) {
    const spread = { type: "data", symmetric: false, array: high.map((y, k) => y - mean[k]), arrayminus: low.map((y, k) => mean[k] - y), color: colour.second, thickness: 1.5, width: 5 };
    const there = [...x, ...[...x].reverse()], round = [...high, ...[...low].reverse()];
    if (numeric) data.push({ x: there, y: round, fill: "toself", fillcolor: colour.veil, line: { width: 0 }, hoverinfo: "skip", name: "its band", mode: "lines" });
    data.push({
      x, y: mean, mode: numeric ? "lines" : "markers", error_y: numeric ? undefined : spread, name: "surrogate", hoverinfo: "text", text: hover("surrogate", mean),
      line: { color: colour.second, width: 2 }, marker: { color: colour.second, symbol: "line-ew-open", size: 16, line: { width: 2 } },
    });
  }
  if (model) data.push({
    x, y: model, mode: dots, name: "true model", hoverinfo: "text", text: hover("model", model),
    line: { color: colour.accent, width: 2, dash: "dot" }, marker: { color: colour.accent, size: 7 },
  });
  if (found.seen?.length) data.push({
    x: found.seen.map((p) => p[0]), y: found.seen.map((p) => p[1]), mode: "markers", name: "rows seen", hoverinfo: "y",
    marker: { symbol: "circle-open", color: colour.soft, size: 6 },
  });
  const here = { type: "line", yref: "paper", y0: 0, y1: 1, x0: x[at], x1: x[at], line: { color: colour.ink, width: 1.5, dash: "dash" } };
  const outputs = [...(model ?? []), ...(mean ?? []), ...(low ?? []), ...(high ?? [])];
  const ticks = ticksOf(found);
  const range = outputs.length ? rangeOf([...outputs, ...near(outputs)]) : [0, 1];
  return {
    data,
    layout: {
      showlegend: true, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
      xaxis: { ...ticks, range: numeric ? undefined : [Math.min(...x) - 0.5, Math.max(...x) + 0.5] },
      yaxis: { title: { text: plain(state.site.output.name, 24) }, range },
      shapes: [...wantedShapes(state.goal.wanted, colour, range), ...(Number.isFinite(x[at]) ? [here] : [])],
      margin: { l: 56, r: 16, t: 30, b: 44 },
    },
  };
}

/** Return ends of the goal that are near enough to be shown with these outputs. */
function near(outputs) {
  const low = Math.min(...outputs), high = Math.max(...outputs), far = 1.5 * (high - low);
  return (state.goal.wanted ?? []).flat().filter((end) => end !== null && end > low - far && end < high + far);
}

function ticksOf({ x, texts, numeric }) {
  if (numeric && texts.every((t) => t !== "" && Number.isFinite(Number(t)))) return {};
  const every = Math.ceil(x.length / (numeric ? 5 : 16));
  const kept = x.map((_, k) => k).filter((k) => k % every === 0);
  return { tickvals: kept.map((k) => x[k]), ticktext: kept.map((k) => plain(texts[k], 16)) };
}
