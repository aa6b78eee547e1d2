"""Binding constraints, computed: what the target costs with each constraint removed.

Each limit, each rule and the bound on changes is removed in turn, and the question is searched
exactly again. The model is not called: its form answers.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

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
from bayescfx.space.region import Region
from bayescfx.space.rule import Rule
from bayescfx.space.rules.limits import Limits

#: Constraints that are named at most.
MOST_NAMED = 3


@dataclass(frozen=True)
class RelaxedCost:
    """What the target costs without one constraint.

    Parameters
    ----------
    words : str
        The constraint.
    cost : float
        The cost of the nearest answer that was found; infinite if there is none.
    """

    words: str
    cost: float


def cheapest_relaxations(question: Provable, prover: Prover, work_each: float) -> list[RelaxedCost]:
    """Return the constraints without which the target can be reached, the cheapest first.

    Parameters
    ----------
    question : Question
        A question whose target is out of reach.
    prover : Prover
        The model.
    work_each : float
        The most work for each constraint.
    """
    found = []
    for words, region in relaxed_regions(question.region):
        try:
            cost = _lowest_cost(question, prover, region, work_each)
        except OutOfTime:
            break
        if np.isfinite(cost):
            found.append(RelaxedCost(words, cost))
    return sorted(found, key=lambda each: each.cost)[:MOST_NAMED]


def relaxed_regions(region: Region) -> Iterator[tuple[str, Region]]:
    """Yield each constraint in words, with the region without it."""
    for j, name in enumerate(region.names):
        wider = _without_limits(region, j)
        if wider is not None:
            is_free = bool(region.low[j] < region.high[j])
            yield f"limit on {name!r}" if is_free else f"{name!r} being fixed", wider
    bound = region.max_changes
    if bound is not None and bound < len(region.free):
        words = f"at most {bound} change{'' if bound == 1 else 's'}"
        yield words, replace(region, max_changes=None)
    in_axes = [rule for rule in region.rules if _feature_of_axis(region, rule) is not None]
    for rule in region.without(*in_axes).rules:
        if rule.words.limit:
            yield rule.words.limit, region.without(rule)


def _without_limits(region: Region, j: int) -> Region | None:
    """Return the region without the limits of a feature; None if it has none."""
    code = float(region.query[j])
    if np.isnan(code) or region.recomputed[j]:
        return None
    name = region.names[j]
    own = region.axes[j]
    schema = region.schema
    dtype: Any = np.dtype(np.float64)
    if name in schema.places:
        dtype = schema.columns[schema.places[name]].dtype
    axis = Limits(name).axis(schema.features[name], code, dtype, inferred=False)
    n_own = np.inf if own.choices is None else len(own.choices)
    n_all = np.inf if axis.choices is None else len(axis.choices)
    low, high, _ = axis.allowed
    is_wider = low < region.low[j] or high > region.high[j] or n_all > n_own
    strict = [rule for rule in region.rules if _feature_of_axis(region, rule) == name]
    return region.with_axis(j, axis).without(*strict) if is_wider or strict else None


def _feature_of_axis(region: Region, rule: Rule) -> Hashable | None:
    """Return the feature whose strict limits, beside its axis, a rule is; None of other rules."""
    if not isinstance(rule, Limits) or region.recomputed[region.names.index(rule.name)]:
        return None
    return rule.name


def _lowest_cost(question: Provable, prover: Prover, region: Region, work: float) -> float:
    """Return the cost of the nearest answer in another region, by the form; may be infinite."""
    reading = prover.reading(region)
    form = reading.form
    if form is None:
        return np.inf
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
        return np.inf


def _run_by_form(
    search: Generator[Array, Mask, Bound], question: Provable, form: Form, region: Region
) -> float:
    """Return the lowest cost of the answers that a search finds, with outputs of the form."""
    lowest = np.inf
    try:
        rows = next(search)
        while True:
            is_hit = question.accepted(form.predict(region.rows(rows)))
            lowest = min([lowest, *region.cost(rows[is_hit])])
            rows = search.send(is_hit)
    except StopIteration:
        return lowest
