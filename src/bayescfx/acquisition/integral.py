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
CHUNK = 1000  # pairs per pass: the nodes stay in the cache
MAX_SHARED = 1000  # pieces; of more, few would be used whole
ENDLESS_SPAN = 1e60  # units; longer pieces have no end
WHOLE = 0.999999  # share of a piece that counts as all of it
NEGLIGIBLE = 45.0  # nats below the largest term where a pair no longer matters
DEEPEST = 655.0  # nats below the largest term where numbers still have all their digits
LOWEST = -1e300  # stands for minus infinity: finite, so that no nan can arise
FAR = 40.0  # exp(-x**2 / 2) is 0 in double precision from here on


class LogIntegral(NamedTuple):
    """Logarithm of an integral and its gradient with respect to mean and deviation."""

    value: Array
    d_mean: Array
    d_std: Array


class Hull(NamedTuple):
    """The part of an interval on which a density has mass, in deviations from the mean.

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
        near = self.near[rows]
        below = self.below[rows]
        length = self.length[rows]
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
    count = len(g.log_top)
    span = place[1] - place[0]
    size = len(SHORT.parabola)
    if count > MAX_SHARED:
        return Prepared(g)
    # Endless pieces are never whole: any values at their finite end will do.
    endless = span > ENDLESS_SPAN * g.unit
    finite = np.abs(place[1]) < np.abs(place[0])
    ends = np.arange(count) + count * np.where(endless, finite, [[False], [True]])
    at = np.repeat(ends.ravel(), size)
    length = np.tile(np.where(endless, 0.0, span), 2).repeat(size)
    each = np.tile(np.eye(size), 2 * count)  # sums over one node each
    sums = g.sums(Nodes(SHORT, each, at, np.zeros(len(at)), length)).reshape(7, -1, size)
    return Prepared(g, np.ascontiguousarray(sums.transpose(1, 0, 2)))


class _Pairs(NamedTuple):
    """The r pairs of a piece and a density that matter, in the order of their kinds."""

    point: Indices  # (r,), of each pair
    end: Indices  # the end nearer to the mean, its position in (2, k, m) raveled
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
    h = p.hull
    s = std / g.unit
    sums = _node_sums(prepared, p, std[p.point] * p.ratio)
    total, first, second, slope, slopes, bend, bends = sums
    # t = (y - mean) / std = start + run * u at the nodes
    turned = np.where(p.upper, -p.ratio, p.ratio)
    start = p.deviation - turned * h.below
    run = turned * h.length
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
        _add_kinks(g.kinks, p, per_std, sums)
    sums = _sum_by_point(p, sums, len(std), is_single=len(g.log_top) == 1)
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


def _add_kinks(kinks: Array, p: _Pairs, per_std: Array, sums: Array) -> None:
    """Add the jumps of the slope at both ends to the bends in `sums` ``(7, r)``."""
    flat = int(p.kinds[:2].sum())
    h = p.hull
    end = p.end[flat:]
    inner = np.minimum((h.offset + h.below)[flat:], FAR)
    near = h.near[flat:]
    outer = np.minimum(p.higher[flat:], 1e150)
    kink = kinks.ravel().take(end) * np.exp(-0.5 * inner * inner)
    other = kinks[::-1].ravel().take(end)
    kink += other * np.exp(-0.5 * (outer - near) * (outer + near))
    kink *= (per_std * p.weight)[flat:]
    sums[5:, flat:] += kink


def _sum_by_point(p: _Pairs, sums: Array, n: int, *, is_single: bool) -> Array:
    """Return sums of pairs ``(7, r)`` added up by point ``(7, n)``; `is_single`: one piece."""
    if is_single:
        back = np.empty_like(p.point)
        back[p.point] = np.arange(n)
        return sums.take(back, axis=1)
    return np.array([np.bincount(p.point, part, n) for part in sums])


class _Places(NamedTuple):
    """Where k pieces lie in n densities, ``(k, n)`` each, in deviations of the tilted density."""

    low: Array  # ends of the pieces
    high: Array
    span: Array  # their distance
    deviation: Array  # of the point nearest to the (tilted) mean, in deviations of the density
    fallen: Array | None  # its distance from the centre, in units of the fall
    exponent: Array  # of the integrand there
    ratio: Array  # (n,) deviation of the tilted density, in those of the density


def _place(g: Pieces, mean: Array, std: Array) -> _Places:
    """Return where every piece lies in every density."""
    inverse = 1.0 / std
    ratio = np.ones(len(mean))
    gap = g.anchor - mean
    gap += g.step
    place = (g.anchor - g.centre) + g.step
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
        fallen = None
        exponent = -0.5 * deviation * deviation
    span = (place[1] - place[0]) * (inverse / ratio)
    return _Places(low, high, span, deviation, fallen, exponent, ratio)


def _matters(g: Pieces, exponent: Array) -> Mask:
    """Return which pairs ``(k, n)`` of a piece and a density matter, by exponents ``(k, n)``."""
    flat = g.constant
    bound = g.log_top + exponent
    top = np.max(bound, axis=0)
    # A constant improvement has no gradient: that comes from the other pieces, however small, as
    # long as they are numbers.
    least = np.maximum(np.max(bound[flat:], axis=0, initial=LOWEST), top - DEEPEST)
    matters = bound >= np.maximum(np.minimum(least, top) - NEGLIGIBLE, LOWEST)
    if flat:
        matters[:flat] = bound[:flat] >= top - NEGLIGIBLE
    return np.asarray(matters)


def _weights(places: _Places, largest: Indices, pair: Indices, point: Indices) -> Array:
    """Return the densities at the nearest points of pairs, relative to the density's largest."""
    # Differences of squares as products: the two sides of a SEP cancel in the gradient.
    here = places.deviation.ravel().take(pair)
    best = places.deviation.ravel().take(largest).take(point)
    ahead = -0.5 * (here - best) * (here + best)
    if places.fallen is not None:
        here = places.fallen.ravel().take(pair)
        best = places.fallen.ravel().take(largest).take(point)
        ahead -= (here - best) * (here + best)
    return np.exp(np.minimum(ahead, 80.0))


