"""Plausibility of rows: which values occur together in the data.

The density model is a tree of pairs of features (Chow and Liu 1968). Each feature has 64 bins with
equally many data rows each, or one bin per level. The pairs of features with the largest mutual
information form the tree. The score of a row is the log ratio between how often its bins occur
together along the tree and how often they would if features were independent. The resolution of
each pair maximises the score of left-out rows. A value far from all data, or a level without data,
scores like a pair of bins that never occurs. Columns in which most rows have a level of their own,
such as names and numbers of customers, say nothing about other rows and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.data import Feature

# Set with `benchmarks/near.py`, 2026-11-16.
_BITS = 6  # there are 2**6 bins
_MISSING = 2**_BITS  # the bin of missing cells
# A value is supported by the data if it lies within this share of the range from a data value.
_REACH = 1.0 / 16.0
# A column of levels is left out if more than this share of the rows have a level of their own.
_MOST_UNIQUE = 0.5  # set by judgement, tests/space/test_plausibility.py, 2026-11-19
# Numerical: scores closer than this are ties, which differ by rounding only.
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one feature: quantile bins, or the levels, most frequent first.

    Parameters
    ----------
    cuts : array
        Lower ends of the bins, or the levels, sorted.
    holes : array of shape (2, g)
        Ends of the open intervals without data; empty for levels.
    rank : array of int
        The bin of each level.
    """

    cuts: Array
    holes: Array
    rank: Indices

    @classmethod
    def of(cls, x: Array, categorical: bool) -> Bins:
        """Return the bins of a column of codes ``(n,)``."""
        x = np.sort(x[~np.isnan(x)])
        if categorical or not len(x):
            return cls._of_levels(x)
        reach = (x[-1] - x[0]) * _REACH
        low = np.append(-np.inf, x + reach)
        high = np.append(x - reach, np.inf)
        holes = np.array([low, high])[:, low < high]
        at = np.arange(1, 2**_BITS) * len(x) // 2**_BITS
        return cls(x[at], holes, at[:0])

    @classmethod
    def _of_levels(cls, x: Array) -> Bins:
        """Return one bin per level; the rarest levels share the last one."""
        levels, count = np.unique(x, return_counts=True)
        by_count = np.argsort(-count, kind="stable")
        rank = np.argsort(by_count, kind="stable")
        return cls(levels, np.empty((2, 0)), np.minimum(rank, 2**_BITS - 1))

    def assign(self, x: Array) -> tuple[Indices, Mask]:
        """Return the bins of codes ``(n,)``, and which of them lie where there is no data."""
        if not self.holes.size:
            at = np.searchsorted(self.cuts, x)
            found = np.append(self.cuts, np.nan)[at] == x
            bins = np.append(self.rank, _MISSING)[at]
            return np.where(found, bins, _MISSING), ~(found | np.isnan(x))
        at = np.searchsorted(self.cuts, x, side="right")
        hole = np.searchsorted(self.holes[0], x) - 1
        return np.where(np.isnan(x), _MISSING, at), np.asarray(x < self.holes[1, hole])

    def isolated(self, x: Array) -> Mask:
        """Return which data rows ``(n,)`` would lie in a hole if they were left out."""
        known = ~np.isnan(x)
        values, at, count = np.unique(x[known], return_inverse=True, return_counts=True)
        is_far = count == 1
        if self.holes.size:
            gap = np.diff(values, prepend=-np.inf, append=np.inf)
            is_far &= np.minimum(gap[1:], gap[:-1]) > (values[-1] - values[0]) * _REACH
        result = np.zeros(len(x), dtype=np.bool_)
        result[known] = is_far[at]
        return result

    def coarsen(self, bins: Indices, shift: int) -> Indices:
        """Return wider bins: ``2**shift`` in one; rare levels are merged."""
        if self.holes.size:
            return bins >> shift
        n_bins = 2**_BITS >> shift
        return np.asarray(np.where(bins == _MISSING, n_bins, np.minimum(bins, n_bins - 1)))


class Pair(NamedTuple):
    """Log ratios of joint and independent frequencies of the bins of two features."""

    i: int
    j: int
    shift: int  # resolution: 2**shift bins are merged
    table: Array  # (bins of i, bins of j)


def _fit_pair(
    columns: Sequence[Bins], binned: Indices, i: int, j: int, shift: int
) -> tuple[Pair, Array]:
    """Return the pair of features of binned rows ``(n, d)``, and the scores of left-out rows."""
    n = len(binned)
    a = columns[i].coarsen(binned[:, i], shift)
    b = columns[j].coarsen(binned[:, j], shift)
    size = (2**_BITS >> shift) + 1
    counts = np.bincount(a * size + b, minlength=size**2).reshape(size, size).astype(float)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    expected[expected == 0.0] = 1.0
    # Smoothing: one additional row, spread as if the two features were independent.
    prior = expected / n
    table = np.log((counts + prior) / expected)
    left_out = np.log((counts - 1.0 + prior).clip(1e-300) / expected)
    return Pair(i, j, shift, table), left_out[a, b]


