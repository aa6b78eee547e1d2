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
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayescfx.arrays import Array, Indices, Mask

Rows: TypeAlias = "slice | Indices"

DROP = 43.0  # nats below the largest term where the integrand is cut off
CHUNK = 1000  # points per pass: the node arrays stay in the cache


class GaussLegendre(NamedTuple):
    """Gauss-Legendre on [0, 1], as what it is multiplied with."""

    nodes: int
    powers: Array  # (nodes, 3): a parabola at every node
    moments: Array  # (5, nodes): sums times powers of u


def _legendre(nodes: int) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return nodes and weights on [0, 1] in extended precision: numpy's are good to 1e-13 only."""
    x: NDArray[np.floating] = np.polynomial.legendre.leggauss(nodes)[0].astype(np.longdouble)
    slope: NDArray[np.floating] = x
    for _ in range(2):  # Newton's method
        before, here = x**0, x
        for k in range(2, nodes + 1):
            before, here = here, ((2 * k - 1) * x * here - (k - 1) * before) / k
        slope = nodes * (x * here - before) / (x * x - 1)
        x = x - here / slope
    return (1 + x) / 2, 1 / ((1 - x * x) * slope * slope)


def _rule(nodes: int) -> GaussLegendre:
    u, w = _legendre(nodes)
    powers = np.stack([u**k for k in range(5)])
    return GaussLegendre(
        nodes,
        np.ascontiguousarray(powers[:3].T, dtype=float),
        np.asarray(w * powers, dtype=float),
    )


# relative errors of the EP family's and the plateaus' integrals stay at roundings with these
SHORT, LONG = _rule(26), _rule(42)
_LONG = 10.0  # hulls of more deviations than this have both flanks of the density inside
NARROW = 0.2  # densities narrower than this share of an interval use the derivatives of g
LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_TWICE = 2.0 * DROP
_REACH = math.sqrt(_TWICE)  # deviations from the mean to where the density has dropped


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
    """Where a density has mass on an interval, in deviations from the mean.

    The interval is turned so that its end nearer to the mean is the lower one. Nodes are
    ``near - below + length * u`` for ``u`` in [0, 1], which is ``offset + length * u`` away from
    that end.
    """

    near: Array  # the point of the interval closest to the mean; 0 if the mean is inside
    below: Array
    length: Array
    offset: Array

    def exponents(self) -> Array:
        """Return the parabola in ``u`` of the log density relative to `near`, (3, n)."""
        near, below, length, _ = self
        out = np.empty((3, len(near)))
        np.multiply(below, -0.5 * below, out=out[0])
        np.multiply(below - near, length, out=out[1])
        np.multiply(length, -0.5 * length, out=out[2])
        return out

    def moments(self, total: Array, first: Array, second: Array) -> tuple[Array, Array]:
        """Return mean and mean square of the distance from `near`, from sums over u."""
        mean = self.length * (first / total) - self.below
        square = self.length * self.length * (second / total)
        return mean, square - self.below * (2.0 * mean + self.below)


def hull(low: Array, high: Array, span: Array) -> Hull:
    """Return the part of an interval within `DROP` nats of the density's largest value.

    Parameters
    ----------
    low, high : ndarray of shape (n,)
        Ends of the interval, as deviations from the mean, turned so that ``-low <= high``.
    span : ndarray of shape (n,)
        ``high - low``, which the caller may know more exactly.

    Returns
    -------
    Hull
        Arrays of shape (n,).
    """
    near = np.maximum(low, 0.0)
    # solves x * near + x**2 / 2 = DROP without cancellation
    fall = _TWICE / (near + np.sqrt(near * near + _TWICE))
    above = np.minimum(np.minimum(fall, span), high)
    inner = np.maximum(-low, 0.0)
    below = np.minimum(inner, _REACH)
    return Hull(near, below, below + above, inner - below)


class Batch(NamedTuple):
    """Some of the points, the rule that their hulls need, and memory for their nodes."""

    rule: GaussLegendre
    rows: Rows
    size: int
    memory: list[Array]

    def parabola(self, coefficients: Array, place: int) -> Array:
        """Return a parabola in ``u``, given as (3, n), at every node: (nodes, size)."""
        if isinstance(self.rows, slice):
            chosen = coefficients[:, self.rows]
        else:
            chosen = coefficients.take(self.rows, axis=1)
        return np.matmul(self.rule.powers, chosen, out=self.array(place))

    def array(self, place: int) -> Array:
        """Return one of the node arrays, (nodes, size), with whatever it holds."""
        return self.memory[place][: self.rule.nodes * self.size].reshape(-1, self.size)


def batches(length: Array, arrays: int) -> Iterator[Batch]:
    """Yield all points in batches that share a rule, each with `arrays` node arrays.

    Where only some hulls are long, their points come twice: the last batch counts.
    """
    n = len(length)
    long = np.flatnonzero(length > _LONG)
    few = 2 * long.size < n
    most = (LONG if long.size else SHORT).nodes * min(n, CHUNK)
    memory = [np.empty(most) for _ in range(arrays)]
    for i in range(0, n, CHUNK):
        size = min(CHUNK, n - i)
        yield Batch(SHORT if few else LONG, slice(i, i + size), size, memory)
    if few:
        for i in range(0, len(long), CHUNK):
            some = long[i : i + CHUNK]
            yield Batch(LONG, some, len(some), memory)


