import assert from "node:assert/strict";
import { test } from "node:test";
import * as space from "../../../src/bayescfx/web/static/space.js";
import { site } from "./helpers.js";

const WHOLE = {
  fix: ["age"],
  only_up: ["bmi"],
  between: { bmi: [20, null] },
  strict_between: { smoker: ["no", 1] },
  move: { bmi: [-2, 2] },
  require: ["age <= bmi"],
  together: [["age", "bmi"]],
  max_changes: 2,
  near_data: true,
  steps: { bmi: 0.5 },
  cost: { per_change: 0, per_feature: { smoker: 5 } },
  one_group: [["age", "bmi"], ["smoker"]],
};

test("a space survives the way to the cards and back", () => {
  const { cards, limits } = space.fromSpace(site(), WHOLE);
  assert.deepEqual(space.toSpace(site(), cards, limits), WHOLE);
});

test("fresh cards constrain nothing", () => {
  const { cards, limits } = space.fromSpace(site(), {});
  assert.deepEqual(space.toSpace(site(), cards, limits), {});
  assert.equal(space.countConstraints(cards, limits), 0);
});

test("unknown and ill-typed entries are left out", () => {
  const given = {
    fix: "bmi",
    only_down: ["nothing"],
    between: { sex: [0, 1], age: 3 },
    together: [["bmi", "nothing"]],
    max_changes: 1.5,
    steps: { bmi: -1 },
  };
  const { cards, limits } = space.fromSpace(site(), given);
  assert.deepEqual(space.toSpace(site(), cards, limits), {});
  assert.deepEqual(space.fromSpace(site(), null).limits, space.freshLimits());
});

test("features that are not allowed are locked", () => {
  const { cards } = space.fromSpace(site(), { allow: ["bmi"] });
  assert.ok(!cards.get("bmi")?.locked);
  assert.ok(cards.get("age")?.locked);
  assert.ok(!cards.get("sex")?.locked, "a feature fixed by the operator has no settings");
});

test("a card without allowed levels fixes its feature", () => {
  const { cards, limits } = space.fromSpace(site(), {});
  const card = cards.get("smoker");
  assert.ok(card);
  card.levels = [];
  assert.deepEqual(space.toSpace(site(), cards, limits), { fix: ["smoker"] });
});

test("verbs without a control of their own have a text", () => {
  assert.deepEqual(
    space.otherVerbs(site()).map(({ name }) => name),
    ["one_group"],
  );
  assert.deepEqual(space.verbValue('[["age", "bmi"]]'), [["age", "bmi"]]);
  assert.equal(space.verbValue("age,bmi"), "age,bmi");
  assert.equal(space.verbValue(" "), null);
  assert.equal(space.verbText([["age"]]), '[["age"]]');
  assert.equal(space.verbText("age,bmi"), "age,bmi");
  assert.equal(space.verbText(undefined), "");
});

test("free and limited features are counted", () => {
  const { cards, limits } = space.fromSpace(site(), WHOLE);
  assert.deepEqual(space.countFree(site(), cards), { nAll: 3, nFree: 2, nLimited: 2 });
  assert.equal(space.countConstraints(cards, limits), 3 + 1 + 1 + 1 + 1 + 1 + 1);
});
