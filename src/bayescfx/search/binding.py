"""Binding constraints: limits and rules that, if relaxed, would bring the target nearer.

Each limit is relaxed a little, each rule is left out, one more change is allowed; the surrogate
predicts how much nearer the target comes. The model is not called: what is named here is a guess.

A search never leaves its region, so the surrogate has seen nothing beyond a limit, and far from
all scored rows its mean returns to the average: every limit would look harmless. A step out of the
region is therefore expected to have the effect of the same step inside, as far as the surrogate
does not know better: the step up to a limit stands for a step beyond it, the exchange of a change
for one more change, the step before for a step straight on.
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
from bayescfx.space.constraint import changes_words
from bayescfx.space.region import Region
from bayescfx.surrogate.fit import Surrogate


@dataclass(frozen=True)
class BindingTuning:
    """Tuned numbers of the search for binding constraints.

    Evidence: `python -m benchmarks.tuning --only binding` (2026-11-18). With the defaults, 15 of 16
    questions name the constraint that binds first, or none if none does; other seeds change that by
    1.3 questions. Half and double change nothing unless stated. *Limit*: bounds work or text.
    """

    #: Rows nearest to the target from which steps start; half and double -1 question.
    n_tops: int = 4
    #: Joint samples that show how sure a gain is.
    n_samples: int = 256
    #: How far a limit is relaxed, as a share of the feature's range; half +1, double -3 questions.
    relaxation: float = 0.2
    #: Shares of a feature's range that short steps take when a rule is left out.
    short_steps: tuple[float, ...] = (-0.2, -0.1, 0.1, 0.2)
    #: The least gain, as a share of the miss, of a constraint of the user ...
    min_gain: float = 0.02
    #: ... and of the end of a feature, beyond which there are no data; half -3, double +1.
    min_gain_beyond_data: float = 0.05
    #: Constraints that gain less than this share of the best gain are not named
    #: (`tests/search/test_binding.py`: a bound on changes that gains a tenth).
    min_share_of_best: float = 0.25
    #: The share by which a step outside may differ from the same step inside; half -2, 0 -3.
    difference_outside: float = 0.5
    #: Limit: the most features, or levels of one feature, that are examined.
    max_features: int = 48
    #: Limit: the most codes of a fixed feature that are tried.
    max_fixed_codes: int = 5
    #: Limit: the most rows of one relaxation that are checked against the rules.
    max_checked: int = 32
    #: Limit: the most constraints that are named, and levels in the name of one.
    max_named: int = 3
    max_listed: int = 5
    #: Numerical: the least share of variance explained, below which deviations are cut off.
    min_explained: float = 1e-9


TUNING = BindingTuning()

#: Words for either end of a feature, by its side.
_END_WORDS = {
    -1: {"limit": "at least", "data": "from", "end": "lower"},
    1: {"limit": "at most", "data": "up to", "end": "upper"},
}


def binding(surrogate: Surrogate, question: Question, rng: np.random.Generator) -> tuple[str, ...]:
    """Return at most three binding constraints in words, the most binding first."""
    accepted = question.surrogate_acceptance
    region = question.region
    if not accepted or not len(region.free):
        return ()
    near = nearness(surrogate, accepted)
    starts = question.X[np.argsort(-near.value(question.X), kind="stable")]
    tops = propose(near, region, rng, starts, k=TUNING.n_tops, effort="brief").points
    base = float(misses(accepted, surrogate.predict(tops)[0]).min())
    if base <= 0.0:
        return ()
    of_user, of_data = _misses_without(surrogate, question, near, tops, base, rng)
    return _most_binding(of_user or of_data, base)


def _misses_without(
    surrogate: Surrogate,
    question: Question,
    near: SurrogateFunction,
    tops: Array,
    base: float,
    rng: np.random.Generator,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the least miss without each constraint: those of the user, and those of the data.

    Only where it is clearly less than `base`, the miss with all of them.
    """
    yardstick = min(base, float(np.ptp(question.to_surrogate(question.y))))
    of_user: dict[str, float] = {}
    of_data: dict[str, float] = {}
    scored, _ = question.lessons()
    for steps in relaxations(near, question.region, tops, scored, rng):
        least_misses = of_user if steps.is_chosen else of_data
        min_gain = TUNING.min_gain if steps.is_chosen else TUNING.min_gain_beyond_data
        enough = base - min_gain * yardstick
        least = _least_miss(surrogate, question, steps, enough, rng)
        if least < least_misses.get(steps.words, enough):
            least_misses[steps.words] = least
    return of_user, of_data


