"""Several answers: each set of features is left out and searched for again, while rows are left."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.tree import DecisionTreeRegressor

import bayescfx as cfx

LEVELS = ["none", "low", "mid", "high", "top"]


def ordered(n: int = 900, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {name: pd.Categorical(rng.choice(LEVELS, n), LEVELS, ordered=True) for name in "pqrstu"}
    )


def codes(X: pd.DataFrame) -> Any:
    """Return the positions of the levels."""
    return np.column_stack([X[name].map(LEVELS.index).astype(int) for name in X.columns])


def three_ways(X: pd.DataFrame) -> Any:
    """Level "top" of p does it alone; so do three features together, in either of two ways."""
    Z = codes(X)
    both = ((Z[:, 1:4] >= 3).all(axis=1), (Z[:, 3:6] >= 3).all(axis=1))
    return 1.0 * ((Z[:, 0] == 4) | both[0] | both[1])


QUERY = pd.Series(dict.fromkeys("pqrstu", "low"))


def features(answer: cfx.Explanation) -> list[set[Any]]:
    return [set(each.changes) for each in answer.counterfactuals]


@pytest.mark.parametrize("seed", range(3))
def test_alternatives_are_searched_for_while_budget_is_left(seed: int) -> None:
    X = ordered()
    space = cfx.Space.from_data(X)
    target = cfx.at_least(1.0)
    answer = cfx.explain(three_ways, QUERY, space, target, n=3, budget=2000, rng=seed)
    assert sorted(map(sorted, features(answer))) == [["p"], ["q", "r", "s"], ["s", "t", "u"]]


def test_with_ordered_levels_several_answers_of_a_forest_of_boosted_trees_are_found() -> None:
    X = ordered()
    Z = codes(X)
    y = 4.0 * (Z[:, 0] >= 2) + (Z[:, 1:4] >= 2).sum(axis=1) + 0.1 * Z[:, 4]
    model = LGBMRegressor(random_state=0, verbose=-1, n_jobs=1).fit(X, y)
    space = cfx.Space.from_data(X)
    query = QUERY.to_frame().T.astype(X.dtypes.to_dict())
    want = float(np.asarray(model.predict(query))[0]) + 1.8

    def plain(frame: pd.DataFrame) -> Any:
        return model.predict(frame.astype(X.dtypes.to_dict()))

    for f in (model, plain):
        answer = cfx.explain(f, query, space, cfx.at_least(want), n=3, budget=2000, rng=0)
        found = features(answer)
        assert len(found) == 3
        assert found[0] == {"p"}
        assert all("p" not in names for names in found[1:])


@pytest.fixture(scope="module")
def sums() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({name: rng.normal(size=400) for name in "abcdef"})
    return X, lambda F: F @ np.array([3.0, 2.8, 2.6, 1.0, 0.9, 0.8])


def test_nearest_answers_come_in_order_and_need_all_their_changes(sums: Any) -> None:
    X, f = sums
    query = pd.Series(0.0, index=X.columns)
    answer = cfx.explain(
        f, query, cfx.Space.from_data(X), cfx.at_least(4.0), n=4, budget=3000, rng=0
    )
    assert len(answer.counterfactuals) == 4
    costs = [each.cost for each in answer.counterfactuals]
    assert all(low <= high for low, high in pairwise(costs))
    for each in answer.counterfactuals:
        row = pd.Series(each.row)
        for name in each.changes if len(each.changes) > 1 else ():
            back = row.copy()
            back[name] = query[name]
            assert float(f(back.to_frame().T).iloc[0]) < 4.0


def test_diverse_answers_change_other_features(sums: Any) -> None:
    X, f = sums
    query = pd.Series(0.0, index=X.columns)
    space = cfx.Space.from_data(X)
    target = cfx.at_least(4.0)
    nearest = cfx.explain(f, query, space, target, n=3, budget=2000, rng=0)
    diverse = cfx.explain(f, query, space, target, n=3, budget=2000, rng=0, diverse=True)
    assert diverse.best.changes == nearest.best.changes
    for number, found in enumerate(features(diverse)):
        assert not any(found & other for other in features(diverse)[:number])
    last = -1
    assert diverse.counterfactuals[last].cost >= nearest.counterfactuals[last].cost


def test_where_no_features_are_left_diverse_answers_share_as_few_as_possible() -> None:
    """Two of four features are needed: two answers share none, the third shares one with each."""
    X = ordered()[["p", "q", "r", "s"]]

    def two(frame: pd.DataFrame) -> Any:
        return 1.0 * ((codes(frame) >= 3).sum(axis=1) >= 2)

    answer = cfx.explain(
        two, QUERY[list("pqrs")], cfx.Space.from_data(X), cfx.at_least(1.0),
        n=3, budget=1000, rng=0, diverse=True,
    )  # fmt: skip
    first, second, third = features(answer)
    overlaps = sorted((len(first & second), len(first & third), len(second & third)))
    assert overlaps == [0, 1, 1]


def test_proven_answers_can_be_diverse() -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame({name: rng.normal(size=400) for name in "abcd"})
    model = LGBMRegressor(n_estimators=20, random_state=0, verbose=-1, n_jobs=1)
    model.fit(X, X["a"] + X["b"] + X["c"] + 0.2 * X["d"])
    space = cfx.Space.from_data(X)
    want = float(np.asarray(model.predict(X.iloc[[0]]))[0]) + 0.3
    answer = cfx.explain(
        model, X.iloc[0], space, cfx.at_least(want),
        n=3, diverse=True, rng=0,
    )  # fmt: skip
    assert answer.stopped == "proven"
    found = features(answer)
    assert len(found) == 3
    assert not found[0] & found[1]


def test_diverse_must_be_true_or_false(sums: Any) -> None:
    X, f = sums
    with pytest.raises(cfx.SettingsError, match="diverse"):
        cfx.explain(f, X.iloc[0], cfx.Space.from_data(X), cfx.at_least(4.0), diverse="yes")  # type: ignore[arg-type]


def test_a_small_budget_is_spent_while_answers_are_missing() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=300),
            "b": rng.integers(0, 50, 300),
            "h": rng.integers(0, 24, 300),
        }
    )

    def model(rows: pd.DataFrame) -> Any:
        return rows["a"] + 0.1 * rows["b"] + 2 * np.sin(rows["h"] / 24 * 6.28)

    answer = cfx.explain(
        model,
        X.iloc[[3]],
        cfx.Space.from_data(X),
        cfx.increase(by=1.5),
        method="sweep",
        n=3,
        budget=100,
        short_decimals=False,
        rng=0,
    )
    assert len(answer.counterfactuals) == 3 or answer.n_evaluations > 90


def test_a_rule_that_needs_one_feature_leaves_no_part_without_it() -> None:
    space = cfx.Space({name: cfx.Integer(0, 40) for name in "abcd"})
    query = {"a": 9, "b": 5, "c": 5, "d": 5}
    for limited in (space.require("a <= 4"), space.between({"a": (0, 4)}, strict=True)):
        answer = cfx.explain(
            lambda r: 20.0 - r["a"], query, limited, cfx.at_least(12), n=2, rng=0, budget=300
        )
        assert answer.best.changes == {"a": (9, 4)}


@pytest.mark.parametrize("method", ["auto", "sweep"])
def test_a_short_move_does_not_hide_longer_ones_of_other_features(method: str) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0.0, 10.0, (400, 4)), columns=list("abcd"))
    wide = (X["a"] > 5.2) | (X["b"] > 9.0) | (X["c"] < 0.8)
    model = DecisionTreeRegressor(random_state=0).fit(X, wide.astype(float))
    query = pd.Series({"a": 5.0, "b": 5.0, "c": 5.0, "d": 5.0})
    answer = cfx.explain(
        model, query, cfx.Space.from_data(X), cfx.at_least(0.5), n=3, method=method, rng=0
    )
    assert features(answer) == [{"a"}, {"b"}, {"c"}] or features(answer) == [{"a"}, {"c"}, {"b"}]
