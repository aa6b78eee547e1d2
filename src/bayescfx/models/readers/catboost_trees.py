"""Reader for CatBoost, from the JSON in which it saves a model."""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices
from bayescfx.models.readers.forms import Form, LinkName
from bayescfx.models.readers.sources import Task, UnreadableModelError, single_matrix
from bayescfx.models.readers.tree_parts import LEAF, Tree, TreeSums, per_class

#: The links of CatBoost's kinds of output.
_OUTPUTS: dict[str, LinkName] = {"RawFormulaVal": "identity", "Exponent": "exp"}
_HASH_BITS = 0xFFFFFFFF  # of a level's text, of which CatBoost stores the last 32 bits


@dataclass(frozen=True, eq=False)
class _Numbers:
    """The numbers that CatBoost computes from a table: float32, with hashes of levels.

    Parameters
    ----------
    model : object
        The model, which hashes levels.
    categorical : tuple of int
        The columns of levels.
    hashes : dict of str to float
        A cache of the hashes of levels.
    """

    model: Any
    categorical: tuple[int, ...]
    hashes: dict[str, float]

    def __call__(self, table: Any) -> Array:
        """Return the numbers ``(n, m)``."""
        if not self.categorical:
            return single_matrix(table)
        frame = pd.DataFrame(table)
        numbers = np.empty(frame.shape)
        for place in range(frame.shape[1]):
            cells = frame.iloc[:, place]
            if place in self.categorical:
                numbers[:, place] = self._levels(frame, cells.astype(object).map(str))
            else:
                numbers[:, [place]] = single_matrix(cells.to_frame())
        return numbers

    def _levels(self, frame: pd.DataFrame, texts: pd.Series[Any]) -> Array:
        """Return the hashes of levels ``(n,)``."""
        is_new = ~texts.isin(list(self.hashes)).to_numpy()
        if is_new.any():
            self.hashes.update(_hashes(self.model, frame[is_new], self.categorical))
        return np.array([self.hashes[text] for text in texts], dtype=np.float64)


def _hashes(model: Any, frame: pd.DataFrame, categorical: tuple[int, ...]) -> dict[str, float]:
    """Return the hashes of all levels in some rows, which CatBoost saves with a model."""
    pool = importlib.import_module("catboost").Pool(frame, cat_features=list(categorical))
    listed = _saved(model, pool)["features_info"]["cat_features_hash"]
    return {entry["value"]: float(int(entry["hash"]) & _HASH_BITS) for entry in listed}


@dataclass(frozen=True, eq=False)
class _Features:
    """The features of a saved model.

    Parameters
    ----------
    numeric, categorical : dict of int to int
        The column of each numeric and each categorical feature.
    goes_right : dict of int to bool
        Whether missing cells pass the splits of a numeric feature.
    """

    numeric: dict[int, int]
    categorical: dict[int, int]
    goes_right: dict[int, bool]


def read_catboost(task: Task) -> Form:
    """Return the form of a CatBoost model."""
    model = task.estimator
    saved = _saved(model)
    features = _features(saved["features_info"])
    scale, bias = saved["scale_and_bias"]
    base = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    link = _link(task)
    trees = [_oblivious_tree(tree, features) for tree in saved.get("oblivious_trees", ())]
    trees += [_other_tree(tree, features) for tree in saved.get("trees", ())]
    categorical = tuple(sorted(features.categorical.values()))
    columns = task.source.columns
    is_level = np.isin(np.arange(len(columns)), categorical)
    numbers = _Numbers(model, categorical, {})
    inputs = task.source.inputs(numbers, columns.turn(np.where(is_level, 0, 1)))
    single, group = per_class(trees, len(base))
    single = [tree.with_values(scale * tree.value) for tree in single]
    return TreeSums(inputs, single, base, group).output(link, task.label)


def _saved(model: Any, pool: Any = None) -> dict[str, Any]:
    """Return a model as CatBoost saves it, with the hashes of the levels in a pool."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=pool)
        saved: dict[str, Any] = json.loads(path.read_text())
    return saved


def _link(task: Task) -> LinkName:
    """Return how sums become the model's output."""
    model = task.estimator
    if task.method == "predict_proba":
        loss = str(model.get_all_params().get("loss_function", ""))
        return "softmax" if loss.partition(":")[0] == "MultiClass" else "expit"
    if getattr(model, "_estimator_type", "") == "classifier":
        raise UnreadableModelError(
            f"{task.class_name}.predict returns labels; pass bayescfx.probability(model, label)"
        )
    default = getattr(model, "_get_default_prediction_type", None)
    kind = default() if callable(default) else "RawFormulaVal"
    if kind not in _OUTPUTS:
        raise UnreadableModelError(f"CatBoost's output {kind} has several numbers or no known link")
    return _OUTPUTS[kind]


def _features(info: dict[str, Any]) -> _Features:
    """Return the columns of the features of a saved model."""
    numeric = info.get("float_features") or ()
    categorical = info.get("categorical_features") or ()
    treatments = _by_index(numeric, "nan_value_treatment")
    return _Features(
        _by_index(numeric, "flat_feature_index"),
        _by_index(categorical, "flat_feature_index"),
        {index: treatment == "AsTrue" for index, treatment in treatments.items()},
    )


