"""What keeps the target away: limits and rules that, if relaxed, would bring it nearer.

Each limit is relaxed a little, each rule is left out, one change more is allowed; the surrogate
says how much nearer the target comes. Nothing here asks the model.

A search never leaves its region, so that the surrogate has seen nothing beyond a limit, and far
from all it has seen its mean goes back to the average: every limit would look harmless. A step out
of the region is therefore expected to bring about what the same step brings inside, as far as
the surrogate does not know better.
"""

from __future__ import annotations

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials.levels import Intervals
from bayescfx.search.question import Question
from bayescfx.search.relaxing import Steps, relaxations, variants
from bayescfx.search.surrogate import Surrogate
from bayescfx.space.region import Region
from bayescfx.space.repair import project
from bayescfx.space.sampling import sample

_WORTH = 0.02  # share of the gap, or of the outputs' range, by which the target must come nearer
_END_WORTH = 0.05  # the same for the end of a feature, beyond which there are no data
_SURE = 1.0  # the surrogate's deviations that this must exceed
_TRIED = 32  # steps per limit that are looked at closely
_SAMPLES = 256  # joint samples that say how sure a gain is
_TOLD = 3  # how many limits are told
_TOPS = 4  # rows around which relaxing is tried
_RANDOM = 128  # rows of the region that may be among them
_ROUNDS = 4  # of moving these nearer to the target, within the limits
_OTHERWISE = 0.5  # share by which a step out may differ from the same step inside


def binding(surrogate: Surrogate, question: Question, rng: np.random.Generator) -> tuple[str, ...]:
    """Return the limits and rules that keep the target away.

    Parameters
    ----------
    surrogate : Surrogate
        The surrogate.
    question : Question
        Whose target was not reached.
    rng : numpy.random.Generator
        Source of rows to start from.

    Returns
    -------
    tuple of str
        At most three, in words, the most binding first: what somebody set, or if none of that
        binds, ends of features. Relaxing any of them brings the target nearer, as the surrogate
        sees it.
    """
    accepted = question.surrogate_acceptance
    region = question.region
    if not accepted or not len(region.free):
        return ()
    tops, base = _nearest_rows(surrogate, question, rng)
    if base <= 0.0:
        return ()
    seen = question.to_surrogate(question.y)
    yardstick = min(base, float(np.ptp(seen)))
    left: dict[bool, dict[str, float]] = {True: {}, False: {}}
    for steps in relaxations(surrogate, region, tops, question.account.evaluator.X):
        found = left[steps.chosen]
        enough = base - (_WORTH if steps.chosen else _END_WORTH) * yardstick
        least = _least_miss(surrogate, region, steps, accepted, enough, rng)
        if least < found.get(steps.words, enough):
            found[steps.words] = least
    told = left[True] or left[False]
    return tuple(sorted(told, key=lambda words: told[words])[:_TOLD])


def miss(u: Array, accepted: Intervals) -> Array:
    """Return how far values ``(n,)`` are from the nearest accepted one.

    Examples
    --------
    >>> miss(np.array([0.0, 1.5, 4.0]), ((1.0, 2.0), (7.0, 8.0)))
    array([1., 0., 2.])
    """
    gaps = [np.maximum(np.maximum(low - u, u - high), 0.0) for low, high in accepted]
    return np.asarray(np.min(gaps, axis=0))


def _misses(surrogate: Surrogate, X: Array, accepted: Intervals) -> Array:
    return miss(surrogate.predict(X)[0], accepted) if len(X) else np.empty(0)


def _nearest_rows(
    surrogate: Surrogate, question: Question, rng: np.random.Generator
) -> tuple[Array, float]:
    """Return the rows of the region where the mean is nearest to the target, and how near."""
    region, accepted = question.region, question.surrogate_acceptance
    pool = np.vstack([region.query, question.X, sample(region, _RANDOM, rng)])
    misses = _misses(surrogate, pool, accepted)
    for _ in range(_ROUNDS):
        top = pool[np.argsort(misses, kind="stable")[:_TOPS]]
        moved = project(region, variants(surrogate, region, top))
        pool = np.vstack([pool, moved])
        misses = np.concatenate([misses, _misses(surrogate, moved, accepted)])
    pool, first = np.unique(pool, axis=0, return_index=True)
    misses = misses[first]
    order = np.argsort(misses, kind="stable")
    return pool[order[:_TOPS]], float(misses[order[0]])


def _least_miss(
    surrogate: Surrogate,
    region: Region,
    steps: Steps,
    accepted: Intervals,
    enough: float,
    rng: np.random.Generator,
) -> float:
    """Return the least miss after a step that surely helps; infinite unless below `enough`."""
    if not len(steps.end):
        return np.inf
    start, order = surrogate.predict(steps.start)[0], np.arange(len(steps.end))
    misses = miss(start + _gains(surrogate, steps, order, np.zeros(len(order)))[0], accepted)
    # Rules may be slow functions of the user: only rows that may matter are tested.
    order = np.argsort(misses, kind="stable")
    order = order[misses[order] < enough][:_TRIED]
    order = order[_out(region, steps, order)]
    if not len(order):
        return np.inf
    points = (steps.start, steps.end, steps.before, steps.after)
    rows = surrogate.coordinates(np.vstack([X[order] for X in points]))
    paths = surrogate.process.sample(rows, _SAMPLES, rng).reshape(_SAMPLES, 4, -1)
    outside, inside = paths[:, 1] - paths[:, 0], steps.times[order] * (paths[:, 3] - paths[:, 2])
    gain, trust = _gains(surrogate, steps, order, inside.std(axis=0))
    sure = np.abs(gain) > _SURE * ((1.0 - trust) * outside + trust * inside).std(axis=0)
    return float(miss(start[order] + gain, accepted)[sure].min(initial=np.inf))


def _out(region: Region, steps: Steps, at: Indices) -> Mask:
    """Return which steps lead from an allowed row to one that only the limit forbids."""
    start, end = steps.start[at], steps.end[at]
    return np.asarray(region.contains(start) & ~region.contains(end) & steps.region.contains(end))


def _gains(surrogate: Surrogate, steps: Steps, at: Indices, doubt: Array) -> tuple[Array, Array]:
    """Return what steps bring ``(n,)``, and how much of this is known from inside only.

    Two witnesses, weighted by their precision: the surrogate at the end of the step, and what the
    same step brings inside, where `doubt` ``(n,)`` is the surrogate's deviation and the step out
    may differ by half.
    """
    rows = (steps.start[at], steps.end[at], steps.before[at], steps.after[at])
    mean, std = surrogate.predict(np.vstack(rows))
    start, end, before, after = mean.reshape(4, -1)
    alike = steps.times[at] * (after - before)
    outside = std.reshape(4, -1)[1] ** 2
    inside = doubt**2 + (_OTHERWISE * alike) ** 2
    total = np.maximum(outside + inside, np.finfo(float).tiny)
    trust = np.where(steps.times[at] > 0, outside / total, 0.0)
    return (1.0 - trust) * (end - start) + trust * alike, trust
