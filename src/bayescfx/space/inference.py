"""Inference from data: features, scales and a background sample.

Columns are read one at a time, and only a sample of a column is read for its scale, so that a
million rows need little more memory than the data itself.
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
from bayescfx.errors import SpaceError, SpaceWarning, suggest, warn

#: A text column identifies the rows if at least this share of its cells are different texts ...
IDENTIFIER_SHARE = 0.95  # set by judgement, tests/space/test_identifiers.py, 2026-11-19
#: ... of at least so many rows: fewer may all be different by chance.
IDENTIFIER_ROWS = 30
#: Rows that scales are computed from. Set by judgement, 2026-11-18.
SCALE_ROWS = 100_000
#: Rows that a space keeps as its background. Set by judgement, 2026-11-18; `make quality`.
BACKGROUND_ROWS = 5_000


def as_table(X: object) -> tuple[pd.DataFrame, np.dtype[Any] | None]:
    """Return the data as a DataFrame with distinct columns, and the dtype of a 2-D array."""
    X = as_pandas(X)
    dtype = None
    if isinstance(X, pd.DataFrame):
        frame = X
    else:
        block = np.asarray(X)
        if block.ndim != 2:
            raise SpaceError(f"`X` must be a DataFrame or a 2-D array; got shape {block.shape}.")
        names = [f"x{j}" for j in range(block.shape[1])]
        frame = pd.DataFrame(block, columns=names, copy=False)
        dtype = block.dtype
    _check_frame(frame)
    return frame, dtype


def _check_frame(frame: pd.DataFrame) -> None:
    """Raise unless the data have a row, and columns with distinct names."""
    if not frame.size:
        raise SpaceError(f"`X` must have at least one row and one column; got {frame.shape}.")
    if isinstance(frame.columns, pd.MultiIndex):
        raise SpaceError("`X` must have one level of column names. Flatten the columns.")
    if not frame.columns.is_unique:
        duplicate = frame.columns[frame.columns.duplicated()][0]
        raise SpaceError(f"`X` must have distinct columns; {duplicate!r} occurs twice.")


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
    columns = tuple(map(Column, frame.columns, frame.dtypes))
    return Schema(features, columns, dtype, {})


def identifiers(
    frame: pd.DataFrame, schema: Schema, kinds: Mapping[Hashable, str | Feature]
) -> list[Hashable]:
    """Return the text columns in which nearly every row has a value of its own, with a warning.

    Columns named in `kinds` are not among them.
    """
    inferred = {name: f for name, f in schema.features.items() if name not in kinds}
    found = [name for name, f in inferred.items() if _identifies_rows(frame[name], f)]
    for name in found:
        n_texts = len(inferred[name].levels)
        warn(
            f"column {name!r} identifies the rows: {n_texts} different texts in {len(frame)} rows. "
            f"It never changes. If it may, name its kind: 'categorical'.",
            SpaceWarning,
        )
    return found


def _identifies_rows(cells: pd.Series[Any], feature: Feature) -> bool:
    """Return whether a column has text of its own in nearly every row."""
    if not feature.categorical or not isinstance(feature.levels[0], str):
        return False
    n_known = int(cells.notna().sum())
    return n_known >= IDENTIFIER_ROWS and len(feature.levels) >= IDENTIFIER_SHARE * n_known


def schema_by_hand(features: Mapping[Hashable, Feature]) -> Schema:
    """Return the schema of features made by hand; columns get their natural dtypes."""
    is_valid = is_a(features, Mapping) and len(features) > 0
    check(is_valid, "features", "a dict of name to feature", features, SpaceError)
    for name, feature in features.items():
        _check_feature(name, feature)
    columns = tuple(Column(name, feature.dtype) for name, feature in features.items())
    return Schema(dict(features), columns, None, {})


def _check_feature(name: Hashable, feature: object) -> None:
    """Raise unless a value given for a feature is one."""
    if not isinstance(feature, Feature):
        *kinds, last = [kind.__name__ for kind in Feature.kinds.values()]
        words = f"{', '.join(kinds)} or {last}"
        raise SpaceError(f"feature {name!r} must be {words}; got {shown(feature)}.")


def graded(
    features: Mapping[Hashable, Feature], by_hand: Container[Hashable]
) -> frozenset[Hashable]:
    """Return the features with an inferred step; those in `by_hand` are left out."""
    names = []
    for name, feature in features.items():
        if feature.numeric and name not in by_hand and feature.with_step(name, None) != feature:
            names.append(name)
    return frozenset(names)


def scales(schema: Schema, frame: pd.DataFrame | None = None) -> Array:
    """Return one unit of change per feature, shape (d,), from at most 100,000 rows of data.

    Without data it is a quarter of the range, the MAD of a uniform distribution.
    """
    sample = None if frame is None else _evenly_spaced(frame, SCALE_ROWS)
    units = np.ones(len(schema.names))
    for j, (name, feature) in enumerate(schema.features.items()):
        if not feature.categorical:
            units[j] = _unit(feature, None if sample is None else sample[name])
    return units


def _unit(feature: Feature, cells: pd.Series[Any] | None) -> float:
    """Return one unit of change of an ordered feature, from the cells of its column if given."""
    if cells is None:
        low, high = feature.code_range
        return (high - low) / 4 or 1.0
    codes = feature.encode(cells_in(cells))
    return robust_scale(codes[codes >= 0] if feature.has_levels else codes)


def robust_scale(codes: Array) -> float:
    """Return the MAD of `codes`; where most rows have one value, of the others; or else 1."""
    codes = codes[np.isfinite(codes)]
    if not len(codes):
        return 1.0
    least = np.finfo(np.float64).tiny  # the smallest number whose inverse is finite
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest
        deviation = np.abs(codes - np.median(codes))
        for deviations in (deviation, deviation[deviation > 0.0]):
            unit = float(np.median(deviations)) if len(deviations) else 0.0
            if least <= unit < np.inf:
                return unit
    return 1.0


def background(frame: pd.DataFrame, schema: Schema, most: int = BACKGROUND_ROWS) -> Array:
    """Return at most `most` rows of the data as codes, evenly spaced; unknown levels left out."""
    sample = _evenly_spaced(frame, most)
    codes = schema.encode_cells(tuple(cells_in(sample[column.name]) for column in schema.columns))
    has_levels = [feature.has_levels for feature in schema.features.values()]
    return np.asarray(codes[(codes[:, has_levels] != -1).all(axis=1)])


def _evenly_spaced(frame: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return at most so many rows, evenly spaced."""
    n = len(frame)
    return frame if n <= most else frame.iloc[np.linspace(0, n - 1, most).astype(np.intp)]
