"""More freedom or a larger budget gives no worse answer: random tables, models and constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression

import bayescfx as cfx
from bayescfx.space.space import Space

#: An answer may cost so much more by chance.
SLACK = 1.02

Constraint = Callable[[Space], Space]


@dataclass(frozen=True)
class Problem:
    """A question with constraints that can be left out one by one."""

    model: Any
    data: pd.DataFrame
    query: pd.Series
    goal: float
    constraints: list[Constraint]

    def cost(self, constraints: list[Constraint], budget: int | None) -> float:
        """Return the cost of the answer under some constraints; infinite without one."""
        space = Space.from_data(self.data)
        for constraint in constraints:
            space = constraint(space)
        answer = cfx.explain(
            self.model, self.query, space, cfx.at_least(self.goal), budget=budget, rng=0
        )
        return answer.best.cost if answer.reached else np.inf


def random_data(rng: np.random.Generator) -> pd.DataFrame:
    """Return a table of decimals, integers and a column of levels."""
    columns: dict[str, Any] = {}
    for j in range(int(rng.integers(3, 7))):
        draws = (
            rng.normal(size=300).round(2),
            rng.integers(0, 12, 300),
            rng.uniform(0, 100, 300).round(1),
        )
        columns[f"x{j}"] = draws[rng.integers(3)]
    return pd.DataFrame(columns)


def random_constraints(
    data: pd.DataFrame, query: pd.Series, rng: np.random.Generator
) -> list[Constraint]:
    """Return limits of one or two features, and perhaps a bound on changes and a rule."""
    found: list[Constraint] = []
    names = list(data.columns)
    for name in rng.permutation(names)[: int(rng.integers(1, 3))].tolist():
        low, high = data[name].quantile([0.2, 0.8])
        ends = (min(low, query[name]), max(high, query[name]))
        width = float(data[name].std())
        verbs: list[Constraint] = [
            methodcaller("fix", name),
            methodcaller("only_up", name),
            methodcaller("between", {name: ends}),
            methodcaller("move", {name: (-width, width)}),
        ]
        found.append(verbs[rng.integers(4)])
    if rng.random() < 0.5:
        bound = int(rng.integers(1, 4))
        found.append(methodcaller("max_changes", bound))
    if rng.random() < 0.5:
        one, other = rng.permutation(names)[:2].tolist()
        total = data[one] / data[one].std() + data[other] / data[other].std()
        own = query[one] / data[one].std() + query[other] / data[other].std()
        most = max(own, total.quantile(0.7)) + 1e-3
        text = f"{one} / {data[one].std():.9g} + {other} / {data[other].std():.9g} <= {most:.6g}"
        found.append(methodcaller("require", text))
    return found


def make_problem(seed: int) -> Problem:
    """Return a random question about a model of one of five kinds."""
    rng = np.random.default_rng(seed)
    data = random_data(rng)
    mean = data.mean()
    std = data.std()
    weights = rng.normal(size=data.shape[1])
    # Every value of an integer is tried; one of a hundred decimals is a needle.
    whole = [name for name in data.columns if data[name].dtype.kind == "i"][:1]
    spikes = data[whole].iloc[int(rng.integers(len(data)))]

    def smooth(rows: pd.DataFrame) -> Any:
        Z = (rows - mean) / std
        return np.asarray(Z @ weights + 0.8 * np.sin(2 * Z.iloc[:, 0]) * Z.iloc[:, 1])

    def stepped(rows: pd.DataFrame) -> Any:
        return np.floor(4 * smooth(rows)) / 4 + 1.5 * (rows[whole] == spikes).any(axis=1)

    outputs = smooth(data)
    estimators: list[Any] = [
        LinearRegression(),
        GradientBoostingRegressor(n_estimators=40, random_state=0),
        RandomForestRegressor(20, random_state=0),
    ]
    model: Any = [*estimators, smooth, stepped][seed % 5]
    predicted = model(data) if callable(model) else model.fit(data, outputs).predict(data)
    k = int(rng.integers(len(data)))
    query = data.iloc[k]
    predicted = np.asarray(predicted)
    goal = float(predicted[k] + rng.uniform(0.3, 1.0) * predicted.std())
    return Problem(model, data, query, goal, random_constraints(data, query, rng))


def check(seeds: range) -> None:
    """Check that no constraint that is left out, and no larger budget, raises the cost."""
    worse = []
    for seed in seeds:
        problem = make_problem(seed)
        every = problem.constraints
        budget = 2000 if callable(problem.model) else None
        cost = problem.cost(every, budget)
        for k in range(len(every)):
            freed = problem.cost(every[:k] + every[k + 1 :], budget)
            if freed > SLACK * cost:
                worse.append((seed, f"without constraint {k}", cost, freed))
        few = problem.cost(every, 200)
        many = problem.cost(every, 2000)
        if many > SLACK * few:
            worse.append((seed, "2000 rows instead of 200", few, many))
    assert worse == []


def test_more_freedom_or_rows_give_no_worse_answer() -> None:
    check(range(10))


@pytest.mark.slow
def test_more_freedom_or_rows_give_no_worse_answer_on_many_tables() -> None:
    check(range(1000, 1100))
