"""The improvement ``max(0, rho(y) - best)`` in pieces: all that log EI needs of a potential.

On each piece the improvement is smooth. It is evaluated at distances from the piece's nearer end,
because next to the edge of a superlevel set ``rho(y) - best`` has lost its digits. A family that
has a better form than that difference builds its own :class:`Pieces`; for all others
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
        before = x**0
        here = x
        for k in range(2, nodes + 1):
            before, here = here, ((2 * k - 1) * x * here - (k - 1) * before) / k
        slope = nodes * (x * here - before) / (x * x - 1)
        x = x - here / slope
    u = (1 + x) / 2
    w = 1 / ((1 - x * x) * slope * slope)
    powers = np.stack([u**k for k in range(5)])
    parabola = np.ascontiguousarray(powers[:3].T, dtype=float)
    return GaussLegendre(parabola, np.asarray(w * powers, dtype=float))


class Nodes(NamedTuple):
    """Nodes of an improvement: ``offset + length * u`` away from ends, inwards, r times."""

    rule: GaussLegendre
    density: Array  # (nodes, r) at the nodes
    at: Indices  # (r,) the ends, as indices into (2, k, m) raveled
    offset: Array  # (r,)
    length: Array  # (r,)


# With these the relative errors of the EP family's and the plateaus' integrals are roundings.
SHORT = _rule(26)
LONG = _rule(42)
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
    constant: int = 0  # the number of pieces, the first ones, on which it is constant
    kinks: Array | None = None  # (2, k, m), jumps of the slope at both ends
    unit: float = 1.0
    fall: float = np.inf
    centre: float = 0.0
    least: float = -np.inf  # the least value; a threshold below it adds the rest everywhere


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
    top = top[some, None]
    first = values[:-1][some, None]
    last = values[1:][some, None]
    start = ends[:-1][some, None]
    stop = ends[1:][some, None]
    superlevels = getattr(potential, "superlevels", None)
    sets: Levels | None = superlevels and superlevels(best)
    if sets is None:
        low = np.where(best >= top, stop + 0.0 * best, start + 0.0 * best)
        high = stop + 0.0 * best
        k, i = np.nonzero((best >= np.minimum(first, last)) & (best < top))
        root = monotone_root(potential, (low[k, i], high[k, i]), best[i])
        rises = (last > first)[k, 0]
        low[k[rises], i[rises]] = root[rises]
        high[k[~rises], i[~rises]] = root[~rises]
    else:
        low, high = _widest_parts(start, stop, sets)
    if endless:
        far = 1e-9 * ENDLESS * (ends[-1] - ends[0])
        low[low == ends[0]] = -far
        high[high == ends[-1]] = far
    gain = np.where(low < high, top - best, 0.0)
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


def _widest_parts(start: Array, stop: Array, sets: Levels) -> tuple[Array, Array]:
    """Return the parts ``(k, m)`` of pieces ``(k, 1)`` inside superlevel sets.

    A piece is monotone, so it meets one interval of a set only: the widest part.
    """
    (a, c), *others = sets
    low = np.maximum(start, a)
    high = np.minimum(stop, c)
    for a, c in others:
        other_low = np.maximum(start, a)
        other_high = np.minimum(stop, c)
        is_wider = other_high - other_low > high - low
        low = np.where(is_wider, other_low, low)
        high = np.where(is_wider, other_high, high)
    return low, high


def _sums(potential: Potential, table: Array, nodes: Nodes) -> Array:
    """Return the sums of an improvement from value and slope; see :class:`Pieces`."""
    rule, density, at, offset, length = nodes
    end, turn, best = table.take(at, axis=1)
    y = rule.parabola[:, 1:2] * (turn * length)
    y += end + turn * offset
    both = getattr(potential, "value_and_slope", None)
    value, slope = both(y) if both is not None else (potential.value(y), potential.slope(y))
    gain = np.maximum(value - best, 0.0)
    gain *= density
    slope = slope * density
    sums = np.empty((7, len(at)))
    sums[:3] = rule.moments[:3] @ gain
    sums[3], sums[5] = rule.moments[:2] @ slope
    sums[4] = np.abs(sums[3])
    sums[6] = 0.0
    return sums


def monotone_root(potential: Potential, ends: tuple[ArrayLike, ArrayLike], level: Array) -> Array:
    """Solve ``rho(y) = level`` ``(n,)`` where the potential is monotone, by Newton in a bracket."""
    low, high = (np.array(np.broadcast_to(end, level.shape), dtype=float) for end in ends)
    if not level.size:
        return low
    with np.errstate(all="ignore"):
        rising = potential.value(high) > potential.value(low)
    span = high - low
    root = 0.5 * (low + high)
    at = np.arange(len(level))  # those that still move
    for _ in range(100):
        y = root[at]
        miss = potential.value(y) - level[at]
        above = (miss > 0.0) == rising[at]
        a = np.where(above, low[at], y)
        c = np.where(above, y, high[at])
        slope = potential.slope(y)
        level_ground = slope == 0.0
        slope = np.where(level_ground, 1.0, slope)
        newton = y - miss / slope
        inside = (newton >= a) & (newton <= c) & ~level_ground
        step = np.where(inside, newton, 0.5 * (a + c))
        root[at] = step
        low[at] = a
        high[at] = c
        # Beyond this the roundings of the value decide.
        noise = np.minimum(4e-16 * np.abs(level[at] / slope), 1e-11 * span[at])
        at = at[np.abs(step - y) > 4e-16 * np.abs(y) + noise + 1e-17 * span[at]]
        if not at.size:
            break
    return np.asarray(root)
