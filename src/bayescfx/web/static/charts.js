// @ts-check
// Charts by Plotly, in the page's colours; every text from the data is escaped for it.
import { fill, h } from "./dom.js";
import { clip, number } from "./format.js";
import { isStale, state } from "./state.js";

/** @import { Colours, Figure, Interval, Question, Step } from "./types.js" */

/** @typedef {(colour: Colours) => Figure} FigureMaker */

/**
 * The figures that are drawn, to draw them again in other colours.
 * @type {Map<HTMLElement, FigureMaker>}
 */
const charts = new Map();

const COLOURS = [
  "ink",
  "soft",
  "paper",
  "card",
  "line",
  "accent",
  "good",
  "miss",
  "band",
  "wash",
  "second",
  "veil",
];

/**
 * Return a text that Plotly shows literally: its markup is escaped.
 * @param {unknown} text
 * @param {number} [length]
 */
export function plain(text, length = 40) {
  const line = (String(text).trim() || "(no name)").replace(/\s+/g, " ");
  return clip(line, length)
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/\$/g, "&#36;");
}

/** @returns {Colours} */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLOURS.map((key) => [key, style.getPropertyValue(`--${key}`).trim()]));
}

/**
 * Return the box of a chart, with a label for screen readers.
 * @param {string} label
 * @param {string} test
 * @param {number} height  in pixels
 */
export const chartBox = (label, test, height) =>
  h("div", {
    class: "chart",
    role: "img",
    "aria-label": label,
    "data-test": test,
    style: { height: `${height}px` },
  });

/** Wait until the page, and with it Plotly, is loaded. */
const whenLoaded = () =>
  new Promise((resolve) => {
    if (document.readyState === "complete") resolve(null);
    else addEventListener("load", () => resolve(null));
  });

/**
 * Return a layout with the page's fonts and colours.
 * @param {Record<string, unknown>} layout
 * @param {Colours} colour
 * @param {number} height
 */
function styledLayout(layout, colour, height) {
  const font = { color: colour.soft };
  const axis = {
    gridcolor: colour.line,
    linecolor: colour.line,
    zeroline: false,
    tickfont: font,
    automargin: true,
    fixedrange: true,
  };
  /** @type {Record<string, unknown>} */
  const styled = {
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour.ink },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 56, r: 16, t: 8, b: 44 },
    showlegend: false,
    hovermode: "closest",
    dragmode: false,
    separators: ". ",
    height,
    hoverlabel: {
      bgcolor: colour.card,
      bordercolor: colour.line,
      font: { color: colour.ink },
    },
    ...layout,
  };
  for (const key of Object.keys(layout).filter((k) => /^[xy]axis\d*$/.test(k))) {
    const given = /** @type {{title?: object}} */ (layout[key]);
    styled[key] = { ...axis, ...given, title: { ...given.title, font } };
  }
  return styled;
}

/**
 * Draw a figure into a node, and again when the colours change.
 * @param {HTMLElement} node
 * @param {FigureMaker} figure
 */
export async function draw(node, figure) {
  charts.set(node, figure);
  if (!window.Plotly) await whenLoaded();
  if (charts.get(node) !== figure) return;
  if (!window.Plotly) {
    fill(node, h("p", { class: "soft" }, "Charts need Plotly, which the server does not have."));
    return;
  }
  const colour = readColours();
  const { data, layout } = figure(colour);
  const styled = styledLayout(layout, colour, node.clientHeight || 260);
  const config = { displayModeBar: false, responsive: true, doubleClick: false };
  await window.Plotly.react(node, data, styled, config);
}

/** Draw all charts again, in the present colours. */
export function recolour() {
  for (const [node, figure] of charts) {
    if (node.isConnected) {
      draw(node, figure);
      continue;
    }
    charts.delete(node);
    window.Plotly?.purge(node);
  }
}

/**
 * Return shapes of the target across a chart.
 * @param {Interval[] | null | undefined} wanted
 * @param {Colours} colour
 * @param {[number, number]} range  of the outputs
 */
export function targetShapes(wanted, colour, [bottom, top]) {
  const across = { xref: "paper", x0: 0, x1: 1, yref: "y", layer: "below" };
  const line = { color: colour.good, width: 1.5, dash: "dot" };
  return (wanted ?? []).flatMap(([low, high]) => {
    const ends = [low, high].filter((end) => end !== null && end >= bottom && end <= top);
    const lines = ends.map((end) => ({ ...across, type: "line", y0: end, y1: end, line }));
    const y0 = Math.max(low ?? bottom, bottom);
    const y1 = Math.min(high ?? top, top);
    if (!(y1 > y0)) return lines.slice(0, 1);
    const fillcolor = colour.band;
    const band = { ...across, type: "rect", y0, y1, fillcolor, opacity: 0.5, line: { width: 0 } };
    return [band, ...lines];
  });
}

/**
 * Return the range of an axis that shows some numbers.
 * @param {(number | null)[]} values
 * @param {number} [margin]  as a share of the range
 * @returns {[number, number]}
 */
export function rangeOf(values, margin = 0.08) {
  const finite = values.filter((value) => value !== null && Number.isFinite(value));
  const low = Math.min(.../** @type {number[]} */ (finite));
  const high = Math.max(.../** @type {number[]} */ (finite));
  const extra = (high - low || Math.abs(high) || 1) * margin;
  return [low - extra, high + extra];
}

/**
 * Return the steps of a search with the query's own output first: it is the first row scored.
 * @param {Question} question
 * @returns {Step[]}
 */
function pathOf(question) {
  const steps = question.steps ?? [];
  const first = question.answer?.output ?? (isStale() ? null : state.row.output);
  if (first === null || (steps.length && steps[0][0] <= 1)) return steps;
  return [[1, 0, first, false, 0, null], ...steps];
}

/**
 * Draw the course of a search: best output and potential over the rows scored.
 * @param {HTMLElement} node
 * @param {Question} question
 */
export function searchChart(node, question) {
  const steps = question.steps ?? [];
  const path = pathOf(question);
  const wanted = question.answer?.wanted ?? state.target.wanted ?? [];
  const title = state.site.output.name;
  const rows = path.map(([row]) => row);
  const outputs = path.map(([, , output]) => output);
  const range = rangeOf([...outputs, ...wanted.flat()]);
  const best = path.map(
    ([row, , output, isReached]) =>
      `row ${row}<br>best ${plain(title)} ${number(output)}${isReached ? "<br>reached" : ""}`,
  );
  const potentials = steps.map(([row, value]) => `row ${row}<br>potential ${number(value, 3)}`);
  /** @param {string} color */
  const stairs = (color) => ({
    mode: "lines",
    line: { shape: "hv", color, width: 2 },
    hoverinfo: "text",
  });
  draw(node, (colour) => ({
    data: [
      { x: rows, y: outputs, text: best, ...stairs(colour.accent) },
      {
        x: steps.map(([row]) => row),
        y: steps.map(([, value]) => value),
        yaxis: "y2",
        text: potentials,
        ...stairs(colour.second),
      },
    ],
    layout: {
      xaxis: {
        title: { text: "rows scored" },
        anchor: "y2",
        range: [0, Math.max(10, (rows.at(-1) ?? 0) * 1.02)],
      },
      yaxis: { domain: [0.55, 1], title: { text: plain(`best ${title}`, 16) }, range },
      yaxis2: { domain: [0, 0.45], title: { text: "potential" }, range: [-0.05, 1.08] },
      shapes: targetShapes(wanted, colour, range),
    },
  }));
}
