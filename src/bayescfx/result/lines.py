"""Answers as lines of one flat table whose columns and dtypes depend on the space alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from bayescfx.result import wording
from bayescfx.result.explanation import Explanation
from bayescfx.space.space import Space
from bayescfx.tables import cells_of, free_name


def lines(
    space: Space,
    index: pd.Index[Any],
    answers: Mapping[int, Explanation],
    refused: Mapping[int, str],
) -> pd.DataFrame:
    """Return a line per counterfactual, or per query that can't be asked, in order.

    `index` has the labels of all queries, `answers` and `refused` go by their positions.
    """
    columns, places = space.schema.columns, list[int]()
    own = _movable(space)  # columns with a second one for the query's own cells
    told: list[list[Any]] = []
    for i in sorted([*answers, *refused]):
        if i in refused:
            told.append(["error", None, *[None] * (len(columns) + len(own) + 9), refused[i]])
            places.append(i)
            continue
        a = answers[i]
        query = cells_of(a.layout.table([list(a.query)]))[0]
        then = [query[c] for c in own]
        for found, row in zip(a.counterfactuals, cells_of(a.rows), strict=True):
            known = (found.output, found.valid, found.potential, found.cost, found.n_changes)
            words = wording.moves(found.changes) if found.changes else wording.best_moves(a)
            moved = (found.usual, words, a.n_evaluations, a.stopped)
            told.append([a.status, a.output, *row, *then, *known, *moved, None])
            places.append(i)
    names = [column.name for column in columns]
    # float64 holds what is missing; other numbers need pandas' nullable dtypes for that
    kinds = {name: _dtype(column.dtype) for name, column in zip(names, columns, strict=True)}
    first = {"status": "string", "query_output": "float64"}
    last = {
        **{"output": "float64", "valid": "boolean", "potential": "float64", "cost": "float64"},
        **{"n_changes": "Int64", "usual": "float64", "changes": "string"},
        **{"n_evaluations": "Int64", "stopped": "string", "error": "string"},
    }
    head = {free_name(name, names): kind for name, kind in first.items()}
    tail = {free_name(name, names): kind for name, kind in last.items()}
    taken = [*names, *head, *tail]
    before = [(free_name(f"{names[c]}_before", taken), kinds[names[c]]) for c in own]
    every = [*head.items(), *((n, kinds[n]) for n in names), *before, *tail.items()]
    cells = list(zip(*told, strict=True)) or [()] * len(every)
    table = {
        c: pd.Series([_cell(v, kind) for v in column], dtype=kind)
        for c, (column, (_, kind)) in enumerate(zip(cells, every, strict=True))
    }
    frame = pd.DataFrame(table)
    frame.columns = pd.Index([name for name, _ in every])
    return frame.set_axis(index.take(places), axis=0)


def _movable(space: Space) -> list[int]:
    """Return the places of the columns that are not fixed."""
    schema = space.schema
    still = {
        schema.positions[name]
        for name, feature in space.features.items()
        if any(rule.told(name, feature) == "fixed" for rule in space.rules)
    }
    return [c for c, j in enumerate(schema.feature_at) if j not in still]


def _dtype(dtype: Any) -> Any:
    """Return a dtype that holds the cells of a column, and missing ones."""
    if isinstance(dtype, pd.CategoricalDtype):
        return _dtype(dtype.categories.dtype)
    by_kind = {"i": "Int64", "u": "UInt64", "b": "boolean", "O": "string"}
    return by_kind.get(dtype.kind, dtype)


def _cell(value: Any, kind: Any) -> Any:
    if value is None or pd.isna(value):
        return None
    return str(value) if kind == "string" else value
