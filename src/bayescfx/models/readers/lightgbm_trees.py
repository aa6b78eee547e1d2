"""Reader for LightGBM, from the text in which it saves a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices
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
        if not len(places):
            return table
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
    nodes = _Nodes.of(blocks)
    trees = nodes.trees(blocks)
    width = int(header["max_feature_idx"]) + 1
    is_categorical = np.zeros(width, dtype=bool)
    is_zero_missing = np.zeros(width, dtype=bool)
    is_categorical[nodes.input[nodes.kind & _IS_CATEGORICAL > 0]] = True
    is_zero_missing[nodes.input[nodes.kind & _MISSING_IS_ZERO > 0]] = True
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


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The inner nodes of all trees one after the other, and their leaves.

    Parameters
    ----------
    n_inner : array of int of shape (t,)
        The number of inner nodes of each tree.
    input, kind, left, right : array of int of shape (nodes,)
        The feature, the decision type and the children; a child -1 is leaf 0, and so on.
    threshold : array of shape (nodes,)
        The thresholds.
    leaf_value : array of shape (leaves,)
        The summands of the leaves.
    """

    n_inner: Indices
    input: Indices
    kind: Indices
    left: Indices
    right: Indices
    threshold: Array
    leaf_value: Array

    @classmethod
    def of(cls, blocks: Sequence[dict[str, str]]) -> _Nodes:
        """Return the nodes of saved trees."""
        if any(block.get("is_linear", "0") != "0" for block in blocks):
            raise UnreadableModelError("LightGBM's trees have linear functions in their leaves")
        n_inner = np.array([int(block["num_leaves"]) - 1 for block in blocks], dtype=np.intp)
        return cls(
            n_inner=n_inner,
            input=_all_numbers(blocks, "split_feature", n_inner).astype(np.intp),
            kind=_all_numbers(blocks, "decision_type", n_inner).astype(np.intp),
            left=_all_numbers(blocks, "left_child", n_inner).astype(np.intp),
            right=_all_numbers(blocks, "right_child", n_inner).astype(np.intp),
            threshold=_all_numbers(blocks, "threshold", n_inner),
            leaf_value=_all_numbers(blocks, "leaf_value", n_inner + 1),
        )

    def trees(self, blocks: Sequence[dict[str, str]]) -> list[Tree]:
        """Return the trees."""
        offset = np.repeat(self.n_inner, self.n_inner)  # leaves follow the inner nodes
        left = np.where(self.left < 0, offset + ~self.left, self.left)
        right = np.where(self.right < 0, offset + ~self.right, self.right)
        has_missing = self.kind & (_MISSING_IS_ZERO | _MISSING_IS_NAN) > 0
        is_left_missing = self.kind & _DEFAULT_LEFT > 0
        is_level = self.kind & _IS_CATEGORICAL > 0
        # Where missing cells have no direction of their own, they count as 0.
        if_missing = np.where(has_missing, is_left_missing, self.threshold >= 0.0) & ~is_level
        ends = np.cumsum(self.n_inner).tolist()
        leaf_ends = np.cumsum(self.n_inner + 1).tolist()
        trees = []
        for k, n_inner in enumerate(self.n_inner.tolist()):
            own = slice(ends[k] - n_inner, ends[k])
            leaves = np.full(n_inner + 1, LEAF, dtype=np.intp)
            values = self.leaf_value[leaf_ends[k] - n_inner - 1 : leaf_ends[k]]
            trees.append(
                Tree(
                    np.concatenate([self.input[own], leaves]),
                    np.concatenate([self.threshold[own], np.zeros(n_inner + 1)]),
                    np.concatenate([left[own], leaves]),
                    np.concatenate([right[own], leaves]),
                    np.concatenate([np.zeros(n_inner), values]),
                    np.concatenate([if_missing[own], leaves > 0]),
                    levels=_level_sets(blocks[k], is_level[own], self.threshold[own]),
                )
            )
        return trees


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
        levels[node] = frozenset(np.flatnonzero(bits).astype(np.float64).tolist())
    return levels


def _numbers(block: dict[str, str], name: str) -> Array:
    """Return a list of numbers of a saved tree."""
    return np.array(list(map(float, block.get(name, "").split())), dtype=np.float64)


def _all_numbers(blocks: Sequence[dict[str, str]], name: str, counts: Indices) -> Array:
    """Return the first numbers of lists of saved trees, one tree after the other."""
    found: list[str] = []
    for block, count in zip(blocks, counts.tolist(), strict=True):
        found += block.get(name, "").split()[:count]
    return np.array(list(map(float, found)), dtype=np.float64)
