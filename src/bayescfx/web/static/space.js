// What may change: the settings of the feature cards and limits, to the server's "space" and back.
import { hasDirection, isFree, isScale, levelOf, toNumber } from "./features.js";

export const DIFFICULTIES = [
  [0.25, "very easy"],
  [0.5, "easy"],
  [1, "normal"],
  [2, "hard"],
  [5, "very hard"],
];

/** Return the settings of a card that says nothing. */
export const freshCard = () => ({
  locked: false, direction: "", low: null, high: null, levels: null, difficulty: 1, step: null, move: null,
});

/** Return limits that say nothing. */
export const freshLimits = () => ({ require: [], together: [], maxChanges: null, nearData: false });

/** Return whether a card says anything. */
export const isSet = (card) => card.locked || isLimited(card) || card.difficulty !== 1 || card.step !== null;

/** Return whether a card limits where its feature may go. */
export const isLimited = (card) =>
  card.direction !== "" || card.low !== null || card.high !== null || card.levels !== null || card.move !== null;

/** Return the "space" of a question: only what was said. */
export function toSpace(site, cards, limits) {
  const free = site.features.filter(isFree).map((f) => [f.name, cards.get(f.name)]);
  const stays = ([, card]) => card.locked || card.levels?.length === 0;
  const loose = free.filter((one) => !stays(one));
  const named = (keep) => loose.filter(([, card]) => keep(card)).map(([name]) => name);
  const table = (keep, value) =>
    Object.fromEntries(loose.filter(([, card]) => keep(card)).map(([name, card]) => [name, value(card, name)]));
  const byName = new Map(site.features.map((f) => [f.name, f]));
  const ends = (card, name) =>
    card.levels === null ? [card.low, card.high] : card.levels.map((k) => byName.get(name).levels[k]);
  const factors = table((card) => card.difficulty !== 1, (card) => card.difficulty);
  const parts = {
    fix: free.filter(stays).map(([name]) => name),
    only_up: named((card) => card.direction === "up"),
    only_down: named((card) => card.direction === "down"),
    between: table((card) => card.low !== null || card.high !== null || card.levels !== null, ends),
    move: table((card) => card.move !== null, (card) => card.move),
    require: limits.require,
    together: limits.together,
    max_changes: limits.maxChanges,
    near_data: limits.nearData || null,
    steps: table((card) => card.step !== null, (card) => card.step),
    cost: Object.keys(factors).length ? { per_feature: factors } : null,
  };
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => said(part)));
}

function said(part) {
  if (part === null) return false;
  if (Array.isArray(part)) return part.length > 0;
  return typeof part !== "object" || Object.keys(part).length > 0;
}

/** Return cards and limits of a "space"; what names no free feature of the site is left out. */
export function fromSpace(site, given) {
  const space = given !== null && typeof given === "object" ? given : {};
  const names = (part) => (Array.isArray(part) ? part.filter((name) => typeof name === "string") : []);
  const table = (part) => new Map(part !== null && typeof part === "object" && !Array.isArray(part) ? Object.entries(part) : []);
  const fixed = new Set(names(space.fix)), up = new Set(names(space.only_up)), down = new Set(names(space.only_down));
  const allowed = Array.isArray(space.allow) ? new Set(names(space.allow)) : null;
  const between = table(space.between), steps = table(space.steps), move = table(space.move);
  const factors = table(space.cost?.per_feature);
  const cards = new Map();
  for (const feature of site.features) {
    const { name } = feature, card = freshCard();
    cards.set(name, card);
    if (!isFree(feature)) continue;
    card.locked = fixed.has(name) || (allowed !== null && !allowed.has(name));
    if (hasDirection(feature)) card.direction = up.has(name) ? "up" : down.has(name) ? "down" : "";
    if (between.has(name)) limit(feature, card, between.get(name));
    if (isPair(move.get(name))) card.move = move.get(name);
    if (typeof steps.get(name) === "number" && steps.get(name) > 0) card.step = steps.get(name);
    const factor = factors.get(name);
    if (typeof factor === "number" && factor > 0) card.difficulty = factor;
  }
  return { cards, limits: limitsOf(site, space, names) };
}

const isPair = (part) => Array.isArray(part) && part.length === 2;

function limit(feature, card, part) {
  if (!Array.isArray(part)) return;
  if (isScale(feature)) {
    const [low, high] = part.map((end) => (toNumber(feature, end) === null ? null : end));
    card.low = low ?? null;
    card.high = high ?? null;
    return;
  }
  const kept = [...new Set(part.map((level) => levelOf(feature, level)))].filter((k) => k >= 0);
  card.levels = kept.length && kept.length < feature.levels.length ? kept.sort((a, b) => a - b) : null;
}

function limitsOf(site, space, names) {
  const known = new Set(site.features.map((f) => f.name));
  const groups = Array.isArray(space.together) ? space.together.map(names) : [];
  return {
    require: names(space.require).map((text) => text.trim()).filter(Boolean),
    together: groups.filter((group) => group.length > 1 && group.every((name) => known.has(name))),
    maxChanges: Number.isInteger(space.max_changes) && space.max_changes > 0 ? space.max_changes : null,
    nearData: space.near_data === true,
  };
}

/** Return how many features may change, and how many of them are limited. */
export function freedom(site, cards) {
  const free = site.features.filter(isFree).map((f) => cards.get(f.name));
  const loose = free.filter((card) => !card.locked);
  return { all: free.length, free: loose.length, limited: loose.filter(isLimited).length };
}
