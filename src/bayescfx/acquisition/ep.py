"""Log integrals of the exponential-polynomial family (Appendix B's change of variables).

``rho * N`` is ``z**2`` times a normal density with mean ``gamma = m / kappa`` and deviation
``eta = s / sqrt(kappa)``, ``kappa = 1 + 2 s**2``. What is subtracted is its multiple by
``exp(z**2)``, so that ``(rho - level) N = C N(z; gamma, eta) (D - t_e expm1(D))`` with
``D = z**2 - t_e`` counted from the nearest edge ``t_e`` of the superlevel set.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayescfx.acquisition.quadrature import (
    NARROW,
    SHORT,
    Fixed,
    Hull,
    LogIntegral,
    Relative,
    batches,
    fixed,
    hull,
    merged,
)
from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials.levels import Edges

_OPEN = 1e200  # stands for an edge at infinity: finite, so that no nan can arise
_SPAN = 1.0  # the EP family bends on this scale, however long the interval is
_LARGEST = 700.0  # exp of more overflows
_FALL = 16.0  # nats that rho may fall along a superlevel set for its own nodes to suffice
_SERIES = 0.004  # edges closer to the peak than this (in z**2) need the series
# (expm1(D) - D) / D**2, exact to 1e-16 for |D| < 2.1 * _SERIES
_EXP2 = tuple(1.0 / math.factorial(k) for k in range(2, 8))
_BEYOND = 40.0  # exp(-x**2 / 2) is 0 in double precision from here on
_FARTHEST = 1e150  # its square is finite
_AHEAD = 80.0  # nats that the farther side may lead, seen from another point
_IGNORED = 40.0  # nats by which one side of a SEP may lead before the other is left out


class _Side(NamedTuple):
    """One side of the EP family times the density, in widths, seen from the nearest edge."""

    hull: Hull  # of the tilted density, in eta, turned so that the nearest edge is the lower end
    eta: Array
    root: Array  # sqrt(kappa)
    turn: Array  # 1: the nearest edge is the lower one, -1: it is the upper one
    z: Array  # nearest edge, its square, and the square minus 1
    t: Array
    v: Array
    far: Array  # the other edge, as a turned deviation from gamma in eta
    far_pull: Array  # its z * (z**2 - 1), outwards
    deviation: Array  # turned (z - m) / s at the nearest point
    exponent: Array  # of rho * N / z**2 at the nearest point
    width: Array  # of the superlevel set, in z

    def steps(self) -> Array:
        """Return the parabola in ``u`` of ``D = z**2 - t``, (3, n)."""
        x, h = self.eta * self.hull.offset, self.eta * self.hull.length
        twice = 2.0 * self.turn * self.z
        out = np.empty((3, len(x)))
        np.multiply(x, twice + x, out=out[0])
        np.multiply(h, twice + 2.0 * x, out=out[1])
        np.multiply(h, h, out=out[2])
        return out


class Level(NamedTuple):
    """A threshold: its superlevel set, and the improvement there if all points share it."""

    edges: Edges  # entries of shape (n,), or (1,) if all share it
    fixed: Fixed | None


def shared_level(edges: Edges) -> Level:
    """Return a threshold that all points share, from edges with entries of shape (1,)."""
    t0, v0, t1, v1 = (float(e[0]) for e in edges)
    if not t1 - t0 < _FALL:
        return Level(edges, None)
    z0 = math.sqrt(t0)
    length = (v1 - v0) / (z0 + math.sqrt(t1))
    z = z0 + (x := length * SHORT.powers[:, 1])
    step = x * (2.0 * z0 + x)
    gain = _gain(step[:, None], np.array([t0]), np.array([v0]), np.empty((SHORT.nodes, 1)))[:, 0]
    decay = np.exp(-z * z)
    return Level(edges, fixed(length, decay * gain, -2.0 * decay * z * (v0 + step)))


def ep_log_integral(mean: Array, offset: Array, std: Array, level: Level) -> LogIntegral:
    """Return log E[max(0, rho(z) - level)] for ``rho(z) = z**2 exp(-z**2)``, z > 0.

    Parameters
    ----------
    mean, offset, std : ndarray of shape (n,)
        Mean, mean minus 1 (exactly) and deviation, in widths; `std` positive.
    level : Level
        The threshold.

    Returns
    -------
    LogIntegral
        Arrays of shape (n,).
    """
    return _side(mean, offset, std, level)[0].log()


def sep_log_integral(mean: Array, offset: Array, std: Array, level: Level) -> LogIntegral:
    """Return the same for the sum of both sides; one that can't matter is left out.

    Parameters
    ----------
    mean, offset, std : ndarray of shape (n,)
        Absolute mean, absolute mean minus 1 (exactly) and deviation, in widths; `std` positive.
    level : Level
        The threshold.

    Returns
    -------
    LogIntegral
        Arrays of shape (n,); `d_mean` is the derivative by the absolute mean.
    """
    edges = level.edges
    lead = _lead(mean, std, edges)
    rows = np.flatnonzero(lead < _IGNORED)
    if not rows.size:
        return ep_log_integral(mean, offset, std, level)
    n, far = len(mean), -mean[rows]
    joined = edges
    if len(edges.t_low) > 1:
        joined = Edges(*(np.concatenate([e, e[rows]]) for e in edges))
    both, wide = _side(
        np.concatenate([mean, far]),
        np.concatenate([offset, far - 1.0]),
        np.concatenate([std, std[rows]]),
        Level(joined, level.fixed),
    )
    exponent, total, d_mean, d_std = (part[:n] for part in both)
    other = Relative(*(part[n:] for part in both))
    # where both sides are seen from their inner edge, the difference of the exponents is exact
    inner, m, s = np.sqrt(_of(edges.t_low, rows)), mean[rows], std[rows]
    exact = (m <= inner) & (wide[rows] == wide[n:])
    ahead = np.where(exact, 2.0 * (inner / s) * (m / s), exponent[rows] - other.exponent)
    weight = other.total * np.exp(np.minimum(-ahead, _AHEAD))
    here = total[rows]
    total[rows] = whole = here + weight
    p, q = here / whole, weight / whole
    d_mean[rows] = p * d_mean[rows] - q * other.d_mean
    d_std[rows] = p * d_std[rows] + q * other.d_std
    return Relative(exponent, total, d_mean, d_std).log()


def _of(shared: Array, rows: Indices) -> Array:
    """Return the entries of some points, of an array that all may share."""
    return shared if len(shared) == 1 else shared[rows]


def _lead(m: Array, s: Array, edges: Edges) -> Array:
    """Return by how many nats the side of the mean (m >= 0) leads at its nearest point."""
    z0, z1 = np.sqrt(edges.t_low), np.sqrt(np.minimum(edges.t_high, _OPEN))
    # exponents -z**2 - (z - m)**2 / (2 s**2) here, and at -z0, the other side's nearest point
    z = np.minimum(np.maximum(m / (1.0 + 2.0 * s * s), z0), z1)
    here, there = (z - m) / s, (z0 + m) / s
    return np.asarray(z0 * z0 - z * z + 0.5 * (there - here) * (there + here))


def _side(m: Array, m1: Array, s: Array, level: Level) -> tuple[Relative, Mask]:
    """Integrate one side, through the nodes of the superlevel set where they suffice.

    Also return where they do.
    """
    if level.fixed is None:
        return _one_side(m, m1, s, level.edges), np.zeros(len(s), dtype=bool)
    t0, v0, t1, v1 = level.edges
    gap0, gap1 = _gaps(m, m1, (np.sqrt(t0), v0), (np.sqrt(t1), v1))
    inverse = 1.0 / s
    low, high, length = gap0 * inverse, gap1 * inverse, level.fixed.length * inverse
    ends = low, high, length, inverse
    wide = level.fixed.suits(low, high, length)
    rows = np.flatnonzero(wide)
    if rows.size == len(s):
        return level.fixed.integral(*ends), wide
    if not rows.size:
        return _one_side(m, m1, s, level.edges), wide
    rest = np.flatnonzero(~wide)
    through = level.fixed.integral(*(e[rows] for e in ends))
    around = _one_side(m[rest], m1[rest], s[rest], level.edges)
    return Relative(*merged(len(s), [(rows, through), (rest, around)])), wide


def _one_side(m: Array, m1: Array, s: Array, edges: Edges) -> Relative:
    """Integrate one side; the exponent is kept apart."""
    side = _tilt(m, m1, s, edges)
    steps = side.steps()
    gains, densities = _node_sums(side, steps)
    total = gains[0]
    safe = np.where(total > 0.0, total, 1.0)
    # moments of (z - m) / s = deviation + x / sqrt(kappa), turned
    ratio = 1.0 / side.root
    mean_x, square_x = side.hull.moments(safe, gains[1], gains[2])
    deviation = side.deviation
    mean_t = deviation + ratio * mean_x
    square_t = deviation * (2.0 * mean_t - deviation) + ratio * ratio * square_x
    inverse = 1.0 / s
    d_mean, d_std = side.turn * mean_t * inverse, (square_t - 1.0) * inverse
    narrow = s < NARROW * np.minimum(side.width, _SPAN)
    if narrow.any():
        slope, bend = _derivatives(side, steps, densities)
        np.copyto(d_mean, slope / safe, where=narrow)
        np.copyto(d_std, s * bend / safe, where=narrow)
    return Relative(side.exponent, total * side.hull.length * ratio, d_mean, d_std)


def _tilt(m: Array, m1: Array, s: Array, edges: Edges) -> _Side:
    """Place the hull and choose the edge that the nodes are counted from."""
    open_end = np.isinf(edges.t_high)
    t0, v0 = edges.t_low, edges.v_low
    t1, v1 = np.where(open_end, _OPEN, edges.t_high), np.where(open_end, _OPEN, edges.v_high)
    z0, z1 = np.sqrt(t0), np.sqrt(t1)
    gap0, gap1 = _gaps(m, m1, (z0, v0), (z1, v1))
    spread = 2.0 * s * s
    root = np.sqrt(1.0 + spread)
    eta, scale = s / root, 1.0 / (s * root)
    low, high = (gap0 + spread * z0) * scale, (gap1 + spread * z1) * scale
    width = (v1 - v0) / (z0 + z1)
    left = low >= -high
    h = hull(np.maximum(low, -high), np.maximum(high, -low), width / eta)
    t = np.where(left, t0, t1)
    deviation = np.where(left, gap0, -gap1) / s
    exponent = -t - 0.5 * deviation * deviation
    inside = np.flatnonzero(h.near == 0.0)
    turn = np.where(left, 1.0, -1.0)
    if inside.size:  # the nearest point is gamma: there the exponent is -m**2 / kappa
        r = m[inside] / root[inside]
        exponent[inside] = -r * r
        deviation[inside] = -2.0 * turn[inside] * eta[inside] * r
    pull0, pull1 = -z0 * v0, np.where(open_end, 0.0, z1 * v1)
    return _Side(
        h,
        eta,
        root,
        turn,
        np.where(left, z0, z1),
        t,
        np.where(left, v0, v1),
        np.maximum(high, -low),
        np.where(left, pull1, pull0),
        deviation,
        exponent,
        width,
    )


def _gaps(
    m: Array, m1: Array, low: tuple[Array, Array], high: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return ``z - m`` at both edges; beside the peak from there, so that no digits are lost."""
    close = np.flatnonzero(np.abs(m1) < 0.5)
    found = []
    for z, v in (low, high):
        gap = z - m
        if close.size:
            from_peak = v / (1.0 + z)
            gap[close] = (from_peak if len(z) == 1 else from_peak[close]) - m1[close]
        found.append(gap)
    return found[0], found[1]


