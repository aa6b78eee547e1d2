"""Levels of the exponential-polynomial family: where ``t * exp(-t)`` crosses a value (Lemma B.1).

Symbols: ``t = z**2``, ``v = t - 1``, ``epsilon = 1 - e * level``. Near the peak ``1/e`` a level
can no longer tell how far away the peak is, so its shortfall ``epsilon`` or its depth
``-log(1 - epsilon)`` is carried instead.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.errors import TargetError

Interval: TypeAlias = tuple[float, float]
Intervals: TypeAlias = tuple[Interval, ...]

PEAK = math.exp(-1.0)

_E_LOW = 1.4456468917292502e-16  # e minus its nearest double
_SPLIT = 134217729.0  # 2**27 + 1, Dekker's constant
# v(s) with v - log(1 + v) = s**2 / 2, the expansion of Lambert's W around its branch point
_BRANCH = (1.0, 1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010, -139 / 5443200, 1 / 204120)
_EXACT = 0.1  # the expansion is exact to the last digits up to this s


class Edges(NamedTuple):
    """The two roots of ``t * exp(1 - t) = 1 - epsilon``, with ``v = t - 1`` kept exactly."""

    t_low: Array
    v_low: Array
    t_high: Array
    v_high: Array


def shortfall(level: ArrayLike) -> Array:
    """Return ``1 - e * level`` without losing the digits near the peak ``1/e``.

    Parameters
    ----------
    level : array_like
        Values of a potential with peak ``1/e``.

    Returns
    -------
    ndarray
        The relative distance of each level to the peak.

    Examples
    --------
    >>> float(shortfall(0.0))
    1.0
    """
    level = np.asarray(level, dtype=float)
    product = math.e * level
    # Dekker's product: product + rest == math.e * level exactly
    big = _SPLIT * level
    high = big - (big - level)
    low = level - high
    e_big = _SPLIT * math.e
    e_high = e_big - (e_big - math.e)
    e_low = math.e - e_high
    rest = e_low * low - (((product - e_high * high) - e_low * high) - e_high * low)
    return np.asarray((1.0 - product) - rest - _E_LOW * level)


def excess(level: ArrayLike) -> Array:
    """Return ``-log(e * level)``, the depth of a level below the peak in nats.

    Parameters
    ----------
    level : array_like
        Levels; 0 and below give ``inf``, the peak and above give 0.

    Returns
    -------
    ndarray
        The depth of each level.

    Examples
    --------
    >>> float(excess(0.0)), float(excess(1.0))
    (inf, 0.0)
    """
    level = np.asarray(level, dtype=float)
    positive = level > 0.0
    safe = np.where(positive, level, 1.0)
    near = -np.log1p(-np.clip(shortfall(safe), 0.0, 0.5))
    depth = np.where(safe < 0.25, -1.0 - np.log(safe), near)
    return np.where(positive, depth, np.inf)


def ep_edges(depth: ArrayLike) -> Edges:
    """Return where the exponential-polynomial family crosses a level (Lemma B.1).

    The roots in ``t = z**2`` are ``-W0(-level)`` and ``-W-1(-level)``, solved here in
    ``log t`` because Lambert's W in double precision is wrong near its branch point.

    Parameters
    ----------
    depth : array_like
        ``-log(e * level)``, see :func:`excess`.

    Returns
    -------
    Edges
        Roots below and above 1, and their distances to 1.

    Examples
    --------
    >>> edges = ep_edges(excess(0.2))
    >>> [round(float(t), 6) for t in (edges.t_low, edges.t_high)]
    [0.259171, 2.542641]
    """
    depth = np.asarray(depth, dtype=float)
    finite = np.where(np.isfinite(depth), depth, 1.0)
    t_low, v_low = _root(finite, -1.0)
    t_high, v_high = _root(finite, 1.0)
    inside = np.isfinite(depth)
    return Edges(
        np.where(inside, t_low, 0.0),
        np.where(inside, v_low, -1.0),
        np.where(inside, t_high, np.inf),
        np.where(inside, v_high, np.inf),
    )


def _root(depth: Array, sign: float) -> tuple[Array, Array]:
    """Solve ``v - log(1 + v) = depth`` on one side of 0; return ``t = 1 + v`` and ``v``."""
    s = sign * np.sqrt(2.0 * depth)
    small = np.clip(s, -1.0, 1.0)
    series = small * np.polynomial.polynomial.polyval(small, _BRANCH)
    # for small depth the series is exact, while the residual below loses its digits
    exact = np.abs(s) < _EXACT
    if exact.all():
        return 1.0 + series, series
    far = np.maximum(depth, 0.5 * _EXACT * _EXACT)
    if sign > 0:
        start = np.log(1.0 + far + np.log1p(s + far))
    else:
        start = np.where(far > 0.5, -1.0 - far + np.exp(-1.0 - far), 0.0)
    log_t = np.where(far < 0.5, np.log1p(series), start)
    log_t = np.where(exact, 1.5 * sign * _EXACT, log_t)
    for _ in range(3):  # Halley's method: the digits triple from at least one
        gradient = np.expm1(log_t)
        miss = gradient - log_t - far
        log_t = log_t - miss * gradient / (gradient * gradient - 0.5 * miss * (gradient + 1.0))
    v = np.where(exact, series, np.expm1(log_t))
    t = np.where(exact, 1.0 + series, np.exp(log_t))
    return t, v


def checked_epsilon(epsilon: float) -> float:
    """Return `epsilon` as a float if it is in [0, 1), else explain."""
    if not 0.0 <= epsilon < 1.0:
        raise TargetError(f"`epsilon` must be at least 0 and less than 1; got {epsilon!r}.")
    return float(epsilon)
