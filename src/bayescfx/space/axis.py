"""The allowed codes of features, seen from one query: of one feature, and of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.data import Feature

#: Grids with more points are not listed. Set by judgement, 2026-11-18.
MOST_CHOICES = 10_000
#: Ordered grids with at most so many steps are searched value by value, not as continuous ones.
#: Set by judgement, 2026-11-18; benchmark `make quality`.
MOST_COARSE_STEPS = 32

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
        lattice = self.feature.lattice
        if lattice is None or self.feature.period:
            return "look up"
        return "round" if self._is_whole_lattice(*lattice) else "look up"

    def _is_whole_lattice(self, first: float, stride: float, unit: float) -> bool:
        """Return whether all lattice points between the limits are allowed, and no others."""
        ends = np.array([self.low, self.query, self.high])
        steps = np.rint((ends * unit - first) / stride)
        if not np.array_equal((first + steps * stride) / unit, ends):
            return False
        return self.choices is None or len(self.choices) == steps[2] - steps[0] + 1

    def snap(self, x: Array) -> Array:
        """Return the nearest allowed code for each of `x`, shape (n,)."""
        choices = self.choices
        if choices is None:
            return self._snap_to_interval(x)
        period = self.feature.period
        if period:  # on a circle the first code comes once more after the last
            x = choices[0] + np.mod(x - choices[0], period)
            choices = np.append(choices, choices[0] + period)
        right = np.searchsorted(choices, x).clip(1, len(choices) - 1)
        right -= x - choices[right - 1] <= choices[right] - x
        if period:
            right = np.where(right == len(choices) - 1, 0, right)
        return np.asarray(choices[right])

    def _snap_to_interval(self, x: Array) -> Array:
        """Return the nearest code between the limits, or the query's if it is nearer."""
        inside = self._on_grid(np.clip(x, self.low, self.high))
        if self.low <= self.query <= self.high and not self.feature.code_step:
            return inside
        return np.where(np.abs(x - self.query) <= np.abs(x - inside), self.query, inside)

    def _on_grid(self, x: Array) -> Array:
        """Return the nearest codes on the grid, within the limits."""
        step = self.feature.code_step
        if step:
            x = self.feature.grid(np.rint((x - self.anchor) / step), self.anchor)
        if self.narrow is not None:
            with np.errstate(over="ignore"):
                x = x.astype(self.narrow).astype(np.float64)
        return np.clip(x, self.low, self.high)

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


class _FreePart(NamedTuple):
    """The arrays of a box for its ``k`` free features."""

    low: Array  # (k,)
    high: Array  # (k,)
    lattice: Array  # (3, k)
    is_rounded: Mask | None  # (k,); None if none is
    looked_up: list[tuple[int, Axis]]  # place among the free features, and its axis


@dataclass(frozen=True, eq=False)
class Box:
    """The axes of all features as arrays: limits and grids, without any rule.

    Parameters
    ----------
    axes : tuple of Axis
    choices : tuple
        Per feature the allowed codes, the query's included, if at most 10,000; else None.
    query : array of shape (d,)
        The query's codes.
    low, high : array of shape (d,)
        Lowest and highest allowed code; the query's where a feature can't move.
    step : array of shape (d,)
        Grid steps; 0 where continuous.
    period : array of shape (d,)
        Lengths of circles, or 0.
    categorical : mask of shape (d,)
        Features with unordered levels.
    lattice : array of shape (3, d)
        First, stride and unit, see `Feature.lattice`.
    is_rounded, is_looked_up : mask of shape (d,)
        Free features that are snapped by rounding to the lattice, or by their axis.
    """

    axes: tuple[Axis, ...]
    choices: tuple[Array | None, ...]
    query: Array
    low: Array
    high: Array
    step: Array
    period: Array
    categorical: Mask
    lattice: Array
    is_rounded: Mask
    is_looked_up: Mask

    @classmethod
    def of(cls, axes: tuple[Axis, ...]) -> Box:
        """Return the arrays of some axes."""
        allowed = [axis.allowed for axis in axes]
        features = [axis.feature for axis in axes]
        snapping = np.array([axis.snapping for axis in axes])
        low = np.array([ends[0] for ends in allowed], dtype=np.float64)
        high = np.array([ends[1] for ends in allowed], dtype=np.float64)
        is_free = low < high
        lattices = [feature.lattice or (0.0, 1.0, 1.0) for feature in features]
        return cls(
            axes=axes,
            choices=tuple(ends[2] for ends in allowed),
            query=np.array([axis.query for axis in axes], dtype=np.float64),
            low=low,
            high=high,
            step=np.array([feature.code_step for feature in features], dtype=np.float64),
            period=np.array([feature.period for feature in features], dtype=np.float64),
            categorical=np.array([feature.categorical for feature in features], dtype=np.bool_),
            lattice=np.array(lattices, dtype=np.float64).T,
            is_rounded=is_free & (snapping == "round"),
            is_looked_up=is_free & (snapping == "look up"),
        )

    @cached_property
    def free(self) -> Indices:
        """Positions ``(k,)`` of the features that may move."""
        return np.flatnonzero(self.low < self.high)

    @cached_property
    def cyclic(self) -> Mask:
        """Features ``(d,)`` on a circle."""
        return self.period > 0

    @cached_property
    def sliding(self) -> Mask:
        """Features ``(d,)`` that are free and on a line."""
        return (self.low < self.high) & ~self.categorical & ~self.cyclic

    @cached_property
    def coarse(self) -> Mask:
        """Features ``(d,)`` that are free and not even nearly continuous."""
        has_few_steps = (self.step > 0) & (self.high - self.low <= MOST_COARSE_STEPS * self.step)
        return (self.low < self.high) & (~self.sliding | has_few_steps)

    @cached_property
    def _free_part(self) -> _FreePart:
        """The arrays of the free features."""
        is_rounded = self.is_rounded[self.free]
        places = np.flatnonzero(self.is_looked_up[self.free]).tolist()
        return _FreePart(
            low=self.low[self.free],
            high=self.high[self.free],
            lattice=self.lattice[:, self.free],
            is_rounded=is_rounded if is_rounded.any() else None,
            looked_up=[(i, self.axes[self.free[i]]) for i in places],
        )

    def snap(self, part: Array) -> Array:
        """Return the nearest allowed codes for codes of the free features ``(n, k)``."""
        grid = self._free_part
        snapped = np.clip(part, grid.low, grid.high)
        if grid.is_rounded is not None:
            first, stride, unit = grid.lattice
            whole = first + np.rint((snapped * unit - first) / stride) * stride
            np.divide(whole, unit, out=snapped, where=grid.is_rounded)
        for i, axis in grid.looked_up:
            snapped[:, i] = axis.snap(part[:, i])
        return snapped

    def contains(self, part: Array) -> Mask:
        """Return which rows of codes of the free features, given as ``(k, n)``, are allowed."""
        grid = self._free_part
        kept = (part >= grid.low[:, None]) & (part <= grid.high[:, None])
        if grid.is_rounded is not None:
            first, stride, unit = grid.lattice[:, :, None]
            whole = np.rint(part * unit)
            kept &= (whole / unit == part) | ~grid.is_rounded[:, None]
            for i in np.flatnonzero(grid.is_rounded & (stride[:, 0] != 1)).tolist():
                steps = (whole[i] - first[i]) / stride[i]
                kept[i] &= steps == np.rint(steps)
        for i, axis in grid.looked_up:
            kept[i] = axis.snap(part[i]) == part[i]
        return np.asarray(kept.all(axis=0))
