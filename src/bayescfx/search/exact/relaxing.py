"""Binding constraints, computed: what the target costs with each constraint removed.

Each limit, each fixed feature, each rule and the bound on changes is removed in turn, and the
question is searched exactly again. If no single one is enough, pairs of them are. The model is not
called: its form answers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.deadline import time_limit
from bayescfx.errors import OutOfTime
from bayescfx.models.readers import Form, LinearModel, ReluNetwork
from bayescfx.search.exact.branching import Bound, Branching, Work, find_nearest
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.linear_form import find_nearest_linear
from bayescfx.search.exact.network_search import find_nearest_network
from bayescfx.search.exact.problem import BoxProblem
from bayescfx.search.exact.prover import Provable, Prover, raw_intervals
from bayescfx.space.constraint import Constraint, constraints, relaxed_regions, without
from bayescfx.space.region import Region

if TYPE_CHECKING:
    from bayescfx.search.question import Question

#: With more constraints than these, pairs are not examined. Set by judgement, 2026-11-19.
MOST_IN_PAIRS = 8


@dataclass(frozen=True, eq=False)
class RelaxedAnswer:
    """The nearest answer without some constraints.

    Parameters
    ----------
    removed : tuple of Constraint
        The constraints.
    row : array of shape (d,)
        Its codes.
    output : float
        Its output by the model's form.
    cost : float
        Its cost.
    is_nearest : bool
        Whether none costs less; otherwise the work was cut short.
    """

    removed: tuple[Constraint, ...]
    row: Array
    output: float
    cost: float
    is_nearest: bool


@dataclass(frozen=True, eq=False)
class Relaxations:
    """What the removal of constraints does, as computed.

    Parameters
    ----------
    answers : tuple of RelaxedAnswer
        The nearest answers without one constraint each, the cheapest first; without two of them if
        no single one is enough.
    is_complete : bool
        Whether every single constraint was examined to the end.
    """

    answers: tuple[RelaxedAnswer, ...]
    is_complete: bool

    @property
    def needs_two(self) -> bool:
        """Whether it is computed that no single constraint keeps the target away."""
        is_single = any(len(answer.removed) == 1 for answer in self.answers)
        return self.is_complete and not is_single


def is_readable(question: Question) -> bool:
    """Return whether relaxations can be computed: the model is allowed to be read, and was."""
    if question.prover is None or not question.evaluator.model.local:
        return False
    return question.prover.reading(question.region).form is not None


def compute_relaxations(question: Provable, prover: Prover, work_each: float) -> Relaxations:
    """Return the constraints without which the target can be reached.

    Parameters
    ----------
    question : Question
        A question whose target is out of reach.
    prover : Prover
        The model.
    work_each : float
        The most work for each constraint.
    """
    region = question.region
    single = (((each,), relaxed) for each, relaxed in relaxed_regions(region))
    found = _answers(question, prover, single, work_each)
    n_constraints = len(constraints(region))
    if found.answers or not found.is_complete or not 2 <= n_constraints <= MOST_IN_PAIRS:
        return found
    pairs = combinations(constraints(region), 2)
    both = ((pair, without(region, pair)) for pair in pairs)
    return Relaxations(_answers(question, prover, both, work_each).answers, is_complete=True)


def _answers(
    question: Provable,
    prover: Prover,
    relaxed: Iterator[tuple[tuple[Constraint, ...], Region]],
    work_each: float,
) -> Relaxations:
    """Return the nearest answers in some regions, the cheapest first."""
    found: list[RelaxedAnswer] = []
    is_complete = True
    for removed, region in relaxed:
        try:
            nearest, is_exact = _nearest(question, prover, region, work_each)
        except OutOfTime:
            is_complete = False
            break
        is_complete &= is_exact
        if nearest is not None:
            found.append(RelaxedAnswer(removed, *nearest, is_exact))
    found.sort(key=lambda each: each.cost)
    return Relaxations(tuple(found), is_complete)


#: Codes, output and cost of a row.
_Nearest = tuple[Array, float, float]


def _nearest(
    question: Provable, prover: Prover, region: Region, work: float
) -> tuple[_Nearest | None, bool]:
    """Return the nearest answer in another region, by the form, and whether that is exact."""
    reading = prover.reading(region)
    form = reading.form
    if form is None:
        return None, False
    accepted = raw_intervals(form, question.acceptance, reading.rounding)
    try:
        limits = Work(work, time_limit.get())
        if isinstance(form, LinearModel):
            search = find_nearest_linear(form, region, accepted, work=limits)
        elif isinstance(form, ReluNetwork):
            search = find_nearest_network(form, region, accepted, work=limits)
        else:
            problem = BoxProblem(prover.table(region, form), region, accepted)
            search = find_nearest(Branching(problem, work=limits))
        return _run_by_form(search, question, form, region)
    except NoProof:
        return None, False


def _run_by_form(
    search: Generator[Array, Mask, Bound], question: Provable, form: Form, region: Region
) -> tuple[_Nearest | None, bool]:
    """Return the nearest answer that a search finds, with outputs of the form."""
    nearest: _Nearest | None = None
    try:
        rows = next(search)
        while True:
            y = form.predict(region.rows(rows))
            is_hit = question.accepted(y)
            costs = region.cost(rows)
            for k in np.flatnonzero(is_hit).tolist():
                if nearest is None or costs[k] < nearest[2]:
                    nearest = rows[k], float(y[k]), float(costs[k])
            rows = search.send(is_hit)
    except StopIteration as end:
        bound: Bound = end.value
        return nearest, bound.is_complete