@dataclass(frozen=True, eq=False)
class Plausibility:
    """The density model of the data, and the scores of the data rows themselves.

    Parameters
    ----------
    positions : array of int
        The features that the model uses.
    columns : tuple of Bins
        The bins of each of these.
    pairs : tuple of Pair
        The edges of the tree.
    unseen : float
        Score of a value that no row has.
    scores : array of shape (n,)
        Scores of left-out data rows, sorted.
    """

    positions: Indices
    columns: tuple[Bins, ...]
    pairs: tuple[Pair, ...]
    unseen: float
    scores: Array

    @classmethod
    def fit(cls, data: Array, features: Iterable[Feature]) -> Plausibility:
        """Return the model of data rows of codes ``(n, d)``."""
        kinds = [feature.categorical for feature in features]
        positions = _informative(data, kinds)
        data = data[:, positions]
        if not len(positions):
            return cls(positions, (), (), 0.0, np.zeros(len(data)))
        columns = tuple(Bins.of(data[:, k], kinds[j]) for k, j in enumerate(positions))
        binned = np.column_stack([bins.assign(data[:, j])[0] for j, bins in enumerate(columns)])
        unseen = -float(np.log(len(data) + 1.0))
        isolated = [bins.isolated(data[:, j]) for j, bins in enumerate(columns)]
        scores = unseen * np.sum(isolated, axis=0, dtype=float)
        tree = scipy.sparse.csgraph.minimum_spanning_tree(-_information(columns, binned))
        pairs = []
        for i, j in np.argwhere(tree.toarray()):
            candidates = [_fit_pair(columns, binned, i, j, shift) for shift in range(_BITS)]
            pair, left_out = max(candidates, key=lambda one: float(one[1].mean()))
            pairs.append(pair)
            scores += left_out
        return cls(positions, columns, tuple(pairs), unseen, np.sort(scores))

    def score(self, X: Array) -> Array:
        """Return the scores ``(n,)`` of rows of codes ``(n, d)``."""
        pairs = zip(self.columns, self.positions, strict=True)
        assigned = [bins.assign(X[:, j]) for bins, j in pairs]
        total = np.zeros(len(X))
        for _, is_unseen in assigned:
            total += self.unseen * is_unseen
        for pair in self.pairs:
            i = self.columns[pair.i].coarsen(assigned[pair.i][0], pair.shift)
            j = self.columns[pair.j].coarsen(assigned[pair.j][0], pair.shift)
            total += pair.table[i, j]
        return np.asarray(total)

    def share(self, X: Array) -> Array:
        """Return the share ``(n,)`` of data rows that are less plausible than rows ``(n, d)``.

        Ties count one half (mid-rank).
        """
        score = self.score(X)
        n_below = np.searchsorted(self.scores, score - _TIE)
        n_not_above = np.searchsorted(self.scores, score + _TIE)
        return np.asarray((n_below + n_not_above) / 2 / len(self.scores))


def _informative(data: Array, categorical: Sequence[bool]) -> Indices:
    """Return the positions of the columns of codes ``(n, d)`` that say something about others."""
    found = []
    for j, is_categorical in enumerate(categorical):
        codes = data[:, j]
        _, counts = np.unique(codes[~np.isnan(codes)], return_counts=True)
        n_unique = int((counts == 1).sum())
        if not is_categorical or n_unique <= _MOST_UNIQUE * counts.sum():
            found.append(j)
    return np.array(found, dtype=np.intp)


def _information(columns: Sequence[Bins], binned: Indices) -> Array:
    """Return the mutual information of pairs ``(d, d)``, upper triangle, from a sample of rows.

    It is estimated as the mean score of left-out rows, so that rare bins do not inflate it.
    """
    n_rows = len(binned)
    bits = 3 if n_rows >= 800 else 2 if n_rows >= 200 else 1
    size = 2**bits + 1
    # The matrix product below stays under about 3e9 operations.
    n_wanted = int(np.clip(3e9 / (size * len(columns)) ** 2, 200, 2000))
    sample = binned[:: max(1, n_rows // n_wanted)]
    n = len(sample)
    coarse = [bins.coarsen(b, _BITS - bits) for bins, b in zip(columns, sample.T, strict=True)]
    one_hot = np.array(coarse).T[:, :, None] == np.arange(size)
    flat = one_hot.reshape(n, -1).astype(np.float32)
    counts = (flat.T @ flat).astype(float)
    expected = np.outer(counts.diagonal(), counts.diagonal()) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = counts * np.log((counts - 1.0 + expected / n) / expected)
    score = np.where(counts > 0.0, left_out, 0.0)
    information = score.reshape(len(columns), size, -1, size).sum(axis=(1, 3)) / n
    return np.triu(np.maximum(information, 0.0), 1)
