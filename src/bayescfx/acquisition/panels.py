"""Log integrals of an improvement over pieces of the line, for plateaus and any other potential.

The line is cut at the potential's knots, so that on each panel the potential is smooth and
monotone; each panel is integrated on its own hull (:mod:`bayescfx.acquisition.quadrature`) for the
points to which it matters, and the panels are added up in log form.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from bayescfx.acquisition.quadrature import (
    DROP,
    MOMENTS,
    NARROW,
    POWERS,
    WEIGHTS,
    LogIntegral,
    place,
    reduce_nodes,
)
from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials.family import LevelPotential, Plateau, monotone_root
from bayescfx.potentials.levels import PEAK, Interval

_LOG_PEAK = -1.0
_IGNORED = 60.0  # nats below the largest panel where a panel no longer matters
_RATIO = 4.0  # outer to inner end of a panel on the algebraic tail
_ENDLESS = 1e100  # stands for infinity: finite, so that no nan can arise
_CHUNK = 2000  # points per pass


class _Panel(NamedTuple):
    """Log mass of one panel, and its shares of both forms of the gradient."""

    value: Array
    first: Array  # E[t], t = (y - mean) / std
    second: Array  # E[t**2] - 1
    slope: Array  # E[g'] / E[g]
    bend: Array  # E[g''] / E[g], kinks included


def _bound(low: Array, high: Array, log_gain: Array | float) -> Array:
    """Return an upper bound of a panel's log mass, good to a few nats."""
    near = np.minimum(np.maximum(low, 0.0), high)
    return np.asarray(log_gain - 0.5 * near * near)


def _matters(bounds: list[Array]) -> list[Indices]:
    """Return the points to which each panel contributes."""
    top = np.maximum.reduce(bounds)
    return [np.flatnonzero((b >= top - _IGNORED) & (b > -np.inf)) for b in bounds]


def _gather(parts: list[tuple[Indices, _Panel]], std: Array, narrow: Mask) -> LogIntegral:
    """Add up panels, each for some of the points, in log form."""
    value = np.full((len(parts), len(std)), -np.inf)
    for k, (at, panel) in enumerate(parts):
        value[k, at] = panel.value
    top = np.max(value, axis=0, initial=-1e300)
    weight = np.exp(value - top)
    total = np.sum(weight, axis=0)
    dead = total == 0.0
    safe = np.where(dead, 1.0, total)
    sums = np.zeros((4, len(std)))
    for k, (at, panel) in enumerate(parts):
        sums[:, at] += (weight[k, at] / safe[at]) * np.stack(panel[1:])
    first, second, slope, bend = sums
    d_mean = np.where(narrow, slope, first / std)
    d_std = np.where(narrow, std * bend, second / std)
    return LogIntegral(np.where(dead, -np.inf, top + np.log(safe)), d_mean, d_std)


def _in_chunks(n: int) -> list[slice]:
    return [slice(i, i + _CHUNK) for i in range(0, n, _CHUNK)]


