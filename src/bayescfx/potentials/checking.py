"""Is a user's own potential one? Definition "Potential": continuously differentiable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.errors import TargetError
from bayescfx.potentials.family import Potential


def check_potential(potential: Potential, outputs: ArrayLike) -> None:
    """Check once that a potential is continuously differentiable along some outputs.

    Values and slopes must be finite, one per output, and the slope must agree with central
    differences of the value on and between the outputs (Definition "Potential").

    Parameters
    ----------
    potential : Potential
        Any object with `value` and `slope`.
    outputs : array_like
        The outputs seen.

    Raises
    ------
    TargetError
        If it is not C1 there.

    Examples
    --------
    >>> from bayescfx.potentials.family import AEP
    >>> check_potential(AEP(0.0, 1.0), [0.0, 0.5, 2.0])
    """
    seen = np.unique(np.asarray(outputs, dtype=float))
    name = type(potential).__name__
    if seen.size == 0 or not np.all(np.isfinite(seen)):
        raise TargetError("`outputs` must be finite numbers, at least one.")
    span = float(seen[-1] - seen[0]) or max(abs(float(seen[0])), 1.0)
    y = np.union1d(seen, np.linspace(seen[0] - 0.1 * span, seen[-1] + 0.1 * span, 257))
    slope = _finite(potential.slope, y, f"{name}.slope")
    fine = _difference(potential, y, 1e-6 * span, name)
    coarse = _difference(potential, y, 2e-6 * span, name)
    # the two differences tell how far either can be trusted at a bend of the slope; at a jump of
    # the value they differ by half of what is missing
    trust = 1e-4 * float(np.max(np.abs(slope))) + 1.5 * np.abs(fine - coarse) + 1e-12 / span
    miss = np.abs(fine - slope)
    k = int(np.argmax(miss - trust))
    if miss[k] > trust[k]:
        raise TargetError(
            f"{name}.slope must be the derivative of {name}.value; at y = {y[k]:.6g} it is "
            f"{slope[k]:.6g}, but the value changes by {fine[k]:.6g}. Correct `slope`, or smooth "
            "a jump."
        )
    _check_jumps(potential, y, slope, name)


def _check_jumps(potential: Potential, y: Array, slope: Array, name: str) -> None:
    """Compare each step of the value with the slopes at its ends."""
    value = _finite(potential.value, y, f"{name}.value")
    dy, bend = np.diff(y), np.abs(np.diff(slope))
    miss = np.abs(np.diff(value) - 0.5 * dy * (slope[1:] + slope[:-1]))
    allowed = dy * (0.5 * bend + 0.05 * float(np.max(np.abs(slope))))
    allowed += 1e-9 * float(np.max(np.abs(value)))
    k = int(np.argmax(miss - allowed))
    if miss[k] > allowed[k]:
        raise TargetError(
            f"{name}.value must be continuous; it jumps between y = {y[k]:.6g} and "
            f"{y[k + 1]:.6g}. Smooth the jump."
        )


def _difference(potential: Potential, y: Array, step: float, name: str) -> Array:
    above = _finite(potential.value, y + step, f"{name}.value")
    below = _finite(potential.value, y - step, f"{name}.value")
    return np.asarray((above - below) / (2.0 * step))


def _finite(function: Callable[[Array], Array], y: Array, name: str) -> Array:
    """Return what a user's function gives, one finite number per output, or explain."""
    result = np.asarray(function(y), dtype=float)
    if result.shape != y.shape:
        raise TargetError(
            f"{name} must return one number per output; got shape {result.shape} for {y.shape}."
        )
    if not np.all(np.isfinite(result)):
        k = int(np.argmin(np.isfinite(result)))
        raise TargetError(f"{name} must be finite; got {result[k]} at y = {y[k]:.6g}.")
    return result
