"""Routes about questions: ask, follow, stop, remove, bookmark, export."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from bayescfx.web.exports import export_answer
from bayescfx.web.payloads import Payload, menu_payload
from bayescfx.web.questions import PageQuestion, QuestionQueue
from bayescfx.web.request_forms import BookmarksForm, QuestionForm

PAUSE = 0.1  # seconds between two looks at a search
HEARTBEAT = 10.0  # seconds without an event after which a comment keeps the stream open


def question_routes(queue: QuestionQueue) -> APIRouter:
    """Return the routes about questions.

    Parameters
    ----------
    queue : QuestionQueue
        All questions of all visitors; every visitor of the page may read them.
    """
    router = APIRouter()

    @router.post("/api/questions", status_code=202)
    def ask(form: QuestionForm) -> Payload:
        """Ask a question; a worker answers it in its turn."""
        return queue.payload(queue.ask(form))

    @router.get("/api/questions")
    def list_questions() -> Payload:
        """Return all questions without their answers, the newest first."""
        return {"questions": [queue.summary_payload(question) for question in queue]}

    @router.get("/api/questions/{number}")
    def get_question(number: int) -> Payload:
        """Return a question and its answer."""
        return queue.payload(queue[number])

    @router.post("/api/questions/{number}/stop")
    def stop(number: int) -> Payload:
        """End a search with the best so far."""
        queue.stop(queue[number])
        return queue.payload(queue[number])

    @router.delete("/api/questions/{number}", status_code=204, response_class=Response)
    def remove(number: int) -> Response:
        """Stop a question and remove it."""
        queue.remove(number)
        return Response(status_code=204)

    @router.get("/api/questions/{number}/menu")
    def get_menu(number: int) -> Payload:
        """Return which sets of features can reach the target of an answered question."""
        if queue[number].answer is None:
            raise HTTPException(409, "There is no answer yet.")
        return menu_payload(queue.find_menu(queue[number]))

    @router.put("/api/questions/{number}/bookmarks")
    def bookmark(number: int, form: BookmarksForm) -> Payload:
        """Set the bookmarked answers."""
        queue[number].bookmarks = tuple(sorted(set(form.answers)))
        return queue.payload(queue[number])

    _add_exports(router, queue)
    return router


def _add_exports(router: APIRouter, queue: QuestionQueue) -> None:
    """Add the routes whose responses are not JSON: files and events."""

    @router.get("/api/questions/{number}/export/{form}", response_class=Response)
    def export(number: int, form: str) -> Response:
        """Return an answer as a file: the answer itself, or a program that repeats it."""
        question = queue[number]
        if question.answer is None:
            raise HTTPException(409, "There is no answer yet.")
        body = export_answer(form, queue.site, question.form, question.answer)
        headers = {"Content-Disposition": f'attachment; filename="answer-{number}.{form}"'}
        return Response(body, media_type="application/octet-stream", headers=headers)

    @router.get("/api/questions/{number}/events", response_class=StreamingResponse)
    async def events(number: int) -> StreamingResponse:
        """Stream the events of a question, until it ends."""
        return StreamingResponse(_events(queue, queue[number]), media_type="text/event-stream")


async def _events(queue: QuestionQueue, question: PageQuestion) -> AsyncIterator[str]:
    """Yield a question as it is, each step, and its end; comments keep the stream open."""
    yield _event("snapshot", queue.payload(question))
    n_sent = len(question.steps)
    quiet = 0.0
    has_ended = False
    while not has_ended:
        await asyncio.sleep(PAUSE)
        has_ended = question.has_ended  # read first: the last steps come before the end
        quiet += PAUSE
        for step in question.steps[n_sent:]:
            n_sent += 1
            quiet = 0.0
            yield _event("step", {"step": step, **question.progress_payload()})
        if quiet >= HEARTBEAT:
            quiet = 0.0
            yield ": alive\n\n"
    yield _event("end", await asyncio.to_thread(queue.payload, question))


def _event(kind: str, content: Payload) -> str:
    """Return one event of a stream."""
    return f"event: {kind}\ndata: {json.dumps(content, allow_nan=False)}\n\n"
