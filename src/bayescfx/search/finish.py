"""Answers: which scored rows they are, and rows without needless or needlessly long changes.

:func:`distinct` selects the answers among the scored rows. Every search can end with ``yield from
finish(question, rows)``, which spends few rows: a change is taken back, shortened up to the last
known miss, or exchanged for another. The sweep, whose rows are cheap, shortens many in few calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, firsts
from bayescfx.search.question import Question, best_first
from bayescfx.space.neighbourhood import exchange, n_to_settle, shorten, take_back
from bayescfx.space.region import Region


@dataclass(frozen=True)
class FinishTuning:
    """Numbers of the finisher.

    Evidence: `python -m benchmarks.tuning`, 140 questions, 2026-11-18. Half and double of each
    change the cost of sweeps by at most 0.1 %; without `worthwhile` (double) they take 1.3 % more
    rows and clearly more CPU. For Bayes-CFX set by judgement, benchmark `make quality`.
    """

    worthwhile: float = 0.99  # a row must cost less than this share of the one it replaces
    halves: tuple[float, ...] = (0.5,)  # shares of an unknown part of a change, few rows
    shares_under_rules: int = 64  # shares whose rules are checked, which costs no model row
    same_share: float = 1e-6  # features of a block are changed by the same share


TUNING = FinishTuning()

#: Rows that are compared with each other; set by judgement, benchmark `make quality` (2026-11-18).
MOST_COMPARED = 2000
#: Answers among which the most different ones are chosen; set by judgement, tests of alternatives.
MOST_CANDIDATES = 60
#: Rows differ if a feature moves this share of the larger change further; set by judgement.
CLEAR_SHARE = 0.25

#: How promising rows ``(k, d)`` are, ``(k,)``; minus infinity for those not worth a call.
Worth: TypeAlias = Callable[[Array], Array]


def finish(
    question: Question, rows: int, *, batch: int = 1, worth: Worth | None = None
) -> Generator[Array, Array, None]:
    """Yield at most `rows` rows that show which changes of the answers are needed, and how much.

    First each change is taken back alone, until no answer has one that is not needed. Then, at most
    `batch` rows at a time, changes are shortened by halves, and one is dropped while another
    becomes longer or shorter. Such a row is tried only if enough rows are left to settle it, should
    it reach the target. `worth` ranks rows ``(k, d)``, minus infinity for those not worth a call;
    by default the cheapest come first.
    """
    end = question.spent + rows
    while True:
        room = min(question.left, end - question.spent)
        if room <= 0 or not question.reached:
            return
        answers = _answers(question)
        chosen = _needless(question, answers, batch, worth)
        if not len(chosen):
            chosen = _nearer(question, answers, room, batch, worth)
        if not len(chosen):
            return
        yield chosen[:room]


def _answers(question: Question) -> Array:
    """Return the answers ``(n, d)`` so far that change anything."""
    X = question.X[distinct(question, question.n)]
    return np.asarray(X[question.region.changes(X).any(axis=1)])


def _needless(question: Question, answers: Array, batch: int, worth: Worth | None) -> Array:
    """Return new rows with one change taken back, the most promising first."""
    rows = _new(question, take_back(question.region, answers))
    if not len(rows):
        return rows
    value = _worth(question, rows, worth)
    return np.asarray(rows[np.argsort(-value, kind="stable")[:batch]])


def _nearer(
    question: Question, answers: Array, room: int, batch: int, worth: Worth | None
) -> Array:
    """Return new rows that may replace an answer whose changes are all needed.

    At most `batch`, the most promising, and so few that `room` rows are enough to settle those
    that become answers.
    """
    region = question.region
    rows = np.vstack([halve(question, answers), exchange(region, answers)])
    rows = _new(question, rows)
    rows = rows[1 + n_to_settle(region, rows) <= room]
    value = _worth(question, rows, worth)
    order = np.argsort(-value, kind="stable")[:batch]
    rows = rows[order][value[order] > -np.inf]
    if not len(rows):
        return rows
    # As many of a batch as may become answers are settled afterwards.
    reserve = np.sort(n_to_settle(region, rows))[-question.n :].sum()
    return np.asarray(rows[: max(1, room - reserve)])


def _worth(question: Question, X: Array, worth: Worth | None) -> Array:
    """Return how promising rows ``(k, d)`` are."""
    return -question.region.cost(X) if worth is None else worth(X)


def _new(question: Question, X: Array) -> Array:
    """Return the rows that change something and have not been scored, each once."""
    X = X[question.region.changes(X).any(axis=1)]
    X = X[firsts(X)]
    return np.asarray(X[~question.known.holds(X)])


def halve(question: Question, X: Array) -> Array:
    """Return rows ``(n, d)`` with a change cut to halfway between it and the last known miss."""
    region = question.region
    scored = question.X
    is_miss = ~question.accepted(question.y)
    found = [X[:0]]
    for x, cost in zip(X, region.cost(X), strict=True):
        rows = np.vstack([X[:0], *shorter_rows(region, scored, is_miss, x, TUNING.halves)])
        rows = region.snap(rows)
        found.append(rows[region.cost(rows) < TUNING.worthwhile * cost])
    rows = np.vstack(found)
    return np.asarray(rows[region.contains(rows)])


def shorter_rows(
    region: Region, X: Array, is_miss: Mask, x: Array, fractions: tuple[float, ...]
) -> list[Array]:
    """Return the row ``(d,)`` with the change of each block shortened, an array for each block.

    Of scored rows `X` ``(n, d)`` those that miss show how short a change may not be; the others of
    its lengths are tried at the `fractions`. Fraction 0 takes back changes that have no length.
    """
    has_no_length = region.categorical | region.cyclic
    differs = region.changes(X, x)  # (n, d)
    n_different = differs.sum(axis=1)
    found = []
    for block in region.moving:
        moved = [j for j in block if x[j] != region.query[j]]
        if not moved:
            continue
        if has_no_length[moved].any():
            shares = np.zeros(1 if fractions[0] == 0.0 else 0)
        else:
            on_line = np.flatnonzero(n_different == differs[:, block].sum(axis=1))
            line_misses = X[on_line][is_miss[on_line]]
            longest = _longest_share(region, line_misses, x, moved)
            shares = _allowed_shares(region, x, moved, longest, fractions)
        found.append(shorten(region, x, moved, shares))
    return found


def _longest_share(region: Region, X: Array, x: Array, moved: list[int]) -> float:
    """Return the longest share of a row's change of some features that rows ``(n, d)`` make."""
    query = region.query[moved]
    shares = (X[:, moved] - query) / (x[moved] - query)
    shares = shares[np.ptp(shares, axis=1) < TUNING.same_share, 0]
    return float(shares[(shares >= 0.0) & (shares < 1.0)].max(initial=0.0))