def _pairs(prepared: Prepared, mean: Array, std: Array) -> _Pairs:
    """Place every piece in every density, and keep the pairs that matter."""
    g = prepared.pieces
    n = len(mean)
    count = len(g.log_top)
    places = _place(g, mean, std)
    if count == 1:
        pair = np.arange(n)
        k = np.zeros(n, dtype=np.intp)
        reference = places.exponent[0]
        low, high, span = (part[0] for part in places[:3])
    else:
        matters = _matters(g, places.exponent)
        exponent = np.where(matters, places.exponent, -np.inf)
        reference = np.max(exponent, axis=0)
        largest = np.arange(n)
        these = np.flatnonzero(exponent == reference)
        largest[these % n] = these  # argmax along a few is slow
        pair = np.flatnonzero(matters)
        k = np.repeat(np.arange(count), np.count_nonzero(matters, axis=1))
        low, high, span = (part.ravel().take(pair) for part in places[:3])
    point = pair - n * k
    upper = low + high < 0.0
    higher = np.maximum(high, -low)
    h = hull(np.maximum(low, -high), higher, span)
    end = (k if g.log_top.shape[1] == 1 else pair) + g.log_top.size * upper
    kind = (h.length > LONG_HULL).astype(np.int16) + 2
    if g.constant:
        kind[: np.searchsorted(k, g.constant)] -= 2
    if len(prepared.shares):
        whole = (kind == 2) & (h.offset == 0.0) & (h.length >= WHOLE * span)
        kind = np.where(whole, (4 + end).astype(np.int16), kind)
    order = np.argsort(kind, kind="stable")
    pair = pair.take(order)
    point = point.take(order)
    return _Pairs(
        point=point,
        end=end.take(order),
        upper=upper.take(order),
        kinds=np.bincount(kind, minlength=4),
        higher=higher.take(order),
        deviation=places.deviation.ravel().take(pair),
        weight=_weights(places, largest, pair, point) if count > 1 else np.ones(1),
        ratio=places.ratio.take(point),
        hull=Hull(*(part.take(order) for part in h)),
        reference=reference,
    )


def _node_sums(prepared: Prepared, p: _Pairs, eta: Array) -> Array:
    """Return the sums over the nodes of each pair, ``(7, r)``."""
    g = prepared.pieces
    h = p.hull
    out = np.zeros((7, len(eta)))
    offset = eta * h.offset
    length = eta * h.length
    stop = 0
    for kind in np.flatnonzero(p.kinds).tolist():
        start = stop
        stop += int(p.kinds[kind])
        rule = LONG if kind in (1, 3) else SHORT
        for m in range(start, stop, CHUNK):
            some = slice(m, min(m + CHUNK, stop))
            density = h.density(rule, some)
            end = p.end[some]
            if kind < 2:
                top = np.exp(g.log_top.ravel().take(end % g.log_top.size))
                out[:3, some] = top * (rule.moments[:3] @ density)
            elif kind < 4:
                out[:, some] = g.sums(Nodes(rule, density, end, offset[some], length[some]))
            else:
                np.matmul(prepared.shares[kind - 4], density, out=out[:, some])
    return out
