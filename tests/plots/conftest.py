"""Answers that pictures are drawn of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest

import bayescfx as cfx

matplotlib.use("Agg")

SLOPES = np.array([4.0, -2.0, 1.0])


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def linear(X: Any) -> Any:
    return X @ SLOPES


@pytest.fixture(scope="session")
def numbers() -> cfx.Explanation:
    """An answer over an array, with two moves."""
    X = np.random.default_rng(0).uniform(size=(60, 3))
    space = cfx.Space.from_data(X).between({0: (0.3, 0.6)})
    return cfx.explain(
        linear, np.array([0.4, 0.5, 0.5]), space, cfx.reach(by=1.5), budget=40, rng=0
    )


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 80
    frame = pd.DataFrame(
        {
            "hours <b>&$x$": rng.integers(10, 60, n),
            "job": pd.Categorical(rng.choice(["clerk", "cook", "a very long name of a job"], n)),
            "school": pd.Categorical(
                rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True
            ),
            "weekday": rng.integers(0, 7, n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D"),
            "weight": rng.uniform(50, 100, n).round(1),
            "height": rng.uniform(1.5, 2.0, n).round(2),
        }
    )
    frame["bmi"] = frame["weight"] / frame["height"] ** 2
    return frame


def pay(rows: pd.DataFrame) -> Any:
    return (
        rows["hours <b>&$x$"]
        + 10.0 * (rows["job"] == "cook")
        + 5.0 * rows["school"].cat.codes
        + 6.0 * np.cos(2 * np.pi * (rows["weekday"] - 6) / 7)
        + (rows["since"] - pd.Timestamp("2020-01-01")).dt.days / 10
        - rows["bmi"]
    )


def people_space() -> cfx.Space:
    return (
        cfx.Space.from_data(people(), kinds={"weekday": cfx.Integer(0, 6, cyclic=True)})
        .derive("bmi", lambda rows: rows["weight"] / rows["height"] ** 2)
        .fix("height")
        .cost(weight=0.0)
    )


@pytest.fixture(scope="session")
def mixed() -> cfx.Explanation:
    """Every kind of feature, a derived column, and a target out of reach."""
    query = people().iloc[[0]].assign(weekday=1)  # a cook
    return cfx.explain(pay, query, people_space(), cfx.reach(500), budget=30, rng=0)


@pytest.fixture(scope="session")
def chances() -> cfx.Explanation:
    """A probability."""
    X = np.random.default_rng(2).normal(size=(80, 2))

    def model(X: Any) -> Any:
        return 1 / (1 + np.exp(-3 * X[:, 0] - X[:, 1]))

    return cfx.explain(model, X[0] * 0 - 0.5, cfx.Space.from_data(X), 0.8, budget=25, rng=0)


@pytest.fixture(scope="session")
def many() -> cfx.Explanations:
    rows = people().iloc[:4]
    space = cfx.Space.from_data(people(), kinds={"weekday": cfx.Integer(0, 6, cyclic=True)})
    return cfx.explain_many(pay, rows, space, cfx.increase(by=8), budget=15, rng=0)


def with_row(answer: cfx.Explanation, row: Any) -> cfx.Explanation:
    """Return the answer with another row as its counterfactual."""
    cells = zip(answer.layout.names, list(answer.query), list(row), strict=True)
    changes = {name: (before, after) for name, before, after in cells if before != after}
    best = replace(answer.best, row=row, changes=changes)
    return replace(answer, counterfactuals=(best,))
