"""Answers as lines of one flat table whose columns and dtypes depend on the space alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from bayescfx.data.tables import cells_of, free_name
from bayescfx.result import answer_text, wording
from bayescfx.result.explanation import Explanation
from bayescfx.space.rules.limits import limits_of
from bayescfx.space.space import Space

_HEAD = {"status": "string", "query_output": "float64"}
_TAIL = {
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
    movable = _movable_columns(space)
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


def _movable_columns(space: Space) -> list[int]:
    """Return the positions of the columns that may change: the query's own cells are kept too."""
    schema = space.schema
    fixed = {schema.positions[name] for name, limits in limits_of(space).items() if limits.fixed}
    return [c for c, feature in enumerate(schema.feature_at) if feature not in fixed]


def _columns(space: Space, movable: Sequence[int]) -> list[FlatColumn]:
    """Return all columns: head, the row, the query's movable cells, tail."""
    row = [FlatColumn(column.name, _dtype(column.dtype)) for column in space.schema.columns]
    names = [column.name for column in row]
    head = [FlatColumn(free_name(name, names), dtype) for name, dtype in _HEAD.items()]
    tail = [FlatColumn(free_name(name, names), dtype) for name, dtype in _TAIL.items()]
    taken = [column.name for column in (*row, *head, *tail)]
    before = [FlatColumn(free_name(f"{names[c]}_before", taken), row[c].dtype) for c in movable]
    return [*head, *row, *before, *tail]


def _refused_line(reason: str, n_columns: int) -> list[Any]:
    return ["error", *[None] * (n_columns - 2), reason]


def _answer_lines(answer: Explanation, movable: Sequence[int]) -> Iterator[list[Any]]:
    """Yield the cells of a line for each counterfactual."""
    query = cells_of(answer.query_rows)[0]
    before = [query[c] for c in movable]
    for found, row in zip(answer.counterfactuals, cells_of(answer.rows), strict=True):
        changes = answer_text.best_moves(answer)
        if found.changes:
            changes = wording.moves(found.changes)
        yield [
            answer.status,
            answer.output,
            *row,
            *before,
            found.output,
            found.valid,
            found.potential,
            found.cost,
            found.distance,
            found.n_changes,
            found.plausibility,
            changes,
            answer.n_evaluations,
            answer.stopped,
            None,  # no error
        ]


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
