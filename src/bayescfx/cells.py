"""Cells of one column as codes, and back into the column's own dtype.

Nothing here loops over cells of numeric columns, and nothing guesses: a cell that its column
can't hold exactly is an error that names the column.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype

from bayescfx.arrays import Array, Mask
from bayescfx.errors import QueryError
from bayescfx.features import Feature, Integer, Moment, Real

Dtype: TypeAlias = "np.dtype[Any] | ExtensionDtype"


@dataclass(frozen=True)
class Column:
    """Name and dtype of one column of the user's table."""

    name: Hashable
    dtype: Dtype


def strict_cells(cells: pd.Series[Any], column: Column, what: str) -> Any:
    """Return the cells as an array of the column's dtype.

    Raises
    ------
    QueryError
        If a cell can't be held exactly: a fraction in an integer column, a text in a number's.
    """
    if cells.dtype == column.dtype:
        return cells.array
    try:
        found = cells.astype(column.dtype)  # type: ignore[arg-type]  # any pandas dtype is accepted
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is not None and _unchanged(cells, found):
        return found.array
    bad = _first_bad(cells, column.dtype)
    raise QueryError(
        f"`{what}` must fit the dtypes of the space; got {bad!r} in column {column.name!r} of "
        f"dtype {_dtype_text(column.dtype)}."
    )


def encode_cells(cells: pd.Series[Any], feature: Feature, name: Hashable, what: str) -> Array:
    """Return the codes of cells in the column's dtype, shape (n,); missing cells are ``nan``.

    Raises
    ------
    QueryError
        If a cell is not one of the feature's levels.
    """
    if isinstance(feature, (Real, Integer)):
        return cells.to_numpy(np.float64, na_value=np.nan)
    if isinstance(feature, Moment):
        return _encode_times(cells, feature)
    missing = cells.isna().to_numpy()
    codes = level_positions(cells, feature.levels)
    unknown = (codes < 0) & ~missing
    if unknown.any():
        bad = cells.iloc[int(np.flatnonzero(unknown)[0])]
        raise QueryError(
            f"`{what}` must hold known levels; got {bad!r} in {name!r}. "
            "Use `space.including(rows)` to add levels."
        )
    return np.where(missing, np.nan, codes)


def level_positions(cells: pd.Series[Any], levels: tuple[Hashable, ...]) -> Array:
    """Return the position of each cell among `levels`, shape (n,); -1 where unknown."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        # one look-up per category, not per cell
        categories = _lookup(levels, cells.cat.categories.astype(object).to_numpy())
        codes = cells.cat.codes.to_numpy()
        return np.where(codes >= 0, np.append(categories, -1.0)[codes], -1.0)
    return _lookup(levels, cells.to_numpy(dtype=object))


def decode_cells(codes: Array, feature: Feature, dtype: Dtype) -> Any:
    """Return an array of `dtype` with the cells for `codes` of shape (n,)."""
    if isinstance(feature, Moment):
        return _decode_times(codes, feature, dtype)
    missing = np.isnan(codes)
    if isinstance(feature, (Real, Integer)):
        if dtype == object and isinstance(feature, Integer) and not missing.any():
            return codes.astype(np.int64).astype(object)
        return _decode_numbers(codes, missing, dtype)
    positions = np.where(missing, -1, codes).astype(np.intp)
    if isinstance(dtype, pd.CategoricalDtype):
        places = _lookup(tuple(dtype.categories), _objects(feature.levels)).astype(np.intp)
        return pd.Categorical.from_codes(
            np.where(missing, -1, places[positions]),  # type: ignore[arg-type]  # an array of positions
            dtype=dtype,
        )
    if isinstance(dtype, np.dtype):
        levels = _objects(feature.levels).astype(dtype)
        if not missing.any():
            return levels[positions]
        return np.where(missing, np.nan, levels[positions])
    level_array = pd.array(_objects(feature.levels), dtype=dtype)  # type: ignore[call-overload]  # any extension dtype
    return level_array.take(positions, allow_fill=True)


def own_cells(cells: Any, same: Mask, own: Any) -> Any:
    """Return `cells` with the query's own cell where `same`; `own` is an array of length 1."""
    if not same.any():
        return cells
    cells = cells.copy()
    cells[same] = own[0]
    return cells


