// What an answer changes, one line per feature: before and after on the feature's own scale, and the effect.
import { h, icon, s } from "./dom.js";
import { clip, name, num, number, percent } from "./format.js";
import { state } from "./state.js";

const WIDTH = 200, HEIGHT = 24, MID = 12;
const x = (place) => 10 + Math.min(1, Math.max(0, place)) * (WIDTH - 20);

/** Return the scale of a change as a picture. */
function changeScale(change) {
  const { start, end, allowed, levels, wraps } = change;
  if (typeof start !== "number" || typeof end !== "number") return null;
  const many = (levels ?? []).length > 24 ? [] : levels ?? [];
  const up = wraps ? start > end : end >= start;
  const path = wraps
    ? [`M${x(start)} ${MID}H${up ? WIDTH - 2 : 2}`, `M${up ? 2 : WIDTH - 2} ${MID}H${x(end)}`].join("")
    : `M${x(start)} ${MID}H${x(end)}`;
  const tip = x(end) + (up ? -9 : 9), back = tip + (up ? -5 : 5);
  const words = `on its scale from ${percent(start)} to ${percent(end)}`;
  return s("svg", { class: "scale", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words },
    s("line", { class: "axis", x1: x(0), x2: x(1), y1: MID, y2: MID }),
    allowed ? s("line", { class: "may", x1: x(allowed[0]), x2: x(allowed[1]), y1: MID, y2: MID }) : null,
    many.map((at) => s("circle", { class: "dot", cx: x(at), cy: MID, r: 2 })),
    s("path", { class: "go", d: path }),
    Math.abs(x(end) - x(start)) > 26 && !wraps ? s("path", { class: "go", d: `M${back} ${MID - 4}L${tip} ${MID}L${back} ${MID + 4}` }) : null,
    s("circle", { class: "from", cx: x(start), cy: MID, r: 4.5 }),
    s("circle", { class: "to", cx: x(end), cy: MID, r: 5.5 }));
}

function effect(change, most) {
  if (change.effect === null || change.effect === undefined) return h("td", { class: "right soft" }, "–");
  const share = most > 0 ? Math.abs(change.effect) / most : 0;
  return h("td", { class: "right effect" }, h("span", { class: "num", title: String(change.effect) }, change.effect_text ?? number(change.effect, 3)),
    h("span", { class: "effect-track", "aria-hidden": "true" }, h("i", { class: change.effect < 0 ? "minus" : "plus", style: { width: `${50 * share}%` } })));
}

const value = (shown, exact) =>
  h("bdi", { class: String(shown).length > 14 ? "cell long" : "cell", dir: "auto", title: clip(exact ?? "missing", 1000) }, clip(shown, 80));

/** Return the table of what an answer changes, the prediction last. */
export function changeTable(found, before) {
  const most = Math.max(...found.changes.map((c) => Math.abs(c.effect ?? 0)), 0);
  const { output } = state.site;
  return h("table", { class: "changes", "data-test": "changes" },
    h("caption", { class: "hidden" }, "What changes"),
    h("thead", null, h("tr", null, ["", "now", "then", "on its scale", "effect"].map((word, k) =>
      h("th", { scope: "col", class: ["", "right", "left", "scale-cell", "right"][k] }, word || h("span", { class: "hidden" }, "feature"))))),
    h("tbody", null, found.changes.map((change) =>
      h("tr", { class: change.derived ? "follows" : null, "data-test": "change", "data-feature": change.name },
        h("th", { scope: "row" }, name(change.name), change.derived ? h("span", { class: "soft" }, " follows") : null),
        h("td", { class: "right" }, value(change.before_text, change.before)),
        h("td", { class: "left strong" }, icon(arrow(change)), value(change.after_text, change.after)),
        h("td", { class: "scale-cell" }, changeScale(change)), effect(change, most)))),
    h("tfoot", null, h("tr", null, h("th", { scope: "row" }, name(output.name)), h("td", { class: "right" }, num(before)),
      h("td", { class: "left strong" }, icon(found.output > before ? "up" : found.output < before ? "down" : "both"), num(found.output)),
      h("td", { class: "scale-cell" }), h("td", { class: "right" }, num(found.output - before, { signs: true })))));
}

function arrow(change) {
  if (!change.ordered || typeof change.start !== "number" || change.start === change.end) return "both";
  return (change.end > change.start) !== Boolean(change.wraps) ? "up" : "down";
}
