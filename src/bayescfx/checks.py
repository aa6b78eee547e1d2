"""Argument validation."""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.errors import BayesCFXError, SettingsError, one_line

MOST_LETTERS = 120  # of a value in an error message
LARGEST_WHOLE = 2**53  # beyond it, float64 skips whole numbers


def is_number(value: object, least: float = -math.inf, most: float = math.inf) -> bool:
    """Return whether a value is one finite number within limits; booleans are not numbers."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value) and least <= float(value) <= most
    except OverflowError:  # a whole number too large for a float
        return False


def is_a(value: object, *kinds: type) -> bool:
    """Return whether a value has one of these types, whatever its annotation says.

    As `isinstance`, but type checkers draw no conclusion from it.
    """
    return isinstance(value, kinds)


def is_several(value: Any) -> bool:
    """Return whether a value is iterable and not text."""
    try:
        iter(value)
    except TypeError:
        return False
    return not isinstance(value, str | bytes)


def is_hashable(value: object) -> bool:
    """Return whether a value can be hashed; some classes only claim that they can."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def shown(value: object) -> str:
    """Return a value as one short line for a message."""
    kind = type(value).__name__
    try:
        text = one_line(repr(value))
    except Exception:  # a user's class, or a number of thousands of digits
        text = f"<{kind}>"
    if len(text) <= MOST_LETTERS:
        return text
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):  # the shape of a table says more than its first cells
        return f"a {kind} of shape {shape}"
    return f"{text[:MOST_LETTERS]}… ({kind})"


def check(
    good: bool,
    name: str,
    must: str,
    value: object,
    error: type[BayesCFXError] = SettingsError,
    advice: str = "",
) -> None:
    """Raise "`name` must be `must`; got `value`. `advice`" unless `good`."""
    if not good:
        message = f"`{name}` must be {must}; got {shown(value)}."
        raise error(message, parameter=name, advice=advice)


def check_whole(name: str, value: object, least: int) -> None:
    """Raise unless an argument is a whole number of at least `least`."""
    good = isinstance(value, numbers.Integral) and is_number(value, least, LARGEST_WHOLE)
    check(good, name, f"a whole number of at least {least}", value)


def check_positive(name: str, value: object) -> None:
    """Raise unless an argument is a positive finite number."""
    check(is_number(value, math.nextafter(0, 1)), name, "a positive number", value)


def as_numbers(name: str, value: Any, error: type[BayesCFXError] = SettingsError) -> Array:
    """Return an array of numbers of any shape, or raise an error if it holds anything else."""
    try:
        if isinstance(value, np.ma.MaskedArray):
            found = np.ma.filled(value.astype(float), np.nan)
        else:
            found = np.asarray(value)
        if found.dtype.kind not in "OUSVMmc":
            return found.astype(np.float64, copy=False)
        if found.dtype.kind == "O":
            return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise error(f"`{name}` must be numbers; got {shown(value)}.", parameter=name)


@contextlib.contextmanager
def reading(what: str, error: type[BayesCFXError], advice: str) -> Iterator[None]:
    """Turn any exception raised while reading a damaged text into one error."""
    try:
        yield
    except BayesCFXError:
        raise
    except Exception as reason:  # parsers raise many types without a common base
        cause = f"{type(reason).__name__} {shown(str(reason))}"
        message = f"{what} is damaged or was changed: {cause}."
        raise error(message, advice=advice) from reason
