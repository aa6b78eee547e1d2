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
from bayescfx.errors import SettingsError
from bayescfx.propose.proposal import Acquisition, Proposal, propose
from bayescfx.search.draws import fresh_rows
from bayescfx.search.objectives import Few, Gain, Nearer, Record, Terraces
from bayescfx.search.question import Ending, Question, Rounds, clear_changes, drive
from bayescfx.search.starting import (
    data_rows,
    few_rows,
    first_rows,
    towards_query,
    towards_target,
    walked_back,
)
from bayescfx.search.surrogate import Surrogate, SurrogateSettings, learn, relevant
from bayescfx.search.verdict import Watch
from bayescfx.space.sampling import sample

_EFFORT = 0.5  # share of the budget spent on the best guess before a search gives up
_FADE = 0.25  # share of the budget after which a miss matters more than the cost of moving
_FEW = 3  # features in which a row may differ from the best one in a step among few
_DATA = 1000  # data rows drawn for a step among them
_NEAR = 0.9  # of the peak: from here on, most steps are taken around the best row
# How steps take turns: while little is known, and later.
_EARLY, _LATE = ("global", "data"), ("data", "few", "data", "few", "global")
_RESERVE = 0.1  # share of the budget kept for walking back
_WIDE = 16  # batches from here on are drawn from candidates, without refining each
_WORTH = 1e-3  # expected saving, as a share of the cost, that is still worth a model call ...
_PATIENCE = 3  # ... and how many rounds without one end the search


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
        if self.batch < 1:
            raise SettingsError(f"`batch` must be at least 1; got {self.batch!r}.")
        if self.starts is not None and self.starts < 0:
            raise SettingsError(f"`starts` must be None or at least 0; got {self.starts!r}.")

    def run(self, question: Question) -> Ending:
        """Search alone; see :func:`explain` for the usual way."""
        return drive(self, question)

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        return _Run(self, question).rounds()


