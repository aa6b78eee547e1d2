"""Binding constraints of linear models, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import bayescfx as cfx
from bayescfx.search.exact.relaxing import compute_relaxations
from bayescfx.space.constraint import relaxed_regions
from tests.search.exact.certificate_problems import small_data
from tests.search.exact.linear_problems import LinearProblem, fit_linear, pose

WORK = 15e6


def make_unreachable(seed: int) -> LinearProblem:
    """Return a question that limits, fixed features, a rule and few changes put out of reach."""
    rng = np.random.default_rng(seed)
    data, y = small_data(seed)
    kind = seed % 3
    estimator = fit_linear(kind, data, y)
    space = cfx.Space.from_data(data).fix("b").move({"a": (-1, 1)}).max_changes(2)
    if seed % 2:
        space = space.require("a + b <= 6")
    query = data.iloc[[int(rng.integers(len(data)))]]
    problem = pose(kind, estimator, space, query, ((np.inf, np.inf),))
    top = float(problem.outputs.max())
    goal = top + rng.uniform(0.01, 0.2) * float(np.ptp(problem.outputs))
    return pose(kind, estimator, space, query, ((goal, np.inf),))


@pytest.mark.parametrize("seed", range(6))
def test_costs_without_each_constraint_equal_brute_force(seed: int) -> None:
    problem = make_unreachable(seed)
    assert problem.best == np.inf
    expected = {}
    for constraint, region in relaxed_regions(problem.region):
        rows = region.enumerate(10**6)
        assert rows is not None
        hits = rows[problem.reaches(rows)]
        cost = region.cost(hits).min(initial=np.inf)
        if np.isfinite(cost):
            expected[constraint.words] = float(cost)
    found = compute_relaxations(problem, problem.prover, WORK)
    assert found.is_complete
    assert found.needs_two == (not expected)
    single = [each for each in found.answers if len(each.removed) == 1]
    assert [each.cost for each in single] == pytest.approx(sorted(expected.values()), rel=2e-6)
    for each in single:
        assert each.cost == pytest.approx(expected[each.removed[0].words], rel=2e-6)


def test_answers_name_the_cost_without_a_constraint() -> None:
    data, y = small_data(1)
    space = cfx.Space.from_data(data).fix("b", "g").move({"a": (-1, 1)})
    model = fit_linear(0, data, y)
    query = data.iloc[0]
    top = cfx.reachable(model, query, space).highest
    answer = cfx.explain(model, query, space, f">= {top + 0.5}", rng=0)
    assert answer.proof == "out of reach"
    assert answer.binding
    assert {each.evidence for each in answer.binding} == {"computed"}
    assert {name for each in answer.binding for name in each.features} <= {"a", "b", "g"}
    assert all(each.makes_reachable for each in answer.binding)
    assert str(answer.binding[0]) in str(answer)
