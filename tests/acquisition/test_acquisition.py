"""EI-CFX against 60 digits: value, gradient, limits and seams."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from bayescfx.acquisition.closed_form import ep_closed_form
from bayescfx.acquisition.ei import (
    LogEI,
    ei_cfx,
    ei_cfx_gradient,
    expected_improvement,
    expected_improvement_gradient,
    log_ei_cfx,
    log_ei_cfx_gradient,
    log_ei_cfx_with_gradient,
    log_expected_improvement,
    log_expected_improvement_gradient,
    log_probability_in,
    log_probability_in_with_gradient,
)
from bayescfx.arrays import Array
from bayescfx.potentials.family import AEP, PEAK, SEP, LevelPotential, Plateau
from bayescfx.potentials.levels import ep_edges, excess
from bayescfx.potentials.links import Linked, Logit
from tests.oracles import improvement
from tests.oracles.improvement import Question

EPSILON = float(np.finfo(float).eps)


def proof(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def potential_of(question: Question) -> LevelPotential:
    match question.kind:
        case "plateau":
            return Plateau(*question.shape)
        case "sep":
            return SEP(*question.shape)
        case kind:
            origin, width = question.shape
            return AEP(origin, width, side=1 if kind == "aep+" else -1)


def assert_accurate(question: Question, *, gradient: bool = True) -> None:
    """Compare with the oracle as the accuracy promise says."""
    out = log_ei_cfx_with_gradient(
        [question.mean], [question.std], potential_of(question), question.best
    )
    truth = improvement.log_ei(question)
    error = float(abs(out.value[0] - truth))
    if not error <= 1e-8:
        assert error <= 1e-8 + 10.0 * improvement.ulp_effect(question), (question, error)
    if gradient:
        assert_gradient_accurate(question, float(out.d_mean[0]), float(out.d_std[0]))


def assert_gradient_accurate(question: Question, d_mean: float, d_std: float) -> None:
    """Allow 1e-6 of the truth, and ten times what the last place of any input does to it.

    A symmetric potential's gradient is the sum of two terms that cancel between the sides: their
    roundings, two last places, come on top.
    """
    exact = improvement.gradient(question)
    misses = [float(abs(a - b)) for a, b in zip((d_mean, d_std), exact, strict=True)]
    # deep inside a range the truth is smaller than any normal number
    least = 1e-300 / question.std
    bounds = [1e-6 * float(abs(b)) + least for b in exact]
    if any(not miss <= bound for miss, bound in zip(misses, bounds, strict=True)):
        effects = improvement.gradient_effect(question)
        sizes = improvement.term_sizes(question)
        for miss, bound, effect, size in zip(misses, bounds, effects, sizes, strict=True):
            allowed = bound + 10.0 * effect + 2.0 * EPSILON * size
            assert miss <= allowed, (question, misses, exact, effects, sizes)


def exponents(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False).map(lambda x: 10.0**x)


@st.composite
def levels(draw: st.DrawFn) -> float:
    """Thresholds from 0 to within 1e-12 of the peak, log-uniform at both ends."""
    kind = draw(st.sampled_from(["zero", "low", "high", "high"]))
    if kind == "zero":
        return 0.0
    if kind == "low":
        return draw(exponents(-15.0, -0.5))
    return PEAK * (1.0 - draw(exponents(-12.0, -0.05)))


@st.composite
def placed(draw: st.DrawFn, potential: LevelPotential, best: float, std: float) -> float:
    """A mean up to 1,000 deviations outside the superlevel set, or inside it."""
    low, high = draw(st.sampled_from(potential.superlevel(best)))
    away = draw(st.one_of(st.just(0.0), exponents(-2.0, 3.0)))
    choices = []
    if math.isfinite(low):
        choices.append(low - away * std)
    if math.isfinite(high):
        choices.append(high + away * std)
    ends = max(low, -1e3), min(high, 1e3)
    if ends[0] < ends[1]:
        choices.append(ends[0] + draw(st.floats(0.0, 1.0)) * (ends[1] - ends[0]))
    return float(draw(st.sampled_from(choices or [0.0])))


@st.composite
def ep_questions(draw: st.DrawFn) -> Question:
    kind = draw(st.sampled_from(["aep+", "aep-", "sep"]))
    width = draw(st.sampled_from([1.0, 0.37, 250.0]))
    origin = draw(st.sampled_from([0.0, 1.5, -30.0]))
    std = width * draw(exponents(-9.0, 3.0))
    best = draw(levels())
    shape = (origin, width)
    potential = potential_of(Question(kind, shape, 0.0, std, best))
    return Question(kind, shape, draw(placed(potential, best, std)), std, best)


@st.composite
def plateau_questions(draw: st.DrawFn) -> Question:
    width = draw(st.sampled_from([1.0, 0.37, 250.0]))
    span = draw(st.one_of(st.sampled_from([0.0, math.inf]), exponents(-3.0, 3.0)))
    low, high = 0.0, span * width
    if draw(st.booleans()):
        low, high = -high, 0.0
    std = width * draw(exponents(-9.0, 3.0))
    best = draw(levels())
    shape = (low, high, width)
    potential = potential_of(Question("plateau", shape, 0.0, std, best))
    return Question("plateau", shape, draw(placed(potential, best, std)), std, best)


NEAR_PEAK = PEAK * (1.0 - 1e-12)
CORNERS = [
    # the table of cases that the closed form gets wrong
    Question("aep+", (0.0, 1.0), 0.8, 0.3, 0.2),
    Question("aep+", (0.0, 1.0), -0.5, 0.1, 0.3),
    Question("aep+", (0.0, 1.0), 0.5, 0.02, 0.3678),
    Question("aep+", (0.0, 1.0), 0.9, 0.001, 0.3678),
    # best = 0: an open interval, mass at the origin, in the far tail, and beyond it
    Question("aep+", (0.0, 1.0), 0.0, 1e-9, 0.0),
    Question("aep+", (0.0, 1.0), 1e-9, 1e-9, 0.0),
    Question("aep+", (0.0, 1.0), -1e6, 1e3, 0.0),
    Question("aep+", (0.0, 1.0), 1e3, 1.0, 0.0),
    Question("aep+", (0.0, 1.0), 30.0, 1e-3, 0.0),
    Question("aep-", (2.0, 3.0), 1.0, 1e3, 0.0),
    # within 1e-12 of the peak: at it, beside it, a thousand deviations away
    Question("aep+", (0.0, 1.0), 1.0, 1e-9, NEAR_PEAK),
    Question("aep+", (0.0, 1.0), 1.0, 1e3, NEAR_PEAK),
    Question("aep+", (0.0, 1.0), 1.0 + 1e-6, 1e-7, NEAR_PEAK),
    Question("aep+", (0.0, 1.0), 1.0 - 1e-3, 1e-6, NEAR_PEAK),
    Question("aep+", (0.0, 1.0), -1e6, 1e3, NEAR_PEAK),
    Question("aep-", (5.0, 2.0), 3.0, 1e-5, PEAK * (1.0 - 1e-9)),
    # the smallest threshold there is
    Question("aep+", (0.0, 1.0), 20.0, 3.0, 5e-324),
    Question("aep+", (0.0, 1.0), 1e-8, 1e-9, 1e-17),
    # between the two sides
    Question("sep", (0.0, 1.0), 0.0, 0.1, 0.3),
    Question("sep", (0.0, 1.0), 1e-3, 1e3, 0.3),
    Question("sep", (-4.0, 0.5), -4.2, 1e-4, NEAR_PEAK),
    # a negative threshold counts the whole line
    Question("aep+", (0.0, 1.0), -3.0, 0.2, -0.1),
    Question("sep", (0.0, 1.0), 0.5, 0.2, -1e-9),
    # plateaus: inside, at the corner, outside, a point, half lines, far away
    Question("plateau", (0.0, 1.0, 1.0), 0.5, 1e-9, 0.3),
    Question("plateau", (0.0, 1.0, 1.0), 1.0, 1e-9, 0.3),
    Question("plateau", (0.0, 1.0, 1.0), 1.0, 1e3, NEAR_PEAK),
    Question("plateau", (0.0, 0.0, 1.0), 0.1, 0.01, 0.36),
    Question("plateau", (0.0, math.inf, 1.0), -5.0, 0.3, 0.2),
    Question("plateau", (-math.inf, 0.0, 0.5), 1e6, 1e3, 0.0),
    Question("plateau", (0.0, 1.0, 1.0), 100.0, 30.0, 0.0),
    Question("plateau", (0.0, 1.0, 1.0), 20.0, 5.0, 1e-6),
    Question("plateau", (0.0, 1.0, 1.0), -2.0, 0.3, -0.05),
    # where a part of the gradient is zero, or as good as zero
    Question("aep+", (0.0, 1.0), 0.0, 1.0, 0.0),
    Question("sep", (0.0, 1.0), 1e-7, 0.05, 0.3),
    Question("sep", (0.0, 1.0), 0.0003162277818282284, 1.0, 1e-7),
    Question("plateau", (0.0, 1.0, 1.0), 0.4, 0.03, 0.3),
    Question("plateau", (0.0, math.inf, 1.0), 3.0, 0.1, 0.2),
]


@pytest.mark.parametrize("question", CORNERS, ids=str)
def test_log_ei_and_gradient_are_accurate_at_the_corners(question: Question) -> None:
    assert_accurate(question)


@proof(60)
@given(ep_questions())
def test_log_ei_and_gradient_of_the_ep_family_are_accurate(question: Question) -> None:
    assert_accurate(question)


@proof(6)
@given(plateau_questions())
def test_log_ei_and_gradient_of_plateaus_are_accurate(question: Question) -> None:
    assert_accurate(question)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@proof(3000)
@given(ep_questions())
def test_log_ei_of_the_ep_family_is_accurate_on_thousands_of_cases(question: Question) -> None:
    assert_accurate(question)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@proof(300)
@given(plateau_questions())
def test_log_ei_of_plateaus_is_accurate_on_hundreds_of_cases(question: Question) -> None:
    assert_accurate(question)


def test_the_oracle_agrees_with_adaptive_quadrature_of_the_definition() -> None:
    def ep(y: Any) -> Any:
        t = ((y - 0.5) / 2) ** 2
        return t * mp.exp(-t)

    def plateau(y: Any) -> Any:
        return mp.mpf(PEAK) / (1 + (max(0, -y, y - 1) / mp.mpf(0.5)) ** 2)

    cases: list[tuple[Question, Callable[[Any], Any]]] = [
        (Question("aep+", (0.5, 2.0), 1.7, 0.6, 0.2), ep),
        (Question("plateau", (0.0, 1.0, 0.5), 1.7, 0.6, 0.2), plateau),
    ]
    for question, rho in cases:
        ((low, high),) = potential_of(question).superlevel(question.best)
        mean, std, best = mp.mpf(question.mean), mp.mpf(question.std), mp.mpf(question.best)
        with mp.workdps(30):
            total = mp.quad(
                lambda y: (rho(y) - best) * mp.exp(-(((y - mean) / std) ** 2) / 2),  # noqa: B023  # used at once
                [low, 0.75, 1, high] if question.kind == "aep+" else [low, 0, 1, high],
            )
            value = mp.log(total / std / mp.sqrt(2 * mp.pi))
        assert abs(float(value - improvement.log_ei(question))) < 1e-12


ALL: list[LevelPotential] = [
    AEP(0.0, 1.0),
    AEP(3.0, 0.2, -1),
    SEP(-1.0, 2.0),
    Plateau(1.0, 2.0, 0.5),
    Plateau(1.0, math.inf, 0.5),
    Plateau(-math.inf, -1.0, 0.5),
    Linked(AEP(0.9, 0.4, -1), Logit()),
    Linked(Plateau(0.8, math.inf, 0.2), Logit()),
]


def points(n: int = 400) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return 3.0 * rng.normal(size=n), 10.0 ** rng.uniform(-4.0, 2.0, n)


@pytest.mark.parametrize("potential", ALL, ids=repr)
@pytest.mark.parametrize("best", [-0.1, 0.0, 1e-9, 0.1, 0.3678])
def test_one_threshold_per_point_equals_a_shared_one(
    potential: LevelPotential, best: float
) -> None:
    mean, std = points()
    shared = log_ei_cfx_with_gradient(mean, std, potential, best)
    single = log_ei_cfx_with_gradient(mean, std, potential, np.full(mean.shape, best))
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
        out = log_ei_cfx_with_gradient(mean, std, potential, best)
        assert not np.isnan(out.value).any()
        assert np.isfinite(out.d_mean).all()
        assert np.isfinite(out.d_std).all()


@pytest.mark.parametrize("potential", ALL[:6], ids=repr)
def test_the_log_form_is_the_logarithm_of_a_plain_sum(potential: LevelPotential) -> None:
    t = np.linspace(-9.0, 9.0, 200_001)
    weight = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) * (t[1] - t[0])
    for mean, std, best in ((0.7, 0.5, 0.1), (-1.0, 2.0, 0.0), (2.0, 0.1, 0.2), (1.0, 1.0, -0.2)):
        plain = float(np.sum(np.maximum(potential.value(mean + std * t) - best, 0.0) * weight))
        value = float(ei_cfx([mean], [std], potential, best)[0])
        assert value == pytest.approx(plain, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("potential", ALL[6:], ids=repr)
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


@pytest.mark.parametrize("potential", ALL[6:], ids=repr)
def test_gradients_of_linked_potentials_equal_differences(potential: LevelPotential) -> None:
    mean, std = points()
    std = np.maximum(std, 0.05)
    value, d_mean, d_std = log_ei_cfx_with_gradient(mean, std, potential, 0.2)
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


def test_a_potential_of_value_and_slope_alone_is_served() -> None:
    # E[exp(-(y - 1)**2)] is a normal density: exact
    mean, std = np.array([0.0, 1.5, -2.0]), np.array([0.5, 0.1, 1.0])
    spread = 1.0 + 2.0 * std * std
    exact = -np.square(mean - 1.0) / spread - 0.5 * np.log(spread)
    np.testing.assert_allclose(log_ei_cfx(mean, std, Bump(), 0.0), exact, rtol=0, atol=1e-7)
    d_mean, _ = log_ei_cfx_gradient(mean, std, Bump(), 0.0)
    np.testing.assert_allclose(d_mean, -2.0 * (mean - 1.0) / spread, rtol=1e-6)


def everywhere(n: int) -> tuple[Array, Array, Array]:
    """Means, deviations and levels over all that is promised, in widths of one side."""
    rng = np.random.default_rng(2)
    low, high = 10.0 ** rng.uniform(-15.0, -0.5, n), PEAK * (1.0 - 10.0 ** rng.uniform(-12, 0, n))
    level = np.where(rng.random(n) < 0.5, low, high)
    level[: n // 10] = 0.0
    std = 10.0 ** rng.uniform(-9.0, 3.0, n)
    std[::2] = 10.0 ** rng.uniform(-2.0, 1.0, len(std[::2]))
    mean = 2.0 * rng.normal(size=n)
    away = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-2.0, 3.0, n)
    return np.where(rng.random(n) < 0.5, mean, 1.0 + away * std), std, level


def test_closed_form_and_log_form_agree_wherever_the_closed_form_is_called_sound() -> None:
    mean, std, level = everywhere(100_000)
    closed = ep_closed_form(mean, std, level, ep_edges(excess(level)))
    sound = closed.sound
    assert 0.2 < float(np.mean(sound)) < 1.0
    value, d_mean, d_std = (
        part[sound] for part in log_ei_cfx_with_gradient(mean, std, AEP(0.0, 1.0), level)
    )
    found = closed.value[sound]
    np.testing.assert_allclose(np.log(found), value, rtol=0.0, atol=1e-10)
    for part, log_part in ((closed.d_mean, d_mean), (closed.d_std, d_std)):
        # relative to the gradient, or to its natural size 1 / std where it passes through zero
        size = np.abs(log_part) + 1.0 / std[sound]
        np.testing.assert_array_less(np.abs(part[sound] / found - log_part) / size, 1e-10)


class Counted(Bump):
    """A user's potential that counts how many outputs it has been asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def value(self, y: ArrayLike) -> Array:
        self.asked += np.size(y)
        return super().value(y)

    def slope(self, y: ArrayLike) -> Array:
        self.asked += np.size(y)
        return super().slope(y)


