"""The free features of a region, grouped by how they are searched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.propose.tuning import TUNING
from bayescfx.space.neighbourhood import listed_values, spread_values
from bayescfx.space.region import Region


@dataclass(frozen=True, eq=False)
class FreeFeatures:
    """Positions of the free features, grouped by how they are searched."""

    region: Region
    smooth: Indices  # continuous features, which have a gradient
    listed: Indices  # features whose values are tried one by one
    long: Indices  # ordered grids too long for that: relaxed, then stepped
    sloped: Indices  # smooth and long ones: those that a gradient moves
    span: Array  # (d,) range of each feature, 1 where it is fixed
    all: Indices  # all of them

    @classmethod
    def of(cls, region: Region) -> FreeFeatures:
        """Group the free features of `region`."""
        width = region.high - region.low
        free = region.free[width[region.free] > 0]
        is_smooth = (region.step[free] == 0) & ~region.categorical[free]
        is_long = ~(is_smooth | region.categorical[free] | region.cyclic[free])
        for at in np.flatnonzero(~is_smooth).tolist():
            values = region.choices[free[at]]
            has_many = values is None or len(values) > TUNING.listed_values
            is_long[at] = values is None or (is_long[at] and has_many)
        return cls(
            region=region,
            smooth=free[is_smooth],
            listed=free[~is_smooth & ~is_long],
            long=free[is_long],
            sloped=free[is_smooth | is_long],
            span=np.where(width > 0, width, 1.0),
            all=free,
        )

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw rows ``(n, d)``: every free feature uniform over its values, others as the query."""
        region = self.region
        X = np.tile(region.query, (n, 1))
        for j in self.all.tolist():
            values = region.choices[j]
            if values is not None and region.step[j] != 0:
                X[:, j] = values[rng.integers(len(values), size=n)]
        if self.smooth.size:
            share = rng.random((n, self.smooth.size))
            low = region.low[self.smooth]
            high = region.high[self.smooth]
            X[:, self.smooth] = low + share * (high - low)
        for j in self.long.tolist():
            if region.choices[j] is None:
                X[:, j] = spread_values(region, j, rng.random(n))
        return X

    def values(self, j: int, rng: np.random.Generator) -> Array:
        """Return a few codes of feature `j`: all if they are few, else random ones and the ends."""
        region = self.region
        listed = listed_values(region, j, TUNING.listed_values)
        if listed is not None:
            return listed
        shares = (np.arange(TUNING.jumps) + rng.random(TUNING.jumps)) / TUNING.jumps
        if region.categorical[j]:
            drawn = self._random_levels(j, rng)
        else:
            drawn = spread_values(region, j, shares)
        # Maxima often lie at the limits.
        return np.append(drawn, [region.query[j], region.low[j], region.high[j]])

    def _random_levels(self, j: int, rng: np.random.Generator) -> Array:
        """Return random levels of an unordered feature with many."""
        levels = self.region.choices[j]
        assert levels is not None  # levels are always listed
        return np.asarray(levels[rng.integers(len(levels), size=TUNING.listed_values)])

    def single_changes(self, rng: np.random.Generator) -> tuple[Indices, Array]:
        """Return features and codes ``(t,)`` of changes of one feature, the same for any row."""
        codes = [np.empty(0)]
        for j in self.all.tolist():
            codes.append(self.values(j, rng))
        sizes = [len(part) for part in codes[1:]]
        return np.repeat(self.all, sizes), np.concatenate(codes)

    def strides(self, X: Array) -> tuple[Indices, Indices, Array]:
        """Return rows, features and codes of doubling steps along long grids, from rows `X`."""
        region = self.region
        j = self.long
        n_steps = np.maximum(2.0, np.round(self.span[j] / region.step[j]))
        n_doublings = int(np.ceil(np.log2(n_steps.max(initial=2.0))))
        doubled = 2.0 ** np.arange(n_doublings)
        is_inside = doubled < n_steps[:, None]
        stride = np.where(is_inside, region.step[j, None] * doubled, np.inf)
        codes = X[:, j, None] + np.concatenate([stride, -stride], axis=1)  # (n, long, steps)
        is_allowed = (region.low[j, None] <= codes) & (region.high[j, None] >= codes)
        rows, at, _ = np.nonzero(is_allowed)
        return rows, j[at], codes[is_allowed]
