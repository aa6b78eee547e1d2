"""The baselines that the paper compares with (Section 4): random search, L-BFGS-B and *Bayes*.

Random search and L-BFGS-B use the potential of the output and nothing else. Where moving has a
cost, the answer is the nearest of the rows that happen to reach the target. *Bayes* is Bayesian
optimisation with a surrogate of the potential itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

import numpy as np
import scipy

from bayescfx.acquisition import log_expected_improvement
from bayescfx.arrays import Array
from bayescfx.checks import check_positive, check_whole
from bayescfx.deadline import time_limit
from bayescfx.propose import propose
from bayescfx.search.gradient import difference_quotients
from bayescfx.search.question import Question, Rounds, Stopped, surrogate_for
from bayescfx.search.start import fresh_rows, typical_rows
from bayescfx.space.region import Region
from bayescfx.space.repair import repair
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings

#: Limit: the most iterations of one climb. Climbs end by their tolerance or the budget before.
MAX_ITERATIONS = 200
#: Best rows from which proposals start. Set by judgement; the method serves for comparison.
N_STARTS = 4
#: Smaller potentials have no derivatives in double precision, and count as 0 (numerical).
MIN_POTENTIAL = 1e-60
#: Numerical: coordinates that differ by less, in the unit box, have only been rounded.
ROUNDING = 1e-12


@dataclass(frozen=True)
class RandomSearch:
    """Score allowed rows at random, no row twice.

    The search stops early only when nothing can be gained any more: the target is reached, one
    answer is wanted and the cost of moving is switched off; or the region has no further rows.

    Parameters
    ----------
    batch : int, default 32
        Rows per model call. It does not change which rows are drawn, nor their order.

    Examples
    --------
    >>> RandomSearch(batch=8)
    RandomSearch(batch=8)
    """

    batch: int = 32

    def __post_init__(self) -> None:
        check_whole("batch", self.batch, 1)

    def rounds(self, question: Question) -> Rounds:
        """Yield batches of rows ``(k, d)`` to be scored."""
        rows = fresh_rows(question)
        while not is_satisfied(question):
            batch = list(islice(rows, self.batch))
            if not batch:
                return "exhausted"
            yield np.array(batch)
        return "converged"


@dataclass(frozen=True)
class LBFGSB:
    """Climb the potential by L-BFGS-B with finite differences, from the query and at random.

    The climb runs in the unit box of the ordered features. Features on a grid are relaxed: each
    point is snapped before it is scored, and differences span at least one step. Features without
    an order (categorical, cyclic) keep the value of the start. Rules beyond the box are met by
    moving a point to the nearest allowed row; where there is none, the point counts as worse than
    any other, without a model call.

    The first climb starts at the query, as in the paper. There the slope of every EP potential is
    zero and differences tell little: a weakness of the method that the paper's figures show, and
    that is kept. When a climb ends, the next starts at a random allowed row, until the budget is
    spent. A gradient costs one row per ordered feature, in one model call.

    Parameters
    ----------
    difference : float, default 1e-4
        Width of finite differences, as a share of each feature's range. Wide enough for models
        that compute in single precision.
    tolerance : float, default 1e-5
        A climb ends when no component of the projected gradient is larger.
    memory : int, default 10
        Corrections kept by L-BFGS-B.

    Examples
    --------
    >>> LBFGSB(difference=1e-3)
    LBFGSB(difference=0.001, tolerance=1e-05, memory=10)
    """

    difference: float = 1e-4
    tolerance: float = 1e-5
    memory: int = 10

    def __post_init__(self) -> None:
        check_positive("difference", self.difference)
        check_positive("tolerance", self.tolerance)
        check_whole("memory", self.memory, 1)

    def run(self, question: Question) -> Stopped:
        """Climb from one start after the other until the budget, the time or the region ends."""
        query = question.region.query
        first = [query] if question.region.contains(query[None, :])[0] else []
        try:
            for start in chain(first, fresh_rows(question)):
                self._climb(question, start)
        except _Satisfied:
            return "converged"
        return "exhausted"

    def _climb(self, question: Question, start: Array) -> None:
        """Score a start ``(d,)``, and maximise the potential over its ordered features."""
        line = _Line(question, start, self.difference)
        line.potentials(start[None, :])
        if len(line.features):
            scipy.optimize.minimize(
                line.loss,
                line.origin,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * len(line.features),
                options={
                    "gtol": self.tolerance,
                    "maxcor": self.memory,
                    "maxiter": MAX_ITERATIONS,
                },
            )


class _Line:
    """The potential over the unit box of the ordered features, through one row ``(d,)``."""

    def __init__(self, question: Question, start: Array, difference: float) -> None:
        region = question.region
        self.question = question
        self.start = start
        self._difference = difference
        self.features = np.flatnonzero(region.sliding & (region.low < region.high))
        self._low = region.low[self.features]
        self._span = (region.high - region.low)[self.features]
        self.origin = (start[self.features] - self._low) / self._span

    def potentials(self, X: Array) -> Array:
        """Return the potentials ``(n,)`` of codes ``(n, d)``; nan where the model fails."""
        y = self.question.evaluate(X)
        if is_satisfied(self.question):
            raise _Satisfied
        return np.where(np.isnan(y), np.nan, self.question.score(y))

    def loss(self, u: Array) -> tuple[float, Array]:
        """Return minus the potential and its gradient ``(k,)`` at a point ``(k,)`` of the box."""
        region = self.question.region
        row = self.start.copy()
        # A feature that has not moved, but for rounding, keeps its value to the last bit.
        has_moved = np.abs(u - self.origin) > ROUNDING
        moved = self._low + u * self._span
        row[self.features] = np.where(has_moved, moved, self.start[self.features])
        rows, is_allowed = repair(region, row[None, :])
        if is_allowed[0]:
            width = np.maximum(self._difference * self._span, region.step[self.features])
            moves = np.eye(len(row))[self.features] * width[:, None]
            value, rises = difference_quotients(self.potentials, region, rows[0], moves)
            if not np.isnan(value):
                return -value, -np.nan_to_num(rises / width, nan=0.0) * self._span
        return 1.0, np.zeros(len(u))  # worse than any potential


class _Satisfied(Exception):
    """The question is satisfied; leaves the optimiser's loop."""


