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
from bayescfx.space.linear import Polytope
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
