// Earlier questions and bookmarks, in a drawer.
import { questions as askQuestions, remove } from "./api.js";
import { badge, statusOf } from "./badge.js";
import { fail, heard } from "./banner.js";
import { compareOnly } from "./compare.js";
import { dialog } from "./dialog.js";
import { crossButton, fill, h, icon } from "./dom.js";
import { clip, count } from "./format.js";
import { close, openQuestion } from "./run.js";
import { on, state } from "./state.js";
import { show } from "./tabs.js";

let known = [];

async function load() {
  try {
    known = (await askQuestions()).questions;
    heard();
  } catch (error) {
    if (error.lost) return;
    fail(error, null, "history");
  }
}

/** Build the button that opens the list, with how many there are. */
export function historyButton() {
  const number = h("span", { class: "mark-count", hidden: true });
  const refresh = async () => {
    await load();
    number.textContent = known.length;
    number.hidden = known.length === 0;
  };
  on("history", refresh);
  refresh();
  return h("button", { "data-test": "history", onclick: () => openList(refresh) }, icon("list"), h("span", null, "Earlier questions"), number);
}

async function openList(refresh) {
  await refresh();
  const body = h("div", { class: "stack" });
  const box = dialog("Earlier questions", body);
  box.classList.add("drawer");
  const draw = () => fill(body, listOf(box, draw, refresh), marked(box));
  draw();
}

function listOf(box, draw, refresh) {
  if (!known.length) return h("p", { class: "soft" }, "Nothing has been asked yet. Questions of this session are kept here, and share what the model has said.");
  const chosen = ({ id }) => (state.question?.id === id ? "chosen" : null);
  return h("ul", { class: "history" }, known.map((question) => h("li", { "data-test": "history-item", "data-id": question.id, class: chosen(question) },
    h("button", { class: "open", "data-test": "history-open", onclick: () => { box.close(); openQuestion(question.id); } },
      h("span", { class: "row spread tight" }, h("strong", null, `Question ${question.id}`), badge(statusOf(question))),
      h("bdi", { dir: "auto" }, clip(question.words, 160)), h("span", { class: "soft" }, `${count(question.spent, "row")} used`)),
    crossButton(`Delete question ${question.id}`, () => forget(question, draw, refresh), "history-delete"))));
}

async function forget(question, draw, refresh) {
  try {
    await remove(question.id);
  } catch (error) {
    if (error.status !== 404) return fail(error, null, "history");
  }
  if (state.question?.id === question.id) close();
  compareOnly(state.compare.filter((one) => one.id !== question.id));
  await refresh();
  draw();
}

function marked(box) {
  const items = known.flatMap((question) => question.bookmarks.map((index) => ({ id: question.id, index, question })));
  if (!items.length) return null;
  const compareAll = () => {
    box.close();
    compareOnly(items.map(({ id, index }) => ({ id, index })));
    show("answers");
  };
  return h("section", null, h("h3", null, icon("star"), " Bookmarks"),
    h("ul", { class: "history" }, items.map(({ id, index, question }) => h("li", { "data-test": "bookmark-item" },
      h("button", { class: "open", onclick: () => { box.close(); openQuestion(id); } },
        h("strong", null, `Question ${id}, answer ${index + 1}`), h("bdi", { dir: "auto" }, clip(question.words, 120)))))),
    items.length > 1 ? h("button", { "data-test": "compare-bookmarks", onclick: compareAll }, "Compare all bookmarks") : null);
}
