"""Any model as a flat form, where it can be read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bayescfx.data.tables import Rows
from bayescfx.errors import OutOfTime
from bayescfx.models.adapters import (
    Classifier,
    Predict,
    predict_fitted,
    predict_torch,
    predict_xgboost,
)
from bayescfx.models.class_scores import compare_label, decide
from bayescfx.models.classifiers import predict_column
from bayescfx.models.input_columns import Category, as_fitted
from bayescfx.models.model import Model, refuse_rows
from bayescfx.models.readers.comparison import check_inputs, largest_difference
from bayescfx.models.readers.forms import Form
from bayescfx.models.readers.registry import read_estimator
from bayescfx.models.readers.sources import (
    Method,
    Source,
    Task,
    UnreadableModelError,
    columns_of,
)


@dataclass(frozen=True, eq=False)
class Reading:
    """What was read from a model.

    Parameters
    ----------
    form : TreeEnsemble, LinearModel, ReluNetwork or None
        The model in a flat form; None if it can't be read.
    reason : str
        Why there is no form; empty if there is one.
    rounding : float
        The largest difference seen between the outputs of the form and those of the model, at
        least the usual rounding error of a sum with as many terms; in units of the outputs.
    """

    form: Form | None
    reason: str = ""
    rounding: float = 0.0


def read_model(model: Model, rows: Rows) -> Reading:
    """Return a model in a flat form, or the reason why there is none.

    The form is compared with the model on the rows and on random rows made from them. No form is
    returned if the outputs differ by more than rounding.

    Parameters
    ----------
    model : Model
        The model, as made by `as_model` or `probability`.
    rows : DataFrame or array of shape (n, columns)
        Some rows as the model gets them, at least one.

    Returns
    -------
    Reading
        The form, or the reason why there is none, and the rounding error.

    Raises
    ------
    OutOfTime
        If the time limit has passed before the form was compared with the model.
    """
    try:
        with warnings.catch_warnings():  # about values that the model was not trained on
            warnings.simplefilter("ignore")
            if model.inner is not None:  # rows of the comparison are not the user's
                model = replace(model, predict=model.inner)
            form = read_estimator(_task(model.predict, rows))
            check_inputs(form.inputs, rows)
            return Reading(form, rounding=largest_difference(form, model, rows))
    except OutOfTime:
        raise
    except UnreadableModelError as error:
        return Reading(None, str(error))
    except Exception as error:  # a model of a newer version of its library, for example
        return Reading(None, f"the model could not be read: {type(error).__name__}: {error}")


#: Methods of an estimator that return the model's output themselves.
_OWN_METHODS: dict[str, Method] = {
    "predict": "predict",
    "decision_function": "decision_function",
}


#: Functions of classifiers without a flat form, and why.
_NOT_READ: dict[Any, str] = {
    compare_label: "which label is predicted is no single sum; a target with a probability, such "
    "as becomes(label, probability=0.5), can be proven",
    refuse_rows: "the model is a classifier; pass bayescfx.probability(model, label)",
}


def _task(predict: Predict, rows: Rows) -> Task:
    """Return the estimator behind a model's function of rows."""
    if isinstance(predict, partial):
        if predict.func is predict_column:
            return _probability_task(predict.args, rows)
        if predict.func in (predict_fitted, predict_xgboost):
            estimator, categories = predict.args
            return _fitted_task(estimator, categories, rows, "predict", 0)
        if predict.func is decide:
            estimator, categories = predict.args
            return _fitted_task(estimator, categories, rows, "decision_function", 0)
        if predict.func in _NOT_READ:
            raise UnreadableModelError(_NOT_READ[predict.func])
        if predict.func is predict_torch:
            return _new_task(predict.args[0], _copied, rows, "predict", 0)
    owner = getattr(predict, "__self__", None)
    name = getattr(predict, "__name__", "")
    if name in _OWN_METHODS and owner is not None:
        return _new_task(owner, _copied, rows, _OWN_METHODS[name], 0)
    if hasattr(predict, "session"):  # ONNX Runtime
        return _new_task(predict, _copied, rows, "predict", 0)
    raise UnreadableModelError("the model is a function; pass the fitted model itself")


def _probability_task(arguments: tuple[Any, ...], rows: Rows) -> Task:
    """Return the task for one column of a classifier's probabilities."""
    clf, categories, column, _ = arguments
    if not isinstance(clf, Classifier):
        return _fitted_task(clf, categories, rows, "predict_proba", column)
    if isinstance(clf.predict, partial):
        booster, its_categories = clf.predict.args
        return _fitted_task(booster, its_categories, rows, "predict_proba", column)
    return _new_task(clf.predict, _copied, rows, "predict_proba", column)


def _fitted_task(
    estimator: Any,
    categories: tuple[Category, ...],
    rows: Rows,
    method: Method,
    column: int,
) -> Task:
    """Return the task for an estimator that gets rows in the form it was fitted to."""
    table = partial(_fitted_table, estimator, categories)
    return _new_task(estimator, table, rows, method, column)


def _new_task(
    estimator: Any,
    table: Callable[[Rows], Any],
    rows: Rows,
    method: Method,
    column: int,
) -> Task:
    """Return the task for an estimator at the top."""
    return Task(estimator, Source(table, columns_of(rows), rows), method, column, read_estimator)


def _fitted_table(estimator: Any, categories: tuple[Category, ...], rows: Rows) -> Any:
    """Return rows in the form that an estimator was fitted to."""
    return as_fitted(estimator, rows.copy(), categories)


def _copied(rows: Rows) -> Any:
    """Return a copy of rows, since an estimator may write to what it gets."""
    return rows.copy()
