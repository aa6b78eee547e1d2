"""What moving costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.errors import SpaceError
from bayescfx.space.cost import Cost


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight": -1}, "`weight` must be a number >= 0; got -1"),
        ({"per_change": -0.1}, "`per_change` must be a number >= 0; got -0.1"),
        ({"norm": 0.5}, "`norm` must be 0 or a number >= 1; got 0.5"),
        ({"norm": "1"}, "`norm` must be 0 or a number >= 1; got '1'"),
        ({"per_feature": {"a": float("nan")}}, r"`per_feature\['a'\]` must be a number >= 0"),
    ],
)
def test_an_impossible_cost_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Cost(**settings)


@pytest.mark.parametrize("norm", [0, 1, 2])
@pytest.mark.parametrize("per_change", [0, 0.2, 7])
def test_the_cost_is_the_distance_plus_the_price_of_each_change(
    norm: float, per_change: float
) -> None:
    features: dict[Any, Any] = {
        "a": cfx.Real(0, 8),
        "b": cfx.Real(0, 8),
        "c": cfx.Categorical(list("xyz")),
    }
    space = cfx.Space(features).cost(norm=norm, per_feature={"a": 3, "b": 0})
    region = space.cost(per_change=per_change).around({"a": 1.0, "b": 2.0, "c": "y"})
    X = np.array([[1.0, 2, 1], [1.001, 2, 1], [5, 2, 1], [1, 7, 1], [3, 1, 0]])
    n_changes = np.array([0, 1, 1, 1, 3])
    np.testing.assert_allclose(region.cost(X), region.distance(X) + per_change * n_changes)


def test_parameters_that_are_not_given_stay() -> None:
    space = cfx.Space({"a": cfx.Real(0, 1)}).cost(per_change=3).cost(norm=2).cost(weight=0.5)
    assert space.price == Cost(weight=0.5, norm=2, per_change=3)


def test_derived_columns_have_no_price() -> None:
    frame = pd.DataFrame({"a": [0.0, 4.0], "double": [0.0, 8.0]})
    space = cfx.Space.from_data(frame).derive("double", lambda rows: 2 * rows["a"])
    region = space.cost(per_change=5).around(frame.iloc[0])
    X = region.complete(np.array([[3.0, 0.0]]))
    assert region.cost(X) == pytest.approx(region.distance(X) + 5)


def both_ways(rows: pd.DataFrame) -> Any:
    """One feature reaches 1 far away, two others together close by."""
    return np.minimum(rows["far"] / 2.0 + rows["near"] + rows["other"], 1.0)


@pytest.mark.parametrize("method", ["sweep", "bayes-cfx"])
@pytest.mark.parametrize(("per_change", "n_changes"), [(0.0, 2), (5.0, 1)])
def test_a_search_minimises_the_cost(method: Any, per_change: float, n_changes: int) -> None:
    names = ("far", "near", "other")
    limits = {"far": 4.0, "near": 0.5, "other": 0.5}
    features = {name: cfx.Real(0, limits[name], step=0.25) for name in names}
    space = cfx.Space(features).cost(per_change=per_change, per_feature={"far": 1.0})
    space = space.with_fields(scale=np.ones(3))
    answer = cfx.explain(
        both_ways, dict.fromkeys(names, 0.0), space, cfx.at_least(1.0), method=method, rng=0
    )
    best = answer.best
    assert best.n_changes == n_changes
    assert best.distance == pytest.approx(1.0 if n_changes == 2 else 2.0)
    assert best.cost == pytest.approx(best.distance + per_change * n_changes)
    assert f"(distance {best.distance:g}, {n_changes} change" in str(answer)
    again = cfx.Explanation.from_json(answer.to_json())
    assert again.space.price == answer.space.price
    assert (again.best.cost, again.best.distance) == (best.cost, best.distance)
    assert again.verify(both_ways)
    frame = answer.to_frame()
    assert frame[["cost", "distance", "n_changes"]].iloc[0].tolist() == [
        best.cost,
        best.distance,
        n_changes,
    ]
