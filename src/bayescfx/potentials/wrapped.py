"""Potentials made from another one: on the log-odds of a probability, or sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import scipy
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.errors import TargetError
from bayescfx.potentials.pieces import Levels, Pieces, between_knots, monotone_root
from bayescfx.potentials.potential import Intervals, LevelPotential, Potential, checked_share


@dataclass(frozen=True, slots=True)
class Logit:
    """The log-odds ``u = log(y / (1 - y))`` of a probability."""

    def forward(self, y: ArrayLike) -> Array:
        """Return the log-odds of each probability, moved a little away from 0 and 1."""
        return np.asarray(scipy.special.logit(np.clip(y, 1e-12, 1.0 - 1e-12)))

    def inverse(self, u: ArrayLike) -> Array:
        """Return the probability of each log-odds."""
        return self.inverse_and_slope(u)[0]

    def inverse_and_slope(self, u: ArrayLike) -> tuple[Array, Array]:
        """Return probability and d probability / d log-odds together, at the price of one."""
        rest = np.exp(-np.clip(u, -350.0, 350.0))  # its square is still a number
        y = 1.0 / (1.0 + rest)
        return np.asarray(y), np.asarray(rest * y * y)

    def intervals(self, given: Intervals) -> Intervals:
        """Return intervals of probabilities as log-odds; ends at 0 and 1 become infinite.

        A lower end of 1 and an upper end of 0 stay finite: outputs come no farther than `forward`.
        """
        possible = np.array([pair for pair in given if pair[1] >= 0.0 and pair[0] <= 1.0])
        low, high = np.clip(possible.reshape(-1, 2), 0.0, 1.0).T
        low = np.where(low > 0.0, self.forward(low), -np.inf)
        high = np.where(high < 1.0, self.forward(high), np.inf)
        return tuple(zip(low.tolist(), high.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Linked(LevelPotential):
    """A potential as a function of ``u = link(y)``."""

    potential: LevelPotential
    link: Logit

    @property
    def peak(self) -> float:
        return self.potential.peak

    def value(self, u: ArrayLike) -> Array:
        return self.potential.value(self.link.inverse(u))

    def slope(self, u: ArrayLike) -> Array:
        return self.value_and_slope(u)[1]

    def value_and_slope(self, u: ArrayLike) -> tuple[Array, Array]:
        """Return both, from one evaluation."""
        y, dy = self.link.inverse_and_slope(u)
        both = getattr(self.potential, "value_and_slope", None)
        if both is None:
            return self.potential.value(y), self.potential.slope(y) * dy
        value, slope = both(y)
        return value, slope * dy

    def superlevel(self, level: float) -> Intervals:
        return self.link.intervals(self.potential.superlevel(level))

    def target_set(self, epsilon: float) -> Intervals:
        return self.link.intervals(self.potential.target_set(epsilon))

    def superlevels(self, levels: Array) -> Levels | None:
        """Return the superlevel set of each level ``(n,)``, if the potential knows them."""
        own = getattr(self.potential, "superlevels", None)
        if own is None:
            return None
        return [tuple(scipy.special.logit(np.clip(ends, 0.0, 1.0))) for ends in own(levels)]

    def knots(self) -> Array:
        inner = self.potential.knots()
        inner = scipy.special.logit(inner[(inner > 1e-15) & (inner < 1.0 - 1e-15)])
        # Pieces that resolve the logistic function; beyond the last, a double can't tell it from 1.
        logistic = [-36.0, -16.0, -8.0, -4.0, 0.0, 4.0, 8.0, 16.0, 36.0]
        return np.union1d(inner, logistic)


@dataclass(frozen=True, slots=True, repr=False)
class Sampled(LevelPotential):
    """A potential sampled between two outputs; outside it counts as unknown."""

    potential: Potential
    low: float
    high: float
    peak: float = field(init=False, compare=False)  # the largest value found
    _knots: Array = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise TargetError(
                f"Sampled: `low` must be below `high`; got {self.low!r} and {self.high!r}."
            )
        grid = np.linspace(self.low, self.high, 2049)
        sign = np.sign(self.potential.slope(grid))
        turns = np.flatnonzero(sign[:-1] * sign[1:] < 0.0)
        low = grid[turns]
        high = grid[turns + 1]
        for _ in range(60 if turns.size else 0):  # bisect all brackets of a turn at once
            middle = 0.5 * (low + high)
            is_before = np.sign(self.potential.slope(middle)) == sign[turns]
            low = np.where(is_before, middle, low)
            high = np.where(is_before, high, middle)
        flat = grid[1:-1][(sign[1:-1] == 0.0) & ((sign[:-2] != 0.0) | (sign[2:] != 0.0))]
        panels = np.linspace(self.low, self.high, 25)
        knots = np.unique(np.concatenate([panels, flat, 0.5 * (low + high)]))
        object.__setattr__(self, "_knots", knots)
        object.__setattr__(self, "peak", float(np.max(self.potential.value(knots))))

    def __repr__(self) -> str:
        return repr(self.potential)  # as the user knows it

    def value(self, y: ArrayLike) -> Array:
        return np.asarray(self.potential.value(np.asarray(y, dtype=float)), dtype=float)

    def slope(self, y: ArrayLike) -> Array:
        return np.asarray(self.potential.slope(np.asarray(y, dtype=float)), dtype=float)

    def knots(self) -> Array:
        return self._knots

    def pieces(self, best: Array) -> Pieces:
        """Return the improvement over thresholds ``(m,)``."""
        return between_knots(self, best, self._knots, endless=False)

    def superlevel(self, level: float) -> Intervals:
        """Return the intervals where the potential is at least `level`, by bracketing."""
        knots = self._knots
        values = self.value(knots)
        low = knots[:-1].copy()
        high = knots[1:].copy()
        least = np.minimum(values[:-1], values[1:])
        kept = np.maximum(values[:-1], values[1:]) >= level
        cut = np.flatnonzero(kept & (least < level))
        root = monotone_root(self, (low[cut], high[cut]), np.full(len(cut), level))
        rising = values[1:][cut] > values[:-1][cut]
        low[cut[rising]] = root[rising]
        high[cut[~rising]] = root[~rising]
        intervals: list[tuple[float, float]] = []
        for start, end in zip(low[kept].tolist(), high[kept].tolist(), strict=True):
            if intervals and intervals[-1][1] == start:  # they join
                start, _ = intervals.pop()
            intervals.append((start, end))
        return tuple(intervals)

    def target_set(self, epsilon: float) -> Intervals:
        return self.superlevel(self.peak - checked_share(epsilon) * abs(self.peak))


def window(potential: Potential, outputs: Array) -> tuple[float, float]:
    """Return the range in which to sample a potential: around outputs, with its peak inside."""
    lowest = float(np.min(outputs))
    highest = float(np.max(outputs))
    room = 0.5 * (highest - lowest) or 0.5 * max(abs(lowest), 1.0)
    around = (lowest - room, highest + room)
    low, high = around
    for _ in range(12):
        value = np.asarray(potential.value(np.linspace(low, high, 513)), dtype=float)
        if not np.all(np.isfinite(value)):
            break
        # A rise towards an end counts from a millionth of all variation on.
        top = float(np.max(value[1:-1])) + 1e-6 * float(np.ptp(value))
        rises_below = bool(value[0] > top)
        rises_above = bool(value[-1] > top)
        if not (rises_below or rises_above):
            return low, high
        span = high - low
        low -= span * rises_below
        high += span * rises_above
    return around  # it rises for ever: as far as outputs go
