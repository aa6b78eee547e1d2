"""Questions on the page: asked, waiting, running, answered; a bounded number at a time."""

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

from bayescfx.arrays import Array
from bayescfx.data.tables import Rows
from bayescfx.errors import BayesCFXError, hearing
from bayescfx.evaluations.data import Evaluations
from bayescfx.explainer import explain
from bayescfx.models.protocols import cell
from bayescfx.plots.info.view import View
from bayescfx.requests.messages import describe_error
from bayescfx.requests.report_facts import report_facts
from bayescfx.requests.target_text import parse_target
from bayescfx.result import wording
from bayescfx.result.assessment import around
from bayescfx.result.explanation import Explanation
from bayescfx.search.turns import Step
from bayescfx.space.region import Region
from bayescfx.web.forms import AskForm
from bayescfx.web.plain import Plain, answer_as_plain, pair
from bayescfx.web.site import Site


class FullError(BayesCFXError):
    """Too many questions wait already."""


class GoneError(BayesCFXError):
    """There is no such question."""


@dataclass(eq=False)
class Ticket:
    """A question, what became of it so far, and who may stop it."""

    id: int
    asked: AskForm
    region: Region  # what may change
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    steps: list[list[Any]] = field(default_factory=list)  # rows, potential, output, reached, cost
    reachable: tuple[float, float] | None = None  # outputs seen among the allowed rows
    bookmarks: tuple[int, ...] = ()
    error: str | None = None
    notes: list[str] = field(default_factory=list)  # what there is to say about the row
    answer: Explanation | None = None
    view: View | None = None  # the answer through a surrogate
    told: Plain | None = None  # the answer as the page gets it
    heard: Evaluations = field(default_factory=Evaluations)  # what the model said
    stopped: bool = False
    begun: float | None = None
    seconds: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in ("done", "failed")

    @property
    def settled(self) -> bool:
        """Whether the same question would be answered the same way."""
        cut = ("timeout", "interrupted", "fault")
        return self.answer is not None and self.answer.stopped not in cut

    def hear(self, rows: Rows, outputs: Array) -> None:
        """Hear what the model says."""
        self.heard.keep(rows, outputs)
        try:
            allowed = self.region.contains(self.region.encode(rows)) & np.isfinite(outputs)
        except BayesCFXError:  # rows of others, which are scored again
            return
        seen = [*outputs[allowed].tolist(), *(self.reachable or ())]
        self.reachable = (min(seen), max(seen)) if seen else None

    def step(self, step: Step) -> None:
        """Hear how far the search is; end it if somebody wants that."""
        if self.begun is not None:
            self.seconds = time.monotonic() - self.begun
        told = step.n_evaluations, step.potential, step.output, step.reached, step.cost
        self.steps.append(list(map(cell, told)))
        if self.stopped:
            raise StopIteration

    def now(self) -> Plain:
        """Return what changes while it is answered, in JSON's own types."""
        seconds = round(self.seconds, 2)
        return {"spent": len(self.heard), "seconds": seconds, "reachable": pair(self.reachable)}


