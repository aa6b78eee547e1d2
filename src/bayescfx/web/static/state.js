// What the page knows: the draft of a question, the open question, and who wants to hear of changes.
import { fits } from "./features.js";
import { freshCard, freshLimits, fromSpace, toSpace } from "./space.js";

export const state = {
  site: null,
  row: { label: null, cells: null, base: null, output: null, error: null },
  goal: { text: "", wanted: null, accepted: null, words: "", met: null, error: null },
  cards: new Map(),
  limits: freshLimits(),
  settings: {},
  question: null, // as the server knows it, with steps and answer
  asking: false, // is a question on its way to the server?
  asked: null, // the draft that was asked, to see whether it has changed since
  compare: [], // [{id, index}]
  whatif: { cells: null, from: "row" }, // what the reader tries, and what it started from
  tab: "row",
};

const listeners = new Map();

/** Call `act` whenever something happens to one of the topics. */
export function on(topics, act) {
  for (const topic of topics.split(" ")) {
    if (!listeners.has(topic)) listeners.set(topic, []);
    listeners.get(topic).push(act);
  }
}

/** Tell everybody who listens to a topic, and remember the page for a reload. */
export function emit(topic) {
  for (const act of listeners.get(topic) ?? []) act(topic);
  remember();
}

/** Return the "space" of the draft. */
export const space = () => toSpace(state.site, state.cards, state.limits);

/** Return the draft as the server wants to be asked. */
export function request() {
  const { settings } = state;
  return {
    cells: state.row.cells,
    label: state.row.label === null ? null : String(state.row.label).slice(0, 200),
    target: state.goal.text,
    space: space(),
    n: settings.n, budget: settings.budget, timeout: settings.timeout, seed: settings.seed,
    tolerance: settings.tolerance, method: settings.method,
  };
}

/** Return the draft as a text that differs when the question does. */
export const draftKey = () => JSON.stringify(request());

/** Return whether the draft is no longer what the open question asked. */
export const isStale = () => state.question !== null && state.asked !== null && state.asked !== draftKey();

/** Take a row: its label, cells and, if known, its output; `base` is the data's row it was made from. */
export function takeRow({ label, cells, output = null, base = { label, cells } }) {
  state.row = { label, cells: known(cells), base, output, error: null };
  emit("row");
}

function known(cells) {
  return Object.fromEntries(state.site.features.map((f) => [f.name, cells[f.name] ?? null]));
}

/** Return the label of a row that is no longer the data's own. */
export const asEdited = (label) => `${String(label ?? "row").replace(/, edited$/, "")}, edited`;

/** Change one cell of the row. */
export function editCell(name, cell) {
  const { row } = state;
  row.cells = { ...row.cells, [name]: cell };
  const same = row.base && state.site.features.every((f) => row.cells[f.name] === (row.base.cells[f.name] ?? null));
  row.label = same ? row.base.label : row.base ? asEdited(row.base.label) : "by hand";
  row.output = null;
  row.error = null;
  emit("row");
}

/** Take a whole "space" in place of the cards' settings. */
export function takeSpace(given) {
  const { cards, limits } = fromSpace(state.site, given);
  state.cards = cards;
  state.limits = limits;
  emit("space");
}

/** Take settings of the search where they make sense. */
export function takeSettings(given) {
  const { defaults, most, methods } = state.site;
  const whole = (value, top, low = 1) => (Number.isInteger(value) && value >= low ? Math.min(value, top) : undefined);
  const found = {
    budget: given.budget === null ? null : whole(given.budget, most.budget),
    timeout: given.timeout > 0 ? Math.min(Number(given.timeout), most.timeout) : undefined,
    seed: whole(given.seed, Number.MAX_SAFE_INTEGER, 0),
    n: whole(given.n, most.n),
    tolerance: given.tolerance >= 0 && given.tolerance < 1 ? Number(given.tolerance) : undefined,
    method: methods.includes(given.method) ? given.method : undefined,
  };
  const taken = Object.entries(found).filter(([, value]) => value !== undefined);
  state.settings = { ...defaults, ...state.settings, ...Object.fromEntries(taken) };
  emit("settings");
}

/** Begin with what the site says. */
export function begin(site) {
  state.site = site;
  state.cards = new Map(site.features.map((f) => [f.name, freshCard()]));
  state.settings = { ...site.defaults };
}

const storageKey = () => `bayescfx:${state.site.title}:${state.site.version}`;
let timer = 0, remembering = false;

/** Remember the page soon; nothing happens where there is no storage. */
export function remember() {
  if (!remembering) return;
  clearTimeout(timer);
  timer = setTimeout(save, 150);
}

function save() {
  clearTimeout(timer);
  const { row, goal, settings, asked, compare, whatif, tab } = state;
  const open = state.question?.id ?? null;
  const kept = { row: { label: row.label, cells: row.cells, base: row.base }, target: goal.text, space: space(), settings, open, asked, compare, whatif, tab };
  try {
    localStorage.setItem(storageKey(), JSON.stringify(kept));
  } catch {
    // No storage, or no room: a reload then starts anew.
  }
}

/** Return what was remembered of this site, as far as it fits; from then on remember. */
export function recall() {
  remembering = true;
  addEventListener("pagehide", save);
  let kept = null;
  try {
    kept = JSON.parse(localStorage.getItem(storageKey()));
  } catch {
    return {};
  }
  if (kept === null || typeof kept !== "object") return {};
  const row = isRow(kept.row) ? kept.row : null;
  if (row && !(row.base && isRow(row.base))) row.base = null;
  return { ...kept, row };
}

/** Return whether something stored is a row of this site: {cells}. */
export function isRow(row) {
  const cells = row?.cells;
  if (cells === null || typeof cells !== "object") return false;
  const names = Object.keys(cells);
  return names.length === state.site.features.length
    && state.site.features.every((f) => f.name in cells && fits(f, cells[f.name] ?? null));
}
