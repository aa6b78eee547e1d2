// @ts-check
// Ask, follow and stop a question; open earlier ones.
import {
  asApiError,
  follow,
  getQuestion,
  isOpen,
  postQuestion,
  putBookmarks,
  stopQuestion,
} from "./api.js";
import { statusText } from "./badge.js";
import { clearLost, dismiss, fail, showMessage } from "./banner.js";
import { announce, byId, field, fill, h, icon } from "./dom.js";
import { count, seconds } from "./format.js";
import { draftKey, emit, on, request, setRow, setSettings, setSpace, state } from "./state.js";
import { show } from "./tabs.js";
import { setTarget } from "./target.js";

/** @import { ApiError } from "./api.js" */
/** @import { Progress, Props, Question, Settings, Site } from "./types.js" */

let unfollow = () => {};

/** Ask the draft. */
export async function ask() {
  if (state.isSending) return;
  const body = request();
  const key = draftKey();
  state.isSending = true;
  emit("question");
  try {
    const question = await postQuestion(body);
    clearLost();
    dismiss("ask");
    state.sentDraft = key;
    state.isSending = false;
    setQuestion(question);
    show("answers");
    byId("question").scrollIntoView({ block: "start" });
    emit("history");
  } catch (thrown) {
    const error = asApiError(thrown);
    state.isSending = false;
    emit("question");
    fail(error, isTemporary(error) ? ask : null, "ask");
  }
}

/** @param {ApiError} error */
const isTemporary = (error) => error.lost || error.status === 429 || error.status >= 500;

/**
 * Set the open question, and follow it to its end.
 * @param {Question} question
 */
function setQuestion(question) {
  unfollow();
  state.question = question;
  emit("question");
  if (!isOpen(question)) return;
  const { id } = question;
  const isCurrent = () => state.question?.id === id;
  unfollow = follow(id, {
    question: (found) => {
      if (isCurrent()) takeQuestion(found);
    },
    step: (progress) => {
      if (isCurrent()) takeStep(progress);
    },
    lost: (error) =>
      showMessage("lost", `${error.message} The page keeps trying.`, [
        ["Try now", () => openQuestion(id, { quiet: true, draft: false })],
      ]),
    back: clearLost,
    gone: (error) => {
      fail(error, null, "ask");
      state.question = null;
      emit("question");
    },
  });
}

/** @param {Question} question */
function takeQuestion(question) {
  const hasEnded = isOpen(state.question) && !isOpen(question);
  state.question = question;
  emit("question");
  if (!hasEnded) return;
  const isFailed = question.state === "failed";
  const failure = `The search failed: ${question.error}`;
  announce(isFailed ? failure : `The search has ended: ${statusText(question.status)}.`);
  emit("history");
}

/** @param {Progress} progress */
function takeStep({ step, ...rest }) {
  const { question } = state;
  if (!question) return;
  question.state = "running";
  question.steps ??= [];
  question.steps.push(step);
  Object.assign(question, rest);
  emit("progress");
}

/** Stop the open question; the best so far is kept. */
export async function stop() {
  if (!state.question) return;
  try {
    const question = await stopQuestion(state.question.id);
    if (!isOpen(question)) setQuestion(question);
    announce("Stopping; the best so far is kept.");
  } catch (error) {
    fail(asApiError(error), stop, "ask");
  }
}

/**
 * Open an earlier question: its answer and, as a draft, its request.
 * @param {number} id
 * @param {{quiet?: boolean, draft?: boolean}} [options]
 */
export async function openQuestion(id, { quiet = false, draft = true } = {}) {
  try {
    const question = await getQuestion(id);
    clearLost();
    if (draft) setDraft(question);
    setQuestion(question);
    if (!quiet) show("answers");
  } catch (thrown) {
    const error = asApiError(thrown);
    if (!quiet) fail(error, error.lost ? () => openQuestion(id) : null, "ask");
  }
}

/** @param {Question} question */
function setDraft({ request: sent, answer, label }) {
  setSettings(sent);
  setSpace(sent.space);
  setRow({
    label: sent.label ?? label,
    cells: sent.cells ?? {},
    output: answer?.output ?? null,
  });
  setTarget(sent.target);
  state.sentDraft = draftKey();
}

/** Close the open question. */
export function closeQuestion() {
  unfollow();
  state.question = null;
  state.sentDraft = null;
  emit("question");
}

/**
 * Bookmark an answer, or remove its bookmark.
 * @param {number} index
 */
