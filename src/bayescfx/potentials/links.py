"""Potentials seen through something else: another scale, or samples.

:class:`Linked` shows a potential on the scale that the surrogate models (log-odds for a
probability): the potential and its target set stay on the output, only the argument changes.
:class:`Sampled` finds peak and superlevel sets of a potential of which only value and slope
are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import scipy
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.errors import TargetError
from bayescfx.potentials.family import AEP, SEP, LevelPotential, Plateau, Potential, monotone_root
from bayescfx.potentials.levels import PEAK, Intervals, ep_edges, excess

# panels that resolve the logistic function; beyond the last a double can't tell it from 1
_LOGISTIC = np.array([-36.0, -16.0, -8.0, -4.0, 0.0, 4.0, 8.0, 16.0, 36.0])
_STEEPEST = 350.0  # log-odds whose exponential, squared, is still a number
_GRID = 2049
_PANELS = 25


@dataclass(frozen=True, slots=True)
class Logit:
    """The log-odds ``u = log(y / (1 - y))`` of a probability.

    Parameters
    ----------
    clip : float
        Outputs are moved at least this far away from 0 and 1 before the logarithm.

    Examples
    --------
    >>> float(Logit().forward(0.5)), float(Logit().inverse(0.0)), float(Logit().slope(0.0))
    (0.0, 0.5, 0.25)
    """

    clip: float = 1e-12

    def __post_init__(self) -> None:
        if not 0.0 < self.clip < 0.5:
            raise TargetError(f"Logit: `clip` must be between 0 and 0.5; got {self.clip!r}.")

    def forward(self, y: ArrayLike) -> Array:
        """Return the log-odds of each probability, clipped."""
        return np.asarray(scipy.special.logit(np.clip(y, self.clip, 1.0 - self.clip)))

    def inverse(self, u: ArrayLike) -> Array:
        """Return the probability of each log-odds."""
        return self.inverse_and_slope(u)[0]

    def slope(self, u: ArrayLike) -> Array:
        """Return d probability / d log-odds."""
        return self.inverse_and_slope(u)[1]

    def inverse_and_slope(self, u: ArrayLike) -> tuple[Array, Array]:
        """Return probability and d probability / d log-odds together, at the price of one."""
        rest = np.exp(-np.clip(u, -_STEEPEST, _STEEPEST))
        y = 1.0 / (1.0 + rest)
        return np.asarray(y), np.asarray(rest * y * y)

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """Return an interval of probabilities as log-odds; 0 and 1 become infinite."""
        ends = (float(scipy.special.logit(min(max(y, 0.0), 1.0))) for y in (low, high))
        return (next(ends), next(ends))


@dataclass(frozen=True, slots=True)
class Linked:
    """A potential as a function of ``u = link(y)``.

    Parameters
    ----------
    potential : LevelPotential
        The potential on the output's own scale.
    link : Logit
        The scale of the surrogate.

    Examples
    --------
    >>> from bayescfx.potentials.family import AEP
    >>> linked = Linked(AEP(0.9, 0.4, side=-1), Logit())
    >>> bool(np.isclose(linked.value(0.0), linked.peak))
    True
    """

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
        return self.potential.slope(self.link.inverse(u)) * self.link.slope(u)

    def superlevel(self, level: float) -> Intervals:
        """Return where the potential is at least `level`, on the link's scale."""
        return self._mapped(self.potential.superlevel(level))

    def target_set(self, epsilon: float) -> Intervals:
        """Return where the potential is at least ``(1 - epsilon) * peak``, on the link's scale."""
        return self._mapped(self.potential.target_set(epsilon))

    def knots(self) -> Array:
        """Return points between which the linked potential is smooth and monotone."""
        inner = self.potential.knots()
        inner = inner[(inner > 1e-15) & (inner < 1.0 - 1e-15)]
        return np.concatenate(
            ([-math.inf], np.union1d(scipy.special.logit(inner), _LOGISTIC), [math.inf])
        )

    def _mapped(self, intervals: Intervals) -> Intervals:
        mapped = []
        for low, high in intervals:
            if high >= 0.0 and low <= 1.0:
                mapped.append(self.link.interval(low, high))
        return tuple(mapped)


def value_and_slope(potential: Potential, y: Array) -> tuple[Array, Array]:
    """Return value and slope of a potential together, sharing what they have in common."""
    if not isinstance(potential, Linked):
        return potential.value(y), potential.slope(y)
    inner, slope = potential.link.inverse_and_slope(y)
    value, d_inner = value_and_slope(potential.potential, inner)
    return value, d_inner * slope


