"""Reader for XGBoost, from the JSON in which it saves a model."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit

from bayescfx.arrays import Array
from bayescfx.models.readers.forms import Form, Inputs, LinearModel, LinkName
from bayescfx.models.readers.sources import (
    Task,
    UnreadableModelError,
    check_probability,
    refuse_labels,
    single_matrix,
)
from bayescfx.models.readers.tree_parts import LEAF, Tree, TreeSums

_LINKS: dict[str, LinkName] = {
    "reg:squarederror": "identity",
    "reg:linear": "identity",
    "reg:absoluteerror": "identity",
    "reg:quantileerror": "identity",
    "reg:pseudohubererror": "identity",
    "reg:squaredlogerror": "identity",
    "rank:ndcg": "identity",
    "rank:map": "identity",
    "rank:pairwise": "identity",
    "binary:logitraw": "identity",
    "count:poisson": "exp",
    "reg:gamma": "exp",
    "reg:tweedie": "exp",
    "survival:cox": "exp",
    "survival:aft": "exp",
    "reg:logistic": "expit",
    "binary:logistic": "expit",
    "multi:softprob": "softmax",
}


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The numbers that XGBoost computes from a table: float32, with codes of categories.

    Parameters
    ----------
    missing : float
        The number that counts as missing, beside nan.
    """

    missing: float = np.nan

    def __call__(self, table: Any) -> Array:
        """Return the numbers ``(n, m)``."""
        if hasattr(table, "tocoo"):
            return self._stored(table.tocoo())
        if isinstance(table, pd.DataFrame) and _has_categories(table):
            table = pd.concat([_coded(table.iloc[:, k]) for k in range(table.shape[1])], axis=1)
        numbers = single_matrix(table)
        return np.where(numbers == np.float32(self.missing), np.nan, numbers)

    def _stored(self, table: Any) -> Array:
        """Return a sparse matrix, of which what is not stored is missing."""
        numbers = np.full(table.shape, np.nan)
        numbers[table.row, table.col] = single_matrix(table.data)
        return np.where(numbers == np.float32(self.missing), np.nan, numbers)


def _has_categories(table: pd.DataFrame) -> bool:
    """Return whether a table has columns of pandas' categories."""
    return any(isinstance(dtype, pd.CategoricalDtype) for dtype in table.dtypes)


