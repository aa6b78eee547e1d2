"""Can the target be reached at all? What the surrogate says, and what keeps the target away.

A verdict is a statement about the surrogate, never a proof. It leans towards "can be reached":
deviations are widened where the surrogate has been too sure of itself and by what learning its
hyperparameters cost, any output between two reachable ones counts as reachable, and no target is
given up that is near to what was seen. Nothing is said of a region that can hardly be sampled:
what was not found there may still be there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bayescfx.arrays import Array, not_among
from bayescfx.potentials import Intervals
from bayescfx.propose import propose
from bayescfx.search.binding import binding
from bayescfx.search.learning import surrogate_for
from bayescfx.search.objectives import confidence_bound
from bayescfx.search.question import Question, misses
from bayescfx.space.region import Region
from bayescfx.space.sampling import WORTHWHILE, background_rows, sample
from bayescfx.surrogate.fit import Surrogate

UNLIKELY = 0.1  # a smaller probability is one that a target may be given up with
OPTIMISM = 2.0  # how many deviations are hoped for
FEW = 256  # regions with at most this many rows are looked at row by row
_DRAWS = 256  # rows that show whether the rules leave anything of a region to find


@dataclass(frozen=True)
class Verdict:
    """What the surrogate says of a target that was not reached."""

    # That the target can be reached within the limits; None if nothing can be said, because rules
    # hide most of the region, all outputs are the same, or they lie on both sides of the target,
    # or so close to it that it can't be called unlikely.
    probability: float | None
    binding: tuple[str, ...]  # limits and rules that keep it away, most binding first


def judge(question: Question) -> Verdict:
    """Return how likely the target can be reached after a search, and what keeps it away."""
    if question.reached:
        return Verdict(1.0, ())
    rng = np.random.default_rng(0)
    surrogate = informed(question, rng)
    probability = None
    # A surrogate of a constant knows of no jumps.
    constant = np.ptp(question.y) == 0.0 and question.region.enumerate(FEW) is None
    # Log-odds know no end: where outputs come close, a target of nearly 0 or 1 seems far away.
    steep = question.surrogate_acceptance != question.acceptance and close(question)
    if not (hidden(question.region, rng) or constant or steep):
        probability = probability_reachable(surrogate, question, rng)
        # Another hill, a little higher, is nothing that a surrogate could rule out.
        low = probability is not None and 0.0 < probability < UNLIKELY
        if low and close(question, 0.2):
            probability = None
    return Verdict(probability, binding(surrogate, question, rng))


def informed(question: Question, rng: np.random.Generator) -> Surrogate:
    """Return a surrogate that has heard what is known where it hopes most.

    It is fitted to some of many rows. What it hopes for elsewhere may have been tried in vain long
    before: the known rows nearest to its hopes are told to it, three times over.
    """
    surrogate = surrogate_for(question, everywhere=True)
    Z, outputs = surrogate.coordinates(question.X), question.to_surrogate(question.y)
    untold = not_among(Z, surrogate.process.rows)
    for _ in range(3):
        if not untold.any() or (hope := hopeful(surrogate, question, rng)) is None or not len(hope):
            break
        others = np.flatnonzero(untold)
        away = surrogate.coordinates.distances(surrogate.coordinates(hope), Z[others])
        told = np.unique(others[np.argsort(away, axis=1, kind="stable")[:, :4]])
        process = surrogate.process.with_points(Z[told], outputs[told])
        surrogate, untold[told] = replace(surrogate, process=process), False
    return surrogate


def close(question: Question, share: float = 1.0) -> bool:
    """Return whether known outputs come nearer to the target than a seventh of their range.

    And than a `share` of the way from the query's.
    """
    miss = misses(question.acceptance, np.append(question.output, question.y))
    gap = miss[1:].min(initial=np.inf)
    return bool(gap < 0.14 * np.ptp(question.y) and gap <= share * miss[0])


def hidden(region: Region, rng: np.random.Generator) -> bool:
    """Return whether functions of the user forbid nearly all of a region, data rows included."""
    opaque = [rule for rule in region.rules if rule.opaque]
    if not opaque:
        return False
    open_ = region.without(*opaque)
    drawn = (sample(open_, _DRAWS, rng), background_rows(open_, _DRAWS, rng))
    return max(float(region.contains(X).mean()) for X in drawn if len(X)) < WORTHWHILE


def probability_reachable(
    surrogate: Surrogate, question: Question, rng: np.random.Generator
) -> float | None:
    """Return the surrogate's probability that some allowed row reaches the target.

    Never less than that of the rule of succession after n rows in vain, 1 in n + 2, or 0.01, unless
    there is no row left, or no such output; None where known outputs lie on both sides: the model
    may jump over the target, or not.
    """
    accepted, X = question.surrogate_acceptance, hopeful(surrogate, question, rng)
    if X is None:
        return None
    if not len(X):
        return 0.0
    Z = surrogate.coordinates(X)
    mean, _ = surrogate.process.predict(Z)
    spread = surrogate.process.sample(Z, 256, rng) - mean
    paths = mean + widening(surrogate) * spread
    if question.region.enumerate(FEW) is not None:
        met = [((paths >= low) & (paths <= high)).any(axis=1) for low, high in accepted]
    else:
        seen = question.to_surrogate(question.y)
        lowest = np.minimum(paths.min(axis=1), seen.min())
        highest = np.maximum(paths.max(axis=1), seen.max())
        met = [(highest >= low) & (lowest <= high) for low, high in accepted]
    least = max(0.01, 1.0 / (len(question.y) + 2))
    return max(least, float(np.any(met, axis=0).mean()))


def shortfall(surrogate: Surrogate, question: Question, rng: np.random.Generator) -> float:
    """Return by how many deviations every allowed row is expected to miss the target."""
    X = hopeful(surrogate, question, rng)
    if X is None:
        return 0.0
    mean, std = surrogate.predict(X)
    deviation = np.maximum(widening(surrogate) * std, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        short = misses(question.surrogate_acceptance, mean) / deviation
    return float(short.min(initial=np.inf))


def hopeful(surrogate: Surrogate, question: Question, rng: np.random.Generator) -> Array | None:
    """Return rows ``(n, d)`` where the surrogate hopes most, all of few; None if that says nothing.

    There are none if all were tried, or no output is accepted.
    """
    accepted, everything = question.surrogate_acceptance, question.region.enumerate(FEW)
    if not accepted:
        return question.X[:0]
    if everything is not None:
        return everything[~question.known.holds(everything)]
    sides = _sides(accepted, question.to_surrogate(question.y))
    if 0 in sides:
        return None
    return np.vstack([frontier(surrogate, question, side, rng, 64 // len(sides)) for side in sides])


def frontier(
    surrogate: Surrogate, question: Question, side: int, rng: np.random.Generator, most: int = 96
) -> Array:
    """Return rows at which the surrogate may be highest (`side` 1) or lowest (-1), these first.

    At most `most` rows ``(m, d)`` of the region; rows that are known may be among them.
    """
    hope = confidence_bound(surrogate, side, OPTIMISM)
    starts = np.vstack([question.X, background_rows(question.region, 96, rng)])
    starts = starts[np.argsort(-hope.value(starts), kind="stable")]
    return propose(hope, question.region, rng, starts, k=most, effort="glance").points


def probes(
    surrogate: Surrogate, question: Question, side: int, rng: np.random.Generator, n: int
) -> Array:
    """Return rows that would show whether the surrogate knows the region or only a corner of it.

    Every other row is the most hopeful one, given that those chosen before come out as predicted;
    the rest are data rows as far as possible from everything known, by coordinates and not by what
    the surrogate takes to matter. At most `n` rows, none of them known.
    """
    hopeful = frontier(surrogate, question, side, rng)
    # Models vary most where their data are: corners of the box may all look alike.
    usual = background_rows(question.region, 192, rng)
    if not len(usual):
        usual = sample(question.region, 192, rng)
    pool = np.vstack([hopeful, usual])
    from_data = np.arange(len(pool)) >= len(hopeful)
    coordinates, process = surrogate.coordinates, surrogate.process
    Z = coordinates(pool)
    away = coordinates.distances(Z, coordinates(question.X)).min(axis=1)
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


def _sides(accepted: Intervals, seen: Array) -> list[int]:
    """Return where accepted values lie: above (1) or below (-1) known ones, or among them (0)."""
    least, most = seen.min(), seen.max()
    return sorted({1 if low > most else -1 if high < least else 0 for low, high in accepted})


def widening(surrogate: Surrogate) -> float:
    """Return by what factor deviations are widened: past overconfidence, and what learning cost."""
    # As in regression, n rows that fixed k hyperparameters (a lengthscale per input, a scale, a
    # noise) leave n - k to judge the error by.
    rows, parameters = surrogate.n_rows, surrogate.coordinates.width + 2
    return overconfidence(surrogate) * min(1.5, float(np.sqrt(rows / max(rows - parameters, 1))))


def overconfidence(surrogate: Surrogate) -> float:
    """Return by what factor the surrogate's deviations are too small, at least 1."""
    residual, std = surrogate.process.leave_one_out()
    # In units of deviations, cut off at three: one jump says little of the rest.
    surprise = np.minimum(np.abs(residual / std), 3.0)
    return max(1.0, float(np.sqrt(np.mean(surprise**2))))


