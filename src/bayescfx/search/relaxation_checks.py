"""Checks of constraints after a miss: the model scores rows that a single constraint forbids.

A surrogate knows nothing of a fixed feature, so that the model has to be asked. `Auto` leaves some
rows of the budget for that. First a few rows are scored without each constraint: single changes of
the best rows and of the query. If rows are left, regions without a constraint are swept, those
first whose rows came nearest to the target.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

import numpy as np

from bayescfx.arrays import Array, Indices, firsts
from bayescfx.errors import InfeasibleError
from bayescfx.search.exact.relaxing import is_readable
from bayescfx.search.question import Question, Rounds, best_first, misses
from bayescfx.search.reason import forbidden_only_by, scored_outside
from bayescfx.search.sweep import Sweep
from bayescfx.search.turns import CUT_SHORT
from bayescfx.space.constraint import Constraint
from bayescfx.space.neighbourhood import (
    data_values,
    frequent_levels,
    line_values,
    listed_values,
    single_moves,
)
from bayescfx.space.region import Region


@dataclass(frozen=True)
class ChecksTuning:
    """Numbers of the checks; set by judgement, 2026-11-19."""

    #: One in so many rows of the budget is kept for the checks while nothing is reached.
    kept_one_in: int = 10
    #: Of the rows that are left, checks take at most those kept, one in so many of the budget, or
    #: so many for each constraint: for both ends of a feature, from a good row and from the query.
    most_one_in: int = 4
    most_for_each: int = 4
    #: Rows that are kept for each constraint at most.
    kept_for_each: int = 40
    #: Rows that are scored first without each constraint.
    probes: int = 6
    #: Best rows from which single changes start, and the values of each feature.
    n_tops: int = 2
    n_values: int = 8
    #: A region is swept with at least so many rows.
    least_swept: int = 20


TUNING = ChecksTuning()


def rows_to_keep(region: Region, budget: int) -> int:
    """Return how many rows of a budget are kept to check constraints if the target is missed."""
    return min(budget // TUNING.kept_one_in, TUNING.kept_for_each * len(region.of_space))


def needs_checks(question: Question) -> bool:
    """Return whether constraints of a question are to be checked: it missed, and it is not known.

    After a proof, or if every row was scored, a model that can be read is not asked.
    """
    is_answered = any((question.error, question.already_met, question.reached))
    is_known = question.proof.conclusion == "out of reach"
    if is_answered or is_known or question.stopped in (None, *CUT_SHORT):
        return False
    return question.stopped != "exhausted" or not is_readable(question)


@dataclass(frozen=True)
class RelaxationChecks:
    """Score rows that single constraints forbid, for a question whose search has missed."""

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        relaxed = question.relaxed
        most = max(
            question.kept_rows,
            question.budget // TUNING.most_one_in,
            TUNING.most_for_each * len(relaxed),
        )
        question.kept_rows = 0
        end = question.spent + min(question.left, most)
        if relaxed:
            yield from _probe(question, end)
            yield from _sweep_relaxed(question, end)
        return "converged"


def _probe(question: Question, end: int) -> Generator[Array, Array, None]:
    """Score a few rows of each relaxed region, in turn."""
    bases = _bases(question)
    probes = [islice(_probes(question, bases, *pair), TUNING.probes) for pair in question.relaxed]
    rows = list(islice(_in_turn(probes), end - question.spent))
    if rows:
        yield np.array(rows)


def _in_turn(parts: Iterable[Iterable[Array]]) -> Iterator[Array]:
    """Yield the first row of each part, then the second ones, and so on; no row twice."""
    seen: set[bytes] = set()
    for x in chain.from_iterable(zip_longest(*parts)):
        if x is not None and x.tobytes() not in seen:
            seen.add(x.tobytes())
            yield x


def _probes(
    question: Question, bases: Array, constraint: Constraint, region: Region
) -> Iterator[Array]:
    """Yield rows that were not scored and that only one constraint forbids.

    They are single changes of the `bases` ``(k, d)``. The longest ones come first, then those half
    as long, and so on. Where more than a feature is limited, changes of two bases are joined, too.
    """
    if len(constraint.features) == 1:
        j = region.schema.positions[constraint.features[0]]
        parts = _of_feature(question.region, region, bases, j)
    else:
        parts = _of_rule(region, bases)
    for X in parts:
        is_new = ~question.known.holds(X)
        X = X[is_new]
        X = X[region.contains(X) & ~question.region.contains(X)]
        yield from X


def _of_feature(limited: Region, region: Region, bases: Array, j: int) -> Iterator[Array]:
    """Yield rows with codes of feature `j` that only the relaxed region allows, by code."""
    if region.recomputed[j]:
        yield from _of_rule(region, bases)
        return
    codes = _feature_codes(limited, region, j)
    for code in codes[: TUNING.n_values].tolist():
        X = bases.copy()
        X[:, j] = code
        yield region.complete(X)


def _feature_codes(limited: Region, region: Region, j: int) -> Array:
    """Return codes of feature `j` that only the relaxed region allows, in either direction."""
    if region.categorical[j]:
        codes = frequent_levels(region, j, 2 * TUNING.n_values)
    else:
        listed = listed_values(region, j, TUNING.n_values)
        codes = data_values(region, j, 2 * TUNING.n_values) if listed is None else listed
    codes = codes[limited.axes[j].snap(codes) != codes]
    above = codes[codes > region.query[j]]
    below = codes[codes < region.query[j]][::-1]
    sides = [above[_halving(len(above))], below[_halving(len(below))]]
    pairs = chain.from_iterable(zip_longest(*(side.tolist() for side in sides)))
    return np.array([code for code in pairs if code is not None], dtype=np.float64)


def _of_rule(region: Region, bases: Array) -> Iterator[Array]:
    """Yield single changes of each base, by base, and the changes of two bases in one row."""
    values = line_values(region, TUNING.n_values)
    both = np.where(bases[:, None] == region.query, bases[None], bases[:, None])
    yield region.complete(both.reshape(-1, bases.shape[1]))
    for base in bases:
        moves = single_moves(region, base, TUNING.n_values, values)
        yield moves.X[_farthest_first(moves.ray)]


def _farthest_first(ray: Indices) -> Indices:
    """Return an order of moves, given the ray ``(n,)`` of each: first the last of every ray."""
    rank = np.zeros(len(ray), dtype=np.intp)
    for each in np.unique(ray).tolist():
        at = np.flatnonzero(ray == each)
        rank[at[_halving(len(at))]] = np.arange(len(at))
    return np.argsort(rank, kind="stable")


def _halving(n: int) -> Indices:
    """Return the positions 0 to n - 1: the last, the middle one, halfway between, and so on."""
    order = [n - 1] if n else []
    parts = 2
    while parts < 2 * n:
        order += [k * (n - 1) // parts for k in range(1, parts, 2)]
        parts *= 2
    return np.array(list(dict.fromkeys([*order, *range(n)])), dtype=np.intp)


def _bases(question: Question) -> Array:
    """Return the best rows, without one change if there is no room for more, and the query."""
    region = question.region
    tops = question.X[best_first(question, question.X, question.y)[: TUNING.n_tops]]
    changed = region.changes(tops)
    is_full = changed.sum(axis=1) == region.max_changes  # never without a bound
    row, j = np.nonzero(changed & is_full[:, None])
    fewer = tops[row]
    fewer[np.arange(len(row)), j] = region.query[j]
    bases = np.vstack([tops, region.complete(fewer), region.query])
    return np.asarray(bases[firsts(bases)])


def _sweep_relaxed(question: Question, end: int) -> Generator[Array, Array, None]:
    """Sweep relaxed regions while rows are left, first those with rows nearest to the target."""
    X, y = scored_outside(question)
    miss = misses(question.acceptance, y)
    relaxed = question.relaxed
    least = [miss[forbidden_only_by(*pair, X)].min(initial=np.inf) for pair in relaxed]
    for rank, k in enumerate(np.argsort(least, kind="stable").tolist()):
        left = end - question.spent
        share = min(left, max(TUNING.least_swept, left // (len(relaxed) - rank)))
        if share < TUNING.least_swept:
            return
        yield from _sweep_one(question, relaxed[k][1], share)


def _sweep_one(question: Question, region: Region, budget: int) -> Generator[Array, Array, None]:
    """Sweep a relaxed region at the expense of a question."""
    relaxed = question.with_region(region, budget)
    rounds = Sweep().first(relaxed)
    y: Array | None = None
    while True:
        try:
            rows = rounds.send(y)  # type: ignore[arg-type]  # a generator starts with None
        except (StopIteration, InfeasibleError):
            return
        before = question.spent
        y = yield rows
        relaxed.spent += question.spent - before
        relaxed.asked.append(question.asked[-1])
