"""Further answers against brute force: the cheapest row of all that leave some feature alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.potentials import contains
from bayescfx.search.finish import different
from tests.search.exact.certificate_problems import fit_model, small_data, small_space
from tests.search.exact.linear_problems import fit_linear

N_ANSWERS = 4


def best_by_brute_force(region: Any, rows: Array, costs: Array) -> tuple[list[float], bool]:
    """Return the costs of the first answers, by the rule applied to all rows that reach.

    Rows of the same cost may lead to other sets. So it ends at the first such cost, and returns
    whether there is none.
    """
    changes = region.changes(rows)
    is_open = np.isfinite(costs) & changes.any(axis=1)
    chosen: list[int] = []
    found: list[float] = []
    while is_open.any() and len(chosen) < N_ANSWERS:
        best = int(np.where(is_open, costs, np.inf).argmin())
        is_tied = np.isclose(costs[is_open], costs[best]).sum() > 1
        is_open &= ~changes[:, changes[best]].all(axis=1)
        if not chosen or different(region, rows[[best]], rows[chosen]).all():
            chosen.append(best)
            found.append(float(costs[best]))
        if is_tied:
            return found, False
    return found, True


def check_by_brute_force(model: Any, data: pd.DataFrame, space: cfx.Space, seed: int) -> None:
    """Compare several proven answers with all rows of a small space."""
    rng = np.random.default_rng(seed)
    outputs = np.asarray(model.predict(data))
    query = data.iloc[[int(rng.integers(len(data)))]]
    change = float(np.std(outputs)) * rng.choice([0.25, 0.5]) * rng.choice([-1, 1])
    goal = float(model.predict(query)[0]) + change
    target = cfx.at_least(goal) if change > 0 else cfx.at_most(goal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        region = space.around(query)
        answer = cfx.explain(
            model, query, space, target, method="exact", n=N_ANSWERS, rng=0, budget=500
        )
    rows = region.enumerate(10**6)
    assert rows is not None
    hits = contains(answer.accepted, np.asarray(model.predict(region.rows(rows))))
    costs = np.where(hits, region.cost(rows), np.inf)
    if answer.stopped == "already met" or answer.proof != "optimal":
        assert not np.isfinite(costs).any() or answer.stopped == "already met"
        return
    expected, is_unique = best_by_brute_force(region, rows, costs)
    proven = [each for each in answer.counterfactuals if each.proof == "optimal"]
    n_same = len(expected)
    assert [each.cost for each in proven][:n_same] == pytest.approx(expected, rel=1e-6)
    assert proven[0].cost == pytest.approx(costs.min())
    changes = region.changes(rows)
    for each in proven:
        others = [j for j, name in enumerate(region.names) if name not in each.changes]
        own = costs[~changes[:, others].any(axis=1)]
        assert each.cost == pytest.approx(own.min(), rel=1e-6)
    if is_unique:
        assert len(proven) == len(expected)
    assert answer.verify(model)
    codes = region.encode(answer.rows)
    for k in range(1, len(codes)):
        assert different(region, codes[[k]], codes[:k]).all()


@pytest.mark.parametrize("seed", range(20))
def test_each_answer_is_the_cheapest_of_its_features_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data, y = small_data(seed)
    kind = seed % 3
    if kind == 2:
        data["g"] = data.g.astype("category")
    model = fit_model(kind, data, y)
    check_by_brute_force(model, data, small_space(data, rng).max_changes(4), seed)


@pytest.mark.parametrize("seed", range(20))
def test_so_is_each_answer_of_a_linear_model(seed: int) -> None:
    data, y = small_data(seed)
    model = fit_linear(2 * (seed % 2), data, y)
    space = small_space(data, np.random.default_rng(seed))
    check_by_brute_force(model, data, space if seed % 4 else space.max_changes(3), seed)


@pytest.mark.parametrize("seed", range(6))
def test_so_is_each_answer_of_a_network(seed: int) -> None:
    data, y = small_data(seed)
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["g", "h"]),
        (StandardScaler(), ["a", "c"]),
        remainder="passthrough",
    )
    network = MLPRegressor(hidden_layer_sizes=(5,), max_iter=300, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(encode, network).fit(data, y)
    check_by_brute_force(model, data, small_space(data, np.random.default_rng(seed)), seed)


def diabetes() -> tuple[pd.DataFrame, Any]:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return X[["age", "bmi", "bp", "s5", "s6"]], y


def test_the_sweep_is_never_cheaper_than_the_proven_answer_of_the_same_features() -> None:
    X, y = diabetes()
    model = RandomForestRegressor(n_estimators=20, max_depth=6, random_state=0).fit(X, y)
    explainer = cfx.Explainer(model, cfx.Space.from_data(X), n=3, rng=0, short_decimals=False)
    proven = explainer.explain(X.iloc[114], "-20%")
    found = explainer.explain(X.iloc[114], "-20%", prove=False)
    assert [each.proof for each in proven.counterfactuals] == ["optimal"] * 3
    assert [each.proof for each in found.counterfactuals] == [None] * 3
    by_features = {frozenset(each.changes): each.cost for each in proven.counterfactuals}
    for each in found.counterfactuals:
        cost = by_features.get(frozenset(each.changes), 0.0)
        assert each.cost >= cost * (1 - 1e-9)
    again = cfx.Explanation.from_json(proven.to_json())
    assert [each.proof for each in again.counterfactuals] == ["optimal"] * 3
    words = [line.split() for line in str(proven).splitlines()]
    assert ["proven", "optimal", "optimal", "optimal"] in words


def test_all_answers_of_a_linear_model_are_proven() -> None:
    X, y = diabetes()
    linear = LinearRegression().fit(X, y)
    explainer = cfx.Explainer(linear, cfx.Space.from_data(X), rng=0, short_decimals=False)
    several = explainer.explain(X.iloc[114], "-20%", n=3)
    assert several.proof == "optimal"
    assert [each.proof for each in several.counterfactuals] == ["optimal"] * 3
    sets = [frozenset(each.changes) for each in several.counterfactuals]
    assert len(set(sets)) == 3
    for each in several.counterfactuals[1:]:
        others = [name for name in X.columns if name not in each.changes]
        space = cfx.Space.from_data(X).fix(*others)
        alone = cfx.explain(linear, X.iloc[114], space, "-20%", rng=0, short_decimals=False)
        assert alone.best.cost == pytest.approx(each.cost, rel=1e-5)


def test_a_proof_ends_even_if_its_rows_spend_the_budget() -> None:
    X, y = diabetes()
    model = RandomForestRegressor(n_estimators=20, max_depth=6, random_state=0).fit(X, y)
    space = cfx.Space.from_data(X)
    free = cfx.explain(model, X.iloc[0], space, "+20%", method="exact", rng=0)
    assert free.proof == "optimal"
    tight = cfx.explain(
        model, X.iloc[0], space, "+20%", method="exact", budget=free.n_evaluations, rng=0
    )
    assert tight.proof == "optimal"
    assert tight.best.changes == free.best.changes
