// @ts-check
// The changes of an answer, one line per feature: before and after on its scale, and the effect.
import { h, icon, s } from "./dom.js";
import { clip, name, num, number, percent } from "./format.js";
import { state } from "./state.js";

/** @import { Cell, Change, Counterfactual } from "./types.js" */

const WIDTH = 200;
const HEIGHT = 24;
const MIDDLE = 12;
const MANY_LEVELS = 24; // more levels are not drawn as dots

/** @param {number} share */
const x = (share) => 10 + Math.min(1, Math.max(0, share)) * (WIDTH - 20);

/**
 * Return the line from start to end; around the ends of a cyclic scale if it wraps.
 * @param {number} start
 * @param {number} end
 * @param {boolean} wraps
 */
export function changePath(start, end, wraps) {
  if (!wraps) return `M${x(start)} ${MIDDLE}H${x(end)}`;
  const isUp = start > end;
  const out = isUp ? WIDTH - 2 : 2;
  const back = isUp ? 2 : WIDTH - 2;
  return `M${x(start)} ${MIDDLE}H${out}M${back} ${MIDDLE}H${x(end)}`;
}

/**
 * Return the head of the arrow from start to end; null if there is no room for it.
 * @param {number} start
 * @param {number} end
 */
function arrowHead(start, end) {
  if (Math.abs(x(end) - x(start)) <= 26) return null;
  const sign = end >= start ? -1 : 1;
  const tip = x(end) + 9 * sign;
  const back = tip + 5 * sign;
  const head = `M${back} ${MIDDLE - 4}L${tip} ${MIDDLE}L${back} ${MIDDLE + 4}`;
  return s("path", { class: "go", d: head });
}

/**
 * Return a change on the scale of its feature, as a picture.
 * @param {Change} change
 */
function changeScale({ start, end, allowed, levels, wraps }) {
  if (start === null || end === null) return null;
  const dots = levels && levels.length <= MANY_LEVELS ? levels : [];
  const label = `on its scale from ${percent(start)} to ${percent(end)}`;
  /**
   * @param {string} cls
   * @param {[number, number]} ends
   */
  const line = (cls, [from, to]) =>
    s("line", { class: cls, x1: x(from), x2: x(to), y1: MIDDLE, y2: MIDDLE });
  const props = { class: "scale", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" };
  return s(
    "svg",
    { ...props, "aria-label": label },
    line("axis", [0, 1]),
    allowed ? line("may", allowed) : null,
    dots.map((at) => s("circle", { class: "dot", cx: x(at), cy: MIDDLE, r: 2 })),
    s("path", { class: "go", d: changePath(start, end, wraps) }),
    wraps ? null : arrowHead(start, end),
    s("circle", { class: "from", cx: x(start), cy: MIDDLE, r: 4.5 }),
    s("circle", { class: "to", cx: x(end), cy: MIDDLE, r: 5.5 }),
  );
}

/**
 * Return the cell with the effect of a change.
 * @param {Change} change
 * @param {number} largest  the largest effect of the answer
 */
function effectCell({ effect, effect_text: text }, largest) {
  if (effect === null) return h("td", { class: "right soft" }, "–");
  const share = largest > 0 ? Math.abs(effect) / largest : 0;
  const bar = { class: effect < 0 ? "minus" : "plus", style: { width: `${50 * share}%` } };
  return h(
    "td",
    { class: "right effect" },
    h("span", { class: "num", title: String(effect) }, text ?? number(effect, 3)),
    h("span", { class: "effect-track", "aria-hidden": "true" }, h("i", bar)),
  );
}

/**
 * @param {string} shown
 * @param {Cell} exact
 */
function valueNode(shown, exact) {
  const cls = shown.length > 14 ? "cell long" : "cell";
  const title = clip(exact ?? "missing", 1000);
  return h("bdi", { class: cls, dir: "auto", title }, clip(shown, 80));
}

/**
 * Return the icon of a change's direction.
 * @param {Pick<Change, "ordered" | "start" | "end" | "wraps">} change
 */
export function arrowIcon({ ordered, start, end, wraps }) {
  if (!ordered || start === null || end === null || start === end) return "both";
  return end > start !== wraps ? "up" : "down";
}

/**
 * @param {Change} change
 * @param {number} largest
 */
function changeLine(change, largest) {
  const { name: feature, derived } = change;
  const after = valueNode(change.after_text, change.after);
  return h(
    "tr",
    { class: derived ? "follows" : null, "data-test": "change", "data-feature": feature },
    h(
      "th",
      { scope: "row" },
      name(feature),
      derived ? h("span", { class: "soft" }, " follows") : null,
    ),
    h("td", { class: "right" }, valueNode(change.before_text, change.before)),
    h("td", { class: "left strong" }, icon(arrowIcon(change)), after),
    h("td", { class: "scale-cell" }, changeScale(change)),
    effectCell(change, largest),
  );
}

/**
 * Return the line of the prediction.
 * @param {number} before
 * @param {number} after
 */
function outputLine(before, after) {
  const direction = after > before ? "up" : "down";
  return h(
    "tr",
    null,
    h("th", { scope: "row" }, name(state.site.output.name)),
    h("td", { class: "right" }, num(before)),
    h("td", { class: "left strong" }, icon(after === before ? "both" : direction), num(after)),
    h("td", { class: "scale-cell" }),
    h("td", { class: "right" }, num(after - before, { signs: true })),
  );
}

/**
 * Return the table of an answer's changes, the prediction last.
 * @param {Counterfactual} found
 * @param {number} before  the prediction of the query
 */
export function changeTable(found, before) {
  const largest = Math.max(...found.changes.map(({ effect }) => Math.abs(effect ?? 0)), 0);
  /** @type {[string, string][]} */
  const titles = [
    ["now", "right"],
    ["then", "left"],
    ["on its scale", "scale-cell"],
    ["effect", "right"],
  ];
  return h(
    "table",
    { class: "changes", "data-test": "changes" },
    h("caption", { class: "hidden" }, "Changes"),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, h("span", { class: "hidden" }, "feature")),
        titles.map(([word, cls]) => h("th", { scope: "col", class: cls }, word)),
      ),
    ),
    h(
      "tbody",
      null,
      found.changes.map((change) => changeLine(change, largest)),
    ),
    h("tfoot", null, outputLine(before, found.output)),
  );
}
