"""ONNX models as flat forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from bayescfx.models import as_model, probability
from tests.models.readers.reading_checks import (
    check_reading,
    check_refused,
    label,
    name_of,
    numbers,
    target,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
runtime: Any = pytest.importorskip("onnxruntime")
skl2onnx: Any = pytest.importorskip("skl2onnx")
SINGLE = 3e-6  # the sums are rounded to float32


def session(model: Any, *, zipmap: bool = False) -> Any:
    """Return a fitted model as a session."""
    options = {id(model): {"zipmap": zipmap}} if hasattr(model, "classes_") else None
    example = np.zeros((1, 4), dtype=np.float32)
    content = skl2onnx.to_onnx(model, example, options=options).SerializeToString()
    return runtime.InferenceSession(content, providers=["CPUExecutionProvider"])


def rows() -> Any:
    """Return an array of numbers."""
    return numbers().to_numpy(dtype=np.float64)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=4),
        RandomForestRegressor(10, max_depth=5, random_state=0),
        ExtraTreesRegressor(10, max_depth=5, random_state=0),
        GradientBoostingRegressor(n_estimators=10),
        LinearRegression(),
    ],
    ids=name_of,
)
def test_regressors(model: Any) -> None:
    model.fit(rows(), target(numbers()))
    check_reading(as_model(session(model)), rows(), SINGLE)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("zipmap", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4),
        RandomForestClassifier(10, max_depth=5, random_state=0),
        GradientBoostingClassifier(n_estimators=10),
    ],
    ids=name_of,
)
def test_classifiers(model: Any, zipmap: bool, n_classes: int) -> None:
    model.fit(rows(), label(numbers(), n_classes))
    for column in range(n_classes):
        check_reading(probability(session(model, zipmap=zipmap), column), rows(), SINGLE)


def test_a_logistic_regression() -> None:
    model = LogisticRegression(max_iter=1000).fit(rows(), label(numbers()))
    check_reading(probability(session(model), 1), rows(), SINGLE)


def test_models_that_are_not_read() -> None:
    scaled = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=3))
    scaled.fit(rows(), target(numbers()))
    check_refused(as_model(session(scaled)), rows(), "operator Scaler")
