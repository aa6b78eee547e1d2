"""The tabular kernel: trends and steps, against covariances written out entry by entry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import Bounds, minimize

from bayescfx.arrays import Array
from bayescfx.surrogate.evidence import Alike, Hyperparameters
from bayescfx.surrogate.process import GaussianProcess

CATEGORICAL = (3,)
H = Hyperparameters(np.array([0.7, 1.5, 3.0, 2.0]), 1e-2, 2.5, 0.3)


def stairs(X: Array) -> Array:
    y: Array = np.floor(4.0 * X[:, 0]) + 2.0 * (X[:, 1] > 0.4) * (X[:, 3] == 1.0) + 0.5 * X[:, 2]
    return y


def data(n: int = 25, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    X[:, 3] = rng.integers(0, 3, n)
    return X, 10.0 + 5.0 * stairs(X)


def entry(a: Array, b: Array, h: Hyperparameters) -> float:
    """Return one covariance as the formula says."""
    gaps = [
        float(x != y) if j in CATEGORICAL else abs(x - y)
        for j, (x, y) in enumerate(zip(a, b, strict=True))
    ]
    scaled = [g / scale for g, scale in zip(gaps, h.lengthscales, strict=True)]
    t = math.sqrt(5.0 * sum(g * g for g in scaled))
    trend = (1.0 + t + t * t / 3.0) * math.exp(-t)
    step = math.exp(-sum(scaled) / math.sqrt(len(gaps)))
    return h.output_scale * ((1.0 - h.steps) * trend + h.steps * step)


def covariances(A: Array, B: Array, h: Hyperparameters) -> Array:
    return np.array([[entry(a, b, h) for b in B] for a in A])


def process(**settings: float) -> GaussianProcess:
    return GaussianProcess(kernel="tabular", categorical=CATEGORICAL, **settings)  # type: ignore[arg-type]  # floats only


def test_predictions_equal_those_of_covariances_written_out() -> None:
    X, y = data()
    T, _ = data(10, seed=1)
    T[0, 3] = 7.0  # a level that the data do not have
    K = covariances(X, X, H) + H.noise * np.eye(len(X))
    c = covariances(T, X, H)
    z = (y - y.mean()) / y.std()
    mean, std = process().condition(X, y, H).predict(T)
    np.testing.assert_allclose(mean, y.mean() + y.std() * c @ np.linalg.solve(K, z), rtol=1e-10)
    variance = H.output_scale - np.einsum("ij,ji->i", c, np.linalg.solve(K, c.T))
    np.testing.assert_allclose(std, y.std() * np.sqrt(variance), rtol=1e-8)


def test_gradients_equal_central_differences_away_from_known_values() -> None:
    X, y = data()
    T, _ = data(10, seed=1)
    gp = process().condition(X, y, H)
    _, _, d_mean, d_std = gp.predict_gradient(T)
    for j in range(3):
        e = 1e-6 * np.eye(4)[j]
        above, below = gp.predict(T + e), gp.predict(T - e)
        np.testing.assert_allclose(d_mean[:, j], (above[0] - below[0]) / 2e-6, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(d_std[:, j], (above[1] - below[1]) / 2e-6, rtol=1e-5, atol=1e-5)
    assert (d_mean[:, 3] == 0.0).all()


@pytest.mark.parametrize("fixed", [{}, {"noise": 1e-3}, {"output_scale": 2.0}, {"alike": 0.7}])
def test_the_slope_of_the_log_posterior_equals_central_differences(
    fixed: dict[str, float],
) -> None:
    X, y = data()
    posterior = process(**fixed).log_posterior(X, y)
    start = posterior.pack(posterior.mode())
    theta = start + 0.3 * np.random.default_rng(2).standard_normal(len(start))
    slope = [
        (posterior(theta + e)[0] - posterior(theta - e)[0]) / 2e-6
        for e in 1e-6 * np.eye(len(theta))
    ]
    np.testing.assert_allclose(posterior(theta)[1], slope, rtol=1e-5, atol=1e-5)


def test_the_log_posterior_is_the_evidence_plus_the_priors() -> None:
    X, y = data()
    posterior = process(alike=0.7).log_posterior(X, y)
    z = (y - y.mean()) / y.std()
    K = covariances(X, X, H) + H.noise * np.eye(len(X))
    evidence = -0.5 * z @ np.linalg.solve(K, z) - 0.5 * np.linalg.slogdet(2.0 * np.pi * K)[1]
    t, v, s = np.log(H.lengthscales), np.log(H.noise), np.log(H.output_scale)
    odds = np.log(H.steps / (1.0 - H.steps))
    common = t.mean() - np.sqrt(2.0) - 0.5 * np.log(4.0)
    prior = -t.mean() - common**2 / 6.0 - ((t - t.mean()) ** 2).sum() / (2.0 * 0.7**2)
    prior += -v - (v + 4.0) ** 2 / 2.0 - s - (s - np.log(4.0) - 0.49) ** 2 / (2.0 * 0.49)
    prior += -np.log1p(odds**2)  # Cauchy's
    assert posterior(posterior.pack(H))[0] == pytest.approx(evidence + prior, rel=1e-10)
    found = posterior.unpack(posterior.pack(H))
    np.testing.assert_allclose(found.lengthscales, H.lengthscales)
    assert (found.noise, found.output_scale, found.steps) == pytest.approx((1e-2, 2.5, 0.3))


def test_the_optimum_is_not_worse_than_twenty_random_restarts() -> None:
    X, y = data(30)
    gp = process(alike=0.7).fit(X, y)
    posterior = gp.log_posterior(X, y)
    low, high = posterior.bounds
    rng = np.random.default_rng(0)
    starts = rng.uniform(np.maximum(low, -4.0), np.minimum(high, 4.0), (20, len(low)))

    def objective(theta: Array) -> tuple[float, Array]:
        value, gradient = posterior(theta)
        return -value, -gradient

    best = max(
        -float(minimize(objective, t, jac=True, method="L-BFGS-B", bounds=Bounds(low, high)).fun)
        for t in starts
    )
    assert posterior(posterior.pack(gp.hyperparameters))[0] >= best - 1e-4


def test_steps_are_predicted_better_than_by_a_smooth_kernel() -> None:
    errors: dict[str, list[float]] = {"tabular": [], "matern52": []}
    for seed in range(6):
        X, y = data(30, seed)
        T, truth = data(400, seed + 100)
        for kernel, found in errors.items():
            gp = GaussianProcess(kernel=kernel, categorical=CATEGORICAL)
            found.append(float(np.sqrt(np.mean((gp.fit(X, y).predict(T)[0] - truth) ** 2))))
    assert np.mean(errors["tabular"]) < np.mean(errors["matern52"])


def test_adding_points_equals_conditioning_on_all() -> None:
    X, y = data()
    offset, scale = y[:20].mean(), y[:20].std()
    grown = process().condition(X[:20], y[:20], H).with_points(X[20:], y[20:])
    T, _ = data(10, seed=1)
    K = covariances(X, X, H) + H.noise * np.eye(len(X))
    mean = covariances(T, X, H) @ np.linalg.solve(K, (y - offset) / scale)
    np.testing.assert_allclose(grown.predict(T)[0], offset + scale * mean, rtol=1e-9)


def test_samples_have_the_covariance_of_the_posterior() -> None:
    X, y = data(12)
    T, _ = data(4, seed=3)
    gp = process().condition(X, y, H)
    K = covariances(X, X, H) + H.noise * np.eye(len(X))
    c = covariances(T, X, H)
    expected = y.std() ** 2 * (covariances(T, T, H) - c @ np.linalg.solve(K, c.T))
    samples = gp.sample(T, 40_000, np.random.default_rng(0))
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(np.cov(samples.T) / size, expected / size, atol=0.03)


def test_a_share_of_one_can_be_a_start() -> None:
    X, y = data()
    h = Hyperparameters(H.lengthscales, H.noise, H.output_scale, 1.0)
    assert 0.0 < process().fit(X, y, start=h).hyperparameters.steps < 1.0


def test_variables_that_resemble_each_other_are_drawn_together() -> None:
    prior = Alike(1.0, 2.0, 0.5)
    together, _ = prior.log_density(np.array([0.3, 0.3]))
    apart, slope = prior.log_density(np.array([-0.7, 1.3]))
    assert together - apart == pytest.approx(2.0 * 1.0 / (2.0 * 0.25))
    assert slope[0] > 0.0 > slope[1]
