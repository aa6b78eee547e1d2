"""XGBoost models as flat forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayescfx.models import as_model, probability
from bayescfx.models.readers import LinearModel, TreeEnsemble
from tests.models.readers.reading_checks import (
    check_reading,
    check_refused,
    label,
    levels,
    numbers,
    target,
)

pytestmark = pytest.mark.slow
xgboost: Any = pytest.importorskip("xgboost")
SMALL = {"n_estimators": 20, "max_depth": 3, "n_jobs": 1}
SINGLE = 3e-6  # the sums are rounded to float32


@pytest.mark.parametrize(
    "objective",
    [
        "reg:squarederror",
        "reg:absoluteerror",
        "reg:pseudohubererror",
        "reg:squaredlogerror",
        "count:poisson",
        "reg:gamma",
        "reg:tweedie",
    ],
)
@pytest.mark.parametrize("missing", [False, True])
def test_objectives(objective: str, missing: bool) -> None:
    table = numbers(missing)
    model = xgboost.XGBRegressor(objective=objective, **SMALL).fit(table, target(table) / 10)
    form = check_reading(as_model(model), table, SINGLE)
    assert isinstance(form, TreeEnsemble)
    assert form.tests.is_strict.all()


def test_quantiles() -> None:
    table = numbers()
    model = xgboost.XGBRegressor(objective="reg:quantileerror", quantile_alpha=0.8, **SMALL)
    check_reading(as_model(model.fit(table, target(table))), table, SINGLE)


@pytest.mark.parametrize(
    "options",
    [
        {"booster": "dart", "rate_drop": 0.3},
        {"num_parallel_tree": 3, "subsample": 0.5},
        {"base_score": 7.5},
        {"grow_policy": "lossguide", "max_leaves": 6},
        {"missing": 0.0},
    ],
    ids=str,
)
def test_options(options: dict[str, Any]) -> None:
    table = numbers(missing=True)
    model = xgboost.XGBRegressor(**SMALL, **options).fit(table, target(table))
    check_reading(as_model(model), table, SINGLE)


def test_the_linear_booster() -> None:
    table = numbers(missing=True)
    model = xgboost.XGBRegressor(n_estimators=20, booster="gblinear").fit(table, target(table))
    form = check_reading(as_model(model), table, SINGLE)
    assert isinstance(form, LinearModel)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers(n_classes: int) -> None:
    table = numbers()
    model = xgboost.XGBClassifier(**SMALL).fit(table, label(table, n_classes))
    for column in range(n_classes):
        check_reading(probability(model, column), table, SINGLE)


def test_forests() -> None:
    table = numbers()
    model = xgboost.XGBRFRegressor(**SMALL).fit(table, target(table))
    check_reading(as_model(model), table, SINGLE)


def test_boosters() -> None:
    table = numbers()
    data = xgboost.DMatrix(table, target(table))
    check_reading(as_model(xgboost.train({"max_depth": 3}, data, 10)), table, SINGLE)
    data = xgboost.DMatrix(table, label(table))
    booster = xgboost.train({"objective": "binary:logistic"}, data, 10)
    check_reading(as_model(booster), table, SINGLE)
    check_reading(probability(booster, 0), table, SINGLE)
    booster = xgboost.train({"objective": "binary:logitraw"}, data, 10)
    check_reading(as_model(booster), table, SINGLE)
    data = xgboost.DMatrix(table, label(table, 3))
    booster = xgboost.train({"objective": "multi:softprob", "num_class": 3}, data, 10)
    check_reading(probability(booster, 2), table, SINGLE)


def test_the_best_iteration() -> None:
    table = numbers()
    y = target(table)
    model = xgboost.XGBRegressor(n_estimators=200, learning_rate=0.5, early_stopping_rounds=3)
    model.fit(table[:150], y[:150], eval_set=[(table[150:], y[150:])], verbose=False)
    form = check_reading(as_model(model), table, SINGLE)
    assert isinstance(form, TreeEnsemble)
    assert len(form.roots) == model.best_iteration + 1


@pytest.mark.parametrize("max_cat_to_onehot", [1, 20])
def test_categories(max_cat_to_onehot: int) -> None:
    table = levels().astype({"town": "category"})
    table.loc[::7, "job"] = np.nan
    model = xgboost.XGBRegressor(
        **SMALL, enable_categorical=True, max_cat_to_onehot=max_cat_to_onehot
    ).fit(table, target(levels()))
    form = check_reading(as_model(model), table, SINGLE)
    assert isinstance(form, TreeEnsemble)
    assert form.tests.levels
    check_reading(as_model(model), table.astype({"town": object}), SINGLE)


def test_an_array() -> None:
    rows = numbers(missing=True).to_numpy()
    model = xgboost.XGBRegressor(**SMALL).fit(rows, target(numbers(missing=True)))
    check_reading(as_model(model), rows, SINGLE)


def test_a_sparse_matrix_has_missing_cells() -> None:
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    table = levels()
    encode = ColumnTransformer(
        [("levels", OneHotEncoder(), ["job", "town"])], remainder="passthrough", sparse_threshold=1
    )
    model = make_pipeline(encode, xgboost.XGBRegressor(**SMALL)).fit(table, target(table))
    check_reading(as_model(model), table, SINGLE)


def test_models_that_are_not_read() -> None:
    table = numbers()
    y = target(table)
    several = xgboost.XGBRegressor(**SMALL).fit(table, np.stack([y, y], axis=1))
    check_refused(as_model(several), table, "several numbers per row")
    hinge = xgboost.XGBRegressor(**SMALL, objective="binary:hinge").fit(table, label(table))
    check_refused(as_model(hinge), table, "binary:hinge")
