"""The user's table: columns, dtypes, categories and one-hot groups; codes ↔ rows.

``codes`` are ``float64`` arrays of shape ``(n, d)``, one number per feature. ``rows`` are what the
model takes: a DataFrame with exactly the columns, order, dtypes and categories of the data (or a
2-D array of its dtype). ``cells`` are one array per column, in the column's dtype.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices
from bayescfx.errors import QueryError, SpaceError, suggest
from bayescfx.features import (
    Categorical,
    Feature,
    Integer,
    Moment,
    Ordinal,
    Real,
    code_range,
    cover,
    is_cyclic,
)
from bayescfx.space.cells import UNKNOWN, Cells, Codec, Column

Rows: TypeAlias = "pd.DataFrame | np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Own:
    """The query's own cells: what decoding writes wherever a code equals the query's."""

    codes: Array  # (d,)
    cells: tuple[Cells, ...]  # one array of length 1 per column

    @cached_property
    def block(self) -> np.ndarray[Any, Any]:
        """The cells as one array row of shape (1, columns); for tables of one dtype."""
        return np.stack([np.asarray(cell) for cell in self.cells], axis=1)


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

    Examples
    --------
    >>> schema = Schema({"a": Real(0, 1)}, (Column("a", np.dtype(float)),), None, {})
    >>> schema.encode({"a": 0.5})
    array([[0.5]])
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
    def places(self) -> dict[Hashable, int]:
        """Position of each column in the user's table."""
        return {column.name: c for c, column in enumerate(self.columns)}

    @cached_property
    def index(self) -> pd.Index[Any]:
        """Column names as a pandas index."""
        return _column_index(tuple(self.places))

    @cached_property
    def codecs(self) -> dict[Hashable, Codec]:
        """How each feature with a column of its own becomes codes; one-hot groups have none."""
        return {
            name: Codec(self.columns[self.places[name]], feature)
            for name, feature in self.features.items()
            if name not in self.groups
        }

    @cached_property
    def _members(self) -> dict[Hashable, tuple[int, int]]:
        """Per column of a one-hot group: position of the feature, and of the column in it."""
        return {
            column: (self.positions[name], place)
            for name, columns in self.groups.items()
            for place, column in enumerate(columns)
        }

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
        """Return the position of a feature; spaces of arrays also take column numbers.

        Raises
        ------
        SpaceError
            If there is no such feature.
        """
        if isinstance(name, list | set | dict):
            raise SpaceError(
                f"features must be named one by one; got {name!r}. Write *names for a list."
            )
        if name in self.positions:
            return self.positions[name]
        if self.array is not None and isinstance(name, (int, np.integer)):
            return self.position(f"x{name}")
        known = ", ".join(str(n) for n in self.names[:12]) + (", …" if len(self.names) > 12 else "")
        raise SpaceError(
            f"`space` has no feature {name!r}.{suggest(name, self.names)} Features: {known}."
        )

    # ── rows to codes ──

    def cells(self, rows: object, *, what: str = "rows") -> tuple[Cells, ...]:
        """Return `rows` as one array per column, in the column's dtype.

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
            return tuple(column.strict(rows[column.name], what) for column in self.columns)
        if isinstance(rows, (pd.Series, Mapping)):
            row: Mapping[Any, Any] = dict(rows.items())
            self._check_columns(row, what)
            return tuple(column.strict_one(row[column.name], what) for column in self.columns)
        # A list of cells of several types would become text.
        block = np.asarray(rows, dtype=object if isinstance(rows, (list, tuple)) else None)
        if block.ndim == 0:
            raise QueryError(
                f"`{what}` must be a Series, a dict, a DataFrame or an array; got "
                f"{type(rows).__name__}."
            )
        block = block.reshape(1, -1) if block.ndim == 1 else block
        if block.ndim != 2 or block.shape[1] != len(self.columns):
            raise QueryError(
                f"`{what}` must have {len(self.columns)} columns; got shape {block.shape}."
            )
        return tuple(column.strict(block[:, c], what) for c, column in enumerate(self.columns))

    def _check_columns(self, labels: Iterable[Hashable], what: str) -> None:
        given = list(labels)
        missing = [label for label in self.places if label not in set(given)]
        extra = [label for label in given if label not in self.places]
        if missing:
            raise QueryError(
                f"`{what}` must have every column of the space; missing: {_list(missing)}."
            )
        if extra:
            raise QueryError(
                f"`{what}` must have only the columns of the space; unknown: {_list(extra)}."
                f"{suggest(extra[0], self.places)} Drop what the model does not take."
            )
        if len(given) != len(self.places):
            raise QueryError(f"`{what}` must not have a column twice; got {_list(given)}.")

    def encode(self, rows: object, *, what: str = "rows") -> Array:
        """Return the codes of `rows`, shape (n, d).

        Raises
        ------
        QueryError
            If a cell is not a level of its feature, or a group has not exactly one 1.
        """
        codes = self.encode_cells(self.cells(rows, what=what), what=what)
        self._check_known(codes, what)
        return codes

    def encode_cells(self, cells: tuple[Cells, ...], *, what: str = "rows") -> Array:
        """Return the codes of cells, shape (n, d), with -1 for unknown levels."""
        codes = np.empty((len(cells[0]), len(self.features)))
        for j, name in enumerate(self.names):
            if name in self.groups:
                members = [np.asarray(cells[self.places[c]]) for c in self.groups[name]]
                codes[:, j] = one_hot_codes(np.stack(members, axis=1), name, what)
            else:
                codes[:, j] = self.codecs[name].encode(cells[self.places[name]])
        return codes

    @cached_property
    def levelled(self) -> Indices:
        """Positions of features with levels."""
        found = [isinstance(f, (Ordinal, Categorical)) for f in self.features.values()]
        return np.flatnonzero(found)

    def _check_known(self, codes: Array, what: str) -> None:
        unknown = (codes[:, self.levelled] == UNKNOWN).any(axis=0)
        if unknown.any():
            name = self.names[self.levelled[unknown][0]]
            raise QueryError(
                f"`{what}` must hold known levels, but {name!r} has others than "
                f"{_list(list(getattr(self.features[name], 'levels', ())))}. "
                "Use `space.including(rows)` to add them."
            )

    def encode_column(self, name: Hashable, values: object) -> Array:
        """Return the codes of computed values of one column; shape (n,).

        Numbers are rounded to what the column's dtype holds.
        """
        codec = self.codecs[name]
        given = np.asarray(values)
        if codec.column.kind in "iu" and given.dtype.kind == "f":
            given = np.rint(given)
        codes = codec.encode(codec.column.strict(given, f"derived column {name!r}"))
        if isinstance(codec.feature, (Ordinal, Categorical)) and (codes == UNKNOWN).any():
            bad = given.tolist()[int(np.flatnonzero(codes == UNKNOWN)[0])]
            raise SpaceError(f"derived column {name!r} must be one of its levels; got {bad!r}.")
        return codes

    def covering(self, cells: tuple[Cells, ...], what: str) -> tuple[Schema, Array, list[str]]:
        """Return the schema with features grown to include the cells, their codes, what grew."""
        grown = dict(self.features)
        codes = self.encode_cells(cells, what=what)
        notes = []
        for j, (name, feature) in enumerate(self.features.items()):
            low, high = code_range(feature)
            outside = (codes[:, j] < low) | (codes[:, j] > high)
            if name in self.groups or not outside.any():
                continue
            values = pd.Series(cells[self.places[name]])[outside]
            if is_cyclic(feature):
                raise QueryError(
                    f"`{what}` must lie on the circle of {name!r}, {feature!r}; got "
                    f"{values.iloc[0]!r}."
                )
            try:
                grown[name] = cover(feature, values)
            except SpaceError as error:
                raise QueryError(f"`{what}` does not fit {name!r}: {error}") from error
            notes.append(f"{name!r} by {_growth(feature, grown[name])}")
        if not notes:
            return self, codes, notes
        schema = replace(self, features=grown)
        return schema, schema.encode_cells(cells, what=what), notes

    # ── codes to rows ──

    def rows(self, codes: Array, own: Own | None = None) -> Rows:
        """Return the user's rows for `codes` of shape (n, d).

        Parameters
        ----------
        own : Own, optional
            The query's cells; written, type and bits, wherever a code equals the query's.
        """
        if self.plain is not None:
            return self._plain_rows(codes, own, self.plain)
        index = pd.RangeIndex(len(codes))
        cells = {c: self._column(column, codes, own) for c, column in enumerate(self.columns)}
        for c, column in enumerate(self.columns):
            if column.dtype == np.dtype(object):  # or pandas would infer text
                cells[c] = pd.Series(cells[c], index=index, dtype=object)
        frame = pd.DataFrame(cells, index=index, copy=False)
        frame.columns = self.index
        return frame if self.array is None else frame.to_numpy(self.array)

    def _plain_rows(self, codes: Array, own: Own | None, dtype: np.dtype[Any]) -> Rows:
        block: np.ndarray[Any, Any] = codes.astype(dtype)
        if own is not None and dtype.kind == "f":
            block = np.where((codes == own.codes) | np.isnan(codes), own.block, block)
        if self.array is not None:
            return block
        return pd.DataFrame(block, columns=self.index, copy=False)

    def _column(self, column: Column, codes: Array, own: Own | None) -> Cells:
        if column.name in self._members:
            j, place = self._members[column.name]
            return pd.Series(codes[:, j] == place).astype(column.dtype).array
        j = self.positions[column.name]
        codec = self.codecs[column.name]
        if own is None:
            return codec.decode(codes[:, j])
        return codec.own(codes[:, j], own.codes[j], own.cells[self.places[column.name]])


def one_hot_codes(block: np.ndarray[Any, Any], name: Hashable, what: str) -> Array:
    """Return which column of a one-hot block holds the 1, shape (n,).

    Raises
    ------
    QueryError
        If a row has not exactly one 1.

    Examples
    --------
    >>> one_hot_codes(np.array([[0, 1], [1, 0]]), "colour", "rows")
    array([1., 0.])
    """
    block = block.astype(np.float64)
    good = (block.sum(axis=1) == 1) & ((block == 0) | (block == 1)).all(axis=1)
    if not good.all():
        row = block[np.flatnonzero(~good)[0]]
        raise QueryError(
            f"`{what}` must have exactly one 1 in the group {name!r}; got {row.tolist()}."
        )
    return np.asarray(block.argmax(axis=1), dtype=np.float64)


def _growth(before: Feature, after: Feature) -> str:
    if isinstance(before, Categorical) and isinstance(after, Categorical):
        return "the level " + ", ".join(repr(v) for v in after.levels[len(before.levels) :])
    assert isinstance(after, (Real, Integer, Moment))
    return f"the range {after.low!s} … {after.high!s}"


def _column_index(labels: tuple[Hashable, ...]) -> pd.Index[Any]:
    if all(isinstance(label, str) for label in labels):
        return pd.Index(list(labels))
    items = np.fromiter(labels, dtype=object, count=len(labels))
    return pd.Index(items, tupleize_cols=False).infer_objects()


def _list(names: list[Hashable]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")
