"""An answer in words: numbers rounded for reading, never in the data."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from bayescfx.features.datetimes import times
from bayescfx.potentials.levels import Intervals

Changes: TypeAlias = Mapping[Any, tuple[Any, Any]]

_SHOWN = 12

ENDINGS = {
    "nothing nearer expected": "nothing nearer is expected",
    "budget": "the budget is spent",
    "timeout": "the time is over",
    "interrupted": "it was interrupted",
    "fault": "the model failed",
    "converged": "the search has converged",
    "exhausted": "every allowed point has been tried",
    "unreachable": "the target seems out of reach",
}


def number(value: float, digits: int = 4) -> str:
    """Return a number with some significant digits, with exponents only where a person would.

    Examples
    --------
    >>> number(214.3721), number(46500.0), number(1234567.8), number(3e-7), number(2.0)
    ('214.4', '46500', '1234568', '3e-07', '2')
    """
    value += 0.0  # no negative zero
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "nan")
    if 10**digits <= abs(value) < 1e15:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:.{decimals}f}"
    return f"{value:.{digits}g}"


def cell(value: Any, digits: int = 4) -> str:
    """Return a cell of a table for reading.

    Examples
    --------
    >>> cell("clerk"), cell(0.123456), cell(7), cell(True), cell(None)
    ('clerk', '0.1235', '7', 'True', 'missing')
    >>> cell(pd.Timestamp("2024-03-01")), cell(pd.Timestamp("2024-03-01 08:30"))
    ('2024-03-01', '2024-03-01 08:30')
    >>> cell(pd.Timedelta("3D")), cell(pd.Timedelta("36h"))
    ('3 days', '1 days 12:00:00')
    """
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return "missing"
    if _is_time(value):
        return times(value)[0]
    if isinstance(value, dt.timedelta | np.timedelta64):
        return str(pd.Timedelta(value)).removesuffix(" 00:00:00")
    if isinstance(value, bool | numbers.Integral) or not isinstance(value, numbers.Real):
        return str(value)
    return number(float(value), digits)


def move(before: Any, after: Any) -> str:
    """Return ``before → after`` with as many digits as tell the two apart.

    Examples
    --------
    >>> move(32.1, 27.42222), move(0.50001, 0.50002)
    ('32.1 → 27.42', '0.50001 → 0.50002')
    >>> move(pd.Timestamp("2024-03-01"), pd.Timestamp("2024-03-04 08:30"))
    '2024-03-01 00:00 → 2024-03-04 08:30'
    """
    if _is_time(before) and _is_time(after):
        return " → ".join(times(before, after))
    for digits in range(4, 18):
        texts = cell(before, digits), cell(after, digits)
        if texts[0] != texts[1]:
            break
    return " → ".join(texts)


def _is_time(value: Any) -> bool:
    return isinstance(value, dt.datetime | np.datetime64) and not pd.isna(value)


def moves(changes: Changes) -> str:
    """Return all changes, as in ``bmi 32.1 → 27.4, bp 101 → 93``.

    Examples
    --------
    >>> moves({"bmi": (32.1, 27.4), "job": ("clerk", "cook")})
    'bmi 32.1 → 27.4, job clerk → cook'
    >>> moves({})
    'no change'
    """
    shown = [f"{name} {move(*pair)}" for name, pair in changes.items()]
    rest = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + rest if shown else "no change"


def wish(wanted: Intervals) -> str:
    """Return the wanted outputs.

    Examples
    --------
    >>> wish(((171.0, 171.0),)), wish(((30.0, math.inf),)), wish(((1.0, 1.0), (3.0, 3.0)))
    ('171', 'at least 30', '1 or 3')
    """
    return " or ".join(_interval(low, high) for low, high in wanted) or "nothing"


def _interval(low: float, high: float) -> str:
    if low == -math.inf and high == math.inf:
        return "anything"
    if low == -math.inf:
        return f"at most {number(high)}"
    if high == math.inf:
        return f"at least {number(low)}"
    if math.isclose(low, high, rel_tol=1e-12):
        return number(low)  # apart by rounding only
    for digits in range(4, 18):
        texts = number(low, digits), number(high, digits)
        if texts[0] != texts[1]:
            return f"{texts[0]} to {texts[1]}"
    return number(low)


def sentence(changes: Changes, before: float, after: float, wanted: Intervals) -> str:
    """Return an answer in one sentence.

    Examples
    --------
    >>> sentence({"bmi": (32.1, 27.4)}, 214.0, 171.0, ((171.0, 171.0),))
    'bmi 32.1 → 27.4: prediction 214 → 171, wanted 171'
    """
    if not changes:
        return f"no change: prediction {number(before)}, wanted {wish(wanted)}"
    return f"{moves(changes)}: prediction {move(before, after)}, wanted {wish(wanted)}"


def percent(share: float) -> str:
    """Return a probability as a percentage that is never rounded to certainty.

    Examples
    --------
    >>> percent(0.0231), percent(1e-9), percent(0.9999)
    ('2 %', 'less than 1 %', 'more than 99 %')
    """
    if share < 0.01:
        return "less than 1 %"
    if share > 0.99:
        return "more than 99 %"
    return f"{100 * share:.0f} %"


def verdict(
    status: str,
    *,
    stopped: str,
    miss: float,
    reachable: tuple[float, float],
    probability: float | None,
    binding: Sequence[str],
) -> str:
    """Return how the search ended, with what is sure told apart from what the surrogate says.

    Parameters
    ----------
    status : {"reached", "best_guess", "unreachable"}
        The outcome.
    stopped : str
        Why the search ended; one of :data:`ENDINGS`.
    miss : float
        How far the best output is from the accepted ones.
    reachable : tuple of float
        Lowest and highest output seen.
    probability : float, optional
        The surrogate's probability that the target can be reached.
    binding : sequence of str
        Limits and rules that, if relaxed, would bring the target nearer.

    Returns
    -------
    str
        One or more sentences.
    """
    ending = ENDINGS.get(stopped, stopped)
    if status == "reached":
        return f"Reached; the search ended because {ending}."
    seen = f"Outputs seen: {number(reachable[0])} to {number(reachable[1])}."
    if math.isnan(reachable[0]):
        seen = "No allowed row was scored."
    if stopped == "exhausted":
        return f"Out of reach: {ending}. {seen}{_relaxing(binding)}"
    chance = (
        ""
        if probability is None
        else f" The surrogate gives the target a probability of {percent(probability)} "
        "within the limits."
    )
    if status == "unreachable":
        start = "Probably out of reach, judged by the surrogate of the model, not proven."
    else:
        start = f"Not reached, this is the best guess (off by {number(miss)}): {ending}."
    return f"{start}{chance} {seen}{_relaxing(binding)}"


def _relaxing(binding: Sequence[str]) -> str:
    if not binding:
        return ""
    which = "this" if len(binding) == 1 else "any of these"
    listed = "; ".join(binding)
    return f" Relaxing {which} would bring it nearer, as the surrogate sees it: {listed}."


def gap(output: float, accepted: Intervals) -> float:
    """Return the distance of an output from the nearest accepted one.

    Examples
    --------
    >>> gap(5.0, ((1.0, 2.0), (7.0, 8.0))), gap(1.5, ((1.0, 2.0),))
    (2.0, 0.0)
    """
    return min((max(low - output, output - high, 0.0) for low, high in accepted), default=math.nan)


def count(n: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "row"), count(2, "row")
    ('1 row', '2 rows')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
