"""Objectives: gradients against central differences, records, terraces, flat boxes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from bayescfx.arrays import Array
from bayescfx.data import Categorical, Integer, Real
from bayescfx.deadline import NEVER
from bayescfx.potentials import AEP
from bayescfx.propose.ledger import Acquisition
from bayescfx.search.objectives import (
    CostImprovement,
    FlatBoxes,
    PotentialImprovement,
    Record,
    SurrogateFunction,
    Terraces,
)
from bayescfx.space.region import Region
from bayescfx.space.sampling import sample
from bayescfx.space.space import Space
from bayescfx.surrogate.coordinates import Coordinates
from bayescfx.surrogate.fit import Surrogate, SurrogateSettings, fit_surrogate


def f(X: Array) -> Array:
    return np.sin(3.0 * X[:, 0]) + X[:, 1] ** 2 - 0.3 * X[:, 2]


@cache
def region(norm: float = 1.0) -> Region:
    """Return three continuous features without data, so that coordinates are straight lines."""
    space = Space({name: Real(0.0, 2.0) for name in "abc"}).cost(norm=norm)
    return space.around(dict.fromkeys("abc", 0.75))


@cache
def surrogate() -> Surrogate:
    X = np.vstack([region().query, sample(region(), 20, np.random.default_rng(0))])
    return fit_surrogate(SurrogateSettings(), region(), X, f(X), None, NEVER)


def gain(weight: float, best: float = 0.3, norm: float = 1.0) -> PotentialImprovement:
    return PotentialImprovement(surrogate(), region(norm), AEP(1.0, 0.8), best, weight)


def nearer(n: int = 1) -> CostImprovement:
    hits = np.array([[1.5, 1.4, 0.75], [0.75, 1.7, 1.9], [1.8, 0.75, 0.75]])
    return CostImprovement(surrogate(), region(), ((1.5, 1.9),), Record(region(), hits, n))


def check_gradient(objective: Acquisition, X: Array, tolerance: float = 1e-4) -> None:
    value, slope = objective.gradient(X)
    assert value == pytest.approx(objective.value(X), rel=1e-9, abs=1e-12)
    finite = np.isfinite(value)
    assert finite.sum() >= 5
    h = 1e-5
    for j in range(X.shape[1]):
        step = np.zeros(X.shape[1])
        step[j] = h
        rise = objective.value(X[finite] + step) - objective.value(X[finite] - step)
        assert slope[finite, j] == pytest.approx(rise / (2 * h), rel=tolerance, abs=tolerance)


def points(n: int = 40) -> Array:
    """Return rows away from the query's own values, where the cost has a kink."""
    X = region().low + np.random.default_rng(5).uniform(0.05, 0.95, (n, 3)) * 2.0
    # the middle of cells of the coordinates, which are linear within each
    X = (np.floor(X / 2.0 * 1024) + 0.5) / 1024 * 2.0
    return X[(np.abs(X - 0.75) > 1e-3).all(axis=1)]


# ── hit first ──


@pytest.mark.parametrize("weight", [0.0, 0.005])
@pytest.mark.parametrize("best", [-0.2, 0.3, 0.95])
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_the_gradient_of_potential_improvement(weight: float, best: float, norm: float) -> None:
    check_gradient(gain(weight, best, norm), points(), 2e-3)


def test_the_cost_raises_the_threshold() -> None:
    X = points()
    cheap, expensive = gain(0.0).value(X), gain(0.1).value(X)
    assert (expensive < cheap).all()
    # where moving costs too much for any potential there is nothing to gain
    assert (gain(10.0).value(X) == -np.inf).all()


def test_without_a_weight_the_objective_is_the_papers() -> None:
    from bayescfx import log_ei_cfx

    X, potential = points(), AEP(1.0, 0.8)
    mean, std = surrogate().predict(X)
    expected = log_ei_cfx(mean, std, potential, 0.3 * potential.peak)
    assert gain(0.0).value(X) == pytest.approx(expected, rel=1e-9)


# ── then nearer ──


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_gradient_of_cost_improvement(n: int) -> None:
    check_gradient(nearer(n), points(120))


def test_a_row_that_is_not_nearer_has_no_value() -> None:
    objective = nearer()
    X = points()
    assert objective.record is not None
    far = region().cost(X) >= objective.record.cost.min()
    assert far.any()
    assert (objective.value(X)[far] == -np.inf).all()
    assert np.isfinite(objective.value(X)[~far]).all()
    value, slope = objective.gradient(X)
    assert (value[far] == -np.inf).all()
    assert (slope[far] == 0.0).all()


