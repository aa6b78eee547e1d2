"""Log integrals of an improvement over pieces of the line, for plateaus and any other potential.

The line is cut at the potential's knots, so that on each panel the potential is smooth and
monotone; each panel is integrated on its own hull (:mod:`bayescfx.quadrature`) for the points
to which it matters, and the panels are added up in log form.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.potentials import PEAK, Interval, LevelPotential, Plateau, monotone_root
from bayescfx.quadrature import (
    DROP,
    LOG_ROOT_TWO_PI,
    MOMENTS,
    NARROW,
    POWERS,
    WEIGHTS,
    Hull,
    LogIntegral,
    hull,
)

_LOG_PEAK = -1.0
_IGNORED = 60.0  # nats below the largest panel where a panel no longer matters
_RATIO = 4.0  # outer to inner end of a panel on the algebraic tail
_BEYOND = 40.0  # exp(-x**2 / 2) is 0 in double precision from here on
_ENDLESS = 1e100  # stands for infinity: finite, so that no nan can arise


class _Panel(NamedTuple):
    """Log mass of one panel, and its shares of both forms of the gradient."""

    value: Array
    first: Array  # E[t], t = (y - mean) / std
    second: Array  # E[t**2] - 1
    slope: Array  # E[g'] / E[g]
    bend: Array  # E[g'' (kinks included)] / E[g], or E[t g'] / (std E[g])


class _Placed(NamedTuple):
    """Nodes of one panel for some points, arrays of shape (NODES, n)."""

    hull: Hull
    offset: Array  # nodes as signed deviations from the base end
    density: Array


def _place(low: Array, high: Array, span: Array) -> _Placed:
    """Put the nodes of a panel, given by deviations of its ends, on its hull."""
    h = hull(low, high, span)
    line = np.stack([h.turn * h.offset, h.turn * h.length])
    return _Placed(h, POWERS[:, :2] @ line, np.exp(POWERS @ h.exponents()))


def _reduce(placed: _Placed, gain: Array) -> tuple[Array, Array, Array, Array]:
    """Return the total, the log mass (up to g's scale), E[t] and E[t**2] - 1."""
    total, first, second = MOMENTS[:3] @ (placed.density * gain)
    safe = np.where(total > 0.0, total, 1.0)
    near = placed.hull.near
    mean_x, square_x = placed.hull.moments(safe, first, second)
    log_total = np.log(safe * placed.hull.length)
    value = np.where(total > 0.0, log_total - 0.5 * near * near - LOG_ROOT_TWO_PI, -np.inf)
    return safe, value, near + mean_x, near * (near + 2.0 * mean_x) + square_x - 1.0


def _bound(low: Array, high: Array, log_gain: float | Array) -> Array:
    """Return an upper bound of a panel's log mass, good to a few nats."""
    near = np.minimum(np.maximum(low, 0.0), high)
    return np.asarray(log_gain - 0.5 * near * near)


def _matters(bounds: list[Array]) -> list[Indices]:
    top = np.maximum.reduce(bounds)
    return [np.flatnonzero((b >= top - _IGNORED) & (b > -np.inf)) for b in bounds]


def _gather(
    n: int, rows: list[Indices], panels: list[_Panel], std: Array, narrow: Array
) -> LogIntegral:
    """Add up panels in log form."""
    value = np.full((len(panels), n), -np.inf)
    shares = np.zeros((4, len(panels), n))
    for k, (at, panel) in enumerate(zip(rows, panels, strict=True)):
        value[k, at] = panel.value
        for j in range(4):
            shares[j, k, at] = panel[j + 1]
    top = np.max(value, axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    weight = np.exp(value - top)
    total = np.sum(weight, axis=0)
    dead = total == 0.0
    safe = np.where(dead, 1.0, total)
    first, second, slope, bend = np.sum(shares * (weight / safe), axis=1)
    d_mean = np.where(narrow, slope, first / std)
    d_std = np.where(narrow, std * bend, second / std)
    return LogIntegral(np.where(dead, -np.inf, top + np.log(safe)), d_mean, d_std)


def plateau_log_integral(potential: Plateau, mean: Array, std: Array, best: Array) -> LogIntegral:
    """Return log E[max(0, rho(y) - best)] for a plateau.

    The flat part and both tails ``1 / (1 + z**2)`` are integrated apart. On a tail the
    improvement is ``(Z - z)(Z + z) / ((1 + Z**2)(1 + z**2))`` up to the peak, with ``Z`` the
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
    width = potential.width
    s = std / width
    end = np.minimum(np.sqrt((PEAK - best) / np.maximum(best, 1e-300)), _ENDLESS)
    jobs: list[tuple[float, float, Array, float]] = []  # panel, mean from its side, sign
    if math.isfinite(potential.low):
        jobs += [
            (a, c, (potential.low - mean) / width, -1.0)
            for a, c in _tail((potential.low - mean) / width, s, end)
        ]
    if math.isfinite(potential.high):
        jobs += [
            (a, c, (mean - potential.high) / width, 1.0)
            for a, c in _tail((mean - potential.high) / width, s, end)
        ]
    low = np.maximum(potential.low - mean, -_ENDLESS * width) / std
    high = np.minimum(potential.high - mean, _ENDLESS * width) / std
    log_flat = np.log((PEAK - best) / PEAK)
    bounds = [
        _bound(low, high, log_flat)
        if potential.low < potential.high
        else np.full(len(mean), -np.inf)
    ]
    for a, c, m, _ in jobs:
        inside = a < end
        bound = _bound((a - m) / s, (np.minimum(c, end) - m) / s, -math.log1p(a * a))
        bounds.append(np.where(inside, bound, -np.inf))
    rows = _matters(bounds)
    panels = [_flat(low[rows[0]], high[rows[0]], log_flat[rows[0]])]
    for at, (a, c, m, sign) in zip(rows[1:], jobs, strict=True):
        panels.append(_tail_panel(a, np.minimum(c, end[at]), m[at], s[at], end[at], sign))
    span = (min(potential.high - potential.low, _ENDLESS * width)) / width + 2.0 * end
    result = _gather(len(mean), rows, panels, s, s < NARROW * span)
    return LogIntegral(result.value + _LOG_PEAK, result.d_mean / width, result.d_std / width)


def _tail(m: Array, s: Array, end: Array) -> list[tuple[float, float]]:
    """Return the panels of one tail, as far out as the density reaches."""
    near = np.minimum(np.maximum(-m / s, 0.0), (end - m) / s)
    furthest = float(
        np.max(np.minimum(end, m + s * np.sqrt(near * near + 2.0 * DROP)), initial=0.0)
    )
    ends = [0.0, 1.0]
    while ends[-1] < furthest:
        ends.append(ends[-1] * _RATIO)
    return list(itertools.pairwise(ends))


def _flat(low: Array, high: Array, log_gain: Array) -> _Panel:
    """Integrate the flat part, whose improvement is constant."""
    placed = _place(low, high, high - low)
    _, value, first, second = _reduce(placed, np.ones_like(placed.density))
    none = np.zeros_like(value)
    return _Panel(value + log_gain, first, second, none, none)


def _tail_panel(a: float, c: Array, m: Array, s: Array, end: Array, sign: float) -> _Panel:
    """Integrate one panel of a tail; `sign` turns the left tail's derivatives round."""
    low, high = (a - m) / s, (c - m) / s
    placed = _place(low, high, (c - a) / s)
    base = np.where(placed.hull.turn > 0.0, a, c)
    x = s * placed.offset
    z = base + x
    fall = 1.0 / (1.0 + z * z)
    rest = (end - base) - x  # Z - z, exact when the base is Z
    whole = 1.0 + end * end
    gain = np.maximum(rest * fall * (end + z) / whole, 0.0)
    total, value, first, second = _reduce(placed, gain)
    weighted = placed.density * (fall * fall)
    slope = WEIGHTS @ (weighted * (-2.0 * z))
    bend = WEIGHTS @ (weighted * ((6.0 * z * z - 2.0) * fall))
    near = placed.hull.near
    kink = np.exp(-0.5 * (high - near) * (high + near)) / (s * placed.hull.length)
    bend += np.where(c == end, 2.0 * end / whole / whole * kink, 0.0)
    return _Panel(value, sign * first, second, sign * slope / total, bend / total)


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
    knots = np.unique(np.clip(potential.knots(), -_ENDLESS, _ENDLESS))
    levels = potential.value(knots)
    bounds: list[Array] = []
    jobs: list[tuple[Array, Array]] = []
    for a, c, va, vc in zip(knots[:-1], knots[1:], levels[:-1], levels[1:], strict=True):
        low, high = _positive_part(potential, (a, c), (va, vc), best)
        low, high = np.broadcast_to(low, mean.shape), np.broadcast_to(high, mean.shape)
        gain = np.broadcast_to(max(va, vc) - best, mean.shape)
        log_gain = np.where(gain > 0.0, np.log(np.where(gain > 0.0, gain, 1.0)), -np.inf)
        bound = _bound((low - mean) / std, (high - mean) / std, log_gain)
        bounds.append(np.where(low < high, bound, -np.inf))
        jobs.append((low, high))
    rows = _matters(bounds)
    level = np.broadcast_to(best, mean.shape)
    panels = []
    for at, (low, high) in zip(rows, jobs, strict=True):
        where = (low[at], high[at])
        panels.append(_general_panel(potential, where, mean[at], std[at], level[at]))
    width = np.sum([high - low for low, high in jobs], axis=0)
    return _gather(len(mean), rows, panels, std, std < NARROW * width)


def _general_panel(
    potential: LevelPotential, ends: tuple[Array, Array], m: Array, s: Array, best: Array
) -> _Panel:
    """Integrate one panel through values and slopes alone."""
    low, high = ends
    placed = _place((low - m) / s, (high - m) / s, (high - low) / s)
    base = np.where(placed.hull.turn > 0.0, low, high)
    y = base + s * placed.offset
    gain = np.maximum(potential.value(y) - best, 0.0)
    total, value, first, second = _reduce(placed, gain)
    pull = placed.density * potential.slope(y)
    slope = WEIGHTS @ pull
    turn = WEIGHTS @ (pull * (y - m))  # std**2 E[t g'] / std = dEI/ds times std
    return _Panel(value, first, second, slope / total, turn / (s * s * total))


def _positive_part(
    potential: LevelPotential, ends: Interval, levels: Interval, best: Array
) -> tuple[Array, Array]:
    """Return the part of a monotone panel where the potential exceeds `best`."""
    (a, c), (va, vc) = ends, levels
    crossing = (best < max(va, vc)) & (best >= min(va, vc))
    at = np.flatnonzero(crossing)
    low = np.full(best.shape, a)
    high = np.where(best < max(va, vc), c, a)
    if at.size:
        root = monotone_root(potential, (a, c), best[at])
        if vc > va:
            low[at] = root
        else:
            high[at] = root
    return low, high


def log_normal_mass(low: Array, high: Array, mean: Array, std: Array) -> LogIntegral:
    """Return log P(low <= y <= high) for normal y, with its gradient.

    Parameters
    ----------
    low, high, mean, std : ndarray of shape (n,)
        Ends, possibly infinite, and the density; `std` positive, ``low < high``.

    Returns
    -------
    LogIntegral
        Arrays of shape (n,).
    """
    a = np.maximum((low - mean) / std, -_ENDLESS)
    c = np.minimum((high - mean) / std, _ENDLESS)
    placed = _place(a, c, np.minimum((high - low) / std, 2.0 * _ENDLESS))
    _, value, first, second = _reduce(placed, np.ones_like(placed.density))
    # where the mean is well inside: d = (phi(a) - phi(c)) / mass, which moments can't resolve
    inside = (a < -1.0) & (c > 1.0)
    near_a, near_c = np.maximum(a, -_BEYOND), np.minimum(c, _BEYOND)
    scale = LOG_ROOT_TWO_PI + value
    at_a = np.exp(-0.5 * np.square(np.where(inside, near_a, 0.0)) - np.where(inside, scale, 0.0))
    at_c = np.exp(-0.5 * np.square(np.where(inside, near_c, 0.0)) - np.where(inside, scale, 0.0))
    d_mean = np.where(inside, at_a - at_c, first) / std
    d_std = np.where(inside, near_a * at_a - near_c * at_c, second) / std
    return LogIntegral(value, d_mean, d_std)
