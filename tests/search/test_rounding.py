"""Answers hold as printed: short decimals, typed in, reach the target and keep the constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor

import bayescfx as cfx
from bayescfx.potentials import contains
from tests.conftest import Recorder
from tests.printed import FORMATS, MODELS, TABLES, questions, typed_row


def check_printed_answers(table: str, model: str, n: int) -> None:
    """Check that each answer holds as it is printed in each format."""
    for answer, query, fitted in questions(table, model, n):
        for name, read in FORMATS.items():
            changes = read(answer)
            assert set(changes) == set(map(str, answer.best.changes)), (name, changes, str(answer))
            row = typed_row(query, changes)
            output = np.asarray(fitted.predict(row), dtype=np.float64)
            assert contains(answer.accepted, output)[0] == answer.reached, (name, str(answer))
            assert output[0] == pytest.approx(answer.best.output, rel=1e-6), (name, str(answer))
        assert answer.verify(fitted)


@pytest.mark.parametrize("model", ["LightGBM", "ridge"])
@pytest.mark.parametrize("table", ["houses", "single precision", "mixed"])
def test_printed_answers_hold(table: str, model: str) -> None:
    check_printed_answers(table, model, 4)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("table", TABLES)
def test_printed_answers_hold_on_ten_tables(table: str, model: str) -> None:
    if model == "XGBoost":
        pytest.importorskip("xgboost")
    check_printed_answers(table, model, 12)


def uniform(names: str, n: int = 400) -> pd.DataFrame:
    """Return a table of unrounded numbers from 0 to 10."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.uniform(0.0, 10.0, n) for name in names})


def test_the_shortest_decimal_lies_beyond_the_step() -> None:
    X = uniform("ab")
    query = pd.Series({"a": 2.123456, "b": 5.0})
    space = cfx.Space.from_data(X)
    answer = cfx.explain(lambda r: np.where(r["a"] > 7.3141592, 1.0, 0.0), query, space, 1.0, rng=0)
    assert answer.best.changes == {"a": (2.123456, 7.32)}
    assert "a           2.123456 → 7.32" in str(answer)
    down = cfx.explain(lambda r: np.where(r["a"] < 1.3141592, 1.0, 0.0), query, space, 1.0, rng=0)
    assert down.best.changes == {"a": (2.123456, 1.31)}


def test_rounding_adds_at_most_one_per_cent_and_can_be_left_out() -> None:
    X = uniform("abc")
    model = GradientBoostingRegressor(random_state=0).fit(X, X["a"] * X["b"] + np.sin(X["c"]))
    space = cfx.Space.from_data(X)
    n_tiny = 0
    for k in range(8):
        options: Any = {"query": X.iloc[k], "target": "-20%", "rng": 0}
        short = cfx.explain(model, space=space, **options)
        found = cfx.explain(model, space=space, short_decimals=False, **options)
        assert short.reached
        assert short.bound == pytest.approx(found.bound)
        assert found.best.cost <= short.best.cost
        has_tiny_change = any(abs(b - a) < 0.01 for a, b in found.best.changes.values())
        n_tiny += has_tiny_change
        assert short.best.cost <= 1.01 * found.best.cost or has_tiny_change
        for before, after in short.best.changes.values():
            assert len(str(after)) <= len(str(before)) - 8, (before, after)
            assert abs(after - before) >= 0.00999
    assert n_tiny == 1


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_change_too_small_to_notice_is_made_larger(kind: Any) -> None:
    X = uniform("ab").astype(kind)
    model = DecisionTreeRegressor(max_depth=1).fit(X, X["a"] > 5.0)
    step = float(model.tree_.threshold[0])
    query = pd.DataFrame({"a": [step - 1e-4], "b": [3.0]}, dtype=kind)
    space = cfx.Space.from_data(X)
    region = space.around(query)
    assert region.least.tolist() == [0.02, 0.02]
    assert "smallest change 0.02" in str(space)
    answer = cfx.explain(model, query, space, cfx.at_least(0.5), rng=0)
    [(before, after)] = answer.best.changes.values()
    assert 0.0199 <= after - before < 0.031
    assert round(after, 2) == after


