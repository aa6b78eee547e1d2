"""Ways to relax a region a little: steps out of it that only one limit or rule forbids.

Each step out comes with the same step inside, as far as there is one: up to a limit for a step
beyond it, in place of another change for one change more, the step before for a step straight on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.search.surrogate import Surrogate
from bayescfx.space.axis import Axis
from bayescfx.space.region import Region

_BEYOND = 0.2  # how far a limit is relaxed, as a share of the feature's range
_PARTS = (0.5, 1.0)  # of that way
_SHORT = (-0.2, -0.1, 0.1, 0.2)  # of a feature's range: steps where a rule is left out
_FEATURES = 48  # the most features that are looked at
_CODES = 5  # codes per feature that are tried


@dataclass(frozen=True)
class Steps:
    """Steps out of a region that one limit forbids, and the same steps inside.

    Parameters
    ----------
    words : str
        The limit.
    region : Region
        The region without it.
    start, end : Array of shape (n, d)
        From rows of the region to rows that are allowed, if at all, in the relaxed one only.
    before, after : Array of shape (n, d)
        The same steps inside, as far as there is room.
    times : Array of shape (n,)
        How much longer the steps out are than those inside; 0 where there is nothing like them.
    chosen : bool
        Whether somebody set the limit; the end of a feature nobody did.
    """

    words: str
    region: Region
    start: Array
    end: Array
    before: Array
    after: Array
    times: Array
    chosen: bool = True


def relaxations(surrogate: Surrogate, region: Region, tops: Array, known: Array) -> Iterator[Steps]:
    """Yield the steps out of a region, limit by limit.

    Parameters
    ----------
    surrogate : Surrogate
        The surrogate.
    region : Region
        To be relaxed.
    tops : Array of shape (n, d)
        Rows of the region to start from.
    known : Array of shape (m, d)
        Everything evaluated, inside the region or not.
    """
    for j in _strongest(region, surrogate.predict_gradient(tops)[2]):
        yield from _limits(region, int(j), tops, known)
    yield from _fixed(surrogate, region, tops, known)
    moved = variants(surrogate, region, tops)
    bound = region.max_changes
    if bound is not None and bound < len(region.free):
        yield _one_more(surrogate, region, bound, *_pairs(region, tops, moved))
    without = list(_without_rules(region))
    if without:
        start, end = _pairs(region, tops, np.vstack([moved, *_short(region, tops)]))
        for words, freed in without:
            yield _straight_on(words, freed, start, freed.complete(end))


def variants(surrogate: Surrogate, region: Region, X: Array) -> Array:
    """Return the rows with single features, or all along the slope, moved within their limits.

    Returns
    -------
    Array of shape (k n, d)
        The rows of `X` in turn, k times.
    """
    slope = surrogate.predict_gradient(X)[2]
    found = [
        np.where(side * slope > 0, region.high, np.where(slope != 0, region.low, X))
        for side in (1, -1)
    ]
    for j in _strongest(region, slope):
        found += [_with(X, int(j), code) for code in _spread(region, int(j))]
    return np.vstack(found)


def _strongest(region: Region, slope: Array) -> Indices:
    strength = (np.abs(slope) * (region.high - region.low)).max(axis=0)[region.free]
    return region.free[np.argsort(-strength, kind="stable")[:_FEATURES]]


def _spread(region: Region, j: int) -> Array:
    """Return a few codes of feature `j`, its ends included."""
    choices = region.choices[j]
    if choices is None:
        return np.linspace(region.low[j], region.high[j], _CODES)
    at = np.linspace(0, len(choices) - 1, min(_CODES, len(choices))).astype(np.intp)
    return np.asarray(choices[at])


def _with(X: Array, j: int, code: Array | float) -> Array:
    moved = X.copy()
    moved[:, j] = code
    return moved


def _short(region: Region, X: Array) -> Iterator[Array]:
    """Yield the rows with single features moved a little, either way."""
    for j in region.free[:_FEATURES].tolist():
        if not region.categorical[j] and not region.cyclic[j]:
            span = region.high[j] - region.low[j]
            yield from (_with(X, j, X[:, j] + share * span) for share in _SHORT)


def _pairs(region: Region, tops: Array, moved: Array) -> tuple[Array, Array]:
    """Return rows and what was made of them, where that is something else within the limits."""
    start, end = np.tile(tops, (len(moved) // len(tops), 1)), region.snap(moved)
    other = ((start != end) & ~np.isnan(end)).any(axis=1)
    return start[other], end[other]


# ── rules ──


def _without_rules(region: Region) -> Iterator[tuple[str, Region]]:
    """Yield the region without one of its rules, for each."""
    for rule in region.rules:
        if rule.words.limit:
            yield rule.words.limit, region.without(rule)


def _straight_on(words: str, region: Region, start: Array, end: Array) -> Steps:
    """Return steps that follow, straight on, a step within the limits of all features."""
    step = np.where(region.categorical | region.cyclic, 0.0, np.nan_to_num(end - start))
    back = np.where(step > 0, start - region.low, region.high - start)
    room = np.where(step != 0, back / np.where(step != 0, np.abs(step), 1.0), 1.0).min(axis=1)
    share = np.clip(room, 0.0, 1.0)
    before = region.complete(start - share[:, None] * step)
    times = np.where(share > 0, 1.0 / np.maximum(share, _BEYOND), 0.0)
    return Steps(words, region, start, end, before, start, times)


# ── the bound on changes ──


def _one_more(surrogate: Surrogate, region: Region, bound: int, start: Array, end: Array) -> Steps:
    """Return steps to one change more, and the same change in place of the one least missed."""
    freed = replace(region, max_changes=bound + 1)
    added = freed.changes(end) & ~freed.changes(start)
    fresh = (added.sum(axis=1) == 1) & (freed.changes(end).sum(axis=1) == bound + 1)
    start, end, added = start[fresh], end[fresh], added[fresh]
    fewer = np.array([_one_less(surrogate, region, row) for row in start]).reshape(start.shape)
    after = region.complete(np.where(added, end, fewer))
    words = f"at most {bound} change{'' if bound == 1 else 's'}"
    return Steps(words, freed, start, end, fewer, after, np.ones(len(start)))


def _one_less(surrogate: Surrogate, region: Region, row: Array) -> Array:
    """Return the row without the change that moves the surrogate's mean least."""
    changed = np.flatnonzero(region.changes(row[None])[0])
    fewer = np.repeat(row[None], len(changed), axis=0)
    fewer[np.arange(len(changed)), changed] = region.query[changed]
    fewer = region.complete(fewer)
    mean = surrogate.predict(np.vstack([row, fewer]))[0]
    return np.asarray(fewer[np.argmin(np.abs(mean[1:] - mean[0]))])