def _by_index(features: Iterable[dict[str, Any]], entry: str) -> dict[int, Any]:
    """Return an entry of saved features, by their own numbers."""
    return {feature["feature_index"]: feature[entry] for feature in features}


@dataclass(frozen=True)
class _Split:
    """A split; rows that pass it go right in CatBoost.

    Parameters
    ----------
    column : int
        The column that it looks at.
    border : float
        Numbers above this pass.
    is_left_missing : bool
        Whether missing numbers do not pass.
    level : float or None
        The level that passes, for a split of levels.
    """

    column: int
    border: float
    is_left_missing: bool
    level: float | None = None

    @property
    def sends_missing_left(self) -> bool:
        """Whether missing cells go left in the tree as read, where the level of a split does."""
        return self.is_left_missing and self.level is None


def _split(saved: dict[str, Any], features: _Features) -> _Split:
    """Return a split of a saved tree."""
    kind = saved["split_type"]
    if kind == "FloatFeature":
        place = saved["float_feature_index"]
        border = float(np.float32(saved["border"]))
        return _Split(features.numeric[place], border, not features.goes_right[place])
    if kind == "OneHotFeature":
        column = features.categorical[saved["cat_feature_index"]]
        return _Split(column, 0.0, True, float(int(saved["value"]) & _HASH_BITS))
    if kind == "OnlineCtr":
        raise UnreadableModelError(
            "CatBoost encodes levels by statistics of the target (CTR); "
            "a larger one_hot_max_size avoids it"
        )
    raise UnreadableModelError(f"CatBoost's splits of the kind {kind} can't be read")


def _oblivious_tree(saved: dict[str, Any], features: _Features) -> tuple[Tree, Array]:
    """Return a symmetric tree as a full binary tree, and its values ``(n_nodes, groups)``.

    Nodes are numbered level by level; the children of node k are 2k + 1 and 2k + 2.
    """
    splits = [_split(split, features) for split in saved.get("splits") or ()]
    depth = len(splits)
    n_leaves = 2**depth
    leaf_values = np.asarray(saved["leaf_values"], dtype=np.float64).reshape(n_leaves, -1)
    position = np.arange(n_leaves)
    leaf = np.zeros(n_leaves, dtype=np.intp)
    for k in range(depth):  # the first split is the lowest bit of a leaf's number
        leaf |= (position >> (depth - 1 - k) & 1) << k
    values = np.concatenate([np.zeros((n_leaves - 1, leaf_values.shape[1])), leaf_values[leaf]])
    nodes = np.arange(n_leaves - 1)
    level_of = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    return _tree(splits, level_of, (2 * nodes + 1, 2 * nodes + 2), n_leaves), values


def _other_tree(saved: dict[str, Any], features: _Features) -> tuple[Tree, Array]:
    """Return a tree that is not symmetric, and its values ``(n_nodes, groups)``."""
    inner, leaves = _nodes_of(saved)
    place = {id(node): k for k, node in enumerate([*inner, *leaves])}
    left = np.array([place[id(node["left"])] for node in inner], dtype=np.intp)
    right = np.array([place[id(node["right"])] for node in inner], dtype=np.intp)
    splits = [_split(node["split"], features) for node in inner]
    leaf_values = np.array([np.atleast_1d(node["value"]) for node in leaves], dtype=np.float64)
    values = np.concatenate([np.zeros((len(inner), leaf_values.shape[1])), leaf_values])
    return _tree(splits, np.arange(len(splits)), (left, right), len(leaves)), values


def _nodes_of(saved: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the inner nodes and the leaves of a saved tree that is not symmetric."""
    inner: list[dict[str, Any]] = []
    leaves: list[dict[str, Any]] = []
    pending = [saved]
    while pending:
        node = pending.pop()
        if "split" in node:
            inner.append(node)
            pending += [node["left"], node["right"]]
        else:
            leaves.append(node)
    return inner, leaves


def _tree(
    splits: list[_Split], split_of: Indices, children: tuple[Indices, Indices], n_leaves: int
) -> Tree:
    """Return a tree from the splits of its inner nodes, which come before its leaves.

    Parameters
    ----------
    splits : list of _Split
        The splits.
    split_of : array of int of shape (n,)
        The split of each inner node.
    children : tuple of two arrays of int of shape (n,)
        The left and the right child of each inner node.
    n_leaves : int
        The number of leaves.
    """
    left, right = children
    leaves = np.full(n_leaves, LEAF, dtype=np.intp)
    column = np.array([split.column for split in splits], dtype=np.intp)[split_of]
    border = np.array([split.border for split in splits])[split_of]
    if_missing = np.array([split.sends_missing_left for split in splits], dtype=bool)[split_of]
    is_level = np.array([split.level is not None for split in splits], dtype=bool)[split_of]
    levels = {}
    for node in np.flatnonzero(is_level).tolist():
        level = splits[split_of[node]].level
        levels[node] = frozenset([] if level is None else [level])
    return Tree(
        np.concatenate([column, leaves]),
        np.concatenate([border, np.zeros(n_leaves)]),
        np.concatenate([np.where(is_level, right, left).astype(np.intp), leaves]),
        np.concatenate([np.where(is_level, left, right).astype(np.intp), leaves]),
        np.zeros(len(split_of) + n_leaves),
        np.concatenate([if_missing, leaves > 0]),
        levels=levels,
    )
