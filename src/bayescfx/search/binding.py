"""What keeps the target away: limits and rules that, if relaxed, would bring it nearer.

Each limit is relaxed a little, each rule is left out, one change more is allowed; the surrogate's
mean says how much nearer the target comes. Nothing here asks the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.features import Categorical, Moment, Ordinal, code_range
from bayescfx.potentials.levels import Intervals
from bayescfx.search.belief import Belief
from bayescfx.search.question import Question
from bayescfx.space.axis import Axis
from bayescfx.space.region import Region

_CLOSES = 0.05  # share of the gap that relaxing must close to be worth telling
_TOLD = 3  # how many are told
_BEYOND = 0.2  # how far a limit is relaxed, as a share of the feature's range
_TOPS = 4  # rows around which relaxing is tried
_RANDOM = 128  # rows of the region that may be among them
_ROUNDS = 4  # of moving these nearer to the target, within the limits
_FEATURES = 48  # the most features that are looked at
_CODES = 5  # codes per feature that are tried


@dataclass(frozen=True)
class _Relaxed:
    """A region with one limit less, and rows that might show what this would bring."""

    words: str
    region: Region
    rows: Array


def binding(belief: Belief, question: Question, rng: np.random.Generator) -> tuple[str, ...]:
    """Return the limits and rules that keep the target away, most binding first.

    Parameters
    ----------
    belief : Belief
        The surrogate.
    question : Question
        Whose target was not reached.
    rng : numpy.random.Generator
        Source of rows to start from.

    Returns
    -------
    tuple of str
        At most three, in words, each closing at least a twentieth of the gap that remains.
    """
    accepted = question.problem.surrogate_acceptance
    region = question.region
    if not accepted or not len(region.free):
        return ()
    tops, base = _nearest_rows(belief, question, rng)
    if base <= 0.0:
        return ()
    closed: dict[str, float] = {}
    for relaxed in _relaxations(belief, region, tops, question.account.evaluator.X):
        share = 1.0 - _least_miss(belief, relaxed, accepted, (1.0 - _CLOSES) * base) / base
        if share >= _CLOSES:
            closed[relaxed.words] = max(share, closed.get(relaxed.words, 0.0))
    return tuple(sorted(closed, key=lambda words: -closed[words])[:_TOLD])


def miss(u: Array, accepted: Intervals) -> Array:
    """Return how far values ``(n,)`` are from the nearest accepted one.

    Examples
    --------
    >>> miss(np.array([0.0, 1.5, 4.0]), ((1.0, 2.0), (7.0, 8.0)))
    array([1., 0., 2.])
    """
    gaps = [np.maximum(np.maximum(low - u, u - high), 0.0) for low, high in accepted]
    return np.asarray(np.min(gaps, axis=0))


def _misses(belief: Belief, X: Array, accepted: Intervals) -> Array:
    return miss(belief.predict(X)[0], accepted) if len(X) else np.empty(0)


def _least_miss(belief: Belief, relaxed: _Relaxed, accepted: Intervals, enough: float) -> float:
    """Return the least miss of the relaxed region's rows, infinite unless below `enough`."""
    rows = relaxed.region.snap(relaxed.rows)
    misses = _misses(belief, rows, accepted)
    # Rules may be slow functions of the user: only rows that would matter are tested.
    nearer = misses <= enough
    if not nearer.any():
        return np.inf
    allowed = relaxed.region.contains(rows[nearer])
    return float(misses[nearer][allowed].min(initial=np.inf))


def _nearest_rows(
    belief: Belief, question: Question, rng: np.random.Generator
) -> tuple[Array, float]:
    """Return the rows of the region where the mean is nearest to the target, and how near."""
    region, accepted = question.region, question.problem.surrogate_acceptance
    pool = np.vstack([region.query, question.X, region.sample(_RANDOM, rng)])
    misses = _misses(belief, pool, accepted)
    for _ in range(_ROUNDS):
        top = pool[np.argsort(misses, kind="stable")[:_TOPS]]
        moved = region.project(_variants(belief, region, top))
        pool = np.vstack([pool, moved])
        misses = np.concatenate([misses, _misses(belief, moved, accepted)])
    order = np.argsort(misses, kind="stable")
    return pool[order[:_TOPS]], float(misses[order[0]])


def _variants(belief: Belief, region: Region, X: Array) -> Array:
    """Return the rows with single features, or all along the slope, moved within their limits."""
    slope = belief.predict_gradient(X)[2]
    found = [
        np.where(side * slope > 0, region.high, np.where(slope != 0, region.low, X))
        for side in (1, -1)
    ]
    for j in _strongest(region, slope):
        for code in _spread(region, int(j)):
            found.append(_with(X, int(j), code))
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


def _with(X: Array, j: int, code: float) -> Array:
    moved = X.copy()
    moved[:, j] = code
    return moved


