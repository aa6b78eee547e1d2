"""A tournament: many candidates climb a little, the best different ones climb on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.propose.ascent import Box, ascend
from bayescfx.propose.axes import Axes
from bayescfx.propose.ledger import Ledger
from bayescfx.propose.moves import improve

# Rows that are still in, and calls of their ascent, round by round.
_ROUNDS = ((24, 5), (8, 8))
_SPARSE = ((24, 5), (16, 8))  # under an l0 bound: more ends
_BRIEF = ((12, 4), (4, 8))  # a good point soon
_FLAT = ((48, 0), (24, 0), (16, 0))  # nothing to climb: moves only
_LAST = 12  # calls of the last ascents
_REPEATS = 8  # most of them
_RISE = 1e-5  # an increase worth another round, in units of the spread of values
_TOLERANCE = 3e-6  # an increase not worth another step, in the same units
_SEPARATION = 0.2  # rows differ by at least this much, in units of the ranges
_WIDE = 40  # with more continuous features than this, fewer rows climb


@dataclass(frozen=True)
class _Field:
    """Rows in the tournament: points, values, and the curvature learnt so far."""

    X: Array
    value: Array
    columns: Indices
    H: Array

    def take(self, index: Indices) -> _Field:
        return _Field(self.X[index], self.value[index], self.columns[index], self.H[index])


def refine(
    ledger: Ledger, axes: Axes, k: int, rng: np.random.Generator, *, thorough: bool = True
) -> None:
    """Improve the best different rows that the ledger knows.

    Parameters
    ----------
    ledger : Ledger
        Knows the candidates, scores the new ones and remembers them.
    axes : Axes
        The free features.
    k : int
        How many different maxima are wanted.
    rng : numpy.random.Generator
        Source of moves.
    thorough : bool, default True
        Whether to go on until nothing rises any more, or to stop at a good point.
    """
    rounds: tuple[tuple[int, int], ...] = _ROUNDS if ledger.region.max_changes is None else _SPARSE
    if not axes.sloped.size:
        rounds = _FLAT
    elif not thorough:
        rounds = _BRIEF
    X, value = ledger.tried(64 + 8 * rounds[0][0])
    if not len(X):
        return
    shrink = min(1.0, _WIDE / max(1, len(axes.sloped)))
    field = _field(ledger, axes, X, value)
    for at, (rows, calls) in enumerate(rounds):
        rows = max(2, k, round(rows * shrink))
        field = field.take(different(axes, field.X, field.value, rows))
        if at or not axes.sloped.size:
            field = _moved(ledger, axes, field, rng)
        field = _climbed(ledger, axes, field, calls, relaxed=at == 0)
    if not thorough:
        _moved(ledger, axes, field.take(np.argsort(-field.value, kind="stable")[:k]), rng)
        return
    field = field.take(different(axes, field.X, field.value, max(rounds[-1][0] // 4, k)))
    field = _climbed(ledger, axes, field, _LAST)
    _finish(ledger, axes, field.take(np.argsort(-field.value, kind="stable")[:k]), rng)


def _finish(ledger: Ledger, axes: Axes, field: _Field, rng: np.random.Generator) -> None:
    """Move and climb the best rows until none rises any more."""
    pairs = False
    for _ in range(_REPEATS):
        before = field.value
        field = _moved(ledger, axes, field, rng, pairs=pairs)
        risen = np.flatnonzero(field.value > before + _RISE * ledger.spread)
        if risen.size:
            field = _climbed(ledger, axes, field.take(risen), _LAST)
        elif pairs:
            break
        pairs = not risen.size  # two moves at once only where one is not enough


def different(axes: Axes, X: Array, value: Array, n: int, apart: float = _SEPARATION) -> Indices:
    """Return indices of the best rows, at most `n`, that lie apart; best first.

    Parameters
    ----------
    axes : Axes
        Gives the distances.
    X, value : Array of shape (m, d) and (m,)
        Rows and values.
    n : int
        How many.
    apart : float
        Least distance, in units of the ranges.

    Returns
    -------
    Indices

    Examples
    --------
    >>> from bayescfx.features import Integer, Real
    >>> from bayescfx.space.space import Space
    >>> region = Space({"a": Real(0, 1), "b": Integer(0, 9)}).around({"a": 0.5, "b": 2})
    >>> X = np.array([[0.1, 3.0], [0.11, 3.0], [0.9, 3.0]])
    >>> different(Axes.of(region), X, np.array([1.0, 2.0, 3.0]), 2)
    array([2, 1])
    """
    order = np.argsort(-value, kind="stable")
    unit = axes.unit(X[order])
    blocked = np.zeros(len(order), dtype=bool)
    kept: list[int] = []
    while len(kept) < n and not blocked.all():
        at = int(np.argmin(blocked))
        kept.append(at)
        blocked |= axes.separation(unit, unit[at]) < apart
        blocked[at] = True
    return order[np.array(kept, dtype=np.intp)]


def _field(ledger: Ledger, axes: Axes, X: Array, value: Array) -> _Field:
    columns = _columns(ledger, axes, X)
    return _Field(X, value, columns, np.zeros((*columns.shape, columns.shape[1])))


def _columns(ledger: Ledger, axes: Axes, X: Array) -> Indices:
    """Columns that each row may climb in: all with a slope, or those changed under an l0 bound."""
    region = ledger.region
    sloped = axes.sloped
    bound = region.max_changes
    if bound is None or bound >= len(axes.free):
        return np.tile(sloped, (len(X), 1))
    changed = region.changes(X)[:, sloped]
    first = np.argsort(~changed, axis=1, kind="stable")[:, : min(bound, len(sloped))]
    return np.asarray(sloped[first])


def _moved(
    ledger: Ledger, axes: Axes, field: _Field, rng: np.random.Generator, *, pairs: bool = False
) -> _Field:
    """One round of moves; what was learnt of a row's curvature stays if its columns do."""
    X, value = improve(ledger, axes, field.X, field.value, rng, pairs=pairs)
    columns = _columns(ledger, axes, X)
    same = (columns == field.columns).all(axis=1)
    return _Field(X, value, columns, np.where(same[:, None, None], field.H, 0.0))


def _climbed(
    ledger: Ledger, axes: Axes, field: _Field, calls: int, *, relaxed: bool = False
) -> _Field:
    """Follow the gradient in the continuous features, and in long grids if `relaxed`."""
    region = ledger.region
    columns = field.columns
    if not columns.size:
        return field
    at = np.arange(len(columns))[:, None]
    x = field.X[at, columns]
    movable = region.step[columns] == 0
    if relaxed:
        movable = np.ones_like(movable)
    if region.max_changes is not None:
        movable = movable & region.changes(field.X)[at, columns]
    box = Box(
        columns,
        np.where(movable, region.low[columns], x),
        np.where(movable, region.high[columns], x),
        axes.span[columns],
        region.query[columns],
        region.A,
        region.b,
    )
    climbed, _, H = ascend(
        lambda rows, X: ledger.gradient(X),
        field.X,
        box,
        H=field.H,
        iterations=calls,
        tolerance=_TOLERANCE * ledger.spread,
    )
    climbed = region.snap(climbed)
    scores = ledger.value(climbed)
    better = scores > field.value
    X = np.where(better[:, None], climbed, field.X)
    return _Field(X, np.where(better, scores, field.value), columns, H)
