// What if: every feature under the reader's hands, from the row or an answer; prediction and curve follow.
import { newest, predict } from "./api.js";
import { badge } from "./badge.js";
import { fail, heard } from "./banner.js";
import { curvePanel } from "./curve.js";
import { announce, debounce, field, fill, h, icon, nameFilter } from "./dom.js";
import { isScale, same } from "./features.js";
import { cell as text, clip, count, name, num } from "./format.js";
import { levelList, slider } from "./inputs.js";
import { asEdited, emit, isRow, on, remember, space, state, takeRow } from "./state.js";
import { show } from "./tabs.js";

const asked = newest(predict);
const view = state.whatif;
let focus = null; // the feature whose curve is shown

/** Start from the row ("row") or an answer (its number). */
export function startWhatIf({ from }) {
  const found = from === "row" ? null : state.question?.answer?.counterfactuals[from];
  view.from = found ? from : "row";
  view.cells = { ...(found ? found.cells : state.row.cells) };
  if (found?.changes.length) focus = found.changes[0].name;
  emit("whatif");
}

/** Take up what was tried before a reload, if it still makes sense. */
export function resumeWhatIf(kept) {
  if (!isRow(kept)) return;
  view.cells = kept.cells;
  view.from = Number.isInteger(kept.from) && state.question?.answer?.counterfactuals[kept.from] ? kept.from : "row";
  emit("whatif");
}

