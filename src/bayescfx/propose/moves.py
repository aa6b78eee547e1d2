"""Moves that no gradient sees: other levels, grid steps, jumps, back to the query, swaps."""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.propose.axes import JUMPS, LISTED, Axes
from bayescfx.propose.ledger import Ledger
from bayescfx.space.region import Region

_BUDGET = 3072  # most rows per call
_PAIRS = 1536  # most pairs of moves per call
_COMBINE = (1, 2, 3, 5, 8, 16, 64)  # how many of a row's best single moves are tried together


def improve(
    ledger: Ledger,
    axes: Axes,
    X: Array,
    value: Array,
    rng: np.random.Generator,
    *,
    pairs: bool = False,
) -> tuple[Array, Array]:
    """Move every row to the best point found by single moves, combinations of them and swaps.

    Parameters
    ----------
    ledger : Ledger
        Scores the candidates.
    axes : Axes
        The free features.
    X, value : Array of shape (m, d) and (m,)
        Rows and their values.
    rng : numpy.random.Generator
        Places along continuous coordinates; a random part of the moves when there are too many.
    pairs : bool
        Try two moves at once instead, improving or not, and every level of long lists.

    Returns
    -------
    X, value : Array of shape (m, d) and (m,)
        Never worse.

    Examples
    --------
    >>> from bayescfx.features import Integer, Real
    >>> from bayescfx.space.space import Space
    >>> region = Space({"a": Real(0, 1), "b": Integer(0, 9)}).around({"a": 0.5, "b": 2})
    >>> class Hill:
    ...     def value(self, X):
    ...         return -np.abs(X - [0.25, 7.0]).sum(axis=1)
    ...
    ...     def gradient(self, X):
    ...         return self.value(X), -np.sign(X - [0.25, 7.0])
    >>> ledger, start = Ledger(Hill(), region), region.query[None]
    >>> rng = np.random.default_rng(0)
    >>> X, value = improve(ledger, Axes.of(region), start, ledger.value(start), rng)
    >>> float(X[0, 1])
    7.0
    """
    region = ledger.region
    moves = _single_moves(axes, X, rng)
    if pairs:
        rows, candidates = _pairs(axes, X, *moves, rng)
        best = int(np.argmax(value))
        whole = _whole_lines(axes, X[best])
        rows = np.append(rows, np.full(len(whole), best))
        candidates = region.snap(np.concatenate([candidates, whole]))
        X, value = X.copy(), value.copy()
        _take_best(X, value, rows, candidates, ledger.value(candidates))
        return X, value
    rows, features, targets = _thin(rng, _BUDGET, *moves)
    candidates = X[rows]
    candidates[np.arange(len(rows)), features] = targets
    rows, features, candidates = _within_bound(region, X, rows, features, candidates, rng)
    extra_rows, extra = _joint(axes, X, rng)
    rows = np.concatenate([rows, extra_rows])
    features = np.concatenate([features, np.full(len(extra), -1)])
    candidates = region.snap(np.concatenate([candidates, extra]))
    scores = ledger.value(candidates)
    X, value, before = X.copy(), value.copy(), value
    _take_best(X, value, rows, candidates, scores)
    single = features >= 0
    mixed_rows, mixed = _combinations(
        X, before, rows[single], features[single], candidates[single], scores[single]
    )
    if len(mixed):
        mixed = region.snap(mixed)
        _take_best(X, value, mixed_rows, mixed, ledger.value(mixed))
    return X, value


