"""Verdicts: whether the target can be reached at all, judged by the surrogate.

A verdict is a statement about the surrogate, never a proof. It errs towards "can be reached":
deviations are widened where the surrogate has been overconfident and by the cost of learning its
hyperparameters, any output between two reachable ones counts as reachable, and no target close to
a scored output is given up. A region that can hardly be sampled gets no verdict: rows that were
not found there may still exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

import numpy as np

from bayescfx.arrays import Array, Indices, not_among
from bayescfx.potentials import Intervals
from bayescfx.propose import propose
from bayescfx.search.binding import binding
from bayescfx.search.objectives import confidence_bound
from bayescfx.search.question import Question, misses, surrogate_for
from bayescfx.space.region import Region
from bayescfx.space.sampling import WORTHWHILE, background_rows, sample
from bayescfx.surrogate.fit import Surrogate


@dataclass(frozen=True)
class VerdictTuning:
    """Tuned numbers of the verdict and of the watch.

    Evidence, unless stated otherwise: `python -m benchmarks verdict --first 2` (2026-11-16):
    "unreachable" was wrong in 3 of 1,198 searches for reachable targets, and right in 84 % (40
    rows) and 92 % (100 rows) of searches for targets 20 % beyond everything found.
    """

    #: Below this probability a target may be given up.
    unlikely: float = 0.1
    #: The least probability stated while rows are left to try.
    min_probability: float = 0.01
    #: Confidence bounds lie at this number of deviations.
    optimism: float = 2.0
    #: A target is close if outputs miss it by less than this share of their range.
    close_share: float = 0.14
    #: A target this close, as a share of the query's own miss, gets no low probability
    #: (`--first 3` and `efficiency --only far`, 2026-11-18).
    near_miss: float = 0.2
    #: Regions with at most this number of rows are examined row by row.
    max_enumerated: int = 256
    #: Rows drawn to see whether functions of the user forbid nearly all of a region.
    n_draws: int = 256
    #: Joint samples of the surrogate, and rows at which they are taken.
    n_samples: int = 256
    n_promising: int = 64
    #: Most rows, and data rows among the starts, when a confidence bound is maximised.
    n_frontier: int = 96
    n_starts: int = 96
    #: The surrogate is conditioned this many times on scored rows near its promising rows
    #: (`--first 2`, 2026-11-17), ...
    n_corrections: int = 3
    #: ... each time on so many scored rows per promising row.
    n_nearest: int = 4
    #: The largest factor by which learned hyperparameters widen deviations.
    max_learning_factor: float = 1.5
    #: Leave-one-out errors count as this number of deviations at most: one jump proves little.
    max_error: float = 3.0
    #: Data rows among which a probe is chosen.
    n_probe_pool: int = 192
    #: The watch first looks after this number of rows and one per free feature, ...
    min_rows: int = 8
    #: ... but neither before nor after these shares of the budget.
    first_look_after: float = 0.2
    first_look_before: float = 0.3
    #: It looks again after two rows, or after one in so many rows of the budget.
    min_rows_between_looks: int = 2
    look_one_in: int = 40
    #: Missed by this number of deviations, the target calls for a probe.
    suspicious: float = 1.5
    #: Missed by this number of deviations after a probe, it is doubtful.
    doubtful: float = 2.0
    #: Missed by this number of deviations, at consecutive looks, it is out of reach.
    hopeless: float = 4.0
    n_consecutive_looks: int = 2
    #: A probe takes this share of the budget, within limits.
    probe_share: float = 0.13
    min_probe: int = 2
    max_probe: int = 8


TUNING = VerdictTuning()
UNLIKELY = TUNING.unlikely


class Conclusion(Enum):
    """Conclusions about a target, and why no probability is stated."""

    REACHED = "an allowed row reaches the target"
    IMPOSSIBLE = "no row is left to try, or no output is accepted"
    ESTIMATED = "the surrogate gives a probability"
    HIDDEN = "rules forbid nearly every row, so that rows may exist that were not found"
    CONSTANT = "all outputs are the same, so that a surrogate knows nothing about jumps"
    BETWEEN = "outputs lie on both sides of the target, and the model may jump over it"
    CLOSE = "outputs come so close to the target that it can't be called unlikely"


@dataclass(frozen=True)
class Evidence:
    """The outputs of scored allowed rows that a verdict rests on."""

    n_outputs: int
    span: float  # the range of the outputs
    miss: float  # the least distance of an output from the target
    query_miss: float  # the distance of the query's output from it

    @classmethod
    def of(cls, question: Question) -> Evidence:
        """Return the evidence of a question, at least one of whose allowed rows is scored."""
        miss = misses(question.acceptance, np.append(question.output, question.y))
        return cls(
            n_outputs=len(question.y),
            span=float(np.ptp(question.y)),
            miss=float(miss[1:].min(initial=np.inf)),
            query_miss=float(miss[0]),
        )

    def is_close(self, share: float = 1.0) -> bool:
        """Return whether outputs come close to the target, and nearer than the query's does.

        That is, nearer than a share of the outputs' range and a `share` of the query's miss.
        """
        near_range = self.miss < TUNING.close_share * self.span
        return near_range and self.miss <= share * self.query_miss


@dataclass(frozen=True)
class Verdict:
    """The surrogate's judgement of a target after a search."""

    conclusion: Conclusion
    probability: float | None  # that the target can be reached; None if it can't be estimated
    binding: tuple[str, ...]  # limits and rules that keep it away, most binding first
    evidence: Evidence | None = field(default=None, compare=False)