export async function toggleBookmark(index) {
  if (!state.question) return;
  const { id, bookmarks } = state.question;
  const isKept = bookmarks.includes(index);
  const others = bookmarks.filter((k) => k !== index);
  const wanted = isKept ? others : [...others, index].sort((a, b) => a - b);
  try {
    const question = await putBookmarks(id, wanted);
    if (state.question?.id === id) state.question.bookmarks = question.bookmarks;
    announce(isKept ? "Bookmark removed." : "Bookmarked.");
    emit("question");
    emit("history");
  } catch (error) {
    fail(asApiError(error), null, "ask");
  }
}

/** Build the button that asks or stops. */
export function runButton() {
  const isBusy = () => isOpen(state.question);
  const press = () => (isBusy() ? stop() : ask());
  const node = h("button", { class: "primary", onclick: press });

  function draw() {
    const isRunning = isBusy();
    const word = state.isSending ? "Asking …" : "Find changes";
    fill(node, icon(isRunning ? "stop" : "play"), isRunning ? "Stop" : word);
    node.dataset.test = isRunning ? "stop" : "run";
    node.title = isRunning
      ? "Stop the search; the best so far is kept"
      : "Search for the smallest changes that reach the target";
    const isReady = state.target.error === null && state.row.output !== null;
    node.disabled = !isRunning && (state.isSending || !isReady);
  }
  on("question output target row", draw);
  draw();
  return node;
}

/**
 * Return the number box of a setting: {node, draw}.
 * @param {Exclude<keyof Settings, "method" | "diverse">} key
 * @param {string} label
 * @param {Props} props
 * @param {number} [factor]  the shown value of a setting of 1
 */
function settingBox(key, label, props, factor = 1) {
  const input = h("input", {
    type: "number",
    class: "short",
    "data-test": `set-${key}`,
    ...props,
  });
  const write = () => {
    const value = state.settings[key];
    const scaled = factor === 1 ? value : Number((Number(value) * factor).toPrecision(6));
    input.value = String(scaled ?? "");
  };
  input.onchange = () => {
    const isEmptyBudget = input.value === "" && key === "budget";
    setSettings({ [key]: isEmptyBudget ? null : input.valueAsNumber / factor });
    write();
  };
  const draw = () => {
    if (document.activeElement !== input) write();
  };
  return { node: field(label, input), draw };
}

/**
 * Say whether the answer to a question depends on earlier ones.
 * @param {Site} site
 */
function sharingText({ shares_evaluations: isShared, store }) {
  if (!isShared) {
    return "The same question with the same seed has the same answer, here, in Python and on the command line.";
  }
  const place = store ? "in a file" : "in memory while the server runs";
  return `Questions reuse the rows that the model has scored, kept ${place}. An earlier question may therefore change the answer to a later one.`;
}

/** Build the settings of a search, folded behind a line that summarises them. */
export function settingsFold() {
  const { methods, maximum } = state.site;
  const line = h("span", { class: "num" });
  const boxes = [
    settingBox("budget", "Model rows, at most", {
      min: 1,
      max: maximum.budget,
      placeholder: "automatic",
    }),
    settingBox("timeout", "Seconds, at most", { min: 1, max: maximum.timeout, step: "any" }),
    settingBox("n", "Answers wanted", { min: 1, max: maximum.n }),
    settingBox("seed", "Seed", { min: 0 }),
    settingBox("tolerance", "Tolerance, in %", { min: 0, max: 99, step: "any" }, 100),
  ];
  const method = h(
    "select",
    { "data-test": "set-method" },
    methods.map((m) => h("option", { value: m }, m)),
  );
  method.onchange = () => setSettings({ method: method.value });
  const diverse = h(
    "select",
    { "data-test": "set-diverse" },
    h("option", { value: "nearest" }, "the nearest"),
    h("option", { value: "diverse" }, "as different as possible"),
  );
  diverse.onchange = () => setSettings({ diverse: diverse.value === "diverse" });

  function draw() {
    const { budget, timeout, seed, n } = state.settings;
    const rows = budget === null ? "automatic budget" : `up to ${count(budget, "row")}`;
    line.textContent = `${rows} · ${seconds(timeout)} · ${count(n, "answer")} · seed ${seed}`;
    for (const box of boxes) box.draw();
    method.value = state.settings.method;
    diverse.value = state.settings.diverse ? "diverse" : "nearest";
  }
  on("settings", draw);
  draw();
  return h(
    "details",
    { class: "fold settings", "data-test": "settings" },
    h("summary", null, icon("gear"), h("span", { class: "hidden" }, "Search settings: "), line),
    h(
      "div",
      { class: "row" },
      boxes.map(({ node }) => node),
      field("Several answers", diverse),
      field("Method", method),
    ),
    h("p", { class: "hint", "data-test": "sharing" }, sharingText(state.site)),
  );
}
