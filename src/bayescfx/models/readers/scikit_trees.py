"""Readers for the trees of scikit-learn: single ones, forests and boosted ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.models.readers.forms import Form, Inputs, LinkName, TreeEnsemble
from bayescfx.models.readers.sources import (
    Columns,
    Task,
    UnreadableModelError,
    matrix,
    refuse_labels,
    single_matrix,
)
from bayescfx.models.readers.tree_parts import LEAF, Tree, make_ensemble, sum_ensembles


def plain_tree(estimator: Any, value: Array) -> Tree:
    """Return a tree of scikit-learn with these summands ``(n_nodes,)``."""
    inner = estimator.tree_
    is_leaf = inner.children_left < 0
    n_nodes = inner.node_count
    missing = getattr(inner, "missing_go_to_left", np.zeros(n_nodes))
    return Tree(
        np.where(is_leaf, LEAF, inner.feature).astype(np.intp),
        inner.threshold,
        inner.children_left.astype(np.intp),
        inner.children_right.astype(np.intp),
        np.asarray(value, dtype=np.float64),
        np.asarray(missing, dtype=bool),
    )


def leaf_outputs(task: Task, estimator: Any) -> Array:
    """Return what each node of a tree predicts: ``(n_nodes,)``."""
    value = estimator.tree_.value  # (n_nodes, outputs, classes)
    if value.shape[1] > 1:
        raise UnreadableModelError(f"{task.class_name} predicts several outputs")
    if task.method == "predict":
        return np.asarray(value[:, 0, 0])
    counts = value[:, 0, :]
    return np.asarray(counts[:, task.column] / counts.sum(axis=1))


def read_tree(task: Task) -> Form:
    """Return the form of a single tree of scikit-learn."""
    refuse_labels(task)
    tree = plain_tree(task.estimator, leaf_outputs(task, task.estimator))
    return make_ensemble(task.source.inputs(single_matrix), [tree], np.zeros(1))


def read_forest(task: Task) -> Form:
    """Return the form of a forest of scikit-learn: the mean of its trees."""
    refuse_labels(task)
    parts = task.estimator.estimators_
    _refuse_criterion(task)
    trees = [plain_tree(part, leaf_outputs(task, part) / len(parts)) for part in parts]
    return make_ensemble(task.source.inputs(single_matrix), trees, np.zeros(1))


def _refuse_criterion(task: Task) -> None:
    """Raise for outputs that are not means of trees."""
    if task.method == "decision_function":
        raise UnreadableModelError(f"{task.class_name} has no decision function")


# ── gradient boosting ──


def boosted_form(
    task: Task,
    inputs: Inputs,
    stages: Sequence[Sequence[Tree]],
    base: Array,
    *,
    scale: float = 1.0,
    link: LinkName = "identity",
) -> TreeEnsemble:
    """Return boosted trees as a form.

    Parameters
    ----------
    task : Task
        The task; its column is the class.
    inputs : Inputs
        The numbers that the trees look at.
    stages : sequence of sequences of Tree
        One tree per class for each iteration; a single one for regression and two classes.
    base : array of shape (groups,)
        What is added to the sums.
    scale : float
        The factor of sums inside a logistic link.
    link : str
        The link of a regression; ignored for classifiers.
    """
    n_groups = len(base)
    trees = [tree for stage in stages for tree in stage]
    group = np.tile(np.arange(n_groups), len(stages)).astype(np.intp)
    if n_groups > 1:
        return several_classes(task, inputs, trees, base, group)
    if task.method == "predict":
        return make_ensemble(inputs, trees, base, link=link)
    if task.method == "decision_function":
        return make_ensemble(inputs, trees, base)
    factor = scale if task.column == 1 else -scale  # 1 - expit(z) is expit(-z)
    trees = [tree.with_values(factor * tree.value) for tree in trees]
    return make_ensemble(inputs, trees, factor * base, link="expit")


def several_classes(
    task: Task, inputs: Inputs, trees: Sequence[Tree], base: Array, group: Indices
) -> TreeEnsemble:
    """Return the form of one of several classes: the softmax of sums."""
    if task.method != "predict_proba":
        raise UnreadableModelError(f"{task.class_name} returns several numbers per row")
    return make_ensemble(inputs, trees, base, group=group, link="softmax", chosen=task.column)


def read_gradient_boosting(task: Task) -> Form:
    """Return the form of scikit-learn's GradientBoosting."""
    refuse_labels(task)
    model = task.estimator
    rate = model.learning_rate
    stages = [
        [plain_tree(part, rate * part.tree_.value[:, 0, 0]) for part in stage]
        for stage in model.estimators_
    ]
    inputs = task.source.inputs(single_matrix)
    n_groups = len(stages[0])
    scale = 2.0 if model.loss == "exponential" else 1.0
    init = model.init_
    if isinstance(init, str) or type(init).__name__.startswith("Dummy"):
        base = _constant_start(task, inputs, stages)
        return boosted_form(task, inputs, stages, base, scale=scale)
    if n_groups > 1 or hasattr(model, "classes_"):
        raise UnreadableModelError(
            f"{task.class_name} starts from the probabilities of {type(init).__name__}"
        )
    start = task.read_part(init)
    if not isinstance(start, TreeEnsemble) or start.link != "identity":
        raise UnreadableModelError(
            f"{task.class_name} starts from {type(init).__name__}, which is no sum of trees"
        )
    return sum_ensembles([start, boosted_form(task, inputs, stages, np.zeros(1))], [1.0, 1.0])