class Desk:
    """Answers questions about a site, some at a time, in the order in which they came.

    As many are answered at the same time as there are workers, so many may wait in the queue, and
    so many are kept: the oldest without a bookmark go first.
    """

    def __init__(self, site: Site, *, workers: int = 2, queue: int = 32, kept: int = 100) -> None:
        self.site, self._queue, self._kept = site, queue, kept
        self._workers = ThreadPoolExecutor(workers, "search")
        self._questions: dict[int, Ticket] = {}  # the oldest first
        self._lock = threading.Lock()
        self._last = 0

    def __iter__(self) -> Iterator[Ticket]:
        """Yield the questions, the newest first."""
        return reversed(self._questions.copy().values())

    def __getitem__(self, number: int) -> Ticket:
        try:
            return self._questions[number]
        except KeyError:
            raise GoneError(f"There is no question {number}.") from None

    def as_plain(self, question: Ticket, *, whole: bool = True) -> Plain:
        """Return a question and what became of it; without steps and answer in a list."""
        asked, answer = question.asked, question.answer
        wish = asked.target if answer is None else wording.intervals(answer.wanted)
        label, waits = asked.label or "edited row", question.state == "waiting"
        told: Plain = {
            "id": question.id,
            "state": question.state,
            "place": sum(q.state == "waiting" and q.id < question.id for q in self) * waits,
            "request": asked.model_dump() | {"space": asked.space.said()},
            "label": label,
            "title": f"{label}: {wish}",
            "status": None if answer is None else answer.status,
            **question.now(),
            "error": question.error,
            "notes": question.notes.copy(),
            "bookmarks": list(question.bookmarks),
        }
        return told | ({"steps": question.steps.copy(), "answer": question.told} if whole else {})

    def ask(self, asked: AskForm) -> Ticket:
        """Return the question, which will be answered; it must make sense now.

        The same question again is the one before, if that has come to its own end.
        """
        parse_target(asked.target)
        region = around(self.site.allowed(asked.space.said()), self.site.row(asked.cells))
        with self._lock:
            for known in self:
                if known.asked == asked and (known.settled or not (known.ended or known.stopped)):
                    return known
            if sum(q.state == "waiting" for q in self) >= self._queue:
                raise FullError(f"{self._queue} questions wait already. Stop one, or try later.")
            self._last += 1
            question = self._questions[self._last] = Ticket(self._last, asked, region)
            old = [q.id for q in reversed([*self]) if q.ended and not q.bookmarks]
            for number in old[: max(0, len(self._questions) - self._kept)]:
                del self._questions[number]
        self._workers.submit(self._work, question)
        return question

    def stop(self, question: Ticket) -> None:
        """End a search with the best so far; one that waits is not begun."""
        question.stopped = True
        if question.state == "waiting":
            question.error, question.state = "Stopped before it began.", "failed"

    def forget(self, number: int) -> None:
        """Stop a question and remove it."""
        self.stop(self[number])
        self._questions.pop(number, None)
        _release()

    def close(self) -> None:
        """End all searches with their best so far."""
        for question in self:
            self.stop(question)
        self._workers.shutdown(wait=True, cancel_futures=True)

    def _work(self, question: Ticket) -> None:
        if question.stopped:
            return
        question.state, question.begun = "running", time.monotonic()
        try:
            with self.site.known() as known, hearing(question.notes.append):
                answer = self._answer(question, known)
                view = View.of(answer)
            kept = view.relevant(1000)
            question.answer = answer = replace(answer, evaluations=question.heard)
            question.view = view = View(answer, view.region, view.X[kept], view.y[kept])
            question.told = answer_as_plain(answer, view, question.asked)
            question.reachable = answer.reachable
            question.state = "done"
        except Exception as error:  # whatever the model raises, and what the space refuses
            question.reachable = None
            question.error, question.state = describe_error(error), "failed"
        finally:
            question.seconds = time.monotonic() - question.begun
            self.site.learn(question.heard)
            _release()

    def _answer(self, question: Ticket, known: Evaluations) -> Explanation:
        """Return the answer; if the model fails half-way, the best so far."""
        asked, site = question.asked, self.site
        try:
            answer = explain(
                site.watched(question.hear),
                site.row(asked.cells),
                site.allowed(asked.space.said()),
                parse_target(asked.target),
                **asked.model_dump(include={"method", "budget", "n", "tolerance", "timeout"}),
                evaluations=known,
                rng=asked.seed,
                on_step=question.step,
                on_fault=site.settings.on_fault,
            )
        except Exception as error:
            best = getattr(error, "explanations", None)
            if not best:
                raise
            question.error, answer = describe_error(error), best[0]
        named = asked.label is not None and site.settings.id is not None
        about = report_facts(site.settings, asked.label or "edited", is_identified=named)
        return replace(answer, seed=asked.seed, about=about)


def _release() -> None:
    """Give back to the system what nobody needs, where it can be told to: threads keep much."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
