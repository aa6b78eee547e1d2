"""What keeps the target away: limits and rules that, if relaxed, would bring it nearer.

Each limit is relaxed a little, each rule is left out, one change more is allowed; the surrogate
says how much nearer the target comes. Nothing here asks the model.

A search never leaves its region, so that the surrogate has seen nothing beyond a limit, and far
from all it has seen its mean goes back to the average: every limit would look harmless. A step out
of the region is therefore expected to bring about what the same step brings inside, as far as
the surrogate does not know better: up to a limit for a step beyond it, in place of another change
for one change more, the step before for a step straight on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.propose import propose
from bayescfx.propose.free import FreeFeatures
from bayescfx.search.objectives import SurrogateFunction, nearness
from bayescfx.search.question import Question, misses
from bayescfx.space.axis import Axis
from bayescfx.space.region import Region
from bayescfx.surrogate.fit import Surrogate

SAMPLES = 256  # joint samples that say how sure a gain is
BEYOND = 0.2  # how far a limit is relaxed, as a share of the feature's range
FEATURES = 48  # the most features, or levels of one, that are looked at


def binding(surrogate: Surrogate, question: Question, rng: np.random.Generator) -> tuple[str, ...]:
    """Return at most three limits and rules that keep the target away, the most binding first."""
    accepted, region = question.surrogate_acceptance, question.region
    if not accepted or not len(region.free):
        return ()
    near = nearness(surrogate, accepted)
    starts = question.X[np.argsort(-near.value(question.X), kind="stable")]
    nearest = propose(near, region, rng, starts, k=4, effort="brief")
    base = float(misses(accepted, surrogate.predict(nearest.points)[0]).min())
    if base <= 0.0:
        return ()
    yardstick = min(base, float(np.ptp(question.to_surrogate(question.y))))
    left: dict[bool, dict[str, float]] = {True: {}, False: {}}
    everything, _ = question.lessons()
    for steps in relaxations(near, region, nearest.points, everything, rng):
        found = left[steps.chosen]
        # By how much the target must come nearer; beyond the end of a feature there are no data.
        enough = base - (0.02 if steps.chosen else 0.05) * yardstick
        least = _least_miss(surrogate, question, steps, enough, rng)
        if least < found.get(steps.words, enough):
            found[steps.words] = least
    told = left[True] or left[False]  # what somebody set, or else ends of features
    # What brings little beside the others is not what keeps the target away.
    most = base - min(told.values(), default=base)
    told = {words: least for words, least in told.items() if base - least >= 0.25 * most}
    return tuple(sorted(told, key=lambda words: told[words])[:3])


def _least_miss(
    surrogate: Surrogate, question: Question, steps: Steps, enough: float, rng: np.random.Generator
) -> float:
    """Return the least miss after a step that surely helps; infinite unless below `enough`."""
    if not len(steps.end):
        return np.inf
    region, accepted = question.region, question.surrogate_acceptance
    points, times = (steps.start, steps.end, steps.before, steps.after), steps.times
    mean, std = surrogate.predict(np.vstack(points))
    mean, std = mean.reshape(4, -1), _unheard(std.reshape(4, -1)[1], question)
    miss = misses(accepted, mean[0] + _gains(mean, std, times, np.zeros(len(times)))[0])
    # Rules may be slow functions of the user: only rows that may matter are tested.
    order = np.argsort(miss, kind="stable")
    order = order[miss[order] < enough][:32]
    start, end = steps.start[order], steps.end[order]
    # Steps from an allowed row to one that only the limit forbids.
    order = order[region.contains(start) & ~region.contains(end) & steps.region.contains(end)]
    if not len(order):
        return np.inf
    rows = surrogate.coordinates(np.vstack([X[order] for X in points]))
    paths = surrogate.process.sample(rows, SAMPLES, rng).reshape(SAMPLES, 4, -1)
    outside, inside = paths[:, 1] - paths[:, 0], times[order] * (paths[:, 3] - paths[:, 2])
    gain, trust = _gains(mean[:, order], std[order], times[order], inside.std(axis=0))
    sure = np.abs(gain) > ((1.0 - trust) * outside + trust * inside).std(axis=0)
    return float(misses(accepted, mean[0, order] + gain)[sure].min(initial=np.inf))


def _unheard(std: Array, question: Question) -> Array:
    """Return deviations at rows, larger where the surrogate has heard of no row nearby.

    As far as outputs vary it has only gone back to their average, which is no witness.
    """
    spread = max(float(np.std(question.to_surrogate(question.y))), np.finfo(float).tiny)
    heard = 1.0 - (np.minimum(std, spread) / spread) ** 2
    return np.asarray(std / np.sqrt(np.maximum(heard, 1e-9)))


def _gains(mean: Array, std: Array, times: Array, doubt: Array) -> tuple[Array, Array]:
    """Return what steps bring ``(n,)``, and how much of this is known from inside only."""
    # Two witnesses, weighted by their precision: the surrogate at the end of the step, with
    # deviation `std`, and the same step inside, with `doubt`, from which it may differ by half.
    alike = times * (mean[3] - mean[2])
    own = np.hypot(doubt, 0.5 * alike)
    size = np.maximum(np.maximum(std, own), np.finfo(float).tiny)  # squares of outputs overflow
    outside, inside = (std / size) ** 2, (own / size) ** 2
    known = (times > 0) & (outside > 0.0)
    trust = np.divide(outside, outside + inside, out=np.zeros(len(times)), where=known)
    return (1.0 - trust) * (mean[1] - mean[0]) + trust * alike, trust


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps out of a region that one limit forbids, and the same steps inside."""

    words: str  # the limit
    region: Region  # the region without it
    start: Array  # (n, d) from rows of the region ...
    end: Array  # (n, d) ... to rows that are allowed, if at all, in the relaxed one only
    before: Array  # (n, d) the same steps inside ...
    after: Array  # (n, d) ... as far as there is room
    times: Array  # (n,) how much longer the steps out are; 0 where there is nothing like them
    chosen: bool = True  # whether somebody set the limit; the end of a feature nobody did


