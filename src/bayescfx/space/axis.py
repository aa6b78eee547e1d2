"""The allowed codes of features, seen from one query: of one feature, and of all that move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.data import Feature

#: Limit: grids with more points are not listed. Set by judgement, 2026-11-18.
MOST_CHOICES = 10_000

#: How the nearest allowed code is found: clip to the limits, round and clip, or look it up.
Snapping: TypeAlias = Literal["clip", "round", "look up"]


@dataclass(frozen=True, eq=False)
class Axis:
    """The allowed codes of one feature; the query's own code is always allowed.

    Parameters
    ----------
    feature : Feature
    query : float
        The query's code; nan if the cell is missing.
    low, high : float
        Limits of the other allowed codes.
    choices : array, optional
        All allowed codes, sorted, the query's included; None for an interval or a long grid.
    narrow : type, optional
        A narrower float type of the column, in which codes must be exact.
    """

    feature: Feature
    query: float
    low: float
    high: float
    choices: Array | None = None
    narrow: type[np.floating[Any]] | None = None

    @property
    def anchor(self) -> float:
        """The code from which steps count."""
        return self.query if self.feature.floating else self.feature.code_range[0]

    @property
    def free(self) -> bool:
        """Whether any code but the query's is allowed."""
        return not np.isnan(self.query) and (self.choices is None or len(self.choices) > 1)

    @property
    def allowed(self) -> tuple[float, float, Array | None]:
        """Lowest and highest allowed code, and all, the query's included, if at most 10,000."""
        if np.isnan(self.query):
            return self.query, self.query, np.array([self.query])
        if self.choices is None:
            return min(self.low, self.query), max(self.high, self.query), None
        is_short = len(self.choices) <= MOST_CHOICES
        return self.choices[0], self.choices[-1], self.choices if is_short else None

    @property
    def snapping(self) -> Snapping:
        """How to find the nearest allowed code, if the feature may move."""
        if self.narrow is not None or not self.low <= self.query <= self.high:
            return "look up"
        if not self.feature.code_step and self.choices is None:
            return "clip"
        if self.feature.lattice is None or self.feature.period:
            return "look up"
        first, stride, unit = self.feature.lattice
        ends = np.array([self.low, self.query, self.high])
        steps = np.rint((ends * unit - first) / stride)
        if not np.array_equal((first + steps * stride) / unit, ends):
            return "look up"
        has_all_points = self.choices is None or len(self.choices) == steps[2] - steps[0] + 1
        return "round" if has_all_points else "look up"

    def snap(self, x: Array) -> Array:
        """Return the nearest allowed code for each of `x`, shape (n,)."""
        choices = self.choices
        if choices is None:
            inside = self._on_grid(np.clip(x, self.low, self.high))
            if self.low <= self.query <= self.high and not self.feature.code_step:
                return inside
            return np.where(np.abs(x - self.query) <= np.abs(x - inside), self.query, inside)
        period = self.feature.period
        if period:  # on a circle the first code comes once more after the last
            x = choices[0] + np.mod(x - choices[0], period)
            choices = np.append(choices, choices[0] + period)
        right = np.searchsorted(choices, x).clip(1, len(choices) - 1)
        right -= x - choices[right - 1] <= choices[right] - x
        if period:
            right = np.where(right == len(choices) - 1, 0, right)
        return np.asarray(choices[right])

    def _on_grid(self, x: Array) -> Array:
        """Return the nearest codes on the grid, within the limits."""
        step = self.feature.code_step
        if step:
            x = self.feature.grid(np.rint((x - self.anchor) / step), self.anchor)
        return np.clip(self.round(x), self.low, self.high)

    def round(self, codes: Array) -> Array:
        """Return the nearest codes that the column's type holds."""
        if self.narrow is None:
            return codes
        with np.errstate(over="ignore"):
            return codes.astype(self.narrow).astype(np.float64)

    def draw(self, n: int, rng: np.random.Generator, side: int = 0, *, moved: bool) -> Array:
        """Return `n` uniform draws, on one side of the query or with its own code left out."""
        if self.choices is not None:
            pool = self.choices[self.choices != self.query] if moved else self.choices
            if side:
                pool = pool[(pool - self.query) * side > 0]
            return pool[rng.integers(len(pool), size=n)]
        low = max(self.low, self.query) if side > 0 else self.low
        high = min(self.high, self.query) if side < 0 else self.high
        return self._on_grid(rng.uniform(low, high, size=n))

    def room(self, side: int) -> bool:
        """Return whether an allowed code lies above (`side` 1) or below (-1) the query."""
        low, high, _ = self.allowed
        return bool(high > self.query if side > 0 else low < self.query)


