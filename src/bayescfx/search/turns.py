"""Searches taking turns: one model call per round for all open questions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bayescfx.arrays import Array
from bayescfx.errors import BayesCFXWarning, OutOfTime
from bayescfx.evaluator import Evaluator, Scores, Stop
from bayescfx.search.question import Ending, Question, Rounds, RoundSearch, Search
from bayescfx.search.threads import one_thread

Stopped: TypeAlias = Ending | Literal["budget", "timeout", "interrupted"]


@dataclass(frozen=True)
class Step:
    """What `on_step` hears after each model call.

    Parameters
    ----------
    question : int
        Position of the query; 0 for a single one.
    n_evaluations : int
        Rows sent to the model for this question so far.
    budget : int
        How many may be sent.
    output : float
        The model's output of the best row so far.
    potential : float
        Its potential relative to the peak, 0 to 1.
    reached : bool
        Whether it reaches the target.
    cost : float
        How far it is from the query.
    """

    question: int
    n_evaluations: int
    budget: int
    output: float
    potential: float
    reached: bool
    cost: float


Listener: TypeAlias = Callable[[Step], object]


@dataclass
class Turns:
    """Run the searches of several questions to one model until each has ended.

    Parameters
    ----------
    search : Search
        The method, the same for all.
    questions : sequence of Question
        They share one evaluator.
    evaluator : Evaluator
        The model and all that is known of it.
    listener : callable, optional
        Hears a :class:`Step` per question and round. If it raises, all searches end.
    labels : sequence of int
        Which query each question belongs to.
    """

    search: Search
    questions: Sequence[Question]
    evaluator: Evaluator
    listener: Listener | None
    labels: Sequence[int]
    endings: dict[int, Stopped] = field(default_factory=dict)

    def run(self) -> list[Stopped]:
        """Return why each search ended."""
        try:
            if isinstance(self.search, RoundSearch):
                self._take_turns(self.search)
            else:
                for i, question in enumerate(self.questions):
                    self.endings[i] = _alone(self.search, question)
                    self._hear(i)
        except (_Interrupted, KeyboardInterrupt):
            pass
        return [self.endings.get(i, "interrupted") for i in range(len(self.questions))]

    def _take_turns(self, search: RoundSearch) -> None:
        rounds = [search.rounds(question) for question in self.questions]
        try:
            asked = {
                i: X
                for i in range(len(rounds))
                if (X := self._next(i, rounds[i], None)) is not None
            }
            while asked:
                requests = [(self.questions[i].account, X) for i, X in asked.items()]
                scores = dict(zip(asked, self.evaluator.evaluate_many(requests), strict=True))
                for i in asked:
                    self._hear(i)
                answered = ((i, self._next(i, rounds[i], scores[i])) for i in asked)
                asked = {i: X for i, X in answered if X is not None}
        finally:
            for generator in rounds:
                generator.close()

    def _next(self, i: int, rounds: Rounds, scores: Scores | None) -> Array | None:
        """Return the rows question `i` asks for next, or None when it has ended."""
        account = self.questions[i].account
        if scores is not None and (scores.stopped or account.left <= 0):
            self.endings[i] = scores.stopped or "budget"
            return None
        if account.left <= 0:
            self.endings[i] = "budget"
            return None
        try:
            with one_thread():
                return next(rounds) if scores is None else rounds.send(scores.y)
        except StopIteration as end:
            self.endings[i] = end.value
        except OutOfTime:
            self.endings[i] = "timeout"
        return None

    def _hear(self, i: int) -> None:
        """Tell the listener; whatever it raises ends the searches."""
        if self.listener is None:
            return
        question = self.questions[i]
        best = question.best
        step = Step(
            question=self.labels[i],
            n_evaluations=question.account.spent,
            budget=question.account.budget,
            output=float(question.y[best]),
            potential=float(question.problem.score(question.y[best : best + 1])[0]),
            reached=question.reached,
            cost=float(question.region.distance(question.X[best : best + 1])[0]),
        )
        try:
            self.listener(step)
        except StopIteration:
            raise _Interrupted from None
        except Exception as error:
            warnings.warn(
                f"`on_step` raised {error!r}, which ended the search. "
                "Raise StopIteration to end it quietly.",
                BayesCFXWarning,
                stacklevel=5,
            )
            raise _Interrupted from error


class _Interrupted(Exception):
    """The listener wants no more."""


def _alone(search: Search, question: Question) -> Stopped:
    """Run a search that can't take turns."""
    if question.account.left <= 0:
        return "budget"
    try:
        return search.run(question)
    except Stop as stop:
        return stop.reason
    except OutOfTime:
        return "timeout"
