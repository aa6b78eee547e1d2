"""Readers for the linear models of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.models.readers.forms import Form, LinearModel, LinkName
from bayescfx.models.readers.sources import Task, UnreadableModelError, matrix, refuse_labels


def read_linear(task: Task) -> Form:
    """Return the form of a linear regression, or of a linear decision function."""
    refuse_labels(task)
    if task.method == "predict_proba":
        raise UnreadableModelError(f"the probabilities of {task.class_name} are not logistic")
    weights, base = _coefficients(task)
    return LinearModel(task.source.inputs(matrix), weights, base)


def read_log_linear(task: Task) -> Form:
    """Return the form of a generalised linear model, whose link may be the logarithm."""
    weights, base = _coefficients(task)
    return LinearModel(task.source.inputs(matrix), weights, base, _general_link(task.estimator))


def read_logistic(task: Task) -> Form:
    """Return the form of a logistic regression with two classes."""
    if task.method != "predict_proba":
        return read_linear(task)
    if getattr(task.estimator, "loss", "log_loss") != "log_loss":
        raise UnreadableModelError(f"the probabilities of {task.class_name} are not logistic")
    weights, base = _coefficients(task)
    inputs = task.source.inputs(matrix)
    return LinearModel(inputs, task.sign * weights, task.sign * base, "expit")


def _coefficients(task: Task) -> tuple[Array, float]:
    """Return the weights ``(m,)`` and the intercept."""
    coefficients: Any = task.estimator.coef_
    if hasattr(coefficients, "toarray"):
        coefficients = coefficients.toarray()
    weights = np.asarray(coefficients, dtype=np.float64)
    if weights.ndim == 2 and len(weights) > 1:
        kind = "classes" if hasattr(task.estimator, "classes_") else "outputs"
        raise UnreadableModelError(f"{task.class_name} has several {kind}")
    intercept = np.asarray(getattr(task.estimator, "intercept_", 0.0), dtype=np.float64)
    return weights.reshape(-1), float(intercept.reshape(-1)[0])


def _general_link(model: Any) -> LinkName:
    """Return the link of a generalised linear model of scikit-learn."""
    if not hasattr(model, "power"):  # Poisson and gamma regressions
        return "exp"
    if model.link == "auto":
        return "exp" if model.power > 0 else "identity"
    return "exp" if model.link == "log" else "identity"
