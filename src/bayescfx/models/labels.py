"""The labels of a classifier, and how it chooses between them.

`predict` mostly follows the probabilities: the label with the highest one, or of two labels the one
beyond a cut. Classifiers for which this is not known are asked for their label, too.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.checks import is_hashable, shown
from bayescfx.data.values import as_python
from bayescfx.errors import TargetError, suggest
from bayescfx.models.adapters import Classifier, Predict, adapter_of
from bayescfx.models.categories import categories_of
from bayescfx.models.identity import class_of
from bayescfx.models.input_columns import as_fitted

LISTED_LABELS = 20  # in an error message

#: Classes of scikit-learn whose `predict` follows `predict_proba`, or else `decision_function`.
_CONSISTENT = {
    "AdaBoostClassifier",
    "BaggingClassifier",
    "BernoulliNB",
    "CalibratedClassifierCV",
    "CategoricalNB",
    "ComplementNB",
    "DecisionTreeClassifier",
    "ExtraTreeClassifier",
    "ExtraTreesClassifier",
    "GaussianNB",
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier",
    "KNeighborsClassifier",
    "LinearDiscriminantAnalysis",
    "LinearSVC",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MLPClassifier",
    "MultinomialNB",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "QuadraticDiscriminantAnalysis",
    "RandomForestClassifier",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
    "VotingClassifier",
}
#: Other libraries whose classifiers do the same.
_CONSISTENT_LIBRARIES = ("lightgbm", "xgboost", "interpret")
#: Attributes with the estimator that a wrapper of scikit-learn leaves its predictions to.
_INNER = {
    "FrozenEstimator": "estimator",
    "GridSearchCV": "best_estimator_",
    "RandomizedSearchCV": "best_estimator_",
    "HalvingGridSearchCV": "best_estimator_",
    "HalvingRandomSearchCV": "best_estimator_",
    "StackingClassifier": "final_estimator_",
}


@dataclass(frozen=True)
class Cut:
    """Where a classifier of two labels changes from the first to the second.

    Parameters
    ----------
    value : float
        The probability, or the decision value, of the second label.
    second_wins : bool, default False
        Whether it predicts the second label at the cut itself.
    """

    value: float
    second_wins: bool = False


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a classifier.

    Parameters
    ----------
    estimator : object
        The classifier, mostly with ``predict_proba`` or ``decision_function``.
    values : tuple
        The labels, in the order of its columns.
    name : str, optional
        The name of its class.
    local : bool
        Whether it is an estimator in this process.
    wrappers : tuple of tuple
        Functions that call it as it needs it, each with further arguments.
    is_fixed : bool
        Whether only the model's own output may be asked about.
    """

    estimator: Any
    values: tuple[Any, ...]
    name: str | None = None
    local: bool = False
    wrappers: tuple[tuple[Any, ...], ...] = ()
    is_fixed: bool = False

    @property
    def is_pair(self) -> bool:
        """Whether there are two labels."""
        return len(self.values) == 2

    @property
    def has_probabilities(self) -> bool:
        """Whether the classifier gives probabilities."""
        return hasattr(self.estimator, "predict_proba")

    @property
    def has_scores(self) -> bool:
        """Whether the classifier gives probabilities or decision values, not labels alone."""
        return self.has_probabilities or hasattr(self.estimator, "decision_function")

    @property
    def listed(self) -> str:
        """The labels, for messages."""
        more = ", …" if len(self.values) > LISTED_LABELS else ""
        return ", ".join(map(repr, self.values[:LISTED_LABELS])) + more

    def index(self, label: object) -> int:
        """Return the position of a label, also given as its text; raise if it is unknown."""
        value = as_python(label)
        if is_hashable(value) and value is not pd.NA and value in self.values:
            return self.values.index(value)
        places = self._places_of_text(value) if isinstance(value, str) else []
        if len(places) == 1:
            return places[0]
        raise TargetError(
            f"the label must be one of {self.listed}; got {shown(label)}."
            f"{suggest(label, self.values)}"
        )

    def _places_of_text(self, text: str) -> list[int]:
        """Return the positions of the labels that are written like a text, perhaps in its case."""
        written = [str(label) for label in self.values]
        exact = [k for k, each in enumerate(written) if each == text]
        bare = text.casefold()
        return exact or [k for k, each in enumerate(written) if each.casefold() == bare]

    def cut(self) -> Cut | None:
        """Return where `predict` changes between two labels; None if it must be asked."""
        if not self.has_scores:
            return None
        return _cut(self.estimator, self.middle)

    @property
    def middle(self) -> float:
        """The score at which two labels are equally likely."""
        return 0.0 if self.has_scores and not self.has_probabilities else 0.5

    @property
    def follows_scores(self) -> bool:
        """Whether `predict` takes the label with the highest probability or decision value."""
        cut = self.cut()
        return cut is not None and cut.value == self.middle

    def predict(self, rows: Any) -> list[Any]:
        """Return the predicted label of each row."""
        find = self.wrap(partial(predicted_positions, self.estimator, self.values))
        positions: Any = find(rows)
        return [self.values[k] for k in positions.tolist()]

    def wrap(self, function: Predict) -> Predict:
        """Return a function of the estimator's rows as one of the model's rows."""
        for wrapper, *arguments in self.wrappers:
            function = partial(wrapper, function, *arguments)
        return function


