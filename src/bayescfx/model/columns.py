"""Columns as other libraries want them: text as categories, rows as one matrix, plain names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.errors import ModelError
from bayescfx.tables import as_pandas


def is_text(column: pd.Series[Any]) -> bool:
    """Tell whether a column holds text or other objects that no number stands for."""
    return bool(pd.api.types.is_string_dtype(column) or pd.api.types.is_object_dtype(column))


def with_categories(rows: Any, more: Iterable[Any] = ()) -> Any:
    """Return rows whose text columns, and those named, are categories: trees take no text."""
    if not isinstance(rows, pd.DataFrame):
        return rows
    named = set(more)
    wanted = [name for name in rows.columns if name in named or is_text(rows[name])]
    plain = [n for n in wanted if not isinstance(rows[n].dtype, pd.CategoricalDtype)]
    return rows.astype(dict.fromkeys(plain, "category")) if plain else rows


def as_fitted(estimator: Any, rows: Any) -> Any:
    """Return rows as an estimator was fitted: with its column names or without; it would warn."""
    names = list(getattr(estimator, "feature_names_in_", ()))
    library = type(estimator).__module__.partition(".")[0]
    if not names or library != "sklearn":  # others know pandas' categories best
        rows = as_pandas(rows)
    if isinstance(rows, np.ndarray):
        made_up = all(re.fullmatch(r"Column_\d+", str(name)) for name in names)  # by LightGBM
        fits = len(names) == rows.shape[1] and not made_up
        return pd.DataFrame(rows, columns=names) if fits else rows
    bare = not names and library == "sklearn"
    numeric = bare and all(pd.api.types.is_numeric_dtype(kind) for kind in rows.dtypes)
    return numeric_matrix(rows, "the model") if numeric else rows


def same_name(name: object) -> str:
    """Return a name as libraries write it that allow only letters, digits and ``_``."""
    return re.sub(r"\W", "_", str(name))


def matched(names: Iterable[str], columns: Iterable[Any]) -> list[Any]:
    """Return which column each name means: the one called so, or alone written so; None if none."""
    exact = {str(column): column for column in columns}
    found = []
    for name in names:
        alike = [c for c in exact.values() if same_name(c) == same_name(name)]
        if len(alike) > 1 and name not in exact:
            raise ModelError(
                f"the model's input {name!r} must be one column; got "
                f"{' and '.join(map(repr, alike))}, which read alike. Rename one of them."
            )
        found.append(exact.get(name, alike[0] if alike else None))
    return found


def named_columns(rows: Any, names: Sequence[str], who: str) -> list[pd.Series[Any]]:
    """Return the columns that a model's inputs are called like; a ModelError names missing ones."""
    if not isinstance(rows, pd.DataFrame):
        raise ModelError(
            f"{who} must get a table with the columns {', '.join(names)}; got an array. Make the "
            "space from a DataFrame."
        )
    found = matched(names, rows.columns)
    missing = [name for name, column in zip(names, found, strict=True) if column is None]
    if missing:
        raise ModelError(
            f"{who} must get the columns {', '.join(names)}; missing: {', '.join(missing)}. Name "
            "the columns of the data like the model's inputs."
        )
    return [rows[column] for column in found]


def numeric_matrix(rows: Any, who: str) -> NDArray[np.float64]:
    """Return rows as one matrix of numbers; raise a ModelError that names a column with others."""
    if not isinstance(rows, pd.DataFrame):
        return np.array(rows, dtype=np.float64)
    for name, dtype in rows.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            raise ModelError(
                f"{who} must get numbers; got column {name!r} of dtype {dtype}. Pass a "
                "function that encodes it and calls the model."
            )
    return rows.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
