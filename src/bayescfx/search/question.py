"""One question under search: the problem, what is known, and what may still be spent."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.deadline import Deadline
from bayescfx.evaluations.evaluator import Account
from bayescfx.potentials.levels import Intervals
from bayescfx.problem import Problem
from bayescfx.space.region import Region

Ending: TypeAlias = Literal["nothing nearer expected", "exhausted", "unreachable", "converged"]
Rounds: TypeAlias = Generator[Array, Array, Ending]

TRIVIAL = 0.01  # a change of less than this share of a feature's scale is none
PREMIUM = 0.2  # what one more changed feature counts, in units of distance
_TYPICAL = 64  # rows that say how long a typical move is


@dataclass(frozen=True)
class Question:
    """What a search works on.

    Parameters
    ----------
    problem : Problem
        Query, f(query), potential, region.
    account : Account
        Evaluates codes, knows what was evaluated, counts.
    rng : numpy.random.Generator
        The only source of randomness.
    deadline : Deadline
        Reaches into fitting and proposing.
    n : int, default 1
        How many answers are wanted.
    """

    problem: Problem
    account: Account
    rng: np.random.Generator
    deadline: Deadline
    n: int = 1

    @property
    def region(self) -> Region:
        """Where the search may look."""
        return self.problem.region

    @property
    def X(self) -> Array:
        """Codes ``(n, d)`` of everything known inside the region."""
        return self.account.X

    @property
    def y(self) -> Array:
        """Outputs ``(n,)`` of the rows of `X`."""
        return self.account.y

    @property
    def hits(self) -> Mask:
        """Which rows of `X` reach the target."""
        return self.problem.accepted(self.account.y)

    @property
    def reached(self) -> bool:
        """Whether any row of `X` reaches the target."""
        return bool(self.hits.any())

    @property
    def best(self) -> int:
        """Position in `X` of the cheapest row that reaches the target, or of the nearest to it."""
        return int(best_first(self, self.X, self.y)[0])

    @cached_property
    def weight(self) -> float:
        """What a unit of distance costs, as a share of the potential's peak.

        The user's weight is what a move of typical length costs: as far as from the query to a
        row of the data.
        """
        weight = self.region.cost.weight
        return weight / self.typical if weight > 0.0 else 0.0

    @cached_property
    def typical(self) -> float:
        """How far a typical data row, or else a random point of the region, is from the query."""
        rows = self.region.background()[:_TYPICAL]
        if not len(rows):
            rows = self.region.sample(_TYPICAL, np.random.default_rng(0))
        length = float(np.median(self.region.distance(rows)))
        return length if length > 0.0 else 1.0


class Search(Protocol):
    """A way to spend a budget of model calls on a question."""

    def run(self, question: Question) -> Ending:
        """Evaluate rows through ``question.account`` until done; `Stop` may end it at any call."""
        ...


@runtime_checkable
class RoundSearch(Search, Protocol):
    """A search that can take turns with others, so that one model call serves many questions."""

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        ...


def drive(search: RoundSearch, question: Question) -> Ending:
    """Run a search round by round, alone."""
    rounds = search.rounds(question)
    try:
        X = next(rounds)
        while True:
            X = rounds.send(question.account.evaluate(X))
    except StopIteration as end:
        ending: Ending = end.value
        return ending
    finally:
        rounds.close()


def best_first(question: Question, X: Array, y: Array) -> Indices:
    """Return an order of evaluated rows: those that reach the target, cheapest first; then others.

    The others by their potential, the highest first. Where it does not tell them apart (it is 0
    on the wrong side of the query): by the distance of their output from the target, then by cost.
    """
    problem = question.problem
    hit = problem.accepted(y)
    cost = effort(question.region, X)
    worth = np.where(hit, 0.0, problem.score(y))
    miss = np.where(hit, 0.0, misses(problem.acceptance, y))
    return np.lexsort((cost, miss, -worth, ~hit))


def misses(acceptance: Intervals, y: Array) -> Array:
    """Return how far outputs ``(n,)`` are from the nearest accepted one."""
    gaps = [np.maximum(np.maximum(low - y, y - high), 0.0) for low, high in acceptance]
    return np.min(gaps, axis=0) if gaps else np.zeros(len(y))


def effort(region: Region, X: Array) -> Array:
    """Return what moving to codes ``(n, d)`` takes: their distance, and a little per change."""
    if region.cost.weight == 0.0:
        return region.distance(X)
    return region.distance(X) + PREMIUM * clear_changes(region, X) @ region.grid.weight


def clear_changes(region: Region, X: Array) -> Mask:
    """Return the features ``(n, d)`` that codes change, trivial changes of real ones left out."""
    tiny = (np.abs(X - region.query) < TRIVIAL * region.scale) & (region.step == 0.0)
    return np.asarray(region.changes(X) & ~tiny)