def density_moments(h: Hull, count: int = 3) -> Array:
    """Return the sums of the density over the nodes, times powers of ``u``, (count, n)."""
    exponents = h.exponents()
    sums = np.empty((count, exponents.shape[1]))
    for batch in batches(h.length, 1):
        density = batch.parabola(exponents, 0)
        sums[:, batch.rows] = batch.rule.moments[:count] @ np.exp(density, out=density)
    return sums


class Relative(NamedTuple):
    """Integrals as ``total * exp(exponent) / sqrt(2 pi)``, with the gradient of the logarithm."""

    exponent: Array
    total: Array
    d_mean: Array
    d_std: Array

    def log(self) -> LogIntegral:
        """Return the logarithm, -inf where nothing is left."""
        total = self.total
        empty = np.flatnonzero(~(total > 0.0))
        total[empty] = 1.0
        value = np.log(total)
        value += self.exponent
        value -= LOG_ROOT_TWO_PI
        value[empty] = -np.inf
        return LogIntegral(value, self.d_mean, self.d_std)


def merged(n: int, parts: Sequence[tuple[Indices, Sequence[Array]]]) -> tuple[Array, ...]:
    """Put the results of disjoint sets of points together."""
    whole = np.empty((len(parts[0][1]), n))
    for rows, found in parts:
        for full, part in zip(whole, found, strict=True):
            full[rows] = part
    return tuple(whole)


class Fixed(NamedTuple):
    """An improvement at the nodes of its own interval, for densities that are wide against it.

    These nodes serve every density that falls by less than `DROP` nats along the interval, so the
    improvement is evaluated once for all of them.
    """

    length: float
    powers: Array  # (nodes, 3): a parabola at every node
    shares: Array  # (5, nodes): weights times g, g u, g u**2, g' and g' u

    def suits(self, low: Array, high: Array, length: Array) -> Mask:
        """Return which densities the nodes serve; ends and length in deviations."""
        near = np.maximum(np.maximum(low, -high), 0.0)
        return np.asarray(length * (near + 0.5 * length) < DROP)

    def sums(self, low: Array, high: Array, length: Array) -> Array:
        """Return the sums over the nodes relative to the nearest point's density, (5, n)."""
        n, nodes = len(length), len(self.powers)
        exponents = np.empty((3, n))
        nearest = np.minimum(np.maximum(low, 0.0), high)
        # low - nearest is known exactly when it is the whole length
        np.multiply(np.maximum(np.minimum(low, 0.0), -length), -0.5, out=exponents[0])
        exponents[0] *= low + nearest
        np.multiply(low, -length, out=exponents[1])
        np.multiply(length, -0.5 * length, out=exponents[2])
        found = np.empty((5, n))
        memory = np.empty(nodes * min(n, CHUNK))
        for i in range(0, n, CHUNK):
            some = exponents[:, i : i + CHUNK]
            density = memory[: nodes * some.shape[1]].reshape(nodes, -1)
            np.matmul(self.powers, some, out=density)
            np.matmul(self.shares, np.exp(density, out=density), out=found[:, i : i + CHUNK])
        return found

    def integral(self, low: Array, high: Array, length: Array, inverse: Array) -> Relative:
        """Return the integrals; ends and length in deviations, `inverse` is 1 / deviation."""
        total, first, second, slope, tilted = self.sums(low, high, length)
        near = np.minimum(np.maximum(low, 0.0), high)
        share = 1.0 / np.where(total > 0.0, total, 1.0)
        run = length * first * share
        mean = low + run
        square = low * (mean + run) + length * length * second * share
        d_mean, d_std = mean * inverse, (square - 1.0) * inverse
        narrow = length * NARROW > 1.0
        if narrow.any():
            np.copyto(d_mean, slope * share, where=narrow)
            np.copyto(d_std, (low * slope + length * tilted) * share, where=narrow)
        return Relative(-0.5 * near * near, total * length, d_mean, d_std)


def fixed(length: float, gain: Array, slope: Array) -> Fixed:
    """Return an improvement and its slope at the nodes ``SHORT.powers[:, 1]`` of an interval."""
    shares = np.concatenate([SHORT.moments[:3] * gain, SHORT.moments[:2] * slope])
    return Fixed(length, SHORT.powers, shares)


def joined(parts: Sequence[Fixed]) -> Fixed:
    """Return adjacent intervals as one, each with its own nodes."""
    length = sum(part.length for part in parts)
    u, gain, slope, start = [], [], [], 0.0
    for part in parts:
        share = part.length / length
        u.append(start + share * part.powers[:, 1])
        gain.append(share * part.shares[0])
        slope.append(share * part.shares[3])
        start += share
    at, g, d = (np.concatenate(x) for x in (u, gain, slope))
    powers = np.stack([np.ones_like(at), at, at * at], axis=1)
    return Fixed(length, powers, np.stack([g, g * at, g * at * at, d, d * at]))
