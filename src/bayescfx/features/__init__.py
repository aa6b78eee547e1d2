"""One column of the user's table as codes.

A *code* is one ``float64`` per cell: numbers stand for themselves, levels for their position, times
for units since an origin, and ``nan`` for a missing cell. A feature knows its range, its grid and
its levels; it does not know its name, its dtype or any rule.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.errors import SpaceError
from bayescfx.features.datetimes import Moment

__all__ = [
    "FEATURES",
    "Categorical",
    "Feature",
    "Integer",
    "Moment",
    "Ordinal",
    "Real",
    "code_range",
    "code_step",
    "cover",
    "grid_codes",
    "is_cyclic",
]

LARGEST_INTEGER = 2**53  # beyond it, neighbouring integers share one float64


@dataclass(frozen=True, slots=True)
class Real:
    """A number, continuous or on a grid.

    Parameters
    ----------
    low, high : float
        Limits, both included.
    step : float, optional
        Grid ``low, low + step, ...``; without it every number between the limits is allowed.

    Examples
    --------
    >>> Real(0, 1, step=0.1).grid_decimals
    1
    """

    low: float
    high: float
    step: float | None = None

    def __post_init__(self) -> None:
        _check_limits("Real", self.low, self.high)
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        if self.step is not None:
            _check_step("Real", self.step)
            object.__setattr__(self, "step", float(self.step))

    @property
    def grid_decimals(self) -> int | None:
        """Decimals that write every grid point exactly as a user would; ``None`` if too many."""
        decimals = max(_decimals(self.low), _decimals(self.step or 1.0))
        return decimals if decimals <= 12 else None


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number.

    Parameters
    ----------
    low, high : int
        Limits, both included.
    step : int, default 1
        Grid ``low, low + step, ...``.
    cyclic : bool, default False
        After `high` comes `low` again, as with weekdays and hours.

    Examples
    --------
    >>> Integer(0, 6, cyclic=True).period
    7
    """

    low: int
    high: int
    step: int = 1
    cyclic: bool = False

    def __post_init__(self) -> None:
        _check_limits("Integer", self.low, self.high)
        _check_step("Integer", self.step)
        for name in ("low", "high", "step"):
            value = getattr(self, name)
            if value != int(value) or abs(value) > LARGEST_INTEGER:
                raise SpaceError(
                    f"`{name}` of Integer must be a whole number up to 2**53; got {value!r}. "
                    "Use Real for fractions and Categorical for identifiers."
                )
            object.__setattr__(self, name, int(value))

    @property
    def period(self) -> int:
        """Length of the circle, for cyclic features."""
        return self.high - self.low + self.step


@dataclass(frozen=True, slots=True)
class Ordinal:
    """Levels in order, lowest first; any hashable values.

    Parameters
    ----------
    levels : sequence of hashable

    Examples
    --------
    >>> Ordinal(["low", "high"]).levels
    ('low', 'high')
    """

    levels: tuple[Hashable, ...]

    def __init__(self, levels: Iterable[Hashable]) -> None:
        object.__setattr__(self, "levels", _distinct("Ordinal", levels))


@dataclass(frozen=True, slots=True)
class Categorical:
    """Levels without order; any hashable values.

    Parameters
    ----------
    levels : iterable of hashable

    Examples
    --------
    >>> Categorical(["red", "green"])
    Categorical(levels=('red', 'green'))
    """

    levels: tuple[Hashable, ...]

    def __init__(self, levels: Iterable[Hashable]) -> None:
        object.__setattr__(self, "levels", _distinct("Categorical", levels))


Feature: TypeAlias = Real | Integer | Ordinal | Categorical | Moment
FEATURES: tuple[type[Feature], ...] = (Real, Integer, Ordinal, Categorical, Moment)


def code_range(feature: Feature) -> tuple[float, float]:
    """Return the lowest and the highest code of a feature.

    Examples
    --------
    >>> code_range(Ordinal(["a", "b", "c"]))
    (0.0, 2.0)
    """
    match feature:
        case Real() | Integer():
            return float(feature.low), float(feature.high)
        case Moment():
            return feature.low_code, feature.high_code
        case _:
            return 0.0, float(len(feature.levels) - 1)


def code_step(feature: Feature) -> float:
    """Return the grid step in codes; 0 for a continuous feature.

    Examples
    --------
    >>> code_step(Real(0, 1)), code_step(Integer(0, 10, step=5))
    (0.0, 5.0)
    """
    match feature:
        case Real():
            return feature.step or 0.0
        case Integer():
            return float(feature.step)
        case _:
            return 1.0


