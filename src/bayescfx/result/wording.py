"""An answer in words: numbers rounded for reading, never in the data."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from bayescfx.data.datetimes import times
from bayescfx.data.values import is_missing
from bayescfx.potentials import Intervals

if TYPE_CHECKING:
    from bayescfx.result.explanation import Explanation

ENDINGS = {
    "nothing nearer expected": "nothing nearer is expected",
    "budget": "the budget is spent",
    "timeout": "the time is over",
    "interrupted": "it was interrupted",
    "fault": "the model failed",
    "converged": "the search has converged",
    "exhausted": "every allowed point has been tried",
    "already met": "the row has what is wanted already",
    "unreachable": "the target seems out of reach",
}
ID = "id column"  # in what an answer says about itself: the column that names rows


class Output(NamedTuple):
    """What the model's output is called, and its unit."""

    name: str = "prediction"
    unit: str = ""

    @classmethod
    def of(cls, about: Mapping[str, str]) -> Output:
        """Return what an answer, or who asked, says of the output."""
        return cls(about.get("output") or "prediction", about.get("unit") or "")

    def __str__(self) -> str:
        return self.name

    @property
    def label(self) -> str:
        """The name with the unit, for an axis or the head of a column."""
        return f"{self.name}, {self.unit}" if self.unit else self.name

    def number(self, text: str) -> str:
        """Return an output, or several, with the unit."""
        return f"{text} {self.unit}".rstrip()


PREDICTION = Output()


def number(value: float, digits: int = 4) -> str:
    """Return a number with some significant digits, with exponents only where a person would."""
    value += 0.0  # no negative zero
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "nan")
    if 10**digits <= abs(value) < 1e15:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:.{decimals}f}"
    return f"{value:.{digits}g}"


def cell(value: Any, digits: int = 4) -> str:
    """Return a cell of a table for reading."""
    if is_missing(value):
        return "missing"
    if _is_time(value):
        return times(value)[0]
    if isinstance(value, dt.timedelta | np.timedelta64):
        return str(pd.Timedelta(value)).removesuffix(" 00:00:00")
    if isinstance(value, bool | numbers.Integral) or not isinstance(value, numbers.Real):
        return str(value)
    return number(float(value), digits)


def both(before: Any, after: Any) -> tuple[str, str]:
    """Return two cells with as many digits as tell them apart."""
    if _is_time(before) and _is_time(after):
        first, second = times(before, after)
        return first, second
    return _apart(cell, before, after)


def move(before: Any, after: Any) -> str:
    """Return ``before → after``, told apart."""
    return " → ".join(both(before, after))


def changed(answer: Explanation) -> list[list[str]]:
    """Return names and cells, now and in each counterfactual: what changes, and the prediction."""
    found = answer.counterfactuals
    before = {name: pair[0] for c in found for name, pair in c.changes.items()}
    lines = [
        [str(n), cell(old), *(both(*c.changes[n])[1] if n in c.changes else "-" for c in found)]
        for n, old in before.items()
    ]
    label = Output.of(answer.about).label
    return [*lines, [label, number(answer.output), *(number(c.output) for c in found)]]


def _apart(write: Callable[[Any, int], str], a: Any, b: Any) -> tuple[str, str]:
    """Return two values with as many digits as tell them apart."""
    for digits in range(4, 18):
        texts = write(a, digits), write(b, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _is_time(value: Any) -> bool:
    return isinstance(value, dt.datetime | np.datetime64) and not pd.isna(value)


def moves(changes: Mapping[Any, tuple[Any, Any]], most: int = 12) -> str:
    """Return all changes, as in ``bmi 32.1 → 27.4, bp 101 → 93``."""
    shown = [f"{name} {move(*pair)}" for name, pair in changes.items()]
    rest = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + rest if shown else "no change"


def best_moves(answer: Explanation) -> str:
    """Return the changes of the best answer; of a row that has what is wanted, that."""
    return "already as wanted" if answer.stopped == "already met" else moves(answer.best.changes)


def wish(wanted: Intervals) -> str:
    """Return the wanted outputs."""
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
    return " to ".join(_apart(number, low, high))


def sentence(answer: Explanation) -> str:
    """Return the best answer: ``bmi 32.1 → 27.4: prediction 214 → 171, wanted 171``."""
    best, told = answer.best, best_moves(answer)
    outputs = move(answer.output, best.output) if best.changes else number(answer.output)
    output = Output.of(answer.about)
    wanted = output.number(wish(answer.wanted))
    return f"{told}: {output} {output.number(outputs)}, wanted {wanted}"


def percent(share: float) -> str:
    """Return a probability as a percentage that is never rounded to certainty."""
    if share <= 0.01:
        return "at most 1 %"
    if share > 0.99:
        return "more than 99 %"
    return f"{100 * share:.0f} %"


def verdict(answer: Explanation) -> str:
    """Return how the search ended, and whether there are fewer answers than were asked for."""
    found = len(answer.counterfactuals)
    if found >= answer.n_wanted or answer.stopped == "already met":
        return _ending(answer)
    fewer = f"{found} instead of {count(answer.n_wanted, 'answer')}"
    return f"{_ending(answer)} {fewer}: nothing else was found that says something different."


def _ending(answer: Explanation) -> str:
    """Return how the search ended, with what is sure told apart from what is estimated."""
    ending = ENDINGS.get(answer.stopped, answer.stopped)
    if answer.reached:
        return f"Reached; the search ended because {ending}."
    if answer.stopped == "already met":
        return "The row has what is wanted already, but breaks a rule; nothing was searched for."
    low, high = answer.reachable
    seen = f"Outputs seen: {number(low)} to {number(high)}."
    if math.isnan(low):
        seen = "No allowed row was scored."
    if answer.binding:
        which = "this" if len(answer.binding) == 1 else "any of these"
        ours = not all(text.startswith("the data's own range") for text in answer.binding)
        start = f"Relaxing {which}" if ours else "Only going beyond the data"
        listed = "; ".join(answer.binding)
        seen += f" {start} would bring it nearer, judged from the rows scored: {listed}."
    if answer.jump is not None:
        below, above = map(number, answer.jump)
        seen += (
            f" Nearest on either side: {below} and {above}; the model may jump over what is "
            "wanted. Ask for at least or at most so much, or allow a wider tolerance."
        )
    if answer.stopped == "exhausted":
        return f"Out of reach: {ending}. {seen}"
    if answer.status == "unreachable":
        start = "Probably out of reach, judged from the rows that the model scored, not proven."
    else:
        miss = number(gap(answer.best.output, answer.wanted))
        if answer.stopped == "unreachable":  # and yet it is not unlikely, all in all
            ending = "the search saw no way to the target"
        start = f"Not reached, this is the best guess (off by {miss}): {ending}."
    if answer.probability_reachable is not None:
        chance = percent(answer.probability_reachable)
        start += f" The target is given a probability of {chance} within the limits."
    return f"{start} {seen}"


def gap(output: float, wanted: Intervals) -> float:
    """Return the distance of an output from the nearest wanted one."""
    if math.isnan(output):
        return math.nan
    return min((max(low - output, output - high, 0.0) for low, high in wanted), default=math.nan)


def count(n: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def lines(summary: pd.DataFrame) -> list[list[str]]:
    """Return the cells of a summary for reading, each line after its label."""
    cells = summary.replace("best_guess", "best guess").to_numpy(object)
    return [[label(i), *map(cell, row)] for i, row in zip(summary.index, cells, strict=True)]


def label(of: Any) -> str:
    """Return the label of a query for reading."""
    return ", ".join(map(cell, of)) if isinstance(of, tuple) else cell(of, 15)
