"""Potentials: shapes, slopes and superlevel sets, accurate up to the peak."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, cast

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescfx.errors import TargetError
from bayescfx.potentials import (
    AEP,
    SEP,
    LevelPotential,
    Linked,
    Logit,
    Plateau,
    Potential,
    Valley,
    contains,
)
from bayescfx.potentials.ep_family import PEAK, depth, ep_edges
from bayescfx.potentials.pieces import monotone_root
from bayescfx.potentials.potential import check_potential
from bayescfx.potentials.wrapped import Sampled

FAMILY: list[LevelPotential] = [
    AEP(0.0, 1.0),
    AEP(3.0, 0.2, -1),
    SEP(-1.0, 2.0),
    Plateau(1.0, 2.0, 0.5),
    Plateau(2.0, 2.0, 1.5),
    Plateau(1.0, math.inf, 0.5),
    Plateau(-math.inf, -1.0, 0.5),
    Valley(0.5, 0.75),
]
LINKED: list[LevelPotential] = [
    Linked(AEP(0.9, 0.4, -1), Logit()),
    Linked(Plateau(0.7, math.inf, 0.1), Logit()),
    Linked(Valley(0.6, 0.3), Logit()),
]
SAMPLED: list[LevelPotential] = [
    Sampled(SEP(0.0, 1.0), -3.0, 3.0),
    Sampled(Plateau(-1.0, 0.5, 1.0), -4.0, 4.0),
]


@pytest.mark.parametrize("potential", FAMILY, ids=repr)
def test_the_peak_is_one_over_e_and_is_taken_on_the_target(potential: LevelPotential) -> None:
    assert potential.peak == pytest.approx(1.0 / math.e, rel=1e-15)
    for low, high in potential.target_set(0.0):
        for end in (low, high):
            if math.isfinite(end):
                assert float(potential.value(end)) == pytest.approx(potential.peak, rel=1e-15)
                assert float(potential.slope(end)) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("potential", FAMILY + LINKED + SAMPLED, ids=repr)
def test_slopes_are_derivatives(potential: LevelPotential) -> None:
    y = np.linspace(-2.9, 2.9, 4001)
    h = 1e-6
    difference = (potential.value(y + h) - potential.value(y - h)) / (2.0 * h)
    # at a bend of the slope a difference over 2 h is off by h times its jump
    np.testing.assert_allclose(potential.slope(y), difference, atol=2e-5)


@pytest.mark.parametrize("potential", FAMILY + LINKED + SAMPLED, ids=repr)
@pytest.mark.parametrize("share", [1e-9, 0.01, 0.3, 0.9, 0.9999])
def test_superlevel_sets_hold_exactly_what_is_above_the_level(
    potential: LevelPotential, share: float
) -> None:
    level = share * potential.peak
    intervals = potential.superlevel(level)
    y = np.linspace(-2.9, 2.9, 5801)
    value = potential.value(y)
    clear = np.abs(value - level) > 1e-12
    np.testing.assert_array_equal(contains(intervals, y)[clear], (value >= level)[clear])
    for low, high in intervals:
        for end in (low, high):
            if math.isfinite(end) and not isinstance(potential, Sampled):
                assert float(potential.value(end)) == pytest.approx(level, rel=1e-9)


@pytest.mark.parametrize("potential", FAMILY + LINKED, ids=repr)
def test_superlevel_sets_of_many_levels_are_those_of_each(potential: LevelPotential) -> None:
    levels = np.array([-0.5, 0.0, 1e-12, 0.1, 0.3, PEAK * (1.0 - 1e-9)])
    sets = cast(Any, potential).superlevels(levels)
    for k, level in enumerate(levels.tolist()):
        found = [(low[k], high[k]) for low, high in sets if low[k] < high[k]]
        np.testing.assert_allclose(found, potential.superlevel(level), rtol=1e-12, atol=1e-12)


@settings(deadline=None)  # a busy machine is no fault
@given(st.floats(0.0, 1.0, exclude_max=True), st.floats(0.0, 1.0, exclude_max=True))
def test_target_sets_are_nested(a: float, b: float) -> None:
    small, large = min(a, b), max(a, b)
    for potential in FAMILY:
        inner, outer = potential.target_set(small), potential.target_set(large)
        assert len(inner) == len(outer)
        for (low, high), (wide_low, wide_high) in zip(inner, outer, strict=True):
            slack = 1e-12 * (1.0 + abs(low)) if math.isfinite(low) else 0.0
            assert wide_low <= low + slack
            assert wide_high >= high - 1e-12


def exact_edges(epsilon: float) -> tuple[Any, Any]:
    with mp.workdps(60):
        level = (1 - mp.mpf(epsilon)) / mp.e
        return -mp.lambertw(-level, 0).real, -mp.lambertw(-level, -1).real


@pytest.mark.parametrize(
    "epsilon", [1e-300, 1e-25, 1e-16, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999999]
)
def test_edges_are_exact_up_to_the_branch_point(epsilon: float) -> None:
    t, v = ep_edges(-math.log1p(-epsilon))
    with mp.workdps(400):
        level = (1 - mp.mpf(epsilon)) / mp.e
        low, high = -mp.lambertw(-level, 0).real, -mp.lambertw(-level, -1).real
        for k, truth in enumerate((low, high)):
            assert abs(float(mp.mpf(float(v[k])) / (truth - 1) - 1)) < 1e-14
            assert abs(float(mp.mpf(float(t[k])) / truth - 1)) < 1e-14


@pytest.mark.parametrize("level", [5e-324, 1e-300, 1e-20, 1e-3, 0.2, 0.25, 0.3, 0.3678])
def test_edges_are_exact_down_to_level_zero(level: float) -> None:
    t, _ = ep_edges(depth(level))
    with mp.workdps(60):
        low = -mp.lambertw(-mp.mpf(level), 0).real
        high = -mp.lambertw(-mp.mpf(level), -1).real
    assert float(t[0]) == pytest.approx(float(low), rel=1e-12, abs=5e-324)
    assert float(t[1]) == pytest.approx(float(high), rel=1e-14)


def test_the_case_that_lambert_w_in_double_precision_gets_wrong() -> None:
    # level = 1/e - 1e-9: W_-1 = -1.0000737349, a library gave -1.0000000082
    t, _ = ep_edges(depth(PEAK - 1e-9))
    assert float(t[1]) == pytest.approx(1.0000737349, abs=1e-9)


def test_the_depth_keeps_the_digits_next_to_the_peak() -> None:
    for level in (PEAK * (1.0 - 1e-12), math.nextafter(PEAK, 0.0), 0.3, 0.1, 1e-10):
        with mp.workdps(60):
            truth = -mp.log(mp.e * mp.mpf(level))
        assert float(depth(level)) == pytest.approx(float(truth), rel=1e-15)
    assert float(depth(PEAK)) == 0.0


def test_target_sets_carry_epsilon_beyond_the_precision_of_a_level() -> None:
    ((low, high),) = Plateau(0.0, 0.0, 1.0).target_set(1e-20)
    assert (low, high) == (-1e-10, 1e-10)
    ((low, high),) = AEP(-1.0, 1.0).target_set(1e-20)  # the peak is at 0: nothing is rounded
    low_exact, high_exact = exact_edges(1e-20)
    assert low == pytest.approx(float(mp.sqrt(low_exact) - 1), rel=1e-6)
    assert high == pytest.approx(float(mp.sqrt(high_exact) - 1), rel=1e-6)


@pytest.mark.parametrize("potential", FAMILY, ids=repr)
def test_levels_beyond_the_range_are_limits(potential: LevelPotential) -> None:
    assert potential.superlevel(0.5) == ()
    assert potential.superlevel(-1.0) == ((-math.inf, math.inf),)
    assert potential.superlevel(potential.peak) == potential.target_set(0.0)


def test_at_level_zero_the_ep_family_is_cut_at_the_origin() -> None:
    assert AEP(2.0, 1.0).superlevel(0.0) == ((2.0, math.inf),)
    assert AEP(2.0, 1.0, -1).superlevel(0.0) == ((-math.inf, 2.0),)
    assert SEP(2.0, 1.0).superlevel(0.0) == ((-math.inf, 2.0), (2.0, math.inf))


@pytest.mark.parametrize("side", [1, -1])
def test_a_plateau_has_a_slope_to_follow_a_million_widths_away(side: int) -> None:
    potential = Plateau(0.0, 1.0, 0.5)
    away = np.geomspace(1e-3, 1e6, 200) * 0.5
    y = 1.0 + away if side > 0 else -away
    assert np.all(side * potential.slope(y) < 0.0)
    assert np.all(np.diff(potential.value(y)) < 0.0)
    assert np.all(np.abs(potential.slope(y)) > 1e-300)


def test_far_outputs_do_not_overflow() -> None:
    for potential in FAMILY:
        for y in (1e308, -1e308, math.inf, -math.inf):
            if isinstance(potential, Plateau) and math.isinf(y):
                continue
            assert math.isfinite(float(potential.value(y)))
            assert math.isfinite(float(potential.slope(y)))


@pytest.mark.parametrize("potential", FAMILY + LINKED, ids=repr)
def test_between_knots_a_potential_is_monotone(potential: LevelPotential) -> None:
    knots = np.clip(potential.knots(), -1e3, 1e3)
    for a, c in pairwise(knots):
        sign = np.sign(potential.slope(np.linspace(a, c, 50)[1:-1]))
        assert not (np.any(sign > 0) and np.any(sign < 0))


def test_monotone_roots_are_found_next_to_a_peak() -> None:
    level = PEAK * (1.0 - np.array([0.9, 0.1, 1e-4, 1e-10]))
    root = monotone_root(AEP(0.0, 1.0), (1.0, 27.0), level)
    expected = np.sqrt(ep_edges(depth(level))[0][1])
    np.testing.assert_allclose(root, expected, atol=1e-11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AEP(0.0, 0.0), "AEP: `width` must be positive; got 0.0"),
        (lambda: AEP(0.0, -1.0), "AEP: `width` must be positive; got -1.0"),
        (lambda: SEP(math.nan, 1.0), "SEP: `origin` must be a finite number; got nan"),
        (lambda: SEP(0.0, math.inf), "SEP: `width` must be a finite number; got inf"),
        (
            lambda: AEP(0.0, 1.0, cast(Any, 2)),
            r"AEP: `side` must be 1 \(up\) or -1 \(down\); got 2",
        ),
        (lambda: AEP(1.0, 1e-20), "`width` 1e-20 is lost in rounding beside `origin` 1.0"),
        (lambda: Plateau(2.0, 1.0, 1.0), "`low` must not exceed `high`; got 2.0 and 1.0"),
        (lambda: Plateau(math.nan, 1.0, 1.0), "`low` must not exceed `high`; got nan and 1.0"),
        (lambda: Plateau(-math.inf, math.inf, 1.0), "must be finite; got both infinite"),
        (lambda: Valley(0.0, 0.0), "Valley: `width` must be positive; got 0.0"),
        (lambda: Valley(1.0, 1e-20), "Valley: `width` 1e-20 is lost in rounding"),
        (lambda: Valley(math.nan, 1.0), "Valley: `origin` must be a finite number; got nan"),
        (lambda: Plateau(0.0, 1.0, 0.0), "Plateau: `width` must be positive; got 0.0"),
        (lambda: AEP(0.0, 1.0).target_set(1.0), "`epsilon` must be at least 0 and less than 1"),
        (lambda: SEP(0.0, 1.0).target_set(-0.1), "`epsilon` must be at least 0 and less than 1"),
        (lambda: Sampled(AEP(0.0, 1.0), 1.0, 1.0), "`low` must be below `high`"),
        (lambda: Sampled(AEP(0.0, 1.0), 0.0, 1.0).target_set(2.0), "`epsilon` must be at least 0"),
    ],
)
def test_impossible_shapes_raise(make: Any, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        make()


def test_our_potentials_satisfy_the_protocols() -> None:
    for potential in FAMILY + LINKED + SAMPLED:
        assert isinstance(potential, LevelPotential)
    assert isinstance(Square(), Potential)
    assert not isinstance(Square(), LevelPotential)


class Square:
    def value(self, y: Any) -> Any:
        return -np.square(y)

    def slope(self, y: Any) -> Any:
        return -2.0 * np.asarray(y)


class Wrong(Square):
    def slope(self, y: Any) -> Any:
        return 2.0 * np.asarray(y)


class Step(Square):
    def value(self, y: Any) -> Any:
        return (np.asarray(y) > 0.3).astype(float)

    def slope(self, y: Any) -> Any:
        return np.zeros(np.shape(y))


class Broken(Square):
    def value(self, y: Any) -> Any:
        return np.where(np.asarray(y) > 0.5, np.nan, 0.0)


class Flat(Square):
    def slope(self, y: Any) -> Any:
        return 0.0


def test_a_users_potential_is_checked_for_being_c1() -> None:
    check_potential(Square(), np.linspace(-3.0, 3.0, 10))
    check_potential(Square(), [5.0])
    for potential in FAMILY:
        check_potential(potential, np.linspace(-3.0, 3.0, 10))
    with pytest.raises(TargetError, match=r"Wrong\.slope must be the derivative of Wrong\.value"):
        check_potential(Wrong(), [0.0, 1.0])
    with pytest.raises(TargetError, match=r"Step\.slope must be the derivative"):
        check_potential(Step(), [0.3, 1.0])
    with pytest.raises(TargetError, match=r"Step\.value must be continuous; it jumps between"):
        check_potential(Step(), [0.0, 1.0])
    with pytest.raises(TargetError, match=r"Broken\.value must be finite; got nan at y = 0\.5"):
        check_potential(Broken(), [0.0, 1.0])
    with pytest.raises(TargetError, match=r"Flat\.slope must return one number per output"):
        check_potential(Flat(), [0.0, 1.0])
    with pytest.raises(TargetError, match="`outputs` must be finite numbers, at least one"):
        check_potential(Square(), [])


def test_the_logit_link_and_its_inverse() -> None:
    link = Logit()
    p = np.array([0.0, 1e-9, 0.3, 0.5, 1.0 - 1e-9, 1.0])
    u = link.forward(p)
    assert np.isfinite(u).all()
    np.testing.assert_allclose(link.inverse(u), p, atol=1.1e-12)
    assert link.intervals(((0.0, 1.0), (1.5, 2.0))) == ((-math.inf, math.inf),)
    # What is to be 1 at least is as high as any output comes, not higher than all.
    (low, high), (lowest, least) = link.intervals(((1.0, math.inf), (-math.inf, 0.0)))
    assert (low, high) == (float(link.forward(1.0)), math.inf)
    assert (lowest, least) == (-math.inf, float(link.forward(0.0)))
    h = 1e-6
    u = np.linspace(-8, 8, 33)
    difference = (link.inverse(u + h) - link.inverse(u - h)) / (2 * h)
    np.testing.assert_allclose(link.inverse_and_slope(u)[1], difference, rtol=1e-6)


def test_a_linked_potential_is_the_potential_of_the_probability() -> None:
    inner = AEP(0.9, 0.4, -1)
    linked = Linked(inner, Logit())
    p = np.linspace(0.01, 0.99, 99)
    u = Logit().forward(p)
    np.testing.assert_allclose(linked.value(u), inner.value(p), rtol=1e-12, atol=1e-30)
    ((low, high),) = linked.target_set(0.01)
    ((p_low, p_high),) = inner.target_set(0.01)
    np.testing.assert_allclose(Logit().inverse([low, high]), [p_low, p_high], rtol=1e-12)
    # a set that reaches past a probability's range ends at infinity
    assert Linked(Plateau(0.8, math.inf, 0.1), Logit()).target_set(0.0)[0][1] == math.inf
    # one that lies beyond it is empty
    assert Linked(Plateau(1.5, 2.0, 0.1), Logit()).target_set(0.0) == ()


def test_a_sampled_potential_finds_its_peak_and_sets() -> None:
    sampled, exact = Sampled(SEP(0.0, 1.0), -3.0, 3.0), SEP(0.0, 1.0)
    assert sampled.peak == pytest.approx(exact.peak, rel=1e-12)
    np.testing.assert_allclose(sampled.superlevel(0.2), exact.superlevel(0.2), atol=1e-9)
    np.testing.assert_allclose(sampled.target_set(0.01), exact.target_set(0.01), atol=1e-9)
    assert sampled.superlevel(0.5) == ()
    assert sampled.superlevel(-1.0) == ((-3.0, 3.0),)