def _joined(parts: list[LogIntegral]) -> LogIntegral:
    if len(parts) == 1:
        return parts[0]
    return LogIntegral(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def plateau_log_integral(potential: Plateau, mean: Array, std: Array, best: Array) -> LogIntegral:
    """Return log E[max(0, rho(y) - best)] for a plateau.

    The flat part and both tails ``1 / (1 + z**2)`` are integrated apart. On a tail the
    improvement is ``(Z - z)(Z + z) / ((1 + Z**2)(1 + z**2))`` times the peak, with ``Z`` the
    end of the superlevel set: nothing cancels.

    Parameters
    ----------
    potential : Plateau
        The potential.
    mean, std, best : ndarray of shape (n,)
        The density, `std` positive, and the threshold, from 0 to below the peak.

    Returns
    -------
    LogIntegral
        Arrays of shape (n,).
    """
    if len(mean) > _CHUNK:
        cuts = _in_chunks(len(mean))
        return _joined([plateau_log_integral(potential, mean[c], std[c], best[c]) for c in cuts])
    width = potential.width
    s = std / width
    end = np.minimum(np.sqrt((PEAK - best) / np.maximum(best, 1e-300)), _ENDLESS)
    flat = np.log((PEAK - best) / PEAK)
    low = np.maximum(potential.low - mean, -_ENDLESS * width) / std
    high = np.minimum(potential.high - mean, _ENDLESS * width) / std
    empty = potential.low == potential.high
    bounds = [np.full(len(s), -np.inf) if empty else _bound(low, high, flat)]
    jobs: list[tuple[float, float, Array, float]] = []
    for corner, sign in ((potential.low, -1.0), (potential.high, 1.0)):
        if math.isfinite(corner):
            m = sign * (mean - corner) / width
            for a, c in _tail(m, s, end):
                bound = _bound((a - m) / s, (np.minimum(c, end) - m) / s, -math.log1p(a * a))
                bounds.append(np.where(a < end, bound, -np.inf))
                jobs.append((a, c, m, sign))
    rows = _matters(bounds)
    length = min(potential.high - potential.low, _ENDLESS * width)
    at = rows[0]
    parts = [(at, _flat(low[at], high[at], (length / std)[at], flat[at]))] if at.size else []
    for at, (a, c, m, sign) in zip(rows[1:], jobs, strict=True):
        if at.size:
            tail = _tail_panel((a, np.minimum(c, end[at])), m[at], s[at], end[at], sign)
            parts.append((at, tail))
    total = _gather(parts, s, s < NARROW * (length / width + 2.0 * end))
    return LogIntegral(total.value + _LOG_PEAK, total.d_mean / width, total.d_std / width)


def _tail(m: Array, s: Array, end: Array) -> list[tuple[float, float]]:
    """Return the panels of one tail, as far out as the density reaches."""
    near = np.minimum(np.maximum(-m / s, 0.0), (end - m) / s)
    reach = np.minimum(end, m + s * np.sqrt(near * near + 2.0 * DROP))
    ends = [0.0, 1.0]
    while ends[-1] < float(np.max(reach, initial=0.0)):
        ends.append(ends[-1] * _RATIO)
    return list(itertools.pairwise(ends))


def _flat(low: Array, high: Array, span: Array, log_gain: Array) -> _Panel:
    """Integrate the flat part, whose improvement is constant."""
    placed = place(low, high, span)
    _, value, first, second = reduce_nodes(placed, placed.density)
    none = np.zeros_like(value)
    return _Panel(value + log_gain, first, second, none, none)


def _tail_panel(ends: tuple[float, Array], m: Array, s: Array, end: Array, sign: float) -> _Panel:
    """Integrate one panel of a tail; `sign` turns the left tail's derivatives round.

    With ``z = base + x0 + h u``, both ``Z**2 - z**2`` and ``1 + z**2`` are parabolas in ``u``.
    """
    low, high = (ends[0] - m) / s, (ends[1] - m) / s
    placed = place(low, high, (ends[1] - ends[0]) / s)
    turn = placed.hull.turn
    base = np.where(turn > 0.0, ends[0], ends[1])
    x, h = s * turn * placed.hull.offset, s * turn * placed.hull.length
    z = base + x
    whole = 1.0 + end * end
    rest = ((end - base) - x) * (end + z)  # exact when the base is Z
    rest = POWERS @ (np.stack([rest, -2.0 * z * h, -h * h]) / whole)
    fall = 1.0 / (POWERS @ np.stack([1.0 + z * z, 2.0 * z * h, h * h]))
    first_fall = placed.density * fall
    total, value, first, second = reduce_nodes(placed, first_fall * rest)
    # rho' = -2 z fall**2 and rho'' = (6 - 8 fall) fall**2, in peaks
    first_fall *= fall
    flat, tilted = MOMENTS[:2] @ first_fall
    first_fall *= fall
    bend = 6.0 * flat - 8.0 * (WEIGHTS @ first_fall)
    near = placed.hull.near
    kink = np.exp(-0.5 * (high - near) * (high + near)) / np.maximum(s * placed.hull.length, 1e-300)
    bend += np.where(ends[1] == end, 2.0 * end / whole / whole * kink, 0.0)
    slope = -2.0 * sign * (z * flat + h * tilted)
    return _Panel(value, sign * first, second, slope / total, bend / total)


def general_log_integral(
    potential: LevelPotential, mean: Array, std: Array, best: Array
) -> LogIntegral:
    """Return log E[max(0, rho(y) - best)] for any potential with knots.

    Parameters
    ----------
    potential : LevelPotential
        The potential; nothing is counted outside its first and last knot.
    mean, std : ndarray of shape (n,)
        The density, `std` positive.
    best : ndarray of shape (n,) or (1,)
        The threshold.

    Returns
    -------
    LogIntegral
        Arrays of shape (n,).
    """
    if len(mean) > _CHUNK:
        shared = len(best) == 1
        return _joined(
            [
                general_log_integral(potential, mean[c], std[c], best if shared else best[c])
                for c in _in_chunks(len(mean))
            ]
        )
    bounds: list[Array] = [np.full(mean.shape, -np.inf)]
    jobs: list[tuple[Array, Array]] = [(np.zeros(mean.shape), np.zeros(mean.shape))]
    for ends, levels in _panels(potential, float(np.min(best, initial=np.inf))):
        low, high = _positive_part(potential, ends, levels, best)
        gain = max(levels) - best
        log_gain = np.where(gain > 0.0, np.log(np.where(gain > 0.0, gain, 1.0)), -np.inf)
        bound = _bound((low - mean) / std, (high - mean) / std, log_gain)
        bounds.append(np.where(low < high, bound, -np.inf))
        jobs.append((np.broadcast_to(low, mean.shape), np.broadcast_to(high, mean.shape)))
    narrow = std < NARROW * np.sum([high - low for low, high in jobs], axis=0)
    rows = _matters(bounds)
    level = np.broadcast_to(best, mean.shape)
    parts = []
    for at, (low, high) in zip(rows, jobs, strict=True):
        if at.size:
            ends_at, density = (low[at], high[at]), (mean[at], std[at])
            panel = _general_panel(potential, ends_at, density, level[at], narrow[at])
            parts.append((at, panel))
    return _gather(parts, std, narrow)


def _panels(potential: LevelPotential, least: float) -> list[tuple[Interval, Interval]]:
    """Return ends and levels of the panels that rise above the least threshold."""
    knots = np.unique(np.clip(potential.knots(), -_ENDLESS, _ENDLESS))
    ends = itertools.pairwise(knots.tolist())
    levels = itertools.pairwise(potential.value(knots).tolist())
    return [(e, v) for e, v in zip(ends, levels, strict=True) if max(v) > least]


def _general_panel(
    potential: LevelPotential,
    ends: tuple[Array, Array],
    density: tuple[Array, Array],
    best: Array,
    narrow: Mask,
) -> _Panel:
    """Integrate one panel through values, and slopes where a density is narrow."""
    (low, high), (m, s) = ends, density
    placed = place((low - m) / s, (high - m) / s, (high - low) / s)
    h = placed.hull
    base = np.where(h.turn > 0.0, low, high)
    y = POWERS[:, :2] @ np.stack([base + s * h.turn * h.offset, s * h.turn * h.length])
    gain = np.maximum(potential.value(y) - best, 0.0)
    total, value, first, second = reduce_nodes(placed, placed.density * gain)
    slope, bend = np.zeros_like(m), np.zeros_like(m)
    if narrow.any():
        pull = placed.density[:, narrow] * potential.slope(y[:, narrow])
        slope[narrow] = WEIGHTS @ pull
        bend[narrow] = WEIGHTS @ (pull * (y[:, narrow] - m[narrow])) / np.square(s[narrow])
    return _Panel(value, first, second, slope / total, bend / total)


def _positive_part(
    potential: LevelPotential, ends: Interval, levels: Interval, best: Array
) -> tuple[Array, Array]:
    """Return the part of a monotone panel where the potential exceeds `best`."""
    above = best < max(levels)
    low, high = np.full(best.shape, ends[0]), np.where(above, ends[1], ends[0])
    at = np.flatnonzero(above & (best >= min(levels)))
    if at.size:
        root = monotone_root(potential, ends, best[at])
        (low if levels[1] > levels[0] else high)[at] = root
    return low, high
