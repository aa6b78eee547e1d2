"""The leaves of a tree ensemble that one query can reach, over its own cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.deadline import time_limit
from bayescfx.search.exact.cells import LocalCells, NoProof, cells_of_codes
from bayescfx.search.exact.leaves import BITS, LeafTable, Words, pack
from bayescfx.space.region import Region

#: Words of one table of a query. More take gigabytes: 64 million are 0.5 GB, and there are three
#: such tables.
MOST_WORDS = 1 << 26
_ALL = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class QueryLeaves:
    """The leaves that a query can reach, without trees that have one value left.

    Parameters
    ----------
    root : array of shape (words,)
        The leaves.
    upper, lower : array of shape (cells, words)
        The leaves of the cells of a feature up to the given one, and from it on. Of listed cells
        only single ones and the last ones are ranges: up to the last one there are all leaves,
        and up to any other those of this cell alone.
    flat_values : array of shape (words * 64,)
        The summands of the leaves.
    trees : array of int of shape (t,)
        The trees, by their places in the model.
    tree_start : array of int of shape (t,)
        The first word of each tree.
    tree_of_word : array of int of shape (words,)
        The tree of each word.
    base : array of shape (groups,)
        What is added to the sums, with the values of the trees that are left out.
    """

    root: Words
    upper: Words
    lower: Words
    flat_values: Array
    trees: Indices
    tree_start: Indices
    tree_of_word: Indices
    base: Array


def find_reached(
    table: LeafTable,
    region: Region,
    cells: Sequence[LocalCells],
    sources: Sequence[int | None],
) -> Mask:
    """Return which leaves ``(l,)`` have cells that the query can reach.

    Parameters
    ----------
    cells : sequence of LocalCells
        The cells of the features that may move.
    sources : sequence of int or None
        Their places in the table; None for features that the model does not test.
    """
    is_reached = np.ones(len(table.bit), dtype=np.bool_)
    moving = {source: own.cell for source, own in zip(sources, cells, strict=True)}
    for i, each in enumerate(table.cells):
        code = region.query[each.feature]
        if i in moving:
            at = moving[i]
        elif np.isnan(code):
            is_reached &= table.missing[:, i]
            continue
        else:
            at = cells_of_codes(each, np.array([code]))
        if i in table.listed:
            is_reached &= table.listed[i][:, at].any(axis=1)
        else:
            is_reached &= (table.first[:, i] <= at[-1]) & (table.last[:, i] >= at[0])
    return is_reached


def nearest_cells(
    table: LeafTable,
    leaves: Indices,
    cells: Sequence[LocalCells],
    sources: Sequence[int | None],
) -> Indices:
    """Return the cell ``(l, k)`` of each feature that is nearest to the query in each leaf.

    Cells are counted from the first one of their feature. Leaves must be reached.
    """
    nearest = np.empty((len(leaves), len(cells)), dtype=np.intp)
    for k, (own, source) in enumerate(zip(cells, sources, strict=True)):
        if source is None:
            nearest[:, k] = own.home
        elif own.is_line:
            first, last = _rows_of_leaves(table, leaves, source, own)
            nearest[:, k] = np.clip(own.home, first, last)
        else:
            nearest[:, k] = table.listed[source][leaves][:, own.cell].argmax(axis=1)
    return nearest


def merge_cells(
    table: LeafTable, leaves: Indices, source: int | None, cells: LocalCells
) -> LocalCells:
    """Return the cells of a feature on a line, those that no leaf tells apart as one."""
    if source is None or not cells.is_line:
        return cells
    first, last = _rows_of_leaves(table, leaves, source, cells)
    is_start = np.zeros(len(cells.cell) + 1, dtype=np.bool_)
    is_start[0] = True
    is_start[first] = True
    is_start[last + 1] = True
    return cells.merge(np.flatnonzero(is_start[:-1]))


def _rows_of_leaves(
    table: LeafTable, leaves: Indices, source: int, cells: LocalCells
) -> tuple[Indices, Indices]:
    """Return the first and the last of the query's cells ``(l,)`` that lead to each leaf."""
    numbers = np.arange(table.cells[source].n_cells)
    first = np.searchsorted(cells.last, numbers, side="left")
    last = np.searchsorted(cells.first, numbers, side="right") - 1
    return first[table.first[leaves, source]], last[table.last[leaves, source]]


