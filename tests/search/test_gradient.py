"""Projected gradient ascent: the recurrence, its starts and its certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Real
from bayescfx.errors import ModelError
from bayescfx.explainer.functions import explain
from bayescfx.potentials import (
    AEP,
    Target,
    at_least,
    between,
    change,
    decrease,
    increase,
    reach,
)
from bayescfx.search.gradient import ProjectedGradient, difference_quotients, natural_step
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
        reach(by=2.0),
    )
    one, _ = ask(SMOOTH, 100)
    two, _ = ask(same, 100)
    paths = [list(ProjectedGradient().visits(question)) for question in (one, two)]
    assert len(paths[0]) == len(paths[1]) > 1
    for near, far in zip(*paths, strict=True):
        np.testing.assert_allclose(near.point * [1.0, 1000.0], far.point, rtol=1e-6)
        assert near.residual == pytest.approx(far.residual, rel=1e-3, abs=1e-7)


def test_a_linear_model_is_solved_in_a_few_steps() -> None:
    question, _ = ask(replace(SMOOTH, model=lambda r: 0.01 * r["a"], target=reach(by=0.02)), 100)
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
def test_both_sides_of_a_symmetric_target_are_tried_from_the_query(query: float) -> None:
    # only one of f(q) ± 2 is within the limits
    given = replace(
        SMOOTH, query={"a": query, "b": 10.0}, model=lambda r: r["a"], target=change(by=2.0)
    )
    question, _ = ask(given, 200)
    visits = list(ProjectedGradient(restarts=0).visits(question))
    assert question.accepted(np.array([visits[-1].output]))[0]


def test_random_rows_follow_where_the_query_leads_nowhere() -> None:
    hill = replace(SMOOTH, model=lambda r: np.maximum(r["a"] - 1.5, 0.0), target=reach(by=1.0))
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
        reach(by=4.0),
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


# ── finite differences, and gradients of the user ──


class Recorded:
    """The model 2a + b, and the rows it scored last."""

    def __init__(self, fails_at: float = np.inf) -> None:
        self.rows = np.empty((0, 2))
        self.fails_at = fails_at

    def __call__(self, X: Array) -> Array:
        self.rows = X
        return np.where(X[:, 0] == self.fails_at, np.nan, 2.0 * X[:, 0] + X[:, 1])


def test_differences_go_where_the_rules_allow() -> None:
    region = AB.require("a <= 1").fix("b").around({"a": 1.0, "b": 10.0})
    f = Recorded()
    found = difference_quotients(f, region, region.query, np.array([[0.5, 0.0]]))
    assert f.rows.tolist() == [[1.0, 10.0], [0.5, 10.0]]
    assert found[0] == 12.0
    assert found[1].tolist() == [1.0]  # over the whole move


def test_a_blocked_direction_is_not_flat() -> None:
    f = Recorded()
    locked = AB.require("a + b == 11").around({"a": 1.0, "b": 10.0})
    moves = np.array([[0.5, 0.0], [0.0, 0.5], [0.5, -0.5]])  # the last keeps the rule
    found = difference_quotients(f, locked, locked.query, moves)
    assert f.rows.tolist() == [[1.0, 10.0], [1.5, 9.5]]
    np.testing.assert_array_equal(found[1], [np.nan, np.nan, 0.5])


def test_a_thin_band_is_entered_with_a_shorter_move() -> None:
    f = Recorded()
    thin = AB.require("a + b <= 11.001").require("a + b >= 11").around({"a": 1.0, "b": 10.0})
    found = difference_quotients(f, thin, thin.query, np.array([[0.05, 0.0]]))
    assert 0 < f.rows[1, 0] - 1.0 < 1e-3
    assert found[1] == pytest.approx([0.1])


def test_differences_on_a_grid_are_whole_steps() -> None:
    region = Space({"a": Real(0, 1), "b": Integer(0, 9)}).around({"a": 1.0, "b": 3})
    f = Recorded()
    found = difference_quotients(f, region, region.query, np.diag([0.25, 1.0]))
    assert f.rows.tolist() == [[1.0, 3.0], [0.75, 3.0], [1.0, 4.0]]
    assert found[1].tolist() == [0.5, 1.0]


def test_a_difference_without_an_output_is_not_known() -> None:
    region = AB.around({"a": 1.0, "b": 10.0})
    f = Recorded(fails_at=1.5)
    found = difference_quotients(f, region, region.query, 0.5 * np.eye(2))
    np.testing.assert_array_equal(found[1], [np.nan, 0.5])


MIXED = replace(
    SMOOTH,
    space=Space({"k": Categorical(["x", "y"]), "a": Real(0, 4), "b": Real(0, 40)}),
    query={"k": "x", "a": 1.0, "b": 10.0},
)


@pytest.mark.parametrize(
    "gradient",
    [
        smooth_slope,  # numeric columns
        lambda r: np.column_stack([np.full(len(r), np.nan), smooth_slope(r)]),  # every column
        lambda r: pd.DataFrame(smooth_slope(r), columns=["a", "b"])[["b", "a"]],  # by name
    ],
)
def test_a_gradient_may_have_any_of_three_shapes(gradient: Callable[[Any], Any]) -> None:
    question, model = ask(MIXED, 100)
    visits = list(ProjectedGradient(gradient=gradient, restarts=0).visits(question))
    plain, _ = ask(SMOOTH, 100)
    expected = list(ProjectedGradient(gradient=smooth_slope, restarts=0).visits(plain))
    np.testing.assert_allclose([v.point[1:] for v in visits], [v.point for v in expected])
    assert len(model.rows) < 3 * len(visits)  # no rows for differences


def test_arrays_give_gradients_by_column() -> None:
    w = np.array([1.0, 2.0])
    given = Kind(
        Space.from_data(np.random.default_rng(0).uniform(size=(50, 2))),
        np.array([0.2, 0.2]),
        lambda rows: rows @ w,
        lambda rows: rows >= 0,
        reach(by=0.5),
    )
    question, model = ask(given, 40)
    search = ProjectedGradient(gradient=lambda rows: np.tile(w, (len(rows), 1)))
    assert search.run(question) == "converged"
    assert question.reached
    assert isinstance(model.calls[-1], np.ndarray)


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        (
            lambda r: np.zeros((len(r), 5)),
            r"`gradient` must return shape \(1, 3\), one derivative per column of the rows; "
            r"got \(1, 5\).",
        ),
        (
            lambda r: np.full((len(r), 2), np.inf),
            "`gradient` must return finite numbers; got inf for 'a'. Leave it out to use finite",
        ),
        (
            lambda r: pd.DataFrame({"a": np.zeros(len(r))}),
            "`gradient` must return finite numbers; got nan for 'b'.",
        ),
    ],
)
def test_a_wrong_gradient_raises(gradient: Callable[[Any], Any], message: str) -> None:
    question, _ = ask(MIXED, 100)
    with pytest.raises(ModelError, match=message):
        ProjectedGradient(gradient=gradient).run(question)


@pytest.mark.parametrize(
    ("target", "bound"),
    [
        (increase(by=1.0), 4.0),
        (at_least(4.5), 4.5),
        (decrease(by=1.0), 2.0),
        (between(5.0, 9.0), 5.0),
    ],
    ids=str,
)
def test_a_step_far_into_a_side_is_taken_back_to_its_bound(target: Target, bound: float) -> None:
    space = Space({"a": Real(0, 10), "b": Real(0, 10)})
    answer = explain(
        lambda r: r["a"] + 0.5 * r["b"], [2.0, 2.0], space, target,
        method="gradient", budget=100, rng=0, short_decimals=False,
    )  # fmt: skip
    assert answer.reached
    # a thousandth of the way back is left
    assert answer.best.output == pytest.approx(bound, abs=0.01)
