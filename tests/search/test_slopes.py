"""Finite differences, and gradients of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Real
from bayescfx.errors import ModelError
from bayescfx.potentials import increase
from bayescfx.search.gradient import ProjectedGradient
from bayescfx.search.slopes import difference_quotients
from bayescfx.space.space import Space
from tests.search.kinds import AB, SMOOTH, Kind, ask, smooth_slope


class Watched:
    """The model 2a + b, and the rows that it was asked for last."""

    def __init__(self, fails_at: float = np.inf) -> None:
        self.rows = np.empty((0, 2))
        self.fails_at = fails_at

    def __call__(self, X: Array) -> Array:
        self.rows = X
        return np.where(X[:, 0] == self.fails_at, np.nan, 2.0 * X[:, 0] + X[:, 1])


def test_differences_go_where_the_rules_allow() -> None:
    region = AB.require("a <= 1").fix("b").around({"a": 1.0, "b": 10.0})
    f = Watched()
    found = difference_quotients(f, region, region.query, np.array([[0.5, 0.0]]))
    assert f.rows.tolist() == [[1.0, 10.0], [0.5, 10.0]]
    assert found[0] == 12.0
    assert found[1].tolist() == [1.0]  # over the whole move


def test_what_cannot_be_tried_is_not_called_flat() -> None:
    f = Watched()
    locked = AB.require("a + b == 11").around({"a": 1.0, "b": 10.0})
    moves = np.array([[0.5, 0.0], [0.0, 0.5], [0.5, -0.5]])  # the last keeps the rule
    found = difference_quotients(f, locked, locked.query, moves)
    assert f.rows.tolist() == [[1.0, 10.0], [1.5, 9.5]]
    np.testing.assert_array_equal(found[1], [np.nan, np.nan, 0.5])


def test_a_thin_band_is_entered_with_a_shorter_move() -> None:
    f = Watched()
    thin = AB.require("a + b <= 11.001").require("a + b >= 11").around({"a": 1.0, "b": 10.0})
    found = difference_quotients(f, thin, thin.query, np.array([[0.05, 0.0]]))
    assert 0 < f.rows[1, 0] - 1.0 < 1e-3
    assert found[1] == pytest.approx([0.1])


def test_differences_on_a_grid_are_whole_steps() -> None:
    region = Space({"a": Real(0, 1), "b": Integer(0, 9)}).around({"a": 1.0, "b": 3})
    f = Watched()
    found = difference_quotients(f, region, region.query, np.diag([0.25, 1.0]))
    assert f.rows.tolist() == [[1.0, 3.0], [0.75, 3.0], [1.0, 4.0]]
    assert found[1].tolist() == [0.5, 1.0]


def test_a_difference_without_an_output_is_not_known() -> None:
    region = AB.around({"a": 1.0, "b": 10.0})
    f = Watched(fails_at=1.5)
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
def test_a_gradient_may_come_in_any_of_three_shapes(gradient: Callable[[Any], Any]) -> None:
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
        increase(by=0.5),
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
def test_a_wrong_gradient_is_explained(gradient: Callable[[Any], Any], message: str) -> None:
    question, _ = ask(MIXED, 100)
    with pytest.raises(ModelError, match=message):
        ProjectedGradient(gradient=gradient).run(question)
