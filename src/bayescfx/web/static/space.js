// @ts-check
// The visitor's constraints: from the feature cards and limits to the server's "space" and back.
import { hasDirection, isFree, isScale, levelOf, levelsOf, toNumber } from "./features.js";

/** @import { Card, Cell, Feature, Limits, Site, Space } from "./types.js" */

/** @type {[number, string][]} */
export const DIFFICULTIES = [
  [0.25, "very easy"],
  [0.5, "easy"],
  [1, "normal"],
  [2, "hard"],
  [5, "very hard"],
];

// Verbs that the cards and limits have a control for; all others have a generic one.
const CONTROLLED = new Set([
  "fix",
  "allow",
  "only_up",
  "only_down",
  "between",
  "strict_between",
  "move",
  "require",
  "together",
  "max_changes",
  "near_data",
  "steps",
  "cost",
]);

/**
 * Return the verbs without a control of their own.
 * @param {Site} site
 */
export const otherVerbs = (site) => site.verbs.filter(({ name }) => !CONTROLLED.has(name));

/**
 * Return the value of a verb from a typed text: JSON, or a text as on the command line; null if it
 * is empty.
 * @param {string} text
 * @returns {unknown}
 */
export function verbValue(text) {
  const typed = text.trim();
  if (typed === "") return null;
  try {
    return JSON.parse(typed);
  } catch {
    return typed;
  }
}

/**
 * Return the text of a verb's value.
 * @param {unknown} value
 */
