"""Reader for LightGBM, from the text in which it saves a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.models.readers.forms import Form, LinkName
from bayescfx.models.readers.sources import (
    Task,
    UnreadableModelError,
    check_probability,
    matrix,
    refuse_labels,
)
from bayescfx.models.readers.tree_parts import LEAF, Tree, TreeSums

# The bits of a node's decision type.
_IS_CATEGORICAL = 1
_DEFAULT_LEFT = 2
_MISSING_IS_ZERO = 4
_MISSING_IS_NAN = 8
_ZERO = float(np.float32(1e-35))  # numbers up to this size count as zero

_LINKS: dict[str, LinkName] = {
    "regression": "identity",
    "regression_l1": "identity",
    "huber": "identity",
    "fair": "identity",
    "quantile": "identity",
    "mape": "identity",
    "lambdarank": "identity",
    "rank_xendcg": "identity",
    "custom": "identity",
    "": "identity",
    "poisson": "exp",
    "gamma": "exp",
    "tweedie": "exp",
    "binary": "expit",
    "cross_entropy": "expit",
    "multiclassova": "expit",
    "multiclass": "softmax",
}


@dataclass(frozen=True, eq=False)
class _Codes:
    """The numbers that LightGBM computes from a table.

    Parameters
    ----------
    categories : sequence of list
        The levels of pandas' categories, for the columns with that dtype, in order.
    is_categorical : mask of shape (m,)
        The columns whose codes are whole numbers.
    is_zero_missing : mask of shape (m,)
        The columns in which zero counts as missing.
    """

    categories: Sequence[list[Any]]
    is_categorical: Any
    is_zero_missing: Any

    def __call__(self, table: Any) -> Array:
        """Return the numbers ``(n, m)``."""
        numbers = matrix(self._coded(table)).copy()
        numbers[:, self.is_categorical] = np.trunc(numbers[:, self.is_categorical])
        is_zero = np.abs(numbers) <= _ZERO
        numbers[is_zero] = 0.0
        numbers[is_zero & self.is_zero_missing] = np.nan
        return numbers

    def _coded(self, table: Any) -> Any:
        """Return a table with codes in place of pandas' categories."""
        if not isinstance(table, pd.DataFrame):
            return table
        kinds = [isinstance(dtype, pd.CategoricalDtype) for dtype in table.dtypes]
        places = np.flatnonzero(kinds)
        columns = [table.iloc[:, place] for place in range(table.shape[1])]
        for place, known in zip(places, self.categories, strict=True):
            codes = columns[place].cat.set_categories(known).cat.codes
            columns[place] = codes.astype(np.float64).replace(-1.0, np.nan)
        return pd.concat(columns, axis=1)


def read_lightgbm(task: Task) -> Form:
    """Return the form of a LightGBM model."""
    refuse_labels(task)
    booster = getattr(task.estimator, "booster_", task.estimator)
    header, *blocks = _blocks(booster.model_to_string())
    trees = []
    width = int(header["max_feature_idx"]) + 1
    is_categorical = np.zeros(width, dtype=bool)
    is_zero_missing = np.zeros(width, dtype=bool)
    for block in blocks:
        tree, kinds = _tree(block)
        trees.append(tree)
        tested = tree.input[: len(kinds)]
        is_categorical[tested[kinds & _IS_CATEGORICAL > 0]] = True
        is_zero_missing[tested[kinds & _MISSING_IS_ZERO > 0]] = True
    columns = task.source.columns.turn(np.where(is_zero_missing, 0, 1))
    codes = _Codes(booster.pandas_categorical or [], is_categorical, is_zero_missing)
    inputs = task.source.inputs(codes, columns)
    n_groups = int(header["num_tree_per_iteration"])
    share = n_groups / len(trees) if "average_output" in header else 1.0
    group = (np.arange(len(trees)) % n_groups).astype(np.intp)
    objective, *options = header.get("objective", "").split(" ")
    link = _link(task, objective, options)
    slope = _slope(options) if link == "expit" else 1.0
    sums = TreeSums(inputs, trees, np.zeros(n_groups), group)
    return sums.output(link, task.label, share * slope)


def _link(task: Task, objective: str, options: list[str]) -> LinkName:
    """Return the link of an objective."""
    words = f"{objective} sqrt" if "sqrt" in options else objective
    if words not in _LINKS:
        raise UnreadableModelError(f"LightGBM's objective {words} has no known link")
    check_probability(task, _LINKS[words], f"LightGBM's objective {words}")
    return _LINKS[words]


def _slope(options: list[str]) -> float:
    """Return the factor of the sums inside a logistic link."""
    for option in options:
        if option.startswith("sigmoid:"):
            return float(option.removeprefix("sigmoid:"))
    return 1.0


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """Yield the settings of a saved model, and those of each tree."""
    saved = text.partition("end of trees")[0]
    for part in saved.split("\nTree="):
        lines = [line.partition("=") for line in part.split("\n") if line]
        yield {name: value for name, _, value in lines}


def _tree(block: dict[str, str]) -> tuple[Tree, Any]:
    """Return a tree, and the decision types of its inner nodes."""
    if block.get("is_linear", "0") != "0":
        raise UnreadableModelError("LightGBM's trees have linear functions in their leaves")
    values = _numbers(block, "leaf_value")
    n_inner = int(block["num_leaves"]) - 1
    kinds = _numbers(block, "decision_type").astype(np.intp)[:n_inner]
    threshold = _numbers(block, "threshold")[:n_inner]
    # Leaves follow the inner nodes; a child -1 is leaf 0, and so on.
    left = _numbers(block, "left_child").astype(np.intp)[:n_inner]
    right = _numbers(block, "right_child").astype(np.intp)[:n_inner]
    leaves = np.full(len(values), LEAF, dtype=np.intp)
    is_left_missing = kinds & _DEFAULT_LEFT > 0
    has_missing = kinds & (_MISSING_IS_ZERO | _MISSING_IS_NAN) > 0
    is_level = kinds & _IS_CATEGORICAL > 0
    if_missing = np.where(has_missing, is_left_missing, threshold >= 0.0)  # else nan counts as 0
    if_missing[is_level] = False
    tree = Tree(
        np.concatenate([_numbers(block, "split_feature").astype(np.intp)[:n_inner], leaves]),
        np.concatenate([threshold, np.zeros(len(values))]),
        np.concatenate([np.where(left < 0, n_inner + ~left, left), leaves]),
        np.concatenate([np.where(right < 0, n_inner + ~right, right), leaves]),
        np.concatenate([np.zeros(n_inner), values]),
        np.concatenate([if_missing, leaves > 0]),
    )
    return replace(tree, levels=_level_sets(block, is_level, threshold)), kinds


def _level_sets(
    block: dict[str, str], is_level: Any, threshold: Array
) -> dict[int, frozenset[float]]:
    """Return the levels that go left, by node."""
    if not is_level.any():
        return {}
    ends = _numbers(block, "cat_boundaries").astype(np.intp)
    words = _numbers(block, "cat_threshold").astype("<u4")
    levels = {}
    for node in np.flatnonzero(is_level).tolist():
        place = int(threshold[node])
        chosen = np.ascontiguousarray(words[ends[place] : ends[place + 1]])
        bits = np.unpackbits(chosen.view(np.uint8), bitorder="little")
        levels[node] = frozenset(map(float, np.flatnonzero(bits)))
    return levels


def _numbers(block: dict[str, str], name: str) -> Array:
    """Return a list of numbers in a saved tree."""
    return np.array(block.get(name, "").split(), dtype=np.float64)