def _node_sums(side: _Side, steps: Array) -> tuple[Array, Array]:
    """Sum improvement and density over the nodes, times powers of u: (3, n) and (5, n)."""
    n = steps.shape[1]
    exponents = side.hull.exponents()
    gains, densities = np.empty((3, n)), np.empty((5, n))
    for batch in batches(side.hull.length, 3):
        rows, moments = batch.rows, batch.rule.moments
        density = batch.parabola(exponents, 0)
        np.exp(density, out=density)
        densities[:, rows] = moments @ density
        gain = _gain(batch.parabola(steps, 1), side.t[rows], side.v[rows], batch.array(2))
        gain *= density
        gains[:, rows] = moments[:3] @ gain
    return gains, densities


def _gain(step: Array, t: Array, v: Array, out: Array) -> Array:
    """Return ``(rho - level) / rho * z**2`` at ``z**2 = t + step``."""
    close = np.abs(v) < _SERIES
    all_close = close.all()
    if not all_close and not t.any():  # level 0
        return step
    if all_close:
        return _gain_close(step, t, v)
    gain = np.expm1(np.minimum(step, _LARGEST) if step[-1].max() > _LARGEST else step, out=out)
    gain *= t
    np.subtract(step, gain, out=gain)
    if close.any():
        gain[:, close] = _gain_close(step[:, close], t[close], v[close])
    return gain


