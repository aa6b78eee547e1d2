"""From rows to regions: the one place of a call where queries are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.errors import BayesCFXError, hearing
from bayescfx.space.region import Region
from bayescfx.space.rules.limits import limits_of
from bayescfx.space.space import Space

#: Raises an error if a row, a one-row table, must not be asked about.
CheckRow: TypeAlias = Callable[[Any], object]


@dataclass(frozen=True, eq=False)
class Queries:
    """A block of queries.

    Parameters
    ----------
    first : int
        The position of its first query among all queries of the call.
    rows : DataFrame or list
        The rows.
    targets : list
        One target per query.
    generators : list of numpy.random.Generator
        One per query.
    regions : dict of int to Region, optional
        The regions by position, if they were made before.
    n_spent : int
        Rows that were scored at the expense of the first query before.
    """

    first: int
    rows: Any
    targets: list[Any]
    generators: list[np.random.Generator]
    regions: Mapping[int, Region] | None = None
    n_spent: int = 0

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def index(self) -> pd.Index[Any]:
        """The labels of the queries."""
        if isinstance(self.rows, pd.DataFrame):
            return self.rows.index
        return pd.RangeIndex(self.first, self.first + len(self))

    def name(self, position: int) -> str:
        """Return how messages refer to a query: by its label, or by its position."""
        row_number = position - self.first
        label = None
        if isinstance(self.rows, pd.DataFrame):
            label = self.rows.index.tolist()[row_number]
        elif isinstance(self.rows[row_number], pd.Series):
            label = self.rows[row_number].name
        is_position = label is None or (isinstance(label, int) and label == position)
        return f"at position {position}" if is_position else repr(label)


def read_queries(
    space: Space, queries: Queries, check_row: CheckRow | None = None
) -> tuple[dict[int, Region], list[tuple[int, str]], dict[int, BayesCFXError]]:
    """Return the region around each query, notes about some, and errors of others, by position.

    Codes mean the same in all regions.
    """
    rows = queries.rows
    if isinstance(rows, pd.DataFrame):
        rows = [rows.iloc[i : i + 1] for i in range(len(rows))]
    regions: dict[int, Region] = {}
    notes: list[tuple[int, str]] = []
    errors: dict[int, BayesCFXError] = {}
    for position, row in enumerate(rows, queries.first):
        heard: list[str] = []
        with hearing(heard.append):
            try:
                if check_row is not None:
                    check_row(row)
                regions[position] = space.around(row)
            except BayesCFXError as error:
                errors[position] = error
        notes += [(position, text) for text in heard]
    schema = space.schema  # grows until it covers all queries
    for region in regions.values():
        if region.schema is not space.schema:
            schema, _, _ = schema.covering(region.own.cells, "query")
    if schema is not space.schema and len(regions) > 1:
        with hearing(lambda _: None):  # the notes are known
            for position in regions:
                regions[position] = space.around(rows[position - queries.first], schema=schema)
    return regions, notes, errors


def needs_regions(space: Space, queries: Queries) -> bool:
    """Return whether a query of a table may be refused, or needs a note."""
    if len(limits_of(space)) < len(space.rules):
        return True
    try:
        cells = space.schema.cells(queries.rows, what="query")
        _, codes, notes = space.schema.covering(cells, "query")
    except BayesCFXError:
        return True
    return bool(notes) or bool(np.isnan(codes).any())
