// How a question or an answer ended: a sign and a word, never a colour alone.
import { h, icon } from "./dom.js";

const KINDS = {
  reached: ["check", "reached"],
  best_guess: ["near", "best guess"],
  unreachable: ["no", "out of reach"],
  waiting: ["wait", "waiting"],
  running: ["wait", "searching"],
  failed: ["warn", "failed"],
};

/** Return the badge of a status. */
export function badge(status) {
  const [picture, word] = KINDS[status] ?? ["wait", String(status)];
  return h("span", { class: `badge ${status}`, "data-test": "badge", "data-status": status }, icon(picture), word);
}

/** Return the status of a question, whatever its state. */
export const statusOf = (question) => (question.state === "done" ? question.status : question.state);
