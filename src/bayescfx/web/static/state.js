// @ts-check
// The state of the page: the draft of a question, the open question, and the listeners to changes.
import { fits } from "./features.js";
import { freshCard, freshLimits, fromSpace, toSpace } from "./space.js";

/**
 * @import { BaseRow, Cell, Cells, PageState, QuestionRequest, Settings, Site, Space } from "./types.js"
 */

/** @type {PageState} */
export const state = {
  site: /** @type {Site} */ (/** @type {unknown} */ (null)), // set by `begin` before anything is built
  row: { label: null, cells: {}, base: null, output: null, error: null },
  target: { text: "", wanted: null, accepted: null, meaning: "", met: null, error: null },
  cards: new Map(),
  limits: freshLimits(),
  settings: /** @type {Settings} */ ({}), // set by `begin`, too
  question: null, // as the server returns it, with steps and answer
  isSending: false, // whether a question is on its way to the server
  sentDraft: null, // the draft of the open question, to see whether it has changed since
  compare: [],
  whatif: { cells: {}, from: "row" }, // the visitor's trial, and the row or answer it started from
  tab: "row",
};

/** @type {Map<string, ((topic: string) => unknown)[]>} */
const listeners = new Map();

/**
 * Call `act` whenever one of the topics changes.
 * @param {string} topics  separated by spaces
 * @param {(topic: string) => unknown} act
 */
export function on(topics, act) {
  for (const topic of topics.split(" ")) {
    listeners.set(topic, [...(listeners.get(topic) ?? []), act]);
  }
}

/**
 * Call the listeners of a topic, and store the page for a reload.
 * @param {string} topic
 */
export function emit(topic) {
  for (const act of listeners.get(topic) ?? []) act(topic);
  remember();
}

/**
 * Return the "space" of the draft.
 * @returns {Space}
 */
export const space = () => toSpace(state.site, state.cards, state.limits);

/**
 * Return the draft as a request.
 * @returns {QuestionRequest}
 */
export function request() {
  const { n, diverse, budget, timeout, seed, tolerance, method } = state.settings;
  return {
    cells: state.row.cells,
    label: state.row.label === null ? null : String(state.row.label).slice(0, 200),
    target: state.target.text,
    space: space(),
    n,
    diverse,
    budget,
    timeout,
    seed,
    tolerance,
    method,
  };
}

/** Return the draft as a text that differs when the question does. */
export const draftKey = () => JSON.stringify(request());

/** Return whether the draft differs from the open question. */
export const isStale = () =>
  state.question !== null && state.sentDraft !== null && state.sentDraft !== draftKey();

/**
 * Set the row; `base` is the row of the data that it was made from.
 * @param {BaseRow & {output?: number | null, base?: BaseRow | null}} row
 */
export function setRow({ label, cells, output = null, base = { label, cells } }) {
  state.row = { label, cells: cellsOf(cells), base, output, error: null };
  emit("row");
}

/**
 * Return one cell for each feature of the site.
 * @param {Cells} cells
 * @returns {Cells}
 */
const cellsOf = (cells) =>
  Object.fromEntries(state.site.features.map((f) => [f.name, cells[f.name] ?? null]));

/**
 * Return the label of an edited row.
 * @param {string | null} label
 */
export const asEdited = (label) => `${String(label ?? "row").replace(/, edited$/, "")}, edited`;

/**
 * Change one cell of the row.
 * @param {string} name
 * @param {Cell} cell
 */
export function editCell(name, cell) {
  const { row } = state;
  row.cells = { ...row.cells, [name]: cell };
  row.label = editedLabel(row.cells, row.base);
  row.output = null;
  row.error = null;
  emit("row");
}

/**
 * Return the label of a row after an edit: that of its base if they are equal again.
 * @param {Cells} cells
 * @param {BaseRow | null} base
 */
function editedLabel(cells, base) {
  if (base === null) return "by hand";
  const isBase = state.site.features.every((f) => cells[f.name] === (base.cells[f.name] ?? null));
  return isBase ? base.label : asEdited(base.label);
}

/**
 * Replace the visitor's constraints.
 * @param {unknown} given  a "space"
 */
export function setSpace(given) {
  const { cards, limits } = fromSpace(state.site, given);
  state.cards = cards;
  state.limits = limits;
  emit("space");
}

/**
 * Change settings of the search; invalid values are ignored, large ones are cut.
 * @param {Partial<Settings>} given
 */
export function setSettings(given) {
  state.settings = {
    ...state.site.defaults,
    ...state.settings,
    ...validSettings(state.site, given),
  };
  emit("settings");
}

/**
 * Return the valid part of some settings.
 * @param {Site} site
 * @param {Partial<Settings>} given
 * @returns {Partial<Settings>}
 */
export function validSettings({ maximum, methods }, given) {
  /** @type {(value: unknown, most: number, least?: number) => number | undefined} */
  const whole = (value, most, least = 1) =>
    Number.isInteger(value) && Number(value) >= least ? Math.min(Number(value), most) : undefined;
  const timeout = Number(given.timeout);
  const tolerance = Number(given.tolerance);
  const found = {
    budget: given.budget === null ? null : whole(given.budget, maximum.budget),
    timeout: timeout > 0 ? Math.min(timeout, maximum.timeout) : undefined,
    seed: whole(given.seed, Number.MAX_SAFE_INTEGER, 0),
    n: whole(given.n, maximum.n),
    diverse: typeof given.diverse === "boolean" ? given.diverse : undefined,
    tolerance: tolerance >= 0 && tolerance < 1 ? tolerance : undefined,
    method: methods.includes(String(given.method)) ? given.method : undefined,
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

/**
 * Begin with the site.
 * @param {Site} site
 */
export function begin(site) {
  state.site = site;
  state.cards = new Map(site.features.map((f) => [f.name, freshCard()]));
  state.settings = { ...site.defaults };
}

const storageKey = () => `bayescfx:${state.site.title}:${state.site.version}`;
let timer = 0;
let isRemembering = false;

/** Store the page soon; without storage nothing happens. */
export function remember() {
  if (!isRemembering) return;
  clearTimeout(timer);
  timer = setTimeout(save, 150);
}

function save() {
  clearTimeout(timer);
  const { row, target, settings, sentDraft, compare, whatif, tab } = state;
  const stored = {
    row: { label: row.label, cells: row.cells, base: row.base },
    target: target.text,
    space: space(),
    settings,
    open: state.question?.id ?? null,
    sentDraft,
    compare,
    whatif,
    tab,
  };
  try {
    localStorage.setItem(storageKey(), JSON.stringify(stored));
  } catch {
    // No storage, or no room: a reload then starts from nothing.
  }
}

/**
 * Return the stored page of this site, as far as it is valid; from then on the page is stored.
 * @returns {Record<string, any>}
 */
export function recall() {
  isRemembering = true;
  addEventListener("pagehide", save);
  let stored = null;
  try {
    stored = JSON.parse(localStorage.getItem(storageKey()) ?? "null");
  } catch {
    return {};
  }
  if (stored === null || typeof stored !== "object") return {};
  const row = isRow(stored.row) ? stored.row : null;
  if (row && !isRow(row.base)) row.base = null;
  return { ...stored, row };
}

/**
 * Return whether a stored value is a row of this site: {cells}.
 * @param {any} row
 */
export function isRow(row) {
  const cells = row?.cells;
  if (cells === null || typeof cells !== "object") return false;
  const { features } = state.site;
  if (Object.keys(cells).length !== features.length) return false;
  return features.every((f) => f.name in cells && fits(f, cells[f.name] ?? null));
}
