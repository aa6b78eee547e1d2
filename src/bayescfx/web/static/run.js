// Ask, follow and stop a question; open earlier ones.
import { ask as askServer, bookmarks, follow, open, question as askQuestion, stop as stopServer } from "./api.js";
import { dismiss, fail, heard, say } from "./banner.js";
import { announce, field, fill, h, icon } from "./dom.js";
import { count, seconds } from "./format.js";
import { takeGoal } from "./goal.js";
import { draftKey, emit, on, request, state, takeRow, takeSettings, takeSpace } from "./state.js";
import { show } from "./tabs.js";

let unfollow = () => {};

/** Ask the draft. */
export async function ask() {
  if (state.asking) return;
  const body = request(), key = draftKey();
  state.asking = true;
  emit("question");
  try {
    const question = await askServer(body);
    heard();
    dismiss("ask");
    state.asked = key;
    state.asking = false;
    take(question);
    show("answers");
    document.getElementById("question").scrollIntoView({ block: "start" });
    emit("history");
  } catch (error) {
    state.asking = false;
    emit("question");
    fail(error, error.lost || error.status === 429 || error.status >= 500 ? ask : null, "ask");
  }
}

/** Take a question as the open one, and follow it to its end. */
function take(question) {
  unfollow();
  state.question = question;
  emit("question");
  if (!open(question)) return;
  const mine = () => state.question?.id === question.id;
  unfollow = follow(question.id, {
    whole(found) {
      if (!mine()) return;
      const ended = open(state.question) && !open(found);
      state.question = found;
      emit("question");
      if (ended) end(found);
    },
    step({ step, reachable, spent, seconds: time }) {
      if (!mine()) return;
      const now = state.question;
      now.state = "running";
      (now.steps ??= []).push(step);
      Object.assign(now, { reachable, spent, seconds: time });
      emit("progress");
    },
    lost: (error) => say("lost", `${error.message} The page keeps trying.`, { actions: [["Try now", () => reopen(question.id)]] }),
    back: heard,
    gone(error) {
      fail(error, null, "ask");
      state.question = null;
      emit("question");
    },
  });
}

function end(question) {
  const words = { reached: "reached", best_guess: "best guess", unreachable: "out of reach" };
  announce(question.state === "failed" ? `The search failed: ${question.error}` : `The search has ended: ${words[question.status] ?? "done"}.`);
  emit("history");
}

/** Stop the open question; the best so far is kept. */
export async function stop() {
  try {
    const found = await stopServer(state.question.id);
    if (found && !open(found)) take(found);
    announce("Stopping; the best so far is kept.");
  } catch (error) {
    fail(error, stop, "ask");
  }
}

/** Open an earlier question: its answer, and what was asked as the draft. */
export async function openQuestion(id, { quiet = false, draft = true } = {}) {
  try {
    const question = await askQuestion(id);
    heard();
    if (draft) takeDraft(question);
    take(question);
    if (!quiet) show("answers");
    return question;
  } catch (error) {
    if (!quiet) fail(error, error.lost ? () => openQuestion(id) : null, "ask");
    return null;
  }
}

const reopen = (id) => openQuestion(id, { quiet: true, draft: false });

function takeDraft(question) {
  const { asked } = question;
  takeSettings(asked);
  takeSpace(asked.space);
  const output = question.answer?.output ?? null;
  takeRow({ label: asked.label ?? question.label, cells: asked.cells, output });
  takeGoal(asked.target);
  state.asked = draftKey();
}

/** Forget the open question. */
export function close() {
  unfollow();
  state.question = null;
  state.asked = null;
  emit("question");
}

/** Bookmark an answer, or no longer. */
export async function toggleBookmark(index) {
  const { id, bookmarks: kept } = state.question;
  const wanted = kept.includes(index) ? kept.filter((k) => k !== index) : [...kept, index].sort((a, b) => a - b);
  try {
    const found = await bookmarks(id, wanted);
    if (state.question?.id === id) state.question.bookmarks = found?.bookmarks ?? wanted;
    announce(wanted.includes(index) ? "Bookmarked." : "Bookmark taken away.");
    emit("question");
    emit("history");
  } catch (error) {
    fail(error, null, "ask");
  }
}

/** Build the button that asks or stops. */
export function runButton() {
  const node = h("button", { class: "primary", onclick: () => (busy() ? stop() : ask()) });
  const busy = () => open(state.question);
  const draw = () => {
    const running = busy();
    fill(node, icon(running ? "stop" : "play"), running ? "Stop" : state.asking ? "Asking …" : "Find changes");
    node.dataset.test = running ? "stop" : "run";
    node.title = running ? "Stop the search; the best so far is kept" : "Search for the smallest changes that reach the goal";
    node.disabled = !running && (state.asking || state.goal.error !== null || state.row.output === null);
  };
  on("question output goal row", draw);
  draw();
  return node;
}

/** Build the settings of a search, folded behind one line that says them. */
export function settingsFold() {
  const { site } = state;
  const line = h("span", { class: "num" });
  const control = (key, label, props, read = (box) => box.valueAsNumber) => {
    const input = h("input", { type: "number", class: "short", "data-test": `set-${key}`, ...props });
    input.onchange = () => {
      takeSettings({ ...state.settings, [key]: input.value === "" && key === "budget" ? null : read(input) });
      write(key, input);
    };
    return { key, input, node: field(label, input) };
  };
  const write = (key, input) => {
    const value = state.settings[key];
    input.value = key === "tolerance" ? Number((value * 100).toPrecision(6)) : value ?? "";
  };
  const controls = [
    control("budget", "Model rows, at most", { min: 1, max: site.most.budget, placeholder: "as fits" }),
    control("timeout", "Seconds, at most", { min: 1, max: site.most.timeout, step: "any" }),
    control("n", "Answers wanted", { min: 1, max: site.most.n }),
    control("seed", "Seed", { min: 0 }),
    control("tolerance", "May miss, in %", { min: 0, max: 99, step: "any" }, (box) => box.valueAsNumber / 100),
  ];
  const method = h("select", { "data-test": "set-method", onchange: () => takeSettings({ ...state.settings, method: method.value }) },
    site.methods.map((m) => h("option", { value: m }, m)));
  const draw = () => {
    const { budget, timeout, seed, n } = state.settings;
    line.textContent = `${budget === null ? "as many rows as fit" : `up to ${count(budget, "row")}`} · ${seconds(timeout)} · ${count(n, "answer")} · seed ${seed}`;
    for (const { key, input } of controls) if (document.activeElement !== input) write(key, input);
    method.value = state.settings.method;
  };
  on("settings", draw);
  draw();
  return h("details", { class: "fold settings", "data-test": "settings" },
    h("summary", null, icon("gear"), h("span", { class: "hidden" }, "Search settings: "), line),
    h("div", { class: "row" }, controls.map(({ node }) => node), field("Method", method)),
    h("p", { class: "hint" }, "The same seed gives the same answer. The search always ends by itself."));
}
