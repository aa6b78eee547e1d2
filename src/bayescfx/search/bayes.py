"""Bayes-CFX: Bayesian optimisation of a potential, with the surrogate on f (Section 3).

Two phases, "hit first, then nearer". Until a row reaches the target, log EI-CFX is maximised;
from then on, unless the cost of moving is switched off, the expected cost improvement inside the
target set. In the first phase global steps take turns with others: among the rows of the data,
where models take their extremes and surrogates can be trusted, and among rows that differ from the
best one in few features. At least every fifth step is global, so that the theorem "EI-CFX is
asymptotically consistent" keeps its premise for a subsequence of the steps.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from bayescfx.arrays import Array, not_among
from bayescfx.propose import Acquisition, Proposal, propose
from bayescfx.search import starting
from bayescfx.search.baselines import check_whole
from bayescfx.search.objectives import Gain, Nearer, Record, Terraces
from bayescfx.search.question import Question, Rounds, clear_changes
from bayescfx.search.surrogate import TRENDS, Surrogate, SurrogateSettings, surrogate_of
from bayescfx.search.verdict import Watch
from bayescfx.space.sampling import sample


@dataclass(frozen=True)
class BayesCFX:
    """Bayesian optimisation with EI-CFX: the surrogate models f, never rho∘f.

    Parameters
    ----------
    batch : int, default 1
        Rows proposed per round. More rows per model call, fewer rounds: for models that are dear
        per call and cheap per row.
    starts : int, optional
        Rows evaluated before the surrogate leads. By default two data rows, or where nearness
        counts one per free feature, but at most a quarter of the budget.
    local : bool, default True
        Whether steps among data rows, and around the best row, take turns with global ones; False
        is the paper.
    give_up : bool, default True
        Whether to end, after half the budget, when the surrogate holds the target out of reach;
        False spends the whole budget on the best guess.
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
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        run, watch, account = _Run(self, question), Watch(question), question.account
        if not (yield from run.begin()):
            return "exhausted"
        while True:
            reached = question.reached
            free = question.weight == 0.0
            if reached and free and len(run.record().leaders) >= question.n:
                return "converged"
            # A tenth of the budget is kept for walking back. Where distance costs nothing, it
            # still tells answers apart.
            nearer = reached and not (free and question.n == 1)
            if nearer and account.left <= 0.1 * account.budget:
                break
            surrogate = run.learn()
            if not reached:
                hopeless = self.give_up and watch.out_of_reach(surrogate)
                # Half of the budget is spent on the best guess before a search gives up.
                if hopeless and account.spent >= 0.5 * account.budget:
                    return "unreachable"
                if watch.pending is not None and len(elsewhere := watch.probe()):
                    yield elsewhere
                    continue
            found = run.nearer(surrogate) if nearer else run.hit(surrogate)
            if found.exhausted:
                return "exhausted"
            if nearer and run.idle >= 3:
                break
            yield run.tidied(found.points)
        yield from run.walk_back()
        return "nothing nearer expected"


