"""Which search: decided by the budget alone, so that the same seed gives the same answer."""

from __future__ import annotations

from dataclasses import dataclass

from bayescfx.search.bayes import BayesCFX
from bayescfx.search.question import Question, Rounds
from bayescfx.search.sweep import Sweep


@dataclass(frozen=True)
class Auto:
    """Sweep where the budget affords 20 rows per feature that may move, else Bayes-CFX.

    A sweep that has not reached the target leaves the last quarter of the budget to Bayes-CFX.
    """

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        if question.account.budget >= 20 * len(question.region.moving):
            return _sweep_first(question)
        question.ran.append("bayes-cfx")
        return BayesCFX().rounds(question)


def _sweep_first(question: Question) -> Rounds:
    """Sweep, and leave to Bayes-CFX what has not been reached."""
    question.ran.append("sweep")
    ending = yield from Sweep().first(question)
    if ending is not None:
        return ending
    question.ran.append("bayes-cfx")
    return (yield from BayesCFX(batch=max(1, question.account.left // 16)).rounds(question))
