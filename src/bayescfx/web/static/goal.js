// The goal: a mode, handles on the ruler, boxes and free text, all of which write one text.
import { goal as askGoal, newest } from "./api.js";
import { fail, heard } from "./banner.js";
import { debounce, field, fill, h, set, throttle } from "./dom.js";
import { clean, clip, num, number, snap } from "./format.js";
import { domain, legend, Ruler, rulerStep } from "./ruler.js";
import { emit, on, state } from "./state.js";

const MODES = [
  ["least", "at least"], ["most", "at most"], ["exact", "exactly"], ["between", "between"], ["change", "change by"], ["typed", "as typed"],
];

// A sign makes a number relative to the row's output; an equals sign makes it absolute again.
const plain = (value) => (value < 0 ? `=${value}` : String(value));
const WRITE = {
  least: (v) => `>= ${plain(v)}`,
  most: (v) => `<= ${plain(v)}`,
  exact: (v) => `= ${v}`,
  between: (a, b) => `[${Math.min(a, b)}, ${Math.max(a, b)}]`,
  change: (amount, percent) => `${amount < 0 ? "-" : "+"}${Math.abs(amount)}${percent ? "%" : ""}`,
};

/** Return the mode that a text is in. */
function modeOf(text) {
  const given = text.trim().toLowerCase();
  if (/^(>=|=>|≥|>|at least)/.test(given)) return "least";
  if (/^(<=|=<|≤|<|at most)/.test(given)) return "most";
  if (/^(±|\+\/-|\+-)/.test(given)) return "typed";
  if (/^[+\-−]\s*[\d.]+(e[+-]?\d+)?\s*(%|percent)?$/.test(given)) return "change";
  if (/^(\[|between)|\.\.|…|\bto\b|\d\s*:/.test(given)) return "between";
  return /^(=|reach|[\d.])/.test(given) ? "exact" : "typed";
}

const ends = (edges) => [edges[0], edges.at(-1)];
const AMOUNT = /^([+\-−])\s*([\d.]+(?:e[+-]?\d+)?)\s*(%|percent)?$/i;

/** Take a text as the goal, and ask the server what it means. */
export function takeGoal(text, { guess = null } = {}) {
  state.goal = { ...state.goal, text, error: null };
  if (guess) Object.assign(state.goal, { wanted: guess, accepted: null });
  emit("goal");
  (guess ? understandSoon : understandSoon.now)();
}

const asked = newest(askGoal);
const unclear = (error) => { state.goal = { ...state.goal, wanted: null, accepted: null, words: "", met: null, error }; };

async function understand() {
  const { text } = state.goal, { output } = state.row;
  if (!text.trim()) {
    unclear("Say what you want.");
    return emit("goal");
  }
  if (output === null) return;
  try {
    const found = await asked({ target: text, output, tolerance: state.settings.tolerance });
    if (!found || text !== state.goal.text) return;
    state.goal = { ...state.goal, ...found, error: null };
    heard();
  } catch (error) {
    if (error.lost) return fail(error, understand);
    unclear(error.message);
  }
  emit("goal");
}
const understandSoon = debounce(understand, 150);

/** Return the values of a goal's handles, in the order of the ruler. */
function handleValues() {
  const { wanted, text } = state.goal;
  if (!wanted?.length) return [];
  const [low, high] = wanted[0];
  const mode = modeOf(text);
  if (mode === "least") return [low ?? wanted.at(-1)[0]].filter((v) => v !== null);
  if (mode === "most") return [high].filter((v) => v !== null);
  if (mode === "between") return [low, high].filter((v) => v !== null);
  if (mode === "typed") return [];
  return low === null || high === null ? [] : [(low + high) / 2];
}

function labels() {
  const mode = modeOf(state.goal.text);
  if (mode === "between") return ["lower end of the goal", "upper end of the goal"];
  return [{ least: "goal, at least", most: "goal, at most", exact: "goal, exactly", change: "goal after the change" }[mode] ?? "goal"];
}

/** Write what handles at these values mean in a mode; a guess of what is wanted goes along until the server speaks. */
function write(mode, values) {
  const { output } = state.row;
  const [a, b] = values;
  if (mode === "change") {
    const was = AMOUNT.exec(state.goal.text.trim());
    const percent = was ? Boolean(was[3]) : output !== 0;
    const size = percent && output ? ((a - output) / Math.abs(output)) * 100 : a - output;
    return takeGoal(WRITE.change(Number(size.toPrecision(4)), percent), { guess: [[a, a]] });
  }
  const guess = { least: [[a, null]], most: [[null, a]], exact: [[a, a]], between: [[Math.min(a, b), Math.max(a, b)]] }[mode];
  return takeGoal(WRITE[mode](...values), { guess });
}

function changeMode(mode) {
  if (mode === "typed") return;
  const { output, site } = { output: state.row.output ?? 0, site: state.site };
  const edges = site.predictions.edges, span = edges.at(-1) - edges[0] || 1;
  const held = handleValues().map((value) => Number(value.toPrecision(6)));
  const middle = held.length ? held[0] : clean(Number((output + span / 10).toPrecision(4)));
  if (mode === "between") {
    const other = held.length > 1 ? held[1] : snap(middle + span / 10, rulerStep(ends(edges)));
    return write(mode, [middle, other]);
  }
  if (mode === "change" && middle === output) return write(mode, [output + span / 10]);
  return write(mode, [middle]);
}

/** Build the goal's controls and its ruler. */
export function goalPanel() {
  const mode = h("select", { "data-test": "goal-mode", onchange: () => changeMode(mode.value) },
    MODES.map(([value, word]) => h("option", { value }, word)));
  const boxes = h("div", { class: "row tight" });
  const text = h("input", { type: "text", "data-test": "goal-text", autocomplete: "off", spellcheck: "false", maxlength: 200,
    placeholder: "+20 %, >= 150, [140, 160]", "aria-describedby": "goal-words", oninput: () => takeTyped(), onchange: () => takeTyped.now() });
  const words = h("p", { id: "goal-words", class: "words", "aria-live": "polite", "data-test": "goal-words" });
  const stage = h("div", { class: "stage" });
  const ruler = new Ruler(stage, { moved });
  const takeTyped = debounce(() => text.value.trim() !== state.goal.text && takeGoal(text.value.trim()), 250);

  function moved(k, value, steps) {
    const values = handleValues(), step = rulerStep(ruler.view.domain), [low, high] = ruler.view.domain;
    const to = steps === 0 ? value : steps === Infinity ? high : steps === -Infinity ? low : values[k] + steps * step;
    values[k] = snap(to, step);
    if (values.length === 2 && values[0] > values[1]) values[k] = values[1 - k];
    write(modeOf(state.goal.text), values);
  }

  function drawBoxes() {
    const now = modeOf(state.goal.text), values = handleValues();
    if (now === "change") return drawAmount();
    if (boxes.dataset.kind !== `${now}${values.length}`) {
      boxes.dataset.kind = `${now}${values.length}`;
      const names = now === "between" ? ["lower end", "upper end"] : ["value"];
      const box = () => h("input", { type: "number", step: "any", class: "short", "data-test": "goal-value", onchange: changed });
      fill(boxes, values.map((_, k) => field(names[k] ?? "value", box())));
    }
    boxes.querySelectorAll("input").forEach((box, k) => { if (document.activeElement !== box) box.value = Number(values[k].toPrecision(6)); });
  }

  function changed() {
    const values = [...boxes.querySelectorAll("input")].map((box) => Number(box.value));
    if (values.every(Number.isFinite)) write(modeOf(state.goal.text), values);
  }

  function drawAmount() {
    const was = AMOUNT.exec(state.goal.text.trim());
    if (!was) return;
    if (boxes.dataset.kind !== "change") {
      boxes.dataset.kind = "change";
      const amount = h("input", { type: "number", step: "any", class: "short", "data-test": "goal-amount" });
      const unit = h("select", { "data-test": "goal-unit" }, h("option", { value: "%" }, "percent"), h("option", { value: "" }, state.site.output.unit || "units"));
      const take = () => Number.isFinite(amount.valueAsNumber) && takeGoal(WRITE.change(amount.valueAsNumber, unit.value === "%"));
      amount.onchange = unit.onchange = take;
      fill(boxes, field("amount", amount), field("in", unit));
    }
    const [amount, unit] = boxes.querySelectorAll("input, select");
    if (document.activeElement !== amount) amount.value = Number(`${was[1] === "+" ? "" : "-"}${was[2]}`);
    unit.value = was[3] ? "%" : "";
  }

  function draw() {
    const { goal, row, question, site } = state;
    const now = modeOf(goal.text), values = handleValues();
    mode.value = now;
    mode.querySelector("[value=typed]").hidden = now !== "typed";
    if (document.activeElement !== text) text.value = goal.text;
    set(text, { "aria-invalid": goal.error ? "true" : null });
    drawBoxes();
    fill(words, goal.error ? h("span", { class: "wrong", dir: "auto" }, clip(goal.error, 400)) : sentence());
    const mine = question && sameRow(question);
    const answers = mine ? (question.answer?.counterfactuals ?? []).map((c, k) => ({ number: k + 1, output: c.output, valid: c.valid })) : [];
    const reachable = mine ? question.answer?.reachable ?? question.reachable : null;
    const said = labels();
    ruler.draw({
      domain: domain(site.predictions.edges, [row.output, ...values, ...(goal.wanted ?? []).flat(), ...answers.map((a) => a.output)].filter((y) => y !== null)),
      histogram: site.predictions, wanted: goal.wanted, accepted: goal.accepted, reachable, now: row.output, answers, unit: site.output.unit,
      handles: values.map((value, k) => ({ value, label: said[k] ?? "goal" })),
      label: `Ruler of the ${site.output.name}, from ${number(site.predictions.edges[0])} to ${number(site.predictions.edges.at(-1))} in the data`,
    });
  }

  function sentence() {
    const { goal, row, site } = state;
    if (!goal.words || row.output === null) return "…";
    const unit = site.output.unit;
    const wanted = h("strong", null, goal.words, unit ? ` ${unit}` : "");
    return [`Wanted: ${site.output.name} `, wanted, "; now ", num(row.output, { unit }), goal.met ? ", which is as wanted already." : "."];
  }

  on("goal output question settings", draw);
  on("progress", throttle(draw, 200));
  on("output settings", () => understandSoon());
  return h("div", { class: "goal" },
    h("div", { class: "goal-say" }, h("div", { class: "row goal-controls" }, field("Goal", mode), boxes, field("or type it", text, { wide: true })), words),
    h("div", { class: "goal-see" }, stage, legend()));
}

function sameRow(question) {
  const cells = question.asked?.cells ?? question.answer?.query;
  return cells && state.row.cells && state.site.features.every((f) => (cells[f.name] ?? null) === state.row.cells[f.name]);
}

/** Return a goal to begin with: into the upper quarter of the predictions or, from there, into the lower. */
export function firstGoal() {
  const { edges, counts } = state.site.predictions, { output } = state.row;
  const total = counts.reduce((sum, n) => sum + n, 0);
  const quantile = (share) => {
    let sum = 0;
    const k = counts.findIndex((n) => (sum += n) >= share * total);
    return snap((edges[k] + edges[k + 1]) / 2, rulerStep(ends(edges)) * 5);
  };
  if (state.site.classifier !== null && edges[0] >= 0 && edges.at(-1) <= 1) return output < 0.5 ? ">= 0.5" : "<= 0.5";
  return output < quantile(0.75) ? WRITE.least(quantile(0.75)) : WRITE.most(quantile(0.25));
}