export function verbText(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Return the settings of a card without constraints.
 * @returns {Card}
 */
export const freshCard = () => ({
  locked: false,
  direction: "",
  low: null,
  high: null,
  levels: null,
  strict: false,
  difficulty: 1,
  step: null,
  move: null,
});

/**
 * Return limits without constraints.
 * @returns {Limits}
 */
export const freshLimits = () => ({
  require: [],
  together: [],
  maxChanges: null,
  nearData: false,
  cost: {},
  other: {},
});

/**
 * Return whether a card limits the values of its feature.
 * @param {Card} card
 */
export const isLimited = (card) =>
  card.direction !== "" || hasRange(card) || card.levels !== null || card.move !== null;

/**
 * Return whether a card has absolute limits: ends, or allowed levels.
 * @param {Card} card
 */
export const hasLimits = (card) => hasRange(card) || card.levels !== null;

/** @param {Card} card */
const hasRange = (card) => card.low !== null || card.high !== null;

/**
 * Return whether a card differs from a fresh one.
 * @param {Card} card
 */
export const isSet = (card) =>
  card.locked || isLimited(card) || card.difficulty !== 1 || card.step !== null;

/**
 * Return the number of constraints of the cards and limits.
 * @param {Map<string, Card>} cards
 * @param {Limits} limits
 */
export function countConstraints(cards, limits) {
  const nCards = [...cards.values()].filter(isSet).length;
  const nRules = limits.require.length + limits.together.length;
  const nSwitches =
    Number(limits.maxChanges !== null) +
    Number(limits.nearData) +
    Number(Object.keys(limits.cost).length > 0);
  return nCards + nRules + nSwitches + Object.keys(limits.other).length;
}

/** @param {Card} card */
const isKept = (card) => card.locked || card.levels?.length === 0;

/**
 * Return the "space" of a question: only the verbs that constrain something.
 * @param {Site} site
 * @param {Map<string, Card>} cards
 * @param {Limits} limits
 * @returns {Space}
 */
export function toSpace(site, cards, limits) {
  const free = site.features.filter(isFree);
  const pairs = free.map((feature) => ({ feature, card: cards.get(feature.name) ?? freshCard() }));
  const movable = pairs.filter(({ card }) => !isKept(card));
  /** @param {(card: Card) => boolean} keep */
  const namesWhere = (keep) =>
    movable.filter(({ card }) => keep(card)).map(({ feature }) => feature.name);
  /**
   * @param {(card: Card) => boolean} keep
   * @param {(card: Card, feature: Feature) => unknown} value
   */
  const tableWhere = (keep, value) => {
    const kept = movable.filter(({ card }) => keep(card));
    return Object.fromEntries(
      kept.map((pair) => [pair.feature.name, value(pair.card, pair.feature)]),
    );
  };
  const factors = tableWhere(
    (card) => card.difficulty !== 1,
    (card) => card.difficulty,
  );
  const space = {
    fix: pairs.filter(({ card }) => isKept(card)).map(({ feature }) => feature.name),
    only_up: namesWhere((card) => card.direction === "up"),
    only_down: namesWhere((card) => card.direction === "down"),
    between: tableWhere((card) => hasLimits(card) && !card.strict, allowedValues),
    strict_between: tableWhere((card) => hasLimits(card) && card.strict, allowedValues),
    move: tableWhere(
      (card) => card.move !== null,
      (card) => card.move,
    ),
    require: limits.require,
    together: limits.together,
    max_changes: limits.maxChanges,
    near_data: limits.nearData || null,
    steps: tableWhere(
      (card) => card.step !== null,
      (card) => card.step,
    ),
    cost: { ...limits.cost, ...(Object.keys(factors).length ? { per_feature: factors } : {}) },
    ...limits.other,
  };
  return Object.fromEntries(Object.entries(space).filter(([, value]) => !isEmpty(value)));
}

/**
 * Return the ends or the levels that a card allows.
 * @param {Card} card
 * @param {Feature} feature
 * @returns {Cell[]}
 */
const allowedValues = (card, feature) =>
  card.levels === null ? [card.low, card.high] : card.levels.map((k) => levelsOf(feature)[k]);

/** @param {unknown} value */
function isEmpty(value) {
  if (value === null || value === false) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/**
 * Return the texts of a list; anything else is an empty list.
 * @param {unknown} value
 * @returns {string[]}
 */
const asNames = (value) =>
  Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];

/**
 * Return the entries of an object; anything else has none.
 * @param {unknown} value
 * @returns {Map<string, unknown>}
 */
const asTable = (value) =>
  new Map(
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? Object.entries(value)
      : [],
  );

/**
 * Return the cards and limits of a "space"; names of unknown features are left out.
 * @param {Site} site
 * @param {unknown} given
 */
export function fromSpace(site, given) {
  const space = asTable(given);
  /** @type {Map<string, Card>} */
  const cards = new Map();
  for (const feature of site.features) {
    cards.set(feature.name, isFree(feature) ? toCard(feature, space) : freshCard());
  }
  return { cards, limits: toLimits(site, space) };
}

/**
 * Return the card of a free feature.
 * @param {Feature} feature
 * @param {Map<string, unknown>} space
 */
function toCard(feature, space) {
  const { name } = feature;
  const card = freshCard();
  /** @param {string} verb */
  const value = (verb) => asTable(space.get(verb)).get(name);
  /** @param {string} verb */
  const isNamed = (verb) => asNames(space.get(verb)).includes(name);
  const isAllowed = !Array.isArray(space.get("allow")) || isNamed("allow");
  card.locked = isNamed("fix") || !isAllowed;
  if (hasDirection(feature) && isNamed("only_down")) card.direction = "down";
  if (hasDirection(feature) && isNamed("only_up")) card.direction = "up";
  card.strict = value("strict_between") !== undefined;
  const allowed = value(card.strict ? "strict_between" : "between");
  Object.assign(card, toAllowed(feature, allowed));
  const move = value("move");
  if (Array.isArray(move) && move.length === 2) card.move = [move[0], move[1]];
  card.step = asPositive(value("steps"));
  card.difficulty =
    asPositive(asTable(asTable(space.get("cost")).get("per_feature")).get(name)) ?? 1;
  return card;
}

/** @param {unknown} value */
const asPositive = (value) => (typeof value === "number" && value > 0 ? value : null);

/**
 * Return the part of a card that a value of `between` sets: ends, or allowed levels.
 * @param {Feature} feature
 * @param {unknown} value
 * @returns {Partial<Card>}
 */
function toAllowed(feature, value) {
  if (!Array.isArray(value)) return {};
  if (isScale(feature)) {
    const [low = null, high = null] = value.map((end) =>
      toNumber(feature, end) === null ? null : end,
    );
    return { low, high };
  }
  const positions = new Set(value.map((level) => levelOf(feature, level)));
  const levels = [...positions].filter((k) => k >= 0).sort((a, b) => a - b);
  const isSubset = levels.length > 0 && levels.length < levelsOf(feature).length;
  return { levels: isSubset ? levels : null };
}

/**
 * Return the limits of a "space".
 * @param {Site} site
 * @param {Map<string, unknown>} space
 * @returns {Limits}
 */
function toLimits(site, space) {
  const known = new Set(site.features.map((feature) => feature.name));
  const together = space.get("together");
  const groups = Array.isArray(together) ? together.map(asNames) : [];
  const nChanges = space.get("max_changes");
  const others = otherVerbs(site).filter(({ name }) => space.has(name));
  return {
    require: asNames(space.get("require"))
      .map((text) => text.trim())
      .filter(Boolean),
    together: groups.filter((group) => group.length > 1 && group.every((name) => known.has(name))),
    maxChanges: Number.isInteger(nChanges) ? asPositive(nChanges) : null,
    nearData: Boolean(space.get("near_data")),
    cost: toCost(space.get("cost")),
    other: Object.fromEntries(others.map(({ name }) => [name, space.get(name)])),
  };
}

/**
 * Return the numbers of a cost, without the factors of features.
 * @param {unknown} given
 */
function toCost(given) {
  const entries = [...asTable(given)];
  return Object.fromEntries(entries.filter(([, value]) => typeof value === "number" && value >= 0));
}

/**
 * Return the counts of all features that the operator frees, of those the visitor frees, and of
 * those among them that are limited.
 * @param {Site} site
 * @param {Map<string, Card>} cards
 */
export function countFree(site, cards) {
  const features = site.features.filter(isFree);
  const all = features.map((feature) => cards.get(feature.name) ?? freshCard());
  const free = all.filter((card) => !card.locked);
  return { nAll: all.length, nFree: free.length, nLimited: free.filter(isLimited).length };
}
