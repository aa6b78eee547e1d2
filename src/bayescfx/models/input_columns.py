"""Columns as other libraries want them: text as categories, rows as one matrix, plain names."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.data.tables import as_pandas
from bayescfx.errors import ModelError


def is_text(column: Any) -> bool:
    """Tell whether a column, or its dtype, is of text or other objects that no number stands for.

    Categories of text count as text by the column, not by their dtype.
    """
    return bool(pd.api.types.is_string_dtype(column) or pd.api.types.is_object_dtype(column))


class Cut(str):
    """A level of which only the first bytes are known, and how many letters it has."""

    start: bytes

    def __new__(cls, start: bytes, length: int) -> Cut:
        """Return what has these bytes and this length; the rest is made up."""
        text = ""
        for end in (b"\x80" * 3, b"\xbf" * 3, b"\x80" * 2, b"\xbf" * 2, b"\x80", b""):
            with contextlib.suppress(UnicodeDecodeError):  # of a letter that is cut
                text = (start + end).decode()
        new = super().__new__(cls, text.ljust(length, "\ufffd"))
        new.start = start
        return new

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.start, len(self)

    def fits(self, text: str) -> bool:
        """Return whether it may be this text."""
        return len(text) == len(self) and text.encode().startswith(self.start)


def knows(levels: Iterable[Any], text: str) -> bool:
    """Return whether a text is one of some levels, or may be one that is cut."""
    return text in set(levels) or any(v.fits(text) for v in levels if isinstance(v, Cut))


@dataclass(frozen=True)
class Category:
    """A column that a model was trained on as pandas' categories.

    `levels` is None where the model does not tell; `dtype` is theirs where it takes no others.
    """

    name: str
    levels: tuple[Any, ...] | None = None
    dtype: str = ""

    def cast(self, cells: pd.Series[Any]) -> pd.Series[Any]:
        """Return a column with these categories; others that it may have are kept if they may."""
        held = isinstance(cells.dtype, pd.CategoricalDtype)
        some = cells.dropna().astype(object)
        text = len(some) > 0 and isinstance(some.iloc[0], str)
        if self.levels is None and text and not held:
            raise ModelError(
                f"the model must tell the levels of {self.name!r} to get text for it; it does not. "
                "Save it again with XGBoost 3.1 or newer and levels of plain letters, or make the "
                "space from its categories."
            )
        if self.levels is None or (held and not self.dtype):
            return cells
        if len(some) and text != isinstance(self.levels[0], str):
            raise ModelError(
                f"the model must get levels such as {self.levels[0]!r} in column {self.name!r}; "
                f"got {some.iloc[0]!r}. Convert the column."
            )
        codes = self._codes(cells)
        unknown = cells[(codes == -1) & cells.notna().to_numpy()]
        if self.dtype and len(unknown):
            listed = ", ".join(repr(v) for v in self.levels[:10] if not isinstance(v, Cut))
            raise ModelError(
                f"the model was not trained on {unknown.iloc[0]!r} in column {self.name!r}. "
                f"Levels: {listed}."
            )
        levels = pd.Index(list(self.levels), dtype=self.dtype or None)
        return pd.Series(pd.Categorical.from_codes(codes, levels), index=cells.index)

    def _codes(self, cells: pd.Series[Any]) -> NDArray[np.intp]:
        """Return the place of each cell among the levels; -1 for one that is not there."""
        known = pd.Index(list(self.levels or ()), dtype=object)
        given = pd.Index(cells.to_numpy(dtype=object), dtype=object)
        codes: NDArray[np.intp] = known.get_indexer(given)
        cut = [(k, level) for k, level in enumerate(self.levels or ()) if isinstance(level, Cut)]
        for i in np.flatnonzero((codes == -1) & cells.notna().to_numpy()) if cut else ():
            fitting = [k for k, level in cut if level.fits(str(cells.iloc[i]))]
            codes[i] = fitting[0] if len(fitting) == 1 else -1
        return codes


def for_trees(rows: Any, categories: Sequence[Category], *, texts: bool = False) -> Any:
    """Return rows with a model's categories, and without objects, which trees don't take.

    Booleans beside missing cells become numbers; with `texts`, text becomes categories.
    """
    rows, new = with_categories(rows, categories), dict[Any, Any]()
    for name, dtype in rows.dtypes.items() if isinstance(rows, pd.DataFrame) else ():
        if is_text(dtype):
            some = rows[name].dropna()
            text = any(isinstance(cell, str) for cell in some) or (texts and not len(some))
            new |= {name: "category" if text else np.float64} if texts or not text else {}
    return rows.astype(new) if new else rows


def with_categories(rows: Any, categories: Sequence[Category]) -> Any:
    """Return rows with the categories of a model, which calls columns in its own way."""
    if not isinstance(rows, pd.DataFrame) or not categories:
        return rows
    found, rows = matched([c.name for c in categories], rows.columns), rows.copy(deep=False)
    for category, name in zip(categories, found, strict=True):
        if name is not None:
            rows[name] = category.cast(rows[name])
    return rows


def as_fitted(estimator: Any, rows: Any, categories: Sequence[Category] = ()) -> Any:
    """Return rows as an estimator was fitted: with its column names or without; it would warn."""
    names = list(getattr(estimator, "feature_names_in_", ()))
    homes = [kind.__module__.partition(".")[0] for kind in type(estimator).__mro__]
    library = next((home for home in homes if home in ("lightgbm", "xgboost")), homes[0])
    if not names or library != "sklearn" or categories:  # others know pandas' categories best
        rows = as_pandas(rows)
    if isinstance(rows, np.ndarray):
        made_up = all(re.fullmatch(r"Column_\d+", str(name)) for name in names)  # by LightGBM
        if len(names) != rows.shape[1] or made_up:
            return rows
        rows = pd.DataFrame(rows, columns=names).infer_objects()
    bare = not names and library == "sklearn"
    if bare and all(pd.api.types.is_numeric_dtype(kind) for kind in rows.dtypes):
        return numeric_matrix(rows, "the model")
    if library not in ("lightgbm", "xgboost"):
        return with_categories(rows, categories)
    return for_trees(rows, categories, texts=library == "lightgbm" and not categories)


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
