"""Questions on the page: a queue, and worker threads that answer a bounded number at a time."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

import bayescfx as cfx
from bayescfx.errors import BayesCFXError, redirect_warnings
from bayescfx.plots.info.view import View
from bayescfx.requests.messages import PAGE, describe_error
from bayescfx.requests.plain_values import json_value
from bayescfx.requests.report_facts import report_facts
from bayescfx.requests.subject import CheckedQuery
from bayescfx.requests.texts import output_writer, parse_target, target_of_output, wanted_text
from bayescfx.web.payloads import Payload, answer_payload, pair_payload
from bayescfx.web.request_forms import QuestionForm
from bayescfx.web.site import Outputs, Site

MAX_VIEW_ROWS = 1000  # scored rows that the surrogate of an answer's curves is fitted to


class QueueFullError(BayesCFXError):
    """Too many questions wait already."""


class NoQuestionError(BayesCFXError):
    """There is no such question."""


@dataclass(eq=False)
class PageQuestion:
    """A question of a visitor, from its request to its answer.

    Parameters
    ----------
    id : int
        Its number.
    form : QuestionForm
        The request.
    query : CheckedQuery
        The row, and the region around it.
    space : Space
        The operator's space with the visitor's constraints.
    """

    id: int
    form: QuestionForm
    query: CheckedQuery
    space: cfx.Space
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    steps: list[list[Any]] = field(default_factory=list)  # see `Step` in types.d.ts
    reachable: tuple[float, float] | None = None  # the lowest and highest output so far
    bookmarks: tuple[int, ...] = ()
    error: str | None = None
    notes: list[str] = field(default_factory=list)  # warnings about the row
    answer: cfx.Explanation | None = None
    view: View | None = None  # the answer with a surrogate, for curves
    payload: Payload | None = None  # the answer in JSON's own types
    menu: cfx.Menu | None = None  # computed when a visitor asks for it
    scored: cfx.Evaluations = field(default_factory=cfx.Evaluations)
    is_stopped: bool = False
    started: float | None = None
    seconds: float = 0.0

    @property
    def has_ended(self) -> bool:
        """Whether it is answered or has failed."""
        return self.state in ("done", "failed")

    @property
    def is_repeatable(self) -> bool:
        """Whether the same question would have the same answer: nothing cut it short."""
        cuts = ("timeout", "interrupted", "fault")
        return self.answer is not None and self.answer.stopped not in cuts

    @property
    def serves_others(self) -> bool:
        """Whether its answer, or the one that it will have, serves equal questions."""
        is_running = not (self.has_ended or self.is_stopped)
        return is_running or self.is_repeatable

    def record(self, rows: Any, outputs: Outputs) -> None:
        """Keep scored rows, and the range of their outputs.

        Parameters
        ----------
        rows : table of n rows
            The rows that the model has just scored.
        outputs : ndarray of shape (n,)
            Its outputs; nan where it failed.
        """
        self.scored.keep(rows, outputs)
        finite = outputs[np.isfinite(outputs)].tolist()
        seen = [*finite, *(self.reachable or ())]
        self.reachable = (min(seen), max(seen)) if seen else None

    def take_step(self, step: cfx.Step) -> None:
        """Keep a step of the search; end the search if the visitor has stopped it."""
        if self.started is not None:
            self.seconds = time.monotonic() - self.started
        shown = (step.n_evaluations, step.potential, step.output, step.reached, step.cost)
        self.steps.append([json_value(value) for value in (*shown, step.bound)])
        if self.is_stopped:
            raise StopIteration

    def progress_payload(self) -> Payload:
        """Return the part that changes during the search, in JSON's own types."""
        return {
            "spent": len(self.scored),
            "seconds": round(self.seconds, 2),
            "reachable": pair_payload(self.reachable),
        }