def test_cost_improvement_is_the_saving_times_the_probability_of_a_hit() -> None:
    from scipy.stats import norm

    objective, X = nearer(), points()
    near = np.isfinite(objective.value(X))
    mean, std = surrogate().predict(X[near])
    inside = np.asarray(norm.cdf(1.9, mean, std)) - np.asarray(norm.cdf(1.5, mean, std))
    assert objective.record is not None
    saving = objective.record.cost.min() - region().cost(X[near])
    seen = inside > 1e-12
    assert objective.value(X)[near][seen] == pytest.approx(
        np.log(saving[seen] * inside[seen]), rel=1e-6
    )


# ── any other function of mean and deviation ──


def test_the_gradient_of_a_function_of_mean_and_deviation_is_right() -> None:
    def product(mean: Array, std: Array) -> tuple[Array, Array, Array]:
        return np.sin(mean) * std, np.cos(mean) * std, np.sin(mean)

    check_gradient(SurrogateFunction(surrogate(), product), points())


# ── restrictions ──


def test_few_changes_leave_the_other_features_alone() -> None:
    centre = np.array([1.0, 1.5, 0.5])
    X = points()
    X[::2, 0] = centre[0]
    X[::3, 1:] = centre[1:]
    few = replace(gain(0.0), centre=centre, max_changes=2)
    differ = (centre != X).sum(axis=1)
    assert (np.isfinite(few.value(X)) == (differ <= 2)).all()
    value, slope = few.gradient(X)
    assert (np.isfinite(value) == (differ <= 2)).all()
    assert (slope[centre == X] == 0.0).all()
    moved = (centre != X) & (differ <= 2)[:, None]
    assert (slope[moved] != 0.0).any()


def test_missing_values_are_no_changes() -> None:
    data = pd.DataFrame({"a": [0.0, 1.0, 2.0], **{n: [np.nan, 1.0, 2.0] for n in "uvwx"}})
    around = Space.from_data(data).fix(*"uvwx").around(data.iloc[0])
    X = np.vstack([around.query, sample(around, 5, np.random.default_rng(0))])
    found = fit_surrogate(SurrogateSettings(), around, X, X[:, 0], None, NEVER)
    few = PotentialImprovement(
        found, around, AEP(0.0, 1.0), 0.0, 0.0, centre=around.query, max_changes=1
    )
    assert np.isfinite(few.value(X[1:])).all()


# ── records ──


def test_one_answer_has_to_beat_the_cheapest() -> None:
    record = nearer().record
    assert record is not None
    assert record.leaders.tolist() == [int(np.argmin(record.cost))]
    assert record.beat(points()).tolist() == [record.cost.min()] * len(points())


def test_several_answers_are_led_by_the_best_of_each_set_of_features() -> None:
    q = region().query
    X = np.repeat(q[None], 5, axis=0)
    X[0, 0], X[1, 0], X[2, 1], X[4, 2] = 1.5, 1.2, 1.9, 0.1
    X[3, :2] = 1.5, 1.5
    record = Record(region(), X, 3)
    assert record.leaders.tolist() == [1, 4, 2]
    cost = record.cost
    probe = np.repeat(q[None], 4, axis=0)
    probe[0, 0] = 1.6  # the set {a} again
    probe[1, :2] = 1.9, 1.9  # the set {a}, and more
    probe[2, 2] = 0.3  # the set {c} again
    probe[3, 1] = 1.0  # the set {b}
    assert record.beat(probe).tolist() == [cost[1], cost[1], cost[4], cost[2]]
    # with two answers {b} is a new set, which has to beat the second
    assert Record(region(), X, 2).beat(probe).tolist() == [cost[1], cost[1], cost[4], cost[4]]


def test_while_answers_are_missing_a_new_set_of_features_has_value() -> None:
    q = region().query
    X = np.repeat(q[None], 1, axis=0)
    X[0, 0] = 1.5
    record = Record(region(), X, 4)
    new, old = q.copy(), q.copy()
    new[1], old[0] = 2.0, 1.9
    bar = record.beat(np.stack([new, old]))
    assert bar[0] > region().distance(new[None])[0]
    assert bar[1] == record.cost[0]


def test_an_answer_with_a_trivial_addition_is_not_a_new_answer() -> None:
    q = region().query
    X = np.repeat(q[None], 3, axis=0)
    X[:, 0] = 1.5
    X[1, 1] += 1e-3
    X[2, 1] += 0.5
    record = Record(region(), X, 3)
    assert record.leaders.tolist() == [0]  # more changes at a higher cost
    trifle = X[0].copy()
    trifle[2] += 1e-3
    assert record.beat(trifle[None])[0] == record.cost[0]


# ── terraces ──


