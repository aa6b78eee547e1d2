"""Cells of a user's table as plain JSON values and back, exactly.

JSON's own types (``None``, ``bool``, ``int``, finite ``float``, ``str``) stay as they are;
everything else becomes ``{"$": tag, "v": payload}``. NumPy scalars keep their type, time stamps
their resolution and zone, so that a cell read back is the cell that was written.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.errors import ArchiveError, CellError

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

# Types that JSON writes as they are.
_UNCHANGED = (type(None), bool, int, str)


def as_python(value: Any) -> Any:
    """Return a NumPy scalar as Python's own; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def as_number(value: Any) -> Any:
    """Return the number that a text is, whole where it is written so, or else the value itself.

    >>> as_number("12"), as_number(" 1.5"), as_number("a")
    (12, 1.5, 'a')
    """
    if not isinstance(value, str):
        return value
    try:
        return int(value) if re.fullmatch(r"\s*[+-]?\d+\s*", value) else float(value)
    except ValueError:
        return value


def to_plain(value: object) -> Plain:
    """Return a cell, or a tuple, list or dict of cells, in JSON's own types, or a `CellError`."""
    if type(value) in _UNCHANGED:
        return value  # type: ignore[return-value]  # narrowed by the exact type test
    if type(value) is float:
        return value if math.isfinite(value) else {"$": "float", "v": repr(value)}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _numpy_to_plain(value)
    return _with_tag(value)


def _with_tag(value: object) -> Plain:
    """Return a value of a type that JSON does not have, with the tag of its type."""
    for tag, (kind, write, _) in _FORMS.items():
        if isinstance(value, kind):
            return {"$": tag, "v": write(value)}
    raise CellError(
        f"a cell must be a number, text, boolean, time stamp or missing value; got {value!r} of "
        f"type {type(value).__name__}. Convert it to one of these."
    )


def from_plain(plain: Plain) -> Any:
    """Return the value that :func:`to_plain` turned into `plain`."""
    if isinstance(plain, list):
        return [from_plain(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    return _from_tag(plain.get("$"), plain.get("v"))


def _from_tag(tag: Any, payload: Any) -> Any:
    """Return the value that was written with a tag."""
    if tag in _FORMS:
        return _FORMS[tag][2](payload)
    if tag not in _NUMPY:
        raise ArchiveError(f"`plain` must carry a known tag in '$'; got {tag!r}.")
    # times are written as a count and a unit
    return _NUMPY[tag](*payload) if isinstance(payload, list) else _NUMPY[tag](payload)


def is_missing(value: Any) -> bool:
    """Return whether a cell is missing."""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def same_cell(a: object, b: object) -> bool:
    """Return whether two cells are the same value of the same type, missing ones included."""
    if type(a) is not type(b):
        return False
    try:
        return repr(to_plain(a)) == repr(to_plain(b))
    except TypeError:
        return a is b or bool(a == b)


def _numpy_to_plain(value: np.generic) -> Plain:
    """Return a NumPy scalar with its type, such as "float32"."""
    tag = "bool" if isinstance(value, np.bool_) else type(value).__name__
    for kinds, write in _NUMPY_WRITERS:
        if isinstance(value, kinds):
            return {"$": tag, "v": write(value)}
    raise CellError(f"a cell must not be of type {tag}; got {value!r}.")


def _write_count(value: Any) -> Plain:
    """Return the count and the unit of a time or a duration of NumPy."""
    return [int(value.astype(np.int64)), np.datetime_data(value.dtype)[0]]


def _write_floating(value: Any) -> Plain:
    """Return a number of NumPy, as text if it is not finite."""
    return value.item() if math.isfinite(value) else str(value)


def _write_timestamp(value: pd.Timestamp) -> Plain:
    """Return the count, the unit and the zone of a time stamp."""
    zone = None if value.tzinfo is None else str(value.tzinfo)
    return [int(value.asm8.astype(np.int64)), value.unit, zone]  # in UTC


def _read_timestamp(payload: Any) -> pd.Timestamp:
    """Return the time stamp that :func:`_write_timestamp` wrote."""
    number, unit, zone = payload
    moment = pd.Timestamp(np.datetime64(number, unit))
    return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)


_NUMPY: dict[str, Any] = {
    kind.__name__: kind
    for kind in np.sctypeDict.values()
    if issubclass(kind, (np.integer, np.floating, np.str_, np.datetime64, np.timedelta64))
} | {"bool": np.bool_, "float": float}

# Types of NumPy and their writers. First match wins: durations are integers, too.
_NUMPY_WRITERS: tuple[tuple[tuple[type, ...], Callable[[Any], Plain]], ...] = (
    ((np.datetime64, np.timedelta64), _write_count),
    ((np.longdouble,), str),
    ((np.floating,), _write_floating),
    ((np.bool_, np.integer, np.str_), as_python),
)

# Type, writer and reader by tag. First match wins: pandas' types are subclasses of datetime's.
_FORMS: dict[str, tuple[type, Callable[[Any], Plain], Callable[[Any], Any]]] = {
    "NaT": (type(pd.NaT), lambda _: None, lambda _: pd.NaT),
    "NA": (type(pd.NA), lambda _: None, lambda _: pd.NA),
    "timestamp": (pd.Timestamp, _write_timestamp, _read_timestamp),
    "timedelta": (
        pd.Timedelta,
        lambda v: [int(v.to_timedelta64().astype(np.int64)), v.unit],
        lambda v: pd.Timedelta(np.timedelta64(*v)),
    ),
    "interval": (
        pd.Interval,
        lambda v: [to_plain(v.left), to_plain(v.right), v.closed],
        lambda v: pd.Interval(from_plain(v[0]), from_plain(v[1]), v[2]),
    ),
    "period": (
        pd.Period,
        lambda v: [v.ordinal, v.freqstr],
        lambda v: pd.Period(ordinal=v[0], freq=v[1]),
    ),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "time": (dt.time, dt.time.isoformat, dt.time.fromisoformat),
    "delta": (
        dt.timedelta,
        lambda v: [v.days, v.seconds, v.microseconds],
        lambda v: dt.timedelta(*v),
    ),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "bytes": (bytes, lambda v: base64.b64encode(v).decode(), base64.b64decode),
    "tuple": (tuple, lambda v: to_plain(list(v)), lambda v: tuple(from_plain(v))),
    "dict": (dict, lambda v: to_plain([[*p] for p in v.items()]), lambda v: dict(from_plain(v))),
}
