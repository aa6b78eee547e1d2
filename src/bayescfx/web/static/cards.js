// @ts-check
// Feature cards: the present value of a feature, its distribution, and whether and where it may move.
import { field, fill, h, icon, set, uid } from "./dom.js";
import { boxText, hasDirection, isFree, isScale, levelOf, levelsOf, parse } from "./features.js";
import { clip, count, name, number, shown, cell as text } from "./format.js";
import { Range } from "./range.js";
import { DIFFICULTIES, freshCard, hasLimits, isSet } from "./space.js";
import { emit, on, state } from "./state.js";

/** @import { Card, Cell, Child, Feature } from "./types.js" */

/** @typedef {(change: Partial<Card>) => void} Update */
/** @typedef {{nodes: Child[], draw: (card: Card, now: Cell) => void}} CardPart */

/** @type {[string, string, (card: Card) => boolean][]} */
const FILTERS = [
  ["all", "all", () => true],
  ["free", "may change", (card) => !card.locked],
  ["set", "with settings", isSet],
  ["locked", "locked", (card) => card.locked],
];

/** @type {[Card["direction"], string, string][]} */
const DIRECTIONS = [
  ["", "both", "up or down"],
  ["up", "up", "only up"],
  ["down", "down", "only down"],
];

const MANY_LEVELS = 8; // from here on the levels have a search box

/**
 * Return the settings of a feature's card.
 * @param {Feature} feature
 */
const cardOf = (feature) => state.cards.get(feature.name) ?? freshCard();

/** Build all cards, with a box to find them. */
export function cardsPanel() {
  const { features } = state.site;
  const cards = features.filter(isFree).map(makeCard);
  const fixed = features.filter((f) => !isFree(f));
  const none = h("p", { class: "empty", hidden: true }, "No feature matches.");
  const box = h("input", {
    type: "search",
    placeholder: "name or level",
    maxlength: 100,
    "data-test": "feature-filter",
    oninput: filter,
  });
  const kind = h(
    "select",
    { "data-test": "feature-show", onchange: filter },
    FILTERS.map(([value, word]) => h("option", { value }, word)),
  );

  function filter() {
    const typed = box.value.trim().toLowerCase();
    const keeps = FILTERS.find(([value]) => value === kind.value)?.[2];
    for (const { feature, node } of cards) {
      const names = [feature.name, ...levelsOf(feature).map((level) => text(level))];
      const isNamed = names.some((word) => word.toLowerCase().includes(typed));
      node.hidden = !(isNamed && keeps?.(cardOf(feature)));
    }
    none.hidden = cards.some(({ node }) => !node.hidden);
  }

  /** @param {boolean} locked */
  function lockVisible(locked) {
    for (const { feature, node } of cards) if (!node.hidden) cardOf(feature).locked = locked;
    emit("space");
  }

  function redraw() {
    for (const card of cards) card.draw();
  }
  on("row space", redraw);
  redraw();
  const lock = { "data-test": "lock-all", onclick: () => lockVisible(true) };
  const unlock = { "data-test": "unlock-all", onclick: () => lockVisible(false) };
  const reset = { class: "quiet", "data-test": "cards-reset", onclick: resetAll };
  return h(
    "section",
    { class: "panel", "aria-labelledby": "cards-title" },
    h("h2", { id: "cards-title" }, "Features"),
    h(
      "div",
      { class: "row" },
      field("Find a feature", box, { wide: true }),
      field("Show", kind),
      h("button", lock, icon("lock"), "Lock these"),
      h("button", unlock, icon("unlock"), "Unlock these"),
      h("button", reset, "Reset all"),
    ),
    h(
      "div",
      { class: "cards" },
      cards.map(({ node }) => node),
    ),
    none,
    fixed.length ? fixedList(fixed) : null,
  );
}

function resetAll() {
  for (const feature of state.site.features) state.cards.set(feature.name, freshCard());
  emit("space");
}

/**
 * Return the list of features that the operator fixes.
 * @param {Feature[]} features
 */
