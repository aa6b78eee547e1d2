"""The exponential-polynomial potentials AEP and SEP (Definition "EP Family", Lemma B.1).

The :class:`Valley`, which is not in the paper, has their slopes up to the peaks.

Symbols: ``z = (y - origin) / width``, ``t = z**2``, ``v = t - 1``, ``epsilon = 1 - e * level``.
Near the peak ``1/e`` a level can no longer tell how far away the peak is, so its shortfall
``epsilon`` or its depth ``-log(1 - epsilon)`` is carried instead. The paper's limits of
integration print Lambert's W at ``rho*``; they need ``-rho*``, and both radii of the target set
move with ``epsilon`` (the footnote calls the inner one fixed).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.checks import as_numbers, check, is_number, shown
from bayescfx.errors import TargetError
from bayescfx.potentials.pieces import ENDLESS, Levels, Nodes, Pieces
from bayescfx.potentials.potential import Intervals, LevelPotential, checked_number, checked_share

PEAK = math.exp(-1.0)
_FAR = 700.0  # exp of more overflows
_SERIES = [1.0 / math.factorial(k) for k in range(2, 8)]  # (expm1(D) - D) / D**2
_CLOSE = 0.004  # of z**2 to its value at the peak: expm1 then loses the digits that matter


def depth(level: ArrayLike) -> Array:
    """Return ``-log(e * level)``, nats below the peak 1/e; inf for levels up to 0."""
    level = np.asarray(level, dtype=float)
    positive = level > 0.0
    safe = np.where(positive, level, 1.0)
    # Near the peak from the shortfall 1 - e * level, without losing its digits.
    split = 134217729.0  # 2**27 + 1: Dekker's product, product + rest == math.e * safe exactly
    product = math.e * safe
    big = split * safe
    high = big - (big - safe)
    low = safe - high
    e_big = split * math.e
    e_high = e_big - (e_big - math.e)
    e_low = math.e - e_high
    rest = e_low * low - (((product - e_high * high) - e_low * high) - e_high * low)
    shortfall = (1.0 - product) - rest - 1.4456468917292502e-16 * safe  # e - math.e
    near = -np.log1p(-np.clip(shortfall, 0.0, 0.5))
    return np.where(positive, np.where(safe < 0.25, -1.0 - np.log(safe), near), np.inf)


def ep_edges(depths: ArrayLike) -> tuple[Array, Array]:
    """Return where the EP family crosses levels of given :func:`depth` (Lemma B.1).

    The inner and outer root ``t = z**2`` of ``t * exp(1 - t) = 1 - epsilon``, and ``v = t - 1``
    exactly, ``(2, ...)`` each: ``t`` is ``-W0(-level)`` and ``-W-1(-level)``, solved here in
    ``log t`` because Lambert's W in double precision is wrong near its branch point.
    """
    depths = np.asarray(depths, dtype=float)
    inside = np.isfinite(depths)
    sign = np.reshape([-1.0, 1.0], (2,) + (1,) * depths.ndim)
    d = np.where(inside, depths, 1.0)
    s = sign * np.sqrt(2.0 * d)
    # v(s) with v - log(1 + v) = s**2 / 2, the expansion of Lambert's W around its branch point
    branch = (1.0, 1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010, -139 / 5443200, 1 / 204120)
    small = np.clip(s, -1.0, 1.0)
    v = small * np.polynomial.polynomial.polyval(small, branch)
    t = 1.0 + v
    # For small depth the series is exact, while the residual below loses its digits.
    exact = np.abs(s) < 0.1
    if not exact.all():
        far = np.maximum(d, 0.005)
        inner = -1.0 - far + np.exp(-1.0 - far)
        outer = np.log(1.0 + far + np.log1p(s + far))
        start = np.where(sign > 0.0, outer, inner)
        log_t = np.where(exact, 0.15 * sign, np.where(far < 0.5, np.log1p(v), start))
        for _ in range(3):  # Halley's method: the digits triple from at least one
            gradient = np.expm1(log_t)
            miss = gradient - log_t - far
            log_t -= miss * gradient / (gradient * gradient - 0.5 * miss * (gradient + 1.0))
        t = np.where(exact, t, np.exp(log_t))
        v = np.where(exact, v, np.expm1(log_t))
    if not inside.all():
        t = np.where(inside, t, np.where(sign > 0.0, np.inf, 0.0))
        v = np.where(inside, v, np.where(sign > 0.0, np.inf, -1.0))
    return t, v


@dataclass(frozen=True, slots=True)
class _EP(LevelPotential):
    """The common part of both members of the family; `signs` are the sides that count."""

    origin: float
    width: float
    peak = PEAK  # the largest value

    def __post_init__(self) -> None:
        name = type(self).__name__
        for key in ("origin", "width"):
            object.__setattr__(self, key, checked_number(key, name, getattr(self, key)))
        origin = self.origin
        width = self.width
        if not width > 0.0:
            raise TargetError(
                f"{name}: `width` must be positive; got {width!r}. "
                "It is the size of the change asked for."
            )
        if origin + width == origin or not math.isfinite(abs(origin) + width):
            raise TargetError(
                f"{name}: `width` {width!r} is lost in rounding beside `origin` {origin!r}. "
                "Ask for a larger change."
            )
        for side in self.signs:
            if not is_number(side) or side not in (1, -1):
                raise TargetError(f"{name}: `side` must be 1 (up) or -1 (down); got {shown(side)}.")

    @cached_property
    def signs(self) -> tuple[int, ...]:
        """The sides of the origin that count, lower one first."""
        return (-1, 1)

    def value(self, y: ArrayLike) -> Array:
        return self.value_and_slope(y)[0]

    def slope(self, y: ArrayLike) -> Array:
        return self.value_and_slope(y)[1]

    def value_and_slope(self, y: ArrayLike) -> tuple[Array, Array]:
        """Return both at the price of one."""
        away = as_numbers("y", y, TargetError) - self.origin
        sign = np.sign(away) if len(self.signs) == 2 else self.signs[0]
        # exp(-z**2) is 0 in double precision from z = 28 on
        z = np.clip(sign * away, 0.0, 30.0 * self.width) / self.width
        t = z * z
        decay = np.exp(-t)
        slope = sign * 2.0 * z * (1.0 - z) * (1.0 + z) * decay / self.width
        return np.minimum(t * decay, PEAK), np.asarray(slope)

    def superlevel(self, level: float) -> Intervals:
        """Return where the potential is at least `level`; at 0, the limit from above."""
        check(is_number(level), "level", "a number", level, TargetError)
        if level > PEAK:
            return ()
        if level < 0.0:
            return ((-math.inf, math.inf),)
        return self._set(float(depth(level)))

    def target_set(self, epsilon: float) -> Intervals:
        return self._set(-math.log1p(-checked_share(epsilon)))

    def superlevels(self, levels: Array) -> Levels:
        """Return the superlevel set of each level ``(n,)``, all below the peak."""
        anchor, step = self._ends(*ep_edges(depth(levels)))
        low, high = anchor + step
        is_negative = levels < 0.0
        low[:, is_negative] = np.inf
        high[:, is_negative] = np.inf
        low[0, is_negative] = -np.inf  # the whole line, once
        return list(zip(low, high, strict=True))

    def knots(self) -> Array:
        # extrema of z**2 exp(-z**2), and steps over which it falls moderately
        z = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 27.3])
        return np.unique([self.origin + sign * self.width * z for sign in self.signs])

    def pieces(self, best: Array) -> Pieces:
        """Return the improvement over thresholds ``(m,)``: one piece for each side.

        ``rho - best = exp(-z**2) (D - t_e expm1(D))`` with ``D = z**2 - t_e`` counted from an
        edge ``t_e`` of the superlevel set.
        """
        t, v = ep_edges(depth(best))  # (2, m): inner, outer
        anchor, step = self._ends(t, v)
        edges = np.stack([np.sqrt(t), t, v])
        np.minimum(edges, ENDLESS, out=edges)
        kinks = np.where(t < ENDLESS, 2.0 * np.abs(edges[0] * edges[2]), 0.0)
        # by lower and upper ends (2, k): which edge it is, where z increases inwards, the side
        side = np.array([self.signs, self.signs])
        inwards = side * [[1], [-1]]
        edge = (1 - inwards) // 2
        turns = np.stack([inwards.ravel() / self.width, side.ravel()])
        close = bool(np.max(v[0], initial=-1.0) > -_CLOSE)  # inner edges are closer
        far = bool(np.max(t[1], initial=1.0) > _FAR)
        return Pieces(
            anchor,
            np.clip(step, -ENDLESS * self.width, ENDLESS * self.width),
            np.zeros(step.shape[1:]),
            partial(_ep_sums, edges.take(edge, axis=1).reshape(3, -1), turns, close, far),
            kinks=kinks.take(edge, axis=0),
            unit=self.width,
            fall=self.width,
            centre=self.origin,
            least=0.0,
        )

    def _set(self, depth: float) -> Intervals:
        """Return one superlevel set."""
        anchor, step = self._ends(*ep_edges(depth))
        return tuple((float(low), float(high)) for low, high in (anchor + step).T)

    def _ends(self, t: Array, v: Array) -> tuple[Array, Array]:
        """Return lower and upper ends ``(2, k, ...)`` of superlevel sets, as anchor plus step."""
        z = np.sqrt(t)
        beside = (v > -0.75) & (v < 3.0)  # steps from the peak keep the digits, else from origin
        away = self.width * np.where(beside, np.minimum(v, 3.0) / (1.0 + z), z)
        anchors = []
        steps = []
        for sign in self.signs:
            peak = self.origin + sign * self.width
            moved = peak - self.origin
            lost = (self.origin - (peak - moved)) + (sign * self.width - moved)  # in rounding
            anchors.append(np.where(beside, peak, self.origin)[::sign])
            steps.append((sign * away + np.where(beside, lost, 0.0))[::sign])
        return np.stack(anchors, axis=1), np.stack(steps, axis=1)


def _ep_sums(table: Array, turns: Array, close_by: bool, far_off: bool, nodes: Nodes) -> Array:
    """Return the sums of :class:`Pieces`: ``g' = -2 z v`` and ``g'' = 4 v**2 - 2 v - 4``."""
    rule, density, at, offset, length = nodes
    z, t, v = table.take(at, axis=1)
    inwards, sign = turns.take(at // (table.shape[1] // turns.shape[1]), axis=1)
    offset = inwards * offset
    length = inwards * length
    d0 = offset * (2.0 * z + offset)
    d1 = 2.0 * length * (z + offset)
    d2 = length * length
    step = rule.parabola @ np.array([d0, d1, d2])  # D = z**2 - t
    gain = np.expm1(np.minimum(step, _FAR) if far_off else step)
    gain *= -t
    gain += step
    if close_by:
        close = np.abs(v) < _CLOSE
        # D - t expm1(D) = -D (v + t (expm1(D) - D) / D), from the series of expm1
        D = step[:, close]
        gain[:, close] = (polyval(D, _SERIES) * (t[close] * D) + v[close]) * -D
    gain *= density
    moments = rule.moments @ density
    z = z + offset
    v = v + d0
    first, second, third = v * moments[:3] + d1 * moments[1:4] + d2 * moments[2:]  # of v u**k
    square = v * first + d1 * second + d2 * third  # of v**2
    size = np.abs(square)
    m0 = moments[0]
    sums = np.empty((7, len(at)))
    np.matmul(rule.moments[:3], gain, out=sums[:3])
    sums[3] = -2.0 * sign * (z * first + length * second)
    sums[4] = 2.0 * np.abs(z * m0 + length * moments[1]) * np.sqrt(size / m0)
    sums[5] = 4.0 * (square - m0) - 2.0 * first
    sums[6] = 4.0 * (size + m0) + 2.0 * np.abs(first)
    return sums


@dataclass(frozen=True, slots=True)
class AEP(_EP):
    r"""Asymmetric exponential-polynomial potential: change the output by `width` to one side.

    .. math:: \rho(y) = z^2 e^{-z^2}, \quad z = \max(0,\ \pm (y - \text{origin}) / \text{width})

    with the sign of `side`; the peak 1/e is at ``origin + side * width`` (Definition "EP Family").

    Parameters
    ----------
    origin : float
        The output that is to change, f(query).
    width : float
        How far it should move; positive.
    side : {1, -1}
        Upwards or downwards.

    Examples
    --------
    >>> potential = AEP(0.0, 2.0, side=-1)
    >>> float(potential.value(-2.0)) == potential.peak, float(potential.value(2.0))
    (True, 0.0)
    """

    side: Literal[1, -1] = 1

    @cached_property
    def signs(self) -> tuple[int, ...]:
        """The side of the origin that counts."""
        return (self.side,)


@dataclass(frozen=True, slots=True)
class SEP(_EP):
    r"""Symmetric exponential-polynomial potential: change the output by `width` either way.

    .. math:: \rho(y) = z^2 e^{-z^2}, \quad z = (y - \text{origin}) / \text{width}

    The sum of the two :class:`AEP` (Definition "EP Family").

    Parameters
    ----------
    origin, width : float
        As in :class:`AEP`.

    Examples
    --------
    >>> len(SEP(0.0, 1.0).superlevel(0.2))
    2
    """


@dataclass(frozen=True, slots=True)
class Valley(_EP):
    r"""Potential of a change by at least `width` either way: at its peak from there on.

    .. math:: \rho(y) = z^2 e^{-z^2}, \quad z = \min(1,\ |y - \text{origin}| / \text{width})

    Up to its peaks it is the :class:`SEP`; beyond, it stays at 1/e. It is therefore continuously
    differentiable, and 0 at the origin. It is not in the paper.

    Parameters
    ----------
    origin : float
        The output that is to change, f(query).
    width : float
        How far it should move at least; positive.

    Examples
    --------
    >>> potential = Valley(10.0, 2.0)
    >>> potential.superlevel(potential.peak)
    ((-inf, 8.0), (12.0, inf))
    >>> float(potential.value(10.0)), float(potential.value(-50.0)) == potential.peak
    (0.0, True)
    """

    pieces = None  # type: ignore[assignment]  # those of any potential, from value and slope

    def value_and_slope(self, y: ArrayLike) -> tuple[Array, Array]:
        """Return both at the price of one."""
        away = as_numbers("y", y, TargetError) - self.origin
        z = np.minimum(np.abs(away), self.width) / self.width
        decay = np.exp(-z * z)
        slope = np.sign(away) * 2.0 * z * (1.0 - z) * (1.0 + z) * decay / self.width
        return np.minimum(z * z * decay, PEAK), np.asarray(slope)

    def superlevels(self, levels: Array) -> Levels:
        """Return the superlevel set of each level ``(n,)``, all below the peak."""
        (_, below), (above, _) = _EP.superlevels(self, levels)
        endless = np.full(levels.shape, np.inf)
        return [(-endless, below), (above, endless)]

    def knots(self) -> Array:
        return self.origin + self.width * np.array([-1.0, 0.0, 1.0])

    def _set(self, depth: float) -> Intervals:
        """Return one superlevel set."""
        (_, below), (above, _) = _EP._set(self, depth)
        return (-math.inf, below), (above, math.inf)
