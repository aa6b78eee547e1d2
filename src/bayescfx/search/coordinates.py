"""The surrogate's view of a row: every feature on a scale where one step means about the same.

Models of tabular data change where the data are: trees split between data rows, networks and
kernels are fitted to them. A feature's coordinate therefore blends its place among the data (its
rank) with its place within the limits, both in [0, 1]. Categorical features stay codes, which the
kernel compares for equality; cyclic ones become a point on a circle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.space.region import Region

_KNOTS = 33  # a feature's distribution in that many quantiles
_CELLS = 1024  # a coordinate is linear within each of this many cells
_RANK = 0.5  # how much of a coordinate is rank; the rest is position within the limits


@dataclass(frozen=True)
class Coordinates:
    """A map from codes ``(n, d)`` to surrogate inputs ``(n, m)``.

    Parameters
    ----------
    linear : Indices of shape (a,)
        Features with one increasing coordinate each; they come first.
    low, high : Array of shape (a,)
        The codes between which their maps are tabulated.
    table : Array of shape (a, cells + 1)
        Their coordinates at equally spaced codes from `low` to `high`.
    cyclic : Indices of shape (b,)
        Features on a circle, two coordinates each.
    periods : Array of shape (b,)
        Their lengths.
    categorical : Indices of shape (c,)
        Features compared for equality, one coordinate each; they come last.
    """

    linear: Indices
    low: Array
    high: Array
    table: Array
    cyclic: Indices
    periods: Array
    categorical: Indices

    @classmethod
    def of(cls, region: Region, known: Array) -> Coordinates:
        """Return the coordinates of every feature that may move or that varies in `known`.

        Parameters
        ----------
        region : Region
            Limits, kinds and background rows.
        known : Array of shape (n, d)
            Codes of the rows the surrogate will see.
        """
        seen = np.vstack([region.query, known])
        moving = np.ptp(seen, axis=0) > 0  # nan compares as not moving
        moving[region.free] = True
        circle, levels = region.cyclic & moving, region.categorical & moving
        line = np.flatnonzero(moving & ~circle & ~levels)
        low, high = region.low[line], region.high[line]
        fixed = ~(low < high)
        low[fixed], high[fixed] = seen[:, line].min(axis=0)[fixed], seen[:, line].max(axis=0)[fixed]
        table = [_table(region, int(j), *ends) for j, *ends in zip(line, low, high, strict=True)]
        return cls(
            linear=line,
            low=low,
            high=high,
            table=np.array(table).reshape(len(line), _CELLS + 1),
            cyclic=np.flatnonzero(circle),
            periods=np.array([region.period[j] for j in np.flatnonzero(circle)]),
            categorical=np.flatnonzero(levels),
        )

    @property
    def width(self) -> int:
        """Number of surrogate inputs."""
        return len(self.linear) + 2 * len(self.cyclic) + len(self.categorical)

    @property
    def categorical_columns(self) -> tuple[int, ...]:
        """Which surrogate inputs are compared for equality."""
        return tuple(range(self.width - len(self.categorical), self.width))

    @cached_property
    def _rises(self) -> Array:
        """How much each coordinate rises from cell to cell, shape (a, cells)."""
        return np.diff(self.table, axis=1)

    @cached_property
    def _rate(self) -> Array:
        """Cells per code unit, shape (a,)."""
        return np.asarray(_CELLS / (self.high - self.low))

    @cached_property
    def _rows(self) -> Indices:
        return np.arange(len(self.linear))

    def _place(self, X: Array) -> tuple[Array, Indices]:
        """Return where codes stand in the table, in cells, and in which cell."""
        place = (X[:, self.linear] - self.low) * self._rate
        return place, np.minimum(np.maximum(place, 0.0), _CELLS - 1.0).astype(np.intp)

    def __call__(self, X: Array) -> Array:
        """Return the surrogate inputs ``(n, m)`` of codes ``(n, d)``."""
        place, cell = self._place(X)
        line = self.table[self._rows, cell] + (place - cell) * self._rises[self._rows, cell]
        if len(self.linear) == self.width:
            return np.asarray(line)
        angle = 2.0 * np.pi * X[:, self.cyclic] / self.periods
        circle = (0.5 * np.cos(angle), 0.5 * np.sin(angle))
        return np.hstack([line, *circle, X[:, self.categorical]])

    def distances(self, Z: Array, centres: Array) -> Array:
        """Return Euclidean distances ``(n, c)`` of surrogate inputs; unequal levels count 1."""
        ordered = self.width - len(self.categorical)
        A, B = Z[:, :ordered], centres[:, :ordered]
        square = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
        for column in self.categorical_columns:
            square += Z[:, column, None] != centres[:, column]
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    def box(self, x: Array, half: float) -> tuple[Array, Array]:
        """Return the lowest and highest codes ``(d,)`` within `half` of row `x` in each input.

        Only features with one increasing coordinate are limited.
        """
        low, high = np.full(len(x), -np.inf), np.full(len(x), np.inf)
        at = self(x[None])[0]
        for row, j in enumerate(self.linear):
            codes = np.linspace(self.low[row], self.high[row], _CELLS + 1)
            ends = np.interp([at[row] - half, at[row] + half], self.table[row], codes)
            low[j], high[j] = min(ends[0], x[j]), max(ends[1], x[j])
        return low, high

    def pull_back(self, X: Array, gradient: Array) -> Array:
        """Return d/d code ``(n, d)`` of a function with d/d input ``(n, m)`` = `gradient`.

        Only features with one increasing coordinate have a derivative; that of others is 0.
        """
        cell = self._place(X)[1]
        out = np.zeros(X.shape)
        slope = self._rises[self._rows, cell] * self._rate
        out[:, self.linear] = gradient[:, : len(self.linear)] * slope
        return out


def _table(region: Region, j: int, low: float, high: float) -> Array:
    """Return the coordinates of feature `j` at equally spaced codes from `low` to `high`."""
    straight = np.linspace(0.0, 1.0, _CELLS + 1)
    data = region.data[:, j]
    data = data[(data >= low) & (data <= high)]
    if len(data) < _KNOTS:
        return straight
    share = np.linspace(0.0, 1.0, _KNOTS)
    codes = np.quantile(data, share)
    codes[0], codes[-1] = low, high
    # A value that many rows share stands at the middle of its ranks.
    codes, first, count = np.unique(codes, return_index=True, return_counts=True)
    rank = share[first] + 0.5 * (count - 1) * share[1]
    rank[0], rank[-1] = 0.0, 1.0
    ranks = np.interp(np.linspace(low, high, _CELLS + 1), codes, rank)
    return np.asarray(_RANK * ranks + (1.0 - _RANK) * straight)
