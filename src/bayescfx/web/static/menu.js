// @ts-check
// The menu of an answer: which sets of features can reach the target. It is computed when opened.
import { asApiError, getMenu } from "./api.js";
import { fill, h } from "./dom.js";
import { clip } from "./format.js";

/** @import { Answered } from "./parts.js" */
/** @import { Child, Menu } from "./types.js" */

const HEADS = ["features", "cost", "changes"];

/**
 * Return the menu as a table, and sentences on what it does not show.
 * @param {Menu} menu
 * @returns {Child}
 */
export function menuTable({ lines, notes }) {
  const head = HEADS.map((word) => h("th", { scope: "col" }, word));
  const body = lines.map(([features, cost, changes]) =>
    h(
      "tr",
      { "data-test": "menu-line" },
      h("th", { scope: "row", dir: "auto" }, clip(features, 200)),
      h("td", { class: "num" }, cost),
      h("td", { dir: "auto" }, clip(changes, 600)),
    ),
  );
  const table = h(
    "table",
    { class: "choices" },
    h("thead", null, h("tr", null, head)),
    h("tbody", null, body),
  );
  const none = h("p", null, "No feature and no pair is known to reach the target.");
  return [
    lines.length ? h("div", { class: "wide-table" }, table) : none,
    notes.map((text) => h("p", { class: "soft", dir: "auto" }, clip(text, 1500))),
  ];
}

/**
 * Return the menu of an answer, folded; null unless the answer is proven.
 * @param {Answered} question
 */
export function menuFold({ id, answer }) {
  if (!answer.proof) return null;
  const content = h("div", { role: "status" });
  const title = h("summary", null, "Which features can reach the target");
  const fold = h("details", { class: "fold panel", "data-test": "menu" }, title, content);
  let isAsked = false;
  fold.addEventListener("toggle", async () => {
    if (!fold.open || isAsked) return;
    isAsked = true;
    fill(content, h("p", null, "Searching every feature and every pair …"));
    try {
      fill(content, menuTable(await getMenu(id)));
    } catch (error) {
      isAsked = false;
      fill(content, h("p", { class: "wrong", dir: "auto" }, asApiError(error).message));
    }
  });
  return fold;
}