class QuestionQueue:
    """Answers questions about a site in the order in which they come.

    Parameters
    ----------
    site : Site
        The model and the data.
    workers : int, default 2
        Questions that are answered at the same time.
    queue : int, default 32
        Questions that may wait.
    kept : int, default 100
        Questions that are kept; the oldest without a bookmark are removed first.
    """

    def __init__(self, site: Site, *, workers: int = 2, queue: int = 32, kept: int = 100) -> None:
        self.site = site
        self._max_waiting = queue
        self._max_kept = kept
        self._workers = ThreadPoolExecutor(workers, "search")
        self._questions: dict[int, PageQuestion] = {}  # the oldest first
        self._lock = threading.Lock()
        self._last_id = 0

    def __iter__(self) -> Iterator[PageQuestion]:
        """Yield the questions, the newest first."""
        return reversed(self._questions.copy().values())

    def __getitem__(self, number: int) -> PageQuestion:
        try:
            return self._questions[number]
        except KeyError:
            raise NoQuestionError(f"There is no question {number}.") from None

    def payload(self, question: PageQuestion) -> Payload:
        """Return a question with its steps and its answer, in JSON's own types."""
        whole = {"steps": question.steps.copy(), "answer": question.payload}
        return {**self.summary_payload(question), **whole}

    def summary_payload(self, question: PageQuestion) -> Payload:
        """Return a question without its steps and its answer, in JSON's own types."""
        form = question.form
        answer = question.answer
        label = form.label or "edited"
        target = form.target
        if answer is not None:
            target = wanted_text(answer.wanted, output_writer(answer, answer.best))
        return {
            "id": question.id,
            "state": question.state,
            "place": self._place(question),
            "request": form.model_dump() | {"space": form.space.given()},
            "label": label,
            "title": f"Row {label}: {target}",
            "status": None if answer is None else answer.status,
            **question.progress_payload(),
            "error": question.error,
            "notes": question.notes.copy(),
            "bookmarks": list(question.bookmarks),
        }

    def _place(self, question: PageQuestion) -> int:
        """Return the number of questions that are answered before a waiting one."""
        if question.state != "waiting":
            return 0
        return sum(other.state == "waiting" and other.id < question.id for other in self)

    def ask(self, form: QuestionForm) -> PageQuestion:
        """Return the question of a request, which a worker will answer.

        A request that cannot be answered is an error now. An equal request returns the earlier
        question, unless that was cut short.
        """
        target_of_output(self.site.model, parse_target(form.target))
        space = self.site.constrain(form.space.given())
        query = self.site.read_row(form.cells, space)
        with self._lock:
            earlier = self._find(form)
            if earlier is not None:
                return earlier
            if sum(question.state == "waiting" for question in self) >= self._max_waiting:
                raise QueueFullError(
                    f"{self._max_waiting} questions wait already. Stop one, or try later."
                )
            self._last_id += 1
            question = PageQuestion(self._last_id, form, query, space)
            self._questions[question.id] = question
            self._remove_oldest()
        self._workers.submit(self._work, question)
        return question

    def _find(self, form: QuestionForm) -> PageQuestion | None:
        """Return the question of an equal request whose answer would be the same."""
        equal = (question for question in self if question.form == form)
        return next((question for question in equal if question.serves_others), None)

    def _remove_oldest(self) -> None:
        """Remove the oldest ended questions without a bookmark, beyond those that are kept."""
        n_excess = max(0, len(self._questions) - self._max_kept)
        ended = [q.id for q in self._questions.values() if q.has_ended and not q.bookmarks]
        for number in ended[:n_excess]:
            del self._questions[number]

    def stop(self, question: PageQuestion) -> None:
        """End a search with the best so far; a waiting question fails."""
        question.is_stopped = True
        if question.state == "waiting":
            question.error = "Stopped before it began."
            question.state = "failed"

    def find_menu(self, question: PageQuestion) -> cfx.Menu:
        """Return which sets of features can reach the target of a question, computed once."""
        if question.menu is None:
            form = question.form
            target = parse_target(form.target)
            question.menu = cfx.menu(
                self.site.model,
                question.query.cells,
                question.space,
                target,
                tolerance=form.tolerance,
            )
        return question.menu

    def remove(self, number: int) -> None:
        """Stop a question and remove it."""
        self.stop(self[number])
        self._questions.pop(number, None)
        _release_memory()

    def close(self) -> None:
        """End all searches with their best so far."""
        for question in self:
            self.stop(question)
        self._workers.shutdown(wait=True, cancel_futures=True)

    def _work(self, question: PageQuestion) -> None:
        """Answer a question, or record why it failed.

        A worker thread runs this. The view of the answer is made while the evaluations are open:
        its surrogate is fitted to rows of earlier questions, too.
        """
        if question.is_stopped:
            return
        question.state = "running"
        question.started = time.monotonic()
        try:
            with redirect_warnings(question.notes.append), self.site.evaluations() as evaluations:
                answer = self._answer(question, evaluations)
                view = View.of(answer, question.query.region).reduced(MAX_VIEW_ROWS)
            self._finish(question, view)
        except Exception as error:  # the model may raise anything
            question.reachable = None
            question.error = describe_error(error, PAGE)
            question.state = "failed"
        finally:
            question.seconds = time.monotonic() - question.started
            self.site.share(question.scored)
            _release_memory()

    def _answer(
        self, question: PageQuestion, evaluations: cfx.Evaluations | None
    ) -> cfx.Explanation:
        """Return the answer; if the model fails during the search, the best so far."""
        form = question.form
        explainer = cfx.Explainer(
            _recorded(self.site.model, question),
            question.space,
            evaluations,
            on_fault=self.site.settings.on_fault,
            **form.model_dump(include={"method", "budget", "n", "diverse", "tolerance", "timeout"}),
        )
        target = parse_target(form.target)
        try:
            return explainer.explain(
                question.query.cells, target, rng=form.seed, on_step=question.take_step
            )
        except Exception as error:
            partial_answers = getattr(error, "explanations", None)
            if not partial_answers:
                raise
            question.error = describe_error(error, PAGE)
            best_so_far: cfx.Explanation = partial_answers[0]
            return best_so_far

    def _finish(self, question: PageQuestion, view: View) -> None:
        """Keep the answer of a view with its facts and its payload."""
        form = question.form
        settings = self.site.settings
        is_identified = form.label is not None and settings.id is not None
        about = report_facts(settings, form.label or "edited", is_identified=is_identified)
        scored = question.scored
        about = {**view.answer.about, **about}
        answer = replace(view.answer, seed=form.seed, about=about, evaluations=scored)
        question.answer = answer
        question.view = replace(view, answer=answer)
        question.payload = answer_payload(question.view, form, self.site)
        question.reachable = answer.reachable
        question.state = "done"


def _recorded(model: Any, question: PageQuestion) -> Any:
    """Return the model with its scored rows recorded in a question."""

    def predict(rows: Any) -> Outputs:
        outputs: Outputs = model.scores(rows)
        question.record(rows, outputs)
        return outputs

    return replace(model, predict=predict, content=model.fingerprint())


def _release_memory() -> None:
    """Return freed memory to the system where possible: threads keep much of it."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