class Watch:
    """Notices during a search that its target is out of reach.

    A search that climbs one hill knows little of the rest of the region, and so does its
    surrogate. Before it gives up, the watch therefore wants a few rows from elsewhere evaluated.
    """

    def __init__(self, question: Question) -> None:
        self.question, budget = question, question.account.budget
        # Eight rows and one per free feature before the first check, but no less than a fifth of
        # the budget and, beyond eight, no more than three tenths.
        needed = min(max(8 + len(question.region.free), 0.2 * budget), 0.3 * budget)
        self._next = max(8, round(needed))  # rows known before the next check
        self._short: list[float] = []  # by how many deviations the target was missed, each check
        self.pending: Array | None = None  # a probe to be handed out
        self._probed = False
        # A stream of its own: watching must not change what the search does.
        self._rng = np.random.default_rng(0)

    def out_of_reach(self, surrogate: Surrogate, *, last: bool = False) -> bool:
        """Return whether the target looks out of reach; now and then, or if it is the last look.

        By 4 deviations, twice in turn. At last once will do, or 2 with a probability below 0.1 if
        no known row has come out better than the others let expect by as much as is missing.
        """
        question, known = self.question, len(self.question.y)
        if not last and known < self._next:
            return False
        self._next = known + max(2, question.account.budget // 40)
        seen = question.to_surrogate(question.y)
        gap = float(misses(question.surrogate_acceptance, seen).min())
        sides = _sides(question.surrogate_acceptance, seen)
        short = 0.0
        # Nearer than a seventh of the outputs' range the surrogate can't tell it from nothing.
        if gap >= 0.14 * np.ptp(seen) > 0.0 and not (self._hidden or close(question)):
            short = shortfall(surrogate, question, self._rng)
        self._short.append(short)
        if not self._probed:
            if short >= 1.5 and not last:
                n = max(2, min(8, int(0.13 * question.account.budget)))
                side = -1 if sides == [-1] else 1
                self.pending = probes(surrogate, question, side, self._rng, n)
            return False
        if not last:
            return len(self._short) > 1 and min(self._short[-2:]) >= 4.0
        residual = surrogate.process.leave_one_out()[0]
        surprised = max(float((side * residual).max()) for side in sides or [1])
        if short >= 4.0:
            return True
        if not self.doubtful or surprised > gap:
            return False
        return (probability_reachable(surrogate, question, self._rng) or 0.0) < UNLIKELY

    @property
    def doubtful(self) -> bool:
        """Whether the target may be called out of reach at last."""
        return self._probed and self._short[-1:] >= [2.0]

    def probe(self) -> Array:
        """Return rows ``(k, d)`` to evaluate before the watch decides, if any, each once."""
        rows = self.question.X[:0] if self.pending is None else self.pending
        if self.pending is not None:
            self.pending, self._probed = None, True
            self._short.clear()
            self._next = len(self.question.y) + len(rows)
        return rows

    @cached_property
    def _hidden(self) -> bool:
        return hidden(self.question.region, self._rng)
