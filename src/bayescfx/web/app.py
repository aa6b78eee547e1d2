"""The page and its JSON: routes that check, ask and answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from bayescfx.cli.console import describe
from bayescfx.cli.targets import parse_target
from bayescfx.errors import BayesCFXError, one_line
from bayescfx.result.assessment import what_if
from bayescfx.tables import cells_of
from bayescfx.values import same_cell
from bayescfx.version import VERSION
from bayescfx.web import exports, plain
from bayescfx.web.curves import curve
from bayescfx.web.description import described
from bayescfx.web.forms import AskForm, Bookmarks, Goal, Guess, Line
from bayescfx.web.questions import Desk, FullError, Ticket

OUTPUT = "(output)"  # what rows are sorted by if not by a column
PAUSE = 0.1  # seconds between two looks at a search

Plain = dict[str, Any]
Limit = Annotated[float | None, Query(allow_inf_nan=False)]
Position = Annotated[int, Query(ge=0, le=10**9)]


def make_app(desk: Desk) -> FastAPI:
    """Return the page of a desk that answers questions."""
    site = desk.site
    app = FastAPI(
        title="bayescfx",
        version=VERSION,
        description="What would have to change for the model to answer as wished?",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses={
            code: {"description": words, "content": {"application/json": {}}}
            for code, words in ((404, "Not there."), (422, "It makes no sense."))
        },
    )
    content = plain.site_as_plain(site)
    _errors(app)
    _rows(app, desk)
    _questions(app, desk)
    vars(app)["openapi"] = lambda: described(app, site)

    @app.get("/api/site")
    def about() -> Plain:
        """Return what the page is about."""
        return content

    @app.post("/api/predict")
    def predict(guess: Guess) -> Plain:
        """Score a row; say what it breaks, and how far it is from the target."""
        row = site.row(guess.cells)
        space = site.allowed({} if guess.space is None else guess.space.said())
        query = row if guess.query is None else site.row(guess.query)
        changes = {n: v for n, v in row.items() if not same_cell(v, query.get(n))}
        target = None if guess.target is None else parse_target(guess.target)
        found = what_if(site.model, query, changes, space, target, tolerance=guess.tolerance)
        told = {"output": found.output, "broken": list(found.broken)}
        return told | {"miss": found.miss, "reached": found.reached}

    @app.post("/api/goal")
    def goal(wish: Goal) -> Plain:
        """Say what a target means, seen from an output."""
        target = parse_target(wish.target)
        wanted = target.acceptance(wish.output, 0.0)
        accepted = target.acceptance(wish.output, wish.tolerance)
        return plain.goal_as_plain(wanted, accepted, wish.output)

    @app.post("/api/curve")
    def response(line: Line) -> Plain:
        """Return how the model answers along one feature."""
        if line.feature not in map(str, site.space.features):
            raise HTTPException(404, f"There is no feature {line.feature!r}.")
        view = None if line.question is None else _found(desk, line.question).view
        return curve(site, line.cells, line.feature, view, ask=line.ask)

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(str(files("bayescfx.web") / "static" / "index.html"))

    @app.get("/vendor/plotly.min.js", include_in_schema=False)
    def plotly() -> FileResponse:
        path = str(files("plotly") / "package_data" / "plotly.min.js")
        return FileResponse(path, headers={"cache-control": "private, max-age=86400"})

    app.mount("/static", StaticFiles(packages=[("bayescfx.web", "static")]), name="static")
    return app


def _rows(app: FastAPI, desk: Desk) -> None:
    """Add the routes to rows of the data."""
    site = desk.site
    texts = [" ".join(map(str, line)).casefold() for line in cells_of(site.shown)]
    rng = np.random.default_rng()

    def within(low: float | None, high: float | None, search: str = "") -> Any:
        good = np.ones(len(site.outputs), dtype=np.bool_)
        good &= True if low is None else site.outputs >= low
        good &= True if high is None else site.outputs <= high
        wish = search.casefold().strip()
        if wish:
            pairs = zip(texts, site.labels, strict=True)
            good &= np.array([wish in text or wish == label.casefold() for text, label in pairs])
        return np.flatnonzero(good)

    @app.get("/api/rows")
    def rows(
        search: Annotated[str, Query(max_length=1_000)] = "",
        sort: str | None = None,
        descending: bool = False,
        low: Limit = None,
        high: Limit = None,
        offset: Position = 0,
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
    ) -> Plain:
        """Return rows of the data: those with a text, within outputs, in an order."""
        found = within(low, high, search)
        if sort not in (None, OUTPUT, *site.shown.columns):
            raise HTTPException(422, f"Rows can't be sorted by {sort!r}.")
        if sort is not None:
            keys = pd.Series(site.outputs) if sort == OUTPUT else site.shown[sort]
            up = not descending
            found = keys.iloc[found].sort_values(ascending=up, kind="stable").index.to_numpy()
        elif descending:
            found = found[::-1]
        return plain.rows_as_plain(site, found[offset : offset + limit], len(found))

    @app.get("/api/random")
    def random(low: Limit = None, high: Limit = None) -> Plain:
        """Return a row of the data by chance, with an output in a range."""
        found = within(low, high)
        if not len(found):
            raise HTTPException(404, "No row has such a prediction.")
        return plain.row_as_plain(site, int(rng.choice(found)))


def _questions(app: FastAPI, desk: Desk) -> None:
    """Add the routes to questions and answers."""

    @app.post("/api/questions", status_code=202)
    def ask(asked: AskForm) -> Plain:
        """Ask a question; it is answered in its turn."""
        return plain.question_as_plain(desk, desk.ask(asked))

    @app.get("/api/questions")
    def listed() -> Plain:
        """Return all questions, the newest first."""
        return {"questions": [plain.question_as_plain(desk, q, whole=False) for q in desk]}

    @app.get("/api/questions/{number}")
    def one(number: int) -> Plain:
        """Return a question and its answer."""
        return plain.question_as_plain(desk, _found(desk, number))

    @app.post("/api/questions/{number}/stop")
    def stop(number: int) -> Plain:
        """End a search with the best so far."""
        question = _found(desk, number)
        desk.stop(question)
        return plain.question_as_plain(desk, question)

    @app.delete("/api/questions/{number}", status_code=204, response_class=Response)
    def forget(number: int) -> Response:
        """Stop a question and forget it."""
        _found(desk, number)
        desk.forget(number)
        return Response(status_code=204)

    @app.put("/api/questions/{number}/bookmarks")
    def bookmark(number: int, wish: Bookmarks) -> Plain:
        """Keep some answers in mind."""
        question = _found(desk, number)
        question.bookmarks = tuple(sorted(set(wish.answers)))
        return plain.question_as_plain(desk, question)

    @app.get("/api/questions/{number}/export/{form}", response_class=Response)
    def export(
        number: int, form: Literal["json", "csv", "html", "md", "py", "toml", "sh"]
    ) -> Response:
        """Return an answer as a file."""
        question = _found(desk, number)
        if question.answer is None:
            raise HTTPException(409, "There is no answer yet.")
        body = exports.exported(form, desk.site, question.asked, question.answer)
        name = {"Content-Disposition": f'attachment; filename="answer-{number}.{form}"'}
        return Response(body, media_type="application/octet-stream", headers=name)

    @app.get("/api/questions/{number}/events", response_class=StreamingResponse)
    async def events(number: int) -> StreamingResponse:
        """Stream what happens to a question, until it ends."""
        stream = _events(desk, _found(desk, number))
        return StreamingResponse(stream, media_type="text/event-stream")


async def _events(desk: Desk, question: Ticket) -> AsyncIterator[str]:
    """Yield a question as it is, each step, and how it ended; now and then a sign of life."""
    yield _event("snapshot", plain.question_as_plain(desk, question))
    sent, quiet, ended = len(question.steps), 0.0, False
    while not ended:
        await asyncio.sleep(PAUSE)
        ended = question.ended  # what was said before it ended is told, too
        for step in question.steps[sent:]:
            sent, quiet = sent + 1, 0.0
            more = {"spent": question.spent, "seconds": round(question.seconds, 2)}
            now = {"step": plain.step_as_plain(step), "reachable": question.reachable, **more}
            yield _event("step", now)
        quiet += PAUSE
        if quiet >= 10:
            quiet = 0.0
            yield ": alive\n\n"
    yield _event("end", await asyncio.to_thread(plain.question_as_plain, desk, question))


def _event(kind: str, content: Plain) -> str:
    return f"event: {kind}\ndata: {json.dumps(content, allow_nan=False)}\n\n"


def _found(desk: Desk, number: int) -> Ticket:
    """Return a question, or say that there is none."""
    try:
        return desk[number]
    except KeyError:
        raise HTTPException(404, f"There is no question {number}.") from None


def _errors(app: FastAPI) -> None:
    """Let every error be one sentence, without paths and tracebacks."""

    def said(status: int, text: str) -> JSONResponse:
        return JSONResponse({"error": text}, status)

    @app.exception_handler(HTTPException)
    def http(_: Request, error: HTTPException) -> JSONResponse:
        return said(error.status_code, str(error.detail))

    @app.exception_handler(RequestValidationError)
    def form(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return said(422, one_line(f"{where or 'The request'}: {first['msg']}."))

    @app.exception_handler(BayesCFXError)
    def ours(_: Request, error: BayesCFXError) -> JSONResponse:
        return said(429 if isinstance(error, FullError) else 422, describe(error))

    @app.exception_handler(Exception)
    def others(_: Request, error: Exception) -> JSONResponse:
        return said(500, f"Something unexpected happened ({type(error).__name__}).")
