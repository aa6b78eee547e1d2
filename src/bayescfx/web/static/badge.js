// @ts-check
// The status of a question or an answer: a sign and a word, never a colour alone.
import { h, icon } from "./dom.js";

/** @import { Answer, Question } from "./types.js" */

/** @type {Record<string, [string, string]>} */
const KINDS = {
  reached: ["check", "reached"],
  best_guess: ["near", "best guess"],
  unreachable: ["no", "out of reach"],
  waiting: ["wait", "waiting"],
  running: ["wait", "searching"],
  failed: ["warn", "failed"],
};

/**
 * Return a status in words.
 * @param {string | null} status
 */
export const statusText = (status) => KINDS[String(status)]?.[1] ?? String(status);

/**
 * Return the badge of a status.
 * @param {string | null} status
 */
export function badge(status) {
  const [picture] = KINDS[String(status)] ?? ["wait"];
  const props = { class: `badge ${status}`, "data-test": "badge", "data-status": status };
  return h("span", props, icon(picture), statusText(status));
}

/**
 * Return a proof in words: "proven optimal", "proven within 3 %" or "proven"; null without one.
 * @param {{proof: string | null, status: string}} answer
 */
export function proofText({ proof, status }) {
  if (!proof) return null;
  return status === "unreachable" ? "proven" : `proven ${proof}`;
}

/**
 * Return the badge of a proof; null without one.
 * @param {{proof: string | null, status: string}} answer
 */
export function proofBadge(answer) {
  const text = proofText(answer);
  if (text === null) return null;
  return h("span", { class: "badge proven", "data-test": "proof" }, icon("check"), text);
}

/**
 * Return the status of a question: that of its answer, or its state until it has one.
 * @param {Question} question
 */
export const statusOf = (question) =>
  question.state === "done" ? question.status : question.state;
