"""Menus against brute force over all allowed rows, and wherever an answer shows them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

import bayescfx as cfx
from bayescfx.errors import ModelError, SettingsError
from bayescfx.potentials import contains
from bayescfx.result.menu import MenuItem


def small_table(seed: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.integers(0, 6, 150),
            "b": rng.integers(0, 5, 150),
            "c": rng.integers(0, 4, 150),
            "d": rng.integers(0, 3, 150),
        }
    )
    return X, X.a + 2 * (X.b > 2) * X.c - X.d + rng.normal(scale=0.2, size=150)


@pytest.mark.parametrize("seed", range(4))
def test_menu_equals_brute_force(seed: int) -> None:
    X, y = small_table(seed)
    kind = GradientBoostingRegressor if seed % 2 else RandomForestRegressor
    model = kind(n_estimators=12, random_state=seed).fit(X, y)
    space = cfx.Space.from_data(X)
    if seed == 3:
        space = space.require("a + b <= 7")
    query = X.iloc[seed]
    target = cfx.increase(by=2.0 + 0.5 * seed)
    menu = cfx.menu(model, query, space, target, size=3)
    region = space.around(query)
    rows = region.enumerate(10**5)
    assert rows is not None
    before = float(model.predict(X.iloc[[seed]])[0])
    accepted = target.acceptance(before, 0.05)
    hits = contains(accepted, model.predict(region.rows(rows)))
    costs = np.where(hits, region.cost(rows), np.inf)
    changes = region.changes(rows)
    names = list(X.columns)
    n_sets = sum(len(list(combinations(names, k))) for k in (1, 2, 3))
    assert len(menu) == n_sets
    for item in menu:
        others = [j for j, name in enumerate(names) if name not in item.features]
        best = costs[~changes[:, others].any(axis=1)].min(initial=np.inf)
        assert item.is_proven
        assert item.status == ("reaches" if np.isfinite(best) else "cannot")
        if item.output is not None:
            assert item.cost == pytest.approx(best)
            row = query.copy()
            for name, (old, new) in item.changes.items():
                assert old == query[name]
                row[name] = new
            assert model.predict(row.to_frame().T)[0] == pytest.approx(item.output, abs=1e-12)
            assert contains(accepted, np.array([item.output])).all()
    best_choice = menu.choices[0].cost if menu.choices else np.inf
    assert best_choice == pytest.approx(costs[changes.sum(axis=1) <= 3].min(initial=np.inf))


def test_menu_of_an_answer_is_shown_and_survives_json() -> None:
    X, y = small_table(0)
    model = RandomForestRegressor(n_estimators=10, random_state=0).fit(X, y)
    space = cfx.Space.from_data(X)
    explainer = cfx.Explainer(model, space)
    answer = explainer.explain(X.iloc[0], "+2", rng=0, menu=True)
    assert answer.menu is not None
    assert answer.menu == explainer.menu(X.iloc[0], cfx.increase(by=2))
    assert answer.menu == cfx.Explanation.from_json(answer.to_json()).menu
    cheapest = answer.menu.choices[0]
    assert f"{cheapest.name}" in str(answer)
    assert str(answer.menu) in str(answer)
    assert cheapest.name in answer.to_markdown()
    assert cheapest.name in answer._repr_html_()
    frame = answer.menu.to_frame()
    assert frame["cost"].iloc[0] == cheapest.cost
    assert len(frame) == len(answer.menu)
    if len(answer.best.changes) <= 2:
        assert cheapest.cost == pytest.approx(answer.best.cost)
    (first,) = cfx.explain_many(model, X.iloc[:1], space, "+2", rng=0, menu=True)
    assert first.menu == answer.menu
    plain = explainer.explain(X.iloc[0], "+2", rng=0)
    assert plain.menu is None
    assert str(plain) == str(replace(answer, menu=None))


def test_out_of_reach_for_every_set_is_said() -> None:
    X, y = small_table(1)
    model = RandomForestRegressor(n_estimators=10, random_state=0).fit(X, y)
    menu = cfx.menu(model, X.iloc[0], cfx.Space.from_data(X), ">= 1000")
    assert {item.status for item in menu} == {"cannot"}
    assert str(menu) == (
        "None of these sets reaches the target.\n"
        "Cannot reach it alone (proven): a, b, c, d.\n"
        "Cannot reach it (proven): 6 larger sets."
    )


def test_a_menu_that_was_cut_short_claims_nothing() -> None:
    unknown = MenuItem(("a", "b"), "unknown")
    excluded = MenuItem(("a",), "cannot", is_proven=True)
    assert str(cfx.Menu((excluded, unknown))) == (
        "None of these sets is known to reach the target.\n"
        "Cannot reach it alone (proven): a.\n"
        "Not known, the work was cut short: a and b."
    )


def test_networks_and_wrong_sizes_are_errors() -> None:
    X, y = small_table(2)
    space = cfx.Space.from_data(X)
    linear = LinearRegression().fit(X, y)
    network = MLPRegressor(hidden_layer_sizes=(2,), solver="lbfgs", max_iter=300).fit(X, y)
    with pytest.raises(ModelError, match="or linear model that can be read; it is a network"):
        cfx.menu(network, X.iloc[0], space, "+2")
    with pytest.raises(ModelError, match="must be a tree ensemble"):
        cfx.menu(lambda rows: rows["a"], X.iloc[0], space, "+2")
    with pytest.raises(SettingsError, match="`size` must be at most 4"):
        cfx.menu(linear, X.iloc[0], space, "+2", size=5)
    with pytest.raises(SettingsError, match="`menu` must be True or False"):
        cfx.explain(linear, X.iloc[0], space, "+2", menu=2)  # type: ignore[arg-type]
    assert cfx.explain(network, X.iloc[0], space, "+2", menu=True, rng=0).menu is None
