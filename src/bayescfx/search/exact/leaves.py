"""The leaves of a tree ensemble as packed bits, over the cells of the features.

Each tree's leaves are sorted by value and are the bits of one or more 64-bit words. A box of cells
meets the leaves whose bits remain after one AND per feature, and the lowest and highest bit of a
word give the smallest and largest summand of its tree inside the box.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.models.readers.forms import TreeEnsemble
from bayescfx.search.exact.cells import FeatureCells, Line, Listing, cut_features
from bayescfx.space.region import Region

Words = NDArray[np.uint64]
BITS = 64


@dataclass(frozen=True, eq=False)
class LeafTable:
    """A tree ensemble, over the cells of the features of a space.

    Parameters
    ----------
    form : TreeEnsemble
        The model.
    cells : list of Line or Listing
        The cells of each feature that is tested.
    upper, lower : list of arrays of shape (c, words)
        Per tested feature: which leaves a row may be in whose cell is at most, or at least, the
        given one. For a `Listing` both are the leaves of the given cell alone.
    missing : array of shape (features, words)
        Which leaves a row may be in that misses the cell of the feature.
    values : array of shape (words, 64)
        The summands of the leaves, rising within a tree.
    tree_start : array of int of shape (t,)
        The first word of each tree.
    group : array of int of shape (t,)
        The sum to which each tree belongs.
    full : array of shape (words,)
        The bits that stand for leaves.
    weight : list of arrays of shape (t, c)
        Per tested feature: how much the test at each cut matters to each tree. For a `Listing`
        there is one column.
    """

    form: TreeEnsemble
    cells: list[FeatureCells]
    upper: list[Words]
    lower: list[Words]
    missing: Words
    values: Array
    tree_start: Indices
    group: Indices
    full: Words
    weight: list[Array]


@dataclass(frozen=True, eq=False)
class _NodeBounds:
    """Which cells lead to each node; arrays by node."""

    low: Indices  # (n_nodes, features): lowest cell of features on a line
    high: Indices  # (n_nodes, features): highest cell
    listed: dict[int, Mask]  # (n_nodes, c) by place of a `Listing` among the features
    missing: Mask  # (n_nodes, features): reached where the cell is missing
    tree: Indices  # (n_nodes,)
    depth: Indices  # (n_nodes,)


def make_leaf_table(form: TreeEnsemble, region: Region) -> LeafTable:
    """Return the table of a model; `region` is of any query of the space."""
    cells = cut_features(form, form.tests, region)
    nodes = _follow_nodes(form, cells)
    order, tree_start, n_words = _arrange_leaves(form, nodes)
    values = np.full(n_words * BITS, np.nan)
    is_leaf = order >= 0
    values[is_leaf] = form.value[order[is_leaf]]
    leaf = np.maximum(order, 0)
    upper: list[Words] = []
    lower: list[Words] = []
    for place, each in enumerate(cells):
        if isinstance(each, Listing):
            own = pack(nodes.listed[place][leaf].T & is_leaf)
            upper.append(own)
            lower.append(own)
        else:
            bits = np.flatnonzero(is_leaf)
            first = _set_bits(each.n_cells, n_words, nodes.low[leaf[bits], place], bits)
            upper.append(np.bitwise_or.accumulate(first, axis=0))
            last = _set_bits(each.n_cells, n_words, nodes.high[leaf[bits], place], bits)
            lower.append(np.bitwise_or.accumulate(last[::-1], axis=0)[::-1])
    return LeafTable(
        form=form,
        cells=cells,
        upper=upper,
        lower=lower,
        missing=pack(nodes.missing[leaf].T & is_leaf),
        values=values.reshape(n_words, BITS),
        tree_start=tree_start,
        group=form.group,
        full=pack(is_leaf[None])[0],
        weight=_test_weights(form, cells, nodes),
    )


def _set_bits(n_rows: int, n_words: int, rows: Indices, bits: Indices) -> Words:
    """Return words ``(n_rows, n_words)`` with some bits set, each in its own row."""
    words = np.zeros((n_rows, n_words), dtype=np.uint64)
    values = np.uint64(1) << (bits % BITS).astype(np.uint64)
    np.bitwise_or.at(words, (rows, bits // BITS), values)
    return words


def pack(bits: Mask) -> Words:
    """Return rows of bits ``(n, words * 64)`` as words ``(n, words)``; the first bit is lowest."""
    packed = np.packbits(np.ascontiguousarray(bits), axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)


def _follow_nodes(form: TreeEnsemble, cells: list[FeatureCells]) -> _NodeBounds:
    """Return which cells lead to each node, level by level from the roots."""
    n_nodes = len(form.node_test)
    last = np.array([each.n_cells - 1 for each in cells], dtype=np.intp)
    listed = {
        place: np.ones((n_nodes, each.n_cells), dtype=np.bool_)
        for place, each in enumerate(cells)
        if isinstance(each, Listing)
    }
    nodes = _NodeBounds(
        low=np.zeros((n_nodes, len(cells)), dtype=np.intp),
        high=np.repeat(last[None], n_nodes, axis=0),
        listed=listed,
        missing=np.ones((n_nodes, len(cells)), dtype=np.bool_),
        tree=np.zeros(n_nodes, dtype=np.intp),
        depth=np.zeros(n_nodes, dtype=np.intp),
    )
    nodes.tree[form.roots] = np.arange(len(form.roots))
    places = _place_tests(form, cells)
    level = form.roots[form.node_test[form.roots] >= 0]
    while len(level):
        _enter_children(form, nodes, places, level, form.left[level], outcome=True)
        _enter_children(form, nodes, places, level, form.right[level], outcome=False)
        children = np.concatenate([form.left[level], form.right[level]])
        level = children[form.node_test[children] >= 0]
    return nodes


@dataclass(frozen=True, eq=False)
class _TestPlaces:
    """Where each test stands; arrays by test."""

    feature: Indices  # the place of its feature
    rank: Indices  # the cut it stands for, of features on a line
    is_below: Mask  # whether it is true below the cut
    outcomes: dict[int, Mask]  # (c, tests) by place of a `Listing`: its outcome for each cell


def _place_tests(form: TreeEnsemble, cells: list[FeatureCells]) -> _TestPlaces:
    """Return where each test stands."""
    n_tests = len(form.tests)
    feature = np.zeros(n_tests, dtype=np.intp)
    rank = np.zeros(n_tests, dtype=np.intp)
    is_below = np.zeros(n_tests, dtype=np.bool_)
    outcomes: dict[int, Mask] = {}
    for place, each in enumerate(cells):
        feature[each.tests] = place
        if isinstance(each, Line):
            rank[each.tests] = each.rank
            is_below[each.tests] = each.is_below
        else:
            outcomes[place] = np.zeros((each.n_cells, n_tests), dtype=np.bool_)
            outcomes[place][:, each.tests] = each.outcomes
    return _TestPlaces(feature, rank, is_below, outcomes)


def _enter_children(
    form: TreeEnsemble,
    nodes: _NodeBounds,
    places: _TestPlaces,
    parent: Indices,
    child: Indices,
    *,
    outcome: bool,
) -> None:
    """Set which cells lead to the children for which the tests of their parents have an outcome."""
    test = form.node_test[parent]
    feature = places.feature[test]
    nodes.tree[child] = nodes.tree[parent]
    nodes.depth[child] = nodes.depth[parent] + 1
    nodes.missing[child] = nodes.missing[parent]
    nodes.missing[child, feature] &= form.tests.if_missing[test] == outcome
    nodes.low[child] = nodes.low[parent]
    nodes.high[child] = nodes.high[parent]
    cut = places.rank[test]
    below = np.flatnonzero(places.is_below[test] == outcome)
    at = child[below], feature[below]
    nodes.high[at] = np.minimum(nodes.high[at], cut[below])
    above = np.flatnonzero(places.is_below[test] != outcome)
    at = child[above], feature[above]
    nodes.low[at] = np.maximum(nodes.low[at], cut[above] + 1)
    for place, reached in nodes.listed.items():
        reached[child] = reached[parent]
        own = np.flatnonzero(feature == place)
        passed = places.outcomes[place][:, test[own]].T
        reached[child[own]] &= np.equal(passed, outcome)


def _arrange_leaves(form: TreeEnsemble, nodes: _NodeBounds) -> tuple[Indices, Indices, int]:
    """Return the leaf of each bit, -1 for none; the first word of each tree; the words."""
    is_root = np.zeros(len(form.node_test), dtype=np.bool_)
    is_root[form.roots] = True
    is_used = (nodes.depth > 0) | is_root
    leaves = np.flatnonzero((form.node_test < 0) & is_used)
    leaves = leaves[np.lexsort((form.value[leaves], nodes.tree[leaves]))]
    counts = np.bincount(nodes.tree[leaves], minlength=len(form.roots))
    n_words = -(-counts // BITS)
    tree_start = np.concatenate([[0], np.cumsum(n_words)[:-1]]).astype(np.intp)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    tree = nodes.tree[leaves]
    bit = tree_start[tree] * BITS + np.arange(len(leaves)) - first[tree]
    order = np.full(int(n_words.sum()) * BITS, -1)
    order[bit] = leaves
    return order, tree_start, int(n_words.sum())


def _test_weights(form: TreeEnsemble, cells: list[FeatureCells], nodes: _NodeBounds) -> list[Array]:
    """Return per feature the weight ``(t, cuts)`` of its cuts: tests near the root matter most."""
    found = []
    inner = np.flatnonzero(form.node_test >= 0)
    test = form.node_test[inner]
    share = 0.5 ** nodes.depth[inner]
    for each in cells:
        rank = np.full(len(form.tests), -1)
        rank[each.tests] = each.rank if isinstance(each, Line) else 0
        n_cuts = len(each.cuts) if isinstance(each, Line) else 1
        weight = np.zeros((len(form.roots), max(n_cuts, 1)))
        is_own = rank[test] >= 0
        np.add.at(weight, (nodes.tree[inner[is_own]], rank[test[is_own]]), share[is_own])
        found.append(weight)
    return found
