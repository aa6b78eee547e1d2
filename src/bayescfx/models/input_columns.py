"""Columns in the form a model was trained on: categories, one matrix, or named columns."""

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

_LISTED_LEVELS = 10  # in an error message

#: Libraries of boosted trees that take pandas' categories.
TREE_LIBRARIES = ("lightgbm", "xgboost")


def is_text(column: Any) -> bool:
    """Return whether a column, or its dtype, holds text or other objects that are no numbers.

    For categories of text, pass the column: its dtype does not count as text.
    """
    return bool(pd.api.types.is_string_dtype(column) or pd.api.types.is_object_dtype(column))


class TruncatedLevel(str):
    """A level of which only the first bytes and the number of letters are known."""

    start: bytes

    def __new__(cls, start: bytes, length: int) -> TruncatedLevel:
        """Return a placeholder with these bytes and this length; the rest is filled up."""
        text = ""
        # The last letter may be cut between its bytes: complete it with any that decode.
        for end in (b"\x80" * 3, b"\xbf" * 3, b"\x80" * 2, b"\xbf" * 2, b"\x80", b""):
            with contextlib.suppress(UnicodeDecodeError):
                text = (start + end).decode()
        new = super().__new__(cls, text.ljust(length, "\ufffd"))
        new.start = start
        return new

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.start, len(self)

    def may_be(self, text: str) -> bool:
        """Return whether this text has the same first bytes and length."""
        return len(text) == len(self) and text.encode().startswith(self.start)


def has_level(levels: Iterable[Any], text: str) -> bool:
    """Return whether a text is one of the levels, or may be one that is truncated."""
    if text in set(levels):
        return True
    return any(level.may_be(text) for level in levels if isinstance(level, TruncatedLevel))


@dataclass(frozen=True)
class Category:
    """A column that a model was trained on as pandas' categories.

    Parameters
    ----------
    name : str
        The column, as the model calls it.
    levels : tuple, optional
        The levels in their order; None if the model does not store them.
    dtype : str
        The dtype of the levels if the model accepts no other levels; else empty.
    """

    name: str
    levels: tuple[Any, ...] | None = None
    dtype: str = ""

    def cast(self, cells: pd.Series[Any]) -> pd.Series[Any]:
        """Return a column with these categories; raise a ModelError for unknown levels."""
        is_categorical = isinstance(cells.dtype, pd.CategoricalDtype)
        present = cells.dropna().astype(object)
        if self.levels is None:
            self._check_codes_known(present, is_categorical)
            return cells
        if is_categorical and not self.dtype:
            return cells
        return self._with_levels(self.levels, cells, present)

    def _with_levels(
        self, levels: tuple[Any, ...], cells: pd.Series[Any], present: pd.Series[Any]
    ) -> pd.Series[Any]:
        """Return a column as categories with known levels; `present` are its cells without nan."""
        self._check_level_type(levels, present)
        codes = self._codes(levels, cells)
        self._check_levels_known(levels, cells[(codes == -1) & cells.notna().to_numpy()])
        index = pd.Index(list(levels), dtype=self.dtype or None)
        return pd.Series(pd.Categorical.from_codes(codes, index), index=cells.index)

    def _check_codes_known(self, present: pd.Series[Any], is_categorical: bool) -> None:
        """Raise if a model without levels gets text, which then has no codes."""
        if _is_text_like(present) and not is_categorical:
            raise ModelError(
                f"the model must store the levels of {self.name!r} to take text for it; it does "
                "not. Save it again with XGBoost 3.1 or newer and levels of plain letters, or make "
                "the space from its categories."
            )

    def _check_level_type(self, levels: tuple[Any, ...], present: pd.Series[Any]) -> None:
        """Raise if the model has text as levels and gets numbers, or the reverse."""
        if len(present) and _is_text_like(present) != isinstance(levels[0], str):
            raise ModelError(
                f"the model must get levels such as {levels[0]!r} in column {self.name!r}; "
                f"got {present.iloc[0]!r}. Convert the column."
            )

    def _check_levels_known(self, levels: tuple[Any, ...], unknown: pd.Series[Any]) -> None:
        """Raise if there are levels that the model was not trained on and does not accept."""
        if self.dtype and len(unknown):
            first = levels[:_LISTED_LEVELS]
            listed = ", ".join(repr(v) for v in first if not isinstance(v, TruncatedLevel))
            raise ModelError(
                f"the model was not trained on {unknown.iloc[0]!r} in column {self.name!r}. "
                f"Levels: {listed}."
            )

    def _codes(self, levels: tuple[Any, ...], cells: pd.Series[Any]) -> NDArray[np.intp]:
        """Return the position of each cell among the levels; -1 for an unknown one."""
        index = pd.Index(list(levels), dtype=object)
        codes: NDArray[np.intp] = index.get_indexer(
            pd.Index(cells.to_numpy(dtype=object), dtype=object)
        )
        truncated = {k: v for k, v in enumerate(levels) if isinstance(v, TruncatedLevel)}
        if truncated:
            unknown = np.flatnonzero((codes == -1) & cells.notna().to_numpy())
            codes[unknown] = [_truncated_code(truncated, str(cells.iloc[i])) for i in unknown]
        return codes


