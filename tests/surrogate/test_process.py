"""The Gaussian process: against scikit-learn, conditioning, robustness, errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescfx.arrays import Array
from bayescfx.errors import SurrogateWarning
from bayescfx.surrogate.evidence import Hyperparameters
from bayescfx.surrogate.kernels import matern52, rbf
from bayescfx.surrogate.posterior import cholesky
from bayescfx.surrogate.process import GaussianProcess
from tests.surrogate.rows import (
    KERNEL_NAMES,
    data,
    mixed_data,
    peer,
)


def one_hot(X: Array, lengthscales: Array, levels: dict[int, int]) -> tuple[Array, Array]:
    """Return rows with one-hot blocks over √2, and a lengthscale for every new column."""
    blocks, scales = [], []
    for j in range(X.shape[1]):
        block = X[:, [j]]
        if j in levels:
            block = (block == np.arange(levels[j])) / np.sqrt(2.0)
        blocks.append(block)
        scales += [lengthscales[j]] * block.shape[1]
    return np.concatenate(blocks, axis=1), np.array(scales)


# ── kernels ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kernel", [rbf, matern52])
def test_the_slope_of_a_kernel_is_its_derivative(
    kernel: Callable[[Array], tuple[Array, Array]],
) -> None:
    s = np.geomspace(1e-3, 50.0, 40)
    h = 1e-6 * s
    difference = (kernel(s + h)[0] - kernel(s - h)[0]) / (2.0 * h)
    np.testing.assert_allclose(kernel(s)[1], difference, rtol=1e-7, atol=1e-12)


# ── against scikit-learn ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.parametrize("mean", ["standard", "zero"])
@pytest.mark.parametrize("scale", [1.0, 3.7])
def test_predictions_equal_scikit_learn_at_the_same_hyperparameters(
    kernel: str, mean: str, scale: float
) -> None:
    X, y = data()
    T = np.random.default_rng(5).random((50, 4)) * 1.4 - 0.2
    h = Hyperparameters(np.array([0.4, 0.9, 2.0, 5.0]), 1e-3, scale)
    if mean == "zero":
        y = y / np.sqrt(np.mean(y**2))  # then the process works in the units of y itself
    gp = GaussianProcess(kernel=kernel, mean="zero" if mean == "zero" else "standard")
    ours = gp.condition(X, y, h).predict(T)
    theirs = peer(kernel, h, normalise=mean == "standard").fit(X, y).predict(T, return_std=True)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_the_evidence_equals_scikit_learn(kernel: str) -> None:
    X, y = data()
    h = Hyperparameters(np.array([0.4, 0.9, 2.0, 5.0]), 1e-3, 1.5)
    gp = GaussianProcess(kernel=kernel).condition(X, y, h)
    reference = peer(kernel, h, normalise=True).fit(X, y)
    # theirs is that of the standardised outputs
    expected = reference.log_marginal_likelihood_value_ - len(y) * np.log(y.std())
    assert gp.log_marginal_likelihood == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_unordered_columns_are_one_hot_blocks_over_the_root_of_two(kernel: str) -> None:
    X, y = mixed_data()
    T, _ = mixed_data(seed=9)
    h = Hyperparameters(np.array([0.5, 0.8, 1.5, 2.5]), 1e-3)
    ours = GaussianProcess(kernel=kernel, categorical=(1, 3)).condition(X, y, h).predict(T)
    Z, scales = one_hot(X, h.lengthscales, {1: 3, 3: 4})
    reference = peer(kernel, Hyperparameters(scales, h.noise), normalise=True).fit(Z, y)
    theirs = reference.predict(one_hot(T, h.lengthscales, {1: 3, 3: 4})[0], return_std=True)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-8, atol=1e-8)


def test_an_unknown_level_is_as_far_as_any_other() -> None:
    X, y = mixed_data()
    X[:, 3] = np.where(X[:, 3] == 3, 0, X[:, 3])
    h = Hyperparameters(np.array([0.5, 0.8, 1.5, 2.5]), 1e-3)
    gp = GaussianProcess(categorical=(1, 3)).condition(X, y, h)
    T = np.tile(X[0], (2, 1))
    T[:, 3] = (3, 17)
    mean, std = gp.predict(T)
    assert mean[0] == mean[1]
    Z, scales = one_hot(X, h.lengthscales, {1: 3, 3: 4})
    reference = peer("matern52", Hyperparameters(scales, h.noise), normalise=True).fit(Z, y)
    expected = reference.predict(one_hot(T[:1], h.lengthscales, {1: 3, 3: 4})[0], return_std=True)
    np.testing.assert_allclose([mean[0], std[0]], np.ravel(expected), rtol=1e-8)


# ── conditioning ─────────────────────────────────────────────────────────────────────────────


def test_without_noise_known_points_are_interpolated() -> None:
    X, y = data()
    mean, std = GaussianProcess(noise=1e-10).fit(X, y).predict(X)
    np.testing.assert_allclose(mean, y, rtol=1e-6)
    assert np.all(std < 1e-4 * y.std())


def test_fit_changes_the_object_and_returns_it() -> None:
    X, y = data()
    gp = GaussianProcess()
    assert gp.fit(X, y) is gp
    assert gp.predict(X)[0].shape == (len(X),)


@pytest.mark.parametrize("chunks", [(1, 1, 1), (10,), (3, 7)])
def test_adding_points_equals_conditioning_on_all(chunks: tuple[int, ...]) -> None:
    X, y = data(30)
    h = Hyperparameters(np.array([0.4, 0.9, 2.0, 5.0]), 1e-4)
    first = 30 - sum(chunks)
    gp = GaussianProcess().condition(X[:first], y[:first], h)
    before = gp.predict(X)
    grown, at = gp, first
    for size in chunks:
        grown = grown.with_points(X[at : at + size], y[at : at + size])
        at += size
    np.testing.assert_array_equal(gp.predict(X)[0], before[0])
    # the units are those of the first rows: the reference standardises with them by hand
    offset, scale = y[:first].mean(), y[:first].std()
    z = (y - offset) / scale
    reference = peer("matern52", h, normalise=False).fit(X, z)
    T = np.random.default_rng(8).random((20, 4))
    mean, std = reference.predict(T, return_std=True)
    np.testing.assert_allclose(grown.predict(T)[0], offset + scale * mean, rtol=1e-9)
    np.testing.assert_allclose(grown.predict(T)[1], scale * std, rtol=1e-7)
    assert grown.hyperparameters is gp.hyperparameters


def test_added_points_may_have_new_levels_and_may_repeat_known_rows() -> None:
    X, y = mixed_data()
    seen = X[:, 3] != 3
    h = Hyperparameters(np.array([0.5, 0.8, 1.5, 2.5]), 1e-3)
    gp = GaussianProcess(categorical=(1, 3), mean="zero").condition(X[seen], y[seen], h)
    grown = gp.with_points(X[~seen], y[~seen])
    order = np.concatenate([np.flatnonzero(seen), np.flatnonzero(~seen)])
    scale = np.sqrt(np.mean(y[seen] ** 2))
    Z, scales = one_hot(X[order], h.lengthscales, {1: 3, 3: 4})
    hyper = Hyperparameters(scales, h.noise)
    reference = peer("matern52", hyper, normalise=False).fit(Z, y[order] / scale)
    mean = reference.predict(one_hot(X, h.lengthscales, {1: 3, 3: 4})[0])
    np.testing.assert_allclose(grown.predict(X)[0], scale * mean, rtol=1e-8, atol=1e-10)
    again = grown.with_points(X[:5], y[:5])
    assert np.isfinite(again.predict(X)).all()


def test_adding_repeated_rows_without_noise_still_works() -> None:
    X, y = data()
    gp = GaussianProcess(noise=0.0).fit(X, y).with_points(X[:10], y[:10])
    np.testing.assert_allclose(gp.predict(X)[0], y, rtol=1e-4)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_leave_one_out_equals_leaving_each_point_out(kernel: str) -> None:
    X, y = data(15)
    h = Hyperparameters(np.array([0.4, 0.9, 2.0, 5.0]), 1e-2)
    residual, std = GaussianProcess(kernel=kernel).condition(X, y, h).leave_one_out()
    z = (y - y.mean()) / y.std()
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        reference = peer(kernel, h, normalise=False).fit(X[rest], z[rest])
        mean, deviation = reference.predict(X[i : i + 1], return_std=True)
        assert residual[i] == pytest.approx(y.std() * (z[i] - mean[0]), rel=1e-8)
        assert std[i] == pytest.approx(y.std() * np.sqrt(deviation[0] ** 2 + h.noise), rel=1e-8)


def test_samples_have_the_moments_of_the_posterior() -> None:
    X, y = data(12)
    h = Hyperparameters(np.array([0.4, 0.9, 2.0, 5.0]), 1e-2)
    T = np.random.default_rng(6).random((5, 4))
    gp = GaussianProcess().condition(X, y, h)
    samples = gp.sample(T, 40_000, np.random.default_rng(7))
    assert samples.shape == (40_000, 5)
    reference = peer("matern52", h, normalise=True).fit(X, y)
    mean, covariance = reference.predict(T, return_cov=True)
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((samples.mean(axis=0) - mean) / scale, 0.0, atol=0.02)
    np.testing.assert_allclose(
        np.cov(samples.T) / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=0.03
    )


def test_samples_of_unknown_levels_differ_from_each_other() -> None:
    X, y = mixed_data()
    gp = GaussianProcess(categorical=(1, 3)).fit(X, y)
    T = np.tile(X[0], (3, 1))
    T[:, 3] = (50, 60, 60)
    a, b, c = gp.sample(T, 2000, np.random.default_rng(0)).T
    assert np.corrcoef(a, b)[0, 1] < 0.999
    np.testing.assert_allclose(b, c, atol=1e-5)


def test_samples_are_the_same_for_the_same_seed() -> None:
    X, y = data(12)
    gp = GaussianProcess().fit(X, y)
    first, second = (gp.sample(X, 3, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


# ── robustness ───────────────────────────────────────────────────────────────────────────────


def assert_sound(gp: GaussianProcess, T: Array) -> None:
    mean, std, dmean, dstd = gp.predict_gradient(T)
    assert all(np.isfinite(part).all() for part in (mean, std, dmean, dstd))
    assert np.all(std > 0.0)
    assert np.isfinite(gp.leave_one_out()).all()
    assert np.isfinite(gp.sample(T[:5], 2, np.random.default_rng(0))).all()
    assert np.isfinite(gp.log_marginal_likelihood)


@pytest.mark.parametrize("value", [0.0, 3.5, -1e-12, 1e12])
@pytest.mark.parametrize("mean", ["standard", "zero"])
def test_one_point_is_enough(value: float, mean: str) -> None:
    X = np.array([[0.2, 0.7]])
    gp = GaussianProcess(mean="zero" if mean == "zero" else "standard").fit(X, [value])
    assert_sound(gp, np.random.default_rng(0).random((9, 2)))
    assert gp.predict(X)[0][0] == pytest.approx(value, rel=0.05)


@pytest.mark.parametrize("value", [0.0, 3.5, -1e-12, 1e12])
def test_constant_outputs_are_predicted_as_that_constant(value: float) -> None:
    X, _ = data(20)
    gp = GaussianProcess().fit(X, np.full(20, value))
    T = np.random.default_rng(0).random((9, 4))
    assert_sound(gp, T)
    np.testing.assert_allclose(gp.predict(T)[0], value, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e12, 1e300])
def test_the_units_of_the_outputs_do_not_matter(size: float) -> None:
    X, y = data()
    T = np.random.default_rng(0).random((9, 4))
    y = y / 100.0
    gp, reference = GaussianProcess().fit(X, size * y), GaussianProcess().fit(X, y)
    assert_sound(gp, T)
    np.testing.assert_allclose(gp.predict(T)[0] / size, reference.predict(T)[0], rtol=1e-5)
    np.testing.assert_allclose(gp.predict(T)[1] / size, reference.predict(T)[1], rtol=1e-3)


@pytest.mark.parametrize("noise", [None, 0.0, 1e-8])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_repeated_and_nearly_equal_rows_are_no_problem(noise: float | None, kernel: str) -> None:
    X, y = data(10)
    near = X + 1e-9 * np.random.default_rng(0).standard_normal(X.shape)
    gp = GaussianProcess(kernel=kernel, noise=noise).fit(
        np.concatenate([X, X, near]), np.concatenate([y, y, y])
    )
    assert_sound(gp, np.random.default_rng(0).random((9, 4)))
    np.testing.assert_allclose(gp.predict(X)[0], y, atol=0.3 * y.std())


def test_contradicting_repeated_rows_are_averaged() -> None:
    X = np.array([[0.1], [0.1], [0.9], [0.9]])
    gp = GaussianProcess().fit(X, [0.0, 1.0, 4.0, 5.0])
    mean, _ = gp.predict(np.array([[0.1], [0.9]]))
    np.testing.assert_allclose(mean, [0.5, 4.5], atol=0.5)


def test_a_singular_kernel_gets_jitter_in_silence_and_a_warning_if_it_is_large() -> None:
    h = Hyperparameters(np.full(4, 1e4), 0.0)
    X, y = data(40)
    gp = GaussianProcess(kernel="rbf", noise=0.0).condition(X, y, h)
    assert_sound(gp, X)
    with pytest.warns(SurrogateWarning, match="the kernel is singular: a noise of .* was added"):
        L, jitter = cholesky(np.array([[1.0, 1.1], [1.1, 1.0]]))
    np.testing.assert_allclose((L @ L.T)[0, 0], 1.0 + jitter)


def test_two_thousand_points_fit() -> None:
    X, y = data(2000, 5)
    gp = GaussianProcess().fit(X[:-50], y[:-50])
    mean, _ = gp.predict(X[-50:])
    assert np.std(mean - y[-50:]) < 0.02 * y.std()


def test_a_hundred_features_fit() -> None:
    X, y = data(60, 100)
    gp = GaussianProcess().fit(X[:50], y[:50])
    assert_sound(gp, X[50:])
    residual, std = gp.leave_one_out()
    assert 0.4 < np.sqrt(np.mean((residual / std) ** 2)) < 2.5


@pytest.mark.slow
def test_two_thousand_points_of_a_hundred_features_fit() -> None:
    X, y = data(2000, 100)
    assert_sound(GaussianProcess().fit(X, y), X[:20])


def test_rows_far_outside_the_cube_return_to_the_prior() -> None:
    X, y = data()
    gp = GaussianProcess().fit(X, y)
    mean, std = gp.predict(np.full((1, 4), 1e6))
    assert mean[0] == pytest.approx(y.mean())
    assert std[0] == pytest.approx(y.std() * np.sqrt(gp.hyperparameters.output_scale))


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 6),
    levels=st.integers(1, 4),
    size=st.floats(-200.0, 200.0),
    seed=st.integers(0, 10_000),
)
def test_any_small_grid_of_points_gives_finite_answers(
    n: int, d: int, levels: int, size: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, d)) / levels
    y = 10.0**size * rng.integers(-1, 2, n)
    gp = GaussianProcess(categorical=(0,) if seed % 2 else ()).fit(X, y)
    T = rng.random((4, d))
    assert all(np.isfinite(part).all() for part in gp.predict_gradient(T))
    more = gp.with_points(T, np.zeros(4))
    assert np.isfinite(more.predict(X)).all()


# ── errors ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"kernel": "matern"},
            "`kernel` must be one of 'matern52', 'rbf', 'tabular'; got 'matern'. Did",
        ),
        ({"mean": "linear"}, "`mean` must be 'standard' or 'zero'; got 'linear'"),
        ({"noise": -1.0}, "`noise` must be None or a number >= 0; got -1.0"),
        ({"output_scale": 0.0}, "`output_scale` must be None or a number > 0; got 0.0"),
        ({"dimensions": 0}, "`dimensions` must be None or at least 1; got 0"),
        ({"alike": 0.0}, "`alike` must be None or a number > 0; got 0.0"),
    ],
)
def test_bad_settings_raise(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GaussianProcess(**settings)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([0.1, 0.2], [1.0, 2.0], r"`X` must have shape \(n, d\); got \(2,\)"),
        (np.empty((0, 2)), [], "`X` must have at least one row; got none"),
        (
            [[0.1], [0.2]],
            [1.0],
            r"`y` must have shape \(2,\), one output per row of `X`; got \(1,\)",
        ),
        ([[0.1], [0.2]], [1.0, np.nan], "`y` must be finite; got nan in row 1"),
        ([[np.nan], [0.2]], [1.0, 2.0], "`X` must be finite"),
        ([[1e200], [0.2]], [1.0, 2.0], "`X` must be finite, and near the unit cube"),
    ],
)
def test_bad_data_raise(X: object, y: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GaussianProcess().fit(X, y)  # type: ignore[arg-type]  # wrong on purpose


def test_rows_unlike_the_fitted_ones_raise() -> None:
    X, y = data()
    with pytest.raises(ValueError, match=r"must be fitted first. Call `fit\(X, y\)`"):
        GaussianProcess().predict(X)
    with pytest.raises(ValueError, match="`categorical` must hold columns of `X`, 0 to 3; got"):
        GaussianProcess(categorical=(4,)).fit(X, y)
    gp = GaussianProcess().fit(X, y)
    with pytest.raises(ValueError, match="`X` must have 4 columns, as the data fitted; got 2"):
        gp.predict(X[:, :2])
    with pytest.raises(ValueError, match="must have 2 lengthscales, one per column of `X`; got 4"):
        GaussianProcess().fit(X[:, :2], y, start=gp.hyperparameters)


def test_the_repr_names_kernel_mean_and_rows() -> None:
    X, y = data()
    assert repr(GaussianProcess()) == "<GaussianProcess 'matern52', mean 'standard': not fitted>"
    assert repr(GaussianProcess(kernel="rbf", mean="zero").fit(X, y)).endswith("'zero': 30 rows>")
