"""Naive Bayesian optimisation: a surrogate of the potential itself (Section 4, *Bayes*).

It ignores the composition with the potential: the surrogate models ρ(f(x)), which is flat nearly
everywhere and peaked where the target is. The method serves for comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bayescfx.acquisition import log_expected_improvement
from bayescfx.arrays import Array
from bayescfx.checks import check_whole
from bayescfx.deadline import time_limit
from bayescfx.propose import propose
from bayescfx.search.baselines import is_satisfied
from bayescfx.search.learning import surrogate_for
from bayescfx.search.question import Question, Rounds
from bayescfx.search.start import typical_rows
from bayescfx.space.region import Region
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings

#: Best rows from which proposals start. Set by judgement; the method serves for comparison.
N_STARTS = 4
#: Smaller potentials have no derivatives in double precision, and count as 0 (numerical).
MIN_POTENTIAL = 1e-60


@dataclass(frozen=True, eq=False)
class ClassicImprovement:
    """Log expected improvement of ``v(x) = p(x) - weight * cost(x)`` over the best `v` so far."""

    surrogate: Surrogate  # of the potential p, relative to its peak
    region: Region  # defines the cost
    best: float  # the best `v` so far
    weight: float  # the cost of a unit of distance, as a share of the peak

    def _threshold(self, X: Array) -> Array:
        """Return the potential ``(n,)`` that codes ``(n, d)`` have to exceed."""
        return np.asarray(self.best + self.weight * self.region.distance(X))

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
            worth = question.score(question.y) - question.weight * region.distance(question.X)
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
