"""Alternatives: after the best answer, a sweep for each further one, with other sets of features.

An answer with another set of features does not change all features of an earlier one. So every set
that was found is left out, and the rest is swept again; rows that are known cost nothing. With
`diverse`, no feature of an earlier answer may change at all, as long as that leads to an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.search.finish import distinct
from bayescfx.search.question import Question
from bayescfx.space.region import Region


@dataclass(frozen=True)
class AlternativesTuning:
    """Numbers of the search for alternatives; set by judgement, tests of alternatives."""

    # Sets of features that are left out at most for each answer that is wanted. Some lead to an
    # answer that is much the same as an earlier one.
    sets_per_answer: int = 3


TUNING = AlternativesTuning()


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a region, which is swept for one answer.

    Parameters
    ----------
    region : Region
        The region of a question, with some features fixed.
    avoided : mask of shape (m, d)
        Sets of features; a row that changes all features of one of them is not in the part.
    """

    region: Region
    avoided: Mask

    def contains(self, X: Array) -> Mask:
        """Return which codes ``(n, d)`` are allowed rows of the part."""
        n_unchanged = (~self.region.changes(X)).astype(np.float64) @ self.avoided.T  # (n, m)
        is_other = np.asarray((n_unchanged > 0.0).all(axis=1))
        return self.region.contains(X) & is_other


def whole_region(question: Question) -> Part:
    """Return all of the region of a question."""
    region = question.region
    return Part(region, np.empty((0, len(region.query)), dtype=np.bool_))


#: Sweeps a part with at most so many rows; returns the best row ``(d,)``, or None.
SweepPart: TypeAlias = Callable[[Part, int], Generator[Array, Array, Array | None]]


def search_alternatives(
    question: Question, rows: int, sweep: SweepPart
) -> Generator[Array, Array, None]:
    """Search for answers that change other features than the best, with at most so many `rows`.

    Yields codes ``(k, d)`` to be evaluated and receives their outputs ``(k,)``.
    """
    end = question.spent + rows
    found = question.region.changes(question.X[[question.best]])  # (m, d)
    n_missing = _n_missing(question, 1)
    while n_missing and len(found) <= TUNING.sets_per_answer * question.n:
        row = yield from _search_parts(question, found, end, n_missing, sweep)
        if row is None:
            return
        found = np.vstack([found, question.region.changes(row[None])])
        n_missing = _n_missing(question, len(found))


def _n_missing(question: Question, n_sets: int) -> int:
    """Return how many answers or sets of features are missing."""
    n_answers = len(distinct(question, question.n))
    return max(question.n - min(n_sets, n_answers), 0)


def _search_parts(
    question: Question, found: Mask, end: int, n_missing: int, sweep: SweepPart
) -> Generator[Array, Array, Array | None]:
    """Return the best row of the first part that has one, or None.

    Each sweep has its share of the rows up to `end`, as several answers are missing.
    """
    for part in _parts(question, found):
        left = end - question.spent
        if left > 0 and part.region.moving:
            row = yield from sweep(part, max(1, left // n_missing))
            if row is not None:
                return row
    return None


def _parts(question: Question, found: Mask) -> Iterator[Part]:
    """Yield parts of a region in which no row changes all features of a set found ``(m, d)``.

    For diverse answers first the part in which none of their features changes. The last parts fix
    a feature of each set, one after the other: with less freedom a sweep may see more.
    """
    region = question.region
    if question.diverse:
        yield Part(with_fixed(region, np.asarray(found.any(axis=0))), found[:0])
    is_single = found.sum(axis=1) == 1
    single = np.asarray(found[is_single].any(axis=0))
    others = found[~is_single]
    yield Part(with_fixed(region, single), others)
    for j in np.flatnonzero(others.any(axis=0) & ~single).tolist():
        fixed = single.copy()
        fixed[j] = True
        yield Part(with_fixed(region, fixed), others)


def with_fixed(region: Region, features: Mask) -> Region:
    """Return the region with features, a mask ``(d,)``, fixed at the query's codes."""
    for j in np.flatnonzero(features).tolist():
        axis = region.axes[j]
        region = region.with_axis(j, replace(axis, choices=np.array([axis.query])))
    return region
