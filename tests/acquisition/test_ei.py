"""EI-CFX: limits, seams, shapes, and every potential through one integrator."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike

from bayescfx.acquisition import (
    LogEI,
    ei_cfx,
    ei_cfx_gradient,
    log_ei_cfx,
    log_ei_cfx_gradient,
)
from bayescfx.acquisition.closed_form import ep_closed_form
from bayescfx.arrays import Array
from bayescfx.potentials import AEP, SEP, LevelPotential, Plateau
from bayescfx.potentials.ep_family import PEAK
from tests.acquisition.cases import ALL, log_ei, points


@pytest.mark.parametrize("potential", ALL, ids=repr)
@pytest.mark.parametrize("best", [-0.1, 0.0, 1e-9, 0.1, 0.3678])
def test_one_threshold_per_point_equals_a_shared_one(
    potential: LevelPotential, best: float
) -> None:
    mean, std = points()
    shared = log_ei(mean, std, potential, best)
    single = log_ei(mean, std, potential, np.full(mean.shape, best))
    for a, b in zip(shared, single, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("potential", ALL, ids=repr)
def test_everything_is_finite_where_improvement_is_possible(potential: LevelPotential) -> None:
    mean, std = (
        a.ravel()
        for a in np.meshgrid(
            np.concatenate([np.linspace(-4, 4, 33), [-1e6, 1e6, 1e30, -1e30]]),
            10.0 ** np.arange(-30.0, 31.0, 3.0),
        )
    )
    for best in (-1.0, 0.0, 1e-300, 1e-3, 0.3, PEAK * (1 - 1e-12)):
        out = log_ei(mean, std, potential, best)
        assert not np.isnan(out.value).any()
        assert np.isfinite(out.d_mean).all()
        assert np.isfinite(out.d_std).all()


@pytest.mark.parametrize("potential", ALL[:7], ids=repr)
def test_the_log_form_is_the_logarithm_of_a_plain_sum(potential: LevelPotential) -> None:
    t = np.linspace(-9.0, 9.0, 200_001)
    weight = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) * (t[1] - t[0])
    for mean, std, best in ((0.7, 0.5, 0.1), (-1.0, 2.0, 0.0), (2.0, 0.1, 0.2), (1.0, 1.0, -0.2)):
        plain = float(np.sum(np.maximum(potential.value(mean + std * t) - best, 0.0) * weight))
        value = float(ei_cfx([mean], [std], potential, best)[0])
        assert value == pytest.approx(plain, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("potential", ALL[7:], ids=repr)
def test_a_linked_potential_is_integrated_on_the_link_scale(potential: LevelPotential) -> None:
    t = np.linspace(-9.0, 9.0, 200_001)
    weight = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) * (t[1] - t[0])
    for mean, std, best in ((0.7, 0.5, 0.1), (3.0, 2.0, 0.0), (-2.0, 4.0, 0.2)):
        plain = float(np.sum(np.maximum(potential.value(mean + std * t) - best, 0.0) * weight))
        value = float(ei_cfx([mean], [std], potential, best)[0])
        assert value == pytest.approx(plain, rel=1e-6, abs=1e-9)


def differences(f: Callable[[Array, Array], Array], mean: Array, std: Array) -> tuple[Array, Array]:
    h = 1e-5 * std
    d_mean = (f(mean + h, std) - f(mean - h, std)) / (2.0 * h)
    return d_mean, (f(mean, std + h) - f(mean, std - h)) / (2.0 * h)


@pytest.mark.parametrize("potential", ALL[7:], ids=repr)
def test_gradients_of_linked_potentials_equal_differences(potential: LevelPotential) -> None:
    mean, std = points()
    std = np.maximum(std, 0.05)
    value, d_mean, d_std = log_ei(mean, std, potential, 0.2)
    expected = differences(lambda m, s: log_ei_cfx(m, s, potential, 0.2), mean, std)
    scale = 1e-6 * (1.0 + np.abs(value)) / std
    assert np.all(np.abs(d_mean - expected[0]) <= scale + 1e-6 * np.abs(d_mean))
    assert np.all(np.abs(d_std - expected[1]) <= scale + 1e-6 * np.abs(d_std))


class Bump:
    """A user's potential: value and slope only."""

    def value(self, y: ArrayLike) -> Array:
        return np.asarray(np.exp(-np.square(np.asarray(y, dtype=float) - 1.0)))

    def slope(self, y: ArrayLike) -> Array:
        y = np.asarray(y, dtype=float)
        return np.asarray(-2.0 * (y - 1.0) * np.exp(-np.square(y - 1.0)))


