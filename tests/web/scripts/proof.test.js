import assert from "node:assert/strict";
import { test } from "node:test";
import { proofText, statusOf, statusText } from "../../../src/bayescfx/web/static/badge.js";
import { provingText } from "../../../src/bayescfx/web/static/progress.js";

test("a proof has words, and none without a proof", () => {
  assert.equal(proofText({ proof: "optimal", status: "reached" }), "proven optimal");
  assert.equal(proofText({ proof: "within 3 %", status: "reached" }), "proven within 3 %");
  assert.equal(proofText({ proof: "out of reach", status: "unreachable" }), "proven");
  assert.equal(proofText({ proof: null, status: "reached" }), null);
  assert.equal(proofText({ proof: null, status: "unreachable" }), null);
  assert.equal(proofText({ proof: "", status: "best_guess" }), null);
});

test("a running proof has a bound, and a gap once there is an answer", () => {
  assert.equal(provingText(2.66, 2.41), "bound 2.41, gap 11 %");
  assert.equal(provingText(null, 2.41), "bound 2.41");
  assert.equal(provingText(2.66, 0.012345), "bound 0.0123, gap 21448 %");
});

test("the gap is rounded up, so that it is 0 only when nothing is left", () => {
  assert.equal(provingText(2, 2), "bound 2, gap 0 %");
  assert.equal(provingText(2.0001, 2), "bound 2, gap 1 %");
  assert.equal(provingText(2 - 1e-12, 2), "bound 2, gap 0 %");
});

test("without a bound above zero there is no gap", () => {
  assert.equal(provingText(2.66, 0), "bound 0");
  assert.equal(provingText(0, 0), "bound 0");
});

test("a question has the status of its answer once it is done", () => {
  assert.equal(statusOf({ state: "done", status: "reached" }), "reached");
  assert.equal(statusOf({ state: "running", status: null }), "running");
  assert.equal(statusOf({ state: "failed", status: null }), "failed");
});

test("a status has words, an unknown one its own", () => {
  assert.equal(statusText("best_guess"), "best guess");
  assert.equal(statusText("unreachable"), "out of reach");
  assert.equal(statusText("other"), "other");
  assert.equal(statusText(null), "null");
});
