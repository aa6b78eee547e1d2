"""Our side: one question asked through the public API, measured from outside."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

import bayescfx as cfx
from benchmarks.mixed import Frame
from benchmarks.problems import Array, Case, fitted, rows_of


@dataclass
class Recorder:
    """A model that keeps its outputs and when, in CPU time, it was asked.

    Rows are counted here, at the model, not by the library that is measured.
    """

    function: Callable[[Any], Array]
    outputs: list[float] = field(default_factory=list)
    calls: list[tuple[float, float, int]] = field(default_factory=list)

    def __call__(self, X: Any) -> Array:
        """Return the outputs of rows."""
        begin = time.process_time()
        y = self.function(X)
        self.outputs.extend(float(v) for v in y)
        self.calls.append((begin, time.process_time(), len(y)))
        return y

    @property
    def inside(self) -> float:
        """Return the CPU seconds spent in the model."""
        return sum(end - begin for begin, end, _ in self.calls)

    def gaps(self) -> list[tuple[int, float]]:
        """Return, per step, the points known and the CPU seconds until the next model call."""
        known = np.cumsum([n for _, _, n in self.calls])
        return [
            (int(k), after[0] - before[1])
            for k, before, after in zip(known, self.calls, self.calls[1:], strict=False)
        ]


@dataclass(frozen=True, eq=False)
class Asked:
    """An answer, and what it took."""

    answer: cfx.Explanation
    recorder: Recorder
    seconds: float


@cache
def space(data: str) -> cfx.Space:
    """Return the space of a table under its rules, with the default cost."""
    rows = rows_of(data)
    if not isinstance(rows, Frame):
        return cfx.Space.from_data(rows.X)
    rules = rows.rules
    circles = {name: cfx.Integer(0, n - 1, cyclic=True) for name, n in rules.period.items()}
    made = cfx.Space.from_data(rows.X, kinds=circles).between(dict(rules.within))
    return made.fix(*rules.fixed).only_up(*rules.up)


def ask(asked: Case, *, budget: int, cost: bool, seed: int, **options: Any) -> Asked:
    """Explain one case.

    Parameters
    ----------
    asked : Case
        The question.
    budget : int
        Rows that may be sent to the model.
    cost : bool
        Whether the default cost is on.
    seed : int
        The seed of the search.
    **options
        Passed on to ``explain``: ``method``, ``tolerance``.
    """
    recorder = Recorder(fitted(asked.data, asked.model).predict)
    model = cfx.probability(recorder) if asked.probability else recorder
    target = cfx.reach if asked.kind == "reach" else cfx.at_least
    region = space(asked.data) if cost else space(asked.data).cost(weight=0)
    begin = time.process_time()
    answer = cfx.explain(
        model, asked.query, region, target(asked.target), budget=budget, rng=seed, **options
    )
    return Asked(answer, recorder, time.process_time() - begin)


def nearness(asked: Case, found: Asked) -> dict[str, Any]:
    """Return how near the answer is, scored again by the model."""
    return {
        "case": asked.key,
        **asked.scored(found.answer.best.row),
        "rows": len(found.recorder.outputs),
        "seconds": found.seconds,
        "seconds_in_model": found.recorder.inside,
        "stopped": found.answer.stopped,
        "random_share": asked.random_share,
    }
