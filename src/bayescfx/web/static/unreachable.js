// Out of reach is a screen of its own: what is nearest, what binds, and one click to loosen it and ask again.
import { badge } from "./badge.js";
import { h, icon, s } from "./dom.js";
import { clean, clip, num, number } from "./format.js";
import { takeGoal } from "./goal.js";
import { gap } from "./progress.js";
import { ask } from "./run.js";
import { state, takeSettings, takeSpace } from "./state.js";

/** Return the screen of a question whose goal seems out of reach; `parts` are what answers are made of. */
export function unreachableScreen(question, parts) {
  const { answer } = question;
  const best = answer.counterfactuals[0];
  const nearest = best?.output ?? answer.output;
  const { unit, name } = state.site.output;
  return [
    h("section", { class: "panel unreachable-screen", "aria-labelledby": "unreachable-title", "data-test": "unreachable" },
      h("div", { class: "row spread" },
        h("h2", { id: "unreachable-title" }, badge("unreachable"), " ", h("bdi", { dir: "auto" }, question.words)), parts.tools(question)),
      h("div", { class: "unreachable-grid" },
        h("div", null,
          h("p", { class: "soft" }, `The nearest ${name} that can be reached`),
          h("p", { class: "huge", "data-test": "nearest" }, num(nearest, { unit })),
          shortfall(answer, nearest),
          h("p", { dir: "auto", "data-test": "verdict" }, clip(answer.verdict, 2000)),
          h("div", { class: "row tight" },
            h("button", { "data-test": "aim-nearest", onclick: () => aim(question, nearest) }, "Aim for what can be reached"), longer())),
        h("div", null, h("h3", null, "What keeps it away"), binding(answer))),
      parts.notes(question), parts.facts(question)),
    h("h2", { class: "between" }, "The nearest that was found"),
    parts.cards(question),
    parts.history(question),
  ];
}

function shortfall(answer, nearest) {
  const miss = gap(nearest, answer.wanted);
  const ends = answer.wanted.flat().filter((end) => end !== null);
  const all = [answer.output, nearest, ...ends, ...(answer.reachable ?? [])];
  const low = Math.min(...all), high = Math.max(...all), span = high - low || 1;
  const x = (y) => 12 + ((y - low) / span) * 336;
  const apart = (a, b) => Math.abs(x(a) - x(b)) > 62; // so that words have room
  const to = ends.reduce((a, b) => (Math.abs(b - nearest) < Math.abs(a - nearest) ? b : a), ends[0] ?? nearest);
  return h("div", null,
    s("svg", { class: "shortfall", viewBox: "0 0 360 46", role: "img", "aria-label": `From ${number(answer.output)} now to ${number(nearest)}; wanted ${number(to)}` },
      s("line", { class: "axis", x1: 8, x2: 352, y1: 16, y2: 16 }),
      answer.reachable ? s("line", { class: "may", x1: x(answer.reachable[0]), x2: x(answer.reachable[1]), y1: 16, y2: 16 }) : null,
      s("line", { class: "lack", x1: x(nearest), x2: x(to), y1: 16, y2: 16 }),
      s("circle", { class: "from", cx: x(answer.output), cy: 16, r: 5 }), s("circle", { class: "to", cx: x(nearest), cy: 16, r: 6 }),
      s("path", { class: "flag", d: `M${x(to)} 24V4h9l-3 4 3 4h-9` }),
      mark(x(answer.output), "now"), apart(nearest, answer.output) ? mark(x(nearest), "nearest") : null, apart(to, nearest) ? mark(x(to), "wanted") : null),
    h("p", null, "Missing: ", h("strong", null, num(miss)), answer.wanted.length ? " to the goal." : ""));
}

const mark = (at, word) => s("text", { class: "tick", x: Math.min(Math.max(at, 30), 328), y: 41, "text-anchor": "middle" }, word);

/** Return what keeps a goal away, each with a button that loosens it and asks again. */
export function binding(answer) {
  if (!answer.binding.length) return h("p", { class: "soft" }, "No single limit was found to keep it away: within what the data show, the model does not go there.");
  return h("ul", { class: "binding" }, answer.binding.map((one, k) => h("li", { "data-test": "binding" },
    h("p", { dir: "auto" }, icon("lock"), capital(clip(one.words, 400))),
    one.relax ? h("button", { class: "primary", "data-test": "relax", "data-index": k, onclick: () => relax(one.relax) }, icon("unlock"),
      h("span", null, h("bdi", { dir: "auto" }, capital(clip(one.does ?? "Loosen this", 200))), " and ask again")) : null)));
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function relax(space) {
  takeSpace(space);
  ask();
}

/** Return a button that asks again with more rows, if more are to be had. */
function longer() {
  const { settings, site } = state;
  if (settings.budget === null || settings.budget >= site.most.budget) return null;
  const budget = Math.min(2 * settings.budget, site.most.budget);
  return h("button", { "data-test": "search-longer", onclick: () => { takeSettings({ ...settings, budget }); ask(); } }, `Search longer (${budget} rows)`);
}

/** Wish for the nearest output that was reached, on the side that was asked for. */
function aim(question, nearest) {
  const { wanted } = question.answer;
  const [low, high] = wanted[0] ?? [null, null];
  const above = high === null && low !== null, below = low === null && high !== null;
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(nearest) || 1)) - 4);
  const round = above ? Math.floor : below ? Math.ceil : Math.round; // never beyond what was reached
  const near = clean(round(nearest / unit) * unit);
  const plain = near < 0 ? `=${near}` : String(near);
  takeGoal(above ? `>= ${plain}` : below ? `<= ${plain}` : `= ${near}`);
  ask();
}