def relaxations(
    near: SurrogateFunction, region: Region, tops: Array, known: Array, rng: np.random.Generator
) -> Iterator[Steps]:
    """Yield steps out of a region from its `tops` ``(n, d)``; `known` is everything evaluated."""
    slope = np.abs(near.surrogate.predict_gradient(tops)[2]) * (region.high - region.low)
    strongest = np.argsort(-slope.max(axis=0)[region.free], kind="stable")
    strongest = region.free[strongest[:FEATURES]]
    for j in strongest.tolist():
        yield from _limits(region, j, _with_room(region, tops, j), known)
    yield from _fixed(near.surrogate, region, tops, known)
    features, codes = FreeFeatures.of(region).single_changes(rng)
    looked_at = np.isin(features, strongest)
    start, end = _steps(region, tops, features[looked_at], codes[looked_at, None])
    bound = region.max_changes
    if bound is not None and bound < len(region.free):
        yield _one_more(near.surrogate, region, bound, start, end)
    limits = ((rule.words.limit, rule) for rule in region.rules)
    without = [(words, region.without(rule)) for words, rule in limits if words]
    if without:
        # Short steps too, either way, of the features that have an order.
        features = np.repeat(strongest[~(region.categorical | region.cyclic)[strongest]], 4)
        shares = np.resize((-0.2, -0.1, 0.1, 0.2), len(features))
        away = shares * (region.high - region.low)[features]
        short = _steps(region, tops, features, tops[:, features].T + away[:, None])
        start, end = np.vstack([start, short[0]]), np.vstack([end, short[1]])
    for words, freed in without:
        # And straight to where the target is nearest without the rule.
        best = propose(near, freed, rng, tops, k=4, effort="glance").points
        closest = [int(np.argmin(region.distance(region.query + x - tops))) for x in best]
        first, last = np.vstack([start, tops[closest]]), np.vstack([freed.complete(end), best])
        yield _straight_on(words, freed, first, last)


def _with_room(region: Region, tops: Array, j: int) -> Array:
    """Return rows; where all changes are used up, with one less, so that feature `j` may move."""
    changed = region.changes(tops)
    full = changed.sum(axis=1) == region.max_changes  # never without a bound
    at, other = np.nonzero(changed & (full & ~changed[:, j])[:, None])
    fewer = tops[at]
    fewer[np.arange(len(at)), other] = region.query[other]
    return np.unique(np.vstack([tops, region.complete(fewer)]), axis=0)


