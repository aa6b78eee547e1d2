// Feature cards: what a feature is now, how it is spread, and whether and where it may move.
import { field, fill, h, icon, set, uid } from "./dom.js";
import { boxText, hasDirection, isFree, isScale, levelOf, parse } from "./features.js";
import { cell as text, clip, count, name, number, shown } from "./format.js";
import { Range } from "./range.js";
import { DIFFICULTIES, freshCard, isSet } from "./space.js";
import { emit, on, state } from "./state.js";

const SHOWS = [["all", "all"], ["free", "may change"], ["set", "with settings"], ["locked", "locked"]];

/** Build all cards, with a box to find them. */
export function cardsPanel() {
  const { features } = state.site;
  const cards = features.filter(isFree).map(makeCard);
  const kept = features.filter((f) => !isFree(f));
  let show = "all";
  const none = h("p", { class: "empty", hidden: true }, "No feature fits.");
  const filter = h("input", { type: "search", placeholder: "name or level", maxlength: 100, "data-test": "feature-filter", oninput: sift });
  const which = h("select", { "data-test": "feature-show", onchange: () => { show = which.value; sift(); } }, SHOWS.map(([value, word]) => h("option", { value }, word)));
  const all = (lock) => () => {
    for (const card of cards) if (!card.node.hidden) settings(card.feature).locked = lock;
    emit("space");
  };

  function sift() {
    const wanted = filter.value.trim().toLowerCase();
    let visible = 0;
    for (const { feature, node } of cards) {
      const card = settings(feature);
      const kind = { all: true, free: !card.locked, set: isSet(card), locked: card.locked }[show];
      const names = [feature.name, ...(feature.levels ?? []).map(text)];
      node.hidden = !(kind && (!wanted || names.some((word) => word.toLowerCase().includes(wanted))));
      visible += !node.hidden;
    }
    none.hidden = visible > 0;
  }

  const redraw = () => cards.forEach((card) => card.draw());
  on("row space", redraw);
  redraw();
  return h("section", { class: "panel", "aria-labelledby": "cards-title" },
    h("h2", { id: "cards-title" }, "Features"),
    h("div", { class: "row" },
      field("Find a feature", filter, { wide: true }), field("Show", which),
      h("button", { "data-test": "lock-all", onclick: all(true) }, icon("lock"), "Lock these"),
      h("button", { "data-test": "unlock-all", onclick: all(false) }, icon("unlock"), "Unlock these"),
      h("button", { class: "quiet", "data-test": "cards-reset", onclick: resetAll }, "Reset all")),
    h("div", { class: "cards" }, cards.map(({ node }) => node)), none, kept.length ? keptList(kept) : null);
}

const settings = (feature) => state.cards.get(feature.name);

function resetAll() {
  for (const feature of state.site.features) state.cards.set(feature.name, freshCard());
  emit("space");
}

function keptList(kept) {
  const list = h("dl", { class: "kept" });
  const draw = () => fill(list, kept.map((f) => h("div", { "data-test": "kept-feature", "data-feature": f.name }, h("dt", null, name(f.name)),
    h("dd", null, shown(state.row.cells[f.name]), h("span", { class: "soft" }, f.derived ? " · follows from others" : " · fixed")))));
  on("row", draw);
  draw();
  return h("details", { class: "fold", "data-test": "kept-features" },
    h("summary", null, `${count(kept.length, "feature")} that may not change here: set by whoever started this page`), list);
}

/** Build the card of one feature: {feature, node, draw}. */
function makeCard(feature) {
  const update = (change) => {
    Object.assign(settings(feature), change);
    emit("space");
  };
  const parts = isScale(feature) ? scaleParts(feature, update) : levelParts(feature, update);
  const now = h("span", { class: "now-value" });
  const lock = h("button", { class: "toggle", "data-test": "lock", onclick: () => update({ locked: !settings(feature).locked }) });
  const direction = hasDirection(feature) ? directionPicker(feature, update) : null;
  const take = () => update(difficulty.value === "never" ? { locked: true } : { locked: false, difficulty: Number(difficulty.value) });
  const difficulty = h("select", { "data-test": "difficulty", onchange: take });
  const move = h("p", { class: "hint" });
  const title = uid("card");
  const node = h("article", { class: "card", "data-test": "feature-card", "data-feature": feature.name, "aria-labelledby": title },
    h("header", null, h("h3", { id: title }, name(feature.name)), lock),
    h("p", { class: "now-line" }, now, isScale(feature) ? h("span", { class: "soft clip", title: clip(feature.words, 600) }, clip(feature.words, 120)) : null),
    parts.nodes, move,
    h("div", { class: "row card-row" }, direction?.node, field("Difficulty", difficulty)));

  let drawn = "";
  function draw() {
    const card = settings(feature), cell = state.row.cells?.[feature.name] ?? null;
    const key = JSON.stringify([card, cell]);
    if (key === drawn) return;
    drawn = key;
    node.classList.toggle("locked", card.locked);
    node.classList.toggle("touched", isSet(card));
    fill(now, "now ", shown(cell, "strong"));
    fill(lock, icon(card.locked ? "lock" : "unlock"), card.locked ? "Locked" : "Lock");
    set(lock, { "aria-pressed": String(card.locked), "aria-label": `${card.locked ? "Locked" : "Lock"}: ${clip(feature.name, 80)}` });
    const known = DIFFICULTIES.some(([factor]) => factor === card.difficulty);
    fill(difficulty, DIFFICULTIES.map(([factor, word]) => h("option", { value: factor }, word)),
      known ? null : h("option", { value: card.difficulty }, `factor ${number(card.difficulty)}`), h("option", { value: "never" }, "impossible"));
    difficulty.value = card.locked ? "never" : String(card.difficulty);
    direction?.draw(card);
    move.hidden = card.move === null;
    if (card.move) fill(move, `may move by ${card.move.map((end) => text(end)).join(" … ")} `,
      h("button", { class: "link", onclick: () => update({ move: null }) }, "take this limit away"));
    parts.draw(card, cell);
  }
  return { feature, node, draw };
}

