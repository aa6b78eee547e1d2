"""Potentials: the worth of each output of the model (Section 2 of the paper).

Definition "Potential": a continuously differentiable function of the output that is not maximal
at the query. Definition "Potential Duality": its superlevel sets are the target sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.arrays import Array, Mask
from bayescfx.checks import check, is_number, shown
from bayescfx.errors import TargetError

Intervals: TypeAlias = tuple[tuple[float, float], ...]


@runtime_checkable
class Potential(Protocol):
    """A potential: a value and a slope for each output."""

    def value(self, y: ArrayLike) -> Array:
        """Return the potential of each output."""

    def slope(self, y: ArrayLike) -> Array:
        """Return the derivative of the potential at each output."""


@runtime_checkable
class LevelPotential(Potential, Protocol):
    """A potential that also knows its peak and its superlevel sets.

    This is all that an accurate log EI needs. A family may add ``superlevels(levels)`` and
    ``pieces(best)`` (:mod:`bayescfx.potentials.pieces`) to be faster or exact.
    """

    @property
    def peak(self) -> float:
        """The largest value."""

    def superlevel(self, level: float) -> Intervals:
        """Return the intervals where the potential is at least `level`."""

    def target_set(self, epsilon: float) -> Intervals:
        """Return the intervals where the potential is at least ``(1 - epsilon) * peak``."""

    def knots(self) -> Array:
        """Return points between and beyond which the potential is smooth and monotone."""


def checked_share(value: float, name: str = "epsilon") -> float:
    """Return `value` as a float if it is in [0, 1), else raise."""
    is_share = is_number(value, 0) and value < 1
    check(is_share, name, "at least 0 and less than 1", value, TargetError)
    return float(value)


def checked_number(name: str, owner: str, value: object) -> float:
    """Return `value` as a float if it is a finite number, else raise."""
    if not is_number(value):
        kind = "a finite number" if type(value) in (int, float) else "a number"
        raise TargetError(f"{owner}: `{name}` must be {kind}; got {shown(value)}.")
    return float(value)  # type: ignore[arg-type]  # it is a number


def misses(acceptance: Intervals, y: Array) -> Array:
    """Return how far outputs ``(n,)`` are from the nearest accepted one; infinite without any."""
    found = np.full(len(y), np.inf)
    for low, high in acceptance:
        found = np.minimum(found, np.maximum(np.maximum(low - y, y - high), 0.0))
    return found


def contains(intervals: Intervals, outputs: ArrayLike) -> Mask:
    """Return which outputs lie in a union of closed intervals."""
    outputs = np.asarray(outputs, dtype=float)
    inside = np.zeros(outputs.shape, dtype=bool)
    for low, high in intervals:
        inside |= (outputs >= low) & (outputs <= high)
    return inside


def check_potential(potential: Potential, outputs: ArrayLike) -> None:
    """Raise unless a user's potential is continuously differentiable along some outputs."""
    seen = np.unique(np.asarray(outputs, dtype=float))
    if seen.size == 0 or not np.all(np.isfinite(seen)):
        raise TargetError("`outputs` must be finite numbers, at least one.")
    span = float(seen[-1] - seen[0]) or max(abs(float(seen[0])), 1.0)
    y = np.union1d(seen, np.linspace(seen[0] - 0.1 * span, seen[-1] + 0.1 * span, 257))
    slope = _finite(potential.slope, y, f"{type(potential).__name__}.slope")
    _check_slope(potential, y, slope, span)
    _check_continuity(potential, y, slope)


def _check_slope(potential: Potential, y: Array, slope: Array, span: float) -> None:
    """Raise unless slopes at outputs `y` ``(n,)`` are the derivatives of the value."""
    name = type(potential).__name__

    def difference(step: float) -> Array:
        above = _finite(potential.value, y + step, f"{name}.value")
        return (above - _finite(potential.value, y - step, f"{name}.value")) / (2.0 * step)

    fine = difference(1e-6 * span)
    coarse = difference(2e-6 * span)
    steepest = float(np.max(np.abs(slope)))
    # The two differences tell how far either can be trusted at a bend of the slope; at a jump of
    # the value they differ by half of what is missing.
    miss = np.abs(fine - slope) - 1e-4 * steepest - 1.5 * np.abs(fine - coarse) - 1e-12 / span
    k = int(np.argmax(miss))
    if miss[k] > 0.0:
        raise TargetError(
            f"{name}.slope must be the derivative of {name}.value; at y = {y[k]:.6g} it is "
            f"{slope[k]:.6g}, but the value changes by {fine[k]:.6g}. Correct `slope`, or smooth "
            "a jump."
        )


def _check_continuity(potential: Potential, y: Array, slope: Array) -> None:
    """Raise if the value steps by more than the slopes at the ends of the step explain."""
    name = type(potential).__name__
    value = _finite(potential.value, y, f"{name}.value")
    dy = np.diff(y)
    steepest = float(np.max(np.abs(slope)))
    miss = np.abs(np.diff(value) - 0.5 * dy * (slope[1:] + slope[:-1]))
    miss -= dy * (0.5 * np.abs(np.diff(slope)) + 0.05 * steepest)
    k = int(np.argmax(miss))
    if miss[k] > 1e-9 * float(np.max(np.abs(value))):
        raise TargetError(
            f"{name}.value must be continuous; it jumps between y = {y[k]:.6g} and "
            f"{y[k + 1]:.6g}. Smooth the jump."
        )


def _finite(function: Callable[[Array], Array], y: Array, name: str) -> Array:
    """Return the values of a user's function if they are one finite number per output."""
    result = np.asarray(function(y), dtype=float)
    if result.shape != y.shape:
        raise TargetError(
            f"{name} must return one number per output; got shape {result.shape} for {y.shape}."
        )
    if not np.all(np.isfinite(result)):
        k = int(np.argmin(np.isfinite(result)))
        raise TargetError(f"{name} must be finite; got {result[k]} at y = {y[k]:.6g}.")
    return result
