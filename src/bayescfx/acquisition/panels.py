"""Log integrals of an improvement over pieces of the line, for any potential.

The line is cut at the potential's knots, so that the potential is smooth on each panel. Where a
panel is short against the density and all points share the threshold, its own nodes serve every
point and the potential is evaluated there once (:class:`Panels`); else each point has nodes of its
own on the hull (:mod:`bayescfx.acquisition.quadrature`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayescfx.acquisition.quadrature import (
    LOG_ROOT_TWO_PI,
    SHORT,
    Fixed,
    Hull,
    LogIntegral,
    batches,
    fixed,
    hull,
)
from bayescfx.arrays import Array, Indices
from bayescfx.potentials.family import LevelPotential, monotone_root
from bayescfx.potentials.links import level_sets, value_and_slope

_IGNORED = 60.0  # nats below the largest panel where a panel no longer matters
_ENDLESS = 1e100  # stands for infinity: finite, so that no nan can arise


class _Panel(NamedTuple):
    """Part of the line where the improvement is positive, smooth and of one slope's sign."""

    low: Array  # (n,), or (1,) if all points share the threshold
    high: Array
    log_gain: Array  # upper bound of the logarithm of the improvement
    fixed: Fixed | None  # the improvement at the panel's own nodes


class Panels(NamedTuple):
    """A potential cut into panels above its threshold."""

    potential: LevelPotential
    best: Array
    parts: tuple[_Panel, ...]


class _Sums(NamedTuple):
    """Sums over the panels, relative to the density at the point nearest to the mean."""

    total: Array
    first: Array  # of t = (y - mean) / std
    second: Array  # of t**2
    slope: Array  # of g', and of its absolute value
    slopes: Array
    bend: Array  # of g' * t


def panels_above(potential: LevelPotential, best: Array) -> Panels:
    """Cut a potential into panels where it exceeds a threshold.

    Parameters
    ----------
    potential : LevelPotential
        The potential; nothing is counted outside its first and last knot.
    best : ndarray of shape (n,) or (1,)
        The threshold of each point, or of all.

    Returns
    -------
    Panels
        The panels, ready for :func:`general_log_integral`.
    """
    knots = np.unique(np.clip(potential.knots(), -_ENDLESS, _ENDLESS))
    levels = potential.value(knots)
    tops = np.maximum(levels[:-1], levels[1:])
    sets = level_sets(potential, best)
    parts = []
    for k in np.flatnonzero(tops > np.min(best, initial=np.inf)).tolist():
        gain = tops[k] - best
        log_gain = np.where(gain > 0.0, np.log(np.where(gain > 0.0, gain, 1.0)), -np.inf)
        found = [(knots[k], knots[k + 1])] if sets is None else sets
        for a, c in found:
            low, high = np.maximum(knots[k], a), np.minimum(knots[k + 1], c)
            parts.append(_Panel(low + 0.0 * best, high + 0.0 * best, log_gain, None))
    if sets is None:
        _cut(potential, parts, best)
    ready = []
    for part in parts:
        open_ = part.low < part.high
        if open_.any():
            nodes = _own_nodes(potential, part, best) if len(best) == 1 else None
            log_gain = np.where(open_, part.log_gain, -np.inf)
            ready.append(part._replace(log_gain=log_gain, fixed=nodes))
    return Panels(potential, best, tuple(ready))


def _cut(potential: LevelPotential, parts: list[_Panel], best: Array) -> None:
    """Cut monotone panels where the potential crosses `best`, all crossings at once."""
    jobs = []
    for part in parts:
        ends = potential.value(np.array([part.low[0], part.high[0]]))
        at = np.flatnonzero((best >= min(ends)) & (best < max(ends)))
        part.high[best >= max(ends)] = part.low[0]
        jobs.append((at, bool(ends[1] > ends[0]), part))
    low = np.concatenate([part.low[at] for at, _, part in jobs]) if jobs else np.empty(0)
    if not low.size:
        return
    high = np.concatenate([part.high[at] for at, _, part in jobs])
    level = np.concatenate([best[at] for at, _, _ in jobs])
    root = monotone_root(potential, (low, high), level)
    begin = 0
    for at, rising, part in jobs:
        (part.low if rising else part.high)[at] = root[begin : begin + len(at)]
        begin += len(at)


def _own_nodes(potential: LevelPotential, part: _Panel, best: Array) -> Fixed | None:
    """Return the improvement at a panel's own nodes, or None if it is endless."""
    start, length = float(part.low[0]), float(part.high[0] - part.low[0])
    if not length < _ENDLESS:
        return None
    value, slope = value_and_slope(potential, start + length * SHORT.powers[:, 1])
    return fixed(length, np.maximum(value - best[0], 0.0), slope)


