"""Projected gradient ascent: the recurrence, its starts and its certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.data import Real
from bayescfx.potentials import AEP, at_least, change, increase
from bayescfx.search.gradient import ProjectedGradient, natural_step
from bayescfx.space.space import Space
from bayescfx.theory.certificate import LocalOptimum
from tests.search.kinds import AB, KINDS, SMOOTH, Kind, ask, finish, smooth, smooth_slope
from tests.theory.runs import certify_run

# ── the recurrence ──


def test_the_plain_recurrence_is_the_papers() -> None:
    question, _ = ask(SMOOTH, 400)
    search = ProjectedGradient(step=0.3, backtrack=False, gradient=smooth_slope, restarts=0)
    visits = list(search.visits(question))
    rho, scale = AEP(question.output, 2.0), np.array([1.0, 10.0])
    assert len(visits) > 3
    for before, after in pairwise(visits):
        row = pd.DataFrame([before.point], columns=["a", "b"])
        ascent = rho.slope(smooth(row))[0] * smooth_slope(row)[0] * scale
        z = np.clip(before.point / scale + 0.3 * ascent, 0.0, [4.0, 4.0])
        np.testing.assert_allclose(after.point, z * scale, rtol=1e-12)


@pytest.mark.parametrize("backtrack", [True, False])
@pytest.mark.parametrize("gradient", [None, smooth_slope])
def test_it_ends_where_the_certificate_holds(
    backtrack: bool, gradient: Callable[[Any], Any] | None
) -> None:
    question, _ = ask(SMOOTH, 400)
    search = ProjectedGradient(backtrack=backtrack, gradient=gradient)
    visits = list(search.visits(question))
    assert visits[-1].residual <= search.tolerance
    assert all(visit.residual > search.tolerance for visit in visits[:-1])
    assert question.score(np.array([visits[-1].output]))[0] > 0.999
    assert search.run(ask(SMOOTH, 400)[0]) == "converged"


def test_backtracking_never_lowers_the_potential() -> None:
    question, _ = ask(SMOOTH, 400)
    far_too_long = ProjectedGradient(step=50.0, restarts=0)
    visits = list(far_too_long.visits(question))
    outputs = np.array([visit.output for visit in visits])
    assert len(visits) > 2
    assert (np.diff(question.potential.value(outputs)) > 0).all()


def test_a_step_too_long_ends_where_the_potential_is_flat_without_backtracking() -> None:
    question, _ = ask(SMOOTH, 400)
    search = ProjectedGradient(step=50.0, backtrack=False, restarts=0)
    last = list(search.visits(question))[-1]
    assert last.residual <= search.tolerance  # trivially: nothing to climb
    assert question.score(np.array([last.output]))[0] < 1e-9


def test_the_plain_recurrence_gives_up_after_its_iterations() -> None:
    question, _ = ask(SMOOTH, 400)
    search = ProjectedGradient(step=0.01, backtrack=False, restarts=0, iterations=30)
    visits = list(search.visits(question))
    assert len(visits) == 30
    assert visits[-1].residual > search.tolerance


def test_the_path_does_not_depend_on_the_units_of_a_feature() -> None:
    metres = Space({"a": Real(0, 4), "b": Real(0, 40_000)})
    same = Kind(
        metres,
        {"a": 1.0, "b": 10_000.0},
        lambda r: smooth(r.assign(b=r["b"] / 1000.0)),
        lambda r: r["a"] >= 0,
        increase(by=2.0),
    )
    one, _ = ask(SMOOTH, 100)
    two, _ = ask(same, 100)
    paths = [list(ProjectedGradient().visits(question)) for question in (one, two)]
    assert len(paths[0]) == len(paths[1]) > 1
    for near, far in zip(*paths, strict=True):
        np.testing.assert_allclose(near.point * [1.0, 1000.0], far.point, rtol=1e-6)
        assert near.residual == pytest.approx(far.residual, rel=1e-3, abs=1e-7)


def test_a_linear_model_is_solved_in_a_few_steps() -> None:
    question, _ = ask(replace(SMOOTH, model=lambda r: 0.01 * r["a"], target=increase(by=0.02)), 100)
    visits = list(ProjectedGradient().visits(question))
    assert len(visits) < 12
    assert visits[-1].point[0] == pytest.approx(3.0, abs=2e-3)


def test_the_natural_step_is_one_over_the_largest_curvature() -> None:
    question, _ = ask(SMOOTH, 10)
    # |d²/dz² z² exp(-z²)| is largest at 0, where it is 2
    assert natural_step(question, np.array([3.0, 4.0])) == pytest.approx(
        2.0**2 / (2 * 25), rel=1e-2
    )
    assert natural_step(question, np.zeros(2)) == 1.0


# ── starts ──


def test_the_query_is_left_although_the_potential_is_flat_there() -> None:
    question, model = ask(SMOOTH, 400)
    assert question.potential.slope(question.output) == 0.0
    first = next(iter(ProjectedGradient().visits(question)))
    assert (first.point != question.region.query).any()
    assert len(model.rows) == 6  # the query, its two neighbours, the push, its two neighbours


def test_a_query_with_a_slope_is_the_first_visit() -> None:
    question, _ = ask(replace(SMOOTH, target=at_least(4.0)), 400)
    first = next(iter(ProjectedGradient().visits(question)))
    assert (first.point == question.region.query).all()


@pytest.mark.parametrize("query", [0.5, 3.5])
def test_both_sides_of_a_symmetric_wish_are_tried_from_the_query(query: float) -> None:
    # only one of f(q) ± 2 is within the limits
    given = replace(
        SMOOTH, query={"a": query, "b": 10.0}, model=lambda r: r["a"], target=change(by=2.0)
    )
    question, _ = ask(given, 200)
    visits = list(ProjectedGradient(restarts=0).visits(question))
    assert question.accepted(np.array([visits[-1].output]))[0]


def test_random_rows_follow_where_the_query_leads_nowhere() -> None:
    hill = replace(SMOOTH, model=lambda r: np.maximum(r["a"] - 1.5, 0.0), target=increase(by=1.0))
    stuck, _ = ask(hill, 200)
    assert ProjectedGradient(restarts=0).run(stuck) == "converged"
    assert not stuck.reached
    free, _ = ask(hill, 200)
    assert ProjectedGradient().run(free) == "converged"
    assert free.reached


def test_a_query_that_breaks_a_rule_is_no_start() -> None:
    given = replace(SMOOTH, space=AB.require("a >= 2"))
    question, model = ask(given, 60)
    finish(ProjectedGradient(), question)
    assert (model.rows["a"].iloc[1:] >= 2).all()
    assert len(model.rows) > 1


def test_ascent_slides_along_a_linear_rule() -> None:
    # the best point of a + b/10 <= 2.5 for f = 2a + b/10 is (2.5, 0)
    given = Kind(
        AB.require("a + 0.1 * b <= 2.5"),
        {"a": 1.0, "b": 10.0},
        lambda r: 2 * r["a"] + r["b"] / 10,
        lambda r: r["a"] >= 0,
        increase(by=4.0),
    )
    question, _ = ask(given, 400)
    search = ProjectedGradient(restarts=0)
    visits = list(search.visits(question))
    np.testing.assert_allclose(visits[-1].point, [2.5, 0.0], atol=1e-2)
    assert isinstance(certify_run(search, question, visits), LocalOptimum)


# ── what moves ──


def test_only_continuous_features_move_within_an_ascent() -> None:
    question, model = ask(KINDS["mixed"], 60)
    finish(ProjectedGradient(restarts=0), question)
    assert len(model.rows) > 3
    assert model.rows[["b", "c", "d"]].drop_duplicates().shape[0] == 1
    assert model.rows["a"].nunique() > 3


def test_the_bound_on_changes_keeps_the_largest() -> None:
    question, _ = ask(KINDS["at most k"], 100)
    visits = list(ProjectedGradient().visits(question))
    assert question.reached
    changed = question.region.changes(np.array([visit.point for visit in visits]))
    assert (changed.sum(axis=1) == 2).all()
    assert changed[:, 0].all()  # the steepest feature


def test_single_precision_columns_get_single_precision_numbers() -> None:
    table = pd.DataFrame({"a": np.linspace(0, 4, 9, dtype=np.float32), "b": np.float32(3)})
    table.loc[0, "b"] = np.float32(0)
    given = replace(
        SMOOTH,
        space=Space.from_data(table),
        query={"a": 1.0, "b": 3.0},
        model=lambda r: r["a"].astype(float) ** 2,
    )
    question, model = ask(given, 60)
    assert ProjectedGradient().run(question) == "converged"
    assert question.reached
    assert model.rows["a"].dtype == np.float32
