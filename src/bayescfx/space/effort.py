"""The effort of a change: its distance from the query, and a premium for each changed feature.

It is what every search minimises, and the `cost` of an answer.
"""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.space.region import Region

#: What one more changed feature adds to the effort, as a share of the distance (of 1 at most).
#: Set by judgement; benchmark `make quality` (2026-11-18).
PREMIUM = 0.2
#: Changes of numbers below this share of the feature's scale are trivial.
#: Set by judgement; benchmark `make quality` (2026-11-18).
TRIVIAL = 0.01


def effort(region: Region, X: Array) -> Array:
    """Return the effort ``(n,)`` of moving from the query to codes ``(n, d)``."""
    distance = region.distance(X)
    if region.cost.weight == 0.0:
        return distance
    premium = PREMIUM * region.changes(X) @ region.weight
    return np.asarray(distance + premium * np.minimum(distance, 1.0))


def effort_parts(region: Region, X: Array) -> tuple[Array, Array]:
    """Return the effort of codes ``(n, d)`` as sums over features, which moves can be added to.

    Returns
    -------
    powers : array of shape (n,)
        The distance to the power of the norm.
    premiums : array of shape (n,)
        The premium of all changed features.
    """
    norm = region.cost.norm
    if norm == 0:
        powers = region.changes(X) * region.weight
    else:  # a cap, or the power overflows
        powers = np.minimum(region.units(X), 1e280 ** (1.0 / norm)) ** norm
    premium = PREMIUM if region.cost.weight != 0.0 else 0.0
    return powers.sum(axis=1), premium * (region.changes(X) @ region.weight)


def effort_rise(region: Region, X: Array) -> Array:
    """Return the derivative of the effort by the distance, ``(n,)``, at codes ``(n, d)``."""
    if region.cost.weight == 0.0:
        return np.ones(len(X))
    premium = PREMIUM * region.changes(X) @ region.weight
    return np.asarray(1.0 + np.where(region.distance(X) < 1.0, premium, 0.0))


def clear_changes(region: Region, X: Array) -> Mask:
    """Return the mask ``(n, d)`` of changed features without trivial changes of numbers."""
    trivial = np.abs(X - region.query) < TRIVIAL * region.scale
    return np.asarray(region.changes(X) & ~trivial)
