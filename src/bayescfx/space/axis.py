"""The allowed codes of one feature, seen from one query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices

MOST_CHOICES = 10_000


@dataclass(frozen=True)
class Axis:
    """The allowed codes of one feature, seen from the query's code.

    Parameters
    ----------
    query : float
        The query's code; always allowed.
    low, high : float
        Limits of the other allowed codes; empty if ``low > high``.
    choices : ndarray, optional
        All allowed codes, sorted, the query's included, if there are finitely many.
    step, anchor : float
        Grid of the other codes; step 0 means continuous.
    decimals : int, optional
        Decimals grid points are rounded to.
    unit : float
        Grid points are whole multiples of ``1 / unit`` (microseconds for times); 0: no rounding.
    narrow : numpy float type, optional
        Codes must be exact in this narrower type; `low` and `high` already are.
    unordered : bool
        Levels without order.
    period : float
        Length of the circle of a cyclic feature; 0 for others.
    movable : bool
        Whether the feature may move at all.
    """

    query: float
    low: float
    high: float
    choices: Array | None = None
    step: float = 0.0
    anchor: float = 0.0
    decimals: int | None = None
    unit: float = 0.0
    narrow: type[np.floating[Any]] | None = None
    unordered: bool = False
    period: float = 0.0
    movable: bool = True

    @property
    def free(self) -> bool:
        """Whether any code but the query's is allowed."""
        if not self.movable or np.isnan(self.query):
            return False
        if self.choices is not None:
            return len(self.choices) > 1
        return self.low <= self.high

    @property
    def continuous(self) -> bool:
        """Whether clipping is the nearest allowed code."""
        plain = self.choices is None and not self.step and self.narrow is None
        return plain and self.low <= self.query <= self.high

    @property
    def regular(self) -> bool:
        """Whether rounding to whole steps and clipping is the nearest allowed code."""
        whole = self.step > 0 and float(self.step).is_integer() and float(self.anchor).is_integer()
        if not whole or self.period or self.narrow is not None or self.decimals or self.unit:
            return False
        if self.choices is None or not self.low <= self.query <= self.high:
            return False
        return len(self.choices) == round((self.high - self.low) / self.step) + 1

    def snap(self, x: Array) -> Array:
        """Return the nearest allowed code for each of `x`, shape (n,)."""
        if self.choices is not None:
            return self._nearest_choice(x)
        inside = self._on_grid(np.clip(x, self.low, self.high))
        if self.low <= self.query <= self.high and not self.step:
            return inside
        return np.where(np.abs(x - self.query) <= np.abs(x - inside), self.query, inside)

    def _nearest_choice(self, x: Array) -> Array:
        choices = self.choices
        assert choices is not None
        if self.period:  # the nearest on the circle
            start = choices[0]
            turned = start + np.mod(x - start, self.period)
            around = np.append(choices, start + self.period)
            found = around[_nearest(around, turned)]
            return np.where(found == start + self.period, start, found)
        return choices[_nearest(choices, x)]

    def _on_grid(self, x: Array) -> Array:
        if self.step:
            x = self.anchor + np.rint((x - self.anchor) / self.step) * self.step
            if self.decimals is not None:
                x = np.round(x, self.decimals)
            if self.unit:
                x = np.rint(x * self.unit) / self.unit
        if self.narrow is not None:
            with np.errstate(over="ignore"):
                x = x.astype(self.narrow).astype(np.float64)
        return np.clip(x, self.low, self.high)

    def others(self) -> Array:
        """Return the allowed codes other than the query's; finite features only."""
        assert self.choices is not None
        others: Array = self.choices[self.choices != self.query]
        return others

    def draw(self, n: int, rng: np.random.Generator, side: int = 0, *, moved: bool) -> Array:
        """Return `n` uniform draws.

        Parameters
        ----------
        side : {-1, 0, 1}
            Only below, anywhere, only above the query.
        moved : bool
            Whether the query's own code is left out.
        """
        if self.choices is not None:
            pool = self.others() if moved else self.choices
            if side:
                pool = pool[(pool - self.query) * side > 0]
            return pool[rng.integers(len(pool), size=n)]
        low = max(self.low, self.query) if side > 0 else self.low
        high = min(self.high, self.query) if side < 0 else self.high
        drawn = self._on_grid(rng.uniform(low, high, size=n))
        return drawn

    def room(self, side: int) -> bool:
        """Return whether an allowed code lies above (`side` 1) or below (-1) the query."""
        if self.choices is not None:
            return bool(((self.choices - self.query) * side > 0).any())
        return self.low <= self.high and (
            self.high > self.query if side > 0 else self.low < self.query
        )


def _nearest(sorted_codes: Array, x: Array) -> Indices:
    right = np.searchsorted(sorted_codes, x).clip(1, max(1, len(sorted_codes) - 1))
    if len(sorted_codes) == 1:
        return np.zeros(len(x), dtype=np.intp)
    nearer_left = x - sorted_codes[right - 1] <= sorted_codes[right] - x
    return np.asarray(right - nearer_left)
