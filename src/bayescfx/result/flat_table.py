"""Answers as lines of one flat table whose columns and dtypes depend on the space alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from bayescfx.data.tables import cells_of, free_name
from bayescfx.result.answer_frame import HEAD, TAIL, figures_of, movable_columns, names_before
from bayescfx.result.explanation import Explanation
from bayescfx.space.space import Space

_DTYPES = {
    "status": "string",
    "query_output": "float64",
    "output": "float64",
    "valid": "boolean",
    "potential": "float64",
    "cost": "float64",
    "distance": "float64",
    "n_changes": "Int64",
    "plausibility": "float64",
    "changes": "string",
    "n_evaluations": "Int64",
    "stopped": "string",
    "error": "string",
}


class FlatColumn(NamedTuple):
    """Name and dtype of a column of the flat table."""

    name: Hashable
    dtype: Any


def flat_table(
    space: Space,
    index: pd.Index[Any],
    answers: Mapping[int, Explanation],
    refused: Mapping[int, str],
) -> pd.DataFrame:
    """Return one line per counterfactual, or per refused query, in the order of the queries.

    Parameters
    ----------
    space : Space
        The space of all queries; it decides columns and dtypes.
    index : pandas.Index
        Labels of all queries.
    answers : dict of int to Explanation
        The answers, by position of the query.
    refused : dict of int to str
        Why a query can't be asked, by position of the query.
    """
    movable = movable_columns(space)
    columns = _columns(space, movable)
    positions: list[int] = []
    lines: list[list[Any]] = []
    for i in sorted([*answers, *refused]):
        if i in refused:
            found = [_refused_line(refused[i], len(columns))]
        else:
            found = list(_answer_lines(answers[i], movable))
        positions += [i] * len(found)
        lines += found
    series = {}
    for c, column in enumerate(columns):
        cells = [_cell(line[c], column.dtype) for line in lines]
        series[c] = pd.Series(cells, dtype=column.dtype)
    frame = pd.DataFrame(series)
    frame.columns = pd.Index([column.name for column in columns])
    return frame.set_axis(index.take(positions), axis=0)


def _columns(space: Space, movable: Sequence[int]) -> list[FlatColumn]:
    """Return all columns: head, the row, the query's movable cells, tail."""
    row = [FlatColumn(column.name, _dtype(column.dtype)) for column in space.schema.columns]
    names = [column.name for column in row]
    old = names_before((names[c] for c in movable), names)
    before = [FlatColumn(name, row[c].dtype) for name, c in zip(old, movable, strict=True)]
    taken = [*names, *old]
    head = [FlatColumn(free_name(name, taken), _DTYPES[name]) for name in HEAD]
    tail = [FlatColumn(free_name(name, taken), _DTYPES[name]) for name in (*TAIL, "error")]
    return [*head, *row, *before, *tail]


def _refused_line(reason: str, n_columns: int) -> list[Any]:
    return ["error", *[None] * (n_columns - 2), reason]


def _answer_lines(answer: Explanation, movable: Sequence[int]) -> Iterator[list[Any]]:
    """Yield the cells of a line for each counterfactual."""
    query = cells_of(answer.query_rows)[0]
    before = [query[c] for c in movable]
    for found, row in zip(answer.counterfactuals, cells_of(answer.rows), strict=True):
        figures = figures_of(answer, found)
        head = [figures[name] for name in HEAD]
        tail = [figures[name] for name in TAIL]
        yield [*head, *row, *before, *tail, None]  # no error


def _dtype(dtype: Any) -> Any:
    """Return a dtype that holds the cells of a column, and missing ones."""
    if isinstance(dtype, pd.CategoricalDtype):
        return _dtype(dtype.categories.dtype)
    by_kind = {"i": "Int64", "u": "UInt64", "b": "boolean", "O": "string"}
    return by_kind.get(dtype.kind, dtype)


def _cell(value: Any, dtype: Any) -> Any:
    """Return a cell in a form that its column holds; None if missing."""
    if value is None or pd.isna(value):
        return None
    return str(value) if dtype == "string" else value
