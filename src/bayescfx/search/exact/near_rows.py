"""Rows near the query that reach a target by the form alone: one or two changed features.

They cost no model rows, and give the branch and bound a first limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.search.exact.problem import BoxProblem


@dataclass(frozen=True)
class NearTuning:
    """Numbers of the first rows."""

    singles: int = 600  # changes of one feature that are paired, the cheapest
    pairs: int = 1024  # pairs that are scored, the cheapest


TUNING = NearTuning()


def near_corners(problem: BoxProblem) -> Indices:
    """Return corners ``(n, k)`` with one or two changes that reach the target, by cost."""
    single = _single_corners(problem)
    if not len(single):
        return single
    score = problem.corner_scores(np.vstack([problem.home, single]))
    gain = score[1:] - score[0]
    found = single[_is_hit(problem, single, score[1:])]
    most = problem.region.max_changes
    if most is None or most > 1:
        limit = problem.costs.total(found + problem.offset).min(initial=np.inf)
        pair = _pair_corners(problem, single, float(score[0]), gain, float(limit))
        hits = pair[_is_hit(problem, pair, problem.corner_scores(pair))]
        found = np.vstack([found, hits])
    cost = problem.costs.total(found + problem.offset)
    return found[np.argsort(cost, kind="stable")]


def _single_corners(problem: BoxProblem) -> Indices:
    """Return the corners ``(n, k)`` with one change."""
    feature = np.repeat(np.arange(len(problem.sizes)), problem.sizes)
    cell = np.arange(len(feature)) - problem.offset[feature]
    is_change = cell != problem.home[feature]
    feature = feature[is_change]
    corner = np.repeat(problem.home[None], len(feature), axis=0)
    corner[np.arange(len(feature)), feature] = cell[is_change]
    cost = problem.costs.total(corner + problem.offset)
    return corner[np.argsort(cost, kind="stable")[: TUNING.singles]]


def _pair_corners(
    problem: BoxProblem, single: Indices, start: float, gain: Array, limit: float
) -> Indices:
    """Return the cheapest corners with two changes that reach the target if gains add up."""
    feature = np.argmax(single != problem.home, axis=1)
    cell = single[np.arange(len(single)), feature]
    at = problem.offset[feature] + cell
    cost = problem.costs.power[at] + problem.costs.premium[at]
    total = start + gain[:, None] + gain
    is_pair = problem.is_possible(total.ravel(), total.ravel()).reshape(total.shape)
    is_pair &= feature[:, None] < feature
    sums = cost[:, None] + cost
    is_pair &= sums < limit
    first, second = np.nonzero(is_pair)
    order = np.argsort(sums[first, second], kind="stable")[: TUNING.pairs]
    corner = single[first[order]].copy()
    corner[np.arange(len(order)), feature[second[order]]] = cell[second[order]]
    return corner


def _is_hit(problem: BoxProblem, corner: Indices, score: Array) -> Mask:
    """Return which corners reach the target and keep all rules."""
    is_hit = problem.is_possible(score, score)
    hits = np.flatnonzero(is_hit)
    if len(hits) and problem.region.rules:
        is_hit[hits] = problem.region.contains(problem.rows(corner[hits]))
    return is_hit