def general_log_integral(panels: Panels, mean: Array, std: Array) -> LogIntegral:
    """Return log E[max(0, rho(y) - best)] for any potential with knots.

    Parameters
    ----------
    panels : Panels
        The potential above its threshold.
    mean, std : ndarray of shape (n,)
        The density, `std` positive.

    Returns
    -------
    LogIntegral
        Arrays of shape (n,).
    """
    n = len(mean)
    sums = _Sums(*np.zeros((6, n)))
    reference = np.full(n, np.inf)
    top = np.full(n, -np.inf)
    nears = []
    for part in panels.parts:
        near = np.maximum(np.maximum((part.low - mean) / std, (mean - part.high) / std), 0.0)
        bound = part.log_gain - 0.5 * near * near
        np.minimum(reference, np.where(bound > -np.inf, near, np.inf), out=reference)
        np.maximum(top, bound, out=top)
        nears.append((near, bound))
    reference[np.isinf(reference)] = 0.0
    least = top - _IGNORED
    for part, (near, bound) in zip(panels.parts, nears, strict=True):
        rows = np.flatnonzero((bound >= least) & (bound > -np.inf))
        if rows.size:
            _add_panel(sums, panels, part, _Density(rows, mean, std, near, reference))
    return _gathered(sums, std, reference)


class _Density(NamedTuple):
    """Some of the densities: which, and where they stand to a panel."""

    rows: Indices
    mean: Array  # of all points
    std: Array
    near: Array
    reference: Array

    def scale(self, rows: Indices) -> Array:
        """Return the density at the panel's nearest point, relative to the reference."""
        near, reference = self.near[rows], self.reference[rows]
        return np.asarray(np.exp(-0.5 * (near - reference) * (near + reference)))


def _gathered(sums: _Sums, std: Array, reference: Array) -> LogIntegral:
    """Return value and gradient, the latter from the form whose terms cancel less."""
    alive = sums.total > 0.0
    total = np.where(alive, sums.total, 1.0)
    value = np.log(total) - 0.5 * reference * reference - LOG_ROOT_TWO_PI
    smooth = sums.slopes * std < np.sqrt(sums.second * total)
    d_mean = np.where(smooth, sums.slope, sums.first / std)
    d_std = np.where(smooth, sums.bend, (sums.second - sums.total) / std)
    return LogIntegral(np.where(alive, value, -np.inf), d_mean / total, d_std / total)


def _of(shared: Array, rows: Indices) -> Array:
    """Return the entries of some points, of an array that all may share."""
    return shared if len(shared) == 1 else shared[rows]


def _add_panel(sums: _Sums, panels: Panels, part: _Panel, density: _Density) -> None:
    """Add one panel, through its own nodes where they suffice."""
    rows = density.rows
    if part.fixed is not None:
        m, s = density.mean[rows], density.std[rows]
        ends = (part.low - m) / s, (part.high - m) / s, part.fixed.length / s
        flat = part.fixed.suits(*ends)
        if flat.any():
            low, high, length = ends if flat.all() else (e[flat] for e in ends)
            some = rows[flat]
            found = part.fixed.sums(low, high, length)
            found *= length * density.scale(some)
            _add(sums, some, 1.0, (low, length), found)
        rows = rows[~flat]
    if rows.size:
        _add_hulls(sums, panels, part, density._replace(rows=rows))


def _add(
    sums: _Sums, rows: Indices, turn: Array | float, line: tuple[Array, Array], found: Array
) -> None:
    """Add sums over ``t = turn * (start + length * u)``."""
    start, length = line
    total, first, second, slope, tilted = found
    sums.total[rows] += total
    sums.first[rows] += turn * (start * total + length * first)
    sums.second[rows] += start * (start * total + 2.0 * length * first) + length * length * second
    sums.slope[rows] += slope
    sums.slopes[rows] += np.abs(slope)
    sums.bend[rows] += turn * (start * slope + length * tilted)


def _add_hulls(sums: _Sums, panels: Panels, part: _Panel, density: _Density) -> None:
    """Add a panel through nodes on the hull of each point."""
    rows = density.rows
    m, s = density.mean[rows], density.std[rows]
    low, high = _of(part.low, rows), _of(part.high, rows)
    a, c = (low - m) / s, (high - m) / s
    left = a >= -c
    h = hull(np.maximum(a, -c), np.maximum(c, -a), (high - low) / s)
    turn = np.where(left, 1.0, -1.0)
    step = turn * s
    line = np.zeros((3, len(rows)))
    line[0], line[1] = np.where(left, low, high) + step * h.offset, step * h.length
    found = _hull_sums(panels.potential, _of(panels.best, rows), h, line)
    found *= h.length * density.scale(rows)
    _add(sums, rows, turn, (h.near - h.below, h.length), found)


def _hull_sums(potential: LevelPotential, best: Array, h: Hull, line: Array) -> Array:
    """Sum improvement and slope over the nodes of each point, times powers of u: (5, n)."""
    found = np.empty((5, line.shape[1]))
    exponents = h.exponents()
    for batch in batches(h.length, 2):
        rows, moments = batch.rows, batch.rule.moments
        density = batch.parabola(exponents, 0)
        np.exp(density, out=density)
        value, slope = value_and_slope(potential, batch.parabola(line, 1))
        gain = np.maximum(value - (best if len(best) == 1 else best[rows]), 0.0)
        gain *= density
        found[:3, rows] = moments[:3] @ gain
        found[3:, rows] = moments[:2] @ (slope * density)
    return found