@dataclass(eq=False)
class _Run:
    """The state of one search: what is believed, and how its steps fare."""

    settings: BayesCFX
    question: Question
    surrogate: Surrogate | None = None
    steps: int = 0  # of the first phase
    idle: int = 0  # rounds in turn that promised nothing worth a model call

    def begin(self) -> Generator[Array, Array, bool]:
        """Evaluate the start set, and more until some allowed row is known; return whether."""
        question, n = self.question, self.settings.starts
        if n is None:
            n = len(question.region.free) if question.weight > 0.0 else 2
            n = min(n, max(2, question.account.budget // 4))
        known = len(question.X) - 1  # the query is always known
        if n > known and len(first := starting.first_rows(question, n - known)):
            yield first
        if not len(question.y):  # only faults so far, and the query breaks a rule
            rows = starting.fresh_rows(question)
            while not len(question.y) and (batch := list(islice(rows, self.settings.batch))):
                yield np.array(batch)
        return len(question.y) > 0

    def learn(self) -> Surrogate:
        """Fit the surrogate to what is known, or to what matters of it."""
        settings, deadline = self.settings.surrogate, self.question.deadline
        self.surrogate = surrogate_of(self.question, settings, self.surrogate, deadline)
        return self.surrogate

    def record(self) -> Record:
        question = self.question
        return Record(question.region, question.X[question.hits], question.n)

    def hit(self, surrogate: Surrogate) -> Proposal:
        """Propose where the potential may rise most: EI-CFX."""
        question, region, account = self.question, self.question.region, self.question.account
        # From a quarter of the budget on, a miss matters more than the cost of moving.
        weight = 0.0 if account.spent >= 0.25 * account.budget else question.weight
        value = question.score(question.y) - weight * region.distance(question.X)
        best = float(value.max())
        turns: tuple[str, ...] = ("global",)
        if self.settings.local:
            late = ("data", "few", "data", "few", "global")
            turns = late if surrogate.rows >= TRENDS else ("global", "data")
        step = turns[self.steps % len(turns)]
        self.steps += 1
        if step == "data" and best > 0.9 and self.steps % 3:
            step = "few"  # near the peak most steps are taken around the best row
        discrete = region.coarse
        gain = Gain(
            surrogate,
            region,
            question.surrogate_potential,
            best,
            weight,
            Terraces(surrogate.coordinates, question.X, question.y, question.acceptance, discrete),
            centre=question.X[np.argmax(value)] if step == "few" else None,
            few=min(3, len(region.free)),
        )
        if step == "data":
            found = self._best_of(gain, starting.data_rows(question))
            if len(found.points):
                return found
        if gain.centre is not None:
            return self._propose(gain, starting.few_rows(question, gain.centre, gain.few))
        return self._propose(gain, starting.towards_target(question, value))

    def nearer(self, surrogate: Surrogate) -> Proposal:
        """Propose where the target may be reached at a lower cost."""
        question, record = self.question, self.record()
        objective = Nearer(surrogate, question.region, question.surrogate_acceptance, record)
        centres = record.X[np.argsort(record.cost, kind="stable")[:6]]
        found = self._propose(objective, starting.towards_query(question, centres))
        if not found.exhausted:
            # The expected saving that is still worth a model call.
            worth = np.log(1e-3 * record.cost[record.leaders[0]] + np.finfo(float).tiny)
            self.idle = 0 if found.values.max() > worth else self.idle + 1
        return found

    def _propose(self, objective: Acquisition, starts: Array) -> Proposal:
        """Return the best rows of the region; large batches are drawn, without refining each."""
        question, region, batch = self.question, self.question.region, self.settings.batch
        if batch >= 16 and region.size > batch:
            drawn = np.vstack([starts, sample(region, max(64, batch // 4), question.rng)])
            found = self._best_of(objective, drawn[region.contains(drawn)])
            if len(found.points):
                return found
        return propose(
            objective,
            region,
            question.rng,
            starts,
            k=batch,
            avoid=question.account.evaluator.known.codes,
            effort="brief",
            deadline=question.deadline,
        )

    def _best_of(self, objective: Acquisition, rows: Array) -> Proposal:
        """Return the best of the rows not known yet, as many as go into one batch."""
        rows = np.unique(rows + 0.0, axis=0)
        rows = rows[not_among(rows, self.question.account.evaluator.known.codes)]
        value = objective.value(rows) if len(rows) else np.empty(0)
        order = np.argsort(-value, kind="stable")[: self.settings.batch]
        order = order[value[order] > -np.inf]
        return Proposal(rows[order], value[order])

    def tidied(self, X: Array) -> Array:
        """Return rows without trivial changes, where that is allowed and not known already."""
        region = self.question.region
        trivial = region.changes(X) & ~clear_changes(region, X)
        tidy = region.complete(np.where(trivial, region.query, X))
        new = not_among(tidy, self.question.account.evaluator.known.codes)
        return np.where((new & region.contains(tidy))[:, None], tidy, X)

    def walk_back(self) -> Rounds:
        """Take back or shorten single changes, the most promising first, until none is left."""
        question, region = self.question, self.question.region
        while question.account.left > 0:
            surrogate, record = self.learn(), self.record()
            objective = Nearer(surrogate, region, question.surrogate_acceptance, record)
            found = self._best_of(objective, starting.walked_back(region, record.X[record.leaders]))
            if not len(found.points):
                break
            yield found.points
        return "nothing nearer expected"
