"""What a space learns from data: kinds, ranges, levels, scales and a bounded background.

Columns are read one at a time, and only a sample of a column is read for its scale, so that a
million rows cost little more memory than they have already.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Mask
from bayescfx.errors import SpaceError, suggest
from bayescfx.features import (
    FEATURES,
    Categorical,
    Feature,
    Integer,
    Moment,
    Ordinal,
    Real,
    code_range,
)
from bayescfx.features.datetimes import UNIT_MICROSECONDS
from bayescfx.space.cells import UNKNOWN, Column, Dtype
from bayescfx.space.schema import Schema

BACKGROUND_ROWS = 5_000
SCALE_ROWS = 100_000
MOST_STEPS = 10_000  # an inferred time unit gives at most so many steps
KINDS = ("real", "integer", "ordinal", "categorical")


def as_frame(X: object) -> tuple[pd.DataFrame, np.dtype[Any] | None]:
    """Return the data as a DataFrame, and the dtype if it was a 2-D array.

    Raises
    ------
    SpaceError
        If the data is neither a DataFrame nor a 2-D array, empty, or has a column twice.
    """
    if isinstance(X, pd.DataFrame):
        frame, dtype = X, None
    else:
        block = np.asarray(X)
        if block.ndim != 2:
            raise SpaceError(f"`X` must be a DataFrame or a 2-D array; got shape {block.shape}.")
        names = [f"x{j}" for j in range(block.shape[1])]
        frame, dtype = pd.DataFrame(block, columns=names, copy=False), block.dtype
    if not len(frame) or not len(frame.columns):
        raise SpaceError(f"`X` must have at least one row and one column; got {frame.shape}.")
    if isinstance(frame.columns, pd.MultiIndex):
        raise SpaceError("`X` must have one level of column names. Flatten the columns.")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise SpaceError(f"`X` must have distinct columns; {twice!r} occurs twice.")
    return frame, dtype


def infer_schema(
    frame: pd.DataFrame, dtype: np.dtype[Any] | None, kinds: Mapping[Hashable, str | Feature] | None
) -> Schema:
    """Return the schema of a frame.

    Parameters
    ----------
    kinds : dict of column to kind or feature, optional
        What to use instead of the inferred feature.
    """
    kinds = dict(kinds or {})
    for name in kinds:
        if name not in frame.columns:
            raise SpaceError(f"`kinds` names no column {name!r}.{suggest(name, frame.columns)}")
    features: dict[Hashable, Feature] = {}
    columns = []
    for name in frame.columns:
        cells = frame[name]
        if isinstance(cells.dtype, pd.SparseDtype):
            raise SpaceError(
                f"column {name!r} must be dense; got {cells.dtype}. Convert it with "
                "X[name].sparse.to_dense()."
            )
        features[name] = _feature(name, cells, kinds.get(name))
        _check_dtype(name, features[name], cells.dtype)
        columns.append(Column(name, cells.dtype))
    return Schema(features, tuple(columns), dtype, {})


def schema_by_hand(features: Mapping[Hashable, Feature]) -> Schema:
    """Return the schema of features made by hand; columns get their natural dtypes."""
    given: object = features
    if not isinstance(given, Mapping) or not features:
        raise SpaceError(f"`features` must be a dict of name to feature; got {features!r}.")
    for name, feature in features.items():
        if not isinstance(feature, FEATURES):
            raise SpaceError(
                f"feature {name!r} must be Real, Integer, Ordinal, Categorical or Moment; got "
                f"{feature!r}."
            )
    columns = tuple(Column(name, _natural_dtype(f)) for name, f in features.items())
    return Schema(dict(features), columns, None, {})


def _natural_dtype(feature: Feature) -> Dtype:
    match feature:
        case Real():
            return np.dtype(np.float64)
        case Integer():
            return np.dtype(np.int64)
        case Moment():
            return pd.Series([feature.low, feature.high]).dtype
        case _:
            return pd.Series(list(feature.levels)).dtype


def _check_dtype(name: Hashable, feature: Feature, dtype: Dtype) -> None:
    """Raise unless a column of `dtype` can hold every value of the feature."""
    kind = getattr(dtype, "kind", "O")
    if isinstance(feature, Real) and kind in "iu":
        whole = feature.step is not None and float(feature.step).is_integer()
        if not (whole and float(feature.low).is_integer()):
            raise SpaceError(
                f"column {name!r} must be of a float dtype to be Real; got {dtype}. Convert the "
                "column, or use 'integer'."
            )
    if isinstance(feature, (Real, Integer)) and kind in "iu":
        info = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        if feature.low < info.min or feature.high > info.max:
            raise SpaceError(f"column {name!r} of dtype {dtype} can't hold {feature!r}.")
    if isinstance(feature, Moment) and kind not in "mM":
        raise SpaceError(f"column {name!r} must be of a time dtype to be Moment; got {dtype}.")


def scales(frame: pd.DataFrame, schema: Schema) -> Array:
    """Return one unit of change per feature, shape (d,); see :func:`robust_scale`."""
    some = frame.iloc[_spread(len(frame), SCALE_ROWS)]
    found = np.ones(len(schema.features))
    for j, (name, codec) in enumerate(schema.codecs.items()):
        if not isinstance(codec.feature, Categorical):
            codes = codec.encode(_cells(some[name]))
            found[j] = robust_scale(codes[codes != UNKNOWN] if j in schema.levelled else codes)
    return found


def default_scales(schema: Schema) -> Array:
    """Return scales without data: a quarter of the range, the MAD of a uniform distribution."""
    found = np.ones(len(schema.features))
    for j, feature in enumerate(schema.features.values()):
        low, high = code_range(feature)
        if not isinstance(feature, Categorical) and high > low:
            found[j] = (high - low) / 4
    return found


def robust_scale(codes: Array) -> float:
    """Return the spread of `codes`: MAD, or IQR, std, range if that is 0, or 1.

    Examples
    --------
    >>> robust_scale(np.array([1.0, 2.0, 3.0, 10.0]))
    1.0
    >>> robust_scale(np.array([0.0, 0.0, 0.0, 0.0, 8.0]))
    3.2
    """
    codes = codes[np.isfinite(codes)]
    if not len(codes):
        return 1.0
    with np.errstate(over="ignore"):  # of numbers near the largest; then a later spread serves
        spreads = (
            np.median(np.abs(codes - np.median(codes))),
            np.subtract(*np.percentile(codes, [75, 25])),
            np.std(codes),
            np.ptp(codes),
        )
    return next((float(s) for s in spreads if np.isfinite(s) and s > 0), 1.0)


def background(frame: pd.DataFrame, schema: Schema, most: int = BACKGROUND_ROWS) -> Array:
    """Return at most `most` rows of the data as codes, evenly spread; unknown levels left out."""
    some = frame.iloc[_spread(len(frame), most)]
    codes = np.empty((len(some), len(schema.features)))
    for j, (name, codec) in enumerate(schema.codecs.items()):
        codes[:, j] = codec.encode(_cells(some[name]))
    unknown: Mask = (codes[:, schema.levelled] == UNKNOWN).any(axis=1)
    return codes[~unknown]


def _cells(column: pd.Series[Any]) -> Any:
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array


def _spread(n: int, most: int) -> Any:
    return slice(None) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)


def _feature(name: Hashable, cells: pd.Series[Any], wish: str | Feature | None) -> Feature:
    if isinstance(wish, FEATURES):
        if isinstance(wish, (Real, Integer)):
            _finite_range(name, cells)
        return wish
    if wish is None:
        return _inferred(name, cells)
    match wish:
        case "real":
            return _numbers(name, cells, whole=False)
        case "integer":
            return _numbers(name, cells, whole=True)
        case "ordinal":
            return Ordinal(_levels(name, cells, observed=False))
        case "categorical":
            return Categorical(_levels(name, cells, observed=True))
    known = ", ".join(map(repr, KINDS))
    raise SpaceError(
        f"`kinds[{name!r}]` must be one of {known} or a feature; got {wish!r}."
        f"{suggest(wish, KINDS)}"
    )


def _inferred(name: Hashable, cells: pd.Series[Any]) -> Feature:
    dtype = cells.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = _levels(name, cells, observed=not dtype.ordered)
        return Ordinal(levels) if dtype.ordered else Categorical(levels)
    kind = getattr(dtype, "kind", "O")
    if kind == "b":
        return Categorical((False, True))
    if kind in "iu":
        return _numbers(name, cells, whole=True)
    if kind == "f":
        return _numbers(name, cells, whole=False)
    if kind in "mM":
        return _moment(cells)
    return Categorical(_levels(name, cells, observed=True))


def _numbers(name: Hashable, cells: pd.Series[Any], *, whole: bool) -> Real | Integer:
    low, high = _finite_range(name, cells)
    if not whole:
        return Real(low, high)
    if cells.dtype.kind not in "iu":
        numbers = cells.dropna().to_numpy(np.float64)
        if (numbers != np.rint(numbers)).any():
            raise SpaceError(f"column {name!r} must hold whole numbers to be 'integer'.")
    return Integer(int(low), int(high))


def _finite_range(name: Hashable, cells: pd.Series[Any]) -> tuple[float, float]:
    if cells.dtype.kind in "iu":
        known = cells.dropna()
        return (int(known.min()), int(known.max())) if len(known) else (0, 0)
    try:
        numbers = cells.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise SpaceError(
            f"column {name!r} must hold numbers; got dtype {cells.dtype}. Use 'categorical'."
        ) from error
    finite = numbers[np.isfinite(numbers)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)


def _levels(name: Hashable, cells: pd.Series[Any], *, observed: bool) -> tuple[Hashable, ...]:
    """Return the levels of a column: in the order of a category, else sorted if possible."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        categories = cells.cat.categories
        used = np.unique(cells.cat.codes.to_numpy())
        kept = categories[used[used >= 0]] if observed else categories
        return tuple(kept.tolist()) or ("",)
    try:
        found = list(pd.unique(cells.dropna()))
    except TypeError as error:
        raise SpaceError(f"column {name!r} must hold hashable values.") from error
    levels = [level.item() if isinstance(level, np.generic) else level for level in found]
    with contextlib.suppress(TypeError):  # mixed types have no order: first seen, first kept
        levels = sorted(levels)
    return tuple(levels) or ("",)


def _moment(cells: pd.Series[Any]) -> Moment:
    known = cells.dropna()
    if known.empty:
        zero = pd.Timedelta(0) if cells.dtype.kind == "m" else pd.Timestamp(0)
        return Moment(zero, zero)
    low, high = known.min(), known.max()
    return Moment(low, high, unit=_time_unit(known, low, high))


def _time_unit(cells: pd.Series[Any], low: Any, high: Any) -> Any:
    """Return the coarsest unit that all cells share, or one with at most 10,000 steps."""
    some = cells.iloc[_spread(len(cells), SCALE_ROWS)]
    offsets = ((some - low) / pd.Timedelta(1, "us")).to_numpy(np.float64)
    for unit in ("D", "h", "min", "s"):
        length = UNIT_MICROSECONDS[unit]
        if (np.mod(offsets, length) == 0).all():
            break
    for coarser in ("s", "min", "h", "D"):
        length = max(UNIT_MICROSECONDS[coarser], UNIT_MICROSECONDS[unit])
        if (high - low) / pd.Timedelta(length, "us") <= MOST_STEPS:
            return next(u for u, size in UNIT_MICROSECONDS.items() if size == length)
    return "D"
