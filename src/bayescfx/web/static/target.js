// @ts-check
// The target: a mode, handles on the ruler, boxes and free text, all of which write one text.
import { asApiError, getTarget, latest } from "./api.js";
import { clearLost, fail } from "./banner.js";
import { debounce, field, fill, h, set, throttle } from "./dom.js";
import { clip, num, number, snap } from "./format.js";
import { domain, legend, Ruler, rulerStep } from "./ruler.js";
import { emit, on, state } from "./state.js";
import {
  changeText,
  handleLabels,
  handleValues,
  MODES,
  modeOf,
  parseAmount,
  toText,
  valuesFor,
} from "./targets.js";

/** @import { Child, Interval, Question } from "./types.js" */
/** @import { Mode } from "./targets.js" */

/**
 * Set the text of the target, and ask the server for its meaning.
 * @param {string} text
 * @param {Interval[] | null} [wanted]  shown until the server has answered
 */
export function setTarget(text, wanted = null) {
  state.target = { ...state.target, text, error: null };
  if (wanted) Object.assign(state.target, { wanted, accepted: null });
  emit("target");
  if (wanted) interpretSoon();
  else interpretSoon.now();
}

const requestTarget = latest(getTarget);

/** @param {string} error */
function setError(error) {
  const empty = { wanted: null, accepted: null, meaning: "", met: null };
  state.target = { ...state.target, ...empty, error };
}

/** Ask the server for the meaning of the target's text. */
async function interpret() {
  const { text } = state.target;
  const { output } = state.row;
  if (!text.trim()) {
    setError("Enter a target.");
    emit("target");
    return;
  }
  if (output === null) return;
  try {
    const tolerance = state.settings.tolerance;
    const found = await requestTarget({ target: text, output, tolerance });
    if (!found || text !== state.target.text) return;
    const { wanted, accepted, met, text: meaning } = found;
    state.target = { ...state.target, wanted, accepted, met, meaning, error: null };
    clearLost();
  } catch (thrown) {
    const error = asApiError(thrown);
    if (error.lost) {
      fail(error, interpret);
      return;
    }
    setError(error.message);
  }
  emit("target");
}
const interpretSoon = debounce(interpret, 150);

const currentMode = () => modeOf(state.target.text);
const currentValues = () => handleValues(state.target.text, state.target.wanted);

/**
 * Set the target that handles at these values mean in a mode.
 * @param {Mode} mode
 * @param {number[]} values
 */
function setValues(mode, values) {
  const { text, wanted } = toText(mode, values, {
    text: state.target.text,
    output: state.row.output,
  });
  setTarget(text, wanted);
}

/** @param {Mode} mode */
function changeMode(mode) {
  if (mode === "typed") return;
  const { edges } = state.site.predictions;
  setValues(mode, valuesFor(mode, currentValues(), state.row.output ?? 0, edges));
}

/** Build the number boxes of a target: {node, draw}. */
function valueBoxes() {
  const node = h("div", { class: "row tight" });
  let drawn = "";

  function changed() {
    const values = [...node.querySelectorAll("input")].map((box) => Number(box.value));
    if (values.every(Number.isFinite)) setValues(currentMode(), values);
  }

  /** @param {string} label */
  const valueBox = (label) => {
    const props = { type: "number", step: "any", class: "short", "data-test": "target-value" };
    return field(label, h("input", { ...props, onchange: changed }));
  };

  /**
   * @param {Mode} mode
   * @param {number[]} values
   */
  function drawValues(mode, values) {
    const key = `${mode}${values.length}`;
    if (drawn !== key) {
      drawn = key;
      const labels = mode === "between" ? ["lower end", "upper end"] : ["value"];
      fill(
        node,
        values.map((_, k) => valueBox(labels[k] ?? "value")),
      );
    }
    for (const [k, box] of [...node.querySelectorAll("input")].entries()) {
      if (document.activeElement !== box) box.value = String(Number(values[k].toPrecision(6)));
    }
  }

  const amount = h("input", {
    type: "number",
    step: "any",
    class: "short",
    "data-test": "target-amount",
    onchange: takeAmount,
  });
  const unit = h(
    "select",
    { "data-test": "target-unit", onchange: takeAmount },
    h("option", { value: "%" }, "percent"),
    h("option", { value: "" }, state.site.output.unit || "units"),
  );

  function takeAmount() {
    if (!Number.isFinite(amount.valueAsNumber)) return;
    setTarget(changeText(amount.valueAsNumber, unit.value === "%"));
  }

  function drawAmount() {
    const parsed = parseAmount(state.target.text);
    if (!parsed) return;
    if (drawn !== "change") {
      drawn = "change";
      fill(node, field("amount", amount), field("in", unit));
    }
    if (document.activeElement !== amount) amount.value = String(parsed.amount);
    unit.value = parsed.isPercent ? "%" : "";
  }

  /**
   * @param {Mode} mode
   * @param {number[]} values
   */
  function draw(mode, values) {
    if (mode === "change") drawAmount();
    else drawValues(mode, values);
  }
  return { node, draw };
}

