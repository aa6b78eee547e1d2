"""Random questions on small tables, whose exact answers follow from listing every allowed row."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import bayescfx as cfx
from bayescfx.arrays import Array
from bayescfx.models.model import Model, as_model
from bayescfx.models.readers import Reading, read_model
from bayescfx.potentials import Intervals, contains
from bayescfx.space.region import Region

MOST_ROWS = 10**6


@dataclass(frozen=True, eq=False)
class RandomQuestion:
    """A model, a region around a query, and accepted outputs."""

    model: Model
    reading: Reading
    region: Region
    acceptance: Intervals

    def accepted(self, y: Array) -> Any:
        return contains(self.acceptance, y)

    def outputs(self, X: Array) -> Array:
        return self.model.scores(self.region.rows(X))

    def lowest_cost(self) -> float:
        """Return the cost of the nearest answer among all allowed rows; infinite without one."""
        X = self.region.enumerate(MOST_ROWS)
        assert X is not None
        if not len(X):
            return np.inf
        hits = X[self.accepted(self.outputs(X))]
        return float(self.region.cost(hits).min()) if len(hits) else np.inf


def make_question(seed: int) -> RandomQuestion:
    """Return a random question; the kind of model goes round with the seed."""
    rng = np.random.default_rng(seed)
    table, y = _make_table(rng)
    estimator = _make_estimator(seed % 5, table)
    estimator.fit(table, y)
    space = _make_space(table, rng)
    query = table.iloc[[int(rng.integers(len(table)))]].copy()
    if rng.random() < 0.2 and seed % 5 in (2, 3):
        query["a"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a missing cell is fixed
        region = space.around(query)
    model = as_model(estimator, space.schema)
    reading = read_model(model, table.iloc[:40])
    assert reading.form is not None, reading.reason
    return RandomQuestion(model, reading, region, _make_target(model, query, y, rng))


def _make_table(rng: np.random.Generator) -> tuple[pd.DataFrame, Any]:
    n = 120
    table = pd.DataFrame(
        {
            "a": rng.integers(0, 7, n).astype(float),
            "b": rng.integers(-3, 4, n),
            "c": np.round(rng.normal(size=n), 1).clip(-0.6, 0.6),
            "g": rng.choice(list("xyz"), n),
            "h": rng.integers(0, 6, n),
        }
    )
    y = table.a * rng.normal() + 3.0 * np.sin(table.b) + table.a * table.c
    y += (table.g == "x") * 2.0 * rng.normal() + (table.h == 3) * 2.0 + 0.3 * rng.normal(size=n)
    return table, y


def _make_estimator(kind: int, table: pd.DataFrame) -> Any:
    """Return an estimator; those that take categories get them in the table."""
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["g"]),
        (StandardScaler(), ["a", "c"]),
        remainder="passthrough",
    )
    if kind == 0:
        return make_pipeline(encoder, GradientBoostingRegressor(n_estimators=15, random_state=0))
    if kind == 1:
        return make_pipeline(encoder, RandomForestRegressor(n_estimators=8, random_state=0))
    if kind == 4:
        ordinal = make_column_transformer((OrdinalEncoder(), ["g"]), remainder="passthrough")
        return make_pipeline(ordinal, GradientBoostingRegressor(n_estimators=10, random_state=0))
    table["g"] = table["g"].astype("category")
    if kind == 2:
        return lightgbm.LGBMRegressor(
            n_estimators=20, num_leaves=7, min_child_samples=5, verbose=-1, n_jobs=1
        )
    return HistGradientBoostingRegressor(
        max_iter=15, max_leaf_nodes=8, min_samples_leaf=5, categorical_features="from_dtype"
    )


def _make_space(table: pd.DataFrame, rng: np.random.Generator) -> cfx.Space:
    """Return a space with some random constraints."""
    kinds: dict[Any, Any] = {}
    if rng.random() < 0.4:
        kinds["h"] = cfx.Integer(0, 5, cyclic=True)
    space = cfx.Space.from_data(table, kinds or None)
    if rng.random() < 0.4:
        space = space.max_changes(int(rng.integers(1, 4)))
    if rng.random() < 0.3:
        space = space.only_up("a")
    if rng.random() < 0.3:
        space = space.fix("b")
    if rng.random() < 0.3:
        norm = float(rng.choice([0, 1, 2]))
        space = space.cost(norm=norm, per_feature={"a": 2.0})
    if rng.random() < 0.3:
        space = space.require("a + b <= 6")
    if rng.random() < 0.2:
        space = space.together("a", "c")
    if rng.random() < 0.15:
        space = space.require(lambda rows: (rows["a"] * rows["b"]).astype(float) < 8)
    return space.cost(per_change=float(rng.choice([0.0, 0.2, 5.0])))


def _make_target(model: Model, query: pd.DataFrame, y: Any, rng: np.random.Generator) -> Intervals:
    """Return accepted outputs, near or far, on one side or on both."""
    output = float(model.scores(query)[0])
    spread = float(np.std(y))
    change = spread * float(rng.choice([0.3, 0.6, 1.0, 1.5, 3.0]) * rng.choice([-1, 1]))
    wanted = output + change
    if rng.random() < 0.5:
        return ((wanted - 0.15 * spread, wanted + 0.15 * spread),)
    return ((wanted, np.inf),) if change > 0 else ((-np.inf, wanted),)