def level_sets(potential: Potential, level: Array) -> list[tuple[Array, Array]] | None:
    """Return where a potential is at least each level, if that is known in closed form.

    Parameters
    ----------
    potential : Potential
        The potential.
    level : ndarray of shape (n,)
        The levels, below the peak.

    Returns
    -------
    list of (low, high) or None
        The same number of intervals for each level, some possibly empty; None for a
        potential that isn't known in closed form.
    """
    if isinstance(potential, Linked):
        inner = level_sets(potential.potential, level)
        if inner is None:
            return None
        return [(_logit(low), _logit(high)) for low, high in inner]
    if isinstance(potential, Plateau):
        reach = np.sqrt((PEAK - level) / np.maximum(level, 1e-300)) * potential.width
        reach = np.where(level > 0.0, reach, np.inf)
        return [(potential.low - reach, potential.high + reach)]
    if isinstance(potential, AEP):
        return [_ep_set(potential, level)]
    if isinstance(potential, SEP):
        below, above = (_ep_set(side, level) for side in potential.sides)
        # a negative level takes the whole line, once
        return [(below[0], below[1]), (np.where(level < 0.0, np.inf, above[0]), above[1])]
    return None


def _ep_set(potential: AEP, level: Array) -> tuple[Array, Array]:
    """Return the superlevel interval of each level; the whole line for a negative one."""
    edges = ep_edges(excess(np.minimum(level, PEAK)))
    step = potential.side * potential.width
    peak = potential.origin + step
    ends = []
    for t, v in ((edges.t_low, edges.v_low), (edges.t_high, edges.v_high)):
        z = np.sqrt(t)
        beside = np.abs(v) < 0.5  # there, distances are taken from the peak
        near = peak + step * (np.where(beside, v, 0.0) / (1.0 + np.where(beside, z, 0.0)))
        ends.append(np.where(beside, near, potential.origin + step * z))
    low, high = ends if potential.side > 0 else ends[::-1]
    return np.where(level < 0.0, -np.inf, low), np.where(level < 0.0, np.inf, high)


def _logit(y: Array) -> Array:
    return np.asarray(scipy.special.logit(np.clip(y, 0.0, 1.0)))


@dataclass(frozen=True, slots=True)
class Sampled:
    """A potential known by value and slope only, examined between two outputs.

    Parameters
    ----------
    potential : Potential
        Anything with `value` and `slope`.
    low, high : float
        Where it is examined; outside nothing is known and nothing is counted.

    Examples
    --------
    >>> from bayescfx.potentials.family import AEP
    >>> sampled = Sampled(AEP(0.0, 1.0), -2.0, 4.0)
    >>> bool(np.isclose(sampled.peak, AEP(0.0, 1.0).peak)), len(sampled.superlevel(0.2))
    (True, 1)
    """

    potential: Potential
    low: float
    high: float
    _knots: Array = field(init=False, repr=False, compare=False)
    _peak: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise TargetError(
                f"Sampled: `low` must be below `high`; got {self.low!r} and {self.high!r}."
            )
        grid = np.linspace(self.low, self.high, _GRID)
        slope = np.sign(self.potential.slope(grid))
        turns = np.flatnonzero(slope[:-1] * slope[1:] < 0.0)
        found = self._turning_points(grid[turns], grid[turns + 1], slope[turns])
        flat = grid[1:-1][(slope[1:-1] == 0.0) & ((slope[:-2] != 0.0) | (slope[2:] != 0.0))]
        panels = np.linspace(self.low, self.high, _PANELS)
        knots = np.unique(np.concatenate([panels, flat, found]))
        object.__setattr__(self, "_knots", knots)
        object.__setattr__(self, "_peak", float(np.max(self.potential.value(knots))))

    @property
    def peak(self) -> float:
        """The largest value found."""
        return self._peak

    def value(self, y: ArrayLike) -> Array:
        """Return the potential of each output."""
        return np.asarray(self.potential.value(np.asarray(y, dtype=float)), dtype=float)

    def slope(self, y: ArrayLike) -> Array:
        """Return the derivative at each output."""
        return np.asarray(self.potential.slope(np.asarray(y, dtype=float)), dtype=float)

    def knots(self) -> Array:
        """Return points between which the potential is taken to be smooth and monotone."""
        return self._knots

    def superlevel(self, level: float) -> Intervals:
        """Return the intervals where the potential is at least `level`, by bracketing."""
        if level > self.peak:
            return ()
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
        """Return where the potential is at least ``(1 - epsilon) * peak``."""
        if not 0.0 <= epsilon < 1.0:
            raise TargetError(f"`epsilon` must be at least 0 and less than 1; got {epsilon!r}.")
        return self.superlevel(self.peak - epsilon * abs(self.peak))

    def _turning_points(self, low: Array, high: Array, sign: Array) -> Array:
        """Return where the slope loses its sign, by bisection of all brackets at once."""
        for _ in range(60 if low.size else 0):
            middle = 0.5 * (low + high)
            before = np.sign(self.potential.slope(middle)) == sign
            low, high = np.where(before, middle, low), np.where(before, high, middle)
        return np.asarray(0.5 * (low + high))
