"""LightGBM models as flat forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayescfx.models import as_model, probability
from bayescfx.models.readers import TreeEnsemble, read_model
from tests.models.readers.reading_checks import (
    check_reading,
    check_refused,
    label,
    levels,
    numbers,
    target,
)

lightgbm: Any = pytest.importorskip("lightgbm")
LGBMRegressor = lightgbm.LGBMRegressor
LGBMClassifier = lightgbm.LGBMClassifier
SMALL = {"n_estimators": 20, "num_leaves": 7, "verbose": -1, "n_jobs": 1}


@pytest.mark.parametrize(
    "objective",
    ["regression", "l1", "huber", "fair", "quantile", "mape", "poisson", "gamma", "tweedie"],
)
def test_objectives(objective: str) -> None:
    table = numbers()
    model = LGBMRegressor(objective=objective, **SMALL).fit(table, target(table))
    form = check_reading(as_model(model), table)
    assert form.inputs.columns == tuple(table.columns)


@pytest.mark.parametrize(
    "options",
    [
        {"boosting_type": "dart"},
        {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"extra_trees": True},
        {"zero_as_missing": True},
        {"use_missing": False},
        {"data_sample_strategy": "goss"},
    ],
    ids=str,
)
@pytest.mark.parametrize("missing", [False, True])
def test_options(options: dict[str, Any], missing: bool) -> None:
    table = numbers(missing)
    model = LGBMRegressor(**SMALL, **options).fit(table, target(table))
    check_reading(as_model(model), table)
    model = LGBMClassifier(**SMALL, **options).fit(table, label(table))
    check_reading(probability(model), table)


def test_missing_cells_in_a_column_without_any_in_training() -> None:
    table = numbers(missing=True)
    model = LGBMRegressor(**SMALL).fit(table.fillna(0.5), target(table))
    check_reading(as_model(model), table)


def test_zero_as_missing_has_no_direction() -> None:
    table = numbers()
    model = LGBMRegressor(**SMALL, zero_as_missing=True).fit(table, target(table))
    form = check_reading(as_model(model), table)
    assert form.inputs.direction.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers(n_classes: int) -> None:
    table = numbers()
    model = LGBMClassifier(**SMALL).fit(table, label(table, n_classes))
    for column in range(n_classes):
        check_reading(probability(model, column), table)


def test_the_slope_of_the_sigmoid() -> None:
    table = numbers()
    model = LGBMClassifier(**SMALL, sigmoid=2.5).fit(table, label(table))
    check_reading(probability(model, 0), table)


def test_boosters() -> None:
    table = numbers()
    data = lightgbm.Dataset(table, target(table))
    booster = lightgbm.train({"verbose": -1, "num_leaves": 5}, data, 10)
    check_reading(as_model(booster), table)
    for objective in ("binary", "cross_entropy"):
        data = lightgbm.Dataset(table, label(table))
        booster = lightgbm.train({"verbose": -1, "objective": objective}, data, 10)
        check_reading(as_model(booster), table)
        check_reading(probability(booster, 0), table)
        check_reading(probability(booster, 1), table)
    for objective in ("multiclass", "multiclassova"):
        settings = {"verbose": -1, "objective": objective, "num_class": 3}
        booster = lightgbm.train(settings, lightgbm.Dataset(table, label(table, 3)), 10)
        check_reading(probability(booster, 2), table)


def test_the_best_iteration() -> None:
    table = numbers()
    y = target(table)
    stop = lightgbm.early_stopping(2, verbose=False)
    data = lightgbm.Dataset(table[:150], y[:150])
    rest = lightgbm.Dataset(table[150:], y[150:], reference=data)
    settings = {"verbose": -1, "learning_rate": 0.5, "num_leaves": 7}
    model = lightgbm.train(settings, data, 300, valid_sets=[rest], callbacks=[stop])
    assert model.best_iteration < 300
    form = check_reading(as_model(model), table)
    assert isinstance(form, TreeEnsemble)
    assert len(form.roots) == model.best_iteration


@pytest.mark.parametrize("options", [{}, {"max_cat_to_onehot": 20}], ids=str)
def test_categories(options: dict[str, Any]) -> None:
    table = levels().astype({"town": "category"})
    table.loc[::7, "job"] = np.nan
    small = SMALL | {"min_data_per_group": 5, "cat_smooth": 1.0, "cat_l2": 1.0}
    model = LGBMRegressor(**small, **options).fit(table, target(levels()))
    form = check_reading(as_model(model), table)
    assert isinstance(form, TreeEnsemble)
    assert form.tests.levels
    assert dict(zip(form.inputs.columns, form.inputs.direction.tolist(), strict=True)) == {
        "a": 1, "b": 1, "k": 1, "c": 1, "job": 0, "town": 0
    }  # fmt: skip
    as_text = table.astype({"job": object, "town": object})
    check_reading(as_model(model), as_text)
    other = table.assign(job=pd.Categorical(["pilot"] * len(table)))
    np.testing.assert_allclose(form.predict(other), model.predict(other), rtol=1e-12)


def test_whole_numbers_as_categories() -> None:
    table = numbers()
    model = LGBMRegressor(**SMALL | {"min_data_per_group": 5, "cat_smooth": 1.0})
    model.fit(table, target(table), categorical_feature=["k"])
    form = check_reading(as_model(model), table)
    other = table[:4].assign(k=[-1.0, -0.5, 2.7, 99.0])
    np.testing.assert_allclose(form.predict(other), model.predict(other), rtol=1e-12)


def test_an_array() -> None:
    table = numbers(missing=True)
    model = LGBMRegressor(**SMALL).fit(table.to_numpy(), target(table))
    check_reading(as_model(model), table.to_numpy())
    check_reading(as_model(model), table)


def test_a_model_without_splits() -> None:
    table = numbers()[:10]
    model = LGBMRegressor(**SMALL).fit(table, np.arange(10))
    assert np.ptp(model.predict(table)) == 0
    reading = read_model(as_model(model), table)
    assert reading.form is not None
    np.testing.assert_allclose(reading.form.predict(table), 4.5)


def test_models_that_are_not_read() -> None:
    table = numbers()
    y = target(table)
    linear = LGBMRegressor(**SMALL, linear_tree=True).fit(table, y)
    check_refused(as_model(linear), table, "linear functions")
    root = LGBMRegressor(**SMALL, reg_sqrt=True).fit(table, y)
    check_refused(as_model(root), table, "regression sqrt")
    strange = LGBMRegressor(**SMALL, objective="cross_entropy_lambda").fit(table, y / y.max())
    check_refused(as_model(strange), table, "cross_entropy_lambda")