function fixedList(features) {
  const list = h("dl", { class: "kept" });
  const draw = () =>
    fill(
      list,
      features.map((f) =>
        h(
          "div",
          { "data-test": "kept-feature", "data-feature": f.name },
          h("dt", null, name(f.name)),
          h(
            "dd",
            null,
            shown(state.row.cells[f.name], "bdi", 6),
            h("span", { class: "soft" }, f.derived ? " · derived from others" : " · fixed"),
          ),
        ),
      ),
    );
  on("row", draw);
  draw();
  const title = `${count(features.length, "feature")} fixed by the operator of this page`;
  const props = { class: "fold", "data-test": "kept-features" };
  return h("details", props, h("summary", null, title), list);
}

/**
 * Build the card of one feature.
 * @param {Feature} feature
 */
function makeCard(feature) {
  /** @type {Update} */
  const update = (change) => {
    Object.assign(cardOf(feature), change);
    emit("space");
  };
  const range = isScale(feature) ? scalePart(feature, update) : levelPart(feature, update);
  const lock = lockButton(feature, update);
  const direction = hasDirection(feature) ? directionPicker(update) : null;
  const difficulty = difficultyPicker(update);
  const move = moveHint(update);
  const strict = strictSwitch(update);
  const now = h("span", { class: "now-value" });
  const title = uid("card");
  const description = h(
    "span",
    { class: "soft clip", title: clip(feature.description, 600) },
    clip(feature.description, 120),
  );
  const node = h(
    "article",
    {
      class: "card",
      "data-test": "feature-card",
      "data-feature": feature.name,
      "aria-labelledby": title,
    },
    h("header", null, h("h3", { id: title }, name(feature.name)), lock.node),
    h("p", { class: "now-line" }, now, isScale(feature) ? description : null),
    range.nodes,
    strict.node,
    move.node,
    h("div", { class: "row card-row" }, direction?.node, field("Difficulty", difficulty.node)),
  );
  const parts = [range, lock, difficulty, strict, move, ...(direction ? [direction] : [])];
  let drawn = "";

  function draw() {
    const card = cardOf(feature);
    const cell = state.row.cells?.[feature.name] ?? null;
    const key = JSON.stringify([card, cell]);
    if (key === drawn) return;
    drawn = key;
    node.classList.toggle("locked", card.locked);
    node.classList.toggle("touched", isSet(card));
    fill(now, "now ", shown(cell, "strong"));
    for (const part of parts) part.draw(card, cell);
  }
  return { feature, node, draw };
}

/**
 * @param {Feature} feature
 * @param {Update} update
 */
function lockButton(feature, update) {
  const toggle = () => update({ locked: !cardOf(feature).locked });
  const node = h("button", { class: "toggle", "data-test": "lock", onclick: toggle });
  /** @param {Card} card */
  const draw = ({ locked }) => {
    const word = locked ? "Locked" : "Lock";
    fill(node, icon(locked ? "lock" : "unlock"), word);
    const label = `${word}: ${clip(feature.name, 80)}`;
    set(node, { "aria-pressed": String(locked), "aria-label": label });
  };
  return { node, draw };
}

/** @param {Update} update */
function difficultyPicker(update) {
  const node = h("select", { "data-test": "difficulty" });
  node.onchange = () => {
    const isNever = node.value === "never";
    update(isNever ? { locked: true } : { locked: false, difficulty: Number(node.value) });
  };
  /** @param {Card} card */
  const draw = ({ locked, difficulty }) => {
    const isListed = DIFFICULTIES.some(([factor]) => factor === difficulty);
    const other = h("option", { value: difficulty }, `factor ${number(difficulty)}`);
    fill(
      node,
      DIFFICULTIES.map(([factor, word]) => h("option", { value: factor }, word)),
      isListed ? null : other,
      h("option", { value: "never" }, "impossible"),
    );
    node.value = locked ? "never" : String(difficulty);
  };
  return { node, draw };
}

/**
 * Return the line of a relative limit, which the page can only remove.
 * @param {Update} update
 */
function moveHint(update) {
  const node = h("p", { class: "hint" });
  /** @param {Card} card */
  const draw = ({ move }) => {
    node.hidden = move === null;
    if (!move) return;
    const remove = { class: "link", onclick: () => update({ move: null }) };
    const ends = move.map((end) => text(end)).join(" … ");
    fill(node, `may move by ${ends} `, h("button", remove, "remove this limit"));
  };
  return { node, draw };
}