def test_a_users_potential_is_examined_again_only_for_points_beyond_what_is_known() -> None:
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
    log = log_ei_cfx_with_gradient(mean, std, potential, level)
    value = ei_cfx(mean, std, potential, level)
    sure = log.value > -600.0
    np.testing.assert_allclose(np.log(value[sure]), log.value[sure], rtol=0.0, atol=1e-10)
    d_mean, d_std = ei_cfx_gradient(mean, std, potential, level)
    for part, log_part in ((d_mean, log.d_mean), (d_std, log.d_std)):
        size = np.abs(log_part[sure]) + 1.0 / std[sure]
        miss = np.abs(part[sure] / value[sure] - log_part[sure]) / size
        np.testing.assert_array_less(miss, 1e-10)


@pytest.mark.parametrize("potential", ALL[:6], ids=repr)
def test_seams_between_regimes_are_invisible(potential: LevelPotential) -> None:
    # along a fine path through every regime, value and slopes may only move as their
    # neighbours say: the second difference of a smooth function is small
    s = np.geomspace(1e-3, 1e2, 40_001)
    out = log_ei_cfx_with_gradient(np.full(s.shape, 0.8), s, potential, 0.3)
    for part in (out.value, out.d_mean * s, out.d_std * s):
        jump = np.abs(np.diff(part, 2))
        scale = 1.0 + np.abs(part[1:-1])
        assert float(np.max(jump / scale)) < 1e-5
    steps = np.diff(out.value) - 0.5 * (out.d_std[1:] + out.d_std[:-1]) * np.diff(s)
    assert float(np.max(np.abs(steps) / (1.0 + np.abs(out.value[1:])))) < 1e-8


