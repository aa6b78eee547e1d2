// @ts-check
// Earlier questions and bookmarks, in a drawer.
import { asApiError, deleteQuestion, getQuestions } from "./api.js";
import { badge, statusOf } from "./badge.js";
import { clearLost, fail } from "./banner.js";
import { setCompared } from "./compare.js";
import { dialog } from "./dialog.js";
import { crossButton, fill, h, icon } from "./dom.js";
import { clip, count } from "./format.js";
import { closeQuestion, openQuestion } from "./run.js";
import { on, state } from "./state.js";
import { show } from "./tabs.js";

/** @import { Question } from "./types.js" */

/** @type {Question[]} */
let questions = [];

async function load() {
  try {
    ({ questions } = await getQuestions());
    clearLost();
  } catch (thrown) {
    const error = asApiError(thrown);
    if (!error.lost) fail(error, null, "history");
  }
}

/** Build the button that opens the list, with the number of questions. */
export function historyButton() {
  const number = h("span", { class: "mark-count", hidden: true });
  async function refresh() {
    await load();
    number.textContent = String(questions.length);
    number.hidden = questions.length === 0;
  }
  on("history", refresh);
  refresh();
  const title = "Earlier questions";
  const props = { "data-test": "history", title, onclick: () => openList(refresh) };
  return h("button", props, icon("list"), h("span", { class: "roomy" }, title), number);
}

/** @param {() => Promise<void>} refresh */
async function openList(refresh) {
  await refresh();
  const body = h("div", { class: "stack" });
  const box = dialog("Earlier questions", body);
  box.classList.add("drawer");

  /** @param {Question} question */
  async function remove(question) {
    if (await forget(question)) {
      await refresh();
      draw();
    }
  }
  const draw = () => fill(body, questionList(box, remove), bookmarkList(box));
  draw();
}

/**
 * @param {HTMLDialogElement} box
 * @param {(question: Question) => void} remove
 */
function questionList(box, remove) {
  if (!questions.length) {
    const empty = "No questions yet. The questions of this session are kept here.";
    return h("p", { class: "soft" }, empty);
  }
  return h(
    "ul",
    { class: "history" },
    questions.map((question) => questionItem(box, question, remove)),
  );
}

/**
 * @param {HTMLDialogElement} box
 * @param {Question} question
 * @param {(question: Question) => void} remove
 */
function questionItem(box, question, remove) {
  const { id, title, spent } = question;
  const isChosen = state.question?.id === id;
  const open = () => {
    box.close();
    openQuestion(id);
  };
  return h(
    "li",
    { "data-test": "history-item", "data-id": id, class: isChosen ? "chosen" : null },
    h(
      "button",
      { class: "open", "data-test": "history-open", onclick: open },
      h(
        "span",
        { class: "row spread tight" },
        h("strong", null, `Question ${id}`),
        badge(statusOf(question)),
      ),
      h("bdi", { dir: "auto" }, clip(title, 160)),
      h("span", { class: "soft" }, `${count(spent, "row")} scored`),
    ),
    crossButton(`Delete question ${id}`, () => remove(question), "history-delete"),
  );
}

/**
 * Delete a question; returns whether it is gone.
 * @param {Question} question
 */
async function forget({ id }) {
  try {
    await deleteQuestion(id);
  } catch (thrown) {
    const error = asApiError(thrown);
    if (error.status !== 404) {
      fail(error, null, "history");
      return false;
    }
  }
  if (state.question?.id === id) closeQuestion();
  setCompared(state.compare.filter((one) => one.id !== id));
  return true;
}

/** @param {HTMLDialogElement} box */
function bookmarkList(box) {
  const items = questions.flatMap(({ id, title, bookmarks }) =>
    bookmarks.map((index) => ({ id, index, title })),
  );
  if (!items.length) return null;
  const compareAll = () => {
    box.close();
    setCompared(items.map(({ id, index }) => ({ id, index })));
    show("answers");
  };
  /** @param {number} id */
  const open = (id) => {
    box.close();
    openQuestion(id);
  };
  const compareProps = { "data-test": "compare-bookmarks", onclick: compareAll };
  return h(
    "section",
    null,
    h("h3", null, icon("star"), " Bookmarks"),
    h(
      "ul",
      { class: "history" },
      items.map(({ id, index, title }) =>
        h(
          "li",
          { "data-test": "bookmark-item" },
          h(
            "button",
            { class: "open", onclick: () => open(id) },
            h("strong", null, `Question ${id}, answer ${index + 1}`),
            h("bdi", { dir: "auto" }, clip(title, 120)),
          ),
        ),
      ),
    ),
    items.length > 1 ? h("button", compareProps, "Compare all bookmarks") : null,
  );
}