/**
 * Return the switch of strict limits, which a card without limits does not show.
 * @param {Update} update
 */
function strictSwitch(update) {
  const props = { role: "switch", id: uid("strict"), "data-test": "strict" };
  const box = h("input", { type: "checkbox", ...props });
  box.onchange = () => update({ strict: box.checked });
  const hint = h("span", { class: "hint" });
  const words = h("span", null, "Strict limits", hint);
  const node = h("label", { class: "switch", for: box.id }, box, words);
  /** @param {Card} card */
  const draw = (card) => {
    const { locked, strict } = card;
    node.hidden = !hasLimits(card);
    box.checked = strict;
    box.disabled = locked;
    const rule = strict
      ? "the value of every answer lies inside"
      : "the present value may stay, but changes only to one inside";
    fill(hint, rule);
  };
  return { node, draw };
}

/** @param {Update} update */
function directionPicker(update) {
  const group = uid("direction");
  const options = DIRECTIONS.map(([value, picture, word]) => {
    const input = h("input", {
      type: "radio",
      name: group,
      value,
      id: uid("way"),
      "data-test": `direction-${value || "both"}`,
      title: word,
      onchange: () => update({ direction: value }),
    });
    const label = h(
      "label",
      { for: input.id },
      icon(picture),
      h("span", { class: "hidden" }, word),
    );
    return { value, input, node: h("span", { class: "segment" }, input, label) };
  });
  const labelId = `${group}-label`;
  const node = h(
    "div",
    { class: "field ways", role: "radiogroup", "aria-labelledby": labelId },
    h("span", { class: "label", id: labelId }, "Direction"),
    h(
      "div",
      { class: "segments" },
      options.map((option) => option.node),
    ),
  );
  /** @param {Card} card */
  const draw = (card) => {
    for (const { value, input } of options) {
      input.checked = value === card.direction;
      input.disabled = card.locked;
    }
  };
  return { node, draw };
}

/**
 * Return the limits of a number or a point in time.
 * @param {Feature} feature
 * @param {Update} update
 * @returns {CardPart}
 */
function scalePart(feature, update) {
  const range = new Range(feature, { moved: (which, cell) => update({ [which]: cell }) });
  const low = limitBox(feature, "low", update);
  const high = limitBox(feature, "high", update);
  const step = feature.kind === "moment" ? null : stepBox(feature, update);
  const boxes = h(
    "div",
    { class: "row tight" },
    field("at least", low.node),
    field("at most", high.node),
    step ? field("Step", step.node) : null,
  );
  return {
    nodes: [range.node, boxes],
    draw(card, now) {
      const { direction, locked } = card;
      range.draw({ now, low: card.low, high: card.high, direction, locked });
      for (const part of [low, high, step]) part?.draw(card);
    },
  };
}

/**
 * @param {Feature} feature
 * @param {"low" | "high"} which
 * @param {Update} update
 */
function limitBox(feature, which, update) {
  const isMoment = feature.kind === "moment";
  // A limit may be empty, and need not be a whole number.
  const limit = { ...feature, kind: isMoment ? "moment" : "real", missing: true };
  const node = h("input", {
    type: "text",
    class: "short",
    inputmode: isMoment ? null : "decimal",
    autocomplete: "off",
    maxlength: 60,
    "data-test": `limit-${which}-box`,
    placeholder: boxText(feature[which]) || "any",
  });
  node.onchange = () => {
    const { cell, error } = parse(limit, node.value);
    set(node, { "aria-invalid": error ? "true" : null, title: error });
    if (!error) update({ [which]: cell });
  };
  /** @param {Card} card */
  const draw = (card) => {
    if (document.activeElement !== node) node.value = boxText(card[which]);
    node.disabled = card.locked;
  };
  return { node, draw };
}

/**
 * @param {Feature} feature
 * @param {Update} update
 */
