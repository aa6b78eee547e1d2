"""One question under search: the problem, what is known, and what may still be spent."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.deadline import NEVER, Deadline
from bayescfx.evaluations.evaluator import Account
from bayescfx.model.model import Link
from bayescfx.potentials.family import LevelPotential, contains
from bayescfx.potentials.levels import Intervals
from bayescfx.potentials.links import Linked, Logit
from bayescfx.potentials.wishes import Target
from bayescfx.space.region import Region
from bayescfx.space.sampling import background, sample

Ending: TypeAlias = Literal["nothing nearer expected", "exhausted", "unreachable", "converged"]
Rounds: TypeAlias = Generator[Array, Array, Ending]

TRIVIAL = 0.01  # a change of less than this share of a feature's scale is none
PREMIUM = 0.2  # what one more changed feature counts, in units of distance
_TYPICAL = 64  # rows that say how long a typical move is


@dataclass(frozen=True)
class Question:
    """What a search works on: a query seen through its region, and what is wanted of f.

    The wish is a potential rho of the model's output y (Section 2 of the paper). A surrogate may
    see the output on another scale (log-odds for a probability); potential and target set stay on
    the output itself, and are only carried over.

    Parameters
    ----------
    account : Account
        Evaluates codes, knows what was evaluated, counts.
    output : float
        f(query).
    target : Target
        The wish as it was said.
    rng : numpy.random.Generator
        The only source of randomness.
    deadline : Deadline
        Reaches into fitting and proposing.
    n : int, default 1
        How many answers are wanted.
    tolerance : float, default 0.05
        How much of the wanted change may be missed.
    """

    account: Account
    output: float
    target: Target
    rng: np.random.Generator
    deadline: Deadline = NEVER
    n: int = 1
    tolerance: float = 0.05
    potential: LevelPotential = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "potential", self.target.potential(self.output))

    @property
    def region(self) -> Region:
        """Where the search may look."""
        return self.account.region

    @property
    def link(self) -> Link | None:
        """The scale on which the surrogate sees outputs."""
        return self.account.evaluator.model.link

    @cached_property
    def acceptance(self) -> Intervals:
        """Outputs that count as reached."""
        return self.target.acceptance(self.output, self.tolerance)

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

    # ── on the surrogate's scale ──

    @cached_property
    def surrogate_potential(self) -> LevelPotential:
        """The potential as a function of what the surrogate models."""
        return self.potential if self.link is None else Linked(self.potential, Logit())

    @cached_property
    def surrogate_acceptance(self) -> Intervals:
        """The accepted outputs on the surrogate's scale; ends at 0 and 1 become infinite."""
        if self.link is None:
            return self.acceptance
        inside = [(low, high) for low, high in self.acceptance if high >= 0.0 and low <= 1.0]
        return tuple(Logit().interval(low, high) for low, high in inside)

    def to_surrogate(self, y: Array) -> Array:
        """Return outputs ``(n,)`` on the surrogate's scale; always finite for finite outputs."""
        return y if self.link is None else Logit().forward(y)

    # ── what is known ──

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
        return self.accepted(self.account.y)

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
        rows = background(self.region)[:_TYPICAL]
        if not len(rows):
            rows = sample(self.region, _TYPICAL, np.random.default_rng(0))
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
    hit = question.accepted(y)
    cost = effort(question.region, X)
    worth = np.where(hit, 0.0, question.score(y))
    miss = np.where(hit, 0.0, misses(question.acceptance, y))
    return np.lexsort((cost, miss, -worth, ~hit))


def misses(acceptance: Intervals, y: Array) -> Array:
    """Return how far outputs ``(n,)`` are from the nearest accepted one."""
    gaps = [np.maximum(np.maximum(low - y, y - high), 0.0) for low, high in acceptance]
    return np.min(gaps, axis=0) if gaps else np.zeros(len(y))


def effort(region: Region, X: Array) -> Array:
    """Return what moving to codes ``(n, d)`` takes: their distance, and a little per change."""
    if region.cost.weight == 0.0:
        return region.distance(X)
    return region.distance(X) + PREMIUM * clear_changes(region, X) @ region.weight


def clear_changes(region: Region, X: Array) -> Mask:
    """Return the features ``(n, d)`` that codes change, trivial changes of real ones left out."""
    tiny = (np.abs(X - region.query) < TRIVIAL * region.scale) & (region.step == 0.0)
    return np.asarray(region.changes(X) & ~tiny)
