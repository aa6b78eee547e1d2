// Limits across features: rules in words, how many may change, what moves together, closeness to the data.
import { newest, predict } from "./api.js";
import { crossButton, debounce, field, fill, h, icon } from "./dom.js";
import { isFree } from "./features.js";
import { clip, count, name } from "./format.js";
import { freedom } from "./space.js";
import { emit, on, space, state } from "./state.js";

const asked = newest(predict);

/** Build the limits across features. */
export function limitsPanel() {
  const { site } = state;
  const free = site.features.filter(isFree);
  const verdict = h("p", { class: "words", "aria-live": "polite", "data-test": "space-check" });
  const summary = h("p", { class: "lead", "data-test": "freedom" });
  const update = (change) => {
    Object.assign(state.limits, change);
    emit("space");
  };
  const rules = h("textarea", { rows: 4, spellcheck: "false", "data-test": "rules", maxlength: 10000, placeholder: "one per line, e.g.  a <= b", oninput: take });
  const insert = h("select", { "data-test": "rule-insert", onchange: () => { put(insert.value); insert.value = ""; } },
    h("option", { value: "" }, "insert a feature …"), site.features.map((f, k) => h("option", { value: k }, clip(f.name, 60))));
  const most = h("select", { "data-test": "max-changes", onchange: () => update({ maxChanges: most.value === "" ? null : Number(most.value) }) });
  const near = h("input", { type: "checkbox", role: "switch", id: "near-data", "data-test": "near-data", onchange: () => update({ nearData: near.checked }) });
  const groups = h("ul", { class: "chips" });
  const pair = [0, 1].map((k) => h("select", { "aria-label": k ? "Second feature that moves along" : "First feature that moves along", "data-test": "together" },
    h("option", { value: "" }, k ? "and …" : "feature …"), free.map((f, j) => h("option", { value: j }, clip(f.name, 60)))));

  function take() {
    update({ require: rules.value.split("\n").map((line) => line.trim()).filter(Boolean) });
  }

  function put(k) {
    if (k === "") return;
    const feature = site.features[Number(k)].name;
    const word = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(feature) ? feature : `\`${feature}\``;
    rules.setRangeText(word, rules.selectionStart, rules.selectionEnd, "end");
    rules.focus();
    take();
  }

  function join() {
    const chosen = pair.map((list) => free[Number(list.value)]?.name);
    if (pair.some((list) => list.value === "") || chosen[0] === chosen[1]) return;
    update({ together: [...state.limits.together, chosen] });
    pair.forEach((list) => { list.value = ""; });
  }

  const check = debounce(async () => {
    const { row, limits } = state;
    if (!row.cells) return;
    try {
      const found = await asked({ cells: row.cells, query: row.cells, space: space(), target: null, tolerance: state.settings.tolerance });
      if (!found) return;
      const broken = limits.require.length ? found.broken.map((text) => clip(text, 120)).join("; ") : "";
      fill(verdict, broken ? `The row itself does not keep: ${broken}. Every answer will.` : "");
    } catch (error) {
      fill(verdict, error.lost ? "" : h("span", { class: "wrong", dir: "auto" }, icon("warn"), clip(error.message, 600)));
    }
  }, 400);

  function draw() {
    const { limits, cards } = state;
    const { all, free: loose, limited } = freedom(site, cards);
    const k = limits.maxChanges;
    fill(summary, `${loose} of ${count(all, "feature")} may change`, limited ? `, ${limited} within limits` : "", k === null ? "." : `; at most ${k} at once.`);
    if (document.activeElement !== rules) rules.value = limits.require.join("\n");
    const choices = Math.max(free.length, k ?? 1);
    if (most.options.length !== choices + 1)
      fill(most, h("option", { value: "" }, "any number"), Array.from({ length: choices }, (_, j) => h("option", { value: j + 1 }, j + 1)));
    most.value = k ?? "";
    near.checked = limits.nearData;
    fill(groups, limits.together.map((group, j) => h("li", null, group.map((feature, i) => [i ? " with " : "", name(feature)]),
      crossButton("Take this away", () => update({ together: limits.together.filter((_, i) => i !== j) })))));
    groups.hidden = !limits.together.length;
  }

  on("space row", draw);
  on("space row", check);
  draw();
  check();
  return h("section", { class: "panel", "aria-labelledby": "limits-title" },
    h("div", { class: "row spread middle" }, h("h2", { id: "limits-title" }, "Limits"), summary),
    h("div", { class: "limits" },
      h("div", null, field("Rules that every answer keeps", rules, { wide: true }),
        h("div", { class: "row tight" }, field("Insert a feature", insert, { quiet: true })), verdict, site.rules.length ? given(site.rules) : null),
      h("div", { class: "stack" }, field("Most features that may change", most),
        h("label", { class: "switch", for: "near-data" }, near, h("span", null, "Stay near the data", h("span", { class: "hint" }, "answers look like rows that exist"))),
        free.length > 1 ? h("fieldset", { class: "field" }, h("legend", null, "Move in the same direction"),
          h("div", { class: "row tight" }, pair, h("button", { "data-test": "together-add", onclick: join }, "Add")), groups) : null)));
}

function given(rules) {
  return h("details", { class: "fold" }, h("summary", null, `${count(rules.length, "rule")} of whoever started this page`),
    h("ul", null, rules.map((rule) => h("li", { dir: "auto" }, clip(rule, 300)))));
}
