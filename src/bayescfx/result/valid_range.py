"""Where an answer stays valid: the values of one feature that reach the target, too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from bayescfx.data.feature import Feature
from bayescfx.result.wording import DIGITS, MOST_DIGITS, exact

#: Ranges that end at the limits of the space, by whether they do so below and above.
_OPEN_ENDS = {
    (True, True): "any allowed value",
    (True, False): "any allowed value up to {1}",
    (False, True): "any allowed value from {0}",
}
#: Values that a text lists at most.
_MOST_LISTED = 8
#: Sizes of the numbers that are rounded; others are printed with all digits.
_SMALLEST = 1e-6
_LARGEST = 1e15
#: Share of a range by which rounding may shorten it at either end.
_LARGEST_LOSS = Decimal("0.01")


@dataclass(frozen=True)
class ValidRange:
    """The values of one feature with which an answer reaches the target, its other cells unchanged.

    It is proven: every allowed value of the range reaches the target, both ends included.

    Parameters
    ----------
    low, high : value or None
        The ends, for a feature whose values are in order; None for others.
    values : tuple of values
        All values that reach the target, for a feature with unordered levels or on a circle.
    is_lowest, is_highest : bool
        Whether `low` is the lowest, or `high` the highest, value that the space allows.
    text : str
        The range in words, such as ``"29.4 to 31.5"`` or ``"any allowed value up to 110"``. Ends
        of continuous features are rounded inwards, so that they reach the target as printed.

    Examples
    --------
    >>> print(ValidRange(low=29.4, high=31.5, text="29.4 to 31.5"))
    29.4 to 31.5
    """

    low: Any = None
    high: Any = None
    values: tuple[Any, ...] = ()
    is_lowest: bool = False
    is_highest: bool = False
    text: str = ""

    def __str__(self) -> str:
        return self.text


def range_text(
    feature: Feature,
    ends: tuple[float, float],
    own: float,
    *,
    is_lowest: bool,
    is_highest: bool,
) -> str:
    """Return a range of codes in words.

    Parameters
    ----------
    feature : Feature
        The feature.
    ends : (float, float)
        The lowest and highest valid code.
    own : float
        The answer's own code, which lies between them.
    is_lowest, is_highest : bool
        Whether the ends are those of all allowed codes.
    """
    low, high = ends
    texts = feature.format(low), feature.format(high)
    if feature.numeric and not feature.code_step:
        texts = rounded_inwards(low, high, own)
    words = _OPEN_ENDS.get((is_lowest, is_highest), "{0} to {1}")
    if texts[0] == texts[1] and not (is_lowest and is_highest):
        words = "only {0}"
    return words.format(*texts)


def rounded_inwards(low: float, high: float, own: float) -> tuple[str, str]:
    """Return the ends of a range with few digits, both inside it; it becomes little shorter.

    An answer's `own` code stays between them.

    >>> rounded_inwards(4.166650001, 4.18209, 4.17)
    ('4.1667', '4.182')
    >>> rounded_inwards(4.2268, 4.2836, 4.2268)
    ('4.2268', '4.2836')
    >>> rounded_inwards(5.3356e-07, 1.538e-06, 1e-06)
    ('5.34e-07', '0.000001538')
    """
    size = max(abs(low), abs(high))
    if not _SMALLEST < size < _LARGEST:
        return repr(low), repr(high)
    first = math.floor(math.log10(size))
    # The text of a float stands for the float: 4.2836 is not rounded down to 4.2835.
    ends = Decimal(repr(float(low))), Decimal(repr(float(high)))
    loss = (ends[1] - ends[0]) * _LARGEST_LOSS
    value = Decimal(repr(own))
    for digits in range(DIGITS, MOST_DIGITS + 1):
        unit = Decimal(1).scaleb(min(0, first + 1 - digits))
        start = ends[0].quantize(unit, ROUND_CEILING)
        end = ends[1].quantize(unit, ROUND_FLOOR)
        is_little = start - ends[0] <= loss and ends[1] - end <= loss
        if is_little and start <= value <= end:
            return exact(float(start)), exact(float(end))
    return repr(low), repr(high)


def listed_text(feature: Feature, codes: Sequence[float], allowed: Sequence[float]) -> str:
    """Return valid codes in words, given all `allowed` codes, sorted."""
    if len(codes) == len(allowed):
        return "any allowed value"
    runs = _runs_on_circle(codes, allowed) if feature.period else [[code] for code in codes]
    texts = [" to ".join(map(feature.format, run[:1] + run[1:][-1:])) for run in runs]
    hidden = texts[_MOST_LISTED:]
    if hidden:
        texts = [*texts[:_MOST_LISTED], f"{len(hidden)} more"]
    *first, last = texts
    return f"{', '.join(first)} or {last}" if first else f"only {last}"


def _runs_on_circle(codes: Sequence[float], allowed: Sequence[float]) -> list[list[float]]:
    """Return codes as runs of neighbours, where the first allowed code follows the last one.

    >>> _runs_on_circle([0, 1, 3, 5], [0, 1, 2, 3, 4, 5])
    [[3], [5, 0, 1]]
    """
    gap = next(k for k, code in enumerate(allowed) if code not in codes)
    runs: list[list[float]] = [[]]
    for code in (*allowed[gap:], *allowed[:gap]):
        if code in codes:
            runs[-1].append(code)
        else:
            runs.append([])
    return [run for run in runs if run]


def ranges_text(ranges: Mapping[Any, ValidRange]) -> str:
    """Return ranges in words: ``bmi 29.4 to 31.5, or bp any allowed value up to 110``."""
    return ", or ".join(f"{name} {each}" for name, each in ranges.items())