def test_a_potential_of_value_and_slope_alone_works() -> None:
    # E[exp(-(y - 1)**2)] is a normal density: exact
    mean, std = np.array([0.0, 1.5, -2.0]), np.array([0.5, 0.1, 1.0])
    spread = 1.0 + 2.0 * std * std
    exact = -np.square(mean - 1.0) / spread - 0.5 * np.log(spread)
    np.testing.assert_allclose(log_ei_cfx(mean, std, Bump(), 0.0), exact, rtol=0, atol=1e-7)
    d_mean, _ = log_ei_cfx_gradient(mean, std, Bump(), 0.0)
    np.testing.assert_allclose(d_mean, -2.0 * (mean - 1.0) / spread, rtol=1e-6)


def everywhere(n: int) -> tuple[Array, Array, Array]:
    """Means, deviations and levels over the documented range, in widths of one side."""
    rng = np.random.default_rng(2)
    low, high = 10.0 ** rng.uniform(-15.0, -0.5, n), PEAK * (1.0 - 10.0 ** rng.uniform(-12, 0, n))
    level = np.where(rng.random(n) < 0.5, low, high)
    level[: n // 10] = 0.0
    std = 10.0 ** rng.uniform(-9.0, 3.0, n)
    std[::2] = 10.0 ** rng.uniform(-2.0, 1.0, len(std[::2]))
    mean = 2.0 * rng.normal(size=n)
    away = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-2.0, 3.0, n)
    return np.where(rng.random(n) < 0.5, mean, 1.0 + away * std), std, level


def test_closed_form_and_log_form_agree_where_the_closed_form_is_sound() -> None:
    mean, std, level = everywhere(100_000)
    closed = ep_closed_form(mean, std, level)
    sound = closed.sound
    assert 0.2 < float(np.mean(sound)) < 1.0
    value, d_mean, d_std = (part[sound] for part in log_ei(mean, std, AEP(0.0, 1.0), level))
    found = closed.value[sound]
    np.testing.assert_allclose(np.log(found), value, rtol=0.0, atol=1e-10)
    for part, log_part in ((closed.d_mean, d_mean), (closed.d_std, d_std)):
        # relative to the gradient, or to its natural size 1 / std where it passes through zero
        size = np.abs(log_part) + 1.0 / std[sound]
        np.testing.assert_array_less(np.abs(part[sound] / found - log_part) / size, 1e-10)


class Counted(Bump):
    """A user's potential that counts the outputs it evaluates."""

    def __init__(self) -> None:
        self.asked = 0

    def value(self, y: ArrayLike) -> Array:
        self.asked += np.size(y)
        return super().value(y)

    def slope(self, y: ArrayLike) -> Array:
        self.asked += np.size(y)
        return super().slope(y)


def test_a_users_potential_is_sampled_again_only_for_points_beyond_its_range() -> None:
    potential = Counted()
    prepared = LogEI(potential, 0.3)
    mean, std = np.linspace(-2.0, 4.0, 50), np.full(50, 5.0)  # wide: its own nodes serve
    first = prepared.value_and_gradient(mean, std)
    asked = potential.asked
    again = prepared.value_and_gradient(mean[10:40], std[10:40])
    assert potential.asked == asked
    np.testing.assert_allclose(again.value, first.value[10:40], rtol=1e-12)
    prepared.value_and_gradient(mean + 1e3, std)
    assert potential.asked > asked


@pytest.mark.parametrize("potential", ALL[:3], ids=repr)
def test_ei_and_log_ei_agree_everywhere(potential: LevelPotential) -> None:
    mean, std, level = everywhere(20_000)
    width = float(getattr(potential, "width", 1.0))
    mean, std = float(getattr(potential, "origin", 0.0)) + width * mean, width * std
    log = log_ei(mean, std, potential, level)
    value = ei_cfx(mean, std, potential, level)
    sure = log.value > -600.0
    np.testing.assert_allclose(np.log(value[sure]), log.value[sure], rtol=0.0, atol=1e-10)
    d_mean, d_std = ei_cfx_gradient(mean, std, potential, level)
    for part, log_part in ((d_mean, log.d_mean), (d_std, log.d_std)):
        size = np.abs(log_part[sure]) + 1.0 / std[sure]
        miss = np.abs(part[sure] / value[sure] - log_part[sure]) / size
        np.testing.assert_array_less(miss, 1e-10)


