// Charts by Plotly, in the page's colours; every text from the data is escaped for it.
import { fill, h } from "./dom.js";
import { clip, number } from "./format.js";
import { isStale, state } from "./state.js";

const charts = new Map(); // node -> what was drawn, to be drawn anew in other colours

/** Return a text that Plotly shows as it is: its small markup is not interpreted. */
export const plain = (text, length = 40) =>
  clip((String(text).trim() || "(no name)").replace(/\s+/g, " "), length).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;");

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (key) => style.getPropertyValue(`--${key}`).trim();
  return Object.fromEntries(["ink", "soft", "paper", "card", "line", "accent", "good", "miss", "band", "wash", "second", "veil"].map((key) => [key, of(key)]));
}

/** Return a chart's place with words for those who don't see it. */
export const chartBox = (label, test, height) =>
  h("div", { class: "chart", role: "img", "aria-label": label, "data-test": test, style: { height: `${height}px` } });

const ready = new Promise((done) => {
  if (document.readyState === "complete") done();
  else addEventListener("load", () => done());
});

/** Draw `figure(colours) -> {data, layout}` into a node, and again when the colours change. */
export async function draw(node, figure) {
  charts.set(node, figure);
  if (!window.Plotly) await ready;
  if (charts.get(node) !== figure) return;
  if (!window.Plotly) {
    fill(node, h("p", { class: "soft" }, "Charts can't be drawn: the server has no Plotly library."));
    return;
  }
  const colour = colours();
  const { data, layout } = figure(colour);
  const soft = { color: colour.soft };
  const axis = { gridcolor: colour.line, linecolor: colour.line, zeroline: false, tickfont: soft, title: { font: soft }, automargin: true, fixedrange: true };
  const merged = {
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour.ink }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 56, r: 16, t: 8, b: 44 }, showlegend: false, hovermode: "closest", dragmode: false, separators: ". ", height: node.clientHeight || 260,
    hoverlabel: { bgcolor: colour.card, bordercolor: colour.line, font: { color: colour.ink } }, ...layout,
  };
  for (const key of Object.keys(layout).filter((k) => /^[xy]axis\d*$/.test(k)))
    merged[key] = { ...axis, ...layout[key], title: { ...axis.title, ...layout[key].title, font: axis.title.font } };
  await window.Plotly.react(node, data, merged, { displayModeBar: false, responsive: true, doubleClick: false });
}

/** Take a chart away. */
export function drop(node) {
  charts.delete(node);
  window.Plotly?.purge(node);
}

/** Draw all charts anew, in the colours of now. */
export function recolour() {
  for (const [node, figure] of charts) {
    if (node.isConnected) draw(node, figure);
    else drop(node);
  }
}

/** Return shapes of what is wanted across a chart whose outputs go from `bottom` to `top`. */
export function wantedShapes(wanted, colour, [bottom, top]) {
  const across = { xref: "paper", x0: 0, x1: 1, yref: "y", layer: "below" };
  return (wanted ?? []).flatMap(([low, high]) => {
    const ends = [low, high].filter((end) => end !== null && end >= bottom && end <= top);
    const lines = ends.map((end) => ({ ...across, type: "line", y0: end, y1: end, line: { color: colour.good, width: 1.5, dash: "dot" } }));
    const y0 = Math.max(low ?? bottom, bottom), y1 = Math.min(high ?? top, top);
    if (!(y1 > y0)) return lines.slice(0, 1);
    return [{ ...across, type: "rect", y0, y1, fillcolor: colour.band, opacity: 0.5, line: { width: 0 } }, ...lines];
  });
}

/** Return a range of an axis that shows some numbers. */
export function rangeOf(values, margin = 0.08) {
  const seen = values.filter(Number.isFinite);
  const low = Math.min(...seen), high = Math.max(...seen), more = (high - low || Math.abs(high) || 1) * margin;
  return [low - more, high + more];
}

/** Draw how a search went: the best output against the goal, and the potential, over the rows used. */
export function searchChart(node, question) {
  const { steps } = question;
  const wanted = question.answer?.wanted ?? state.goal.wanted ?? [];
  const first = question.answer?.output ?? (isStale() ? null : state.row.output); // the row itself is scored first
  const known = first === null || steps[0]?.[0] <= 1 ? [] : [[1, null, first, false]];
  const path = [...known, ...steps];
  const rows = path.map((step) => step[0]), outputs = path.map((step) => step[2]);
  const name = state.site.output.name;
  const range = rangeOf([...outputs, ...wanted.flat().filter((y) => y !== null)]);
  const best = path.map((p) => `row ${p[0]}<br>best ${plain(name)} ${number(p[2])}${p[3] ? "<br>reached" : ""}`);
  const potential = steps.map((p) => `row ${p[0]}<br>potential ${number(p[1], 3)}`);
  const stairs = (color) => ({ mode: "lines", line: { shape: "hv", color, width: 2 }, hoverinfo: "text" });
  draw(node, (colour) => ({
    data: [
      { x: rows, y: outputs, text: best, ...stairs(colour.accent) },
      { x: steps.map((p) => p[0]), y: steps.map((p) => p[1]), yaxis: "y2", text: potential, ...stairs(colour.second) },
    ],
    layout: {
      xaxis: { title: { text: "rows of the model used" }, anchor: "y2", range: [0, Math.max(10, (rows.at(-1) ?? 0) * 1.02)] },
      yaxis: { domain: [0.55, 1], title: { text: plain(`best ${name}`, 16) }, range },
      yaxis2: { domain: [0, 0.45], title: { text: "potential" }, range: [-0.05, 1.08] },
      shapes: wantedShapes(wanted, colour, range),
    },
  }));
}
