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
    """What `Ordinal` and `Categorical` share: codes are positions among the levels."""

    levels: tuple[Hashable, ...]

    has_levels = True
    glue = ", "  # between levels that are told

    def __init__(self, levels: Iterable[Hashable]) -> None:
        kind = type(self).__name__
        if not is_several(levels):
            raise SpaceError(f"`levels` of {kind} must be a list; got {shown(levels)}.")
        found = tuple(levels)
        if not all(map(is_hashable, found)):
            raise SpaceError(f"`levels` of {kind} must be hashable; got {shown(levels)}.")
        if not found:
            raise SpaceError(f"`levels` of {kind} must not be empty.")
        if any(map(_is_missing, found)):
            raise SpaceError(f"`levels` of {kind} must not contain missing values; got {found!r}.")
        if len(set(found)) != len(found):
            raise SpaceError(f"`levels` of {kind} must be distinct; got {found!r}.")
        object.__setattr__(self, "levels", found)

    @property
    def code_range(self) -> tuple[float, float]:
        return 0.0, float(len(self.levels) - 1)

    @cached_property
    def _positions(self) -> dict[Hashable, float]:
        return {level: float(place) for place, level in enumerate(self.levels)}

    @cached_property
    def _index(self) -> pd.Index[Any]:
        return pd.Index(list(self.levels), dtype=object, tupleize_cols=False)

    def encode(self, cells: Cells) -> Array:
        if len(cells) == 1:
            missing = _is_missing(cells[0])
            return np.array([np.nan if missing else self._positions.get(cells[0], -1.0)])
        if isinstance(cells.dtype, pd.CategoricalDtype):
            # one look-up per category, not per cell
            places = self._index.get_indexer(cells.categories.astype(object))
            return np.asarray(np.append(places, np.nan)[cells.codes], dtype=np.float64)
        objects = pd.Index(np.asarray(cells, dtype=object), dtype=object, tupleize_cols=False)
        return np.where(np.asarray(pd.isna(cells)), np.nan, self._index.get_indexer(objects))

    def decode(self, codes: Array, dtype: Dtype) -> Cells:
        last = vars(self).get("_last")  # a dtype, and the levels in it
        if last is None or last[0] is not dtype:
            last = dtype, cells_in(pd.Series(self._index.to_numpy()).astype(dtype))
            vars(self)["_last"] = last
        cells: Any = last[1]
        missing = np.isnan(codes)
        if not missing.any():
            return cells[codes.astype(np.intp)]
        positions = np.where(missing, -1, codes).astype(np.intp)
        return pd.api.extensions.take(cells, positions, allow_fill=True)

    def covering(self, values: pd.Series[Any]) -> Feature:
        """Append the new levels, so that codes stay valid; in an order nobody knows their place."""
        found = pd.unique(values.dropna().astype(object))
        new = [level for level in found if level not in self._positions]
        if new and not self.categorical:
            raise SpaceError(
                f"{new[0]!r} is not one of the levels of {self!r}, so its place in the order is "
                "unknown. Add it to the levels of the feature."
            )
        return type(self)((*self.levels, *new)) if new else self

    def growth(self, before: Feature) -> str:
        return "the level " + ", ".join(map(repr, self.levels[len(before.levels) :]))

    @classmethod
    def of_column(cls, name: Hashable, cells: pd.Series[Any]) -> Feature:
        """Return the values found, sorted if possible, or the categories (in order: every one)."""
        if cells.dtype.kind == "b" and cls.categorical:
            return cls((False, True))
        if isinstance(cells.dtype, pd.CategoricalDtype):
            used = cells.cat.remove_unused_categories() if cls.categorical else cells
            return cls(used.cat.categories.tolist() or ("",))
        try:
            found = pd.unique(cells.dropna())
        except TypeError as error:
            raise SpaceError(f"column {name!r} must hold hashable values.") from error
        levels = list(map(as_python, found))
        if not cls.categorical and any(isinstance(level, str) for level in levels):
            raise SpaceError(
                f"column {name!r} must say the order of its levels, which are text: "
                f"{', '.join(map(repr, sorted(map(str, levels))[:8]))}.",
                parameter="order",
                advice="Give it from the lowest, such as 'low < middle < high', as an Ordinal or "
                "as ordered categories.",
            )
        with contextlib.suppress(TypeError):  # mixed types have no order: first seen, first kept
            levels = sorted(levels)
        return cls(levels or ("",))

    @property
    def dtype(self) -> Dtype:
        return pd.Series(list(self.levels)).dtype

    def code(self, value: Any, name: Hashable = "value", verb: str = "between") -> float:
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
        for level in self.levels:
            if str(level) == spelling:
                return level
        for level in self.levels:
            if str(level).casefold() == spelling.casefold():
                return level
        number = as_number(text)
        for level in self.levels:
            if not isinstance(level, str) and level == number:
                return level
        place = re.fullmatch(r"#+(\d+)", spelling)
        if place is not None and int(place[1]) < len(self.levels):
            return self.levels[int(place[1])]
        if not spelling.strip():
            return None
        return self.levels[int(self.code(text, name, verb))]

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

    def measure(self, name: Hashable, text: str) -> str:
        numbers = (bool, np.bool_, int, float, np.integer, np.floating)
        if not all(isinstance(v, numbers) and math.isfinite(v) for v in self.levels):
            raise SpaceError(
                f"rule {text!r} needs numbers, but {name!r} has levels such as {self.levels[0]!r}.",
                parameter="rule",
                advice="Write levels in quotes, or pass a function.",
            )
        return ""

    def numbers(self, codes: Array) -> Array:
        levels = np.array([*self.levels, np.nan], dtype=np.float64)
        return levels[np.where(np.isnan(codes), -1, codes).astype(np.intp)]

    @property
    def line(self) -> tuple[float, float] | None:
        """Offset and slope of evenly spaced levels."""
        levels = np.array(self.levels, dtype=np.float64)
        slope = levels[1] - levels[0] if len(levels) > 1 else 0.0
        even = np.array_equal(levels, levels[0] + slope * np.arange(len(levels)))
        return (float(levels[0]), float(slope)) if even else None

    @property
    def words(self) -> str:
        shown, n = self.glue.join(map(repr, self.levels[:3])), len(self.levels)
        return shown + (f"{self.glue}… ({n} levels)" if n > 3 else "")

    def display(self, *codes: float) -> list[str]:
        return [repr(self.levels[int(code)]) for code in codes]

    def label(self, code: float) -> str:
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
    glue = " < "

    @classmethod
    def of_order(cls, name: Hashable, cells: pd.Series[Any], order: Sequence[str]) -> Ordinal:
        """Return the levels in the order said; each that the column has must be among them."""
        found = {str(level): level for level in pd.unique(cells.dropna().astype(object))}
        said = [text.strip() for text in order]
        lost = [text for text in found if text not in said]
        if lost:
            raise SpaceError(
                f"the order of {name!r} must have every level of the column; {lost[0]!r} is "
                f"missing from {' < '.join(said)}.{suggest(lost[0], said)}"
            )
        return cls([found.get(text, text) for text in said])


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


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or value != value
