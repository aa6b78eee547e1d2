"""The allowed codes of one feature, seen from one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data import Feature

MOST_CHOICES = 10_000  # grids with more points are not listed


@dataclass(frozen=True, eq=False)
class Axis:
    """The allowed codes of one feature, seen from the query's code, which is always allowed."""

    feature: Feature
    query: float
    low: float  # limits of the other allowed codes
    high: float
    choices: Array | None = None  # all allowed codes, sorted, the query's included, if listed
    narrow: type[np.floating[Any]] | None = None  # codes must be exact in this narrower type

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
        few = len(self.choices) <= MOST_CHOICES
        return self.choices[0], self.choices[-1], self.choices if few else None

    @property
    def snapping(self) -> str:
        """How to find the nearest code if it is free: "clip", "round" and clip, or "look"."""
        if self.narrow is not None or not self.low <= self.query <= self.high:
            return "look"
        if not self.feature.code_step and self.choices is None:
            return "clip"
        lattice = self.feature.lattice
        if lattice is None or self.feature.period:
            return "look"
        first, stride, unit = lattice
        ends = np.array([self.low, self.query, self.high])
        steps = np.rint((ends * unit - first) / stride)
        on_grid = np.array_equal((first + steps * stride) / unit, ends)
        every = self.choices is None or len(self.choices) == steps[2] - steps[0] + 1
        return "round" if on_grid and every else "look"

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
        return choices[np.where(right == len(choices) - 1, 0, right) if period else right]

    def _on_grid(self, x: Array) -> Array:
        if step := self.feature.code_step:
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
