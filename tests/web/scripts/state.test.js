import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import * as page from "../../../src/bayescfx/web/static/state.js";
import { site } from "./helpers.js";

const CELLS = { bmi: 30, age: 40, smoker: "no", sex: 1 };

beforeEach(() => {
  page.begin(site());
  page.setRow({ label: "7", cells: CELLS, output: 3 });
});

test("a row has exactly the features of the site", () => {
  page.setRow({ label: "8", cells: { bmi: 1, other: 2 } });
  assert.deepEqual(page.state.row.cells, { bmi: 1, age: null, smoker: null, sex: null });
});

test("an edited row says so until the edit is undone", () => {
  page.editCell("bmi", 31);
  assert.equal(page.state.row.label, "7, edited");
  assert.equal(page.state.row.output, null);
  page.editCell("bmi", 30);
  assert.equal(page.state.row.label, "7");
  assert.equal(page.asEdited("7, edited"), "7, edited");
});

test("listeners get their topics", () => {
  const topics = [];
  page.on("row space", (topic) => topics.push(topic));
  page.setSpace({ fix: ["age"] });
  page.editCell("bmi", 1);
  assert.deepEqual(topics, ["space", "row"]);
  assert.deepEqual(page.request().space, { fix: ["age"] });
});

test("settings are cut to their range, and nonsense is ignored", () => {
  const wrong = { timeout: -1, seed: 1.5, tolerance: 2, method: "?", diverse: "yes" };
  page.setSettings({ budget: 10 ** 9, n: 99, ...wrong });
  const { defaults, maximum } = site();
  assert.deepEqual(page.state.settings, { ...defaults, budget: maximum.budget, n: maximum.n });
  page.setSettings({ budget: null, timeout: 5, diverse: true });
  assert.equal(page.request().diverse, true);
  assert.equal(page.state.settings.budget, null);
  assert.equal(page.state.settings.timeout, 5);
});

test("an answer is stale once the draft differs", () => {
  page.state.question = { id: 1 };
  page.state.sentDraft = page.draftKey();
  assert.ok(!page.isStale());
  page.editCell("age", 50);
  assert.ok(page.isStale());
  page.state.question = null;
  assert.ok(!page.isStale());
});

test("stored rows must fit the site", () => {
  assert.ok(page.isRow({ cells: CELLS }));
  assert.ok(!page.isRow({ cells: { ...CELLS, bmi: "30" } }));
  assert.ok(!page.isRow({ cells: { bmi: 1 } }));
  assert.ok(!page.isRow(null));
});
