"""Bayes-CFX: Bayesian optimisation of a potential, with the surrogate on f (Section 3).

The search passes through phases, "hit first, then nearer" (:class:`Phase`). Until a row reaches
the target, log EI-CFX is maximised (REACH). From then on, unless the cost of moving is switched
off, the expected cost improvement inside the target set is maximised (APPROACH). At the end, every
change that an answer does not need is taken back (SETTLE).

In the phase REACH, global steps alternate with others: near the query where nearness counts, among
the rows of the data, where models take their extremes and surrogates can be trusted, and among
rows that differ from the best one in few features. At least every tenth step is global, so that
the theorem "EI-CFX is asymptotically consistent" keeps its premise for a subsequence of the steps.
Nothing is concluded before each feature has been tried alone near the query.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from itertools import islice
from typing import TypeAlias

import numpy as np

from bayescfx.acquisition import log_probability_in
from bayescfx.arrays import Array, sorted_rows
from bayescfx.checks import check_whole
from bayescfx.deadline import time_limit
from bayescfx.propose import Acquisition, Proposal, propose
from bayescfx.search import start
from bayescfx.search.finish import finish
from bayescfx.search.objectives import (
    CostImprovement,
    FailedHits,
    FlatBoxes,
    PotentialImprovement,
    Record,
    Terraces,
)
from bayescfx.search.question import Question, Rounds, Stopped, misses
from bayescfx.search.verdict import Outlook, Watch
from bayescfx.space.neighbourhood import exchange, n_to_settle
from bayescfx.space.sampling import sample
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings, fit_surrogate


class Phase(Enum):
    """Phases of the search; each is one generator of rounds (`PHASES`)."""

    START = "score the start set"
    REACH = "hit first: maximise log EI-CFX until a row reaches the target"
    APPROACH = "then nearer: maximise the expected cost improvement"
    SPREAD = "without a cost of moving: find the other answers"
    SETTLE = "take back the changes that the answers do not need"


class Candidates(Enum):
    """Where a step of the phase REACH looks for its row."""

    NEAR = "near the query: the probability of a hit per cost and distance"
    GLOBAL = "in the whole region"
    DATA = "among the rows of the data"
    FEW = "among rows that differ from the best one in few features"


@dataclass(frozen=True)
class BayesTuning:
    """Tuned numbers of the search.

    Evidence, where none is named: `python -m benchmarks efficiency` of 2026-11-16. `potential`:
    98.8 % of 240 problems at 99 % of the best known, after 7 calls in the median. `expensive`:
    median distance 1.00 of the two-feature limit with 100 rows, and 1.04 to 1.12 with 50.

    *Off* is what the rule of a number brings: `python -m benchmarks.tuning --change off`
    (2026-11-18), 40 questions of 15 to 80 rows; other seeds change hits by 6 %, cost by 3 %.
    """

    # ── START ──
    #: Start rows where the cost of moving is switched off.
    n_starts: int = 2
    #: Each feature is moved alone if that takes at most this share of the budget (off: cost +1 %),
    max_start_share: float = 0.4
    #: or else in groups, with one in so many rows of the budget.
    start_one_in: int = 4

    # ── REACH ──
    #: From this share of the budget on, a miss matters more than the cost of moving. Up to 80 rows
    #: 0 is the same; with 1, the cost to the end, hits -2.5 %, cost -5 %.
    cost_until: float = 0.25
    #: Every other step is near the query until this share of the budget is left. Off, with 192
    #: answers: hits -2.6 ± 1.5 %, cost -3 ± 3 %.
    near_until: float = 0.5
    #: The order of the other steps.
    steps: tuple[Candidates, ...] = (
        Candidates.DATA,
        Candidates.FEW,
        Candidates.DATA,
        Candidates.FEW,
        Candidates.GLOBAL,
    )
    #: Features in which a row may differ from the best one.
    n_few: int = 3
    #: Scored rows, nearest to the target, among which terraces are sought (`overhead`,
    #: 2026-11-18).
    n_terrace_rows: int = 400
    #: A target may be given up after this number of rows (`verdict`, 2026-11-16) ...
    min_rows_to_give_up: int = 40
    #: ... and after this share of the budget.
    min_share_to_give_up: float = 0.5

    # ── APPROACH ──
    #: Share of the budget kept for taking back changes (off: cost +2 %, rows -6 %), and the most
    #: that may be kept.
    settle_share: float = 0.1
    max_settle_share: float = 0.5
    #: Rounds in turn that promise nothing before the search may end.
    n_idle_rounds: int = 3
    #: The least saving, as a share of the cost, that is proposed (off: cost +2 %).
    min_saving: float = 0.02
    #: The least expected saving, as a share of the lowest cost, that is worth a model call.
    min_expected_saving: float = 1e-3
    #: Nearest hits from which candidates start.
    n_centres: int = 6

    # ── Accuracy of the surrogate ──
    #: Predictions to check before the search may end, and the largest error, in deviations.
    min_predictions: int = 2
    max_error: float = 3.0
    #: Errors below this share of the way to the target do not matter.
    negligible_error: float = 0.01
    #: Deviations are widened by this number of latest errors, beside so many that were right. Off,
    #: together with failed hits (`ObjectiveTuning`), 48 questions of 100 rows: rows +3.9 ± 2.7 %.
    n_latest_errors: int = 12
    n_prior_errors: float = 4.0

    # ── Batches ──
    #: From this batch size on, rows are drawn and not refined one by one, which takes a fraction of
    #: the time (off: cost -1 %).
    min_drawn_batch: int = 16
    #: Rows drawn: this number, or one in so many rows of the batch.
    n_drawn: int = 64
    drawn_one_in: int = 4


TUNING = BayesTuning()


@dataclass(frozen=True)
class BayesCFX:
    """Bayesian optimisation with EI-CFX: the surrogate models f, never rho∘f.

    Parameters
    ----------
    batch : int, default 1
        Rows proposed per round. More rows per model call, fewer rounds: for models that are
        expensive per call and cheap per row.
    starts : int, optional
        Rows scored before the surrogate leads. By default two data rows. Where nearness counts,
        each feature is moved alone instead, a step to either side or to each of few values, if
        that takes at most two fifths of the budget; or else one step of each, in groups if a
        quarter of the budget is less.
    local : bool, default True
        Whether steps among data rows, and around the best row, alternate with global ones; False
        is the paper.
    give_up : bool, default True
        Whether to end, after forty rows and half the budget, when the surrogate holds the target
        out of reach; False spends the whole budget on the best guess.
    surrogate : SurrogateSettings
        The Gaussian process; ``SurrogateSettings(kernel="rbf", mean="zero")`` is the paper.

    Examples
    --------
    >>> BayesCFX(batch=16).batch
    16
    """

    batch: int = 1
    starts: int | None = None
    local: bool = True
    give_up: bool = True
    surrogate: SurrogateSettings = field(default_factory=SurrogateSettings)

    def __post_init__(self) -> None:
        check_whole("batch", self.batch, 1)
        if self.starts is not None:
            check_whole("starts", self.starts, 0)

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be scored, receive their outputs ``(k,)``."""
        run = _Run(self, question)
        if question.region.price.weight > 0.0:
            question.leave_out_borrowed()
        try:
            state: Phase | Stopped = Phase.START
            while isinstance(state, Phase):
                state = yield from PHASES[state](run)
            return state
        finally:
            question.let_in_borrowed()


