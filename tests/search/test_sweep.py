"""Sweep: exact where the optimum is known, few calls, and `auto`, which chooses by the budget."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import bayescfx as cfx
from tests.conftest import Recorder


def numbers(n: int = 300, d: int = 4, seed: int = 0) -> pd.DataFrame:
    X = np.random.default_rng(seed).normal(size=(n, d))
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])


def test_an_interaction_that_no_single_change_shows_is_found() -> None:
    """A step that needs both features: the nearest corner is known exactly."""

    def both(X: pd.DataFrame) -> Any:
        return 10.0 * ((X["x0"] > 0.8) & (X["x1"] < -0.6)) + 0.01 * X["x2"]

    X = numbers()
    query = pd.Series(0.0, index=X.columns)
    space = cfx.Space.from_data(X)
    answer = cfx.explain(both, query, space, cfx.at_least(9), method="sweep", budget=1000, rng=0)
    assert set(answer.best.changes) == {"x0", "x1"}
    limit = 0.8 / space.scale[0] + 0.6 / space.scale[1]
    assert limit <= answer.best.distance <= 1.01 * limit


def test_a_plane_in_twelve_features_is_left_at_its_nearest_point() -> None:
    X = numbers(d=12, seed=1)
    slopes = np.random.default_rng(2).normal(size=12)
    model = LinearRegression().fit(X, X @ slopes)
    space = cfx.Space.from_data(X)
    query = X.iloc[0]
    want = float(model.predict(X.iloc[[0]])[0]) + 8.0
    answer = cfx.explain(
        model, query, space, cfx.at_least(want), method="sweep", tolerance=0.0, rng=0
    )
    # The fractional knapsack: where a unit of cost brings most, as far as the limits let it.
    region, cost, left = space.around(query), 0.0, 8.0
    room = np.where(slopes > 0.0, region.high, region.low) - region.query
    for j in np.argsort(-np.abs(slopes * space.scale)):
        part = min(1.0, left / (room[j] * slopes[j]))
        cost += part * abs(room[j]) / space.scale[j]
        left -= part * room[j] * slopes[j]
    assert cost * (1.0 - 1e-9) <= answer.best.distance <= 1.03 * cost


def test_trees_are_left_at_the_nearest_of_all_pairs_of_values() -> None:
    X = numbers(400, 3)
    model = HistGradientBoostingRegressor(max_iter=30, random_state=0)
    model.fit(X, X["x0"] * X["x1"] + np.abs(X["x2"]))
    space, query = cfx.Space.from_data(X), X.iloc[7]
    want = float(model.predict(X.iloc[[7]])[0]) + 1.0
    answer = cfx.explain(model, query, space, cfx.at_least(want), tolerance=0.0, rng=0)
    # Every value of the data for one feature or two: what the model can tell apart, coarsely.
    best = np.inf
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        some = [
            np.append(np.quantile(X.iloc[:, j], np.linspace(0, 1, 80)), query.iloc[j])
            for j in (a, b)
        ]
        grid = np.stack(np.meshgrid(*some), axis=-1).reshape(-1, 2)
        rows = np.repeat(query.to_numpy()[None], len(grid), axis=0)
        rows[:, [a, b]] = grid
        hit = model.predict(pd.DataFrame(rows, columns=X.columns)) >= want
        cost = (np.abs(rows - query.to_numpy()) / space.scale).sum(axis=1)
        best = min(best, cost[hit].min(initial=np.inf))
    assert answer.best.distance <= best + 0.2  # what one change more counts


def test_a_narrow_band_of_a_smooth_model_is_hit() -> None:
    X = numbers()

    def smooth(X: pd.DataFrame) -> Any:
        return np.sin(X["x0"]) + 0.3 * X["x1"] ** 3 + X["x2"]

    for seed in range(5):
        answer = cfx.explain(
            smooth, X.iloc[seed], cfx.Space.from_data(X), cfx.increase(by=0.7),
            method="sweep", tolerance=0.001, budget=400, rng=seed,
        )  # fmt: skip
        assert answer.reached


def test_every_level_and_every_hour_is_tried() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "hour": rng.integers(0, 24, 500),
            "shop": rng.choice([f"s{k}" for k in range(50)], 500),
            "size": rng.normal(size=500),
        }
    )
    space = cfx.Space.from_data(X, kinds={"hour": cfx.Integer(0, 23, cyclic=True)})
    query = pd.Series({"hour": 6, "shop": "s0", "size": 0.0})
    hours = cfx.explain(
        lambda X: 300.0 * (X["hour"] == 8), query, space, cfx.at_least(200), budget=500,
        method="sweep", rng=0,
    )  # fmt: skip
    assert hours.best.changes == {"hour": (6, 8)}
    shops = cfx.explain(
        lambda X: 300.0 * (X["shop"] == "s37"), query, space, cfx.at_least(200), budget=500,
        method="sweep", rng=0,
    )  # fmt: skip
    assert shops.best.changes == {"shop": ("s0", "s37")}


def test_a_small_region_is_evaluated_completely() -> None:
    X = pd.DataFrame({"a": [0, 1, 2, 3], "b": list("uvuv")})
    model = Recorder(lambda X: X["a"] + 10.0 * (X["b"] == "v"))
    space = cfx.Space.from_data(X)
    out = cfx.explain(model, X.iloc[0], space, cfx.at_least(20), method="sweep", budget=50, rng=0)
    assert (out.status, out.stopped, out.probability_reachable) == ("unreachable", "exhausted", 0.0)
    assert model.n == 8


def test_it_takes_few_model_calls() -> None:
    X = numbers(d=8)
    model = Recorder(lambda X: X.sum(axis=1) + X["x0"] * X["x1"])
    space = cfx.Space.from_data(X)
    answer = cfx.explain(
        model, X.iloc[0], space, cfx.increase(by=3.0), method="sweep", budget=2000, rng=0
    )
    assert answer.reached
    assert len(model.calls) <= 16
    assert model.n == answer.n_evaluations <= 2000


@pytest.mark.parametrize("budget", [1, 2, 7, 40, 137])
def test_the_budget_is_exact(budget: int) -> None:
    X = numbers()
    model = Recorder(lambda X: X.sum(axis=1))
    space = cfx.Space.from_data(X)
    answer = cfx.explain(
        model, X.iloc[0], space, cfx.at_least(1e9), method="sweep", budget=budget, rng=0,
        short_decimals=False,
    )  # fmt: skip
    assert model.n == answer.n_evaluations == budget
    assert not answer.reached


@pytest.mark.parametrize("method", ["sweep", "auto"])
def test_a_far_target_is_reached_although_slopes_at_the_query_lead_elsewhere(method: Any) -> None:
    """Up the ridge on the query's side it is too low, and the other side begins downhill."""

    def ridge(X: pd.DataFrame) -> Any:
        total = X.sum(axis=1)
        return np.maximum(total, -1.3 * total)

    X = numbers(d=6)
    space, query = cfx.Space.from_data(X), pd.Series(0.5, index=X.columns)
    region = space.around(query)
    here, there = region.high.sum(), -1.3 * region.low.sum()
    target = cfx.at_least(0.5 * (here + there))
    for seed in range(3):
        answer = cfx.explain(ridge, query, space, target, method=method, budget=1500, rng=seed)
        assert answer.reached
        assert answer.method == "sweep"
        assert answer.best.output >= 0.5 * (here + there)


