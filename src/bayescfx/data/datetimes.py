"""Points in time and durations as numbers of units."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import numbers
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.checks import check, is_hashable, shown
from bayescfx.data.feature import Feature
from bayescfx.data.tables import Cells, Dtype, cells_in, day_or_month_first
from bayescfx.errors import QueryError, SpaceError

Unit: TypeAlias = Literal["W", "D", "h", "min", "s", "ms"]

# A column of at most so many distinct dates is taken as levels. Set by judgement, 2026-11-18.
FEW_DATES = 20
# Cells that decide about the unit, and steps between the limits. Set by judgement, 2026-11-18.
SAMPLE = 100_000
MOST_STEPS = 10_000
# How times of day are written, from the coarsest, and how columns of text may write them.
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")
TEXT_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", "T%H:%M:%SZ")

# Times are counted in whole microseconds, which float64 holds exactly over 285 years.
UNIT_MICROSECONDS: dict[str, int] = {
    unit: pd.Timedelta(1, unit) // pd.Timedelta(1, "us") for unit in get_args(Unit)
}


@dataclass(frozen=True)
class Moment(Feature):
    """A point in time (or a duration) that moves in whole units from the query's own.

    Parameters
    ----------
    low, high : timestamp or timedelta
        Limits, both included; anything :class:`pandas.Timestamp` understands.
    unit : {"W", "D", "h", "min", "s", "ms"}, default "D"
        One step.
    origin : timestamp or timedelta, optional
        Where codes count from; `low` unless the feature has grown since.
    form : str, optional
        Date format of a column of text, as in :meth:`~datetime.datetime.strftime`; ``%-d`` and
        ``%-m`` are days and months without a leading zero.

    Examples
    --------
    >>> Moment("2016-01-01", "2016-01-31").code_range
    (0.0, 30.0)
    """

    low: Any
    high: Any
    unit: Unit = "D"
    origin: Any = field(default=None, repr=False)  # where codes count from; the first `low`
    form: str = field(default="", repr=False)  # date format of text; empty for a time dtype

    floating = True
    natural = "mM"

    def __post_init__(self) -> None:
        """Check the fields, and turn limits and origin into time stamps or durations."""
        is_unit = is_hashable(self.unit) and self.unit in UNIT_MICROSECONDS
        check(is_unit, "unit", f"one of {', '.join(UNIT_MICROSECONDS)}", self.unit, SpaceError)
        is_duration = isinstance(self.low, (dt.timedelta, np.timedelta64))
        origin = self.low if self.origin is None else self.origin
        for name, value in (("low", self.low), ("high", self.high), ("origin", origin)):
            object.__setattr__(self, name, _as_time(f"`{name}` of Moment", value, is_duration))
        check(isinstance(self.form, str), "form", "a format of strftime", self.form, SpaceError)
        if self.low > self.high:
            raise SpaceError(f"`low <= high` must hold for Moment; got {self.low} and {self.high}.")

    @property
    def duration(self) -> bool:
        """Whether the values are durations instead of points in time."""
        return isinstance(self.low, pd.Timedelta)

    @property
    def dated(self) -> bool:
        """Points in time count from 1970 in text rules; durations from zero."""
        return not self.duration

    @property
    def microseconds(self) -> int:
        """Microseconds in one unit."""
        return UNIT_MICROSECONDS[self.unit]

    @property
    def code_range(self) -> tuple[float, float]:
        """Units from the origin to both limits."""
        return self.code(self.low), self.code(self.high)

    def code(self, value: Any, name: Hashable = "value", verb: str = "between") -> float:
        """Return the units between the origin and a value.

        Text is read in the format of the column, or in ISO 8601.
        """
        moment = self._moment(value, name, verb)
        return (_microseconds(moment) - _microseconds(self.origin)) / self.microseconds

    def parse(self, text: Any, name: Hashable = "value", verb: str = "between") -> Any:
        """Return the point in time (or the duration) that a text stands for.

        The form of the column is tried first. A text without a zone is in the feature's zone.
        """
        if not isinstance(text, str):
            return text
        return self._moment(text, name, verb) if text.strip() else None

    def _moment(self, value: Any, name: Hashable, verb: str) -> pd.Timestamp | pd.Timedelta:
        """Return a value that a user gave, in the zone of the feature if it has none."""
        if self.form and isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = dt.datetime.strptime(value, padded(self.form))
        moment = _as_time(f"`{verb}` for {name!r}", value, self.duration)
        if isinstance(moment, pd.Timestamp) and moment.tzinfo is None:
            return self._in_zone(moment, name, verb, value)
        return moment

    def _in_zone(self, moment: pd.Timestamp, name: Hashable, verb: str, value: Any) -> pd.Timestamp:
        """Return a point in time in the zone of the feature."""
        try:
            return moment.tz_localize(self.origin.tzinfo)
        except Exception as error:  # when clocks change; zones have errors without a base
            raise SpaceError(
                f"`{verb}` for {name!r} must be a time that occurs once; got {shown(value)}. "
                "Write its offset, such as +01:00."
            ) from error

    def format(self, code: float) -> str:
        """Return the time in the form of the column, or in ISO 8601, as finely as it takes."""
        if math.isnan(code):
            return ""
        moment = self.time(code)
        if self.duration:
            return str(moment)
        exact = self.code(moment)
        texts: list[str] = list(_format_times(pd.Series([moment]), self.form)) if self.form else []
        texts += [moment.strftime(f"%Y-%m-%d{clock}") for clock in CLOCKS]
        for text in texts:
            with contextlib.suppress(SpaceError):
                if self.code(text) == exact:
                    return text
        return str(moment.isoformat(sep=" "))

    def time(self, code: float) -> Any:
        """Return the point in time that a code stands for."""
        return self.origin + pd.Timedelta(round(code * self.microseconds), "us")

    def shift(self, value: Any, name: Hashable = "value") -> float:
        """Return a number of units; a duration such as ``"2D"`` is converted."""
        if isinstance(value, (int, float, np.number)):
            return super().shift(value, name)
        try:
            return float(pd.Timedelta(value) / pd.Timedelta(self.microseconds, "us"))
        except (ValueError, TypeError, OverflowError) as error:
            raise SpaceError(
                f"`move` for {name!r} must be durations or numbers; got {shown(value)}."
            ) from error

    def grid(self, k: Array, anchor: float) -> Array:
        """Return ``anchor + k`` to the microsecond."""
        return np.asarray(np.rint((anchor + k) * self.microseconds) / self.microseconds)

    def covering(self, values: pd.Series[Any]) -> Moment:
        """Move the limits; the origin stays, so that codes stay valid."""
        values = self._parse_cells(values) if self.form else values
        return replace(self, low=min(self.low, values.min()), high=max(self.high, values.max()))

    def encode(self, cells: Cells) -> Array:
        """Return the units since the origin; text is parsed in the format of the column."""
        missing = np.asarray(pd.isna(cells))
        cells = self._parse_cells(cells).to_numpy() if self.form else cells
        kind = "timedelta64[us]" if self.duration else "datetime64[us]"
        counts = np.asarray(cells, dtype=kind).astype(np.int64)  # zoned ones hold UTC inside
        codes = (np.where(missing, 0, counts) - _microseconds(self.origin)) / self.microseconds
        return np.where(missing, np.nan, codes)

    def decode(self, codes: Array, dtype: Dtype) -> Cells:
        """Return times, exact to the microsecond, in the dtype and zone of the column."""
        missing = np.isnan(codes)
        counts = np.rint(np.where(missing, 0.0, codes) * self.microseconds).astype(np.int64)
        counts = counts + _microseconds(self.origin)
        times: Any = counts.astype("timedelta64[us]" if self.duration else "datetime64[us]")
        times[missing] = "NaT"
        if self.form:
            return cells_in(_format_times(pd.Series(times), self.form).astype(dtype))
        if isinstance(dtype, np.dtype):
            return times.astype(dtype)
        zoned = pd.DatetimeIndex(times).tz_localize("UTC").tz_convert(getattr(dtype, "tz", None))
        return pd.Series(zoned).astype(dtype).array

    @property
    def dtype(self) -> Dtype:
        """A time dtype, or text if the feature has a date format."""
        cells: list[Any] = ["", ""] if self.form else [self.low, self.high]
        return pd.Series(cells).dtype

    def _parse_cells(self, cells: Cells) -> pd.Series[Any]:
        """Return the points in time that text cells stand for."""
        return parse_times(pd.Series(np.asarray(cells, dtype=object)), self.form)

    @classmethod
    def suits(cls, cells: pd.Series[Any]) -> bool:
        """Return whether a column has a time dtype, or text in exactly one date format."""
        return super().suits(cells) or len(_possible_forms(cells, FEW_DATES)) == 1

    @classmethod
    def doubt(cls, cells: pd.Series[Any]) -> str:
        """Return that the day or the month may be first, if both formats fit."""
        forms = _possible_forms(cells, FEW_DATES)
        if len(forms) < 2:
            return ""
        return (
            f"may be dates with the day or the month first, such as {cells.dropna().iloc[0]!r}, "
            f"and is taken as text. Say which it is with the kind {forms[0]!r} or {forms[1]!r}."
        )

    def check(self, name: Hashable, cells: pd.Series[Any]) -> None:
        """Raise unless a column has a time dtype, or text in the date format."""
        fits = _is_text(cells) if self.form else cells.dtype.kind in "mM"
        if not fits:
            raise SpaceError(
                f"column {name!r} must be of a time dtype, or text such as '2016-01-31', to be "
                f"Moment; got {cells.dtype}. Of other text give the kind as it is written, such as "
                "'%d/%m/%Y'."
            )
        if self.form:
            self._parse_cells(cells)

    @classmethod
    def of_column(cls, name: Hashable, cells: pd.Series[Any]) -> Moment:
        """Return the range, in the coarsest unit all cells share, or one of <= 10,000 steps."""
        forms = _possible_forms(cells)
        return cls.of_form(cells, forms[0] if len(forms) == 1 else "")

    @classmethod
    def of_form(cls, cells: pd.Series[Any], form: str) -> Moment:
        """Return the range of a column whose text has a date format."""
        form = form if _is_text(cells) else ""
        cells = parse_times(cells, form) if form else cells
        times: pd.Series[Any] = cells.dropna()
        if times.empty or cells.dtype.kind not in "mM":  # `check` raises for other dtypes
            zero = pd.Timedelta(0) if cells.dtype.kind == "m" else pd.Timestamp(0)
            return cls(zero, zero)
        return cls(times.min(), times.max(), unit=_shared_unit(times), form=form)

    def measure(self, name: Hashable, text: str) -> str:
        """Return the unit: times of different units can't be compared."""
        return self.unit

    def numbers(self, codes: Array) -> Array:
        """Return units since 1970."""
        counts = np.rint(codes * self.microseconds) + _microseconds(self.origin)
        return np.asarray(counts / self.microseconds)

    @property
    def line(self) -> tuple[float, float] | None:
        """The origin, in units since 1970, and 1."""
        return _microseconds(self.origin) / self.microseconds, 1.0

    @property
    def words(self) -> str:
        """Both limits and the unit."""
        return f"{' … '.join(self.display(*self.code_range))} by {self.unit}"

    def display(self, *codes: float) -> list[str]:
        """Return points in time, all to the day, the minute or finer; an open end as the origin."""
        ends = [self.time(code) if math.isfinite(code) else self.origin for code in codes]
        return [str(end) for end in ends] if self.duration else times(*ends)

    def label(self, code: float) -> str:
        """Return the day, or the minute of small units."""
        moment = self.time(code)
        if self.duration or self.unit in ("min", "s", "ms"):
            return str(moment)
        return str(moment.strftime("%Y-%m-%d" if self.unit in ("W", "D") else "%Y-%m-%d %H:%M"))


