"""Readers for scikit-learn's ensembles of other estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.models.readers.forms import Form, LinearModel, ReluNetwork, TreeEnsemble
from bayescfx.models.readers.pipelines import rescaled
from bayescfx.models.readers.scikit_trees import boosted_sums, class_link, plain_tree
from bayescfx.models.readers.sources import (
    Computation,
    Source,
    Task,
    UnreadableModelError,
    refuse_labels,
    single_matrix,
)
from bayescfx.models.readers.tree_parts import join_inputs, sum_ensembles


def weighted_sum(task: Task, forms: Sequence[Form], weights: Sequence[float]) -> Form:
    """Return the weighted sum of forms of one kind, without links."""
    if any(form.link != "identity" for form in forms):
        raise UnreadableModelError(f"{task.class_name} adds up outputs of models with a link")
    if any(isinstance(form, ReluNetwork) for form in forms):
        raise UnreadableModelError(f"{task.class_name} adds up networks")
    trees = [form for form in forms if isinstance(form, TreeEnsemble)]
    if len(trees) == len(forms):
        return sum_ensembles(trees, weights)
    linear = [form for form in forms if isinstance(form, LinearModel)]
    if len(linear) < len(forms):
        raise UnreadableModelError(f"{task.class_name} adds up trees and linear models")
    return _linear_sum(linear, weights)


def _linear_sum(linear: Sequence[LinearModel], weights: Sequence[float]) -> LinearModel:
    """Return the weighted sum of linear models without links."""
    pairs = list(zip(linear, weights, strict=True))
    return LinearModel(
        join_inputs([form.inputs for form in linear]),
        np.concatenate([weight * form.weights for form, weight in pairs]),
        float(sum(weight * form.base for form, weight in pairs)),
    )


def read_voting(task: Task) -> Form:
    """Return the form of a vote: the weighted mean of its estimators."""
    refuse_labels(task)
    forms = [task.read_part(part) for part in task.estimator.estimators_]
    weights = _voting_weights(task.estimator)
    return weighted_sum(task, forms, (weights / weights.sum()).tolist())


def _voting_weights(model: Any) -> Array:
    """Return the weight of each estimator of a vote, ``(n,)``, without those left out."""
    if model.weights is None:
        return np.ones(len(model.estimators_))
    pairs = zip(model.estimators, model.weights, strict=True)
    return np.array([weight for (_, part), weight in pairs if part != "drop"], dtype=float)


@dataclass(frozen=True)
class _Selection:
    """Some columns of a table, as an array."""

    places: tuple[int, ...]

    def __call__(self, table: Any) -> Any:
        """Return the columns ``(n, k)``."""
        return table[:, list(self.places)] if hasattr(table, "tocsr") else self._cells(table)

    def _cells(self, table: Any) -> Any:
        return np.asarray(table)[:, list(self.places)]


def read_bagging(task: Task) -> Form:
    """Return the form of a bag: the mean of its estimators, each with columns of its own."""
    refuse_labels(task)
    model = task.estimator
    classes = getattr(model, "classes_", ())
    forms = []
    for part, places in zip(model.estimators_, model.estimators_features_, strict=True):
        if len(getattr(part, "classes_", classes)) != len(classes):
            raise UnreadableModelError(f"{task.class_name} has parts that do not know all classes")
        forms.append(task.read_part(part, source=_selected_source(task.source, places)))
    return weighted_sum(task, forms, [1.0 / len(forms)] * len(forms))


def _selected_source(source: Source, places: Indices) -> Source:
    """Return some columns of a table."""
    table = Computation(source.table, _Selection(tuple(np.asarray(places).tolist())))
    return Source(table, source.columns.take(places), source.sample)


def read_stacking(task: Task) -> Form:
    """Return the form of a linear model over the outputs of others."""
    refuse_labels(task)
    model = task.estimator
    last = model.final_estimator_
    if model.passthrough or not hasattr(last, "coef_"):
        raise UnreadableModelError(f"{task.class_name} ends with {type(last).__name__}")
    weights = np.asarray(last.coef_, dtype=np.float64).reshape(-1)
    if len(weights) != len(model.estimators_):
        raise UnreadableModelError(f"{task.class_name} has several classes or outputs")
    methods = model.stack_method_
    pairs = zip(model.estimators_, methods, strict=True)
    forms = [task.read_part(part, method=method, column=1) for part, method in pairs]
    total = weighted_sum(task, forms, weights.tolist())
    total = rescaled(total, 1.0, float(np.asarray(last.intercept_).reshape(-1)[0]))
    if task.method != "predict_proba":
        return total
    return replace(rescaled(total, task.sign, 0.0), link="expit")


def read_ada_boost(task: Task) -> Form:
    """Return the form of AdaBoost: trees that vote with weights."""
    refuse_labels(task)
    model = task.estimator
    if not hasattr(model, "classes_"):
        raise UnreadableModelError(f"{task.class_name} predicts a weighted median, which is no sum")
    if not all(hasattr(part, "tree_") for part in model.estimators_):
        raise UnreadableModelError(f"{task.class_name} is made of estimators that are no trees")
    weights = model.estimator_weights_[: len(model.estimators_)]
    stages = []
    for part, weight in zip(model.estimators_, weights / weights.sum(), strict=True):
        votes = _votes(_labels(part, model.classes_), len(model.classes_))
        stages.append([plain_tree(part, weight * column) for column in votes.T])
    base = np.zeros(len(stages[0]))
    sums = boosted_sums(task.source.inputs(single_matrix), stages, base)
    return sums.output(class_link(task, len(base)), task.label)


def _votes(labels: Indices, n_classes: int) -> Array:
    """Return the votes of nodes: ``(n_nodes, classes)``, or ``(n_nodes, 1)`` for two classes."""
    if n_classes == 2:
        return np.where(labels == 1, 2.0, -2.0)[:, None]
    others = n_classes - 1
    return np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0 / others) / others


def _labels(tree: Any, classes: Any) -> Indices:
    """Return the position among all classes that each node of a tree votes for."""
    voted = tree.classes_[tree.tree_.value[:, 0, :].argmax(axis=1)]
    return np.asarray(np.searchsorted(classes, voted), dtype=np.intp)


def read_calibrated(task: Task) -> Form:
    """Return the form of a classifier whose scores go through one logistic function."""
    if task.method != "predict_proba":
        refuse_labels(task)
    parts = task.estimator.calibrated_classifiers_
    if len(parts) > 1:
        raise UnreadableModelError(f"{task.class_name} averages {len(parts)} calibrated models")
    (part,) = parts
    calibrator = _logistic_calibrator(task, part.calibrators)
    has_scores = hasattr(part.estimator, "decision_function")
    method = "decision_function" if has_scores else "predict_proba"
    form = task.read_part(part.estimator, method=method, column=1)
    if form.link != "identity":
        raise UnreadableModelError(f"{task.class_name} calibrates probabilities with a link")
    # the output of the calibrator is expit(-(a z + b))
    calibrated = rescaled(form, -task.sign * calibrator.a_, -task.sign * calibrator.b_)
    return replace(calibrated, link="expit")


def _logistic_calibrator(task: Task, calibrators: Sequence[Any]) -> Any:
    """Return the only calibrator; raise if there are several, or it is not logistic."""
    if len(calibrators) > 1:
        raise UnreadableModelError(f"{task.class_name} calibrates with several classes")
    (calibrator,) = calibrators
    if not hasattr(calibrator, "a_"):
        kind = "a function in steps (isotonic)"
        raise UnreadableModelError(f"{task.class_name} calibrates with {kind}")
    return calibrator
