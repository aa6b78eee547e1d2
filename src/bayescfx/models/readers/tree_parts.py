"""Single trees, and ensembles made from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.data.tables import Rows
from bayescfx.models.readers.forms import InputFunction, Inputs, LinkName, Tests, TreeEnsemble

LEAF = -1  # in place of an input or a test


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


def make_ensemble(
    inputs: Inputs,
    trees: Sequence[Tree],
    base: Array,
    *,
    group: Indices | None = None,
    link: LinkName = "identity",
    chosen: int = 0,
) -> TreeEnsemble:
    """Return trees as an ensemble, in which equal tests are one."""
    sizes = [len(tree.input) for tree in trees]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp) if trees else _no_nodes()
    tests, node_test = _distinct_tests(trees, starts)
    is_leaf = node_test == LEAF
    shift = np.repeat(starts, sizes)
    left = _joined([tree.left for tree in trees], np.intp) + shift
    right = _joined([tree.right for tree in trees], np.intp) + shift
    value = _joined([tree.value for tree in trees], np.float64)
    return TreeEnsemble(
        inputs,
        tests,
        roots=starts,
        node_test=node_test,
        left=np.where(is_leaf, LEAF, left),
        right=np.where(is_leaf, LEAF, right),
        value=np.where(is_leaf, value, 0.0),
        base=np.asarray(base, dtype=np.float64).reshape(-1),
        group=np.zeros(len(trees), dtype=np.intp) if group is None else group,
        link=link,
        chosen=chosen,
    )


def _distinct_tests(trees: Sequence[Tree], starts: Indices) -> tuple[Tests, Indices]:
    """Return the tests of all nodes without repetitions, and the test of each node."""
    input_ = _joined([tree.input for tree in trees], np.intp)
    level_sets: dict[frozenset[float], int] = {}
    set_of = np.full(len(input_), LEAF)  # the set of levels of each node
    for tree, start in zip(trees, starts, strict=True):
        for node, levels in tree.levels.items():
            set_of[start + node] = level_sets.setdefault(levels, len(level_sets))
    strict = [np.broadcast_to(tree.is_strict, len(tree.input)) for tree in trees]
    threshold = _joined([tree.threshold for tree in trees], np.float64)
    if_missing = _joined([tree.if_missing for tree in trees], np.bool_)
    columns = [input_, np.where(set_of >= 0, 0.0, threshold), _joined(strict, np.bool_)]
    columns += [if_missing, set_of]
    inner = np.flatnonzero(input_ != LEAF)
    keys = np.stack([np.asarray(column, dtype=np.float64)[inner] for column in columns], axis=1)
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    node_test = np.full(len(input_), LEAF, dtype=np.intp)
    node_test[inner] = place.reshape(-1)
    sets = list(level_sets)
    levels_of = {test: sets[int(key)] for test, key in enumerate(distinct[:, 4]) if key >= 0}
    tests = Tests(
        input=distinct[:, 0].astype(np.intp),
        threshold=distinct[:, 1],
        is_strict=distinct[:, 2] > 0,
        if_missing=distinct[:, 3] > 0,
        levels=levels_of,
    )
    return tests, node_test


def _joined(parts: Sequence[Any], dtype: type) -> Any:
    """Return arrays ``(n_i,)`` one after the other."""
    return np.concatenate([np.empty(0, dtype=dtype), *parts]).astype(dtype)


def _no_nodes() -> Indices:
    return np.empty(0, dtype=np.intp)


def sum_ensembles(forms: Sequence[TreeEnsemble], weights: Sequence[float]) -> TreeEnsemble:
    """Return the weighted sum of ensembles with the link identity."""
    places: list[Indices] = []
    blocks: list[Inputs] = []
    n_inputs = 0
    for form in forms:
        place = next((k for k, b in enumerate(blocks) if b.compute == form.inputs.compute), None)
        if place is None:
            blocks.append(form.inputs)
            places.append(np.arange(n_inputs, n_inputs + len(form.inputs), dtype=np.intp))
            n_inputs += len(form.inputs)
        else:
            start = sum(len(block) for block in blocks[:place])
            places.append(np.arange(start, start + len(form.inputs), dtype=np.intp))
    return _concatenated(join_inputs(blocks), forms, places, weights)


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


def _concatenated(
    inputs: Inputs,
    forms: Sequence[TreeEnsemble],
    places: Sequence[Indices],
    weights: Sequence[float],
) -> TreeEnsemble:
    """Return ensembles one after the other; `places` are their inputs among all."""
    first_node = np.cumsum([0, *(len(form.node_test) for form in forms)])
    first_test = np.cumsum([0, *(len(form.tests) for form in forms)])
    levels: dict[int, frozenset[float]] = {}
    for form, start in zip(forms, first_test, strict=False):
        levels |= {int(start) + test: known for test, known in form.tests.levels.items()}
    pairs = list(zip(forms, places, strict=True))
    tests = Tests(
        input=_joined([place[form.tests.input] for form, place in pairs], np.intp),
        threshold=_joined([form.tests.threshold for form in forms], np.float64),
        is_strict=_joined([form.tests.is_strict for form in forms], np.bool_),
        if_missing=_joined([form.tests.if_missing for form in forms], np.bool_),
        levels=levels,
    )
    base = sum(weight * form.base for form, weight in zip(forms, weights, strict=True))
    return TreeEnsemble(
        inputs,
        tests,
        roots=_shifted([form.roots for form in forms], first_node),
        node_test=_shifted([form.node_test for form in forms], first_test),
        left=_shifted([form.left for form in forms], first_node),
        right=_shifted([form.right for form in forms], first_node),
        value=_joined([f.value * w for f, w in zip(forms, weights, strict=True)], np.float64),
        base=np.asarray(base, dtype=np.float64).reshape(-1),
        group=_joined([form.group for form in forms], np.intp),
    )


def _shifted(parts: Sequence[Indices], starts: Indices) -> Indices:
    """Return numbers one after the other, each part counted from its start; -1 stays."""
    moved = [np.where(part == LEAF, LEAF, part + s) for part, s in zip(parts, starts, strict=False)]
    return np.asarray(_joined(moved, np.intp), dtype=np.intp)
