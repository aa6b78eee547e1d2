// @ts-check
// The response curve of one feature: the surrogate's mean and band against the model.
import { asApiError, getCurve, latest } from "./api.js";
import { chartBox, draw as drawChart, plain, rangeOf, targetShapes } from "./charts.js";
import { debounce, fill, h, icon } from "./dom.js";
import { clip, count, name, number } from "./format.js";
import { on, state } from "./state.js";

/** @import { Cells, Colours, Curve, Figure } from "./types.js" */

const requestCurve = latest(getCurve);
const MANY_POINTS = 40; // more points are drawn without markers

/** Build the curve: {node, follow(cells, feature)}. */
export function curvePanel() {
  const chart = chartBox("Response curve", "curve-chart", 300);
  const title = h("h3");
  const note = h("p", { class: "hint", "data-test": "curve-note" });
  const button = h("button", { hidden: true, "data-test": "curve-ask", onclick: () => load(true) });
  const row = h("div", { class: "row middle" }, button, note);
  const node = h("div", { class: "curve", "data-test": "curve" }, title, chart, row);
  /** @type {Cells | null} */
  let cells = null;
  /** @type {string | null} */
  let feature = null;

  /** @param {boolean} score  whether the model scores the rows of the curve */
  async function load(score) {
    if (!cells || feature === null) return;
    try {
      const question = state.question?.state === "done" ? state.question.id : null;
      const curve = await requestCurve({ cells, feature, question, score });
      if (curve) draw(curve);
    } catch (thrown) {
      const { message } = asApiError(thrown);
      fill(note, h("span", { class: "wrong", dir: "auto" }, clip(message, 400)));
      button.hidden = true;
    }
  }
  const loadSoon = debounce(() => load(state.site.local), 250);

  /** @param {Curve} curve */
  function draw(curve) {
    button.hidden = curve.model !== null;
    fill(button, icon("play"), `Score the curve with the model (${count(curve.x.length, "row")})`);
    fill(note, noteText(curve));
    chart.setAttribute("aria-label", labelText(curve));
    drawChart(chart, (colour) => curveFigure(curve, colour));
  }

  on("question", () => loadSoon());

  /**
   * @param {Cells} newCells
   * @param {string} newFeature
   */
  function follow(newCells, newFeature) {
    cells = newCells;
    if (feature !== newFeature) fill(title, "If only ", name(newFeature), " changes");
    feature = newFeature;
    loadSoon();
  }
  return { node, follow };
}

/** @param {Curve} curve */
function noteText({ numeric, mean, model, n_rows: nRows }) {
  const [bandSign, modelSign] = numeric ? ["Line and band", "Dotted"] : ["Bars", "Dots"];
  const band = mean
    ? `${bandSign}: the surrogate, with two standard deviations.`
    : "No search has fitted a surrogate for this curve yet.";
  const scored = nRows ? `, ${count(nRows, "row")} scored` : "";
  return model ? `${band} ${modelSign}: the model${scored}.` : band;
}

/** @param {Curve} curve */
function labelText({ feature, model, mean }) {
  const outputs = (model ?? mean ?? []).filter((y) => y !== null && Number.isFinite(y));
  const numbers = /** @type {number[]} */ (outputs);
  const low = number(Math.min(...numbers));
  const high = number(Math.max(...numbers));
  const range = numbers.length ? `, outputs from ${low} to ${high}` : "";
  return `Response curve of ${clip(feature, 80)}${range}`;
}

/**
 * Return the hover texts along a curve.
 * @param {Curve} curve
 * @param {string} word
 * @param {(number | null)[]} values
 */
const hoverTexts = ({ texts }, word, values) =>
  values.map((y, k) => `${plain(texts[k])}<br>${word} ${number(y)}`);

/**
 * Return the traces of the surrogate: a band and its mean, or bars at the levels.
 * @param {Curve} curve
 * @param {Colours} colour
 * @returns {object[]}
 */
