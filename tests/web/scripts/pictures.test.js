import assert from "node:assert/strict";
import { test } from "node:test";
import { withQuery } from "../../../src/bayescfx/web/static/api.js";
import { arrowIcon, changePath } from "../../../src/bayescfx/web/static/changes.js";
import { plain, rangeOf, targetShapes } from "../../../src/bayescfx/web/static/charts.js";
import { tickTexts } from "../../../src/bayescfx/web/static/curve.js";
import { ruleName } from "../../../src/bayescfx/web/static/limits.js";
import { allowedShares, endShare } from "../../../src/bayescfx/web/static/range.js";
import {
  domain,
  groupByPlace,
  handleText,
  rulerStep,
} from "../../../src/bayescfx/web/static/ruler.js";
import { keySteps } from "../../../src/bayescfx/web/static/slider.js";

test("keys ask for steps", () => {
  assert.equal(keySteps("ArrowLeft", false), -1);
  assert.equal(keySteps("ArrowUp", true), 10);
  assert.equal(keySteps("PageDown", true), -10);
  assert.equal(keySteps("End", false), Number.POSITIVE_INFINITY);
  assert.equal(keySteps("a", false), 0);
});

test("the ends of a range do not cross, and are open at the ends of the axis", () => {
  assert.equal(endShare("low", 0.8, 0.5), 0.5);
  assert.equal(endShare("high", 0.2, 0.5), 0.5);
  assert.equal(endShare("low", -0.1, 0.5), null);
  assert.equal(endShare("high", 1, 0.5), null);
});

test("a direction cuts the allowed range at the present value", () => {
  assert.deepEqual(allowedShares(0, 1, 0.4, "up"), [0.4, 1]);
  assert.deepEqual(allowedShares(0, 1, 0.4, "down"), [0, 0.4]);
  assert.deepEqual(allowedShares(0, 1, null, "up"), [0, 1]);
  assert.equal(allowedShares(0, 0.3, 0.4, "up"), null);
});

test("a ruler includes near outputs only", () => {
  const [low, high] = domain([0, 10], [12, 1000]);
  assert.ok(low < 0 && low > -1);
  assert.ok(high > 12 && high < 13);
  assert.equal(rulerStep([0, 300]), 1);
  assert.deepEqual(domain([5, 5], []), [4.97, 5.03]);
});

test("a handle beyond the ruler has an arrow", () => {
  assert.equal(handleText(5, [0, 10]), "5");
  assert.equal(handleText(-5, [0, 10]), "← −5");
  assert.equal(handleText(50, [0, 10]), "50 →");
});

test("answers at the same place share a badge", () => {
  const groups = groupByPlace([{ x: 50 }, { x: 0 }, { x: 10 }]);
  assert.deepEqual(
    groups.map(({ members }) => members.length),
    [2, 1],
  );
});

test("changes point up or down, also around a cycle", () => {
  const change = { ordered: true, start: 0.2, end: 0.8, wraps: false };
  assert.equal(arrowIcon(change), "up");
  assert.equal(arrowIcon({ ...change, wraps: true }), "down");
  assert.equal(arrowIcon({ ...change, ordered: false }), "both");
  assert.equal(arrowIcon({ ...change, end: null }), "both");
  assert.equal(changePath(0, 1, false), "M10 12H190");
  assert.equal(changePath(1, 0, true), "M190 12H198M2 12H10");
});

test("texts for Plotly are escaped", () => {
  assert.equal(plain("<b>$1 & more</b>"), "&lt;b&gt;&#36;1 &amp; more&lt;/b&gt;");
  assert.equal(plain(" "), "(no name)");
});

test("the range of a chart has a margin", () => {
  assert.deepEqual(rangeOf([0, 10, null], 0.1), [-1, 11]);
  assert.deepEqual(rangeOf([5], 0.1), [4.5, 5.5]);
});

test("the target is a band with its ends as lines", () => {
  const colour = { good: "g", band: "b" };
  const kinds = (wanted) => targetShapes(wanted, colour, [0, 10]).map(({ type }) => type);
  assert.deepEqual(kinds([[3, null]]), ["rect", "line"]);
  assert.deepEqual(kinds([[3, 3]]), ["line"]);
  assert.deepEqual(kinds([[20, null]]), []);
  assert.deepEqual(kinds(null), []);
});

test("ticks have texts unless they are numbers", () => {
  assert.deepEqual(tickTexts({ x: [1, 2], texts: ["1", "2"], numeric: true }), {});
  const days = tickTexts({ x: [1, 2], texts: ["Mon", "Tue"], numeric: false });
  assert.deepEqual(days, { tickvals: [1, 2], ticktext: ["Mon", "Tue"] });
});

test("names in rules are quoted unless they are identifiers", () => {
  assert.equal(ruleName("bmi"), "bmi");
  assert.equal(ruleName("größe_2"), "größe_2");
  assert.equal(ruleName("blood pressure"), "`blood pressure`");
});

test("absent values are left out of a query", () => {
  assert.equal(withQuery("/api/rows", { low: "", high: null, limit: 3 }), "/api/rows?limit=3");
  assert.equal(withQuery("/api/rows", {}), "/api/rows");
});
