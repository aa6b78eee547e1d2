"""Menus of linear models, against enumeration."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import bayescfx as cfx
from bayescfx.search.exact.branching import Work
from bayescfx.search.exact.linear_menus import make_linear_menu
from tests.search.exact.linear_problems import make_linear_problem


@pytest.mark.parametrize("seed", range(10))
def test_costs_equal_brute_force(seed: int) -> None:
    problem = make_linear_problem(seed)
    region = problem.region
    menu = make_linear_menu(
        problem.form, region, problem.accepted_sums, Work(), (1, 2, 3), problem.reaches
    )
    assert [e.features for e in menu if len(e.features) == 1] == [(j,) for j in region.free]
    changes = region.changes(problem.rows)
    for entry in menu:
        others = np.setdiff1d(np.arange(len(region.query)), entry.features)
        best = problem.costs[~changes[:, others].any(axis=1)].min(initial=np.inf)
        assert entry.is_proven
        if np.isinf(best):
            assert entry.status == "cannot"
            assert entry.row is None
            continue
        assert entry.status == "reaches"
        assert entry.cost == pytest.approx(best, rel=2e-6)
        assert entry.row is not None
        assert problem.reaches(entry.row[None]).all()
        assert not region.changes(entry.row[None])[0, others].any()


def test_without_work_nothing_false_is_claimed() -> None:
    for seed in range(4):
        problem = make_linear_problem(seed)
        region = problem.region
        menu = make_linear_menu(
            problem.form, region, problem.accepted_sums, Work(most=0.0), (1, 2), problem.reaches
        )
        changes = region.changes(problem.rows)
        for entry in menu:
            others = np.setdiff1d(np.arange(len(region.query)), entry.features)
            best = problem.costs[~changes[:, others].any(axis=1)].min(initial=np.inf)
            if entry.is_proven:
                assert entry.lowest_cost == pytest.approx(best, rel=2e-6)


def test_menu_of_an_explained_linear_answer_is_shown() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.integers(0, 9, (80, 3)), columns=list("abc"))
    model = LinearRegression().fit(data, 2.0 * data.a + data.b + 0.01 * data.c)
    query = pd.DataFrame({"a": [2], "b": [2], "c": [2]}).iloc[0]
    answer = cfx.explain(model, query, cfx.Space.from_data(data), ">= 16", rng=0, menu=True)
    assert answer.menu is not None
    status = {item.name: item.status for item in answer.menu}
    assert (status["a alone"], status["b alone"], status["a and b"]) == (
        "reaches",
        "cannot",
        "reaches",
    )
    assert str(answer.menu) in str(answer)
    assert answer.menu == cfx.menu(model, query, cfx.Space.from_data(data), ">= 16")