function surrogateTraces(curve, colour) {
  const { x, mean, low, high, numeric } = curve;
  if (!mean || !low || !high) return [];
  const band = {
    x: [...x, ...[...x].reverse()],
    y: [...high, ...[...low].reverse()],
    fill: "toself",
    fillcolor: colour.veil,
    line: { width: 0 },
    hoverinfo: "skip",
    name: "its band",
    mode: "lines",
  };
  const bars = {
    type: "data",
    symmetric: false,
    array: high.map((y, k) => y - mean[k]),
    arrayminus: low.map((y, k) => mean[k] - y),
    color: colour.second,
    thickness: 1.5,
    width: 5,
  };
  const line = {
    x,
    y: mean,
    mode: numeric ? "lines" : "markers",
    error_y: numeric ? undefined : bars,
    name: "surrogate",
    hoverinfo: "text",
    text: hoverTexts(curve, "surrogate", mean),
    line: { color: colour.second, width: 2 },
    marker: { color: colour.second, symbol: "line-ew-open", size: 16, line: { width: 2 } },
  };
  return numeric ? [band, line] : [line];
}

/**
 * Return the traces of the model and of the rows that the search has scored.
 * @param {Curve} curve
 * @param {Colours} colour
 * @returns {object[]}
 */
function modelTraces(curve, colour) {
  const { x, model, numeric, seen } = curve;
  const lines = x.length > MANY_POINTS ? "lines" : "lines+markers";
  const traces = [];
  if (model) {
    traces.push({
      x,
      y: model,
      mode: numeric ? lines : "markers",
      name: "model",
      hoverinfo: "text",
      text: hoverTexts(curve, "model", model),
      line: { color: colour.accent, width: 2, dash: "dot" },
      marker: { color: colour.accent, size: 7 },
    });
  }
  if (seen.length) {
    traces.push({
      x: seen.map(([at]) => at),
      y: seen.map(([, output]) => output),
      mode: "markers",
      name: "scored rows",
      hoverinfo: "y",
      marker: { symbol: "circle-open", color: colour.soft, size: 6 },
    });
  }
  return traces;
}

/**
 * @param {Curve} curve
 * @param {Colours} colour
 * @returns {Figure}
 */
function curveFigure(curve, colour) {
  const { x, model, mean, low, high, numeric, at } = curve;
  const all = [...(model ?? []), ...(mean ?? []), ...(low ?? []), ...(high ?? [])];
  const outputs = all.filter((y) => y !== null);
  /** @type {[number, number]} */
  const range = outputs.length ? rangeOf([...outputs, ...nearEnds(outputs)]) : [0, 1];
  const here = {
    type: "line",
    yref: "paper",
    y0: 0,
    y1: 1,
    x0: at === null ? null : x[at],
    x1: at === null ? null : x[at],
    line: { color: colour.ink, width: 1.5, dash: "dash" },
  };
  const sides = [Math.min(...x) - 0.5, Math.max(...x) + 0.5];
  return {
    data: [...surrogateTraces(curve, colour), ...modelTraces(curve, colour)],
    layout: {
      showlegend: true,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
      xaxis: { ...tickTexts(curve), range: numeric ? undefined : sides },
      yaxis: { title: { text: plain(state.site.output.name, 24) }, range },
      shapes: [...targetShapes(state.target.wanted, colour, range), ...(at === null ? [] : [here])],
      margin: { l: 56, r: 16, t: 30, b: 44 },
    },
  };
}

/**
 * Return the ends of the target that are near enough to be shown with these outputs.
 * @param {number[]} outputs
 */
function nearEnds(outputs) {
  const low = Math.min(...outputs);
  const high = Math.max(...outputs);
  const room = 1.5 * (high - low);
  const ends = (state.target.wanted ?? []).flat();
  return ends.filter((end) => end !== null && end > low - room && end < high + room);
}

/**
 * Return the ticks of an axis whose texts are not numbers.
 * @param {Pick<Curve, "x" | "texts" | "numeric">} curve
 */
export function tickTexts({ x, texts, numeric }) {
  const areNumbers = texts.every((t) => t !== "" && Number.isFinite(Number(t)));
  if (numeric && areNumbers) return {};
  const every = Math.ceil(x.length / (numeric ? 5 : 16));
  const kept = x.map((_, k) => k).filter((k) => k % every === 0);
  return { tickvals: kept.map((k) => x[k]), ticktext: kept.map((k) => plain(texts[k], 16)) };
}