def _is_text(cells: pd.Series[Any]) -> bool:
    """Return whether a column holds text that is no category."""
    return cells.dtype.kind == "O" and not isinstance(cells.dtype, pd.CategoricalDtype)


def _shared_unit(times: pd.Series[Any]) -> Unit:
    """Return the coarsest unit that all times share, or one with at most 10,000 steps."""
    microsecond = pd.Timedelta(1, "us")
    n = min(len(times), SAMPLE)
    sample = times.iloc[np.linspace(0, len(times) - 1, n).astype(np.intp)]
    offsets = ((sample - times.min()) / microsecond).to_numpy(np.float64)
    span = (times.max() - times.min()) / microsecond
    units: tuple[Unit, ...] = ("D", "h", "min", "s")
    best: Unit = "D"
    for unit in units:
        size = UNIT_MICROSECONDS[unit]
        if span / size <= MOST_STEPS:
            best = unit
        if not np.mod(offsets, size).any():
            break
    return best


def _possible_forms(cells: pd.Series[Any], few: int = 0) -> list[str]:
    """Return the date formats of a column of text, if it has more than a few distinct texts."""
    if not _is_text(cells):
        return []
    texts = cells.dropna()
    first = "".join(map(str, texts.iloc[:1]))
    match = re.match(r"\d{4}([-/.])\d\d?\1\d\d?(?!\d)|\d\d?([-/.])\d\d?\2\d{4}(?!\d)", first)
    if match is None or texts.nunique() <= few:  # a few are levels like others
        return []
    forms = [date + clock for date in _date_formats(*match.groups()) for clock in TEXT_CLOCKS]
    without_zeros = [re.sub("%([dm])", r"%-\1", form) for form in forms]
    unique = pd.Series(texts.unique(), dtype=object)
    return _fitting(forms, unique) or _fitting(without_zeros, unique)


