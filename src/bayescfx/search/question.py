"""One question under search: the problem, what is known, and what may still be spent."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, firsts
from bayescfx.deadline import NEVER, Deadline
from bayescfx.evaluations.evaluator import Account
from bayescfx.evaluations.evaluator import Ending as Ending  # for searches
from bayescfx.evaluations.known import Known
from bayescfx.potentials import Intervals, LevelPotential, Linked, Logit, Target, contains
from bayescfx.search.learning import Nearby, relevant
from bayescfx.space.effort import clear_changes, effort
from bayescfx.space.region import Region
from bayescfx.space.sampling import background, sample

Rounds: TypeAlias = Generator[Array, Array, Ending]


@dataclass(frozen=True, eq=False)
class Question:
    """What a search works on: a query seen through its region, and what is wanted of f.

    A surrogate may see outputs on another scale (log-odds for a probability); potential and target
    set stay on the output itself, and are only carried over.
    """

    account: Account  # evaluates codes, knows what was evaluated, counts
    output: float  # f(query)
    target: Target  # the wish as it was said
    rng: np.random.Generator  # the only source of randomness
    deadline: Deadline = NEVER  # reaches into fitting and proposing
    n: int = 1  # how many answers are wanted
    tolerance: float = 0.05  # how much of the wanted change may be missed
    ran: list[str] = field(default_factory=list)  # which methods ran, where the method chooses
    region: Region = field(init=False)  # where the search may look
    known: Known = field(init=False)  # everything evaluated, faults and other questions' rows too
    inside: Nearby = field(init=False)  # what matters of it in the region
    alike: Nearby = field(init=False)  # what a surrogate learns from
    potential: LevelPotential = field(init=False)
    acceptance: Intervals = field(init=False)  # outputs that count as reached
    surrogate_potential: LevelPotential = field(init=False)  # of what the surrogate models
    surrogate_acceptance: Intervals = field(init=False)  # ends at 0 and 1 become infinite
    _link: Logit | None = field(init=False)  # from outputs to the surrogate's scale

    def __post_init__(self) -> None:
        potential = carried = self.target.potential(self.output)
        accepted = inside = self.target.acceptance(self.output, self.tolerance)
        link = None if self.account.evaluator.model.link is None else Logit()
        if link is not None:
            carried, inside = Linked(potential, link), link.intervals(accepted)
        vars(self).update(region=self.account.region, known=self.account.evaluator.known)
        vars(self).update(inside=Nearby(self.account), alike=Nearby(self.account))
        vars(self).update(potential=potential, surrogate_potential=carried, _link=link)
        vars(self).update(acceptance=accepted, surrogate_acceptance=inside)

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
