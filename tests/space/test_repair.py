"""Repair: rows that break rules, made allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from bayescfx.data import Feature, Real
from bayescfx.space.linear import coordinate_corrections, project_linear
from bayescfx.space.repair import project, repair
from bayescfx.space.space import Space

CUBE: dict[Any, Feature] = {f"x{j}": Real(0, 1) for j in range(10)}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
@example(4651)  # the rows rest for a while before they move on
def test_projection_finds_the_nearest_point_of_a_polytope(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d = 4
    inner = rng.uniform(0.2, 0.8, d)
    A = rng.normal(size=(3, d))
    b = A @ inner + rng.uniform(0, 0.2, 3)
    scale = rng.uniform(0.5, 2, d)
    x = rng.uniform(-0.5, 1.5, d)
    [z] = project_linear(x[None], A, b, scale[None] ** 2, np.zeros(d), np.ones(d)).points
    assert (A @ z <= b + 1e-9).all()
    assert ((z >= 0) & (z <= 1)).all()
    best: Any = minimize(  # type: ignore[call-overload]  # the stubs lack this mix
        lambda y: float((((y - x) / scale) ** 2).sum()),
        inner,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * d,
        constraints=LinearConstraint(A, -np.inf, b),
        tol=1e-14,
    )
    assert (((z - x) / scale) ** 2).sum() <= best.fun * 1.001 + 1e-6


def test_projection_keeps_fixed_coordinates() -> None:
    A, b = np.array([[1.0, 1.0]]), np.array([1.0])
    X = np.array([[2.0, 3.0], [2.0, 3.0]])
    mobility = np.array([[1.0, 0.0], [0.0, 0.0]])
    found = project_linear(X, A, b, mobility, np.full(2, -10.0), np.full(2, 10.0)).points
    np.testing.assert_allclose(found, [[-2, 3], [2, 3]], atol=1e-9)


def test_corrections_move_single_coordinates_by_whole_steps() -> None:
    A, b = np.array([[2.0, 3.0, 1.0]]), np.array([5.0])
    X = np.array([[2.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    moving = np.ones((2, 3), dtype=bool)
    found, origin = coordinate_corrections(X, A, b, np.array([1.0, 1.0, 0.0]), moving)
    assert origin.tolist() == [0, 0, 0]
    np.testing.assert_allclose(found, [[-1, 2, 0], [2, 0, 0], [2, 2, -5]], atol=1e-9)
    assert (found @ A[0] <= b[0] + 1e-12).all()


def test_projection_returns_allowed_rows_near_the_given_ones() -> None:
    space = Space(CUBE).require("x0 + x1 <= 1").max_changes(3)
    region = space.around(dict.fromkeys(CUBE, 0.25))
    X = np.full((1, 10), 0.25)
    X[0, :4] = [0.9, 0.8, 0.3, 5.0]
    [row] = project(region, X)
    # the smallest of four changes goes back, the limit of x3 holds, the rule is met on its edge
    np.testing.assert_allclose(row[:4], [0.55, 0.45, 0.25, 1.0], atol=1e-6)
    rows, kept = repair(region, np.concatenate([X, X]))
    assert kept.tolist() == [True, True]
    np.testing.assert_array_equal(rows[0], row)


def test_projection_drops_rows_that_cannot_be_repaired() -> None:
    region = Space(CUBE).require(lambda d: d["x0"] > 2, "never").around(dict.fromkeys(CUBE, 0.5))
    assert project(region, np.random.default_rng(0).random((5, 10))).shape == (0, 10)
