"""Ensembles of scikit-learn's estimators as flat forms."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

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

FOREST = RandomForestRegressor(4, max_depth=4, random_state=0)
BOOSTED = HistGradientBoostingRegressor(max_iter=9)
CLASSIFIER = RandomForestClassifier(4, max_depth=4, random_state=0)
PARTS = [
    ("forest", FOREST),
    ("boosted", BOOSTED),
    ("scaled", make_pipeline(StandardScaler(), ExtraTreesRegressor(3, random_state=0))),
]


@pytest.mark.parametrize("weights", [None, [1, 2, 5]])
def test_votes_of_regressors(weights: Any) -> None:
    table = numbers()
    model = VotingRegressor(PARTS, weights=weights).fit(table, target(table))
    check_reading(as_model(model), table)


def test_votes_of_linear_models() -> None:
    table = numbers()
    model = VotingRegressor([("one", LinearRegression()), ("two", Ridge(10.0))], weights=[3, 1])
    form = check_reading(as_model(model.fit(table, target(table))), table)
    assert isinstance(form, LinearModel)


def test_votes_of_classifiers() -> None:
    table = numbers()
    parts = [("forest", CLASSIFIER), ("tree", DecisionTreeClassifier(max_depth=3))]
    model = VotingClassifier(parts, voting="soft").fit(table, label(table, 3))
    check_reading(probability(model, 2), table)


@pytest.mark.parametrize("max_features", [1.0, 0.6])
def test_bags(max_features: float) -> None:
    table = numbers()
    options: dict[str, Any] = {"n_estimators": 5, "max_features": max_features, "random_state": 0}
    model = BaggingRegressor(**options).fit(table, target(table))
    form = check_reading(as_model(model), table)
    if max_features == 1.0:
        assert len(form.inputs) == 4
    check_reading(as_model(BaggingRegressor(BOOSTED, **options).fit(table, target(table))), table)
    linear = BaggingRegressor(LinearRegression(), **options).fit(table, target(table))
    check_reading(as_model(linear), table)
    classifier = BaggingClassifier(**options).fit(table, label(table, 3))
    check_reading(probability(classifier, 1), table)


def test_stacks() -> None:
    table = numbers()
    model = StackingRegressor(PARTS).fit(table, target(table))
    check_reading(as_model(model), table)
    parts = [("forest", CLASSIFIER), ("boosted", GradientBoostingClassifier(n_estimators=5))]
    classifier = StackingClassifier(parts).fit(table, label(table))
    check_refused(probability(classifier), table, "StackingClassifier", "link")
    parts = [("forest", CLASSIFIER), ("tree", DecisionTreeClassifier(max_depth=3))]
    classifier = StackingClassifier(parts).fit(table, label(table))
    check_reading(probability(classifier, 0), table)
    check_reading(probability(classifier, 1), table)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("depth", [1, 3])
def test_ada_boost(n_classes: int, depth: int) -> None:
    table = numbers()
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=10)
    model.fit(table, label(table, n_classes))
    for column in range(n_classes):
        check_reading(probability(model, column), table)
    if n_classes == 2:
        check_reading(as_model(model.decision_function), table)


@pytest.mark.parametrize(
    "base",
    [
        LinearSVC(),
        GradientBoostingClassifier(n_estimators=9),
        RandomForestClassifier(4, max_depth=4, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=name_of,
)
def test_calibrated_classifiers(base: Any) -> None:
    table = numbers()
    y = label(table)
    model = CalibratedClassifierCV(FrozenEstimator(base.fit(table, y)), ensemble=False)
    model.fit(table, y)
    check_reading(probability(model, 0), table)
    check_reading(probability(model, 1), table)


def test_models_that_are_not_read() -> None:
    table = numbers()
    y = target(table)
    mixed = VotingRegressor([("forest", FOREST), ("linear", LinearRegression())]).fit(table, y)
    check_refused(as_model(mixed), table, "trees and linear models")
    neighbours = BaggingRegressor(KNeighborsRegressor(), n_estimators=2).fit(table, y)
    check_refused(as_model(neighbours), table, "no reader for KNeighborsRegressor")
    median = AdaBoostRegressor(n_estimators=3).fit(table, y)
    check_refused(as_model(median), table, "weighted median")
    final = StackingRegressor(PARTS, final_estimator=GradientBoostingRegressor(n_estimators=3))
    check_refused(as_model(final.fit(table, y)), table, "ends with GradientBoostingRegressor")
    classes = label(table)
    averaged = CalibratedClassifierCV(CLASSIFIER, cv=3).fit(table, classes)
    check_refused(probability(averaged), table, "averages 3 calibrated models")
    steps = CalibratedClassifierCV(CLASSIFIER, method="isotonic", ensemble=False)
    check_refused(probability(steps.fit(table, classes)), table, "isotonic")
