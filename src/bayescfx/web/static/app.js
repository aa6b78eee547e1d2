// The page: asks for the site, takes up what was there before a reload, and puts the parts together.
//
// Hooks for tests, as data-test="…":
//   row:      row-table, row (data-label), row-search, sort-output, sort, range-low, range-high, random-row, rows-back, rows-on,
//             columns-back, columns-on, row-input (data-feature), row-reset, row-output, form-filter
//   goal:     goal-mode, goal-text, goal-value, goal-amount, goal-unit, goal-words, ruler, goal-handle, reachable, ruler-answer
//   features: feature-filter, feature-show, feature-card (data-feature) with lock, limit-low, limit-high, limit-low-box, limit-high-box,
//             direction-both, direction-up, direction-down, difficulty, step, level (data-level), levels-all, levels-none;
//             lock-all, unlock-all, cards-reset, kept-features, kept-feature
//   limits:   rules, rule-insert, max-changes, near-data, together, together-add, space-check, freedom
//   run:      run, stop, stop-here, settings, set-budget, set-timeout, set-n, set-seed, set-tolerance, set-method,
//             progress, progress-bar, best-so-far, gap, potential-chart
//   answers:  answer, sentence, verdict, badge (data-status), answer-card (data-index) with answer-output, answer-sentence, changes,
//             change (data-feature), whatif-start, bookmark, compare, copy-row; comparison, compare-table, compare-chart, compare-clear,
//             failed, stale, note, fewer; unreachable, nearest, aim-nearest, search-longer, binding, relax
//   what if:  whatif-from, whatif-line (data-feature), whatif-input, whatif-input-box, whatif-output, whatif-value, whatif-miss,
//             whatif-broken, whatif-reset, whatif-filter, use-as-row, curve, curve-chart, curve-ask, curve-note
//   export:   export-menu, export-json … export-toml, show-py …, export-text, copy
//   page:     tab-row, tab-space, tab-answers, tab-whatif, theme, history, history-item (data-id), history-open, history-delete,
//             bookmark-item, compare-bookmarks, banner, banner-action, dialog-close, row-chip
import { rows, site as askSite } from "./api.js";
import { answersPanel } from "./answers.js";
import { dismiss, fail, say } from "./banner.js";
import { cardsPanel } from "./cards.js";
import { recolour } from "./charts.js";
import { fill, h, icon, set } from "./dom.js";
import { clip, copyExact, count, name, num } from "./format.js";
import { formPanel, livePrediction } from "./form.js";
import { firstGoal, goalPanel, takeGoal } from "./goal.js";
import { historyButton } from "./history.js";
import { limitsPanel } from "./limits.js";
import { rowsPanel } from "./rows.js";
import { openQuestion, runButton, settingsFold } from "./run.js";
import { begin, emit, on, recall, state, takeRow, takeSettings, takeSpace } from "./state.js";
import { buildTabs, mark, show } from "./tabs.js";
import { resumeWhatIf, whatifPanel } from "./whatif.js";
import { isSet } from "./space.js";

const byId = (id) => document.getElementById(id);

async function start() {
  try {
    const site = await askSite();
    dismiss("lost");
    begin(site);
    await build(site);
  } catch (error) {
    byId("loading").textContent = "The page could not be built.";
    if (!(error.lost || error.status)) console.error(error);
    fail(error, start);
  }
}

async function build(site) {
  const kept = recall();
  document.title = clip(site.title, 80);
  fill(byId("site-title"), h("bdi", { dir: "auto", title: clip(site.title, 600) }, clip(site.title, 200)));
  const chance = site.classifier === null ? "" : ` of class ${clip(site.classifier, 60)}`;
  byId("site-facts").textContent = `${site.output.name}${chance} · ${count(site.rows, "row")} of data · ${count(site.features.length, "feature")}`;
  byId("foot-version").textContent = `bayescfx ${site.version} · what the model says is kept ${site.store ? "in a file" : "while the server runs"}`;
  takeSettings(kept.settings ?? {});
  takeSpace(kept.space ?? {});
  const row = kept.row ?? (await firstRow());
  if (!row) return say("empty", "The data have no rows to start from.");
  const { label, cells, output = null } = row;
  const base = row.base ?? (kept.row ? null : { label, cells });
  state.row = { label, cells, base, output, error: null };
  assemble();
  wireGoal(typeof kept.target === "string" ? kept.target : "");
  state.compare = Array.isArray(kept.compare) ? kept.compare.filter((one) => Number.isInteger(one?.id) && Number.isInteger(one?.index)) : [];
  takeRow(state.row);
  show(kept.tab);
  if (Number.isInteger(kept.open)) {
    state.asked = typeof kept.asked === "string" ? kept.asked : null;
    await openQuestion(kept.open, { quiet: true, draft: false });
  }
  resumeWhatIf(kept.whatif);
  emit("compare");
}

async function firstRow() {
  const found = await rows({ offset: 0, limit: 1 });
  return found.rows[0] ?? null;
}

/** The goal of before, or one to begin with as soon as the row's prediction is known. */
function wireGoal(text) {
  if (text) return takeGoal(text);
  on("output", () => {
    if (!state.goal.text && state.row.output !== null) takeGoal(firstGoal());
  });
}

function assemble() {
  livePrediction();
  const question = byId("question");
  fill(question,
    h("div", { class: "row spread middle" }, h("h2", { id: "question-title" }, "Your question"), rowChip()),
    goalPanel(), settingsFold());
  const list = h("div", { role: "tablist", "aria-label": "Parts of the page", class: "tab-list" });
  fill(byId("panels"), buildTabs(list, [
    ["row", "Row", rowsPanel(), formPanel()],
    ["space", "What may change", limitsPanel(), cardsPanel()],
    ["answers", "Answers", answersPanel()],
    ["whatif", "What if", whatifPanel()],
  ]));
  fill(byId("tabs"), list, runButton());
  fill(byId("top-tools"), historyButton(), themeButton());
  const touched = () => {
    const { require, together, maxChanges, nearData } = state.limits;
    const n = [...state.cards.values()].filter(isSet).length + require.length + together.length + (maxChanges !== null) + nearData;
    mark("space", n ? String(n) : "");
  };
  on("space", touched);
  touched();
  byId("loading").hidden = true;
  question.hidden = byId("tabs").hidden = false;
  copyExact();
}

function rowChip() {
  const node = h("p", { class: "row-chip", "data-test": "row-chip" });
  const draw = () => fill(node,
    h("span", { class: "soft" }, "row "), name(state.row.label ?? "by hand", "strong"), h("span", { class: "soft" }, ` · ${state.site.output.name} `),
    state.row.error ? h("span", { class: "wrong" }, "not known") : state.row.output === null ? "…" : num(state.row.output, { unit: state.site.output.unit }));
  on("row output", draw);
  return node;
}

function themeButton() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const node = h("button", { class: "square", "data-test": "theme", onclick: () => choose(isDark() ? "light" : "dark") });
  const draw = () => {
    const [picture, title] = isDark() ? ["sun", "Light colours"] : ["moon", "Dark colours"];
    set(fill(node, icon(picture)), { "aria-label": title, title });
    recolour();
  };
  function choose(theme) {
    root.dataset.theme = theme;
    try {
      localStorage.setItem("bayescfx:theme", theme);
    } catch {
      // No storage: it holds until a reload.
    }
    draw();
  }
  system.addEventListener("change", draw);
  draw();
  return node;
}

start();