def test_another_row_is_taken_where_no_larger_change_hits() -> None:
    X = uniform("ab")
    query = pd.Series({"a": 3.0, "b": 3.0})

    def spike(rows: pd.DataFrame) -> Any:
        is_near = (rows["a"] > 3.0) & (rows["a"] < 3.005)
        return np.where(is_near | (rows["b"] > 6.0), 1.0, 0.0)

    with cfx.Evaluations() as known:
        rows = pd.DataFrame({"a": [3.002, 3.0], "b": [3.0, 6.5]})
        known.append(rows, spike(rows))
        answer = cfx.explain(
            spike, query, cfx.Space.from_data(X), cfx.at_least(0.5), evaluations=known, rng=0
        )
    assert answer.reached
    assert list(answer.best.changes) == ["b"]


def test_rounded_rows_keep_rules_that_bind() -> None:
    X = uniform("ab")
    space = cfx.Space.from_data(X).require("a + b <= 10").only_up("a", "b")
    for k in range(6):
        query = pd.Series({"a": 1.0 + k / 7, "b": 2.0 + k / 3})
        answer = cfx.explain(lambda r: 2 * r["a"] + r["b"], query, space, cfx.at_least(13.0), rng=0)
        assert answer.reached
        row = answer.best.row
        assert row["a"] + row["b"] <= 10.0
        assert all(len(str(after)) <= 6 for _, after in answer.best.changes.values())


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 20, 21, 40])
def test_rounding_keeps_the_budget(budget: int) -> None:
    X = uniform("abc")
    model = Recorder(lambda r: r["a"] + r["b"] * 0.5)
    answer = cfx.explain(
        model, X.iloc[0], cfx.Space.from_data(X), cfx.increase(by=1.0), budget=budget, rng=0
    )
    assert model.n == answer.n_evaluations <= budget


def test_several_answers_and_queries_are_rounded() -> None:
    X = uniform("abcd")
    model = GradientBoostingRegressor(random_state=0).fit(X, X["a"] + X["b"] + X["c"])
    space = cfx.Space.from_data(X)
    several = cfx.explain(model, X.iloc[0], space, cfx.increase(by=3), n=3, rng=0)
    many = cfx.explain_many(model, X.iloc[:6], space, cfx.increase(by=3), rng=0)
    assert len(several.counterfactuals) == 3
    for answer in (several, *many):
        assert answer.verify(model)
        for found in answer.counterfactuals:
            assert all(len(str(after)) <= 6 for _, after in found.changes.values())


def test_steps_that_people_notice_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 80, 300), "bmi": rng.uniform(18, 40, 300).round(1)})
    space = cfx.Space.from_data(X)
    assert not space.around(X.iloc[0]).fine.any()
    assert "smallest change" not in str(space)
    answer = cfx.explain(lambda r: r["bmi"] - r["age"], X.iloc[0], space, "+5", rng=0)
    assert "proof" not in answer.method
    assert answer.reached


def test_a_small_budget_is_spent_alike_with_rows_kept_for_rounding_and_for_checks() -> None:
    # With 40 rows two start rows are affordable for each of 8 features, and the first steps after
    # them are still in the half of the budget in which a search stays near the query.
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = GradientBoostingRegressor(random_state=0).fit(X, y)
    wide = cfx.Space.from_data(X).fix("age", "sex").max_changes(3)
    for space in (wide, wide.only_down("bmi").move({"bp": (-20, 0)})):
        answers = [
            cfx.explain(model, X.iloc[114], space, "-20%", budget=40, rng=0, short_decimals=short)
            for short in (True, False)
        ]
        first, second = (answer.evaluations.to_frame().head(18) for answer in answers)
        pd.testing.assert_frame_equal(first, second)
        assert (first.drop(columns="output").nunique() > 1).sum() == 8
