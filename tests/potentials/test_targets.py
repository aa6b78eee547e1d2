"""Targets: text, potentials, accepted outputs, and errors."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescfx.errors import TargetError
from bayescfx.potentials import (
    AEP,
    SEP,
    LevelPotential,
    Plateau,
    Target,
    Valley,
    at_least,
    at_most,
    between,
    change,
    contains,
    decrease,
    increase,
    reach,
)
from bayescfx.potentials.targets import as_target, target_from_dict, tolerance_epsilon

OURS: list[Target] = [
    reach(171),
    reach(-0.25),
    reach(by=3),
    reach(percent=20),
    reach(by=-0.5),
    reach(percent=-12.5),
    increase(by=3),
    increase(percent=20),
    decrease(by=0.5),
    decrease(percent=12.5),
    change(by=7),
    change(percent=1),
    between(300, 350),
    between(310, 310),
    at_least(150),
    at_most(-20),
]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (reach(171), "exactly 171"),
        (reach(-0.25), "exactly -0.25"),
        (reach(by=3), "=+3"),
        (reach(percent=-20), "=-20 %"),
        (increase(percent=20), "+20 %"),
        (decrease(percent=20), "-20 %"),
        (change(by=3.5), "±3.5"),
        (increase(by=1e-7), "+1e-07"),
        (at_least(150), "at least 150"),
        (at_most(0.5), "at most 0.5"),
        (between(100, 150), "between 100 and 150"),
    ],
)
def test_targets_have_a_text(target: Target, words: str) -> None:
    assert target.describe() == str(target) == words


@pytest.mark.parametrize(
    ("target", "output", "potential"),
    [
        (reach(150), 100.0, AEP(100.0, 50.0, 1)),
        (reach(0.5), 0.75, AEP(0.75, 0.25, -1)),
        (reach(by=3), 10.0, AEP(10.0, 3.0, 1)),
        (reach(percent=-20), 50.0, AEP(50.0, 10.0, -1)),
        (reach(percent=20), -50.0, AEP(-50.0, 10.0, 1)),
        (change(percent=50), -4.0, Valley(-4.0, 2.0)),
        (between(1, 2), 5.0, Plateau(1.0, 2.0, 1.0)),
        (at_least(150), 120.0, Plateau(150.0, math.inf, 10.0)),
        (at_most(-3), 0.0, Plateau(-math.inf, -3.0, 1.0)),
        (increase(by=30), 120.0, Plateau(150.0, math.inf, 10.0)),
        (increase(percent=30), -10.0, Plateau(-7.0, math.inf, 1.0)),
        (decrease(percent=30), 10.0, Plateau(-math.inf, 7.0, 1.0)),
    ],
)
def test_targets_become_potentials(
    target: Target, output: float, potential: LevelPotential
) -> None:
    assert target.potential(output) == potential


@pytest.mark.parametrize("target", OURS, ids=str)
def test_the_potential_is_at_its_peak_at_the_wanted_outputs(target: Target) -> None:
    output = 37.0
    potential = target.potential(output)
    wanted = target.wanted(output)
    np.testing.assert_allclose(potential.superlevel(potential.peak), wanted, rtol=1e-12)
    # Definition "Potential": not maximal at the query
    assert float(potential.value(output)) < 0.11 * potential.peak


@pytest.mark.parametrize("target", OURS, ids=str)
@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.05, 0.5])
def test_the_epsilon_of_a_tolerance_stays_within_accepted_outputs(
    target: Target, tolerance: float
) -> None:
    output = 37.0
    accepted = target.acceptance(output, tolerance)
    epsilon = tolerance_epsilon(tolerance) if target.has_tolerance else 0.0
    inner = target.potential(output).target_set(epsilon)
    assert len(accepted) == len(inner)
    for (low, high), (a, b) in zip(accepted, inner, strict=True):
        assert a >= low - 1e-9
        assert b <= high + 1e-9
        if math.isfinite(high) and tolerance > 0.0:
            assert b == pytest.approx(high, rel=1e-6) or a == pytest.approx(low, rel=1e-6)


def test_values_are_accepted_within_the_tolerated_share_of_the_change() -> None:
    assert reach(150).acceptance(100.0, 0.1) == ((145.0, 155.0),)
    assert reach(by=-10).acceptance(0.0, 0.5) == ((-15.0, -5.0),)
    assert reach(percent=10).acceptance(-200.0, 0.1) == ((-182.0, -178.0),)


def test_a_range_is_accepted_as_it_is() -> None:
    assert between(1, 2).acceptance(5.0, 0.5) == ((1.0, 2.0),)
    assert at_least(3).acceptance(1.0, 0.5) == ((3.0, math.inf),)
    assert at_most(3).acceptance(5.0, 0.5) == ((-math.inf, 3.0),)
    plateau = as_target(Plateau(1.0, 2.0, 0.5))
    assert plateau.acceptance(5.0, 0.5) == ((1.0, 2.0),)
    valley = as_target(Valley(1.0, 2.0))
    assert valley.acceptance(1.5, 0.5) == ((-math.inf, -1.0), (3.0, math.inf))


@pytest.mark.parametrize("tolerance", [0.0, 0.5])
def test_at_least_means_at_least_whatever_the_tolerance(tolerance: float) -> None:
    inside = {
        increase(percent=10): [110.0, 113.0, 1e9],
        decrease(by=10): [90.0, 80.0, -1e9],
        change(by=10): [90.0, 110.0, -1e9, 1e9],
    }
    outside = {
        increase(percent=10): [109.999999, 90.0],
        decrease(by=10): [90.000001, 110.0],
        change(by=10): [90.000001, 109.999999],
    }
    for target, outputs in inside.items():
        assert contains(target.acceptance(100.0, tolerance), outputs).all()
        assert not contains(target.acceptance(100.0, tolerance), outside[target]).any()


@pytest.mark.parametrize("target", [increase(by=0.1), decrease(by=0.1), change(by=0.1)], ids=str)
def test_the_bound_of_a_change_forgives_rounding_only(target: Target) -> None:
    """0.1 + 0.2 - 0.1 is not 0.2 in doubles; a model that sums like this still changed by 0.1."""
    output = 0.1 + 0.2
    more = math.nextafter(output + 0.1, -math.inf)
    less = math.nextafter(output - 0.1, math.inf)
    accepted = contains(target.acceptance(output, 0.0), [more, less])
    assert accepted.tolist() == [target != decrease(by=0.1), target != increase(by=0.1)]
    short = [output + 0.1 * (1.0 - 1e-12), output - 0.1 * (1.0 - 1e-12)]
    assert not contains(target.acceptance(output, 0.0), short).any()


def test_absolute_bounds_forgive_nothing() -> None:
    short = math.nextafter(0.3, 0.0)
    assert not contains(at_least(0.3).acceptance(0.1, 0.05), [short]).any()
    assert not contains(between(0.3, 0.4).acceptance(0.1, 0.05), [short]).any()


def test_near_the_peak_one_percent_of_potential_is_seven_percent_of_output() -> None:
    assert tolerance_epsilon(0.07) == pytest.approx(2 * 0.07**2, rel=0.05)
    assert tolerance_epsilon(0.0) == 0.0


@pytest.mark.parametrize("target", OURS, ids=str)
def test_targets_survive_json(target: Target) -> None:
    again = target_from_dict(json.loads(json.dumps(target.to_dict(), allow_nan=False)))
    assert again == target


@pytest.mark.parametrize(
    "potential",
    [
        AEP(1.0, 2.0, -1),
        SEP(0.0, 1.0),
        Plateau(0.0, 1.0, 2.0),
        Plateau(0.0, math.inf, 2.0),
        Valley(-4.0, 2.0),
    ],
    ids=repr,
)
def test_our_potentials_survive_json(potential: LevelPotential) -> None:
    target = as_target(potential)
    again = target_from_dict(json.loads(json.dumps(target.to_dict(), allow_nan=False)))
    assert again == target
    assert again.potential(-5.0) == potential


class Hill:
    """A user's potential with one peak at 2."""

    def value(self, y: Any) -> Any:
        return 3.0 / (1.0 + np.square(np.asarray(y) - 2.0))

    def slope(self, y: Any) -> Any:
        d = np.asarray(y) - 2.0
        return -6.0 * d / np.square(1.0 + d * d)


