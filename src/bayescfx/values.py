"""Cells of a user's table as plain JSON values and back, exactly.

What JSON knows (``None``, ``bool``, ``int``, finite ``float``, ``str``) stays as it is; everything
else becomes ``{"$": tag, "v": payload}``. NumPy scalars keep their type, time stamps their
resolution and zone, so that a cell read back is the cell that was written.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.errors import ArchiveError, CellError

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"


def to_plain(value: object) -> Plain:
    """Return `value` in JSON's own types.

    Parameters
    ----------
    value : object
        A cell: number, text, boolean, ``None``, NumPy scalar, time stamp, missing value, interval,
        period, or a tuple, list or dict of these.

    Returns
    -------
    plain : JSON value
        Accepted by :func:`json.dumps` with ``allow_nan=False``.

    Raises
    ------
    TypeError
        If the value is of a type that has no exact JSON form.

    Examples
    --------
    >>> to_plain(("a", 1.5))
    {'$': 'tuple', 'v': ['a', 1.5]}
    >>> from_plain(to_plain(float("inf")))
    inf
    """
    if value is None or type(value) in (bool, int, str):
        return value  # type: ignore[return-value]  # narrowed by the exact type test
    if type(value) is float:
        return value if math.isfinite(value) else _tag("float", repr(value))
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    if value is pd.NA:
        return _tag("NA", None)
    raise CellError(
        f"a cell must be a number, text, boolean, time stamp or missing value; got {value!r} of "
        f"type {type(value).__name__}. Convert it to one of these."
    )


def from_plain(plain: Plain) -> Any:
    """Return the value that :func:`to_plain` turned into `plain`.

    Examples
    --------
    >>> from_plain({"$": "int8", "v": 3})
    np.int8(3)
    """
    if isinstance(plain, list):
        return [from_plain(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    tag = plain.get("$")
    if not isinstance(tag, str) or (tag not in _READERS and tag not in _NUMPY):
        raise ArchiveError(f"`plain` must carry a known tag in '$'; got {tag!r}.")
    payload: Any = plain["v"]
    if tag in _READERS:
        return _READERS[tag](payload)
    # times are written as a count and a unit
    return _NUMPY[tag](*payload) if isinstance(payload, list) else _NUMPY[tag](payload)


def same_cell(a: object, b: object) -> bool:
    """Return whether two cells are the same value of the same type, missing ones included.

    Examples
    --------
    >>> same_cell(1, 1.0), same_cell(float("nan"), float("nan")), same_cell(0.0, -0.0)
    (False, True, False)
    """
    if type(a) is not type(b):
        return False
    try:
        return repr(to_plain(a)) == repr(to_plain(b))
    except TypeError:
        return a is b or bool(a == b)


def _tag(tag: str, payload: Plain) -> Plain:
    return {"$": tag, "v": payload}


def _write_numpy(value: np.generic) -> Plain:
    if isinstance(value, (np.datetime64, np.timedelta64)):
        unit = np.datetime_data(value.dtype)[0]
        return _tag(type(value).__name__, [int(value.astype(np.int64)), unit])
    if isinstance(value, np.bool_):
        return _tag("bool", bool(value))
    if isinstance(value, np.floating):
        exact = float(value)
        if type(value) is np.longdouble or not math.isfinite(exact):
            return _tag(type(value).__name__, str(value))
        return _tag(type(value).__name__, exact)
    if isinstance(value, (np.integer, np.str_)):
        return _tag(type(value).__name__, value.item())
    raise CellError(f"a cell must not be of type {type(value).__name__}; got {value!r}.")


def _write_timestamp(value: pd.Timestamp) -> Plain:
    moment = value.tz_convert("UTC").tz_localize(None) if value.tzinfo else value
    zone = None if value.tzinfo is None else str(value.tzinfo)
    return _tag("timestamp", [int(moment.to_datetime64().astype(np.int64)), value.unit, zone])


def _read_timestamp(payload: Any) -> pd.Timestamp:
    number, unit, zone = payload
    moment = pd.Timestamp(np.datetime64(number, unit))
    return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)


def _write_timedelta(value: pd.Timedelta) -> Plain:
    return _tag("timedelta", [int(value.to_timedelta64().astype(np.int64)), value.unit])


def _write_interval(value: Any) -> Plain:
    return _tag("interval", [to_plain(value.left), to_plain(value.right), value.closed])


def _write_dict(value: dict[Any, Any]) -> Plain:
    return _tag("dict", [[to_plain(k), to_plain(v)] for k, v in value.items()])


_NUMPY: dict[str, Any] = {
    kind.__name__: kind
    for kind in np.sctypeDict.values()
    if issubclass(kind, (np.integer, np.floating, np.str_, np.datetime64, np.timedelta64))
}

# First match wins: pandas' types are subclasses of datetime's, NumPy's float64 of float.
_WRITERS: tuple[tuple[type, Callable[[Any], Plain]], ...] = (
    (type(pd.NaT), lambda _: _tag("NaT", None)),
    (np.generic, _write_numpy),
    (pd.Timestamp, _write_timestamp),
    (pd.Timedelta, _write_timedelta),
    (pd.Interval, _write_interval),
    (pd.Period, lambda v: _tag("period", [v.ordinal, v.freqstr])),
    (dt.datetime, lambda v: _tag("datetime", v.isoformat())),
    (dt.date, lambda v: _tag("date", v.isoformat())),
    (dt.time, lambda v: _tag("time", v.isoformat())),
    (dt.timedelta, lambda v: _tag("delta", [v.days, v.seconds, v.microseconds])),
    (decimal.Decimal, lambda v: _tag("decimal", str(v))),
    (bytes, lambda v: _tag("bytes", base64.b64encode(v).decode())),
    (tuple, lambda v: _tag("tuple", [to_plain(item) for item in v])),
    (dict, _write_dict),
)

_READERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "bool": np.bool_,
    "NA": lambda _: pd.NA,
    "NaT": lambda _: pd.NaT,
    "timestamp": _read_timestamp,
    "timedelta": lambda v: pd.Timedelta(np.timedelta64(v[0], v[1])),
    "interval": lambda v: pd.Interval(from_plain(v[0]), from_plain(v[1]), v[2]),
    "period": lambda v: pd.Period(ordinal=v[0], freq=v[1]),
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "delta": lambda v: dt.timedelta(*v),
    "decimal": decimal.Decimal,
    "bytes": base64.b64decode,
    "tuple": lambda v: tuple(from_plain(item) for item in v),
    "dict": lambda v: {from_plain(k): from_plain(item) for k, item in v},
}
