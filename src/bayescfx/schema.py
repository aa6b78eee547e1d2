"""The user's table: columns, dtypes, categories and one-hot groups; codes ↔ rows.

``codes`` are ``float64`` arrays of shape ``(n, d)``, one number per feature. ``rows`` are what the
model takes: a DataFrame with exactly the columns, order, dtypes and categories of the data (or a
2-D array of its dtype). A *table* is the DataFrame form of either.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.cells import Column, decode_cells, encode_cells, own_cells, strict_cells
from bayescfx.errors import QueryError, SpaceError, suggest
from bayescfx.features import Categorical, Feature, Integer, Real, cover

Rows: TypeAlias = "pd.DataFrame | np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Own:
    """The query's own cells: what decoding writes wherever a code equals the query's."""

    codes: Array  # (d,)
    table: pd.DataFrame  # one row

    @cached_property
    def block(self) -> np.ndarray[Any, Any]:
        """The cells as one array row of shape (1, columns)."""
        return self.table.to_numpy()


@dataclass(frozen=True)
class Schema:
    """Columns of the user's table and the features that stand for them.

    Parameters
    ----------
    features : dict of name to feature
        In order; the position of a feature is its position in a row of codes.
    columns : tuple of Column
    array : numpy dtype, optional
        Set if the model takes 2-D arrays of this dtype instead of frames.
    groups : dict of feature name to column names
        One-hot groups; the levels of such a feature are its column names.
    """

    features: Mapping[Hashable, Feature]
    columns: tuple[Column, ...]
    array: np.dtype[Any] | None
    groups: Mapping[Hashable, tuple[Hashable, ...]]

    @cached_property
    def names(self) -> tuple[Hashable, ...]:
        """Feature names in the order of the codes."""
        return tuple(self.features)

    @cached_property
    def positions(self) -> dict[Hashable, int]:
        """Position of each feature in a row of codes."""
        return {name: j for j, name in enumerate(self.features)}

    @cached_property
    def labels(self) -> tuple[Hashable, ...]:
        """Column names in the user's order."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def index(self) -> pd.Index[Any]:
        """Column names as a pandas index."""
        return _object_index(self.labels)

    @cached_property
    def owners(self) -> tuple[tuple[int, int | None], ...]:
        """Per column: position of its feature, and its place in a one-hot group or None."""
        member = {
            column: (self.positions[name], place)
            for name, columns in self.groups.items()
            for place, column in enumerate(columns)
        }
        return tuple(
            member.get(label, (self.positions.get(label, -1), None)) for label in self.labels
        )

    @cached_property
    def plain(self) -> np.dtype[Any] | None:
        """The one numeric dtype of all cells if codes are the cells themselves, else None."""
        dtypes = {column.dtype for column in self.columns}
        numeric = all(isinstance(feature, (Real, Integer)) for feature in self.features.values())
        dtype = dtypes.pop() if len(dtypes) == 1 else None
        if self.groups or not numeric or not isinstance(dtype, np.dtype) or dtype.kind not in "fiu":
            return None
        return dtype

    def position(self, name: Hashable) -> int:
        """Return the position of a feature; arrays also take column numbers.

        Raises
        ------
        SpaceError
            If there is no such feature.
        """
        if name in self.positions:
            return self.positions[name]
        if self.array is not None and isinstance(name, (int, np.integer)):
            return self.position(f"x{name}")
        known = ", ".join(str(n) for n in self.names[:12]) + (", …" if len(self.names) > 12 else "")
        raise SpaceError(
            f"`space` has no feature {name!r}.{suggest(name, self.names)} Features: {known}."
        )

    def table(self, rows: object, *, what: str = "query") -> pd.DataFrame:
        """Return `rows` as a DataFrame of exactly this schema.

        Parameters
        ----------
        rows : DataFrame, Series, dict, or array of shape (columns,) or (n, columns)
        what : str
            How to call the rows in messages.

        Raises
        ------
        QueryError
            If columns are missing or unknown, or a cell does not fit its column.
        """
        if isinstance(rows, pd.DataFrame):
            self._check_columns(rows.columns, what)
            parts: dict[Hashable, Any] = {label: rows[label] for label in self.labels}
        elif isinstance(rows, (pd.Series, Mapping)):
            self._check_columns(rows.keys(), what)
            parts = {label: _single(rows[label]) for label in self.labels}
        else:
            parts = self._array_parts(rows, what)
        cells = [strict_cells(parts[column.name], column, what) for column in self.columns]
        frame = pd.DataFrame(dict(enumerate(cells)))
        frame.columns = self.index
        return frame

    def _array_parts(self, rows: object, what: str) -> dict[Hashable, Any]:
        block = np.asarray(rows)
        block = block.reshape(1, -1) if block.ndim == 1 else block
        if block.ndim != 2 or block.shape[1] != len(self.columns):
            raise QueryError(
                f"`{what}` must have {len(self.columns)} columns; got shape {np.shape(block)}."
            )
        return {label: pd.Series(block[:, c]) for c, label in enumerate(self.labels)}

    def _check_columns(self, given: Iterable[Hashable], what: str) -> None:
        given = list(given)
        known = set(self.labels)
        missing = [label for label in self.labels if label not in set(given)]
        extra = [label for label in given if label not in known]
        if missing:
            raise QueryError(
                f"`{what}` must have every column of the space; missing: {_list(missing)}."
            )
        if extra:
            raise QueryError(
                f"`{what}` must have only the columns of the space; unknown: {_list(extra)}."
                f"{suggest(extra[0], known)} Drop what the model does not take."
            )
        if len(given) != len(known):
            raise QueryError(f"`{what}` must not have a column twice; got {_list(given)}.")

    def encode(self, rows: object, *, what: str = "rows") -> Array:
        """Return the codes of `rows`, shape (n, d).

        Raises
        ------
        QueryError
            If a cell is not a level of its feature, or a group has not exactly one 1.
        """
        table = self.table(rows, what=what)
        codes = np.empty((len(table), len(self.features)))
        for name, feature in self.features.items():
            j = self.positions[name]
            if name in self.groups:
                codes[:, j] = self._encode_group(table, name, what)
            else:
                codes[:, j] = encode_cells(table[name], feature, name, what)
        return codes

    def encode_column(self, name: Hashable, values: object) -> Array:
        """Return the codes of computed values of one column, in its dtype; shape (n,).

        Numbers are rounded to what the column's dtype holds.
        """
        column = self.columns[self.labels.index(name)]
        cells = pd.Series(values)
        if getattr(column.dtype, "kind", "O") in "iu" and cells.dtype.kind == "f":
            cells = cells.round()
        table = pd.Series(strict_cells(cells, column, "derived column"))
        return encode_cells(table, self.features[name], name, "derived column")

    def _encode_group(self, table: pd.DataFrame, name: Hashable, what: str) -> Array:
        block = table[list(self.groups[name])].to_numpy(np.float64)
        bad = (block.sum(axis=1) != 1) | ((block != 0) & (block != 1)).any(axis=1)
        if bad.any():
            row = block[np.flatnonzero(bad)[0]]
            raise QueryError(
                f"`{what}` must have exactly one 1 in the group {name!r}; got {row.tolist()}."
            )
        return block.argmax(axis=1).astype(np.float64)

    def rows(self, codes: Array, own: Own | None = None) -> Rows:
        """Return the user's rows for `codes` of shape (n, d).

        Parameters
        ----------
        own : Own, optional
            The query's cells; written, type and bits, wherever a code equals the query's.
        """
        if self.plain is not None:
            return self._plain_rows(codes, own, self.plain)
        table = self._mixed_table(codes, own)
        return table if self.array is None else table.to_numpy(self.array)

    def _plain_rows(self, codes: Array, own: Own | None, dtype: np.dtype[Any]) -> Rows:
        block: np.ndarray[Any, Any] = codes.astype(dtype)
        if own is not None and dtype.kind == "f":
            block = np.where((codes == own.codes) | np.isnan(codes), own.block, block)
        if self.array is not None:
            return block
        return pd.DataFrame(block, columns=self.index, copy=False)

    def _mixed_table(self, codes: Array, own: Own | None) -> pd.DataFrame:
        cells: dict[int, Any] = {}
        for c, (column, (j, place)) in enumerate(zip(self.columns, self.owners, strict=True)):
            code = codes[:, j]
            mine = None if own is None else own.table.iloc[:, c].array
            same = None if own is None else _same(code, own.codes[j])
            if mine is not None and same is not None and same.all():
                cells[c] = mine.repeat(len(code))
                continue
            if place is not None:
                cells[c] = (code == place).astype(column.dtype)
                continue
            found = decode_cells(code, self.features[self.names[j]], column.dtype)
            cells[c] = found if same is None else own_cells(found, same, mine)
        frame = pd.DataFrame(cells, index=pd.RangeIndex(len(codes)))
        frame.columns = self.index
        return frame

    def covering(self, table: pd.DataFrame) -> tuple[Schema, list[str]]:
        """Return the schema with features grown to include `table`, and which ones grew."""
        grown = dict(self.features)
        notes = []
        for name, feature in self.features.items():
            if name in self.groups:
                continue
            try:
                grown[name] = cover(feature, table[name])
            except SpaceError as error:
                raise QueryError(f"column {name!r}: {error}") from error
            if grown[name] != feature:
                notes.append(f"{name!r} to {_range_text(feature, grown[name])}")
        return (replace(self, features=grown) if notes else self), notes


def _range_text(before: Feature, after: Feature) -> str:
    if isinstance(before, Categorical) and isinstance(after, Categorical):
        return "the level " + ", ".join(repr(v) for v in after.levels[len(before.levels) :])
    return f"{getattr(after, 'low', None)!s} … {getattr(after, 'high', None)!s}"


def _same(code: Array, own: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.isnan(code) if np.isnan(own) else code == own


def _single(value: object) -> pd.Series[Any]:
    cell = np.empty(1, dtype=object)
    cell[0] = value
    return pd.Series(cell)


def _object_index(labels: tuple[Hashable, ...]) -> pd.Index[Any]:
    if all(isinstance(label, str) for label in labels):
        return pd.Index(list(labels))
    items = np.fromiter(labels, dtype=object, count=len(labels))
    return pd.Index(items, tupleize_cols=False).infer_objects()


def _list(names: list[Hashable]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")