def pack_leaves(
    table: LeafTable,
    is_reached: Mask,
    cells: Sequence[LocalCells],
    sources: Sequence[int | None],
) -> QueryLeaves:
    """Return the leaves that a query reaches, as bits of words of their own."""
    base, is_constant = _constant_trees(table, is_reached)
    tree_of_leaf = np.repeat(np.arange(len(table.group)), table.leaf_counts)
    leaves = np.flatnonzero(is_reached & ~is_constant[tree_of_leaf])
    trees, first, counts = np.unique(tree_of_leaf[leaves], return_index=True, return_counts=True)
    n_words = -(-counts // BITS)
    tree_start = (np.cumsum(n_words) - n_words).astype(np.intp)
    bit = np.arange(len(leaves)) + np.repeat(tree_start * BITS - first, counts)
    n_bits = int(n_words.sum()) * BITS
    is_leaf = np.zeros((1, n_bits), dtype=np.bool_)
    is_leaf[0, bit] = True
    root = pack(is_leaf)[0]
    flat_values = np.full(n_bits, np.nan)
    flat_values[bit] = table.leaf_value[leaves]
    upper, lower = _range_tables(_Part(table, leaves, bit, root), cells, sources)
    return QueryLeaves(
        root=root,
        upper=upper,
        lower=lower,
        flat_values=flat_values,
        trees=trees,
        tree_start=tree_start,
        tree_of_word=np.repeat(np.arange(len(trees)), n_words),
        base=base,
    )


def _constant_trees(table: LeafTable, is_reached: Mask) -> tuple[Array, Mask]:
    """Return the sums of the trees with one value left, and which trees these are ``(t,)``."""
    ends = np.cumsum(table.leaf_counts)
    starts = ends - table.leaf_counts
    lowest = np.minimum.reduceat(np.where(is_reached, table.leaf_value, np.inf), starts)
    highest = np.maximum.reduceat(np.where(is_reached, table.leaf_value, -np.inf), starts)
    if not np.isfinite(lowest).all():
        raise NoProof("a tree of the model has no leaf for this query")
    is_constant = lowest == highest
    base = table.form.base.astype(np.float64)
    np.add.at(base, table.group[is_constant], lowest[is_constant])
    return base, is_constant


@dataclass(frozen=True, eq=False)
class _Part:
    """Some leaves of a table, with the bit of each."""

    table: LeafTable
    leaves: Indices  # (l,)
    bit: Indices  # (l,)
    root: Words  # (words,)

    def set_bits(self, words: Words, rows: Indices, chosen: Indices | slice) -> None:
        """Set the bits of chosen leaves, each in its own row of `words`, in place."""
        bit = self.bit[chosen]
        values = np.uint64(1) << (bit % BITS).astype(np.uint64)
        # No bit is set twice, so that a sum is an OR; its `at` is faster.
        np.add.at(words.reshape(-1), rows * words.shape[1] + bit // BITS, values)


def _range_tables(
    part: _Part, cells: Sequence[LocalCells], sources: Sequence[int | None]
) -> tuple[Words, Words]:
    """Return the leaves of cells up to each one, and from each one on; shape (cells, words)."""
    sizes = [len(own.cell) for own in cells]
    shape = (sum(sizes), len(part.root))
    if shape[0] * shape[1] > MOST_WORDS:
        raise NoProof(
            f"the model has too many leaves for a proof ({len(part.leaves)}); fix features"
        )
    upper = np.zeros(shape, dtype=np.uint64)
    lower = np.zeros(shape, dtype=np.uint64)
    end = 0
    for own, source, size in zip(cells, sources, sizes, strict=True):
        time_limit.get().check()
        rows = slice(end, end + size)
        end += size
        if source is None:
            upper[rows] = part.root
            lower[rows] = part.root
        elif own.is_line:
            _set_line(part, source, own, upper[rows], lower[rows])
        else:
            _set_listing(part, source, own.cell, upper[rows], lower[rows])
    return upper, lower


def _set_line(part: _Part, source: int, own: LocalCells, upper: Words, lower: Words) -> None:
    """Set the leaves of the cells of a feature on a line, in place."""
    first, last = _rows_of_leaves(part.table, part.leaves, source, own)
    part.set_bits(upper, first, slice(None))
    part.set_bits(lower, last, slice(None))
    _accumulate(upper)
    _accumulate(lower[::-1])


def _set_listing(part: _Part, source: int, cell: Indices, upper: Words, lower: Words) -> None:
    """Set the leaves of listed cells, in place."""
    is_met = part.table.listed[source][part.leaves][:, cell]
    leaf, row = np.nonzero(is_met)
    part.set_bits(upper, row, leaf)
    lower[:] = upper
    _accumulate(lower[::-1])
    upper[-1] = _ALL


def _accumulate(words: Words) -> None:
    """Add to each row the bits of all rows before, in place."""
    np.bitwise_or.accumulate(words, axis=0, out=words)


def cut_weights(table: LeafTable, source: int | None, cells: LocalCells, trees: Indices) -> Array:
    """Return how much each cut between the cells of a feature matters to each tree.

    Tests near the root matter most.

    Returns
    -------
    array of shape (t, cuts)
    """
    n_cuts = len(cells.cell) - 1
    weight = np.zeros((len(trees), n_cuts))
    if source is None or not n_cuts or not len(trees):
        return weight
    own = np.flatnonzero((table.test_place == source) & np.isin(table.test_tree, trees))
    tree = np.searchsorted(trees, table.test_tree[own])
    share = table.test_share[own]
    if not cells.is_line:  # one listed cell is split off after the other
        weight += np.bincount(tree, share, minlength=len(trees))[:, None]
        return weight
    # Cells c and c + 1 of the model are separated by its cut c.
    rank = table.test_rank[own]
    cut = np.clip(np.searchsorted(cells.last, rank, side="right") - 1, 0, n_cuts - 1)
    is_inside = (cells.last[cut] <= rank) & (rank < cells.first[cut + 1])
    np.add.at(weight.reshape(-1), (tree * n_cuts + cut)[is_inside], share[is_inside])
    return weight