function stepBox(feature, update) {
  const node = h("input", {
    type: "number",
    class: "short",
    min: 0,
    step: "any",
    "data-test": "step",
    placeholder: feature.step ?? "any",
  });
  node.onchange = () => {
    const value = node.valueAsNumber;
    update({ step: value > 0 ? value : null });
  };
  /** @param {Card} card */
  const draw = (card) => {
    if (document.activeElement !== node) node.value = boxText(card.step);
    node.disabled = card.locked;
  };
  return { node, draw };
}

/**
 * Return the allowed levels of a feature.
 * @param {Feature} feature
 * @param {Update} update
 * @returns {CardPart}
 */
function levelPart(feature, update) {
  const levels = levelsOf(feature);
  const { counts } = feature.histogram;
  const largest = Math.max(...counts, 1);
  /** @param {Card} card */
  const allowed = (card) => new Set(card.levels ?? levels.keys());

  /** @param {Iterable<number>} kept */
  function take(kept) {
    const sorted = [...kept].sort((a, b) => a - b);
    update({ levels: sorted.length === levels.length ? null : sorted });
  }

  /**
   * @param {number} k
   * @param {boolean} isKept
   */
  function choose(k, isKept) {
    const kept = allowed(cardOf(feature));
    if (isKept) kept.add(k);
    else kept.delete(k);
    take(kept);
  }

  const lines = levels.map((level, k) => levelLine(text(level), counts[k] ?? 0, largest));
  for (const [k, { input }] of lines.entries()) input.onchange = () => choose(k, input.checked);
  const visible = () => lines.flatMap(({ node }, k) => (node.hidden ? [] : [k]));
  const takeAll = () => take(new Set([...allowed(cardOf(feature)), ...visible()]));
  const takeNone = () => {
    const removed = new Set(visible());
    take([...allowed(cardOf(feature))].filter((k) => !removed.has(k)));
  };
  const hasFilter = lines.length > MANY_LEVELS;
  const warning = h(
    "p",
    { class: "hint wrong", hidden: true },
    "No level is allowed, so the feature keeps its value.",
  );
  const tools = h(
    "div",
    { class: "row tight level-tools" },
    hasFilter ? levelFilter(feature, lines) : null,
    h("button", { class: "link", "data-test": "levels-all", onclick: takeAll }, "all"),
    h("button", { class: "link", "data-test": "levels-none", onclick: takeNone }, "none"),
  );
  const list = h(
    "div",
    { class: `level-list${hasFilter ? " many" : ""}` },
    lines.map(({ node }) => node),
  );
  return {
    nodes: [
      h("fieldset", { class: "levels" }, h("legend", null, "May become"), tools, list, warning),
    ],
    draw(card, now) {
      const kept = allowed(card);
      const at = levelOf(feature, now);
      for (const [k, { input, here }] of lines.entries()) {
        input.checked = kept.has(k);
        input.disabled = card.locked;
        here.hidden = k !== at;
      }
      warning.hidden = kept.size > 0 || card.locked;
    },
  };
}

/**
 * Return the line of one level: a box to tick, its text, and how many rows have it.
 * @param {string} level
 * @param {number} n
 * @param {number} largest  the count of the most frequent level
 */
function levelLine(level, n, largest) {
  const props = { type: "checkbox", "data-test": "level", "data-level": clip(level, 80) };
  const input = h("input", props);
  const width = `${(100 * n) / largest}%`;
  const bar = h("i", { class: "level-bar", "aria-hidden": "true", style: { width } });
  const here = h("span", { class: "here", hidden: true }, "now");
  const title = h("bdi", { class: "clip", title: clip(level, 600) }, clip(level, 80));
  const node = h(
    "label",
    { class: "level" },
    input,
    h("span", { class: "level-text" }, title, here, bar),
    h("span", { class: "soft num" }, n),
  );
  return { text: level, input, node, here };
}

/**
 * @param {Feature} feature
 * @param {{text: string, node: HTMLElement}[]} lines
 */
function levelFilter(feature, lines) {
  const box = h("input", {
    type: "search",
    placeholder: "find a level",
    "aria-label": `Find a level of ${clip(feature.name, 80)}`,
    maxlength: 100,
  });
  box.oninput = () => {
    const typed = box.value.trim().toLowerCase();
    for (const { text: level, node } of lines) node.hidden = !level.toLowerCase().includes(typed);
  };
  return box;
}
