"""Random small problems over linear models, with all allowed rows listed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bayescfx as cfx
from bayescfx.arrays import Array, Mask
from bayescfx.models.model import Model, as_model
from bayescfx.models.readers import LinearModel
from bayescfx.potentials import Intervals, contains
from bayescfx.search.exact.prover import Prover, raw_intervals
from bayescfx.space.region import Region
from tests.search.exact.certificate_problems import small_data, small_space


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """A question to a linear model whose allowed rows are all known."""

    model: Model
    prover: Prover
    region: Region
    form: LinearModel
    acceptance: Intervals
    rows: Array
    outputs: Array

    @property
    def accepted_sums(self) -> Intervals:
        rounding = self.prover.reading(self.region).rounding
        return raw_intervals(self.form, self.acceptance, rounding)

    def accepted(self, y: Array) -> Mask:
        return contains(self.acceptance, y)

    def reaches(self, X: Array) -> Mask:
        return self.accepted(self.model.scores(self.region.rows(X)))

    @property
    def costs(self) -> Array:
        """The cost of each row; infinite unless it reaches the target."""
        return np.where(self.accepted(self.outputs), self.region.cost(self.rows), np.inf)

    @property
    def best(self) -> float:
        return float(self.costs.min(initial=np.inf))

    @property
    def answer(self) -> Array | None:
        return self.rows[int(self.costs.argmin())] if np.isfinite(self.best) else None


def fit_linear(kind: int, data: pd.DataFrame, y: Any, alpha: float = 0.1) -> Any:
    """Return a ridge regression, a logistic regression or a Poisson regression in a pipeline."""
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["g", "h"]),
        (StandardScaler(), ["a", "c"]),
        remainder="passthrough",
    )
    if kind == 0:
        return make_pipeline(encode, Ridge(alpha)).fit(data, y)
    if kind == 1:
        return make_pipeline(encode, LogisticRegression(C=1.0 / alpha)).fit(data, y > y.median())
    return make_pipeline(encode, PoissonRegressor(alpha=alpha)).fit(data, np.exp(y / y.std()))


def region_of(space: cfx.Space, query: pd.DataFrame) -> Region:
    """Return the region of a query, without warnings about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return space.around(query)


def pose(
    kind: int, estimator: Any, space: cfx.Space, query: pd.DataFrame, acceptance: Intervals
) -> LinearProblem:
    """Return a question with all its rows."""
    region = region_of(space, query)
    model = as_model(cfx.probability(estimator, True) if kind == 1 else estimator, space.schema)
    prover = Prover(model)
    form = prover.form(region, region.query[None], model.scores(query))
    assert isinstance(form, LinearModel)
    rows = region.enumerate(10**6)
    assert rows is not None
    outputs = model.scores(region.rows(rows)) if len(rows) else np.empty(0)
    return LinearProblem(model, prover, region, form, acceptance, rows, outputs)


@cache
def make_linear_problem(seed: int) -> LinearProblem:
    rng = np.random.default_rng(seed)
    data, y = small_data(seed)
    kind = seed % 3
    estimator = fit_linear(kind, data, y)
    space = small_space(data, rng)
    query = data.iloc[[int(rng.integers(len(data)))]]
    predict = estimator.predict if kind != 1 else lambda rows: estimator.predict_proba(rows)[:, 1]
    spread = float(np.std(predict(data)))
    start = float(predict(query)[0])
    size = spread * rng.choice([0.3, 0.6, 1, 1.5, 3])
    side = 1.0 if rng.random() < (start < predict(data).mean()) * 0.6 + 0.2 else -1.0
    goal = start + side * size
    acceptance: Intervals = ((goal, np.inf),) if side > 0 else ((-np.inf, goal),)
    choice = rng.random()
    if choice < 0.3:
        acceptance = ((goal - 0.15 * spread, goal + 0.15 * spread),)
    elif choice < 0.4:
        acceptance = ((-np.inf, start - size), (start + 0.8 * size, np.inf))
    return pose(kind, estimator, space, query, acceptance)
