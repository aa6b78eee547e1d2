"""Readers for the trees of scikit-learn: single ones, forests and boosted ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.models.readers.forms import Form, Inputs, LinkName, TreeEnsemble
from bayescfx.models.readers.sources import (
    Columns,
    Task,
    UnreadableModelError,
    matrix,
    refuse_labels,
    single_matrix,
)
from bayescfx.models.readers.tree_parts import (
    LEAF,
    Tree,
    TreeSums,
    make_ensemble,
    sum_ensembles,
)


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
    return TreeSums(task.source.inputs(single_matrix), [tree], np.zeros(1)).output()


def read_forest(task: Task) -> Form:
    """Return the form of a forest of scikit-learn: the mean of its trees."""
    refuse_labels(task)
    parts = task.estimator.estimators_
    trees = [plain_tree(part, leaf_outputs(task, part) / len(parts)) for part in parts]
    return TreeSums(task.source.inputs(single_matrix), trees, np.zeros(1)).output()


# ── gradient boosting ──


def boosted_sums(inputs: Inputs, stages: Sequence[Sequence[Tree]], base: Array) -> TreeSums:
    """Return boosted trees as sums.

    Parameters
    ----------
    inputs : Inputs
        The numbers that the trees look at.
    stages : sequence of sequences of Tree
        One tree per class for each iteration; a single one for regression and two classes.
    base : array of shape (groups,)
        What is added to the sums.
    """
    trees = [tree for stage in stages for tree in stage]
    group = np.tile(np.arange(len(base)), len(stages)).astype(np.intp)
    return TreeSums(inputs, trees, base, group)


def class_link(task: Task, n_groups: int) -> LinkName:
    """Return the link of a score: none, or that of probabilities."""
    if task.method != "predict_proba":
        return "identity"
    return "softmax" if n_groups > 1 else "expit"


def read_gradient_boosting(task: Task) -> Form:
    """Return the form of scikit-learn's GradientBoosting."""
    refuse_labels(task)
    model = task.estimator
    stages = []
    for stage in model.estimators_:
        values = [model.learning_rate * part.tree_.value[:, 0, 0] for part in stage]
        stages.append([plain_tree(part, v) for part, v in zip(stage, values, strict=True)])
    inputs = task.source.inputs(single_matrix)
    if not _has_constant_start(model):
        trees = boosted_sums(inputs, stages, np.zeros(len(stages[0])))
        return sum_ensembles([_start(task), trees.output()], [1.0, 1.0])
    base = _constant_start(task, inputs, stages)
    link = class_link(task, len(base))
    return boosted_sums(inputs, stages, base).output(link, task.label, _slope(task))


def _slope(task: Task) -> float:
    """Return the factor of the sums inside the link: 2 for the exponential loss."""
    is_exponential = task.estimator.loss == "exponential"
    return 2.0 if is_exponential and task.method == "predict_proba" else 1.0


def _has_constant_start(model: Any) -> bool:
    """Return whether boosted trees start from a number and not from another model."""
    return isinstance(model.init_, str) or type(model.init_).__name__.startswith("Dummy")


def _start(task: Task) -> TreeEnsemble:
    """Return the form of the regression that boosted trees start from."""
    init = task.estimator.init_
    if hasattr(task.estimator, "classes_"):
        raise UnreadableModelError(
            f"{task.class_name} starts from the probabilities of {type(init).__name__}"
        )
    start = task.read_part(init)
    if isinstance(start, TreeEnsemble) and start.link == "identity":
        return start
    raise UnreadableModelError(
        f"{task.class_name} starts from {type(init).__name__}, which is no sum of trees"
    )


def _constant_start(task: Task, inputs: Inputs, stages: list[list[Tree]]) -> Array:
    """Return what boosted trees start from ``(groups,)``: the score less the sum of the trees."""
    model = task.estimator
    row = task.source.sample[:1]
    score = model.decision_function if hasattr(model, "classes_") else model.predict
    base = np.asarray(score(task.source.table(row)), dtype=np.float64).reshape(-1)
    sums = boosted_sums(inputs, stages, np.zeros(len(base)))
    return np.asarray(base - make_ensemble(sums, np.asarray(sums.group)).raw(row)[0])


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
    sums = boosted_sums(inputs, stages, base)
    if model.loss in ("poisson", "gamma"):
        return sums.output("exp")
    return sums.output(class_link(task, len(base)), task.label)


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
