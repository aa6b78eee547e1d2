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
    X, region = question.X, question.region
    order = best_first(question, X, question.y)
    moved, hits = region.changes(X)[order].any(axis=1), question.hits[order]
    if hits.any():
        order = order[hits & moved] if (hits & moved).any() else order[hits]
    elif not moved.all():
        # What does not come nearer to the target than the query does is no guess worth making.
        order = order[: max(1, int(np.argmin(moved)))]
    changed = clear_changes(region, X)
    chosen: list[int] = []
    seen: set[bytes] = set()
    for new_sets_only in (True, False):
        for i in order:
            if len(chosen) == n:
                break
            support = changed[i].tobytes()
            if (new_sets_only and support in seen) or not apart(region, X[[i]], X[chosen]).all():
                continue
            if hits[0] and needless(region, X[question.hits], X[i]):
                continue
            seen.add(support)
            chosen.append(_sparser(question, int(i), chosen))
    return np.array(chosen, dtype=np.intp)


def needless(region: Region, hits: Array, x: Array) -> bool:
    """Return whether one of the rows that hit is the row ``(d,)`` with changes taken back."""
    changed, own = region.changes(hits), region.changes(x[None])[0]
    left = ((hits == x) | ~changed)[:, own].all(axis=1) & (changed <= own).all(axis=1)
    count = changed.sum(axis=1)
    return bool((left & (count < own.sum()) & (count > 0)).any())


def _sparser(question: Question, i: int, chosen: list[int]) -> int:
    """Return `i`, or a row that does as well without the trifles that `i` changes."""
    X, region, hits = question.X, question.region, question.hits
    if not hits[i]:
        return i
    changed, cost = region.changes(X), region.distance(X)
    fewer = hits & (changed <= changed[i]).all(axis=1) & changed.any(axis=1)
    # Leaving out a change may cost a fiftieth more.
    fewer &= (cost <= 1.02 * cost[i]) & ~apart(region, X, X[[i]])[:, 0]
    fewer &= apart(region, X, X[chosen]).all(axis=1)
    found = np.flatnonzero(fewer)
    return int(found[np.lexsort((cost[found], changed[found].sum(axis=1)))[0]])


def apart(region: Region, X: Array, others: Array) -> Mask:
    """Return which rows ``(n, d)`` differ clearly from which others ``(m, d)``; shape (n, m).

    In some feature by more than a quarter of the longest move that either makes, in scales.
    """
    units = region.units
    longest = np.maximum(
        units(X).max(axis=1, initial=0.0)[:, None], units(others).max(axis=1, initial=0.0)
    )
    # Differences are measured as moves from the query, which knows levels, circles and gaps.
    moves = (X[:, None, :] - others + region.query).reshape(-1, X.shape[1])
    between = units(moves).max(axis=1, initial=0.0).reshape(longest.shape)
    return np.asarray(between > 0.25 * longest)
