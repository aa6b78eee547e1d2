"""The method `auto`: which searches answer a question, and in which order.

The choice ignores time, so the same seed gives the same answer.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from bayescfx.arrays import Array
from bayescfx.search.bayes import BayesCFX
from bayescfx.search.exact.exact_search import prove_best, stopped_by_proof
from bayescfx.search.question import Question, Rounds, Stopped
from bayescfx.search.sweep import Sweep


@dataclass(frozen=True)
class AutoTuning:
    """Numbers of the choice; set by judgement, benchmark `make quality` (2026-11-18)."""

    rows_per_feature: int = 50  # budget per free feature from which on a sweep is chosen
    large_budget: int = 2000  # the same from this budget on ...
    rows_if_large: int = 20  # ... with so many rows per feature
    bayes_calls: int = 100  # model calls of Bayes-CFX within the budget
    calls_after_sweep: int = 16  # the same after a sweep that has not reached the target
    rows_for_proof: int = 64  # kept for answers that the proof finds; mostly it needs less than 10


TUNING = AutoTuning()


@dataclass(frozen=True)
class Auto:
    """Sweep where the budget affords 50 rows per feature that may move, else Bayes-CFX.

    2,000 rows afford a sweep of up to 100 features, too. If the model can be read, a short proof
    comes first, which finds and proves most near answers with a few rows; the sweep runs where it
    is not enough, and a longer proof after it. Bayes-CFX takes a hundredth of the budget at a time.
    A sweep that has not reached the target, with no proof that it is out of reach, leaves it the
    last quarter of the budget.
    """

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        budget = question.whole_budget
        n_features = len(question.region.moving)
        is_large = budget >= max(TUNING.large_budget, TUNING.rows_if_large * n_features)
        if is_large or budget >= TUNING.rows_per_feature * n_features:
            return _sweep_first(question)
        question.ran.append("bayes-cfx")
        batch = max(1, budget // TUNING.bayes_calls)
        return BayesCFX(batch=batch).rounds(question)


def _sweep_first(question: Question) -> Rounds:
    """Prove if that is quick; else sweep and prove; else continue with Bayes-CFX."""
    is_provable = question.prover is not None and question.evaluator.model.local
    if is_provable and question.n == 1:
        yield from prove_best(question, is_short=True)
        if question.proof.conclusion == "optimal":
            question.ran.append("exact")
            return "proven"
    question.ran.append("sweep")
    stopped = yield from Sweep().first(question, TUNING.rows_for_proof if is_provable else 0)
    if stopped != "exhausted" and question.prover is not None:  # else every allowed row was scored
        stopped = yield from _prove_sweep(question, stopped)
    if stopped is not None:
        return stopped
    question.ran.append("bayes-cfx")
    return (
        yield from BayesCFX(batch=max(1, question.left // TUNING.calls_after_sweep)).rounds(
            question
        )
    )


def _prove_sweep(
    question: Question, stopped: Stopped | None
) -> Generator[Array, Array, Stopped | None]:
    """Prove the answer of a sweep; return why the search stops, None if it is to go on.

    A first answer that an incomplete proof has found is swept around.
    """
    if question.proof.conclusion != "out of reach":  # which the first proof has shown
        yield from prove_best(question)
    if question.proof.conclusion is not None:
        question.ran.append("proof")
    if stopped is None and question.reached and question.proof.conclusion != "optimal":
        return (yield from Sweep().first(question)) or "nothing nearer expected"
    return stopped_by_proof(question.proof) or stopped