@pytest.mark.parametrize("potential", ALL[:6], ids=repr)
def test_a_deviation_of_zero_is_the_limit(potential: LevelPotential) -> None:
    mean = np.linspace(-3.0, 4.0, 57)
    gain = potential.value(mean) - 0.1
    expected = np.where(gain > 0.0, np.log(np.maximum(gain, 1e-300)), -np.inf)
    out = log_ei_cfx_with_gradient(mean, np.zeros_like(mean), potential, 0.1)
    np.testing.assert_allclose(out.value, expected)
    assert np.isfinite(out.d_mean).all()
    close = log_ei_cfx_with_gradient(mean, np.full(mean.shape, 1e-7), potential, 0.1)
    clear = gain > 1e-3
    np.testing.assert_allclose(out.value[clear], close.value[clear], atol=1e-9)
    np.testing.assert_allclose(out.d_mean[clear], close.d_mean[clear], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        ei_cfx(mean, np.zeros_like(mean), potential, 0.1), np.maximum(gain, 0.0), atol=1e-15
    )


@pytest.mark.parametrize("potential", ALL, ids=repr)
def test_nothing_is_left_to_improve_at_the_peak(potential: LevelPotential) -> None:
    for best in (potential.peak, 0.5, np.array([0.4, 0.5])):
        out = log_ei_cfx_with_gradient([0.0, 1.0], [0.0, 1.0], potential, best)
        assert out.value.tolist() == [-math.inf, -math.inf]
        assert out.d_mean.tolist() == out.d_std.tolist() == [0.0, 0.0]
        assert ei_cfx([0.0, 1.0], [0.0, 1.0], potential, best).tolist() == [0.0, 0.0]


