"""The application: the page, its JSON routes, its errors and its description."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

import bayescfx as cfx
from bayescfx.errors import BayesCFXError, one_line
from bayescfx.requests.messages import PAGE, describe_error
from bayescfx.requests.plain_values import json_value
from bayescfx.requests.texts import TARGET_SYNTAX
from bayescfx.web.question_routes import question_routes
from bayescfx.web.questions import NoQuestionError, QuestionQueue, QueueFullError
from bayescfx.web.request_forms import page_verbs
from bayescfx.web.row_routes import row_routes
from bayescfx.web.site import Site

#: The status of errors that are not about the request itself (422).
STATUS: dict[type[BayesCFXError], int] = {QueueFullError: 429, NoQuestionError: 404}


def make_app(queue: QuestionQueue) -> FastAPI:
    """Return the application of a queue of questions.

    Parameters
    ----------
    queue : QuestionQueue
        The questions, and through them the site.

    Returns
    -------
    FastAPI
        Without a guard: see `Guard`.
    """
    errors: Any = (HTTPException, RequestValidationError, BayesCFXError, Exception)
    refusals = {404: "Not found.", 422: "The request cannot be read."}
    app = DescribedApp(
        queue.site,
        title="bayescfx",
        version=cfx.__version__,
        description="What would have to change for the model to reach a target?",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        exception_handlers=dict.fromkeys(errors, _error_response),
        responses={
            code: {"description": text, "content": {"application/json": {}}}
            for code, text in refusals.items()
        },
    )
    app.include_router(row_routes(queue))
    app.include_router(question_routes(queue))
    _add_page(app)
    return app


def _add_page(app: FastAPI) -> None:
    """Add the routes of the page's own files."""

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(str(files("bayescfx.web") / "static" / "index.html"))

    @app.get("/vendor/plotly.min.js", include_in_schema=False)
    def plotly() -> FileResponse:
        path = str(files("plotly") / "package_data" / "plotly.min.js")
        return FileResponse(path, headers={"cache-control": "private, max-age=86400"})

    app.mount("/static", StaticFiles(packages=[("bayescfx.web", "static")]), name="static")


async def _error_response(_: Request, error: Exception) -> JSONResponse:
    """Return an error as one sentence, without paths and tracebacks."""
    status, text = _describe(error)
    return JSONResponse({"error": text}, status)


def _describe(error: Exception) -> tuple[int, str]:
    """Return the status and the sentence of an error.

    A message never holds a path, a traceback or the text of a request: the page shows it as it is.
    """
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or "The request"
        message = first["msg"].removeprefix("Value error, ").rstrip(".")
        return 422, one_line(f"{place}: {message}.")
    if isinstance(error, BayesCFXError):
        return STATUS.get(type(error), 422), describe_error(error, PAGE)
    return 500, f"An unexpected error occurred ({type(error).__name__})."


class DescribedApp(FastAPI):
    """An application whose OpenAPI description has the columns of a site's data."""

    def __init__(self, site: Site, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.site = site

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description, in which rows have the columns of the data."""
        content = super().openapi()
        columns = self.site.listed.columns
        row = {
            "type": "object",
            "properties": {name: _cell_schema(self.site, name) for name in columns},
            "required": list(columns),
            "examples": [self.site.listed_cells(0)],
        }
        feature = {"type": "string", "enum": [str(name) for name in self.site.space.features]}
        optional_row = {"anyOf": [row, {"type": "null"}]}
        known = {"cells": row, "query": optional_row, "feature": feature}
        target = {"description": f"As in {TARGET_SYNTAX}.", "examples": ["+20%"]}
        for form in content["components"]["schemas"].values():
            fields = form.get("properties", {})
            fields |= {name: schema for name, schema in known.items() if name in fields}
            if "target" in fields:
                fields["target"] |= target
        _name_features(content["components"]["schemas"]["Constraints"], feature)
        return content


def _name_features(form: dict[str, Any], feature: dict[str, Any]) -> None:
    """Let lists of names in the form of the constraints have names of features."""
    for verb in page_verbs():
        if verb.parameter.kind in ("names", "allowed names"):
            field = form["properties"][verb.name]
            field["anyOf"] = [{"type": "array", "items": feature}]


def _cell_schema(site: Site, name: str) -> dict[str, Any]:
    """Return the JSON schema of a column; columns of a group are numbers.

    Every column may be missing, as far as the description goes; the model decides.
    """
    feature = site.space.features.get(name)
    if feature is None:
        return {"type": ["number", "null"]}
    if feature.numeric:
        return {"type": ["integer" if feature.kind == "integer" else "number", "null"]}
    if feature.has_levels:
        return {"enum": [*(json_value(level) for level in feature.levels), None]}
    return {"type": ["string", "null"]}
