"""`explain` from end to end, with real models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import bayescfx as cfx
from tests.any_model import METHODS_FOR_ANY_MODEL
from tests.conftest import (
    LEVELS,
    ZERO,
    Recorder,
    cloud,
    cube,
    mixed,
    outcome,
    people,
    pipeline,
    plane,
)


def same(one: Any, other: Any) -> bool:
    """Return whether two cells hold the same value."""
    return bool(one == other) or bool(pd.isna(one) and pd.isna(other))


# ── real models on a mixed table ──


@pytest.mark.parametrize("kind", ["histogram", "lightgbm"])
def test_a_pipeline_on_a_mixed_table_is_explained_exactly(kind: str) -> None:
    model, X = pipeline(kind), mixed()
    query = X[X["score"].isna()].iloc[0]
    answer = cfx.explain(model, query, people(), cfx.increase(by=2), budget=40, rng=0)
    assert answer.reached
    rows = answer.to_frame()[list(X.columns)]
    assert rows.dtypes.equals(X.dtypes)
    # what is handed out is, to the last bit, what the model scores
    assert model.predict(rows).tolist() == [c.output for c in answer.counterfactuals]
    assert model.predict(X.loc[[query.name]])[0] == answer.output
    for c in answer.counterfactuals:
        assert c.valid
        for name in X.columns:
            assert (name in c.changes) != same(c.row[name], query[name])
    assert not {"score", "city"} & set(answer.best.changes)
    assert answer.best.row["age"] >= query["age"]
    assert answer.verify(model)


def test_an_answer_is_sparse_and_no_change_can_be_taken_back() -> None:
    model, X = pipeline("histogram"), mixed()
    answer = cfx.explain(model, X.iloc[3], people(), cfx.increase(by=2), budget=60, rng=0)
    assert answer.reached
    assert answer.best.n_changes <= 3
    (low, high), *_ = answer.accepted
    for name, (before, _) in answer.best.changes.items():
        row = answer.to_frame()[list(X.columns)].iloc[[0]].copy()
        row[name] = pd.Series([before], index=row.index).astype(X[name].dtype)
        assert not low <= model.predict(row)[0] <= high


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
def test_every_method_returns_rows_as_the_model_scored_them(method: str) -> None:
    model, X = pipeline("histogram"), mixed()
    answer = cfx.explain(
        model, X.iloc[5], people(), cfx.decrease(by=1.5), method=method, budget=25, rng=0, n=3
    )
    rows = answer.to_frame()[list(X.columns)]
    assert model.predict(rows).tolist() == [c.output for c in answer.counterfactuals]
    assert answer.method == ("bayes-cfx" if method == "auto" else method)
    assert answer.verify(model)


def test_all_features_may_be_categorical() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(list("uvw"), 50) for name in "abcd"})
    model = lambda r: (r == "w").sum(axis=1)  # noqa: E731  # a bare callable
    query = {name: "u" for name in "abcd"}
    answer = cfx.explain(model, query, cfx.Space.from_data(X), 3, budget=40, rng=0)
    assert answer.reached
    assert answer.best.n_changes == 3


def test_all_features_may_be_continuous() -> None:
    answer = cfx.explain(plane, ZERO, cube(), cfx.increase(by=1), budget=25, rng=0)
    assert answer.reached
    assert answer.best.n_changes == 1  # 2a is the shortest way
    assert list(answer.best.changes) == ["a"]


@pytest.mark.parametrize("name", ["age", "income", "member", "job"])
def test_one_feature_may_be_free(name: str) -> None:
    query = mixed().iloc[1]
    space = cfx.Space.from_data(mixed()).allow(name)
    answer = cfx.explain(outcome, query, space, cfx.increase(by=50), budget=15, rng=0)
    assert set(answer.best.changes) <= {name}
    assert answer.status in ("best_guess", "unreachable")


def test_one_row_of_background_is_enough() -> None:
    X = pd.DataFrame({"a": [1.0], "b": [True]})
    answer = cfx.explain(
        lambda r: r["a"] + 2.0 * r["b"],
        X.iloc[0],
        cfx.Space.from_data(X).between({"a": (0, 3)}),
        cfx.decrease(by=2),
        budget=20,
        rng=0,
    )
    assert answer.reached
    assert answer.best.changes == {"b": (True, False)}


def test_arrays_in_arrays_out() -> None:
    seen: list[type] = []

    def model(X: Any) -> Any:
        seen.append(type(X))
        return plane(X)

    space = cfx.Space.from_data(cloud())
    answer = cfx.explain(model, [0.25, 0.25, 0.25], space, cfx.increase(by=1), budget=15, rng=0)
    assert set(seen) == {np.ndarray}
    assert isinstance(answer.best.row, np.ndarray)
    assert plane(answer.best.row[None])[0] == answer.best.output


@pytest.mark.parametrize(
    "wrap",
    [
        lambda y: list(y),
        lambda y: pd.Series(y).sort_values(),
        lambda y: y[:, None],
        lambda y: np.round(100 * y).astype(int) / 100.0,
        lambda y: y.astype(np.float32),
        lambda y: y > 1.0,
    ],
    ids=["list", "series", "column", "rounded", "single", "bool"],
)
def test_outputs_may_come_in_any_numeric_form(wrap: Callable[[Any], Any]) -> None:
    space = cfx.Space.from_data(cloud())
    query = [0.25, 0.25, 0.25]
    answer = cfx.explain(lambda X: wrap(plane(X)), query, space, 1.0, budget=25, rng=0)
    assert answer.reached


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scales_of_inputs_and_outputs_do_not_matter(scale: float) -> None:
    X = cloud() * [scale, 1.0, 1.0]
    answer = cfx.explain(
        lambda X: (X[:, 0] / scale + X[:, 1]) * scale,
        X[0],
        cfx.Space.from_data(X),
        cfx.increase(percent=30),
        budget=25,
        rng=0,
    )
    assert answer.reached


def test_times_groups_derived_columns_and_circles_work_together() -> None:
    X = mixed().assign(
        day=pd.date_range("2024-01-01", periods=300, freq="D"),
        weekday=np.arange(300) % 7,
        red=(np.arange(300) % 2).astype(int),
        blue=(np.arange(300) % 2 == 0).astype(int),
        double=2.0 * mixed()["age"],
    )
    space = (
        cfx.Space.from_data(X, kinds={"weekday": cfx.Integer(0, 6, cyclic=True)})
        .group("colour", ["red", "blue"])
        .derive("double", lambda r: 2.0 * r["age"])
        .together("age", "hours")
        .near_data(X.drop(columns=[]), quantile=1.0)
        .fix("score")
        .max_changes(4)
    )

    def model(rows: pd.DataFrame) -> Any:
        days = (rows["day"] - pd.Timestamp("2024-01-01")).dt.days
        ring = (rows["weekday"] - 6).abs() % 6
        return days / 100 + rows["double"] / 50 + 0.3 * ring + 2.0 * rows["red"]

    answer = cfx.explain(model, X.iloc[10], space, cfx.increase(by=2), budget=30, rng=0)
    for c in answer.counterfactuals:
        assert c.row["red"] + c.row["blue"] == 1
        assert c.row["double"] == 2.0 * c.row["age"]
        assert np.sign(c.row["age"] - X["age"].iloc[10]) == np.sign(
            float(c.row["hours"]) - X["hours"].iloc[10]
        )
    assert answer.verify(model)


def test_a_rule_that_one_row_in_a_hundred_keeps_is_kept() -> None:
    X = pd.DataFrame(cloud(), columns=list("abc"))
    space = (
        cfx.Space.from_data(X)
        .require("a <= b")
        .require(lambda r: (r["a"] - r["c"]).abs() <= 0.01, "a and c agree")
    )
    answer = cfx.explain(
        lambda r: r["a"] + r["b"], ZERO, space, cfx.increase(by=0.5), budget=40, rng=0
    )
    assert answer.reached
    row = answer.best.row
    assert row["a"] <= row["b"]
    assert abs(row["a"] - row["c"]) <= 0.01
    assert answer.verify(lambda r: r["a"] + r["b"])


def test_a_query_that_breaks_a_rule_is_explained_by_rows_that_keep_it() -> None:
    space = cube().require("a >= 0.5")
    answer = cfx.explain(plane, ZERO, space, cfx.increase(by=1), budget=15, rng=0)
    assert answer.reached
    assert all(c.row["a"] >= 0.5 for c in answer.counterfactuals)


@pytest.mark.parametrize("method", METHODS_FOR_ANY_MODEL)
def test_a_query_that_breaks_a_rule_is_its_own_best_guess_if_nothing_else_was_scored(
    method: str,
) -> None:
    space = cube().require("a >= 0.5")
    answer = cfx.explain(plane, ZERO, space, cfx.increase(by=1), method=method, budget=1, rng=0)
    assert answer.status == "best_guess"
    assert answer.best.changes == {}
    assert not answer.best.valid
    assert np.isnan(answer.reachable).all()
    assert "No allowed row was scored." in repr(answer)
    assert cfx.Explanation.from_json(answer.to_json()).best.changes == {}


# ── random spaces: no limit, level, direction or relation is ever broken ──


def random_question(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = mixed().drop(columns="score").iloc[rng.permutation(300)[: rng.integers(30, 300)]]
    space, names = cfx.Space.from_data(X), list(X.columns)
    query = X.iloc[0]
    fixed = set(rng.choice(names, rng.integers(0, 3), replace=False))
    space = space.fix(*fixed)
    low, high = np.sort(rng.uniform(18, 80, 2))
    space = space.between({"age": (low, high)}).move({"hours": (-5, int(rng.integers(1, 9)))})
    down, few_jobs, ruled = rng.random(3) < 0.5
    if down:
        space = space.only_down("income")
    if few_jobs:
        space = space.between({"job": LEVELS[:2]})
    if ruled:
        space = space.require("age + hours <= 100")
    k = int(rng.integers(1, 5))
    space = space.max_changes(k)
    method = str(rng.choice(["random", "lbfgsb", "bayes-cfx"], p=[0.6, 0.3, 0.1]))
    try:
        answer = cfx.explain(
            outcome, query, space, cfx.increase(by=3), method=method, budget=6, rng=seed, n=3
        )
    except cfx.InfeasibleError:
        return
    for c in answer.counterfactuals:
        row = c.row
        moved = {name for name in names if not same(row[name], query[name])}
        assert moved == set(c.changes)
        assert len(moved) <= k
        assert not moved & fixed
        assert "age" not in moved or low <= row["age"] <= high
        assert -5 <= int(row["hours"]) - int(query["hours"]) <= 9
        assert "income" not in moved or not down or row["income"] < query["income"]
        assert "job" not in moved or not few_jobs or row["job"] in LEVELS[:2]
        assert not moved or not ruled or row["age"] + row["hours"] <= 100
    assert answer.verify(outcome)


@pytest.mark.filterwarnings("ignore:the query lies outside its limits")
def test_random_questions_keep_every_limit() -> None:
    for seed in range(40):
        random_question(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the query lies outside its limits")
def test_a_thousand_random_questions_keep_every_limit() -> None:
    for seed in range(80, 1080):
        random_question(seed)


# ── classifiers ──


@cache
def classifier() -> LogisticRegression:
    X = cloud()
    return LogisticRegression(C=100.0).fit(X, plane(X) > 1.0)


@pytest.mark.parametrize("goal", [0.002, 0.5, 0.998])
def test_probabilities_near_zero_and_one_are_reached(goal: float) -> None:
    model = cfx.probability(classifier(), True)
    space = cfx.Space.from_data(cloud())
    query = cloud()[np.argmin(np.abs(model(cloud()) - 0.2))]
    answer = cfx.explain(model, query, space, goal, budget=40, rng=0)
    assert answer.reached
    assert abs(answer.best.output - goal) <= 0.05 * abs(answer.output - goal) + 1e-12
    found = classifier().predict_proba(np.asarray(answer.best.row)[None])[0, 1]
    assert found == pytest.approx(answer.best.output, rel=1e-12)  # one row alone, not two
    assert answer.verify(model)


def test_any_class_of_several_can_be_asked_for() -> None:
    X = cloud()
    labels = np.array(["low", "mid", "high"])[np.digitize(plane(X), [0.6, 1.3])]
    forest = RandomForestClassifier(10, random_state=0).fit(X, labels)
    space = cfx.Space.from_data(X)
    query = X[np.flatnonzero(forest.predict(X) == "low")[0]]
    answer = cfx.explain(
        cfx.probability(forest, "high"), query, space, cfx.at_least(0.7), budget=50, rng=0
    )
    assert answer.reached
    assert forest.predict(np.asarray(answer.best.row)[None])[0] == "high"


# ── targets ──


class Bell:
    """A user's own potential: a bell around 1.5."""

    def value(self, y: Any) -> Any:
        return np.exp(-((np.asarray(y) - 1.5) ** 2))

    def slope(self, y: Any) -> Any:
        y = np.asarray(y)
        return -2.0 * (y - 1.5) * np.exp(-((y - 1.5) ** 2))