def _truncated_code(truncated: dict[int, TruncatedLevel], text: str) -> int:
    """Return the position of the only truncated level that a text may be, else -1."""
    possible = [k for k, level in truncated.items() if level.may_be(text)]
    return possible[0] if len(possible) == 1 else -1


def _is_text_like(present: pd.Series[Any]) -> bool:
    """Return whether the first of the cells that are present is text."""
    return isinstance(next(iter(present), None), str)


def for_trees(rows: Any, categories: Sequence[Category], *, texts: bool = False) -> Any:
    """Return rows with a model's categories and without objects, which tree libraries refuse.

    Booleans beside missing cells become numbers; with `texts`, text becomes categories.
    """
    rows = with_categories(rows, categories)
    if not isinstance(rows, pd.DataFrame):
        return rows
    objects = [name for name, dtype in rows.dtypes.items() if is_text(dtype)]
    dtypes: dict[Any, Any] = {name: _tree_dtype(rows[name], texts) for name in objects}
    return rows.astype(dtypes) if dtypes else rows


def _tree_dtype(cells: pd.Series[Any], texts: bool) -> Any:
    """Return the dtype that a column of objects gets; its own if it stays."""
    present = cells.dropna()
    if any(isinstance(cell, str) for cell in present):
        return "category" if texts else cells.dtype
    return "category" if texts and present.empty else np.float64


def with_categories(rows: Any, categories: Sequence[Category]) -> Any:
    """Return rows with the categories of a model, whose column names may be spelled otherwise."""
    if not categories or not isinstance(rows, pd.DataFrame):
        return rows
    return _cast_all(rows.copy(deep=False), categories)


def _cast_all(rows: pd.DataFrame, categories: Sequence[Category]) -> pd.DataFrame:
    """Cast the columns of a table to the categories of a model, in place."""
    columns = match_columns([category.name for category in categories], rows.columns)
    for category, column in zip(categories, columns, strict=True):
        if column is not None:
            rows[column] = category.cast(rows[column])
    return rows


def as_fitted(estimator: Any, rows: Any, categories: Sequence[Category] = ()) -> Any:
    """Return rows as an estimator was fitted: with its column names, categories, or as an array.

    scikit-learn warns about rows with names if it was fitted without, and the reverse.

    Parameters
    ----------
    estimator : object
        A fitted model, in the manner of scikit-learn or a booster.
    rows : DataFrame, array of shape (n, columns), or another table
        The rows.
    categories : sequence of Category
        The columns that the model needs as categories; see `categories_of`.
    """
    names = list(getattr(estimator, "feature_names_in_", ()))
    library = library_of(estimator)
    if library != "sklearn" or not names or categories:  # categories need pandas
        rows = as_pandas(rows)
    if isinstance(rows, np.ndarray):
        rows = _with_names(rows, names)
    if isinstance(rows, np.ndarray):
        return rows
    if library in TREE_LIBRARIES:
        return for_trees(rows, categories, texts=library == "lightgbm" and not categories)
    if library == "sklearn" and not names:
        return _without_names(rows, categories)
    return with_categories(rows, categories)