#: The rounds of one phase; returns the next phase, or why the search ends.
PhaseRounds: TypeAlias = Generator[Array, Array, "Phase | Stopped"]


def _start(run: _Run) -> PhaseRounds:
    """Score the start set, and more rows until the output of an allowed row is known."""
    question = run.question
    n_scored = len(question.X) - 1  # besides the query
    n_missing = run.n_starts - n_scored
    if n_missing > 0:
        rows = start.first_rows(question, n_missing)
        if len(rows):
            yield rows
    if not len(question.y):  # only failed rows so far, and the query breaks a rule
        return (yield from _find_allowed(run))
    return Phase.REACH


def _find_allowed(run: _Run) -> PhaseRounds:
    """Score allowed rows until the output of one is known."""
    fresh = start.fresh_rows(run.question)
    while not len(run.question.y):
        batch = list(islice(fresh, run.settings.batch))
        if not batch:
            return "exhausted"
        yield np.array(batch)
    return Phase.REACH


def _reach(run: _Run) -> PhaseRounds:
    """Look for a row that reaches the target; from then on other questions' rows count."""
    question = run.question
    stopped = yield from _find_hit(run)
    question.let_in_borrowed()
    if stopped is not None and not question.reached:
        return stopped
    return Phase.APPROACH if question.region.price.weight > 0.0 else Phase.SPREAD


