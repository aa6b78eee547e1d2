// @ts-check
// A running search: best so far, gap to the target, rows and time used, place in the queue.
import { badge } from "./badge.js";
import { chartBox, searchChart } from "./charts.js";
import { announce, fact, fill, h, icon, throttle } from "./dom.js";
import { count, num, number, seconds } from "./format.js";
import { stop } from "./run.js";
import { on, state } from "./state.js";
import { gap } from "./targets.js";

/** @import { Child, Question } from "./types.js" */

const ANNOUNCE_PAUSE = 5000; // milliseconds between two announcements to screen readers

/** Build the panel of progress: {node, draw}. */
export function progressPanel() {
  const head = h("h2", { id: "progress-title", class: "badged" });
  const facts = h("dl", { class: "facts" });
  const bar = h("progress", {
    max: 1,
    value: 0,
    "data-test": "progress-bar",
    "aria-label": "Rows scored of the budget",
  });
  const label = "Best output and potential over the rows scored";
  const chart = chartBox(label, "potential-chart", 320);
  const stopButton = h(
    "button",
    { "data-test": "stop-here", onclick: stop },
    icon("stop"),
    "Stop and keep the best",
  );
  const node = h(
    "section",
    { class: "panel", "aria-labelledby": "progress-title", "data-test": "progress" },
    h("div", { class: "row spread middle" }, head, stopButton),
    bar,
    facts,
    chart,
  );
  let announced = 0;

  /** @param {Question} question */
  function drawBar({ request, spent, state: phase }) {
    const { budget } = request;
    bar.max = budget ?? 1;
    if (budget === null || phase === "waiting") bar.removeAttribute("value");
    else bar.value = Math.min(spent, budget);
  }

  /** @param {Question} question */
  function announceBest({ steps, spent }) {
    const last = steps?.at(-1);
    if (!last || Date.now() - announced <= ANNOUNCE_PAUSE) return;
    announced = Date.now();
    const [, , output, isReached] = last;
    const best = `${number(output)}${isReached ? ", reached" : ""}`;
    announce(`${spent} rows scored; best so far ${best}.`);
  }

  function draw() {
    const { question } = state;
    if (!question) return;
    fill(head, badge(question.state), " ", h("bdi", { dir: "auto" }, question.title));
    drawBar(question);
    const isWaiting = question.state === "waiting";
    fill(facts, isWaiting ? queueFact(question) : runFacts(question));
    const hasSteps = Boolean(question.steps?.length) && !isWaiting;
    chart.hidden = !hasSteps;
    if (!hasSteps) return;
    searchChart(chart, question);
    announceBest(question);
  }

  const drawSoon = throttle(() => {
    if (node.isConnected) draw();
  }, 200);
  on("progress", drawSoon);
  return { node, draw };
}

/** @param {Question} question */
const queueFact = ({ place }) =>
  fact("place in the queue", place > 0 ? `${count(place, "question")} before this one` : "next");

/**
 * Return how far a proof is.
 * @param {number | null} cost  of the best answer, null without one
 * @param {number} bound  no answer costs less
 */
export function provingText(cost, bound) {
  const known = `bound ${number(bound, 3)}`;
  if (cost === null || bound <= 0) return known;
  return `${known}, gap ${Math.ceil(100 * (cost / bound - 1))} %`;
}

/**
 * @param {Question} question
 * @returns {Child}
 */
function runFacts({ steps, spent, request, reachable, seconds: time }) {
  const last = steps?.at(-1);
  const [, , output = null, isReached = false, cost = null, bound = null] = last ?? [];
  const { unit } = state.site.output;
  const miss = gap(output, state.target.wanted);
  const distance = miss === null ? "…" : num(miss, { test: "gap" });
  const others = isReached ? [] : state.target.wanted?.flat();
  return [
    fact("best so far", last ? num(output, { unit, test: "best-so-far", others }) : "…"),
    fact("gap to the target", isReached ? "reached" : distance),
    isReached ? fact("cost", num(cost, { digits: 3 })) : null,
    bound === null ? null : fact("proving", provingText(isReached ? cost : null, bound)),
    fact("rows scored", request.budget === null ? `${spent}` : `${spent} of ${request.budget}`),
    fact("time", seconds(time)),
    reachable ? fact("outputs seen", `${number(reachable[0])} … ${number(reachable[1])}`) : null,
  ];
}
