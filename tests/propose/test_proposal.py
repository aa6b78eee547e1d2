"""Proposals: as good as exhaustive or many-start search, distinct, repeatable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Feature, Integer, Ordinal, Real
from bayescfx.deadline import Deadline
from bayescfx.errors import OutOfTime
from bayescfx.propose.proposal import propose
from bayescfx.space.region import Region
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from tests.propose.functions import (
    Improvement,
    Plain,
    branin,
    branin_slope,
    cube,
    generator,
    hill,
    middle,
)

LISTED = 8192  # larger finite regions are searched, not enumerated


# ── finite regions against enumeration ──


def random_feature(rng: np.random.Generator) -> Feature:
    kind = rng.integers(3)
    if kind == 0:
        return Integer(0, int(rng.integers(1, 25)))
    names = [f"level {i}" for i in range(int(rng.integers(2, 8)))]
    return Categorical(names) if kind == 1 else Ordinal(names)


def thirds(name: str, own: object) -> Callable[[pd.DataFrame], pd.Series[bool]]:
    return lambda rows: (rows[name] % 3 != 1) | (rows[name] == own)


def random_finite_region(rng: np.random.Generator, most: int) -> Region:
    """Mixed features, often an l0 bound, a linear rule and a rule by a function."""
    while True:
        features = {f"x{j}": random_feature(rng) for j in range(int(rng.integers(3, 8)))}
        space, numbers = Space(features), []
        query: dict[str, object] = {}
        for name, feature in features.items():
            if isinstance(feature, Integer):
                query[name] = int(rng.integers(feature.low, feature.high + 1))
                numbers.append(name)
            elif isinstance(feature, Categorical | Ordinal):
                query[name] = feature.levels[int(rng.integers(len(feature.levels)))]
        if rng.random() < 0.4:
            space = space.max_changes(int(rng.integers(2, len(features) + 1)))
        if len(numbers) > 1 and rng.random() < 0.5:
            a, b = numbers[:2]
            reach = int(str(query[a])) + 2 * int(str(query[b])) + int(rng.integers(0, 6))
            space = space.require(f"{a} + 2*{b} <= {reach}")
        if numbers and rng.random() < 0.3:
            space = space.require(thirds(numbers[-1], query[numbers[-1]]), label="thirds")
        region = space.around(query)
        if LISTED < region.size <= most:
            return region


def share_of_enumerated_maximum(seed: int, most: int) -> float:
    rng = generator(seed)
    region = random_finite_region(rng, most)
    acquisition = Improvement(region, rng, weight=float(rng.choice([0.0, 0.3])))
    every = region.enumerate(most)
    assert every is not None
    known = {row.tobytes() for row in acquisition.rows}
    every = every[[row.tobytes() not in known for row in every]]
    best = acquisition.value(every).max()
    found = propose(
        acquisition, region, generator(seed), acquisition.rows[:5], avoid=acquisition.rows
    )
    assert region.contains(found.points).all()
    assert found.points[0].tobytes() not in known
    assert found.values[0] == pytest.approx(acquisition.value(found.points)[0])
    return float(np.exp(found.values[0] - best))


def test_finite_regions_are_searched_as_well_as_enumerated() -> None:
    shares = np.array([share_of_enumerated_maximum(seed, 40_000) for seed in range(30)])
    assert shares.min() >= 0.99


@pytest.mark.slow
def test_two_hundred_finite_regions_are_searched_as_well_as_enumerated() -> None:
    shares = np.array([share_of_enumerated_maximum(1000 + s, 100_000) for s in range(200)])
    assert np.mean(shares > 1 - 1e-9) >= 0.98
    assert shares.min() >= 0.99


def test_small_finite_regions_are_enumerated() -> None:
    space = Space({"a": Integer(0, 30), "b": Categorical(list("abcdef")), "c": Integer(0, 20)})
    region = space.around({"a": 3, "b": "a", "c": 2})
    rng = generator()
    table = rng.normal(size=(31, 6, 21))
    noise = Plain(
        lambda X: table[X[:, 0].astype(int), X[:, 1].astype(int), X[:, 2].astype(int)],
        np.zeros_like,
    )
    found = propose(noise, region, rng, k=3)
    assert found.values[0] == table.max()
    assert not found.exhausted


# ── continuous regions against known maxima ──


def test_branin_is_solved() -> None:
    region = Space({"x": Real(-5, 10), "y": Real(0, 15)}).around({"x": 8.0, "y": 12.0})
    for seed in range(10):
        found = propose(Plain(branin, branin_slope), region, generator(seed))
        assert found.values[0] == pytest.approx(-0.39788735772973816, abs=1e-5)


def waves(X: Array) -> Array:
    return np.asarray((np.exp(-2 * (X - 0.7) ** 2) * (1.5 + np.cos(9 * X))).prod(axis=1))


def waves_slope(X: Array) -> Array:
    bell = np.exp(-2 * (X - 0.7) ** 2)
    factor = bell * (1.5 + np.cos(9 * X))
    slope = -4 * (X - 0.7) * factor - 9 * bell * np.sin(9 * X)
    return np.asarray(slope / factor * factor.prod(axis=1)[:, None])


@pytest.mark.parametrize("d", [2, 3, 4, 5, 6])
def test_products_of_waves_are_solved(d: int) -> None:
    line = np.linspace(0, 1, 200_001)[:, None]
    best = waves(line).max() ** d
    region = cube(d).around(middle(d))
    shares = [
        propose(Plain(waves, waves_slope), region, generator(seed)).values[0] / best
        for seed in range(10)
    ]
    assert min(shares) >= 0.9999


def many_starts(acquisition: Improvement, region: Region, n: int) -> float:
    """The best of `n` runs of SciPy's L-BFGS-B from the best of many random rows."""
    free, query = region.free, region.query
    rows = sample(region, 2000, generator(99))
    rows = rows[np.argsort(-acquisition.value(rows))[:n]]

    def negated(x: Array) -> tuple[float, Array]:
        X = query[None].copy()
        X[0, free] = x
        value, slope = acquisition.gradient(X)
        return -float(value[0]), -slope[0, free]

    bounds = list(zip(region.low[free], region.high[free], strict=True))
    return max(
        -minimize(negated, row[free], jac=True, method="L-BFGS-B", bounds=bounds).fun
        for row in rows
    )


