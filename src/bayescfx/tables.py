"""What a user's table looks like, and its rows as exact JSON and back.

A :class:`Layout` is the form of a table without its rows: names and dtypes of the columns, or width
and dtype of an array. With it, rows written as plain cells become the same rows again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.arrays import Indices
from bayescfx.values import Plain, from_plain, to_plain

Rows: TypeAlias = pd.DataFrame | NDArray[Any]
Row: TypeAlias = "pd.Series[Any] | NDArray[Any]"


@dataclass(frozen=True)
class Layout:
    """The form of a table: its columns and their dtypes.

    Parameters
    ----------
    names : tuple
        Column names; ``x0``, ``x1``, … for an array.
    dtypes : tuple
        One dtype per column.
    is_frame : bool
        Whether the table is a DataFrame; otherwise it is an array of one dtype.

    Examples
    --------
    >>> layout = Layout.of(pd.DataFrame({"age": [39], "job": ["clerk"]}))
    >>> layout.names
    ('age', 'job')
    >>> layout.table([[41, "cook"]])
       age   job
    0   41  cook
    """

    names: tuple[Any, ...]
    dtypes: tuple[Any, ...]
    is_frame: bool

    @classmethod
    def of(cls, rows: Rows) -> Layout:
        """Return the layout of a table."""
        if isinstance(rows, pd.DataFrame):
            return cls(tuple(rows.columns), tuple(rows.dtypes), is_frame=True)
        width = rows.shape[1]
        return cls(tuple(f"x{j}" for j in range(width)), (rows.dtype,) * width, is_frame=False)

    @classmethod
    def from_plain(cls, plain: Any) -> Layout:
        """Return the layout that :meth:`to_plain` wrote."""
        names = tuple(from_plain(name) for name in plain["names"])
        return cls(names, tuple(_read_dtype(d) for d in plain["dtypes"]), plain["frame"])

    def to_plain(self) -> dict[str, Plain]:
        """Return the layout in JSON's own types."""
        return {
            "frame": self.is_frame,
            "names": [to_plain(name) for name in self.names],
            "dtypes": [_write_dtype(dtype) for dtype in self.dtypes],
        }

    def merge(self, other: Layout) -> Layout:
        """Return a layout that holds the rows of both; the columns must be the same."""
        pairs = zip(self.dtypes, other.dtypes, strict=True)
        return Layout(self.names, tuple(_common(a, b) for a, b in pairs), self.is_frame)

    def table(self, cells: Sequence[Sequence[Any]]) -> Rows:
        """Return rows of cells, ``n`` lists of one cell per column, as a table."""
        if not self.is_frame:
            dtype = self.dtypes[0] if self.dtypes else np.float64
            table = np.empty((len(cells), len(self.names)), dtype=dtype)
            for i, row in enumerate(cells):
                table[i] = row
            return table
        columns = list(zip(*cells, strict=True)) if cells else [()] * len(self.names)
        series = [_column(list(c), dtype) for c, dtype in zip(columns, self.dtypes, strict=True)]
        frame = pd.concat(series, axis=1) if series else pd.DataFrame(index=range(len(cells)))
        frame.columns = pd.Index(list(self.names)) if series else frame.columns
        return frame


def cells_of(rows: Rows) -> list[list[Any]]:
    """Return the rows of a table as lists of cells.

    Examples
    --------
    >>> cells_of(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    [[1, 'x'], [2, 'y']]
    """
    if not isinstance(rows, pd.DataFrame):
        return [list(row) for row in rows.tolist()]
    columns = [rows.iloc[:, j].tolist() for j in range(rows.shape[1])]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[]] * len(rows)


def row_of(rows: Rows, i: int) -> Row:
    """Return one row as a Series (of an array: as an array) whose cells keep their types.

    Examples
    --------
    >>> row_of(pd.DataFrame({"a": [1], "b": [0.5]}), 0).tolist()
    [1, 0.5]
    """
    if not isinstance(rows, pd.DataFrame):
        line: NDArray[Any] = rows[i].copy()
        return line
    if rows.shape[1] and len(set(rows.dtypes)) == 1:
        row: pd.Series[Any] = rows.iloc[i].copy()
        row.name = None
        return row
    cells = np.empty(rows.shape[1], dtype=object)
    cells[:] = cells_of(rows.iloc[[i]])[0]
    return pd.Series(cells, index=rows.columns, dtype=object)


def join(tables: Sequence[Rows]) -> Rows:
    """Return the rows of several tables with the same columns as one table."""
    if len(tables) == 1:
        return tables[0]
    frames = [table for table in tables if isinstance(table, pd.DataFrame)]
    if frames:
        return pd.concat(frames, ignore_index=True)
    return np.concatenate([np.asarray(table) for table in tables])


def pick(rows: Rows, chosen: Indices) -> Rows:
    """Return some rows of a table, numbered anew."""
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[chosen].reset_index(drop=True)
    return rows[chosen]


def as_frame(rows: Rows) -> pd.DataFrame:
    """Return a copy of a table as a DataFrame; an array's columns are ``x0``, ``x1`` and so on."""
    if isinstance(rows, pd.DataFrame):
        return rows.copy()
    return pd.DataFrame(rows.copy(), columns=list(Layout.of(rows).names))


def free_name(name: str, taken: Iterable[Any]) -> str:
    """Return `name`, with ``_`` appended as often as it takes to be free.

    Examples
    --------
    >>> free_name("cost", ["cost", "age"])
    'cost_'
    """
    known = set(taken)
    while name in known:
        name += "_"
    return name


def _column(cells: Any, dtype: Any) -> pd.Series[Any]:
    if isinstance(dtype, pd.CategoricalDtype):
        cells = pd.Categorical(cells, dtype=dtype)
    column: pd.Series[Any] = pd.Series(cells, dtype=dtype)
    return column


def _write_dtype(dtype: Any) -> Plain:
    if isinstance(dtype, pd.CategoricalDtype):
        levels = [to_plain(level) for level in dtype.categories.tolist()]
        kind = _write_dtype(dtype.categories.dtype)
        return {"levels": levels, "ordered": bool(dtype.ordered), "dtype": kind}
    return str(dtype)


def _read_dtype(plain: Any) -> Any:
    if isinstance(plain, dict):
        levels = [from_plain(level) for level in plain["levels"]]
        index = pd.Index(levels, dtype=_read_dtype(plain["dtype"]))
        return pd.CategoricalDtype(index, ordered=plain["ordered"])
    return pd.api.types.pandas_dtype(plain)


def _common(a: Any, b: Any) -> Any:
    """Return a dtype that holds the values of both."""
    if a == b:
        return a
    if isinstance(a, pd.CategoricalDtype) and isinstance(b, pd.CategoricalDtype):
        levels = a.categories.append(b.categories.difference(a.categories, sort=False))
        return pd.CategoricalDtype(levels, ordered=bool(a.ordered and b.ordered))
    return pd.concat([pd.Series(dtype=a), pd.Series(dtype=b)]).dtype
