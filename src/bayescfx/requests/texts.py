"""Answers, targets, numbers and tables as text, for clients that show them."""

from __future__ import annotations

from collections.abc import Sequence

from bayescfx.potentials.target_text import TARGET_SYNTAX, parse_call, parse_target
from bayescfx.result import wording
from bayescfx.result.answer_text import sentence
from bayescfx.result.counterfactual import Counterfactual
from bayescfx.result.explanation import Explanation

__all__ = [
    "TARGET_SYNTAX",
    "aligned",
    "answer_sentence",
    "changes_text",
    "count_text",
    "number_text",
    "parse_call",
    "parse_target",
    "wanted_text",
]


def number_text(value: float, digits: int = wording.DIGITS) -> str:
    """Return a number rounded to significant digits for reading."""
    return wording.number(float(value), digits)


def aligned(lines: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Return the lines of a table with columns aligned to the sides, ``<`` or ``>``."""
    return wording.aligned(lines, sides)


def count_text(n: int, noun: str) -> str:
    """Return a count with its noun: "1 change", "2 changes"."""
    return wording.count(n, noun)


def wanted_text(intervals: Sequence[tuple[float, float]]) -> str:
    """Return the outputs that a target asks for: "at least 150"."""
    return wording.intervals(tuple(intervals))


def answer_sentence(answer: Explanation) -> str:
    """Return the best counterfactual of an answer in one sentence."""
    return sentence(answer)


def changes_text(found: Counterfactual) -> str:
    """Return the changes of a counterfactual: "bmi 32.1 → 27.4, bp 101 → 93"."""
    return wording.moves(found.changes)