def _fitting(forms: Iterable[str], texts: pd.Series[Any]) -> list[str]:
    """Return the formats in which all texts are points in time."""
    return [form for form in forms if _fits(form, texts)]


def _date_formats(year_first: str | None, year_last: str | None) -> list[str]:
    """Return the possible formats of a date, given the separator and where the year is."""
    if year_first:
        return [year_first.join(("%Y", "%m", "%d"))]
    separator = str(year_last)
    day_first = separator.join(("%d", "%m", "%Y"))
    if separator == ".":  # with points the day is always first
        return [day_first]
    return [day_first, separator.join(("%m", "%d", "%Y"))]


def _fits(form: str, texts: pd.Series[Any]) -> bool:
    """Return whether all texts are points in time in this format."""
    for sample in (texts[:1], texts):  # most formats fail for the first text already
        times = pd.to_datetime(sample, format=padded(form), errors="coerce")
        if times.isna().any():
            return False
        if not (_format_times(times, form).astype(object) == sample).all():
            return False
    return True


def padded(form: str) -> str:
    """Return a format as Python and pandas read it, with leading zeros or without."""
    return form.replace("%-", "%")


def _format_times(times: pd.Series[Any], form: str) -> pd.Series[Any]:
    """Return points in time as text in a format."""
    texts: pd.Series[Any] = times.dt.strftime(padded(form))
    if "%-" not in form:
        return texts
    leading_zero = r"(?<![\d:])0(?=\d(?:[-/. T]|$))"  # not of a clock
    return texts.str.replace(leading_zero, "", regex=True)


