"""Far targets: towards them as far as slopes and single features lead, from row after row."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from bayescfx.arrays import Array
from bayescfx.search.question import best_first
from bayescfx.search.single import Moves, single_moves
from bayescfx.search.start import usual_rows
from bayescfx.search.sweep_state import Swept
from bayescfx.space.repair import project


def too_far(swept: Swept, moves: Moves, value: float) -> bool:
    """Return whether the best moves of all blocks together would miss, if effects add up."""
    ends = []
    for sign in (-1.0, 1.0):
        most = np.zeros(len(swept.region.moving))
        np.maximum.at(most, moves.block, sign * moves.gain)
        ends.append(value + sign * most.sum())
    accepted = swept.question.surrogate_acceptance
    return not any(ends[0] <= high and ends[1] >= low for low, high in accepted)


def climb(swept: Swept) -> Generator[Array, Array, None]:
    """Go towards the target as far as it gets nearer, from here, then from elsewhere."""
    question, region = swept.question, swept.region
    if swept.starts is None:
        rows = usual_rows(region, min(128, swept.spare // 8), question.rng)
        own = project(region, region.query[None])
        rows = np.vstack([own, rows])
        y = yield from swept.ask(rows, swept.spare)
        rows, y = rows[np.isfinite(y)], y[np.isfinite(y)]
        best = swept.X[best_first(question, swept.X, swept.y)[:1]]
        swept.starts = [*own, *best, *rows[best_first(question, rows, y)[:16]]]
    if not swept.starts:
        return
    x, vain = swept.starts.pop(0), 0
    # Steps may lie between the values that are tried.
    patience, count = (2, 10) if swept.stepped else (1, 3)
    while vain < patience and swept.spare > 2 * len(region.moving) and not swept.reached:
        found = None if swept.stepped else (yield from _uphill(swept, x))
        if found is None:
            found = yield from _higher(swept, x, count)
        vain, x = (vain + 1, x) if found is None else (0, found)


def _higher(swept: Swept, x: Array, count: int) -> Generator[Array, Array, Array | None]:
    """Return a row nearer to the target than ``(d,)``; features take `count` random values."""
    some = dict(swept.values)
    for j, codes in swept.values.items():
        if len(codes) > count + 2:
            inner = swept.question.rng.choice(codes[1:-1], count, replace=False)
            some[j] = np.sort(np.append(inner, codes[[0, -1]]))
    rows = np.vstack([x, single_moves(swept.region, x, count + 2, some).X])
    miss = yield from swept.missed(rows)
    order = np.argsort(miss, kind="stable")
    rows = swept.piled(x, rows[order[miss[order] < miss[0]]])
    less = yield from swept.missed(rows)
    return rows[less.argmin()] if less.min(initial=np.inf) < 0.999 * miss[0] else None


def _uphill(swept: Swept, x: Array) -> Generator[Array, Array, Array | None]:
    """Return a row nearer to the target than ``(d,)``, where the slope of all features leads.

    Single features lead no further where two have to move for either to help, as along a rule.
    """
    region, at = swept.region, np.flatnonzero(swept.region.sliding)
    each, inwards = np.arange(1, len(at) + 1), np.where(x > 0.5 * (region.low + region.high), -1, 1)
    rows = np.repeat(x[None], len(at) + 1, axis=0)
    rows[each, at] += (0.02 * inwards * region.scale)[at]
    rows = region.snap(rows)
    miss = yield from swept.missed(rows)
    slope, moved = np.zeros(len(x)), (rows[each, at] - x[at]) / region.scale[at]
    known = np.isfinite(miss[1:]) & (moved != 0.0)
    if np.isfinite(miss[0]):
        slope[at[known]] = (1.0 - miss[1:][known] / miss[0]) / moved[known]
    if not slope.any():
        return None
    way = slope / np.abs(slope).max() * region.scale
    rows = project(region, x + np.multiply.outer(2.0 ** np.arange(-5.0, 3.0), way))
    left = yield from swept.missed(rows)
    return rows[left.argmin()] if left.min(initial=np.inf) < 0.999 * miss[0] else None