# ── limits of single features ──


def _limits(region: Region, j: int, tops: Array, known: Array) -> Iterator[Steps]:
    """Yield steps of feature `j` beyond either of its ends, or to other levels."""
    axis, feature = region.axes[j], region.schema.features[region.names[j]]
    if not feature.ordered:
        yield from _levels(region, j, tops, known)
        return
    ends = feature.code_range
    amount = _BEYOND * (max(ends[1], region.high[j]) - min(ends[0], region.low[j]))
    amount = max(amount, axis.step)
    for side in (-1, 1):
        limit = float(region.high[j] if side > 0 else region.low[j])
        if feature.levelled and limit == ends[side > 0]:
            continue  # there are no more levels
        wider = _with_axis(region, j, _wider(axis, side, limit, amount))
        yield _beyond(region, wider, j, side, tops, amount)


def _beyond(region: Region, wider: Region, j: int, side: int, tops: Array, amount: float) -> Steps:
    """Return steps of feature `j` beyond its end, and steps of that length up to it."""
    limit = float(region.high[j] if side > 0 else region.low[j])
    at_limit = region.complete(_with(tops, j, limit))
    start = np.tile(at_limit, (len(_PARTS), 1))
    way = np.repeat(_PARTS, len(tops)) * side * amount
    end = wider.snap(_with(start, j, limit + way))
    length = np.abs(end[:, j] - limit)
    inside = np.minimum(length, region.high[j] - region.low[j])
    before = region.complete(_with(start, j, limit - side * inside))
    times = length / np.where(inside > 0, inside, 1.0)
    words, chosen = _end_words(region, j, side, limit)
    return Steps(words, wider, start, end, before, start, times, chosen)