def times_of(texts: pd.Series[Any], form: str) -> pd.Series[Any]:
    """Return the points in time that texts in a format stand for; other cells as they are."""
    times = pd.to_datetime(texts, format=padded(form), errors="coerce")
    is_valid = times.notna() | texts.isna()
    return times if is_valid.all() else times.astype(object).where(is_valid, texts)


def parse_times(texts: pd.Series[Any], form: str) -> pd.Series[Any]:
    """Return the points in time that texts in a format stand for; a `QueryError` names another."""
    times = times_of(texts, form)
    if times.dtype != object:
        return times
    for cell in times:
        if pd.notna(cell) and not isinstance(cell, dt.datetime):
            example = _format_times(pd.Series([pd.Timestamp("2016-01-31")]), form)[0]
            raise QueryError(f"a point in time must be written like {example!r}; got {cell!r}.")
    return times


def times(*values: Any) -> list[str]:
    """Return points in time for reading: all to the day, the minute or finer, as needed."""
    stamps = [pd.Timestamp(value) for value in values]
    without_zone = [stamp.tz_localize(None) for stamp in stamps]
    for clock in CLOCKS:
        texts = [stamp.strftime(f"%Y-%m-%d{clock}") for stamp in stamps]
        if list(map(pd.Timestamp, texts)) == without_zone:
            zone = "%z" if clock else ""
            return [text + stamp.strftime(zone) for text, stamp in zip(texts, stamps, strict=True)]
    return [str(stamp) for stamp in stamps]  # to the nanosecond


def _as_time(what: str, value: Any, duration: bool) -> pd.Timestamp | pd.Timedelta:
    """Return a value as a time, or raise an error about `what`."""
    try:
        _check_clear(value)
        moment = pd.Timedelta(value) if duration else pd.Timestamp(value)
    except (ValueError, TypeError, OverflowError) as error:
        kind = "duration, such as '2 days'" if duration else "point in time, such as 2016-01-31"
        raise SpaceError(f"{what} must be a {kind}; got {shown(value)}.") from error
    if pd.isna(moment):
        raise SpaceError(f"{what} must not be missing.")
    return moment


def _check_clear(value: Any) -> None:
    """Raise an error for a value that may mean several times."""
    if isinstance(value, numbers.Real) and not isinstance(value, np.timedelta64):
        raise ValueError("a number has no unit and no origin")
    if day_or_month_first(value):
        raise ValueError("the day or the month may be first")


def _microseconds(moment: pd.Timestamp | pd.Timedelta) -> int:
    """Return whole microseconds, since 1970 of a point in time."""
    cell = moment.asm8  # of a zoned one: in UTC
    return int(cell.astype(f"{cell.dtype.kind}8[us]").astype(np.int64))
