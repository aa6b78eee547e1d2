"""Reader for ONNX models that are one tree ensemble, one linear model or a network."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices
from bayescfx.models.adapters import onnx_by_column, onnx_content
from bayescfx.models.readers.forms import Form, Inputs, LinearModel, LinkName
from bayescfx.models.readers.onnx_networks import LAYERS, read_onnx_network
from bayescfx.models.readers.sources import Task, UnreadableModelError
from bayescfx.models.readers.tree_parts import LEAF, Tree, TreeSums, per_class

_READ = (
    "TreeEnsembleRegressor",
    "TreeEnsembleClassifier",
    "LinearRegressor",
    "LinearClassifier",
)
_PASSED_OVER = ("Identity", "Cast", "ZipMap", "Reshape", "Flatten")  # change no numbers
_LINKS: dict[str, LinkName] = {"NONE": "identity", "LOGISTIC": "expit", "SOFTMAX": "softmax"}


@dataclass(frozen=True)
class _Matrix:
    """The matrix that an ONNX session gets, from rows."""

    session: Any  # bayescfx.models.adapters.Onnx

    def __call__(self, rows: Any) -> Array:
        """Return the numbers ``(n, m)``."""
        (matrix,) = self.session.feed(rows).values()
        return np.asarray(matrix, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Node:
    """A node of an ONNX graph: its kind, and its attributes by name."""

    kind: str
    attributes: dict[str, Any]

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        return [text.decode() for text in self.attributes.get(name, ())]

    def integers(self, name: str) -> Indices:
        """Return whole numbers ``(n,)``."""
        return np.asarray(self.attributes.get(name, ()), dtype=np.intp)

    def floats(self, name: str) -> Array:
        """Return numbers ``(n,)``, which may be stored as a tensor."""
        tensor = self.attributes.get(f"{name}_as_tensor")
        if tensor is not None:
            helper = importlib.import_module("onnx.numpy_helper")
            return np.asarray(helper.to_array(tensor), dtype=np.float64)
        numbers = np.asarray(self.attributes.get(name, ()), dtype=np.float32)
        return numbers.astype(np.float64)

    def link(self) -> LinkName:
        """Return the link of the node's outputs."""
        name = self.attributes.get("post_transform", b"NONE").decode()
        if name not in _LINKS:
            raise UnreadableModelError(f"ONNX's transformation {name} of outputs has no known link")
        return _LINKS[name]


def read_onnx(task: Task) -> Form:
    """Return the form of an ONNX model."""
    session = task.estimator.session
    if onnx_by_column(session):
        raise UnreadableModelError("the ONNX model has one input per column")
    onnx, graph = _load_graph(session)
    inputs = task.source.inputs(_Matrix(task.estimator))
    if any(node.op_type in LAYERS for node in graph.node):
        return read_onnx_network(task, onnx, graph, inputs)
    node = _single_node(onnx, graph)
    if node.kind.startswith("Linear"):
        return _linear(task, node, inputs)
    return _ensemble(task, node, inputs)


def _load_graph(session: Any) -> tuple[Any, Any]:
    """Return the package ``onnx`` and the graph of a session."""
    try:
        onnx = importlib.import_module("onnx")
    except ImportError:
        raise UnreadableModelError("ONNX models are read with the package onnx") from None
    content = onnx_content(session)
    if content is None:
        raise UnreadableModelError("the ONNX session does not store what it was made from")
    return onnx, onnx.load_from_string(content).graph


def _single_node(onnx: Any, graph: Any) -> _Node:
    """Return the only node of a graph that computes something."""
    node = _find_node(graph)
    get = onnx.helper.get_attribute_value
    return _Node(node.op_type, {each.name: get(each) for each in node.attribute})


def _find_node(graph: Any) -> Any:
    """Return the only node that computes something; raise if it can't be read."""
    nodes = [node for node in graph.node if node.op_type not in _PASSED_OVER]
    others = [node.op_type for node in nodes if node.op_type not in _READ]
    if others:
        raise UnreadableModelError(f"the ONNX model has the operator {others[0]}")
    if len(nodes) != 1:
        raise UnreadableModelError(f"the ONNX model has {len(nodes)} operators")
    if nodes[0].input[0] not in {given.name for given in graph.input}:
        raise UnreadableModelError("the ONNX model converts its input first")
    return nodes[0]


#: The share of the difference of two classes' scores that is the log-odds, by link. The two rows
#: of a logistic pair are opposite.
_PAIR_FACTORS: dict[LinkName, float] = {"softmax": 1.0, "expit": 0.5}


