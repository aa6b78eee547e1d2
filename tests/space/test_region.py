"""The space seen from one query: tests, moves, distances and samples."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescfx.errors import InfeasibleError, SpaceError
from bayescfx.features import Categorical, Feature, Integer, Ordinal, Real
from bayescfx.space.draws import draw
from bayescfx.space.region import Region
from bayescfx.space.repair import project, repair
from bayescfx.space.sampling import background, background_rows, sample
from bayescfx.space.space import Space
from tests.oracles.spaces import Case, random_case


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def same(a: Any, b: Any) -> bool:
    return bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())


# ── the promise: every row satisfies every rule ──


def check_case(seed: int) -> bool:
    """Check one random space from all sides; return whether it has any point to move to."""
    case = random_case(seed)
    region = case.space.around(case.query if seed % 2 else case.query.iloc[0])
    assert region.contains(region.query[None, :])[0]
    try:
        X = sample(region, 20, rng(seed))
    except InfeasibleError:
        check_nothing(region, seed)
        return False
    assert region.changes(X).any(axis=1).all()
    check_rows(case, region, X)
    noisy = np.where(np.isnan(X), X, X + rng(seed).normal(size=X.shape) * region.scale)
    check_rows(case, region, project(region, noisy))
    check_rows(case, region, background(region))
    check_rows(case, region, background_rows(region, 10, rng(seed), changes=1))
    one = sample(region, 5, rng(seed), changes=1)
    check_rows(case, region, one)
    assert (region.changes(one).sum(axis=1) == 1).all()
    check_enumeration(case, region)
    return True


def check_rows(case: Case, region: Region, X: Any) -> None:
    if not len(X):
        return
    rows = region.rows(X)
    assert isinstance(rows, pd.DataFrame)
    assert case.broken(rows) == []
    assert case.foreign(rows) == []
    assert region.contains(X).all()
    assert same(region.encode(rows), X)
    assert same(region.snap(X), X)
    changed = case.changed(rows)
    names = list(rows)
    counted = [names.index(n) for n in names if n not in case.derived]
    np.testing.assert_array_equal(region.changes(X)[:, counted], changed[:, counted])


def check_enumeration(case: Case, region: Region) -> None:
    points = region.enumerate(300)
    if points is None:
        assert region.size > 300
        return
    assert len(np.unique(np.nan_to_num(points), axis=0)) == len(points) <= region.size
    check_rows(case, region, points)


def check_nothing(region: Region, seed: int) -> None:
    """Check that a region called infeasible has no point that plain draws would find."""
    X = region.complete(draw(region, 5_000, rng(seed + 1)))
    assert not (region.contains(X) & region.changes(X).any(axis=1)).any()


def test_every_row_of_random_spaces_satisfies_every_rule() -> None:
    feasible = [check_case(seed) for seed in range(60)]
    assert sum(feasible) >= 50


@pytest.mark.slow
@pytest.mark.parametrize("block", range(12))
def test_every_row_of_a_thousand_random_spaces_satisfies_every_rule(block: int) -> None:
    feasible = [check_case(seed) for seed in range(100 * (block + 1), 100 * (block + 2))]
    assert sum(feasible) >= 80


# ── what the contract names ──


def plain() -> tuple[pd.DataFrame, Space]:
    frame = pd.DataFrame(
        {
            "x": rng(1).uniform(0, 10, 50),
            "k": rng(2).integers(0, 9, 50),
            "c": rng(3).choice(list("abc"), 50),
        }
    )
    return frame, Space.from_data(frame)


def test_a_region_shows_limits_grid_and_choices() -> None:
    frame, space = plain()
    region = space.fix("k").around(frame.iloc[0])
    k = frame["k"].iloc[0]
    assert region.free.tolist() == [0, 2]
    assert region.low[1] == region.high[1] == region.query[1] == k
    assert region.step.tolist() == [0, 1, 1]
    assert region.categorical.tolist() == [False, False, True]
    assert region.cyclic.tolist() == [False, False, False]
    assert region.choices[0] is None
    assert region.choices[1] is not None
    assert region.choices[1].tolist() == [k]
    assert region.size == np.inf
    assert region.A.shape == (0, 3)
    assert region.b.shape == (0,)
    assert region.names == ("x", "k", "c")
    assert repr(region) == "Region(3 features, 2 free, size inf)"


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_size_counts_the_points_of_a_finite_region(levels: list[int], bound: int | None) -> None:
    space = Space({f"f{j}": Integer(0, n) for j, n in enumerate(levels)})
    space = space if bound is None else space.max_changes(bound)
    region = space.around({f"f{j}": 0 for j in range(len(levels))})
    points = [
        p
        for p in itertools.product(*(range(n + 1) for n in levels))
        if bound is None or sum(c != 0 for c in p) <= bound
    ]
    assert region.size == len(points)
    found = region.enumerate(10_000)
    assert found is not None
    assert {tuple(map(int, p)) for p in found} == set(points)
    assert region.enumerate(len(points) - 1) is None


def test_enumeration_keeps_rules() -> None:
    space = Space({"a": Integer(0, 3), "b": Integer(0, 3)}).require("a + b <= 2")
    points = space.around({"a": 0, "b": 0}).enumerate(100)
    assert points is not None
    assert {(int(a), int(b)) for a, b in points} == {
        (a, b) for a in range(4) for b in range(4) if a + b <= 2
    }


def test_a_wide_grid_has_no_choices_but_stays_on_its_grid() -> None:
    features: dict[Any, Feature] = {
        "a": Integer(0, 10**6, step=7),
        "b": Real(0, 10**4, step=0.1),
    }
    region = Space(features).around([3, 0.25])
    assert region.choices == (None, None)
    X = region.snap(np.array([[13.0, 0.31], [3.2, 0.26], [-5.0, 1e9]]))
    assert X.tolist() == [[14, 0.3], [3, 0.25], [0, 10_000]]
    drawn = sample(region, 100, rng())
    assert region.contains(drawn).all()
    assert (np.mod(drawn[:, 0], 7)[drawn[:, 0] != 3] == 0).all()
    assert region.contains(np.array([[14.0, 0.3], [15.0, 0.3], [14.0, 0.35]])).tolist() == [
        True,
        False,
        False,
    ]


def test_narrow_floats_stay_within_limits_after_rounding() -> None:
    frame = pd.DataFrame({"a": np.array([0.0, 1.0], dtype=np.float32)})
    region = Space.from_data(frame).between({"a": (0.1, 0.3)}).around({"a": 0.2})
    assert float(np.float32(0.1)) > 0.1
    X = region.snap(np.array([[0.1], [0.3], [0.0], [0.123456789]]))
    rows = region.rows(X)
    assert isinstance(rows, pd.DataFrame)
    values = rows["a"].to_numpy().astype(float)
    assert ((values >= 0.1) & (values <= 0.3)).all()
    assert same(region.encode(rows), X)


# ── distance ──


@pytest.mark.parametrize("norm", [0, 1, 1.5, 2, 7])
def test_distance_is_the_weighted_norm_of_changes_in_units(norm: float) -> None:
    features: dict[Any, Feature] = {
        "a": Real(0, 8),
        "d": Integer(0, 6, cyclic=True),
        "c": Categorical("xyz"[i] for i in range(3)),
        "g": Ordinal([10, 20, 30, 40, 50]),
    }
    space = Space(features).cost(norm=norm, per_feature={"a": 3, "c": 2})
    region = space.around({"a": 1.0, "d": 1, "c": "x", "g": 10})
    X = np.array([[5.0, 6.0, 2.0, 2.0], [1.0, 1.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0]])
    # scales without data: a quarter of the range
    units = [3 * 4 / 2, 2 / 1.5, 2 * 1, 2 / 1]
    if norm == 0:
        expected = [3.0 + 1 + 2 + 1, 0.0, 1.0]
    else:
        expected = [sum(u**norm for u in units) ** (1 / norm), 0.0, 1 / 1.5]
    np.testing.assert_allclose(region.distance(X), expected)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 7])
def test_the_gradient_of_the_distance_is_its_slope(norm: float) -> None:
    features: dict[Any, Feature] = {
        "a": Real(0, 8),
        "b": Real(0, 1),
        "d": Integer(0, 6, cyclic=True),
    }
    region = Space(features).cost(norm=norm).around({"a": 1.0, "b": 0.5, "d": 1})
    X = np.array([[5.0, 0.2, 6.0], [0.3, 0.9, 2.0]])
    slope = region.distance_gradient(X)
    for j in range(3):
        up, down = X.copy(), X.copy()
        up[:, j] += 1e-6
        down[:, j] -= 1e-6
        np.testing.assert_allclose(
            slope[:, j], (region.distance(up) - region.distance(down)) / 2e-6, rtol=1e-5
        )
    assert region.distance_gradient(region.query[None, :]).tolist() == [[0, 0, 0]]


def test_the_distance_survives_huge_changes_and_unordered_levels_have_no_slope() -> None:
    features: dict[Any, Feature] = {"a": Real(0, 1), "c": Categorical([1, 2])}
    region = Space(features).cost(norm=9).around([0.5, 1])
    assert np.isfinite(region.distance(np.array([[1e100, 0.0]]))).all()
    assert region.distance_gradient(np.array([[0.5, 1.0]])).tolist() == [[0, 0]]
    count = Space(features).cost(norm=0).around([0.5, 1])
    assert count.distance_gradient(np.array([[0.7, 1.0]])).tolist() == [[0, 0]]


# ── sampling ──


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
    exact = sample(region, 50, rng(), changes=2)
    assert (region.changes(exact).sum(axis=1) == 2).all()


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


def test_the_rule_nobody_can_satisfy_is_named_with_its_count() -> None:
    space = (
        Space(CUBE)
        .require("x0 <= 0.9")
        .require(lambda d: d["x0"] > 2, "spend must not exceed income")
    )
    with pytest.raises(
        InfeasibleError,
        match=r"no point satisfies every rule for this query \(0 of 2048 tried\). Tightest rule: "
        r"'spend must not exceed income' \(0 of 2048\). Others: 'x0 <= 0.9' \(1\d\d\d of 2048\)",
    ):
        sample(space.around(MIDDLE), 10, rng())


def test_rules_that_contradict_each_other_are_all_named() -> None:
    space = Space(CUBE).require("x0 <= x1 - 0.2").require("x1 <= x0")
    with pytest.raises(InfeasibleError, match=r"Tightest rule: 'x0 <= x1 - 0.2'.*'x1 <= x0'"):
        sample(space.around(MIDDLE), 10, rng())


def test_a_query_that_is_the_only_point_is_infeasible_too() -> None:
    space = Space(DICE).require(SUM).max_changes(1)
    with pytest.raises(InfeasibleError, match="no point but the query itself satisfies every rule"):
        sample(space.around(TENS), 10, rng())


def test_a_query_that_cannot_move_is_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="no feature may move for this query"):
        sample(Space({"a": Real(0, 1)}).fix("a").around([0.5]), 1, rng())


def test_a_wish_for_a_number_of_changes_that_is_impossible_gives_no_rows() -> None:
    region = Space(CUBE).together("x0", "x1").allow("x0", "x1").around(MIDDLE)
    assert sample(region, 10, rng(), changes=1).shape == (0, 10)
    assert sample(region, 10, rng(), changes=2).shape == (10, 10)
    assert sample(region, 0, rng()).shape == (0, 10)


# ── moves ──


def test_projection_returns_allowed_rows_near_the_given_ones() -> None:
    space = Space(CUBE).require("x0 + x1 <= 1").max_changes(3)
    region = space.around(dict.fromkeys(CUBE, 0.25))
    X = np.full((1, 10), 0.25)
    X[0, :4] = [0.9, 0.8, 0.3, 5.0]
    [row] = project(region, X)
    # the smallest of four changes goes back, the limit of x3 holds, the rule is met on its edge
    np.testing.assert_allclose(row[:4], [0.55, 0.45, 0.25, 1.0], atol=1e-6)
    rows, kept = repair(region, np.concatenate([X, X]))
    assert kept.tolist() == [True, True]
    assert same(rows[0], row)


def test_projection_drops_what_cannot_be_repaired() -> None:
    region = Space(CUBE).require(lambda d: d["x0"] > 2, "never").around(MIDDLE)
    assert project(region, np.random.default_rng(0).random((5, 10))).shape == (0, 10)


def test_background_rows_keep_the_query_s_fixed_features() -> None:
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


# ── derived columns ──


def body() -> tuple[pd.DataFrame, Space]:
    frame = pd.DataFrame(
        {"weight": rng(1).uniform(50, 100, 40), "height": rng(2).uniform(1.5, 2, 40)}
    )
    frame["bmi"] = (frame["weight"] / frame["height"] ** 2).round(1)
    frame["band"] = (frame["bmi"] // 5).astype(int)
    space = Space.from_data(frame).derive("bmi", lambda d: d["weight"] / d["height"] ** 2)
    return frame, space.derive("band", lambda d: d["bmi"] // 5)


def test_derived_columns_follow_and_are_no_changes_of_their_own() -> None:
    frame, space = body()
    region = space.max_changes(1).around(frame.iloc[0])
    X = sample(region, 30, rng())
    rows = region.rows(X)
    assert isinstance(rows, pd.DataFrame)
    np.testing.assert_allclose(rows["bmi"], rows["weight"] / rows["height"] ** 2)
    np.testing.assert_array_equal(rows["band"], rows["bmi"] // 5)
    assert region.free.tolist() == [0, 1]
    assert not region.changes(X)[:, 2:].any()
    stale = X.copy()
    stale[:, 2] += 1
    assert not region.contains(stale).any()
    assert same(region.complete(stale), X)


def test_the_query_s_own_derived_cell_stays_until_its_inputs_move() -> None:
    frame, space = body()  # bmi is rounded in the data, but not by the function
    region = space.around(frame.iloc[0])
    assert same(region.complete(region.query[None, :]), region.query[None, :])
    assert region.contains(region.query[None, :])[0]


def test_limits_and_rules_of_a_derived_column_bind() -> None:
    frame, space = body()
    region = space.between({"bmi": (20, 25)}).require("bmi + height <= 26.5").around(frame.iloc[0])
    rows = region.rows(sample(region, 50, rng()))
    assert isinstance(rows, pd.DataFrame)
    assert rows["bmi"].between(20, 25).all()
    assert (rows["bmi"] + rows["height"] <= 26.5).all()


def test_a_derived_column_that_does_not_fit_is_an_error() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "c": ["x", "y"]})
    space = Space.from_data(frame)
    bad = space.derive("c", lambda d: np.where(d["a"] > 1.5, "z", "x"))
    with pytest.raises(SpaceError, match="derived column 'c' must be one of its levels; got 'z'"):
        sample(bad.around(frame.iloc[0]), 10, rng())
    short = space.derive("c", lambda d: "x")
    with pytest.raises(SpaceError, match=r"derive\('c'\) must return one value per row"):
        sample(short.around(frame.iloc[0]), 10, rng())


# ── closeness ──


def test_rows_stay_near_the_data() -> None:
    t = rng().uniform(0, 10, 3000)
    frame = pd.DataFrame({"a": t, "b": 2 * t + rng(1).normal(0, 0.1, 3000)})
    space = Space.from_data(frame).near_data(frame)
    region = space.around(frame.iloc[0])
    assert region.contains(draw(region, 1000, rng())).sum() < 100
    X = sample(region, 200, rng())
    assert len(X) == 200
    assert np.abs(X[:, 1] - 2 * X[:, 0]).max() < 1
    assert np.ptp(X[:, 0]) > 8


def test_closeness_to_several_tables_combines() -> None:
    low = pd.DataFrame({"a": rng().uniform(0, 6, 500), "b": rng(1).uniform(0, 10, 500)})
    high = pd.DataFrame({"a": rng().uniform(4, 10, 500), "b": rng(1).uniform(0, 10, 500)})
    space = Space.from_data(pd.concat([low, high], ignore_index=True))
    region = space.near_data(low, 0.9).near_data(high, 0.8).around({"a": 5.0, "b": 5.0})
    assert region.near is not None
    assert region.near.label == "near_data(quantile=0.9) and near_data(quantile=0.8)"
    X = sample(region, 100, rng())
    assert ((X[:, 0] > 3) & (X[:, 0] < 7)).all()


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_function_rules_see_rows_as_the_model_does(kind: str) -> None:
    X: Any = rng().normal(size=(30, 3)).astype(np.float32)
    X = X if kind == "array" else pd.DataFrame(X, columns=list("abc"))
    seen: list[Any] = []

    def rule(rows: Any) -> Any:
        seen.append(rows)
        return np.asarray(rows)[:, 0] >= -1

    region = Space.from_data(X).require(rule).around(X[0] if kind == "array" else X.iloc[0])
    sample(region, 5, rng())
    assert {type(rows) for rows in seen} == {type(X)}
    if kind == "frame":
        assert all(rows.dtypes.equals(X.dtypes) for rows in seen)


def test_a_region_of_200_features_works() -> None:
    features: dict[Any, Feature] = {f"x{j}": Real(0, 1) for j in range(200)}
    space = Space(features).max_changes(5).require("x0 + x1 <= 0.9")
    region = space.around(dict.fromkeys(features, 0.5))
    X = sample(region, 50, rng())
    assert len(X) == 50
    assert region.contains(X).all()
