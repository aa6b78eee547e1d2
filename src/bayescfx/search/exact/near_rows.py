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
    """Numbers of the first rows.

    Evidence: 10 questions of `python -m benchmarks exact`, diabetes with LightGBM (2026-11-18). The
    rows take 2 to 5 ms; in 6 questions they reach the target, in 4 of these at the lowest cost.
    """

    words: float = 2.5e5  # words of leaves that are looked at for singles, and as many for pairs
    singles: int = 600  # changes of one feature that are paired at most, the cheapest
    pairs: int = 1024  # pairs that are scored at most, the cheapest


TUNING = NearTuning()


def near_corners(problem: BoxProblem) -> tuple[Indices, int]:
    """Return corners with one or two changes that reach the target.

    Returns
    -------
    corners : array of int of shape (n, k)
        The corners, by cost.
    n_scored : int
        The number of corners that the form has scored.
    """
    affordable = int(TUNING.words // max(len(problem.root), 1))
    single = _single_corners(problem)[: min(TUNING.singles, affordable)]
    if not len(single):
        return single, 0
    n_scored = len(single) + 1
    score = problem.corner_scores(np.vstack([problem.home, single]))
    gain = score[1:] - score[0]
    found = single[_is_hit(problem, single, score[1:])]
    most = problem.region.max_changes
    if most is None or most > 1:
        limit = problem.costs.total(found + problem.offset).min(initial=np.inf)
        pair = _pair_corners(problem, single, float(score[0]), gain, float(limit))
        pair = pair[: min(TUNING.pairs, affordable)]
        n_scored += len(pair)
        hits = pair[_is_hit(problem, pair, problem.corner_scores(pair))]
        found = np.vstack([found, hits])
    cost = problem.costs.total(found + problem.offset)
    return found[np.argsort(cost, kind="stable")], n_scored


def _single_corners(problem: BoxProblem) -> Indices:
    """Return the corners ``(n, k)`` with one change."""
    feature = np.repeat(np.arange(len(problem.sizes)), problem.sizes)
    cell = np.arange(len(feature)) - problem.offset[feature]
    is_change = cell != problem.home[feature]
    feature = feature[is_change]
    corner = np.repeat(problem.home[None], len(feature), axis=0)
    corner[np.arange(len(feature)), feature] = cell[is_change]
    cost = problem.costs.total(corner + problem.offset)
    return corner[np.argsort(cost, kind="stable")]


def _pair_corners(
    problem: BoxProblem, single: Indices, start: float, gain: Array, limit: float
) -> Indices:
    """Return the corners with two changes that reach the target if gains add up.

    The cheapest come first, by an estimate of the cost: it adds up what the two changes cost alone.
    """
    feature = np.argmax(single != problem.home, axis=1)
    cell = single[np.arange(len(single)), feature]
    at = problem.offset[feature] + cell
    estimate = problem.costs.power[at] + problem.costs.price[at]
    total = start + gain[:, None] + gain
    is_pair = problem.is_possible(total.ravel(), total.ravel()).reshape(total.shape)
    is_pair &= feature[:, None] < feature
    sums = estimate[:, None] + estimate
    is_pair &= sums < limit
    first, second = np.nonzero(is_pair)
    order = np.argsort(sums[first, second], kind="stable")
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
