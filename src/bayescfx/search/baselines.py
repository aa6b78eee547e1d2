"""What the paper compares with: random search and L-BFGS-B (Section 4).

Both look at the potential of the output and nothing else; where a cost of moving is wanted, the
answer is the nearest of the rows that happen to reach the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy.optimize import minimize

from bayescfx.arrays import Array, Indices
from bayescfx.search.differences import nudges
from bayescfx.search.draws import fresh_rows
from bayescfx.search.question import Ending, Question, Rounds, drive
from bayescfx.space.repair import ordered, repair

_SAME = 1e-12  # coordinates of the unit box that differ by rounding only
_PENALTY = 1.0  # of a point that can't be made allowed; worse than any potential


@dataclass(frozen=True)
class RandomSearch:
    """Evaluate allowed rows at random, no row twice.

    Stops early only when nothing can be gained any more: the target is reached, one answer is
    wanted and the cost of moving is switched off; or the region has no further rows.

    Parameters
    ----------
    batch : int, default 32
        Rows per model call. It does not change which rows are drawn, nor their order.

    Examples
    --------
    >>> RandomSearch(batch=8)
    RandomSearch(batch=8)
    """

    batch: int = 32

    def __post_init__(self) -> None:
        check_whole("batch", self.batch, 1)

    def run(self, question: Question) -> Ending:
        """Evaluate rows until the budget, the time or the region ends."""
        return drive(self, question)

    def rounds(self, question: Question) -> Rounds:
        """Yield batches of rows to be evaluated."""
        rows = fresh_rows(question)
        while not satisfied(question):
            batch = list(islice(rows, self.batch))
            if not batch:
                return "exhausted"
            yield np.array(batch)
        return "converged"


@dataclass(frozen=True)
class LBFGSB:
    """Climb the potential by L-BFGS-B with finite differences, from the query and at random.

    The climb runs in the unit box of the ordered features. Features on a grid are relaxed: each
    point is snapped before it is evaluated, and differences span at least one step. Features
    without a line (categorical, cyclic) keep the value of the start. Rules beyond the box are met
    by moving a point to the nearest allowed row; where there is none the point counts as worse than
    any other, without a model call.

    The first climb starts at the query, as in the paper. There the slope of every EP potential is
    zero and differences have little to go by: a weakness of the method that the paper's figures
    show, and that is kept. When a climb ends, the next starts at a random allowed row, until
    the budget is spent. A gradient costs one row per ordered feature, in one model call.

    Parameters
    ----------
    difference : float, default 1e-4
        Width of finite differences, as a share of each feature's range. Wide enough for models
        that compute in single precision.
    tolerance : float, default 1e-5
        A climb ends when no component of the projected gradient is larger.
    memory : int, default 10
        Corrections kept by L-BFGS-B.

    Examples
    --------
    >>> LBFGSB(difference=1e-3)
    LBFGSB(difference=0.001, tolerance=1e-05, memory=10)
    """

    difference: float = 1e-4
    tolerance: float = 1e-5
    memory: int = 10

    def __post_init__(self) -> None:
        check_positive("difference", self.difference)
        check_positive("tolerance", self.tolerance)
        check_whole("memory", self.memory, 1)

    def run(self, question: Question) -> Ending:
        """Climb from one start after the other until the budget, the time or the region ends."""
        region = question.region
        line = np.flatnonzero(ordered(region) & (region.low < region.high))
        try:
            for start in _starts(question):
                climb = _Climb(question, start, line, self.difference)
                climb.evaluate(start)
                if len(line):
                    self._maximise(climb)
        except _Satisfied:
            return "converged"
        return "exhausted"

    def _maximise(self, climb: _Climb) -> None:
        minimize(
            climb.loss,
            climb.unit(climb.start),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * len(climb.line),
            options={"gtol": self.tolerance, "maxcor": self.memory, "maxiter": 200},
        )


class _Satisfied(Exception):
    """Nothing more is wanted; leaves the optimiser's loop."""


@dataclass(frozen=True)
class _Climb:
    """The loss of one climb: minus the potential over the ordered features of a start."""

    question: Question
    start: Array
    line: Indices
    difference: float

    @property
    def _span(self) -> Array:
        region = self.question.region
        return np.asarray((region.high - region.low)[self.line])

    def unit(self, x: Array) -> Array:
        """Return the unit-box coordinates ``(k,)`` of a row."""
        return np.asarray((x - self.question.region.low)[self.line] / self._span)

    def evaluate(self, *rows: Array) -> Array:
        """Return the potentials ``(n,)`` of rows relative to the peak; nan for a fault."""
        y = self.question.account.evaluate(np.array(rows))
        if satisfied(self.question):
            raise _Satisfied
        return np.where(np.isnan(y), np.nan, self.question.score(y))

    def loss(self, u: Array) -> tuple[float, Array]:
        """Return minus the potential at a point of the unit box, and its gradient ``(k,)``."""
        region = self.question.region
        row = self.start.copy()
        # A feature that has not moved keeps its value to the last bit.
        moved = np.abs(u - self.unit(self.start)) > _SAME
        row[self.line] = np.where(moved, region.low[self.line] + u * self._span, row[self.line])
        rows, allowed = repair(region, row[None, :])
        if not allowed[0]:
            return _PENALTY, np.zeros(len(u))
        near = nudges(region, rows[0], self.line, self.difference * self._span)
        value, *others = self.evaluate(rows[0], *near.rows)
        if np.isnan(value):
            return _PENALTY, np.zeros(len(u))
        slope = near.quotients(float(value), np.array(others))[self.line] * self._span
        return -float(value), -slope


def _starts(question: Question) -> Iterator[Array]:
    """Yield the query, if it is allowed itself, then random rows."""
    query = question.region.query
    if question.region.contains(query[None, :])[0]:
        yield query
    yield from fresh_rows(question)


def satisfied(question: Question) -> bool:
    """Return whether nothing can be gained any more: one answer, at no cost, that is found."""
    return question.weight == 0.0 and question.n == 1 and question.reached


def check_whole(name: str, value: int, least: int) -> None:
    """Raise unless a setting is a whole number of at least `least`."""
    given: object = value
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise ValueError(f"`{name}` must be a whole number of at least {least}; got {value!r}.")


def check_positive(name: str, value: float) -> None:
    """Raise unless a setting is a positive finite number."""
    if not (np.isfinite(value) and value > 0.0):
        raise ValueError(f"`{name}` must be a positive number; got {value!r}.")
