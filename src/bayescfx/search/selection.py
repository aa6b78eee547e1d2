"""Which of the evaluated rows are handed out."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.search.question import Question, best_first, clear_changes
from bayescfx.space.region import Region


def distinct(question: Question, n: int) -> Indices:
    """Return positions in ``question.X`` of up to `n` answers, best first.

    Rows that reach the target, or if there are none, rows that come nearer to it than the query,
    or else the query itself. Different sets of changed features come first, then other rows that
    differ clearly; fewer rather than duplicates.
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
    for new_sets_only in (True, False):
        for i in range(len(X)):
            if len(chosen) == n:
                break
            support = changed[i].tobytes()
            if (new_sets_only and support in seen) or not apart(region, X[[i]], X[chosen]).all():
                continue
            if reached and needless(region, X, X[i]):
                continue
            seen.add(support)
            chosen.append(_sparser(region, X, i, chosen) if reached else i)
    return np.asarray(some[chosen])


def needless(region: Region, hits: Array, x: Array) -> bool:
    """Return whether one of the rows that hit is the row ``(d,)`` with changes taken back."""
    changed, own = region.changes(hits), region.changes(x[None])[0]
    left = ((hits == x) | ~changed)[:, own].all(axis=1) & (changed <= own).all(axis=1)
    count = changed.sum(axis=1)
    return bool((left & (count < own.sum()) & (count > 0)).any())


def _sparser(region: Region, X: Array, i: int, chosen: list[int]) -> int:
    """Return `i`, or a row of those that hit that does as well without the trifles `i` changes."""
    changed, cost = region.changes(X), region.distance(X)
    # Leaving out a change may cost a fiftieth more.
    fewer = np.flatnonzero((changed <= changed[i]).all(axis=1) & (cost <= 1.02 * cost[i]))
    fewer = fewer[changed[fewer].any(axis=1) & ~apart(region, X[fewer], X[[i]])[:, 0]]
    fewer = fewer[apart(region, X[fewer], X[chosen]).all(axis=1)]
    for k in fewer[np.lexsort((cost[fewer], changed[fewer].sum(axis=1)))].tolist():
        if k == i or not needless(region, X, X[k]):
            return int(k)
    return i


def apart(region: Region, X: Array, others: Array) -> Mask:
    """Return which rows ``(n, d)`` differ clearly from which others ``(m, d)``; shape (n, m)."""
    units = region.units
    own, other = units(X).max(axis=1, initial=0.0), units(others).max(axis=1, initial=0.0)
    longest = np.maximum(own[:, None], other)
    # Differences are measured as moves from the query, which knows levels, circles and gaps.
    moves = (X[:, None, :] - others + region.query).reshape(-1, X.shape[1])
    between = units(moves).max(axis=1, initial=0.0).reshape(longest.shape)
    return np.asarray(between > 0.25 * longest)  # in some feature
