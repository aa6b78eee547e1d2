"""Searches taking turns: one model call per round for all open questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array
from bayescfx.errors import BayesCFXError, OutOfTime
from bayescfx.evaluations.evaluator import Evaluator, Scores, Stop, Stopped
from bayescfx.search.question import Question, Rounds, RoundSearch, Search
from bayescfx.search.threads import one_thread


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
class Halt:
    """Whether all searches of one call are to end, and what `on_step` raised, if anything."""

    called: bool = False
    error: Exception | None = None


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
    halt : Halt
        Shared by all searches of one call.
    """

    search: Search
    questions: Sequence[Question]
    evaluator: Evaluator
    listener: Listener | None
    labels: Sequence[int]
    halt: Halt = field(default_factory=Halt)
    endings: dict[int, Stopped] = field(default_factory=dict)

    def run(self) -> list[Stopped]:
        """Return why each search ended."""
        try:
            if isinstance(self.search, RoundSearch):
                self._take_turns(self.search)
            else:
                self._one_by_one(self.search)
        except (_Interrupted, KeyboardInterrupt):
            self.halt.called = True
        return [self.endings.get(i, "interrupted") for i in range(len(self.questions))]

    def _one_by_one(self, search: Search) -> None:
        """Run a search that can't take turns; it is heard after each of its model calls."""
        for i, question in enumerate(self.questions):
            self._check_halt()
            question.account.after = partial(self._hear, i)
            with self._naming(i):
                self.endings[i] = _alone(search, question)

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
        self._check_halt()
        account = self.questions[i].account
        if scores is not None and (scores.stopped or account.left <= 0):
            self.endings[i] = scores.stopped or "budget"
            return None
        if account.left <= 0:
            self.endings[i] = "budget"
            return None
        try:
            with one_thread(), self._naming(i):
                return next(rounds) if scores is None else rounds.send(scores.y)
        except StopIteration as end:
            self.endings[i] = end.value
        except OutOfTime:
            self.endings[i] = "timeout"
        return None

    @contextmanager
    def _naming(self, i: int) -> Iterator[None]:
        """Say in an error which of several queries it is about."""
        try:
            yield
        except BayesCFXError as error:
            if len(self.questions) > 1:
                error.add_note(f"for the query at position {self.labels[i]}")
            raise

    def _check_halt(self) -> None:
        if self.halt.called:
            raise _Interrupted

    def _hear(self, i: int) -> None:
        """Tell the listener; whatever it raises ends the searches."""
        self._check_halt()
        if self.listener is None:
            return
        try:
            self.listener(_step(self.questions[i], self.labels[i]))
        except StopIteration:
            raise _Interrupted from None
        except Exception as error:
            self.halt.error = error
            raise _Interrupted from error


class _Interrupted(Exception):
    """The listener wants no more."""


def _step(question: Question, label: int) -> Step:
    """Return how far a question has got."""
    known = len(question.y) > 0  # else neither the query nor any row scored so far is allowed
    row = question.X[[question.best]] if known else question.region.query[None]
    output = float(question.y[question.best]) if known else question.output
    return Step(
        question=label,
        n_evaluations=question.account.spent,
        budget=question.account.budget,
        output=output,
        potential=float(question.score(np.array([output]))[0]),
        reached=question.reached,
        cost=float(question.region.distance(row)[0]),
    )


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