def _pairs(
    axes: Axes, X: Array, rows: Indices, features: Indices, targets: Array, rng: np.random.Generator
) -> tuple[Indices, Array]:
    """Two moves of a row at once: all pairs where few, else random ones."""
    most = _PAIRS // max(1, len(X))
    out_rows, out = [], []
    for row in range(len(X)):
        mine = np.flatnonzero(rows == row)
        if len(mine) * (len(mine) - 1) // 2 <= most:
            one, two = np.triu_indices(len(mine), 1)
        else:
            one, two = rng.integers(len(mine), size=(2, most))
        one, two = mine[one], mine[two]
        both = features[one] != features[two]
        one, two = one[both], two[both]
        points = np.tile(X[row], (len(one), 1))
        at = np.arange(len(one))
        points[at, features[one]] = targets[one]
        points[at, features[two]] = targets[two]
        out_rows.append(np.full(len(points), row, dtype=np.intp))
        out.append(points)
    points, rows = np.concatenate(out), np.concatenate(out_rows)
    bound = axes.region.max_changes
    if bound is not None:
        keep = axes.region.changes(points).sum(axis=1) <= bound
        points, rows = points[keep], rows[keep]
    return rows, points


def _whole_lines(axes: Axes, x: Array) -> Array:
    """Every level of the features that have too many to be tried in every row."""
    out = []
    for j in axes.listed.tolist():
        values = axes.region.choices[j]
        if values is not None and len(values) > LISTED:
            line = np.tile(x, (len(values), 1))
            line[:, j] = values
            out.append(line)
    return np.concatenate(out) if out else np.empty((0, len(x)))


def _joint(axes: Axes, X: Array, rng: np.random.Generator) -> tuple[Indices, Array]:
    """Move features that belong together: all back, or all to one side of the query."""
    region = axes.region
    out = []
    for block in region.blocks:
        at = list(block)
        back = X.copy()
        back[:, at] = region.query[at]
        out.append(back)
        for side in (region.low, region.high):
            for share in (np.arange(JUMPS) + rng.random(JUMPS)) / JUMPS:
                moved = X.copy()
                moved[:, at] = region.query[at] + share * (side - region.query)[at]
                out.append(moved)
    rows = np.tile(np.arange(len(X)), len(out))
    return rows, np.concatenate(out) if out else np.empty((0, X.shape[1]))


def _single_moves(axes: Axes, X: Array, rng: np.random.Generator) -> tuple[Indices, Indices, Array]:
    """List the moves along one axis of every row that change something."""
    features, targets = axes.lines(rng)
    m, t = len(X), len(features)
    far, far_features, far_targets = axes.strides(X)
    rows = np.concatenate([np.repeat(np.arange(m), t), far])
    features = np.concatenate([np.tile(features, m), far_features])
    targets = np.concatenate([np.tile(targets, m), far_targets])
    changing = X[rows, features] != targets
    return rows[changing], features[changing], targets[changing]


def _thin(
    rng: np.random.Generator, most: int, rows: Indices, features: Indices, targets: Array
) -> tuple[Indices, Indices, Array]:
    """Keep a random part of the moves when there are more than `most`."""
    if len(rows) <= most:
        return rows, features, targets
    keep = np.sort(rng.choice(len(rows), size=most, replace=False))
    return rows[keep], features[keep], targets[keep]


def _within_bound(
    region: Region,
    X: Array,
    rows: Indices,
    features: Indices,
    candidates: Array,
    rng: np.random.Generator,
) -> tuple[Indices, Indices, Array]:
    """Turn moves that exceed the l0 bound into swaps: another feature returns to the query."""
    if region.max_changes is None:
        return rows, features, candidates
    over = region.changes(candidates).sum(axis=1) > region.max_changes
    at, leaving = np.nonzero(region.changes(X)[rows[over]])
    index = np.flatnonzero(over)[at]
    if len(index) > _BUDGET:
        keep = np.sort(rng.choice(len(index), size=_BUDGET, replace=False))
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
    """Several improving moves of a row at once, the best of each feature first."""
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
            if count > 1 and (count in _COMBINE or count == len(ranked)):
                out_rows.append(row)
                out.append(point.copy())
    return np.array(out_rows, dtype=np.intp), np.array(out).reshape(len(out), X.shape[1])
