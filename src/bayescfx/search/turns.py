"""The loop of all searches: one model call per round serves every open question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array
from bayescfx.deadline import rules_until, waiting
from bayescfx.errors import BayesCFXError, InfeasibleError, OutOfTime
from bayescfx.evaluations.evaluator import Evaluator, Scores, Stop
from bayescfx.search.question import Question, Rounds, RoundSearch, Search
from bayescfx.search.threads import one_thread


@dataclass(frozen=True)
class Step:
    """The state of one question after a model call, as passed to `on_step`.

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
class Interrupt:
    """A request to end all searches of one call, shared by its blocks.

    Parameters
    ----------
    is_requested : bool
        Whether searches are to end: after Ctrl-C, a fault, or an `on_step` that raised.
    error : Exception or None
        What `on_step` raised, unless it was StopIteration.
    """

    is_requested: bool = False
    error: Exception | None = None

    def notify(self, listener: Listener, step: Step) -> None:
        """Call `on_step`; whatever it raises requests the end of all searches."""
        try:
            listener(step)
        except StopIteration:
            self.is_requested = True
        except Exception as error:
            self.is_requested = True
            self.error = error


class _Interrupted(Exception):
    """The end of all searches was requested."""


def run_searches(
    search: Search,
    questions: Mapping[int, Question],
    evaluator: Evaluator,
    interrupt: Interrupt,
    on_step: Listener | None = None,
) -> None:
    """Run the searches of several questions until each has ended.

    Each round collects the proposals of every open search and scores them in one model call.

    Whatever ends the loop, including an error of the model, the questions stay usable, and
    ``question.ending`` gives the reason for those whose search had ended by then.

    Parameters
    ----------
    search : Search
        The method, the same for all questions.
    questions : dict of int to Question
        The open questions by position; they share one evaluator.
    evaluator : Evaluator
        Scores the rows of all questions in one model call per round.
    interrupt : Interrupt
        Ends the loop once it is requested.
    on_step : callable, optional
        Receives a `Step` per question and round.
    """
    generators: dict[int, Rounds] = {}
    previous_deadline = waiting.set(evaluator.deadline)
    try:
        if isinstance(search, RoundSearch):
            for position, question in questions.items():
                generators[position] = search.rounds(question)
        else:
            _run_one_by_one(search, questions, interrupt, on_step)
        scores: dict[int, Scores | None] = dict.fromkeys(generators)
        while scores:
            proposals: dict[int, Array] = {}
            for position, answer in scores.items():
                rows = _next_rows(questions[position], generators[position], answer, interrupt)
                if rows is not None:
                    proposals[position] = rows
            requests = [(questions[i].account, rows) for i, rows in proposals.items()]
            found = evaluator.evaluate_many(requests) if requests else []
            scores = dict(zip(proposals, found, strict=True))
            for position in proposals if on_step is not None else ():
                _report_step(questions[position], interrupt, on_step)
    except (_Interrupted, KeyboardInterrupt):
        interrupt.is_requested = True
    finally:
        waiting.reset(previous_deadline)
        for generator in generators.values():
            generator.close()


def _next_rows(
    question: Question, generator: Rounds, scores: Scores | None, interrupt: Interrupt
) -> Array | None:
    """Return the codes ``(k, d)`` a search asks for next, or None when it has ended."""
    if interrupt.is_requested:
        raise _Interrupted
    if scores is not None and scores.stopped:
        question.ending = scores.stopped
        return None
    if question.left <= 0:
        question.ending = "budget"
        return None
    # Overflow means that a row is too far away to be of use.
    with _SearchEnd(question), one_thread(), np.errstate(over="ignore"):
        return next(generator) if scores is None else generator.send(scores.y)
    return None


def _run_one_by_one(
    search: Search,
    questions: Mapping[int, Question],
    interrupt: Interrupt,
    on_step: Listener | None,
) -> None:
    """Run searches that cannot take turns; `on_step` is called after each of their model calls."""
    assert not isinstance(search, RoundSearch)
    for question in questions.values():
        if interrupt.is_requested:
            raise _Interrupted
        if question.left <= 0:
            question.ending = "budget"
            continue
        question.account.after = partial(_report_step, question, interrupt, on_step)
        with _SearchEnd(question):
            question.ending = search.run(question)


class _SearchEnd:
    """Records why a search ended, and lets rules be tested until its deadline only."""

    def __init__(self, question: Question) -> None:
        self.question = question

    def __enter__(self) -> None:
        self.token = rules_until.set(self.question.deadline)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        rules_until.reset(self.token)
        if isinstance(error, StopIteration):
            self.question.ending = error.value
        elif isinstance(error, Stop):
            self.question.ending = error.reason
        elif isinstance(error, OutOfTime):
            self.question.ending = "timeout"
        elif isinstance(error, InfeasibleError) and self.question.records_error:
            self.question.error = error
            return True
        elif isinstance(error, BayesCFXError) and self.question.name is not None:
            error.add_note(f"for the query {self.question.name}")
        return isinstance(error, StopIteration | Stop | OutOfTime)


def _report_step(question: Question, interrupt: Interrupt, on_step: Listener | None) -> None:
    """Pass the state of a question to `on_step`; raise if the search is to end."""
    if interrupt.is_requested:
        raise _Interrupted
    if on_step is None:
        return
    interrupt.notify(on_step, _current_step(question))
    if interrupt.is_requested:
        raise _Interrupted


def _current_step(question: Question) -> Step:
    """Return the state of a question."""
    row = question.region.query[None]
    output = question.output
    if len(question.y):  # else neither the query nor any scored row is allowed
        best = question.best
        row = question.X[[best]]
        output = float(question.y[best])
    return Step(
        question=question.position,
        n_evaluations=question.spent,
        budget=question.budget,
        output=output,
        potential=float(question.score(np.array([output]))[0]),
        reached=question.reached,
        cost=float(question.region.distance(row)[0]),
    )