def predicted_positions(estimator: Any, values: tuple[Any, ...], rows: Any) -> NDArray[np.intp]:
    """Return the positions of the predicted labels among `values`, shape ``(n,)``."""
    rows = as_fitted(estimator, rows, categories_of(estimator))
    if not hasattr(estimator, "predict") or isinstance(estimator, Classifier):
        return np.asarray(np.argmax(estimator.predict_proba(rows), axis=1))
    predicted = np.asarray(estimator.predict(rows), dtype=object).reshape(-1)
    return np.array([values.index(as_python(label)) for label in predicted], dtype=np.intp)


def as_classifier(model: object) -> object:
    """Return the model with ``predict_proba`` if its library is known and it is a classifier."""
    adapter = adapter_of(model)
    classifier = None if adapter is None else adapter.classifier(model)
    return model if classifier is None else classifier


def label_values(classifier: object) -> tuple[Any, ...]:
    """Return the labels of a classifier as Python values; none if it is none, or of several."""
    try:
        found = getattr(classifier, "classes_", ())
        table = np.asarray(found, dtype=object)
    except Exception:  # a property of an estimator that is not fitted
        return ()
    return tuple(map(as_python, table)) if table.ndim == 1 else ()


def returns_labels(model: object) -> bool:
    """Return whether `predict` of a model returns the labels of a classifier."""
    if adapter_of(model) is not None:  # boosters return probabilities or scores
        return type(model).__name__ == "InferenceSession" and as_classifier(model) is not model
    return not inspect.isclass(model) and hasattr(model, "predict") and bool(label_values(model))


def read_labels(model: object) -> Labels | None:
    """Return the labels of a classifier; None if the model is none."""
    classifier = as_classifier(model)
    values = label_values(classifier)
    if len(values) < 2:
        return None
    name, local = class_of(model)
    return Labels(classifier, values, name, local)


def _cut(estimator: Any, usual: float) -> Cut | None:
    """Return where an estimator changes its prediction; `usual` is where most do."""
    if isinstance(estimator, Classifier) or not hasattr(estimator, "predict"):
        return Cut(usual)
    library = type(estimator).__module__.partition(".")[0]
    if library in _CONSISTENT_LIBRARIES:
        return Cut(usual)
    if library == "catboost":
        return Cut(float(estimator.get_probability_threshold()))
    return _scikit_cut(estimator, usual) if library == "sklearn" else None


def _scikit_cut(estimator: Any, usual: float) -> Cut | None:
    """Return where an estimator of scikit-learn changes its prediction."""
    name = type(estimator).__name__
    if name in ("FixedThresholdClassifier", "TunedThresholdClassifierCV"):
        return _own_cut(estimator)
    if name == "Pipeline":
        return _cut(estimator.steps[-1][1], usual)
    if name in _INNER:
        return _cut(getattr(estimator, _INNER[name], None), usual)
    return Cut(usual) if name in _CONSISTENT else None


def _own_cut(estimator: Any) -> Cut | None:
    """Return the threshold of scikit-learn's classifiers with one of their own."""
    inner = getattr(estimator, "estimator_", estimator.estimator)
    uses_scores = estimator.response_method == "decision_function"
    if uses_scores or not hasattr(inner, "predict_proba"):
        return None
    is_fixed = type(estimator).__name__ == "FixedThresholdClassifier"
    value = estimator.threshold if is_fixed else estimator.best_threshold_
    positive = estimator.pos_label if is_fixed else estimator._curve_scorer._get_pos_label()
    value = 0.5 if value == "auto" else float(value)
    is_second = positive is None or positive == estimator.classes_[1]
    return Cut(value, second_wins=True) if is_second else Cut(1.0 - value)
