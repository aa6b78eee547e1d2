"""Rows whose cells are drawn from the columns of others, made quickly."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices
from bayescfx.data.tables import Rows


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """The cells of some rows, column by column.

    Parameters
    ----------
    names : list of names or positions, of length c
        The columns.
    cells : list of arrays of shape (n,)
        The cells of each column: of NumPy, or of pandas for its own dtypes.
    """

    names: list[Hashable]
    cells: list[Any]

    @classmethod
    def of(cls, rows: Rows) -> DrawnRows:
        """Return the cells of a DataFrame or an array."""
        if not isinstance(rows, pd.DataFrame):
            return cls(list(range(rows.shape[1])), list(rows.T))
        cells = []
        for place in range(rows.shape[1]):
            column = rows.iloc[:, place]
            is_plain = isinstance(column.dtype, np.dtype)
            cells.append(column.to_numpy() if is_plain else column.array)
        return cls(list(rows.columns), cells)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.cells[0])

    @property
    def numeric_places(self) -> list[int]:
        """The columns that hold numbers, booleans not counted."""
        return [place for place, each in enumerate(self.cells) if _is_numeric(each.dtype)]

    def numbers(self, place: int) -> Array:
        """Return a column of numbers ``(n,)`` in float64; nan for missing cells."""
        cells = self.cells[place]
        if isinstance(cells.dtype, np.dtype):
            return np.asarray(cells, dtype=np.float64)
        return np.asarray(cells.to_numpy(dtype=np.float64, na_value=np.nan))

    def take(self, order: Indices) -> DrawnRows:
        """Return the rows at some places."""
        return replace(self, cells=[each.take(order) for each in self.cells])

    def take_each(self, order: Indices) -> DrawnRows:
        """Return new rows, with the cells of each column at places of its own ``(k, c)``."""
        pairs = zip(self.cells, order.T, strict=True)
        return replace(self, cells=[each.take(own) for each, own in pairs])

    def table(self, like: Rows) -> Rows:
        """Return the rows as a table of the same kind as another one."""
        if not isinstance(like, pd.DataFrame):
            return np.stack(self.cells, axis=1).astype(like.dtype)
        frame = pd.DataFrame(dict(enumerate(self.cells)), copy=False)
        frame.columns = like.columns
        return frame


def join_rows(parts: Sequence[DrawnRows]) -> DrawnRows:
    """Return several sets of rows one after the other."""
    cells = []
    for place, first in enumerate(parts[0].cells):
        columns = [part.cells[place] for part in parts]
        if isinstance(first.dtype, np.dtype):
            cells.append(np.concatenate(columns))
        else:
            series = [pd.Series(column) for column in columns]
            cells.append(pd.concat(series, ignore_index=True).array)
    return replace(parts[0], cells=cells)


def _is_numeric(dtype: Any) -> bool:
    """Return whether a dtype is one of numbers, booleans not counted."""
    return bool(pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype))
