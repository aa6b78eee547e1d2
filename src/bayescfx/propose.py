"""The best next point: maximise any function over a region.

Small finite regions are enumerated. Otherwise some hundred candidates are scored in one call, a
handful of different good ones is refined together: gradient ascent for continuous features
(:mod:`bayescfx.ascent`) alternates with moves for the others (:mod:`bayescfx.moves`). Every
candidate lies in the region before it is scored, so what is proposed is allowed by construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.ascent import Box, ascend
from bayescfx.deadline import NEVER, Deadline
from bayescfx.ledger import Acquisition, Ledger
from bayescfx.moves import Axes, improve
from bayescfx.region import Region
from bayescfx.supports import screen

__all__ = ["Acquisition", "Proposal", "propose"]

_EXACT = 4096  # regions with at most this many points are enumerated
_RESTARTS = 8
_ROUNDS = 6  # most alternations of ascent and moves
_SEPARATION = 0.2  # restarts differ by at least this much, in units of the ranges
_SHORT, _LONG = 8, 40  # calls of an ascent on the way, and of the last one


@dataclass(frozen=True)
class Proposal:
    """Points worth evaluating.

    Parameters
    ----------
    points : Array of shape (n, d)
        Codes, best first; at most as many as were asked for.
    values : Array of shape (n,)
        Their values; ``-inf`` where nothing better is known.
    exhausted : bool
        Every point of the region is to be avoided; there are no points then.
    """

    points: Array
    values: Array
    exhausted: bool = False


def propose(
    acquisition: Acquisition,
    region: Region,
    rng: np.random.Generator,
    starts: Array | None = None,
    *,
    k: int = 1,
    avoid: Array | None = None,
    deadline: Deadline = NEVER,
) -> Proposal:
    """Return the best points of `region` that have not been evaluated.

    Parameters
    ----------
    acquisition : Acquisition
        What is maximised, with its gradient by each code. It may be ``-inf`` in places and may
        have kinks where a feature equals the query's value.
    region : Region
        Where; every point proposed lies in it.
    rng : numpy.random.Generator
        Source of candidates; the same state gives the same proposal.
    starts : Array of shape (n, d), optional
        Promising rows, best first.
    k : int, default 1
        How many distinct points, different local maxima first.
    avoid : Array of shape (n, d), optional
        Rows that were evaluated before and are not proposed again.
    deadline : Deadline
        Checked before every call of the acquisition.

    Returns
    -------
    Proposal
        Fewer than `k` points where the region has no more.

    Raises
    ------
    OutOfTime
        If the deadline passes on the way.
    """
    if k < 1:
        raise ValueError(f"`k` must be at least 1; got {k}. Ask for one point or more.")
    ledger = Ledger(acquisition, region, avoid, deadline)
    if region.size <= _EXACT:
        ledger.value(region.enumerate(_EXACT), allowed=True)
        return _chosen(ledger, Axes.of(region), np.empty((0, len(region.query))), k)
    axes = Axes.of(region)
    given = np.empty((0, len(region.query))) if starts is None else starts
    screen(ledger, axes, given, rng)
    maxima = _refined(ledger, axes, max(_RESTARTS, 2 * k), rng)
    return _chosen(ledger, axes, maxima, k)


def _refined(ledger: Ledger, axes: Axes, restarts: int, rng: np.random.Generator) -> Array:
    """Improve the best different candidates together; return where they end."""
    X, value = _different(axes, *ledger.tried(), restarts)
    X, value = _climbed(ledger, axes, X, value, _SHORT, relaxed=True)
    for _ in range(_ROUNDS):
        moved, better = improve(ledger, axes, X, value, rng)
        risen = better > value + 1e-9 * np.abs(value)
        X, value = moved, better
        if not risen.any():
            break
        X[risen], value[risen] = _climbed(ledger, axes, X[risen], value[risen], _SHORT)
    top = np.argsort(-value, kind="stable")
    few = top[: max(2, restarts // 4)]
    X[few], value[few] = _climbed(ledger, axes, X[few], value[few], _LONG)
    return X[np.argsort(-value, kind="stable")]


def _climbed(
    ledger: Ledger, axes: Axes, X: Array, value: Array, iterations: int, *, relaxed: bool = False
) -> tuple[Array, Array]:
    """Follow the gradient in the continuous features, and in long grids if `relaxed`."""
    region = ledger.region
    moving = np.zeros(len(region.query), dtype=bool)
    moving[axes.smooth] = True
    if relaxed:
        moving[axes.long] = True
    if not (len(X) and moving.any()):
        return X, value
    movable = moving & (region.changes(X) if region.max_changes is not None else True)
    box = Box(
        np.where(movable, region.low, X),
        np.where(movable, region.high, X),
        axes.span,
        np.where(moving, region.query, np.nan),
        region.A,
        region.b,
    )

    def evaluate(rows: Indices, trial: Array) -> tuple[Array, Array]:
        return ledger.gradient(trial)

    climbed, _ = ascend(evaluate, X, box, iterations=iterations)
    climbed = region.snap(climbed)
    scores = ledger.value(climbed)
    better = scores > value
    return np.where(better[:, None], climbed, X), np.where(better, scores, value)


def _different(axes: Axes, X: Array, value: Array, n: int) -> tuple[Array, Array]:
    """The best `n` rows (given best first) that lie apart; close ones only if there are no more."""
    if not len(X):
        return X, value
    X, value = X[: 64 + 8 * n], value[: 64 + 8 * n]
    index = _apart(axes.separation(axes.unit(X), axes.unit(X)) < _SEPARATION, n)
    return X[index], value[index]


def _apart(close: Mask, n: int) -> Indices:
    """First `n` rows of which no two are close; filled up with the first others."""
    kept: list[int] = []
    blocked = np.zeros(len(close), dtype=bool)
    while len(kept) < n and not blocked.all():
        index = int(np.argmin(blocked))
        kept.append(index)
        blocked |= close[index]
        blocked[index] = True
    others = [index for index in range(len(close)) if index not in kept]
    return np.array(sorted(kept + others[: n - len(kept)]), dtype=np.intp)


def _chosen(ledger: Ledger, axes: Axes, maxima: Array, k: int) -> Proposal:
    """The best `k` rows tried: the best first, then different local maxima, then the rest."""
    X, value = ledger.tried()
    if not len(X):
        return Proposal(X, value, exhausted=True)
    if k == 1:
        return Proposal(X[:1], value[:1])
    X, value = X[: 256 + 16 * k], value[: 256 + 16 * k]
    unit = axes.unit(X)
    index = _apart(axes.separation(unit, unit) < _SEPARATION / 2, k)
    return Proposal(X[index], value[index])
