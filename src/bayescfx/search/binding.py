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

from bayescfx.arrays import Array
from bayescfx.propose import propose
from bayescfx.search.objectives import nearness
from bayescfx.search.question import Question, misses
from bayescfx.search.relaxing import Steps, relaxations
from bayescfx.search.surrogate import Surrogate

SAMPLES = 256  # joint samples that say how sure a gain is


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
    everything = question.known.codes[question.account.masks()[1]]
    for steps in relaxations(near, region, nearest.points, everything, rng):
        found = left[steps.chosen]
        # By how much the target must come nearer; beyond the end of a feature there are no data.
        enough = base - (0.02 if steps.chosen else 0.05) * yardstick
        least = _least_miss(surrogate, question, steps, enough, rng)
        if least < found.get(steps.words, enough):
            found[steps.words] = least
    told = left[True] or left[False]  # what somebody set, or else ends of features
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
    mean, std = mean.reshape(4, -1), std.reshape(4, -1)[1]
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


def _gains(mean: Array, std: Array, times: Array, doubt: Array) -> tuple[Array, Array]:
    """Return what steps bring ``(n,)``, and how much of this is known from inside only."""
    # Two witnesses, weighted by their precision: the surrogate at the end of the step, with
    # deviation `std`, and the same step inside, with `doubt`, from which it may differ by half.
    alike = times * (mean[3] - mean[2])
    outside, inside = std**2, doubt**2 + (0.5 * alike) ** 2
    trust = outside / np.maximum(outside + inside, np.finfo(float).tiny)
    trust = np.where(times > 0, trust, 0.0)
    return (1.0 - trust) * (mean[1] - mean[0]) + trust * alike, trust
