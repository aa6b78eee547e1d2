"""Cells of one column as codes, and back into the column's own dtype.

Nothing here loops over cells of numeric columns, and nothing guesses: a cell that its column
can't hold exactly is an error that names the column.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype

from bayescfx.arrays import Array, Mask
from bayescfx.errors import QueryError
from bayescfx.features import Categorical, Feature, Integer, Moment, Ordinal, Real

Dtype: TypeAlias = "np.dtype[Any] | ExtensionDtype"
Cells: TypeAlias = Any  # a 1-D NumPy array or pandas ExtensionArray

UNKNOWN = -1.0  # the code of a level that its feature does not have


@dataclass(frozen=True)
class Column:
    """Name and dtype of one column of the user's table."""

    name: Hashable
    dtype: Dtype

    @property
    def kind(self) -> str:
        """NumPy's letter for the kind of dtype; "O" for objects, text and categories."""
        return str(getattr(self.dtype, "kind", "O"))

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of the numbers in the column, nullable ones included."""
        inner: Any = getattr(self.dtype, "numpy_dtype", self.dtype)
        found: np.dtype[Any] = np.dtype(inner)
        return found

    def strict(self, given: Any, what: str) -> Cells:
        """Return the cells as an array of the column's dtype.

        Raises
        ------
        QueryError
            If a cell can't be held exactly: a fraction in an integer column, text in a number's.
        """
        if isinstance(given, pd.Series):
            given = given.array if isinstance(given.dtype, ExtensionDtype) else given.to_numpy()
        if given.dtype == self.dtype:
            return given
        if given.dtype == object and self.kind == "f":  # any kind of missing is nan
            given = np.where(pd.isna(given), np.nan, given)
        found = self._converted(given)
        if found is None:
            bad = next(v for v in given if self._converted(_object_cell(v)) is None)
            raise QueryError(
                f"`{what}` must fit the dtypes of the space; got {bad!r} in column "
                f"{self.name!r} of dtype {_dtype_text(self.dtype)}. Correct the cell."
            )
        return found

    def _converted(self, given: Any) -> Cells | None:
        """Return the cells in the column's dtype; None if one of them can't be held."""
        if isinstance(self.dtype, pd.CategoricalDtype):
            cells = pd.Index(np.asarray(given, dtype=object), dtype=object, tupleize_cols=False)
            codes = self.dtype.categories.astype(object).get_indexer(cells)
            known = (codes >= 0) | np.asarray(pd.isna(given))
            return pd.Categorical.from_codes(codes, dtype=self.dtype) if known.all() else None
        try:
            found = pd.Series(given).astype(self.dtype).array
        except (TypeError, ValueError, OverflowError):
            return None
        if not _unchanged(given, found, self.kind):
            return None
        return found if isinstance(self.dtype, ExtensionDtype) else np.asarray(found)

    def strict_one(self, value: Any, what: str) -> Cells:
        """Return one cell as an array of length 1; see :meth:`strict`."""
        if isinstance(self.dtype, np.dtype):
            if self.kind == "f" and isinstance(value, (float, int, np.floating, np.integer)):
                return np.array([value], dtype=self.dtype)
            if self.kind == "i" and isinstance(value, (int, np.signedinteger)):
                info = np.iinfo(self.dtype)
                if info.min <= value <= info.max:
                    return np.array([value], dtype=self.dtype)
        if isinstance(self.dtype, pd.StringDtype) and isinstance(value, str):
            return pd.array([value], dtype=self.dtype)
        return self.strict(_object_cell(value), what)


@dataclass(frozen=True)
class Codec:
    """How one column with a feature of its own becomes codes and back.

    Parameters
    ----------
    column : Column
    feature : Feature

    Examples
    --------
    >>> codec = Codec(Column("c", np.dtype(object)), Categorical(["red", "green"]))
    >>> codec.encode(np.array(["green", None, "blue"], dtype=object))
    array([ 1., nan, -1.])
    """

    column: Column
    feature: Feature

    @cached_property
    def levels(self) -> np.ndarray[Any, Any]:
        """The levels as an object array."""
        assert isinstance(self.feature, (Ordinal, Categorical))
        return np.fromiter(self.feature.levels, dtype=object, count=len(self.feature.levels))

    @cached_property
    def _index(self) -> pd.Index[Any]:
        return pd.Index(self.levels, dtype=object, tupleize_cols=False)

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {level: place for place, level in enumerate(self.levels)}

    @cached_property
    def _level_cells(self) -> Cells:
        """The levels in the column's dtype."""
        dtype = self.column.dtype
        if isinstance(dtype, np.dtype):
            return self.levels.astype(dtype)
        return pd.Series(self.levels).astype(dtype).array

    @cached_property
    def exact(self) -> bool:
        """Whether a known code determines the cell, type and bits."""
        if isinstance(self.feature, Moment):
            return False
        if isinstance(self.feature, (Real, Integer)):
            return self.column.kind in "iu"
        return self.column.dtype != object

    def encode(self, cells: Cells) -> Array:
        """Return the codes, shape (n,): ``nan`` where missing, -1 where the level is unknown."""
        if isinstance(self.feature, Moment):
            return _encode_times(cells, self.feature)
        if isinstance(self.feature, (Real, Integer)):
            if isinstance(cells, np.ndarray) and cells.dtype != object:
                return cells.astype(np.float64)
            return pd.Series(cells).to_numpy(np.float64, na_value=np.nan)
        if len(cells) == 1:
            return self._encode_one(cells[0])
        if isinstance(cells.dtype, pd.CategoricalDtype):
            # one look-up per category, not per cell
            places = self._index.get_indexer(cells.categories.astype(object))
            return np.asarray(np.append(places, np.nan)[cells.codes], dtype=np.float64)
        missing = np.asarray(pd.isna(cells))
        objects = pd.Index(np.asarray(cells, dtype=object), dtype=object, tupleize_cols=False)
        return np.where(missing, np.nan, self._index.get_indexer(objects))

    def _encode_one(self, value: Any) -> Array:
        if value is None or value is pd.NA or value is pd.NaT or value != value:
            return np.array([np.nan])
        return np.array([self._positions.get(value, UNKNOWN)], dtype=np.float64)

    def decode(self, codes: Array) -> Cells:
        """Return the cells for codes of shape (n,), in the column's dtype."""
        dtype = self.column.dtype
        if isinstance(self.feature, Moment):
            return _decode_times(codes, self.feature, dtype)
        if isinstance(self.feature, (Real, Integer)):
            return self._decode_numbers(codes)
        missing = np.isnan(codes)
        positions = np.where(missing, -1, codes).astype(np.intp)
        cells = self._level_cells
        if not missing.any():
            return cells[positions] if isinstance(cells, np.ndarray) else cells.take(positions)
        if isinstance(cells, np.ndarray):
            return np.where(missing, np.nan, cells[positions])
        return cells.take(positions, allow_fill=True)

    def _decode_numbers(self, codes: Array) -> Cells:
        dtype = self.column.dtype
        missing = np.isnan(codes)
        if isinstance(dtype, np.dtype):
            objects = self.column.kind == "O"
            whole = objects and isinstance(self.feature, Integer) and not missing.any()
            return (codes.astype(np.int64) if whole else codes).astype(dtype)
        filled = np.where(missing, 0.0, codes)
        found = pd.Series(filled.astype(np.int64) if self.column.kind in "iu" else filled)
        cells = found.astype(dtype).array
        if missing.any():
            cells[missing] = None
        return cells

    def own(self, codes: Array, own_code: float, own_cell: Cells) -> Cells:
        """Return the cells for codes, with the query's own cell wherever the code is its own.

        Parameters
        ----------
        own_code : float
        own_cell : array of length 1
        """
        same = np.isnan(codes) if np.isnan(own_code) else codes == own_code
        if same.all():
            return own_cell.repeat(len(codes))
        cells = self.decode(codes)
        if self.exact or not same.any():
            return cells
        if isinstance(cells, np.ndarray) and cells.dtype != object:
            return np.where(same, own_cell, cells)
        cells = cells.copy()
        # an object cell may be a tuple, which must not be spread over the cells
        cells[same] = own_cell if isinstance(cells, np.ndarray) else own_cell[0]
        return cells