def _find_hit(run: _Run) -> Generator[Array, Array, Stopped | None]:
    """Look for a row that reaches the target; return why the search ends without one."""
    question = run.question
    gives_up = run.settings.give_up
    watch = Watch(question)
    while not question.reached and not run.needs_borrowed_hit:
        surrogate = run.fit()
        is_last = question.left <= 1
        outlook = watch.look(surrogate, is_last=is_last) if gives_up else Outlook.OPEN
        if outlook is Outlook.SUSPICIOUS:
            rows = watch.probe()
        else:
            rows = run.rows_before_giving_up(outlook, is_last=is_last)
        if len(rows):
            yield rows
            continue
        if outlook is Outlook.OUT_OF_REACH and run.may_give_up(is_last=is_last):
            return "unreachable"
        proposal = run.propose_hit(surrogate)
        if proposal.exhausted:
            return "exhausted"
        # One row is left for the last look.
        yield run.tidy(proposal.points)[: max(1, question.left - gives_up)]
    return None


def _approach(run: _Run) -> PhaseRounds:
    """Look for nearer answers, and keep rows for taking back their changes."""
    question = run.question
    batch = run.settings.batch
    kept = TUNING.settle_share * question.budget
    while True:
        if question.left <= run.n_to_settle(kept) and not run.cannot_settle:
            yield from finish(question, question.left, batch=batch, worth=run.saving)
            kept = 0.0
        surrogate = run.fit()
        proposal = run.propose_nearer(surrogate)
        run.stopped = _approach_end(run, proposal)
        if run.stopped is not None:
            # Before the search ends, each feature is tried alone.
            rows = run.single_changes()[: max(question.left - int(kept), 0)]
            if not len(rows):
                return Phase.SETTLE
            yield rows
            continue
        points = run.tidy(proposal.points)
        if not kept and question.left <= n_to_settle(question.region, points).sum():
            return "budget"
        outputs = yield points
        run.accuracy.compare(surrogate, points, outputs)


def _approach_end(run: _Run, proposal: Proposal) -> Stopped | None:
    """Return why the phase APPROACH is about to end, if it is."""
    if proposal.exhausted:
        return "exhausted"
    if run.is_idle and run.accuracy.is_right():
        return "nothing nearer expected"
    return None


def _spread(run: _Run) -> PhaseRounds:
    """Look for as many different answers as are wanted; distance tells them apart."""
    question = run.question
    while len(run.record().leaders) < question.n:
        proposal = run.propose_nearer(run.fit())
        if proposal.exhausted:
            return "exhausted"
        if run.is_idle:
            return "nothing nearer expected"
        yield run.tidy(proposal.points)
    return "converged"


def _settle(run: _Run) -> PhaseRounds:
    """Take back the changes that are not needed, and end."""
    question = run.question
    batch = run.settings.batch
    yield from finish(question, question.left, batch=batch, worth=run.saving)
    assert run.stopped is not None  # set by the phase before
    return run.stopped


PHASES: dict[Phase, Callable[[_Run], PhaseRounds]] = {
    Phase.START: _start,
    Phase.REACH: _reach,
    Phase.APPROACH: _approach,
    Phase.SPREAD: _spread,
    Phase.SETTLE: _settle,
}


