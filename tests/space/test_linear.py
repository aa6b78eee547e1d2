"""The projection onto a box with linear rules, and the slice of a region that it is for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, linprog, minimize

from bayescfx.arrays import Array
from bayescfx.data import Integer, Real
from bayescfx.errors import InfeasibleError
from bayescfx.space.linear import Polytope, project_linear, violation
from bayescfx.space.slice import Slice
from bayescfx.space.space import Space


@given(
    seed=st.integers(0, 10_000),
    k=st.integers(1, 6),
    rules=st.integers(0, 4),
)
@settings(max_examples=60, deadline=None)
def test_the_projection_is_the_nearest_point(seed: int, k: int, rules: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rules, k)) * 10.0 ** rng.uniform(-2, 2, size=(rules, 1))
    middle = rng.uniform(0.2, 0.8, size=k)
    body = Polytope(
        np.zeros(k), np.ones(k), A, A @ middle + rng.uniform(0, 0.3, rules) * np.abs(A).sum(axis=1)
    )
    z = rng.normal(scale=2.0, size=k)
    nearest = body.project(z)
    size = np.abs(A).sum(axis=1) + 1.0
    assert (A @ nearest - body.b <= 1e-9 * size).all()
    assert ((nearest >= 0) & (nearest <= 1)).all()
    # variational inequality: no point of the set lies on z's side of the supporting plane
    for vertex in _vertices(body, z, rng):
        assert (z - nearest) @ (vertex - nearest) <= 1e-7 * (1.0 + np.linalg.norm(z))


def _vertices(body: Polytope, z: Array, rng: np.random.Generator) -> list[Array]:
    """Return points of the set that are extreme in some direction, towards `z` included."""
    found = []
    bounds = list(zip(body.low, body.high, strict=True))
    for direction in (z - body.project(z), *rng.normal(size=(4, len(z)))):
        found.append(np.asarray(linprog(-direction, body.A, body.b, bounds=bounds).x))
    return found


def test_the_projection_agrees_with_a_general_solver() -> None:
    A, b = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, -2.0]]), np.array([1.0, 0.1])
    body = Polytope(np.zeros(3), np.ones(3), A, b)
    z = np.array([1.4, 0.9, -0.3])

    def squared(x: Array) -> float:
        return float(((x - z) ** 2).sum())

    rules = LinearConstraint(A, ub=b)
    general = minimize(
        squared, np.full(3, 0.1), bounds=[(0, 1)] * 3, constraints=rules, method="SLSQP", tol=1e-12
    )
    np.testing.assert_allclose(body.project(z), general.x, atol=1e-6)


def test_linear_rules_over_other_features_count_with_their_values() -> None:
    space = Space({"a": Real(0, 4), "n": Integer(0, 9), "c": Real(0, 4)}).require("a + n <= 5")
    region = space.around({"a": 1.0, "n": 3, "c": 1.0})
    part = Slice(region, region.query)
    assert part.features.tolist() == [0, 2]
    np.testing.assert_allclose(part.project(np.array([9.0, 1.0])), [2.0, 1.0])


def test_an_empty_set_is_an_error() -> None:
    body = Polytope(np.zeros(1), np.ones(1), np.array([[-1.0]]), np.array([-2.0]))
    with pytest.raises(InfeasibleError, match="no point of the limits satisfies every linear rule"):
        body.project(np.array([0.5]))


def random_rules(seed: int, n: int = 20, k: int = 5, rules: int = 3) -> tuple[Array, Array, Array]:
    """Return points (n, k), and rules (rules, k) with bounds that leave room around 0.5."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rules, k))
    b = A @ np.full(k, 0.5) + rng.uniform(0.0, 0.2, rules)
    return rng.normal(0.5, 2.0, size=(n, k)), A, b


def test_a_diagonal_metric_and_its_matrix_give_the_same_points() -> None:
    Z, A, b = random_rules(0)
    metric = np.random.default_rng(1).uniform(0.5, 2.0, size=Z.shape)
    diagonal = project_linear(Z, A, b, metric)
    matrix = project_linear(Z, A, b, metric[:, :, None] * np.eye(Z.shape[1]))
    np.testing.assert_allclose(diagonal.points, matrix.points, atol=1e-9)
    np.testing.assert_allclose(diagonal.multipliers, matrix.multipliers, atol=1e-9)


def test_rules_may_differ_from_point_to_point() -> None:
    Z, A, b = random_rules(2)
    metric = np.ones(Z.shape)
    shared = project_linear(Z, A, b, metric).points
    own = project_linear(Z, np.tile(A, (len(Z), 1, 1)), np.tile(b, (len(Z), 1)), metric).points
    np.testing.assert_array_equal(shared, own)


def test_the_multipliers_satisfy_the_optimality_conditions() -> None:
    Z, A, b = random_rules(3)
    root = np.random.default_rng(4).normal(size=(len(Z), 5, 5))
    metric = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(5)
    points, multipliers = project_linear(Z, A, b, metric)
    assert (multipliers >= 0.0).all()
    assert (violation(points, A, b) == 0.0).all()
    moved = (metric @ (multipliers @ A)[:, :, None])[:, :, 0]
    np.testing.assert_allclose(Z - points, moved, atol=1e-8)
    slack = b - points @ A.T
    assert np.abs(slack[multipliers > 0.0]).max() < 1e-9  # only rules that are met exactly push


def test_points_that_satisfy_every_rule_stay() -> None:
    _, A, b = random_rules(5)
    inside = np.full((3, 5), 0.5)
    found = project_linear(inside, A, b, np.ones(inside.shape), np.zeros(5), np.ones(5))
    np.testing.assert_array_equal(found.points, inside)
    assert not found.multipliers.any()


def test_a_coordinate_far_beyond_its_limit_comes_back_into_the_rules() -> None:
    A, b = np.array([[1.0, 0.0]]), np.array([0.25])
    Z = np.array([[50.0, 0.5]])
    found = project_linear(Z, A, b, np.ones((1, 2)), np.zeros(2), np.ones(2)).points
    np.testing.assert_allclose(found, [[0.25, 0.5]], atol=1e-9)


def test_an_equation_is_met_on_both_sides() -> None:
    A = np.array([[1.0, 2.0, -1.0], [-1.0, -2.0, 1.0]])
    b = np.array([0.5, -0.5])
    Z = np.random.default_rng(6).normal(size=(50, 3))
    found = project_linear(Z, A, b, np.ones(Z.shape), np.full(3, -5.0), np.full(3, 5.0)).points
    np.testing.assert_allclose(found @ A[0], 0.5, atol=1e-10)
    # What is left of the way is perpendicular to the equation.
    away = Z - found
    np.testing.assert_allclose(away, (away @ A[0])[:, None] * A[0] / (A[0] @ A[0]), atol=1e-9)


def test_contradictory_rules_end_without_an_error() -> None:
    A, b = np.array([[1.0], [-1.0]]), np.array([0.2, -0.8])  # at most 0.2, at least 0.8
    found = project_linear(np.array([[0.5]]), A, b, np.ones((1, 1)), np.zeros(1), np.ones(1))
    assert np.isfinite(found.points).all()
