"""From rows to regions: the one place of a call where queries are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.errors import BayesCFXError
from bayescfx.space.queries import EncodedQueries
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
    encoded : EncodedQueries, optional
        The queries as codes, if they were encoded before.
    regions : dict of int to Region, optional
        The regions by position, if they were made before.
    n_spent : int
        Rows that were scored at the expense of the first query before.
    """

    first: int
    rows: Any
    targets: list[Any]
    generators: list[np.random.Generator]
    encoded: EncodedQueries | None = None
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


def encode_block(
    space: Space, queries: Queries, check_row: CheckRow | None = None
) -> EncodedQueries:
    """Return the queries of a block as codes, with notes and errors, by position in the call.

    Rows that `check_row` refuses are not encoded.
    """
    rows = queries.rows
    refused = {} if check_row is None else _refused_rows(rows, check_row)
    kept = [k for k in range(len(queries)) if k not in refused]
    if refused:
        is_table = isinstance(rows, pd.DataFrame)
        rows = rows.iloc[kept] if is_table else [rows[k] for k in kept]
    encoded = space.encode_queries(rows)
    errors: dict[int, BayesCFXError] = {queries.first + k: refused[k] for k in refused}
    errors |= {queries.first + kept[k]: error for k, error in encoded.errors.items()}
    return replace(
        encoded,
        positions=[queries.first + kept[k] for k in encoded.positions],
        extended={queries.first + kept[k]: s for k, s in encoded.extended.items()},
        notes={queries.first + kept[k]: texts for k, texts in encoded.notes.items()},
        errors=dict(sorted(errors.items())),
    )


def _refused_rows(rows: Any, check_row: CheckRow) -> dict[int, BayesCFXError]:
    """Return the errors of rows that must not be asked about, by row number."""
    is_table = isinstance(rows, pd.DataFrame)
    refused: dict[int, BayesCFXError] = {}
    for k in range(len(rows)):
        try:
            check_row(rows.iloc[k : k + 1] if is_table else rows[k])
        except BayesCFXError as error:
            refused[k] = error
    return refused


def has_rules(space: Space) -> bool:
    """Return whether rules other than limits may fail for a query."""
    return len(limits_of(space)) < len(space.rules)
