"""One column of the user's table as codes.

A *code* is one ``float64`` per cell: numbers stand for themselves, levels for their position, times
for units since an origin, and ``nan`` for a missing cell. A feature knows its range, its grid and
its levels; it does not know its name, its dtype or any rule.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.errors import SpaceError

Unit: TypeAlias = Literal["W", "D", "h", "min", "s", "ms"]

# Times are counted in whole microseconds, which float64 holds exactly over 285 years.
UNIT_MICROSECONDS: dict[str, int] = {
    "W": 604_800_000_000,
    "D": 86_400_000_000,
    "h": 3_600_000_000,
    "min": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
}
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


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time (or a duration) that moves in whole units from where the query stands.

    Parameters
    ----------
    low, high : timestamp or timedelta
        Limits, both included; anything :class:`pandas.Timestamp` understands.
    unit : {"W", "D", "h", "min", "s", "ms"}, default "D"
        One step.

    Examples
    --------
    >>> Moment("2016-01-01", "2016-01-31").span
    30.0
    """

    low: Any
    high: Any
    unit: Unit = "D"
    origin: Any = field(default=None, repr=False)  # where codes count from; the first `low`

    def __post_init__(self) -> None:
        if self.unit not in UNIT_MICROSECONDS:
            raise SpaceError(
                f"`unit` of Moment must be one of {', '.join(UNIT_MICROSECONDS)}; got {self.unit!r}."
            )
        duration = isinstance(self.low, (dt.timedelta, np.timedelta64))
        for name in ("low", "high", "origin"):
            value = self.low if name == "origin" and self.origin is None else getattr(self, name)
            object.__setattr__(self, name, _time(name, value, duration))
        if self.low > self.high:
            raise SpaceError(
                f"`low <= high` must hold for Moment; got low={self.low!r}, high={self.high!r}."
            )

    @property
    def duration(self) -> bool:
        """Whether the values are durations instead of points in time."""
        return isinstance(self.low, pd.Timedelta)

    @property
    def span(self) -> float:
        """Units between the limits."""
        return self.high_code - self.low_code

    @property
    def low_code(self) -> float:
        """Code of the lower limit."""
        return self.code(self.low)

    @property
    def high_code(self) -> float:
        """Code of the upper limit."""
        return self.code(self.high)

    @property
    def microseconds(self) -> int:
        """Microseconds in one unit."""
        return UNIT_MICROSECONDS[self.unit]

    @property
    def origin_microseconds(self) -> int:
        """The origin, in microseconds since 1970 (or as a duration)."""
        return _microseconds(self.origin)

    def code(self, value: Any) -> float:
        """Return the code of one point in time."""
        moment = _time("value", value, self.duration)
        zone = None if self.duration else self.origin.tzinfo
        if zone is not None and moment.tzinfo is None:
            moment = moment.tz_localize(zone)
        return (_microseconds(moment) - self.origin_microseconds) / self.microseconds

    def time(self, code: float) -> Any:
        """Return the point in time that a code stands for; infinities stay numbers."""
        if not math.isfinite(code):
            return code
        return self.origin + pd.Timedelta(round(code * self.microseconds), "us")


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
    """Grow the limits by whole steps, so that the grid keeps its points."""
    if feature.step is None:
        return replace(feature, low=min(low, feature.low), high=max(high, feature.high))
    down = max(0, math.ceil((feature.low - low) / feature.step))
    return replace(
        feature,
        low=float(grid_codes(feature, np.array(-down), feature.low)) if down else feature.low,
        high=max(feature.high, high),
    )


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


def _time(name: str, value: Any, duration: bool) -> pd.Timestamp | pd.Timedelta:
    try:
        moment = pd.Timedelta(value) if duration else pd.Timestamp(value)
    except (ValueError, TypeError) as error:
        kind = "duration" if duration else "point in time"
        raise SpaceError(f"`{name}` of Moment must be a {kind}; got {value!r}.") from error
    if moment is pd.NaT:
        raise SpaceError(f"`{name}` of Moment must not be missing.")
    return moment


def _microseconds(moment: pd.Timestamp | pd.Timedelta) -> int:
    if isinstance(moment, pd.Timedelta):
        return int(moment.to_timedelta64().astype("timedelta64[us]").astype(np.int64))
    naive = moment.tz_convert("UTC").tz_localize(None) if moment.tzinfo else moment
    return int(naive.to_datetime64().astype("datetime64[us]").astype(np.int64))
