"""Classic expected improvement, and the probability of a target set.

Both are what the naive method and the "hit first, then nearer" phase need of a normal density:
pure functions of (mean, std, ...), in log form and with gradients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike

from bayescfx.acquisition.quadrature import (
    LOG_ROOT_TWO_PI,
    LogIntegral,
    added,
    density_moments,
    hull,
)
from bayescfx.arrays import Array
from bayescfx.potentials.family import contains
from bayescfx.potentials.levels import Interval

_TINY = 1e-80  # deviations below this count as zero
_BEYOND = 40.0  # exp(-x**2 / 2) is 0 in double precision from here on
_ENDLESS = 1e100  # stands for infinity: finite, so that no nan can arise


def expected_improvement(mean: ArrayLike, std: ArrayLike, best: ArrayLike) -> Array:
    """Return the classic expected improvement over `best`, for maximisation.

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Posterior of the objective; `std` may be zero.
    best : float or ndarray of shape (n,)
        The best value so far.

    Returns
    -------
    ndarray of shape (n,)
        ``E[max(0, y - best)]``.

    Examples
    --------
    >>> expected_improvement([1.0, 0.0], [0.0, 1.0], 0.0).round(6).tolist()
    [1.0, 0.398942]
    """
    return np.exp(_classic(mean, std, best).value)


def expected_improvement_gradient(
    mean: ArrayLike, std: ArrayLike, best: ArrayLike
) -> tuple[Array, Array]:
    """Return the derivatives of :func:`expected_improvement`: ``Phi(u)`` and ``phi(u)``.

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Posterior of the objective.
    best : float or ndarray of shape (n,)
        The best value so far.

    Returns
    -------
    d_mean, d_std : ndarray of shape (n,)
        The derivatives by mean and deviation.

    Examples
    --------
    >>> d_mean, d_std = expected_improvement_gradient([0.0], [1.0], 0.0)
    >>> float(d_mean[0])
    0.5
    """
    out = _classic(mean, std, best)
    value = np.exp(out.value)
    return value * out.d_mean, value * out.d_std


def log_expected_improvement(mean: ArrayLike, std: ArrayLike, best: ArrayLike) -> Array:
    """Return the logarithm of :func:`expected_improvement`, stable everywhere.

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Posterior of the objective; `std` may be zero.
    best : float or ndarray of shape (n,)
        The best value so far.

    Returns
    -------
    ndarray of shape (n,)
        ``-inf`` where no improvement is possible.

    Examples
    --------
    >>> log_expected_improvement([-1000.0], [1.0], 0.0).round(4).tolist()
    [-500014.7345]
    """
    return _classic(mean, std, best).value


def log_expected_improvement_gradient(
    mean: ArrayLike, std: ArrayLike, best: ArrayLike
) -> tuple[Array, Array]:
    """Return the derivatives of :func:`log_expected_improvement` by mean and deviation.

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Posterior of the objective.
    best : float or ndarray of shape (n,)
        The best value so far.

    Returns
    -------
    d_mean, d_std : ndarray of shape (n,)
        Finite everywhere.

    Examples
    --------
    >>> d_mean, d_std = log_expected_improvement_gradient([-50.0], [1.0], 0.0)
    >>> bool(d_mean[0] > 49)
    True
    """
    out = _classic(mean, std, best)
    return out.d_mean, out.d_std


def _classic(mean: ArrayLike, std: ArrayLike, best: ArrayLike) -> LogIntegral:
    """Return log EI and its gradient through the scaled complementary error function."""
    mean, std, best = np.broadcast_arrays(*(np.asarray(a, float) for a in (mean, std, best)))
    gain = mean - best
    alive = std > 0.0
    s = np.where(alive, std, 1.0)
    u = np.clip(gain / s, -1e100, 1e100)
    # EI = s (u Phi(u) + phi(u)); below -1 as phi(u) (1 - |u| Mills(|u|)), without cancellation
    low = np.minimum(u, -1.0)
    high = np.maximum(u, -1.0)
    tail = _mills_rest(-low)
    log_phi = -0.5 * np.square(u) - 0.5 * np.log(2.0 * np.pi)
    body = high * scipy.special.ndtr(high) + np.exp(-0.5 * high * high) / np.sqrt(2.0 * np.pi)
    value = np.where(u < -1.0, log_phi + np.log(tail), np.log(body)) + np.log(s)
    mills = np.sqrt(0.5 * np.pi) * scipy.special.erfcx(-low / np.sqrt(2.0))
    d_mean = np.where(u < -1.0, mills / tail, scipy.special.ndtr(high) / body) / s
    phi_high = np.exp(-0.5 * high * high) / np.sqrt(2.0 * np.pi)
    d_std = np.where(u < -1.0, 1.0 / tail, phi_high / body) / s
    positive = gain > 0.0
    safe = np.where(positive, gain, 1.0)
    return LogIntegral(
        np.where(alive, value, np.where(positive, np.log(safe), -np.inf)),
        np.where(alive, d_mean, np.where(positive, 1.0 / safe, 0.0)),
        np.where(alive, d_std, 0.0),
    )


def log_probability_in(mean: ArrayLike, std: ArrayLike, intervals: Sequence[Interval]) -> Array:
    """Return the logarithm of the probability that the output lies in a union of intervals.

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Posterior of the model output; `std` may be zero.
    intervals : sequence of (low, high)
        Disjoint intervals, ends possibly infinite.

    Returns
    -------
    ndarray of shape (n,)
        At most 0; ``-inf`` where the probability is exactly 0.

    Examples
    --------
    >>> log_probability_in([0.0], [1.0], ((0.0, float("inf")),)).round(6).tolist()
    [-0.693147]
    """
    return log_probability_in_with_gradient(mean, std, intervals).value


def log_probability_in_with_gradient(
    mean: ArrayLike, std: ArrayLike, intervals: Sequence[Interval]
) -> LogIntegral:
    """Return :func:`log_probability_in` and its gradient in one pass.

    Parameters
    ----------
    mean, std : ndarray of shape (n,)
        Posterior of the model output; `std` may be zero.
    intervals : sequence of (low, high)
        Disjoint intervals, ends possibly infinite.

    Returns
    -------
    LogIntegral
        ``value``, ``d_mean`` and ``d_std``, each of shape (n,).

    Examples
    --------
    >>> out = log_probability_in_with_gradient([0.0], [1.0], ((-1.0, 1.0),))
    >>> round(float(out.value[0]), 6), bool(abs(out.d_mean[0]) < 1e-12)
    (-0.381715, True)
    """
    mean, std = np.broadcast_arrays(np.asarray(mean, float), np.asarray(std, float))
    shape, mean, std = mean.shape, mean.ravel(), std.ravel()
    alive = std > _TINY
    hit = contains(intervals, mean)
    zero = np.zeros(mean.shape)
    at_zero = LogIntegral(np.where(hit, 0.0, -np.inf), zero, zero)
    s = np.where(alive, std, 1.0)
    total: LogIntegral | None = None
    for low, high in intervals:
        if low < high:
            ends = (np.full(mean.shape, low), np.full(mean.shape, high))
            part = log_normal_mass(*ends, mean, s)
            total = part if total is None else added(total, part)
    if total is None:
        total = LogIntegral(np.full(mean.shape, -np.inf), zero, zero)
    return LogIntegral(
        *(np.where(alive, t, z).reshape(shape) for t, z in zip(total, at_zero, strict=True))
    )


def log_normal_mass(low: Array, high: Array, mean: Array, std: Array) -> LogIntegral:
    """Return log P(low <= y <= high) for normal y, with its gradient.

    Parameters
    ----------
    low, high, mean, std : ndarray of shape (n,)
        Ends, possibly infinite, and the density; `std` positive, ``low < high``.

    Returns
    -------
    LogIntegral
        Arrays of shape (n,).
    """
    a = np.maximum((low - mean) / std, -_ENDLESS)
    c = np.minimum((high - mean) / std, _ENDLESS)
    left = a >= -c
    span = np.minimum((high - low) / std, 2.0 * _ENDLESS)
    h = hull(np.maximum(a, -c), np.maximum(c, -a), span)
    total, first, second = density_moments(h)
    mean_x, square_x = h.moments(total, first, second)
    value = np.log(total * h.length) - 0.5 * h.near * h.near - LOG_ROOT_TWO_PI
    first = np.where(left, 1.0, -1.0) * (h.near + mean_x)
    second = h.near * (h.near + 2.0 * mean_x) + square_x - 1.0
    # where the mean is well inside: d = (phi(a) - phi(c)) / mass, which moments can't resolve
    inside = (a < -1.0) & (c > 1.0)
    near_a, near_c = np.maximum(a, -_BEYOND), np.minimum(c, _BEYOND)
    scale = LOG_ROOT_TWO_PI + value
    at_a = np.exp(-0.5 * np.square(np.where(inside, near_a, 0.0)) - np.where(inside, scale, 0.0))
    at_c = np.exp(-0.5 * np.square(np.where(inside, near_c, 0.0)) - np.where(inside, scale, 0.0))
    d_mean = np.where(inside, at_a - at_c, first) / std
    d_std = np.where(inside, near_a * at_a - near_c * at_c, second) / std
    return LogIntegral(value, d_mean, d_std)


def _mills_rest(x: Array) -> Array:
    """Return ``1 - x * (1 - Phi(x)) / phi(x)`` for x >= 1, without cancellation."""
    near = np.minimum(x, 30.0)
    direct = 1.0 - near * math.sqrt(0.5 * math.pi) * scipy.special.erfcx(near / math.sqrt(2.0))
    w = np.square(1.0 / np.maximum(x, 30.0))
    series = np.ones_like(w)
    for odd in (13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = 1.0 - odd * w * series
    return np.where(x > 30.0, w * series, direct)
