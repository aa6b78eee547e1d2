"""Proposals: allowed by construction, and as good as exhaustive or many-start search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import Bounds, LinearConstraint, minimize
from scipy.special import log_ndtr, ndtr

from bayescfx.arrays import Array
from bayescfx.deadline import Deadline
from bayescfx.errors import OutOfTime
from bayescfx.features import Categorical, Feature, Integer, Ordinal, Real
from bayescfx.propose.ascent import Box, ascend
from bayescfx.propose.proposal import propose
from bayescfx.space.region import Region
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from bayescfx.surrogate.evidence import Hyperparameters
from bayescfx.surrogate.kernels import KERNELS
from bayescfx.surrogate.process import GaussianProcess
from tests.oracles.spaces import random_case

LISTED = 8192  # larger finite regions are searched, not enumerated


# ── functions to maximise ──


@dataclass(frozen=True)
class Plain:
    """A function with its gradient by hand."""

    f: Callable[[Array], Array]
    slope: Callable[[Array], Array]

    def value(self, X: Array, /) -> Array:
        return self.f(X)

    def gradient(self, X: Array, /) -> tuple[Array, Array]:
        return self.f(X), self.slope(X)


class Improvement:
    """Log expected improvement of a random Gaussian process over a region, less a cost."""

    def __init__(
        self, region: Region, rng: np.random.Generator, n: int = 30, weight: float = 0.0
    ) -> None:
        self.region, self.weight = region, weight
        width = region.high - region.low
        ordered = ~region.categorical & (width > 0)
        self.span = np.where(ordered, width, 1.0)
        self.low = np.where(ordered, region.low, 0.0)
        self.rows = np.concatenate([region.query[None], sample(region, n - 1, rng)])
        d = len(region.free)
        scales = rng.uniform(0.2, 0.9, size=d) * np.sqrt(d)
        levels = [i for i, j in enumerate(region.free) if region.categorical[j]]
        U = self._unit(self.rows)
        gap = np.abs(U[:, None] - U[None])
        gap[..., levels] = gap[..., levels] > 0
        K = KERNELS["matern52"](np.einsum("ijk,k->ij", gap**2, scales**-2))[0]
        y = np.linalg.cholesky(K + 1e-8 * np.eye(len(U))) @ rng.normal(size=len(U))
        self.best = float(y.max())
        known = Hyperparameters(scales, noise=1e-6)
        self.process = GaussianProcess(categorical=levels).condition(U, y, known)

    def _unit(self, X: Array) -> Array:
        return np.asarray(((X - self.low) / self.span)[:, self.region.free])

    def _log(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Log EI and its slopes by mean and deviation; asymptotic far below the best."""
        z = (mean - self.best) / std
        bell = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        near = np.log(np.exp(bell) + z * ndtr(z), where=z > -5, out=np.zeros_like(z))
        far = bell - np.log(np.maximum(z**2, 1) + 3)
        log = np.where(z > -5, near, far)
        rate = np.exp(log_ndtr(z) - log)
        return np.log(std) + log, rate / std, (1 - rate * z) / std

    def value(self, X: Array, /) -> Array:
        mean, std = self.process.predict(self._unit(X))
        return self._log(mean, std)[0] - self.weight * self.region.distance(X)

    def gradient(self, X: Array, /) -> tuple[Array, Array]:
        mean, std, dmean, dstd = self.process.predict_gradient(self._unit(X))
        value, by_mean, by_std = self._log(mean, std)
        slope = np.zeros_like(X)
        free = self.region.free
        slope[:, free] = (by_mean[:, None] * dmean + by_std[:, None] * dstd) / self.span[free]
        slope -= self.weight * self.region.distance_gradient(X)
        return value - self.weight * self.region.distance(X), slope


def hill(centre: Array, width: float = 1.0) -> Plain:
    """One smooth maximum at `centre`, of value 0."""
    return Plain(
        lambda X: -np.sum(((X - centre) / width) ** 2, axis=1),
        lambda X: -2 * (X - centre) / width**2,
    )


