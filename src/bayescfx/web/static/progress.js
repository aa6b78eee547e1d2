// A search at work: best so far, gap to the goal, rows and time used, place in the queue.
import { badge } from "./badge.js";
import { chartBox, searchChart } from "./charts.js";
import { announce, fact, fill, h, icon, throttle } from "./dom.js";
import { count, num, number, seconds } from "./format.js";
import { stop } from "./run.js";
import { on, state } from "./state.js";

/** Return how far an output is from what is wanted. */
export function gap(output, wanted) {
  if (!wanted?.length || output === null || output === undefined) return null;
  return Math.min(...wanted.map(([low, high]) => Math.max((low ?? -Infinity) - output, output - (high ?? Infinity), 0)));
}

/** Build the panel of progress: {node, draw}. */
export function progressPanel() {
  const head = h("h2", { id: "progress-title" });
  const facts = h("dl", { class: "facts" });
  const bar = h("progress", { max: 1, value: 0, "data-test": "progress-bar", "aria-label": "Rows used of the budget" });
  const chart = chartBox("Best output and potential over the rows used", "potential-chart", 320);
  const node = h("section", { class: "panel", "aria-labelledby": "progress-title", "data-test": "progress" },
    h("div", { class: "row spread middle" }, head, h("button", { "data-test": "stop-here", onclick: stop }, icon("stop"), "Stop and keep the best")),
    bar, facts, chart);
  let said = 0;

  function draw() {
    const { question, site } = state;
    if (!question) return;
    const { steps, spent, asked } = question;
    const budget = asked?.budget ?? null;
    const last = steps?.at(-1);
    fill(head, badge(question.state), " ", h("bdi", { dir: "auto" }, question.words));
    bar.max = budget ?? 1;
    if (budget === null || question.state === "waiting") bar.removeAttribute("value");
    else bar.value = Math.min(spent, budget);
    if (question.state === "waiting") {
      const n = question.place;
      fill(facts, fact("place in the queue", n > 0 ? `${count(n, "question")} before this one` : "next"));
      chart.hidden = true;
      return;
    }
    const miss = last ? gap(last[2], state.goal.wanted) : null;
    fill(facts,
      fact("best so far", last ? num(last[2], { unit: site.output.unit, test: "best-so-far" }) : "…"),
      fact("gap to the goal", last ? (last[3] ? "reached" : miss === null ? "…" : num(miss, { test: "gap" })) : "…"),
      last?.[3] ? fact("cost", num(last[4], { digits: 3 })) : null,
      fact("rows used", `${spent}${budget === null ? "" : ` of ${budget}`}`),
      fact("time", seconds(question.seconds)),
      question.reachable ? fact("seen so far", `${number(question.reachable[0])} … ${number(question.reachable[1])}`) : null);
    chart.hidden = !steps?.length;
    if (steps?.length) searchChart(chart, question);
    if (Date.now() - said > 5000 && last) {
      said = Date.now();
      announce(`${spent} rows used; best so far ${number(last[2])}${last[3] ? ", reached" : ""}.`);
    }
  }

  const soon = throttle(() => node.isConnected && draw(), 200);
  on("progress", soon);
  return { node, draw };
}
