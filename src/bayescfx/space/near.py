"""Stay close to data: a k-nearest-neighbour distance that most of the data itself keeps.

The distance is Gower-like: changes in units of each feature's scale, summed over features; another
level of a `Categorical`, or a value that is missing on one side only, counts 1. Seen from one query
the features that can't move add a constant per data row, which is one more coordinate of an l1
metric; rows whose constant is already too large are left out for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.errors import SpaceError
from bayescfx.features import Categorical, Feature, Integer, is_cyclic

MOST_ROWS = 100_000
THRESHOLD_WORK = 5e8  # cell comparisons spent on the radius
BLOCK_CELLS = 2_000_000  # distances held at once
COARSE = 16  # every so many data rows go into the first, small tree
MOST_LEVELS = 64  # one-hot coordinates of the tree


@dataclass(frozen=True)
class Metric:
    """The distance between rows of codes; ``nan`` is a value of its own.

    Parameters
    ----------
    scale : ndarray of shape (d,)
    categorical : ndarray of bool, shape (d,)
    period : ndarray of shape (d,)
        Length of the circle; 0 for features that are not cyclic.
    """

    scale: Array
    categorical: Mask
    period: Array

    def parts(self, x: Array, Y: Array, at: Indices) -> Array:
        """Return the distances of one row to rows `Y`, features `at` only; shape (n, len(at))."""
        a, b = x[at], Y[:, at]
        delta = np.abs(b - a)
        delta = np.where(self.period[at] > 0, np.minimum(delta, self.period[at] - delta), delta)
        parts = np.where(self.categorical[at], delta != 0, delta / self.scale[at])
        apart = np.isnan(a) | np.isnan(b)
        return np.where(apart, (np.isnan(a) != np.isnan(b)).astype(np.float64), parts)

    def between(self, X: Array, Y: Array) -> Array:
        """Return the distances of all rows `X` to all rows `Y`, shape (n, m)."""
        total = np.zeros((len(X), len(Y)))
        missing = np.isnan(X).any(axis=0) | np.isnan(Y).any(axis=0)
        straight = ~self.categorical & (self.period == 0) & ~missing
        if straight.any():
            unit = self.scale[straight]
            total += scipy.spatial.distance.cdist(
                X[:, straight] / unit, Y[:, straight] / unit, "cityblock"
            )
        levels = self.categorical & ~missing
        if levels.any():
            total += (
                scipy.spatial.distance.cdist(X[:, levels], Y[:, levels], "hamming") * levels.sum()
            )
        rest = np.flatnonzero(~straight & ~levels)
        for i, x in enumerate(X if len(rest) else ()):
            total[i] += self.parts(x, Y, rest).sum(axis=1)
        return total


@dataclass(frozen=True)
class NearData:
    """Data rows and the radius that a share of them keeps.

    Parameters
    ----------
    data : ndarray of shape (m, d)
        Codes.
    metric : Metric
    neighbours : int
        The k of the k-th nearest row.
    quantile : float
        Share of the data within the radius.
    radius : float
    """

    data: Array
    metric: Metric
    neighbours: int
    quantile: float
    radius: float

    @classmethod
    def fit(
        cls,
        data: Array,
        features: Mapping[Any, Feature],
        scale: Array,
        quantile: float,
        neighbours: int,
    ) -> NearData:
        """Return the data with its radius: the quantile of leave-one-out k-th distances."""
        if not 0 < quantile <= 1:
            raise SpaceError(f"`quantile` must lie in (0, 1]; got {quantile!r}.")
        if neighbours < 1 or len(data) < neighbours + 1:
            raise SpaceError(
                f"`neighbours` must be at least 1 and less than the number of rows, {len(data)}; "
                f"got {neighbours!r}."
            )
        kinds = list(features.values())
        metric = Metric(
            scale,
            np.array([isinstance(f, Categorical) for f in kinds]),
            np.array([_period(f) for f in kinds]),
        )
        some = int(np.clip(THRESHOLD_WORK / data.size, 200, 1000))
        rows = data[np.linspace(0, len(data) - 1, min(some, len(data))).astype(np.intp)]
        # a row's nearest row is itself, so leaving it out asks for one neighbour more
        kth = kth_distance(rows, data, metric, neighbours + 1)
        radius = float(np.quantile(kth, quantile, method="higher"))
        return cls(data, metric, neighbours, quantile, radius)

    @property
    def label(self) -> str:
        """What the rule is called in messages."""
        return f"near_data(quantile={self.quantile:g})"

    def distance(self, X: Array) -> Array:
        """Return the distance of each row to its k-th nearest data row, shape (n,)."""
        return kth_distance(X, self.data, self.metric, self.neighbours)

    def here(self, query: Array, moving: Mask, low: Array, high: Array) -> NearHere:
        """Return the rule as seen from one query.

        Parameters
        ----------
        moving : ndarray of bool, shape (d,)
            Features whose code may differ from the query's.
        low, high : ndarray of shape (d,)
            Limits; data rows too far from them are left out.
        """
        fixed = np.flatnonzero(~moving)
        offset = self.metric.parts(query, self.data, fixed).sum(axis=1)
        kept = offset <= self.radius * (1 + 1e-9)
        straight = np.flatnonzero(moving & ~self.metric.categorical & (self.metric.period == 0))
        Y = self.data[np.ix_(kept, straight)]
        beyond = np.maximum(low[straight] - Y, 0) + np.maximum(Y - high[straight], 0)
        far = offset[kept] + (np.nan_to_num(beyond) / self.metric.scale[straight]).sum(axis=1)
        kept[kept] = far <= self.radius * (1 + 1e-9)
        return NearHere(self, np.flatnonzero(moving), self.data[kept], offset[kept])


@dataclass(frozen=True)
class NearHere:
    """The rule seen from one query: the data rows that count, and their fixed distance."""

    rule: NearData
    moving: Indices
    data: Array
    offset: Array

    @property
    def label(self) -> str:
        """What the rule is called in messages."""
        return self.rule.label

    def holds(self, X: Array) -> Mask:
        """Return which rows have enough data rows within the radius, shape (n,)."""
        k = self.rule.neighbours
        limit = self.rule.radius * (1 + 1e-9)
        if len(self.data) < k:
            return np.zeros(len(X), dtype=np.bool_)
        if self._trees is None:
            metric = self.rule.metric
            at = self.moving
            part = Metric(metric.scale[at], metric.categorical[at], metric.period[at])
            far = kth_distance(X[:, at], self.data[:, at], part, k, self.offset)
            return np.asarray(far <= limit)
        points = self._embed(X, np.zeros(len(X)))
        inside = np.zeros(len(X), dtype=np.bool_)
        for tree in self._trees:
            left = np.flatnonzero(~inside)
            found, _ = tree.query(points[left], k=[k], p=1, distance_upper_bound=limit * (1 + 1e-9))
            inside[left] = found[:, 0] <= limit
        return inside

    @cached_property
    def _trees(self) -> tuple[Any, ...] | None:
        """k-d trees over the moving features and the offset, some rows first and then all.

        Enough neighbours among some rows are enough; only the others need the large tree. None
        where the metric has no l1 coordinates or too many.
        """
        levels = self._levels
        if len(levels) > MOST_LEVELS or np.isnan(self.data[:, self.moving]).any():
            return None
        if (self.rule.metric.period[self.moving] > 0).any():
            return None
        points = self._embed(self.data, self.offset)
        return tuple(scipy.spatial.cKDTree(points[::every], leafsize=64) for every in (COARSE, 1))

    @cached_property
    def _levels(self) -> list[tuple[int, float]]:
        """One-hot coordinates: (feature, code) for every level in the data."""
        at = [int(j) for j in self.moving if self.rule.metric.categorical[j]]
        return [(j, float(code)) for j in at for code in np.unique(self.data[:, j])]

    def _embed(self, X: Array, offset: Array) -> Array:
        """Return coordinates in which l1 is the distance; a change of level is two halves."""
        metric = self.rule.metric
        straight = [j for j in self.moving if not metric.categorical[j]]
        columns: list[Array] = [X[:, straight] / metric.scale[straight], offset[:, None]]
        columns += [0.5 * (X[:, [j]] == code) for j, code in self._levels]
        # a level that no data row has is half a unit nearer than it should be
        for j in {j for j, _ in self._levels}:
            known = np.isin(X[:, j], np.array([code for i, code in self._levels if i == j]))
            columns.append(np.where(known, 0.0, 0.5)[:, None])
        return np.concatenate(columns, axis=1)


@dataclass(frozen=True)
class NearAll:
    """Several rules of closeness at once."""

    parts: tuple[NearHere, ...]

    @property
    def label(self) -> str:
        """What the rules are called in messages."""
        return " and ".join(part.label for part in self.parts)

    def holds(self, X: Array) -> Mask:
        """Return which rows are close to every one of the data sets, shape (n,)."""
        return np.asarray(np.all([part.holds(X) for part in self.parts], axis=0))


def kth_distance(X: Array, Y: Array, metric: Metric, k: int, offset: Array | None = None) -> Array:
    """Return the distance of each row of `X` to the k-th nearest row of `Y`, shape (n,).

    Parameters
    ----------
    offset : ndarray of shape (len(Y),), optional
        Added to the distances to each row of `Y`.
    """
    found = np.empty(len(X))
    block = max(1, BLOCK_CELLS // len(Y))
    for start in range(0, len(X), block):
        far = metric.between(X[start : start + block], Y)
        if offset is not None:
            far += offset
        found[start : start + block] = np.partition(far, k - 1, axis=1)[:, k - 1]
    return found


def _period(feature: Feature) -> float:
    return float(feature.period) if isinstance(feature, Integer) and is_cyclic(feature) else 0.0
