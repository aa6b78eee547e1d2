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

from bayescfx.data.tables import cells_of
from bayescfx.data.values import same_cell
from bayescfx.errors import BayesCFXError, one_line
from bayescfx.models.protocols import cell
from bayescfx.requests.messages import describe_error
from bayescfx.requests.target_text import TARGET_SYNTAX, parse_target
from bayescfx.result import wording
from bayescfx.result.assessment import what_if
from bayescfx.version import VERSION
from bayescfx.web.exports import exported
from bayescfx.web.forms import AskForm, Bookmarks, Goal, Guess, Line
from bayescfx.web.plain import Plain, curve_as_plain, intervals, row_as_plain, site_as_plain
from bayescfx.web.questions import Desk, FullError, GoneError, Ticket
from bayescfx.web.site import Site

OUTPUT = "(output)"  # what rows are sorted by if not by a column
PAUSE = 0.1  # seconds between two looks at a search

Limit = Annotated[float | None, Query(allow_inf_nan=False)]
Position = Annotated[int, Query(ge=0, le=10**9)]


def make_app(desk: Desk) -> FastAPI:
    """Return the page of a desk that answers questions."""
    site = desk.site
    errors: Any = (HTTPException, RequestValidationError, BayesCFXError, Exception)
    app = FastAPI(
        title="bayescfx",
        version=VERSION,
        description="What would have to change for the model to answer as wished?",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        exception_handlers=dict.fromkeys(errors, _said),
        responses={
            code: {"description": words, "content": {"application/json": {}}}
            for code, words in ((404, "Not there."), (422, "It makes no sense."))
        },
    )
    content = site_as_plain(site)
    _rows(app, desk)
    _questions(app, desk)
    vars(app)["openapi"] = lambda: _described(app, site)

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
        return {name: getattr(found, name) for name in ("output", "broken", "miss", "reached")}

    @app.post("/api/target")
    def goal(wish: Goal) -> Plain:
        """Say what a target means, seen from an output."""
        target = parse_target(wish.target)
        wanted = target.acceptance(wish.output, 0.0)
        accepted = target.acceptance(wish.output, wish.tolerance)
        met = any(low <= wish.output <= high for low, high in wanted)
        told = {"text": wording.intervals(wanted), "met": met}
        return told | {"wanted": intervals(wanted), "accepted": intervals(accepted)}

    @app.post("/api/curve")
    def response(line: Line) -> Plain:
        """Return how the model answers along one feature."""
        if line.feature not in map(str, site.space.features):
            raise HTTPException(404, f"There is no feature {line.feature!r}.")
        view = None if line.question is None else desk[line.question].view
        return curve_as_plain(site, line.cells, line.feature, view, score=line.score)

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
        some = [row_as_plain(site, int(i)) for i in found[offset : offset + limit]]
        return {"total": len(found), "rows": some}

    @app.get("/api/random")
    def random(low: Limit = None, high: Limit = None) -> Plain:
        """Return a row of the data by chance, with an output in a range."""
        found = within(low, high)
        if not len(found):
            raise HTTPException(404, "No row has such a prediction.")
        return row_as_plain(site, int(rng.choice(found)))


