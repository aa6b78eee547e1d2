"""Which of the evaluated rows are handed out."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.search.question import Question, best_first
from bayescfx.space.effort import clear_changes
from bayescfx.space.region import Region


def distinct(question: Question, n: int) -> Indices:
    """Return positions in ``question.X`` of up to `n` answers, best first.

    Rows that reach the target, or if there are none, rows that come nearer to it than the query,
    or else the query itself. Different sets of changed features come first, then other rows that
    say something else (:func:`different`); fewer rather than the same twice.
    """
    region, y = question.region, question.y
    hit = question.accepted(y)
    reached = bool(hit.any())
    # Of the rows of many questions only those that may be chosen are looked at closely.
    some = np.flatnonzero(hit) if reached else np.arange(len(y))
    X = question.X[some]
    order = best_first(question, X, y[some])[:2000]
    some, X = some[order], X[order]
    moved = region.changes(X).any(axis=1)
    if reached and moved.any():
        some, X = some[moved], X[moved]
    elif not reached and not moved.all():
        # What does not come nearer to the target than the query does is no guess worth making.
        nearer = max(1, int(np.argmin(moved)))
        some, X = some[:nearer], X[:nearer]
    changed = clear_changes(region, X)
    chosen: list[int] = []
    seen: set[bytes] = set()
    left = np.ones(len(X), dtype=np.bool_)  # what may still be chosen
    for new_sets_only in (True, False):
        for i in np.flatnonzero(left).tolist():
            if len(chosen) == n:
                break
            if not left[i] or (new_sets_only and changed[i].tobytes() in seen):
                continue
            left[i] = False
            if needless(region, X, X[i]) if reached else _outdone(changed, i):
                continue
            seen.add(changed[i].tobytes())
            chosen.append(_sparser(region, X, i, chosen) if reached else i)
            left &= different(region, X, X[chosen[-1:]])[:, 0]
    return np.asarray(some[chosen])


def needless(region: Region, hits: Array, x: Array) -> bool:
    """Return whether one of the rows that hit is the row ``(d,)`` with changes taken back."""
    changed, own = region.changes(hits), region.changes(x[None])[0]
    left = ((hits == x) | ~changed)[:, own].all(axis=1) & (changed <= own).all(axis=1)
    count = changed.sum(axis=1)
    return bool((left & (count < own.sum()) & (count > 0)).any())


def _outdone(changed: Mask, i: int) -> bool:
    """Return whether a better guess changes only some of the features that guess `i` changes."""
    part = (changed[:i] <= changed[i]).all(axis=1) & (changed[:i] != changed[i]).any(axis=1)
    return bool(part.any())


def _sparser(region: Region, X: Array, i: int, chosen: list[int]) -> int:
    """Return `i`, or a row of those that hit that does as well without the trifles `i` changes."""
    changed, cost = region.changes(X), region.distance(X)
    # Leaving out a change may cost a fiftieth more.
    fewer = np.flatnonzero((changed <= changed[i]).all(axis=1) & (cost <= 1.02 * cost[i]))
    fewer = fewer[changed[fewer].any(axis=1) & ~different(region, X[fewer], X[[i]])[:, 0]]
    fewer = fewer[different(region, X[fewer], X[chosen]).all(axis=1)]
    for k in fewer[np.lexsort((cost[fewer], changed[fewer].sum(axis=1)))].tolist():
        if k == i or not needless(region, X, X[k]):
            return int(k)
    return i


def different(region: Region, X: Array, others: Array) -> Mask:
    """Return which rows ``(n, d)`` say something else than which others ``(m, d)``; shape (n, m).

    Either has something that the other has not: what only goes further the same way says the same.
    """
    return further(region, X, others) & further(region, others, X).T


def further(region: Region, X: Array, others: Array) -> Mask:
    """Return which rows ``(n, d)`` move something clearly further than others ``(m, d)`` do.

    Or to the other side, or to another level; shape (n, m).
    """
    own, theirs = region.units(X)[:, None, :], region.units(others)[None]
    most = np.maximum(own, theirs)
    # Differences are measured as moves from the query, which knows levels, circles and gaps.
    moves = (X[:, None, :] - others + region.query).reshape(-1, X.shape[1])
    between = region.units(moves).reshape(most.shape)
    clear = between > 0.25 * most.max(axis=2, initial=0.0)[:, :, None]
    elsewhere = (own > 0) & (theirs > 0) & (region.categorical | (between > most))
    return np.asarray((clear & ((own > theirs) | elsewhere)).any(axis=2))
