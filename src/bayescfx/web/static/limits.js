// @ts-check
// Constraints across features: rules, how many may change, common directions, closeness to the data.
import { asApiError, latest, predict } from "./api.js";
import { crossButton, debounce, field, fill, h, icon } from "./dom.js";
import { isFree } from "./features.js";
import { clip, count, name } from "./format.js";
import { countFree, otherVerbs, verbText, verbValue } from "./space.js";
import { emit, on, space, state } from "./state.js";

/** @import { Feature, Limits, Verb } from "./types.js" */

const requestCheck = latest(predict);

/** @param {Partial<Limits>} change */
function update(change) {
  Object.assign(state.limits, change);
  emit("space");
}

/**
 * Return a feature's name as rules have it: in backquotes unless it is an identifier.
 * @param {string} feature
 */
export const ruleName = (feature) =>
  /^[\p{L}_][\p{L}\p{N}_]*$/u.test(feature) ? feature : `\`${feature}\``;

/** Build the constraints across features. */
export function limitsPanel() {
  const { site } = state;
  const free = site.features.filter(isFree);
  const summary = h("p", { class: "lead", "data-test": "freedom" });
  const rules = rulesBox();
  const most = maxChangesList(free.length);
  const price = perChangeInput();
  const near = nearDataSwitch();
  const together = togetherPicker(free);
  const others = otherVerbs(site).map(verbControl);

  function draw() {
    drawSummary(summary);
    for (const part of [rules, most, price, near, together, ...others]) part.draw();
  }
  on("space row", draw);
  draw();
  return h(
    "section",
    { class: "panel", "aria-labelledby": "limits-title" },
    h("div", { class: "row spread middle" }, h("h2", { id: "limits-title" }, "Limits"), summary),
    h(
      "div",
      { class: "limits" },
      h(
        "div",
        null,
        rules.nodes,
        checkLine(),
        site.rules.length ? operatorRules(site.rules) : null,
      ),
      h(
        "div",
        { class: "stack" },
        field("Most features that may change", most.node),
        field("Price of each change", price.node),
        near.node,
        free.length > 1 ? together.node : null,
        others.map(({ node }) => node),
      ),
    ),
  );
}

/**
 * Say how many features may change.
 * @param {HTMLElement} node
 */
function drawSummary(node) {
  const { nAll, nFree, nLimited } = countFree(state.site, state.cards);
  const { maxChanges } = state.limits;
  fill(
    node,
    `${nFree} of ${count(nAll, "feature")} may change`,
    nLimited ? `, ${nLimited} within limits` : "",
    maxChanges === null ? "." : `; at most ${maxChanges} at once.`,
  );
}

/** Return the box of rules, with a list that inserts names of features. */
function rulesBox() {
  const { features } = state.site;
  const box = h("textarea", {
    rows: 4,
    spellcheck: "false",
    "data-test": "rules",
    maxlength: 10000,
    placeholder: "one per line, e.g.  a <= b",
    oninput: take,
  });
  const insert = h(
    "select",
    { "data-test": "rule-insert" },
    h("option", { value: "" }, "insert a feature …"),
    features.map((f, k) => h("option", { value: k }, clip(f.name, 60))),
  );
  insert.onchange = () => {
    if (insert.value !== "") insertName(ruleName(features[Number(insert.value)].name));
    insert.value = "";
  };

  function take() {
    const lines = box.value.split("\n").map((line) => line.trim());
    update({ require: lines.filter(Boolean) });
  }

  /** @param {string} word */
  function insertName(word) {
    box.setRangeText(word, box.selectionStart, box.selectionEnd, "end");
    box.focus();
    take();
  }

  const nodes = [
    field("Rules that every answer satisfies", box, { wide: true }),
    h("div", { class: "row tight" }, field("Insert a feature", insert, { quiet: true })),
  ];
  const draw = () => {
    if (document.activeElement !== box) box.value = state.limits.require.join("\n");
  };
  return { nodes, draw };
}

/** Return the line with errors of the rules, and those that the row itself breaks. */
function checkLine() {
  const node = h("p", { class: "words", "aria-live": "polite", "data-test": "space-check" });
  const check = debounce(async () => {
    const { cells } = state.row;
    const { tolerance } = state.settings;
    try {
      const body = { cells, query: cells, space: space(), target: null, tolerance };
      const found = await requestCheck(body);
      if (!found) return;
      const broken = found.broken.map((text) => clip(text, 120)).join("; ");
      const isBroken = state.limits.require.length > 0 && broken !== "";
      fill(node, isBroken ? `The row itself breaks: ${broken}. No answer will.` : "");
    } catch (thrown) {
      const error = asApiError(thrown);
      const text = h(
        "span",
        { class: "wrong", dir: "auto" },
        icon("warn"),
        clip(error.message, 600),
      );
      fill(node, error.lost ? "" : text);
    }
  }, 400);
  on("space row", () => check());
  check();
  return node;
}