def _most_binding(least_misses: dict[str, float], base: float) -> tuple[str, ...]:
    """Return the constraints with the least misses, without those that gain much less."""
    best_gain = base - min(least_misses.values(), default=base)
    min_gain = TUNING.min_share_of_best * best_gain
    clear = [words for words, least in least_misses.items() if base - least >= min_gain]
    return tuple(sorted(clear, key=lambda words: least_misses[words])[: TUNING.max_named])


def _least_miss(
    surrogate: Surrogate, question: Question, steps: Steps, enough: float, rng: np.random.Generator
) -> float:
    """Return the least miss after a step that surely helps; infinite unless below `enough`."""
    if not len(steps.end):
        return np.inf
    accepted = question.surrogate_acceptance
    points = (steps.start, steps.end, steps.before, steps.after)
    mean, std = surrogate.predict(np.vstack(points))
    mean = mean.reshape(len(points), -1)
    std_end = _cautious_deviation(std.reshape(len(points), -1)[1], question)
    gain, _ = _gains(mean, std_end, steps.times, np.zeros(len(steps.times)))
    miss = misses(accepted, mean[0] + gain)
    # Rules may be slow functions of the user: only rows that may matter are tested.
    order = np.argsort(miss, kind="stable")
    order = order[miss[order] < enough][: TUNING.max_checked]
    order = order[_is_forbidden_by_limit(question.region, steps, order)]
    if not len(order):
        return np.inf
    Z = surrogate.coordinates(np.vstack([X[order] for X in points]))
    paths = surrogate.posterior.sample(Z, TUNING.n_samples, rng)
    paths = paths.reshape(TUNING.n_samples, len(points), -1)
    outside = paths[:, 1] - paths[:, 0]
    inside = steps.times[order] * (paths[:, 3] - paths[:, 2])
    gain, trust = _gains(mean[:, order], std_end[order], steps.times[order], inside.std(axis=0))
    is_sure = np.abs(gain) > ((1.0 - trust) * outside + trust * inside).std(axis=0)
    return float(misses(accepted, mean[0, order] + gain)[is_sure].min(initial=np.inf))


def _is_forbidden_by_limit(region: Region, steps: Steps, rows: Indices) -> Array:
    """Return which steps lead from an allowed row to one that only the limit forbids."""
    start = steps.start[rows]
    end = steps.end[rows]
    return np.asarray(region.contains(start) & ~region.contains(end) & steps.region.contains(end))


def _cautious_deviation(std: Array, question: Question) -> Array:
    """Return deviations at rows ``(n,)``, larger where no scored row is near.

    Where a deviation equals the spread of all outputs, the mean has only returned to their
    average, which is no evidence.
    """
    spread = max(float(np.std(question.to_surrogate(question.y))), np.finfo(float).tiny)
    explained = 1.0 - (np.minimum(std, spread) / spread) ** 2
    return np.asarray(std / np.sqrt(np.maximum(explained, TUNING.min_explained)))


