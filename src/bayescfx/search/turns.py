"""Searches taking turns: one model call per round for all open questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array
from bayescfx.deadline import NEVER, waiting
from bayescfx.errors import BayesCFXError, OutOfTime
from bayescfx.evaluations.confirm import Twice, again
from bayescfx.evaluations.evaluator import Account, Evaluator, Scores, Stop, Stopped
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


@dataclass(eq=False)
class Halt:
    """Whether all searches of one call are to end, and what `on_step` raised, if anything."""

    called: bool = False
    error: Exception | None = None
    noisy: bool = False  # whether the model was seen to differ from itself
    elsewhere: bool = False  # whether another process is to see whether it does, with these rows:
    twice: Twice | None = None


@dataclass(eq=False)
class Turns:
    """Run the searches of several questions to one model until each has ended.

    Whatever ends `run`, an error of the model included, questions and their accounts stay usable,
    and `endings` says which searches had ended by then, and why.
    """

    search: Search  # the method, the same for all
    questions: Mapping[int, Question]  # by position of their query; they share one evaluator
    evaluator: Evaluator  # the model and all that is known of it
    listener: Listener | None  # hears of each question and round; all searches end if it raises
    halt: Halt = field(default_factory=Halt)  # shared by all searches of one call
    who: Callable[[int], str] = "at position {}".format  # which query that is, in words
    endings: dict[int, Stopped] = field(default_factory=dict)  # of those that ended

    def run(self) -> None:
        """Run every search to its end, or until somebody wants no more."""
        rounds: dict[int, Rounds] = {}
        before = waiting.set(self.evaluator.deadline)
        try:
            if isinstance(self.search, RoundSearch):
                for i, question in self.questions.items():
                    rounds[i] = self.search.rounds(question)
            scores: dict[int, Scores | None] = dict.fromkeys(self.questions)
            while scores:
                asked: dict[int, tuple[Account, Array]] = {}
                for i, answer in scores.items():
                    X = self._next(i, rounds.get(i), answer)
                    if X is not None:
                        asked[i] = self.questions[i].account, X
                found = self.evaluator.evaluate_many(list(asked.values())) if asked else []
                scores = dict(zip(asked, found, strict=True))
                for i in asked if self.listener is not None else ():
                    self._hear(i)
            if len(self.evaluator.known) >= 12 and not self.halt.noisy:
                self._compare()
        except (_Interrupted, KeyboardInterrupt):
            self.halt.called = True
        finally:
            waiting.reset(before)
            for generator in rounds.values():
                generator.close()

    def _compare(self) -> None:
        """See whether the model still says the same; one question tells for all.

        Only if rows are left of its budget: one for every fifty that it has, two at most.
        """
        for question in self.questions.values():
            account = question.account
            rows = min(account.budget // 50, account.left)  # no answer changes by it
            if account.paid and rows > 0 and len(question.y):
                self.halt.twice = twice = again(account, question.X[question.best], rows)
                if twice is not None and not self.halt.elsewhere:
                    self.halt.noisy = twice.differs(self.evaluator.model)
                break

    def _next(self, i: int, rounds: Rounds | None, scores: Scores | None) -> Array | None:
        """Return the rows question `i` asks for next, or None when its search has ended."""
        question = self.questions[i]
        if self.halt.called:
            raise _Interrupted
        if scores is not None and scores.stopped:
            self.endings[i] = scores.stopped
        elif question.account.left <= 0:
            self.endings[i] = "budget"
        else:
            try:
                question.region.deadline = question.deadline
                if rounds is not None:
                    # what overflows is too far away to be of use
                    with one_thread(), np.errstate(over="ignore"):
                        return next(rounds) if scores is None else rounds.send(scores.y)
                # A search that can't take turns is heard after each of its model calls.
                assert not isinstance(self.search, RoundSearch)
                question.account.after = partial(self._hear, i)
                self.endings[i] = self.search.run(question)
            except StopIteration as end:
                self.endings[i] = end.value
            except Stop as stop:
                self.endings[i] = stop.reason
            except OutOfTime:
                self.endings[i] = "timeout"
            except BayesCFXError as error:
                if len(self.questions) > 1:
                    error.add_note(f"for the query {self.who(i)}")
                raise
            finally:
                question.region.deadline = NEVER
        return None

    def _hear(self, i: int) -> None:
        """Tell the listener; whatever it raises ends the searches."""
        if self.halt.called:
            raise _Interrupted
        if self.listener is None:
            return
        try:
            self.listener(_step(self.questions[i], i))
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
    best = question.best if known else 0
    row = question.X[[best]] if known else question.region.query[None]
    output = float(question.y[best]) if known else question.output
    return Step(
        question=label,
        n_evaluations=question.account.spent,
        budget=question.account.budget,
        output=output,
        potential=float(question.score(np.array([output]))[0]),
        reached=question.reached,
        cost=float(question.region.distance(row)[0]),
    )
