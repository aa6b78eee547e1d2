"""First candidates of a proposal: sparse changes of the query, and which features to change."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.errors import InfeasibleError
from bayescfx.propose.axes import Axes
from bayescfx.propose.ledger import Ledger
from bayescfx.space.region import Region
from bayescfx.space.sampling import sample

_FEW = 300  # at most this many sets of features are explored one by one
_POOL = 512  # candidates of a screening
_FLAT_POOL = 1280  # the same where no gradient helps afterwards
_WIDTH = 12  # sets of features that a beam carries on
_BEAM_ROWS = 3072  # most candidates per level of a beam
_NEAREST = 0.02  # shortest contraction towards the query


def screen(ledger: Ledger, axes: Axes, starts: Array, rng: np.random.Generator) -> None:
    """Score a few hundred candidates spread over the region; the ledger remembers them.

    Parameters
    ----------
    ledger : Ledger
        Scores and remembers.
    axes : Axes
        The free features.
    starts : Array of shape (n, d)
        Promising rows, best first; they and changes of them are candidates too.
    rng : numpy.random.Generator
        Source of the candidates.

    Examples
    --------
    >>> from bayescfx.features import Integer, Real
    >>> from bayescfx.space.space import Space
    >>> region = Space({"a": Real(0, 1), "b": Integer(0, 9)}).around({"a": 0.5, "b": 2})
    >>> class Hill:
    ...     def value(self, X):
    ...         return -np.abs(X - [0.25, 7.0]).sum(axis=1)
    ...
    ...     def gradient(self, X):
    ...         return self.value(X), -np.sign(X - [0.25, 7.0])
    >>> ledger = Ledger(Hill(), region)
    >>> screen(ledger, Axes.of(region), region.query[None], np.random.default_rng(0))
    >>> len(ledger.tried()[0]) > 100
    True
    """
    region = ledger.region
    bound = region.max_changes
    free = len(axes.free)
    size = _POOL if axes.sloped.size else _FLAT_POOL
    if bound is None or bound >= free:
        pool = _changed(axes, _sizes(rng, size, free), starts, rng)
    else:
        sets = every_support(free, bound)
        if sets is None:
            beam(ledger, axes, bound, rng)
            pool = _changed(axes, rng.integers(1, bound + 1, size=size // 2), starts, rng)
        else:
            each = max(3, -(-2 * size // len(sets)))
            pool = _on_supports(axes, np.repeat(sets, each, axis=0), rng)
    pool = region.snap(np.concatenate([starts, pool]))
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


def every_support(free: int, bound: int) -> Mask | None:
    """All sets of 1 to `bound` of `free` features as masks ``(s, free)``; ``None`` if too many.

    Examples
    --------
    >>> every_support(3, 1).astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    >>> every_support(200, 3) is None
    True
    """
    count = sum(comb(free, size) for size in range(1, bound + 1))
    if count > _FEW:
        return None
    masks = np.zeros((count, free), dtype=bool)
    sets = (s for size in range(1, bound + 1) for s in combinations(range(free), size))
    for row, members in enumerate(sets):
        masks[row, list(members)] = True
    return masks


def beam(ledger: Ledger, axes: Axes, bound: int, rng: np.random.Generator) -> None:
    """Grow sets of changed features one by one, keeping the best few of each size.

    Parameters
    ----------
    ledger : Ledger
        Scores and remembers.
    axes : Axes
        The free features.
    bound : int
        Largest number of changed features.
    rng : numpy.random.Generator
        Values tried for each feature; a random part of them when there are too many.
    """
    region = ledger.region
    carried = region.query[None]
    for _ in range(bound):
        features, targets = axes.lines(rng)
        rows = np.repeat(np.arange(len(carried)), len(features))
        features, targets = np.tile(features, len(carried)), np.tile(targets, len(carried))
        entering = (carried[rows, features] == region.query[features]) & (
            targets != region.query[features]
        )
        index = np.flatnonzero(entering)
        if len(index) > _BEAM_ROWS:
            index = np.sort(rng.choice(index, size=_BEAM_ROWS, replace=False))
        if not len(index):
            return
        grown = carried[rows[index]]
        grown[np.arange(len(index)), features[index]] = targets[index]
        grown = region.snap(grown)
        value = ledger.value(grown)
        value = np.where(np.isfinite(value), value, _outside(ledger, grown, value))
        carried = _best_sets(region.changes(grown), grown, value)


def _outside(ledger: Ledger, X: Array, value: Array) -> Array:
    """Rank rows that break a rule below all others: a larger set may keep the rule."""
    floor = value[np.isfinite(value)].min(initial=0.0)
    missing = ~np.isfinite(value)
    guess = np.full(len(value), -np.inf)
    if missing.any():
        inner = ledger.peek(X[missing])
        if np.isfinite(inner.max()):
            guess[missing] = floor - 1.0 + np.minimum(inner - inner.max(), 0.0)
    return np.where(np.isnan(guess), -np.inf, guess)


def _best_sets(changed: Mask, X: Array, value: Array) -> Array:
    """Return the best row of each of the best sets of changed features."""
    order = np.argsort(-value, kind="stable")
    kept: dict[bytes, int] = {}
    for index in order.tolist():
        kept.setdefault(changed[index].tobytes(), index)
        if len(kept) == _WIDTH:
            break
    return X[list(kept.values())]


def _sizes(rng: np.random.Generator, n: int, free: int) -> Indices:
    """Draw numbers of changed features: few ones as often as many, and all in the last rows."""
    sizes = np.ceil(free ** rng.random(n)).astype(np.intp)
    sizes[n - n // 3 :] = free
    return sizes


def _on_supports(axes: Axes, masks: Mask, rng: np.random.Generator) -> Array:
    """One random change of the query on each of the given sets of features."""
    X = axes.draw(rng, len(masks))
    query = axes.region.query
    free = axes.free
    X[:, free] = np.where(masks, _nearer(axes, X, query[None], rng)[:, free], query[free])
    return X


def _changed(axes: Axes, sizes: Indices, starts: Array, rng: np.random.Generator) -> Array:
    """Random changes of the query and, for a third of the rows, of the first starts.

    `sizes` are the numbers of features changed in each row.
    """
    free, n = axes.free, len(sizes)
    rank = rng.random((n, len(free))).argsort(axis=1)
    mask = rank < sizes[:, None]
    origin = np.tile(axes.region.query, (n, 1))
    if len(starts):
        origin[: n // 3] = starts[np.arange(n // 3) % min(len(starts), 8)]
    X = axes.draw(rng, n)
    X = _nearer(axes, X, origin, rng)
    out = origin
    out[:, free] = np.where(mask, X[:, free], origin[:, free])
    return out


def _nearer(axes: Axes, X: Array, origin: Array, rng: np.random.Generator) -> Array:
    """Draw some of the rows towards their origin: the best point is often near the query."""
    radius = np.where(rng.random(len(X)) < 0.6, 1.0, _NEAREST ** rng.random(len(X)))
    ordered = ~(axes.region.categorical | axes.region.cyclic)
    moved = origin + radius[:, None] * (X - origin)
    return np.where(ordered & (radius < 1)[:, None], moved, X)