@pytest.mark.parametrize(("target", "start"), [(cfx.at_least(1.0), 0.1), (cfx.at_most(0.0), 0.9)])
def test_a_probability_of_one_or_zero_is_reached_where_all_trees_vote_for_it(
    target: Any, start: float
) -> None:
    """Thirty votes on ten features: log-odds of the target are endless."""
    ends = np.random.default_rng(0).uniform(0.2, 0.8, size=(3, 10))

    def votes(X: pd.DataFrame) -> Any:
        return np.mean(X.to_numpy()[:, None, :] > ends, axis=(1, 2))

    X = pd.DataFrame(np.random.default_rng(1).uniform(size=(300, 10)))
    X.columns = [f"x{j}" for j in range(10)]
    query = pd.Series(start, index=X.columns)
    space = cfx.Space.from_data(X)
    answer = cfx.explain(cfx.probability(votes), query, space, target, budget=2000, rng=0)
    assert answer.reached
    needed = ends.max(axis=0) - start if start < 0.5 else start - ends.min(axis=0)
    limit = float((needed / space.scale).sum())
    assert limit <= answer.best.distance <= 1.1 * limit


def test_a_sweep_that_ran_out_of_rows_ends_with_budget() -> None:
    X = numbers(400, 12)
    model = HistGradientBoostingRegressor(max_iter=60, random_state=0)
    model.fit(X, X @ np.linspace(-1.0, 1.0, 12))
    want = float(model.predict(X.iloc[[4]])[0]) + 7.0
    space = cfx.Space.from_data(X)
    for budget, ending in ((900, "budget"), (100_000, "nothing nearer expected")):
        answer = cfx.explain(
            model, X.iloc[4], space, cfx.at_least(want), budget=budget, rng=0, prove=False
        )
        assert answer.reached
        assert answer.stopped == ending


