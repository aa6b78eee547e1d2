"""The rows at which the surrogate still hopes most for the target.

Whether a target is out of reach is decided at the extremes of the region: where the surrogate's
upper (or lower) confidence bound is highest.
"""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array
from bayescfx.propose.proposal import propose
from bayescfx.search.objectives import confidence_bound
from bayescfx.search.surrogate import Surrogate
from bayescfx.space.region import Region
from bayescfx.space.sampling import background_rows, sample

OPTIMISM = 2.0  # how many deviations are hoped for


def frontier(
    surrogate: Surrogate,
    region: Region,
    known: Array,
    side: int,
    rng: np.random.Generator,
    most: int = 96,
) -> Array:
    """Return rows ``(m, d)`` at which the surrogate may be highest (`side` 1) or lowest (-1).

    At most `most` rows of the region, the most hopeful first; the `known` rows ``(n, d)`` may be
    among them.
    """
    hope = confidence_bound(surrogate, side, OPTIMISM)
    starts = np.vstack([known, background_rows(region, 96, rng)])
    starts = starts[np.argsort(-hope.value(starts), kind="stable")]
    return propose(hope, region, rng, starts, k=most, effort="glance").points


def probes(
    surrogate: Surrogate, region: Region, known: Array, side: int, rng: np.random.Generator, n: int
) -> Array:
    """Return rows that would show whether the surrogate knows the region or only a corner of it.

    Every other row is the most hopeful one, given that those chosen before come out as predicted;
    the rest are data rows as far as possible from everything known ``(m, d)``, by coordinates and
    not by what the surrogate takes to matter. At most `n` rows, none of them known; the target is
    above (`side` 1) or below (-1) what is known.
    """
    hopeful = frontier(surrogate, region, known, side, rng)
    # Models vary most where their data are: corners of the box may all look alike.
    usual = background_rows(region, 192, rng)
    if not len(usual):
        usual = sample(region, 192, rng)
    pool = np.vstack([hopeful, usual])
    from_data = np.arange(len(pool)) >= len(hopeful)
    coordinates, process = surrogate.coordinates, surrogate.process
    Z = coordinates(pool)
    away = coordinates.distances(Z, coordinates(known)).min(axis=1)
    chosen: list[int] = []
    while len(chosen) < n and (away > 0.0).any():
        mean, std = process.predict(Z)
        worth = np.where(from_data, away, 0.0) if len(chosen) % 2 else side * mean + OPTIMISM * std
        at = int(np.argmax(np.where(away > 0.0, worth, -np.inf)))
        chosen.append(at)
        process = process.with_points(Z[[at]], mean[[at]])
        away = np.minimum(away, coordinates.distances(Z, Z[[at]])[:, 0])
        away[at] = 0.0
    return np.asarray(pool[chosen])
