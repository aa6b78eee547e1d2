"""Random small problems over tree ensembles, with all allowed rows listed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bayescfx as cfx
from bayescfx.arrays import Array, Mask
from bayescfx.models.model import Model, as_model
from bayescfx.models.readers import TreeEnsemble, read_model
from bayescfx.potentials import Intervals
from bayescfx.search.exact.leaves import LeafTable, make_leaf_table
from bayescfx.space.region import Region

SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class SmallProblem:
    """A question whose allowed rows are all known."""

    model: Model
    region: Region
    table: LeafTable
    accepted: Intervals
    rows: Array
    scores: Array

    def reaches(self, X: Array) -> Mask:
        scores = self.model.scores(self.region.rows(X))
        return is_within(scores, self.accepted)

    @property
    def costs(self) -> Array:
        """The cost of each row; infinite unless it reaches the target."""
        cost = self.region.cost(self.rows)
        return np.where(is_within(self.scores, self.accepted), cost, np.inf)

    @property
    def best(self) -> float:
        return float(self.costs.min(initial=np.inf))

    @property
    def answer(self) -> Array | None:
        return self.rows[int(self.costs.argmin())] if np.isfinite(self.best) else None


def is_within(scores: Array, accepted: Intervals) -> Mask:
    """Return which scores lie in one of the intervals."""
    found = np.zeros(len(scores), dtype=np.bool_)
    for low, high in accepted:
        found |= (scores >= low) & (scores <= high)
    return found


def small_data(seed: int) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    n = 120
    data = pd.DataFrame(
        {
            "a": rng.integers(0, 7, n).astype(float),
            "b": rng.integers(-3, 4, n),
            "c": np.round(rng.normal(size=n), 1).clip(-0.6, 0.6),
            "g": rng.choice(list("xyz"), n),
            "h": rng.integers(0, 6, n),
        }
    )
    y = data.a * rng.normal() + np.sin(data.b) * 3 + (data.g == "x") * 2 * rng.normal()
    y = y + data.c * data.a + (data.h == 3) * 2 + rng.normal(size=n) * 0.3
    return data, y


def fit_model(kind: int, data: pd.DataFrame, y: Any, seed: int = 0) -> Any:
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["g"]),
        (StandardScaler(), ["a", "c"]),
        remainder="passthrough",
    )
    if kind == 0:
        boosting = GradientBoostingRegressor(
            n_estimators=15, subsample=0.9 if seed else 1.0, random_state=seed
        )
        return make_pipeline(encode, boosting).fit(data, y)
    if kind == 1:
        forest = RandomForestRegressor(n_estimators=8, random_state=seed)
        return make_pipeline(encode, forest).fit(data, y)
    model = HistGradientBoostingRegressor(
        max_iter=15,
        max_leaf_nodes=8,
        min_samples_leaf=5,
        categorical_features="from_dtype",
        random_state=seed,
    )
    return model.fit(data, y + 0.01 * seed * np.arange(len(y)))


def small_space(data: pd.DataFrame, rng: np.random.Generator) -> cfx.Space:
    is_cyclic = rng.random() < 0.4
    space = cfx.Space.from_data(data, {"h": cfx.Integer(0, 5, cyclic=True)} if is_cyclic else None)
    if rng.random() < 0.4:
        space = space.max_changes(int(rng.integers(1, 4)))
    if rng.random() < 0.3:
        space = space.only_up("a")
    if rng.random() < 0.3:
        space = space.fix("b")
    if rng.random() < 0.3:
        space = space.cost(norm=float(rng.choice([0, 1, 2])), per_feature={"a": 2.0})
    if rng.random() < 0.3:
        space = space.require("a + b <= 6")
    if rng.random() < 0.2:
        space = space.together("a", "c")
    return space.cost(per_change=float(rng.choice([0.0, 0.2, 5.0])))


@cache
def make_problem(seed: int) -> SmallProblem:
    rng = np.random.default_rng(seed)
    data, y = small_data(seed)
    kind = seed % 3
    if kind == 2:
        data["g"] = data.g.astype("category")
    estimator = fit_model(kind, data, y)
    space = small_space(data, rng)
    query = data.iloc[[int(rng.integers(len(data)))]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        region = space.around(query)
    model = as_model(estimator, space.schema)
    form = read_model(model, data.iloc[:60]).form
    assert isinstance(form, TreeEnsemble)
    spread = float(np.std(y))
    goal = model.scores(query)[0] + spread * rng.choice([0.3, 0.6, 1, 1.5, 3]) * rng.choice([-1, 1])
    accepted: Intervals = ((goal - 0.15 * spread, goal + 0.15 * spread),)
    if rng.random() < 0.5:
        is_up = goal > model.scores(query)[0]
        accepted = ((goal, np.inf),) if is_up else ((-np.inf, goal),)
    rows = region.enumerate(10**6)
    assert rows is not None
    scores = model.scores(region.rows(rows)) if len(rows) else np.empty(0)
    return SmallProblem(model, region, make_leaf_table(form, region), accepted, rows, scores)
