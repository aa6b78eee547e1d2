"""The limit agrees with a dense grid over all pairs of features."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from benchmarks.limit import Boxes, boxes, limit, representatives, surface
from benchmarks.problems import Case, fitted, reachable_cell, table

import bayescfx as cfx

DATA = "friedman2"  # four features


def by_grid(case: Case, values: int, per_change: float = 0.0) -> float:
    """Return the least cost among hits that change at most two features, on a grid."""
    rows = table(case.data)
    query = case.query
    best = np.inf
    predict = fitted(case.data, case.model).predict
    for i, j in combinations(range(len(query)), 2):
        sides = [
            np.append(np.linspace(rows.low[k], rows.high[k], values), query[k]) for k in (i, j)
        ]
        X = np.repeat(query[None], (values + 1) ** 2, axis=0)
        X[:, [i, j]] = np.array(np.meshgrid(*sides)).reshape(2, -1).T
        hit = X[case.hits(predict(X))]
        if len(hit):
            far = (np.abs(hit - query) / rows.scale).sum(axis=1)
            price = far + per_change * (hit != query).sum(axis=1)
            best = min(best, float(price.min()))
    return best


@pytest.mark.parametrize("per_change", [0.0, 0.2, 5.0])
@pytest.mark.parametrize(("data", "model", "values"), [(DATA, "lgbm", 80), ("diabetes", "rf", 24)])
def test_no_pair_of_values_is_nearer_and_a_dense_grid_comes_close(
    data: str, model: str, values: int, per_change: float
) -> None:
    case = next(c for c in reachable_cell(data, model, 1.0, 5) if limit(c) < np.inf)
    exact = limit(case, per_change)
    dense = by_grid(case, values, per_change)
    spacing = float(((table(data).high - table(data).low) / table(data).scale).max()) / values
    assert exact <= dense + 1e-9
    assert dense <= exact + 2 * spacing


@pytest.mark.parametrize("model", ["lgbm", "rf"])
def test_the_boxes_add_up_to_the_model(model: str) -> None:
    rows = table(DATA)
    leaves = boxes(DATA, model)
    X = rows.random(50)
    inside = ((X[:, None] > leaves.low) & (X[:, None] <= leaves.high)).all(axis=2)
    assert inside @ leaves.value == pytest.approx(fitted(DATA, model).predict(X), rel=1e-6)


def test_the_surface_is_the_sum_of_the_boxes_at_each_pair_of_values() -> None:
    low = np.array([[-np.inf, 0.0], [1.0, -np.inf]])
    high = np.array([[1.0, 2.0], [3.0, np.inf]])
    y = surface(
        Boxes(low, high, np.array([10.0, 1.0])),
        (0, np.array([0.0, 1.0, 2.0])),
        (1, np.array([0.0, 1.0])),
    )
    assert y.tolist() == [[0.0, 10.0], [0.0, 10.0], [1.0, 1.0]]


@pytest.mark.parametrize("step", [None, 0.25, 0.0001])
def test_representatives_are_the_nearest_allowed_values_of_their_intervals(
    step: float | None,
) -> None:
    region = cfx.Space({"a": cfx.Real(0.0, 10.0, step=step)}).around({"a": 4.0})
    edges = np.array([[1.1], [2.9], [5.3], [7.6]])
    found = representatives(Boxes(edges - 1, edges, np.ones(4)), region, 0)
    assert region.contains(found[:, None]).all()
    allowed = region.on_grid(np.linspace(0, 10, 400_001)[:, None])[:, 0]
    interval = np.searchsorted(edges[:, 0], allowed)
    best = [np.abs(allowed[interval == k] - 4.0).min() for k in range(5)]
    assert np.abs(found - 4.0) == pytest.approx(best, abs=1e-4 if step is None else 1e-9)


def test_a_target_that_no_two_changes_reach_has_no_limit() -> None:
    case = reachable_cell(DATA, "lgbm", 1.0, 1)[0]
    beyond = Case(case.data, case.model, case.row, 1.0, case.output, case.output + 1e6)
    assert limit(beyond) == np.inf
