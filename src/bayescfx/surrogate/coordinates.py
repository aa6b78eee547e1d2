"""Coordinates of the surrogate: every feature on a scale where equal steps matter equally.

Models of tabular data change where the data are: trees split between data rows, networks and
kernels are fitted to them. A feature's coordinate therefore blends its place among the data (its
rank) with its place within the limits, both in [0, 1]. Categorical features stay codes, which the
kernel compares for equality; cyclic ones become a point on a circle.
"""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.space.region import Region

CELLS = 1024  # a coordinate is linear within each of this many cells
#: Quantiles that a feature's ranks are interpolated between; fewer data rows count no ranks.
#: Set by judgement; benchmark `make quality` (2026-11-18).
KNOTS = 33
#: The share of the rank in a coordinate; the rest is the position within the limits
#: (`python -m benchmarks efficiency --only potential`, 2026-11-15).
RANK_SHARE = 0.5


class Coordinates:
    """A map from codes ``(n, d)`` to surrogate inputs ``(n, width)``.

    Of features that may move in the `region` or vary in the `known` rows: first one per *linear*
    feature, then two per *cyclic* and one per *categorical* one.
    """

    def __init__(self, region: Region, known: Array) -> None:
        # Only derived cells are missing in some rows: a level of their own, or like the query's.
        self._gaps = np.where(region.categorical, -1.0, np.nan_to_num(region.query))
        self._has_gaps = bool(region.derived)
        rows = self._filled(np.vstack([region.query, known]))
        lowest = rows.min(axis=0)
        highest = rows.max(axis=0)
        varies = lowest < highest  # nan compares as not varying
        varies[region.free] = True
        self._fixed: Indices = np.setdiff1d(np.arange(len(varies)), region.free)
        self._fixed_low = lowest[self._fixed]
        self._fixed_high = highest[self._fixed]
        is_cyclic = region.cyclic & varies
        is_level = region.categorical & varies
        line = np.flatnonzero(varies & ~is_cyclic & ~is_level)
        has_range = region.low < region.high
        low = np.where(has_range, region.low, lowest)[line]
        high = np.where(has_range, region.high, highest)[line]
        self.linear: Indices = line
        self.cyclic: Indices = np.flatnonzero(is_cyclic)
        self.categorical: Indices = np.flatnonzero(is_level)
        self.width = len(line) + 2 * len(self.cyclic) + len(self.categorical)
        # Inputs that are compared for equality.
        self.categorical_columns = tuple(range(self.width - len(self.categorical), self.width))
        self._periods = region.period[self.cyclic]
        self._low = low
        self._rate = CELLS / (high - low)  # cells per code unit
        # The coordinates at equally spaced codes, and how much they rise from cell to cell.
        self._rows = np.arange(len(line))
        self._table = np.empty((len(line), CELLS + 1))
        for row, j in enumerate(line.tolist()):
            key = j, float(low[row]), float(high[row])
            if key not in region.coordinate_tables:  # a search makes coordinates at every step
                region.coordinate_tables[key] = _tabulated(region.data[:, j], *key[1:])
            self._table[row] = region.coordinate_tables[key]
        self._rises = np.diff(self._table, axis=1)

    def suit(self, X: Array) -> bool:
        """Return whether fixed features of codes ``(n, d)`` vary no more than in known rows."""
        fixed = self._filled(X)[:, self._fixed]
        return not ((fixed < self._fixed_low) | (fixed > self._fixed_high)).any()

    def _filled(self, X: Array) -> Array:
        """Return codes ``(n, d)`` with missing ones replaced, where some rows have them."""
        return np.where(np.isnan(X), self._gaps, X) if self._has_gaps else X

    def _cells(self, X: Array) -> tuple[Array, Indices]:
        """Return the positions of codes in the table, in cells, and the cells."""
        place = (X[:, self.linear] - self._low) * self._rate
        return place, np.minimum(np.maximum(place, 0.0), CELLS - 1.0).astype(np.intp)

    def __call__(self, X: Array) -> Array:
        """Return the surrogate inputs ``(n, m)`` of codes ``(n, d)``."""
        X = self._filled(X)
        place, cell = self._cells(X)
        line = self._table[self._rows, cell] + (place - cell) * self._rises[self._rows, cell]
        if len(self.linear) == self.width:
            return np.asarray(line)
        angle = 2.0 * np.pi * X[:, self.cyclic] / self._periods
        circle = (0.5 * np.cos(angle), 0.5 * np.sin(angle))
        return np.hstack([line, *circle, X[:, self.categorical]])

    def distances(self, Z: Array, centres: Array) -> Array:
        """Return Euclidean distances ``(n, c)`` of surrogate inputs; unequal levels count 1."""
        ordered = self.width - len(self.categorical)
        A = Z[:, :ordered]
        B = centres[:, :ordered]
        square = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
        for column in self.categorical_columns:
            square += Z[:, column, None] != centres[:, column]
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    def pull_back(self, X: Array, *gradients: Array) -> Array:
        """Return d/d code ``(g, n, d)``, 0 unless linear, from derivatives by input ``(n, m)``."""
        slope = self._rises[self._rows, self._cells(self._filled(X))[1]] * self._rate
        out = np.zeros((len(gradients), *X.shape))
        for pulled, gradient in zip(out, gradients, strict=True):
            pulled[:, self.linear] = gradient[:, : len(self.linear)] * slope
        return out


def _tabulated(data: Array, low: float, high: float) -> Array:
    """Return half rank, half position of codes spread from `low` to `high`; rank by quantiles."""
    straight = np.linspace(0.0, 1.0, CELLS + 1)
    data = data[(data >= low) & (data <= high)]
    if len(data) < KNOTS:
        return straight
    share = np.linspace(0.0, 1.0, KNOTS)
    codes = np.quantile(data, share)
    codes[0] = low
    codes[-1] = high
    # A value that many rows share has the middle of its ranks.
    codes, first, count = np.unique(codes, return_index=True, return_counts=True)
    rank = share[first] + 0.5 * (count - 1) * share[1]
    rank[0] = 0.0
    rank[-1] = 1.0
    ranks = np.interp(np.linspace(low, high, CELLS + 1), codes, rank)
    return np.asarray(RANK_SHARE * ranks + (1.0 - RANK_SHARE) * straight)
