"""Single trees, and ensembles made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.data.tables import Rows
from bayescfx.models.readers.forms import InputFunction, Inputs, LinkName, Tests, TreeEnsemble
from bayescfx.models.readers.sources import UnreadableModelError

LEAF = -1  # in place of an input or a test
#: The arrays of a tree, with one entry per node.
_ARRAYS: dict[str, Any] = {
    "input": np.intp,
    "threshold": np.float64,
    "left": np.intp,
    "right": np.intp,
    "value": np.float64,
    "if_missing": np.bool_,
    "is_strict": np.bool_,
}


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree with n nodes; its root is node 0.

    Parameters
    ----------
    input : array of int of shape (n,)
        The number that a node tests; -1 for a leaf.
    threshold : array of shape (n,)
        A row goes left if the number is at most this.
    left, right : array of int of shape (n,)
        The children of inner nodes.
    value : array of shape (n,)
        The summands of leaves.
    if_missing : mask of shape (n,)
        Whether a row goes left where the number is missing.
    is_strict : bool or mask of shape (n,)
        Whether a number equal to the threshold goes right.
    levels : dict of int to frozenset of float
        The levels that go left, by node, for nodes that test levels.
    """

    input: Indices
    threshold: Array
    left: Indices
    right: Indices
    value: Array
    if_missing: Mask
    is_strict: bool | Mask = False
    levels: dict[int, frozenset[float]] = field(default_factory=dict)

    def with_values(self, value: Array) -> Tree:
        """Return the tree with other summands ``(n,)``."""
        return replace(self, value=np.asarray(value, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class TreeSums:
    """Sums of trees, before a link.

    Parameters
    ----------
    inputs : Inputs
        The numbers that the trees test.
    trees : sequence of Tree
        The trees.
    base : array of shape (groups,)
        What is added to the sums.
    group : array of int of shape (t,), optional
        The sum to which each tree belongs; the first by default.
    """

    inputs: Inputs
    trees: Sequence[Tree]
    base: Array
    group: Indices | None = None

    def output(
        self, link: LinkName = "identity", label: int | None = None, slope: float = 1.0
    ) -> TreeEnsemble:
        """Return the form of one output.

        Parameters
        ----------
        link : str
            The link of the sums.
        label : int, optional
            The class whose probability is the output; none for a regression or a score.
        slope : float
            The factor of a sum before the link.
        """
        if len(self.base) == 1:
            return self._single(link, label, slope)
        if label is None:
            raise UnreadableModelError("the model returns several numbers per row")
        group = np.asarray(self.group)
        if link == "softmax":
            return make_ensemble(self, group, link=link, chosen=label)
        trees = [self.trees[place] for place in np.flatnonzero(group == label).tolist()]
        one = TreeSums(self.inputs, trees, self.base[[label]])
        return one._single(link, None, slope)

    def _single(self, link: LinkName, label: int | None, slope: float) -> TreeEnsemble:
        """Return the form of a single sum, which is the score of the second of two classes."""
        sums = make_ensemble(self, np.zeros(len(self.trees), dtype=np.intp), link=link)
        if label != 0:
            return rescaled_trees(sums, slope, 0.0)
        # the probability of the first class: 1 - expit(z) is expit(-z)
        return rescaled_trees(sums, -slope, 1.0 if link == "identity" else 0.0)


def rescaled_trees(form: TreeEnsemble, factor: float, shift: float) -> TreeEnsemble:
    """Return an ensemble whose sums are multiplied by a factor, with a number added."""
    return replace(form, value=form.value * factor, base=form.base * factor + shift)


def per_class(trees: Sequence[tuple[Tree, Array]], n_classes: int) -> tuple[list[Tree], Indices]:
    """Return trees with values ``(n_nodes, classes)`` as one tree per class, and their classes."""
    single = []
    for tree, values in trees:
        single += [tree.with_values(column) for column in values.T]
    return single, np.tile(np.arange(n_classes), len(trees)).astype(np.intp)


def make_ensemble(
    sums: TreeSums, group: Indices, *, link: LinkName = "identity", chosen: int = 0
) -> TreeEnsemble:
    """Return trees as an ensemble, in which equal tests are one."""
    joined = _joined_trees(sums.trees)
    sizes = [len(tree.input) for tree in sums.trees]
    starts = (np.cumsum(sizes, dtype=np.intp) - sizes).astype(np.intp)
    shift = np.repeat(starts, sizes)
    is_leaf = joined.input == LEAF
    tests, place = _distinct_tests(joined)
    node_test = np.full(len(is_leaf), LEAF, dtype=np.intp)
    node_test[~is_leaf] = place
    return TreeEnsemble(
        sums.inputs,
        tests,
        roots=starts,
        node_test=node_test,
        left=np.where(is_leaf, LEAF, joined.left + shift),
        right=np.where(is_leaf, LEAF, joined.right + shift),
        value=np.where(is_leaf, joined.value, 0.0),
        base=np.asarray(sums.base, dtype=np.float64),
        group=group,
        link=link,
        chosen=chosen,
    )


def _joined_trees(trees: Sequence[Tree]) -> Tree:
    """Return the nodes of trees one after the other; children are counted from each root."""
    levels: dict[int, frozenset[float]] = {}
    start = 0
    for tree in trees:
        for node, known in tree.levels.items():
            levels[start + node] = known
        start += len(tree.input)
    whole = {name: _joined_arrays(trees, name, kind) for name, kind in _ARRAYS.items()}
    return Tree(**whole, levels=levels)


def _joined_arrays(trees: Sequence[Tree], name: str, kind: Any) -> Any:
    """Return one of the arrays of trees, one after the other."""
    parts = [getattr(tree, name) for tree in trees]
    if any(isinstance(part, bool) for part in parts):  # one value for all nodes of a tree
        parts = [
            np.broadcast_to(part, len(tree.input)) for part, tree in zip(parts, trees, strict=True)
        ]
    return np.concatenate([np.empty(0, dtype=kind), *parts]).astype(kind, copy=False)


def _distinct_tests(nodes: Tree) -> tuple[Tests, Indices]:
    """Return the tests of inner nodes without repetitions, and the test of each such node."""
    sets: dict[frozenset[float], int] = {}
    set_of = np.full(len(nodes.input), -1.0)  # the set of levels of each node
    for node, levels in nodes.levels.items():
        set_of[node] = sets.setdefault(levels, len(sets))
    threshold = np.where(set_of >= 0, 0.0, nodes.threshold) + 0.0  # a zero has no sign
    is_strict = np.broadcast_to(nodes.is_strict, len(nodes.input))
    columns: list[Any] = [nodes.input, threshold, is_strict, nodes.if_missing, set_of]
    inner = np.flatnonzero(nodes.input != LEAF)
    first, place = _distinct_rows([column[inner] for column in columns])
    chosen = inner[first]
    known = list(sets)
    tests = Tests(
        input=nodes.input[chosen],
        threshold=threshold[chosen],
        is_strict=is_strict[chosen],
        if_missing=nodes.if_missing[chosen],
        levels={t: known[int(k)] for t, k in enumerate(set_of[chosen].tolist()) if k >= 0},
    )
    return tests, place


def _distinct_rows(columns: Sequence[Any]) -> tuple[Indices, Indices]:
    """Return the places of the distinct rows of a table, sorted, and the number of each row."""
    n_rows = len(columns[0])
    if not n_rows:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    varying = [column for column in columns if (column != column[0]).any()]
    order = np.lexsort(varying[::-1]) if varying else np.arange(n_rows)
    is_new = np.zeros(n_rows, dtype=np.bool_)
    is_new[0] = True
    for column in varying:
        ordered = column[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    place = np.empty(n_rows, dtype=np.intp)
    place[order] = np.cumsum(is_new) - 1
    return order[is_new], place


# ── sums of ensembles ──


def sum_ensembles(forms: Sequence[TreeEnsemble], weights: Sequence[float]) -> TreeEnsemble:
    """Return the weighted sum of ensembles with the link identity and one group each."""
    computed: list[InputFunction] = []
    blocks: list[Inputs] = []
    for form in forms:
        if form.inputs.compute not in computed:
            computed.append(form.inputs.compute)
            blocks.append(form.inputs)
    starts = np.cumsum([0, *map(len, blocks)])
    parts = []
    for form, weight in zip(forms, weights, strict=True):
        start = starts[computed.index(form.inputs.compute)]
        tests = replace(form.tests, input=form.tests.input + start)
        parts.append(replace(rescaled_trees(form, weight, 0.0), tests=tests))
    total = reduce(_added, parts)
    return _without_repetitions(replace(total, inputs=join_inputs(blocks)))


def join_inputs(blocks: Sequence[Inputs]) -> Inputs:
    """Return the numbers of several inputs side by side."""
    if len(blocks) == 1:
        return blocks[0]
    names = tuple(name for block in blocks for name in block.columns)
    directions = np.concatenate([block.direction for block in blocks])
    return Inputs(SideBySide(tuple(block.compute for block in blocks)), names, directions)


@dataclass(frozen=True)
class SideBySide:
    """Several functions of rows as one, with their numbers side by side."""

    parts: tuple[InputFunction, ...]

    def __call__(self, rows: Rows) -> Array:
        """Return the numbers ``(n, m)`` of all functions."""
        return np.concatenate([part(rows) for part in self.parts], axis=1)


def _added(a: TreeEnsemble, b: TreeEnsemble) -> TreeEnsemble:
    """Return the sum of two ensembles with the same inputs."""
    n_nodes = len(a.node_test)
    n_tests = len(a.tests)
    tests = Tests(
        input=np.concatenate([a.tests.input, b.tests.input]),
        threshold=np.concatenate([a.tests.threshold, b.tests.threshold]),
        is_strict=np.concatenate([a.tests.is_strict, b.tests.is_strict]),
        if_missing=np.concatenate([a.tests.if_missing, b.tests.if_missing]),
        levels=a.tests.levels | {n_tests + test: known for test, known in b.tests.levels.items()},
    )
    return replace(
        a,
        tests=tests,
        roots=np.concatenate([a.roots, b.roots + n_nodes]),
        node_test=np.concatenate([a.node_test, _moved(b.node_test, n_tests)]),
        left=np.concatenate([a.left, _moved(b.left, n_nodes)]),
        right=np.concatenate([a.right, _moved(b.right, n_nodes)]),
        value=np.concatenate([a.value, b.value]),
        base=a.base + b.base,
        group=np.concatenate([a.group, b.group]),
    )


def _moved(numbers: Indices, by: int) -> Indices:
    """Return numbers of nodes or tests, counted from a later start; -1 stays."""
    return np.where(numbers == LEAF, LEAF, numbers + by)


def _without_repetitions(form: TreeEnsemble) -> TreeEnsemble:
    """Return an ensemble in which equal tests are one."""
    tests = form.tests
    unused = np.zeros(len(tests), dtype=np.intp)
    value = np.zeros(len(tests))
    nodes = Tree(tests.input, tests.threshold, unused, unused, value, tests.if_missing)
    nodes = replace(nodes, is_strict=tests.is_strict, levels=tests.levels)
    distinct, place = _distinct_tests(nodes)
    new_test = np.append(place, LEAF)  # the last one for leaves, whose test is -1
    return replace(form, tests=distinct, node_test=new_test[form.node_test])
