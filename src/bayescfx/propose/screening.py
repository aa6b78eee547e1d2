"""First candidates of a proposal: sparse changes of the query, and which features to change."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from math import comb

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.errors import InfeasibleError
from bayescfx.propose.free import FreeFeatures
from bayescfx.propose.ledger import Ledger
from bayescfx.propose.moves import Changes, subset
from bayescfx.propose.tuning import TUNING, Effort
from bayescfx.space.region import Region
from bayescfx.space.sampling import sample


def screen(ledger: Ledger, starts: Array, rng: np.random.Generator, effort: Effort) -> None:
    """Score a few hundred candidates: the `starts` ``(n, d)``, changes of them and of the query.

    Without an l0 bound random sets of features are changed; with one, every allowed set if there
    are few, and otherwise random sets after a beam search. Where rules reject most candidates,
    allowed rows are sampled.
    """
    free = ledger.free
    region = ledger.region
    size = _n_candidates(free, effort)
    masks = _listed_supports(free, size)
    n_from_starts = 0
    if masks is None:
        masks = _random_supports(ledger, size, rng, effort)
        n_from_starts = len(masks) // TUNING.start_share
    origin = np.tile(region.query, (len(masks), 1))
    turns = np.arange(n_from_starts) % min(len(starts), TUNING.starts)
    origin[:n_from_starts] = starts[turns]
    pool = region.snap(np.concatenate([starts, _changed(free, origin, masks, rng)]))
    allowed = ledger.allowed(pool)
    rows = pool[allowed]
    if allowed.mean() < TUNING.least_allowed:
        rows = np.concatenate([rows, sampled(region, size // 2, rng)])
    ledger.value_allowed(rows)


def _n_candidates(free: FreeFeatures, effort: Effort) -> int:
    """Return how many candidates are scored."""
    if effort == "glance":
        return TUNING.candidates_at_a_glance
    return TUNING.candidates if free.sloped.size else TUNING.candidates_without_slope


def _is_sparse(free: FreeFeatures) -> bool:
    """Return whether the l0 bound excludes some sets of features."""
    bound = free.region.max_changes
    return bound is not None and bound < len(free.all)


def _listed_supports(free: FreeFeatures, size: int) -> Mask | None:
    """Return every allowed set of features, several times, as masks; None if there are too many."""
    if not _is_sparse(free):
        return None
    n_free = len(free.all)
    bound = free.region.max_changes or 0
    if sum(comb(n_free, size) for size in range(1, bound + 1)) > TUNING.supports:
        return None
    masks = _every_support(n_free, bound)
    return np.repeat(masks, -(-2 * size // len(masks)), axis=0)


def _random_supports(ledger: Ledger, size: int, rng: np.random.Generator, effort: Effort) -> Mask:
    """Return random sets of features as masks ``(n, free)``."""
    count = len(ledger.free.all)
    if _is_sparse(ledger.free):
        bound = ledger.region.max_changes or 0
        if effort != "glance":
            _grow_supports(ledger, bound, rng)
        sizes = rng.integers(1, bound + 1, size=size // 2)
    else:
        # Few changes as often as many, and all features in the last third.
        sizes = np.ceil(count ** rng.random(size)).astype(np.intp)
        sizes[size - size // 3 :] = count
    return np.asarray(rng.random((len(sizes), count)).argsort(axis=1) < sizes[:, None])


def sampled(region: Region, n: int, rng: np.random.Generator) -> Array:
    """Return at most `n` rows of the region; none where nothing but the query is allowed."""
    try:
        return sample(region, n, rng)
    except InfeasibleError:
        return np.empty((0, len(region.query)))


@cache
def _every_support(free: int, bound: int) -> Mask:
    """Return all sets of 1 to `bound` of `free` features as masks ``(s, free)``."""
    count = sum(comb(free, size) for size in range(1, bound + 1))
    masks = np.zeros((count, free), dtype=bool)
    at = 0
    for size in range(1, bound + 1):
        for members in combinations(range(free), size):
            masks[at, list(members)] = True
            at += 1
    return masks


def _grow_supports(ledger: Ledger, bound: int, rng: np.random.Generator) -> None:
    """Grow sets of changed features one by one, keeping the best of each size (beam search).

    The rows go into the ledger.
    """
    region = ledger.region
    carried = region.query[None]
    for _ in range(bound):
        features, codes = ledger.free.single_changes(rng)
        rows = np.repeat(np.arange(len(carried)), len(features))
        changes = Changes(rows, np.tile(features, len(carried)), np.tile(codes, len(carried)))
        own = region.query[changes.features]
        is_unchanged = carried[changes.rows, changes.features] == own
        index = np.flatnonzero(is_unchanged & (changes.codes != own))
        if len(index) > TUNING.at_once:
            index = index[subset(rng, len(index))]
        if not len(index):
            return
        grown = region.snap(changes.take(index).apply(carried))
        value = _value_outside_too(ledger, grown)
        carried = grown[_best_supports(region, grown, value)]


def _value_outside_too(ledger: Ledger, X: Array) -> Array:
    """Return the values ``(n,)`` of rows; those that break a rule are below all others.

    They are ranked too, since a larger set of changes may keep the rule that they break.
    """
    value = ledger.value(X).copy()
    is_outside = ~np.isfinite(value)
    if not is_outside.any():
        return value
    inner = ledger.acquisition.value(X[is_outside])
    inner = np.where(np.isnan(inner), -np.inf, inner)
    if np.isfinite(inner.max()):
        floor = value[~is_outside].min(initial=0.0) - 1.0
        value[is_outside] = floor + (inner - inner.max())
    return value


def _best_supports(region: Region, X: Array, value: Array) -> Indices:
    """Return the positions of the best row of each of the best sets of changed features."""
    changed = region.changes(X)
    kept: dict[bytes, int] = {}
    for at in np.argsort(-value, kind="stable").tolist():
        kept.setdefault(changed[at].tobytes(), at)
        if len(kept) == TUNING.beam:
            break
    return np.array(list(kept.values()), dtype=np.intp)


def _changed(free: FreeFeatures, origin: Array, masks: Mask, rng: np.random.Generator) -> Array:
    """Draw changes of rows in the features of masks ``(n, free)``.

    `origin` ``(n, d)`` are the rows to change. Changes of ordered features are random draws, of
    which some are shortened towards the origin.
    """
    region = free.region
    n = len(masks)
    drawn = free.draw(rng, n)
    # Some are short: the best point is often near the query.
    is_long = rng.random(n) < TUNING.long_changes
    radius = np.where(is_long, 1.0, TUNING.shortest ** rng.random(n))[:, None]
    is_short = ~(region.categorical | region.cyclic) & (radius < 1)
    drawn = np.where(is_short, origin + radius * (drawn - origin), drawn)
    out = origin.copy()
    out[:, free.all] = np.where(masks, drawn[:, free.all], origin[:, free.all])
    return out
