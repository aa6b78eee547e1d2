"""Classic expected improvement, for the naive method, and the probability of a target set."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike

from bayescfx.acquisition.integral import LOG_ROOT_TWO_PI, LONG_HULL, LogIntegral, hull
from bayescfx.arrays import Array
from bayescfx.potentials import Intervals, contains
from bayescfx.potentials.pieces import LONG, SHORT


def expected_improvement(mean: ArrayLike, std: ArrayLike, best: ArrayLike) -> Array:
    """Return the classic expected improvement ``E[max(0, y - best)]`` at ``(n,)`` points.

    >>> expected_improvement([1.0, 0.0], [0.0, 1.0], 0.0).round(6).tolist()
    [1.0, 0.398942]
    """
    return np.exp(log_expected_improvement(mean, std, best).value)


def log_expected_improvement(mean: ArrayLike, std: ArrayLike, best: ArrayLike) -> LogIntegral:
    """Return the logarithm of :func:`expected_improvement`, stable everywhere, and its gradient."""
    mean, std, best = np.broadcast_arrays(
        np.asarray(mean, float), np.asarray(std, float), np.asarray(best, float)
    )
    gain = mean - best
    alive = std > 0.0
    s = np.where(alive, std, 1.0)
    u = np.clip(gain / s, -1e100, 1e100)
    # EI = s (u Phi(u) + phi(u)); below -1 as phi(u) (1 - |u| Mills(|u|)), without cancellation
    low = np.minimum(u, -1.0)
    high = np.maximum(u, -1.0)
    tail = _mills_rest(-low)
    phi = np.exp(-0.5 * high * high) / math.sqrt(2.0 * math.pi)
    body = high * scipy.special.ndtr(high) + phi
    value = np.where(u < -1.0, np.log(tail) - 0.5 * u * u - LOG_ROOT_TWO_PI, np.log(body))
    mills = math.sqrt(0.5 * math.pi) * scipy.special.erfcx(-low / math.sqrt(2.0))
    d_mean = np.where(u < -1.0, mills / tail, scipy.special.ndtr(high) / body) / s
    d_std = np.where(u < -1.0, 1.0 / tail, phi / body) / s
    positive = gain > 0.0
    safe = np.where(positive, gain, 1.0)
    return LogIntegral(
        np.where(alive, value + np.log(s), np.where(positive, np.log(safe), -np.inf)),
        np.where(alive, d_mean, np.where(positive, 1.0 / safe, 0.0)),
        np.where(alive, d_std, 0.0),
    )


def _mills_rest(x: Array) -> Array:
    """Return ``1 - x * (1 - Phi(x)) / phi(x)`` for x >= 1, without cancellation."""
    near = np.minimum(x, 30.0)
    direct = 1.0 - near * math.sqrt(0.5 * math.pi) * scipy.special.erfcx(near / math.sqrt(2.0))
    w = np.square(1.0 / np.maximum(x, 30.0))
    series = np.ones_like(w)
    for odd in (13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = 1.0 - odd * w * series
    return np.where(x > 30.0, w * series, direct)


def log_probability_in(mean: ArrayLike, std: ArrayLike, intervals: Intervals) -> LogIntegral:
    """Return log P(y in a union of disjoint intervals) ``(n,)``, -inf where it is exactly 0.

    >>> log_probability_in([0.0], [1.0], ((0.0, float("inf")),)).value.round(6).tolist()
    [-0.693147]
    """
    mean = np.asarray(mean, float)
    std = np.asarray(std, float)
    if mean.shape != std.shape:
        mean, std = np.broadcast_arrays(mean, std)
    shape = mean.shape
    mean = mean.ravel()
    std = std.ravel()
    zero = np.flatnonzero(std <= 1e-80)
    s = std.copy()
    s[zero] = 1.0
    parts = [_log_mass(low, high, mean, s) for low, high in intervals if low < high]
    out = parts[0] if parts else np.repeat([[-np.inf], [0.0], [0.0]], len(mean), axis=1)
    for part in parts[1:]:
        value = np.logaddexp(out[0], part[0])
        out[1:] = np.exp(out[0] - value) * out[1:] + np.exp(part[0] - value) * part[1:]
        out[0] = value
    if zero.size:
        out[:, zero] = 0.0
        out[0, zero[~contains(intervals, mean[zero])]] = -np.inf
    return LogIntegral(*out.reshape(3, *shape))


def _log_mass(low: float, high: float, mean: Array, std: Array) -> Array:
    """Return log P(low <= y <= high) for normal y, with its gradient: ``(3, n)``."""
    # 1e100 stands for infinity: finite, so that no nan can arise
    a = np.maximum((low - mean) / std, -1e100)
    c = np.minimum((high - mean) / std, 1e100)
    h = hull(np.maximum(a, -c), np.maximum(c, -a), np.minimum((high - low) / std, 2e100))
    total, first, second = SHORT.moments[:3] @ h.density(SHORT, slice(None))
    long = np.flatnonzero(h.length > LONG_HULL)
    if long.size:
        total[long], first[long], second[long] = LONG.moments[:3] @ h.density(LONG, long)
    # Mean and mean square of the distance from the nearest point.
    mean_x = h.length * (first / total) - h.below
    square_x = h.length * h.length * (second / total) - h.below * (2.0 * mean_x + h.below)
    value = np.log(total * h.length) - 0.5 * h.near * h.near - LOG_ROOT_TWO_PI
    d_mean = np.where(a >= -c, 1.0, -1.0) * (h.near + mean_x)
    d_std = h.near * (h.near + 2.0 * mean_x) + square_x - 1.0
    # Where the mean is well inside: d = (phi(a) - phi(c)) / mass, which moments can't resolve.
    inside = np.flatnonzero((a < -1.0) & (c > 1.0))
    if inside.size:
        # exp(-x**2 / 2) is 0 in double precision from 40 on
        a = np.maximum(a[inside], -40.0)
        c = np.minimum(c[inside], 40.0)
        scale = LOG_ROOT_TWO_PI + value[inside]
        at_a = np.exp(-0.5 * a * a - scale)
        at_c = np.exp(-0.5 * c * c - scale)
        d_mean[inside] = at_a - at_c
        d_std[inside] = a * at_a - c * at_c
    return np.stack([value, d_mean / std, d_std / std])
