"""Levels, with and without order."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.checks import is_hashable, is_several, shown
from bayescfx.data.feature import Feature
from bayescfx.data.tables import Cells, Dtype, cells_in
from bayescfx.data.values import as_number, as_python
from bayescfx.errors import SpaceError, suggest


@dataclass(frozen=True, init=False)
class _Levels(Feature):
    """The common part of `Ordinal` and `Categorical`: codes are positions among the levels."""

    levels: tuple[Hashable, ...]

    has_levels = True
    separator = ", "  # between levels in a description

    def __init__(self, levels: Iterable[Hashable]) -> None:
        """Check the levels and keep them as a tuple."""
        object.__setattr__(self, "levels", _checked_levels(type(self).__name__, levels))

    # ── codes ──

    @property
    def code_range(self) -> tuple[float, float]:
        """Positions of the first and the last level."""
        return 0.0, float(len(self.levels) - 1)

    @cached_property
    def _positions(self) -> dict[Hashable, float]:
        """The code of each level."""
        return {level: float(place) for place, level in enumerate(self.levels)}

    @cached_property
    def _index(self) -> pd.Index[Any]:
        """The levels for look-ups of whole columns."""
        return pd.Index(list(self.levels), dtype=object, tupleize_cols=False)

    @cached_property
    def _cells_by_dtype(self) -> dict[int, tuple[Dtype, Cells]]:
        """The levels as cells of the dtypes that they were decoded to, by identity of the dtype."""
        return {}

    def encode(self, cells: Cells) -> Array:
        """Return the position of each level; a single cell takes the fast path."""
        if len(cells) == 1:
            code = np.nan if _is_missing(cells[0]) else self._positions.get(cells[0], -1.0)
            return np.array([code])
        if isinstance(cells.dtype, pd.CategoricalDtype):
            # one look-up per category, not per cell
            places = self._index.get_indexer(cells.categories.astype(object))
            return np.asarray(np.append(places, np.nan)[cells.codes], dtype=np.float64)
        objects = pd.Index(np.asarray(cells, dtype=object), dtype=object, tupleize_cols=False)
        return np.where(np.asarray(pd.isna(cells)), np.nan, self._index.get_indexer(objects))

    def decode(self, codes: Array, dtype: Dtype) -> Cells:
        """Return the level of each code, as cells of the column's dtype."""
        cells = self._as_cells(dtype)
        missing = np.isnan(codes)
        if not missing.any():
            return cells[codes.astype(np.intp)]
        positions = np.where(missing, -1, codes).astype(np.intp)
        return pd.api.extensions.take(cells, positions, allow_fill=True)

    def _as_cells(self, dtype: Dtype) -> Cells:
        """Return the levels as cells of a dtype; conversion is slow, so that they are kept."""
        kept = self._cells_by_dtype.get(id(dtype))
        if kept is None:
            cells = cells_in(pd.Series(self._index.to_numpy()).astype(dtype))
            self._cells_by_dtype.clear()  # a column has one dtype
            kept = self._cells_by_dtype[id(dtype)] = (dtype, cells)
        return kept[1]

    def covering(self, values: pd.Series[Any]) -> Feature:
        """Append new levels, so that codes stay valid; an order can't be extended."""
        unique = pd.unique(values.dropna().astype(object))
        new = [level for level in unique if level not in self._positions]
        if new and not self.categorical:
            raise SpaceError(
                f"{new[0]!r} is not one of the levels of {self!r}, so its place in the order is "
                "unknown. Add it to the levels of the feature."
            )
        return type(self)((*self.levels, *new)) if new else self

    def growth(self, before: Feature) -> str:
        """Return the levels that were added."""
        return "the level " + ", ".join(map(repr, self.levels[len(before.levels) :]))

    # ── columns of data ──

    @classmethod
    def of_column(cls, name: Hashable, cells: pd.Series[Any]) -> Feature:
        """Return the values found, sorted if possible, or the categories (in order: every one)."""
        if cells.dtype.kind == "b" and cls.categorical:
            return cls((False, True))
        if isinstance(cells.dtype, pd.CategoricalDtype):
            used = cells.cat.remove_unused_categories() if cls.categorical else cells
            levels = used.cat.categories.tolist()
        else:
            levels = _distinct_cells(name, cells)
            if not cls.categorical:
                _check_no_text(name, levels)
        return cls(levels or ("",))

    @property
    def dtype(self) -> Dtype:
        """The dtype that pandas infers for the levels."""
        return pd.Series(list(self.levels)).dtype

    # ── values that users give ──

    def code(self, value: Any, name: Hashable = "value", verb: str = "between") -> float:
        """Return the position of a level; another value is an error with a suggestion."""
        if not is_hashable(value) or value not in self._positions:
            known = ", ".join(repr(v) for v in self.levels[:10])
            meant = suggest(value, self.levels)
            raise SpaceError(f"{name!r} has no level {shown(value)}.{meant} Levels: {known}.")
        return self._positions[value]

    def parse(self, text: Any, name: Hashable = "value", verb: str = "between") -> Any:
        """Return the level that a text, or a number in its place, stands for.

        Spelling counts first, then letters in another case, then numbers of the same value. ``#0``
        is the first level, where no level is spelt so.
        """
        spelling = str(text)
        number = as_number(text)
        exact = [level for level in self.levels if str(level) == spelling]
        folded = [v for v in self.levels if str(v).casefold() == spelling.casefold()]
        equal = [v for v in self.levels if not isinstance(v, str) and v == number]
        matches = [*exact, *folded, *equal, *self._at_position(spelling)]
        if matches:
            return matches[0]
        if not spelling.strip():
            return None
        return self.levels[int(self.code(text, name, verb))]

    def _at_position(self, text: str) -> tuple[Hashable, ...]:
        """Return the level that ``#0``, or ``##0``, names by its position; nothing for others."""
        place = re.fullmatch(r"#+(\d+)", text)
        return () if place is None else self.levels[int(place[1]) :][:1]

    def format(self, code: float) -> str:
        """Return the level as text, or its position ``#0`` where another level is spelt so."""
        if math.isnan(code):
            return ""
        place = int(code)
        text = str(self.levels[place])
        marks = "#"
        while not text.strip() or self.parse(text) is not self.levels[place]:
            text = f"{marks}{place}"
            marks += "#"
        return text

    # ── numbers in text rules ──

    def measure(self, name: Hashable, text: str) -> str:
        """Raise unless all levels are numbers; they have no unit."""
        types = (bool, np.bool_, int, float, np.integer, np.floating)
        if not all(isinstance(v, types) and math.isfinite(v) for v in self.levels):
            raise SpaceError(
                f"rule {text!r} needs numbers, but {name!r} has levels such as {self.levels[0]!r}.",
                parameter="rule",
                advice="Write levels in quotes, or pass a function.",
            )
        return ""

    def numbers(self, codes: Array) -> Array:
        """Return the levels themselves, which are numbers."""
        levels = np.array([*self.levels, np.nan], dtype=np.float64)
        return levels[np.where(np.isnan(codes), -1, codes).astype(np.intp)]

    @property
    def line(self) -> tuple[float, float] | None:
        """Offset and slope of evenly spaced levels."""
        levels = np.array(self.levels, dtype=np.float64)
        slope = levels[1] - levels[0] if len(levels) > 1 else 0.0
        is_even = np.array_equal(levels, levels[0] + slope * np.arange(len(levels)))
        return (float(levels[0]), float(slope)) if is_even else None

    # ── texts for people ──

    @property
    def words(self) -> str:
        """The first three levels and how many there are."""
        n = len(self.levels)
        first = self.separator.join(map(repr, self.levels[:3]))
        return first if n <= 3 else f"{first}{self.separator}… ({n} levels)"

    def display(self, *codes: float) -> list[str]:
        """Return the levels as Python writes them, text in quotes."""
        return [repr(self.levels[int(code)]) for code in codes]

    def label(self, code: float) -> str:
        """Return the nearest level without quotes."""
        return str(self.levels[round(code)])


