"""From codes and outputs to the answer in the user's own terms."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from bayescfx.arrays import Array
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.search.question import Question
from bayescfx.space.region import Region
from bayescfx.space.schema import Schema
from bayescfx.tables import Layout, Row, as_frame, cells_of, row_of


def counterfactuals(question: Question, X: Array, y: Array) -> tuple[Counterfactual, ...]:
    """Return scored codes as counterfactuals, in the same order.

    Parameters
    ----------
    question : Question
        The question.
    X : ndarray of shape (n, d)
        Codes that were scored.
    y : ndarray of shape (n,)
        The model's outputs for them.

    Returns
    -------
    tuple of Counterfactual
        One per row.
    """
    region = question.region
    rows = region.rows(X)
    before = levels(region.schema, as_frame(region.rows(region.query[None])))[0]
    after = levels(region.schema, as_frame(rows))
    moved, cost = region.changes(X), region.distance(X)
    potential, valid = question.score(y), question.accepted(y)
    return tuple(
        Counterfactual(
            row=row_of(rows, i),
            output=float(y[i]),
            potential=float(potential[i]),
            changes={
                name: (before[name], after[i][name])
                for name, changed in zip(region.names, moved[i], strict=True)
                if changed
            },
            cost=float(cost[i]),
            valid=bool(valid[i]),
        )
        for i in range(len(X))
    )


def query_row(region: Region) -> tuple[Row, Layout]:
    """Return the query in the user's columns, and their layout."""
    rows = region.rows(region.query[None])
    return row_of(rows, 0), Layout.of(rows)


def levels(schema: Schema, frame: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """Return rows as dictionaries by feature; a one-hot group has its column's name as value."""
    found: list[dict[Hashable, Any]] = []
    for cells in cells_of(frame):
        row = {column.name: cell for column, cell in zip(schema.columns, cells, strict=True)}
        for name, members in schema.groups.items():
            row[name] = next((member for member in members if row[member] == 1), None)
        found.append({name: row[name] for name in schema.names})
    return found
