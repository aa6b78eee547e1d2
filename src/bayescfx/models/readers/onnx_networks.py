"""Reader for ONNX graphs that are feed-forward networks: one chain of layers with ReLU."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.models.readers.forms import Form, Inputs, LinkName
from bayescfx.models.readers.network_steps import (
    Affine,
    Step,
    class_sign,
    elementwise,
    network_form,
)
from bayescfx.models.readers.sources import Task, UnreadableModelError, check_probability

#: Operators that only networks have.
LAYERS = ("Gemm", "MatMul")
_PASSED_OVER = ("Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Dropout")


@dataclass(frozen=True, eq=False)
class _Node:
    """A node of a chain: what it computes from the node before, whose width may be known.

    Parameters
    ----------
    kind : str
        The operator.
    attributes : dict
        Its attributes by name.
    constants : dict of int to array
        Its constant inputs, by position.
    variable : str
        The name of its only other input.
    """

    kind: str
    attributes: dict[str, Any]
    constants: dict[int, Array]
    variable: str


@dataclass(frozen=True, eq=False)
class _Graph:
    """A graph, which is read from its output back to its input."""

    producers: dict[str, Any]
    constants: dict[str, Array]
    attribute: Callable[[Any], Any]

    def chain(self, name: str) -> list[_Node]:
        """Return the nodes that change numbers, from the one that computes a value backwards."""
        found = []
        producer = self.producers.get(name)
        while producer is not None:
            node = self._as_node(producer)
            if node.kind not in _PASSED_OVER:
                found.append(node)
            producer = self.producers.get(node.variable)
        return found

    def _as_node(self, node: Any) -> _Node:
        """Return a node with its constants; raise if it has several other inputs."""
        places = {place: name for place, name in enumerate(node.input) if name}
        constants = {
            place: self.constants[name] for place, name in places.items() if name in self.constants
        }
        variables = set(places.values()) - set(self.constants)
        if len(variables) != 1:
            raise UnreadableModelError(f"the ONNX network has branches at {node.op_type}")
        attributes = {each.name: self.attribute(each) for each in node.attribute}
        return _Node(node.op_type, attributes, constants, variables.pop())

    def is_pair(self, node: Any) -> bool:
        """Return whether a node joins ``1 - p`` and ``p``."""
        if node.op_type != "Concat" or len(node.input) != 2:
            return False
        first = self.producers.get(node.input[0])
        return first is not None and first.op_type == "Sub" and first.input[1] == node.input[1]


def read_onnx_network(task: Task, onnx: Any, content: Any, inputs: Inputs) -> Form:
    """Return the form of a network.

    Parameters
    ----------
    task : Task
        The task; its estimator is an ONNX session.
    onnx : module
        The package ``onnx``.
    content : object
        The graph.
    inputs : Inputs
        The matrix that the session gets.
    """
    graph = _as_graph(onnx, content)
    session = task.estimator
    name = session.output or session.session.get_outputs()[0].name
    if task.method == "predict_proba":
        name = _find_second(graph, name)
    chain = graph.chain(name)
    link: LinkName = "identity"
    steps: list[Step] = []
    if chain and chain[0].kind == "Sigmoid":
        link = "expit"
        steps.append(class_sign(task))
        chain = chain[1:]
    check_probability(task, link, "the ONNX network")
    steps += [_step(node) for node in chain]
    return network_form(inputs, reversed(steps), link)


def _as_graph(onnx: Any, content: Any) -> _Graph:
    """Return a graph with its nodes by the names of their outputs."""
    to_array = importlib.import_module("onnx.numpy_helper").to_array
    constants = {each.name: np.asarray(to_array(each)) for each in content.initializer}
    producers = {}
    for node in content.node:
        if node.op_type == "Constant":
            values = [each for each in node.attribute if each.name == "value"]
            if values:
                constants[node.output[0]] = np.asarray(to_array(values[0].t))
                continue
        producers.update(dict.fromkeys(node.output, node))
    return _Graph(producers, constants, onnx.helper.get_attribute_value)


def _find_second(graph: _Graph, name: str) -> str:
    """Return the value p of a classifier that returns ``[1 - p, p]``."""
    node = graph.producers.get(name)
    while node is not None and node.op_type in (*_PASSED_OVER, "ZipMap"):
        node = graph.producers.get(node.input[0])
    if node is None or not graph.is_pair(node):
        raise UnreadableModelError("the ONNX network does not return two probabilities")
    return str(node.input[1])


# ── nodes as steps ──


def _step(node: _Node) -> Step:
    """Return a node as a step; raise if it is none that can be read."""
    if node.kind == "Relu":
        return "relu"
    if node.kind not in _STEPS:
        where = " before the end" if node.kind == "Sigmoid" else ""
        raise UnreadableModelError(f"the ONNX network has the operator {node.kind}{where}")
    return _STEPS[node.kind](node)


def _constant(node: _Node, place: int) -> Array:
    """Return a constant input as float64."""
    if place not in node.constants:
        raise UnreadableModelError(f"the ONNX network has a {node.kind} without constants")
    return np.asarray(node.constants[place], dtype=np.float64)


def _gemm(node: _Node) -> Step:
    """Return ``alpha A' B' + beta C`` with A the numbers of the step before."""
    given = node.attributes
    if given.get("transA", 0):
        raise UnreadableModelError("the ONNX network has a Gemm of turned rows")
    weights = _constant(node, 1) * given.get("alpha", 1.0)
    weights = weights if given.get("transB", 0) else weights.T
    bias = np.zeros(len(weights))
    if 2 in node.constants:
        bias = bias + _constant(node, 2).reshape(-1) * given.get("beta", 1.0)
    return Affine(weights, bias)


def _matmul(node: _Node) -> Step:
    weights = _constant(node, 1)
    if weights.ndim != 2:
        raise UnreadableModelError("the ONNX network has a MatMul without a matrix")
    return Affine(weights.T, np.zeros(weights.shape[1]))


@dataclass(frozen=True)
class _Elementwise:
    """A step that adds to each number, or multiplies it, with constants of any width."""

    factor: Callable[[Array], Array]
    shift: Callable[[Array], Array]
    is_ordered: bool = False

    def __call__(self, node: _Node) -> Step:
        """Return the step."""
        (place,) = node.constants
        if self.is_ordered and place != 1:
            raise UnreadableModelError(f"the ONNX network has a {node.kind} of a constant")
        values = _constant(node, place).reshape(-1)
        return elementwise(self.factor(values), self.shift(values))


def _scaler(node: _Node) -> Step:
    """Return ``(a - offset) * scale``."""
    offset = np.asarray(node.attributes["offset"], dtype=np.float32).astype(np.float64)
    scale = np.asarray(node.attributes["scale"], dtype=np.float32).astype(np.float64)
    return elementwise(scale, -offset * scale)


_STEPS: dict[str, Callable[[_Node], Step]] = {
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Scaler": _scaler,
    "Add": _Elementwise(np.ones_like, lambda values: values),
    "Sub": _Elementwise(np.ones_like, lambda values: -values, is_ordered=True),
    "Mul": _Elementwise(lambda values: values, np.zeros_like),
    "Div": _Elementwise(lambda values: 1.0 / values, np.zeros_like, is_ordered=True),
}
