"""A larger budget or more freedom gives no worse answer, over many tables and models."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

import bayescfx as cfx

#: A sweep stops improving an answer at about this share of its cost.
SLACK = 1.02
MODELS: list[Callable[[], Any]] = [
    lambda: HistGradientBoostingRegressor(max_iter=40, random_state=0),
    lambda: LGBMRegressor(n_estimators=40, random_state=0, verbose=-1, n_jobs=1),
    lambda: MLPRegressor(hidden_layer_sizes=(30,), max_iter=100, solver="lbfgs", random_state=0),
    lambda: ExtraTreesRegressor(20, min_samples_leaf=3, random_state=0),
]


@dataclass(frozen=True)
class Case:
    """A made table of numbers and integers, a model as a plain function, and a question."""

    f: Callable[[pd.DataFrame], Any]
    model: Any
    space: cfx.Space
    query: pd.Series[Any]
    target: Any

    def cost(
        self,
        budget: int,
        space: cfx.Space | None = None,
        *,
        direct: bool = False,
        method: str = "auto",
    ) -> float:
        """Return the cost of the answer, infinite if the target is missed."""
        model = self.model if direct else self.f
        answer = cfx.explain(
            model,
            self.query,
            space or self.space,
            self.target,
            method=method,
            budget=budget,
            rng=0,
        )
        return answer.best.cost if answer.reached else np.inf


def case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    n_rows = 300
    d = int(rng.integers(2, 8))
    columns: dict[str, Any] = {}
    for j in range(d):
        most = int(rng.choice([4, 30, 300]))
        is_real = rng.random() < 0.5
        columns[f"x{j}"] = rng.normal(size=n_rows) if is_real else rng.integers(0, most, n_rows)
    X = pd.DataFrame(columns)
    Z = ((X - X.mean()) / X.std()).to_numpy()
    y = Z @ rng.normal(size=d) + np.sin(2.0 * Z[:, 0]) + Z[:, -1] * Z[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a short training is intended
        model = MODELS[seed % len(MODELS)]().fit(X, y)
    query = X.iloc[int(rng.integers(n_rows))]
    output = float(model.predict(query.to_frame().T)[0])
    target = cfx.at_least(output + float(rng.choice([0.5, 1.0])) * float(y.std()))
    return Case(lambda F: model.predict(F), model, cfx.Space.from_data(X), query, target)


@pytest.mark.parametrize("seed", range(20))
def test_more_rows_give_no_worse_answer(seed: int) -> None:
    question = case(seed)
    few, many = [question.cost(rows, method="sweep") for rows in (200, 2000)]
    assert many <= SLACK * few
    if seed < 6:  # the usual sweep is the beginning of a larger one
        assert question.cost(20_000, method="sweep") <= many


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("seed", range(14))
def test_a_constraint_less_gives_no_worse_answer(seed: int, direct: bool) -> None:
    question = case(seed)
    space = question.space
    names = list(question.query.index)
    free = question.cost(2000, direct=direct)
    constrained = [space.max_changes(1), space.max_changes(2), space.fix(names[0])]
    constrained.append(space.only_up(names[-1]).fix(names[0]))
    for other in constrained[: len(names)]:
        assert free <= SLACK * question.cost(2000, other, direct=direct)


# ── a jump at a single value ──


def jumps(frame: pd.DataFrame) -> Any:
    """A jump at one integer, far from all that are tried first, and a step much farther away."""
    return 3.0 * (frame["k"] == 461) + 1.5 * (frame["k"] > 600) + 0.1 * frame["a"]


@pytest.mark.parametrize("fixed", [("a", "c"), ()])
def test_a_nearer_integer_is_not_left_untried_while_rows_are_left(fixed: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "k": rng.integers(0, 1000, 800),
            "a": rng.normal(size=800),
            "c": rng.choice(["u", "v"], 800),
        }
    )
    space = cfx.Space.from_data(X).fix(*fixed)
    query = pd.Series({"k": 350, "a": 0.0, "c": "u"})
    for budget in (1000, 2000, 10_000):
        answer = cfx.explain(jumps, query, space, cfx.at_least(1.0), budget=budget, rng=0)
        assert answer.best.changes == {"k": (350, 461)}


def test_every_level_is_tried_before_a_sweep_ends() -> None:
    """Rare levels are left out at first: one of them reaches the target alone."""
    rng = np.random.default_rng(0)
    levels = np.array([f"v{k:03d}" for k in range(200)])
    X = pd.DataFrame({"shop": rng.choice(levels, 3000), "x": rng.normal(size=3000)})
    X.loc[:40, "shop"] = "v000"
    X = X[X["shop"] != "v199"]
    X.loc[X.index[0], "shop"] = "v199"

    def f(frame: pd.DataFrame) -> Any:
        return 1.0 * (frame["shop"] == "v199") + 0.5 * frame["x"]

    query = pd.Series({"shop": "v000", "x": 0.0})
    answer = cfx.explain(f, query, cfx.Space.from_data(X), cfx.at_least(1.0), budget=2000, rng=0)
    assert answer.best.changes == {"shop": ("v000", "v199")}


def test_an_integer_of_an_answer_is_shortened_to_any_nearer_value() -> None:
    """Both features are needed; of the integer only one value in between will do."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"k": rng.integers(0, 1000, 800), "a": rng.normal(size=800)})

    def f(frame: pd.DataFrame) -> Any:
        return 1.0 * (((frame["k"] > 700) | (frame["k"] == 423)) & (frame["a"] > 0.5))

    query = pd.Series({"k": 350, "a": 0.0})
    answer = cfx.explain(f, query, cfx.Space.from_data(X), cfx.at_least(1.0), budget=2000, rng=0)
    assert answer.best.row["k"] == 423
