"""The potential of a change either way: its peak is everything outside an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.checks import as_numbers, check, is_number
from bayescfx.errors import TargetError
from bayescfx.potentials.ep_family import PEAK, check_width, depth, ep_edges
from bayescfx.potentials.pieces import Levels
from bayescfx.potentials.potential import (
    Intervals,
    LevelPotential,
    checked_number,
    checked_share,
)


@dataclass(frozen=True, slots=True)
class Valley(LevelPotential):
    r"""Potential of a change by at least `width` either way: at its peak from there on.

    .. math:: \rho(y) = z^2 e^{-z^2}, \quad z = \min(1,\ |y - \text{origin}| / \text{width})

    Up to its peak it is the :class:`SEP`; beyond, it stays there. It is therefore continuously
    differentiable, and 0 at the origin.

    Parameters
    ----------
    origin : float
        The output that is to change, f(query).
    width : float
        How far it should move at least; positive.

    Examples
    --------
    >>> potential = Valley(10.0, 2.0)
    >>> potential.superlevel(potential.peak)
    ((-inf, 8.0), (12.0, inf))
    >>> float(potential.value(10.0)), float(potential.value(-50.0)) == potential.peak
    (0.0, True)
    """

    origin: float
    width: float
    peak = PEAK  # the largest value, taken at both edges and beyond

    def __post_init__(self) -> None:
        for key in ("origin", "width"):
            object.__setattr__(self, key, checked_number(key, "Valley", getattr(self, key)))
        check_width("Valley", self.origin, self.width)

    def value(self, y: ArrayLike) -> Array:
        return self.value_and_slope(y)[0]

    def slope(self, y: ArrayLike) -> Array:
        return self.value_and_slope(y)[1]

    def value_and_slope(self, y: ArrayLike) -> tuple[Array, Array]:
        """Return both at the price of one."""
        away = as_numbers("y", y, TargetError) - self.origin
        z = np.minimum(np.abs(away), self.width) / self.width
        decay = np.exp(-z * z)
        slope = np.sign(away) * 2.0 * z * (1.0 - z) * (1.0 + z) * decay / self.width
        return np.minimum(z * z * decay, PEAK), np.asarray(slope)

    def superlevel(self, level: float) -> Intervals:
        """Return where the potential is at least `level`; at 0, the limit from above."""
        check(is_number(level), "level", "a number", level, TargetError)
        if level > PEAK:
            return ()
        if level < 0.0:
            return ((-math.inf, math.inf),)
        return self._outside(float(depth(level)))

    def target_set(self, epsilon: float) -> Intervals:
        return self._outside(-math.log1p(-checked_share(epsilon)))

    def superlevels(self, levels: Array) -> Levels:
        """Return the superlevel set of each level ``(n,)``, all below the peak."""
        away = self._edges(depth(levels))
        is_negative = levels < 0.0  # the whole line, once
        below = np.where(is_negative, np.inf, self.origin - away)
        above = np.where(is_negative, np.inf, self.origin + away)
        endless = np.full(levels.shape, np.inf)
        return [(-endless, below), (above, endless)]

    def knots(self) -> Array:
        return np.array([self.origin - self.width, self.origin, self.origin + self.width])

    def _edges(self, depths: ArrayLike) -> Array:
        """Return how far from the origin levels of given :func:`depth` are reached."""
        inner, _ = ep_edges(depths)[0]
        return np.asarray(self.width * np.sqrt(inner))

    def _outside(self, depth: float) -> Intervals:
        """Return one superlevel set."""
        away = float(self._edges(depth))
        return ((-math.inf, self.origin - away), (self.origin + away, math.inf))