def _gains(mean: Array, std: Array, times: Array, inside_std: Array) -> tuple[Array, Array]:
    """Return the gains ``(n,)`` of steps, and the weight of the same steps inside.

    Two estimates are weighted by their precision: the surrogate at the end of the step, with
    deviation `std`, and the same step inside, with `inside_std`. The means ``(4, n)`` are those at
    start, end, before and after.
    """
    alike = times * (mean[3] - mean[2])
    own_std = np.hypot(inside_std, TUNING.difference_outside * alike)
    # Relative to the larger one, since squares of outputs overflow.
    size = np.maximum(np.maximum(std, own_std), np.finfo(float).tiny)
    outside = (std / size) ** 2
    inside = (own_std / size) ** 2
    is_known = (times > 0) & (outside > 0.0)
    trust = np.divide(outside, outside + inside, out=np.zeros(len(times)), where=is_known)
    return (1.0 - trust) * (mean[1] - mean[0]) + trust * alike, trust


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps out of a region that one constraint forbids, and the same steps inside."""

    words: str  # the constraint
    region: Region  # the region without it
    start: Array  # (n, d) from rows of the region ...
    end: Array  # (n, d) ... to rows that are allowed, if at all, in the relaxed one only
    before: Array  # (n, d) the same steps inside ...
    after: Array  # (n, d) ... as far as there is room
    times: Array  # (n,) how much longer the steps out are; 0 where no step inside is like them
    is_chosen: bool = True  # whether the user set the constraint; the end of a feature is not set


def relaxations(
    near: SurrogateFunction, region: Region, tops: Array, scored: Array, rng: np.random.Generator
) -> Iterator[Steps]:
    """Yield steps out of a region from its `tops` ``(n, d)``; `scored` are all scored rows."""
    slope = np.abs(near.surrogate.predict_gradient(tops)[2]) * (region.high - region.low)
    strongest = np.argsort(-slope.max(axis=0)[region.free], kind="stable")
    strongest = region.free[strongest[: TUNING.max_features]]
    for j in strongest.tolist():
        yield from _beyond_limits(region, j, _with_room(region, tops, j), scored)
    yield from _unfixed(near.surrogate, region, tops, scored)
    features, codes = FreeFeatures.of(region).single_changes(rng)
    is_examined = np.isin(features, strongest)
    start, end = _changed(region, tops, features[is_examined], codes[is_examined, None])
    bound = region.max_changes
    if bound is not None and bound < len(region.free):
        yield _one_more(near.surrogate, region, bound, start, end)
    limits = ((rule.words.limit, rule) for rule in region.rules)
    relaxed = [(words, region.without(rule)) for words, rule in limits if words]
    if relaxed:
        short_start, short_end = _short_steps(region, tops, strongest)
        start = np.vstack([start, short_start])
        end = np.vstack([end, short_end])
        yield from _without_rules(near, region, relaxed, tops, start, end, rng)


def _without_rules(
    near: SurrogateFunction,
    region: Region,
    relaxed: list[tuple[str, Region]],
    tops: Array,
    start: Array,
    end: Array,
    rng: np.random.Generator,
) -> Iterator[Steps]:
    """Yield steps into each of the `relaxed` regions, which lack one rule, given in words."""
    for words, freed in relaxed:
        # And straight to the rows nearest to the target without the rule.
        best = propose(near, freed, rng, tops, k=TUNING.n_tops, effort="glance").points
        closest = [int(np.argmin(region.distance(region.query + x - tops))) for x in best]
        first = np.vstack([start, tops[closest]])
        last = np.vstack([freed.complete(end), best])
        yield _straight_on(words, freed, first, last)


def _short_steps(region: Region, tops: Array, features: Indices) -> tuple[Array, Array]:
    """Return short steps, either way, of those features that have an order."""
    ordered = features[~(region.categorical | region.cyclic)[features]]
    repeated = np.repeat(ordered, len(TUNING.short_steps))
    shares = np.resize(TUNING.short_steps, len(repeated))
    away = shares * (region.high - region.low)[repeated]
    return _changed(region, tops, repeated, tops[:, repeated].T + away[:, None])


def _with_room(region: Region, tops: Array, j: int) -> Array:
    """Return rows; where all changes are used up, with one less, so that feature `j` may move."""
    changed = region.changes(tops)
    is_full = changed.sum(axis=1) == region.max_changes  # never without a bound
    row, other = np.nonzero(changed & (is_full & ~changed[:, j])[:, None])
    fewer = tops[row]
    fewer[np.arange(len(row)), other] = region.query[other]
    return np.unique(np.vstack([tops, region.complete(fewer)]), axis=0)


def _with(X: Array, features: Indices, codes: Array) -> Array:
    """Return the rows ``(n, d)`` for each of `t` changes of a feature to codes ``(t, 1 or n)``."""
    rows = np.tile(X, (len(features), 1)).reshape(len(features), *X.shape)
    rows[np.arange(len(features)), :, features] = codes
    return rows.reshape(-1, X.shape[1])


def _changed(region: Region, X: Array, features: Indices, codes: Array) -> tuple[Array, Array]:
    """Return rows before and after changes, where these differ within the limits."""
    start = np.tile(X, (len(features), 1))
    end = region.snap(_with(X, features, codes))
    differs = ((start != end) & ~np.isnan(end)).any(axis=1)
    return start[differs], end[differs]


def _straight_on(words: str, region: Region, start: Array, end: Array) -> Steps:
    """Return steps that follow, straight on, a step within the limits of all features."""
    step = np.where(region.categorical | region.cyclic, 0.0, np.nan_to_num(end - start))
    back = np.where(step > 0, start - region.low, region.high - start)
    room = np.where(step != 0, back / np.where(step != 0, np.abs(step), 1.0), 1.0).min(axis=1)
    share = np.clip(room, 0.0, 1.0)
    before = region.complete(start - share[:, None] * step)
    times = np.where(share > 0, 1.0 / np.maximum(share, TUNING.relaxation), 0.0)
    return Steps(words, region, start, end, before, start, times)


def _one_more(surrogate: Surrogate, region: Region, bound: int, start: Array, end: Array) -> Steps:
    """Return steps to one more change, and the same change in place of the least useful one."""
    freed = replace(region, max_changes=bound + 1)
    added = freed.changes(end) & ~freed.changes(start)
    is_one_more = added.sum(axis=1) == 1
    is_one_more &= freed.changes(end).sum(axis=1) == bound + 1
    start = start[is_one_more]
    end = end[is_one_more]
    added = added[is_one_more]
    # Without the change that moves the surrogate's mean least; each row has `bound` of them.
    row, j = np.nonzero(region.changes(start))
    fewer = start[row]
    fewer[np.arange(len(row)), j] = region.query[j]
    fewer = region.complete(fewer)
    mean = surrogate.predict(np.vstack([start, fewer]))[0]
    loss = np.abs(mean[len(start) :] - mean[row]).reshape(len(start), bound)
    fewer = fewer.reshape(len(start), bound, fewer.shape[1])
    fewer = fewer[np.arange(len(start)), loss.argmin(axis=1)]
    after = region.complete(np.where(added, end, fewer))
    return Steps(changes_words(bound), freed, start, end, fewer, after, np.ones(len(start)))


def _beyond_limits(region: Region, j: int, tops: Array, scored: Array) -> Iterator[Steps]:
    """Yield steps of feature `j` beyond either end, or to levels that were scored elsewhere."""
    axis = region.axes[j]
    feature = region.schema.features[region.names[j]]
    first, last = feature.code_range
    if not feature.ordered:
        yield from _to_levels(region, j, tops, scored)
        return
    span = max(last, region.high[j]) - min(first, region.low[j])
    amount = max(TUNING.relaxation * span, region.step[j])
    for side, limit, end in ((-1, float(region.low[j]), first), (1, float(region.high[j]), last)):
        if limit == end and _is_final(region, j, side, limit):
            continue
        wider = region.with_axis(j, _wider(axis, side, limit, amount))
        yield _beyond(region, wider, j, side, tops, limit, amount)


def _is_final(region: Region, j: int, side: int, end: float) -> bool:
    """Return whether there is nothing beyond an end of feature `j`.

    That is so for the last level, and at 0 where data end there.
    """
    feature = region.schema.features[region.names[j]]
    if feature.has_levels:
        return True
    is_lowest_zero = end == 0 and side < 0 and feature.numeric
    return is_lowest_zero and _is_end_of_data(region, j, side, end)


def _to_levels(region: Region, j: int, tops: Array, scored: Array) -> Iterator[Steps]:
    """Yield steps of feature `j` to forbidden levels that were scored elsewhere."""
    axis = region.axes[j]
    first, last = region.schema.features[region.names[j]].code_range
    every = np.arange(first, last + 1.0, region.step[j] or 1.0)
    assert axis.choices is not None  # levels and cyclic integers are always listed
    others = np.intersect1d(np.setdiff1d(every, axis.choices), scored[:, j])
    if len(others):
        wider = replace(axis, choices=every, low=first, high=last)
        yield _to_codes(_levels_words(region, j), region.with_axis(j, wider), j, tops, others)


def _beyond(
    region: Region, wider: Region, j: int, side: int, tops: Array, limit: float, amount: float
) -> Steps:
    """Return steps of feature `j` beyond its end, and steps of that length up to it."""
    start = tops.copy()
    end = tops.copy()
    start[:, j] = limit
    end[:, j] = limit + side * amount
    before = start.copy()
    start = region.complete(start)
    end = wider.snap(end)
    length = np.abs(end[:, j] - limit)
    inside = np.minimum(length, region.high[j] - region.low[j])
    before[:, j] = limit - side * inside
    times = length / np.where(inside > 0, inside, 1.0)
    words, is_chosen = _end_words(region, j, side, limit)
    return Steps(words, wider, start, end, region.complete(before), start, times, is_chosen)


def _unfixed(surrogate: Surrogate, region: Region, tops: Array, scored: Array) -> Iterator[Steps]:
    """Yield steps of fixed features to codes that were scored elsewhere."""
    seen = surrogate.coordinates
    fixed = np.setdiff1d(np.concatenate([seen.linear, seen.cyclic, seen.categorical]), region.free)
    for j in fixed[~region.recomputed[fixed]].tolist():
        codes = np.unique(scored[:, j])
        n = min(TUNING.max_fixed_codes, len(codes))
        codes = codes[np.linspace(0, len(codes) - 1, n).astype(np.intp)]
        axis = replace(region.axes[j], choices=np.union1d(codes, tops[0, j]))
        words = f"{region.names[j]!r} being fixed"
        rows = _with_room(region, tops, j)
        yield _to_codes(words, region.with_axis(j, axis), j, rows, codes)


def _to_codes(words: str, region: Region, j: int, tops: Array, codes: Array) -> Steps:
    """Return steps to codes of feature `j` that no step inside resembles."""
    codes = codes[: TUNING.max_features, None]
    end = region.complete(_with(tops, np.full(len(codes), j), codes))
    start = np.tile(tops, (len(codes), 1))
    return Steps(words, region, start, end, start, start, np.zeros(len(end)))


def _wider(axis: Axis, side: int, end: float, amount: float) -> Axis:
    """Return the axis with one end moved out."""
    if axis.choices is not None:
        step = axis.feature.code_step or amount
        beyond = end + side * step * np.arange(1, max(1, int(amount // step)) + 1)
        choices = np.union1d(axis.choices, beyond)
        return replace(axis, low=float(choices[0]), high=float(choices[-1]), choices=choices)
    if side > 0:
        return replace(axis, low=min(axis.low, axis.query), high=end + amount)
    return replace(axis, low=end - amount, high=max(axis.high, axis.query))


def _end_words(region: Region, j: int, side: int, end: float) -> tuple[str, bool]:
    """Return a limit in words, and whether the user set it."""
    name = region.names[j]
    feature = region.schema.features[name]
    if feature.has_levels:
        return _levels_words(region, j), True
    words = _END_WORDS[side]
    [value] = feature.display(end)
    if end != feature.code_range[side > 0]:
        return f"limit on {name!r} ({words['limit']} {value})", True
    if _is_end_of_data(region, j, side, end):
        return f"data range of {name!r} ({words['data']} {value})", False
    return f"the {words['end']} end of {name!r} ({value})", False


def _is_end_of_data(region: Region, j: int, side: int, end: float) -> bool:
    """Return whether the data of a feature end at a code."""
    data = region.data[:, j]
    if not len(data):
        return False
    return bool(end == (np.nanmax(data) if side > 0 else np.nanmin(data)))


def _levels_words(region: Region, j: int) -> str:
    """Return the limit on the levels of a feature in words."""
    feature = region.schema.features[region.names[j]]
    choices = region.choices[j]
    codes = [] if choices is None else choices.tolist()
    listed = ", ".join(feature.display(*codes[: TUNING.max_listed]))
    more = ", …" if len(codes) > TUNING.max_listed else ""
    return f"limit on {region.names[j]!r} (only {listed}{more})"
