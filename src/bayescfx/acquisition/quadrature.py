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

from bayescfx.arrays import Array
from bayescfx.potentials.levels import Edges

NODES = 32
DROP = 29.0  # nats below the largest term where the integrand is cut off
NARROW = 0.05  # a density narrower than this share of the interval uses the derivatives of g

_X, _W = (np.asarray(a, dtype=float) for a in np.polynomial.legendre.leggauss(NODES))
_U = 0.5 * (_X + 1.0)  # nodes on [0, 1]
WEIGHTS = 0.5 * _W
POWERS = np.stack([_U**k for k in range(3)], axis=1)  # (NODES, 3): a parabola at every node
MOMENTS = WEIGHTS * np.stack([_U**k for k in range(5)])  # (5, NODES): sums times powers of u
LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_OPEN = 1e200  # stands for an edge at infinity: finite, so that no nan can arise
_SPAN = 6.0  # the EP family has died out after as many widths
_CHUNK = 500  # points per pass: the node arrays stay in the cache
_LARGEST = 700.0  # exp of more overflows
_SERIES = 0.004  # edges closer to the peak than this (in z**2) need the series
# (expm1(D) - D) / D**2, exact to 1e-16 for |D| < 2.1 * _SERIES
_EXP2 = tuple(1.0 / math.factorial(k) for k in range(2, 8))


class LogIntegral(NamedTuple):
    """Logarithm of an integral and its gradient with respect to mean and deviation."""

    value: Array
    d_mean: Array
    d_std: Array


def added(a: LogIntegral, b: LogIntegral) -> LogIntegral:
    """Return the logarithm of the sum of two integrals, with its gradient."""
    value = np.logaddexp(a.value, b.value)
    p, q = np.exp(a.value - value), np.exp(b.value - value)
    return LogIntegral(value, p * a.d_mean + q * b.d_mean, p * a.d_std + q * b.d_std)


class Hull(NamedTuple):
    """Where an integrand ``g * N`` has mass, in deviations from the mean.

    Nodes are ``first + turn * length * u`` for ``u`` in [0, 1], and ``offset + length * u`` away
    from the end of the interval that they are counted from.
    """

    near: Array  # the point of the interval closest to the mean
    first: Array
    turn: Array  # 1: counted upwards from the lower end, -1: downwards from the upper end
    length: Array
    offset: Array

    def exponents(self) -> Array:
        """Return the parabola in ``u`` of the log density relative to `near`, (3, n)."""
        top = np.where(self.near == 0.0, -0.5 * self.first * self.first, 0.0)
        slant = -self.turn * self.first * self.length
        return np.stack([top, slant, -0.5 * self.length * self.length])

    def moments(self, total: Array, first: Array, second: Array) -> tuple[Array, Array]:
        """Return mean and mean square of the deviation from `near`, from sums over u."""
        start, run = self.first - self.near, self.turn * self.length
        mean = start + run * (first / total)
        return mean, start * (2.0 * mean - start) + run * run * (second / total)


def hull(low: Array, high: Array, span: Array) -> Hull:
    """Return the part of an interval within `DROP` nats of the density's largest value.

    Parameters
    ----------
    low, high : ndarray of shape (n,)
        Ends of the interval, as deviations from the mean.
    span : ndarray of shape (n,)
        ``high - low``, which the caller may know more exactly.

    Returns
    -------
    Hull
        Arrays of shape (n,).
    """
    near = np.minimum(np.maximum(low, 0.0), high)
    inside = near == 0.0
    # solves x * |near| + x**2 / 2 = DROP without cancellation
    fall = 2.0 * DROP / (np.abs(near) + np.sqrt(near * near + 2.0 * DROP))
    below, above = np.minimum(fall, -low), np.minimum(fall, high)
    up = np.where(inside, -low <= high, near > 0.0)
    first = np.where(up, -below, above)
    offset = np.where(up, -low - below, high - above)
    return Hull(
        near,
        np.where(inside, first, near),
        np.where(up, 1.0, -1.0),
        np.minimum(np.where(inside, below + above, fall), span),
        np.where(inside, offset, 0.0),
    )


class Placed(NamedTuple):
    """A hull, and the density at its nodes relative to `near`, of shape (NODES, n)."""

    hull: Hull
    density: Array


def place(low: Array, high: Array, span: Array) -> Placed:
    """Put nodes on the hull of an interval, given as deviations from the mean."""
    h = hull(low, high, span)
    density = POWERS @ h.exponents()
    return Placed(h, np.exp(density, out=density))


