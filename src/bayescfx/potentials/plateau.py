"""The potential of a range: its peak *is* the range asked for."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from bayescfx.arrays import Array
from bayescfx.checks import as_numbers, check, is_a, is_number, shown
from bayescfx.errors import TargetError
from bayescfx.potentials.ep_family import PEAK
from bayescfx.potentials.pieces import ENDLESS, Levels, Nodes, Pieces
from bayescfx.potentials.potential import Intervals, LevelPotential, checked_share


@dataclass(frozen=True, slots=True)
class Plateau(LevelPotential):
    r"""Potential of a range: at its peak from `low` to `high`, falling off outside.

    .. math:: \rho(y) = \frac{1}{e\,(1 + z^2)}

    with :math:`z` the distance of :math:`y` to the range in units of `width`. The algebraic tail is
    deliberate: it is C1 with a Lipschitz slope, falls like the EP family close to the range, and
    its slope is still a normal number a hundred orders of magnitude away, where an exponential
    tail has long underflowed and leaves a search without a direction.

    Parameters
    ----------
    low, high : float
        The range; one end may be infinite.
    width : float
        Distance at which the potential is half its peak; positive.

    Examples
    --------
    >>> potential = Plateau(1.0, 2.0, width=0.5)
    >>> potential.superlevel(potential.peak)
    ((1.0, 2.0),)
    >>> float(potential.value(2.5)) == potential.peak / 2
    True
    """

    low: float
    high: float
    width: float
    peak = PEAK  # the largest value, taken on the whole range

    def __post_init__(self) -> None:
        for name, end in (("low", self.low), ("high", self.high)):
            check(is_number(end) or is_a(end, float), name, "a number", end, TargetError)
        if not self.low <= self.high:
            raise TargetError(
                f"Plateau: `low` must not exceed `high`; got {self.low!r} and {self.high!r}."
            )
        if math.isinf(self.low) and math.isinf(self.high):
            raise TargetError("Plateau: one of `low` and `high` must be finite; got both infinite.")
        if not is_number(self.width, math.nextafter(0.0, 1.0)):
            raise TargetError(f"Plateau: `width` must be positive; got {shown(self.width)}.")
        for key in ("low", "high", "width"):
            object.__setattr__(self, key, float(getattr(self, key)))

    def value(self, y: ArrayLike) -> Array:
        return np.asarray(PEAK / (1.0 + np.square(self._distance(y))))

    def slope(self, y: ArrayLike) -> Array:
        z = self._distance(y)
        fall = 1.0 + z * z
        return np.asarray(-2.0 * PEAK / self.width * (z / fall) / fall)

    def superlevel(self, level: float) -> Intervals:
        check(is_number(level), "level", "a number", level, TargetError)
        if level > PEAK:
            return ()
        ((low, high),) = self.superlevels(np.array([level]))
        return ((float(low[0]), float(high[0])),)

    def target_set(self, epsilon: float) -> Intervals:
        epsilon = checked_share(epsilon)
        step = self.width * math.sqrt(epsilon / (1.0 - epsilon))
        return ((self.low - step, self.high + step),)

    def superlevels(self, levels: Array) -> Levels:
        """Return the superlevel set of each level ``(n,)``, all below the peak."""
        # z = sqrt(epsilon / (1 - epsilon)), and the difference is exact near the peak
        z = np.sqrt((PEAK - levels) / np.maximum(levels, 1e-300))
        step = np.where(levels > 0.0, self.width * z, np.inf)
        return [(self.low - step, self.high + step)]

    def knots(self) -> Array:
        steps = self.width * np.concatenate(([0.0], 4.0 ** np.arange(0, 24)))
        knots = np.concatenate([self.low - steps, self.high + steps])
        return np.unique(knots[np.isfinite(knots)])

    def pieces(self, best: Array) -> Pieces:
        """Return the improvement over thresholds ``(m,)``: the range, and both tails in pieces.

        On a tail it is ``(Z - z)(Z + z) / ((1 + Z**2)(1 + z**2))`` peaks, ``Z`` the end of the
        superlevel set: nothing cancels. The algebraic fall allows pieces up to z = 3, 12, 48, ...
        """
        best = np.maximum(best, 0.0)
        reach = np.minimum(np.sqrt((PEAK - best) / np.maximum(best, 1e-300)), ENDLESS)
        whole = 1.0 + reach * reach
        cuts = 3.0 * 4.0 ** np.arange(27)
        cuts = np.concatenate([[0.0], cuts[cuts < np.max(reach, initial=0.0)], [ENDLESS]])
        # Side of the range, its ends there, lower and upper end of the piece in widths from it.
        pieces = [(0.0, (self.low, self.high), (0.0, 0.0))] * (self.low < self.high)
        tail = list(itertools.pairwise(cuts.tolist()))
        if math.isfinite(self.low):
            pieces += [(-1.0, (self.low, self.low), (far, near)) for near, far in tail]
        if math.isfinite(self.high):
            pieces += [(1.0, (self.high, self.high), part) for part in tail]
        sides, anchor, ends = (np.array(part).T for part in zip(*pieces, strict=True))
        z = np.minimum(ends[:, :, None], reach)  # (2, k, m)
        inwards = sides * [[1.0], [-1.0]] / self.width
        turns = np.stack([inwards.ravel(), np.tile(sides, 2)])
        start = np.min(ends, axis=0)[:, None]
        log_top = np.log(PEAK - best) - np.log1p(start * start)
        return Pieces(
            np.clip(anchor, -ENDLESS * self.width, ENDLESS * self.width)[:, :, None],
            (self.width * sides)[:, None] * z,
            np.where((start < reach) | (sides == 0.0)[:, None], log_top, -np.inf),
            partial(_plateau_sums, z.ravel(), reach, turns),
            int(np.sum(sides == 0.0)),
            np.where(z == reach, 2.0 * PEAK * reach / whole / whole, 0.0),
            unit=self.width,
            least=0.0,
        )

    def _distance(self, y: ArrayLike) -> Array:
        """Return the signed distance to the range in widths, 0 inside."""
        y = as_numbers("y", y, TargetError)
        outside = np.maximum(y - self.high, 0.0) - np.maximum(self.low - y, 0.0)
        return np.asarray(np.clip(outside, -1e100 * self.width, 1e100 * self.width) / self.width)


def _plateau_sums(z: Array, reach: Array, turns: Array, nodes: Nodes) -> Array:
    """Return the sums of an improvement; see :class:`Pieces`.

    Both ``Z**2 - z**2`` and ``1 + z**2`` are parabolas in ``u``; ``g' = -2 z fall**2`` and
    ``g'' = (6 - 8 fall) fall**2`` in peaks, with ``fall = 1 / (1 + z**2)``.
    """
    rule, density, at, offset, length = nodes
    piece, point = np.divmod(at, len(reach))
    base = z.take(at)
    last = reach.take(point)
    inwards, side = turns.take(piece, axis=1)
    offset = inwards * offset
    length = inwards * length
    z = base + offset
    fall = rule.parabola @ np.array([1.0 + z * z, 2.0 * z * length, length * length])
    np.reciprocal(fall, out=fall)
    density = density * fall
    first = rule.moments @ density
    density *= fall
    second = rule.moments[:2] @ density
    density *= fall
    third = rule.moments[0] @ density
    share = PEAK / (1.0 + last * last)
    a = ((last - base) - offset) * (last + z) * share
    b = -2.0 * z * length * share
    sums = np.empty((7, len(at)))
    sums[:3] = a * first[:3] + b * first[1:4] - length * length * share * first[2:]
    sums[3] = -2.0 * PEAK * side * (z * second[0] + length * second[1])
    sums[4] = np.abs(sums[3])
    sums[5] = PEAK * (6.0 * second[0] - 8.0 * third)
    sums[6] = 3.0 * PEAK * second[0]
    return sums
