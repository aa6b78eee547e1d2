"""A classifier as a model: the probability of one label."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.checks import check, is_hashable, shown
from bayescfx.data.values import as_python
from bayescfx.errors import ModelError, suggest
from bayescfx.models.categories import categories_of
from bayescfx.models.identity import class_of
from bayescfx.models.input_columns import Category, as_fitted
from bayescfx.models.labels import LISTED_LABELS, Labels, as_classifier
from bayescfx.models.model import Model, answered, as_model, kind_of


def probability(clf: object, label: object = None) -> Model:
    """Return a classifier's probability of one label as a model.

    The outputs are probabilities, and so are targets; the surrogate works on log-odds, where a
    logistic model is a plane.

    Parameters
    ----------
    clf : object
        A fitted classifier with ``predict_proba`` and ``classes_``, or a callable that returns the
        probability for each row.
    label : object, optional
        One of ``clf.classes_``. ``None`` means the second class of a binary classifier.

    Raises
    ------
    ModelError
        If `label` is not a class of `clf`, or `clf` has no probabilities.

    Examples
    --------
    >>> half = probability(lambda X: [0.5 for _ in X])
    >>> half(np.zeros((2, 1))), half.link
    (array([0.5, 0.5]), 'logit')
    """
    name, local = class_of(clf)
    wrapped = as_classifier(clf)
    if not hasattr(wrapped, "predict_proba"):
        return _callable_probability(wrapped, label)
    classes = _classes(wrapped)
    labels = Labels(wrapped, tuple(classes), name, local)
    return probability_model(labels, _class_column(classes, label))


def probability_model(labels: Labels, column: int) -> Model:
    """Return the probability of the label in a column as a model."""
    clf = labels.estimator
    label = labels.values[column]
    predict = partial(predict_column, clf, categories_of(clf), column, len(labels.values))
    return Model(
        labels.wrap(predict),
        link="logit",
        name=f"P({label!r}) by {labels.name}",
        local=labels.local,
        output=f"probability of {label}",
        labels=labels,
        label=column,
    )


def _callable_probability(clf: object, label: object) -> Model:
    """Return a callable that returns probabilities as a model."""
    if inspect.isclass(clf) or not callable(clf) or hasattr(clf, "predict"):
        raise ModelError(
            f"`clf` must have `predict_proba` or be a callable; got {kind_of(clf)}. For a "
            "classifier without probabilities pass clf.decision_function as the model, and "
            "e.g. at_least(0)."
        )
    advice = "Let the callable return the probability of that label."
    check(label is None, "label", "None for a callable", label, ModelError, advice)
    return Model(as_model(clf).predict, link="logit", output="probability")


def predict_column(
    clf: Any, categories: tuple[Category, ...], column: int, n_classes: int, rows: Any
) -> object:
    """Return one column of a classifier's probabilities, shape ``(n,)``."""
    table = answered(clf.predict_proba(as_fitted(clf, rows, categories)), rows)
    if table.shape != (len(rows), n_classes):
        raise ModelError(
            f"`clf.predict_proba` returned shape {table.shape} for {len(rows)} rows; expected "
            f"({len(rows)}, {n_classes}), one column for each of `clf.classes_`."
        )
    return table[:, column]


def _classes(clf: object) -> list[object]:
    """Return the classes as Python values."""
    classes = getattr(clf, "classes_", None)
    if classes is None:
        raise ModelError(
            f"`clf` must have `classes_`; got {kind_of(clf)} without. Fit it first, or pass a "
            "callable, e.g. lambda X: clf.predict_proba(X)[:, 1]."
        )
    table = np.asarray(classes, dtype=object)
    if table.ndim != 1:
        raise ModelError(
            "`clf` must predict one label; its `classes_` are those of several. Pass a callable, "
            "e.g. lambda X: clf.predict_proba(X)[0][:, 1]."
        )
    return [as_python(value) for value in table]


def _class_column(classes: list[object], label: object) -> int:
    """Return the column of ``predict_proba`` that belongs to `label`."""
    if label is None and len(classes) == 2:
        return 1
    value = as_python(label) if is_hashable(label) else label
    if not _is_class(value, classes):
        raise _unknown_label(classes, label)
    return classes.index(value)


def _is_class(value: object, classes: list[object]) -> bool:
    """Return whether a value is one of the classes; arrays and ``pd.NA`` can't be compared."""
    return is_hashable(value) and value is not pd.NA and value in classes


def _unknown_label(classes: list[object], label: object) -> ModelError:
    """Return the error for a label that is no class."""
    listed = ", ".join(map(repr, classes[:LISTED_LABELS]))
    if len(classes) > LISTED_LABELS:
        listed += ", …"
    hint = f".{suggest(label, classes)}"
    if label is None:
        hint = ", which only a binary classifier allows."
    return ModelError(f"`label` must be one of {listed}; got {shown(label)}{hint}")