def _levels(region: Region, j: int, tops: Array, known: Array) -> Iterator[Steps]:
    """Yield steps to levels of feature `j` that the region lacks, where others have tried them."""
    axis = region.axes[j]
    first, last = region.schema.features[region.names[j]].code_range
    every = np.arange(first, last + 1.0, axis.step or 1.0)
    assert axis.choices is not None  # levels and cyclic integers are always listed
    other = np.intersect1d(np.setdiff1d(every, axis.choices), known[:, j])
    if len(other):
        wider = replace(axis, choices=every, low=first, high=last)
        yield _to_codes(_levels_words(region, j), _with_axis(region, j, wider), j, tops, other)


def _fixed(surrogate: Surrogate, region: Region, tops: Array, known: Array) -> Iterator[Steps]:
    """Yield steps of fixed features, where others have moved them."""
    seen = np.concatenate(
        [
            surrogate.coordinates.linear,
            surrogate.coordinates.cyclic,
            surrogate.coordinates.categorical,
        ]
    )
    fixed = np.setdiff1d(seen, region.free)
    for j in fixed[~region.recomputed[fixed]].tolist():
        codes = np.unique(known[:, j])
        codes = codes[np.linspace(0, len(codes) - 1, min(_CODES, len(codes))).astype(np.intp)]
        axis = replace(region.axes[j], movable=True, choices=np.union1d(codes, tops[0, j]))
        yield _to_codes(
            f"{region.names[j]!r} being fixed", _with_axis(region, j, axis), j, tops, codes
        )


def _to_codes(words: str, region: Region, j: int, tops: Array, codes: Array) -> Steps:
    """Return steps to codes of feature `j` that no step inside resembles."""
    end = region.complete(np.vstack([_with(tops, j, code) for code in codes[:_FEATURES]]))
    start = np.tile(tops, (len(end) // len(tops), 1))
    return Steps(words, region, start, end, start, start, np.zeros(len(end)))


def _wider(axis: Axis, side: int, end: float, amount: float) -> Axis:
    """Return the axis with one end moved out."""
    low, high = min(axis.low, axis.query), max(axis.high, axis.query)
    low, high = (low, end + amount) if side > 0 else (end - amount, high)
    choices = axis.choices
    if choices is not None:
        step = axis.step if axis.step > 0 else amount
        beyond = end + side * step * np.arange(1, max(1, int(amount // step)) + 1)
        choices = np.union1d(choices, beyond)
        low, high = float(choices[0]), float(choices[-1])
    return replace(axis, low=low, high=high, choices=choices)


def _with_axis(region: Region, j: int, axis: Axis) -> Region:
    axes = region.axes
    return replace(region, axes=(*axes[:j], axis, *axes[j + 1 :]))


# ── words ──


def _end_words(region: Region, j: int, side: int, end: float) -> tuple[str, bool]:
    """Return a limit in words, and whether anybody set it: nobody set the end of a feature."""
    name = region.names[j]
    feature = region.schema.features[name]
    if feature.levelled:
        return _levels_words(region, j), True
    [value] = feature.say(end)
    if end != feature.code_range[side > 0]:
        return f"limit on {name!r} ({'at most' if side > 0 else 'at least'} {value})", True
    data = region.data[:, j]
    of_data = len(data) and end == (np.nanmax(data) if side > 0 else np.nanmin(data))
    whose = "the data's" if of_data else "the"
    return f"{whose} {'upper' if side > 0 else 'lower'} end of {name!r} ({value})", False


def _levels_words(region: Region, j: int) -> str:
    feature = region.schema.features[region.names[j]]
    choices = region.choices[j]
    codes = [] if choices is None else choices.tolist()
    more = ", …" if len(codes) > 5 else ""
    return f"limit on {region.names[j]!r} (only {', '.join(feature.say(*codes[:5]))}{more})"