@pytest.mark.parametrize("budget", [1, 3, 30])
def test_a_potential_of_the_user_leads_to_its_peak_wherever_it_is(budget: int) -> None:
    model = Recorder(plane)
    answer = cfx.explain(model, ZERO, cube(), Bell(), budget=budget, rng=0)
    assert model.n == answer.n_evaluations <= budget
    ((low, high),) = answer.wanted
    assert low == pytest.approx(1.5, abs=1e-3)
    assert high == pytest.approx(1.5, abs=1e-3)
    if budget == 30:
        assert answer.reached
        assert answer.best.output == pytest.approx(1.5, abs=0.1)
        again = cfx.Explanation.from_json(answer.to_json())
        assert again.verify(plane)


def test_a_potential_that_rises_for_ever_wants_somewhat_more_than_was_seen() -> None:
    class Ramp:
        def value(self, y: Any) -> Any:
            return np.asarray(y, dtype=float)

        def slope(self, y: Any) -> Any:
            return np.ones_like(np.asarray(y, dtype=float))

    answer = cfx.explain(plane, ZERO, cube(), Ramp(), budget=25, rng=0)
    assert answer.wanted[0][0] > 2.0
    assert answer.best.output > 2.0


def test_a_potential_of_the_user_survives_faults_at_the_first_look() -> None:
    def model(rows: Any) -> Any:
        if not (np.asarray(rows) == 0.25).all():
            raise RuntimeError("boom")
        return plane(rows)

    counter = Recorder(model)
    answer = cfx.explain(counter, ZERO, cube(), Bell(), budget=7, rng=0, on_fault="skip")
    assert counter.n == answer.n_evaluations == 7


