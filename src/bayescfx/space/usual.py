"""How usual a row is: which values go together in data, by a tree of pairs (Chow and Liu 1968).

Each feature has 64 bins with as many data rows each, or one for each level. The pairs of features
that tell most of each other form a tree. The score of a row is how much more often its bins are
seen together along the tree than if features had nothing to do with each other, as a sum of
logarithms; each pair is as coarse as predicts left-out rows best. A value where the data have none,
farther from any than a sixteenth of their range or of another level, counts like a pair that was
never seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.data import Feature

_BITS = 6  # there are two to the power of it bins
_MISSING = 2**_BITS  # the bin of missing cells


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one feature: as many rows in each, or the levels, frequent ones first."""

    cuts: Array  # where bins begin, or the levels, sorted
    holes: Array  # (2, g) lower and upper ends of open intervals without data; none for levels
    rank: Indices  # the bins of levels

    @classmethod
    def of(cls, x: Array, categorical: bool) -> Bins:
        """Return the bins of a column of codes ``(n,)``."""
        x = np.sort(x[~np.isnan(x)])
        if categorical or not len(x):
            levels, count = np.unique(x, return_counts=True)
            rank = np.argsort(np.argsort(-count, kind="stable"), kind="stable")
            return cls(levels, np.empty((2, 0)), np.minimum(rank, 2**_BITS - 1))
        reach = (x[-1] - x[0]) / 16.0  # values no farther from one that was seen count as seen
        low, high = np.append(-np.inf, x + reach), np.append(x - reach, np.inf)
        holes = np.array([low, high])[:, low < high]
        at = np.arange(1, 2**_BITS) * len(x) // 2**_BITS
        return cls(x[at], holes, at[:0])

    def __call__(self, x: Array) -> tuple[Indices, Mask]:
        """Return the bins of codes ``(n,)``, and which of them are where the data have none."""
        if not self.holes.size:
            at = np.searchsorted(self.cuts, x)
            found = np.append(self.cuts, np.nan)[at] == x
            bins = np.append(self.rank, _MISSING)[at]
            return np.where(found, bins, _MISSING), ~(found | np.isnan(x))
        at = np.searchsorted(self.cuts, x, side="right")
        hole = np.searchsorted(self.holes[0], x) - 1
        return np.where(np.isnan(x), _MISSING, at), np.asarray(x < self.holes[1, hole])

    def alone(self, x: Array) -> Mask:
        """Return which data rows ``(n,)`` are where the others have none."""
        known = ~np.isnan(x)
        values, at, count = np.unique(x[known], return_inverse=True, return_counts=True)
        far = count == 1
        if self.holes.size:
            gap = np.diff(values, prepend=-np.inf, append=np.inf)
            far &= np.minimum(gap[1:], gap[:-1]) > (values[-1] - values[0]) / 16.0
        found = np.zeros(len(x), dtype=np.bool_)
        found[known] = far[at]
        return found

    def coarse(self, bins: Indices, shift: int) -> Indices:
        """Return wider bins, two to the power of `shift` in one; of levels, rare ones together."""
        if self.holes.size:
            return bins >> shift
        most = 2**_BITS >> shift
        return np.asarray(np.where(bins == _MISSING, most, np.minimum(bins, most - 1)))


class Pair(NamedTuple):
    """How much more often the bins of two features are seen together than apart, as logarithms."""

    i: int
    j: int
    shift: int  # how coarse
    table: Array  # (bins of i, bins of j)


def _pair(columns: Sequence[Bins], B: Indices, i: int, j: int, shift: int) -> tuple[Pair, Array]:
    """Return the pair of features with bins `B` ``(n, d)``, and left-out rows' scores."""
    a, b = (columns[k].coarse(B[:, k], shift) for k in (i, j))
    size = (2**_BITS >> shift) + 1
    seen = np.bincount(a * size + b, minlength=size**2).reshape(size, size).astype(float)
    apart = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / len(B)
    apart[apart == 0.0] = 1.0
    # One row more, spread as if the two had nothing to do with each other.
    table = np.log((seen + apart / len(B)) / apart)
    left_out = np.log((seen - 1.0 + apart / len(B)).clip(1e-300) / apart)
    return Pair(i, j, shift, table), left_out[a, b]


@dataclass(frozen=True, eq=False)
class Usual:
    """What goes together in data, and how well that is kept by the data itself."""

    columns: tuple[Bins, ...]
    pairs: tuple[Pair, ...]
    unseen: float  # what a value costs that no row has
    scores: Array  # (n,) of left-out data rows, sorted

    @classmethod
    def learn(cls, data: Array, features: Iterable[Feature]) -> Usual:
        """Return what goes together in rows of codes ``(n, d)``."""
        n = len(data)
        columns = tuple(Bins.of(data[:, j], f.categorical) for j, f in enumerate(features))
        B = np.column_stack([bins(data[:, j])[0] for j, bins in enumerate(columns)])
        unseen = -float(np.log(n + 1.0))
        alone = [bins.alone(data[:, j]) for j, bins in enumerate(columns)]
        pairs, scores = [], unseen * np.sum(alone, axis=0, dtype=float)
        tree = scipy.sparse.csgraph.minimum_spanning_tree(-_told(columns, B))
        for i, j in np.argwhere(tree.toarray()):
            found = [_pair(columns, B, i, j, shift) for shift in range(_BITS)]
            pair, left_out = max(found, key=lambda one: float(one[1].mean()))
            pairs.append(pair)
            scores += left_out
        return cls(columns, tuple(pairs), unseen, np.sort(scores))

    def score(self, X: Array) -> Array:
        """Return the scores ``(n,)`` of rows of codes ``(n, d)``."""
        found = [bins(X[:, j]) for j, bins in enumerate(self.columns)]
        total = self.unseen * np.sum([odd for _, odd in found], axis=0, dtype=float)
        for pair in self.pairs:
            i, j = (self.columns[k].coarse(found[k][0], pair.shift) for k in (pair.i, pair.j))
            total += pair.table[i, j]
        return np.asarray(total)

    def share(self, X: Array) -> Array:
        """Return which share ``(n,)`` of the data is less usual than rows of codes ``(n, d)``.

        Of what is just as usual, half counts.
        """
        score = self.score(X)
        ends = [np.searchsorted(self.scores, score + by) for by in (-1e-9, 1e-9)]
        return np.asarray(np.mean(ends, axis=0) / len(self.scores))


def _told(columns: Sequence[Bins], B: Indices) -> Array:
    """Return how much pairs tell of each other ``(d, d)``: mean scores of some left-out rows."""
    bits = 3 if len(B) >= 800 else 2 if len(B) >= 200 else 1
    size = 2**bits + 1
    some = B[:: max(1, len(B) // int(np.clip(3e9 / (size * len(columns)) ** 2, 200, 2000)))]
    n, each = len(some), zip(columns, some.T, strict=True)
    coarse = np.array([bins.coarse(b, _BITS - bits) for bins, b in each])
    hot = (coarse.T[:, :, None] == np.arange(size)).reshape(n, -1).astype(np.float32)
    seen = (hot.T @ hot).astype(float)
    apart = np.outer(seen.diagonal(), seen.diagonal()) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(seen > 0.0, seen * np.log((seen - 1.0 + apart / n) / apart), 0.0)
    told = score.reshape(len(columns), size, -1, size).sum(axis=(1, 3)) / n
    return np.triu(np.maximum(told, 0.0), 1)
