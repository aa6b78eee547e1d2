"""Moves that no gradient sees: other levels, grid steps, jumps, back to the query, swaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.ledger import Ledger
from bayescfx.region import Region

_LISTED = 32  # an ordered grid with more values is searched by doubling steps, not value by value
_JUMPS = 6  # places tried along a continuous coordinate or a long grid
_BUDGET = 3072  # most rows per call
_PAIRS = 1536  # most pairs of moves per call
_COMBINE = (1, 2, 3, 5, 8, 16, 64)  # how many of a row's best single moves are tried together


@dataclass(frozen=True)
class Axes:
    """The free features of a region, by the way they are searched.

    Parameters
    ----------
    region : Region
        Where the features live.
    smooth : Indices
        Continuous features, which have a gradient.
    listed : Indices
        Features whose values are tried one by one.
    long : Indices
        Ordered grids too long for that: relaxed, then stepped.
    span : Array of shape (d,)
        Range of each feature, 1 where it is fixed.
    free : Indices
        All of them.
    """

    region: Region
    smooth: Indices
    listed: Indices
    long: Indices
    span: Array
    free: Indices

    @classmethod
    def of(cls, region: Region) -> Axes:
        """Sort the free features of `region`."""
        width = region.high - region.low
        free = [j for j in region.free.tolist() if width[j] > 0]
        smooth = [j for j in free if region.step[j] == 0 and not region.categorical[j]]
        listed: list[int] = []
        long: list[int] = []
        for j in sorted(set(free) - set(smooth)):
            values = region.choices[j]
            ordered = not (region.categorical[j] or region.cyclic[j])
            short = values is not None and (len(values) <= _LISTED or not ordered)
            (listed if short else long).append(j)
        return cls(
            region=region,
            smooth=np.array(smooth, dtype=np.intp),
            listed=np.array(listed, dtype=np.intp),
            long=np.array(long, dtype=np.intp),
            span=np.where(width > 0, width, 1.0),
            free=np.array(free, dtype=np.intp),
        )

    @property
    def sloped(self) -> Indices:
        """Features that a gradient moves."""
        return np.sort(np.concatenate([self.smooth, self.long]))

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw rows ``(n, d)``, every free feature uniform over its own values."""
        region = self.region
        X = np.tile(region.query, (n, 1))
        for j in self.free.tolist():
            values = region.choices[j]
            if values is not None and region.step[j] != 0:
                X[:, j] = values[rng.integers(len(values), size=n)]
        if self.smooth.size:
            width = self.span[self.smooth]
            X[:, self.smooth] = region.low[self.smooth] + width * rng.random((n, self.smooth.size))
        for j in self.long.tolist():
            if region.choices[j] is None:
                X[:, j] = self._grid(j, rng.random(n))
        return X

    def _grid(self, j: int, share: Array) -> Array:
        """Grid values of feature `j` at shares of its range."""
        low, step = self.region.low[j], self.region.step[j]
        count = np.floor((self.region.high[j] - low) / step + 1e-9)
        return np.asarray(low + step * np.minimum(np.floor(share * (count + 1)), count))

    def unit(self, X: Array) -> Array:
        """Rows as coordinates in which ordered ranges have length 1 and levels differ by 1."""
        free = self.free
        return np.asarray(X[:, free] / np.where(self.region.categorical, 1.0, self.span)[free])

    def separation(self, unit: Array, one: Array) -> Array:
        """Euclidean distances ``(n,)`` of rows of :meth:`unit` from `one`; levels differ or not."""
        gap = np.abs(unit - one)
        gap = np.where(self.region.categorical[self.free], gap > 0, gap)
        return np.asarray(np.sqrt((gap * gap).sum(axis=1)))

    def lines(self, rng: np.random.Generator) -> tuple[Indices, Array]:
        """Features and values ``(t,)`` of the moves along one axis, the same for every row."""
        features: list[Indices] = []
        values: list[Array] = []
        for j in self.free.tolist():
            line = self._line(j, rng)
            features.append(np.full(len(line), j, dtype=np.intp))
            values.append(line)
        if not features:
            return np.empty(0, dtype=np.intp), np.empty(0)
        return np.concatenate(features), np.concatenate(values)

    def _line(self, j: int, rng: np.random.Generator) -> Array:
        known = self.region.choices[j]
        if known is not None and self.region.step[j] != 0 and len(known) <= _LISTED:
            return known
        share = (np.arange(_JUMPS) + rng.random(_JUMPS)) / _JUMPS
        if self.region.step[j] == 0:
            line = self.region.low[j] + share * self.span[j]
        elif known is None:
            line = self._grid(j, share)
        elif self.region.categorical[j]:
            line = known[rng.integers(len(known), size=_LISTED)]
        else:
            line = known[(share * len(known)).astype(int)]
        return np.append(line, self.region.query[j])

    def strides(self, X: Array) -> tuple[Indices, Indices, Array]:
        """Rows, features and values of doubling steps along long grids, from each row of `X`."""
        rows, features, values = [], [], []
        for j in self.long.tolist():
            count = max(2, round(self.span[j] / self.region.step[j]))
            stride = self.region.step[j] * 2.0 ** np.arange(int(np.ceil(np.log2(count))))
            V = X[:, j, None] + np.concatenate([stride, -stride])
            low, high = self.region.low[j], self.region.high[j]
            keep = (low <= V) & (high >= V)
            at = np.nonzero(keep)[0]
            rows.append(at)
            features.append(np.full(len(at), j, dtype=np.intp))
            values.append(V[keep])
        if not rows:
            none = np.empty(0, dtype=np.intp)
            return none, none, np.empty(0)
        return np.concatenate(rows), np.concatenate(features), np.concatenate(values)


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
        if values is not None and len(values) > _LISTED:
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
            for share in (np.arange(_JUMPS) + rng.random(_JUMPS)) / _JUMPS:
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
