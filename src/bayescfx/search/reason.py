"""Why a target was missed: a constraint, and what is known without it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.search.question import Question, misses
from bayescfx.space.constraint import Constraint
from bayescfx.space.region import Region

#: How it is known: by the model's form, by rows that the model scored, or by the surrogate alone.
Evidence: TypeAlias = Literal["computed", "checked", "guess"]

#: Reasons that are named at most.
MOST_NAMED = 3
#: A row without a constraint is clearly nearer to the target if the miss falls by this share. Set
#: by judgement, 2026-11-19.
MIN_GAIN = 0.1


@dataclass(frozen=True, eq=False)
class Reason:
    """A constraint without which the target comes nearer.

    Parameters
    ----------
    words : str
        The constraint.
    evidence : {"computed", "checked", "guess"}
        How that is known.
    features : tuple of names
        The features that it limits.
    row : array of shape (d,) or None
        The codes of the row that shows it, which only this constraint forbids.
    output : float or None
        The output of this row.
    cost : float or None
        Its cost if it reaches the target.
    is_lowest : bool
        Whether no row without the constraint that reaches the target costs less.
    """

    words: str
    evidence: Evidence
    features: tuple[Hashable, ...] = ()
    row: Array | None = None
    output: float | None = None
    cost: float | None = None
    is_lowest: bool = False


def cheapest(reasons: Iterable[Reason]) -> list[Reason]:
    """Return the reasons that alone keep the target away, the cheapest first, at most three."""
    found = [(each.cost, each) for each in reasons if each.cost is not None]
    found.sort(key=lambda pair: pair[0])
    return [each for _, each in found[:MOST_NAMED]]


def checked_reasons(question: Question) -> list[Reason]:
    """Return the constraints without which rows that the model has scored do better.

    If any of these rows reach the target, only their constraints are returned, the cheapest first;
    else those whose rows come clearly nearer to it.
    """
    X, y = scored_outside(question)
    base = float(misses(question.acceptance, question.y).min(initial=np.inf))
    found: list[tuple[float, Reason]] = []
    for constraint, relaxed in question.relaxed:
        is_allowed = forbidden_only_by(constraint, relaxed, X)
        if not is_allowed.any():
            continue
        row, output, cost = _best_row(question, relaxed, X[is_allowed], y[is_allowed])
        miss = float(misses(question.acceptance, np.array([output]))[0])
        reason = Reason(constraint.words, "checked", constraint.features, row, output, cost)
        if miss <= (1.0 - MIN_GAIN) * base:
            found.append((miss, reason))
    found.sort(key=lambda pair: pair[0])
    nearest = [reason for _, reason in found]
    return cheapest(nearest) or nearest[:MOST_NAMED]


def scored_outside(question: Question) -> tuple[Array, Array]:
    """Return codes ``(n, d)`` and outputs ``(n,)`` of the rows asked for that are not allowed."""
    places = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *question.asked]))
    X, y = question.known.take(places)
    is_outside = np.isfinite(y) & ~question.region.contains(X)
    return X[is_outside], y[is_outside]


def forbidden_only_by(constraint: Constraint, relaxed: Region, X: Array) -> Mask:
    """Return which rows ``(n, d)``, which are not allowed, are allowed in a relaxed region."""
    is_allowed = np.ones(len(X), dtype=np.bool_)
    if len(constraint.features) == 1:  # only rows that change this feature
        j = relaxed.schema.positions[constraint.features[0]]
        is_allowed = X[:, j] != relaxed.query[j]
    is_allowed[is_allowed] = relaxed.contains(X[is_allowed])
    return is_allowed


def _best_row(
    question: Question, region: Region, X: Array, y: Array
) -> tuple[Array, float, float | None]:
    """Return the cheapest row that reaches the target, with output and cost; else the nearest.

    `X` ``(n, d)`` are allowed rows of a relaxed region, `y` ``(n,)`` their outputs.
    """
    is_hit = question.accepted(y)
    if is_hit.any():
        hits = np.flatnonzero(is_hit)
        costs = region.cost(X[hits])
        k = hits[int(np.argmin(costs))]
        return X[k], float(y[k]), float(costs.min())
    k = int(np.argmin(misses(question.acceptance, y)))
    return X[k], float(y[k]), None
