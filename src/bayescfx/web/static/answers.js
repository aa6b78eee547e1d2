// @ts-check
// The answers: the screen of a question that waits, runs, has failed, is answered or out of reach.
import { isOpen } from "./api.js";
import { badge, proofBadge } from "./badge.js";
import { comparePanel, isCompared } from "./compare.js";
import { fill, h, icon, set, uid } from "./dom.js";
import { clip } from "./format.js";
import { menuFold } from "./menu.js";
import { cards, facts, notes, searchFold, tools } from "./parts.js";
import { progressPanel } from "./progress.js";
import { ask } from "./run.js";
import { isStale, on, state } from "./state.js";
import { mark, show } from "./tabs.js";
import { bindingList, unreachableScreen } from "./unreachable.js";

/** @import { Answered } from "./parts.js" */
/** @import { Child, Question } from "./types.js" */

/**
 * @param {Question} question
 * @returns {question is Answered}
 */
const isAnswered = (question) => question.state !== "failed" && Boolean(question.answer);

const askAgain = () => h("button", { onclick: ask }, icon("play"), "Ask again");

/** Build the answers' part of the page. */
export function answersPanel() {
  const stale = h(
    "div",
    { class: "note", role: "status", hidden: true, "data-test": "stale" },
    h("p", null, "The row, the target or the limits have changed since this question was asked."),
    askAgain(),
  );
  const screen = h("div", { class: "stack" });
  const progress = progressPanel();
  let shownKey = "";

  function draw() {
    const { question } = state;
    const key = JSON.stringify([state.isSending, question?.id, question?.state, question?.status]);
    mark("answers", tabMark(question));
    if (key !== shownKey) {
      shownKey = key;
      fill(screen, screenOf(question, progress.node));
    }
    if (isOpen(question)) progress.draw();
    drawToggles(screen);
    drawStale();
  }

  function drawStale() {
    stale.hidden = state.isSending || isOpen(state.question) || !isStale();
  }

  on("question", draw);
  on("row target space settings", drawStale);
  on("compare", () => drawToggles(screen));
  draw();
  return h("div", { class: "stack" }, stale, screen, comparePanel());
}

/**
 * Return the mark of the tab: the number of answers, or an ellipsis while the search runs.
 * @param {Question | null} question
 */
function tabMark(question) {
  if (question?.answer) return String(question.answer.counterfactuals.length);
  return isOpen(question) ? "…" : "";
}

/**
 * @param {Question | null} question
 * @param {HTMLElement} progress
 * @returns {Child}
 */
function screenOf(question, progress) {
  if (state.isSending) {
    return h("section", { class: "panel empty", role: "status" }, h("p", null, "Asking …"));
  }
  if (!question) return emptyScreen();
  if (isOpen(question)) return progress;
  if (!isAnswered(question)) return failedScreen(question);
  return question.status === "unreachable" ? unreachableScreen(question) : answerScreen(question);
}

function emptyScreen() {
  const steps =
    "Pick a row, set the target on the ruler, choose what may change, then press “Find changes”.";
  return h(
    "section",
    { class: "panel empty" },
    h("h2", null, "No question yet"),
    h("p", null, steps),
    h("button", { onclick: () => show("row") }, "Pick a row"),
  );
}

/** @param {Question} question */
function failedScreen({ title, error }) {
  const text = clip(error ?? "The search ended without an answer.", 2000);
  return h(
    "section",
    { class: "panel", "data-test": "failed" },
    h("h2", null, badge("failed"), " ", h("bdi", { dir: "auto" }, title)),
    h("p", { class: "wrong", dir: "auto" }, text),
    askAgain(),
  );
}

/**
 * @param {Answered} question
 * @returns {Child}
 */
function answerScreen(question) {
  const { answer, status, title } = question;
  const id = uid("answer");
  const isBound = status === "best_guess" && answer.binding.length > 0;
  return [
    h(
      "section",
      { class: "panel", "aria-labelledby": id, "data-test": "answer" },
      h(
        "div",
        { class: "row spread" },
        h(
          "h2",
          { id, class: "badged" },
          badge(status),
          " ",
          proofBadge(answer),
          " ",
          h("bdi", { dir: "auto" }, title),
        ),
        tools(question),
      ),
      h(
        "p",
        { class: "lead sentence", dir: "auto", "data-test": "sentence" },
        clip(answer.sentence, 1500),
      ),
      h("p", { dir: "auto", "data-test": "verdict" }, clip(answer.verdict, 2000)),
      notes(question),
      facts(question),
      isBound ? [h("h3", null, "Binding constraints"), bindingList(answer)] : null,
    ),
    cards(question),
    menuFold(question),
    searchFold(question),
  ];
}

/**
 * Show which answers are bookmarked and compared.
 * @param {HTMLElement} screen
 */
function drawToggles(screen) {
  const { question } = state;
  if (!question) return;
  for (const node of screen.querySelectorAll("button")) {
    const index = Number(node.dataset.index);
    if (node.dataset.test === "bookmark") {
      const isKept = question.bookmarks.includes(index);
      set(node, { "aria-pressed": String(isKept) });
      if (node.lastChild) node.lastChild.textContent = isKept ? "Bookmarked" : "Bookmark";
    }
    if (node.dataset.test === "compare") {
      set(node, { "aria-pressed": String(isCompared(question.id, index)) });
    }
  }
}