def reduce_nodes(placed: Placed, gain: Array) -> tuple[Array, Array, Array, Array]:
    """Return sum, log mass, E[t] and E[t**2] - 1 of a gain (density included) at the nodes."""
    total, first, second = MOMENTS[:3] @ gain
    near, length = placed.hull.near, placed.hull.length
    positive = (total > 0.0) & (length > 0.0)
    safe = np.where(positive, total, 1.0)
    mean_x, square_x = placed.hull.moments(safe, first, second)
    log_total = np.log(np.where(positive, total * length, 1.0))
    value = np.where(positive, log_total - 0.5 * near * near - LOG_ROOT_TWO_PI, -np.inf)
    return safe, value, near + mean_x, near * (near + 2.0 * mean_x) + square_x - 1.0


class _Tilted(NamedTuple):
    """One side of the EP family times the density, in widths, seen from the nearest edge."""

    eta: Array
    hull: Hull
    z: Array  # base edge, its square, and the square minus 1
    t: Array
    v: Array
    deviation: Array  # (z - m) / s at the nearest point
    log_scale: Array  # log of the tilted density at the nearest point
    low: Array  # both edges as deviations from gamma, in eta
    high: Array
    width: Array  # of the superlevel set, in z

    def steps(self) -> Array:
        """Return the parabola in ``u`` of ``D = z**2 - t``, (3, n)."""
        x, h = self.eta * self.hull.offset, self.eta * self.hull.length
        twice = 2.0 * self.hull.turn * self.z
        return np.stack([x * (twice + x), h * (twice + 2.0 * x), h * h])


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
        Superlevel set from `ep_edges`, with entries of shape (n,), or (1,) if all share it.

    Returns
    -------
    LogIntegral
        Arrays of shape (n,).
    """
    side = _tilt(mean, offset, std, edges)
    steps = side.steps()
    gains, densities = _ep_sums(side, steps)
    total = np.where(gains[0] > 0.0, gains[0], 1.0)
    value = np.log(total * side.hull.length) + side.log_scale
    # moments of (z - m) / s = deviation + (eta / s) x
    ratio = side.eta / std
    mean_x, square_x = side.hull.moments(total, gains[1], gains[2])
    mean_t = side.deviation + ratio * mean_x
    square_t = side.deviation * (2.0 * mean_t - side.deviation) + ratio * ratio * square_x
    d_mean, d_std = mean_t / std, (square_t - 1.0) / std
    narrow = std < NARROW * np.minimum(side.width, _SPAN)
    if narrow.any():
        slope, bend = _ep_derivatives(side, steps, densities)
        bend += _ep_kinks(side, edges)
        d_mean = np.where(narrow, slope / total, d_mean)
        d_std = np.where(narrow, std * bend / total, d_std)
    return LogIntegral(np.where(gains[0] > 0.0, value, -np.inf), d_mean, d_std)


def ep_exponent(m: Array, s: Array, edges: Edges) -> Array:
    """Return the largest exponent of ``rho * N`` on the superlevel set: a size of the integral.

    Parameters
    ----------
    m, s : ndarray of shape (n,)
        Mean and deviation in widths; `s` positive.
    edges : Edges
        Superlevel set from `ep_edges`, with entries of shape (n,), or (1,) if all share it.

    Returns
    -------
    ndarray of shape (n,)
        ``max of -z**2 - (z - m)**2 / (2 s**2)``.
    """
    z0, z1 = np.sqrt(edges.t_low), np.sqrt(np.minimum(edges.t_high, _OPEN))
    z = np.minimum(np.maximum(m / (1.0 + 2.0 * s * s), z0), z1)
    return np.asarray(-z * z - 0.5 * np.square((z - m) / s))


def _tilt(m: Array, m1: Array, s: Array, edges: Edges) -> _Tilted:
    """Place the hull and choose the edge that the nodes are counted from."""
    open_end = np.isinf(edges.t_high)
    t1 = np.where(open_end, _OPEN, edges.t_high)
    v1 = np.where(open_end, _OPEN, edges.v_high)
    v0 = edges.v_low
    z0, z1 = np.sqrt(edges.t_low), np.sqrt(t1)
    # beside the peak, distances are taken from the peak: no digits are lost
    close = np.abs(m1) < 0.5
    gap0 = np.where(close, v0 / (1.0 + z0) - m1, z0 - m)
    gap1 = np.where(close, v1 / (1.0 + z1) - m1, z1 - m)
    spread = 2.0 * s * s
    kappa = 1.0 + spread
    root = np.sqrt(kappa)
    eta = s / root
    low = (gap0 + spread * z0) / (s * root)
    high = (gap1 + spread * z1) / (s * root)
    width = (v1 - v0) / (z0 + z1)
    h = hull(low, high, width / eta)
    left, outside = h.turn > 0.0, h.near != 0.0
    t = np.where(left, edges.t_low, t1)
    deviation = np.where(left, gap0, gap1) / s
    # at gamma the exponent is -m**2 / kappa; at an edge it is taken there
    exponent = np.where(outside, -t - 0.5 * deviation * deviation, -m * (m / kappa))
    return _Tilted(
        eta,
        h,
        np.where(left, z0, z1),
        t,
        np.where(left, v0, v1),
        np.where(outside, deviation, -2.0 * eta * m / root),
        exponent - 0.5 * np.log(kappa) - LOG_ROOT_TWO_PI,
        low,
        high,
        width,
    )


def _ep_sums(side: _Tilted, steps: Array) -> tuple[Array, Array]:
    """Sum improvement and density over the nodes, times powers of u: (3, n) and (5, n)."""
    n = len(side.eta)
    exponents = side.hull.exponents()
    gains, densities = np.empty((3, n)), np.empty((5, n))
    for i in range(0, n, _CHUNK):
        cut = slice(i, i + _CHUNK)
        density = POWERS @ exponents[:, cut]
        np.exp(density, out=density)
        gain = _ep_gain(POWERS @ steps[:, cut], side.t[cut], side.v[cut])
        gain *= density
        gains[:, cut] = MOMENTS[:3] @ gain
        densities[:, cut] = MOMENTS @ density
    return gains, densities


def _ep_gain(step: Array, t: Array, v: Array) -> Array:
    """Return ``(rho - level) / rho * z**2`` at ``z**2 = t + step``."""
    if not t.any():
        return step
    close = np.abs(v) < _SERIES
    if close.all():
        return _ep_gain_close(step, t, v)
    gain = np.expm1(np.minimum(step, _LARGEST) if step[-1].max() > _LARGEST else step)
    gain *= -t
    gain += step
    if close.any():
        gain[:, close] = _ep_gain_close(step[:, close], t[close], v[close])
    return gain


def _ep_gain_close(step: Array, t: Array, v: Array) -> Array:
    """Return the same so close to the peak that expm1 would lose the digits that matter."""
    rest = np.full_like(step, _EXP2[-1])
    for c in _EXP2[-2::-1]:
        rest *= step
        rest += c
    rest *= t
    rest *= step
    rest += v
    rest *= step
    return np.negative(rest, out=rest)


def _ep_derivatives(side: _Tilted, steps: Array, densities: Array) -> tuple[Array, Array]:
    """Return the sums of ``rho' N`` and ``rho'' N`` inside the interval.

    ``rho' = -2 z v exp(-z**2)`` and ``rho'' = (4 v**2 - 2 v - 4) exp(-z**2)`` are polynomials
    in ``u`` times the tilted density.
    """
    h = side.hull
    d0, d1, d2 = steps
    v, z = side.v + d0, side.z + h.turn * side.eta * h.offset
    g = h.turn * side.eta * h.length
    m0, m1, m2, m3, m4 = densities
    slope = z * v * m0 + (z * d1 + g * v) * m1 + (z * d2 + g * d1) * m2 + g * d2 * m3
    square = v * v * m0 + 2.0 * v * d1 * m1 + (2.0 * v * d2 + d1 * d1) * m2
    square += 2.0 * d1 * d2 * m3 + d2 * d2 * m4
    bend = 4.0 * square - 2.0 * (v * m0 + d1 * m1 + d2 * m2) - 4.0 * m0
    return -2.0 * slope, bend


def _ep_kinks(side: _Tilted, edges: Edges) -> Array:
    """Return what the kinks of ``rho - level`` at both edges add to the sum of ``rho'' N``."""
    near, low, high = side.hull.near, side.low, side.high
    slope_low = -np.sqrt(edges.t_low) * edges.v_low
    closed = np.isfinite(edges.t_high)
    slope_high = np.sqrt(np.where(closed, edges.t_high, 0.0)) * np.where(closed, edges.v_high, 0.0)
    kinks = slope_low * np.exp(-0.5 * (low - near) * (low + near))
    kinks += slope_high * np.exp(-0.5 * (high - near) * (high + near))
    return np.asarray(2.0 * kinks / (side.eta * side.hull.length))