@dataclass(frozen=True, eq=False)
class FreeAxes:
    """The axes of the ``k`` features that may move, as arrays.

    Parameters
    ----------
    query : array of shape (k,)
        The query's codes.
    low, high : array of shape (k,)
        Lowest and highest allowed code.
    levels, circles : array of positions
        Those of the ``k`` features that have unordered levels, or lie on a circle.
    period : array
        Lengths of these circles.
    lattice : array of shape (3, k)
        First, stride and unit, see `Feature.lattice`.
    is_rounded : mask of shape (k,), or None
        Features that are snapped by rounding to the lattice; None if there are none.
    looked_up : list of (position, Axis)
        Features that are snapped by their axis.
    """

    query: Array
    low: Array
    high: Array
    levels: Indices
    circles: Indices
    period: Array
    lattice: Array
    is_rounded: Mask | None
    looked_up: list[tuple[int, Axis]]

    @classmethod
    def of(
        cls,
        axes: Sequence[Axis],
        query: Array,
        low: Array,
        high: Array,
        period: Array,
        categorical: Mask,
    ) -> FreeAxes:
        """Return the axes of ``k`` features; arrays have the shape (k,)."""
        snapping = np.array([axis.snapping for axis in axes], dtype=object)
        is_rounded = snapping == "round"
        looked_up = np.flatnonzero(snapping == "look up").tolist()
        lattices = [axis.feature.lattice or (0.0, 1.0, 1.0) for axis in axes]
        circles = np.flatnonzero(period)
        return cls(
            query=query,
            low=low,
            high=high,
            levels=np.flatnonzero(categorical),
            circles=circles,
            period=period[circles],
            lattice=np.array(lattices, dtype=np.float64).reshape(-1, 3).T,
            is_rounded=is_rounded if is_rounded.any() else None,
            looked_up=[(i, axes[i]) for i in looked_up],
        )

    def snap(self, part: Array) -> Array:
        """Return the nearest allowed codes for codes ``(n, k)``."""
        snapped = np.clip(part, self.low, self.high)
        if self.is_rounded is not None:
            first, stride, unit = self.lattice
            whole = first + np.rint((snapped * unit - first) / stride) * stride
            np.divide(whole, unit, out=snapped, where=self.is_rounded)
        for i, axis in self.looked_up:
            snapped[:, i] = axis.snap(part[:, i])
        return snapped

    def contains(self, part: Array) -> Mask:
        """Return which rows of codes, given as ``(k, n)``, are allowed."""
        kept = (part >= self.low[:, None]) & (part <= self.high[:, None])
        if self.is_rounded is not None:
            first, stride, unit = self.lattice[:, :, None]
            whole = np.rint(part * unit)
            kept &= (whole / unit == part) | ~self.is_rounded[:, None]
            for i in np.flatnonzero(self.is_rounded & (stride[:, 0] != 1)).tolist():
                steps = (whole[i] - first[i]) / stride[i]
                kept[i] &= steps == np.rint(steps)
        for i, axis in self.looked_up:
            kept[i] = axis.snap(part[i]) == part[i]
        return np.asarray(kept.all(axis=0))

    def distances(self, part: Array) -> Array:
        """Return how far codes ``(n, k)`` are from the query's; another level is 1 away."""
        delta: Array = np.abs(part - self.query)
        if len(self.levels):
            delta[:, self.levels] = delta[:, self.levels] != 0
        if len(self.circles):
            forwards = delta[:, self.circles]
            delta[:, self.circles] = np.minimum(forwards, self.period - forwards)
        return delta
