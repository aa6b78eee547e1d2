"""The user's table: columns, dtypes, categories and one-hot groups; codes ↔ rows.

``codes`` are ``float64`` arrays of shape ``(n, d)``, one number per feature. ``rows`` are what the
model takes: a DataFrame with exactly the columns, order, dtypes and categories of the data (or a
2-D array of its dtype). ``cells`` are one array per column, in the column's dtype.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import filterfalse, repeat
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices, Mask, same_codes
from bayescfx.checks import is_hashable, shown
from bayescfx.data import Feature
from bayescfx.data.tables import Cells, Column, Layout, Row, Rows, as_pandas, identical
from bayescfx.errors import QueryError, SpaceError, suggest


@dataclass(frozen=True, eq=False)
class Own:
    """The cells of one query, or of several: what is written where a code equals the query's."""

    codes: Array  # (queries, d)
    cells: tuple[Cells, ...]  # one array of as many cells per column

    @classmethod
    def of_all(cls, queries: Sequence[Own]) -> Own:
        """Return the cells of several queries."""
        if len(queries) == 1:
            return queries[0]
        cells = []
        for column in zip(*(own.cells for own in queries), strict=True):
            numpy = isinstance(column[0], np.ndarray)
            cells.append((np.concatenate if numpy else column[0]._concat_same_type)(column))
        return cls(np.concatenate([own.codes for own in queries]), tuple(cells))

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
    def _first(self) -> pd.DataFrame:
        return self.frame.take([0] * 1024).reset_index(drop=True)

    def repeated(self, whose: Indices) -> pd.DataFrame:
        """Return a new table of the queries' cells, row by row those of query `whose` ``(n,)``."""
        if len(whose) == len(self.codes) == 1:
            return self.frame.copy()
        # Of one query a long table is kept, unless few rows are all that is wanted.
        if len(self.codes) == 1 and 8 < len(whose) <= len(self._first):
            return self._first.iloc[: len(whose)].copy()
        return self.frame.take(whose).reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class Schema:
    """Columns of the user's table and the features that stand for them."""

    features: Mapping[Hashable, Feature]  # in the order of a row of codes
    columns: tuple[Column, ...]
    array: np.dtype[Any] | None  # the model takes 2-D arrays of this dtype instead of frames
    groups: Mapping[Hashable, tuple[Hashable, ...]]  # one-hot: feature to columns, its levels
    like: Any = None  # an empty table of polars or Arrow: the model takes such tables

    names: tuple[Hashable, ...] = field(init=False, repr=False)  # of the features
    positions: dict[Hashable, int] = field(init=False, repr=False)  # of features in a row of codes
    places: dict[Hashable, int] = field(init=False, repr=False)  # of columns in the table

    def __post_init__(self) -> None:
        positions = {name: j for j, name in enumerate(self.features)}
        places = {column.name: c for c, column in enumerate(self.columns)}
        vars(self).update(names=tuple(positions), positions=positions, places=places)

    @cached_property
    def _index(self) -> pd.Index[Any]:
        return pd.Index(list(self.places), tupleize_cols=False)

    @cached_property
    def layout(self) -> Layout:
        """The layout of the user's rows."""
        array, frame = self.array, self.array is None
        dtypes = tuple(column.dtype if frame else array for column in self.columns)
        return Layout(tuple(self._index), dtypes, is_frame=frame)

    @cached_property
    def _members(self) -> dict[Hashable, int]:
        """Per column of a one-hot group: its place in the group."""
        groups = self.groups.values()
        return {column: place for columns in groups for place, column in enumerate(columns)}

    @cached_property
    def feature_at(self) -> list[int]:
        """Per column: the position of its feature."""
        group = {column: name for name, columns in self.groups.items() for column in columns}
        return [self.positions[group.get(name, name)] for name in self.places]

    @cached_property
    def plain(self) -> np.dtype[Any] | None:
        """The one numeric dtype of all cells if codes are the cells themselves, else None."""
        numeric = {feature.numeric for feature in self.features.values()}
        dtype, *others = {column.dtype for column in self.columns}
        if self.groups or others or False in numeric or not isinstance(dtype, np.dtype):
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
        known = ", ".join(str(n) for n in self.names[:12]) + (", …" if len(self.names) > 12 else "")
        raise SpaceError(
            f"there is no feature {shown(name)}.{suggest(name, self.names)} Features: {known}."
        )

    # ── rows to codes ──

    def cells(self, rows: object, *, what: str = "rows") -> tuple[Cells, ...]:
        """Return a table, a Series, a dict or an array as one array per column, in its dtype."""
        rows = as_pandas(rows)
        if isinstance(rows, (pd.DataFrame, pd.Series, Mapping)):
            table = isinstance(rows, pd.DataFrame)
            named: Any = rows if table else dict(rows.items())
            if [*named] != [*self.places]:
                self._check_columns(named, what)
            taken = Column.strict if table else Column.strict_one
            given = map(named.__getitem__, self.places)
            return tuple(map(taken, self.columns, given, repeat(what)))
        # A list of cells of several types would become text.
        block = np.asarray(rows, dtype=object if isinstance(rows, (list, tuple)) else None)
        if block.ndim == 0:
            must = "a Series, a dict, a DataFrame or an array"
            raise QueryError(f"`{what}` must be {must}; got {type(rows).__name__}.")
        block = block.reshape(1, -1) if block.ndim == 1 else block
        if block.ndim != 2 or block.shape[1] != len(self.columns):
            raise QueryError(
                f"`{what}` must have {len(self.columns)} columns; got shape {block.shape}."
            )
        return tuple(map(Column.strict, self.columns, block.T, repeat(what)))

    def _check_columns(self, labels: Iterable[Hashable], what: str) -> None:
        given = list(labels)
        missing = [*filterfalse(set(given).__contains__, self.places)]
        extra = [*filterfalse(self.places.__contains__, given)]
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
            if feature.has_levels and (codes[:, j] == -1).any():
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
                members = [pd.Series(cells[self.places[c]]) for c in self.groups[name]]
                block = np.stack([m.to_numpy(np.float64, na_value=np.nan) for m in members], axis=1)
                codes[:, j] = group_codes(block)
                bad = np.flatnonzero(codes[:, j] == -1)
                if len(bad):
                    raise QueryError(
                        f"`{what}` must have exactly one 1 in the group {name!r}; got "
                        f"{block[bad[0]].tolist()}."
                    )
            else:
                codes[:, j] = feature.encode(cells[self.places[name]])
        return codes

    def encode_column(self, name: Hashable, given: np.ndarray[Any, Any]) -> Array:
        """Return the codes of computed values ``(n,)``, rounded to what the column holds."""
        column, feature = self.columns[self.places[name]], self.features[name]
        if column.dtype.kind in "iu" and given.dtype.kind == "f":
            given = np.rint(given)
        codes = feature.encode(column.strict(given, f"derived column {name!r}"))
        if feature.has_levels and (codes == -1).any():
            bad = given.tolist()[int(np.flatnonzero(codes == -1)[0])]
            raise SpaceError(f"derived column {name!r} must be one of its levels; got {bad!r}.")
        return codes

    def covering(self, cells: tuple[Cells, ...], what: str) -> tuple[Schema, Array, list[str]]:
        """Return the schema with features grown to include the cells, their codes, what grew."""
        grown = dict(self.features)
        codes = self.encode_cells(cells, what=what)
        notes = []
        for j, (name, feature) in enumerate(self.features.items()):
            low, high = feature.code_range
            outside = (codes[:, j] < low) | (codes[:, j] > high)
            if name in self.groups or not outside.any():
                continue
            values = pd.Series(cells[self.places[name]])[outside]
            if feature.period:
                raise QueryError(
                    f"`{what}` must lie on the circle of {name!r}, {feature!r}; got "
                    f"{values.iloc[0]!r}."
                )
            try:
                grown[name] = feature.covering(values)
            except SpaceError as error:
                raise QueryError(f"`{what}` does not fit {name!r}: {error}") from error
            notes.append(f"{name!r} by {grown[name].growth(feature)}")
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
        several queries `whose` ``(n,)`` says which one counts. Only columns that move are decoded.
        """
        codes = codes + 0.0  # a zero has no sign, unless it is the query's own
        whose = np.zeros(len(codes), dtype=np.intp) if whose is None else whose
        single = len(own.codes) == 1
        mine = own.codes if single else own.codes[whose]
        same, missing = codes == mine, np.isnan(mine)
        if missing.any():
            same |= missing & np.isnan(codes)
        if self.plain is not None:
            block: np.ndarray[Any, Any] = codes.astype(self.plain)
            if self.plain.kind == "f":
                np.copyto(block, own.block if single else own.block[whose], where=same)
            return self._table(block)
        moved, cells = ~same.all(axis=0), dict[int, Cells]()
        for c, j in enumerate(self.feature_at):
            if moved[j]:
                cells[c] = self._decoded(c, codes[:, j])
                self._keep(c, cells[c], same[:, j], own, whose)
        if 2 * len(cells) < len(self.columns):
            frame = own.repeated(whose)
            for c, column in cells.items():
                frame.isetitem(c, _held(column, frame.index))
        else:
            rest = {c: own.cells[c].take(whose) for c in range(len(self.columns)) if c not in cells}
            frame = _frame([column for _, column in sorted((cells | rest).items())], len(codes))
        return self._table(frame)

    def odd(self, cells: tuple[Cells, ...], codes: Array) -> dict[int, Mask]:
        """Return by column which cells are not what is written for their codes ``(n, d)``.

        So are ``-0.0``, ``True`` where 1 is a level, times between two microseconds: rows with the
        same codes are the same rows only if these cells are the same, too.
        """
        if self.plain == np.float64:
            zeros = np.signbit(codes) & (codes == 0)
            some = np.flatnonzero(zeros.any(axis=0))
            return {c: zeros[:, c] for c in some.tolist()} if len(some) else {}
        found: dict[int, Mask] = {}
        for c, j in enumerate(self.feature_at):
            column = self.columns[c]
            if column.dtype == object or column.dtype.kind in "fmM":
                other = ~identical(self._decoded(c, codes[:, j] + 0.0), cells[c])
                found |= {c: other} if other.any() else {}
        return found

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
        c, mine = self.places[self.names[j]], own.codes[0, j]
        cells = self._decoded(c, codes)
        self._keep(c, cells, same_codes(codes, mine), own, np.zeros(len(codes), dtype=np.intp))
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
            return (cells.mask(missing) if missing.any() else cells).array
        return self.features[column.name].decode(codes, column.dtype)

    def _keep(self, c: int, cells: Cells, same: Mask, own: Own, whose: Indices) -> None:
        """Write the queries' own cells, in place, where objects, floats and times may differ."""
        column, kind = self.columns[c], self.columns[c].dtype.kind
        if column.name not in self._members and (column.dtype == object or kind in "fmM"):
            cells[same] = own.cells[c][whose[same]]


