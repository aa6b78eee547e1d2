"""CatBoost models as flat forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayescfx.models import as_model, probability
from bayescfx.models.readers import TreeEnsemble
from tests.models.readers.reading_checks import (
    check_reading,
    check_refused,
    label,
    levels,
    numbers,
    target,
)

pytestmark = pytest.mark.slow
catboost: Any = pytest.importorskip("catboost")
SMALL: dict[str, Any] = {
    "iterations": 20,
    "depth": 4,
    "verbose": False,
    "allow_writing_files": False,
    "thread_count": 1,
}


@pytest.mark.parametrize(
    "loss",
    [
        "RMSE",
        "MAE",
        "Quantile:alpha=0.8",
        "Huber:delta=1.0",
        "Poisson",
        "Tweedie:variance_power=1.5",
    ],
)
@pytest.mark.parametrize("missing", [False, True])
def test_losses(loss: str, missing: bool) -> None:
    table = numbers(missing)
    model = catboost.CatBoostRegressor(loss_function=loss, **SMALL).fit(table, target(table))
    form = check_reading(as_model(model), table)
    assert form.inputs.columns == tuple(table.columns)


@pytest.mark.parametrize(
    "options",
    [
        {"grow_policy": "Lossguide"},
        {"grow_policy": "Depthwise"},
        {"nan_mode": "Max"},
        {"boost_from_average": False},
    ],
    ids=str,
)
def test_options(options: dict[str, Any]) -> None:
    table = numbers(missing=True)
    model = catboost.CatBoostRegressor(**SMALL, **options).fit(table, target(table))
    check_reading(as_model(model), table)


@pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll"])
@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_several_classes(loss: str, policy: str) -> None:
    table = numbers()
    model = catboost.CatBoostClassifier(loss_function=loss, grow_policy=policy, **SMALL)
    model.fit(table, label(table, 3))
    for column in range(3):
        check_reading(probability(model, column), table)


@pytest.mark.parametrize("loss", ["Logloss", "CrossEntropy"])
def test_two_classes(loss: str) -> None:
    table = numbers()
    model = catboost.CatBoostClassifier(loss_function=loss, **SMALL).fit(table, label(table))
    check_reading(probability(model, 0), table)
    check_reading(probability(model, 1), table)


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
def test_levels(policy: str) -> None:
    table = levels()
    table["job"] = table["job"].astype(object)
    model = catboost.CatBoostRegressor(
        **SMALL, grow_policy=policy, one_hot_max_size=10, cat_features=["job", "town", "k"]
    ).fit(table, target(levels()))
    form = check_reading(as_model(model), table)
    assert isinstance(form, TreeEnsemble)
    assert form.tests.levels
    assert form.inputs.direction.tolist() == [1, 1, 0, 1, 0, 0]
    other = table.assign(job="pilot", k=99)
    np.testing.assert_allclose(form.predict(other), model.predict(other), rtol=1e-9)
    as_category = table.astype({"job": "category"})
    check_reading(as_model(model), as_category)


def test_models_that_are_not_read() -> None:
    table = levels()
    options = SMALL | {"cat_features": ["job", "town"]}
    model = catboost.CatBoostRegressor(**options).fit(table, target(table))
    check_refused(as_model(model), table, "CTR", "one_hot_max_size")
    table = numbers()
    several = catboost.CatBoostRegressor(loss_function="RMSEWithUncertainty", **SMALL)
    check_refused(as_model(several.fit(table, target(table))), table, "several")
    classifier = catboost.CatBoostClassifier(**SMALL).fit(table, label(table))
    check_refused(as_model(classifier), table, "classifier", "probability(model, label)")
