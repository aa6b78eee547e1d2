"""Potentials made of another: on the log-odds of a probability, or known by sampling only."""

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
        """Return intervals of outputs that are probabilities as log-odds; 0, 1 become infinite.

        But for what is to be 1 at least, or 0 at most: outputs come no farther than `forward` does.
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
        """Return both, sharing what they have in common."""
        y, dy = self.link.inverse_and_slope(u)
        both = getattr(self.potential, "value_and_slope", None)
        value, slope = both(y) if both else (self.potential.value(y), self.potential.slope(y))
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
        # pieces that resolve the logistic function; beyond the last a double can't tell it from 1
        logistic = [-36.0, -16.0, -8.0, -4.0, 0.0, 4.0, 8.0, 16.0, 36.0]
        return np.union1d(inner, logistic)


@dataclass(frozen=True, slots=True, repr=False)
class Sampled(LevelPotential):
    """A potential examined between two outputs; outside nothing is known and nothing is counted."""

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
        low, high = grid[turns], grid[turns + 1]
        for _ in range(60 if turns.size else 0):  # bisect all brackets of a turn at once
            middle = 0.5 * (low + high)
            before = np.sign(self.potential.slope(middle)) == sign[turns]
            low, high = np.where(before, middle, low), np.where(before, high, middle)
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
        knots, values = self._knots, self.value(self._knots)
        low, high = knots[:-1].copy(), knots[1:].copy()
        least = np.minimum(values[:-1], values[1:])
        kept = np.maximum(values[:-1], values[1:]) >= level
        cut = np.flatnonzero(kept & (least < level))
        root = monotone_root(self, (low[cut], high[cut]), np.full(len(cut), level))
        rising = values[1:][cut] > values[:-1][cut]
        low[cut[rising]], high[cut[~rising]] = root[rising], root[~rising]
        found: list[tuple[float, float]] = []
        for start, end in zip(low[kept].tolist(), high[kept].tolist(), strict=True):
            joins = bool(found) and found[-1][1] == start
            found.append((found.pop()[0] if joins else start, end))
        return tuple(found)

    def target_set(self, epsilon: float) -> Intervals:
        return self.superlevel(self.peak - checked_share(epsilon) * abs(self.peak))


def window(potential: Potential, outputs: Array) -> tuple[float, float]:
    """Return where to examine a potential: around outputs, widened until its peak lies inside."""
    low, high = float(np.min(outputs)), float(np.max(outputs))
    room = 0.5 * (high - low) or 0.5 * max(abs(low), 1.0)
    ends = around = low - room, high + room
    for _ in range(12):
        value = np.asarray(potential.value(np.linspace(*ends, 513)), dtype=float)
        if not np.all(np.isfinite(value)):
            break
        # a rise towards an end counts from a millionth of all variation on
        top = float(np.max(value[1:-1])) + 1e-6 * float(np.ptp(value))
        rising = value[0] > top, value[-1] > top
        if not any(rising):
            return ends
        span = ends[1] - ends[0]
        ends = ends[0] - span * rising[0], ends[1] + span * rising[1]
    return around  # it rises for ever: as far as has been seen
