"""The user's table: columns, dtypes, categories and one-hot groups; codes ↔ rows.

``codes`` are ``float64`` arrays of shape ``(n, d)``, one number per feature. ``rows`` are what the
model takes: a DataFrame with exactly the columns, order, dtypes and categories of the data (or a
2-D array of its dtype). ``cells`` are one array per column, in the column's dtype.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices, Mask, same_codes
from bayescfx.checks import is_hashable, shown
from bayescfx.data import Feature
from bayescfx.data.tables import (
    Cells,
    Column,
    Layout,
    Row,
    Rows,
    as_pandas,
    identical,
    narrow_float,
)
from bayescfx.errors import QueryError, SpaceError, suggest


@dataclass(frozen=True, eq=False)
class Own:
    """The cells of one query, or of several; they are kept where a code equals the query's.

    Parameters
    ----------
    codes : array of shape (queries, d)
    cells : tuple of arrays
        One array of as many cells per column, in the column's dtype.
    """

    codes: Array
    cells: tuple[Cells, ...]

    @classmethod
    def of_all(cls, queries: Sequence[Own]) -> Own:
        """Return the cells of several queries."""
        if len(queries) == 1:
            return queries[0]
        columns = zip(*(own.cells for own in queries), strict=True)
        codes = np.concatenate([own.codes for own in queries])
        return cls(codes, tuple(map(_concatenate, columns)))

    def part(self, i: int) -> Own:
        """Return the cells of one of the queries."""
        if len(self.codes) == 1:
            return self
        return Own(self.codes[i : i + 1], tuple(column[i : i + 1] for column in self.cells))

    @cached_property
    def block(self) -> np.ndarray[Any, Any]:
        """The cells of a table of one dtype, shape (queries, columns)."""
        return np.stack(self.cells, axis=1)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The cells as a table; columns are numbered."""
        return _frame(self.cells, len(self.codes))

    @cached_property
    def _first_repeated(self) -> pd.DataFrame:
        """The first query, 1,024 times."""
        return self.frame.take([0] * 1024).reset_index(drop=True)

    def repeated(self, whose: Indices) -> pd.DataFrame:
        """Return a new table of the queries' cells, row by row those of query `whose` ``(n,)``."""
        if len(whose) == len(self.codes) == 1:
            return self.frame.copy()
        # Slicing a long table of the same query is faster, unless only few rows are wanted.
        if len(self.codes) == 1 and 8 < len(whose) <= len(self._first_repeated):
            return self._first_repeated.iloc[: len(whose)].copy()
        return self.frame.take(whose).reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class Schema:
    """Columns of the user's table and the features that stand for them.

    Parameters
    ----------
    features : dict of name to Feature
        In the order of a row of codes.
    columns : tuple of Column
        In the order of the table.
    array : dtype or None
        The dtype of the 2-D arrays that the model takes; None for tables.
    groups : dict of name to names
        The columns of each one-hot group; they are the levels of its feature.
    like : table, optional
        An empty table of polars or Arrow, if the model takes such tables.
    """

    features: Mapping[Hashable, Feature]
    columns: tuple[Column, ...]
    array: np.dtype[Any] | None
    groups: Mapping[Hashable, tuple[Hashable, ...]]
    like: Any = None

    @cached_property
    def names(self) -> tuple[Hashable, ...]:
        """Names of the features."""
        return tuple(self.features)

    @cached_property
    def positions(self) -> dict[Hashable, int]:
        """Positions of the features in a row of codes."""
        return {name: j for j, name in enumerate(self.features)}

    @cached_property
    def places(self) -> dict[Hashable, int]:
        """Positions of the columns in the table."""
        return {column.name: c for c, column in enumerate(self.columns)}

    @cached_property
    def _index(self) -> pd.Index[Any]:
        """The labels of the columns, as a table holds them."""
        return pd.Index(list(self.places), tupleize_cols=False)

    @cached_property
    def layout(self) -> Layout:
        """The layout of the user's rows."""
        is_frame = self.array is None
        dtypes = tuple(column.dtype if is_frame else self.array for column in self.columns)
        return Layout(tuple(self._index), dtypes, is_frame=is_frame)

    @cached_property
    def _members(self) -> dict[Hashable, int]:
        """Per column of a one-hot group: its place in the group."""
        places: dict[Hashable, int] = {}
        for columns in self.groups.values():
            for place, column in enumerate(columns):
                places[column] = place
        return places

    @cached_property
    def feature_at(self) -> list[int]:
        """Per column: the position of its feature."""
        group_of: dict[Hashable, Hashable] = {}
        for name, columns in self.groups.items():
            for column in columns:
                group_of[column] = name
        return [self.positions[group_of.get(name, name)] for name in self.places]

    @cached_property
    def plain(self) -> np.dtype[Any] | None:
        """The one numeric dtype of all cells if codes are the cells themselves, else None."""
        all_numeric = all(feature.numeric for feature in self.features.values())
        dtype, *others = {column.dtype for column in self.columns}
        if self.groups or others or not all_numeric or not isinstance(dtype, np.dtype):
            return None
        return dtype if dtype.kind in "fiu" else None

    def position(self, name: Hashable) -> int:
        """Return the position of a feature; spaces of arrays also take column numbers."""
        if not is_hashable(name):
            raise SpaceError(
                f"features must be named one by one; got {shown(name)}. Write *names for a list."
            )
        if name in self.positions:
            return self.positions[name]
        if self.array is not None and isinstance(name, (int, np.integer)):
            return self.position(f"x{name}")
        raise self._unknown_feature(name)

    def _unknown_feature(self, name: Hashable) -> SpaceError:
        """Return the error about a name that no feature has."""
        known = ", ".join(str(n) for n in self.names[:12])
        known += ", …" if len(self.names) > 12 else ""
        meant = suggest(name, self.names)
        return SpaceError(f"there is no feature {shown(name)}.{meant} Features: {known}.")

    # ── rows to codes ──

    def cells(self, rows: object, *, what: str = "rows") -> tuple[Cells, ...]:
        """Return a table, a Series, a dict or an array as one array per column, in its dtype."""
        rows = as_pandas(rows)
        if not isinstance(rows, (pd.DataFrame, pd.Series, Mapping)):
            return self._unnamed_cells(rows, what)
        is_table = isinstance(rows, pd.DataFrame)
        named: Any = rows if is_table else dict(rows.items())
        if list(named) != list(self.places):
            self._check_columns(named, what)
        read = Column.strict if is_table else Column.strict_one
        return tuple(read(column, named[column.name], what) for column in self.columns)

    def _unnamed_cells(self, rows: Any, what: str) -> tuple[Cells, ...]:
        """Return the cells of an array, or of a list of cells."""
        # A list of cells of several types would become text.
        block = np.asarray(rows, dtype=object if isinstance(rows, (list, tuple)) else None)
        if block.ndim == 0:
            must = "a Series, a dict, a DataFrame or an array"
            raise QueryError(f"`{what}` must be {must}; got {type(rows).__name__}.")
        block = np.atleast_2d(block)
        if block.shape[1:] != (len(self.columns),):
            raise QueryError(
                f"`{what}` must have {len(self.columns)} columns; got shape {block.shape}."
            )
        pairs = zip(self.columns, block.T, strict=True)
        return tuple(column.strict(given, what) for column, given in pairs)

    def _check_columns(self, labels: Iterable[Hashable], what: str) -> None:
        """Raise unless labels are the columns of the space, in any order."""
        given = list(labels)
        present = set(given)
        missing = [name for name in self.places if name not in present]
        extra = [name for name in given if name not in self.places]
        if missing:
            raise QueryError(
                f"`{what}` must have every column of the space; missing: {_list(missing)}."
                f"{suggest(missing[0], extra)} Rename or add it."
            )
        if extra:
            raise QueryError(
                f"`{what}` must have only the columns of the space; unknown: {_list(extra)}."
                f"{suggest(extra[0], self.places)} Drop what the model does not take."
            )
        if len(given) != len(self.places):
            raise QueryError(f"`{what}` must not have a column twice; got {_list(given)}.")

    def encode(self, rows: object) -> Array:
        """Return the codes of `rows`, shape (n, d); every level must be known."""
        codes = self.encode_cells(self.cells(rows))
        for j, (name, feature) in enumerate(self.features.items()):
            if (feature.has_levels & (codes[:, j] == -1)).any():
                raise QueryError(
                    f"`rows` must hold known levels, but {name!r} has others than "
                    f"{_list(list(feature.levels))}. Use `space.including(rows)` to add them."
                )
        return codes

    def encode_cells(self, cells: tuple[Cells, ...], *, what: str = "rows") -> Array:
        """Return the codes of cells, shape (n, d), with -1 for unknown levels."""
        codes = np.empty((len(cells[0]), len(self.features)))
        for j, (name, feature) in enumerate(self.features.items()):
            if name in self.groups:
                codes[:, j] = self._encode_group(name, cells, what)
            else:
                codes[:, j] = feature.encode(cells[self.places[name]])
        return codes

    def _encode_group(self, name: Hashable, cells: tuple[Cells, ...], what: str) -> Array:
        """Return the codes ``(n,)`` of one-hot columns; each row must have exactly one 1."""
        columns = []
        for member in self.groups[name]:
            column = pd.Series(cells[self.places[member]])
            columns.append(column.to_numpy(np.float64, na_value=np.nan))
        block = np.stack(columns, axis=1)
        codes = group_codes(block)
        invalid = np.flatnonzero(codes == -1)
        if len(invalid):
            raise QueryError(
                f"`{what}` must have exactly one 1 in the group {name!r}; got "
                f"{block[invalid[0]].tolist()}."
            )
        return codes

    def encode_column(self, name: Hashable, given: np.ndarray[Any, Any]) -> Array:
        """Return the codes of computed values ``(n,)``, rounded to what the column holds."""
        column = self.columns[self.places[name]]
        feature = self.features[name]
        if column.dtype.kind in "iu" and given.dtype.kind == "f":
            given = np.rint(given)
        codes = feature.encode(column.strict(given, f"derived column {name!r}"))
        unknown = np.flatnonzero(feature.has_levels & (codes == -1)).tolist()
        if unknown:
            bad = given.tolist()[unknown[0]]
            raise SpaceError(f"derived column {name!r} must be one of its levels; got {bad!r}.")
        return codes

    def is_outside(self, codes: Array) -> Mask:
        """Return which codes ``(n, d)`` are out of range or unknown levels; groups are not."""
        ranges = []
        for name, feature in self.features.items():
            ranges.append((-np.inf, np.inf) if name in self.groups else feature.code_range)
        low, high = np.array(ranges).T
        return np.asarray((codes < low) | (codes > high))

    def covering(
        self, cells: tuple[Cells, ...], what: str
    ) -> tuple[Schema, Array, dict[Hashable, str]]:
        """Return the schema grown to include the cells, their codes, and how features grew."""
        grown = dict(self.features)
        codes = self.encode_cells(cells, what=what)
        notes: dict[Hashable, str] = {}
        is_outside = self.is_outside(codes)
        for j in np.flatnonzero(is_outside.any(axis=0)).tolist():
            name = self.names[j]
            values = pd.Series(cells[self.places[name]])[is_outside[:, j]]
            grown[name] = _grow(name, self.features[name], values, what)
            notes[name] = f"{name!r} by {grown[name].growth(self.features[name])}"
        if not notes:
            return self, codes, notes
        schema = replace(self, features=grown)
        return schema, schema.encode_cells(cells, what=what), notes

    # ── codes to rows ──

    def decode(self, codes: Array) -> Rows:
        """Return the user's rows for `codes` ``(n, d)``, as the features write them."""
        if self.plain is not None:
            return self._table(codes.astype(self.plain))
        cells = [self._decoded(c, codes[:, j]) for c, j in enumerate(self.feature_at)]
        return self._table(_frame(cells, len(codes)))

    def rows(self, codes: Array, own: Own, whose: Indices | None = None) -> Rows:
        """Return the user's rows for `codes` ``(n, d)``.

        The query's own cells are written, type and bits, wherever a code equals the query's; of
        several queries `whose` ``(n,)`` is the one of each row. Only columns that move are decoded.
        """
        codes = codes + 0.0  # a zero has no sign, unless it is the query's own
        if whose is None:
            whose = np.zeros(len(codes), dtype=np.intp)
        is_single = len(own.codes) == 1
        own_codes = own.codes if is_single else own.codes[whose]
        same = np.asarray(codes == own_codes)
        is_missing = np.isnan(own_codes)
        if is_missing.any():
            same |= is_missing & np.isnan(codes)
        if self.plain is None:
            return self._table(self._mixed_rows(codes, same, own, whose))
        block: np.ndarray[Any, Any] = codes.astype(self.plain)
        if self.plain.kind == "f":
            np.copyto(block, own.block if is_single else own.block[whose], where=same)
        return self._table(block)

    def _mixed_rows(self, codes: Array, same: Mask, own: Own, whose: Indices) -> pd.DataFrame:
        """Return rows of several dtypes; `same` ``(n, d)`` marks codes that equal the query's."""
        moved = self._moved_cells(codes, same, own, whose)
        if 2 * len(moved) < len(self.columns):  # copy the query's rows and replace columns
            frame = own.repeated(whose)
            for c, column in moved.items():
                frame.isetitem(c, _held(column, frame.index))
            return frame
        columns = []
        for c in range(len(self.columns)):
            columns.append(moved[c] if c in moved else own.cells[c].take(whose))
        return _frame(columns, len(codes))

    def _moved_cells(self, codes: Array, same: Mask, own: Own, whose: Indices) -> dict[int, Cells]:
        """Return by column the cells of the features that differ from the query's in any row."""
        has_moved = np.asarray(~same.all(axis=0))
        moved: dict[int, Cells] = {}
        for c, j in enumerate(self.feature_at):
            if has_moved[j]:
                moved[c] = self._decoded(c, codes[:, j])
                self._keep(c, moved[c], same[:, j], own, whose)
        return moved

    def odd(self, cells: tuple[Cells, ...], codes: Array) -> dict[int, Mask]:
        """Return by column which cells differ from what decoding their codes ``(n, d)`` gives.

        Examples are ``-0.0``, ``True`` where 1 is a level, and times between two microseconds. Rows
        with the same codes are the same rows only if these cells are the same, too.
        """
        if self.plain == np.float64:
            is_negative_zero = np.signbit(codes) & (codes == 0)
            columns = np.flatnonzero(is_negative_zero.any(axis=0)).tolist()
            return {c: is_negative_zero[:, c] for c in columns}
        odd: dict[int, Mask] = {}
        for c, j in enumerate(self.feature_at):
            if self.columns[c].has_variants:
                differs = ~identical(self._decoded(c, codes[:, j] + 0.0), cells[c])
                if differs.any():
                    odd[c] = differs
        return odd

    def _table(self, block: Rows) -> Rows:
        """Return an array or a table with numbered columns as what the model takes."""
        if self.array is not None:
            return np.asarray(block, dtype=self.array)
        if not isinstance(block, pd.DataFrame):
            block = pd.DataFrame(block, copy=False)
        block.columns = self._index
        return block

    def write(self, rows: Rows, j: int, codes: Array, own: Own) -> None:
        """Write the codes ``(n,)`` of one feature into rows of a query, in place."""
        c = self.places[self.names[j]]
        cells = self._decoded(c, codes)
        is_same = same_codes(codes, own.codes[0, j])
        self._keep(c, cells, is_same, own, np.zeros(len(codes), dtype=np.intp))
        if isinstance(rows, pd.DataFrame):
            rows.isetitem(c, _held(cells, rows.index))
        else:
            rows[:, c] = cells

    def _decoded(self, c: int, codes: Array) -> Cells:
        """Return the cells of a column for the codes ``(n,)`` of its feature."""
        column = self.columns[c]
        if column.name in self._members:
            cells: Any = pd.Series(codes == self._members[column.name]).astype(column.dtype)
            missing = np.isnan(codes)
            if missing.any():
                cells = cells.mask(missing)
            return cells.array
        return self.features[column.name].decode(codes, column.dtype)

    def _keep(self, c: int, cells: Cells, same: Mask, own: Own, whose: Indices) -> None:
        """Write the queries' own cells, in place, where objects, floats and times may differ."""
        column = self.columns[c]
        if column.name not in self._members and column.has_variants:
            cells[same] = own.cells[c][whose[same]]