def test_our_potentials_are_targets() -> None:
    answer = cfx.explain(plane, ZERO, cube(), cfx.AEP(0.5, 0.7), budget=25, rng=0)
    assert answer.reached
    assert answer.best.output == pytest.approx(1.2, abs=0.04)


def test_a_query_that_has_what_is_wanted_says_so_alone_and_among_many() -> None:
    one = cfx.explain(plane, ZERO, cube(), cfx.at_least(0.1))
    (same,) = many = cfx.explain_many(plane, [ZERO], cube(), cfx.at_least(0.1))
    for answer in (one, same):
        assert (answer.status, answer.stopped) == ("reached", "already met")
        assert (answer.best.changes, answer.n_evaluations) == ({}, 1)
        assert "The query already meets the target." in repr(answer)
    assert repr(one) == repr(same)
    assert many.summary()["changes"].tolist() == ["already meets the target"]


# ── answers that travel ──


def test_an_answer_verifies_itself_after_a_json_round_trip() -> None:
    model, X = pipeline("lightgbm"), mixed()
    target = cfx.increase(by=2)
    answer = cfx.explain(model, X.iloc[4], people(), target, budget=40, n=3, rng=0)
    again = cfx.Explanation.from_json(answer.to_json())
    assert again.verify(model)
    assert repr(again) == repr(answer)
    pd.testing.assert_frame_equal(again.to_frame(), answer.to_frame(), check_exact=True)
    assert not again.verify(lambda rows: model.predict(rows) + 1.0)


# ── size ──


@pytest.mark.slow
def test_a_million_rows_of_eighty_features_need_little_memory() -> None:
    import tracemalloc

    X = np.random.default_rng(0).standard_normal((1_000_000, 80), dtype=np.float32)
    tracemalloc.start()
    space = cfx.Space.from_data(X)
    answer = cfx.explain(lambda r: r.sum(axis=1), X[0], space, cfx.increase(by=3), budget=60, rng=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.reached
    assert peak < 3 * X.nbytes
