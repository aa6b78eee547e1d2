"""Bayes-CFX: Bayesian optimisation of a potential, with the surrogate on f (Section 3).

Two phases, "hit first, then nearer". Until a row reaches the target, log EI-CFX is maximised;
from then on, unless the cost of moving is switched off, the expected cost improvement inside the
target set. In the first phase global steps take turns with others: near the query where nearness
counts, among the rows of the data, where models take their extremes and surrogates can be trusted,
and among rows that differ from the best one in few features. At least every tenth step is global,
so that the theorem "EI-CFX is asymptotically consistent" keeps its premise for a subsequence of
the steps. Nothing is concluded before each feature has been tried alone near the query, and the
answers change nothing in vain (:mod:`bayescfx.search.shorten`).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice

import numpy as np

from bayescfx.acquisition import log_probability_in
from bayescfx.arrays import Array
from bayescfx.checks import check_whole
from bayescfx.propose import Acquisition, Effort, Proposal, propose
from bayescfx.search import start as starting
from bayescfx.search.learning import surrogate_for
from bayescfx.search.objectives import Flats, Gain, Letdowns, Nearer, Record, Terraces
from bayescfx.search.question import Ending, Question, Rounds, misses
from bayescfx.search.shorten import exchanged, shorten, to_settle
from bayescfx.search.verdict import Watch
from bayescfx.space.effort import clear_changes, effort
from bayescfx.space.sampling import sample
from bayescfx.surrogate import fit
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings


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
        counts each feature alone, a step to either side or all of few values, where two fifths of
        the budget allow it, or else one step of each, in groups if a quarter of it is less.
    local : bool, default True
        Whether steps among data rows, and around the best row, take turns with global ones; False
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
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        run = _Run(self, question)
        if not (yield from run.begin()):
            return "exhausted"
        ending = yield from run.reach()
        if ending is not None:
            return ending
        if question.weight > 0.0:
            return (yield from run.come_nearer())
        # Where distance costs nothing, it still tells answers apart.
        while len(run.record().leaders) < question.n:
            found = run.nearer(run.learn())
            if found.exhausted:
                return "exhausted"
            if run.idle >= 3:
                return "nothing nearer expected"
            yield run.tidied(found.points)
        return "converged"


@dataclass(eq=False)
class _Run:
    """The state of one search: what is believed, and how its steps fare."""

    settings: BayesCFX
    question: Question
    surrogate: Surrogate | None = None
    steps: int = 0  # of the first phase
    idle: int = 0  # rounds in turn that promised nothing worth a model call
    # How far features are moved alone, as shares of the way to the best answer, each once: when
    # nothing is promised, and before the search ends.
    reaches: list[float] = field(default_factory=[0.5, 0.25, 0.125].copy)
    last_reaches: list[float] = field(default_factory=[0.9].copy)
    # Of the second phase: errors of the surrogate in deviations, hits expected in vain.
    surprises: list[float] = field(default_factory=list)
    vain: list[tuple[Array, float]] = field(default_factory=list)
    exchanges: dict[bytes, Array] = field(default_factory=dict)  # of each row that led
    _record: tuple[tuple[int, int], Record] | None = None

    def begin(self) -> Generator[Array, Array, bool]:
        """Evaluate the start set, and more until some allowed row is known; return whether."""
        question, n = self.question, self.settings.starts
        if n is None:
            n = 2
            if question.weight > 0.0:
                n, budget = len(self.alone), question.account.budget
                if n > 0.4 * budget:
                    n = max(2, min(len(question.region.moving), budget // 4))
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
        self.surrogate = surrogate_for(self.question, self.settings.surrogate, self.surrogate)
        return self.surrogate

    def record(self) -> Record:
        """Return the costs to beat, made anew when rows have come."""
        question, account = self.question, self.question.account
        when = len(question.known), len(account.asked)
        if self._record is None or self._record[0] != when:
            hits = question.X[question.hits]
            self._record = when, Record(question.region, hits, question.n)
        return self._record[1]

    @cached_property
    def alone(self) -> Array:
        """The query with single features moved."""
        return starting.alone(self.question.region)

    @cached_property
    def few(self) -> Array:
        """Those of features with few values."""
        return starting.alone(self.question.region, 0.0)

    def untried(self, rows: Array) -> Array:
        """Return which rows ``(n, d)`` are not known, and nearer than what is."""
        question = self.question
        if not self.settings.local:
            return rows[:0]
        if question.reached:
            rows = rows[effort(question.region, rows) < self.record().beat(rows)]
        return rows[~question.known.holds(rows)]

    def closer(self, reaches: list[float]) -> Array:
        """Return single features moved by less than the best answer, by the next share of it."""
        region, rows = self.question.region, self.alone[:0]
        farthest = float(region.distance(self.record().answers[:1])[0])
        while not len(rows) and reaches:
            rows = self.untried(starting.alone(region, farthest * reaches.pop(0)))
        return rows

    def right(self, surrogate: Surrogate) -> bool:
        """Return whether the surrogate was right so far, and the model shows no steps."""
        steps = surrogate.process.hyperparameters.steps
        if len(self.surprises) < 2 or max(self.surprises) >= 3.0 or steps >= 0.02:
            return False
        # The same output although a feature has moved that matters elsewhere is a step too.
        question, X = self.question, self.question.X
        changed = question.region.changes(X)
        effective = (changed.sum(axis=1) == 1) & (question.y != question.output)
        matters = changed[effective].any(axis=0)
        _, group = np.unique(question.y, return_inverse=True)
        moved = np.unique(np.column_stack([group, X[:, matters]]), axis=0)
        return len(moved) == len(np.unique(group))

    def objective(self, surrogate: Surrogate, record: Record | None, margin: float = 0.0) -> Nearer:
        """Return what is to be maximised near the query."""
        question, region = self.question, self.question.region
        letdowns = None
        if self.vain:
            codes, chance = zip(*self.vain, strict=True)
            places = surrogate.coordinates(np.array(codes))
            letdowns = Letdowns(surrogate.coordinates, places, np.array(chance))
        # By what factor deviations have been too small lately, as if four had been right before.
        recent = np.minimum(self.surprises[-12:], 3.0)
        doubt = max(1.0, float(np.sqrt((4.0 + np.sum(recent**2)) / (4.0 + len(recent)))))
        flats = Flats(region, question.X, question.y, ~question.hits)
        accepted = question.surrogate_acceptance
        return Nearer(surrogate, region, accepted, record, flats, doubt, letdowns, margin)

    def compare(self, surrogate: Surrogate, X: Array, y: Array) -> None:
        """Keep in mind how outputs `y` ``(k,)`` of codes `X` differ from what was expected."""
        question = self.question
        mean, std = surrogate.predict(X)
        chance = np.exp(log_probability_in(mean, std, question.surrogate_acceptance).value)
        vain = ~question.accepted(y)
        self.vain += zip(X[vain], chance[vain].tolist(), strict=True)
        scored = ~np.isnan(y)
        error = question.to_surrogate(y[scored]) - mean[scored]
        # A hundredth of the way to the target is no surprise, however sure the surrogate was.
        own = question.to_surrogate(np.array([question.output]))
        way = misses(question.surrogate_acceptance, own)
        self.surprises += np.abs(error / np.maximum(std[scored], 0.01 * way)).tolist()

    def reach(self) -> Generator[Array, Array, Ending | None]:
        """Look for a row that reaches the target; return why there is none, or nothing."""
        question, account = self.question, self.question.account
        watch = Watch(question)
        while not question.reached:
            surrogate, last = self.learn(), account.left <= 1
            hopeless = self.settings.give_up and watch.out_of_reach(surrogate, last=last)
            # Forty rows and half of the budget are spent on the best guess before it gives up.
            hopeless &= last or account.spent >= 40
            if account.spent >= 0.5 * account.budget:
                rows = self.alone if hopeless and not last else self.few
                if not (hopeless or watch.doubtful):
                    rows = rows[:0]
                if len(rows := self.untried(rows)[: max(1, account.left // 2)]):
                    yield rows
                    continue
                if hopeless:
                    return "unreachable"
            if watch.pending is not None and len(elsewhere := watch.probe()):
                yield elsewhere
                continue
            found = self.hit(surrogate)
            if found.exhausted:
                return "exhausted"
            # One row is left for the last look.
            yield self.tidied(found.points)[: max(1, account.left - self.settings.give_up)]
        return None

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
            turns = late if surrogate.n_rows >= fit.TUNING.min_step_rows else ("global", "data")
        turn = self.steps
        self.steps += 1
        # Half of the budget is spent near the query in every other step; then a hit matters more.
        if question.weight > 0.0 and self.settings.local and account.left > 0.5 * account.budget:
            if turn % 2 == 0:
                near = self.objective(surrogate, None)
                return self._propose(near, starting.towards_target(question, value))
            turn //= 2
        step = turns[turn % len(turns)]
        if step == "data" and best > 0.9 and self.steps % 3:
            step = "few"  # near the peak most steps are taken around the best row
        X, y, rho = question.X, question.y, question.surrogate_potential
        some = np.argsort(misses(question.acceptance, y), kind="stable")[:400]  # to the target
        terraces = Terraces(
            surrogate.coordinates, X[some], y[some], question.acceptance, region.coarse
        )
        centre, few = X[np.argmax(value)] if step == "few" else None, min(3, len(region.free))
        gain = Gain(surrogate, region, rho, best, weight, terraces, centre, few)
        if step == "data":
            found = self._best_of(gain, starting.data_rows(question))
            if len(found.points):
                return found
        if centre is not None:
            return self._propose(gain, starting.few_rows(question, centre, few))
        return self._propose(gain, starting.towards_target(question, value))

    def come_nearer(self) -> Rounds:
        """Look for nearer answers, and for changes that are not needed with what is kept for it."""
        question, account = self.question, self.question.account
        kept, region = 0.1 * account.budget, question.region
        walk_back = partial(shorten, question, batch=self.settings.batch, worth=self.worth)
        while True:
            settling = to_settle(region, self.record().answers).sum()
            if account.left <= min(max(kept, settling), 0.5 * account.budget):
                yield from walk_back(account.left)
                kept = 0.0
            surrogate = self.learn()
            found = self.nearer(surrogate)
            idle = self.idle >= 3
            sure = idle and self.right(surrogate)
            if sure or found.exhausted:
                rows = self.untried(self.alone)
                if not len(rows):
                    rows = self.closer(self.last_reaches)
            elif account.spent > 0.6 * account.budget:
                rows = self.untried(self.few)
            else:
                rows = self.closer(self.reaches) if idle else self.alone[:0]
            if len(rows := rows[: max(account.left - int(kept), 0)]):
                yield rows
                continue
            if found.exhausted or sure:
                yield from walk_back(account.left)
                return "exhausted" if found.exhausted else "nothing nearer expected"
            points = self.tidied(found.points)
            if not kept and account.left <= to_settle(region, points).sum():
                return "budget"
            self.compare(surrogate, points, (yield points))

    def nearer(self, surrogate: Surrogate) -> Proposal:
        """Propose where the target may be reached at a lower cost."""
        question = self.question
        record = self.record()
        centres = record.X[np.argsort(record.cost, kind="stable")[:6]]
        objective = self.objective(surrogate, record, 0.02)
        starts = [starting.towards_query(question, centres)]
        for row in centres[:2]:
            if (key := row.tobytes()) not in self.exchanges:
                self.exchanges[key] = exchanged(question.region, row[None])
            starts.append(self.exchanges[key])
        found = self._propose(objective, np.vstack(starts), "swift")
        if not found.exhausted:
            # The expected saving that is still worth a model call.
            worth = np.log(1e-3 * record.cost[record.leaders[0]] + np.finfo(float).tiny)
            self.idle = 0 if found.values.max() > worth else self.idle + 1
        return found

    def worth(self, X: Array) -> Array:
        """Return how promising rows ``(k, d)`` are that come nearer than what is known."""
        return self.objective(self.learn(), self.record()).value(X)

    def _propose(self, objective: Acquisition, starts: Array, how: Effort = "brief") -> Proposal:
        """Return the best rows of the region; large batches are drawn, without refining each."""
        question, region, batch = self.question, self.question.region, self.settings.batch
        if batch >= 16 and region.size > batch:
            drawn = np.vstack([starts, sample(region, max(64, batch // 4), question.rng)])
            found = self._best_of(objective, drawn[region.contains(drawn)])
            if len(found.points):
                return found
        rng, known, deadline = question.rng, question.known, question.deadline
        return propose(
            objective, region, rng, starts, k=batch, avoid=known, effort=how, deadline=deadline
        )

    def _best_of(self, objective: Acquisition, rows: Array) -> Proposal:
        """Return the best of the rows not known yet, as many as go into one batch."""
        rows = np.unique(rows + 0.0, axis=0)
        rows = rows[~self.question.known.holds(rows)]
        value = objective.value(rows) if len(rows) else np.empty(0)
        order = np.argsort(-value, kind="stable")[: self.settings.batch]
        order = order[value[order] > -np.inf]
        return Proposal(rows[order], value[order])

    def tidied(self, X: Array) -> Array:
        """Return rows without trivial changes, where that is allowed and not known already."""
        region = self.question.region
        trivial = region.changes(X) & ~clear_changes(region, X)
        tidy = region.complete(np.where(trivial, region.query, X))
        better = ~self.question.known.holds(tidy) & region.contains(tidy)
        return np.where(better[:, None], tidy, X)
