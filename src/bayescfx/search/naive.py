"""Naive Bayesian optimisation: a surrogate of the potential itself (Section 4, *Bayes*).

The composition with the potential is thrown away: what the surrogate sees is ρ(f(x)), which is flat
nearly everywhere and peaked where the target is. The method is here to compare with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bayescfx.acquisition import log_expected_improvement
from bayescfx.arrays import Array
from bayescfx.checks import check_whole
from bayescfx.propose import propose
from bayescfx.search.baselines import satisfied
from bayescfx.search.learning import surrogate_for
from bayescfx.search.question import Question, Rounds
from bayescfx.search.start import usual_rows
from bayescfx.space.region import Region
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings


@dataclass(frozen=True, eq=False)
class ClassicGain:
    """Log expected improvement of ``v(x) = p(x) - weight * cost(x)`` over the best `v` so far."""

    surrogate: Surrogate  # of the potential p, relative to its peak
    region: Region  # knows the cost
    best: float  # the best `v` so far
    weight: float  # what a unit of distance is worth, as a share of the peak

    def _threshold(self, X: Array) -> Array:
        return np.asarray(self.best + self.weight * self.region.distance(X))

    def value(self, X: Array) -> Array:
        """Return log EI ``(n,)`` at codes ``(n, d)``."""
        mean, std = self.surrogate.predict(X)
        return log_expected_improvement(mean, std, self._threshold(X)).value

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return log EI ``(n,)`` and its derivative by each code ``(n, d)``."""
        mean, std, mean_x, std_x = self.surrogate.predict_gradient(X)
        value, d_mean, d_std = log_expected_improvement(mean, std, self._threshold(X))
        # a higher threshold is worth as much as a lower mean
        gain_x = mean_x - self.weight * self.region.distance_gradient(X)
        return value, d_mean[:, None] * gain_x + d_std[:, None] * std_x


@dataclass(frozen=True)
class NaiveBayes:
    """Bayesian optimisation with the surrogate on ρ∘f and classic expected improvement.

    Parameters
    ----------
    starts : int, default 2
        Rows evaluated before the first proposal, beside the query: data rows that fit the region,
        else random ones.
    batch : int, default 1
        Proposals per round.
    surrogate : SurrogateSettings
        How the surrogate is made.

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
        """Yield proposals to be evaluated."""
        region, weight = question.region, question.weight
        first = usual_rows(region, self.starts, question.rng)
        if len(first) and not satisfied(question):
            yield first
        surrogate: Surrogate | None = None
        while not satisfied(question):
            surrogate = surrogate_for(question, self.surrogate, surrogate, partial(_seen, question))
            worth = question.score(question.y) - weight * region.distance(question.X)
            order = np.argsort(-worth, kind="stable")
            # without a row inside the region anything above 0, the least potential, is a gain
            best = float(worth[order[0]]) if len(worth) else 0.0
            gain, starts = ClassicGain(surrogate, region, best, weight), question.X[order[:4]]
            known, deadline = question.known, question.deadline  # faults included
            found = propose(
                gain, region, question.rng, starts, k=self.batch, avoid=known, deadline=deadline
            )
            if found.exhausted:
                return "exhausted"
            yield found.points
        return "converged"


def _seen(question: Question, y: Array) -> Array:
    """Return the potential of outputs ``(n,)``; what is too small for derivatives is nothing."""
    share = question.score(y)
    return np.where(share < 1e-60, 0.0, share)
