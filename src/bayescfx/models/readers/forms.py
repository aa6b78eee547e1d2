"""Flat forms of models that can be read: tree ensembles, linear models and ReLU networks.

A form says everything about a model: which numbers it computes from the columns of a row (its
*inputs*), and its output as a function of them. It predicts, so that it can be compared with the
model itself, and it can be searched exactly (``search/exact.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
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
        passed = tested <= self.limit
        if self.levels:
            test = np.flatnonzero(self.is_of_levels)
            passed[:, test] = self.pass_levels(test, tested[:, test])
        is_missing = np.isnan(tested)
        if is_missing.any():
            passed = np.where(is_missing, self.if_missing, passed)
        return passed

    def take(self, chosen: Indices) -> Tests:
        """Return some of the tests."""
        levels = {k: self.levels[t] for k, t in enumerate(chosen.tolist()) if t in self.levels}
        return Tests(
            self.input[chosen],
            self.threshold[chosen],
            self.is_strict[chosen],
            self.if_missing[chosen],
            levels,
        )

    @cached_property
    def limit(self) -> Array:
        """The largest number ``(s,)`` that passes each test; nan if none does."""
        below = np.nextafter(self.threshold, -np.inf)  # ``x < t`` is ``x <= s`` with s next to t
        below[np.isneginf(self.threshold)] = np.nan
        return np.where(self.is_strict, below, self.threshold)

    def pass_levels(self, test: Indices, numbers: Array) -> Mask:
        """Return the outcomes of tests of levels ``(n,)``, each for numbers ``(..., n)``."""
        known, row, members = self._level_table
        place = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.asarray(members[row[test], place] & (known[place] == numbers))

    @cached_property
    def is_of_levels(self) -> Mask:
        """Whether each test ``(s,)`` is one of levels."""
        found = np.zeros(len(self), dtype=np.bool_)
        found[list(self.levels)] = True
        return found

    @cached_property
    def _level_table(self) -> tuple[Array, Indices, Mask]:
        """All levels ``(l,)``; the row of each test ``(s,)``; which levels pass, ``(rows, l)``."""
        sizes = [len(levels) for levels in self.levels.values()]
        listed = np.fromiter(chain.from_iterable(self.levels.values()), np.float64, sum(sizes))
        known, place = np.unique(listed, return_inverse=True)
        members = np.zeros((len(sizes), max(len(known), 1)), dtype=np.bool_)
        members[np.repeat(np.arange(len(sizes)), sizes), place.ravel()] = True
        row = np.zeros(len(self), dtype=np.intp)
        row[list(self.levels)] = np.arange(len(sizes))
        return known if len(known) else np.array([np.nan]), row, members


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
        leaf = self.leaves(self.inputs.compute(rows))
        sums = np.zeros((len(leaf), len(self.base)))
        for group in range(len(self.base)):
            sums[:, group] = self.value[leaf[:, self.group == group]].sum(axis=1)
        return sums + self.base

    def leaves(self, numbers: Array) -> Indices:
        """Return the leaf ``(n, t)`` of each tree for rows of numbers ``(n, m)``."""
        n_rows = len(numbers)
        if not len(self.tests):
            return np.tile(self.roots, (n_rows, 1))
        nodes = _NodeTests(self, has_missing=bool(np.isnan(numbers).any()))
        flat = np.ascontiguousarray(numbers).ravel()
        start = np.repeat(np.arange(n_rows) * numbers.shape[1], len(self.roots))
        found = np.tile(self.roots, n_rows)
        open_places = np.flatnonzero(self.node_test[found] >= 0)
        while len(open_places):
            node = found[open_places]
            node = nodes.children(node, flat[start[open_places] + nodes.input[node]])
            found[open_places] = node
            open_places = open_places[self.node_test[node] >= 0]
        return found.reshape(n_rows, len(self.roots))

    def predict(self, rows: Rows) -> Array:
        """Return the outputs ``(n,)``."""
        return apply_link(self.link, self.raw(rows), self.chosen)


class _NodeTests:
    """The tests of an ensemble by node, for rows that go from the roots to the leaves."""

    def __init__(self, form: TreeEnsemble, *, has_missing: bool) -> None:
        test = np.maximum(form.node_test, 0)
        self.form = form
        self.has_missing = has_missing
        self.input = form.tests.input[test]
        self.limit = form.tests.limit[test]
        self.is_of_levels = form.tests.is_of_levels[test]
        self.both = np.stack([form.right, form.left], axis=1).ravel()

    def children(self, node: Indices, tested: Array) -> Indices:
        """Return the next nodes ``(n,)`` of rows at inner nodes that test these numbers."""
        tests = self.form.tests
        passed = np.asarray(tested <= self.limit[node])
        if tests.levels:
            at = np.flatnonzero(self.is_of_levels[node])
            passed[at] = tests.pass_levels(self.form.node_test[node[at]], tested[at])
        if self.has_missing:
            at = np.flatnonzero(np.isnan(tested))
            passed[at] = tests.if_missing[self.form.node_test[node[at]]]
        return np.asarray(self.both[2 * node + passed])


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