def _gain_close(step: Array, t: Array, v: Array) -> Array:
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


def _derivatives(side: _Side, steps: Array, densities: Array) -> tuple[Array, Array]:
    """Return the sums of ``rho' N`` and ``rho'' N``, the kinks at both edges included.

    ``rho' = -2 z v exp(-z**2)`` and ``rho'' = (4 v**2 - 2 v - 4) exp(-z**2)`` are polynomials
    in ``u`` times the tilted density.
    """
    h = side.hull
    d0, d1, d2 = steps
    x, g = side.eta * h.offset, side.turn * side.eta * h.length
    v, z = side.v + d0, side.z + side.turn * x
    m0, m1, m2, m3, m4 = densities
    first, second = v * m0 + d1 * m1 + d2 * m2, v * m1 + d1 * m2 + d2 * m3
    slope = z * first + g * second
    square = v * first + d1 * second + d2 * (v * m2 + d1 * m3 + d2 * m4)
    bend = 4.0 * (square - m0) - 2.0 * first
    inner, near = np.minimum(h.offset + h.below, _BEYOND), h.near
    kinks = -side.turn * side.z * side.v * np.exp(-0.5 * inner * inner)
    far = np.minimum(side.far, _FARTHEST)
    kinks += side.far_pull * np.exp(-0.5 * (far - near) * (far + near))
    return -2.0 * slope, bend + 2.0 * kinks / (side.eta * h.length)
