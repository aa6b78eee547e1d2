import assert from "node:assert/strict";
import { test } from "node:test";
import * as targets from "../../../src/bayescfx/web/static/targets.js";

test("the mode of a text is recognised", () => {
  const texts = {
    least: [">= 150", "≥3", "at least 2"],
    most: ["<= -20", "at most 5"],
    exact: ["150", "= 3", "reach -4", "exactly 4"],
    between: ["[1, 2]", "1 .. 2", "1 to 2", "between 1 and 2"],
    change: ["+20%", "-3", "− 1.5e3 percent"],
    typed: ["±5", "=+20%", "= -3", "nonsense", ""],
  };
  for (const [mode, some] of Object.entries(texts)) {
    for (const text of some) assert.equal(targets.modeOf(text), mode, text);
  }
});

test("amounts are parsed and written", () => {
  assert.deepEqual(targets.parseAmount("-20 %"), { amount: -20, isPercent: true });
  assert.equal(targets.parseAmount("20"), null);
  assert.equal(targets.changeText(-20, true), "-20%");
  assert.equal(targets.changeText(3, false), "+3");
});

test("handles write the text of their mode", () => {
  const current = { text: "+10%", output: 200 };
  assert.deepEqual(targets.toText("least", [-5], current).text, ">= -5");
  assert.deepEqual(targets.toText("between", [9, 3], current), {
    text: "[3, 9]",
    wanted: [[3, 9]],
  });
  assert.deepEqual(targets.toText("change", [250], current), {
    text: "+25%",
    wanted: [[250, null]],
  });
  assert.deepEqual(targets.toText("change", [150], current), {
    text: "-25%",
    wanted: [[null, 150]],
  });
  assert.equal(targets.toText("exact", [-5], current).text, "reach -5");
  assert.equal(targets.toText("exact", [5], current).text, "= 5");
  assert.equal(targets.toText("change", [250], { text: "+10", output: 200 }).text, "+50");
});

test("a target has handles at its ends", () => {
  assert.deepEqual(targets.handleValues(">= 150", [[150, null]]), [150]);
  assert.deepEqual(targets.handleValues("[1, 2]", [[1, 2]]), [1, 2]);
  assert.deepEqual(targets.handleValues("+20%", [[120, null]]), [120]);
  assert.deepEqual(targets.handleValues("-20%", [[null, 80]]), [80]);
  assert.deepEqual(targets.handleValues("= 5", [[5, 5]]), [5]);
  assert.deepEqual(targets.handleValues("±5", [[null, 1]]), []);
  assert.deepEqual(targets.handleValues("+20%", null), []);
  assert.equal(targets.handleLabels("between").length, 2);
});

test("another mode starts near the present target", () => {
  const edges = [0, 50, 100];
  assert.deepEqual(targets.valuesFor("most", [30], 20, edges), [30]);
  assert.deepEqual(targets.valuesFor("between", [30], 20, edges), [30, 40]);
  assert.deepEqual(targets.valuesFor("least", [], 20, edges), [30]);
  assert.deepEqual(targets.valuesFor("change", [20], 20, edges), [30]);
});

test("the first target is a quarter of the predictions away", () => {
  const predictions = { edges: [0, 10, 20, 30, 40], counts: [1, 1, 1, 1] };
  assert.equal(targets.firstTarget(predictions, 5, false), ">= 25");
  assert.equal(targets.firstTarget(predictions, 39, false), "<= 5");
  const chances = { edges: [0, 0.5, 1], counts: [1, 1] };
  assert.equal(targets.firstTarget(chances, 0.9, true), "<= 0.5");
});

test("the gap is the distance to the nearest interval", () => {
  assert.equal(targets.gap(5, [[8, null]]), 3);
  assert.equal(targets.gap(9, [[8, null]]), 0);
  assert.equal(
    targets.gap(5, [
      [null, 1],
      [7, 9],
    ]),
    2,
  );
  assert.equal(targets.gap(null, [[1, 2]]), null);
});

test("a target at a reached output is never beyond it", () => {
  assert.equal(targets.targetAt(123.4567, [[200, null]]), ">= 123.45");
  assert.equal(targets.targetAt(123.4567, [[null, 100]]), "<= 123.46");
  assert.equal(targets.targetAt(123.4567, [[100, 110]]), "= 123.46");
});
