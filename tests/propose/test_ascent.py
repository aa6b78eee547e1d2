"""The ascent alone, under rules and kinks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, minimize

from bayescfx.arrays import Array
from bayescfx.ascent import AscentBox, ascend
from tests.propose.functions import generator


def test_an_ascent_under_rules_and_kinks_ends_at_the_constrained_maximum() -> None:
    rng = generator(4)
    d, m, worth = 5, 12, 0.5
    root = rng.normal(size=(d, d))
    M = root @ root.T + 0.1 * np.eye(d)
    centre, A, b = rng.normal(size=d), rng.normal(size=(3, d)), np.full(3, 0.3)

    def kinked(X: Array) -> tuple[Array, Array]:
        Z = X - centre
        value = -0.5 * np.einsum("ni,ij,nj->n", Z, M, Z) - worth * np.abs(X).sum(axis=1)
        return value, -Z @ M - worth * np.sign(X)

    start = rng.uniform(-0.01, 0.01, size=(m, d))
    span = np.full((m, d), 4.0)
    box = AscentBox(
        np.tile(np.arange(d), (m, 1)), -span / 2, span / 2, span, np.zeros((m, d)), A, b
    )
    X, value, _ = ascend(kinked, start, box, iterations=200, tolerance=1e-10)
    assert (b >= X @ A.T).all()

    def split(z: Array) -> float:  # positive and negative parts: smooth
        x = z[:d] - z[d:]
        return float(0.5 * (x - centre) @ M @ (x - centre) + worth * z.sum())

    exact = minimize(
        split,
        np.full(2 * d, 0.01),
        method="SLSQP",
        bounds=Bounds(np.zeros(2 * d), np.full(2 * d, 2.0)),
        constraints=LinearConstraint(np.hstack([A, -A]), ub=b),
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert value.max() == pytest.approx(-exact.fun, abs=1e-4)