class _Accuracy:
    """How well the surrogate predicted the rows of the phase APPROACH."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._errors: list[float] = []  # in deviations
        self._failed_rows: list[Array] = []  # codes (d,) that were expected to hit
        self._failed_probabilities: list[float] = []

    def compare(self, surrogate: Surrogate, X: Array, y: Array) -> None:
        """Compare outputs `y` ``(k,)`` of codes `X` ``(k, d)`` with their predictions."""
        question = self.question
        mean, std = surrogate.predict(X)
        inside = log_probability_in(mean, std, question.surrogate_acceptance)
        failed = ~question.accepted(y)
        self._failed_rows.extend(X[failed])
        self._failed_probabilities.extend(np.exp(inside.value)[failed].tolist())
        scored = ~np.isnan(y)
        error = question.to_surrogate(y[scored]) - mean[scored]
        own = question.to_surrogate(np.array([question.output]))
        way = misses(question.surrogate_acceptance, own)
        least = TUNING.negligible_error * way
        self._errors.extend(np.abs(error / np.maximum(std[scored], least)).tolist())

    def failed_hits(self, surrogate: Surrogate) -> FailedHits | None:
        """Return the rows that were expected to hit and did not."""
        if not self._failed_rows:
            return None
        places = surrogate.coordinates(np.array(self._failed_rows))
        probabilities = np.array(self._failed_probabilities)
        return FailedHits(surrogate.coordinates, places, probabilities)

    def widening(self) -> float:
        """Return the factor, at least 1, by which deviations have been too small lately."""
        latest = np.minimum(self._errors[-TUNING.n_latest_errors :], TUNING.max_error)
        squares = TUNING.n_prior_errors + np.sum(latest**2)
        return max(1.0, float(np.sqrt(squares / (TUNING.n_prior_errors + len(latest)))))

    def is_right(self) -> bool:
        """Return whether all predictions were right and the model shows no steps."""
        is_tested = len(self._errors) >= TUNING.min_predictions
        if not is_tested or max(self._errors) >= TUNING.max_error:
            return False
        return not self._has_ties()

    def _has_ties(self) -> bool:
        """Return whether an output stays the same although a feature moves that has an effect."""
        question = self.question
        changed = question.region.changes(question.X)
        has_effect = (changed.sum(axis=1) == 1) & (question.y != question.output)
        effective = changed[has_effect].any(axis=0)
        _, group = np.unique(question.y, return_inverse=True)
        moved = np.unique(np.column_stack([group, question.X[:, effective]]), axis=0)
        return len(moved) > len(np.unique(group))


class _Run:
    """The state of one search, and the steps that its phases are made of."""

    def __init__(self, settings: BayesCFX, question: Question) -> None:
        self.settings = settings
        self.question = question
        self.accuracy = _Accuracy(question)
        self.stopped: Stopped | None = None  # why the phase APPROACH is about to end
        self._surrogate: Surrogate | None = None
        self._record: Record | None = None
        self._record_key = (0, 0)  # numbers of scored rows and requests it was made from
        self._n_hit_steps = 0
        self._n_idle = 0  # rounds in turn that promised nothing worth a model call
        self._n_few = min(TUNING.n_few, len(question.region.free))
        self._propose = partial(
            propose,
            region=question.region,
            rng=question.rng,
            k=settings.batch,
            avoid=question.known,
            effort="brief",
            deadline=time_limit.get(),
        )

    # ── surrogate and record ──

    def fit(self) -> Surrogate:
        """Fit the surrogate to the relevant evaluations."""
        question = self.question
        settings = self.settings.surrogate
        X, y = question.lessons(settings.points, self.borrowed_below)
        outputs = question.to_surrogate(y)
        self._surrogate = fit_surrogate(
            settings, question.region, X, outputs, self._surrogate, time_limit.get()
        )
        return self._surrogate

    def record(self) -> Record:
        """Return the costs to beat, updated when rows have been scored."""
        question = self.question
        key = (len(question.known), len(question.asked))
        if self._record is None or self._record_key != key:
            self._record = Record(question.region, self._hits_to_beat(), question.n)
            self._record_key = key
        return self._record

    def _hits_to_beat(self) -> Array:
        """Return rows ``(m, d)`` that reach the target: own ones, and others' that are nearer."""
        question = self.question
        is_hit = question.accepted(question.y)
        hits = question.X[is_hit]
        is_own = ~question.borrowed[is_hit]
        if is_own.sum() < question.n:
            return hits
        cost = question.region.cost(hits)
        last = np.partition(cost[is_own], question.n - 1)[question.n - 1]
        return np.asarray(hits[is_own | (cost < last)])

    @property
    def is_idle(self) -> bool:
        """Whether the last rounds promised nothing worth a model call."""
        return self._n_idle >= TUNING.n_idle_rounds

    # ── single changes ──

    @cached_property
    def _alone(self) -> Array:
        """The query with single features changed."""
        return start.single_changes(self.question.region)

    @cached_property
    def _few_values(self) -> Array:
        """The query with single features of few values changed."""
        return start.single_changes(self.question.region, 0.0)

    @property
    def n_starts(self) -> int:
        """The number of rows that are scored before the surrogate leads."""
        if self.settings.starts is not None:
            return self.settings.starts
        question = self.question
        if question.region.price.weight == 0.0:
            return TUNING.n_starts
        budget = question.whole_budget
        n = len(self._alone)
        if n <= TUNING.max_start_share * budget:
            return n
        in_groups = min(len(question.region.moving), budget // TUNING.start_one_in)
        return max(TUNING.n_starts, in_groups)

    @property
    def borrowed_below(self) -> float:
        """Up to which cost rows of other questions are learned from.

        Where nearness counts, up to that of the farthest answer so far: rows farther away tell of
        places where no answer is looked for, and make the surrogate's lengths those of the whole
        region.
        """
        question = self.question
        if question.region.price.weight == 0.0 or not question.reached:
            return np.inf
        record = self.record()
        return float(record.cost[record.leaders].max())

    @property
    def needs_borrowed_hit(self) -> bool:
        """Whether it is time to approach from a hit of another question, for want of an own one.

        That is when only the rows are left that every search keeps for taking back changes, if
        these are enough to try each change of that hit. Fewer rows do not make a near answer of a
        far one, and the search around the query continues: it is that of a separate call.
        """
        question = self.question
        kept = TUNING.settle_share * question.budget
        if not question.inside.leaves_out_borrowed or question.left > kept:
            return False
        hits = question.hits_of_call()
        n_changes = question.region.changes(hits).sum(axis=1)
        return bool((n_changes[question.region.cost(hits).argsort()[:1]] <= kept).any())

    @property
    def cannot_settle(self) -> bool:
        """Whether the best answer is another question's, with too many changes for the rows left.

        Then steps towards the query, which take back many changes at once, are worth more than one
        change at a time.
        """
        question = self.question
        best = question.best
        is_borrowed = bool(question.borrowed[best])
        return is_borrowed and bool(
            n_to_settle(question.region, question.X[[best]])[0] > question.left
        )

    def _untried(self, rows: Array) -> Array:
        """Return the rows ``(n, d)`` that are not scored, and nearer than the answers."""
        question = self.question
        if not self.settings.local:
            return rows[:0]
        if question.reached:
            rows = rows[question.region.cost(rows) < self.record().beat(rows)]
        return rows[~question.known.holds(rows)]

    def rows_before_giving_up(self, outlook: Outlook, *, is_last: bool) -> Array:
        """Return single changes to try in the second half of a search that is in doubt."""
        question = self.question
        is_early = question.spent < TUNING.min_share_to_give_up * question.budget
        if is_early or outlook is Outlook.OPEN:
            return self._alone[:0]
        rows = self._few_values
        if outlook is Outlook.OUT_OF_REACH and self.may_give_up(is_last=is_last) and not is_last:
            rows = self._alone
        return self._untried(rows)[: max(1, question.left // 2)]

    def may_give_up(self, *, is_last: bool) -> bool:
        """Return whether enough rows were spent on the best guess."""
        question = self.question
        if question.spent < TUNING.min_share_to_give_up * question.budget:
            return False
        return is_last or question.spent >= TUNING.min_rows_to_give_up

    def single_changes(self) -> Array:
        """Return the query with single features changed, where that has not been tried."""
        return self._untried(self._alone)

    # ── hit first ──

    def propose_hit(self, surrogate: Surrogate) -> Proposal:
        """Propose rows where the potential may rise most: EI-CFX."""
        question = self.question
        weight = question.weight
        if question.spent >= TUNING.cost_until * question.budget:
            weight = 0.0
        value = question.score(question.y) - weight * question.region.cost(question.X)
        best = float(value.max())
        candidates = self._next_candidates()
        if candidates is Candidates.FEW:
            return self._propose_few(surrogate, best, weight, question.X[np.argmax(value)])
        objective: Acquisition
        if candidates is Candidates.NEAR:
            objective = self._cost_improvement(surrogate, None)
        else:
            objective = self._potential_improvement(surrogate, best, weight)
        if candidates is Candidates.DATA:
            proposal = self._best_of(objective, start.data_rows(question))
            if len(proposal.points):
                return proposal
        starts = start.towards_target(question)
        return self._draw(objective, starts) or self._propose(objective, starts=starts)

    def _propose_few(
        self, surrogate: Surrogate, best: float, weight: float, centre: Array
    ) -> Proposal:
        """Propose rows with few changes of a `centre` ``(d,)``."""
        objective = self._potential_improvement(surrogate, best, weight, centre)
        starts = start.few_rows(self.question, centre, self._n_few)
        return self._draw(objective, starts) or self._propose(objective, starts=starts)

    def _next_candidates(self) -> Candidates:
        """Return where the next step looks."""
        question = self.question
        turn = self._n_hit_steps
        self._n_hit_steps += 1
        if not self.settings.local:
            return Candidates.GLOBAL
        if (
            question.region.price.weight > 0.0
            and question.spent < TUNING.near_until * question.whole_budget
        ):
            if turn % 2 == 0:
                return Candidates.NEAR
            turn //= 2
        return TUNING.steps[turn % len(TUNING.steps)]

    def _potential_improvement(
        self, surrogate: Surrogate, best: float, weight: float, centre: Array | None = None
    ) -> PotentialImprovement:
        """Return the objective EI-CFX, of all rows or of those near a `centre` ``(d,)``."""
        question = self.question
        miss = misses(question.acceptance, question.y)
        nearest = np.argsort(miss, kind="stable")[: TUNING.n_terrace_rows]
        terraces = Terraces(
            surrogate.coordinates,
            question.X[nearest],
            question.y[nearest],
            question.region.coarse,
        )
        return PotentialImprovement(
            surrogate,
            question.region,
            question.surrogate_potential,
            best,
            weight,
            terraces,
            centre,
            self._n_few,
        )

    # ── then nearer ──

    def propose_nearer(self, surrogate: Surrogate) -> Proposal:
        """Propose rows where the target may be reached at a lower cost."""
        question = self.question
        record = self.record()
        centres = record.X[np.argsort(record.cost, kind="stable")[: TUNING.n_centres]]
        objective = self._cost_improvement(surrogate, record, TUNING.min_saving)
        exchanged = exchange(question.region, record.answers)  # one change dropped, another moved
        rows = np.vstack([start.towards_query(question, centres), exchanged])
        proposal = self._draw(objective, rows)
        if proposal is None:
            proposal = self._propose(objective, starts=rows, effort="swift")
        if not proposal.exhausted:
            lowest = record.cost[record.leaders[0]]
            worth = np.log(TUNING.min_expected_saving * lowest + np.finfo(float).tiny)
            self._n_idle = 0 if proposal.values.max() > worth else self._n_idle + 1
        return proposal

    def n_to_settle(self, kept: float) -> float:
        """Return the number of rows to keep for taking back changes of the answers."""
        settling = float(n_to_settle(self.question.region, self.record().answers).sum())
        return min(max(kept, settling), TUNING.max_settle_share * self.question.budget)

    def saving(self, X: Array) -> Array:
        """Return the expected saving of rows ``(k, d)``, in logarithms."""
        return self._cost_improvement(self.fit(), self.record()).value(X)

    def _cost_improvement(
        self, surrogate: Surrogate, record: Record | None, margin: float = 0.0
    ) -> CostImprovement:
        """Return the objective near the query."""
        question = self.question
        return CostImprovement(
            surrogate,
            question.region,
            question.surrogate_acceptance,
            record,
            FlatBoxes(question.region, question.X, question.y, ~question.accepted(question.y)),
            self.accuracy.widening(),
            self.accuracy.failed_hits(surrogate),
            margin,
        )

    # ── proposals ──

    def _draw(self, objective: Acquisition, starts: Array) -> Proposal | None:
        """Return a large batch of rows, drawn without refining each; None for small batches."""
        question = self.question
        region = question.region
        batch = self.settings.batch
        if batch < TUNING.min_drawn_batch or region.size <= batch:
            return None
        n = max(TUNING.n_drawn, batch // TUNING.drawn_one_in)
        drawn = np.vstack([starts, sample(region, n, question.rng)])
        proposal = self._best_of(objective, drawn[region.contains(drawn)])
        return proposal if len(proposal.points) else None

    def _best_of(self, objective: Acquisition, rows: Array) -> Proposal:
        """Return the best rows ``(n, d)`` that are not scored, as many as a batch takes."""
        rows = sorted_rows(rows)
        rows = rows[~self.question.known.holds(rows)]
        value = objective.value(rows) if len(rows) else np.empty(0)
        order = np.argsort(-value, kind="stable")[: self.settings.batch]
        order = order[value[order] > -np.inf]
        return Proposal(rows[order], value[order])

    def tidy(self, X: Array) -> Array:
        """Return rows without trivial changes, where these are allowed and not scored."""
        region = self.question.region
        is_trivial = region.changes(X) & ~region.clear_changes(X)
        tidied = region.complete(np.where(is_trivial, region.query, X))
        is_better = ~self.question.known.holds(tidied) & region.contains(tidied)
        return np.where(is_better[:, None], tidied, X)