def _with(X: Array, features: Indices, codes: Array) -> Array:
    """Return the rows ``(n, d)`` for each of `t` changes of a feature to codes ``(t, 1 or n)``."""
    rows = np.tile(X, (len(features), 1)).reshape(len(features), *X.shape)
    rows[np.arange(len(features)), :, features] = codes
    return rows.reshape(-1, X.shape[1])


def _steps(region: Region, X: Array, features: Indices, codes: Array) -> tuple[Array, Array]:
    """Return rows and what changes make of them, where that is something else within the limits."""
    start, end = np.tile(X, (len(features), 1)), region.snap(_with(X, features, codes))
    other = ((start != end) & ~np.isnan(end)).any(axis=1)
    return start[other], end[other]


def _straight_on(words: str, region: Region, start: Array, end: Array) -> Steps:
    """Return steps that follow, straight on, a step within the limits of all features."""
    step = np.where(region.categorical | region.cyclic, 0.0, np.nan_to_num(end - start))
    back = np.where(step > 0, start - region.low, region.high - start)
    room = np.where(step != 0, back / np.where(step != 0, np.abs(step), 1.0), 1.0).min(axis=1)
    share = np.clip(room, 0.0, 1.0)
    before = region.complete(start - share[:, None] * step)
    times = np.where(share > 0, 1.0 / np.maximum(share, BEYOND), 0.0)
    return Steps(words, region, start, end, before, start, times)


def _one_more(surrogate: Surrogate, region: Region, bound: int, start: Array, end: Array) -> Steps:
    """Return steps to one change more, and the same change in place of the one least missed."""
    freed = replace(region, max_changes=bound + 1)
    added = freed.changes(end) & ~freed.changes(start)
    fresh = (added.sum(axis=1) == 1) & (freed.changes(end).sum(axis=1) == bound + 1)
    start, end, added = start[fresh], end[fresh], added[fresh]
    # Without the change that moves the surrogate's mean least; each row has `bound` of them.
    at, j = np.nonzero(region.changes(start))
    fewer = start[at]
    fewer[np.arange(len(at)), j] = region.query[j]
    fewer = region.complete(fewer)
    mean = surrogate.predict(np.vstack([start, fewer]))[0]
    loss = np.abs(mean[len(start) :] - mean[at]).reshape(len(start), bound)
    fewer = fewer.reshape(len(start), bound, fewer.shape[1])
    fewer = fewer[np.arange(len(start)), loss.argmin(axis=1)]
    after = region.complete(np.where(added, end, fewer))
    words = f"at most {bound} change{'' if bound == 1 else 's'}"
    return Steps(words, freed, start, end, fewer, after, np.ones(len(start)))


def _limits(region: Region, j: int, tops: Array, known: Array) -> Iterator[Steps]:
    """Yield steps of feature `j` beyond either of its ends, or to levels that others have tried."""
    axis, feature = region.axes[j], region.schema.features[region.names[j]]
    first, last = feature.code_range
    if not feature.ordered:
        every = np.arange(first, last + 1.0, region.step[j] or 1.0)
        assert axis.choices is not None  # levels and cyclic integers are always listed
        other = np.intersect1d(np.setdiff1d(every, axis.choices), known[:, j])
        if len(other):
            wider = replace(axis, choices=every, low=first, high=last)
            yield _to_codes(_levels_words(region, j), _with_axis(region, j, wider), j, tops, other)
        return
    amount = max(BEYOND * (max(last, region.high[j]) - min(first, region.low[j])), region.step[j])
    for side, limit, end in ((-1, float(region.low[j]), first), (1, float(region.high[j]), last)):
        # Beyond the last level there are no more; where data end at 0, less is nothing real.
        none = limit == 0 and side < 0 and feature.numeric and _of_data(region, j, side, limit)
        if not ((feature.levelled or none) and limit == end):
            wider = _wider(axis, side, limit, amount)
            yield _beyond(region, _with_axis(region, j, wider), j, side, tops, limit, amount)


