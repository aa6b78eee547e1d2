"""Which of the evaluated rows are handed out."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.search.question import Question, best_first

_APART = 0.25  # answers with the same set of changes differ at least this much, in feature scales


def distinct(question: Question, n: int) -> Indices:
    """Return positions in ``question.X`` of up to `n` answers, best first.

    Rows that reach the target come first, nearest first; if there are any, only they. Different
    sets of changed features come first, then rows that differ clearly from those chosen. Fewer
    rather than duplicates; the query itself only if nothing else was evaluated.
    """
    X, y, region = question.X, question.y, question.region
    order = best_first(question, X, y)
    changed = region.changes(X)
    order = order[changed[order].any(axis=1)]
    if not len(order):
        return best_first(question, X, y)[:1]
    hits = question.problem.accepted(y)
    if hits[order].any():
        order = order[hits[order]]
    chosen: list[int] = []
    seen: set[bytes] = set()
    for i in order:
        if len(chosen) == n:
            return np.array(chosen, dtype=np.intp)
        if changed[i].tobytes() not in seen:
            seen.add(changed[i].tobytes())
            chosen.append(int(i))
    for i in order:
        if len(chosen) == n:
            break
        if _apart(region.grid.units(X[chosen] - X[i] + region.query)).all():
            chosen.append(int(i))
    return np.array(chosen, dtype=np.intp)


def _apart(units: Array) -> Array:
    """Return which rows differ clearly, from differences in feature scales ``(k, d)``."""
    return np.asarray(units.max(axis=1) >= _APART)
