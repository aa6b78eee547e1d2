"""One question under search: a query, its target, its budget and the rows scored so far."""

from __future__ import annotations

from collections.abc import Generator
from functools import cached_property
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, firsts
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import InfeasibleError
from bayescfx.evaluations.evaluator import Account, Stopped
from bayescfx.evaluations.evaluator import Ending as Ending  # for searches
from bayescfx.evaluations.known import Known
from bayescfx.potentials import Intervals, LevelPotential, Linked, Logit, Target, contains
from bayescfx.search.learning import Nearby, relevant
from bayescfx.space.effort import clear_changes, effort
from bayescfx.space.region import Region
from bayescfx.space.sampling import background, sample

Rounds: TypeAlias = Generator[Array, Array, Ending]


class Question:
    """One query with its target, as a search sees it.

    A surrogate may model the outputs on another scale (log-odds for a probability). The potential
    and the target set stay on the scale of the outputs and are mapped to that of the surrogate.

    Parameters
    ----------
    account : Account
        Scores codes, counts them against the budget and holds the region of the query.
    output : float
        f(query).
    target : Target
        The target as the user stated it.
    rng : numpy.random.Generator
        The only source of randomness of the search.
    deadline : Deadline, optional
        The moment at which fitting and proposing stop.
    n : int, default 1
        The number of counterfactuals wanted.
    tolerance : float, default 0.05
        The share of the wanted change that may be missed.
    already_met : bool, default False
        Whether the query itself is an allowed row that reaches the target. Such a question is not
        searched for and has no potential.

    Attributes
    ----------
    position : int
        The position of the query among all queries of the call.
    name : str or None
        How messages refer to the query where there are several.
    records_error : bool
        Whether a search without an allowed row records its error and ends; else it raises it.
    error : InfeasibleError or None
        The recorded error.
    region : Region
        The rows that are allowed.
    known : Known
        Every scored row, including failed rows and the rows of other questions.
    inside : Nearby
        The scored rows inside the region that the search looks at.
    alike : Nearby
        The scored rows that a surrogate is fitted to.
    acceptance : Intervals
        Outputs that count as reached.
    surrogate_acceptance : Intervals
        The same on the surrogate's scale; ends at 0 and 1 become infinite.
    ran : list of str
        The methods that ran, where the method chooses between several.
    ending : str or None
        Why the search ended; None while it runs.
    """

    def __init__(
        self,
        account: Account,
        output: float,
        target: Target,
        rng: np.random.Generator,
        deadline: Deadline = NEVER,
        n: int = 1,
        tolerance: float = 0.05,
        *,
        already_met: bool = False,
    ) -> None:
        self.account = account
        self.output = output
        self.target = target
        self.rng = rng
        self.deadline = deadline
        self.n = n
        self.tolerance = tolerance
        self.position = 0
        self.name: str | None = None
        self.records_error = False
        self.error: InfeasibleError | None = None
        self.already_met = already_met
        self.ran: list[str] = []
        self.ending: Stopped | None = None
        self.region: Region = account.region
        self.known: Known = account.evaluator.known
        self.inside = Nearby(account)
        self.alike = Nearby(account)
        self.acceptance: Intervals = target.acceptance(output, tolerance)
        self.surrogate_acceptance: Intervals = self.acceptance
        self._link: Logit | None = None
        self._potential: LevelPotential | None = None
        self._surrogate_potential: LevelPotential | None = None
        if already_met:
            return
        potential = target.potential(output)
        self._potential = potential
        self._surrogate_potential = potential
        if account.evaluator.model.link is not None:
            self._link = Logit()
            self._surrogate_potential = Linked(potential, self._link)
            self.surrogate_acceptance = self._link.intervals(self.acceptance)

    @property
    def potential(self) -> LevelPotential:
        """The potential of the outputs."""
        if self._potential is None:
            raise ValueError("a question that is already met has no potential")
        return self._potential

    @property
    def surrogate_potential(self) -> LevelPotential:
        """The potential as a function of what the surrogate models."""
        if self._surrogate_potential is None:
            raise ValueError("a question that is already met has no potential")
        return self._surrogate_potential

    @property
    def budget(self) -> int:
        """The number of rows that may be sent to the model for this question."""
        return self.account.budget

    @property
    def spent(self) -> int:
        """The number of rows sent to the model for this question so far."""
        return self.account.spent

    @property
    def left(self) -> int:
        """The number of rows that may still be sent."""
        return self.account.left

    def evaluate(self, X: Array) -> Array:
        """Return outputs ``(n,)`` of codes ``(n, d)``; raise `Stop` if some can't be had."""
        return self.account.evaluate(X)

    def to_surrogate(self, y: Array) -> Array:
        """Return outputs ``(n,)`` on the surrogate's scale; always finite for finite outputs."""
        return y if self._link is None else self._link.forward(y)

    @cached_property
    def wanted(self) -> Intervals:
        """The outputs asked for, without any tolerance."""
        return self.target.wanted(self.output)

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
        return bool(self.hits.any())

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

    def run(self, question: Question) -> Ending:
        """Evaluate rows through ``question.account`` until done; `Stop` may end it at any call."""
        ...


Search: TypeAlias = RoundSearch | LoneSearch


def best_first(question: Question, X: Array, y: Array) -> Indices:
    """Return an order of rows: hits by cost, then others by potential, miss of the target, cost."""
    hit = question.accepted(y)
    cost = effort(question.region, X)
    worth = np.where(hit, 0.0, question.score(y))
    miss = np.where(hit, 0.0, misses(question.acceptance, y))
    return np.lexsort((cost, miss, -worth, ~hit))


def misses(acceptance: Intervals, y: Array) -> Array:
    """Return how far outputs ``(n,)`` are from the nearest accepted one; infinite without any."""
    found = np.full(len(y), np.inf)
    for low, high in acceptance:
        found = np.minimum(found, np.maximum(np.maximum(low - y, y - high), 0.0))
    return found