/** @param {number} nFree */
function maxChangesList(nFree) {
  const node = h("select", { "data-test": "max-changes" });
  node.onchange = () => update({ maxChanges: node.value === "" ? null : Number(node.value) });
  const draw = () => {
    const { maxChanges } = state.limits;
    const n = Math.max(nFree, maxChanges ?? 1);
    if (node.options.length !== n + 1) {
      const numbers = Array.from({ length: n }, (_, k) => k + 1);
      fill(
        node,
        h("option", { value: "" }, "any number"),
        numbers.map((k) => h("option", { value: k }, k)),
      );
    }
    node.value = String(maxChanges ?? "");
  };
  return { node, draw };
}

/** The price of a changed feature; the larger it is, the fewer features change. */
function perChangeInput() {
  const node = h("input", {
    type: "number",
    min: 0,
    step: "any",
    placeholder: state.site.per_change,
    "data-test": "per-change",
  });
  node.onchange = () => {
    const { per_change: _, ...rest } = state.limits.cost;
    const isGiven = node.value !== "" && Number(node.value) >= 0;
    update({ cost: isGiven ? { ...rest, per_change: Number(node.value) } : rest });
  };
  const draw = () => {
    node.value = String(state.limits.cost.per_change ?? "");
  };
  return { node, draw };
}

function nearDataSwitch() {
  const box = h("input", {
    type: "checkbox",
    role: "switch",
    id: "near-data",
    "data-test": "near-data",
  });
  box.onchange = () => update({ nearData: box.checked });
  const hint = h("span", { class: "hint" }, "answers resemble rows of the data");
  const node = h(
    "label",
    { class: "switch", for: "near-data" },
    box,
    h("span", null, "Stay near the data", hint),
  );
  const draw = () => {
    box.checked = state.limits.nearData;
  };
  return { node, draw };
}

/**
 * Return the picker of features that move in the same direction.
 * @param {Feature[]} free
 */
function togetherPicker(free) {
  const groups = h("ul", { class: "chips" });
  /**
   * @param {string} label
   * @param {string} empty
   */
  const list = (label, empty) =>
    h(
      "select",
      { "aria-label": label, "data-test": "together" },
      h("option", { value: "" }, empty),
      free.map((f, k) => h("option", { value: k }, clip(f.name, 60))),
    );
  const first = list("First feature that moves along", "feature …");
  const second = list("Second feature that moves along", "and …");

  function add() {
    if (first.value === "" || second.value === "" || first.value === second.value) return;
    const names = [first, second].map((one) => free[Number(one.value)].name);
    update({ together: [...state.limits.together, names] });
    first.value = "";
    second.value = "";
  }

  function draw() {
    const { together } = state.limits;
    /** @param {number} k */
    const remove = (k) => update({ together: together.filter((_, i) => i !== k) });
    fill(
      groups,
      together.map((names, k) =>
        h(
          "li",
          null,
          names.map((feature, i) => [i ? " with " : "", name(feature)]),
          crossButton("Remove this group", () => remove(k)),
        ),
      ),
    );
    groups.hidden = !together.length;
  }

  const button = h("button", { "data-test": "together-add", onclick: add }, "Add");
  const node = h(
    "fieldset",
    { class: "field" },
    h("legend", null, "Move in the same direction"),
    h("div", { class: "row tight" }, first, second, button),
    groups,
  );
  return { node, draw };
}

/**
 * Return the control of a verb that has none of its own: a switch, or a text as on the command line.
 * @param {Verb} verb
 */
function verbControl(verb) {
  return verb.takes_text ? verbBox(verb) : verbSwitch(verb);
}

/**
 * Set the value of a verb without a control of its own; null removes it.
 * @param {string} name
 * @param {unknown} value
 */
function setOther(name, value) {
  const { [name]: _, ...others } = state.limits.other;
  update({ other: value === null ? others : { ...others, [name]: value } });
}

/** @param {Verb} verb */
function verbSwitch({ name: verb, help }) {
  const id = `verb-${verb}`;
  const box = h("input", { type: "checkbox", role: "switch", id, "data-test": id });
  box.onchange = () => setOther(verb, box.checked ? true : null);
  const hint = h("span", { class: "hint" }, help);
  const node = h("label", { class: "switch", for: id }, box, h("span", null, verb, hint));
  const draw = () => {
    box.checked = Boolean(state.limits.other[verb]);
  };
  return { node, draw };
}

/** @param {Verb} verb */
function verbBox({ name: verb, help, example, is_repeatable: isRepeatable }) {
  const props = {
    placeholder: example,
    spellcheck: "false",
    autocomplete: "off",
    maxlength: 2000,
    title: help,
    "data-test": `verb-${verb}`,
  };
  const box = isRepeatable ? h("textarea", { rows: 2, ...props }) : h("input", props);
  box.onchange = () => setOther(verb, verbValue(box.value));
  const draw = () => {
    if (document.activeElement !== box) box.value = verbText(state.limits.other[verb]);
  };
  return { node: field(`${verb}: ${help}`, box, { wide: true }), draw };
}

/** @param {string[]} rules */
function operatorRules(rules) {
  return h(
    "details",
    { class: "fold" },
    h("summary", null, `${count(rules.length, "rule")} set by the operator of this page`),
    h(
      "ul",
      null,
      rules.map((rule) => h("li", { dir: "auto" }, clip(rule, 300))),
    ),
  );
}