class Kinked(Hill):
    def slope(self, y: Any) -> Any:
        return np.sign(np.asarray(y))


def test_a_number_means_reach() -> None:
    for number in (150, 150.0, np.float64(150), np.int64(150)):
        assert as_target(number) == reach(150)
    assert as_target(reach(3)) == reach(3)


def test_a_users_potential_becomes_a_target() -> None:
    target = as_target(Hill(), outputs=[0.0, 1.0, 5.0])
    potential = target.potential(0.0)
    assert potential.peak == pytest.approx(3.0)
    ((low, high),) = target.acceptance(0.0, 0.05)
    epsilon = tolerance_epsilon(0.05)
    away = math.sqrt(epsilon / (1.0 - epsilon))
    assert [low, high] == pytest.approx([2.0 - away, 2.0 + away])
    assert "Hill" in str(target)
    assert target.wanted(0.0)[0][0] == pytest.approx(2.0)


def test_a_potential_of_ours_is_accepted_by_its_superlevel_set() -> None:
    potential = AEP(0.0, 1.0)
    target = as_target(potential)
    assert target.potential(0.0) is potential
    assert target.acceptance(0.0, 0.05) == potential.target_set(tolerance_epsilon(0.05))
    assert as_target(Plateau(1.0, 2.0, 1.0)).acceptance(0.0, 0.05) == ((1.0, 2.0),)