@dataclass
class _Run:
    """The state of one search: what is believed, and how the local steps fare."""

    settings: BayesCFX
    question: Question
    surrogate: Surrogate | None = None
    steps: int = 0
    idle: int = 0

    def rounds(self) -> Rounds:
        """Hit first, then nearer, then walk back."""
        question = self.question
        watch = Watch(question)
        if not (yield from self._begin()):
            return "exhausted"
        while True:
            if question.reached and question.weight == 0.0 and self._enough():
                return "converged"
            # Where distance costs nothing, it still tells answers apart.
            nearer = question.reached and (question.weight > 0.0 or question.n > 1)
            if nearer and question.account.left <= _RESERVE * question.account.budget:
                break
            surrogate = self._learn()
            if not question.reached:
                if self._gives_up(watch, surrogate):
                    return "unreachable"
                if len(elsewhere := watch.probe()):
                    yield elsewhere
                    continue
            found = self._nearer(surrogate) if nearer else self._hit(surrogate)
            if found.exhausted:
                return "exhausted"
            if nearer and self._idle(found):
                break
            yield _tidied(question, found.points)
        yield from self._walk_back()
        return "nothing nearer expected"

    def _first(self) -> Array:
        question, n = self.question, self.settings.starts
        if n is None:
            n = len(question.region.free) if question.weight > 0.0 else 2
            n = min(n, max(2, question.account.budget // 4))
        known = len(question.X) - 1  # the query is always known
        return first_rows(question, n - known) if n > known else question.X[:0]

    def _begin(self) -> Generator[Array, Array, bool]:
        """Evaluate the start set, and more until some allowed row is known; return whether."""
        first = self._first()
        if len(first):
            yield first
        rows = fresh_rows(self.question)
        while not len(self.question.y):  # only faults so far, and the query breaks a rule
            batch = list(islice(rows, self.settings.batch))
            if not batch:
                return False
            yield np.array(batch)
        return True

    def _gives_up(self, watch: Watch, surrogate: Surrogate) -> bool:
        """Whether the target looks out of reach, and the best guess has had its share."""
        account = self.question.account
        hopeless = self.settings.give_up and watch.out_of_reach(surrogate)
        return hopeless and account.spent >= _EFFORT * account.budget

    def _enough(self) -> bool:
        """Whether as many different answers as wanted are known."""
        n = self.question.n
        return n == 1 or len(self._record().leaders) >= n

    def _record(self) -> Record:
        question = self.question
        return Record(question.region, question.X[question.hits], question.n)

    def _learn(self) -> Surrogate:
        """Fit the surrogate to what is known, or to what matters of it."""
        question, settings = self.question, self.settings.surrogate
        known = question.account.evaluator
        X, y = known.X, known.y
        score = question.score(question.y)
        best = question.X[np.argsort(-score, kind="stable")[:4]]
        chosen = relevant(question.region, X, settings.points, best)
        outputs = question.to_surrogate(y[chosen])
        self.surrogate = learn(
            settings, question.region, X[chosen], outputs, self.surrogate, question.deadline
        )
        return self.surrogate

    def _propose(self, objective: Acquisition, starts: Array) -> Proposal:
        question, batch = self.question, self.settings.batch
        known = question.account.evaluator.known.codes
        if batch >= _WIDE and question.region.size > batch:
            drawn = _best_of(objective, question, starts, known, batch)
            if len(drawn.points):
                return drawn
        return propose(
            objective,
            question.region,
            question.rng,
            starts,
            k=batch,
            avoid=known,
            thorough=False,
            deadline=question.deadline,
        )

    def _hit(self, surrogate: Surrogate) -> Proposal:
        """Propose where the potential may rise most: EI-CFX."""
        question, region = self.question, self.question.region
        late = question.account.spent >= _FADE * question.account.budget
        weight = 0.0 if late else question.weight
        value = question.score(question.y) - weight * region.distance(question.X)
        best = float(value.max())
        objective = Gain(
            surrogate,
            region,
            question.surrogate_potential,
            best,
            weight,
            _terraces(question, surrogate),
        )
        step = self._turn(surrogate, best)
        if step == "data":
            known = question.account.evaluator.known.codes
            rows = data_rows(question, _DATA)
            found = _take(objective, rows, known, self.settings.batch)
            if len(found.points):
                return found
        if step == "few":
            centre, few = question.X[np.argmax(value)], min(_FEW, len(region.free))
            return self._propose(Few(objective, centre, few), few_rows(question, centre, few))
        return self._propose(objective, towards_target(question, value))

    def _turn(self, surrogate: Surrogate, best: float) -> str:
        """Return where the next step looks."""
        turns = (_LATE if surrogate.steps else _EARLY) if self.settings.local else ("global",)
        turn = turns[self.steps % len(turns)]
        self.steps += 1
        return "few" if turn == "data" and best > _NEAR and self.steps % 3 else turn

    def _nearer(self, surrogate: Surrogate) -> Proposal:
        """Propose where the target may be reached at a lower cost."""
        question = self.question
        record = self._record()
        objective = Nearer(surrogate, question.region, question.surrogate_acceptance, record)
        centres = record.X[np.argsort(record.cost, kind="stable")[:6]]
        return self._propose(objective, towards_query(question, centres))

    def _idle(self, found: Proposal) -> bool:
        """Whether nothing worth a model call has been expected for some rounds."""
        record = self._record()
        worth = np.log(_WORTH * record.cost[record.leaders[0]] + np.finfo(float).tiny)
        self.idle = 0 if found.values.max() > worth else self.idle + 1
        return self.idle >= _PATIENCE

    def _walk_back(self) -> Rounds:
        """Take back or shorten single changes, the most promising first, until none is left."""
        question = self.question
        region = question.region
        while question.account.left > 0:
            surrogate, record = self._learn(), self._record()
            trials = np.vstack([walked_back(region, record.X[i]) for i in record.leaders])
            objective = Nearer(surrogate, region, question.surrogate_acceptance, record)
            known = question.account.evaluator.known.codes
            found = _take(objective, trials, known, self.settings.batch)
            if not len(found.points):
                break
            yield found.points
        return "nothing nearer expected"


def _tidied(question: Question, X: Array) -> Array:
    """Return rows without trivial changes, where that is allowed and not known already."""
    region = question.region
    trivial = region.changes(X) & ~clear_changes(region, X)
    tidy = region.complete(np.where(trivial, region.query, X))
    new = not_among(tidy, question.account.evaluator.known.codes)
    return np.where((new & region.contains(tidy))[:, None], tidy, X)


def _terraces(question: Question, surrogate: Surrogate) -> Terraces:
    """Return where the model is known to be flat, or to jump over the target set."""
    region = question.region
    discrete = (region.step > 0.0) | region.categorical
    accepted = question.acceptance
    return Terraces.of(surrogate.coordinates, question.X, question.y, accepted, discrete)


def _best_of(
    objective: Acquisition, question: Question, starts: Array, known: Array, n: int
) -> Proposal:
    """Return the best `n` of candidates drawn, for large batches."""
    region, rng = question.region, question.rng
    drawn = np.vstack([starts, sample(region, max(64, n // 4), rng)])
    return _take(objective, drawn[region.contains(drawn)], known, n)


def _take(objective: Acquisition, rows: Array, known: Array, n: int) -> Proposal:
    """Return the best `n` of the rows not known yet."""
    rows = np.unique(rows + 0.0, axis=0)
    rows = rows[not_among(rows, known)]
    value = objective.value(rows) if len(rows) else np.empty(0)
    order = np.argsort(-value, kind="stable")[:n]
    order = order[value[order] > -np.inf]
    return Proposal(rows[order], value[order], exhausted=False)