def terraces(X: Array, y: Array, around: Region | None = None) -> Terraces:
    around = around or region()
    discrete = around.step > 0.0
    return Terraces(Coordinates(around, X), X, y, discrete)


def test_nothing_is_proposed_on_a_terrace() -> None:
    X = np.array([[0.5, 0.5, 0.5], [0.52, 0.5, 0.5]])
    found = terraces(X, np.array([0.25, 0.25]))
    barred = PotentialImprovement(surrogate(), region(), AEP(1.0, 0.8), 0.3, 0.0, found)
    elsewhere = np.array([[1.5, 1.5, 1.5], [1.9, 0.1, 0.1]])
    assert barred.value(X[:1])[0] == -np.inf
    assert barred.gradient(X[:1])[0][0] == -np.inf
    assert np.isfinite(barred.value(elsewhere)).all()


def test_rows_with_different_outputs_mark_nothing() -> None:
    X = np.array([[0.5, 0.5, 0.5], [0.502, 0.5, 0.5]])
    assert not terraces(X, np.array([0.0, 0.1])).near(X).any()


def test_equal_outputs_of_close_rows_make_a_terrace_of_every_row() -> None:
    X = np.array([[0.5, 0.5, 0.5], [0.52, 0.5, 0.5], [1.5, 1.5, 1.5]])
    found = terraces(X, np.array([0.25, 0.25, 0.5]))
    close, far = X.copy(), X.copy()
    close[:, 1] += 0.03
    far[:, 1] += 0.4
    assert found.near(close).all()
    assert not found.near(far).any()


def test_equal_outputs_of_distant_rows_make_none() -> None:
    X = np.array([[0.5, 0.5, 0.5], [1.5, 1.5, 1.5]])
    assert not terraces(X, np.array([0.25, 0.25])).near(X).any()


def test_terraces_get_narrower_as_rows_accumulate() -> None:
    close = np.array([[0.5, 0.5, 0.5], [0.52, 0.5, 0.5]])
    widths = [
        terraces(
            np.vstack([close, np.random.default_rng(0).uniform(0.0, 2.0, (n, 3))]),
            np.append([0.25, 0.25], np.arange(n) * 1e-6),
        ).radius
        for n in (2, 2000)
    ]
    assert widths[1] < 0.2 * widths[0]


def test_other_levels_of_a_grid_are_never_too_close() -> None:
    space = Space({"a": Integer(0, 100), "b": Real(0.0, 1.0)})
    around = space.around({"a": 0, "b": 0.5})
    X = np.array([[1.0, 0.5], [1.0, 0.501], [2.0, 0.5]])
    found = terraces(X, np.array([0.5, 0.5, 3.0]), around)
    others = np.array([[3.0, 0.5], [0.0, 0.5], [1.0, 0.505]])
    assert found.near(others).tolist() == [False, False, True]


def test_one_more_change_costs_its_price_whatever_the_weight() -> None:
    q = region().query
    one, two = q.copy(), q.copy()
    one[0] += 0.5
    two[:2] += 0.25
    X = np.stack([one, two])
    assert region().distance(X)[0] == pytest.approx(region().distance(X)[1])
    assert region().cost(X)[1] == pytest.approx(region().cost(X)[0] + 0.2)
    space = Space({name: Real(0.0, 2.0) for name in "abc"})
    for per_change in (0.0, 0.2, 3.0):
        priced = space.cost(weight=0.0, per_change=per_change)
        around = priced.around(dict.fromkeys("abc", 0.75))
        prices = per_change * np.array([1.0, 2.0])
        assert around.cost(X) == pytest.approx(around.distance(X) + prices)


# ── flat boxes ──


def test_a_model_is_constant_between_rows_with_the_same_output() -> None:
    space = Space({"a": Real(0, 1), "b": Integer(0, 9), "c": Categorical(list("xyz"))})
    around = space.around({"a": 0.5, "b": 5, "c": "x"})
    X = np.array([[0.5, 5, 0], [0.6, 5, 0], [0.8, 7, 0], [0.6, 5, 1], [0.9, 5, 0], [0.95, 5, 0.0]])
    y = np.array([0.0, 1.0, 1.0, 1.0, 2.0, 2.0])
    boxes = FlatBoxes(around, X, y, y < 2.0)
    probe = np.array([[0.7, 6, 0], [0.7, 6, 1], [0.55, 5, 0], [0.92, 5, 0.0]])
    assert boxes.hold(probe).tolist() == [True, False, False, False]  # rows that hit make no box
    seen = np.vstack([X, [0.7, 6.0, 0.0]])
    boxes = FlatBoxes(around, seen, np.append(y, 0.5), np.append(y < 2.0, True))
    assert not boxes.hold(probe).any()