@pytest.mark.parametrize("potential", ALL[:7], ids=repr)
def test_seams_between_regimes_are_invisible(potential: LevelPotential) -> None:
    # along a fine path through every regime, value and slopes may only move as their
    # neighbours say: the second difference of a smooth function is small
    s = np.geomspace(1e-3, 1e2, 40_001)
    out = log_ei(np.full(s.shape, 0.8), s, potential, 0.3)
    for part in (out.value, out.d_mean * s, out.d_std * s):
        jump = np.abs(np.diff(part, 2))
        scale = 1.0 + np.abs(part[1:-1])
        assert float(np.max(jump / scale)) < 1e-5
    steps = np.diff(out.value) - 0.5 * (out.d_std[1:] + out.d_std[:-1]) * np.diff(s)
    assert float(np.max(np.abs(steps) / (1.0 + np.abs(out.value[1:])))) < 1e-8


@pytest.mark.parametrize("potential", ALL[:7], ids=repr)
def test_a_deviation_of_zero_is_the_limit(potential: LevelPotential) -> None:
    mean = np.linspace(-3.0, 4.0, 57)
    gain = potential.value(mean) - 0.1
    expected = np.where(gain > 0.0, np.log(np.maximum(gain, 1e-300)), -np.inf)
    out = log_ei(mean, np.zeros_like(mean), potential, 0.1)
    np.testing.assert_allclose(out.value, expected)
    assert np.isfinite(out.d_mean).all()
    close = log_ei(mean, np.full(mean.shape, 1e-7), potential, 0.1)
    clear = gain > 1e-3
    np.testing.assert_allclose(out.value[clear], close.value[clear], atol=1e-9)
    np.testing.assert_allclose(out.d_mean[clear], close.d_mean[clear], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        ei_cfx(mean, np.zeros_like(mean), potential, 0.1), np.maximum(gain, 0.0), atol=1e-15
    )


@pytest.mark.parametrize("potential", ALL, ids=repr)
def test_nothing_is_left_to_improve_at_the_peak(potential: LevelPotential) -> None:
    for best in (potential.peak, 0.5, np.array([0.4, 0.5])):
        out = log_ei([0.0, 1.0], [0.0, 1.0], potential, best)
        assert out.value.tolist() == [-math.inf, -math.inf]
        assert out.d_mean.tolist() == out.d_std.tolist() == [0.0, 0.0]
        assert ei_cfx([0.0, 1.0], [0.0, 1.0], potential, best).tolist() == [0.0, 0.0]


def test_shapes_are_kept() -> None:
    mean = np.zeros((2, 3))
    assert log_ei_cfx(mean, 1.0, AEP(0.0, 1.0), 0.1).shape == (2, 3)
    assert LogEI(AEP(0.0, 1.0), 0.1).value_and_gradient(0.5, 1.0).value.shape == ()
    assert log_ei_cfx(np.zeros(0), np.zeros(0), SEP(0.0, 1.0), 0.1).shape == (0,)
    assert log_ei_cfx(np.zeros(0), np.zeros(0), Plateau(0.0, 1.0, 1.0), 0.1).shape == (0,)


@pytest.mark.parametrize("potential", ALL, ids=repr)
def test_many_points_give_the_values_of_single_points(potential: LevelPotential) -> None:
    mean, std = points(5000)
    best = np.random.default_rng(1).uniform(0.0, 0.36, 5000)
    for level in (np.full(5000, 0.2), best):
        together = np.array(log_ei(mean, std, potential, 0.2 if level is not best else best))
        for k in (0, 499, 500, 1999, 2000, 4999):
            alone = log_ei(mean[k], std[k], potential, float(level[k]))
            np.testing.assert_allclose(together[:, k], np.array(alone), rtol=1e-9, atol=1e-12)


def test_a_nan_does_not_change_other_points() -> None:
    for potential in ALL:
        out = log_ei([0.5, math.nan, 0.5], 0.4, potential, 0.2)
        assert np.isnan(out.value[1]) or out.value[1] == -math.inf
        alone = log_ei(0.5, 0.4, potential, 0.2).value
        np.testing.assert_allclose(out.value[[0, 2]], alone, rtol=1e-12)


class Chopped:
    """A potential cut into thousands of pieces."""

    def __init__(self, inner: LevelPotential) -> None:
        self.value, self.slope, self.inner = inner.value, inner.slope, inner

    def knots(self) -> Array:
        return np.union1d(self.inner.knots(), np.linspace(-3.0, 3.0, 2000))


def test_thousands_of_pieces_make_no_difference() -> None:
    mean, std = points(50)
    for potential in (SEP(0.0, 1.0), Plateau(1.0, 2.0, 0.5)):
        whole, cut = log_ei(mean, std, potential, 0.2), log_ei(mean, std, Chopped(potential), 0.2)
        np.testing.assert_allclose(cut.value, whole.value, rtol=1e-9)
        np.testing.assert_allclose(cut.d_mean, whole.d_mean, rtol=1e-6, atol=1e-12)