function directionPicker(feature, update) {
  const group = uid("direction");
  const options = [["", "both", "up or down"], ["up", "up", "only up"], ["down", "down", "only down"]].map(([value, picture, word]) => {
    const input = h("input", { type: "radio", name: group, value, id: uid("way"), "data-test": `direction-${value || "both"}`, title: word,
      onchange: () => update({ direction: value }) });
    return { input, node: h("span", { class: "segment" }, input, h("label", { for: input.id }, icon(picture), h("span", { class: "hidden" }, word))) };
  });
  return {
    node: h("div", { class: "field ways", role: "radiogroup", "aria-labelledby": `${group}-label` },
      h("span", { class: "label", id: `${group}-label` }, "Direction"), h("div", { class: "segments" }, options.map(({ node }) => node))),
    draw: (card) => options.forEach(({ input }) => { input.checked = input.value === card.direction; input.disabled = card.locked; }),
  };
}

function scaleParts(feature, update) {
  const range = new Range(feature, { moved: (which, cell) => update({ [which]: cell }) });
  const ends = ["low", "high"].map((which) => {
    const input = h("input", { type: "text", class: "short", inputmode: feature.kind === "moment" ? null : "decimal", autocomplete: "off", maxlength: 60,
      "data-test": `limit-${which}-box`, placeholder: boxText(feature[which]) || "any", onchange: () => take(which, input) });
    return input;
  });
  const take = (which, input) => {
    const { cell, error } = input.value.trim() === "" ? { cell: null } : parse({ ...feature, kind: feature.kind === "moment" ? "moment" : "real" }, input.value);
    set(input, { "aria-invalid": error ? "true" : null, title: error ?? null });
    if (!error) update({ [which]: cell });
  };
  const step = feature.kind === "moment" ? null : h("input", {
    type: "number", class: "short", min: 0, step: "any", "data-test": "step", placeholder: feature.step ?? "any",
    onchange: () => update({ step: step.valueAsNumber > 0 ? step.valueAsNumber : null }) });
  return {
    nodes: [range.node, h("div", { class: "row tight" }, field("at least", ends[0]), field("at most", ends[1]), step ? field("Step", step) : null)],
    draw(card, now) {
      range.draw({ now, low: card.low, high: card.high, direction: card.direction, locked: card.locked });
      ["low", "high"].forEach((which, k) => {
        if (document.activeElement !== ends[k]) ends[k].value = boxText(card[which]);
        ends[k].disabled = card.locked;
      });
      if (!step) return;
      if (document.activeElement !== step) step.value = card.step ?? "";
      step.disabled = card.locked;
    },
  };
}

function levelParts(feature, update) {
  const counts = feature.histogram?.counts ?? [], most = Math.max(...counts, 1);
  const allowed = (card) => new Set(card.levels ?? feature.levels.keys());
  const choose = (k, keep) => {
    const kept = allowed(settings(feature));
    if (keep) kept.add(k);
    else kept.delete(k);
    take([...kept]);
  };
  const take = (kept) => update({ levels: kept.length === feature.levels.length ? null : kept.sort((a, b) => a - b) });
  const lines = feature.levels.map((level, k) => {
    const input = h("input", { type: "checkbox", "data-test": "level", "data-level": clip(text(level), 80), onchange: () => choose(k, input.checked) });
    const bar = h("i", { class: "level-bar", "aria-hidden": "true", style: { width: `${(100 * (counts[k] ?? 0)) / most}%` } });
    const here = h("span", { class: "here", hidden: true }, "now");
    const node = h("label", { class: "level" }, input,
      h("span", { class: "level-text" }, h("bdi", { class: "clip", title: clip(text(level), 600) }, clip(text(level), 80)), here, bar),
      h("span", { class: "soft num" }, counts[k] ?? ""));
    return { input, node, here };
  });
  const filter = h("input", { type: "search", placeholder: "find a level", "aria-label": `Find a level of ${clip(feature.name, 80)}`, maxlength: 100, oninput: () => {
    const wanted = filter.value.trim().toLowerCase();
    feature.levels.forEach((level, k) => { lines[k].node.hidden = !text(level).toLowerCase().includes(wanted); });
  } });
  const visible = () => lines.flatMap(({ node }, k) => (node.hidden ? [] : [k]));
  const none = () => {
    const gone = new Set(visible());
    take([...allowed(settings(feature))].filter((k) => !gone.has(k)));
  };
  const many = lines.length > 8;
  const warning = h("p", { class: "hint wrong", hidden: true }, "No level is allowed, so it stays as it is.");
  const tools = h("div", { class: "row tight level-tools" }, many ? filter : null,
    h("button", { class: "link", "data-test": "levels-all", onclick: () => take([...new Set([...allowed(settings(feature)), ...visible()])]) }, "all"),
    h("button", { class: "link", "data-test": "levels-none", onclick: none }, "none"));
  return {
    nodes: [h("fieldset", { class: "levels" }, h("legend", null, "May become"), tools,
      h("div", { class: `level-list${many ? " many" : ""}` }, lines.map(({ node }) => node)), warning)],
    draw(card, now) {
      const kept = allowed(card), at = levelOf(feature, now);
      lines.forEach(({ input, here }, k) => {
        input.checked = kept.has(k);
        input.disabled = card.locked;
        here.hidden = k !== at;
      });
      warning.hidden = kept.size > 0 || card.locked;
    },
  };
}
