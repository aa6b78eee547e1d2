"""The free features of a region, by the way they are searched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.space.region import Region

LISTED = 32  # an ordered grid with more values is searched by doubling steps, not value by value
JUMPS = 5  # places tried along a continuous coordinate or a long grid


@dataclass(frozen=True, eq=False)
class FreeFeatures:
    """Positions of the free features, by the way they are searched."""

    region: Region
    smooth: Indices  # continuous features, which have a gradient
    listed: Indices  # features whose values are tried one by one
    long: Indices  # ordered grids too long for that: relaxed, then stepped
    sloped: Indices  # smooth and long ones: those that a gradient moves
    span: Array  # (d,) range of each feature, 1 where it is fixed
    all: Indices  # all of them

    @classmethod
    def of(cls, region: Region) -> FreeFeatures:
        """Sort the free features of `region`."""
        width = region.high - region.low
        free = region.free[width[region.free] > 0]
        continuous = (region.step[free] == 0) & ~region.categorical[free]
        long = ~(continuous | region.categorical[free] | region.cyclic[free])
        for at in np.flatnonzero(~continuous).tolist():
            values = region.choices[free[at]]
            long[at] = values is None or (long[at] and len(values) > LISTED)
        return cls(
            region=region,
            smooth=free[continuous],
            listed=free[~continuous & ~long],
            long=free[long],
            sloped=free[continuous | long],
            span=np.where(width > 0, width, 1.0),
            all=free,
        )

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw rows ``(n, d)``, every free feature spread over its own values."""
        region = self.region
        X = np.tile(region.query, (n, 1))
        for j in self.all.tolist():
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
        """Return grid values of feature `j` at shares of its range."""
        low, step = self.region.low[j], self.region.step[j]
        count = np.floor((self.region.high[j] - low) / step + 1e-9)
        return np.asarray(low + step * np.minimum(np.floor(share * (count + 1)), count))

    def codes(self, j: int, rng: np.random.Generator) -> Array:
        """Return a few codes of feature `j`: all where they are few, else places and its ends."""
        region, known = self.region, self.region.choices[j]
        if known is not None and region.step[j] != 0 and len(known) <= LISTED:
            return known
        share = (np.arange(JUMPS) + rng.random(JUMPS)) / JUMPS
        if region.step[j] == 0:
            places = region.low[j] + share * self.span[j]
        elif known is None:
            places = self._grid(j, share)
        elif region.categorical[j]:
            places = known[rng.integers(len(known), size=LISTED)]
        else:
            places = known[(share * len(known)).astype(int)]
        # maxima often lie at the limits
        return np.append(places, [region.query[j], region.low[j], region.high[j]])

    def single_changes(self, rng: np.random.Generator) -> tuple[Indices, Array]:
        """Return features and codes ``(t,)`` of changes of one feature, the same for any row."""
        codes = [np.empty(0)]
        for j in self.all.tolist():
            codes.append(self.codes(j, rng))
        return np.repeat(self.all, list(map(len, codes[1:]))), np.concatenate(codes)

    def strides(self, X: Array) -> tuple[Indices, Indices, Array]:
        """Return rows, features and codes of doubling steps along long grids, from rows `X`."""
        region, j = self.region, self.long
        count = np.maximum(2.0, np.round(self.span[j] / region.step[j]))
        doubled = 2.0 ** np.arange(int(np.ceil(np.log2(count.max(initial=2.0)))))
        stride = np.where(doubled < count[:, None], region.step[j, None] * doubled, np.inf)
        V = X[:, j, None] + np.concatenate([stride, -stride], axis=1)  # (n, long, steps)
        keep = (region.low[j, None] <= V) & (region.high[j, None] >= V)
        rows, at, _ = np.nonzero(keep)
        return rows, j[at], V[keep]
