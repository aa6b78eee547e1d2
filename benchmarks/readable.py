"""Models that the exact search can read, with their tables and questions.

A model whose library is not installed is left out with a message. Models are fitted here and passed
to other environments as files, so that both sides answer the same question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import bayescfx as cfx
from benchmarks.mixed import Array, available, frame

TOLERANCE = 0.10  # an answer misses at most this share of the requested change

#: The tables with their models, in the order of the output.
CELLS = (
    *((data, model) for data in ("diabetes", "friedman-12") for model in
      ("lgbm", "xgboost", "catboost", "hist", "boosting", "ebm", "forest")),
    ("diabetes", "pipeline"),
    ("diabetes", "network-16"),
    ("diabetes", "network-16-16"),
    ("adult", "lgbm"),
    ("adult", "pipeline"),
    ("cancer", "logistic"),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model of a table, and the space of its questions."""

    data: str
    model: str
    X: pd.DataFrame
    estimator: Any
    predictor: Any  # what `explain` is called with
    outputs: Array  # (n,) outputs for the rows of the table
    space: cfx.Space

    @property
    def key(self) -> str:
        """Return the name of the subject."""
        return f"{self.data}/{self.model}"

    def rows(self, n: int) -> list[int]:
        """Return the rows to ask about; a shorter list is a prefix of a longer one."""
        order = np.random.default_rng(0).permutation(len(self.X))
        if self.data == "adult":
            order = order[self.outputs[order] < 0.5]
        return [int(row) for row in order[:n]]

    def target(self, row: int, shift: float = 1.0) -> Any:
        """Return the target: `shift` standard deviations more; for a classifier, a half."""
        if self.data == "adult":
            return cfx.at_least(0.5)
        if self.data == "cancer":
            return cfx.reach(0.5)
        return cfx.reach(float(self.outputs[row] + shift * self.outputs.std()))


@cache
def subject(data: str, model: str) -> Subject | None:
    """Return a fitted model; None, with a message, if a library or table is missing."""
    if not available(data):
        return None
    X, y = _table(data)
    if model == "pipeline" and data == "diabetes":
        X = X.assign(sex=np.where(X["sex"] > 1, "two", "one"))
    try:
        estimator = _make(data, model)
    except ImportError as error:
        print(f"  ({data}, {model} left out: {error.name} is not installed)", flush=True)
        return None
    estimator.fit(X, y)
    predictor = estimator
    if _is_class(data):
        predictor = cfx.probability(estimator, 1)
        outputs = np.asarray(estimator.predict_proba(X)[:, 1])
    else:
        outputs = np.asarray(estimator.predict(X), dtype=np.float64)
    return Subject(data, model, X, estimator, predictor, outputs, _space(data, X))


def _is_class(data: str) -> bool:
    """Return whether the models of a table are classifiers."""
    return data in ("adult", "cancer", "cancer-forest")


def _table(data: str) -> tuple[pd.DataFrame, Array]:
    """Return the rows of a table and their outcomes."""
    if data == "adult":
        rows = frame("adult")
        return rows.X, rows.y.astype(np.int64)
    if data == "diabetes":
        X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        return X, np.asarray(y, dtype=np.float64)
    if data.startswith("cancer"):
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        return X.rename(columns=lambda name: name.replace(" ", "_")), y
    n_features = int(data.rpartition("-")[2])
    X, y = make_friedman1(1000, n_features=n_features, noise=1.0, random_state=0)
    return pd.DataFrame(X.round(3)).rename(columns=lambda j: f"x{j}"), y


def _space(data: str, X: pd.DataFrame) -> cfx.Space:
    """Return the space of a table with its constraints."""
    found = cfx.Space.from_data(X)
    if data != "adult":
        return found
    rules = frame("adult").rules
    return found.between(dict(rules.within)).fix(*rules.fixed).only_up(*rules.up)


def _make(data: str, model: str) -> Any:
    """Return an estimator; raise `ImportError` if its library is missing."""
    kind = "Classifier" if _is_class(data) else "Regressor"
    if model == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
    if model.startswith("network"):
        return _network(tuple(map(int, model.split("-")[1:])))
    if model == "pipeline":
        levels = ["sex"]
        if data == "adult":
            levels = [str(name) for name in frame("adult").X.columns[frame("adult").has_levels]]
        encoder = make_column_transformer(
            (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), levels),
            remainder=StandardScaler(),
        )
        return make_pipeline(encoder, _make(data, "boosting"))
    return _MODELS[model](kind)


def _network(widths: tuple[int, ...]) -> Any:
    """Return a ReLU network for a regression, with inputs and outcomes scaled."""
    network = MLPRegressor(hidden_layer_sizes=widths, max_iter=500, random_state=0)
    scaled = make_pipeline(StandardScaler(), network)
    return TransformedTargetRegressor(scaled, transformer=StandardScaler())


def _estimator(module: str, name: str, **options: Any) -> Callable[[str], Any]:
    """Return a function that imports and makes the classifier or regressor of a library."""
    return lambda kind: getattr(import_module(module), name + kind)(**options)


_MODELS: dict[str, Callable[[str], Any]] = {
    "lgbm": _estimator(
        "lightgbm", "LGBM", n_estimators=150, num_leaves=15, random_state=0, verbose=-1, n_jobs=1
    ),
    "xgboost": _estimator("xgboost", "XGB", random_state=0, n_jobs=1),
    "catboost": _estimator(
        "catboost",
        "CatBoost",
        iterations=200,
        random_seed=0,
        verbose=False,
        thread_count=1,
        allow_writing_files=False,
    ),
    "hist": _estimator("sklearn.ensemble", "HistGradientBoosting", random_state=0),
    "boosting": _estimator("sklearn.ensemble", "GradientBoosting", random_state=0),
    "ebm": _estimator(
        "interpret.glassbox",
        "ExplainableBoosting",
        random_state=0,
        n_jobs=1,
        outer_bags=2,
        max_rounds=1000,
    ),
    "forest": _estimator("sklearn.ensemble", "RandomForest", random_state=0, n_jobs=1),
}
