"""The space seen from one query: what it promises, tests and distances."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescfx.data import Categorical, Feature, Integer, Ordinal, Real
from bayescfx.errors import InfeasibleError
from bayescfx.space.region import Region
from bayescfx.space.repair import project
from bayescfx.space.sampling import background, background_rows, draw, sample
from bayescfx.space.space import Space
from tests.conftest import plain
from tests.oracles.spaces import Case, noted, random_case


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


@noted
def test_every_row_of_random_spaces_satisfies_every_rule() -> None:
    feasible = [check_case(seed) for seed in range(24)]
    assert sum(feasible) >= 20


@noted
@pytest.mark.slow
@pytest.mark.parametrize("block", range(13))
def test_every_row_of_a_thousand_random_spaces_satisfies_every_rule(block: int) -> None:
    feasible = [check_case(seed) for seed in range(100 * block, 100 * (block + 1))]
    assert sum(feasible) >= 80


# ── what the contract names ──


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


def test_a_region_of_200_features_works() -> None:
    features: dict[Any, Feature] = {f"x{j}": Real(0, 1) for j in range(200)}
    space = Space(features).max_changes(5).require("x0 + x1 <= 0.9")
    region = space.around(dict.fromkeys(features, 0.5))
    X = sample(region, 50, rng())
    assert len(X) == 50
    assert region.contains(X).all()


@pytest.mark.parametrize(("low", "kept"), [(0.0, 0), (-9.0, 200)])
def test_the_work_on_many_linear_rules_is_bounded(low: float, kept: int) -> None:
    bounds = np.linspace(2.0, 3.0, 3_000)
    space = Space({"a": Real(low, 1.0), "b": Real(0.0, 1.0), "c": Real(0.0, 1.0)})
    space = space.require(" and ".join(f"b - a <= {bound:.6f}" for bound in bounds))
    region = space.around({"a": 0.5, "b": 0.5, "c": 0.5})
    assert len(region.A) == kept  # none where the limits imply all of them
    assert region.curved == (kept > 0)
    X = sample(region, 300, rng())
    assert (X[:, 1] - X[:, 0] <= 2.0 + 1e-9).all()
    if kept:
        assert region.b.min() == 2.0  # the nearest
