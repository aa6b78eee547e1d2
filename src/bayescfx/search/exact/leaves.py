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
from bayescfx.deadline import time_limit
from bayescfx.models.readers.forms import TreeEnsemble
from bayescfx.search.exact.cells import FeatureCells, Line, Listing, cells_of_codes, cut_features
from bayescfx.space.region import Region

Words = NDArray[np.uint64]
#: Numbers of cells. They are many, and 32 bits hold them.
Cells = NDArray[np.int32]
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
    bit : array of int of shape (l,)
        The bit of each leaf; leaves are in the order of the trees, and of their values.
    leaf_value : array of shape (l,)
        The summands of the leaves.
    leaf_counts : array of int of shape (t,)
        The number of leaves of each tree.
    first, last : array of int of shape (l, features)
        The lowest and highest cell that leads to each leaf; of no meaning for a `Listing`.
    listed : dict of int to mask of shape (l, c)
        Which cells lead to each leaf, by place of a `Listing` among the features.
    missing : mask of shape (l, features)
        Whether a row may be in a leaf that misses the cell of the feature.
    values : array of shape (words, 64)
        The summands of the leaves by bit, rising within a tree.
    tree_start : array of int of shape (t,)
        The first word of each tree.
    group : array of int of shape (t,)
        The sum to which each tree belongs.
    test_tree, test_place, test_rank : array of int of shape (n,)
        Per inner node: its tree, the place of the feature that it tests, and the cut.
    test_share : array of shape (n,)
        The share of a tree below the node if all nodes cut in half.
    """

    form: TreeEnsemble
    cells: list[FeatureCells]
    bit: Indices
    leaf_value: Array
    leaf_counts: Indices
    first: Cells
    last: Cells
    listed: dict[int, Mask]
    missing: Mask
    values: Array
    tree_start: Indices
    group: Indices
    test_tree: Indices
    test_place: Indices
    test_rank: Indices
    test_share: Array

    def raw(self, X: Array) -> Array:
        """Return the sums ``(n, groups)`` of codes ``(n, d)``, by the cells that they are in."""
        sums = np.empty((len(X), len(self.form.base)))
        group = np.repeat(self.group, self.leaf_counts)
        for row, codes in enumerate(X):
            is_met = self._is_met(codes)
            sums[row] = np.bincount(group[is_met], self.leaf_value[is_met], minlength=sums.shape[1])
        return sums + self.form.base

    def _is_met(self, codes: Array) -> Mask:
        """Return which leaves ``(l,)`` the codes ``(d,)`` of one row lead to."""
        is_met = np.ones(len(self.bit), dtype=np.bool_)
        for i, each in enumerate(self.cells):
            code = codes[each.feature]
            if np.isnan(code):
                is_met &= self.missing[:, i]
                continue
            at = int(cells_of_codes(each, np.array([code]))[0])
            if i in self.listed:
                is_met &= self.listed[i][:, at]
            else:
                is_met &= (self.first[:, i] <= at) & (self.last[:, i] >= at)
        return is_met


@dataclass(frozen=True, eq=False)
class _NodeBounds:
    """Which cells lead to each node; arrays by node."""

    low: Cells  # (n_nodes, features): lowest cell of features on a line
    high: Cells  # (n_nodes, features): highest cell
    listed: dict[int, Mask]  # (n_nodes, c) by place of a `Listing` among the features
    missing: Mask  # (n_nodes, features): reached where the cell is missing
    tree: Indices  # (n_nodes,)
    depth: Indices  # (n_nodes,)
    is_used: Mask  # (n_nodes,): below a root


def make_leaf_table(form: TreeEnsemble, region: Region) -> LeafTable:
    """Return the table of a model; `region` is of any query of the space.

    Raises
    ------
    OutOfTime
        If the time limit has passed before the table is complete.
    """
    cells = cut_features(form, form.tests, region)
    places = _place_tests(form, cells)
    nodes = _follow_nodes(form, cells, places)
    leaves, counts = _sort_leaves(form, nodes)
    n_words = -(-counts // BITS)
    tree_start = (np.cumsum(n_words) - n_words).astype(np.intp)
    shift = tree_start * BITS - (np.cumsum(counts) - counts)
    bit = np.arange(len(leaves)) + np.repeat(shift, counts)
    values = np.full(int(n_words.sum()) * BITS, np.nan)
    values[bit] = form.value[leaves]
    inner = np.flatnonzero((form.node_test >= 0) & nodes.is_used)
    test = form.node_test[inner]
    return LeafTable(
        form=form,
        cells=cells,
        bit=bit,
        leaf_value=form.value[leaves],
        leaf_counts=counts,
        first=np.asfortranarray(nodes.low[leaves]),  # read by feature
        last=np.asfortranarray(nodes.high[leaves]),
        listed={place: reached[leaves] for place, reached in nodes.listed.items()},
        missing=np.asfortranarray(nodes.missing[leaves]),
        values=values.reshape(-1, BITS),
        tree_start=tree_start,
        group=form.group,
        test_tree=nodes.tree[inner],
        test_place=places.feature[test],
        test_rank=places.rank[test],
        test_share=np.ldexp(1.0, -nodes.depth[inner]),
    )


def pack(bits: Mask) -> Words:
    """Return rows of bits ``(n, words * 64)`` as words ``(n, words)``; the first bit is lowest."""
    packed = np.packbits(np.ascontiguousarray(bits), axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)


def _follow_nodes(
    form: TreeEnsemble, cells: list[FeatureCells], places: _TestPlaces
) -> _NodeBounds:
    """Return which cells lead to each node, level by level from the roots."""
    n_nodes = len(form.node_test)
    last = np.array([each.n_cells - 1 for each in cells], dtype=np.int32)
    listed = {
        place: np.ones((n_nodes, each.n_cells), dtype=np.bool_)
        for place, each in enumerate(cells)
        if isinstance(each, Listing)
    }
    nodes = _NodeBounds(
        low=np.zeros((n_nodes, len(cells)), dtype=np.int32),
        high=np.repeat(last[None], n_nodes, axis=0),
        listed=listed,
        missing=np.ones((n_nodes, len(cells)), dtype=np.bool_),
        tree=np.zeros(n_nodes, dtype=np.intp),
        depth=np.zeros(n_nodes, dtype=np.intp),
        is_used=np.zeros(n_nodes, dtype=np.bool_),
    )
    nodes.tree[form.roots] = np.arange(len(form.roots))
    nodes.is_used[form.roots] = True
    level = form.roots[form.node_test[form.roots] >= 0]
    while len(level):
        time_limit.get().check()
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
    nodes.is_used[child] = True
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


def _sort_leaves(form: TreeEnsemble, nodes: _NodeBounds) -> tuple[Indices, Indices]:
    """Return the leaves, by tree and then by value, and their number in each tree."""
    leaves = np.flatnonzero((form.node_test < 0) & nodes.is_used)
    leaves = leaves[np.lexsort((form.value[leaves], nodes.tree[leaves]))]
    counts = np.bincount(nodes.tree[leaves], minlength=len(form.roots))
    return leaves, counts.astype(np.intp)
