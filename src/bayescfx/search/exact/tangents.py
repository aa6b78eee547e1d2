"""Tangents of distances with norms other than 0 and 1, for linear programs.

A distance is at least ``g @ units`` for each gradient g of it. The gradient at the nearest point of
a target closes the gap that a linear program leaves, as long as the same features move.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.search.exact.gain_columns import GainColumns

#: Halvings that find the multiplier of the nearest point.
BISECTIONS = 100


def gradient(units: Array, norm: float) -> Array:
    """Return the gradient of the norm at changes ``(d,)`` that are not all 0."""
    return np.asarray((units / np.linalg.norm(units, norm)) ** (norm - 1.0))


def new_gradient(units: Array, norm: float, cuts: Sequence[Array], same: float) -> Array | None:
    """Return the gradient at changes ``(d,)`` if it tells something new.

    Parameters
    ----------
    units : array of shape (d,)
        The changes, in units of the distance.
    norm : float
        The norm of the distance; 0 and 1 need no gradients.
    cuts : sequence of arrays of shape (d,)
        The gradients that are known.
    same : float
        Share of the distance within which known gradients are exact.
    """
    distance = 0.0 if norm in (0, 1) else float(np.linalg.norm(units, norm))
    known = max([units.max(initial=0.0), *(cut @ units for cut in cuts)])
    is_known = known >= distance * (1.0 - same)
    return None if is_known else gradient(units, norm)


def nearest_point(
    columns: GainColumns, target: tuple[float, float], is_moved: Mask, norm: float
) -> Array | None:
    """Return the columns ``(n,)`` of the nearest point of a target, as if all were shares.

    Rules and the prices of changes are left out.

    Parameters
    ----------
    columns : GainColumns
        The columns of the question.
    target : tuple of float
        The lowest and highest sum that is accepted.
    is_moved : mask of shape (d,)
        The features that may move.
    norm : float
        The norm of the distance, above 1.

    Returns
    -------
    array of shape (n,) or None
        None if the target can't be reached, or without any distance.
    """
    start = columns.parts.start
    wanted = max(target[0] - start, start - target[1])
    gain = columns.gain if start < target[0] else -columns.gain
    unit = columns.units.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where((unit > 0.0) & (gain > 0.0), gain / unit, 0.0)
    by_feature = np.where(columns.units > 0.0, rate, 0.0)  # (d, n)
    best = by_feature.argmax(axis=1)
    moved = np.flatnonzero(is_moved & (by_feature.max(axis=1, initial=0.0) > 0.0))
    if wanted <= 0.0 or not len(moved):
        return None
    best = best[moved]
    room = unit[best] * columns.high[best]
    power = rate[best] ** (1.0 / (norm - 1.0))
    if float(rate[best] @ room) < wanted:
        return None
    low = 0.0
    high = float((room / power).max())
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        reaches = float(rate[best] @ np.minimum(room, middle * power)) >= wanted
        low = low if reaches else middle
        high = middle if reaches else high
    values = np.zeros(len(columns.high))
    values[best] = np.minimum(room, high * power) / unit[best]
    return values