@pytest.mark.parametrize("d", [2, 4, 6])
def test_improvement_is_as_high_as_from_many_starts_of_lbfgsb(d: int) -> None:
    for seed in range(4):
        rng = generator(seed)
        region = cube(d).around(middle(d))
        acquisition = Improvement(region, rng)
        found = propose(acquisition, region, rng, acquisition.rows[:5], avoid=acquisition.rows)
        assert found.values[0] >= many_starts(acquisition, region, 40) - 0.01


# ── what was evaluated before ──


def test_the_next_best_point_replaces_one_that_was_evaluated() -> None:
    space = Space({"a": Integer(0, 99), "b": Integer(0, 99), "c": Integer(0, 9)})
    region = space.around({"a": 50, "b": 50, "c": 5})
    peak = hill(np.array([31.3, 66.1, 2.2]), 10.0)
    seen = np.empty((0, 3))
    for wanted in ([31, 66, 2], [32, 66, 2], [31, 66, 3], [31, 67, 2]):
        found = propose(peak, region, generator(), avoid=seen)
        assert found.points[0].tolist() == wanted
        seen = np.concatenate([seen, found.points])


def test_an_exhausted_region_is_reported() -> None:
    region = Space({"a": Integer(0, 3), "b": Categorical(["x", "y", "z"])}).around(
        {"a": 0, "b": "x"}
    )
    every = region.enumerate(100)
    assert every is not None
    one_left = propose(hill(np.zeros(2)), region, generator(), avoid=every[1:], k=5)
    assert one_left.points.tolist() == every[:1].tolist()
    assert not one_left.exhausted
    none_left = propose(hill(np.zeros(2)), region, generator(), avoid=every)
    assert none_left.exhausted
    assert none_left.points.shape == (0, 2)


def test_a_large_exhausted_region_is_reported() -> None:
    region = Space({"a": Integer(0, 99), "b": Integer(0, 99)}).around({"a": 0, "b": 0})
    every = region.enumerate(10_000)
    assert every is not None
    assert propose(hill(np.zeros(2)), region, generator(), avoid=every).exhausted
    last = propose(hill(np.zeros(2)), region, generator(), avoid=every[:-1])
    assert last.points.tolist() == every[-1:].tolist()


# ── several points, repeatability, time ──


def test_several_points_are_different_local_maxima_first() -> None:
    region = Space({"x": Real(-5, 10), "y": Real(0, 15)}).around({"x": 8.0, "y": 12.0})
    found = propose(Plain(branin, branin_slope), region, generator(), k=3)
    assert found.values == pytest.approx(-0.397887, abs=1e-3)
    assert sorted(found.points[:, 0]) == pytest.approx([-np.pi, np.pi, 3 * np.pi], abs=0.05)


@pytest.mark.parametrize("k", [1, 4, 40])
def test_several_points_are_distinct_and_best_first(k: int) -> None:
    region = cube(3).around(middle(3))
    found = propose(hill(np.full(3, 0.3)), region, generator(), k=k)
    assert len(np.unique(found.points, axis=0)) == k
    assert (np.diff(found.values) <= 0).all()


def test_the_same_generator_gives_the_same_proposal() -> None:
    region = Space(
        {"a": Real(0, 1), "b": Integer(0, 500), "c": Categorical(["x", "y", "z"])}
    ).around({"a": 0.2, "b": 7, "c": "y"})
    acquisition = Improvement(region, generator(5))
    one, two = (propose(acquisition, region, generator(9), k=5) for _ in range(2))
    assert one.points.tobytes() == two.points.tobytes()


def test_a_passed_deadline_stops_the_proposal() -> None:
    region = cube(3).around(middle(3))
    with pytest.raises(OutOfTime):
        propose(hill(np.zeros(3)), region, generator(), deadline=Deadline(at=0.0))


def test_starts_and_rows_to_avoid_are_not_changed() -> None:
    region = cube(3).around(middle(3))
    rows = sample(region, 6, generator())
    before = rows.copy()
    propose(hill(np.zeros(3)), region, generator(), rows, avoid=rows)
    assert (rows == before).all()


def test_no_point_is_refused_with_advice() -> None:
    region = cube(2).around(middle(2))
    with pytest.raises(ValueError, match=r"`k` must be at least 1; got 0. Ask for one point or"):
        propose(hill(np.zeros(2)), region, generator(), k=0)


@pytest.mark.parametrize("space", [cube(4), cube(4).max_changes(2), cube(4).require("x0 <= x1")])
def test_a_glance_returns_many_different_good_rows(space: Space) -> None:
    region, centre = space.around(middle(4)), np.array([0.2, 0.9, 0.5, 0.6])
    known = sample(region, 10, generator())
    best = propose(hill(centre), region, generator())
    found = propose(hill(centre), region, generator(), known, k=40, effort="glance")
    assert region.contains(found.points).all()
    assert 20 <= len(np.unique(found.points, axis=0)) == len(found.points) <= 40
    assert (np.diff(found.values) <= 0).all()
    assert found.values[0] >= best.values[0] - 1e-3
