"""One question under search: a query, its target, its budget and the rows scored so far."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cached_property
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, firsts
from bayescfx.errors import InfeasibleError, TargetError
from bayescfx.evaluations.evaluator import Account, Evaluator, Stop
from bayescfx.evaluations.evaluator import Stopped as Stopped  # for searches
from bayescfx.evaluations.known import Known
from bayescfx.potentials import Intervals, LevelPotential, Linked, Logit, Target, contains
from bayescfx.potentials.potential import misses as misses  # for searches
from bayescfx.potentials.targets import as_target
from bayescfx.search.exact.prover import Proof, Prover, ScoredCodes
from bayescfx.search.learning import Nearby, relevant
from bayescfx.space.effort import clear_changes, effort
from bayescfx.space.region import Region
from bayescfx.space.sampling import background, background_rows, sample

#: Rows on which a potential of the user's own is checked.
_ROWS_FOR_OWN_POTENTIAL = 4

Rounds: TypeAlias = Generator[Array, Array, Stopped]


class Question(Account):
    """One query with its target, its budget and its scored rows, as a search sees it.

    A question exists before f(query) is known; `begin` turns its target into a potential.

    A surrogate may model the outputs on another scale (log-odds for a probability). The potential
    and the target set stay on the scale of the outputs and are mapped to that of the surrogate.

    Parameters
    ----------
    evaluator : Evaluator
        Scores codes.
    region : Region
        The rows that are allowed, and the query.
    budget : int
        The number of rows that may be sent to the model.
    rng : numpy.random.Generator
        The only source of randomness of the search.
    n : int, default 1
        The number of counterfactuals wanted.
    tolerance : float, default 0.05
        The share of the wanted change that may be missed.
    position : int, default 0
        The position of the query among all queries of the call.
    name : str, optional
        How messages refer to the query where there are several.

    Attributes
    ----------
    known : Known
        Every scored row, including failed rows and the rows of other questions.
    inside : Nearby
        The scored rows inside the region that the search looks at.
    alike : Nearby
        The scored rows that a surrogate is fitted to.
    output : float
        f(query).
    target : Target
        The target.
    wanted : Intervals
        The outputs asked for, without any tolerance.
    acceptance : Intervals
        Outputs that count as reached.
    surrogate_acceptance : Intervals
        The same on the surrogate's scale; ends at 0 and 1 become infinite.
    potential, surrogate_potential : LevelPotential
        The potential of the outputs, and the same as a function of what the surrogate models.
    already_met : bool
        Whether the query itself is an allowed row that reaches the target. Such a question is not
        searched for and has no potential.
    ran : list of str
        The methods that ran, where the method chooses between several.
    stopped : str or None
        Why the search has stopped; None while it runs.
    prover : Prover or None
        The model as it was read; without it nothing is proven.
    proof_work : float
        The most work of a proof; see `search.exact.branching.Work`.
    proof_seconds : float
        The most seconds of a proof.
    proof : Proof
        What is proven about the best answer.
    on_bound : callable or None
        Receives the proven lower bound now and then while a proof runs.
    proven_rows : list of ScoredCodes
        The best row and, if several answers are wanted, the best ones of other sets of features.
    error : InfeasibleError or None
        Why there is no allowed row, if that is recorded.
    """

    output: float
    target: Target
    wanted: Intervals
    acceptance: Intervals
    surrogate_acceptance: Intervals
    potential: LevelPotential
    surrogate_potential: LevelPotential

    def __init__(
        self,
        evaluator: Evaluator,
        region: Region,
        budget: int,
        rng: np.random.Generator,
        *,
        n: int = 1,
        tolerance: float = 0.05,
        position: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(evaluator, region, budget)
        self.rng = rng
        self.n = n
        self.tolerance = tolerance
        self.position = position
        self.name = name
        self.prover: Prover | None = None
        self.proof_work = np.inf
        self.proof_seconds = np.inf
        self.proof = Proof()
        self.proven_rows: list[ScoredCodes] = []
        self.on_bound: Callable[[float], object] | None = None
        self.known: Known = evaluator.known
        self.inside = Nearby(self)
        self.alike = Nearby(self)
        self.already_met = False
        self.ran: list[str] = []
        self.stopped: Stopped | None = None
        self.error: InfeasibleError | None = None
        self._link = None if evaluator.model.link is None else Logit()

    def begin(self, target: object, output: float) -> None:
        """Turn what the user stated as the target into a potential, given f(query).

        A potential of the user's own is checked on the outputs of a few rows. A question whose
        target is the query's own output counts as met.
        """
        outputs = [output]
        if hasattr(target, "value") and hasattr(target, "slope"):
            outputs += self._some_outputs()
        self.output = output
        self.target = as_target(target, outputs)
        self.acceptance = self.target.acceptance(output, self.tolerance)
        self.surrogate_acceptance = self.acceptance
        self.wanted = self.target.wanted(output)
        is_accepted = bool(self.accepted(np.array([output]))[0])
        # A query that reaches the target by breaking a rule is searched for.
        self.already_met = is_accepted and bool(self.region.contains(self.region.query[None])[0])
        if not self.already_met:
            self._set_potentials(is_accepted)

    def _set_potentials(self, is_accepted: bool) -> None:
        """Set the potential and what the surrogate sees of the target.

        `is_accepted` says whether the query's own output reaches the target.
        """
        try:
            self.potential = self.target.potential(self.output)
        except TargetError:
            if not is_accepted:
                raise
            self.already_met = True  # no other row has this output for certain
            return
        self.surrogate_potential = self.potential
        if self._link is not None:
            self.surrogate_potential = Linked(self.potential, self._link)
            self.surrogate_acceptance = self._link.intervals(self.acceptance)

    def _some_outputs(self) -> list[float]:
        """Return outputs of a few rows, if the budget allows."""
        rows = background_rows(self.region, _ROWS_FOR_OWN_POTENTIAL, self.rng)
        if self.left <= len(rows):
            return []
        try:
            y = self.evaluate(rows)
        except Stop as stop:  # skipped faults used up the budget
            y = stop.y
        return [output for output in y.tolist() if not np.isnan(output)]

    def to_surrogate(self, y: Array) -> Array:
        """Return outputs ``(n,)`` on the surrogate's scale; always finite for finite outputs."""
        return y if self._link is None else self._link.forward(y)

    def accepted(self, y: Array) -> Mask:
        """Return which outputs ``(n,)`` reach the target; a fault does not."""
        return contains(self.acceptance, y)

    def score(self, y: Array) -> Array:
        """Return the potential of outputs ``(n,)`` relative to its peak, 0 to 1; 0 for a fault."""
        fault = np.isnan(y)
        if self.already_met:
            return np.where(fault, 0.0, 1.0)
        share = self.potential.value(np.where(fault, self.output, y)) / self.potential.peak
        return np.where(fault, 0.0, np.clip(share, 0.0, 1.0))

    @property
    def X(self) -> Array:
        """Codes ``(n, d)`` of what matters of all known in the region, not to be written to."""
        return self.known.take(self.inside.places(self.region.contains, self._best))[0]

    @property
    def y(self) -> Array:
        """Outputs ``(n,)`` of the rows of `X`."""
        return self.known.take(self.inside.places(self.region.contains, self._best))[1]

    @property
    def hits(self) -> Mask:
        """Which rows of `X` reach the target."""
        return self.accepted(self.y)

    @property
    def reached(self) -> bool:
        """Whether any row of `X` reaches the target."""
        return bool(self.accepted(self.y).any())

    @property
    def best(self) -> int:
        """Position in `X` of the cheapest row that reaches the target, or of the nearest to it."""
        return int(best_first(self, self.X, self.y)[0])

    def _best(self, X: Array, y: Array, most: int) -> Indices:
        """Return which rows may be answers or lead to one: the best, and those near the query.

        Also the best of each set of changed features, and ends of what was seen.
        """
        cost, hit = effort(self.region, X), self.accepted(y)
        some = np.arange(len(y))
        if len(y) > 16 * most:  # of many rows, those that may be among the best
            nearness = 1e-9 / (1.0 + misses(self.acceptance, y))  # tells scores of 0 apart
            worth = np.where(hit, 1.0 + 1.0 / (1.0 + cost), self.score(y) + nearness)
            some = np.sort(np.argpartition(-worth, 16 * most)[: 16 * most])
        order = some[best_first(self, X[some], y[some])]
        changed = clear_changes(self.region, X[order])
        first = firsts(changed)[: most // 4]
        near = np.argpartition(cost, most // 4)[: most // 4]
        kept = [order[: most // 2], order[first], near]
        for low, high in ((y.min(), y.max()), *self.acceptance):
            outer = np.where(y <= low, y, -np.inf).argmax(), np.where(y >= high, y, np.inf).argmin()
            kept.append(np.array(outer))
        return np.unique(np.concatenate(kept))

    def _relevant(self, X: Array, y: Array, most: int, near: int | None = None) -> Indices:
        """Return which rows ``(n, d)`` tell most of the model where answers may be."""
        best = best_first(self, self.X, self.y)[:4]
        return relevant(self.region, X, most, self.X[best], near)

    def lessons(self, most: int | None = None, *, everywhere: bool = False) -> tuple[Array, Array]:
        """Return codes and outputs that a surrogate learns from, at most so many, own ones first.

        What a search forgot, it would try again. Where answers may be, or `everywhere`. Other
        questions' rows too, unless other cells are missing: a gap tells nothing.
        """
        X, y = self.known.take(self.alike.places(self.region.same_missing, self._relevant))
        if most is None or len(X) <= most:
            return X, y
        if everywhere:
            chosen = self._relevant(X, y, most)
            return X[chosen], y[chosen]
        own = self.alike.own
        mine, others = np.flatnonzero(own), np.flatnonzero(~own)
        room = max(most // 2, most - len(others))
        mine = mine[self._relevant(X[mine], y[mine], room, near=room)]
        others = others[self._relevant(X[others], y[others], most - len(mine))]
        chosen = np.union1d(mine, others)
        return X[chosen], y[chosen]

    @cached_property
    def weight(self) -> float:
        """What a unit of distance costs, as a share of the potential's peak.

        The user's weight is the cost of a typical move: to a row of the data, or to a random one.
        """
        weight = self.region.cost.weight
        if weight <= 0.0:
            return 0.0
        rows = background(self.region, self.region.data[:256])[:64]
        if len(rows) < 64:  # most data rows do not fit
            rows = background(self.region)[:64]
        if not len(rows):
            rows = sample(self.region, 64, np.random.default_rng(0))
        typical = float(np.median(self.region.distance(rows)))
        return weight / typical if typical > 0.0 else weight


@runtime_checkable
class RoundSearch(Protocol):
    """A way to spend a budget of model calls that takes turns with other questions' searches."""

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        ...


class LoneSearch(Protocol):
    """A way to spend a budget of model calls on a single question."""

    def run(self, question: Question) -> Stopped:
        """Evaluate rows with ``question.evaluate`` until done; `Stop` may end it at any call."""
        ...


Search: TypeAlias = RoundSearch | LoneSearch


def best_first(question: Question, X: Array, y: Array) -> Indices:
    """Return an order of rows: hits by cost, then others by potential, miss of the target, cost."""
    hit = question.accepted(y)
    cost = effort(question.region, X)
    worth = np.where(hit, 0.0, question.score(y))
    miss = np.where(hit, 0.0, misses(question.acceptance, y))
    return np.lexsort((cost, miss, -worth, ~hit))
