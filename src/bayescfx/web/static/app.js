// @ts-check
// The page: requests the site, restores the state from before a reload, and assembles the parts.
//
// Hooks for tests, as data-test="…":
//   row:      row-table, row (data-label), row-search, sort-output, sort, range-low, range-high,
//            random-row, rows-back, rows-on,
//             columns-back, columns-on, row-input (data-feature), row-reset, row-output,
//            form-filter
//   target:   target-mode, target-text, target-value, target-amount, target-unit, target-meaning,
//            ruler, target-handle, reachable, ruler-answer
//   features: feature-filter, feature-show, feature-card (data-feature) with lock, limit-low,
//            limit-high, limit-low-box, limit-high-box,
//             direction-both, direction-up, direction-down, difficulty, strict, step, level (data-level),
//            levels-all, levels-none;
//             lock-all, unlock-all, cards-reset, kept-features, kept-feature
//   limits:   rules, rule-insert, max-changes, near-data, together, together-add, space-check,
//            freedom
//   run:      run, stop, stop-here, settings, set-budget, set-timeout, set-n, set-diverse, set-seed,
//            set-tolerance, set-method,
//             progress, progress-bar, best-so-far, gap, potential-chart
//   answers:  answer, sentence, verdict, badge (data-status), answer-card (data-index) with
//            answer-output, answer-sentence, changes,
//             change (data-feature), whatif-start, bookmark, compare, copy-row; comparison,
//            compare-table, compare-chart, compare-clear,
//             failed, stale, note, fewer; unreachable, nearest, aim-nearest, search-longer,
//            binding, relax
//   what if:  whatif-from, whatif-line (data-feature), whatif-input, whatif-input-box,
//            whatif-output, whatif-value, whatif-miss,
//             whatif-broken, whatif-reset, whatif-filter, use-as-row, curve, curve-chart,
//            curve-ask, curve-note
//   export:   export-menu, export-json … export-toml, show-py …, export-text, copy
//   page:     tab-row, tab-space, tab-answers, tab-whatif, theme, history, history-item
//            (data-id), history-open, history-delete,
//             bookmark-item, compare-bookmarks, banner, banner-action, dialog-close, row-chip
import { answersPanel } from "./answers.js";
import { asApiError, getRows, getSite } from "./api.js";
import { dismiss, fail, showMessage } from "./banner.js";
import { cardsPanel } from "./cards.js";
import { recolour } from "./charts.js";
import { byId, fill, h, icon, set } from "./dom.js";
import { closeMenusOutside } from "./export.js";
import { formPanel, livePrediction } from "./form.js";
import { clip, copyExact, count, name, num } from "./format.js";
import { historyButton } from "./history.js";
import { limitsPanel } from "./limits.js";
import { rowsPanel } from "./rows.js";
import { openQuestion, runButton, settingsFold } from "./run.js";
import { countConstraints } from "./space.js";
import { begin, emit, on, recall, setRow, setSettings, setSpace, state } from "./state.js";
import { buildTabs, mark, show } from "./tabs.js";
import { setTarget, targetPanel } from "./target.js";
import { firstTarget } from "./targets.js";
import { resumeWhatIf, whatifPanel } from "./whatif.js";

/** @import { Compared, Site } from "./types.js" */

async function start() {
  try {
    const site = await getSite();
    dismiss("lost");
    begin(site);
    await build(site);
  } catch (thrown) {
    const error = asApiError(thrown);
    byId("loading").textContent = "The page could not be built.";
    if (!error.lost && !error.status) console.error(thrown);
    fail(error, start);
  }
}

/** @param {Site} site */
async function build(site) {
  const stored = recall();
  describeSite(site);
  setSettings(stored.settings ?? {});
  setSpace(stored.space ?? {});
  const row = stored.row ?? (await getRows({ offset: 0, limit: 1 })).rows[0];
  if (!row) {
    showMessage("empty", "The data have no rows to start from.");
    return;
  }
  const { label, cells, output = null } = row;
  const base = stored.row ? (row.base ?? null) : { label, cells };
  state.row = { label, cells, base, output, error: null };
  assemble();
  restoreTarget(stored.target);
  state.compare = Array.isArray(stored.compare) ? stored.compare.filter(isCompared) : [];
  setRow(state.row);
  show(stored.tab);
  if (Number.isInteger(stored.open)) {
    state.sentDraft = typeof stored.sentDraft === "string" ? stored.sentDraft : null;
    await openQuestion(stored.open, { quiet: true, draft: false });
  }
  resumeWhatIf(stored.whatif);
  emit("compare");
}

