"""Points in time and durations as numbers of units."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

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

_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")  # what may follow a date


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time (or a duration) that moves in whole units from where the query stands.

    Parameters
    ----------
    low, high : timestamp or timedelta
        Limits, both included; anything :class:`pandas.Timestamp` understands.
    unit : {"W", "D", "h", "min", "s", "ms"}, default "D"
        One step.
    origin : timestamp or timedelta, optional
        Where codes count from; `low` unless the feature has grown since.

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
                f"`unit` of Moment must be one of {', '.join(UNIT_MICROSECONDS)}; got "
                f"{self.unit!r}."
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
        if isinstance(moment, pd.Timestamp) and moment.tzinfo is None:
            moment = moment.tz_localize(self.origin.tzinfo)
        return (_microseconds(moment) - self.origin_microseconds) / self.microseconds

    def time(self, code: float) -> Any:
        """Return the point in time that a code stands for; infinities stay numbers."""
        if not math.isfinite(code):
            return code
        return self.origin + pd.Timedelta(round(code * self.microseconds), "us")


def times(*values: Any) -> list[str]:
    """Return points in time for reading: all to the day, the minute or finer, as needed.

    Parameters
    ----------
    *values : timestamp
        Anything :class:`pandas.Timestamp` understands.

    Examples
    --------
    >>> times("2016-01-31"), times("2016-01-31", "2016-02-01 08:30")
    (['2016-01-31'], ['2016-01-31 00:00', '2016-02-01 08:30'])
    """
    stamps = [pd.Timestamp(value) for value in values]
    plain = [stamp.tz_localize(None) for stamp in stamps]
    for clock in _CLOCKS:
        texts = [stamp.strftime(f"%Y-%m-%d{clock}") for stamp in stamps]
        if all(pd.Timestamp(text) == stamp for text, stamp in zip(texts, plain, strict=True)):
            zones = [stamp.strftime("%z") if clock else "" for stamp in stamps]
            return [text + zone for text, zone in zip(texts, zones, strict=True)]
    return [str(stamp) for stamp in stamps]  # to the nanosecond


def _time(name: str, value: Any, duration: bool) -> pd.Timestamp | pd.Timedelta:
    try:
        moment = pd.Timedelta(value) if duration else pd.Timestamp(value)
    except (ValueError, TypeError) as error:
        kind = "duration" if duration else "point in time"
        raise SpaceError(f"`{name}` of Moment must be a {kind}; got {value!r}.") from error
    if pd.isna(moment):
        raise SpaceError(f"`{name}` of Moment must not be missing.")
    return moment


def _microseconds(moment: pd.Timestamp | pd.Timedelta) -> int:
    if isinstance(moment, pd.Timedelta):
        return int(moment.to_timedelta64().astype("timedelta64[us]").astype(np.int64))
    naive = moment.tz_convert("UTC").tz_localize(None) if moment.tzinfo else moment
    return int(naive.to_datetime64().astype("datetime64[us]").astype(np.int64))
