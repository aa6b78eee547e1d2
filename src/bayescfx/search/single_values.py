"""Values of single features that a sweep has left out: integers and levels, the nearest first.

A sweep tries a few dozen values of each feature. A model may jump at any other, so a search does
not end while a nearer value of an integer, or another level, has not been scored.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array
from bayescfx.space.region import Region

if TYPE_CHECKING:
    from bayescfx.search.sweep import SweepState


def try_single_values(state: SweepState) -> Generator[Array, Array, None]:
    """Change single features of the query, and changes of the answers, to every nearer value.

    As far as the rows last; while nothing hits, half of them, and none before a proof.
    """
    most = state.spare
    if state.record is None:
        most = most // 2 * (state.question.proof.conclusion is None)
    end = state.question.spent + most
    while state.question.spent < end:
        rows = _untried(state)[: state.batch]
        if not len(rows):
            return
        yield from state.ask(rows, end - state.question.spent)


def _untried(state: SweepState) -> Array:
    """Return allowed rows ``(k, d)`` that may become answers and were not scored, by cost."""
    region = state.region
    query = region.query
    answers = state.X[:0] if state.record is None else state.record.answers
    rows = [state.X[:0]]
    for j in _listed(region):
        changed = answers[answers[:, j] != query[j]]
        rows += [_with_values(region, x, j) for x in (query, *changed)]
    X = region.complete(np.vstack(rows))
    cost = region.cost(X)
    is_open = (cost < state.cost_limit) & region.changes(X).any(axis=1)
    is_open &= ~state.question.known.holds(X)
    X = X[is_open]
    X = X[np.argsort(cost[is_open], kind="stable")]
    return np.asarray(X[region.contains(X)])


def _listed(region: Region) -> list[int]:
    """Return the positions of the integers and levels that move alone."""
    alone = [block[0] for block in region.moving if len(block) == 1]
    return [
        j for j in alone if region.choices[j] is not None and not region.axes[j].feature.floating
    ]


def _with_values(region: Region, x: Array, j: int) -> Array:
    """Return a row ``(d,)`` with feature `j` at each of its codes."""
    codes = region.choices[j]
    assert codes is not None  # of listed features
    rows = np.repeat(x[None], len(codes), axis=0)
    rows[:, j] = codes
    return rows
