// @ts-check
// The screen of a target out of reach: the nearest output, the binding constraints, and buttons that relax them.
import { badge, proofBadge } from "./badge.js";
import { h, icon, s } from "./dom.js";
import { clip, num, numberApart } from "./format.js";
import { menuFold } from "./menu.js";
import { cards, facts, notes, searchFold, tools } from "./parts.js";
import { ask } from "./run.js";
import { setSettings, setSpace, state } from "./state.js";
import { setTarget } from "./target.js";
import { gap, targetAt } from "./targets.js";

/** @import { Answered } from "./parts.js" */
/** @import { Answer, Binding, Child, Space } from "./types.js" */

const LEFT = 12; // pixels of the picture of the shortfall
const WIDTH = 336;
const LABEL_ROOM = 62; // pixels between two labels

/**
 * Return the screen of a question whose target is out of reach.
 * @param {Answered} question
 * @returns {Child}
 */
export function unreachableScreen(question) {
  const { answer, title } = question;
  const nearest = answer.counterfactuals[0]?.output ?? answer.output;
  const { unit, name } = state.site.output;
  const heading = h(
    "h2",
    { id: "unreachable-title", class: "badged" },
    badge("unreachable"),
    " ",
    proofBadge(answer),
    " ",
    h("bdi", { dir: "auto" }, title),
  );
  const summary = h(
    "div",
    null,
    h("p", { class: "soft" }, `Nearest ${name} found`),
    h("p", { class: "huge", "data-test": "nearest" }, num(nearest, { unit })),
    shortfall(answer, nearest),
    h("p", { dir: "auto", "data-test": "verdict" }, clip(answer.verdict, 2000)),
    h("div", { class: "row tight" }, aimButton(answer, nearest), longerButton()),
  );
  return [
    h(
      "section",
      {
        class: "panel unreachable-screen",
        "aria-labelledby": "unreachable-title",
        "data-test": "unreachable",
      },
      h("div", { class: "row spread" }, heading, tools(question)),
      h(
        "div",
        { class: "unreachable-grid" },
        summary,
        h("div", null, h("h3", null, "Binding constraints"), bindingList(answer)),
      ),
      notes(question),
      facts(question),
    ),
    h("h2", { class: "between" }, "Nearest answers"),
    cards(question),
    menuFold(question),
    searchFold(question),
  ];
}

/**
 * Return the gap to the target, as a picture and a number.
 * @param {Answer} answer
 * @param {number} nearest
 */
function shortfall(answer, nearest) {
  const ends = answer.wanted.flat().filter((end) => end !== null);
  const distances = ends.map((end) => Math.abs(end - nearest));
  const wanted = ends[distances.indexOf(Math.min(...distances))] ?? nearest;
  const missing = num(gap(nearest, answer.wanted));
  return h(
    "div",
    null,
    shortfallPicture(answer, nearest, wanted, ends),
    h("p", null, "Missing: ", h("strong", null, missing), ends.length ? " to the target." : ""),
  );
}

/**
 * @param {Answer} answer
 * @param {number} nearest
 * @param {number} wanted  the end of the target that is nearest
 * @param {number[]} ends  of the target
 */
function shortfallPicture({ output, reachable }, nearest, wanted, ends) {
  const all = [output, nearest, ...ends, ...(reachable ?? [])];
  const low = Math.min(...all);
  const span = Math.max(...all) - low || 1;
  /** @param {number} y */
  const x = (y) => LEFT + ((y - low) / span) * WIDTH;
  /** @type {(a: number, b: number) => boolean} */
  const hasRoom = (a, b) => Math.abs(x(a) - x(b)) > LABEL_ROOM;
  /** @type {(cls: string, from: number, to: number) => SVGElement} */
  const line = (cls, from, to) => s("line", { class: cls, x1: from, x2: to, y1: 16, y2: 16 });
  /** @type {(y: number, text: string) => SVGElement} */
  const label = (y, text) => {
    const at = Math.min(Math.max(x(y), 30), 328);
    return s("text", { class: "tick", x: at, y: 41, "text-anchor": "middle" }, text);
  };
  const [now, then, goal] = [output, nearest, wanted].map((y) => numberApart(y, all));
  const description = `From ${now} now to ${then}; target ${goal}`;
  return s(
    "svg",
    { class: "shortfall", viewBox: "0 0 360 46", role: "img", "aria-label": description },
    line("axis", 8, 352),
    reachable ? line("may", x(reachable[0]), x(reachable[1])) : null,
    line("lack", x(nearest), x(wanted)),
    s("circle", { class: "from", cx: x(output), cy: 16, r: 5 }),
    s("circle", { class: "to", cx: x(nearest), cy: 16, r: 6 }),
    s("path", { class: "flag", d: `M${x(wanted)} 24V4h9l-3 4 3 4h-9` }),
    label(output, "now"),
    hasRoom(nearest, output) ? label(nearest, "nearest") : null,
    hasRoom(wanted, nearest) ? label(wanted, "target") : null,
  );
}

/**
 * Return the binding constraints, each with a button that relaxes it and asks again.
 * @param {Answer} answer
 */
export function bindingList({ binding }) {
  if (!binding.length) {
    return h("p", { class: "soft" }, "No single constraint was found that keeps the target away.");
  }
  return h("ul", { class: "binding" }, binding.map(bindingItem));
}

/**
 * @param {Binding} binding
 * @param {number} k
 */
function bindingItem({ text, relax: relaxed, action }, k) {
  const props = {
    class: "primary",
    "data-test": "relax",
    "data-index": k,
    onclick: () => relax(relaxed ?? {}),
  };
  const title = h("bdi", { dir: "auto" }, capital(clip(action ?? "Relax this", 200)));
  const button = h("button", props, icon("unlock"), h("span", null, title, " and ask again"));
  return h(
    "li",
    { "data-test": "binding" },
    h("p", { dir: "auto" }, icon("lock"), capital(clip(text, 400))),
    relaxed ? button : null,
  );
}

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** @param {Space} space */
function relax(space) {
  setSpace(space);
  ask();
}

/** Return a button that asks again with a larger budget, unless it is at its maximum. */
function longerButton() {
  const { settings, site } = state;
  if (settings.budget === null || settings.budget >= site.maximum.budget) return null;
  const budget = Math.min(2 * settings.budget, site.maximum.budget);
  const askLonger = () => {
    setSettings({ budget });
    ask();
  };
  const props = { "data-test": "search-longer", onclick: askLonger };
  return h("button", props, `Search longer (${budget} rows)`);
}

/**
 * Return a button that takes the nearest output as the target.
 * @param {Answer} answer
 * @param {number} nearest
 */
function aimButton({ wanted }, nearest) {
  const aim = () => {
    setTarget(targetAt(nearest, wanted));
    ask();
  };
  return h("button", { "data-test": "aim-nearest", onclick: aim }, "Use it as the target");
}
