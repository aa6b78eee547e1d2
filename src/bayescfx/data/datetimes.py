"""Points in time and durations as numbers of units."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import numbers
import re
from collections.abc import Hashable
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

# How times of day are written, from the coarsest.
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f")

# Times are counted in whole microseconds, which float64 holds exactly over 285 years.
UNIT_MICROSECONDS: dict[str, int] = {
    unit: pd.Timedelta(1, unit) // pd.Timedelta(1, "us") for unit in get_args(Unit)
}


@dataclass(frozen=True)
class Moment(Feature):
    """A point in time (or a duration) that moves in whole units from where the query stands.

    Parameters
    ----------
    low, high : timestamp or timedelta
        Limits, both included; anything :class:`pandas.Timestamp` understands.
    unit : {"W", "D", "h", "min", "s", "ms"}, default "D"
        One step.
    origin : timestamp or timedelta, optional
        Where codes count from; `low` unless the feature has grown since.
    form : str, optional
        How a column of text writes its points in time, as in :meth:`~datetime.datetime.strftime`;
        ``%-d`` and ``%-m`` without a zero in front.

    Examples
    --------
    >>> Moment("2016-01-01", "2016-01-31").code_range
    (0.0, 30.0)
    """

    low: Any
    high: Any
    unit: Unit = "D"
    origin: Any = field(default=None, repr=False)  # where codes count from; the first `low`
    form: str = field(default="", repr=False)  # of text; of a time dtype there is none

    floating = True
    natural = "mM"

    def __post_init__(self) -> None:
        good = is_hashable(self.unit) and self.unit in UNIT_MICROSECONDS
        check(good, "unit", f"one of {', '.join(UNIT_MICROSECONDS)}", self.unit, SpaceError)
        duration = isinstance(self.low, (dt.timedelta, np.timedelta64))
        for name in ("low", "high", "origin"):
            value = self.low if name == "origin" and self.origin is None else getattr(self, name)
            object.__setattr__(self, name, _time(f"`{name}` of Moment", value, duration))
        check(isinstance(self.form, str), "form", "a format of strftime", self.form, SpaceError)
        if self.low > self.high:
            raise SpaceError(f"`low <= high` must hold for Moment; got {self.low} and {self.high}.")

    @property
    def duration(self) -> bool:
        """Whether the values are durations instead of points in time."""
        return isinstance(self.low, pd.Timedelta)

    @property
    def dated(self) -> bool:
        return not self.duration

    @property
    def microseconds(self) -> int:
        """Microseconds in one unit."""
        return UNIT_MICROSECONDS[self.unit]

    @property
    def code_range(self) -> tuple[float, float]:
        return self.code(self.low), self.code(self.high)

    def code(self, value: Any, name: Hashable = "value", verb: str = "between") -> float:
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
        moment = _time(f"`{verb}` for {name!r}", value, self.duration)
        if isinstance(moment, pd.Timestamp) and moment.tzinfo is None:
            try:
                moment = moment.tz_localize(self.origin.tzinfo)
            except Exception as error:  # when clocks change; zones have errors without a base
                raise SpaceError(
                    f"`{verb}` for {name!r} must be a time that occurs once; got {shown(value)}. "
                    "Write its offset, such as +01:00."
                ) from error
        return moment

    def format(self, code: float) -> str:
        """Return the time in the form of the column, or in ISO 8601, as finely as it takes."""
        if math.isnan(code):
            return ""
        moment = self.time(code)
        if self.duration:
            return str(moment)
        exact = self.code(moment)
        texts: list[str] = list(_written(pd.Series([moment]), self.form)) if self.form else []
        for clock in CLOCKS:
            texts.append(moment.strftime(f"%Y-%m-%d{clock}"))
        for text in texts:
            with contextlib.suppress(SpaceError):
                if self.code(text) == exact:
                    return text
        return str(moment.isoformat(sep=" "))

    def time(self, code: float) -> Any:
        """Return the point in time that a code stands for."""
        return self.origin + pd.Timedelta(round(code * self.microseconds), "us")

    def shift(self, value: Any, name: Hashable = "value") -> float:
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
        values = self._read(values) if self.form else values
        return replace(self, low=min(self.low, values.min()), high=max(self.high, values.max()))

    def encode(self, cells: Cells) -> Array:
        missing = np.asarray(pd.isna(cells))
        cells = self._read(cells).to_numpy() if self.form else cells
        kind = "timedelta64[us]" if self.duration else "datetime64[us]"
        counts = np.asarray(cells, dtype=kind).astype(np.int64)  # zoned ones hold UTC inside
        codes = (np.where(missing, 0, counts) - _microseconds(self.origin)) / self.microseconds
        return np.where(missing, np.nan, codes)

    def decode(self, codes: Array, dtype: Dtype) -> Cells:
        missing = np.isnan(codes)
        counts = np.rint(np.where(missing, 0.0, codes) * self.microseconds).astype(np.int64)
        counts = counts + _microseconds(self.origin)
        times: Any = counts.astype("timedelta64[us]" if self.duration else "datetime64[us]")
        times[missing] = "NaT"
        if self.form:
            return cells_in(_written(pd.Series(times), self.form).astype(dtype))
        if isinstance(dtype, np.dtype):
            return times.astype(dtype)
        zoned = pd.DatetimeIndex(times).tz_localize("UTC").tz_convert(getattr(dtype, "tz", None))
        return pd.Series(zoned).astype(dtype).array

    @property
    def dtype(self) -> Dtype:
        return pd.Series(["" if self.form else self.low, "" if self.form else self.high]).dtype

    def _read(self, cells: Cells) -> pd.Series[Any]:
        """Return the points in time that text stands for."""
        return read_times(pd.Series(np.asarray(cells, dtype=object)), self.form)

    @classmethod
    def suits(cls, cells: pd.Series[Any]) -> bool:
        return super().suits(cells) or len(_forms(cells)) == 1

    @classmethod
    def doubt(cls, cells: pd.Series[Any]) -> str:
        first, *others = _forms(cells) or [""]
        if not others:
            return ""
        return (
            f"may be dates with the day or the month first, such as {cells.dropna().iloc[0]!r}, "
            f"and is taken as text. Say which it is with the kind {first!r} or {others[0]!r}."
        )

    def check(self, name: Hashable, cells: pd.Series[Any]) -> None:
        if self.form and _is_text(cells):
            self._read(cells)
        elif self.form or cells.dtype.kind not in "mM":
            raise SpaceError(
                f"column {name!r} must be of a time dtype, or text such as '2016-01-31', to be "
                f"Moment; got {cells.dtype}. Of other text give the kind as it is written, such as "
                "'%d/%m/%Y'."
            )

    @classmethod
    def of_column(cls, name: Hashable, cells: pd.Series[Any]) -> Moment:
        """Return the range, in the coarsest unit all cells share, or one of <= 10,000 steps."""
        forms = _forms(cells, 0)
        return cls.of_form(cells, forms[0] if len(forms) == 1 else "")

    @classmethod
    def of_form(cls, cells: pd.Series[Any], form: str) -> Moment:
        """Return the range of a column whose text writes points in time in a form."""
        form = form if _is_text(cells) else ""
        cells = read_times(cells, form) if form else cells
        known: pd.Series[Any] = cells.dropna()
        if known.empty or cells.dtype.kind not in "mM":  # `check` tells of other dtypes
            zero = pd.Timedelta(0) if cells.dtype.kind == "m" else pd.Timestamp(0)
            return cls(zero, zero)
        low, high = known.min(), known.max()
        some = known.iloc[np.linspace(0, len(known) - 1, min(len(known), 100_000)).astype(np.intp)]
        offsets = ((some - low) / pd.Timedelta(1, "us")).to_numpy(np.float64)
        units: tuple[Unit, ...] = ("D", "h", "min", "s")
        whole = [not np.mod(offsets, UNIT_MICROSECONDS[unit]).any() for unit in units]
        shared = whole.index(True) if any(whole) else 3
        span = (high - low) / pd.Timedelta(1, "us")
        few = [u for u in units[: shared + 1] if span / UNIT_MICROSECONDS[u] <= 10_000]
        return cls(low, high, unit=few[-1] if few else "D", form=form)

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
    return cells.dtype.kind == "O" and not isinstance(cells.dtype, pd.CategoricalDtype)


def _forms(cells: pd.Series[Any], few: int = 20) -> list[str]:
    """Return the ways in which a column may write points in time, if it has more than a few."""
    texts = cells.dropna() if _is_text(cells) else pd.Series(dtype=object)
    first = str(texts.iloc[0]) if len(texts) else ""
    found = re.match(r"\d{4}([-/.])\d\d?\1\d\d?(?!\d)|\d\d?([-/.])\d\d?\2\d{4}(?!\d)", first)
    if found is None or texts.nunique() <= few:  # a few are levels as others are
        return []
    mark, other = found.groups()
    orders = [("%Y", "%m", "%d")] if mark else [("%d", "%m", "%Y"), ("%m", "%d", "%Y")]
    orders = orders[:1] if other == "." else orders  # nobody writes the month first with points
    clocks = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", "T%H:%M:%SZ")
    forms = [(mark or other).join(order) + clock for order in orders for clock in clocks]
    unique = pd.Series(texts.unique(), dtype=object)
    for each in (forms, [re.sub("%([dm])", r"%-\1", form) for form in forms]):
        fitting = [form for form in each if _fits(form, unique)]
        if fitting:
            return fitting
    return []


def _fits(form: str, texts: pd.Series[Any]) -> bool:
    """Return whether all texts, the first of them first, are points in time in this form."""
    for some in (texts[:1], texts):
        found = pd.to_datetime(some, format=padded(form), errors="coerce")
        if found.isna().any() or not (_written(found, form).astype(object) == some).all():
            return False
    return True


def padded(form: str) -> str:
    """Return a form as Python and pandas read it, with zeros in front or without."""
    return form.replace("%-", "%")


def _written(times: pd.Series[Any], form: str) -> pd.Series[Any]:
    """Return points in time in a form."""
    texts: pd.Series[Any] = times.dt.strftime(padded(form))
    bare = r"(?<![\d:])0(?=\d(?:[-/. T]|$))"  # not of a clock
    return texts.str.replace(bare, "", regex=True) if "%-" in form else texts


def times_of(texts: pd.Series[Any], form: str) -> pd.Series[Any]:
    """Return the points in time that texts in a form stand for; other cells as they are."""
    found = pd.to_datetime(texts, format=padded(form), errors="coerce")
    good = found.notna() | texts.isna()
    return found if good.all() else found.astype(object).where(good, texts)


def read_times(texts: pd.Series[Any], form: str) -> pd.Series[Any]:
    """Return the points in time that texts in a form stand for; a `QueryError` names another."""
    found = times_of(texts, form)
    if found.dtype == object:
        wrong = next(cell for cell in found if pd.notna(cell) and not isinstance(cell, dt.datetime))
        like = _written(pd.Series([pd.Timestamp("2016-01-31")]), form)[0]
        raise QueryError(f"a point in time must be written like {like!r}; got {wrong!r}.")
    return found


def times(*values: Any) -> list[str]:
    """Return points in time for reading: all to the day, the minute or finer, as needed."""
    stamps = [pd.Timestamp(value) for value in values]
    plain = [stamp.tz_localize(None) for stamp in stamps]
    for clock in CLOCKS:
        texts = [stamp.strftime(f"%Y-%m-%d{clock}") for stamp in stamps]
        if all(pd.Timestamp(text) == stamp for text, stamp in zip(texts, plain, strict=True)):
            zones = [stamp.strftime("%z") if clock else "" for stamp in stamps]
            return [text + zone for text, zone in zip(texts, zones, strict=True)]
    return [str(stamp) for stamp in stamps]  # to the nanosecond


def _time(what: str, value: Any, duration: bool) -> pd.Timestamp | pd.Timedelta:
    try:
        if isinstance(value, numbers.Real) and not isinstance(value, np.timedelta64):
            raise ValueError("of what unit, since when?")
        if isinstance(value, str) and day_or_month_first(value):
            raise ValueError("which?")
        moment = pd.Timedelta(value) if duration else pd.Timestamp(value)
    except (ValueError, TypeError, OverflowError) as error:
        kind = "duration, such as '2 days'" if duration else "point in time, such as 2016-01-31"
        raise SpaceError(f"{what} must be a {kind}; got {shown(value)}.") from error
    if pd.isna(moment):
        raise SpaceError(f"{what} must not be missing.")
    return moment


def _microseconds(moment: pd.Timestamp | pd.Timedelta) -> int:
    cell = moment.asm8  # of a zoned one: in UTC
    return int(cell.astype(f"{cell.dtype.kind}8[us]").astype(np.int64))
