"""The one integrator: improvements against normal densities, in log form.

``log of the integral of g(y) * N(y; mean, std) dy`` for an improvement ``g`` given in pieces
(:class:`~bayescfx.potentials.pieces.Pieces`), with its gradient. Each pair of a piece and
a density gets the nodes of Gauss-Legendre on that part of the piece where the density has mass (its
*hull*), so they neither miss a narrow density nor waste themselves on a wide one. All terms are
positive: nothing cancels, and nothing underflows because exponents are kept relative to their
largest. Where ``g`` falls like ``exp(-z**2)``, that is joined into the density (the *tilt* of
Appendix B, ``kappa = 1 + 2 std**2``).

Two forms of the gradient are used, because each loses its digits where the other is sound:
moments of ``t = (y - mean) / std`` when the density is wide against the improvement, and the
derivatives of ``g`` (``dEI/dmean = E[g']``, ``dEI/dstd = std * E[g'']``, kinks included) when it is
narrow. The one whose terms are smaller is taken.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials.pieces import LONG, SHORT, GaussLegendre, Nodes, Pieces

DROP = 43.0  # nats below the largest term where the integrand is cut off
LONG_HULL = 10.0  # deviations; longer hulls have both flanks of the density inside
LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_CHUNK = 1000  # pairs per pass: the nodes stay in the cache


class LogIntegral(NamedTuple):
    """Logarithm of an integral and its gradient with respect to mean and deviation."""

    value: Array
    d_mean: Array
    d_std: Array


class Hull(NamedTuple):
    """Where a density has mass on an interval, in deviations from the mean.

    The interval is turned so that its end nearer to the mean is the lower one. Nodes are
    ``near - below + length * u`` for ``u`` in [0, 1], which is ``offset + length * u`` away from
    that end.
    """

    near: Array  # the point of the interval closest to the mean; 0 if the mean is inside
    below: Array
    length: Array
    offset: Array

    def density(self, rule: GaussLegendre, rows: Indices | slice) -> Array:
        """Return the density relative to `near` at the nodes of some hulls, (nodes, r)."""
        near, below, length = self.near[rows], self.below[rows], self.length[rows]
        parabola = (-0.5 * below * below, (below - near) * length, -0.5 * length * length)
        nodes = rule.parabola @ np.array(parabola)
        return np.exp(nodes, out=nodes)


def hull(low: Array, high: Array, span: Array) -> Hull:
    """Return the part of intervals within `DROP` nats of the density's largest value, (n,).

    Ends are deviations from the mean, turned so that ``-low <= high``; `span` is their distance.
    """
    near = np.maximum(low, 0.0)
    # solves x * near + x**2 / 2 = DROP without cancellation
    fall = 2.0 * DROP / (near + np.sqrt(near * near + 2.0 * DROP))
    above = np.minimum(np.minimum(fall, span), high)
    inner = near - low
    below = np.minimum(inner, math.sqrt(2.0 * DROP))
    return Hull(near, below, below + above, inner - below)


class Prepared(NamedTuple):
    """An improvement; if all points share it, also its sums over the nodes of whole pieces."""

    pieces: Pieces
    shares: Array = np.empty((0, 7, 0))  # (2 k, 7, nodes), by lower and upper ends


def prepare(g: Pieces) -> Prepared:
    """Evaluate an improvement that all points share once, for all hulls that are a whole piece."""
    place = ((g.anchor - g.centre) + g.step)[:, :, 0]
    count, span, size = len(g.log_top), place[1] - place[0], len(SHORT.parabola)
    if count > 1000:  # few of them would be used
        return Prepared(g)
    # endless pieces are never whole: whatever there is at their finite end will do
    endless, finite = span > 1e60 * g.unit, np.abs(place[1]) < np.abs(place[0])
    ends = np.arange(count) + count * np.where(endless, finite, [[False], [True]])
    at = np.repeat(ends.ravel(), size)
    length = np.tile(np.where(endless, 0.0, span), 2).repeat(size)
    each = np.tile(np.eye(size), 2 * count)  # sums over one node each
    sums = g.sums(Nodes(SHORT, each, at, np.zeros(len(at)), length)).reshape(7, -1, size)
    return Prepared(g, np.ascontiguousarray(sums.transpose(1, 0, 2)))


class _Pairs(NamedTuple):
    """The r pairs of a piece and a density that matter, in the order of their kinds."""

    point: Indices  # (r,), of each pair
    end: Indices  # the end nearer to the mean, its place in (2, k, m) raveled
    upper: Mask  # whether that is the upper one
    kinds: Indices  # number of pairs that are constant: short, long; not: short, long, whole by end
    higher: Array  # the farther end in deviations, turned
    deviation: Array  # of the point nearest to the (tilted) mean, not turned
    weight: Array  # of the density there, relative to the density's largest
    ratio: Array  # deviation of the tilted density, in those of the density
    hull: Hull
    reference: Array  # (n,), largest exponent of each density


def log_integral(prepared: Prepared, mean: Array, std: Array) -> Array:
    """Return log E[g(y)] and its derivatives by mean and deviation ``(3, n)``, `std` positive."""
    g = prepared.pieces
    if not len(g.log_top):
        return np.repeat([[-np.inf], [0.0], [0.0]], len(mean), axis=1)
    p = _pairs(prepared, mean, std)
    h, flat, s = p.hull, int(p.kinds[:2].sum()), std / g.unit
    sums = _node_sums(prepared, p, std[p.point] * p.ratio)
    total, first, second, slope, slopes, bend, bends = sums
    # t = (y - mean) / std = start + run * u at the nodes
    turned = np.where(p.upper, -p.ratio, p.ratio)
    start, run = p.deviation - turned * h.below, turned * h.length
    first *= run
    second *= run * run
    second += start * first
    first += start * total
    second += start * first
    per_std = 1.0 / s[p.point]
    if g.kinks is None:  # the bend from the slope: E[g''] = E[g' t] / std
        bend *= run
        bend += start * slope
        bend *= per_std
        np.multiply(slopes, per_std, out=bends)
    sums *= p.weight * h.length * p.ratio
    if g.kinks is not None:
        end = p.end[flat:]
        inner = np.minimum((h.offset + h.below)[flat:], 40.0)  # exp(-x**2 / 2) is 0 from here on
        near, outer = h.near[flat:], np.minimum(p.higher[flat:], 1e150)
        kink = g.kinks.ravel().take(end) * np.exp(-0.5 * inner * inner)
        other = g.kinks[::-1].ravel().take(end)
        kink += other * np.exp(-0.5 * (outer - near) * (outer + near))
        kink *= (per_std * p.weight)[flat:]
        sums[5:, flat:] += kink
    if len(g.log_top) == 1:
        back = np.empty_like(p.point)
        back[p.point] = np.arange(len(std))
        sums = sums.take(back, axis=1)
    else:
        sums = np.array([np.bincount(p.point, part, len(std)) for part in sums])
    total, first, second, slope, slopes, bend, bends = sums
    safe = np.where(total > 0.0, total, 1.0)
    out = np.empty((3, len(std)))
    out[0] = np.where(total > 0.0, np.log(safe) + (p.reference - LOG_ROOT_TWO_PI), -np.inf)
    smooth = slopes * s < np.sqrt(second * total)
    out[1] = np.where(smooth, slope, first / s)
    smooth = bends * s * s < second + total
    out[2] = np.where(smooth, s * bend, (second - total) / s)
    out[1:] /= safe * g.unit
    return out


def _pairs(prepared: Prepared, mean: Array, std: Array) -> _Pairs:
    """Place every piece in every density, and keep what matters."""
    g = prepared.pieces
    n, count, flat = len(mean), len(g.log_top), g.constant
    inverse, ratio = 1.0 / std, np.ones(n)
    # (k, n): ends in deviations of the (tilted) density, the point nearest to its mean
    gap, place = g.anchor - mean, (g.anchor - g.centre) + g.step
    gap += g.step
    if math.isfinite(g.fall):
        spread = np.square(std * (math.sqrt(2.0) / g.fall))
        kappa = 1.0 + spread
        ratio /= np.sqrt(kappa)
        away = (mean - g.centre) / kappa
        deviation = np.maximum(np.minimum(-spread * away, gap[1]), gap[0]) * inverse
        gap += spread * place
        gap *= inverse * ratio
        low, high = gap
        fallen = np.maximum(np.minimum(away, place[1]), place[0]) / g.fall
        exponent = -0.5 * deviation * deviation - fallen * fallen
    else:
        low, high = gap * inverse
        deviation = np.maximum(np.minimum(0.0, high), low)
        exponent, fallen = -0.5 * deviation * deviation, None
    span = (place[1] - place[0]) * (inverse / ratio)
    if count == 1:
        pair, k, reference = np.arange(n), np.zeros(n, dtype=np.intp), exponent[0]
        low, high, span = low[0], high[0], span[0]
    else:
        bound = g.log_top + exponent
        top = np.max(bound, axis=0)
        # a constant improvement has no gradient: that comes from the other pieces, however
        # small, as long as they are numbers
        least = np.maximum(np.max(bound[flat:], axis=0, initial=-1e300), top - 655.0)
        matters = bound >= np.maximum(np.minimum(least, top) - 45.0, -1e300)
        if flat:
            matters[:flat] = bound[:flat] >= top - 45.0
        exponent = np.where(matters, exponent, -np.inf)
        reference, largest = np.max(exponent, axis=0), np.arange(n)
        these = np.flatnonzero(exponent == reference)
        largest[these % n] = these  # argmax along a few is slow
        pair = np.flatnonzero(matters)
        k = np.repeat(np.arange(count), np.count_nonzero(matters, axis=1))
        low, high, span = (e.ravel().take(pair) for e in (low, high, span))
    point, at = pair - n * k, k if g.log_top.shape[1] == 1 else pair
    upper, higher = low + high < 0.0, np.maximum(high, -low)
    h, end = hull(np.maximum(low, -high), higher, span), at + g.log_top.size * upper
    kind = (h.length > LONG_HULL).astype(np.int16) + 2
    if flat:
        kind[: np.searchsorted(k, flat)] -= 2
    if len(prepared.shares):
        whole = (kind == 2) & (h.offset == 0.0) & (h.length >= 0.999999 * span)
        kind = np.where(whole, (4 + end).astype(np.int16), kind)
    order = np.argsort(kind, kind="stable")
    pair, point, end = pair.take(order), point.take(order), end.take(order)
    upper, higher = upper.take(order), higher.take(order)
    deviations, weight = deviation.ravel().take(pair), np.ones(1)
    if count > 1:
        # differences of squares as products: the two sides of a SEP cancel in the gradient
        d = deviation.ravel().take(largest).take(point)
        ahead = -0.5 * (deviations - d) * (deviations + d)
        if fallen is not None:
            f, there = fallen.ravel().take(largest).take(point), fallen.ravel().take(pair)
            ahead -= (there - f) * (there + f)
        weight = np.exp(np.minimum(ahead, 80.0))
    h = Hull(*(part.take(order) for part in h))
    kinds, ratio = np.bincount(kind, minlength=4), ratio.take(point)
    return _Pairs(point, end, upper, kinds, higher, deviations, weight, ratio, h, reference)


def _node_sums(prepared: Prepared, p: _Pairs, eta: Array) -> Array:
    """Return the sums over the nodes of each pair, ``(7, r)``."""
    g, h = prepared.pieces, p.hull
    found = np.zeros((7, len(eta)))
    offset, length = eta * h.offset, eta * h.length
    stop = 0
    for kind in np.flatnonzero(p.kinds).tolist():
        start, stop = stop, stop + int(p.kinds[kind])
        rule = LONG if kind in (1, 3) else SHORT
        for m in range(start, stop, _CHUNK):
            some = slice(m, min(m + _CHUNK, stop))
            density, end = h.density(rule, some), p.end[some]
            if kind < 2:
                top = np.exp(g.log_top.ravel().take(end % g.log_top.size))
                found[:3, some] = top * (rule.moments[:3] @ density)
            elif kind < 4:
                found[:, some] = g.sums(Nodes(rule, density, end, offset[some], length[some]))
            else:
                np.matmul(prepared.shares[kind - 4], density, out=found[:, some])
    return found
