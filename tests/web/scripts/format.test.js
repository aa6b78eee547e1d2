import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "../../../src/bayescfx/web/static/format.js";

test("numbers have significant digits, and exponents only at the extremes", () => {
  assert.equal(format.number(null), "–");
  assert.equal(format.number(203.456), "203.5");
  assert.equal(format.number(-0.5), "−0.5");
  assert.equal(format.number(-0), "0");
  assert.equal(format.number(123456.7), "123457");
  assert.equal(format.number(1.23456e-7), "1.235e-7");
  assert.equal(format.number(Number.NaN), "not a number");
  assert.equal(format.number(Number.NEGATIVE_INFINITY), "−∞");
});

test("compared numbers have the digits that tell them apart", () => {
  assert.equal(format.numberApart(203.456, [271, null, Number.POSITIVE_INFINITY]), "203.5");
  assert.equal(format.numberApart(203.456, [203.5]), "203.46");
  assert.equal(format.numberApart(203.5, [203.50004]), "203.5");
  assert.equal(format.numberApart(203.50004, [203.5]), "203.50004");
  assert.equal(format.numberApart(0.1 + 0.2, [0.3]), "0.30000000000000004");
  assert.equal(format.numberApart(2, [2]), "2");
});

test("differences have a sign", () => {
  assert.equal(format.signed(2), "+2");
  assert.equal(format.signed(-2), "−2");
  assert.equal(format.signed(0), "0");
});

test("cells are shown as text", () => {
  assert.equal(format.cell(null), "missing");
  assert.equal(format.cell(true), "true");
  assert.equal(format.cell(-3), "−3");
  assert.equal(format.cell(0.123456789), "0.123456789");
  assert.equal(format.cell(0.123456789, 6), "0.123457");
  assert.equal(format.cell(""), "(empty)");
  assert.equal(format.cell("  "), "(blank)");
});

test("long texts are clipped between characters", () => {
  assert.equal(format.clip("abc", 3), "abc");
  assert.equal(format.clip("abcd", 3), "abc…");
  assert.equal(format.clip("ab😀d", 3), "ab…");
});

test("counts, shares and durations have units", () => {
  assert.equal(format.count(1, "row"), "1 row");
  assert.equal(format.count(0, "row"), "0 rows");
  assert.equal(format.percent(0.153), "15 %");
  assert.equal(format.seconds(3.14), "3.1 s");
  assert.equal(format.seconds(42.4), "42 s");
  assert.equal(format.seconds(600), "10 min");
});

test("percentiles have their ending", () => {
  const ranks = [0.01, 0.02, 0.03, 0.04, 0.11, 0.12, 0.13, 0.21, 0.98];
  const endings = ranks.map((share) => format.percentile(share).split(" ")[0]);
  const expected = ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "98th"];
  assert.deepEqual(endings, expected);
});

test("plausibility is explained", () => {
  const texts = [0.001, 0.15, 0.999].map(format.plausibility);
  assert.deepEqual(texts, [
    "below the 1st percentile of the training rows (nearly all are more typical)",
    "15th percentile of the training rows (15 % are less typical)",
    "above the 99th percentile of the training rows (nearly all are less typical)",
  ]);
});

test("steps are 1, 2 or 5 times a power of ten", () => {
  assert.deepEqual([1.2, 2.3, 4, 8, 0.03].map(format.nice), [1, 2, 5, 10, 0.02]);
  assert.equal(format.nice(0), 1);
  assert.equal(format.nice(Number.POSITIVE_INFINITY), 1);
});

test("snapping leaves no rounding error", () => {
  assert.equal(format.snap(0.31, 0.1), 0.3);
  assert.equal(format.snap(7, 5, 1), 6);
  assert.equal(format.snap(0.1 + 0.2, 0), 0.3);
});

test("ticks are round and inside the interval", () => {
  assert.deepEqual(format.ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(format.ticks(2, 2), [2]);
});

test("decimals have no exponent", () => {
  assert.equal(format.decimal(1.5), "1.5");
  assert.equal(format.decimal(1e21), "1000000000000000000000");
  assert.ok(!format.decimal(1e-7).includes("e"));
  assert.equal(Number(format.decimal(1e-7)), 1e-7);
});