def _with_names(rows: NDArray[Any], names: list[Any]) -> Any:
    """Return an array as a table if there is a name of the user's for each column."""
    if len(names) != rows.shape[1] or _are_made_up(names):
        return rows
    return pd.DataFrame(rows, columns=names).infer_objects()


def _without_names(rows: Any, categories: Sequence[Category]) -> Any:
    """Return rows for an estimator that was fitted to an array: as one matrix if possible."""
    is_numeric = all(map(pd.api.types.is_numeric_dtype, rows.dtypes))
    return numeric_matrix(rows, "the model") if is_numeric else with_categories(rows, categories)


def library_of(estimator: Any) -> str:
    """Return the package of a model's class; a tree library if it derives from one of its."""
    packages = [kind.__module__.partition(".")[0] for kind in type(estimator).__mro__]
    return next((package for package in packages if package in TREE_LIBRARIES), packages[0])


def _are_made_up(names: Sequence[Any]) -> bool:
    """Return whether all names are those that LightGBM gives to the columns of an array."""
    return all(re.fullmatch(r"Column_\d+", str(name)) for name in names)


def plain_name(name: object) -> str:
    """Return a name with ``_`` for all but letters and digits, as LightGBM rewrites it."""
    return re.sub(r"\W", "_", str(name))


def match_columns(names: Iterable[str], columns: Iterable[Any]) -> list[Any]:
    """Return the column for each name: the same, or the only one with the same plain name.

    None stands for a name without a column.
    """
    by_name = {str(column): column for column in columns}
    return [by_name[name] if name in by_name else _similar(name, by_name) for name in names]


def _similar(name: str, by_name: dict[str, Any]) -> Any:
    """Return the only column with the same plain name, None if there is none."""
    similar = [column for column in by_name.values() if plain_name(column) == plain_name(name)]
    if len(similar) > 1:
        raise ModelError(
            f"the model's input {name!r} must be one column; got "
            f"{' and '.join(map(repr, similar))}, which read alike. Rename one of them."
        )
    return similar[0] if similar else None


def named_columns(rows: Any, names: Sequence[str], model: str) -> list[pd.Series[Any]]:
    """Return the columns of a model's inputs; `model` names it if one is missing."""
    if not isinstance(rows, pd.DataFrame):
        raise ModelError(
            f"{model} must get a table with the columns {', '.join(names)}; got an array. Make the "
            "space from a DataFrame."
        )
    columns = match_columns(names, rows.columns)
    if None in columns:
        missing = ", ".join(unmatched(names, columns))
        raise ModelError(
            f"{model} must get the columns {', '.join(names)}; missing: {missing}. Name the "
            "columns of the data like the model's inputs."
        )
    return [rows[column] for column in columns]


def unmatched(names: Iterable[str], columns: Iterable[Any]) -> list[str]:
    """Return the names without a column, from the columns of `match_columns`."""
    return [name for name, column in zip(names, columns, strict=True) if column is None]


def numeric_matrix(rows: Any, model: str) -> NDArray[np.float64]:
    """Return rows as one matrix of numbers; raise a ModelError that names any other column."""
    if not isinstance(rows, pd.DataFrame):
        return np.array(rows, dtype=np.float64)
    for name, dtype in rows.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            raise ModelError(
                f"{model} must get numbers; got column {name!r} of dtype {dtype}. Pass a "
                "function that encodes it and calls the model."
            )
    return rows.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