def _constant_start(task: Task, inputs: Inputs, stages: list[list[Tree]]) -> Array:
    """Return what boosted trees start from ``(groups,)``: the score less the sum of the trees."""
    model = task.estimator
    row = task.source.sample[:1]
    n_groups = len(stages[0])
    score = model.decision_function if hasattr(model, "classes_") else model.predict
    outputs = np.asarray(score(task.source.table(row)), dtype=np.float64).reshape(-1)
    base = np.empty(n_groups)
    for k in range(n_groups):
        trees = [stage[k] for stage in stages]
        base[k] = outputs[k] - make_ensemble(inputs, trees, np.zeros(1)).raw(row)[0, 0]
    return base


# ── boosting with histograms ──


def read_hist_gradient_boosting(task: Task) -> Form:
    """Return the form of scikit-learn's HistGradientBoosting."""
    refuse_labels(task)
    model = task.estimator
    columns = task.source.columns
    numbers: Any = matrix
    if getattr(model, "_preprocessor", None) is not None:  # categories come first
        numbers = model._preprocessor.transform
        columns = _categories_first(columns, model.is_categorical_)
    inputs = task.source.inputs(numbers, columns)
    stages = [[_hist_tree(tree) for tree in stage] for stage in model._predictors]
    base = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)
    link: LinkName = "exp" if getattr(model, "loss", "") in ("poisson", "gamma") else "identity"
    return boosted_form(task, inputs, stages, base, link=link)


def _categories_first(columns: Columns, is_categorical: Any) -> Columns:
    """Return columns in the order of HistGradientBoosting; codes of levels have no direction."""
    order = np.argsort(~np.asarray(is_categorical), kind="stable")
    return columns.take(order).turn(np.where(np.asarray(is_categorical)[order], 0, 1))


def _hist_tree(predictor: Any) -> Tree:
    """Return one tree of HistGradientBoosting."""
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"].astype(bool)
    levels = {}
    for node in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~is_leaf):
        bits = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]]
        levels[int(node)] = _set_bits(bits)
    return Tree(
        np.where(is_leaf, LEAF, nodes["feature_idx"].astype(np.intp)),
        nodes["num_threshold"],
        nodes["left"].astype(np.intp),
        nodes["right"].astype(np.intp),
        nodes["value"],
        nodes["missing_go_to_left"].astype(bool),
        levels=levels,
    )


def _set_bits(words: Any) -> frozenset[float]:
    """Return the positions of the bits that are set in words of 32 bits."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little")
    return frozenset(map(float, np.flatnonzero(bits)))
