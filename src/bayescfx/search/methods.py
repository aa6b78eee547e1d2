"""Searches by name, and the default one, which chooses by the budget alone.

The choice ignores outputs and time, so the same seed gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from bayescfx.search.baselines import LBFGSB, RandomSearch
from bayescfx.search.bayes import BayesCFX
from bayescfx.search.gradient import ProjectedGradient
from bayescfx.search.naive import NaiveBayes
from bayescfx.search.question import Question, Rounds, Search
from bayescfx.search.sweep import Sweep


@dataclass(frozen=True)
class Auto:
    """Sweep where the budget affords 50 rows per feature that may move, else Bayes-CFX.

    Two thousand rows afford a sweep of up to a hundred features, too. Bayes-CFX takes a hundredth
    of the budget at a time. A sweep that has not reached the target leaves it the last quarter.
    """

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        budget, features = question.account.budget, len(question.region.moving)
        if budget >= 50 * features or budget >= max(2000, 20 * features):
            return _sweep_first(question)
        question.ran.append("bayes-cfx")
        return BayesCFX(batch=max(1, budget // 100)).rounds(question)


def _sweep_first(question: Question) -> Rounds:
    """Sweep, and leave to Bayes-CFX what has not been reached."""
    question.ran.append("sweep")
    ending = yield from Sweep().first(question)
    if ending is not None:
        return ending
    question.ran.append("bayes-cfx")
    return (yield from BayesCFX(batch=max(1, question.account.left // 16)).rounds(question))


METHODS: dict[str, type[Search]] = {
    "auto": Auto,
    "bayes-cfx": BayesCFX,
    "sweep": Sweep,
    "bayes": NaiveBayes,
    "random": RandomSearch,
    "lbfgsb": LBFGSB,
    "gradient": ProjectedGradient,
}
