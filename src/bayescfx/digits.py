"""Numbers as text, with enough digits to tell apart those that a reader compares."""

from __future__ import annotations

import math
from collections.abc import Iterable

DIGITS = 4  # significant digits of a number in a text
MOST_DIGITS = 17  # enough to tell any two float64 apart
ROUNDING = 1e-12  # numbers that differ by less, as a share, differ by rounding


def number(value: float, digits: int = DIGITS) -> str:
    """Return a number with some significant digits; exponents only below 1e-4 and from 1e15."""
    value += 0.0  # turns -0.0 into 0.0
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "nan")
    if 10**digits <= abs(value) < 1e15:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:.{decimals}f}"
    return f"{value:.{digits}g}"


def number_apart(
    value: float, others: Iterable[float], digits: int = DIGITS, *, rounding: float = 0.0
) -> str:
    """Return a number with as many digits as it takes to tell it from other numbers.

    Parameters
    ----------
    value : float
        The number.
    others : iterable of float
        The numbers that it is compared with. Those that are equal to it don't count.
    digits : int, default 4
        The least number of significant digits.
    rounding : float, default 0
        The relative difference up to which numbers count as equal.

    Examples
    --------
    >>> number_apart(203.48173, [203.52, 271.4]), number_apart(203.48173, [271.4])
    ('203.48', '203.5')
    """
    different = [y for y in others if not math.isclose(y, value, rel_tol=rounding)]
    for n_digits in range(digits, MOST_DIGITS + 1):
        text = number(value, n_digits)
        if all(number(y, n_digits) != text for y in different):
            break
    return text


def pair_apart(a: float, b: float, digits: int = DIGITS) -> tuple[str, str]:
    """Return two numbers with enough digits to tell them apart."""
    return number_apart(a, [b], digits), number_apart(b, [a], digits)
