"""What a space learns from data: features, scales and a bounded background.

Columns are read one at a time, and only a sample of a column is read for its scale, so that a
million rows cost little more memory than they have already.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.checks import check, is_a, shown
from bayescfx.data import Feature, infer
from bayescfx.data.schema import Schema
from bayescfx.data.tables import Column, as_pandas, cells_in
from bayescfx.errors import SpaceError, suggest


def as_table(X: object) -> tuple[pd.DataFrame, np.dtype[Any] | None]:
    """Return the data as a DataFrame with distinct columns, and the dtype of a 2-D array."""
    X = as_pandas(X)
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
    frame: pd.DataFrame, dtype: np.dtype[Any] | None, kinds: Mapping[Hashable, str | Feature]
) -> Schema:
    """Return the schema of a frame; `kinds` are used instead of inferred features."""
    for name in kinds:
        if name not in frame.columns:
            raise SpaceError(f"`kinds` names no column {name!r}.{suggest(name, frame.columns)}")
    features: dict[Hashable, Feature] = {}
    for name, cells in frame.items():
        if isinstance(cells.dtype, pd.SparseDtype):
            raise SpaceError(
                f"column {name!r} must be dense; got {cells.dtype}. Convert it with "
                "X[name].sparse.to_dense()."
            )
        features[name] = infer(name, cells, kinds.get(name))
    return Schema(features, tuple(map(Column, frame.columns, frame.dtypes)), dtype, {})


def schema_by_hand(features: Mapping[Hashable, Feature]) -> Schema:
    """Return the schema of features made by hand; columns get their natural dtypes."""
    good = is_a(features, Mapping) and len(features) > 0
    check(good, "features", "a dict of name to feature", features, SpaceError)
    for name, feature in features.items():
        if not isinstance(feature, Feature):
            *kinds, last = [kind.__name__ for kind in Feature.kinds.values()]
            words = f"{', '.join(kinds)} or {last}"
            raise SpaceError(f"feature {name!r} must be {words}; got {shown(feature)}.")
    columns = tuple(Column(name, feature.dtype) for name, feature in features.items())
    return Schema(dict(features), columns, None, {})


def graded(features: Mapping[Hashable, Feature], given: Container[Hashable]) -> frozenset[Hashable]:
    """Return the features, but for those given, that could move more finely than they do."""
    free = ((name, f) for name, f in features.items() if f.numeric and name not in given)
    return frozenset(name for name, f in free if f.stepped(name, None) != f)


def scales(schema: Schema, frame: pd.DataFrame | None = None) -> Array:
    """Return one unit of change per feature, shape (d,), from at most 100,000 rows of data."""
    some = None if frame is None else _spread(frame, 100_000)
    found = np.ones(len(schema.names))
    for j, (name, feature) in enumerate(schema.features.items()):
        if feature.categorical:
            continue
        if some is None:  # a quarter of the range, the MAD of a uniform distribution
            found[j] = np.subtract(*feature.code_range[::-1]) / 4 or 1.0
        else:
            codes = feature.encode(cells_in(some[name]))
            found[j] = robust_scale(codes[codes >= 0] if feature.levelled else codes)
    return found


def robust_scale(codes: Array) -> float:
    """Return the MAD of `codes`; where most rows have one value, of the others; or else 1."""
    codes = codes[np.isfinite(codes)]
    least = np.finfo(np.float64).tiny  # whose inverse is finite
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest
        deviation = np.abs(codes - np.median(codes)) if len(codes) else codes
        for some in (deviation, deviation[deviation > 0.0]):
            if len(some) and least <= (unit := float(np.median(some))) < np.inf:
                return unit
    return 1.0


def background(frame: pd.DataFrame, schema: Schema, most: int = 5_000) -> Array:
    """Return at most `most` rows of the data as codes, evenly spread; unknown levels left out."""
    some = _spread(frame, most)
    codes = schema.encode_cells(tuple(cells_in(some[column.name]) for column in schema.columns))
    levelled = [feature.levelled for feature in schema.features.values()]
    return np.asarray(codes[(codes[:, levelled] != -1).all(axis=1)])


def _spread(frame: pd.DataFrame, most: int) -> pd.DataFrame:
    n = len(frame)
    return frame if n <= most else frame.iloc[np.linspace(0, n - 1, most).astype(np.intp)]