/** Build the what-if part. */
export function whatifPanel() {
  const { site } = state;
  const curve = curvePanel();
  const start = h("select", { "data-test": "whatif-from", onchange: () => startWhatIf({ from: start.value === "row" ? "row" : Number(start.value) }) });
  const output = h("div", { class: "whatif-output", "data-test": "whatif-output", "aria-live": "polite" });
  const lines = site.features.map(line);
  const filter = nameFilter("whatif-filter", lines);
  const moved = h("p", { class: "hint" });
  focus = site.features.find((f) => !f.derived)?.name ?? site.features[0].name;

  function line(feature) {
    const change = (cell) => {
      view.cells = { ...view.cells, [feature.name]: cell };
      look(feature.name);
      update();
      remember();
    };
    const label = `${clip(feature.name, 80)}, what if`;
    const now = state.row.cells[feature.name];
    const made = isScale(feature) ? slider(feature, now, change, { test: "whatif-input", label }) : level(feature, now, change, label);
    const mark = h("span", { class: "was" });
    const node = h("div", { class: "whatif-line", "data-test": "whatif-line", "data-feature": feature.name },
      h("div", { class: "whatif-name" },
        h("button", { class: "link name-button", title: "Show its curve", onclick: () => look(feature.name) }, name(feature.name)), mark),
      h("div", { class: "whatif-controls" }, made.nodes));
    node.addEventListener("focusin", () => look(feature.name));
    if (feature.derived) node.querySelectorAll("input, select").forEach((control) => { control.disabled = true; });
    return { feature, node, update: made.update, mark };
  }

  function level(feature, now, change, label) {
    const list = levelList(feature, now, change, "whatif-input");
    list.node.setAttribute("aria-label", label);
    return { nodes: [list.node], update: list.update };
  }

  function look(featureName) {
    if (focus === featureName && curve.shown === featureName) return;
    focus = curve.shown = featureName;
    for (const { feature, node } of lines) node.classList.toggle("focus", feature.name === featureName);
    if (state.tab === "whatif") curve.follow(view.cells, featureName);
  }

  function update() {
    drawMarks();
    if (state.tab !== "whatif") return;
    predictSoon();
    curve.follow(view.cells, focus);
  }

  function drawMarks() {
    let n = 0;
    for (const { feature, node, mark } of lines) {
      const before = state.row.cells[feature.name], changed = !same(before, view.cells[feature.name]);
      n += changed;
      node.classList.toggle("moved", changed);
      fill(mark, changed ? `was ${clip(text(before), 30)}` : feature.derived ? "follows from others" : "");
    }
    fill(moved, n ? `${count(n, "feature")} differ${n === 1 ? "s" : ""} from the row.` : "As the row is.");
  }

  async function guess() {
    const { cells } = view, { tolerance } = state.settings;
    let trouble = null;
    try {
      const whole = { cells, query: state.row.cells, space: space(), target: state.goal.error ? null : state.goal.text, tolerance };
      const found = await asked(whole).catch((error) => {
        if (error.status !== 422) throw error;
        trouble = error.message; // a rule may be half written: the prediction is to be had all the same
        return asked({ cells, query: null, space: null, target: null, tolerance });
      });
      if (!found || cells !== view.cells) return;
      heard();
      drawOutput(found, trouble);
    } catch (error) {
      if (error.lost) return fail(error, guess);
      fill(output, wrong(error.message));
    }
  }
  const wrong = (message) => h("p", { class: "wrong", dir: "auto" }, icon("warn"), clip(message, 600));
  const predictSoon = debounce(guess, 120);

  function drawOutput(found, trouble) {
    const { unit, name: word } = site.output, before = state.row.output;
    const { words } = state.goal;
    const away = () => h("p", null, icon("near"), h("strong", { "data-test": "whatif-miss" }, num(found.miss)), ` away from ${words}`);
    const goal = found.reached ? h("p", null, badge("reached"), ` ${words}`) : found.miss === null ? null : away();
    fill(output, h("p", { class: "soft" }, word), h("p", { class: "huge" }, num(found.output, { unit, test: "whatif-value" })),
      before === null ? null : h("p", { class: "soft" }, num(found.output - before, { signs: true }), " against the row"), goal, trouble ? wrong(trouble) : null,
      found.broken.length ? h("div", { class: "broken", "data-test": "whatif-broken" }, h("p", null, icon("warn"), "Not allowed by what you said:"),
        h("ul", null, found.broken.map((rule) => h("li", { dir: "auto" }, clip(rule, 300))))) : null);
  }

  function drawAll() {
    if (!view.cells) return;
    const answers = state.question?.answer?.counterfactuals ?? [];
    fill(start, h("option", { value: "row" }, `row ${clip(state.row.label ?? "", 40)}`), answers.map((_, k) => h("option", { value: k }, `answer ${k + 1}`)));
    start.value = String(view.from);
    for (const { feature, update: put } of lines) put(view.cells[feature.name] ?? null);
    for (const { feature, node } of lines) node.classList.toggle("focus", feature.name === focus);
    update();
  }

  on("whatif", drawAll);
  on("row", () => startWhatIf({ from: "row" }));
  on("question", () => {
    const gone = view.from !== "row" && !state.question?.answer?.counterfactuals[view.from];
    if (gone) startWhatIf({ from: "row" });
    else if (state.tab === "whatif" || state.question?.answer) drawAll();
  });
  on("tab goal space", () => state.tab === "whatif" && update());
  startWhatIf({ from: "row" });
  return h("div", { class: "whatif" },
    h("section", { class: "panel", "aria-labelledby": "whatif-title" },
      h("div", { class: "row spread middle" }, h("h2", { id: "whatif-title" }, "What if"), moved),
      h("div", { class: "row" }, field("Start from", start), site.features.length > 8 ? field("Find a feature", filter, { wide: true }) : null,
        h("button", { "data-test": "whatif-reset", onclick: () => startWhatIf({ from: view.from }) }, "Back to the start")),
      h("div", { class: "whatif-lines" }, lines.map(({ node }) => node))),
    h("section", { class: "panel side", "aria-label": "What the model says" }, output,
      h("button", { class: "primary", "data-test": "use-as-row", onclick: adopt }, "Use as new row"), curve.node));
}

function adopt() {
  takeRow({ label: asEdited(state.row.label), cells: view.cells, base: state.row.base });
  announce("The row is now what you made of it.");
  show("row");
}