def judge(question: Question) -> Verdict:
    """Return how likely the target can be reached after a search, and the binding constraints."""
    evidence = Evidence.of(question)
    if question.reached:
        return Verdict(Conclusion.REACHED, 1.0, (), evidence)
    rng = np.random.default_rng(0)
    surrogate = informed_surrogate(question, rng)
    conclusion = _obstacle(question, evidence, rng)
    probability = None
    if conclusion is None:
        conclusion, probability = _estimate(surrogate, question, evidence, rng)
    return Verdict(conclusion, probability, binding(surrogate, question, rng), evidence)


def _obstacle(
    question: Question, evidence: Evidence, rng: np.random.Generator
) -> Conclusion | None:
    """Return why the surrogate can't judge the target, or None if it can."""
    if is_hidden(question.region, rng):
        return Conclusion.HIDDEN
    if evidence.span == 0.0 and question.region.enumerate(TUNING.max_enumerated) is None:
        return Conclusion.CONSTANT
    return Conclusion.CLOSE if _is_close_on_log_odds(question, evidence) else None


def _is_close_on_log_odds(question: Question, evidence: Evidence) -> bool:
    """Return whether the surrogate overrates the distance of a target close to the outputs.

    Log-odds are unbounded: a target of nearly 0 or 1 seems far away even from close outputs.
    """
    is_log_odds = question.surrogate_acceptance != question.acceptance
    return is_log_odds and evidence.is_close()


def _estimate(
    surrogate: Surrogate, question: Question, evidence: Evidence, rng: np.random.Generator
) -> tuple[Conclusion, float | None]:
    """Return the conclusion from the surrogate's probability, and the probability to state."""
    probability = probability_reachable(surrogate, question, rng)
    if probability is None:
        return Conclusion.BETWEEN, None
    if probability == 0.0:
        return Conclusion.IMPOSSIBLE, 0.0
    # A surrogate can't rule out another hill that is a little higher.
    if probability < TUNING.unlikely and evidence.is_close(TUNING.near_miss):
        return Conclusion.CLOSE, None
    return Conclusion.ESTIMATED, probability


def informed_surrogate(question: Question, rng: np.random.Generator) -> Surrogate:
    """Return a surrogate that knows the scored outputs near its most promising rows.

    It is fitted to some of many rows, and may find rows promising that were scored long before. So
    it is conditioned, a few times over, on the scored rows nearest to its promising rows.
    """
    surrogate = surrogate_for(question, everywhere=True)
    Z = surrogate.coordinates(question.X)
    outputs = question.to_surrogate(question.y)
    is_new = not_among(Z, surrogate.posterior.X)
    for _ in range(TUNING.n_corrections):
        if not is_new.any():
            break
        promising = promising_rows(surrogate, question, rng)
        if promising is None or not len(promising):
            break
        added = _nearest_rows(surrogate, promising, Z, np.flatnonzero(is_new))
        posterior = surrogate.posterior.with_points(Z[added], outputs[added])
        surrogate = replace(surrogate, posterior=posterior)
        is_new[added] = False
    return surrogate


