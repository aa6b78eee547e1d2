"""A tournament: many candidates climb a little, the best different ones climb on."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.ascent import Box, ascend
from bayescfx.propose.free import FreeFeatures
from bayescfx.propose.ledger import Ledger
from bayescfx.propose.neighbours import improve

Effort: TypeAlias = Literal["thorough", "brief", "swift", "glance"]

# Rows that are still in, and calls of their ascent, round by round.
PLANS = {
    "thorough": ((24, 5), (8, 8)),
    "sparse": ((24, 5), (16, 8)),  # under an l0 bound: more ends
    "brief": ((12, 4), (4, 8)),  # a good point soon
    "swift": ((8, 5),),  # one near good starts
    "glance": ((6, 3),),  # a first impression
    "flat": ((48, 0), (24, 0), (16, 0)),  # nothing to climb: moves only
}
WIDE = 40  # with more continuous features than this, fewer rows climb


class _Field(NamedTuple):
    """Rows in the tournament."""

    X: Array  # (m, d)
    value: Array  # (m,)
    columns: Indices  # (m, c) what each row may climb in
    H: Array  # (m, c, c) curvature learnt so far

    def take(self, index: Indices) -> _Field:
        return _Field(self.X[index], self.value[index], self.columns[index], self.H[index])


def refine(ledger: Ledger, k: int, rng: np.random.Generator, effort: Effort) -> bool:
    """Improve the best different rows that the ledger knows, if any; `k` maxima are wanted."""
    free = ledger.free
    rounds = PLANS[effort]
    if effort != "glance" and not free.sloped.size:
        rounds = PLANS["flat"]
    elif effort == "thorough" and ledger.region.max_changes is not None:
        rounds = PLANS["sparse"]
    X, value = ledger.tried(64 + 8 * rounds[0][0])
    if not len(X):
        return False
    shrink = min(1.0, WIDE / max(1, len(free.sloped)))
    columns = _columns(free, X)
    field = _Field(X, value, columns, np.zeros((*columns.shape, columns.shape[1])))
    for at, (rows, calls) in enumerate(rounds):
        rows = max(2, k, round(rows * shrink))
        field = field.take(different(free, field.X, field.value, rows))
        if at or not free.sloped.size:
            field = _moved(ledger, field, rng)
        field = _climbed(ledger, field, calls, relaxed=at == 0)
    if effort != "thorough":  # which goes on until nothing rises any more
        _moved(ledger, field.take(np.argsort(-field.value, kind="stable")[:k]), rng)
        return True
    field = field.take(different(free, field.X, field.value, max(rounds[-1][0] // 4, k)))
    field = _climbed(ledger, field)
    _finish(ledger, field.take(np.argsort(-field.value, kind="stable")[:k]), rng)
    return True


def _finish(ledger: Ledger, field: _Field, rng: np.random.Generator) -> None:
    """Move and climb the best rows until none rises any more."""
    pairs = False
    for _ in range(8):
        before = field.value
        field = _moved(ledger, field, rng, pairs=pairs)
        risen = np.flatnonzero(field.value > before + 1e-5 * ledger.spread)
        if risen.size:
            field = _climbed(ledger, field.take(risen))
        elif pairs:
            break
        pairs = not risen.size  # two moves at once only where one is not enough


def different(free: FreeFeatures, X: Array, value: Array, n: int, apart: float = 0.2) -> Indices:
    """Return indices of the best rows, at most `n`, that lie `apart`; best first.

    Distances are Euclidean; ordered ranges have length 1, and unordered levels differ by 1.
    """
    order = np.argsort(-value, kind="stable")
    levels = free.region.categorical[free.all]
    unit = X[order][:, free.all] / np.where(levels, 1.0, free.span[free.all])
    kept: list[int] = []
    while len(kept) < n and len(order):
        kept.append(order[0])
        gap = unit - unit[0]
        if levels.any():
            gap[:, levels] = gap[:, levels] != 0
        left = np.sqrt(np.einsum("ij,ij->i", gap, gap)) >= apart
        left[0] = False
        order, unit = order[left], unit[left]
    return np.array(kept, dtype=np.intp)


def _columns(free: FreeFeatures, X: Array) -> Indices:
    """Return what each row may climb in: all with a slope, or under an l0 bound those changed."""
    bound = free.region.max_changes
    if bound is None or bound >= len(free.all):
        return np.tile(free.sloped, (len(X), 1))
    changed = free.region.changes(X)[:, free.sloped]
    first = np.argsort(~changed, axis=1, kind="stable")[:, : min(bound, len(free.sloped))]
    return np.asarray(free.sloped[first])


def _moved(
    ledger: Ledger, field: _Field, rng: np.random.Generator, *, pairs: bool = False
) -> _Field:
    """One round of moves; what was learnt of a row's curvature stays if its columns do."""
    X, value = improve(ledger, field.X, field.value, rng, pairs=pairs)
    columns = _columns(ledger.free, X)
    same = (columns == field.columns).all(axis=1)
    return _Field(X, value, columns, np.where(same[:, None, None], field.H, 0.0))


def _climbed(ledger: Ledger, field: _Field, calls: int = 12, *, relaxed: bool = False) -> _Field:
    """Follow the gradient in the continuous features, and in long grids if `relaxed`."""
    region, columns = ledger.region, field.columns
    if not columns.size:
        return field
    at = np.arange(len(columns))[:, None]
    x = field.X[at, columns]
    movable = relaxed | (region.step[columns] == 0)
    if region.max_changes is not None:
        movable &= region.changes(field.X)[at, columns]
    low, high = np.where(movable, np.stack([region.low, region.high])[:, columns], x)
    span, kink = ledger.free.span[columns], region.query[columns]
    box = Box(columns, low, high, span, kink, region.A, region.b)
    X, _, H = ascend(ledger.gradient, field.X, box, field.H, calls, 3e-6 * ledger.spread)
    X = region.snap(X)
    value = ledger.value(X)
    better = value > field.value
    X = np.where(better[:, None], X, field.X)
    return _Field(X, np.where(better, value, field.value), columns, H)
