"""Trees of scikit-learn as flat forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from bayescfx.models import as_model, probability
from bayescfx.models.readers import TreeEnsemble
from tests.models.readers.reading_checks import (
    check_reading,
    check_refused,
    label,
    levels,
    name_of,
    numbers,
    target,
)

REGRESSORS = [
    DecisionTreeRegressor(random_state=0),
    DecisionTreeRegressor(max_depth=3, criterion="absolute_error"),
    RandomForestRegressor(20, random_state=0),
    RandomForestRegressor(5, criterion="poisson", random_state=0),
    ExtraTreesRegressor(20, random_state=0),
    GradientBoostingRegressor(n_estimators=30),
    GradientBoostingRegressor(n_estimators=30, loss="huber"),
    GradientBoostingRegressor(n_estimators=30, loss="quantile", learning_rate=0.3),
    GradientBoostingRegressor(n_estimators=30, loss="absolute_error", init="zero"),
    GradientBoostingRegressor(n_estimators=10, init=DecisionTreeRegressor(max_depth=2)),
    GradientBoostingRegressor(n_estimators=10, init=DummyRegressor(strategy="median")),
    HistGradientBoostingRegressor(max_iter=30),
    HistGradientBoostingRegressor(max_iter=30, loss="poisson"),
    HistGradientBoostingRegressor(max_iter=30, loss="gamma"),
    HistGradientBoostingRegressor(max_iter=30, loss="quantile", quantile=0.8),
    HistGradientBoostingRegressor(max_iter=30, loss="absolute_error"),
]
CLASSIFIERS = [
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(20, class_weight="balanced", random_state=0),
    ExtraTreesClassifier(20, random_state=0),
    GradientBoostingClassifier(n_estimators=15),
    HistGradientBoostingClassifier(max_iter=15),
]


@pytest.mark.parametrize("model", REGRESSORS, ids=name_of)
def test_regressors(model: Any) -> None:
    table = numbers()
    model.fit(table, target(table))
    form = check_reading(as_model(model), table)
    assert form.inputs.columns == tuple(table.columns)
    assert (form.inputs.direction == 1).all()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=name_of)
def test_classifiers(model: Any, n_classes: int) -> None:
    table = numbers()
    model.fit(table, label(table, n_classes))
    for column in range(n_classes):
        check_reading(probability(model, column), table)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=6),
        RandomForestRegressor(10, random_state=0),
        ExtraTreesRegressor(10, random_state=0),
        HistGradientBoostingRegressor(max_iter=30),
    ],
    ids=name_of,
)
def test_missing_cells(model: Any) -> None:
    table = numbers(missing=True)
    model.fit(table, target(table))
    check_reading(as_model(model), table)


def test_an_array() -> None:
    rows = numbers().to_numpy()
    model = RandomForestRegressor(10, random_state=0).fit(rows, target(numbers()))
    form = check_reading(as_model(model), rows)
    assert form.inputs.columns == (0, 1, 2, 3)


def test_a_table_for_a_model_fitted_to_an_array() -> None:
    table = numbers()
    model = ExtraTreesRegressor(10, random_state=0).fit(table.to_numpy(), target(table))
    check_reading(as_model(model), table)


def test_categories_of_histograms() -> None:
    table = levels().drop(columns="town")
    model = HistGradientBoostingRegressor(max_iter=40, categorical_features="from_dtype")
    model.fit(table, target(levels()))
    form = check_reading(as_model(model), table)
    assert isinstance(form, TreeEnsemble)
    assert form.tests.levels
    place = form.inputs.columns.index("job")
    assert form.inputs.direction[place] == 0


def test_missing_and_unknown_categories_of_histograms() -> None:
    table = levels()[["a", "job"]].copy()
    table.loc[::5, "job"] = np.nan
    model = HistGradientBoostingRegressor(max_iter=40, categorical_features=["job"])
    model.fit(table, target(levels()))
    form = check_reading(as_model(model), table)
    other = pd.DataFrame({"a": [0.1, 0.2], "job": pd.Categorical(["pilot", "cook"])})
    np.testing.assert_allclose(form.predict(other), model.predict(other), rtol=1e-12)


def test_whole_numbers_as_categories_of_histograms() -> None:
    table = numbers()
    model = HistGradientBoostingRegressor(max_iter=40, categorical_features=["k"])
    model.fit(table, target(table))
    check_reading(as_model(model), table)


def test_the_exponential_loss() -> None:
    table = numbers()
    model = GradientBoostingClassifier(n_estimators=10, loss="exponential")
    model.fit(table, label(table))
    check_reading(probability(model, 1), table)
    check_reading(as_model(model.decision_function), table)


def test_decision_functions() -> None:
    table = numbers()
    for model in (
        GradientBoostingClassifier(n_estimators=10),
        HistGradientBoostingClassifier(max_iter=10),
    ):
        model.fit(table, label(table))
        check_reading(as_model(model.decision_function), table)


def test_a_bound_predict() -> None:
    table = numbers()
    model = DecisionTreeRegressor(max_depth=3).fit(table, target(table))
    check_reading(as_model(model.predict), table)


def test_models_that_are_not_read() -> None:
    table = numbers()
    y = target(table)
    several = RandomForestRegressor(3).fit(table, np.stack([y, y], axis=1))
    check_refused(as_model(several), table, "several outputs")
    classifier = RandomForestClassifier(3).fit(table, label(table))
    check_refused(as_model(classifier), table, "classifier", "probability(model, label)")
    linear_start = GradientBoostingRegressor(n_estimators=3, init=LinearRegression())
    check_refused(as_model(linear_start.fit(table, y)), table, "LinearRegression", "sum of trees")
    start = GradientBoostingClassifier(n_estimators=3, init=DecisionTreeClassifier(max_depth=2))
    check_refused(probability(start.fit(table, label(table))), table, "DecisionTreeClassifier")
    check_refused(as_model(lambda rows: rows["a"]), table, "function")
