"""The improvement ``max(0, rho(y) - best)`` in pieces: all that log EI has to know of a potential.

On each piece the improvement is smooth. Its value is asked for at distances from the piece's
nearer end, because next to the edge of a superlevel set ``rho(y) - best`` has lost its digits. A
family that knows better than that difference builds its own :class:`Pieces`, for all others
:func:`pieces_over` does, from value, slope and knots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayescfx.arrays import Array, Indices
from bayescfx.potentials.potential import Potential


class GaussLegendre(NamedTuple):
    """Gauss-Legendre on [0, 1]: powers of the nodes u, and weights times powers of them."""

    parabola: Array  # (nodes, 3): 1, u, u**2
    moments: Array  # (5, nodes)


def _rule(nodes: int) -> GaussLegendre:
    """Return the rule, polished in extended precision: numpy's is good to 1e-13 only."""
    x: NDArray[np.floating] = np.polynomial.legendre.leggauss(nodes)[0].astype(np.longdouble)
    slope: NDArray[np.floating] = x
    for _ in range(2):  # Newton's method
        before, here = x**0, x
        for k in range(2, nodes + 1):
            before, here = here, ((2 * k - 1) * x * here - (k - 1) * before) / k
        slope = nodes * (x * here - before) / (x * x - 1)
        x = x - here / slope
    u, w = (1 + x) / 2, 1 / ((1 - x * x) * slope * slope)
    powers = np.stack([u**k for k in range(5)])
    parabola = np.ascontiguousarray(powers[:3].T, dtype=float)
    return GaussLegendre(parabola, np.asarray(w * powers, dtype=float))


class Nodes(NamedTuple):
    """Where an improvement is wanted: ``offset + length * u`` away from ends, inwards, r times."""

    rule: GaussLegendre
    density: Array  # (nodes, r) there
    at: Indices  # (r,) which ends, an index into (2, k, m) raveled
    offset: Array  # (r,)
    length: Array  # (r,)


# relative errors of the EP family's and the plateaus' integrals stay at roundings with these
SHORT, LONG = _rule(26), _rule(42)
Levels: TypeAlias = list[tuple[Array, Array]]  # ends of intervals, one entry per level
ENDLESS = 1e100  # widths that stand for infinity: finite, so that no nan can arise


@dataclass(frozen=True, slots=True)
class Pieces:
    """An improvement as k pieces, for m thresholds: one per point, or one for all.

    ``sums(nodes)`` returns seven sums ``(7, r)``: of the improvement g times 1, u and u**2, of its
    slope g' and the size of that, of its bend g'' and the size of that (per `unit`), all divided by
    ``exp(-((y - centre) / fall)**2)``. Without `kinks` the last two are of g' u and nothing: the
    bend is then taken from the slope.
    """

    anchor: Array  # (2, k, m), lower and upper ends of the pieces are anchor + step,
    step: Array  # so that no digits are lost
    log_top: Array  # (k, m), roughly the logarithm of the largest improvement; -inf: empty
    sums: Callable[[Nodes], Array]
    constant: int = 0  # on so many pieces, the first ones, the improvement is just that
    kinks: Array | None = None  # (2, k, m), jumps of the slope at both ends
    unit: float = 1.0
    fall: float = np.inf
    centre: float = 0.0
    least: float = -np.inf  # no value is lower; of a threshold below, the rest counts everywhere


def pieces_over(potential: Potential, best: Array) -> Pieces:
    """Return the improvement of any potential with knots over thresholds ``(m,)``."""
    own = getattr(potential, "pieces", None)
    if own is not None:
        return own(best)  # type: ignore[no-any-return]  # by the protocol above
    knots = np.unique(potential.knots())  # type: ignore[attr-defined]  # a LevelPotential
    knots = knots[np.isfinite(knots)]
    far = 1e9 * (max(float(np.ptp(knots)), float(np.max(np.abs(knots)))) or 1.0)
    ends = np.concatenate([[knots[0] - far], knots, [knots[-1] + far]])
    return between_knots(potential, best, ends, endless=True)