def cube(d: int) -> Space:
    return Space({f"x{j}": Real(0, 1) for j in range(d)})


def middle(d: int) -> dict[str, float]:
    return {f"x{j}": 0.5 for j in range(d)}


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


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


def branin(X: Array) -> Array:
    x, y = X[:, 0], X[:, 1]
    bend = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return -(bend**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


def branin_slope(X: Array) -> Array:
    x, y = X[:, 0], X[:, 1]
    bend = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    by_x = 2 * bend * (5 / np.pi - 5.1 / (2 * np.pi**2) * x)
    return -np.stack([by_x - 10 * (1 - 1 / (8 * np.pi)) * np.sin(x), 2 * bend], axis=1)


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
    # soft threshold: a coordinate moves by its wish less worth / 2
    wish = centre - 0.5
    wanted = 0.5 + np.sign(wish) * np.maximum(np.abs(wish) - worth / 2, 0)
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


def test_the_little_hill_around_the_query_is_found_in_a_plain_of_minus_infinity() -> None:
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
    wish = np.full(d, 0.5)
    wish[[17, 80, 133]] = [0.9, 0.05, 0.8]
    region = cube(d).max_changes(3).around(middle(d))
    found = propose(hill(wish), region, generator())
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
    wish = np.nan_to_num(region.low + rng.random(len(width)) * (region.high - region.low))
    smooth = Plain(
        lambda X: -(((np.nan_to_num(X) - wish) / width) ** 2).sum(axis=1),
        lambda X: -2 * (np.nan_to_num(X) - wish) / width**2,
    )
    found = propose(smooth, region, rng, k=3, avoid=region.query[None])
    if found.exhausted:
        return
    rows = region.rows(found.points)
    assert isinstance(rows, pd.DataFrame)
    assert case.broken(rows) == [], seed
    assert case.foreign(rows) == [], seed
    assert region.contains(found.points).all(), seed


@pytest.mark.parametrize("block", range(5))
def test_what_is_proposed_in_random_spaces_satisfies_every_rule(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        proposes_only_allowed_rows(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_what_is_proposed_in_a_thousand_random_spaces_satisfies_every_rule(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        proposes_only_allowed_rows(10_000 + seed)


# ── the ascent alone ──


def test_an_ascent_under_rules_and_kinks_ends_at_the_constrained_maximum() -> None:
    rng = generator(4)
    d, m, worth = 5, 12, 0.5
    root = rng.normal(size=(d, d))
    M = root @ root.T + 0.1 * np.eye(d)
    centre, A, b = rng.normal(size=d), rng.normal(size=(3, d)), np.full(3, 0.3)

    def kinked(X: Array) -> tuple[Array, Array]:
        Z = X - centre
        value = -0.5 * np.einsum("ni,ij,nj->n", Z, M, Z) - worth * np.abs(X).sum(axis=1)
        return value, -Z @ M - worth * np.sign(X)

    start = rng.uniform(-0.01, 0.01, size=(m, d))
    span = np.full((m, d), 4.0)
    box = Box(np.tile(np.arange(d), (m, 1)), -span / 2, span / 2, span, np.zeros((m, d)), A, b)
    X, value, _ = ascend(kinked, start, box, iterations=200, tolerance=1e-10)
    assert (b >= X @ A.T).all()

    def split(z: Array) -> float:  # positive and negative parts: smooth
        x = z[:d] - z[d:]
        return float(0.5 * (x - centre) @ M @ (x - centre) + worth * z.sum())

    exact = minimize(
        split,
        np.full(2 * d, 0.01),
        method="SLSQP",
        bounds=Bounds(np.zeros(2 * d), np.full(2 * d, 2.0)),
        constraints=LinearConstraint(np.hstack([A, -A]), ub=b),
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert value.max() == pytest.approx(-exact.fun, abs=1e-4)


def test_an_acquisition_that_is_nowhere_finite_near_the_query_is_no_fault() -> None:
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
