"""How numbers are rounded: rows, sizes of changes, cost, and what is said about the answer."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx
from bayescfx.data import Integer, Real


def digits(number: float) -> int:
    """Return how many significant digits a number is printed with."""
    return len(Decimal(str(number)).normalize().as_tuple().digits)


def explain(f: Any, row: dict[str, Any], space: Any, target: Any, **options: Any) -> Any:
    return cfx.explain(f, pd.Series(row), space, target, **{"rng": 0, "prove": False} | options)


def test_a_number_is_rounded_although_the_first_decimals_miss() -> None:
    """Bumps in the output: few of the short decimals reach the target."""

    def f(X: pd.DataFrame) -> Any:
        x = X["x"].to_numpy()
        return np.where(np.abs(x * 1000 - np.rint(x * 1000)) < 0.2, x, 0.0) * (x < 4.9)

    found = explain(f, {"x": 1.2345}, cfx.Space({"x": Real(0, 10)}), cfx.at_least(4.6), budget=400)
    assert found.reached
    assert digits(found.best.row["x"]) <= 4


def test_rows_of_the_budget_are_kept_and_used() -> None:
    """Each of three answers may try several decimals."""

    def f(X: pd.DataFrame) -> Any:
        table = X.to_numpy()
        hundredths = np.rint(table * 100).astype(int) % 10
        return np.where((hundredths == 7) | (table <= 1.0), table, 0.0).sum(axis=1)

    space = cfx.Space({name: Real(0, 10) for name in "abc"})
    found = explain(f, dict.fromkeys("abc", 0.5), space, cfx.at_least(4.2), n=3, budget=2000)
    numbers = [each.row[name] for each in found.counterfactuals for name in each.changes]
    assert found.reached
    assert max(map(digits, numbers)) <= 3


@pytest.mark.parametrize("query", [0.7, 0.8, 0.3, 1.1])
def test_the_smallest_change_is_no_change_too_small(query: float) -> None:
    """0.9 - 0.8 is less than 0.1 in floating point."""
    space = cfx.Space({"x": Real(0, 40), "y": Real(0, 40)})

    def jump(X: pd.DataFrame) -> Any:
        return 1.0 * (X["x"] - query > 0.01) + 0.0 * X["y"]

    found = explain(jump, {"x": query, "y": 1.0}, space, ">= 1")
    assert found.best.changes == {"x": (query, pytest.approx(query + 0.1))}
    assert digits(found.best.row["x"]) <= 2


def test_a_proof_by_listing_every_row_is_not_of_the_rounded_row() -> None:
    """All rows were scored; the rounded one costs more than the cheapest."""
    space = cfx.Space({"x": Integer(0, 100_000)}).between({"x": (450, 900)})
    found = explain(lambda X: X["x"], {"x": 450}, space, cfx.at_least(898), budget=3000)
    assert found.stopped == "exhausted"
    assert found.best.row["x"] == 900
    assert found.proof == "optimal before rounding"
    assert found.bound < found.best.cost
    assert found.best.proof == found.proof


def test_a_rounded_guess_that_hits_is_the_answer() -> None:
    """No search finds the spike at 7.4, but the rounding does."""

    def f(X: pd.DataFrame) -> Any:
        x = X["x"].to_numpy()
        return np.where(np.abs(x - 7.4) < 1e-9, 10.0, 5.0 - np.abs(x - 7.401))

    for seed in range(2):
        space = cfx.Space({"x": Real(0, 10)})
        found = explain(f, {"x": 1.2345}, space, cfx.at_least(8), rng=seed, budget=200)
        hits = [y for y in found.evaluations.to_frame()["output"] if y >= 8]
        assert found.reached == bool(hits)


def test_a_feature_without_cost_moves_no_further_than_people_notice() -> None:
    space = cfx.Space({"x": Real(0, 1000), "y": Real(0, 10)}).cost(per_feature={"x": 0})
    found = explain(lambda X: X["x"] / 100 + X["y"], {"x": 111.0, "y": 1.0}, space, ">= 6.234567")
    raw = explain(
        lambda X: X["x"] / 100 + X["y"],
        {"x": 111.0, "y": 1.0},
        space,
        ">= 6.234567",
        short_decimals=False,
    )
    assert abs(found.best.row["x"] - raw.best.row["x"]) <= 1.0 + 1e-9


def test_the_bound_is_that_of_the_row_that_was_replaced() -> None:
    """The optimum is a change too small to notice; the answer is another row, which costs more."""
    space = cfx.Space({"x": Integer(0, 100_000), "y": Integer(0, 10)})
    space = space.between({"x": (0, 12), "y": (0, 10)})
    found = explain(
        lambda X: (X["x"] == 3) * 1.0 + (X["y"] == 9),
        {"x": 0, "y": 2},
        space,
        ">= 1",
        budget=3000,
    )
    assert found.stopped == "exhausted"
    assert found.best.changes == {"y": (2, 9)}
    assert found.proof == "optimal before rounding"
    assert found.bound == pytest.approx(0.2 + 3 / 25_000)


def test_three_answers_are_each_rounded_once_and_sorted() -> None:
    space = cfx.Space({name: Real(0, 10) for name in "abc"})
    weights = np.array([1.0, 0.9, 0.8])
    found = explain(
        lambda X: X.to_numpy() @ weights, dict.fromkeys("abc", 1.2345), space, "+2.34567", n=3
    )
    costs = [each.cost for each in found.counterfactuals]
    assert costs == sorted(costs)
    assert all(each.valid for each in found.counterfactuals)
    numbers = [each.row[name] for each in found.counterfactuals for name in each.changes]
    assert max(map(digits, numbers)) <= 4


def test_faults_of_the_model_do_not_stop_the_rounding() -> None:
    """Half of the decimals have no output."""

    def f(X: pd.DataFrame) -> Any:
        x = X["x"].to_numpy()
        return np.where(np.rint(x * 100) % 2 == 0, x, np.nan)

    space = cfx.Space({"x": Real(0, 10)})
    found = explain(f, {"x": 1.04}, space, ">= 4.6789", on_fault="skip", budget=400)
    assert found.reached
    assert digits(found.best.row["x"]) <= 3


@pytest.mark.parametrize("norm", [0, 1, 2])
def test_rounding_adds_one_per_cent_to_the_cost_at_most(norm: float) -> None:
    rng = np.random.default_rng(0)
    for seed in range(5):
        weights = rng.normal(size=4)
        query = dict(zip("abcd", rng.uniform(2, 8, 4), strict=True))
        space = cfx.Space({name: Real(0, 10) for name in "abcd"}).cost(norm=norm)
        f = lambda X, w=weights: X.to_numpy() @ w  # noqa: E731
        options = {"rng": seed, "budget": 2000}
        found = explain(f, query, space, cfx.increase(by=2.34567), **options)
        raw = explain(f, query, space, cfx.increase(by=2.34567), short_decimals=False, **options)
        assert found.reached == raw.reached
        if raw.reached:
            assert found.best.cost <= raw.best.cost * 1.03