def _object_cell(value: Any) -> np.ndarray[Any, Any]:
    cell = np.empty(1, dtype=object)
    cell[0] = value
    return cell


def _encode_times(cells: Cells, feature: Moment) -> Array:
    missing = np.asarray(pd.isna(cells))
    if feature.duration:
        counts = np.asarray(cells).astype("timedelta64[us]").astype(np.int64)
    else:
        # a zoned array holds UTC inside
        naive = pd.DatetimeIndex(cells)
        naive = naive.tz_convert("UTC").tz_localize(None) if naive.tz is not None else naive
        counts = naive.to_numpy().astype("datetime64[us]").astype(np.int64)
    codes = (np.where(missing, 0, counts) - feature.origin_microseconds) / feature.microseconds
    return np.where(missing, np.nan, codes)


def _decode_times(codes: Array, feature: Moment, dtype: Dtype) -> Cells:
    missing = np.isnan(codes)
    counts = np.rint(np.where(missing, 0.0, codes) * feature.microseconds).astype(np.int64)
    counts = counts + feature.origin_microseconds
    if feature.duration:
        spans = counts.astype("timedelta64[us]")
        spans[missing] = np.timedelta64("NaT")
        return spans.astype(dtype)
    moments = counts.astype("datetime64[us]")
    moments[missing] = np.datetime64("NaT")
    if isinstance(dtype, np.dtype):
        return moments.astype(dtype)
    zone = getattr(dtype, "tz", None)
    zoned = pd.DatetimeIndex(moments).tz_localize("UTC").tz_convert(zone)
    return pd.Series(zoned).astype(dtype).array


def _unchanged(before: Any, after: Any, kind: str) -> bool:
    """Return whether a conversion kept every cell; floats may round to a narrower float."""
    gone: Mask = np.asarray(pd.isna(before))
    if not np.array_equal(gone, np.asarray(pd.isna(after))):
        return False
    if kind in "mM":
        return True
    pairs = zip(np.asarray(before, dtype=object)[~gone], after[~gone], strict=True)
    if kind == "f":
        return not any(isinstance(a, (str, bytes)) for a, _ in pairs)
    return all(_equal(a, b) for a, b in pairs)


def _equal(a: object, b: object) -> bool:
    return bool(a == b) and isinstance(a, (str, bytes)) == isinstance(b, (str, bytes))


def _dtype_text(dtype: Dtype) -> str:
    if isinstance(dtype, pd.CategoricalDtype):
        shown = ", ".join(repr(v) for v in dtype.categories[:5])
        return f"category ({shown}{', …' if len(dtype.categories) > 5 else ''})"
    return str(dtype)