def test_shapes_are_kept() -> None:
    mean = np.zeros((2, 3))
    assert log_ei_cfx(mean, 1.0, AEP(0.0, 1.0), 0.1).shape == (2, 3)
    assert LogEI(AEP(0.0, 1.0), 0.1).value_and_gradient(0.5, 1.0).value.shape == ()
    assert log_ei_cfx(np.zeros(0), np.zeros(0), SEP(0.0, 1.0), 0.1).shape == (0,)
    assert log_ei_cfx(np.zeros(0), np.zeros(0), Plateau(0.0, 1.0, 1.0), 0.1).shape == (0,)


def test_many_points_give_what_each_gives_alone() -> None:
    mean, std = points(5000)
    for potential in ALL[:6]:
        together = log_ei_cfx(mean, std, potential, 0.2)
        for k in (0, 499, 500, 1999, 2000, 4999):
            alone = log_ei_cfx(mean[k], std[k], potential, 0.2)
            assert float(together[k]) == pytest.approx(float(alone), rel=1e-12)


def test_classic_ei_equals_60_digits() -> None:
    with mp.workdps(60):
        for u in (-1e6, -1e3, -31.0, -29.0, -5.0, -1.0001, -0.9999, 0.0, 3.0, 40.0):
            for s in (1e-9, 1.0, 1e3):
                x = mp.mpf(u * s) / mp.mpf(s)
                phi = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
                upper = mp.erfc(-x / mp.sqrt(2)) / 2
                with mp.workdps(400):
                    x = +x
                    exact = mp.mpf(s) * (
                        x * mp.erfc(-x / mp.sqrt(2)) / 2 + mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
                    )
                value = log_expected_improvement([u * s], [s], 0.0)
                assert float(value[0]) == pytest.approx(float(mp.log(exact)), rel=1e-12, abs=1e-9)
                d_mean, d_std = log_expected_improvement_gradient([u * s], [s], 0.0)
                assert float(d_mean[0]) == pytest.approx(float(upper / exact), rel=1e-8)
                assert float(d_std[0]) == pytest.approx(float(phi / exact), rel=1e-8)