def _relaxations(belief: Belief, region: Region, tops: Array, known: Array) -> Iterator[_Relaxed]:
    """Yield each way to relax the region a little."""
    slope = belief.predict_gradient(tops)[2]
    for j in _strongest(region, slope):
        yield from _limits(region, int(j), tops)
    yield from _fixed(belief, region, tops, known)
    around = _variants(belief, region, tops)
    bound = region.max_changes
    if bound is not None and bound < len(region.free):
        grid = replace(region.grid, max_changes=bound + 1)
        words = f"at most {bound} change{'' if bound == 1 else 's'}"
        yield _Relaxed(words, replace(region, grid=grid), around)
    for words, freed in _without_rules(region):
        yield _Relaxed(words, freed, around)


def _without_rules(region: Region) -> Iterator[tuple[str, Region]]:
    """Yield the region without one of its rules, for each."""
    for i, rule in enumerate(region.rules):
        rest = (*region.rules[:i], *region.rules[i + 1 :])
        yield f"rule '{rule.label}'", replace(region, rules=rest)
    for i, block in enumerate(region.blocks):
        named = " and ".join(repr(region.names[j]) for j in block)
        rest_blocks = (*region.blocks[:i], *region.blocks[i + 1 :])
        yield f"moving {named} together", replace(region, blocks=rest_blocks)
    for i, (j, _) in enumerate(region.bounds):
        rest_bounds = (*region.bounds[:i], *region.bounds[i + 1 :])
        yield f"limit on {region.names[j]!r}", replace(region, bounds=rest_bounds)
    if region.near is not None:
        yield f"rule '{region.near.label}'", replace(region, near=None)


def _limits(region: Region, j: int, tops: Array) -> Iterator[_Relaxed]:
    """Yield the region with feature `j` allowed to go beyond either end, or to other levels."""
    axis, feature = region.grid.axes[j], region.schema.features[region.names[j]]
    if axis.unordered or axis.period or isinstance(feature, Ordinal):
        first, last = code_range(feature)
        every = np.arange(first, last + 1.0, axis.step or 1.0)
        assert axis.choices is not None  # levels and cyclic integers are always listed
        other = np.setdiff1d(every, axis.choices)
        if len(other):
            wider = replace(axis, choices=every, low=first, high=last)
            rows = np.vstack([_with(tops, j, code) for code in other[:_FEATURES]])
            yield _Relaxed(_levels_words(region, j), _with_axis(region, j, wider), rows)
        return
    first, last = code_range(feature)
    amount = _BEYOND * (max(last, region.high[j]) - min(first, region.low[j]))
    amount = max(amount, axis.step)
    for side in (-1, 1):
        end = float(region.high[j] if side > 0 else region.low[j])
        wider = _wider(axis, side, end, amount)
        rows = np.vstack([_with(tops, j, end + side * part * amount) for part in (0.5, 1.0)])
        yield _Relaxed(_end_words(region, j, side, end), _with_axis(region, j, wider), rows)


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
    axes = region.grid.axes
    grid = replace(region.grid, axes=(*axes[:j], axis, *axes[j + 1 :]))
    return replace(region, grid=grid)


def _fixed(belief: Belief, region: Region, tops: Array, known: Array) -> Iterator[_Relaxed]:
    """Yield the region with one fixed feature set free, where the surrogate knows its effect."""
    seen = np.concatenate(
        [belief.coordinates.linear, belief.coordinates.cyclic, belief.coordinates.categorical]
    )
    fixed = np.setdiff1d(seen, region.free)
    for j in fixed[~region.grid.derived[fixed]].tolist():
        codes = np.unique(known[:, j])
        codes = codes[np.linspace(0, len(codes) - 1, min(_CODES, len(codes))).astype(np.intp)]
        axis = replace(region.grid.axes[j], movable=True, choices=np.union1d(codes, tops[0, j]))
        rows = np.vstack([_with(tops, j, code) for code in codes])
        yield _Relaxed(f"{region.names[j]!r} being fixed", _with_axis(region, j, axis), rows)


def _end_words(region: Region, j: int, side: int, end: float) -> str:
    """Return a limit in words; an end of the data is no limit that anybody set."""
    name = region.names[j]
    feature = region.schema.features[name]
    value = str(feature.time(end)) if isinstance(feature, Moment) else f"{end:.6g}"
    if end != code_range(feature)[side > 0]:
        return f"limit on {name!r} ({'at most' if side > 0 else 'at least'} {value})"
    data = region.data[:, j]
    of_data = len(data) and end == (np.nanmax(data) if side > 0 else np.nanmin(data))
    whose = "the data's" if of_data else "the"
    return f"{whose} {'upper' if side > 0 else 'lower'} end of {name!r} ({value})"


def _levels_words(region: Region, j: int) -> str:
    feature = region.schema.features[region.names[j]]
    choices = region.choices[j]
    codes = [] if choices is None else [int(code) for code in choices]
    if isinstance(feature, Categorical | Ordinal):
        shown = [repr(feature.levels[code]) for code in codes]
    else:
        shown = [str(code) for code in codes]
    more = ", …" if len(shown) > 5 else ""
    return f"limit on {region.names[j]!r} (only {', '.join(shown[:5])}{more})"
