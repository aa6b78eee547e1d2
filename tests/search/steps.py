"""Single steps of searches, run alone."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from bayescfx.arrays import Array
from bayescfx.search.question import Question

T = TypeVar("T")


def run_step(question: Question, step: Generator[Array, Array, T]) -> tuple[T, list[Array]]:
    """Run a step of a search; return its result, and the rows of each of its model calls."""
    calls: list[Array] = []
    try:
        X = next(step)
        while True:
            calls.append(X)
            X = step.send(question.evaluate(X))
    except StopIteration as end:
        result: T = end.value
        return result, calls