def _concatenate(columns: Sequence[Cells]) -> Cells:
    """Return the cells of several columns of one dtype as one column."""
    if isinstance(columns[0], np.ndarray):
        return np.concatenate(columns)
    return columns[0]._concat_same_type(columns)


def _grow(name: Hashable, feature: Feature, values: pd.Series[Any], what: str) -> Feature:
    """Return a feature grown to include values outside its range."""
    if feature.period:
        raise QueryError(
            f"`{what}` must lie on the circle of {name!r}, {feature!r}; got {values.iloc[0]!r}."
        )
    try:
        return feature.covering(values)
    except SpaceError as error:
        raise QueryError(f"`{what}` does not fit {name!r}: {error}") from error


def _frame(cells: Sequence[Cells], n: int) -> pd.DataFrame:
    """Return columns of `n` cells each as a table; columns are numbered."""
    index = pd.RangeIndex(n)
    return pd.DataFrame({c: _held(column, index) for c, column in enumerate(cells)}, index=index)


def _held(cells: Cells, index: pd.Index[Any]) -> Any:
    """Return cells as a table holds them: pandas would turn a column of objects into text."""
    return pd.Series(cells, index=index, dtype=object) if cells.dtype == object else cells


def group_codes(block: Array) -> Array:
    """Return where the 1 is in rows ``(n, k)``: nan if all are missing, -1 if not exactly one."""
    is_binary = ((block == 0) | (block == 1)).all(axis=1)
    is_one_hot = is_binary & (block.sum(axis=1) == 1)
    codes = np.where(is_one_hot, np.nan_to_num(block).argmax(axis=1), -1.0)
    return np.where(np.isnan(block).all(axis=1), np.nan, codes)


