"""First candidates of a proposal: sparse changes of the query, and which features to change."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import InfeasibleError
from bayescfx.propose.free import FreeFeatures
from bayescfx.propose.ledger import Ledger
from bayescfx.propose.neighbours import MOST_ROWS, some
from bayescfx.propose.refine import Effort
from bayescfx.space.region import Region
from bayescfx.space.sampling import sample


def screen(ledger: Ledger, starts: Array, rng: np.random.Generator, effort: Effort) -> None:
    """Score a few hundred candidates, the `starts` ``(n, d)`` and changes of them among them."""
    free, region = ledger.free, ledger.region
    bound, count = region.max_changes, len(free.all)
    # More where no gradient helps afterwards.
    size = 384 if effort == "glance" else 512 if free.sloped.size else 1280
    masks = None  # which features change in each row
    if bound is None or bound >= count:
        # few changes as often as many, and all of them in the last third
        sizes = np.ceil(count ** rng.random(size)).astype(np.intp)
        sizes[size - size // 3 :] = count
    elif (masks := _every_support(count, bound)) is None:
        if effort != "glance":
            _beam(ledger, bound, rng)
        sizes = rng.integers(1, bound + 1, size=size // 2)
    third = 0  # so many are changes of the starts, the others of the query
    if masks is None:
        masks = rng.random((len(sizes), count)).argsort(axis=1) < sizes[:, None]
        third = len(masks) // 3
    else:
        masks = np.repeat(masks, max(3, -(-2 * size // len(masks))), axis=0)
    origin = np.tile(region.query, (len(masks), 1))
    origin[:third] = starts[np.arange(third) % min(len(starts), 8)]
    pool = region.snap(np.concatenate([starts, _changed(free, origin, masks, rng)]))
    allowed = ledger.allowed(pool)
    if allowed.mean() < 0.5:
        pool = np.concatenate([pool[allowed], sampled(region, size // 2, rng)])
        allowed = np.ones(len(pool), dtype=bool)
    ledger.value(pool[allowed], allowed=True)


def sampled(region: Region, n: int, rng: np.random.Generator) -> Array:
    """Return at most `n` rows of the region; none where nothing but the query is allowed."""
    try:
        return sample(region, n, rng)
    except InfeasibleError:
        return np.empty((0, len(region.query)))


@cache
def _every_support(free: int, bound: int) -> Mask | None:
    """All sets of 1 to `bound` of `free` features as masks ``(s, free)``; ``None`` if too many."""
    count = sum(comb(free, size) for size in range(1, bound + 1))
    if count > 300:
        return None
    sets = [s for size in range(1, bound + 1) for s in combinations(range(free), size)]
    masks = np.zeros((count, free), dtype=bool)
    for mask, members in zip(masks, sets, strict=True):
        mask[list(members)] = True
    return masks


def _beam(ledger: Ledger, bound: int, rng: np.random.Generator, width: int = 12) -> None:
    """Grow sets of changed features one by one, keeping the best `width` of each size."""
    region = ledger.region
    carried = region.query[None]
    for _ in range(bound):
        features, codes = ledger.free.single_changes(rng)
        rows = np.repeat(np.arange(len(carried)), len(features))
        features, codes = np.tile(features, len(carried)), np.tile(codes, len(carried))
        own = region.query[features]
        index = np.flatnonzero((carried[rows, features] == own) & (codes != own))
        if len(index) > MOST_ROWS:
            index = index[some(rng, len(index))]
        if not len(index):
            return
        grown = carried[rows[index]]
        grown[np.arange(len(index)), features[index]] = codes[index]
        grown = region.snap(grown)
        value = ledger.value(grown).copy()
        outside = ~np.isfinite(value)
        if outside.any():  # below all others, but a larger set may keep the rule they break
            inner = ledger.acquisition.value(grown[outside])
            inner = np.where(np.isnan(inner), -np.inf, inner)
            if np.isfinite(inner.max()):
                floor = value[~outside].min(initial=0.0) - 1.0
                value[outside] = floor + (inner - inner.max())
        changed = region.changes(grown)
        kept: dict[bytes, int] = {}  # the best row of each of the best sets
        for at in np.argsort(-value, kind="stable").tolist():
            kept.setdefault(changed[at].tobytes(), at)
            if len(kept) == width:
                break
        carried = grown[list(kept.values())]


def _changed(free: FreeFeatures, origin: Array, masks: Mask, rng: np.random.Generator) -> Array:
    """Draw changes of rows ``(n, d)`` in the features of masks ``(n, free)``."""
    region, drawn, n = free.region, free.draw(rng, len(masks)), len(masks)
    # Some are short: the best point is often near the query.
    radius = np.where(rng.random(n) < 0.6, 1.0, 0.02 ** rng.random(n))[:, None]
    short = ~(region.categorical | region.cyclic) & (radius < 1)
    drawn = np.where(short, origin + radius * (drawn - origin), drawn)
    out = origin.copy()
    out[:, free.all] = np.where(masks, drawn[:, free.all], origin[:, free.all])
    return out