def _beyond(
    region: Region, wider: Region, j: int, side: int, tops: Array, limit: float, amount: float
) -> Steps:
    """Return steps of feature `j` beyond its end, and steps of that length up to it."""
    start, end = np.tile(tops, (2, 1)), np.tile(tops, (2, 1))  # half of the way, and all of it
    start[:, j], end[:, j] = limit, limit + np.repeat((0.5, 1.0), len(tops)) * side * amount
    start, end, before = region.complete(start), wider.snap(end), start.copy()
    length = np.abs(end[:, j] - limit)
    inside = np.minimum(length, region.high[j] - region.low[j])
    before[:, j] = limit - side * inside
    times = length / np.where(inside > 0, inside, 1.0)
    words, chosen = _end_words(region, j, side, limit)
    return Steps(words, wider, start, end, region.complete(before), start, times, chosen)


def _fixed(surrogate: Surrogate, region: Region, tops: Array, known: Array) -> Iterator[Steps]:
    """Yield steps of fixed features, where others have moved them."""
    seen = surrogate.coordinates
    fixed = np.setdiff1d(np.concatenate([seen.linear, seen.cyclic, seen.categorical]), region.free)
    for j in fixed[~region.recomputed[fixed]].tolist():
        codes = np.unique(known[:, j])
        codes = codes[np.linspace(0, len(codes) - 1, min(5, len(codes))).astype(np.intp)]
        axis = replace(region.axes[j], choices=np.union1d(codes, tops[0, j]))
        words, rows = f"{region.names[j]!r} being fixed", _with_room(region, tops, j)
        yield _to_codes(words, _with_axis(region, j, axis), j, rows, codes)


def _to_codes(words: str, region: Region, j: int, tops: Array, codes: Array) -> Steps:
    """Return steps to codes of feature `j` that no step inside resembles."""
    codes = codes[:FEATURES, None]
    end = region.complete(_with(tops, np.full(len(codes), j), codes))
    start = np.tile(tops, (len(codes), 1))
    return Steps(words, region, start, end, start, start, np.zeros(len(end)))


def _wider(axis: Axis, side: int, end: float, amount: float) -> Axis:
    """Return the axis with one end moved out."""
    low, high = min(axis.low, axis.query), max(axis.high, axis.query)
    low, high = (low, end + amount) if side > 0 else (end - amount, high)
    choices = axis.choices
    if choices is not None:
        step = axis.feature.code_step or amount
        beyond = end + side * step * np.arange(1, max(1, int(amount // step)) + 1)
        choices = np.union1d(choices, beyond)
        low, high = float(choices[0]), float(choices[-1])
    return replace(axis, low=low, high=high, choices=choices)


def _with_axis(region: Region, j: int, axis: Axis) -> Region:
    axes = region.axes
    return replace(region, axes=(*axes[:j], axis, *axes[j + 1 :]))


def _end_words(region: Region, j: int, side: int, end: float) -> tuple[str, bool]:
    """Return a limit in words, and whether anybody set it: nobody set the end of a feature."""
    name = region.names[j]
    feature = region.schema.features[name]
    if feature.levelled:
        return _levels_words(region, j), True
    [value] = feature.say(end)
    if end != feature.code_range[side > 0]:
        return f"limit on {name!r} ({'at most' if side > 0 else 'at least'} {value})", True
    if _of_data(region, j, side, end):
        return (
            f"the data's own range of {name!r} ({'up to' if side > 0 else 'from'} {value})",
            False,
        )
    return f"the {'upper' if side > 0 else 'lower'} end of {name!r} ({value})", False


def _of_data(region: Region, j: int, side: int, end: float) -> bool:
    """Return whether the data of a feature end there."""
    data = region.data[:, j]
    return len(data) > 0 and bool(end == (np.nanmax(data) if side > 0 else np.nanmin(data)))


def _levels_words(region: Region, j: int) -> str:
    feature = region.schema.features[region.names[j]]
    choices = region.choices[j]
    codes = [] if choices is None else choices.tolist()
    more = ", …" if len(codes) > 5 else ""
    return f"limit on {region.names[j]!r} (only {', '.join(feature.say(*codes[:5]))}{more})"
