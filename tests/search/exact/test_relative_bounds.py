"""Changes by a round amount in linear models with round coefficients."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import bayescfx as cfx


def linear(coefficients: list[float], intercept: float) -> LinearRegression:
    """Return a model with these coefficients."""
    names = [f"x{k}" for k in range(len(coefficients))]
    frame = pd.DataFrame(np.eye(len(coefficients)), columns=names)
    model = LinearRegression().fit(frame, np.zeros(len(frame)))
    model.coef_ = np.array(coefficients)
    model.intercept_ = intercept
    return model


@pytest.mark.parametrize("seed", range(12))
def test_the_nearest_row_on_the_grid_is_exactly_at_the_bound_and_proven(seed: int) -> None:
    rng = np.random.default_rng(seed)
    coefficients = rng.choice([0.1, 0.2, 0.3, 0.7, -0.6, -0.1], 4)
    coefficients[0] = 0.1
    model = linear(coefficients.tolist(), 0.3)
    names = list(model.feature_names_in_)
    space = cfx.Space({name: cfx.Real(0, 40, step=0.1) for name in names}).allow("x0")
    query = pd.Series(rng.integers(0, 200, 4) / 10.0, index=names)
    for by in (1.0, 0.7):
        answer = cfx.explain(model, query, space, cfx.increase(by=by), rng=0)
        assert answer.reached
        assert answer.proof == "optimal"
        ((_, after),) = [answer.best.changes["x0"]]
        assert after - query["x0"] == pytest.approx(10 * by, abs=1e-9)