def test_classic_ei_and_its_gradient_are_those_of_the_textbook() -> None:
    mean, std = points()
    u = mean / std
    phi = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
    cdf = np.array([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in u])
    sure = u > -3.0
    np.testing.assert_allclose(
        expected_improvement(mean, std, 0.0)[sure], (mean * cdf + std * phi)[sure], rtol=1e-9
    )
    d_mean, d_std = expected_improvement_gradient(mean, std, 0.0)
    np.testing.assert_allclose(d_mean[sure], cdf[sure], rtol=1e-9)
    np.testing.assert_allclose(d_std[sure], phi[sure], rtol=1e-9, atol=1e-300)


def test_classic_ei_without_deviation_is_the_gain() -> None:
    assert expected_improvement([2.0, -1.0], 0.0, 0.5).tolist() == pytest.approx([1.5, 0.0])
    d_mean, d_std = log_expected_improvement_gradient([2.0, -1.0], 0.0, 0.0)
    assert d_mean.tolist() == [0.5, 0.0]
    assert d_std.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "interval", [(-1.0, 1.0), (0.0, math.inf), (-math.inf, -2.0), (1.0, 1.0 + 1e-9), (-40.0, 40.0)]
)
def test_the_probability_of_an_interval_equals_60_digits(interval: tuple[float, float]) -> None:
    low = interval[0]
    with mp.workdps(60):

        def exact(m: Any, s: Any) -> Any:
            ends = [mp.inf if math.isinf(e) else mp.mpf(e) for e in interval]
            if low == -math.inf:
                ends[0] = -mp.inf
            return mp.log(improvement._mass((ends[0] - m) / s, (ends[1] - m) / s))

        for mean in (-50.0, -1.0, 0.0, 0.3, 2.0, 1000.0):
            for std in (0.05, 1.0, 300.0):
                m, s = mp.mpf(mean), mp.mpf(std)
                h = s * mp.mpf(10) ** -15
                value = float(exact(m, s))
                out = log_probability_in_with_gradient([mean], [std], (interval,))
                assert float(out.value[0]) == pytest.approx(value, rel=1e-12, abs=1e-9)
                d_mean = (exact(m + h, s) - exact(m - h, s)) / (2 * h)
                d_std = (exact(m, s + h) - exact(m, s - h)) / (2 * h)
                assert float(out.d_mean[0]) == pytest.approx(
                    float(d_mean), rel=1e-6, abs=1e-11 / std
                )
                assert float(out.d_std[0]) == pytest.approx(float(d_std), rel=1e-6, abs=1e-11 / std)


def test_the_probability_of_a_union_is_the_sum() -> None:
    mean, std = points()
    parts = [log_probability_in(mean, std, (i,)) for i in ((-2.0, -1.0), (1.0, 1.5))]
    both = log_probability_in(mean, std, ((-2.0, -1.0), (1.0, 1.5)))
    np.testing.assert_allclose(both, np.logaddexp(*parts), rtol=1e-12)
    assert log_probability_in([0.0], [1.0], ()).tolist() == [-math.inf]
    assert log_probability_in([0.0, 2.0], [0.0, 0.0], ((-1.0, 1.0),)).tolist() == [0.0, -math.inf]
    assert log_probability_in([0.0], [1.0], ((0.5, 0.5),)).tolist() == [-math.inf]
