"""Proposals in regions of every kind: allowed by construction, and maximal."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Real
from bayescfx.propose.proposal import propose
from bayescfx.space.space import Space
from tests.oracles.spaces import noted, random_case
from tests.propose.functions import Plain, cube, generator, hill, middle

# ── kinks, rules, l0 ──


def test_coordinates_that_are_not_worth_their_cost_stay_exactly_at_the_query() -> None:
    d = 6
    region = cube(d).around(middle(d))
    centre, worth = np.array([0.9, 0.52, 0.1, 0.49, 0.5, 0.8]), 0.4
    smooth = hill(centre)
    kinked = Plain(
        lambda X: smooth.f(X) - worth * np.abs(X - 0.5).sum(axis=1),
        lambda X: smooth.slope(X) - worth * np.sign(X - 0.5),
    )
    found = propose(kinked, region, generator()).points[0]
    # soft threshold: a coordinate moves by its optimal shift less worth / 2
    shift = centre - 0.5
    wanted = 0.5 + np.sign(shift) * np.maximum(np.abs(shift) - worth / 2, 0)
    assert found == pytest.approx(wanted, abs=1e-3)
    assert (found[[1, 3, 4]] == 0.5).all()


def test_a_maximum_beyond_a_linear_rule_is_found_on_the_rule() -> None:
    d = 5
    region = (
        cube(d)
        .require("x0 + x1 + x2 <= 1.2")
        .require("x3 <= x4")
        .around({"x0": 0.1, "x1": 0.1, "x2": 0.1, "x3": 0.2, "x4": 0.5})
    )
    centre = np.array([0.9, 0.8, 0.2, 0.9, 0.3])
    found = propose(hill(centre), region, generator())
    # x0 + x1 + x2 = 1.2 takes 0.7 / 3 from each, 0.2 stops at 0; then x3 = x4 = 0.6
    wanted = np.array([0.65, 0.55, 0.0, 0.6, 0.6])
    assert found.points[0] == pytest.approx(wanted, abs=2e-3)
    assert region.contains(found.points).all()


def test_a_rule_by_a_function_is_kept() -> None:
    space = cube(3).require(lambda rows: rows["x0"] ** 2 + rows["x1"] ** 2 <= 0.6, label="disc")
    region = space.around(middle(3))
    found = propose(hill(np.array([0.9, 0.5, 0.1])), region, generator(), k=4)
    assert (found.points[:, 0] ** 2 + found.points[:, 1] ** 2 <= 0.6).all()
    beyond = np.hypot(0.9, 0.5) - np.sqrt(0.6)  # the nearest point lies on the radius
    assert found.values[0] == pytest.approx(-(beyond**2), abs=5e-3)


def test_slopes_reach_the_function_through_derived_columns() -> None:
    space = Space({"a": Real(0, 1), "b": Real(0, 1), "product": Real(0, 1)})
    space = space.derive("product", lambda rows: rows["a"] * rows["b"])
    region = space.around({"a": 0.5, "b": 0.5, "product": 0.25})
    only_product = Plain(
        lambda X: -((X[:, 2] - 0.63) ** 2) - 0.1 * (X[:, 0] - X[:, 1]) ** 2,
        lambda X: np.stack(
            [
                -0.2 * (X[:, 0] - X[:, 1]),
                0.2 * (X[:, 0] - X[:, 1]),
                -2 * (X[:, 2] - 0.63),
            ],
            axis=1,
        ),
    )
    found = propose(only_product, region, generator())
    assert found.values[0] == pytest.approx(0.0, abs=1e-5)
    assert region.contains(found.points).all()


def test_features_that_belong_together_move_together() -> None:
    region = cube(4).together("x0", "x1").around(middle(4))
    found = propose(hill(np.array([0.9, 0.7, 0.2, 0.5])), region, generator())
    assert found.values[0] == pytest.approx(0.0, abs=1e-4)
    apart = propose(hill(np.array([0.9, 0.2, 0.2, 0.5])), region, generator())
    side = np.sign(apart.points[0, :2] - 0.5)
    assert side[0] == side[1]
    assert apart.values[0] == pytest.approx(-0.09, abs=2e-2)


@pytest.mark.parametrize(("d", "bound"), [(10, 3), (30, 4)])
def test_the_best_set_of_changes_is_found(d: int, bound: int) -> None:
    rng = generator(d)
    region = cube(d).max_changes(bound).around(middle(d))
    centre, weight = rng.random(d), rng.uniform(0.5, 2, size=d)
    peaks = Plain(
        lambda X: -(weight * (X - centre) ** 2).sum(axis=1), lambda X: -2 * weight * (X - centre)
    )
    found = propose(peaks, region, rng)
    loss = np.sort(weight * (0.5 - centre) ** 2)
    assert found.values[0] == pytest.approx(-loss[:-bound].sum(), abs=1e-5)


def test_sets_of_changes_that_only_pay_together_are_found() -> None:
    d, bound = 8, 2
    region = cube(d).max_changes(bound).around(middle(d))
    rng = generator(3)
    gain = {pair: rng.uniform(1, 2) for pair in combinations(range(d), 2)}
    weights = np.zeros((d, d))
    for (i, j), w in gain.items():
        weights[i, j] = w

    def product(X: Array) -> Array:
        Z = np.abs(X - 0.5)
        return np.asarray(np.einsum("ni,ij,nj->n", Z, weights, Z))

    def slope(X: Array) -> Array:
        Z = np.abs(X - 0.5)
        return np.asarray((Z @ weights.T + Z @ weights) * np.sign(X - 0.5))

    found = propose(Plain(product, slope), region, rng)
    assert found.values[0] == pytest.approx(0.25 * max(gain.values()), abs=1e-6)


def test_a_small_hill_around_the_query_is_found_where_all_else_is_minus_infinity() -> None:
    d = 8
    region = cube(d).around(middle(d))

    def near(X: Array) -> Array:
        left = 0.15 - np.abs(X - 0.5).sum(axis=1)
        steep = 12 * (X[:, 0] - 0.5)
        return np.where(left > 0, np.log(np.maximum(left, 1e-300)) + steep, -np.inf)

    def slope(X: Array) -> Array:
        left = np.maximum(0.15 - np.abs(X - 0.5).sum(axis=1), 1e-300)
        out = -np.sign(X - 0.5) / left[:, None]
        out[:, 0] += 12
        return np.asarray(out)

    found = propose(Plain(near, slope), region, generator(), avoid=region.query[None])
    # log(0.15 - z) + 12 z is highest at z = 0.15 - 1 / 12, every other coordinate at the query
    assert found.values[0] == pytest.approx(12 * 0.15 - 1 - np.log(12), abs=1e-4)
    assert (found.points[0, 1:] == 0.5).all()


# ── edges ──


def test_all_categorical_regions_are_searched() -> None:
    space = Space({f"x{j}": Categorical([f"{i}" for i in range(9)]) for j in range(7)})
    region = space.around({f"x{j}": "0" for j in range(7)})
    best = generator(2).integers(9, size=7)
    match = Plain(lambda X: (best == X).sum(axis=1) + 0.0, np.zeros_like)
    assert propose(match, region, generator()).points[0].tolist() == best.tolist()


def test_a_single_free_feature_is_solved() -> None:
    region = cube(4).allow("x2").around(middle(4))
    found = propose(hill(np.array([0.0, 0.0, 0.123, 0.0])), region, generator())
    assert found.points[0] == pytest.approx([0.5, 0.5, 0.123, 0.5], abs=1e-6)


def test_two_hundred_features_are_solved() -> None:
    d = 200
    centre = generator(1).random(d)
    region = cube(d).around(middle(d))
    assert propose(hill(centre), region, generator()).values[0] > -1e-4


def test_three_of_two_hundred_features_are_found() -> None:
    d = 200
    summit = np.full(d, 0.5)
    summit[[17, 80, 133]] = [0.9, 0.05, 0.8]
    region = cube(d).max_changes(3).around(middle(d))
    found = propose(hill(summit), region, generator())
    assert np.flatnonzero(region.changes(found.points)[0]).tolist() == [17, 80, 133]
    assert found.values[0] > -1e-6


def test_the_best_of_five_thousand_levels_is_found() -> None:
    space = Space({"a": Real(0, 1), "b": Categorical(range(5000)), "c": Integer(0, 5)})
    region = space.around({"a": 0.5, "b": 0, "c": 2})
    height = generator(3).normal(size=5000)
    levels = Plain(
        lambda X: height[X[:, 1].astype(int)] - (X[:, 0] - 0.3) ** 2,
        lambda X: -2 * (X - 0.3) * np.array([1.0, 0.0, 0.0]),
    )
    found = propose(levels, region, generator())
    assert found.points[0, 1] == np.argmax(height)
    assert found.points[0, 0] == pytest.approx(0.3, abs=1e-3)


def test_long_grids_are_solved_to_the_last_step() -> None:
    space = Space({"a": Integer(0, 10**6), "b": Real(0, 1, step=0.001), "c": Real(0, 1)})
    region = space.around({"a": 5, "b": 0.5, "c": 0.5})
    centre = np.array([654_321.0, 0.123, 0.9])
    width = np.array([1e6, 1.0, 1.0])
    smooth = Plain(
        lambda X: -(((X - centre) / width) ** 2).sum(axis=1),
        lambda X: -2 * (X - centre) / width**2,
    )
    found = propose(smooth, region, generator()).points[0]
    assert found[1] == 0.123
    assert abs(found[0] - 654_321) <= 100
    assert found[2] == pytest.approx(0.9, abs=1e-3)


def test_a_missing_cell_stays_missing() -> None:
    region_space = cube(3).fix("x1")
    region = region_space.around({"x0": 0.5, "x1": float("nan"), "x2": 0.5})
    smooth = hill(np.array([0.2, 0.0, 0.7]))
    free = Plain(lambda X: smooth.f(np.nan_to_num(X)), lambda X: smooth.slope(np.nan_to_num(X)))
    found = propose(free, region, generator()).points[0]
    assert np.isnan(found[1])
    assert found[[0, 2]] == pytest.approx([0.2, 0.7], abs=1e-3)


def proposes_only_allowed_rows(seed: int) -> None:
    case = random_case(seed)
    rng = generator(seed)
    region = case.space.around(case.query)
    if not len(region.free):
        return
    width = np.where(region.high > region.low, region.high - region.low, 1.0)
    summit = np.nan_to_num(region.low + rng.random(len(width)) * (region.high - region.low))
    smooth = Plain(
        lambda X: -(((np.nan_to_num(X) - summit) / width) ** 2).sum(axis=1),
        lambda X: -2 * (np.nan_to_num(X) - summit) / width**2,
    )
    found = propose(smooth, region, rng, k=3, avoid=region.query[None])
    if found.exhausted:
        return
    rows = region.rows(found.points)
    assert isinstance(rows, pd.DataFrame)
    assert case.broken(rows) == [], seed
    assert case.foreign(rows) == [], seed
    assert region.contains(found.points).all(), seed


@noted
@pytest.mark.parametrize(
    "block", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 3, 4))]
)
def test_proposals_in_random_spaces_satisfy_every_rule(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        proposes_only_allowed_rows(seed)


@noted
@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_proposals_in_a_thousand_random_spaces_satisfy_every_rule(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        proposes_only_allowed_rows(10_000 + seed)


def test_an_acquisition_may_be_infinite_everywhere_near_the_query() -> None:
    names = [f"x{j}" for j in range(40)]  # too many for a list of all pairs
    space = Space({name: Real(0, 1) for name in names}).max_changes(2)
    region = space.around(dict.fromkeys(names, 0.5))

    def inside(X: Array) -> Array:  # finite only where two features have moved far
        return np.where((X > 0.9).sum(axis=1) == 2, X.sum(axis=1), -np.inf)

    corner = region.query.copy()
    corner[:2] = 0.95
    found = propose(
        Plain(inside, np.ones_like), region, np.random.default_rng(0), starts=corner[None]
    )
    assert found.values[0] >= inside(corner[None])[0]
