"""Explainable boosting machines as flat forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayescfx.models import as_model, probability
from bayescfx.models.readers import TreeEnsemble
from tests.models.readers.reading_checks import check_reading, label, levels, numbers, target

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Missing values detected"),
]
glassbox: Any = pytest.importorskip("interpret.glassbox")
SMALL: dict[str, Any] = {"max_rounds": 40, "outer_bags": 2, "n_jobs": 1}


@pytest.mark.parametrize("objective", ["rmse", "poisson_deviance", "gamma_deviance"])
@pytest.mark.parametrize("missing", [False, True])
def test_regressors(objective: str, missing: bool) -> None:
    table = numbers(missing)
    model = glassbox.ExplainableBoostingRegressor(objective=objective, interactions=2, **SMALL)
    form = check_reading(as_model(model.fit(table, target(table))), table)
    assert as_model(model).local
    assert isinstance(form, TreeEnsemble)
    assert len(form.roots) == len(table.columns) + 2
    assert (form.inputs.direction == 1).all()


def test_levels() -> None:
    table = levels()
    table["job"] = table["job"].astype(object)
    model = glassbox.ExplainableBoostingRegressor(interactions=4, **SMALL)
    model.fit(table, target(table))
    form = check_reading(as_model(model), table)
    other = table.assign(job="pilot")
    np.testing.assert_allclose(form.predict(other), model.predict(other), rtol=1e-9)
    gaps = table.assign(job=None)
    np.testing.assert_allclose(form.predict(gaps), model.predict(gaps), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers(n_classes: int) -> None:
    table = numbers()
    interactions = 2 if n_classes == 2 else 0
    model = glassbox.ExplainableBoostingClassifier(interactions=interactions, **SMALL)
    model.fit(table, label(table, n_classes))
    for column in range(n_classes):
        check_reading(probability(model, column), table)


def test_an_array() -> None:
    rows = numbers(missing=True).to_numpy()
    model = glassbox.ExplainableBoostingRegressor(interactions=1, **SMALL)
    model.fit(rows, target(numbers(missing=True)))
    check_reading(as_model(model), rows)
