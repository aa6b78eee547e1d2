"""Integrals of an improvement against a normal density, in log form.

Every integral here is ``log of the integral of g(z) * N(z; m, s) dz`` over an interval where the
improvement ``g`` is positive, with the gradient with respect to ``m`` and ``s``. The nodes
are those of Gauss-Legendre on the part of the interval where the integrand has mass (its
*hull*), so they neither miss a narrow density nor waste themselves on a wide one. All terms
are positive: nothing cancels, and nothing underflows because exponents are kept relative to their
largest.

Two forms of the gradient are used, because each loses its digits where the other is sound:
moments of ``(z - m) / s`` when the density is wide against the interval, and the derivatives
of ``g`` (``dEI/dm = E[g']``, ``dEI/ds = s * E[g'']``, kinks included) when it is narrow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from bayescfx.arrays import Array, Indices
from bayescfx.potentials import Edges

NODES = 36
DROP = 33.0  # nats below the largest term where the integrand is cut off
NARROW = 0.05  # a density narrower than this share of the interval uses the derivatives of g

_X, _W = (np.asarray(a, dtype=float) for a in np.polynomial.legendre.leggauss(NODES))
UNIT_NODES = 0.5 * (_X + 1.0)  # nodes on [0, 1]
HALF_WEIGHTS = 0.5 * _W
_MOMENTS = np.stack(
    [HALF_WEIGHTS, HALF_WEIGHTS * UNIT_NODES, HALF_WEIGHTS * UNIT_NODES * UNIT_NODES], axis=1
)
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_OPEN = 1e200  # stands for an edge at infinity: finite, so that no nan can arise
_SPAN = 6.0  # the EP family has died out after as many widths
_CHUNK = 512  # points per pass: the node arrays stay in the cache
# (expm1(D) - D) / D**2 as a series; exact to 1e-16 for |D| < 0.1
_SERIES = 0.05
_EXP2 = tuple(1.0 / math.factorial(k) for k in range(2, 11))


class LogIntegral(NamedTuple):
    """Logarithm of an integral and its gradient with respect to mean and deviation."""

    value: Array
    d_mean: Array
    d_std: Array


class Hull(NamedTuple):
    """Where an integrand ``g * N`` has mass, in units of the deviation.

    ``near`` is the point of the interval closest to the mean; nodes are
    ``near + start + length * u`` for ``u`` in [0, 1].
    """

    near: Array
    start: Array
    length: Array


def hull(low: Array, high: Array, span: Array) -> Hull:
    """Return the part of an interval within `DROP` nats of the density's largest value.

    Parameters
    ----------
    low, high : ndarray of shape (n,)
        Ends of the interval, as deviations from the mean; may be infinite.
    span : ndarray of shape (n,)
        ``high - low``, which the caller may know more exactly.

    Returns
    -------
    Hull
        Nearest point, start and length of the part that matters.
    """
    near = np.minimum(np.maximum(low, 0.0), high)
    reach = np.sqrt(near * near + 2.0 * DROP)
    # solves x * |near| + x**2 / 2 = DROP without cancellation
    fall = 2.0 * DROP / (np.abs(near) + reach)
    below = np.where(near > 0.0, 0.0, np.minimum(fall, near - low))
    above = np.where(near < 0.0, 0.0, np.minimum(fall, high - near))
    length = np.minimum(below + above, span)
    return Hull(near, np.where(near < 0.0, -length, -below), length)


class _Tilted(NamedTuple):
    """One side of the EP family times the density, in widths, seen from the nearest edge."""

    eta: Array
    hull: Hull
    offset: Array  # hull start seen from the base edge, in eta
    z: Array  # base edge, its square, and the square minus 1
    t: Array
    v: Array
    deviation: Array  # (z - m) / s at the nearest point
    log_scale: Array  # log of the tilted density at the nearest point
    low: Array  # both edges as deviations from gamma, in eta
    high: Array
    width: Array  # of the superlevel set, in z


def ep_log_integral(mean: Array, offset: Array, std: Array, edges: Edges) -> LogIntegral:
    """Return log E[max(0, rho(z) - level)] for ``rho(z) = z**2 exp(-z**2)``, z > 0.

    Appendix B's change of variables: ``rho * N`` is ``z**2`` times a normal density with
    mean ``gamma = m / kappa`` and deviation ``eta = s / sqrt(kappa)``, ``kappa = 1 + 2 s**2``.
    What is subtracted is its multiple by ``exp(z**2)``, so that
    ``(rho - level) N = C N(z; gamma, eta) (D - t_e expm1(D))`` with ``D = z**2 - t_e`` counted
    from the nearest edge ``t_e`` of the superlevel set.

    Parameters
    ----------
    mean, offset, std : ndarray of shape (n,)
        Mean, mean minus 1 (exactly) and deviation, in widths; `std` positive.
    edges : Edges
        Superlevel set from `ep_edges`, with entries of shape (n,).

    Returns
    -------
    LogIntegral
        Arrays of shape (n,).
    """
    if len(mean) <= _CHUNK:
        return _ep_chunk(mean, offset, std, edges)
    parts = []
    for i in range(0, len(mean), _CHUNK):
        cut = slice(i, i + _CHUNK)
        edge = Edges(*(e[cut] for e in edges))
        parts.append(_ep_chunk(mean[cut], offset[cut], std[cut], edge))
    return LogIntegral(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _tilt(m: Array, m1: Array, s: Array, edges: Edges) -> _Tilted:
    """Place the hull and choose the edge that the nodes are counted from."""
    open_end = np.isinf(edges.t_high)
    t1 = np.where(open_end, _OPEN, edges.t_high)
    v1 = np.where(open_end, _OPEN, edges.v_high)
    z0, z1 = np.sqrt(edges.t_low), np.sqrt(t1)
    # beside the peak, distances are taken from the peak: no digits are lost
    close = np.abs(m1) < 0.5
    gap0 = np.where(close, edges.v_low / (1.0 + z0) - m1, z0 - m)
    gap1 = np.where(close, v1 / (1.0 + z1) - m1, z1 - m)
    spread = 2.0 * s * s
    kappa = 1.0 + spread
    root = np.sqrt(kappa)
    eta = s / root
    low = (gap0 + spread * z0) / (s * root)
    high = (gap1 + spread * z1) / (s * root)
    width = (v1 - edges.v_low) / (z0 + z1)
    h = hull(low, high, width / eta)
    outside = h.near != 0.0
    left = np.where(outside, h.near > 0.0, -low <= high)
    offset = np.where(outside, np.where(left, 0.0, h.start), h.start - np.where(left, low, high))
    t = np.where(left, edges.t_low, t1)
    deviation = np.where(left, gap0, gap1) / s
    # at gamma the exponent is -m**2 / kappa; at an edge it is taken there
    exponent = np.where(outside, -t - 0.5 * deviation * deviation, -m * (m / kappa))
    return _Tilted(
        eta,
        h,
        offset,
        np.where(left, z0, z1),
        t,
        np.where(left, edges.v_low, v1),
        np.where(outside, deviation, -2.0 * eta * m / root),
        exponent - 0.5 * np.log(kappa) - _LOG_ROOT_TWO_PI,
        low,
        high,
        width,
    )


def _ep_chunk(m: Array, m1: Array, s: Array, edges: Edges) -> LogIntegral:
    """Evaluate :func:`ep_log_integral` for as many points as fit the cache."""
    side = _tilt(m, m1, s, edges)
    near, start, length = side.hull
    x = start[:, None] + length[:, None] * UNIT_NODES
    density = np.exp(-x * (0.5 * x + near[:, None]))
    x = (side.eta * side.offset)[:, None] + (side.eta * length)[:, None] * UNIT_NODES
    step = x * (2.0 * side.z[:, None] + x)  # D
    gain = density * _ep_gain(step, side.t, side.v)
    total, first, second = (gain @ _MOMENTS).T
    value = np.log(total * length) + side.log_scale
    # moments of (z - m) / s = deviation + (eta / s) x
    ratio = side.eta / s
    mean_x = start + length * (first / total)
    square_x = start * start + length * (2.0 * start * first + length * second) / total
    mean_t = side.deviation + ratio * mean_x
    square_t = side.deviation * (2.0 * mean_t - side.deviation) + ratio * ratio * square_x
    d_mean, d_std = mean_t / s, (square_t - 1.0) / s
    narrow = np.flatnonzero(s < NARROW * np.minimum(side.width, _SPAN))
    if narrow.size:
        d_mean[narrow], d_std[narrow] = _ep_narrow(
            narrow, s, edges, side, density[narrow], x[narrow], step[narrow], total
        )
    return LogIntegral(value, d_mean, d_std)


def _ep_gain(step: Array, t: Array, v: Array) -> Array:
    """Return ``(rho - level) / rho * z**2`` at ``z**2 = t + step``, not below 0."""
    close = np.flatnonzero(np.abs(v) < _SERIES)
    gain = step - t[:, None] * np.expm1(np.minimum(step, 700.0))
    if close.size:
        # so close to the peak that expm1 would lose the digits that matter
        d = step[close]
        rest = np.full_like(d, _EXP2[-1])
        for c in _EXP2[-2::-1]:
            rest *= d
            rest += c
        gain[close] = -d * (v[close, None] + t[close, None] * d * rest)
    return np.maximum(gain, 0.0, out=gain)


def _ep_narrow(
    rows: Indices,
    s: Array,
    edges: Edges,
    side: _Tilted,
    density: Array,
    x: Array,
    step: Array,
    total: Array,
) -> tuple[Array, Array]:
    """Return the gradient from the derivatives of rho, for densities narrower than the set."""
    near, _, length = (part[rows] for part in side.hull)
    low, high = side.low[rows], side.high[rows]
    v = side.v[rows, None] + step
    z = side.z[rows, None] + x
    slope = (density * (-2.0 * z * v)) @ HALF_WEIGHTS
    bend = (density * (4.0 * v * v - 2.0 * v - 4.0)) @ HALF_WEIGHTS
    # rho - level has a kink at each edge: its slope there times the density there
    z0, v0 = np.sqrt(edges.t_low[rows]), edges.v_low[rows]
    closed = np.isfinite(edges.t_high[rows])
    z1 = np.sqrt(np.where(closed, edges.t_high[rows], 0.0))
    v1 = np.where(closed, edges.v_high[rows], 0.0)
    kinks = -z0 * v0 * np.exp(-0.5 * (low - near) * (low + near))
    kinks += z1 * v1 * np.exp(-0.5 * (high - near) * (high + near))
    bend += 2.0 * kinks / (side.eta[rows] * length)
    return slope / total[rows], s[rows] * bend / total[rows]


def mills_rest(x: Array) -> Array:
    """Return ``1 - x * (1 - Phi(x)) / phi(x)`` for x >= 1, without cancellation.

    Parameters
    ----------
    x : ndarray
        Arguments, at least 1.

    Returns
    -------
    ndarray
        Close to ``1 / x**2`` for large arguments.

    Examples
    --------
    >>> bool(np.isclose(mills_rest(np.array([1e8]))[0] * 1e16, 1.0))
    True
    """
    near = np.minimum(x, 30.0)
    direct = 1.0 - near * math.sqrt(0.5 * math.pi) * special.erfcx(near / math.sqrt(2.0))
    w = np.square(1.0 / np.maximum(x, 30.0))
    series = np.ones_like(w)
    for odd in (13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = 1.0 - odd * w * series
    return np.where(x > 30.0, w * series, direct)
