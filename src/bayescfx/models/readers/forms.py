"""Flat forms of models that can be read: tree ensembles, linear models and ReLU networks.

A form says everything about a model: which numbers it computes from the columns of a row (its
*inputs*), and its output as a function of them. It predicts, so that it can be compared with the
model itself, and it can be searched exactly (``search/exact.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import expit, logit

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.data.tables import Rows

#: Numbers ``(n, k)`` computed from the cells of some rows; nan for missing cells.
InputFunction: TypeAlias = Callable[[Rows], Array]
#: How a raw score becomes an output: always strictly increasing.
LinkName: TypeAlias = Literal["identity", "exp", "expit", "softmax", "expm1"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """The numbers that a model computes from single columns of a row.

    Parameters
    ----------
    compute : callable
        Takes rows as the model gets them, returns numbers of shape (n, m); nan where missing.
    columns : tuple of names or positions, of length m
        The column of the rows that each number is computed from; always a single one.
    direction : array of int of shape (m,)
        1 where the number does not fall and -1 where it does not rise as the column's value rises;
        0 if neither is known, as for codes of levels.
    """

    compute: InputFunction
    columns: tuple[Hashable, ...]
    direction: Indices

    def __len__(self) -> int:
        return len(self.columns)


@dataclass(frozen=True, eq=False)
class Tests:
    """The tests of the inner nodes of trees, each distinct test once.

    A test of a number x is true if ``x <= threshold`` (``x < threshold`` where strict), or, for a
    test of levels, if x is one of them. Where x is missing, the test is `if_missing`.

    Parameters
    ----------
    input : array of int of shape (s,)
        The number that is tested.
    threshold : array of shape (s,)
        The threshold; not used for tests of levels.
    is_strict : mask of shape (s,)
        Whether equality fails the test.
    if_missing : mask of shape (s,)
        The outcome for a missing number.
    levels : dict of int to frozenset of float
        The levels of tests of levels, by test.
    """

    input: Indices
    threshold: Array
    is_strict: Mask
    if_missing: Mask
    levels: dict[int, frozenset[float]]

    def __len__(self) -> int:
        return len(self.input)

    def outcomes(self, numbers: Array) -> Mask:
        """Return the outcome of each test for rows of numbers ``(n, m)``; shape (n, s)."""
        tested = numbers[:, self.input]
        passed = np.where(self.is_strict, tested < self.threshold, tested <= self.threshold)
        for test, levels in self.levels.items():
            passed[:, test] = np.isin(tested[:, test], list(levels))
        return np.where(np.isnan(tested), self.if_missing, passed)


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """A sum of decision trees, with a link.

    Nodes of all trees are numbered together. An inner node has a test and two children: where the
    test is true a row goes to `left`, otherwise to `right`. A leaf has the test -1.

    Parameters
    ----------
    inputs : Inputs
        The numbers that the tests look at.
    tests : Tests
        The tests of inner nodes.
    roots : array of int of shape (t,)
        The root of each tree.
    node_test : array of int of shape (n_nodes,)
        The test of each node; -1 for a leaf.
    left, right : array of int of shape (n_nodes,)
        The children of inner nodes.
    value : array of shape (n_nodes,)
        The summand of each leaf, with learning rates and averaging included.
    base : array of shape (groups,)
        What is added to the sums.
    group : array of int of shape (t,)
        The sum to which each tree belongs; all 0 unless the link is ``"softmax"``.
    link : str
        How the sum becomes the output: ``"identity"``, ``"exp"``, ``"expit"``, or ``"softmax"`` of
        several sums, of which the output is the share of sum `chosen`.
    chosen : int
        The sum whose share is the output, for ``"softmax"``.
    """

    inputs: Inputs
    tests: Tests
    roots: Indices
    node_test: Indices
    left: Indices
    right: Indices
    value: Array
    base: Array
    group: Indices
    link: LinkName = "identity"
    chosen: int = 0

    def raw(self, rows: Rows) -> Array:
        """Return the sums before the link, of shape (n, groups)."""
        outcomes = self.tests.outcomes(self.inputs.compute(rows))
        node = np.repeat(self.roots[None], len(outcomes), axis=0)  # (n, t)
        line = np.arange(len(outcomes))[:, None]
        is_inner = self.node_test[node] >= 0
        while is_inner.any():
            passed = outcomes[line, np.maximum(self.node_test[node], 0)]
            child = np.where(passed, self.left[node], self.right[node])
            node = np.where(is_inner, child, node)
            is_inner = self.node_test[node] >= 0
        sums = np.zeros((len(outcomes), len(self.base)))
        for group in range(len(self.base)):
            sums[:, group] = self.value[node[:, self.group == group]].sum(axis=1)
        return sums + self.base

    def predict(self, rows: Rows) -> Array:
        """Return the outputs ``(n,)``."""
        return apply_link(self.link, self.raw(rows), self.chosen)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A weighted sum of numbers, with a link.

    Parameters
    ----------
    inputs : Inputs
        The numbers.
    weights : array of shape (m,)
        Their weights.
    base : float
        What is added.
    link : str
        How the sum becomes the output.
    """

    inputs: Inputs
    weights: Array
    base: float
    link: LinkName = "identity"

    def raw(self, rows: Rows) -> Array:
        """Return the sums before the link, of shape (n, 1)."""
        return (self.inputs.compute(rows) @ self.weights + self.base)[:, None]

    def predict(self, rows: Rows) -> Array:
        """Return the outputs ``(n,)``."""
        return apply_link(self.link, self.raw(rows))


