"""Linear models of scikit-learn as flat forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    GammaRegressor,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.svm import LinearSVC, LinearSVR

from bayescfx.models import as_model, probability
from bayescfx.models.readers import LinearModel
from tests.models.readers.reading_checks import (
    check_reading,
    check_refused,
    label,
    name_of,
    numbers,
    target,
)

REGRESSORS = [
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    Ridge(),
    RidgeCV(),
    Lasso(0.01),
    ElasticNet(0.01),
    HuberRegressor(max_iter=1000),
    BayesianRidge(),
    QuantileRegressor(alpha=0.01),
    SGDRegressor(),
    LinearSVR(max_iter=100_000),
    PoissonRegressor(),
    GammaRegressor(),
    TweedieRegressor(power=1.5),
    TweedieRegressor(power=0),
    TweedieRegressor(power=0, link="log"),
]


def table() -> Any:
    """Return a table whose columns have about the same scale."""
    rows = numbers().astype(np.float64)
    return rows.assign(b=rows["b"] / 50)


@pytest.mark.parametrize("model", REGRESSORS, ids=name_of)
def test_regressors(model: Any) -> None:
    rows = table()
    form = check_reading(as_model(model.fit(rows, target(numbers()))), rows)
    assert isinstance(form, LinearModel)
    assert form.inputs.columns == tuple(rows.columns)


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), SGDClassifier(loss="log_loss"), LinearDiscriminantAnalysis()],
    ids=name_of,
)
def test_classifiers(model: Any) -> None:
    rows = table()
    model.fit(rows, label(numbers()))
    check_reading(probability(model, 1), rows)
    check_reading(probability(model, 0), rows)
    check_reading(as_model(model.decision_function), rows)


@pytest.mark.parametrize("model", [LinearSVC(), RidgeClassifier(), SGDClassifier()], ids=name_of)
def test_decision_functions(model: Any) -> None:
    rows = table()
    model.fit(rows, label(numbers()))
    check_reading(as_model(model.decision_function), rows)


def test_models_that_are_not_read() -> None:
    rows = table()
    y = target(numbers())
    several = LinearRegression().fit(rows, np.stack([y, 2 * y], axis=1))
    check_refused(as_model(several), rows, "several outputs")
    classes = LogisticRegression(max_iter=1000).fit(rows, label(numbers(), 3))
    check_refused(probability(classes, 1), rows, "LogisticRegression has several classes")
    huber = SGDClassifier(loss="modified_huber").fit(rows, label(numbers()))
    check_refused(probability(huber), rows, "SGDClassifier", "not logistic")