def _frame(cells: Sequence[Cells], n: int) -> pd.DataFrame:
    """Return columns of `n` cells each as a table; columns are numbered."""
    index = pd.RangeIndex(n)
    return pd.DataFrame({c: _held(column, index) for c, column in enumerate(cells)}, index=index)


def _held(cells: Cells, index: pd.Index[Any]) -> Any:
    """Return cells as a table holds them: of objects pandas would otherwise make text."""
    return pd.Series(cells, index=index, dtype=object) if cells.dtype == object else cells


def group_codes(block: Array) -> Array:
    """Return where the 1 is in rows ``(n, k)``: nan if all are missing, -1 if not exactly one."""
    whole = (block.sum(axis=1) == 1) & ((block == 0) | (block == 1)).all(axis=1)
    codes = np.where(whole, np.nan_to_num(block).argmax(axis=1), -1.0)
    return np.where(np.isnan(block).all(axis=1), np.nan, codes)


def _list(names: list[Hashable]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def by_feature(schema: Schema, rows: list[Row]) -> list[dict[Hashable, Any]]:
    """Return the cells of rows by feature; a one-hot group has its column's name as value."""
    found: list[dict[Hashable, Any]] = []
    for cells in rows:
        row = dict(zip(schema.places, cells.tolist(), strict=True))
        for name, members in schema.groups.items():
            held = (member for member in members if pd.notna(row[member]) and row[member] == 1)
            row[name] = next(held, None)  # none where the cells are missing
        found.append(row)
    return found