def _questions(app: FastAPI, desk: Desk) -> None:
    """Add the routes to questions and answers."""

    @app.post("/api/questions", status_code=202)
    def ask(asked: AskForm) -> Plain:
        """Ask a question; it is answered in its turn."""
        return desk.as_plain(desk.ask(asked))

    @app.get("/api/questions")
    def listed() -> Plain:
        """Return all questions, the newest first."""
        return {"questions": [desk.as_plain(question, whole=False) for question in desk]}

    @app.get("/api/questions/{number}")
    def one(number: int) -> Plain:
        """Return a question and its answer."""
        return desk.as_plain(desk[number])

    @app.post("/api/questions/{number}/stop")
    def stop(number: int) -> Plain:
        """End a search with the best so far."""
        desk.stop(desk[number])
        return desk.as_plain(desk[number])

    @app.delete("/api/questions/{number}", status_code=204, response_class=Response)
    def forget(number: int) -> Response:
        """Stop a question and forget it."""
        desk.forget(number)
        return Response(status_code=204)

    @app.put("/api/questions/{number}/bookmarks")
    def bookmark(number: int, wish: Bookmarks) -> Plain:
        """Keep some answers in mind."""
        desk[number].bookmarks = tuple(sorted(set(wish.answers)))
        return desk.as_plain(desk[number])

    @app.get("/api/questions/{number}/export/{form}", response_class=Response)
    def export(
        number: int, form: Literal["json", "csv", "html", "md", "py", "toml", "sh"]
    ) -> Response:
        """Return an answer as a file."""
        question = desk[number]
        if question.answer is None:
            raise HTTPException(409, "There is no answer yet.")
        body = exported(form, desk.site, question.asked, question.answer)
        name = {"Content-Disposition": f'attachment; filename="answer-{number}.{form}"'}
        return Response(body, media_type="application/octet-stream", headers=name)

    @app.get("/api/questions/{number}/events", response_class=StreamingResponse)
    async def events(number: int) -> StreamingResponse:
        """Stream what happens to a question, until it ends."""
        return StreamingResponse(_events(desk, desk[number]), media_type="text/event-stream")


async def _events(desk: Desk, question: Ticket) -> AsyncIterator[str]:
    """Yield a question as it is, each step, and how it ended; now and then a sign of life."""
    yield _event("snapshot", desk.as_plain(question))
    sent, quiet, ended = len(question.steps), 0.0, False
    while not ended:
        await asyncio.sleep(PAUSE)
        ended = question.ended  # what was said before it ended is told, too
        for step in question.steps[sent:]:
            sent, quiet = sent + 1, 0.0
            yield _event("step", {"step": step, **question.now()})
        quiet += PAUSE
        if quiet >= 10:
            quiet = 0.0
            yield ": alive\n\n"
    yield _event("end", await asyncio.to_thread(desk.as_plain, question))


def _event(kind: str, content: Plain) -> str:
    return f"event: {kind}\ndata: {json.dumps(content, allow_nan=False)}\n\n"


async def _said(_: Request, error: Exception) -> JSONResponse:
    """Return an error as one sentence, without paths and tracebacks."""
    status, text = 500, f"Something unexpected happened ({type(error).__name__})."
    if isinstance(error, HTTPException):
        status, text = error.status_code, str(error.detail)
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][1:])) or "The request"
        status, text = 422, one_line(f"{where}: {first['msg']}.")
    elif isinstance(error, BayesCFXError):
        status = {FullError: 429, GoneError: 404}.get(type(error), 422)
        text = describe_error(error)
    return JSONResponse({"error": text}, status)


def _described(app: FastAPI, site: Site) -> dict[str, Any]:
    """Return the OpenAPI description, in which rows have the columns of the data."""
    content = FastAPI.openapi(app)
    row = {
        "type": "object",
        "properties": {name: _cell(site, name) for name in site.shown.columns},
        "required": list(site.shown.columns),
        "examples": [site.cells(0)],
    }
    feature = {"type": "string", "enum": [str(name) for name in site.space.features]}
    told = {"cells": row, "query": {"anyOf": [row, {"type": "null"}]}, "feature": feature}
    for form in content["components"]["schemas"].values():
        known = form.get("properties", {})
        known |= {name: said for name, said in told.items() if name in known}
        for verb in {"fix", "allow", "only_up", "only_down"} & known.keys():
            known[verb]["items"] = feature
        if "target" in known:
            known["target"] |= {"description": f"As in {TARGET_SYNTAX}.", "examples": [">= +20%"]}
    return content


def _cell(site: Site, name: str) -> dict[str, Any]:
    """Return what a column holds; those of a group are numbers."""
    feature = site.space.features.get(name)
    if feature is None or feature.numeric:
        whole = feature is not None and feature.kind == "integer"
        return {"type": ["integer" if whole else "number", "null"]}
    if feature.levelled:
        return {"enum": [*map(cell, feature.levels), None]}
    return {"type": ["string", "null"]}
