"""Our side: one question through the public interface, measured from outside."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

import bayescfx as cfx
from benchmarks.mixed import Frame
from benchmarks.problems import Array, Case, fitted, rows_of


@dataclass
class Recorder:
    """A model that records its outputs and the CPU times of its calls.

    Rows are counted here, at the model, and not by the measured library.
    """

    function: Callable[[Any], Array]
    outputs: list[float] = field(default_factory=list)
    calls: list[tuple[float, float, int]] = field(default_factory=list)  # begin, end, rows

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
        """Return, per step, the number of scored rows and the CPU seconds until the next call."""
        gaps = []
        n_rows = 0
        for before, after in pairwise(self.calls):
            n_rows += before[2]
            gaps.append((n_rows, after[0] - before[1]))
        return gaps


@dataclass(frozen=True, eq=False)
class TimedAnswer:
    """An answer with its recorded model calls and its CPU seconds."""

    answer: cfx.Explanation
    recorder: Recorder
    seconds: float


@cache
def space(data: str) -> cfx.Space:
    """Return the space of a table with its constraints and the default cost."""
    rows = rows_of(data)
    if not isinstance(rows, Frame):
        return cfx.Space.from_data(rows.X)
    rules = rows.rules
    cyclic = {name: cfx.Integer(0, n - 1, cyclic=True) for name, n in rules.period.items()}
    within_limits = cfx.Space.from_data(rows.X, kinds=cyclic).between(dict(rules.within))
    return within_limits.fix(*rules.fixed).only_up(*rules.up)


def ask(case: Case, *, budget: int, cost: bool, seed: int, **options: Any) -> TimedAnswer:
    """Explain one case.

    Parameters
    ----------
    case : Case
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
    recorder = Recorder(fitted(case.data, case.model).predict)
    model = cfx.probability(recorder) if case.probability else recorder
    target = cfx.reach if case.kind == "reach" else cfx.at_least
    allowed = space(case.data) if cost else space(case.data).cost(weight=0)
    begin = time.process_time()
    answer = cfx.explain(
        model, case.query, allowed, target(case.target), budget=budget, rng=seed, **options
    )
    return TimedAnswer(answer, recorder, time.process_time() - begin)


def make_record(case: Case, timed: TimedAnswer) -> dict[str, Any]:
    """Return the record of an answer, scored again by the model."""
    return {
        "case": case.key,
        **case.scored(timed.answer.best.row),
        "rows": len(timed.recorder.outputs),
        "seconds": timed.seconds,
        "seconds_in_model": timed.recorder.inside,
        "stopped": timed.answer.stopped,
        "random_share": case.random_share,
    }