def _coded(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column with codes in place of pandas' categories."""
    if not isinstance(cells.dtype, pd.CategoricalDtype):
        return cells
    return cells.cat.codes.astype(np.float64).replace(-1.0, np.nan)


def read_xgboost(task: Task) -> Form:
    """Return the form of an XGBoost model."""
    refuse_labels(task)
    model = task.estimator
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    objective = learner["objective"]["name"]
    link = _link(task, objective)
    base = _base(learner["learner_model_param"]["base_score"], link)
    boosting = learner["gradient_booster"]
    if boosting["name"] == "gblinear":
        return _linear(task, boosting["model"], base, link)
    content = boosting["gbtree"]["model"] if boosting["name"] == "dart" else boosting["model"]
    weights = boosting.get("weight_drop") or [1.0] * len(content["trees"])
    group = np.array(content["tree_info"], dtype=np.intp)
    trees = _trees(content, weights, _n_trees(model, content))
    base = np.broadcast_to(base, int(group.max(initial=0)) + 1)
    return TreeSums(_inputs(task), trees, base, group[: len(trees)]).output(link, task.label)


def _trees(content: dict[str, Any], weights: list[float], n_trees: int) -> list[Tree]:
    """Return the first of the saved trees, with their weights."""
    pairs = list(zip(content["trees"], weights, strict=True))[:n_trees]
    return [_tree(saved, weight) for saved, weight in pairs]


def _inputs(task: Task) -> Inputs:
    """Return the numbers that the trees test."""
    missing = getattr(task.estimator, "missing", None)
    numbers = _Numbers(np.nan if missing is None else float(missing))
    columns = task.source.columns
    is_sparse = hasattr(task.source.table(task.source.sample[:1]), "tocoo")
    if is_sparse or not np.isnan(numbers.missing):
        columns = columns.turn(0)  # a number in the middle of the range is missing
    return task.source.inputs(numbers, columns)


def _link(task: Task, objective: str) -> LinkName:
    """Return the link of an objective."""
    if objective not in _LINKS:
        raise UnreadableModelError(f"XGBoost's objective {objective} has no known link")
    check_probability(task, _LINKS[objective], f"XGBoost's objective {objective}")
    return _LINKS[objective]


def _base(text: str, link: LinkName) -> Array:
    """Return what is added to the sums, from numbers on the scale of the outputs."""
    scores = np.array(re.split(r"[\s,]+", text.strip("[] ")), dtype=np.float32)
    outputs = scores.astype(np.float64)
    if link == "expit":
        return np.asarray(logit(outputs))
    return np.log(outputs) if link == "exp" else outputs


def _n_trees(model: Any, content: dict[str, Any]) -> int:
    """Return the number of trees that predict: up to the best iteration, if there is one."""
    total = len(content["trees"])
    try:
        best = int(model.best_iteration) if hasattr(model, "get_booster") else None
    except AttributeError:  # trained without early stopping
        best = None
    if best is None:
        return total
    if "iteration_indptr" in content:
        return int(content["iteration_indptr"][best + 1])
    n_groups = int(max(content["tree_info"])) + 1
    n_parallel = int(content["gbtree_model_param"].get("num_parallel_tree", "1"))
    return min(total, n_groups * n_parallel * (best + 1))


def _tree(saved: dict[str, Any], weight: float) -> Tree:
    """Return one tree of XGBoost."""
    if int(saved["tree_param"].get("size_leaf_vector", "1")) > 1:
        raise UnreadableModelError("XGBoost's trees have several outputs")
    left = np.array(saved["left_children"], dtype=np.intp)
    right = np.array(saved["right_children"], dtype=np.intp)
    is_leaf = left < 0
    conditions = np.array(saved["split_conditions"], dtype=np.float32).astype(np.float64)
    if_missing = np.array(saved["default_left"], dtype=bool)
    levels = _level_sets(saved)
    for node in levels:  # the levels that are listed go right
        left[node], right[node] = right[node], left[node]
        if_missing[node] = ~if_missing[node]
    return Tree(
        np.where(is_leaf, LEAF, np.array(saved["split_indices"], dtype=np.intp)),
        conditions,
        left,
        right,
        conditions * weight,
        if_missing,
        is_strict=True,
        levels=levels,
    )


def _level_sets(saved: dict[str, Any]) -> dict[int, frozenset[float]]:
    """Return the levels that a tree lists, by node."""
    levels = {}
    nodes = saved.get("categories_nodes", [])
    for k, node in enumerate(nodes):
        start = saved["categories_segments"][k]
        listed = saved["categories"][start : start + saved["categories_sizes"][k]]
        levels[int(node)] = frozenset(map(float, listed))
    return levels


def _linear(task: Task, content: dict[str, Any], base: Array, link: LinkName) -> Form:
    """Return the form of XGBoost's linear model, in which missing numbers count as 0."""
    weights = np.array(content["weights"], dtype=np.float32).astype(np.float64)
    inputs = task.source.inputs(_without_gaps)
    if len(weights) != len(inputs) + 1:
        raise UnreadableModelError("XGBoost's linear model has several outputs")
    sign = -1.0 if task.label == 0 else 1.0  # 1 - expit(z) is expit(-z)
    return LinearModel(inputs, sign * weights[:-1], sign * (weights[-1] + float(base[0])), link)


def _without_gaps(table: Any) -> Array:
    """Return the numbers ``(n, m)`` of a table, 0 where missing."""
    return np.nan_to_num(_Numbers()(table), nan=0.0)
