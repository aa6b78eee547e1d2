"""Moves that no gradient sees: other levels, grid steps, jumps, back to the query, exchanges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.propose.free import FreeFeatures
from bayescfx.propose.ledger import Ledger
from bayescfx.propose.tuning import TUNING
from bayescfx.space.region import Region


class Changes(NamedTuple):
    """Changes of one feature each, of some rows ``(m, d)``."""

    rows: Indices  # (t,) which row
    features: Indices  # (t,)
    codes: Array  # (t,) the new code

    def take(self, which: Indices | Mask) -> Changes:
        """Return some of the changes."""
        return Changes(self.rows[which], self.features[which], self.codes[which])

    def apply(self, X: Array) -> Array:
        """Return the changed rows ``(t, d)``."""
        changed = X[self.rows]
        changed[np.arange(len(self.rows)), self.features] = self.codes
        return changed

    @classmethod
    def of(cls, free: FreeFeatures, X: Array, rng: np.random.Generator) -> Changes:
        """Return the changes of every row ``(m, d)`` to a few values of each feature."""
        features, codes = free.single_changes(rng)
        rows = np.repeat(np.arange(len(X)), len(features))
        changes = cls(rows, np.tile(features, len(X)), np.tile(codes, len(X)))
        if free.long.size:
            strides = free.strides(X)
            parts = zip(changes, strides, strict=True)
            changes = cls(*(np.append(one, other) for one, other in parts))
        return changes.take(X[changes.rows, changes.features] != changes.codes)


def improve(
    ledger: Ledger, X: Array, value: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Move every row to the best point found by single moves and their combinations.

    Under an l0 bound a move may be an exchange: another feature returns to the query. Where no
    candidate is better, a row stays.

    Parameters
    ----------
    X, value : arrays of shape (m, d) and (m,)
        Rows of the region and their values; not changed.

    Returns
    -------
    X, value : arrays of shape (m, d) and (m,)
    """
    region = ledger.region
    before = value
    X = X.copy()
    value = value.copy()
    changes = Changes.of(ledger.free, X, rng)
    if len(changes.rows) > TUNING.at_once:
        changes = changes.take(subset(rng, len(changes.rows)))
    candidates = changes.apply(X)
    if region.max_changes is not None:
        changes, candidates = _with_exchanges(region, X, changes, candidates, rng)
    rows = changes.rows
    n_single = len(candidates)
    if region.blocks:
        joint = _block_moves(region, X, rng)
        rows = np.append(rows, np.tile(np.arange(len(X)), len(joint) // len(X)))
        candidates = np.concatenate([candidates, joint])
    candidates = region.snap(candidates)
    scores = ledger.value(candidates)
    _take_best(X, value, rows, candidates, scores)
    is_better = scores[:n_single] > before[changes.rows]
    rows, mixed = _combine(X, changes, candidates[:n_single], scores[:n_single], is_better)
    if len(mixed):
        mixed = region.snap(mixed)
        _take_best(X, value, rows, mixed, ledger.value(mixed))
    return X, value


def improve_by_pairs(
    ledger: Ledger, X: Array, value: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Move every row ``(m, d)`` to the best point found by two moves at once.

    The two need not help alone. Also tries every level of long lists, from the best row.
    """
    X = X.copy()
    value = value.copy()
    changes = Changes.of(ledger.free, X, rng)
    rows, candidates = _pairs(ledger.region, X, changes, rng)
    best = int(np.argmax(value))
    whole = _whole_lists(ledger.free, X[best])
    rows = np.append(rows, np.full(len(whole), best))
    candidates = ledger.region.snap(np.concatenate([candidates, whole]))
    _take_best(X, value, rows, candidates, ledger.value(candidates))
    return X, value


def subset(rng: np.random.Generator, n: int) -> Indices:
    """Return as many of `n` positions as one call may have, at random, in order."""
    return np.sort(rng.choice(n, size=TUNING.at_once, replace=False))


def _pairs(
    region: Region, X: Array, changes: Changes, rng: np.random.Generator
) -> tuple[Indices, Array]:
    """Make two changes of a row at once: all pairs where they are few, else random ones.

    Returns the positions of the rows ``(p,)`` and the changed rows ``(p, d)``.
    """
    most = TUNING.at_once // 2 // max(1, len(X))
    firsts = []
    seconds = []
    for row in range(len(X)):
        own = np.flatnonzero(changes.rows == row)
        if len(own) * (len(own) - 1) // 2 <= most:
            one, two = np.triu_indices(len(own), 1)
        else:
            one, two = rng.integers(len(own), size=(2, most))
        firsts.append(own[one])
        seconds.append(own[two])
    first = changes.take(np.concatenate(firsts))
    second = changes.take(np.concatenate(seconds))
    is_pair = first.features != second.features
    first = first.take(is_pair)
    second = second.take(is_pair)
    points = first.apply(X)
    points[np.arange(len(points)), second.features] = second.codes
    if region.max_changes is None:
        return first.rows, points
    allowed = region.changes(points).sum(axis=1) <= region.max_changes
    return first.rows[allowed], points[allowed]


def _whole_lists(free: FreeFeatures, x: Array) -> Array:
    """Return a row with every level of the features that have too many for every row."""
    out = [x[None][:0]]
    for j in free.listed.tolist():
        values = free.region.choices[j]
        if values is not None and len(values) > TUNING.listed_values:
            rows = np.tile(x, (len(values), 1))
            rows[:, j] = values
            out.append(rows)
    return np.concatenate(out)


def _block_moves(region: Region, X: Array, rng: np.random.Generator) -> Array:
    """Move features that belong together: all back, or all to one side of the query."""
    out = []
    for at in region.blocks:
        back = X.copy()
        back[:, at] = region.query[at]
        out.append(back)
        for side in (region.low, region.high):
            shares = (np.arange(TUNING.jumps) + rng.random(TUNING.jumps)) / TUNING.jumps
            for share in shares:
                moved = X.copy()
                moved[:, at] = region.query[at] + share * (side - region.query)[at]
                out.append(moved)
    return np.concatenate(out)


def _with_exchanges(
    region: Region, X: Array, changes: Changes, candidates: Array, rng: np.random.Generator
) -> tuple[Changes, Array]:
    """Turn moves that exceed the l0 bound into exchanges: another feature returns to the query.

    `candidates` ``(t, d)`` are the rows after the changes. Each move beyond the bound becomes as
    many exchanges as its row has other changes.
    """
    is_over = region.changes(candidates).sum(axis=1) > (region.max_changes or 0)
    at, leaving = np.nonzero(region.changes(X)[changes.rows[is_over]])
    index = np.flatnonzero(is_over)[at]
    if len(index) > TUNING.at_once:
        kept = subset(rng, len(index))
        index = index[kept]
        leaving = leaving[kept]
    is_other = leaving != changes.features[index]
    index = index[is_other]
    leaving = leaving[is_other]
    exchanged = candidates[index]
    exchanged[np.arange(len(index)), leaving] = region.query[leaving]
    kept = np.concatenate([np.flatnonzero(~is_over), index])
    return changes.take(kept), np.concatenate([candidates[~is_over], exchanged])


def _take_best(X: Array, value: Array, rows: Indices, candidates: Array, scores: Array) -> None:
    """Put the best candidate of each row into `X` and `value` where it is better."""
    if not len(scores):
        return
    order = np.argsort(scores, kind="stable")
    best = np.full(len(X), -1, dtype=np.intp)
    best[rows[order]] = order  # the last one written, the best, stays
    is_better = (best >= 0) & (scores[best] > value)
    X[is_better] = candidates[best[is_better]]
    value[is_better] = scores[best[is_better]]


def _combine(
    X: Array, changes: Changes, candidates: Array, scores: Array, is_better: Mask
) -> tuple[Indices, Array]:
    """Make all improving moves of a row at once, the best of each feature.

    Parameters
    ----------
    changes, candidates, scores : of length t
        Single changes, the rows ``(t, d)`` that they lead to, and their values.
    is_better : mask of shape (t,)
        Which of them are better than the row they start from.

    Returns
    -------
    rows : array of shape (p,)
        Positions in `X` of the rows that were changed.
    points : array of shape (p, d)
    """
    rows = []
    points = []
    for row in np.unique(changes.rows[is_better]).tolist():
        own = np.flatnonzero((changes.rows == row) & is_better)
        own = own[np.argsort(-scores[own], kind="stable")]
        features, first = np.unique(changes.features[own], return_index=True)
        if len(features) > 1:
            point = X[row].copy()
            point[features] = candidates[own[first], features]
            rows.append(row)
            points.append(point)
    return np.array(rows, dtype=np.intp), np.array(points).reshape(len(points), X.shape[1])