/** Build the ruler of the target: {node, draw}. */
function targetRuler() {
  const node = h("div", { class: "stage" });
  const ruler = new Ruler(node, { moved });

  /**
   * @param {number} k
   * @param {number} value
   * @param {number} steps
   */
  function moved(k, value, steps) {
    const [low, high] = ruler.view.domain;
    const step = rulerStep(ruler.view.domain);
    const values = currentValues();
    const end = steps > 0 ? high : low;
    const stepped = Number.isFinite(steps) ? values[k] + steps * step : end;
    values[k] = snap(steps === 0 ? value : stepped, step);
    if (values.length === 2 && values[0] > values[1]) values[k] = values[1 - k];
    setValues(currentMode(), values);
  }

  /** @param {number[]} values */
  function draw(values) {
    const { target, row, question, site } = state;
    const asked = question && isSameRow(question) ? question : null;
    const found = asked?.answer?.counterfactuals ?? [];
    const answers = found.map(({ output, valid }, k) => ({ number: k + 1, output, valid }));
    const labels = handleLabels(currentMode());
    const { edges } = site.predictions;
    const ends = (target.wanted ?? []).flat();
    const outputs = [row.output, ...values, ...ends, ...answers.map(({ output }) => output)];
    ruler.draw({
      domain: domain(
        edges,
        outputs.filter((y) => y !== null),
      ),
      histogram: site.predictions,
      wanted: target.wanted,
      accepted: target.accepted,
      reachable: asked?.answer?.reachable ?? asked?.reachable ?? null,
      now: row.output,
      answers,
      unit: site.output.unit,
      handles: values.map((value, k) => ({ value, label: labels[k] ?? "target" })),
      label:
        `Ruler of the ${site.output.name}, from ${number(edges[0])} ` +
        `to ${number(edges[edges.length - 1])} in the data`,
    });
  }
  return { node, draw };
}

/** Build the target's controls and its ruler. */
export function targetPanel() {
  const mode = h(
    "select",
    { "data-test": "target-mode" },
    MODES.map(([value, word]) => h("option", { value }, word)),
  );
  mode.onchange = () => changeMode(/** @type {Mode} */ (mode.value));
  const text = h("input", {
    type: "text",
    "data-test": "target-text",
    autocomplete: "off",
    spellcheck: "false",
    maxlength: 200,
    placeholder: "+20 %, >= 150, 140..160",
    "aria-describedby": "target-meaning",
  });
  const takeTyped = debounce(() => {
    const typed = text.value.trim();
    if (typed !== state.target.text) setTarget(typed);
  }, 250);
  text.oninput = () => takeTyped();
  text.onchange = () => takeTyped.now();
  const meaning = h("p", {
    id: "target-meaning",
    class: "words",
    "aria-live": "polite",
    "data-test": "target-meaning",
  });
  const boxes = valueBoxes();
  const ruler = targetRuler();

  function draw() {
    const { target } = state;
    const now = currentMode();
    const values = currentValues();
    mode.value = now;
    for (const option of mode.options) {
      if (option.value === "typed") option.hidden = now !== "typed";
    }
    if (document.activeElement !== text) text.value = target.text;
    set(text, { "aria-invalid": target.error ? "true" : null });
    boxes.draw(now, values);
    fill(meaning, target.error ? errorNode(target.error) : sentence());
    ruler.draw(values);
  }

  on("target output question settings", draw);
  on("progress", throttle(draw, 200));
  on("output settings", () => interpretSoon());
  const controls = [field("Target", mode), boxes.node, field("or type it", text, { wide: true })];
  return h(
    "div",
    { class: "target" },
    h(
      "div",
      { class: "target-say" },
      h("div", { class: "row target-controls" }, controls),
      meaning,
    ),
    h("div", { class: "target-see" }, ruler.node, legend()),
  );
}

/** @param {string} error */
const errorNode = (error) => h("span", { class: "wrong", dir: "auto" }, clip(error, 400));

/**
 * Return the target in words.
 * @returns {Child}
 */
function sentence() {
  const { target, row, site } = state;
  if (!target.meaning || row.output === null) return "…";
  const { unit } = site.output;
  return [
    `Target: ${site.output.name} `,
    h("strong", null, target.meaning, unit ? ` ${unit}` : ""),
    "; now ",
    num(row.output, { unit, others: target.wanted?.flat() }),
    target.met ? ", which meets the target already." : ".",
  ];
}

/**
 * Return whether a question is about the present row.
 * @param {Question} question
 */
function isSameRow(question) {
  const cells = question.request?.cells ?? question.answer?.query;
  if (!cells) return false;
  return state.site.features.every((f) => (cells[f.name] ?? null) === state.row.cells[f.name]);
}