def _nearest_rows(surrogate: Surrogate, promising: Array, Z: Array, others: Indices) -> Indices:
    """Return which of the `others` among coordinates `Z` are nearest to the promising rows."""
    away = surrogate.coordinates.distances(surrogate.coordinates(promising), Z[others])
    nearest = np.argsort(away, axis=1, kind="stable")[:, : TUNING.n_nearest]
    return np.unique(others[nearest])


def is_hidden(region: Region, rng: np.random.Generator) -> bool:
    """Return whether functions of the user forbid nearly all of a region, data rows included."""
    opaque = [rule for rule in region.rules if rule.opaque]
    if not opaque:
        return False
    relaxed = region.without(*opaque)
    drawn = sample(relaxed, TUNING.n_draws, rng)
    data = background_rows(relaxed, TUNING.n_draws, rng)
    return max(float(region.contains(X).mean()) for X in (drawn, data) if len(X)) < WORTHWHILE


def probability_reachable(
    surrogate: Surrogate, question: Question, rng: np.random.Generator
) -> float | None:
    """Return the surrogate's probability that some allowed row reaches the target.

    It is at least 0.01, and at least 1 in n + 2 after n misses (the rule of succession), unless no
    row is left or no output is accepted. It is None where scored outputs lie on both sides: the
    model may jump over the target or not.
    """
    X = promising_rows(surrogate, question, rng)
    if X is None:
        return None
    if not len(X):
        return 0.0
    Z = surrogate.coordinates(X)
    mean, _ = surrogate.posterior.predict(Z)
    spread = surrogate.posterior.sample(Z, TUNING.n_samples, rng) - mean
    paths = mean + widening(surrogate) * spread
    least = max(TUNING.min_probability, 1.0 / (len(question.y) + 2))
    return max(least, _share_of_hits(paths, question))


def _share_of_hits(paths: Array, question: Question) -> float:
    """Return the share of joint samples ``(s, n)`` in which some row reaches the target."""
    accepted = question.surrogate_acceptance
    if question.region.enumerate(TUNING.max_enumerated) is not None:
        hits = [((paths >= low) & (paths <= high)).any(axis=1) for low, high in accepted]
    else:  # any output between two reachable ones is reachable
        seen = question.to_surrogate(question.y)
        lowest = np.minimum(paths.min(axis=1), seen.min())
        highest = np.maximum(paths.max(axis=1), seen.max())
        hits = [(highest >= low) & (lowest <= high) for low, high in accepted]
    return float(np.any(hits, axis=0).mean())


