"""A tournament: many candidates climb a little, the best different ones climb on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.ascent import AscentBox, ascend
from bayescfx.propose.free import FreeFeatures
from bayescfx.propose.ledger import Ledger
from bayescfx.propose.moves import improve, improve_by_pairs
from bayescfx.propose.tuning import PLANS, TUNING, Effort, Round


class _Field(NamedTuple):
    """Rows in the tournament."""

    X: Array  # (m, d)
    value: Array  # (m,)
    columns: Indices  # (m, c) the features that each row may climb in
    H: Array  # (m, c, c) curvature learnt so far

    @classmethod
    def of(cls, free: FreeFeatures, X: Array, value: Array) -> _Field:
        """Return a field whose curvature is unknown."""
        columns = _columns(free, X)
        return cls(X, value, columns, np.zeros((*columns.shape, columns.shape[1])))

    def take(self, index: Indices) -> _Field:
        """Return some of the rows."""
        return _Field(self.X[index], self.value[index], self.columns[index], self.H[index])

    def best(self, k: int) -> _Field:
        """Return the `k` best rows."""
        return self.take(np.argsort(-self.value, kind="stable")[:k])


def refine(ledger: Ledger, k: int, rng: np.random.Generator, effort: Effort) -> bool:
    """Improve the best different rows in the ledger; `k` maxima are wanted.

    From round to round fewer rows climb, for longer, and make moves in between. A thorough search
    goes on with the best of the last round until nothing rises any more. All rows that are tried
    are kept in the ledger. Returns whether there were any rows to begin with.
    """
    free = ledger.free
    rounds = _plan(ledger, effort)
    X, value = ledger.tried(TUNING.seeds)
    if not len(X):
        return False
    shrink = min(1.0, TUNING.wide / max(1, len(free.sloped)))
    field = _Field.of(free, X, value)
    for at, (rows, calls) in enumerate(rounds):
        rows = max(k, round(rows * shrink))
        field = field.take(different(free, field.X, field.value, rows, TUNING.apart))
        if at or not free.sloped.size:
            field = _move(ledger, field, rng)
        field = _climb(ledger, field, calls, is_relaxed=at == 0)
    if effort != "thorough":
        _move(ledger, field.best(k), rng)
        return True
    n_finalists = max(rounds[-1].rows // TUNING.finalists, k)
    field = field.take(different(free, field.X, field.value, n_finalists, TUNING.apart))
    field = _climb(ledger, field, TUNING.last_calls)
    _climb_to_top(ledger, field.best(k), rng)
    return True


def _plan(ledger: Ledger, effort: Effort) -> tuple[Round, ...]:
    """Return the rounds of a tournament."""
    if effort != "glance" and not ledger.free.sloped.size:
        return PLANS["flat"]
    if effort == "thorough" and ledger.region.max_changes is not None:
        return PLANS["sparse"]
    return PLANS[effort]


def _climb_to_top(ledger: Ledger, field: _Field, rng: np.random.Generator) -> None:
    """Move and climb the best rows until none rises any more."""
    by_pairs = False
    for _ in range(TUNING.last_rounds):
        before = field.value
        field = _move(ledger, field, rng, by_pairs=by_pairs)
        risen = np.flatnonzero(field.value > before + TUNING.risen * ledger.spread)
        if risen.size:
            field = _climb(ledger, field.take(risen), TUNING.last_calls)
        elif by_pairs:
            break
        by_pairs = not risen.size  # two moves at once only where one is not enough


def different(free: FreeFeatures, X: Array, value: Array, n: int, apart: float) -> Indices:
    """Return indices of the best rows, at most `n`, that lie `apart`; best first.

    Distances are Euclidean; ordered ranges have length 1, and unordered levels differ by 1.
    """
    order = np.argsort(-value, kind="stable")
    is_unordered = free.region.categorical[free.all]
    unit = X[order][:, free.all] / np.where(is_unordered, 1.0, free.span[free.all])
    kept: list[int] = []
    while len(kept) < n and len(order):
        kept.append(order[0])
        gap = unit - unit[0]
        if is_unordered.any():
            gap[:, is_unordered] = gap[:, is_unordered] != 0
        is_left = np.sqrt(np.einsum("ij,ij->i", gap, gap)) >= apart
        is_left[0] = False
        order = order[is_left]
        unit = unit[is_left]
    return np.array(kept, dtype=np.intp)


def _columns(free: FreeFeatures, X: Array) -> Indices:
    """Return the features ``(m, c)`` that each row may climb in.

    All features with a slope; under an l0 bound as many of them as may change, first those that
    the row changes already.
    """
    bound = free.region.max_changes
    if bound is None or bound >= len(free.all):
        return np.tile(free.sloped, (len(X), 1))
    changed = free.region.changes(X)[:, free.sloped]
    first = np.argsort(~changed, axis=1, kind="stable")[:, : min(bound, len(free.sloped))]
    return np.asarray(free.sloped[first])


def _move(
    ledger: Ledger, field: _Field, rng: np.random.Generator, *, by_pairs: bool = False
) -> _Field:
    """Make one round of moves; the curvature of a row stays known if its columns stay."""
    moving = improve_by_pairs if by_pairs else improve
    X, value = moving(ledger, field.X, field.value, rng)
    columns = _columns(ledger.free, X)
    is_same = (columns == field.columns).all(axis=1)
    return _Field(X, value, columns, np.where(is_same[:, None, None], field.H, 0.0))


def _climb(ledger: Ledger, field: _Field, calls: int, *, is_relaxed: bool = False) -> _Field:
    """Follow the gradient in the continuous features, and in long grids if `is_relaxed`.

    Ends are put on the grid; where that is no gain, a row stays. Under an l0 bound only features
    that a row changes move.
    """
    region = ledger.region
    columns = field.columns
    if not columns.size:
        return field
    at = np.arange(len(columns))[:, None]
    x = field.X[at, columns]
    movable = is_relaxed | (region.step[columns] == 0)
    if region.max_changes is not None:
        movable &= region.changes(field.X)[at, columns]
    low = np.where(movable, region.low[columns], x)
    high = np.where(movable, region.high[columns], x)
    span = ledger.free.span[columns]
    box = AscentBox(columns, low, high, span, region.query[columns], region.A, region.b)
    tolerance = TUNING.tolerance * ledger.spread
    X, _, H = ascend(ledger.gradient, field.X, box, field.H, calls, tolerance)
    X = region.snap(X)
    value = ledger.value(X)
    is_better = value > field.value
    X = np.where(is_better[:, None], X, field.X)
    return _Field(X, np.where(is_better, value, field.value), columns, H)
