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
from bayescfx.potentials.pieces import LONG, SHORT, GaussLegendre, Pieces

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
        parabola = np.empty((3, len(near)))
        np.multiply(below, -0.5 * below, out=parabola[0])
        np.multiply(below - near, length, out=parabola[1])
        np.multiply(length, -0.5 * length, out=parabola[2])
        nodes = rule.parabola @ parabola
        return np.exp(nodes, out=nodes)


def hull(low: Array, high: Array, span: Array) -> Hull:
    """Return the part of intervals within `DROP` nats of the density's largest value, (n,).

    Ends are deviations from the mean, turned so that ``-low <= high``; `span` is ``high - low``,
    which the caller may know more exactly.
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
    count, span = len(g.log_top), place[1] - place[0]
    # endless pieces are never whole: whatever there is at their finite end will do
    endless, finite = span > 1e60 * g.unit, np.abs(place[1]) < np.abs(place[0])
    ends = np.arange(count) + count * np.where(endless, finite, [[False], [True]])
    at = np.repeat(ends.ravel(), len(SHORT.u))
    length = np.tile(np.where(endless, 0.0, span), 2).repeat(len(SHORT.u))
    each = np.tile(np.eye(len(SHORT.u)), 2 * count)  # sums over one node each
    sums = g.sums(SHORT, each, at, np.zeros(len(at)), length).reshape(7, -1, len(SHORT.u))
    return Prepared(g, np.ascontiguousarray(sums.transpose(1, 0, 2)))


class _Pairs(NamedTuple):
    """The r pairs of a piece and a density that matter; the first `flat` are constant."""

    point: Indices | slice  # (r,), of each pair
    at: Indices  # place in (k, m) raveled
    upper: Mask  # whether the end nearer to the mean is the upper one
    flat: int
    higher: Array  # the farther end in deviations, turned
    deviation: Array  # of the point nearest to the (tilted) mean, not turned
    weight: Array  # of the density there, relative to the density's largest
    ratio: Array  # deviation of the tilted density, in those of the density
    eta: Array  # the same in output units
    span: Array  # of the piece, in eta
    hull: Hull
    reference: Array  # (n,), largest exponent of each density


def log_integral(prepared: Prepared, mean: Array, std: Array) -> Array:
    """Return log E[g(y)] and its derivatives by mean and deviation ``(3, n)``, `std` positive."""
    g = prepared.pieces
    if not len(g.log_top):
        return np.repeat([[-np.inf], [0.0], [0.0]], len(mean), axis=1)
    p = _pairs(g, mean, std)
    h, flat, s = p.hull, p.flat, std / g.unit
    sums = _node_sums(prepared, p)
    total, first, second, slope, slopes, bend, bends = sums
    # t = (y - mean) / std = start + run * u at the nodes
    turned = np.where(p.upper, -p.ratio, p.ratio)
    start, run = p.deviation - turned * h.below, turned * h.length
    tilted = run * first
    second *= run * run
    second += start * (start * total + 2.0 * tilted)
    np.add(start * total, tilted, out=first)
    per_std = 1.0 / s[p.point]
    if g.kinks is None:  # the bend from the slope: E[g''] = E[g' t] / std
        bend *= run
        bend += start * slope
        bend *= per_std
        np.multiply(slopes, per_std, out=bends)
    sums *= p.weight * h.length * p.ratio
    if g.kinks is not None:
        at = (p.at + g.log_top.size * p.upper)[flat:]
        inner = np.minimum((h.offset + h.below)[flat:], 40.0)  # exp(-x**2 / 2) is 0 from here on
        near, outer = h.near[flat:], np.minimum(p.higher[flat:], 1e150)
        kink = g.kinks.ravel()[at] * np.exp(-0.5 * inner * inner)
        kink += g.kinks[::-1].ravel()[at] * np.exp(-0.5 * (outer - near) * (outer + near))
        kink *= (p.weight * per_std)[flat:]
        sums[5:, flat:] += kink
    if not isinstance(p.point, slice):
        sums = np.stack([np.bincount(p.point, part, len(std)) for part in sums])
    total, first, second, slope, slopes, bend, bends = sums
    alive = total > 0.0
    safe = np.where(alive, total, 1.0)
    value = np.where(alive, np.log(safe) + (p.reference - LOG_ROOT_TWO_PI), -np.inf)
    smooth = slopes * s < np.sqrt(second * total)
    d_mean = np.where(smooth, slope, first / s)
    smooth = bends * s * s < second + total
    d_std = np.where(smooth, s * bend, (second - total) / s)
    return np.stack([value, d_mean / safe / g.unit, d_std / safe / g.unit])


def _pairs(g: Pieces, mean: Array, std: Array) -> _Pairs:
    """Place every piece in every density, and keep what matters."""
    n, count, flat = len(mean), len(g.log_top), g.constant
    inverse, ratio = 1.0 / std, np.ones(n)
    # (k, n): ends in deviations of the (tilted) density, the point nearest to its mean
    gap, place = (g.anchor - mean) + g.step, (g.anchor - g.centre) + g.step
    if math.isfinite(g.fall):
        spread = np.square(std * (math.sqrt(2.0) / g.fall))
        kappa = 1.0 + spread
        ratio /= np.sqrt(kappa)
        low, high = (gap + spread * place) * (inverse * ratio)
        lower, away = np.maximum(low, -high), (mean - g.centre) / kappa
        upper, inside = low + high < 0.0, lower < 0.0
        deviation = np.where(inside, -spread * away, np.where(upper, gap[1], gap[0])) * inverse
        fallen = np.where(inside, away, np.where(upper, place[1], place[0])) / g.fall
    else:
        low, high = gap * inverse
        lower, upper = np.maximum(low, -high), low + high < 0.0
        deviation, fallen = np.maximum(lower, 0.0), None
        np.negative(deviation, out=deviation, where=upper)
    exponent = -0.5 * deviation * deviation
    if fallen is not None:
        exponent -= fallen * fallen
    higher = np.maximum(high, -low)
    shared = g.log_top.shape[1] == 1
    if count == 1:
        point: Indices | slice = slice(None)
        at = np.zeros(n, dtype=np.intp) if shared else np.arange(n)
        lower, higher, deviation, upper = lower[0], higher[0], deviation[0], upper[0]
        weight, reference = np.ones(n), exponent[0]
    else:
        bound = g.log_top + exponent
        top = np.max(bound, axis=0)
        # a constant improvement has no gradient: that comes from the other pieces, however
        # small, as long as they are numbers
        least = np.maximum(np.max(bound[flat:], axis=0, initial=-1e300), top - 655.0)
        matters = bound >= np.maximum(np.minimum(least, top) - 45.0, -1e300)
        if flat:
            matters[:flat] = bound[:flat] >= top - 45.0
        pair = np.flatnonzero(matters)
        k, point = np.divmod(pair, n)
        at, flat = k if shared else pair, int(np.searchsorted(k, flat))
        largest = np.argmax(np.where(matters, exponent, -np.inf), axis=0) * n + np.arange(n)
        reference, d = exponent.ravel()[largest], deviation.ravel()[largest][point]
        lower, higher, deviation, upper = (
            part.ravel()[pair] for part in (lower, higher, deviation, upper)
        )
        # differences of squares as products: the two sides of a SEP cancel in the gradient
        ahead = -0.5 * (deviation - d) * (deviation + d)
        if fallen is not None:
            f, fallen = fallen.ravel()[largest][point], fallen.ravel()[pair]
            ahead -= (fallen - f) * (fallen + f)
        weight, ratio = np.exp(np.minimum(ahead, 80.0)), ratio[point]
    eta = std[point] * ratio
    span = np.broadcast_to(place[1] - place[0], g.log_top.shape).ravel()[at] / eta
    h = hull(lower, higher, span)
    return _Pairs(point, at, upper, flat, higher, deviation, weight, ratio, eta, span, h, reference)


def _node_sums(prepared: Prepared, p: _Pairs) -> Array:
    """Return the sums over the nodes of each pair, ``(7, r)``."""
    g, h, r = prepared.pieces, p.hull, len(p.at)
    found = np.zeros((7, r))
    at = p.at + g.log_top.size * p.upper  # by lower and upper end
    offset, length = p.eta * h.offset, p.eta * h.length
    kind = (h.length > LONG_HULL) - 2  # -1: long, -2: short, else whole
    kind[: p.flat] -= 2  # the same, constant
    if len(prepared.shares):
        whole = (kind == -2) & (h.offset == 0.0) & (h.length >= 0.999999 * p.span)
        kind[whole] = at[whole]
    for c in range(-4, len(prepared.shares)):
        rows = np.flatnonzero(kind == c)
        rule = LONG if c in (-1, -3) else SHORT
        for m in range(0, len(rows), _CHUNK):
            some = rows[m : m + _CHUNK]
            density = h.density(rule, some)
            if c >= 0:
                found[:, some] = prepared.shares[c] @ density
            elif c >= -2:
                found[:, some] = g.sums(rule, density, at[some], offset[some], length[some])
            else:
                top = np.exp(g.log_top.ravel()[p.at[some]])
                found[:3, some] = top * (rule.moments[:3] @ density)
    return found