def between_knots(potential: Potential, best: Array, ends: Array, *, endless: bool) -> Pieces:
    """Return the improvement where a potential is monotone between `ends`, maybe also beyond."""
    with np.errstate(all="ignore"):  # a user's formula may overflow far outside
        values = potential.value(ends)
    top = np.maximum(values[:-1], values[1:])
    some = np.flatnonzero(top > np.min(best, initial=np.inf))
    start, stop = ends[:-1][some, None], ends[1:][some, None]
    low, high = start + 0.0 * best, stop + 0.0 * best
    first, last = values[:-1][some, None], values[1:][some, None]
    known = getattr(potential, "superlevels", None)
    sets: Levels | None = known and known(best)
    if sets is None:
        low = np.where(best >= top[some, None], high, low)
        k, i = np.nonzero((best >= np.minimum(first, last)) & (best < top[some, None]))
        root, up = monotone_root(potential, (low[k, i], high[k, i]), best[i]), (last > first)[k, 0]
        low[k[up], i[up]], high[k[~up], i[~up]] = root[up], root[~up]
    else:  # a piece is monotone, so it meets one interval only
        parts = [(np.maximum(start, a), np.minimum(stop, c)) for a, c in sets]
        low, high = parts[0]
        for a, c in parts[1:]:
            other = c - a > high - low
            low, high = np.where(other, a, low), np.where(other, c, high)
    if endless:
        far = 1e-9 * ENDLESS * (ends[-1] - ends[0])
        low[low == ends[0]], high[high == ends[-1]] = -far, far
    gain = np.where(low < high, top[some, None] - best, 0.0)
    log_top = np.where(gain > 0.0, np.log(np.where(gain > 0.0, gain, 1.0)), -np.inf)
    sloped = (first != last)[:, 0]
    order = np.argsort(sloped, kind="stable")
    kept = order[np.any(log_top > -np.inf, axis=1)[order]]
    constant = int(np.sum(~sloped[kept]))
    pieces = np.stack([low[kept], high[kept]])
    turn = np.array([1.0, -1.0])[:, None, None]
    table = np.stack([e.ravel() for e in np.broadcast_arrays(pieces, turn, best)])
    sums = partial(_sums, potential, table)
    return Pieces(pieces, np.zeros((2, 1, 1)), log_top[kept], sums, constant)


def _sums(potential: Potential, table: Array, nodes: Nodes) -> Array:
    rule, density, at, offset, length = nodes
    end, turn, best = table.take(at, axis=1)
    y = rule.parabola[:, 1:2] * (turn * length)
    y += end + turn * offset
    both = getattr(potential, "value_and_slope", None)
    value, slope = both(y) if both is not None else (potential.value(y), potential.slope(y))
    gain = np.maximum(value - best, 0.0)
    gain *= density
    slope = slope * density
    found = np.empty((7, len(at)))
    found[:3] = rule.moments[:3] @ gain
    found[3], found[5] = rule.moments[:2] @ slope
    found[4] = np.abs(found[3])
    found[6] = 0.0
    return found


def monotone_root(potential: Potential, ends: tuple[ArrayLike, ArrayLike], level: Array) -> Array:
    """Solve ``rho(y) = level`` ``(n,)`` where the potential is monotone, by Newton in a bracket."""
    low, high = (np.array(np.broadcast_to(e, level.shape), dtype=float) for e in ends)
    if not level.size:
        return low
    with np.errstate(all="ignore"):
        rising = potential.value(high) > potential.value(low)
    span = high - low
    root = 0.5 * (low + high)
    at = np.arange(len(level))  # those that still move
    for _ in range(100):
        y, a, c = root[at], low[at], high[at]
        miss = potential.value(y) - level[at]
        above = (miss > 0.0) == rising[at]
        a, c = np.where(above, a, y), np.where(above, y, c)
        slope = potential.slope(y)
        level_ground = slope == 0.0
        slope = np.where(level_ground, 1.0, slope)
        newton = y - miss / slope
        inside = (newton >= a) & (newton <= c) & ~level_ground
        step = np.where(inside, newton, 0.5 * (a + c))
        root[at], low[at], high[at] = step, a, c
        # beyond this the roundings of the value decide
        noise = np.minimum(4e-16 * np.abs(level[at] / slope), 1e-11 * span[at])
        at = at[np.abs(step - y) > 4e-16 * np.abs(y) + noise + 1e-17 * span[at]]
        if not at.size:
            break
    return np.asarray(root)
