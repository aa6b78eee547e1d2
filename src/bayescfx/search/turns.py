"""The loop of all searches: one model call per round serves every open question.

The surrogate's matrices are small: many threads wait for each other longer than the work takes.
Where `threadpoolctl` is installed (scikit-learn brings it), there is one thread while a search
thinks, and only then: the user's model keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from bayescfx.arrays import Array
from bayescfx.deadline import Deadline, limited_to
from bayescfx.errors import BayesCFXError, InfeasibleError, OutOfTime, SpaceError
from bayescfx.evaluations.evaluator import Scores, Stop
from bayescfx.search.question import LoneSearch, Question, RoundSearch, Search

T = TypeVar("T")

#: Why searches were cut short: there is no time to round the answers or for a verdict, and a later
#: call may continue the run.
CUT_SHORT = ("timeout", "interrupted", "fault")


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
    bound : float, optional
        While a proof runs: no answer costs less. A long proof passes on steps of its own.
    """

    question: int
    n_evaluations: int
    budget: int
    output: float
    potential: float
    reached: bool
    cost: float
    bound: float | None = None


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
    has_fault : bool
        Whether there was a fault.
    """

    is_requested: bool = False
    error: Exception | None = None
    has_fault: bool = False

    @property
    def is_by_user(self) -> bool:
        """Whether the user has requested the end."""
        return self.is_requested and not self.has_fault

    def end_after_fault(self) -> None:
        """Request the end of all searches because of a fault."""
        self.is_requested = True
        self.has_fault = True

    def notify(self, listener: Listener, step: Step) -> None:
        """Call `on_step`; whatever it raises requests the end of all searches."""
        try:
            listener(step)
        except StopIteration:
            self.is_requested = True
        except Exception as error:
            self.is_requested = True
            self.error = error


#: What a search has received before its first request.
_NO_SCORES = Scores(None, None)  # type: ignore[arg-type]  # a generator starts with None


class _Interrupted(Exception):
    """The end of all searches was requested."""


def run_searches(
    search: Search,
    questions: Sequence[Question],
    deadline: Deadline,
    interrupt: Interrupt,
    on_step: Listener | None = None,
    *,
    records_errors: bool = False,
) -> None:
    """Run the searches of several questions until each has stopped.

    Each round collects the proposals of every open search and scores them in one model call.
    Whatever ends the loop, including an error of the model, the questions stay usable, and
    ``question.stopped`` gives the reason for those whose search had stopped by then.

    Parameters
    ----------
    search : Search
        The method, the same for all questions.
    questions : sequence of Question
        The open questions; they share one evaluator.
    deadline : Deadline
        When all searches stop.
    interrupt : Interrupt
        Ends the loop once it is requested.
    on_step : callable, optional
        Receives a `Step` per question and round.
    records_errors : bool, default False
        Whether a search without an allowed row, or with a rule that fails, records its error in
        ``question.error`` and stops; else it raises it.
    """
    for question in questions:
        question.on_bound = partial(_report_step, question, interrupt, on_step)
    run: Any = _take_turns if isinstance(search, RoundSearch) else _run_one_by_one
    try:
        run(search, questions, deadline, interrupt, on_step, records_errors)
    except (_Interrupted, KeyboardInterrupt):
        interrupt.is_requested = True


def _take_turns(
    search: RoundSearch,
    questions: Sequence[Question],
    deadline: Deadline,
    interrupt: Interrupt,
    on_step: Listener | None,
    records_errors: bool,
) -> None:
    """Run the searches of all questions until all have stopped, one model call per round."""
    rounds = {question: search.rounds(question) for question in questions}
    scores = dict.fromkeys(rounds, _NO_SCORES)
    try:
        while scores:
            requests: list[tuple[Question, Array]] = []
            with limited_to(deadline):
                # Overflow means that a row is too far away to be of use.
                with one_thread(), np.errstate(over="ignore"):
                    for question, answer in scores.items():
                        step = rounds[question].send
                        rows = _advance(question, step, answer, interrupt, records_errors)
                        if rows is not None:
                            requests.append((question, rows))
                evaluator = questions[0].evaluator
                n_known = len(evaluator.known)
                found = evaluator.evaluate_many(requests)
            scores = {request[0]: each for request, each in zip(requests, found, strict=True)}
            if len(evaluator.known) > n_known:
                for question in scores:
                    _report_step(question, interrupt, on_step)
    finally:
        for generator in rounds.values():
            generator.close()


def _run_one_by_one(
    search: LoneSearch,
    questions: Sequence[Question],
    deadline: Deadline,
    interrupt: Interrupt,
    on_step: Listener | None,
    records_errors: bool,
) -> None:
    """Run searches that cannot take turns; `on_step` is called after each of their model calls."""
    for question in questions:
        question.after = partial(_report_step, question, interrupt, on_step)
        with limited_to(deadline):
            run = partial(_run_alone, search, question)
            _advance(question, run, _NO_SCORES, interrupt, records_errors)


def _run_alone(search: LoneSearch, question: Question, _: None) -> None:
    """Run a search that cannot take turns."""
    question.stopped = search.run(question)


def _advance(
    question: Question,
    step: Callable[[Any], T],
    scores: Scores,
    interrupt: Interrupt,
    records_errors: bool,
) -> T | None:
    """Return what a step of a search returns, given the outputs that it asked for before.

    If the search stops, record the reason and return None.
    """
    if interrupt.is_requested:
        raise _Interrupted
    if scores.stopped:
        question.stopped = scores.stopped
        return None
    if question.left <= 0 and not question.is_closing:
        question.stopped = "budget"
        return None
    try:
        return step(scores.y)
    except StopIteration as end:
        question.stopped = end.value
    except Stop as stop:
        question.stopped = stop.stopped
    except OutOfTime:
        question.stopped = "timeout"
    except BayesCFXError as error:
        _take_error(question, error, records_errors)
    return None


def _take_error(question: Question, error: BayesCFXError, records_errors: bool) -> None:
    """Record that no row is allowed or a rule fails, or raise it with the name of its query."""
    if records_errors and isinstance(error, InfeasibleError | SpaceError):
        question.error = error
        return
    if question.name is not None:
        error.add_note(f"for the query {question.name}")
    raise error


def _report_step(
    question: Question,
    interrupt: Interrupt,
    on_step: Listener | None,
    bound: float | None = None,
) -> None:
    """Pass the state of a question to `on_step`; raise if the search is to end."""
    if interrupt.is_requested:
        raise _Interrupted
    if on_step is None:
        return
    interrupt.notify(on_step, replace(_current_step(question), bound=bound))
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
        budget=question.whole_budget,
        output=output,
        potential=float(question.score(np.array([output]))[0]),
        reached=question.reached,
        cost=float(question.region.cost(row)[0]),
    )


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which linear algebra runs on one thread, where that can be set."""
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1)