@pytest.mark.parametrize(
    ("target", "output", "end"),
    [
        (between(1, 2), 1.9, 2.1),
        (at_least(150), 180.0, 120.0),
        (at_most(150), 0.0, 300.0),
        (at_least(150), 150.0, 135.0),  # at its end: a tenth of the output
        (at_most(0), 0.0, 1.0),
    ],
    ids=str,
)
def test_the_width_of_a_met_range_is_the_distance_to_its_end(
    target: Target, output: float, end: float
) -> None:
    """A query may be inside the range and break a rule."""
    potential = target.potential(output)
    assert float(potential.value(output)) == potential.peak
    assert float(potential.value(end)) == pytest.approx(0.1 * potential.peak)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: reach(0.5).potential(0.5), r"reach\(0\.5\) asks for no change: f\(query\) is al"),
        (lambda: reach(), "reach: give either `by` or `percent`; got neither"),
        (lambda: reach(3, by=1), "reach: give one of `value`, `by` and `percent`; got more"),
        (lambda: reach(by=0), "reach: `by` must not be 0; got 0"),
        (lambda: reach(percent=20).potential(0.0), r"0\.0\. Use reach\(by=...\)"),
        (lambda: increase(by=1e-15).wanted(1.0), r"\+1e-15 is lost in rounding beside f\(query\)"),
        (lambda: reach(by=-1e-15).wanted(1.0), "=-1e-15 is lost in rounding"),
        (lambda: reach(math.nan), "reach: `value` must be a finite number; got nan"),
        (lambda: reach(math.inf), "reach: `value` must be a finite number; got inf"),
        (lambda: reach("high"), "reach: `value` must be a number; got 'high'"),  # type: ignore[arg-type]  # the point
        (lambda: reach(True), "reach: `value` must be a number; got True"),
        (lambda: increase(), "increase: give either `by` or `percent`; got neither"),
        (lambda: increase(by=1, percent=1), "increase: give either `by` or `percent`; got both"),
        (lambda: increase(by=0), "increase: `by` must be positive; got 0"),
        (lambda: increase(by=-3), "got -3. For the other direction use decrease"),
        (lambda: decrease(percent=-3), "got -3. For the other direction use increase"),
        (lambda: change(by=-3), "change: `by` must be positive; got -3"),
        (lambda: change(by=math.nan), "change: `by` must be a finite number; got nan"),
        (
            lambda: increase(percent=20).potential(0.0),
            r"increase\(percent=20\) needs f\(query\) different from 0; got 0\.0\. Use increase",
        ),
        (lambda: between(2, 1), "`low` must not exceed `high`; got 2.0 and 1.0. Swap them"),
        (lambda: between(-math.inf, 1), "between: `low` must be a finite number; got -inf"),
        (lambda: at_least(math.nan), "at_least: `value` must be a finite number; got nan"),
        (lambda: reach(1).potential(math.nan), "target: `output` must be a finite number; got nan"),
        (lambda: reach(1).acceptance(0.0, 1.0), "`tolerance` must be at least 0 and less than 1"),
        (lambda: reach(1).acceptance(0.0, -0.1), "`tolerance` must be at least 0 and less than 1"),
        (lambda: between(1, 2).acceptance(0.0, 2.0), "`tolerance` must be at least 0"),
        (lambda: as_target("up"), r"the target must be like '\+20%' .*; got 'up'"),
        (lambda: as_target(None), "`target` must be a number, a target such as"),
        (lambda: as_target(True), "`target` must be a number, a target such as"),
        (lambda: as_target(Hill), "`target` must be a number, a target such as"),
        (lambda: as_target(Kinked(), outputs=[0.0, 1.0]), r"Kinked\.slope must be the derivative"),
        (lambda: as_target(Hill()).potential(0.0), "Hill has no `superlevel`"),
        (lambda: as_target(Hill(), [0.0, 5.0]).to_dict(), "can't be written as JSON"),
        (lambda: as_target(AEP(0.0, 1.0)).potential(1.0), "asks for no change"),
        (lambda: target_from_dict({"kind": "reech"}), "got 'reech'. Did you mean 'reach'"),
        (lambda: target_from_dict({}), "`kind` must be one of"),
        (lambda: target_from_dict({"kind": "reach", "size": 1}), "can't be read from"),
        (
            lambda: target_from_dict({"kind": "potential", "family": "X"}),
            "`family` must be one of AEP, SEP, Plateau, Valley",
        ),
    ],
)
def test_bad_targets_raise(make: Any, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        make()


@given(
    st.floats(-1e6, 1e6, allow_nan=False).filter(lambda x: abs(x) > 1e-3),
    st.floats(0.1, 500.0),
    st.floats(0.0, 0.9),
)
def test_percentages_are_of_the_size_of_the_output(
    output: float, percent: float, tolerance: float
) -> None:
    step = abs(output) * percent / 100.0
    for target, value in (
        (reach(percent=percent), output + step),
        (reach(percent=-percent), output - step),
    ):
        assert target.wanted(output)[0][0] == pytest.approx(value)
        accepted = target.acceptance(output, tolerance)
        assert contains(accepted, target.wanted(output)[0]).all()
        assert not contains(accepted, [output])[0]
    assert increase(percent=percent).wanted(output) == ((output + step, math.inf),)
    assert decrease(percent=percent).wanted(output) == ((-math.inf, output - step),)
    either = ((-math.inf, output - step), (output + step, math.inf))
    assert change(percent=percent).wanted(output) == either
    assert not contains(change(percent=percent).acceptance(output, tolerance), [output])[0]
