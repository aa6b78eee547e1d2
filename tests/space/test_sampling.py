"""Allowed rows of a region: draws, data rows, walks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescfx.data import Categorical, Feature, Integer, Real
from bayescfx.errors import InfeasibleError
from bayescfx.space.sampling import background, background_rows, sample
from bayescfx.space.space import Space
from tests.conftest import plain


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_draws_are_uniform_over_a_plain_box() -> None:
    region = Space({"a": Real(2, 4), "k": Integer(0, 4)}).around([3.0, 2])
    X = sample(region, 4000, rng())
    assert np.histogram(X[:, 0], bins=10, range=(2, 4))[0].std() < 40
    share = np.bincount(X[:, 1].astype(int)) / len(X)
    np.testing.assert_allclose(share, 0.2, atol=0.03)


def test_a_bound_on_changes_gives_supports_of_every_size() -> None:
    region = Space({f"x{j}": Real(0, 1) for j in range(6)}).max_changes(3).around([0.5] * 6)
    count = region.changes(sample(region, 600, rng())).sum(axis=1)
    assert np.bincount(count, minlength=4)[1:].min() > 150


def test_the_same_seed_gives_the_same_rows() -> None:
    frame, space = plain()
    region = space.require("x + k <= 9").max_changes(2).around(frame.iloc[0])
    np.testing.assert_array_equal(sample(region, 50, rng(3)), sample(region, 50, rng(3)))


CUBE: dict[Any, Feature] = {f"x{j}": Real(0, 1) for j in range(10)}
MIDDLE = dict.fromkeys(CUBE, 0.5)
DICE: dict[Any, Feature] = {f"i{j}": Integer(0, 20) for j in range(6)}
TENS = dict.fromkeys(DICE, 10)
SUM = "i0 + i1 + i2 + i3 + i4 + i5 == 60"
RARE = {
    "a ball around the query": (
        Space(CUBE).require(lambda d: ((d - 0.5) ** 2).sum(axis=1) <= 0.02, "ball"),
        MIDDLE,
    ),
    "a ball elsewhere": (
        Space(CUBE).require(lambda d: ((d - 0.8) ** 2).sum(axis=1) <= 0.1, "ball"),
        MIDDLE,
    ),
    "a thin slab": (Space(CUBE).require("1.4999 <= x0 + x1 + x2 <= 1.5001"), MIDDLE),
    "an equality": (Space(CUBE).require("x0 + x1 + x2 == 0.5"), MIDDLE),
    "ten in order": (Space(CUBE).require(" <= ".join(CUBE)), MIDDLE),
    "a corner": (Space(CUBE).require(" + ".join(CUBE) + " >= 9.9"), MIDDLE),
    "whole numbers with a sum": (Space(DICE).require(SUM), TENS),
    "two equalities": (Space(DICE).require("3*i0 + 2*i1 - i2 == 7").require("i3 == i4"), TENS),
    "a sum with three changes": (Space(DICE).require(SUM).max_changes(3), TENS),
    "two changes that must include one": (
        Space(CUBE).require("x3 >= 0.95").max_changes(2),
        MIDDLE,
    ),
    "together into a corner": (
        Space(CUBE).together("x0", "x1", "x2").require("x0 + x1 >= 1.9").max_changes(3),
        MIDDLE,
    ),
    "one level in 500": (
        Space({**CUBE, "c": Categorical(range(10)), "e": Categorical(range(50))}).require(
            lambda d: (d["c"] == 7) & (d["e"] == 17) & (d["x0"] > 0.9), "rare"
        ),
        {**MIDDLE, "c": 0, "e": 0},
    ),
}


@pytest.mark.parametrize("name", RARE)
def test_points_are_found_where_one_in_ten_thousand_draws_is_allowed(name: str) -> None:
    space, query = RARE[name]
    region = space.around(query)
    X = sample(region, 100, rng())
    assert len(X) == 100
    assert region.contains(X).all()
    assert len(np.unique(X, axis=0)) >= 50


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_small_regions_under_rules_are_never_called_infeasible(seed: int) -> None:
    draws = rng(seed)
    bound = int(draws.integers(-6, 7))
    space = Space({name: Integer(-3, 3) for name in "abc"}).require(f"2*a - 3*b + c == {bound}")
    space = space.max_changes(int(draws.integers(1, 4)))
    region = space.around(draws.integers(-3, 4, 3))
    points = region.enumerate(10_000)
    assert points is not None
    others = points[region.changes(points).any(axis=1)]
    if len(others):
        X = sample(region, 10, draws)
        assert len(X)
        assert region.contains(X).all()
    else:
        with pytest.raises(InfeasibleError):
            sample(region, 10, draws)


# ── infeasible regions ──


def test_a_rule_without_solutions_is_named_with_its_count() -> None:
    space = (
        Space(CUBE)
        .require("x0 <= 0.9")
        .require(lambda d: d["x0"] > 2, "spend must not exceed income")
    )
    with pytest.raises(
        InfeasibleError,
        match=r"no point satisfies every rule for this query \(0 of 2048 tried\). This constraint "
        r"alone forbids every row .* as far as 2048 tried rows show: rule 'spend must not exceed",
    ):
        sample(space.around(MIDDLE), 10, rng())


def test_rules_that_contradict_each_other_are_all_named() -> None:
    space = Space(CUBE).require("x0 <= x1 - 0.2").require("x1 <= x0")
    with pytest.raises(
        InfeasibleError, match=r"conflict: rule 'x0 <= x1 - 0.2' and rule 'x1 <= x0'."
    ):
        sample(space.around(MIDDLE), 10, rng())


def test_a_query_that_is_the_only_point_is_infeasible_too() -> None:
    space = Space(DICE).require(SUM).max_changes(1)
    with pytest.raises(InfeasibleError, match="no point but the query itself satisfies every rule"):
        sample(space.around(TENS), 10, rng())


def test_a_query_that_cannot_move_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="no feature may move for this query"):
        sample(Space({"a": Real(0, 1)}).fix("a").around([0.5]), 1, rng())


def test_features_that_move_together_need_room_for_both() -> None:
    space = Space(CUBE).together("x0", "x1").allow("x0", "x1")
    with pytest.raises(InfeasibleError, match="no feature may move for this query"):
        sample(space.max_changes(1).around(MIDDLE), 10, rng())
    region = space.max_changes(2).around(MIDDLE)
    assert sample(region, 10, rng()).shape == (10, 10)
    assert sample(region, 0, rng()).shape == (0, 10)


# ── data rows ──


def test_background_rows_keep_the_fixed_features_of_the_query() -> None:
    frame, space = plain()
    region = space.fix("k").around(frame.iloc[0])
    X = background(region)
    assert (X[:, 1] == frame["k"].iloc[0]).all()
    assert set(X[:, 0]) <= set(frame["x"])
    assert len(X) == 49  # all rows but the query's own
    one = background_rows(region, 30, rng(), changes=1)
    assert (region.changes(one).sum(axis=1) == 1).all()
    assert set(one[:, 0]) <= set(frame["x"])
    by_hand = Space(CUBE).around(MIDDLE)
    assert background(by_hand).shape == (0, 10)
    assert background_rows(by_hand, 5, rng()).shape == (0, 10)
