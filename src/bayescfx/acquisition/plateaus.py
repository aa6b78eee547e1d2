"""Log integrals of plateaus: the flat part and both tails ``1 / (1 + z**2)``.

On a tail the improvement is ``(Z - z)(Z + z) / ((1 + Z**2)(1 + z**2))`` times the peak, with ``Z``
the end of the superlevel set: nothing cancels. Tails are cut into panels that the algebraic
fall allows to integrate with few nodes; all panels of all points are integrated in one pass.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayescfx.acquisition.quadrature import (
    DROP,
    LOG_ROOT_TWO_PI,
    SHORT,
    Fixed,
    Hull,
    LogIntegral,
    batches,
    density_moments,
    fixed,
    hull,
    joined,
    merged,
)
from bayescfx.arrays import Array, Indices
from bayescfx.potentials.family import Plateau
from bayescfx.potentials.levels import PEAK

_LOG_PEAK = -1.0
_IGNORED = 45.0  # nats by which one part may lead before another is left out
_UNDERFLOW = 740.0  # nats below the largest part where a gradient is no longer a number
_FIRST, _RATIO = 3.0, 4.0  # end of the first panel of a tail, and of each next to the one before
_FARTHEST = 1e150  # its square is finite
_ENDLESS = 1e100  # stands for infinity: finite, so that no nan can arise


class _Panels(NamedTuple):
    """Panels of the tails: for which points, from where to where, and the density seen from it."""

    rows: Indices
    start: Array  # ends in widths outwards from the corner
    stop: Array
    mean: Array  # the same of the mean
    std: Array
    end: Array  # of the superlevel set
    sign: Array  # -1 for the left tail: its derivatives by the mean are turned round
    near: Array  # least distance to the mean in deviations

    def only(self, at: Indices) -> _Panels:
        """Return the panels of some points."""
        return _Panels(self.rows[at], *(_of(part, at) for part in self[1:]))


class _Sums(NamedTuple):
    """Sums over the parts, relative to the density at the point nearest to the mean."""

    total: Array
    first: Array  # of t = (y - mean) / std
    second: Array  # of t**2
    slope: Array  # of g', and of its absolute value
    slopes: Array
    bend: Array  # of g'', kinks included, and of its absolute value
    bends: Array


class PlateauLevel(NamedTuple):
    """A threshold: how far its superlevel set reaches, and the improvement if all share it."""

    end: Array  # (n,), or (1,): reach beyond the range in widths
    gain: Array  # improvement on the range in peaks
    tail: Fixed | None  # a tail of one panel at its own nodes
    whole: Fixed | None  # the superlevel set of a bounded range at its own nodes


def plateau_level(potential: Plateau, best: Array) -> PlateauLevel:
    """Return thresholds from 0 to below the peak, one per point or one for all.

    Parameters
    ----------
    potential : Plateau
        The potential.
    best : ndarray of shape (n,) or (1,)
        The threshold.

    Returns
    -------
    PlateauLevel
        What :func:`plateau_log_integral` needs.
    """
    end = np.minimum(np.sqrt((PEAK - best) / np.maximum(best, 1e-300)), _ENDLESS)
    gain = (PEAK - best) / PEAK
    if len(best) != 1 or not end[0] <= _FIRST:
        return PlateauLevel(end, gain, None, None)
    reach = float(end[0])
    x = reach * SHORT.powers[:, 1]
    fall = 1.0 / (1.0 + x * x)
    # (Z - z)(Z + z) / (1 + Z**2), without the cancellation of the difference of both falls
    rest = (reach - x) * (reach + x) / (1.0 + reach * reach)
    outwards = fixed(reach, fall * rest, -2.0 * x * fall * fall)
    span = (potential.high - potential.low) / potential.width
    if math.isinf(span):
        return PlateauLevel(end, gain, outwards, None)
    inwards = fixed(reach, (fall * rest)[::-1], (2.0 * x * fall * fall)[::-1])
    flat = fixed(span, np.full(SHORT.nodes, gain[0]), np.zeros(SHORT.nodes))
    parts = [inwards, flat, outwards] if span > 0.0 else [inwards, outwards]
    return PlateauLevel(end, gain, outwards, joined(parts))


def plateau_log_integral(
    potential: Plateau, mean: Array, std: Array, level: PlateauLevel
) -> LogIntegral:
    """Return log E[max(0, rho(y) - best)] for a plateau.

    Parameters
    ----------
    potential : Plateau
        The potential.
    mean, std : ndarray of shape (n,)
        The density, `std` positive.
    level : PlateauLevel
        The threshold.

    Returns
    -------
    LogIntegral
        Arrays of shape (n,).
    """
    if level.whole is None:
        return _in_parts(potential, mean, std, level)
    width, inverse = potential.width, 1.0 / std
    reach = level.end * width
    low, high = ((potential.low - mean) - reach), ((potential.high - mean) + reach)
    ends = low * inverse, high * inverse, (level.whole.length * width) * inverse
    wide = level.whole.suits(*ends)
    rows = np.flatnonzero(wide)
    if not rows.size:
        return _in_parts(potential, mean, std, level)
    some = (e[rows] for e in (*ends, inverse * width))
    value, d_mean, d_std = level.whole.integral(*some).log()
    found = value + _LOG_PEAK, d_mean / width, d_std / width
    if rows.size == len(std):
        return LogIntegral(*found)
    rest = np.flatnonzero(~wide)
    parts = _in_parts(potential, mean[rest], std[rest], level)
    return LogIntegral(*merged(len(std), [(rows, found), (rest, parts)]))


def _in_parts(potential: Plateau, mean: Array, std: Array, level: PlateauLevel) -> LogIntegral:
    """Integrate the flat part and the panels of both tails apart."""
    width, end = potential.width, level.end
    s = std / width
    low = np.maximum(potential.low - mean, -_ENDLESS * width) / std
    high = np.minimum(potential.high - mean, _ENDLESS * width) / std
    reference = np.zeros(len(s))  # distance of the superlevel set in deviations
    panels = []
    for corner, sign in ((potential.low, -1.0), (potential.high, 1.0)):
        if math.isfinite(corner):
            m = sign * (mean - corner) / width
            np.maximum(reference, (m - end) / s, out=reference)
            panels += _tail(m, s, end, sign)
    sums = _Sums(*np.zeros((7, len(s))))
    if potential.low < potential.high:
        length = min(potential.high - potential.low, _ENDLESS * width) / std
        _add_flat(sums, (low, high, length), level.gain, reference)
    for panel in _mattering(panels, reference):
        rest: _Panels | None = panel
        if level.tail is not None:
            rest = _add_short_tail(sums, panel, level.tail, reference)
        if rest is not None:
            _add_tails(sums, rest, reference)
    return _gathered(sums, s, reference, width)


def _gathered(sums: _Sums, s: Array, reference: Array, width: float) -> LogIntegral:
    """Return value and gradient, each from the form whose terms cancel less."""
    total = sums.total
    alive = total > 0.0
    safe = total if alive.all() else np.where(alive, total, 1.0)
    value = np.log(safe) - (0.5 * reference * reference + (LOG_ROOT_TWO_PI - _LOG_PEAK))
    inverse = 1.0 / s
    smooth = sums.slopes * s < np.sqrt(sums.second * total)
    d_mean = np.where(smooth, sums.slope, sums.first * inverse)
    smooth = sums.bends * s * s < sums.second + total
    d_std = np.where(smooth, s * sums.bend, (sums.second - total) * inverse)
    scale = 1.0 / (safe * width)
    value = value if alive.all() else np.where(alive, value, -np.inf)
    return LogIntegral(value, d_mean * scale, d_std * scale)


def _of(shared: Array, rows: Indices) -> Array:
    """Return the entries of some points, of an array that all may share."""
    return shared if len(shared) == 1 else shared[rows]


def _tail(m: Array, s: Array, end: Array, sign: float) -> list[_Panels]:
    """Cut one tail into panels, as far out as the density reaches."""
    start, stop = 0.0, _FIRST
    farthest = float(np.max(end, initial=0.0))
    if farthest > stop:
        near = np.maximum(np.maximum(-m, m - end), 0.0) / s
        reach = np.minimum(end, m + s * np.sqrt(near * near + 2.0 * DROP))
        farthest = float(np.max(reach, initial=0.0))
    found = [_panel((start, stop), (m, s, end, sign), None)]
    while stop < farthest:
        start, stop = stop, stop * _RATIO
        rows = np.flatnonzero(end > start) if len(end) > 1 else None
        found.append(_panel((start, stop), (m, s, end, sign), rows))
    return found


def _panel(
    ends: tuple[float, float], tail: tuple[Array, Array, Array, float], rows: Indices | None
) -> _Panels:
    """Return one panel for some points, or for all."""
    m, s, end, sign = tail
    if rows is None:
        rows = np.arange(len(s))
    else:
        m, s, end = m[rows], s[rows], end[rows]
    stop = np.minimum(ends[1], end)
    near = np.maximum(np.maximum((ends[0] - m) / s, (m - stop) / s), 0.0)
    return _Panels(rows, np.array([ends[0]]), stop, m, s, end, np.array([sign]), near)


def _mattering(panels: list[_Panels], reference: Array) -> list[_Panels]:
    """Return the panels that matter, each for the points to which it does.

    A tail is measured against the other panels of both tails, not against the flat part: deep
    inside the range the gradient comes from the tails alone, however small they are.
    """
    top = np.full(len(reference), -np.inf)
    bounds = []
    for panel in panels:
        bound = -0.5 * panel.near * panel.near - math.log1p(float(panel.start[0]) ** 2)
        bounds.append(bound)
        top[panel.rows] = np.maximum(top[panel.rows], bound)
    np.maximum(top - _IGNORED, -0.5 * reference * reference - _UNDERFLOW, out=top)
    kept = []
    for panel, bound in zip(panels, bounds, strict=True):
        at = np.flatnonzero(bound >= top[panel.rows])
        if at.size:
            kept.append(panel.only(at))
    return kept


def _add_flat(sums: _Sums, ends: tuple[Array, Array, Array], gain: Array, reference: Array) -> None:
    """Add the flat part, whose improvement is constant, where it matters."""
    low, high, span = ends
    near = np.maximum(np.maximum(low, -high), 0.0)
    rows = np.flatnonzero((near - reference) * (near + reference) < 2.0 * _IGNORED)
    if not rows.size:
        return
    low, high = low[rows], high[rows]
    h = hull(np.maximum(low, -high), np.maximum(high, -low), span[rows])
    powers = density_moments(h)
    near, reference = h.near, reference[rows]
    powers *= _of(gain, rows) * h.length * np.exp(-0.5 * (near - reference) * (near + reference))
    _add_moments(sums, rows, h, np.where(low >= -high, 1.0, -1.0), powers)


def _add_moments(sums: _Sums, rows: Indices, h: Hull, turn: Array, powers: Array) -> None:
    """Add the moments of ``t = turn * (near - below + length * u)``, from those of ``u``."""
    start, length = h.near - h.below, h.length
    total, first, second = powers
    sums.total[rows] += total
    sums.first[rows] += turn * (start * total + length * first)
    sums.second[rows] += start * (start * total + 2.0 * length * first) + length * length * second


def _add_tails(sums: _Sums, panel: _Panels, reference: Array) -> None:
    """Add panels of the tails.

    With ``z`` running from the nearer end, both ``Z**2 - z**2`` and ``1 + z**2`` are parabolas
    in ``u``; ``rho' = -2 z fall**2`` and ``rho'' = (6 - 8 fall) fall**2`` in peaks, with
    ``fall = 1 / (1 + z**2)``.
    """
    rows, start, stop, m, s, end, sign, near = panel
    low, high = (start - m) / s, (stop - m) / s
    left = low >= -high
    turn = np.where(left, 1.0, -1.0)
    h = hull(np.maximum(low, -high), np.maximum(high, -low), (stop - start) / s)
    step = turn * s
    base, x, run = np.where(left, start, stop), step * h.offset, step * h.length
    z, whole = base + x, 1.0 + end * end
    first, second, third = _fall_sums(h, np.stack([1.0 + z * z, 2.0 * z * run, run * run]))
    reference = reference[rows]
    scale = np.exp(-0.5 * (near - reference) * (near + reference))
    weight = h.length * scale
    share = weight / whole
    a = ((end - base) - x) * (end + z) * share
    b, c = -2.0 * z * run * share, -run * run * share
    powers = a * first[:3] + b * first[1:4] + c * first[2:]
    _add_moments(sums, rows, h, sign * turn, powers)
    slope = 2.0 * weight * (z * second[0] + run * second[1])
    sums.slope[rows] -= sign * slope
    sums.slopes[rows] += slope
    edge = np.minimum(high, _FARTHEST)
    kink = np.exp(-0.5 * (edge - reference) * (edge + reference)) * (2.0 * end / whole / whole) / s
    kink *= stop == end
    sums.bend[rows] += weight * (6.0 * second[0] - 8.0 * third) + kink
    sums.bends[rows] += 3.0 * weight * second[0] + kink


def _add_short_tail(sums: _Sums, panel: _Panels, nodes: Fixed, reference: Array) -> _Panels | None:
    """Add a panel that all points share where it is short against the density; return the rest."""
    inverse = 1.0 / panel.std
    low, high = -panel.mean * inverse, (nodes.length - panel.mean) * inverse
    length = nodes.length * inverse
    suits = nodes.suits(low, high, length)
    at = np.flatnonzero(suits)
    if not at.size:
        return panel
    low, length, inverse = low[at], length[at], inverse[at]
    rows, sign = panel.rows[at], float(panel.sign[0])
    near, reference = panel.near[at], reference[rows]
    found = nodes.sums(low, high[at], length)
    found *= length * np.exp(-0.5 * (near - reference) * (near + reference))
    total, first, second, slope, tilted = found
    run = length * first
    tilt = low * total + run
    sums.total[rows] += total
    sums.first[rows] += sign * tilt
    sums.second[rows] += low * (tilt + run) + length * length * second
    sums.slope[rows] += sign * slope
    sums.slopes[rows] -= slope
    sums.bend[rows] += (low * slope + length * tilted) * inverse
    sums.bends[rows] -= slope * inverse
    return panel.only(np.flatnonzero(~suits)) if at.size < len(suits) else None


def _fall_sums(h: Hull, growth: Array) -> tuple[Array, Array, Array]:
    """Sum the density times fall, fall**2 and fall**3, times 5, 2 and 1 powers of u."""
    n = growth.shape[1]
    exponents = h.exponents()
    first, second, third = np.empty((5, n)), np.empty((2, n)), np.empty(n)
    for batch in batches(h.length, 2):
        rows, moments = batch.rows, batch.rule.moments
        density = batch.parabola(exponents, 0)
        np.exp(density, out=density)
        fall = batch.parabola(growth, 1)
        np.reciprocal(fall, out=fall)
        density *= fall
        first[:, rows] = moments @ density
        density *= fall
        second[:, rows] = moments[:2] @ density
        density *= fall
        third[rows] = moments[0] @ density
    return first, second, third
