// The answers: a question's screen, whether it waits, runs, failed, is answered or is out of reach.
import { open } from "./api.js";
import { badge } from "./badge.js";
import { changeTable } from "./changes.js";
import { chartBox, searchChart } from "./charts.js";
import { comparePanel, isCompared, toggleCompare } from "./compare.js";
import { fact, fill, h, icon, set, uid } from "./dom.js";
import { exportMenu, toClipboard } from "./export.js";
import { clip, count, num, number, percent, seconds } from "./format.js";
import { progressPanel } from "./progress.js";
import { ask, toggleBookmark } from "./run.js";
import { isStale, on, state } from "./state.js";
import { mark, show } from "./tabs.js";
import { binding, unreachableScreen } from "./unreachable.js";
import { startWhatIf } from "./whatif.js";

/** Build the answers' part of the page. */
export function answersPanel() {
  const root = h("div", { class: "stack" });
  const stale = h("div", { class: "note", role: "status", hidden: true, "data-test": "stale" },
    h("p", null, "The row, the goal or the limits have changed since this was asked."),
    h("button", { onclick: ask }, icon("play"), "Ask again"));
  const screen = h("div", { class: "stack" });
  const progress = progressPanel();
  const compared = comparePanel();
  root.append(stale, screen, compared.node);
  let shownKey = null;

  function draw() {
    const { question } = state;
    const key = JSON.stringify([state.asking, question?.id, question?.state, question?.status]);
    mark("answers", question?.answer ? String(question.answer.counterfactuals.length) : open(question) ? "…" : "");
    if (key !== shownKey) {
      shownKey = key;
      fill(screen, screenOf(question, progress));
    }
    if (open(question)) progress.draw();
    refresh(screen);
    freshness();
  }

  function freshness() {
    stale.hidden = state.asking || open(state.question) || !isStale();
  }

  on("question", draw);
  on("row goal space settings", freshness);
  on("compare", () => refresh(screen));
  draw();
  return root;
}

function screenOf(question, progress) {
  if (state.asking) return h("section", { class: "panel empty", role: "status" }, h("p", null, "Asking …"));
  if (!question) return empty();
  if (open(question)) return progress.node;
  if (question.state === "failed" || !question.answer) return failed(question);
  return question.status === "unreachable" ? unreachableScreen(question, parts) : answered(question);
}

function empty() {
  return h("section", { class: "panel empty" }, h("h2", null, "No question yet"),
    h("p", null, "Pick a row, set the goal on the ruler, say what may change, then press “Find changes”."),
    h("button", { onclick: () => show("row") }, "Pick a row"));
}

function failed(question) {
  return h("section", { class: "panel", "data-test": "failed" }, h("h2", null, badge("failed"), " ", h("bdi", { dir: "auto" }, question.words)),
    h("p", { class: "wrong", dir: "auto" }, clip(question.error ?? "The search ended without an answer.", 2000)),
    h("button", { onclick: ask }, icon("play"), "Ask again"));
}

function answered(question) {
  const { answer } = question;
  const id = uid("answer");
  return [
    h("section", { class: "panel", "aria-labelledby": id, "data-test": "answer" },
      h("div", { class: "row spread" }, h("h2", { id }, badge(question.status), " ", h("bdi", { dir: "auto" }, question.words)), parts.tools(question)),
      h("p", { class: "lead sentence", dir: "auto", "data-test": "sentence" }, clip(answer.sentence, 1500)),
      h("p", { dir: "auto", "data-test": "verdict" }, clip(answer.verdict, 2000)), parts.notes(question), parts.facts(question),
      question.status === "best_guess" && answer.binding.length ? [h("h3", null, "What keeps it away"), binding(answer)] : null),
    parts.cards(question),
    parts.history(question),
  ];
}

/** What the screens of an answer are made of. */
const parts = {
  tools: (question) => h("div", { class: "row tight" }, exportMenu(question)),

  notes: (question) => (question.notes ?? []).map((text) => h("p", { class: "aside", dir: "auto", "data-test": "note" }, icon("note"), clip(text, 600))),

  facts(question) {
    const { answer } = question;
    return h("dl", { class: "facts" }, fact("rows used", String(answer.n_evaluations)), fact("time", seconds(question.seconds)), fact("method", answer.method),
      fact("seed", String(answer.seed ?? "–")), answer.reachable ? fact("outputs seen", `${number(answer.reachable[0])} … ${number(answer.reachable[1])}`) : null);
  },

  cards(question) {
    const found = question.answer.counterfactuals, wanted = question.asked?.n ?? 1;
    const words = `${count(wanted, "answer")} wanted, ${found.length} found.`;
    return [
      h("div", { class: "answers" }, found.map((one, k) => answerCard(question, one, k))),
      found.length < wanted ? h("p", { class: "aside", "data-test": "fewer" }, icon("note"), words) : null,
    ];
  },

  history(question) {
    if (!question.steps?.length) return null;
    const chart = chartBox("Best output and potential over the rows used", "potential-chart", 320);
    const fold = h("details", { class: "fold panel" }, h("summary", null, "How the search went"), chart);
    fold.addEventListener("toggle", () => fold.open && searchChart(chart, question));
    return fold;
  },
};

function answerCard(question, found, k) {
  const id = uid("card");
  const status = found.valid ? "reached" : "best_guess";
  const button = (test, act, ...inside) => h("button", { "data-test": test, "data-index": k, onclick: act }, ...inside);
  const copy = button("copy-row", () => toClipboard(JSON.stringify(found.cells, null, 2), copy), "Copy the row");
  return h("article", { class: `panel answer-card ${status}`, "aria-labelledby": id, "data-test": "answer-card", "data-index": k },
    h("header", { class: "row spread" }, h("h3", { id }, `Answer ${k + 1} `, badge(status)),
      h("p", { class: "big", "data-test": "answer-output" }, num(found.output, { unit: state.site.output.unit }))),
    h("p", { class: "sentence", "data-test": "answer-sentence" }, h("strong", null, found.n_changes ? `Change ${count(found.n_changes, "thing")}: ` : "Change nothing"),
      h("bdi", { dir: "auto" }, found.n_changes ? `${clip(found.sentence, 1500)}.` : ".")),
    found.changes.length ? changeTable(found, question.answer.output) : h("p", { class: "soft" }, "Nothing changes."),
    h("dl", { class: "facts" }, fact("cost", num(found.cost, { digits: 3 })), fact("changes", count(found.n_changes, "feature")),
      fact("plausibility", found.plausibility === null ? "not known" : `above ${percent(found.plausibility)} of the training rows`)),
    h("div", { class: "row tight" },
      button("whatif-start", () => { startWhatIf({ from: k }); show("whatif"); }, "What if …"),
      button("bookmark", () => toggleBookmark(k), icon("star"), "Bookmark"),
      button("compare", () => toggleCompare(question.id, k), "Compare"), copy));
}

/** Show which answers are bookmarked and compared. */
function refresh(screen) {
  const { question } = state;
  if (!question) return;
  for (const node of screen.querySelectorAll("[data-test=bookmark]")) {
    const kept = question.bookmarks.includes(Number(node.dataset.index));
    set(node, { "aria-pressed": String(kept) });
    node.lastChild.textContent = kept ? "Bookmarked" : "Bookmark";
  }
  for (const node of screen.querySelectorAll("[data-test=compare]"))
    set(node, { "aria-pressed": String(isCompared(question.id, Number(node.dataset.index))) });
}