/**
 * @param {any} one
 * @returns {one is Compared}
 */
const isCompared = (one) => Number.isInteger(one?.id) && Number.isInteger(one?.index);

/** @param {Site} site */
function describeSite(site) {
  const title = h("bdi", { dir: "auto", title: clip(site.title, 600) }, clip(site.title, 200));
  const isNamed = site.classifier === null || site.output.name.includes(site.classifier);
  const chance = isNamed ? "" : ` of class ${clip(site.classifier ?? "", 60)}`;
  const size = `${count(site.n_rows, "row")} of data · ${count(site.features.length, "feature")}`;
  document.title = clip(site.title, 80);
  fill(byId("site-title"), title);
  byId("site-facts").textContent = `${site.output.name}${chance} · ${size}`;
  byId("foot-version").textContent = `bayescfx ${site.version}`;
}

/**
 * Set the stored target or, as soon as the row's prediction is known, one to begin with.
 * @param {unknown} text
 */
function restoreTarget(text) {
  if (typeof text === "string" && text) {
    setTarget(text);
    return;
  }
  on("output", () => {
    const { site, row, target } = state;
    if (target.text || row.output === null) return;
    setTarget(firstTarget(site.predictions, row.output, site.classifier !== null));
  });
}

function assemble() {
  livePrediction();
  const question = byId("question");
  const title = h("h2", { id: "question-title" }, "Your question");
  fill(
    question,
    h("div", { class: "row spread middle" }, title, rowChip()),
    targetPanel(),
    settingsFold(),
  );
  const list = h("div", { role: "tablist", "aria-label": "Parts of the page", class: "tab-list" });
  const panels = buildTabs(list, [
    ["row", "Row", rowsPanel(), formPanel()],
    ["space", "What may change", limitsPanel(), cardsPanel()],
    ["answers", "Answers", answersPanel()],
    ["whatif", "What if", whatifPanel()],
  ]);
  fill(byId("panels"), panels);
  fill(byId("tabs"), list, runButton());
  fill(byId("top-tools"), historyButton(), themeButton());
  markConstraints();
  byId("loading").hidden = true;
  byId("tabs").hidden = false;
  question.hidden = false;
  copyExact();
  closeMenusOutside();
}

/** Show the number of constraints beside the title of their tab. */
function markConstraints() {
  const draw = () => mark("space", String(countConstraints(state.cards, state.limits) || ""));
  on("space", draw);
  draw();
}

function rowChip() {
  const node = h("p", { class: "row-chip", "data-test": "row-chip" });
  const { unit, name: title } = state.site.output;
  const draw = () => {
    const { label, output, error } = state.row;
    const shown = output === null ? "…" : num(output, { unit });
    fill(
      node,
      h("span", { class: "soft" }, "row "),
      name(label ?? "by hand", "strong"),
      h("span", { class: "soft" }, ` · ${title} `),
      error ? h("span", { class: "wrong" }, "not known") : shown,
    );
  };
  on("row output", draw);
  return node;
}

function themeButton() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const node = h("button", { class: "square", "data-test": "theme", onclick: toggle });

  function draw() {
    const title = isDark() ? "Light colours" : "Dark colours";
    set(fill(node, icon(isDark() ? "sun" : "moon")), { "aria-label": title, title });
    recolour();
  }

  function toggle() {
    const theme = isDark() ? "light" : "dark";
    root.dataset.theme = theme;
    try {
      localStorage.setItem("bayescfx:theme", theme);
    } catch {
      // No storage: the choice holds until a reload.
    }
    draw();
  }
  system.addEventListener("change", draw);
  draw();
  return node;
}

start();
