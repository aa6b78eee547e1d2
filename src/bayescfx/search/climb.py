"""Climbs to far targets, along slopes and single features, from one start after another."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array
from bayescfx.search.question import best_first, misses
from bayescfx.search.start import typical_rows
from bayescfx.space.neighbourhood import cumulative_moves, single_moves
from bayescfx.space.repair import project

if TYPE_CHECKING:
    from bayescfx.search.sweep import SweepState


@dataclass(frozen=True)
class ClimbTuning:
    """Numbers of climbs, tuned together.

    Evidence: `python -m benchmarks efficiency --only far`, 2026-11-18. Of targets at 0.6 and 0.9 of
    the way to the farthest output known 83 and 58 % are reached, 73 and 45 % without climbs.
    """

    data_starts: int = 128  # data rows among which a climb looks for starts ...
    data_share: int = 8  # ... and at most one for so many spare rows
    starts: int = 16
    patience_with_steps: int = 2  # rounds without progress, for models with steps ...
    patience: int = 1  # ... and others
    values_with_steps: int = 10  # random values of a feature per round
    values: int = 3
    progress: float = 0.999  # a round must lower the miss below this share
    slope_step: float = 0.02  # step of the difference quotients, in scales
    shortest_power: float = -5.0  # steps along the slope: powers of two of a scale
    end_power: float = 3.0


TUNING = ClimbTuning()


def remaining_way(state: SweepState) -> float:
    """Return the share of the way from the query's output to the target that is left."""
    miss = misses(state.question.acceptance, np.append(state.y, state.question.output))
    return float(miss.min() / miss[-1]) if miss[-1] > 0.0 else 0.0


def climb(state: SweepState) -> Generator[Array, Array, None]:
    """Go from the next start towards the target as long as it gets nearer.

    Smooth models are followed along their slope first; models with steps, and where the slope leads
    no further, by changes of single features.
    """
    if state.starts is None:
        state.starts = yield from _find_starts(state)
    if not state.starts:
        return
    x = state.starts.pop(0)
    # Between the values that are tried, a model with steps may have others.
    patience = TUNING.patience_with_steps if state.has_steps else TUNING.patience
    n_values = TUNING.values_with_steps if state.has_steps else TUNING.values
    n_failed = 0
    least = 2 * len(state.region.moving)
    while n_failed < patience and state.spare > least and state.record is None:
        nearer = None if state.has_steps else (yield from _follow_slope(state, x))
        if nearer is None:
            nearer = yield from _change_features(state, x, n_values)
        if nearer is None:
            n_failed += 1
        else:
            n_failed = 0
            x = nearer


def _find_starts(state: SweepState) -> Generator[Array, Array, list[Array]]:
    """Return where climbs start: the query, the best row so far, and the best data rows."""
    question = state.question
    region = state.region
    n = min(TUNING.data_starts, state.spare // TUNING.data_share)
    data = typical_rows(region, n, question.rng)
    query = project(region, region.query[None])
    rows = np.vstack([query, data])
    y = yield from state.ask(rows, state.spare)
    scored = np.isfinite(y)
    rows = rows[scored]
    best_of_all = state.X[best_first(question, state.X, state.y)[:1]]
    best = rows[best_first(question, rows, y[scored])[: TUNING.starts]]
    return [*query, *best_of_all, *best]


def _change_features(
    state: SweepState, x: Array, n_values: int
) -> Generator[Array, Array, Array | None]:
    """Return a row nearer to the target than ``(d,)``, with features at random values, or None.

    Each feature takes `n_values` values alone; then the changes that help are made together.
    """
    values = dict(state.values)
    for j, codes in state.values.items():
        if len(codes) > n_values + 2:
            inner = state.question.rng.choice(codes[1:-1], n_values, replace=False)
            values[j] = np.sort(np.append(inner, codes[[0, -1]]))
    moves = single_moves(state.region, x, n_values + 2, values)
    rows = np.vstack([x, moves.X])
    miss = yield from _ask_misses(state, rows)
    order = np.argsort(miss, kind="stable")
    helpful = rows[order[miss[order] < miss[0]]]
    return (yield from _nearest(state, cumulative_moves(state.region, x, helpful), miss[0]))


def _follow_slope(state: SweepState, x: Array) -> Generator[Array, Array, Array | None]:
    """Return a row nearer to the target than ``(d,)`` along the slope of all features, or None.

    It leads on where two features have to move for either to help, as along a rule.
    """
    region = state.region
    at = np.flatnonzero(region.sliding)
    each = np.arange(1, len(at) + 1)
    inwards = np.where(x > 0.5 * (region.low + region.high), -1, 1)
    rows = np.repeat(x[None], len(at) + 1, axis=0)
    rows[each, at] += (TUNING.slope_step * inwards * region.scale)[at]
    rows = region.snap(rows)
    miss = yield from _ask_misses(state, rows)
    moved = (rows[each, at] - x[at]) / region.scale[at]
    is_known = np.isfinite(miss[1:]) & (moved != 0.0)
    slope = np.zeros(len(x))
    if np.isfinite(miss[0]):
        slope[at[is_known]] = (1.0 - miss[1:][is_known] / miss[0]) / moved[is_known]
    if not slope.any():
        return None
    way = slope / np.abs(slope).max() * region.scale
    lengths = 2.0 ** np.arange(TUNING.shortest_power, TUNING.end_power)
    rows = project(region, x + np.multiply.outer(lengths, way))
    return (yield from _nearest(state, rows, miss[0]))


def _nearest(state: SweepState, rows: Array, miss: float) -> Generator[Array, Array, Array | None]:
    """Return the row of ``(n, d)`` nearest to the target if it clearly lowers the `miss`."""
    left = yield from _ask_misses(state, rows)
    if left.min(initial=np.inf) < TUNING.progress * miss:
        return np.asarray(rows[left.argmin()])
    return None


def _ask_misses(state: SweepState, X: Array) -> Generator[Array, Array, Array]:
    """Return how far rows ``(k, d)`` are from the target, ``(k,)``; infinite if not scored."""
    y = yield from state.ask(X, state.spare)
    return np.nan_to_num(misses(state.question.acceptance, y), nan=np.inf)
