"""Hyperparameters: evidence, priors, and the posterior mode."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize

from bayescfx.arrays import Array
from bayescfx.deadline import Deadline
from bayescfx.errors import OutOfTime
from bayescfx.surrogate.evidence import Hyperparameters, Priors
from bayescfx.surrogate.process import GaussianProcess
from tests.surrogate.rows import (
    KERNEL_NAMES,
    central_differences,
    data,
    log_posterior,
    mixed_data,
    peer,
)

# ── gradients ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.parametrize("noise", [False, True])
def test_gradients_with_respect_to_the_rows_equal_central_differences(
    kernel: str, noise: bool
) -> None:
    X, y = data()
    gp = GaussianProcess(kernel=kernel).fit(X, y)
    T = np.random.default_rng(2).random((40, 4))
    mean, std, dmean, dstd = gp.predict_gradient(T, noise=noise)
    np.testing.assert_array_equal(mean, gp.predict(T, noise=noise)[0])
    np.testing.assert_array_equal(std, gp.predict(T, noise=noise)[1])
    scale = y.std()
    for got, which in ((dmean, 0), (dstd, 1)):
        expected = central_differences(lambda Z, i=which: gp.predict(Z, noise=noise)[i], T)  # type: ignore[misc]  # i is bound per loop
        np.testing.assert_allclose(got / scale, expected / scale, atol=1e-6)


def test_gradients_are_zero_in_unordered_columns_and_right_in_the_others() -> None:
    X, y = mixed_data()
    gp = GaussianProcess(categorical=(1, 3)).fit(X, y)
    T, _ = mixed_data(seed=4)
    _, _, dmean, dstd = gp.predict_gradient(T)
    assert not dmean[:, [1, 3]].any()
    assert not dstd[:, [1, 3]].any()
    expected = central_differences(lambda Z: gp.predict(Z)[0], T)
    np.testing.assert_allclose(dmean[:, [0, 2]], expected[:, [0, 2]], atol=1e-6)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.parametrize("fixed", [{}, {"noise": 1e-3}, {"output_scale": 2.0}])
def test_the_gradient_of_the_log_posterior_equals_central_differences(
    kernel: str, fixed: dict[str, float]
) -> None:
    X, y = mixed_data()
    posterior = log_posterior(X, y, kernel=kernel, categorical=(1, 3), **fixed)
    rng = np.random.default_rng(3)
    low, high = posterior.bounds
    for _ in range(5):
        theta = rng.uniform(np.maximum(low, -2.0), np.minimum(high, 2.0))
        gradient = posterior(theta)[1]
        expected = central_differences(
            lambda t: np.array([posterior(row)[0] for row in t]), theta[None], step=1e-5
        )[0]
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)


# ── hyperparameters ──────────────────────────────────────────────────────────────────────────


def test_the_log_posterior_is_the_evidence_plus_the_priors() -> None:
    X, y = data()
    posterior = log_posterior(X, y, kernel="rbf", output_scale=1.0)
    h = Hyperparameters(np.array([0.4, 0.9, 2.0, 5.0]), 1e-2)
    evidence = peer("rbf", h, normalise=True).fit(X, y).log_marginal_likelihood_value_
    location, spread = np.sqrt(2.0) + 0.5 * np.log(4.0), np.sqrt(3.0)
    t, v = np.log(h.lengthscales), np.log(h.noise)
    # log-normal densities up to their constants
    prior = np.sum(-t - (t - location) ** 2 / (2 * spread**2)) - v - (v + 4.0) ** 2 / 2.0
    assert posterior(posterior.pack(h))[0] == pytest.approx(evidence + prior, rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "d"), [(6, 3), (20, 3), (40, 8)])
@pytest.mark.parametrize("output_scale", [None, 1.0])
def test_the_optimum_is_not_worse_than_twenty_random_restarts(
    n: int, d: int, seed: int, output_scale: float | None
) -> None:
    X, y = data(n, d, seed)
    if seed % 2:
        y = np.round(y / 20.0)  # a step function has several optima
    gp = GaussianProcess(output_scale=output_scale).fit(X, y)
    posterior = gp.log_posterior(X, y)
    low, high = posterior.bounds

    def objective(theta: Array) -> tuple[float, Array]:
        value, gradient = posterior(theta)
        return -value, -gradient

    rng = np.random.default_rng(seed)
    starts = rng.uniform(np.maximum(low, -4.0), np.minimum(high, 4.0), (20, len(low)))
    bounds = Bounds(low, high)
    best = max(
        -float(minimize(objective, t, jac=True, method="L-BFGS-B", bounds=bounds).fun)
        for t in starts
    )
    assert posterior(posterior.pack(gp.hyperparameters))[0] >= best - 1e-5


def test_fitting_is_deterministic_and_does_not_change_its_input() -> None:
    X, y = data()
    X0, y0 = X.copy(), y.copy()
    a, b = GaussianProcess().fit(X, y), GaussianProcess().fit(X, y)
    np.testing.assert_array_equal(X, X0)
    np.testing.assert_array_equal(y, y0)
    np.testing.assert_array_equal(a.hyperparameters.lengthscales, b.hyperparameters.lengthscales)
    X[:], y[:] = 0.5, 0.0  # the fitted process keeps data of its own
    np.testing.assert_array_equal(a.predict(X0)[0], b.predict(X0)[0])


def test_a_warm_start_reaches_the_optimum_of_a_cold_one() -> None:
    X, y = data(40)
    earlier = GaussianProcess().fit(X[:36], y[:36]).hyperparameters
    warm, cold = GaussianProcess().fit(X, y, start=earlier), GaussianProcess().fit(X, y)
    posterior = cold.log_posterior(X, y)
    heights = [posterior(posterior.pack(gp.hyperparameters))[0] for gp in (warm, cold)]
    assert heights[0] == pytest.approx(heights[1], abs=1e-2)


def test_a_hopeless_warm_start_is_replaced_by_the_mode_of_the_priors() -> None:
    X, y = data(40)
    hopeless = Hyperparameters(np.full(4, 0.03), 1.0)
    gp = GaussianProcess().fit(X, y, start=hopeless)
    mean, _ = gp.predict(X)
    assert np.std(mean - y) < 0.1 * np.std(y)


def test_irrelevant_features_get_longer_lengthscales() -> None:
    X, y = data(40, 6)
    lengthscales = GaussianProcess().fit(X, y).hyperparameters.lengthscales
    assert lengthscales[:2].max() < lengthscales[3:].min()


def test_columns_that_do_not_vary_get_the_mode_of_the_prior_and_change_nothing() -> None:
    X, y = data()
    wide = np.concatenate([X, np.full((len(X), 2), 0.3)], axis=1)
    gp, reference = GaussianProcess().fit(wide, y), GaussianProcess().fit(X, y)
    lengthscales = gp.hyperparameters.lengthscales
    mode = np.exp(Priors.for_dimensions(4).lengthscale.log_mode)
    np.testing.assert_allclose(lengthscales[4:], mode)
    np.testing.assert_allclose(lengthscales[:4], reference.hyperparameters.lengthscales)
    T = wide[:3].copy()
    T[:, 4] = 0.9  # moving along an unseen direction makes the process less sure
    assert np.all(gp.predict(T)[1] > gp.predict(wide[:3])[1])


def test_dimensions_override_the_number_of_varied_columns() -> None:
    X, y = data()
    few, many = (
        GaussianProcess(dimensions=d).fit(X, y).hyperparameters.lengthscales for d in (1, 1000)
    )
    assert np.all(many > few)


def test_fixed_hyperparameters_are_kept() -> None:
    X, y = data()
    h = GaussianProcess(noise=0.01, output_scale=2.0).fit(X, y).hyperparameters
    assert (h.noise, h.output_scale) == (0.01, 2.0)


def test_the_deadline_ends_a_fit() -> None:
    X, y = data()
    with pytest.raises(OutOfTime):
        GaussianProcess().fit(X, y, deadline=Deadline.after(0.0))