class Ordinal(_Levels):
    """Levels in order, lowest first; any hashable values.

    Parameters
    ----------
    levels : sequence of hashable

    Examples
    --------
    >>> Ordinal(["low", "high"]).levels
    ('low', 'high')
    """

    natural = "o"
    separator = " < "

    @classmethod
    def of_order(cls, name: Hashable, cells: pd.Series[Any], order: Sequence[str]) -> Ordinal:
        """Return the levels in a given order, which must contain every level of the column."""
        levels = {str(level): level for level in pd.unique(cells.dropna().astype(object))}
        texts = [text.strip() for text in order]
        lost = [text for text in levels if text not in texts]
        if lost:
            raise SpaceError(
                f"the order of {name!r} must have every level of the column; {lost[0]!r} is "
                f"missing from {' < '.join(texts)}.{suggest(lost[0], texts)}"
            )
        return cls([levels.get(text, text) for text in texts])


class Categorical(_Levels):
    """Levels without order; any hashable values.

    Parameters
    ----------
    levels : iterable of hashable

    Examples
    --------
    >>> Categorical(["red", "green"])
    Categorical(levels=('red', 'green'))
    """

    categorical = True


def _checked_levels(kind: str, levels: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return levels as a tuple, or raise unless they are distinct values."""
    if not is_several(levels):
        raise SpaceError(f"`levels` of {kind} must be a list; got {shown(levels)}.")
    values = tuple(levels)
    if not all(map(is_hashable, values)):
        raise SpaceError(f"`levels` of {kind} must be hashable; got {shown(levels)}.")
    if not values:
        raise SpaceError(f"`levels` of {kind} must not be empty.")
    if any(map(_is_missing, values)):
        raise SpaceError(f"`levels` of {kind} must not contain missing values; got {values!r}.")
    if len(set(values)) != len(values):
        raise SpaceError(f"`levels` of {kind} must be distinct; got {values!r}.")
    return values


def _distinct_cells(name: Hashable, cells: pd.Series[Any]) -> list[Any]:
    """Return the distinct cells of a column, sorted if they can be."""
    try:
        unique = pd.unique(cells.dropna())
    except TypeError as error:
        raise SpaceError(f"column {name!r} must hold hashable values.") from error
    levels = [as_python(level) for level in unique]
    with contextlib.suppress(TypeError):  # mixed types have no order: first seen, first kept
        levels = sorted(levels)
    return levels


def _check_no_text(name: Hashable, levels: Sequence[Any]) -> None:
    """Raise if the levels of an ordinal column are text, whose order is unknown."""
    if any(isinstance(level, str) for level in levels):
        texts = sorted(str(level) for level in levels)
        raise SpaceError(
            f"column {name!r} must say the order of its levels, which are text: "
            f"{', '.join(map(repr, texts[:8]))}.",
            parameter="order",
            advice="Give it from the lowest, such as 'low < middle < high', as an Ordinal or "
            "as ordered categories.",
        )


def _is_missing(value: Any) -> bool:
    """Return whether a level is None, NaN, NA or NaT."""
    return value is None or value is pd.NA or value is pd.NaT or value != value
