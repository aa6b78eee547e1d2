import assert from "node:assert/strict";
import { test } from "node:test";
import * as features from "../../../src/bayescfx/web/static/features.js";
import { feature, integer, moment, smoker } from "./helpers.js";

test("cells become numbers on their axis", () => {
  assert.equal(features.toNumber(feature(), "3.5"), 3.5);
  assert.equal(features.toNumber(feature(), null), null);
  assert.equal(features.toNumber(feature(), true), null);
  assert.equal(features.toNumber(moment, "2020-01-02"), Date.UTC(2020, 0, 2));
  assert.equal(features.toNumber(moment, "2020-01-02 06:30"), Date.UTC(2020, 0, 2, 6, 30));
  assert.equal(features.toNumber(moment, "soon"), null);
});

test("an axis includes the given cells", () => {
  assert.deepEqual(features.axis(feature(), [120]), { low: 0, high: 120, step: 0.2, origin: 0 });
  assert.equal(features.axis(integer)?.step, 1);
  assert.equal(features.axis(moment)?.step, 864e5);
});

test("an axis without ends is made from the histogram", () => {
  const open = feature({ low: null, high: null });
  assert.equal(features.axis(open)?.high, 100);
  assert.equal(features.axis(feature({ low: null, high: null, histogram: { counts: [] } })), null);
});

test("an axis of one value has a width", () => {
  const scale = features.axis(feature({ low: 5, high: 5 }));
  assert.deepEqual([scale?.low, scale?.high], [4.5, 5.5]);
});

test("places and cells are inverse to each other", () => {
  const scale = features.axis(integer);
  assert.ok(scale);
  for (const cell of [18, 31, 80]) {
    const share = features.place(integer, scale, cell);
    assert.equal(features.cellAt(integer, scale, share ?? -1), cell);
  }
  const days = features.axis(moment);
  assert.ok(days);
  assert.equal(features.cellAt(moment, days, 1), "2020-12-31");
});

test("typed texts are parsed, or explained", () => {
  assert.deepEqual(features.parse(feature(), "3,5"), { cell: 3.5, error: null });
  assert.deepEqual(features.parse(feature(), "−2"), { cell: -2, error: null });
  assert.equal(features.parse(feature(), "").error, "A value is needed.");
  assert.equal(features.parse(feature({ missing: true }), "").error, null);
  assert.equal(features.parse(feature(), "x").error, "This must be a number.");
  assert.equal(features.parse(integer, "2.5").error, "This must be a whole number.");
});

test("levels are found by value and type", () => {
  assert.equal(features.levelOf(smoker, "yes"), 1);
  assert.equal(features.levelOf(smoker, true), 2);
  assert.equal(features.levelOf(smoker, "1"), -1);
});

test("stored cells must have the type of their feature", () => {
  assert.ok(features.fits(feature(), null));
  assert.ok(!features.fits(feature(), "3"));
  assert.ok(features.fits(moment, "2020-01-01"));
  assert.ok(features.fits(smoker, "other"));
});

test("cyclic and unordered features have no direction", () => {
  assert.ok(features.hasDirection(integer));
  assert.ok(!features.hasDirection(smoker));
  assert.ok(!features.hasDirection(feature({ cyclic: true })));
});
