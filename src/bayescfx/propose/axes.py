"""The free features of a region, by the way they are searched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.space.region import Region

LISTED = 32  # an ordered grid with more values is searched by doubling steps, not value by value
JUMPS = 5  # places tried along a continuous coordinate or a long grid


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

    Examples
    --------
    >>> from bayescfx.features import Categorical, Integer, Real
    >>> from bayescfx.space.space import Space
    >>> space = Space({"a": Real(0, 1), "b": Integer(0, 999), "c": Categorical(["x", "y"])})
    >>> axes = Axes.of(space.around({"a": 0.5, "b": 7, "c": "x"}))
    >>> axes.smooth, axes.long, axes.listed
    (array([0]), array([1]), array([2]))
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
            short = values is not None and (len(values) <= LISTED or not ordered)
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
        """Draw rows ``(n, d)``, every free feature spread over its own values."""
        region = self.region
        X = np.tile(region.query, (n, 1))
        for j in self.free.tolist():
            values = region.choices[j]
            if values is not None and region.step[j] != 0:
                X[:, j] = values[rng.integers(len(values), size=n)]
        if self.smooth.size:
            # a tenth of the draws at each limit, where maxima often lie
            share = np.clip(1.25 * rng.random((n, self.smooth.size)) - 0.125, 0.0, 1.0)
            low, high = region.low[self.smooth], region.high[self.smooth]
            X[:, self.smooth] = np.where(share < 1, low + share * (high - low), high)
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
        if known is not None and self.region.step[j] != 0 and len(known) <= LISTED:
            return known
        share = (np.arange(JUMPS) + rng.random(JUMPS)) / JUMPS
        if self.region.step[j] == 0:
            line = self.region.low[j] + share * self.span[j]
        elif known is None:
            line = self._grid(j, share)
        elif self.region.categorical[j]:
            line = known[rng.integers(len(known), size=LISTED)]
        else:
            line = known[(share * len(known)).astype(int)]
        # maxima often lie at the limits
        return np.append(line, [self.region.query[j], self.region.low[j], self.region.high[j]])

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
