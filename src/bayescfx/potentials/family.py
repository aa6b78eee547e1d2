"""Potentials: how much each output of the model is worth (Section 2 of the paper).

A potential ``rho`` gives every output ``y`` a value; its superlevel sets are the target sets of
Definition "Potential Duality". Three families are provided, all with the same peak ``1/e``:

* :class:`AEP` and :class:`SEP`, the exponential-polynomial family (Definition "EP Family");
* :class:`Plateau`, for ranges: the peak *is* the range asked for.

Symbols: ``z = (y - origin) / width``, ``t = z**2``, ``v = t - 1``. Near the peak the level is
carried as ``epsilon = 1 - level / peak``, because ``level`` itself can no longer tell how far the
peak is. The paper's limits of integration print Lambert's W at ``rho*``; they need ``-rho*``, and
both radii of the target set move with ``epsilon`` (the footnote calls the inner one fixed).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.arrays import Array, Mask
from bayescfx.errors import TargetError
from bayescfx.potentials.levels import PEAK, Interval, Intervals, checked_epsilon, ep_edges, excess
from bayescfx.potentials.plateau import Plateau

__all__ = [
    "AEP",
    "PEAK",
    "SEP",
    "Interval",
    "Intervals",
    "LevelPotential",
    "Plateau",
    "Potential",
    "contains",
    "monotone_root",
]

_NOISE = 1e-11  # of a bracket, the most that roundings may leave open
_RESOLUTION = 1e-17  # of a bracket, below which a root at zero is not looked for
_FAR = 30.0  # exp(-z**2) is 0 in double precision from here on


@runtime_checkable
class Potential(Protocol):
    """What every potential has: a value and a slope for each output."""

    def value(self, y: ArrayLike) -> Array:
        """Return the potential of each output."""

    def slope(self, y: ArrayLike) -> Array:
        """Return the derivative of the potential at each output."""


@runtime_checkable
class LevelPotential(Potential, Protocol):
    """A potential that also knows its peak and its superlevel sets."""

    @property
    def peak(self) -> float:
        """The largest value."""

    def superlevel(self, level: float) -> Intervals:
        """Return the intervals where the potential is at least `level`."""

    def target_set(self, epsilon: float) -> Intervals:
        """Return the intervals where the potential is at least ``(1 - epsilon) * peak``."""

    def knots(self) -> Array:
        """Return points between which the potential is smooth and monotone."""


def _radii(depth: float) -> tuple[float, float, float, float]:
    """Return both radii ``z`` of a superlevel set, and their distances to 1."""
    edges = ep_edges(depth)
    low, high = math.sqrt(float(edges.t_low)), math.sqrt(float(edges.t_high))
    return low, high, float(edges.v_low) / (1.0 + low), _offset(float(edges.v_high), high)


def _offset(v: float, z: float) -> float:
    return math.inf if math.isinf(v) else v / (1.0 + z)


def _ep_interval(origin: float, width: float, side: int, depth: float) -> Interval:
    """Return one superlevel interval in output units."""
    low, high, below, above = _radii(depth)
    step = side * width
    # far from the peak add to the origin, close to it add to the peak: no digits are lost
    inner = origin + step * low if low < 0.5 else (origin + step) + step * below
    outer = origin + step * high if high > 2.0 else (origin + step) + step * above
    return (inner, outer) if side > 0 else (outer, inner)


def _checked_shape(owner: object, origin: float, width: float) -> None:
    """Store `origin` and `width` as floats, or explain what is wrong with them."""
    name = type(owner).__name__
    for key, number in (("origin", origin), ("width", width)):
        if not math.isfinite(number):
            raise TargetError(f"{name}: `{key}` must be a finite number; got {number!r}.")
        object.__setattr__(owner, key, float(number))
    if not width > 0.0:
        raise TargetError(
            f"{name}: `width` must be positive; got {width!r}. "
            "It is the size of the change asked for."
        )
    if origin + width == origin or not math.isfinite(abs(origin) + width):
        raise TargetError(
            f"{name}: `width` {width!r} is lost in rounding beside `origin` {origin!r}. "
            "Ask for a larger change."
        )


@dataclass(frozen=True, slots=True)
class AEP:
    """Asymmetric exponential-polynomial potential: change the output by `width` to one side.

    ``rho(y) = z**2 * exp(-z**2)`` with ``z = max(0, side * (y - origin) / width)``; the peak
    ``1/e`` is at ``origin + side * width`` (Definition "EP Family").

    Parameters
    ----------
    origin : float
        The output that is to change, f(query).
    width : float
        How far it should move; positive.
    side : {1, -1}
        Upwards or downwards.

    Examples
    --------
    >>> potential = AEP(0.0, 2.0, side=-1)
    >>> float(potential.value(-2.0)) == potential.peak, float(potential.value(2.0))
    (True, 0.0)
    """

    origin: float
    width: float
    side: Literal[1, -1] = 1

    def __post_init__(self) -> None:
        _checked_shape(self, self.origin, self.width)
        if self.side not in (1, -1):
            raise TargetError(f"AEP: `side` must be 1 (up) or -1 (down); got {self.side!r}.")

    @property
    def peak(self) -> float:
        """The largest value, ``1/e``."""
        return PEAK

    def value(self, y: ArrayLike) -> Array:
        """Return the potential of each output."""
        t = np.square(self._radius(y))
        return np.asarray(np.minimum(t * np.exp(-t), PEAK))

    def slope(self, y: ArrayLike) -> Array:
        """Return the derivative at each output."""
        z = self._radius(y)
        return np.asarray(self.side * 2.0 * z * (1.0 - z) * (1.0 + z) * np.exp(-z * z) / self.width)

    def superlevel(self, level: float) -> Intervals:
        """Return where the potential is at least `level`; at 0, the limit from above."""
        if level > PEAK:
            return ()
        if level < 0.0:
            return ((-math.inf, math.inf),)
        return (_ep_interval(self.origin, self.width, self.side, float(excess(level))),)

    def target_set(self, epsilon: float) -> Intervals:
        """Return where the potential is at least ``(1 - epsilon) * peak``."""
        depth = -math.log1p(-checked_epsilon(epsilon))
        return (_ep_interval(self.origin, self.width, self.side, depth),)

    def knots(self) -> Array:
        """Return points between which the potential is smooth and monotone."""
        return np.sort(self.origin + self.side * self.width * _EP_KNOTS)

    def _radius(self, y: ArrayLike) -> Array:
        distance = self.side * (np.asarray(y, dtype=float) - self.origin)
        return np.asarray(np.clip(distance, 0.0, _FAR * self.width) / self.width)


@dataclass(frozen=True, slots=True)
class SEP:
    """Symmetric exponential-polynomial potential: change the output by `width` either way.

    The sum of the two :class:`AEP` (Definition "EP Family").

    Parameters
    ----------
    origin : float
        The output that is to change, f(query).
    width : float
        How far it should move; positive.

    Examples
    --------
    >>> len(SEP(0.0, 1.0).superlevel(0.2))
    2
    """

    origin: float
    width: float

    def __post_init__(self) -> None:
        _checked_shape(self, self.origin, self.width)

    @property
    def peak(self) -> float:
        """The largest value, ``1/e``."""
        return PEAK

    @property
    def sides(self) -> tuple[AEP, AEP]:
        """The two one-sided potentials whose sum this is, lower one first."""
        return AEP(self.origin, self.width, -1), AEP(self.origin, self.width, 1)

    def value(self, y: ArrayLike) -> Array:
        """Return the potential of each output."""
        below, above = self.sides
        return below.value(y) + above.value(y)

    def slope(self, y: ArrayLike) -> Array:
        """Return the derivative at each output."""
        below, above = self.sides
        return below.slope(y) + above.slope(y)

    def superlevel(self, level: float) -> Intervals:
        """Return where the potential is at least `level`; at 0, the limit from above."""
        below, above = self.sides
        if level < 0.0:
            return above.superlevel(level)
        return below.superlevel(level) + above.superlevel(level)

    def target_set(self, epsilon: float) -> Intervals:
        """Return where the potential is at least ``(1 - epsilon) * peak``."""
        below, above = self.sides
        return below.target_set(epsilon) + above.target_set(epsilon)

    def knots(self) -> Array:
        """Return points between which the potential is smooth and monotone."""
        below, above = self.sides
        return np.union1d(below.knots(), above.knots())


# extrema of z**2 exp(-z**2), and steps over which it falls moderately
_EP_KNOTS = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 27.3])


def monotone_root(potential: Potential, ends: tuple[ArrayLike, ArrayLike], level: Array) -> Array:
    """Solve ``rho(y) = level`` where the potential is monotone, by Newton inside a bracket.

    Parameters
    ----------
    potential : Potential
        The potential.
    ends : (low, high)
        The bracket, one for all levels or one for each; the levels lie between the potential's
        values at its ends.
    level : ndarray of shape (n,)
        The levels.

    Returns
    -------
    ndarray of shape (n,)
        The roots.

    Examples
    --------
    >>> monotone_root(AEP(0.0, 1.0), (0.0, 1.0), np.array([0.2])).round(6).tolist()
    [0.509089]
    """
    low, high = (np.array(np.broadcast_to(np.clip(e, -1e100, 1e100), level.shape)) for e in ends)
    rising = potential.value(high) > potential.value(low)
    span = high - low
    root = 0.5 * (low + high)
    at = np.arange(len(level))  # those that still move
    for _ in range(100):
        y, a, c = root[at], low[at], high[at]
        miss = potential.value(y) - level[at]
        above = (miss > 0.0) == rising[at]
        a, c = np.where(above, a, y), np.where(above, y, c)
        slope = potential.slope(y)
        level_ground = slope == 0.0
        slope = np.where(level_ground, 1.0, slope)
        newton = y - miss / slope
        inside = (newton >= a) & (newton <= c) & ~level_ground
        step = np.where(inside, newton, 0.5 * (a + c))
        root[at], low[at], high[at] = step, a, c
        # beyond this the roundings of the value decide
        noise = np.minimum(4e-16 * np.abs(level[at] / slope), _NOISE * span[at])
        at = at[np.abs(step - y) > 4e-16 * np.abs(y) + noise + _RESOLUTION * span[at]]
        if not at.size:
            break
    return np.asarray(root)


def contains(intervals: Sequence[Interval], outputs: ArrayLike) -> Mask:
    """Return which outputs lie in a union of closed intervals.

    Parameters
    ----------
    intervals : sequence of (low, high)
        The union.
    outputs : array_like
        The outputs.

    Returns
    -------
    ndarray of bool
        One entry per output.

    Examples
    --------
    >>> contains(((0.0, 1.0), (2.0, 3.0)), [0.5, 1.5]).tolist()
    [True, False]
    """
    outputs = np.asarray(outputs, dtype=float)
    found = np.zeros(outputs.shape, dtype=bool)
    for low, high in intervals:
        found |= (outputs >= low) & (outputs <= high)
    return found
