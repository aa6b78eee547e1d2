"""Numbers, cells and changes as text: cells are exact, outputs and costs are rounded."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayescfx.data.datetimes import times
from bayescfx.data.values import is_missing
from bayescfx.potentials import Intervals

ID = "id column"  # key of `Explanation.about`: the column whose cells name the rows
DIGITS = 4  # significant digits of a number in a text
MOST_DIGITS = 17  # enough to tell any two float64 apart
_SMALLEST_WRITTEN = Decimal("1e-6")  # numbers between these two are written without an exponent
_LARGEST_WRITTEN = Decimal("1e15")
ROUNDING = 1e-12  # numbers that differ by less, as a share, differ by rounding


class Output(NamedTuple):
    """Name and unit of the model's output."""

    name: str = "prediction"
    unit: str = ""

    @classmethod
    def of(cls, about: Mapping[str, str]) -> Output:
        """Return the output's name and unit from `Explanation.about`."""
        return cls(about.get("output") or "prediction", about.get("unit") or "")

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        """The name with the unit, for an axis or the head of a column."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    def number(self, text: str) -> str:
        """Return the text of one or more outputs with the unit."""
        return f"{text} {self.unit}".rstrip()


PREDICTION = Output()
LABEL_LINE = "predicted label"  # name of the line with the labels of a classifier


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


def exact(value: Any) -> str:
    """Return the shortest text of a number that stands for exactly this number in its type.

    >>> exact(3.93), exact(1e-7), exact(np.float32(0.1)), exact(46500.0)
    ('3.93', '1e-07', '0.1', '46500')
    """
    if not math.isfinite(value):
        return number(float(value))
    digits = Decimal(str(value))
    if digits == 0:
        return "0"
    if _SMALLEST_WRITTEN <= abs(digits) < _LARGEST_WRITTEN:
        return f"{digits:f}".removesuffix(".0")
    return str(value)


def cell(value: Any) -> str:
    """Return a cell of a table as text; numbers are exact, so that they can be typed in."""
    if is_missing(value):
        return "missing"
    if _is_time(value):
        return times(value)[0]
    if isinstance(value, dt.timedelta | np.timedelta64):
        return str(pd.Timedelta(value)).removesuffix(" 00:00:00")
    # Whole numbers and booleans are real numbers, too.
    is_fraction = isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
    return exact(value) if is_fraction else str(value)


def both(before: Any, after: Any) -> tuple[str, str]:
    """Return two cells as texts that tell them apart."""
    if _is_time(before) and _is_time(after):
        earlier, later = times(before, after)
        return earlier, later
    return cell(before), cell(after)


def move(before: Any, after: Any) -> str:
    """Return ``before → after``."""
    return " → ".join(both(before, after))


def labels_move(before: Any, after: Any) -> str:
    """Return two labels as ``bad → good``, or one if they are the same."""
    return str(after) if before == after else f"{before} → {after}"


def _is_time(value: Any) -> bool:
    """Return whether a cell is a point in time that is not missing."""
    return isinstance(value, dt.datetime | np.datetime64) and not pd.isna(value)


def moves(
    changes: Mapping[Any, tuple[Any, Any]], follows: Container[Any] = (), most: int = 12
) -> str:
    """Return changes as a list: ``bmi 32.1 → 27.4, bp 101 → 93``.

    Parameters
    ----------
    changes : dict
        ``{name: (before, after)}``.
    follows : container of names
        The changes that follow from the others. They come last: ``(s4 follows: 4.63 → 4.12)``.
    most : int, default 12
        So many of the other changes are written, and so many of these.
    """
    if not changes:
        return "no change"
    chosen = [f"{name} {move(*pair)}" for name, pair in changes.items() if name not in follows]
    derived = [f"{name} follows: {move(*changes[name])}" for name in changes if name in follows]
    texts = [_listed(chosen, most)] if chosen else []
    if derived:
        texts.append(f"({_listed(derived, most)})")
    return " ".join(texts)


def _listed(texts: Sequence[str], most: int) -> str:
    """Return at most so many texts as a list, and the number of the others."""
    n_hidden = len(texts) - most
    listed = ", ".join(texts[:most])
    return f"{listed} and {n_hidden} more" if n_hidden > 0 else listed


def name_of(name: Any, follows: Container[Any]) -> str:
    """Return the name of a changed feature in a table: ``s4 follows`` if it follows others."""
    return f"{name} follows" if name in follows else str(name)


def intervals(outputs: Intervals, write: Callable[[float], str] | None = None) -> str:
    """Return a set of outputs in words: ``at most 203.5``, ``150 to 200``, ``1 or 2``.

    With `write`, it writes the ends; by default they are told apart from each other.
    """
    if write is None:
        others = tuple(chain.from_iterable(outputs))
        write = partial(number_apart, others=others, rounding=ROUNDING)
    texts = []
    for low, high in outputs:
        text = f"{write(low)} to {write(high)}"
        if (low, high) == (-math.inf, math.inf):
            text = "anything"
        elif low == -math.inf:
            text = f"at most {write(high)}"
        elif high == math.inf:
            text = f"at least {write(low)}"
        elif math.isclose(low, high, rel_tol=ROUNDING):
            text = write(low)
        texts.append(text)
    return " or ".join(texts) or "nothing"


def percent(probability: float) -> str:
    """Return a probability as a percentage that is never rounded to certainty."""
    if probability <= 0.01:
        return "at most 1 %"
    if probability > 0.99:
        return "more than 99 %"
    return f"{100 * probability:.0f} %"


def proof_state(cost: float, bound: float, *, is_reached: bool) -> str:
    """Return how far a proof is.

    >>> proof_state(2.66, 2.41, is_reached=True)
    'proving: cost 2.66, bound 2.41, gap 11 %'
    """
    if not is_reached:
        return f"proving: no answer costs less than {number(bound, 3)}"
    cost_text, bound_text = pair_apart(cost, bound, 3)
    known = f"proving: cost {cost_text}, bound {bound_text}"
    return f"{known}, gap {math.ceil(100.0 * (cost / bound - 1.0))} %" if bound > 0.0 else known


def percentile(share: float) -> str:
    """Return a share of the data as a percentile.

    >>> percentile(0.15), percentile(0.02), percentile(0.001)
    ('15th percentile', '2nd percentile', 'below the 1st percentile')
    """
    rank = round(100 * share)
    if rank < 1:
        return "below the 1st percentile"
    if rank > 99:
        return "above the 99th percentile"
    ending = "th"
    if rank // 10 != 1:  # 11th, 12th, 13th
        ending = {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{ending} percentile"


def plausibility(share: float) -> str:
    """Return the share of the training rows that are less plausible, in words.

    >>> plausibility(0.15)
    '15th percentile of the training rows (15 % are less typical)'
    """
    rank = percentile(share)
    beyond = {"below": "nearly all are more typical", "above": "nearly all are less typical"}
    explanation = beyond.get(rank.split()[0], f"{round(100 * share)} % are less typical")
    return f"{rank} of the training rows ({explanation})"


def count(n: int, noun: str) -> str:
    """Return a number with its noun: ``1 row``, ``2 rows``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def label(name: Any) -> str:
    """Return the label of a query, which may be a tuple, as text."""
    if isinstance(name, tuple):
        return ", ".join(cell(part) for part in name)
    return cell(name)


def aligned(lines: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Return the lines of a table as text; `sides` has ``<`` or ``>`` for each column.

    >>> aligned([["bmi", "36.6"], ["bp", "113"]], "<>")
    ['bmi  36.6', 'bp    113']
    """
    widths = [max(len(text) for text in column) for column in zip(*lines, strict=True)]
    found = []
    for line in lines:
        cells = zip(line, sides, widths, strict=True)
        found.append("  ".join(f"{text:{side}{width}}" for text, side, width in cells).rstrip())
    return found
