"""The fitted surrogate: its settings, and when hyperparameters are learned."""

from __future__ import annotations

import numpy as np
import pytest

import bayescfx as cfx
from bayescfx.data import Real
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from bayescfx.surrogate.fit import SurrogateSettings, fit_surrogate


@pytest.mark.parametrize("points", [-1, 1, 2.5, "many", True])
def test_points_must_be_a_whole_number(points: object) -> None:
    with pytest.raises(cfx.SettingsError, match="`points` must be a whole number of at least 2"):
        cfx.SurrogateSettings(points=points)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("wrong", ["matern", "", None, ["rbf"]])
def test_unknown_kernel_is_an_error(wrong: object) -> None:
    with pytest.raises(cfx.SettingsError, match="`kernel` must be one of 'matern52', 'rbf', 't"):
        cfx.SurrogateSettings(kernel=wrong)  # type: ignore[arg-type]  # the point


def test_unknown_mean_is_an_error() -> None:
    with pytest.raises(cfx.SettingsError, match="`mean` must be 'standard' or 'zero'; got 'one'"):
        cfx.SurrogateSettings(mean="one")


def test_hyperparameters_are_learned_less_often_as_rows_accumulate() -> None:
    region = Space({name: Real(0, 1) for name in "abcd"}).around(dict.fromkeys("abcd", 0.3))
    X = sample(region, 60, np.random.default_rng(0))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 - 0.3 * X[:, 2] + 0.1 * X[:, 3]
    first = fit_surrogate(SurrogateSettings(), region, X[:40], y[:40])
    second = fit_surrogate(SurrogateSettings(), region, X[:45], y[:45], first)
    third = fit_surrogate(SurrogateSettings(), region, X[:55], y[:55], second)
    assert (first.n_rows, second.n_rows, third.n_rows) == (40, 40, 55)
    assert second.posterior.prior.h == first.posterior.prior.h
    mean, _ = second.predict(X[:45])
    assert mean == pytest.approx(y[:45], abs=0.1)