def _list(names: list[Hashable]) -> str:
    """Return the first ten names, and how many more there are."""
    text = ", ".join(repr(name) for name in names[:10])
    return text if len(names) <= 10 else f"{text} and {len(names) - 10} more"


def by_feature(schema: Schema, rows: list[Row]) -> list[dict[Hashable, Any]]:
    """Return the cells of rows by feature; a one-hot group has its column's name as value.

    Numbers of a narrow type, such as float32, are the shortest decimals that stand for them.
    """
    kinds = {column.name: narrow_float(column.dtype) for column in schema.columns}
    narrow = {name: kind for name, kind in kinds.items() if kind is not None}
    by_name: list[dict[Hashable, Any]] = []
    for cells in rows:
        row = dict(zip(schema.places, cells.tolist(), strict=True))
        for column, kind in narrow.items():
            if isinstance(row[column], float):
                row[column] = float(str(kind(row[column])))
        for name, members in schema.groups.items():
            row[name] = _marked(row, members)
        by_name.append(row)
    return by_name


def _marked(row: Mapping[Hashable, Any], members: Iterable[Hashable]) -> Hashable | None:
    """Return the column of a one-hot group that has the 1; None where the cells are missing."""
    for member in members:
        if pd.notna(row[member]) and row[member] == 1:
            return member
    return None
