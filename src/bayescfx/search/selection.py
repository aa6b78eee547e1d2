"""The selection of answers among the evaluated rows."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.search.question import Question, best_first
from bayescfx.space.effort import clear_changes
from bayescfx.space.region import Region

#: Rows that are compared with each other; set by judgement, benchmark `make quality` (2026-11-18).
MOST_COMPARED = 2000
#: Rows differ if a feature moves this share of the larger change further; set by judgement.
CLEAR_SHARE = 0.25


def distinct(question: Question, n: int) -> Indices:
    """Return positions in ``question.X`` of up to `n` answers, best first.

    Rows that reach the target, or if there are none, rows that come nearer to it than the query,
    or else the query itself. Different sets of changed features come first, then other rows that
    differ clearly (:func:`different`); fewer rather than the same twice.
    """
    some, is_reached = _candidates(question)
    region = question.region
    X = question.X[some]
    changed = clear_changes(region, X)
    sets: set[bytes] = set()  # of features that the chosen rows change
    is_open = np.ones(len(X), dtype=np.bool_)  # rows that may still be chosen
    chosen: list[int] = []
    for only_new_sets in (True, False):
        for i in np.flatnonzero(is_open).tolist():
            features = changed[i].tobytes()
            is_repeated = only_new_sets and features in sets
            if len(chosen) == n or is_repeated or not is_open[i]:
                continue
            is_open[i] = False
            if needless(region, X, X[i]) if is_reached else _is_outdone(changed, i):
                continue
            sets.add(features)
            chosen.append(i)
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
    # Differences are measured as moves from the query, which handles levels, circles and gaps.
    moves = (X[:, None, :] - others + region.query).reshape(-1, X.shape[1])
    between = region.units(moves).reshape(most.shape)
    is_clear = between > CLEAR_SHARE * most.max(axis=2, initial=0.0)[:, :, None]
    both_move = (own > 0) & (theirs > 0)
    is_elsewhere = both_move & (region.categorical | (between > most))
    return np.asarray((is_clear & ((own > theirs) | is_elsewhere)).any(axis=2))
