"""Routes about the site and single rows: data, predictions, targets, curves."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException

import bayescfx as cfx
from bayescfx.plots.info.curves import ResponseCurve
from bayescfx.requests.plain_values import json_fields
from bayescfx.requests.texts import (
    move_text,
    number_apart,
    parse_target,
    target_of_output,
    wanted_text,
)
from bayescfx.web.payloads import (
    Payload,
    curve_payload,
    intervals_payload,
    row_payload,
    site_payload,
)
from bayescfx.web.questions import QuestionQueue
from bayescfx.web.request_forms import CurveForm, PredictForm, TargetForm
from bayescfx.web.site import Site

OUTPUT = "(output)"  # the name of the output among the columns that rows are sorted by

Limit = Annotated[float | None, Query(allow_inf_nan=False)]
Position = Annotated[int, Query(ge=0, le=10**9)]
Positions = npt.NDArray[np.intp]


class RowIndex:
    """Finds and sorts the listed rows of a site."""

    def __init__(self, site: Site) -> None:
        self.site = site
        lines = site.listed.astype(object).to_numpy()
        self.texts = [" ".join(map(str, line)).casefold() for line in lines]  # to be searched

    def find(self, low: float | None, high: float | None, search: str = "") -> Positions:
        """Return the positions of rows with outputs in a range that contain a text.

        Parameters
        ----------
        low, high : float, optional
            The range of outputs; None is unbounded. Rows without an output are in no range.
        search : str
            A part of any cell, or a whole label; in upper or lower case.

        Returns
        -------
        ndarray of shape (k,)
            In the order of the data.
        """
        outputs = self.site.outputs
        is_found = np.ones(len(outputs), dtype=np.bool_)
        if low is not None:
            is_found &= outputs >= low
        if high is not None:
            is_found &= outputs <= high
        if search.strip():
            is_found &= self._contains(search.casefold().strip())
        return np.flatnonzero(is_found)

    def _contains(self, text: str) -> npt.NDArray[np.bool_]:
        """Return which rows contain a text, or have it as their label."""
        pairs = zip(self.texts, self.site.labels, strict=True)
        return np.array([text in cells or text == label.casefold() for cells, label in pairs])

    def sort(self, positions: Positions, column: str | None, *, descending: bool) -> Positions:
        """Return positions in the order of a column, or of the data."""
        listed = self.site.listed
        if column is None:
            return positions[::-1] if descending else positions
        if column not in (OUTPUT, *listed.columns):
            raise HTTPException(422, f"Rows can't be sorted by {column!r}.")
        keys = pd.Series(self.site.outputs) if column == OUTPUT else listed[column]
        chosen = keys.iloc[positions]
        return chosen.sort_values(ascending=not descending, kind="stable").index.to_numpy()


def row_routes(queue: QuestionQueue) -> APIRouter:
    """Return the routes about the site and single rows.

    Parameters
    ----------
    queue : QuestionQueue
        Its answers have the surrogates of curves.
    """
    router = APIRouter()
    site = queue.site
    description = site_payload(site)

    @router.get("/api/site")
    def about() -> Payload:
        """Return the model, its data and its features."""
        return description

    @router.post("/api/predict")
    def predict(form: PredictForm) -> Payload:
        """Score a row; return its cost, the constraints it breaks and how far the target is."""
        return _predict(site, form)

    @router.post("/api/target")
    def target(form: TargetForm) -> Payload:
        """Return the outputs that a target asks for, relative to an output."""
        _, parsed = target_of_output(site.model, parse_target(form.target))
        wanted = parsed.wanted(form.output)
        accepted = parsed.acceptance(form.output, form.tolerance)
        exactly = parsed.acceptance(form.output, 0.0)
        outputs = [form.output, *chain.from_iterable(wanted)]
        return {
            "text": wanted_text(wanted, partial(number_apart, others=outputs, rounding=1e-12)),
            "met": any(low <= form.output <= high for low, high in exactly),
            "wanted": intervals_payload(wanted),
            "accepted": intervals_payload(accepted),
        }

    @router.post("/api/curve")
    def curve(form: CurveForm) -> Payload:
        """Return the outputs along one feature."""
        if form.feature not in map(str, site.space.features):
            raise HTTPException(404, f"There is no feature {form.feature!r}.")
        view = None if form.question is None else queue[form.question].view
        found = ResponseCurve.of(site.read_row(form.cells).region, form.feature)
        return curve_payload(site, found, view, score=form.score)

    _add_data(router, RowIndex(site))
    return router


def _predict(site: Site, form: PredictForm) -> Payload:
    """Score a row.

    Cells of the row that differ from the query are its changes; without a query there are none.
    """
    row = site.read_row(form.cells).cells
    query = row if form.query is None else site.read_row(form.query).cells
    space = site.constrain({} if form.space is None else form.space.given())
    target: Any = None if form.target is None else parse_target(form.target)
    found = cfx.what_if(site.model, query, row, space, target, tolerance=form.tolerance)
    shown = json_fields(found, "output", "miss", "reached", "cost", "distance", "n_changes")
    follows = [f"{name} follows: {move_text(*pair)}" for name, pair in found.follows.items()]
    return {**shown, "broken": list(found.broken), "follows": follows}


def _add_data(router: APIRouter, index: RowIndex) -> None:
    """Add the routes to the rows of the data."""
    rng = np.random.default_rng()

    @router.get("/api/rows")
    def rows(
        search: Annotated[str, Query(max_length=1_000)] = "",
        sort: str | None = None,
        descending: bool = False,
        low: Limit = None,
        high: Limit = None,
        offset: Position = 0,
        limit: Annotated[int, Query(ge=1, le=200)] = 20,
    ) -> Payload:
        """Return rows of the data that contain a text, with outputs in a range, sorted."""
        found = index.sort(index.find(low, high, search), sort, descending=descending)
        page = found[offset : offset + limit]
        return {"total": len(found), "rows": [row_payload(index.site, int(i)) for i in page]}

    @router.get("/api/random")
    def random(low: Limit = None, high: Limit = None) -> Payload:
        """Return a random row of the data with an output in a range."""
        found = index.find(low, high)
        if not len(found):
            raise HTTPException(404, "No row has such a prediction.")
        return row_payload(index.site, int(rng.choice(found)))
