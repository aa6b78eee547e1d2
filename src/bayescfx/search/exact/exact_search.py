"""The exact search as a method, and as the first and last step of `auto`."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.deadline import Deadline, time_limit
from bayescfx.errors import ModelError
from bayescfx.evaluations.evaluator import Stopped
from bayescfx.search.exact.branching import Work
from bayescfx.search.exact.further import find_further, find_without
from bayescfx.search.exact.prover import Proof, prove
from bayescfx.search.finish import finish
from bayescfx.search.question import Question, Rounds

#: Scored rows with which a form is compared before each proof: the model may have been fitted
#: again since it was read.
_ROWS_TO_COMPARE = 32
#: Work of a short proof of trees and networks: about a tenth of a second. Of 32 questions
#: (diabetes, LightGBM, benchmarks exact, 2026-11-18) it answers those that a row with at most two
#: changes reaches.
SHORT_WORK = 1e6
#: Rows of one model call that take back changes of an answer; as in a sweep.
_FINISHED_AT_ONCE = 200


@dataclass(frozen=True)
class Exact:
    """Find the provably nearest answer of a model that can be read, with few rows.

    Tree ensembles, linear models and ReLU networks can be read, also behind pipelines; other models
    are an error.
    """

    def rounds(self, question: Question) -> Rounds:
        """Yield codes ``(k, d)`` to be evaluated, receive their outputs ``(k,)``."""
        if question.prover is None:
            raise ModelError(
                "`method='exact'` must be allowed to prove; got prove=False. Leave out `prove`."
            )
        yield from prove_best(question)
        proof = question.proof
        if proof.conclusion is None:
            raise ModelError(
                f"`method='exact'` needs a model that can be read; {proof.reason}. "
                "Use method='auto'."
            )
        return stopped_by_proof(proof) or "budget"


def prove_best(question: Question, *, is_short: bool = False) -> Generator[Array, Array, None]:
    """Prove that the best known answer is the nearest, or find nearer ones.

    Sets ``question.proof`` and, if several answers are wanted, ``question.proven_rows``. A short
    proof is for questions that have an answer near the query.
    """
    assert question.prover is not None  # else nothing is proven
    if question.region.price.weight == 0.0 and question.reached:
        question.proof = Proof(reason="the cost is switched off")
        return
    question.proof = Proof(reason="the search ended before the proof")
    places = np.concatenate([np.empty(0, dtype=np.intp), *question.asked])[:_ROWS_TO_COMPARE]
    scored = question.known.take(places)
    cost = np.inf
    if question.reached:
        cost = float(question.region.cost(question.X[[question.best]])[0])
    work = _work(question)
    if is_short:
        work = Work(min(work.most, SHORT_WORK), work.deadline, only_if_near=True)
    question.is_closing = True
    question.proof = yield from prove(question, question.prover, scored, cost, work)
    question.is_closing = False
    if question.proof.conclusion == "optimal":
        yield from find_further(question, question.prover, _work(question))
    if question.proof.conclusion == "bounded" and question.reached and not is_short:
        # The proof was cut short: its best answer may have changes that are not needed.
        yield from finish(question, question.left // 2, batch=_FINISHED_AT_ONCE)


def prove_without(question: Question, features: Mask) -> Generator[Array, Array, bool]:
    """Find the best row in which some features ``(d,)`` stay as they are; return if it is proven.

    Only if the best answer is proven.
    """
    if question.prover is None or question.proof.conclusion != "optimal":
        return False
    found = yield from find_without(question, question.prover, features, _work(question))
    return found is not None


def _work(question: Question) -> Work:
    """Return what limits a proof, from now on."""
    end = min(time_limit.get(), Deadline.after(question.proof_seconds), key=attrgetter("at"))
    return Work(question.proof_work, end, on_bound=question.on_bound)


def stopped_by_proof(proof: Proof) -> Stopped | None:
    """Return why a search stops after a proof; None if it may go on."""
    if proof.conclusion == "optimal":
        return "proven"
    return "unreachable" if proof.conclusion == "out of reach" else None
