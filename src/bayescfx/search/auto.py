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
        account, batch = question.account, 1
        if account.budget >= 20 * len(question.region.moving):
            question.ran.append("sweep")
            ending = yield from Sweep().first(question)
            if ending is not None:
                return ending
            batch = max(1, account.left // 16)
        question.ran.append("bayes-cfx")
        return (yield from BayesCFX(batch=batch).rounds(question))
