"""Is what a user gave what it must be? Questions that have an answer for anything."""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.errors import BayesCFXError, SettingsError, one_line


def is_number(value: object, least: float = -math.inf, most: float = math.inf) -> bool:
    """Return whether a value is one finite number, and no boolean, within limits."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value) and least <= float(value) <= most
    except OverflowError:  # a whole number that no float holds
        return False


def is_a(value: object, *kinds: type) -> bool:
    """Return whether a value is of one of some types, whatever its annotation says."""
    return isinstance(value, kinds)


def is_several(value: Any) -> bool:
    """Return whether a value holds others, one after another, and is no text."""
    try:
        iter(value)
    except TypeError:
        return False
    return not isinstance(value, str | bytes)


def is_hashable(value: object) -> bool:
    """Return whether a value can be a name or a level; some only say they can."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def shown(value: object) -> str:
    """Return a value for a message, on one short line."""
    try:
        text = one_line(repr(value))
    except Exception:  # a user's own, or a number of thousands of digits
        text = f"<{type(value).__name__}>"
    if len(text) <= 120:
        return text
    kind, shape = type(value).__name__, getattr(value, "shape", None)
    # Of a table its size says more than its first cells.
    return f"a {kind} of shape {shape}" if isinstance(shape, tuple) else f"{text[:120]}… ({kind})"


def check(
    good: bool,
    name: str,
    must: str,
    value: object,
    error: type[BayesCFXError] = SettingsError,
    advice: str = "",
) -> None:
    """Raise an error that says what an argument must be and what it is, unless that is good."""
    if not good:
        told = f"`{name}` must be {must}; got {shown(value)}."
        raise error(told, parameter=name, advice=advice)


def check_whole(name: str, value: object, least: int) -> None:
    """Raise unless a setting is a whole number of at least `least`."""
    good = isinstance(value, numbers.Integral) and is_number(value, least, 2**53)
    check(good, name, f"a whole number of at least {least}", value)


def check_positive(name: str, value: object) -> None:
    """Raise unless a setting is a positive finite number."""
    check(is_number(value, math.nextafter(0, 1)), name, "a positive number", value)


def as_numbers(name: str, value: Any, error: type[BayesCFXError] = SettingsError) -> Array:
    """Return an array of numbers of whatever shape, or raise if there are others in it."""
    try:
        masked = isinstance(value, np.ma.MaskedArray)
        found = np.ma.filled(value.astype(float), np.nan) if masked else np.asarray(value)
        if found.dtype.kind not in "OUSVMmc":
            return found.astype(np.float64, copy=False)
        if found.dtype.kind == "O":
            return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise error(f"`{name}` must be numbers; got {shown(value)}.", parameter=name)


@contextlib.contextmanager
def reading(what: str, error: type[BayesCFXError], advice: str) -> Iterator[None]:
    """Turn whatever a damaged text makes its readers raise into one error."""
    try:
        yield
    except BayesCFXError:
        raise
    except Exception as reason:  # each reader has errors of its own, without a common base
        told = f"{what} is damaged or was changed: {type(reason).__name__} {shown(str(reason))}."
        raise error(told, advice=advice) from reason
