"""Moves that no gradient sees: other levels, grid steps, jumps, back to the query, swaps."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.propose.free import JUMPS, LISTED, FreeFeatures
from bayescfx.propose.ledger import Ledger
from bayescfx.space.region import Region

MOST_ROWS = 3072  # per call


def improve(
    ledger: Ledger, X: Array, value: Array, rng: np.random.Generator, *, pairs: bool = False
) -> tuple[Array, Array]:
    """Move every row ``(m, d)`` to the best point found by single moves, their combinations, swaps.

    With `pairs` two moves at once instead, improving or not, and every level of long lists.
    """
    free, region = ledger.free, ledger.region
    features, codes = free.single_changes(rng)
    rows = np.repeat(np.arange(len(X)), len(features))
    features, codes = np.tile(features, len(X)), np.tile(codes, len(X))
    if free.long.size:
        far_rows, far_features, far_codes = free.strides(X)
        rows, features = np.append(rows, far_rows), np.append(features, far_features)
        codes = np.append(codes, far_codes)
    changing = X[rows, features] != codes
    rows, features, codes = rows[changing], features[changing], codes[changing]
    X, value, before = X.copy(), value.copy(), value
    if pairs:
        rows, candidates = _pairs(region, X, (rows, features, codes), rng)
        best = int(np.argmax(value))
        whole = _whole_lists(free, X[best])
        rows = np.append(rows, np.full(len(whole), best))
        candidates = region.snap(np.concatenate([candidates, whole]))
        _take_best(X, value, rows, candidates, ledger.value(candidates))
        return X, value
    if len(rows) > MOST_ROWS:
        keep = some(rng, len(rows))
        rows, features, codes = rows[keep], features[keep], codes[keep]
    candidates = X[rows]
    candidates[np.arange(len(rows)), features] = codes
    if region.max_changes is not None:
        rows, features, candidates = _swapped(region, X, (rows, features, candidates), rng)
    n = len(candidates)  # single moves; those of whole blocks follow
    if region.blocks:
        joint = _joint(region, X, rng)
        rows = np.append(rows, np.tile(np.arange(len(X)), len(joint) // len(X)))
        candidates = np.concatenate([candidates, joint])
    candidates = region.snap(candidates)
    scores = ledger.value(candidates)
    _take_best(X, value, rows, candidates, scores)
    rows, mixed = _combinations(X, before, rows[:n], features, candidates[:n], scores[:n])
    if len(mixed):
        mixed = region.snap(mixed)
        _take_best(X, value, rows, mixed, ledger.value(mixed))
    return X, value


def some(rng: np.random.Generator, n: int) -> Indices:
    """Return as many of `n` positions as one call may have, at random, in order."""
    return np.sort(rng.choice(n, size=MOST_ROWS, replace=False))


def _pairs(
    region: Region, X: Array, moves: tuple[Indices, Indices, Array], rng: np.random.Generator
) -> tuple[Indices, Array]:
    """Make two moves of a row at once: all pairs where few, else random ones."""
    rows, features, codes = moves
    most = MOST_ROWS // 2 // max(1, len(X))
    firsts, seconds = [], []
    for row in range(len(X)):
        mine = np.flatnonzero(rows == row)
        if len(mine) * (len(mine) - 1) // 2 <= most:
            one, two = np.triu_indices(len(mine), 1)
        else:
            one, two = rng.integers(len(mine), size=(2, most))
        firsts.append(mine[one])
        seconds.append(mine[two])
    one, two = np.concatenate(firsts), np.concatenate(seconds)
    both = features[one] != features[two]
    one, two = one[both], two[both]
    points, at = X[rows[one]], np.arange(len(one))
    points[at, features[one]] = codes[one]
    points[at, features[two]] = codes[two]
    bound = region.max_changes
    if bound is None:
        return rows[one], points
    keep = region.changes(points).sum(axis=1) <= bound
    return rows[one][keep], points[keep]


def _whole_lists(free: FreeFeatures, x: Array) -> Array:
    """Return a row with every level of the features that have too many for every row."""
    out = [x[None][:0]]
    for j in free.listed.tolist():
        values = free.region.choices[j]
        if values is not None and len(values) > LISTED:
            out.append(np.tile(x, (len(values), 1)))
            out[-1][:, j] = values
    return np.concatenate(out)


def _joint(region: Region, X: Array, rng: np.random.Generator) -> Array:
    """Move features that belong together: all back, or all to one side of the query."""
    out = []
    for at in region.blocks:
        back = X.copy()
        back[:, at] = region.query[at]
        out.append(back)
        for side in (region.low, region.high):
            for share in (np.arange(JUMPS) + rng.random(JUMPS)) / JUMPS:
                moved = X.copy()
                moved[:, at] = region.query[at] + share * (side - region.query)[at]
                out.append(moved)
    return np.concatenate(out)


def _swapped(
    region: Region, X: Array, moves: tuple[Indices, Indices, Array], rng: np.random.Generator
) -> tuple[Indices, Indices, Array]:
    """Turn moves that exceed the l0 bound into swaps: another feature returns to the query."""
    rows, features, candidates = moves
    over = region.changes(candidates).sum(axis=1) > (region.max_changes or 0)
    at, leaving = np.nonzero(region.changes(X)[rows[over]])
    index = np.flatnonzero(over)[at]
    if len(index) > MOST_ROWS:
        keep = some(rng, len(index))
        index, leaving = index[keep], leaving[keep]
    swapped = candidates[index]
    swapped[np.arange(len(index)), leaving] = region.query[leaving]
    real = leaving != features[index]
    return (
        np.concatenate([rows[~over], rows[index][real]]),
        np.concatenate([features[~over], features[index][real]]),
        np.concatenate([candidates[~over], swapped[real]]),
    )


def _take_best(X: Array, value: Array, rows: Indices, candidates: Array, scores: Array) -> None:
    """Put the best candidate of each row into `X` and `value` where it is better."""
    if not len(scores):
        return
    order = np.argsort(scores, kind="stable")
    best = np.full(len(X), -1, dtype=np.intp)
    best[rows[order]] = order  # the last writer, the best, stays
    better = (best >= 0) & (scores[best] > value)
    X[better], value[better] = candidates[best[better]], scores[best[better]]


def _combinations(
    X: Array, before: Array, rows: Indices, features: Indices, candidates: Array, scores: Array
) -> tuple[Indices, Array]:
    """Make several improving moves of a row at once, the best of each feature first."""
    out_rows, out = [], []
    better = scores > before[rows]
    for row in np.unique(rows[better]).tolist():
        mine = np.flatnonzero((rows == row) & better)
        mine = mine[np.argsort(-scores[mine], kind="stable")]
        _, first = np.unique(features[mine], return_index=True)
        ranked = mine[np.sort(first)]
        point = X[row].copy()
        for count, index in enumerate(ranked.tolist(), start=1):
            point[features[index]] = candidates[index, features[index]]
            if count > 1 and (count in (2, 3, 5, 8, 16, 64) or count == len(ranked)):
                out_rows.append(row)
                out.append(point.copy())
    return np.array(out_rows, dtype=np.intp), np.array(out).reshape(len(out), X.shape[1])