def _decode_numbers(codes: Array, missing: Mask, dtype: Dtype) -> Any:
    if isinstance(dtype, np.dtype):
        return codes.astype(dtype)
    filled = np.where(missing, 0.0, codes)
    kind = getattr(dtype, "kind", "f")
    whole = filled.astype(np.int64) if kind in "iu" else filled
    cells = pd.array(whole, dtype=dtype)  # type: ignore[call-overload]  # any extension dtype
    if missing.any():
        cells[missing] = pd.NA
    return cells


def _encode_times(cells: pd.Series[Any], feature: Moment) -> Array:
    missing = cells.isna().to_numpy()
    if feature.duration:
        moments = cells.to_numpy("timedelta64[us]").astype(np.int64)
    else:
        zoned = isinstance(cells.dtype, pd.DatetimeTZDtype)
        naive = cells.dt.tz_convert("UTC").dt.tz_localize(None) if zoned else cells
        moments = naive.to_numpy("datetime64[us]").astype(np.int64)
    codes = (np.where(missing, 0, moments) - feature.origin_microseconds) / feature.microseconds
    return np.where(missing, np.nan, codes)


def _decode_times(codes: Array, feature: Moment, dtype: Dtype) -> Any:
    missing = np.isnan(codes)
    counts = np.rint(np.where(missing, 0.0, codes) * feature.microseconds).astype(np.int64)
    counts = counts + feature.origin_microseconds
    if feature.duration:
        spans = counts.astype("timedelta64[us]")
        spans[missing] = np.timedelta64("NaT")
        return pd.TimedeltaIndex(spans).astype(dtype).array  # type: ignore[arg-type]  # timedelta64 of any unit
    moments = counts.astype("datetime64[us]")
    moments[missing] = np.datetime64("NaT")
    found = pd.DatetimeIndex(moments)
    if isinstance(dtype, pd.DatetimeTZDtype):
        found = found.tz_localize("UTC").tz_convert(dtype.tz)
    return found.astype(dtype).array  # type: ignore[arg-type]  # datetime64 of any unit


def _lookup(levels: tuple[Hashable, ...], values: np.ndarray[Any, Any]) -> Array:
    index = pd.Index(_objects(levels), dtype=object, tupleize_cols=False)
    return index.get_indexer(pd.Index(values, dtype=object, tupleize_cols=False)).astype(np.float64)


def _objects(levels: tuple[Hashable, ...]) -> np.ndarray[Any, Any]:
    return np.fromiter(levels, dtype=object, count=len(levels))


def _unchanged(before: pd.Series[Any], after: pd.Series[Any]) -> bool:
    """Return whether a conversion kept every cell; floats may round to a narrower float."""
    gone = before.isna().to_numpy()
    if not np.array_equal(gone, after.isna().to_numpy()):
        return False
    a, b = before[~gone], after[~gone]
    if getattr(after.dtype, "kind", "O") == "f":
        return all(not isinstance(v, (str, bytes)) for v in a) if a.dtype == object else True
    if getattr(after.dtype, "kind", "O") in "mM":
        return True
    return all(x == y for x, y in zip(a.array, b.array, strict=True))


def _first_bad(cells: pd.Series[Any], dtype: Dtype) -> object:
    for value in cells:
        try:
            one = pd.Series([value], dtype=object)
            if not _unchanged(one, one.astype(dtype)):  # type: ignore[arg-type]  # any pandas dtype is accepted
                return value
        except (TypeError, ValueError, OverflowError):
            return value
    return cells.iloc[0]


def _dtype_text(dtype: Dtype) -> str:
    if isinstance(dtype, pd.CategoricalDtype):
        shown = ", ".join(repr(v) for v in dtype.categories[:5])
        return f"category ({shown}{', …' if len(dtype.categories) > 5 else ''})"
    return str(dtype)