@dataclass(frozen=True, eq=False)
class ReluNetwork:
    """A feed-forward network with one output and the activation ``max(0, z)``, with a link.

    Layer k computes ``z = weights[k] @ a + biases[k]`` from the activations a of the layer before,
    those of layer 0 being the inputs. Activations are ``max(0, z)``, except in the last layer,
    whose only z is the sum before the link.

    Parameters
    ----------
    inputs : Inputs
        The numbers that the first layer gets.
    weights : tuple of arrays of shape (h_k, h_{k-1})
        The weights of each layer, at least two; h_0 is the number of inputs, the last h_k is 1.
    biases : tuple of arrays of shape (h_k,)
        The biases of each layer.
    link : str
        How the sum becomes the output.
    """

    inputs: Inputs
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    link: LinkName = "identity"

    def raw(self, rows: Rows) -> Array:
        """Return the sums before the link, of shape (n, 1)."""
        return self.forward(self.inputs.compute(rows))

    def forward(self, numbers: Array) -> Array:
        """Return the sums before the link, of shape (n, 1), of inputs ``(n, m)``."""
        activations = numbers
        for weights, biases in zip(self.weights[:-1], self.biases[:-1], strict=True):
            activations = np.maximum(activations @ weights.T + biases, 0.0)
        return np.asarray(activations @ self.weights[-1].T + self.biases[-1])

    def predict(self, rows: Rows) -> Array:
        """Return the outputs ``(n,)``."""
        return apply_link(self.link, self.raw(rows))


Form: TypeAlias = TreeEnsemble | LinearModel | ReluNetwork


def apply_link(link: LinkName, raw: Array, chosen: int = 0) -> Array:
    """Return the outputs ``(n,)`` of raw sums ``(n, groups)``."""
    if link == "softmax":
        powers = np.exp(raw - raw.max(axis=1, keepdims=True))
        return np.asarray(powers[:, chosen] / powers.sum(axis=1))
    total = raw[:, 0]
    functions: dict[str, Any] = {
        "exp": np.exp,
        "expm1": np.expm1,
        "expit": expit,
    }
    return np.asarray(functions[link](total)) if link in functions else total


def invert_link(link: LinkName, output: float) -> float:
    """Return the raw sum that gives an output; infinite where the link never reaches it."""
    if link == "identity":
        return output
    if link == "exp":
        return float(np.log(output)) if output > 0.0 else -np.inf
    if link == "expm1":
        return float(np.log1p(output)) if output > -1.0 else -np.inf
    if link == "expit":
        return float(logit(min(max(output, 0.0), 1.0)))
    raise ValueError(f"the link {link!r} has no inverse")