def shortfall(surrogate: Surrogate, question: Question, rng: np.random.Generator) -> float:
    """Return by how many deviations every allowed row is expected to miss the target."""
    X = promising_rows(surrogate, question, rng)
    if X is None:
        return 0.0
    mean, std = surrogate.predict(X)
    deviation = np.maximum(widening(surrogate) * std, np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        short = misses(question.surrogate_acceptance, mean) / deviation
    return float(short.min(initial=np.inf))


def promising_rows(
    surrogate: Surrogate, question: Question, rng: np.random.Generator
) -> Array | None:
    """Return rows ``(n, d)`` at which the surrogate comes nearest to the target.

    Of a small region all rows that were not tried. No rows if all were tried, or no output is
    accepted; None if scored outputs lie on both sides of the target.
    """
    accepted = question.surrogate_acceptance
    every_row = question.region.enumerate(TUNING.max_enumerated)
    if not accepted:
        return question.X[:0]
    if every_row is not None:
        return every_row[~question.known.holds(every_row)]
    sides = _sides(accepted, question.to_surrogate(question.y))
    if 0 in sides:
        return None
    most = TUNING.n_promising // len(sides)
    return np.vstack([frontier(surrogate, question, side, rng, most) for side in sides])


def frontier(
    surrogate: Surrogate,
    question: Question,
    side: int,
    rng: np.random.Generator,
    most: int,
) -> Array:
    """Return rows at which the surrogate may be highest (`side` 1) or lowest (-1), these first.

    At most `most` rows ``(m, d)`` of the region; scored rows may be among them.
    """
    bound = confidence_bound(surrogate, side, TUNING.optimism)
    starts = np.vstack([question.X, background_rows(question.region, TUNING.n_starts, rng)])
    starts = starts[np.argsort(-bound.value(starts), kind="stable")]
    return propose(bound, question.region, rng, starts, k=most, effort="glance").points


def probe_rows(
    surrogate: Surrogate, question: Question, side: int, rng: np.random.Generator, n: int
) -> Array:
    """Return rows that show whether the surrogate knows the region or only a corner of it.

    Every other row is the most promising one, given that the rows chosen before come out as
    predicted. The rest are data rows as far as possible from all scored rows, by coordinates and
    not by the surrogate's lengthscales. At most `n` rows, none of them scored.
    """
    promising = frontier(surrogate, question, side, rng, TUNING.n_frontier)
    data = _probe_candidates(question.region, rng)
    pool = np.vstack([promising, data])
    is_data = np.arange(len(pool)) >= len(promising)
    coordinates = surrogate.coordinates
    posterior = surrogate.posterior
    Z = coordinates(pool)
    away = coordinates.distances(Z, coordinates(question.X)).min(axis=1)
    chosen: list[int] = []
    while len(chosen) < n and (away > 0.0).any():
        mean, std = posterior.predict(Z)
        worth = side * mean + TUNING.optimism * std
        if len(chosen) % 2:
            worth = np.where(is_data, away, 0.0)
        best = int(np.argmax(np.where(away > 0.0, worth, -np.inf)))
        chosen.append(best)
        posterior = posterior.with_points(Z[[best]], mean[[best]])
        away = np.minimum(away, coordinates.distances(Z, Z[[best]])[:, 0])
        away[best] = 0.0
    return np.asarray(pool[chosen])


def _probe_candidates(region: Region, rng: np.random.Generator) -> Array:
    """Return data rows or, without data, other rows of the region."""
    # Models vary most where their data are: corners of the box may all look alike.
    data = background_rows(region, TUNING.n_probe_pool, rng)
    return data if len(data) else sample(region, TUNING.n_probe_pool, rng)


def _sides(accepted: Intervals, outputs: Array) -> list[int]:
    """Return where accepted values lie: above (1), below (-1) or among (0) the outputs."""
    least = outputs.min()
    most = outputs.max()
    return sorted({int(low > most) - int(high < least) for low, high in accepted})


def widening(surrogate: Surrogate) -> float:
    """Return the factor that widens deviations for overconfidence and learned hyperparameters."""
    # As in regression, n rows that fixed k hyperparameters (a lengthscale per input, a scale, a
    # noise) leave n - k degrees of freedom for the error.
    n_rows = surrogate.n_rows
    n_parameters = surrogate.coordinates.width + 2
    learning = float(np.sqrt(n_rows / max(n_rows - n_parameters, 1)))
    return overconfidence(surrogate) * min(TUNING.max_learning_factor, learning)


def _surprise(surrogate: Surrogate, sides: list[int]) -> float:
    """Return by how much an output has exceeded its prediction on the sides of the target."""
    residual = surrogate.posterior.leave_one_out()[0]
    return max(float((side * residual).max()) for side in sides or [1])


def overconfidence(surrogate: Surrogate) -> float:
    """Return the factor, at least 1, by which the surrogate's deviations are too small."""
    residual, std = surrogate.posterior.leave_one_out()
    error = np.minimum(np.abs(residual / std), TUNING.max_error)
    return max(1.0, float(np.sqrt(np.mean(error**2))))


class Outlook(Enum):
    """The prospects of a running search, as the watch sees them."""

    OPEN = "the target may be reached"
    SUSPICIOUS = "rows from elsewhere should be scored before anything is concluded"
    DOUBTFUL = "the target may turn out to be out of reach"
    OUT_OF_REACH = "the surrogate holds the target out of reach"


class Watch:
    """Notices during a search that its target is out of reach.

    A search that climbs one hill knows little about the rest of the region, and so does its
    surrogate. Before the target is given up, the watch therefore asks for a probe: a few rows from
    elsewhere.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        budget = question.budget
        earliest = max(
            TUNING.min_rows + len(question.region.free), TUNING.first_look_after * budget
        )
        first = round(min(earliest, TUNING.first_look_before * budget))
        self._next_look = max(TUNING.min_rows, first)  # in scored rows
        self._shortfalls: list[float] = []  # of each look since the probe, in deviations
        self._probe: Array | None = None  # rows to be handed out
        self._is_probed = False
        # A random stream of its own: watching must not change the search.
        self._rng = np.random.default_rng(0)

    def look(self, surrogate: Surrogate, *, is_last: bool = False) -> Outlook:
        """Return the outlook; it is updated now and then, and at the last look.

        The target is out of reach if it is missed by 4 deviations at two consecutive looks. At the
        last look once is enough, or 2 deviations with a low probability unless an output has
        exceeded its prediction by as much as is missing.
        """
        question = self.question
        n_scored = len(question.y)
        if n_scored < self._next_look and not is_last:
            return self._standing
        between = max(TUNING.min_rows_between_looks, question.budget // TUNING.look_one_in)
        self._next_look = n_scored + between
        outputs = question.to_surrogate(question.y)
        miss = float(misses(question.surrogate_acceptance, outputs).min())
        sides = _sides(question.surrogate_acceptance, outputs)
        self._shortfalls.append(self._shortfall(surrogate, miss, float(np.ptp(outputs))))
        if is_last:
            is_lost = self._is_lost_at_last(surrogate, miss, sides)
        else:
            self._plan_probe(surrogate, sides)
            is_lost = self._is_lost()
        return Outlook.OUT_OF_REACH if is_lost else self._standing

    def probe(self) -> Array:
        """Return the rows ``(k, d)`` of the probe, once; no rows if none is planned."""
        if self._probe is None:
            return self.question.X[:0]
        rows = self._probe
        self._probe = None
        self._is_probed = True
        self._shortfalls.clear()
        self._next_look = len(self.question.y) + len(rows)
        return rows

    @property
    def _standing(self) -> Outlook:
        """The outlook as of the latest look, short of giving up."""
        if self._probe is not None:
            return Outlook.SUSPICIOUS
        if self._is_probed and self._shortfalls and self._shortfalls[-1] >= TUNING.doubtful:
            return Outlook.DOUBTFUL
        return Outlook.OPEN

    def _shortfall(self, surrogate: Surrogate, miss: float, span: float) -> float:
        """Return by how many deviations the target is missed; 0 where that is unknown."""
        # The surrogate can't tell a target that is close to the outputs from one that is reached.
        is_far = miss >= TUNING.close_share * span > 0.0
        if not is_far or self._is_hidden or Evidence.of(self.question).is_close():
            return 0.0
        return shortfall(surrogate, self.question, self._rng)

    def _plan_probe(self, surrogate: Surrogate, sides: list[int]) -> None:
        """Choose the rows of the only probe, once the target is missed by enough deviations."""
        if self._is_probed or self._shortfalls[-1] < TUNING.suspicious:
            return
        n = min(TUNING.max_probe, int(TUNING.probe_share * self.question.budget))
        n = max(TUNING.min_probe, n)
        side = -1 if sides == [-1] else 1
        self._probe = probe_rows(surrogate, self.question, side, self._rng, n)

    def _is_lost(self) -> bool:
        """Return whether the target is far out of reach at consecutive looks."""
        latest = self._shortfalls[-TUNING.n_consecutive_looks :]
        is_enough = len(latest) == TUNING.n_consecutive_looks
        return self._is_probed and is_enough and min(latest) >= TUNING.hopeless

    def _is_lost_at_last(self, surrogate: Surrogate, miss: float, sides: list[int]) -> bool:
        """Return whether the target is out of reach at the last look."""
        if not self._is_probed:
            return False
        if self._shortfalls[-1] >= TUNING.hopeless:
            return True
        if self._standing is not Outlook.DOUBTFUL or _surprise(surrogate, sides) > miss:
            return False
        probability = probability_reachable(surrogate, self.question, self._rng)
        return (probability or 0.0) < TUNING.unlikely

    @cached_property
    def _is_hidden(self) -> bool:
        """Whether rules forbid nearly all of the region."""
        return is_hidden(self.question.region, self._rng)