@pytest.mark.parametrize("bound", [2, 4])
def test_a_far_target_is_reached_within_the_bound_on_changes(bound: int) -> None:
    """A product: what two or four features at their ends come to is known exactly."""

    def product(X: pd.DataFrame) -> Any:
        return np.prod(1.0 + np.clip(X, 0.0, None), axis=1)

    X = numbers(d=8)
    space, query = cfx.Space.from_data(X).max_changes(bound), pd.Series(0.0, index=X.columns)
    most = float(np.prod(np.sort(1.0 + X.max().to_numpy())[-bound:]))
    answer = cfx.explain(product, query, space, cfx.at_least(0.97 * most), budget=1500, rng=0)
    assert answer.reached
    assert len(answer.best.changes) == bound


@pytest.mark.parametrize("seed", range(3))
def test_a_smooth_far_target_is_climbed_to_along_a_rule(seed: int) -> None:
    """A curved ridge along ``x0 = x1``, on which the rule lies: no feature gets further alone."""

    def ridge(X: pd.DataFrame) -> Any:
        return 5.0 - (X["x0"] + X["x1"] - 3.0) ** 2 - 2.0 * (X["x0"] - X["x1"] - 0.4) ** 2

    X = numbers(d=4, seed=seed)
    space = cfx.Space.from_data(X).require("x0 <= x1")
    query = pd.Series([-1.5, -1.2, 0.0, 0.0], index=X.columns)
    # On the rule the best is x0 = x1 = 1.5, at 5 - 2 * 0.4**2.
    want = cfx.at_least(5.0 - 2.0 * 0.4**2 - 0.01)
    answer = cfx.explain(ridge, query, space, want, method="sweep", budget=1000, rng=0)
    assert answer.reached
    assert answer.best.row["x0"] <= answer.best.row["x1"]


def test_more_rows_bring_answers_that_are_no_farther_and_mostly_nearer() -> None:
    X = numbers(400, 8)
    model = HistGradientBoostingRegressor(max_iter=80, random_state=0)
    model.fit(X, X["x0"] * X["x1"] + np.sin(2 * X["x2"]) + X @ np.linspace(-1.0, 1.0, 8))
    space, costs = cfx.Space.from_data(X), []
    for budget in (2000, 20_000):
        answers = cfx.explain_many(
            model,
            X[:12],
            space,
            cfx.reach(by=2.0),
            budget=budget,
            tolerance=0.02,
            rng=0,
            prove=False,
        )
        assert all(answer.reached for answer in answers)
        costs.append([answer.best.cost for answer in answers])
    few, many = np.array(costs)
    assert many.mean() < few.mean()


