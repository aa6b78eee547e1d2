"""Potentials seen on another scale: the log-odds that the surrogate models for a probability.

The potential and its target set stay on the output, only the argument changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.errors import TargetError
from bayescfx.potentials.pieces import Levels, Pieces, between_knots
from bayescfx.potentials.potential import Intervals, LevelPotential


@dataclass(frozen=True, slots=True)
class Logit:
    """The log-odds ``u = log(y / (1 - y))`` of a probability."""

    clip: float = 1e-12  # outputs are moved at least so far away from 0 and 1

    def __post_init__(self) -> None:
        if not 0.0 < self.clip < 0.5:
            raise TargetError(f"Logit: `clip` must be between 0 and 0.5; got {self.clip!r}.")

    def forward(self, y: ArrayLike) -> Array:
        """Return the log-odds of each probability, clipped."""
        return np.asarray(scipy.special.logit(np.clip(y, self.clip, 1.0 - self.clip)))

    def inverse(self, u: ArrayLike) -> Array:
        """Return the probability of each log-odds."""
        return self.inverse_and_slope(u)[0]

    def inverse_and_slope(self, u: ArrayLike) -> tuple[Array, Array]:
        """Return probability and d probability / d log-odds together, at the price of one."""
        rest = np.exp(-np.clip(u, -350.0, 350.0))  # its square is still a number
        y = 1.0 / (1.0 + rest)
        return np.asarray(y), np.asarray(rest * y * y)

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """Return an interval of probabilities as log-odds; 0 and 1 become infinite."""
        u = scipy.special.logit(np.clip([low, high], 0.0, 1.0))
        return float(u[0]), float(u[1])


@dataclass(frozen=True, slots=True)
class Linked:
    """A potential as a function of ``u = link(y)``."""

    potential: LevelPotential
    link: Logit

    @property
    def peak(self) -> float:
        """The largest value of the potential on its own scale."""
        return self.potential.peak

    def value(self, u: ArrayLike) -> Array:
        """Return the potential at each point of the link's scale."""
        return self.potential.value(self.link.inverse(u))

    def slope(self, u: ArrayLike) -> Array:
        """Return the derivative with respect to the link's scale."""
        return self.value_and_slope(u)[1]

    def value_and_slope(self, u: ArrayLike) -> tuple[Array, Array]:
        """Return both, sharing what they have in common."""
        y, dy = self.link.inverse_and_slope(u)
        both = getattr(self.potential, "value_and_slope", None)
        value, slope = both(y) if both else (self.potential.value(y), self.potential.slope(y))
        return value, slope * dy

    def superlevel(self, level: float) -> Intervals:
        """Return where the potential is at least `level`, on the link's scale."""
        return self._mapped(self.potential.superlevel(level))

    def target_set(self, epsilon: float) -> Intervals:
        """Return where the potential is at least ``(1 - epsilon) * peak``, on the link's scale."""
        return self._mapped(self.potential.target_set(epsilon))

    def superlevels(self, levels: Array) -> Levels | None:
        """Return the superlevel set of each level ``(n,)``, if the potential knows them."""
        own = getattr(self.potential, "superlevels", None)
        if own is None:
            return None
        return [tuple(scipy.special.logit(np.clip(ends, 0.0, 1.0))) for ends in own(levels)]

    def knots(self) -> Array:
        """Return points between and beyond which the linked potential is smooth and monotone."""
        inner = self.potential.knots()
        inner = scipy.special.logit(inner[(inner > 1e-15) & (inner < 1.0 - 1e-15)])
        # pieces that resolve the logistic function; beyond the last a double can't tell it from 1
        logistic = [-36.0, -16.0, -8.0, -4.0, 0.0, 4.0, 8.0, 16.0, 36.0]
        return np.union1d(inner, logistic)

    def pieces(self, best: Array) -> Pieces:
        """Return the improvement over thresholds ``(m,)``."""
        ends = np.concatenate([[-1e9], self.knots(), [1e9]])
        sets = self.superlevels(best)
        return between_knots(self, best, ends, endless=True, sets=sets)

    def _mapped(self, intervals: Intervals) -> Intervals:
        return tuple(self.link.interval(*i) for i in intervals if i[1] >= 0.0 and i[0] <= 1.0)