def _linear(task: Task, node: _Node, inputs: Inputs) -> Form:
    """Return the form of a linear node; a classifier has one row of weights per class."""
    weights = node.floats("coefficients").reshape(-1, len(inputs))
    base = node.floats("intercepts")
    base = base if base.size else np.zeros(len(weights))
    link = node.link()
    if task.method == "predict_proba" and len(weights) == 2 and link in _PAIR_FACTORS:
        other = 1 - task.column
        factor = _PAIR_FACTORS[link]
        step = factor * (weights[task.column] - weights[other])
        return LinearModel(inputs, step, float(factor * (base[task.column] - base[other])), "expit")
    if len(weights) > 1 or link == "softmax":
        raise UnreadableModelError("the ONNX model has several outputs")
    return LinearModel(inputs, weights[0], float(base[0]), link)


def _ensemble(task: Task, node: _Node, inputs: Inputs) -> Form:
    """Return the form of a node of trees."""
    is_classifier = node.kind == "TreeEnsembleClassifier"
    if is_classifier and task.method != "predict_proba":
        raise UnreadableModelError("the first output of the ONNX model is a label")
    trees = _trees(node, "class" if is_classifier else "target")
    share = _share_of_tree(node, len(trees))
    base = node.floats("base_values")
    n_groups = trees[0][1].shape[1]
    base = base if len(base) == n_groups else np.zeros(n_groups)
    single, group = per_class(trees, n_groups)
    single = [tree.with_values(share * tree.value) for tree in single]
    return TreeSums(inputs, single, base, group).output(node.link(), task.label)


def _share_of_tree(node: _Node, n_trees: int) -> float:
    """Return the weight of each tree in the output."""
    shares = {b"SUM": 1.0, b"AVERAGE": 1.0 / n_trees}
    function = node.attributes.get("aggregate_function", b"SUM")
    if function not in shares:
        raise UnreadableModelError("the ONNX model is no sum of trees")
    return shares[function]


def _trees(node: _Node, prefix: str) -> list[tuple[Tree, Array]]:
    """Return the trees of a node, each with its values ``(n_nodes, groups)``."""
    tree_ids = node.integers("nodes_treeids")
    node_ids = node.integers("nodes_nodeids")
    # two classes may have one score, with the number of the second class
    numbers, group_of = np.unique(node.integers(f"{prefix}_ids"), return_inverse=True)
    n_groups = len(numbers)
    place = {key: k for k, key in enumerate(zip(tree_ids.tolist(), node_ids.tolist(), strict=True))}
    values = np.zeros((len(tree_ids), n_groups))
    leaves = zip(
        node.integers(f"{prefix}_treeids").tolist(),
        node.integers(f"{prefix}_nodeids").tolist(),
        group_of.tolist(),
        node.floats(f"{prefix}_weights").tolist(),
        strict=True,
    )
    for tree, leaf, group, weight in leaves:
        values[place[tree, leaf], group] += weight
    found = []
    for tree in dict.fromkeys(tree_ids.tolist()):
        rows = np.flatnonzero(tree_ids == tree)
        found.append((_tree(node, rows, node_ids), values[rows]))
    return found


def _tree(node: _Node, rows: Indices, node_ids: Indices) -> Tree:
    """Return the tree whose nodes are listed at some positions."""
    modes = np.array(node.texts("nodes_modes"))[rows]
    unknown = set(modes) - {"LEAF", "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"}
    if unknown:
        raise UnreadableModelError(f"ONNX's tests of the kind {min(unknown)} can't be read")
    is_leaf = modes == "LEAF"
    if_true = _places(node.integers("nodes_truenodeids")[rows], node_ids[rows])
    if_false = _places(node.integers("nodes_falsenodeids")[rows], node_ids[rows])
    is_turned = np.isin(modes, ["BRANCH_GT", "BRANCH_GTE"])  # x > t is not x <= t
    tracks = node.integers("nodes_missing_value_tracks_true")
    is_true_missing = tracks[rows] > 0 if tracks.size else np.zeros(len(rows), dtype=bool)
    return Tree(
        np.where(is_leaf, LEAF, node.integers("nodes_featureids")[rows]),
        node.floats("nodes_values")[rows],
        np.where(is_turned, if_false, if_true),
        np.where(is_turned, if_true, if_false),
        np.zeros(len(rows)),
        is_true_missing ^ is_turned,
        np.isin(modes, ["BRANCH_LT", "BRANCH_GTE"]),
    )


def _places(children: Indices, node_ids: Indices) -> Indices:
    """Return the positions of children among the nodes of a tree; 0 for those of leaves."""
    place = {number: k for k, number in enumerate(node_ids.tolist())}
    return np.array([place.get(number, 0) for number in children.tolist()], dtype=np.intp)