def is_satisfied(question: Question) -> bool:
    """Return whether nothing can be gained any more: one answer, at no cost, that is found."""
    return question.region.price.weight == 0.0 and question.n == 1 and question.reached


@dataclass(frozen=True, eq=False)
class ClassicImprovement:
    """Log expected improvement of ``v(x) = p(x) - weight * cost(x)`` over the best `v` so far."""

    surrogate: Surrogate  # of the potential p, relative to its peak
    region: Region  # defines the cost
    best: float  # the best `v` so far
    weight: float  # what a unit of cost is worth, as a share of the peak

    def _threshold(self, X: Array) -> Array:
        """Return the potential ``(n,)`` that codes ``(n, d)`` have to exceed."""
        return np.asarray(self.best + self.weight * self.region.cost(X))

    def value(self, X: Array) -> Array:
        """Return log EI ``(n,)`` at codes ``(n, d)``."""
        mean, std = self.surrogate.predict(X)
        return log_expected_improvement(mean, std, self._threshold(X)).value

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return log EI ``(n,)`` and its derivative by each code ``(n, d)``."""
        mean, std, mean_x, std_x = self.surrogate.predict_gradient(X)
        value, d_mean, d_std = log_expected_improvement(mean, std, self._threshold(X))
        # A higher threshold has the effect of a lower mean.
        gain_x = mean_x - self.weight * self.region.distance_gradient(X)
        return value, d_mean[:, None] * gain_x + d_std[:, None] * std_x


@dataclass(frozen=True)
class NaiveBayes:
    """Bayesian optimisation with the surrogate on ρ∘f and classic expected improvement.

    It ignores the composition with the potential: the surrogate models ρ(f(x)), which is flat
    nearly everywhere and peaked where the target is.

    Parameters
    ----------
    starts : int, default 2
        Rows scored before the first proposal, besides the query: data rows that fit the region,
        or else random ones.
    batch : int, default 1
        Proposals per round.
    surrogate : SurrogateSettings
        Settings of the surrogate.

    Examples
    --------
    >>> NaiveBayes(batch=4).starts
    2
    """

    starts: int = 2
    batch: int = 1
    surrogate: SurrogateSettings = field(default_factory=SurrogateSettings)

    def __post_init__(self) -> None:
        check_whole("starts", self.starts, 0)
        check_whole("batch", self.batch, 1)

    def rounds(self, question: Question) -> Rounds:
        """Yield proposals ``(k, d)`` to be scored."""
        region = question.region
        first = typical_rows(region, self.starts, question.rng)
        if len(first) and not is_satisfied(question):
            yield first
        values = partial(_potentials, question)
        surrogate: Surrogate | None = None
        while not is_satisfied(question):
            surrogate = surrogate_for(question, self.surrogate, surrogate, values)
            worth = question.score(question.y) - question.weight * region.cost(question.X)
            order = np.argsort(-worth, kind="stable")
            # Without a row inside the region anything above 0, the least potential, is a gain.
            best = float(worth[order[0]]) if len(worth) else 0.0
            proposal = propose(
                ClassicImprovement(surrogate, region, best, question.weight),
                region,
                question.rng,
                question.X[order[:N_STARTS]],
                k=self.batch,
                avoid=question.known,  # failed rows included
                deadline=time_limit.get(),
            )
            if proposal.exhausted:
                return "exhausted"
            yield proposal.points
        return "converged"


def _potentials(question: Question, y: Array) -> Array:
    """Return the potentials of outputs ``(n,)``, relative to the peak."""
    share = question.score(y)
    return np.where(share < MIN_POTENTIAL, 0.0, share)