def grid_codes(feature: Feature, k: Array, anchor: float) -> Array:
    """Return the codes ``anchor + k * step`` exactly as cells of the feature would be encoded.

    Parameters
    ----------
    k : ndarray of whole numbers
    anchor : float
        Code from which steps are counted.
    """
    codes = anchor + k * code_step(feature)
    if isinstance(feature, Real) and feature.grid_decimals is not None:
        return np.round(codes, feature.grid_decimals)
    if isinstance(feature, Moment):
        return np.rint(codes * feature.microseconds) / feature.microseconds
    return codes


def is_cyclic(feature: Feature) -> bool:
    """Return whether the feature lives on a circle."""
    return isinstance(feature, Integer) and feature.cyclic


def cover(feature: Feature, values: pd.Series[Any]) -> Feature:
    """Return the feature with its range or levels grown to include `values`.

    Missing cells are ignored. New levels of a `Categorical` go to the end, so codes stay valid.

    Raises
    ------
    SpaceError
        For an unknown level of an `Ordinal`, whose place nobody can guess.

    Examples
    --------
    >>> cover(Integer(0, 5), pd.Series([7, 3]))
    Integer(low=0, high=7, step=1, cyclic=False)
    """
    values = values.dropna()
    if values.empty:
        return feature
    match feature:
        case Real() | Integer() if is_cyclic(feature):
            return feature
        case Real() | Integer():
            low, high = float(values.min()), float(values.max())
            return _widened(feature, low, high)
        case Moment():
            return replace(
                feature,
                low=min(feature.low, values.min()),
                high=max(feature.high, values.max()),
            )
        case _:
            known = set(feature.levels)
            new = [level for level in pd.unique(values.astype(object)) if level not in known]
            return _with_levels(feature, new)


def _widened(feature: Real | Integer, low: float, high: float) -> Real | Integer:
    """Grow the limits, the lower one by whole steps, so that the grid keeps its points."""
    high = max(feature.high, high)
    if isinstance(feature, Integer):
        down = max(0, math.ceil((feature.low - low) / feature.step))
        return replace(feature, low=feature.low - down * feature.step, high=math.ceil(high))
    if feature.step is not None and low < feature.low:
        down = math.ceil((feature.low - low) / feature.step)
        low = float(grid_codes(feature, np.array(-down), feature.low))
    return replace(feature, low=min(low, feature.low), high=high)


def _with_levels(feature: Ordinal | Categorical, new: list[Any]) -> Feature:
    if not new:
        return feature
    if isinstance(feature, Ordinal):
        raise SpaceError(
            f"{new[0]!r} is not one of the levels of {feature!r}, so its place in the order is "
            "unknown. Add it to the levels of the feature."
        )
    return Categorical((*feature.levels, *new))


def _check_limits(kind: str, low: object, high: object) -> None:
    for name, value in (("low", low), ("high", high)):
        if isinstance(value, (str, bytes)) or not _is_finite(value):
            raise SpaceError(f"`{name}` of {kind} must be a finite number; got {value!r}.")
    if low > high:  # type: ignore[operator]  # both are numbers here
        raise SpaceError(f"`low <= high` must hold for {kind}; got low={low!r}, high={high!r}.")


def _check_step(kind: str, step: object) -> None:
    if isinstance(step, (str, bytes)) or not _is_finite(step) or not step > 0:  # type: ignore[operator]  # a number here
        raise SpaceError(f"`step` of {kind} must be a positive number; got {step!r}.")


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except TypeError:
        return False


def _decimals(value: float) -> int:
    """Return how many decimals the shortest writing of `value` has."""
    mantissa, _, exponent = repr(float(value)).partition("e")
    fraction = mantissa.partition(".")[2].rstrip("0")
    return max(0, len(fraction) - int(exponent or 0))


def _distinct(kind: str, levels: Iterable[Hashable]) -> tuple[Hashable, ...]:
    if isinstance(levels, (str, bytes)):
        raise SpaceError(f"`levels` of {kind} must be a list; got the text {levels!r}.")
    found = tuple(levels)
    if not found:
        raise SpaceError(f"`levels` of {kind} must not be empty.")
    if any(level is None or level is pd.NaT or level is pd.NA or level != level for level in found):
        raise SpaceError(f"`levels` of {kind} must not contain missing values; got {found!r}.")
    if len(set(found)) != len(found):
        raise SpaceError(f"`levels` of {kind} must be distinct; got {found!r}.")
    return found
