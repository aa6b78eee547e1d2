"""The potential of a range: its peak *is* the range asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.errors import TargetError
from bayescfx.potentials.levels import PEAK, Intervals, checked_epsilon


@dataclass(frozen=True, slots=True)
class Plateau:
    """Potential of a range: at its peak from `low` to `high`, falling off outside.

    ``rho(y) = 1 / (e * (1 + z**2))`` with ``z`` the distance to the range in units of `width`.
    The algebraic tail is deliberate: it is C1 with a Lipschitz slope, falls like the EP family
    close to the range, and its slope is still a normal number a hundred orders of magnitude away,
    where an exponential tail has long underflowed and leaves a search without a direction.

    Parameters
    ----------
    low, high : float
        The range; one end may be infinite.
    width : float
        Distance at which the potential is half its peak; positive.

    Examples
    --------
    >>> potential = Plateau(1.0, 2.0, width=0.5)
    >>> potential.superlevel(potential.peak)
    ((1.0, 2.0),)
    >>> float(potential.value(2.5)) == potential.peak / 2
    True
    """

    low: float
    high: float
    width: float

    def __post_init__(self) -> None:
        if math.isnan(self.low) or math.isnan(self.high) or not self.low <= self.high:
            raise TargetError(
                f"Plateau: `low` must not exceed `high`; got {self.low!r} and {self.high!r}."
            )
        if math.isinf(self.low) and math.isinf(self.high):
            raise TargetError("Plateau: one of `low` and `high` must be finite; got both infinite.")
        if not (math.isfinite(self.width) and self.width > 0.0):
            raise TargetError(f"Plateau: `width` must be positive; got {self.width!r}.")
        for key in ("low", "high", "width"):
            object.__setattr__(self, key, float(getattr(self, key)))

    @property
    def peak(self) -> float:
        """The largest value, ``1/e``, taken on the whole range."""
        return PEAK

    def value(self, y: ArrayLike) -> Array:
        """Return the potential of each output."""
        return np.asarray(PEAK / (1.0 + np.square(self._distance(y))))

    def slope(self, y: ArrayLike) -> Array:
        """Return the derivative at each output."""
        z = self._distance(y)
        fall = 1.0 + z * z
        return np.asarray(-2.0 * PEAK / self.width * (z / fall) / fall)

    def superlevel(self, level: float) -> Intervals:
        """Return where the potential is at least `level`."""
        if level > PEAK:
            return ()
        if level <= 0.0:
            return ((-math.inf, math.inf),)
        # distance = sqrt(epsilon / (1 - epsilon)), (PEAK - level) is exact near the peak
        return self._widened(math.sqrt((PEAK - level) / level))

    def target_set(self, epsilon: float) -> Intervals:
        """Return where the potential is at least ``(1 - epsilon) * peak``."""
        epsilon = checked_epsilon(epsilon)
        return self._widened(math.sqrt(epsilon / (1.0 - epsilon)))

    def knots(self) -> Array:
        """Return points between which the potential is smooth and monotone."""
        steps = self.width * np.concatenate(([0.0], 4.0 ** np.arange(0, 24)))
        ends = [end for end in (self.low, self.high) if math.isfinite(end)]
        return np.unique(np.concatenate([self.low - steps, self.high + steps, ends]))

    def _widened(self, distance: float) -> Intervals:
        step = self.width * distance
        return ((self.low - step, self.high + step),)

    def _distance(self, y: ArrayLike) -> Array:
        """Return the signed distance to the range in widths, 0 inside."""
        y = np.asarray(y, dtype=float)
        outside = np.maximum(y - self.high, 0.0) - np.maximum(self.low - y, 0.0)
        return np.asarray(np.clip(outside, -1e100 * self.width, 1e100 * self.width) / self.width)
