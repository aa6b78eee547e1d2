"""Stay close to data: a k-nearest-neighbour distance that most of the data itself keeps.

The distance is Gower-like: changes in units of each feature's scale, summed over features; another
level of a `Categorical`, or a value that is missing on one side only, counts 1. Seen from one query
the features that can't move add a constant per data row, which is one more coordinate of an l1
metric; rows whose constant is already too large are left out for good.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.errors import SpaceError
from bayescfx.features import Feature
from bayescfx.space.inference import as_table, background
from bayescfx.space.rule import Rule

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space


@dataclass(frozen=True, eq=False)
class Metric:
    """The distance between rows of codes; ``nan`` is a value of its own."""

    scale: Array  # (d,)
    categorical: Mask  # (d,)
    period: Array  # (d,): length of the circle, or 0

    @classmethod
    def of(cls, features: Iterable[Feature], scale: Array) -> Metric:
        """Return the distance over these features."""
        kinds = list(features)
        levels = np.array([feature.categorical for feature in kinds])
        return cls(scale, levels, np.array([float(feature.period) for feature in kinds]))

    def only(self, at: Indices) -> Metric:
        """Return the distance over some of the features."""
        return Metric(self.scale[at], self.categorical[at], self.period[at])

    @property
    def straight(self) -> Mask:
        """Features on a line."""
        return np.asarray(~self.categorical & (self.period == 0))

    def parts(self, x: Array, Y: Array) -> Array:
        """Return the distances of one row to rows `Y`, feature by feature; shape (n, d)."""
        delta = np.abs(Y - x)
        delta = np.where(self.period > 0, np.minimum(delta, self.period - delta), delta)
        parts = np.where(self.categorical, delta != 0, delta / self.scale)
        apart = np.isnan(x) | np.isnan(Y)
        return np.where(apart, (np.isnan(x) != np.isnan(Y)).astype(np.float64), parts)

    def between(self, X: Array, Y: Array) -> Array:
        """Return the distances of all rows `X` to all rows `Y`, shape (n, m)."""
        total = np.zeros((len(X), len(Y)))
        missing = np.isnan(X).any(axis=0) | np.isnan(Y).any(axis=0)
        straight, levels = self.straight & ~missing, self.categorical & ~missing
        cdist = scipy.spatial.distance.cdist
        if straight.any():
            unit = self.scale[straight]
            total += cdist(X[:, straight] / unit, Y[:, straight] / unit, "cityblock")
        if levels.any():
            total += cdist(X[:, levels], Y[:, levels], "hamming") * levels.sum()
        rest = np.flatnonzero(~straight & ~levels)
        part = self.only(rest)
        for i, x in enumerate(X if len(rest) else ()):
            total[i] += part.parts(x[rest], Y[:, rest]).sum(axis=1)
        return total

    def kth(self, X: Array, Y: Array, k: int, offset: Array | None = None) -> Array:
        """Return the distances ``(n,)`` to the k-th nearest of `Y`; `offset` ``(m,)`` is added."""
        found = np.empty(len(X))
        block = max(1, 2_000_000 // len(Y))  # rows whose distances are held at once
        for start in range(0, len(X), block):
            far = self.between(X[start : start + block], Y)
            if offset is not None:
                far += offset
            found[start : start + block] = np.partition(far, k - 1, axis=1)[:, k - 1]
        return found


@dataclass(frozen=True, eq=False)
class NearData(Rule):
    """Data rows and the radius that a share of them keeps; seen from a query, those that count."""

    data: Array  # (m, d) codes
    metric: Metric
    neighbours: int  # the k of the k-th nearest row
    radius: float
    label: str
    moving: Indices  # features that may differ from the query's
    offset: Array  # (m,) distance of the others

    rank = 5
    written = False

    @classmethod
    def fit(cls, data: Array, metric: Metric, quantile: float, neighbours: int) -> NearData:
        """Return the data with its radius: the quantile of leave-one-out k-th distances."""
        if not 0 < quantile <= 1:
            raise SpaceError(f"`quantile` must lie in (0, 1]; got {quantile!r}.")
        if neighbours < 1 or len(data) < neighbours + 1:
            raise SpaceError(
                f"`neighbours` must be at least 1 and less than the number of rows, {len(data)}; "
                f"got {neighbours!r}."
            )
        some = int(np.clip(5e8 / data.size, 200, 1000))  # 5e8 cell comparisons at most
        rows = data[np.linspace(0, len(data) - 1, min(some, len(data))).astype(np.intp)]
        # a row's nearest row is itself, so leaving it out asks for one neighbour more
        kth = metric.kth(rows, data, neighbours + 1)
        radius = float(np.quantile(kth, quantile, method="higher"))
        every, zero = np.arange(data.shape[1]), np.zeros(len(data))
        label = f"near_data(quantile={quantile:g})"
        return cls(data, metric, neighbours, radius, label, every, zero)

    def seen_from(self, region: Region) -> NearData:
        moving = region.recomputed.copy()
        moving[region.free] = True
        fixed, limit = np.flatnonzero(~moving), self.radius * (1 + 1e-9)
        offset = self.metric.only(fixed).parts(region.query[fixed], self.data[:, fixed]).sum(axis=1)
        kept = offset <= limit
        # of features on a line, the way from the data row to the limits counts too
        straight = np.flatnonzero(moving & ~region.recomputed & self.metric.straight)
        Y = self.data[np.ix_(kept, straight)]
        low, high = region.low[straight], region.high[straight]
        beyond = np.maximum(low - Y, 0) + np.maximum(Y - high, 0)
        far = offset[kept] + (np.nan_to_num(beyond) / self.metric.scale[straight]).sum(axis=1)
        kept[kept] = far <= limit
        at = np.flatnonzero(moving)
        return replace(self, data=self.data[kept], moving=at, offset=offset[kept])

    def holds(self, region: Region, X: Array) -> Mask:
        k, limit = self.neighbours, self.radius * (1 + 1e-9)
        inside = np.zeros(len(X), dtype=np.bool_)
        if len(self.data) < k:
            return inside
        # trees know nothing of missing cells, which a derived column may have in some rows
        whole = np.isfinite(X[:, self.moving]).all(axis=1) & (self._trees is not None)
        if not whole.all():
            at, metric = self.moving, self.metric.only(self.moving)
            far = metric.kth(X[np.ix_(~whole, at)], self.data[:, at], k, self.offset)
            inside[~whole] = far <= limit
        points = self._embed(X, np.zeros(len(X))) if whole.any() else X
        for tree in self._trees or ():
            left = np.flatnonzero(whole & ~inside)
            found, _ = tree.query(points[left], k=[k], p=1, distance_upper_bound=limit * (1 + 1e-9))
            inside[left] = found[:, 0] <= limit
        return inside

    @cached_property
    def _trees(self) -> tuple[Any, ...] | None:
        """k-d trees of some data rows, often enough, and of all; None where l1 can't serve."""
        circles, missing = self.metric.period[self.moving] > 0, np.isnan(self.data[:, self.moving])
        many = sum(len(codes) for _, codes in self._levels) > 64
        if many or circles.any() or missing.any():
            return None
        points = self._embed(self.data, self.offset)
        return tuple(scipy.spatial.cKDTree(points[::every], leafsize=64) for every in (16, 1))

    @cached_property
    def _levels(self) -> list[tuple[int, Array]]:
        """One-hot coordinates: the levels in the data, by feature."""
        at = self.moving[self.metric.categorical[self.moving]].tolist()
        return [(j, np.unique(self.data[:, j])) for j in at]

    def _embed(self, X: Array, offset: Array) -> Array:
        """Return coordinates in which l1 is the distance; a change of level is two halves."""
        straight = [j for j in self.moving if not self.metric.categorical[j]]
        columns: list[Array] = [X[:, straight] / self.metric.scale[straight], offset[:, None]]
        for j, codes in self._levels:
            same = X[:, [j]] == codes
            # without the last column, a level that no data row has would be half a unit too near
            columns += [0.5 * same, 0.5 * ~same.any(axis=1, keepdims=True)]
        return np.concatenate(columns, axis=1)


def near_data(space: Space, X: object, quantile: float = 0.95, neighbours: int = 5) -> Space:
    """Return the space in which counterfactuals stay close to data.

    Parameters
    ----------
    X : DataFrame or array
        Rows of this space; at most 100,000 of them are kept.
    quantile : float, default 0.95
        Share of the data that is itself close enough.
    neighbours : int, default 5
        A row is as far from the data as from its `neighbours`-th nearest row.
    """
    frame, _ = as_table(X)
    data = background(frame, space.schema, most=100_000)
    metric = Metric.of(space.features.values(), space.scale)
    return space.adding(NearData.fit(data, metric, quantile, neighbours))