def _allowed_shares(
    region: Region, x: Array, moved: list[int], longest: float, fractions: tuple[float, ...]
) -> Array:
    """Return shares of a change beyond the `longest` miss; rules say which are possible at all."""
    if not region.rules or len(fractions) == 1:
        return longest + (1.0 - longest) * np.array(fractions)
    n = TUNING.shares_under_rules
    fine = longest + (1.0 - longest) * np.arange(n) / n
    rows = region.snap(shorten(region, x, moved, fine))
    allowed = fine[region.contains(rows)]
    evenly = np.linspace(0, len(allowed) - 1, min(len(allowed), len(fractions)))
    return np.asarray(allowed[evenly.astype(np.intp)])


# ── which rows are answers ──


def distinct(question: Question, n: int) -> Indices:
    """Return positions in ``question.X`` of up to `n` answers, best first.

    The nearest, or if the question asks for `diverse` answers the best one and others that change
    features as different as possible.
    """
    if not question.diverse or n == 1 or not question.reached:
        return _nearest(question, n)
    candidates = _nearest(question, MOST_CANDIDATES)
    chosen = _most_different(question.region.clear_changes(question.X[candidates]), n)
    return np.asarray(candidates[chosen])


def _most_different(changed: Mask, n: int) -> Indices:
    """Return positions of up to `n` of the sets of features ``(k, d)``, in order, the first always.

    Each further one shares the least with those before: the largest share in common with one of
    them, of the features of the smaller set, so that a large set does not look different. Of equal
    ones the first is chosen.
    """
    sets = changed.astype(np.float64)
    sizes = sets.sum(axis=1)
    common = sets @ sets.T
    overlap = common / np.maximum(np.minimum.outer(sizes, sizes), 1.0)
    chosen = [0]
    while len(chosen) < min(n, len(sets)):
        largest = overlap[:, chosen].max(axis=1)
        largest[chosen] = np.inf
        chosen.append(int(largest.argmin()))
    return np.sort(chosen)