def test_many_rows_and_many_levels_take_little_memory() -> None:
    rng = np.random.default_rng(0)
    X = numbers(1500, 4)
    for name in ("k", "l", "m", "n"):
        X[name] = np.char.mod("v%d", rng.integers(300, size=len(X)))
    worth = dict(zip(np.char.mod("v%d", np.arange(300)), rng.normal(size=300), strict=True))

    def model(X: pd.DataFrame) -> Any:
        return X[["x0", "x1", "x2", "x3"]].sum(axis=1) + sum(X[c].map(worth) for c in "klmn")

    tracemalloc.start()
    answer = cfx.explain(
        model, X.iloc[0], cfx.Space.from_data(X), cfx.increase(by=4), budget=20_000, rng=0
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.reached
    assert peak < 2.5e8  # in one piece, what pairs teach takes two gigabytes


def test_a_query_that_breaks_a_rule_is_brought_to_its_edge() -> None:
    X = numbers()
    query, space = pd.Series(0.0, index=X.columns), cfx.Space.from_data(X).require("x0 + x1 >= 1")
    model = Recorder(lambda X: X["x2"] + X["x3"])
    answer = cfx.explain(model, query, space, cfx.at_most(0.5), method="sweep", budget=500, rng=0)
    assert len(answer.best.changes) == 1
    assert answer.best.changes in ({"x0": (0.0, 1.0)}, {"x1": (0.0, 1.0)})
    nearest = (1.0 / space.scale[:2]).min()
    assert nearest * (1.0 - 1e-9) <= answer.best.distance <= 1.005 * nearest


@pytest.mark.parametrize("norm", [1, 2, 7])
@pytest.mark.parametrize("price", [1e160, 1e300])
def test_a_feature_whose_cost_overflows_stays(norm: float, price: float) -> None:
    X = numbers()
    space = cfx.Space.from_data(X).cost(norm=norm, per_feature={"x0": price})
    answer = cfx.explain(
        Recorder(lambda X: X.sum(axis=1)), X.iloc[0], space, cfx.increase(by=2), budget=800, rng=0
    )
    assert answer.reached
    assert "x0" not in answer.best.changes


def test_without_a_cost_of_moving_the_first_hits_end_the_sweep() -> None:
    X = numbers()
    model = Recorder(lambda X: X.sum(axis=1))
    space = cfx.Space.from_data(X).cost(weight=0)
    answer = cfx.explain(
        model, X.iloc[0], space, cfx.increase(by=1.0), method="sweep", budget=2000, rng=0
    )
    assert (answer.reached, answer.stopped) == (True, "converged")


@pytest.mark.parametrize("n", [2, 4])
def test_several_answers_change_different_features_and_none_needlessly(n: int) -> None:
    X = numbers(d=6)

    def model(X: pd.DataFrame) -> Any:
        return X["x0"] + X["x1"] * X["x2"] + 0.5 * X["x3"]

    space = cfx.Space.from_data(X)
    answer = cfx.explain(
        model, X.iloc[5], space, cfx.increase(by=1.5), n=n, method="sweep", budget=1500, rng=0
    )
    assert len(answer.counterfactuals) == n
    assert len({tuple(c.changes) for c in answer.counterfactuals}) == n
    ((low, high),) = answer.accepted
    for c in answer.counterfactuals:
        for name, (before, _) in c.changes.items():
            back = pd.DataFrame([{**pd.Series(c.row), name: before}])
            assert len(c.changes) == 1 or not low <= model(back)[0] <= high


def test_known_rows_come_first_and_cost_nothing() -> None:
    X = numbers()
    model = Recorder(lambda X: X.sum(axis=1))
    space, target = cfx.Space.from_data(X), cfx.increase(by=2.0)
    first = cfx.explain(model, X.iloc[0], space, target, method="sweep", budget=800, rng=0)
    again = cfx.explain(
        model, X.iloc[0], space, target, method="sweep", budget=800, rng=0,
        evaluations=first.evaluations,
    )  # fmt: skip
    assert again.best.cost <= first.best.cost
    assert again.n_evaluations < 0.6 * first.n_evaluations


def test_queries_share_each_model_call() -> None:
    X = numbers()
    model = Recorder(lambda X: X.sum(axis=1))
    many = cfx.explain_many(
        model, X.iloc[:20], cfx.Space.from_data(X), cfx.increase(by=1.0), method="sweep",
        budget=1000, rng=0,
    )  # fmt: skip
    assert all(answer.reached for answer in many)
    assert len(model.calls) <= 18
    assert max(model.sizes) > 1000


# ── auto ──


@pytest.mark.parametrize(("budget", "method"), [(199, "bayes-cfx"), (200, "sweep")])
def test_auto_chooses_by_the_budget(budget: int, method: str) -> None:
    X = numbers()
    answer = cfx.explain(
        lambda X: X.sum(axis=1), X.iloc[0], cfx.Space.from_data(X), cfx.increase(by=0.5),
        budget=budget, rng=0,
    )  # fmt: skip
    assert answer.method == method
    assert answer.reached


@pytest.mark.slow
def test_more_rows_do_not_make_answers_clearly_worse() -> None:
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.uniform(size=(300, 8)), columns=list("abcdefgh"))

    def f(rows: Any) -> Any:  # stairs with interactions, as trees have
        stairs = np.floor(12 * np.asarray(rows, dtype=float)) / 12
        return 4 * stairs[:, 0] * stairs[:, 1] + np.sin(5 * stairs[:, 2]) + stairs[:, 3:6].sum(1)

    space = cfx.Space.from_data(X)
    asked = [(X.iloc[i], cfx.increase(by=1.2)) for i in (0, 2, 3)]
    few, some = (
        [cfx.explain(f, *(q, space, t), budget=budget, rng=0) for q, t in asked]
        for budget in (100, 320)
    )
    assert all(answer.reached for answer in some)
    assert sum(a.best.cost for a in some) <= 1.1 * sum(a.best.cost for a in few)


