"""The rows at which the surrogate still hopes most for the target.

Whether a target is out of reach is decided at the extremes of the region. They are found by a short
ascent of the surrogate's upper (or lower) confidence bound, which pushes features to the
ends of their ranges, one by one and all together along the slope.
"""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.search.surrogate import Surrogate
from bayescfx.space.region import Region
from bayescfx.space.repair import project
from bayescfx.space.sampling import background_rows, sample

_RANDOM = 96  # rows drawn from the region, and as many copied from data
_BEST = 6  # rows that are pushed further in each round
_ROUNDS = 3
_FEATURES = 16  # the most features that are pushed one by one
_LEVELS = 6  # the most levels tried of an unordered feature
_OPTIMISM = 2.0  # how many deviations are hoped for


def frontier(
    surrogate: Surrogate,
    region: Region,
    known: Array,
    side: int,
    rng: np.random.Generator,
    most: int,
) -> Array:
    """Return rows at which the surrogate may be highest (`side` 1) or lowest (-1).

    Parameters
    ----------
    surrogate : Surrogate
        The surrogate.
    region : Region
        Every row returned lies in it.
    known : Array of shape (n, d)
        Codes of evaluated rows, from which the ascent starts too.
    side : {1, -1}
        Upwards or downwards.
    rng : numpy.random.Generator
        Source of the random rows.
    most : int
        How many rows are returned at most, the most hopeful first.

    Returns
    -------
    Array of shape (m, d)
    """
    pool = np.vstack([known, sample(region, _RANDOM, rng), background_rows(region, _RANDOM, rng)])
    hope = optimism(surrogate, pool, side)
    for _ in range(_ROUNDS):
        top = pool[np.argsort(-hope, kind="stable")[:_BEST]]
        pushed = project(region, _pushed(surrogate, region, top, side))
        pool = np.vstack([pool, pushed])
        hope = np.concatenate([hope, optimism(surrogate, pushed, side)])
    order = np.argsort(-hope, kind="stable")[: 2 * most]
    _, first = np.unique(pool[order], axis=0, return_index=True)
    return np.asarray(pool[order[np.sort(first)[:most]]])


def probes(
    surrogate: Surrogate, region: Region, known: Array, side: int, rng: np.random.Generator, n: int
) -> Array:
    """Return rows that would show whether the surrogate knows the region or only a corner of it.

    Every other row is the most hopeful one, given that those chosen before come out as predicted;
    the rest are data rows as far as possible from everything known, by coordinates and not by
    what the surrogate takes to matter.

    Parameters
    ----------
    surrogate : Surrogate
        The surrogate.
    region : Region
        Every row returned lies in it.
    known : Array of shape (m, d)
        Codes of evaluated rows.
    side : {1, -1}
        Where the target is: above or below what is known.
    rng : numpy.random.Generator
        Source of the rows to choose from.
    n : int
        How many.

    Returns
    -------
    Array of shape (k, d)
        At most `n` rows, none of them known.
    """
    hopeful = frontier(surrogate, region, known, side, rng, _RANDOM)
    # Models vary most where their data are: corners of the box may all look alike.
    usual = background_rows(region, 2 * _RANDOM, rng)
    if not len(usual):
        usual = sample(region, 2 * _RANDOM, rng)
    pool = np.vstack([hopeful, usual])
    from_data = np.arange(len(pool)) >= len(hopeful)
    Z, process = surrogate.coordinates(pool), surrogate.process
    away = surrogate.coordinates.distances(Z, surrogate.coordinates(known)).min(axis=1)
    chosen: list[int] = []
    while len(chosen) < n and (away > 0.0).any():
        mean, std = process.predict(Z)
        spread = np.where(from_data, away, 0.0)
        hope = side * mean + _OPTIMISM * std if len(chosen) % 2 == 0 else spread
        at = int(np.argmax(np.where(away > 0.0, hope, -np.inf)))
        chosen.append(at)
        process = process.with_points(Z[[at]], mean[[at]])
        away = np.minimum(away, surrogate.coordinates.distances(Z, Z[[at]])[:, 0])
        away[at] = 0.0
    return np.asarray(pool[chosen])


def optimism(surrogate: Surrogate, X: Array, side: int) -> Array:
    """Return the surrogate's confidence bound ``(n,)`` at codes ``(n, d)``; more is better."""
    if not len(X):
        return np.empty(0)
    mean, std = surrogate.predict(X)
    return np.asarray(side * mean + _OPTIMISM * std)


def _pushed(surrogate: Surrogate, region: Region, X: Array, side: int) -> Array:
    """Return variants of rows with features moved to the ends of their ranges."""
    _, _, mean_x, std_x = surrogate.predict_gradient(X)
    slope = side * mean_x + _OPTIMISM * std_x
    reach = region.high - region.low
    ends = np.where(slope > 0, region.high, np.where(slope < 0, region.low, X))
    variants = [ends, 0.5 * (X + ends)]
    strength = np.abs(slope * reach).max(axis=0)
    for j in _chosen(region, strength):
        for code in _codes(region, int(j)):
            moved = X.copy()
            moved[:, j] = code
            variants.append(moved)
    return np.vstack(variants)


def _chosen(region: Region, strength: Array) -> Indices:
    """Return the free features worth pushing alone: unordered ones and those of strong slope."""
    if len(region.free) <= _FEATURES:
        return region.free
    sloped = np.where(region.categorical | region.cyclic, np.inf, strength)[region.free]
    return region.free[np.argsort(-sloped, kind="stable")[:_FEATURES]]


def _codes(region: Region, j: int) -> Array:
    """Return a few codes of feature `j`: its ends, or some of its levels."""
    choices = region.choices[j]
    if choices is not None and (region.categorical[j] or region.cyclic[j]):
        at = np.linspace(0, len(choices) - 1, min(_LEVELS, len(choices))).astype(np.intp)
        return np.asarray(choices[at])
    return np.array([region.low[j], region.high[j]])