def _nearest(question: Question, n: int) -> Indices:
    """Return positions in ``question.X`` of up to `n` answers, best first.

    Rows that reach the target, or if there are none, rows that come nearer to it than the query,
    or else the query itself. Different sets of changed features come first, then other rows that
    differ clearly (:func:`different`); fewer rather than the same twice.
    """
    some, is_reached = _candidates(question)
    region = question.region
    X = question.X[some]
    changed = region.clear_changes(X)
    sets: set[bytes] = set()  # of features that the chosen rows change
    is_open = np.ones(len(X), dtype=np.bool_)  # rows that may still be chosen
    chosen: list[int] = []
    for only_new_sets in (True, False):
        for i in np.flatnonzero(is_open).tolist():
            features = changed[i].tobytes()
            is_repeated = only_new_sets and features in sets
            if is_repeated or not is_open[i]:
                continue
            is_open[i] = False
            if needless(region, X, X[i]) if is_reached else _is_outdone(changed, i):
                continue
            sets.add(features)
            chosen.append(i)
            if len(chosen) == n:
                return np.asarray(some[chosen])
            is_open &= different(region, X, X[chosen[-1:]])[:, 0]  # the others are much the same
    return np.asarray(some[chosen])


def _candidates(question: Question) -> tuple[Indices, bool]:
    """Return the positions of rows that may be answers, best first, and whether they hit."""
    region = question.region
    all_rows = question.X
    y = question.y
    hit = question.accepted(y)
    is_reached = bool(hit.any())
    some = np.flatnonzero(hit) if is_reached else np.arange(len(y))
    some = some[best_first(question, all_rows[some], y[some])[:MOST_COMPARED]]
    moved = region.changes(all_rows[some]).any(axis=1)
    if is_reached and moved.any():
        return some[moved], is_reached
    if not is_reached and not moved.all():
        # Rows that come no nearer to the target than the query are no guesses worth making.
        n_nearer = max(1, int(np.argmin(moved)))
        return some[:n_nearer], is_reached
    return some, is_reached


def needless(region: Region, hits: Array, x: Array) -> bool:
    """Return whether one of the rows that hit is the row ``(d,)`` with changes taken back."""
    changed = region.changes(hits)
    own = region.changes(x[None])[0]
    is_subset = (changed <= own).all(axis=1)
    is_same = ((hits == x) | ~changed)[:, own].all(axis=1)
    n_changes = changed.sum(axis=1)
    is_fewer = (n_changes < own.sum()) & (n_changes > 0)
    return bool((is_subset & is_same & is_fewer).any())


def _is_outdone(changed: Mask, i: int) -> bool:
    """Return whether a better guess changes only some of the features that guess `i` changes."""
    is_subset = (changed[:i] <= changed[i]).all(axis=1)
    is_smaller = (changed[:i] != changed[i]).any(axis=1)
    return bool((is_subset & is_smaller).any())


def different(region: Region, X: Array, others: Array) -> Mask:
    """Return which rows ``(n, d)`` differ clearly from which others ``(m, d)``; shape (n, m).

    Either moves something further than the other: a row that only goes further the same way is no
    different answer.
    """
    return further(region, X, others) & further(region, others, X).T


def further(region: Region, X: Array, others: Array) -> Mask:
    """Return which rows ``(n, d)`` move something clearly further than others ``(m, d)`` do.

    Or to the other side, or to another level; shape (n, m).
    """
    own = region.units(X)[:, None, :]
    theirs = region.units(others)[None]
    most = np.maximum(own, theirs)
    # A change of a feature that the other leaves alone counts, however short it is.
    moves_alone = region.clear_changes(X)[:, None, :] & ~region.changes(others)
    # Differences are measured as moves from the query, which handles levels, circles and gaps.
    moves = (X[:, None, :] - others + region.query).reshape(-1, X.shape[1])
    between = region.units(moves).reshape(most.shape)
    is_clear = between > CLEAR_SHARE * most.max(axis=2, initial=0.0)[:, :, None]
    both_move = (own > 0) & (theirs > 0)
    is_elsewhere = both_move & (region.categorical | (between > most))
    is_further = is_clear & ((own > theirs) | is_elsewhere)
    return np.asarray((moves_alone | is_further).any(axis=2))
