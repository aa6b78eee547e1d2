"""The claims of the paper; each test is named after its claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from bayescfx.acquisition import ei_cfx, ei_cfx_gradient, log_ei_cfx, log_ei_cfx_gradient
from bayescfx.arrays import Array, Mask
from bayescfx.potentials import AEP, SEP, LevelPotential, contains
from bayescfx.potentials.ep_family import PEAK, depth, ep_edges
from bayescfx.theory.definitions import ThresholdSet, in_target_set, is_potential

EP: list[LevelPotential] = [AEP(1.0, 2.0, 1), AEP(1.0, 2.0, -1), SEP(1.0, 2.0)]


def test_definition_ep_family_peaks_at_the_query_plus_minus_width_with_one_over_e() -> None:
    for potential, peaks in zip(EP, ([3.0], [-1.0], [-1.0, 3.0]), strict=True):
        np.testing.assert_allclose(potential.value(peaks), 1.0 / math.e, rtol=1e-15)
        np.testing.assert_allclose(potential.slope(peaks), 0.0, atol=1e-15)
        y = np.linspace(-9.0, 11.0, 20_001)
        assert float(np.max(potential.value(y))) <= 1.0 / math.e
        assert float(potential.value(1.0)) == 0.0


def test_definition_ep_family_sep_is_the_sum_of_both_aep() -> None:
    y = np.linspace(-9.0, 11.0, 2001)
    np.testing.assert_allclose(EP[2].value(y), EP[0].value(y) + EP[1].value(y), rtol=1e-15)
    np.testing.assert_allclose(EP[2].slope(y), EP[0].slope(y) + EP[1].slope(y), rtol=1e-15)


def test_definition_potential_is_not_maximal_at_the_query() -> None:
    outputs = np.linspace(-9.0, 11.0, 2001)
    for potential in EP:
        assert is_potential(potential, 1.0, outputs)


def test_definition_potential_value_and_slope_are_lipschitz() -> None:
    y = np.linspace(-9.0, 11.0, 200_001)
    for potential in EP:
        steps = np.abs(np.diff(potential.value(y))) / np.diff(y)
        bends = np.abs(np.diff(potential.slope(y))) / np.diff(y)
        # sup |rho'| = 0.5873 / w, sup |rho''| = 2 / w**2, at the origin
        assert float(steps.max()) < 0.588 / 2.0
        assert float(bends.max()) < 2.001 / 4.0


@pytest.mark.parametrize("potential", EP, ids=repr)
def test_superlevel_sets_are_nested(potential: LevelPotential) -> None:
    sets = [potential.target_set(epsilon) for epsilon in (0.0, 1e-12, 1e-6, 0.01, 0.3, 0.9, 0.999)]
    for inner, outer in pairwise(sets):
        for (low, high), (wide_low, wide_high) in zip(inner, outer, strict=True):
            assert wide_low <= low <= high <= wide_high


def test_footnote_both_radii_of_the_target_set_move_with_epsilon() -> None:
    inner = [SEP(0.0, 1.0).target_set(epsilon)[1] for epsilon in (0.01, 0.1, 0.5)]
    assert inner[0][0] > inner[1][0] > inner[2][0]
    assert inner[0][1] < inner[1][1] < inner[2][1]
    assert inner[2][0] < 1.0 < inner[0][1]


def test_definition_potential_duality_membership() -> None:
    y = np.linspace(-5.0, 7.0, 997)
    for potential in EP:
        assert np.array_equal(
            in_target_set(potential, y, 0.2, PEAK), contains(potential.target_set(0.2), y)
        )
        # If the model cannot reach the peak, its optimum replaces the peak.
        reached = float(np.max(potential.value(y[y < 2.0])))
        assert in_target_set(potential, y[y < 2.0], 0.0, reached).sum() >= 1


@pytest.mark.parametrize("level", [1e-12, 1e-3, 0.2, 0.36, 0.3678794])
def test_lemma_b1_the_four_roots(level: float) -> None:
    t, _ = ep_edges(depth(level))
    roots = [sign * math.sqrt(root) for root in t.tolist() for sign in (-1, 1)]
    assert len(set(roots)) == 4
    for x in roots:
        assert x * x * math.exp(-x * x) == pytest.approx(level, rel=1e-13)


def test_lemma_b1_the_roots_meet_at_one_over_e() -> None:
    t, _ = ep_edges(0.0)
    assert t.tolist() == [1.0, 1.0]


CASES = [(0.5, 0.8, 0.1), (2.5, 0.3, 0.2), (-3.0, 2.0, 0.05), (1.0, 1.5, 0.0), (3.0, 0.2, 0.36)]


@pytest.mark.parametrize("potential", EP, ids=repr)
@pytest.mark.parametrize(("mean", "std", "best"), CASES)
def test_proposition_closed_form_equals_quadrature_of_definition_ei_cfx(
    potential: LevelPotential, mean: float, std: float, best: float
) -> None:
    total = 0.0
    for low, high in potential.superlevel(best):
        a = max(low, mean - 40 * std)
        b = min(high, mean + 40 * std)
        if a < b:
            part, _ = integrate.quad(
                lambda y: (
                    (float(potential.value(y)) - best) * math.exp(-0.5 * ((y - mean) / std) ** 2)
                ),
                a,
                b,
                epsabs=0.0,
                epsrel=1e-12,
                points=sorted({min(max(mean, a), b)}),
                limit=400,
            )
            total += part / std / math.sqrt(2.0 * math.pi)
    assert float(ei_cfx([mean], [std], potential, best)[0]) == pytest.approx(
        total, rel=1e-9, abs=1e-15
    )


@pytest.mark.parametrize("potential", EP, ids=repr)
def test_proposition_closed_form_equals_monte_carlo(potential: LevelPotential) -> None:
    draws = np.random.default_rng(0).normal(size=400_000)
    for mean, std, best in CASES:
        gain = np.maximum(potential.value(mean + std * draws) - best, 0.0)
        error = float(gain.std()) / math.sqrt(len(draws))
        assert float(ei_cfx([mean], [std], potential, best)[0]) == pytest.approx(
            float(gain.mean()), abs=5.0 * error + 1e-9
        )


def test_proposition_closed_form_of_sep_is_the_sum_of_both_sides() -> None:
    for mean, std, best in CASES:
        both = sum(float(ei_cfx([mean], [std], side, best)[0]) for side in EP[:2])
        assert float(ei_cfx([mean], [std], EP[2], best)[0]) == pytest.approx(both, rel=1e-12)


@pytest.mark.parametrize("potential", EP, ids=repr)
def test_proposition_ei_cfx_and_its_gradient_are_continuous(potential: LevelPotential) -> None:
    # Along paths in mean, deviation and threshold, half the step means half of every change.
    paths: dict[str, Callable[[Array], tuple[Array, Array, Array]]] = {
        "mean": lambda t: (-4.0 + 8.0 * t, 0.3 + 0.0 * t, 0.3 + 0.0 * t),
        "std": lambda t: (2.6 + 0.0 * t, 10.0 ** (-3.0 + 4.0 * t), 0.3 + 0.0 * t),
        "best": lambda t: (2.6 + 0.0 * t, 0.3 + 0.0 * t, PEAK * (1.0 - 0.9 * 10.0 ** (-9.0 * t))),
    }
    for path in paths.values():
        changes = []
        for n in (2001, 4001):
            mean, std, best = path(np.linspace(0.0, 1.0, n))
            parts = [ei_cfx(mean, std, potential, best)]
            parts += list(ei_cfx_gradient(mean, std, potential, best))
            assert all(np.isfinite(part).all() for part in parts)
            changes.append([float(np.abs(np.diff(part)).max()) for part in parts])
        for coarse, fine in zip(*changes, strict=True):
            assert fine <= 0.6 * coarse + 1e-12


def test_no_jump_and_no_nan_as_the_threshold_nears_one_over_e() -> None:
    potential = AEP(0.0, 1.0)
    best = PEAK * (1.0 - 10.0 ** np.linspace(-1.0, -12.0, 400))
    mean = np.full(400, 0.9)
    std = np.full(400, 0.05)
    value = log_ei_cfx(mean, std, potential, best)
    assert np.isfinite(value).all()
    assert np.all(np.diff(value) < 0.0)
    # EI goes like (1 - e best)**1.5: an interval of width ~ sqrt, a height of ~ 1
    slope = np.diff(value) / (11.0 / 399.0 * math.log(10.0))
    np.testing.assert_allclose(slope[250:350], -1.5, atol=1e-3)
    for part in log_ei_cfx_gradient(mean, std, potential, best):
        assert np.isfinite(part).all()


def test_no_jump_and_no_nan_as_the_deviation_vanishes() -> None:
    potential = AEP(0.0, 1.0)
    std = np.concatenate([10.0 ** np.linspace(0.0, -12.0, 300), [0.0]])
    value = ei_cfx(np.full(std.shape, 0.9), std, potential, 0.2)
    assert np.isfinite(value).all()
    assert value[-1] == pytest.approx(0.81 * math.exp(-0.81) - 0.2, rel=1e-12)
    np.testing.assert_allclose(value[-150:], value[-1], rtol=1e-9)


# the paper's Figure 1: a slow rise to x1 = 1.9, then a long flat stretch up to x2 = 4
X1 = 1.9
X2 = 4.0
QUERY = 0.9


def figure_1(x: Array) -> Array:
    rise = 0.9 * np.log(np.minimum(x, X1) / 1.5) + 1.0
    g1 = 0.9 * math.log(X1 / 1.5) + 1.0
    g2 = 0.9 * math.log(X2 / 1.5) + 1.0
    late = (g2 - g1) * np.power(np.maximum(x - X1, 0.0) / (X2 - X1), 7.0)
    return np.asarray(rise + late)


def test_figure_1_thresholds_jump_and_the_nearest_of_a_target_set_jumps_later() -> None:
    x = np.linspace(0.5, 4.2, 37_001)
    y = figure_1(x)
    origin = float(figure_1(np.array([QUERY]))[0])
    ahead = x > QUERY
    step = float(figure_1(np.array([X1]))[0]) - origin

    def nearest(mask: Mask) -> float:
        return float(x[ahead & mask].min())

    # A threshold just above f(x1) moves the nearest counterfactual across the flat part.
    before = nearest(ThresholdSet(origin, 0.999 * step).contains(y))
    after = nearest(ThresholdSet(origin, 1.001 * step).contains(y))
    assert after - before > 0.75
    # There the target set has points on both sides; it jumps where its lower end passes f(x1).
    edge = AEP(0.0, 1.0).target_set(0.01)[0][0]
    for passing, low, high in ((1.0, 0.0, 0.01), (1.0 / edge, 0.75, 2.0)):
        before = nearest(contains(AEP(origin, 0.999 * passing * step).target_set(0.01), y))
        after = nearest(contains(AEP(origin, 1.001 * passing * step).target_set(0.01), y))
        assert low <= after - before < high


def test_section_3_the_intermediate_value_is_where_ei_cfx_looks() -> None:
    # f(0) = 0, f(1) = 2, rho = y**2 exp(-y**2): a surrogate of f has 1 in between
    potential = AEP(0.0, 1.0)
    best = 4.0 * math.exp(-4.0)
    mean = np.linspace(0.0, 2.0, 201)  # posterior mean of an interpolating surrogate on [0, 1]
    std = 0.3 * np.sin(np.linspace(0.0, math.pi, 201)) + 1e-6
    assert mean[int(np.argmax(log_ei_cfx(mean, std, potential, best)))] == pytest.approx(
        1.0, abs=0.1
    )
