// @ts-check
// The parts of an answer's screen: facts, notes, cards of counterfactuals, course of the search.
import { badge, proofBadge } from "./badge.js";
import { changeTable } from "./changes.js";
import { chartBox, searchChart } from "./charts.js";
import { toggleCompare } from "./compare.js";
import { fact, h, icon, uid } from "./dom.js";
import { copyText, exportMenu } from "./export.js";
import { clip, count, num, number, plausibility, seconds } from "./format.js";
import { toggleBookmark } from "./run.js";
import { state } from "./state.js";
import { show } from "./tabs.js";
import { startWhatIf } from "./whatif.js";

/** @import { Answer, Child, Counterfactual, Question } from "./types.js" */

/** @typedef {Question & {answer: Answer}} Answered */

/** @param {Question} question */
export const tools = (question) => h("div", { class: "row tight" }, exportMenu(question));

/** @param {Question} question */
export const notes = ({ notes: texts }) =>
  texts.map((text) =>
    h("p", { class: "aside", dir: "auto", "data-test": "note" }, icon("note"), clip(text, 600)),
  );

/** @param {Answered} question */
export function facts({ answer, seconds: time }) {
  const { reachable } = answer;
  const seen = reachable ? `${number(reachable[0])} … ${number(reachable[1])}` : "";
  return h(
    "dl",
    { class: "facts" },
    fact("rows scored", String(answer.n_evaluations)),
    fact("time", seconds(time)),
    fact("method", answer.method),
    fact("seed", String(answer.seed ?? "–")),
    reachable ? fact("outputs seen", seen) : null,
  );
}

/**
 * Return the cards of all counterfactuals.
 * @param {Answered} question
 * @returns {Child}
 */
export function cards(question) {
  const { counterfactuals } = question.answer;
  const nWanted = question.request.n;
  const nFound = counterfactuals.length;
  const fewer = `${count(nWanted, "answer")} wanted, ${nFound} found.`;
  return [
    h(
      "div",
      { class: "answers" },
      counterfactuals.map((_, k) => answerCard(question, k)),
    ),
    nFound < nWanted ? h("p", { class: "aside", "data-test": "fewer" }, icon("note"), fewer) : null,
  ];
}

/**
 * Return the course of the search, folded.
 * @param {Question} question
 */
export function searchFold(question) {
  if (!question.steps?.length) return null;
  const label = "Best output and potential over the rows scored";
  const chart = chartBox(label, "potential-chart", 320);
  const title = h("summary", null, "Course of the search");
  const fold = h("details", { class: "fold panel" }, title, chart);
  fold.addEventListener("toggle", () => {
    if (fold.open) searchChart(chart, question);
  });
  return fold;
}

/**
 * Return the card of one counterfactual.
 * @param {Answered} question
 * @param {number} k
 */
function answerCard(question, k) {
  const found = question.answer.counterfactuals[k];
  const id = uid("card");
  const status = found.valid ? "reached" : "best_guess";
  const others = found.valid ? [] : question.answer.wanted.flat();
  const output = num(found.output, { unit: state.site.output.unit, others });
  return h(
    "article",
    {
      class: `panel answer-card ${status}`,
      "aria-labelledby": id,
      "data-test": "answer-card",
      "data-index": k,
    },
    h(
      "header",
      { class: "row spread" },
      h(
        "h3",
        { id, class: "badged" },
        `Answer ${k + 1} `,
        badge(status),
        " ",
        proofBadge({ ...found, status }),
      ),
      h("p", { class: "big", "data-test": "answer-output" }, output),
    ),
    sentence(found),
    found.changes.length
      ? changeTable(found, question.answer.output)
      : h("p", { class: "soft" }, "Nothing changes."),
    found.kept_text
      ? h("p", { dir: "auto", "data-test": "kept-outside" }, clip(found.kept_text, 1500))
      : null,
    found.valid_text
      ? h("p", { dir: "auto", "data-test": "valid-ranges" }, clip(found.valid_text, 1500))
      : null,
    cardFacts(found),
    cardButtons(question.id, found, k),
  );
}

/** @param {Counterfactual} found */
function sentence({ n_changes: nChanges, sentence: text }) {
  const head = nChanges ? `Change ${count(nChanges, "feature")}: ` : "Change nothing";
  const rest = nChanges ? `${clip(text, 1500)}.` : ".";
  return h(
    "p",
    { class: "sentence", "data-test": "answer-sentence" },
    h("strong", null, head),
    h("bdi", { dir: "auto" }, rest),
  );
}

/** @param {Counterfactual} found */
function cardFacts({ cost, distance, n_changes: nChanges, plausibility: share }) {
  return h(
    "dl",
    { class: "facts" },
    fact("cost", num(cost, { digits: 3 })),
    fact("distance", num(distance, { digits: 3 })),
    fact("changes", count(nChanges, "feature")),
    fact("plausibility", share === null ? "not known" : plausibility(share)),
  );
}

/**
 * @param {number} id  of the question
 * @param {Counterfactual} found
 * @param {number} k
 */
function cardButtons(id, found, k) {
  /**
   * @param {string} test
   * @param {() => unknown} act
   * @param {...Child} content
   */
  const button = (test, act, ...content) =>
    h("button", { "data-test": test, "data-index": k, onclick: act }, ...content);
  const whatIf = () => {
    startWhatIf(k);
    show("whatif");
  };
  const copy = button(
    "copy-row",
    () => {
      copyText(JSON.stringify(found.cells, null, 2), copy);
    },
    "Copy the row",
  );
  return h(
    "div",
    { class: "row tight" },
    button("whatif-start", whatIf, "What if …"),
    button("bookmark", () => toggleBookmark(k), icon("star"), h("span", null, "Bookmark")),
    button("compare", () => toggleCompare(id, k), "Compare"),
    copy,
  );
}