def test_bayes_cfx_continues_where_the_sweep_has_not_reached_the_target() -> None:
    X = numbers()
    model = Recorder(lambda X: X.sum(axis=1))
    answer = cfx.explain(
        model, X.iloc[0], cfx.Space.from_data(X), cfx.at_least(1e3), budget=640, rng=0
    )
    assert answer.method == "sweep, bayes-cfx"
    assert not answer.reached
    assert model.n == answer.n_evaluations <= 640


def test_the_default_budget_depends_on_the_kind_of_model() -> None:
    X = numbers()
    y = X.sum(axis=1)
    fitted = LinearRegression().fit(X, y)
    classes = LogisticRegression().fit(X, y > 0.0)
    space, far = cfx.Space.from_data(X), cfx.at_least(1e6)
    steps: list[cfx.Step] = []

    def budget(model: Any, target: Any = far, **options: Any) -> int:
        steps.clear()
        options = {"rng": 0, "on_step": _stop(steps), **options}
        cfx.explain(model, X.iloc[0], space, target, **options)
        return steps[0].budget

    assert budget(fitted) == budget(fitted.predict) == 2000
    assert budget(cfx.probability(classes), cfx.at_least(0.99999)) == 2000
    assert budget(lambda X: X.sum(axis=1)) == 100
    assert budget(fitted, method="bayes-cfx") == 100
    assert budget(fitted, budget=30) == 30


def _stop(steps: list[cfx.Step]) -> Any:
    def hear(step: cfx.Step) -> None:
        steps.append(step)
        raise StopIteration

    return hear
