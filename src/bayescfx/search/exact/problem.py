"""One question over the cells of a tree ensemble: costs, bounds and rows of boxes.

A box holds a range of cells for each feature. Its *corner* is the row nearest to the query in it,
so that the corner's cost is a lower bound on the cost of every row of the box.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials import Intervals
from bayescfx.search.exact.cells import Line, LocalCells, local_cells
from bayescfx.search.exact.leaves import LeafTable
from bayescfx.search.exact.query_leaves import (
    QueryLeaves,
    cut_weights,
    find_reached,
    merge_cells,
    nearest_cells,
    pack_leaves,
)
from bayescfx.search.exact.steps import row_sums, tree_bounds
from bayescfx.space.region import Region

if TYPE_CHECKING:  # loaded with the first proof
    from scipy.sparse import csr_array

#: Share of the sum of all summands by which sums may be rounded differently (numerical).
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Costs:
    """What the cells of all features cost; arrays over all cells, feature after feature.

    Parameters
    ----------
    power : array of shape (cells,)
        What each cell adds to the sum of powers of the distance.
    price : array of shape (cells,)
        The price of each cell: that of a change, or 0 for the query's.
    most_price : array of shape (k,)
        The largest price of each feature.
    norm : float
        The norm of the distance.
    """

    power: Array
    price: Array
    most_price: Array
    norm: float

    def total(self, at: Indices) -> Array:
        """Return the cost ``(n,)`` of rows in cells ``(n, k)``."""
        power = row_sums(self.power[at])
        distance = power if self.norm in (0, 1) else power ** (1.0 / self.norm)
        return np.asarray(distance + row_sums(self.price[at]))

    def max_power(self, limit: float, price: Array) -> Array:
        """Return the sum of powers at which the cost comes to a limit, given the sum of prices."""
        distance = limit - price
        return distance if self.norm in (0, 1) else np.maximum(distance, 0.0) ** self.norm


@dataclass(frozen=True, eq=False)
class Cuts:
    """Where boxes can be split; arrays over all cuts, feature after feature.

    Parameters
    ----------
    feature : array of int of shape (cuts,)
        The feature, by its place among those of the problem.
    cell : array of int of shape (cuts,)
        The last cell before the cut.
    weight : sparse array of shape (cuts, t)
        How much each cut matters to each tree.
    far_power : array of shape (cuts,)
        What the nearest cell beyond the cut costs, seen from the query.
    """

    feature: Indices
    cell: Indices
    weight: csr_array
    far_power: Array


class BoxProblem:
    """The boxes of one question.

    Parameters
    ----------
    table : LeafTable
        The model.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        Scores that reach the target, on the scale of the sums.
    slack : float
        By how much scores may differ from the model's through rounding.
    limit : float
        The cost below which rows are wanted.
    keep_costly : bool
        Whether leaves are kept all of whose rows cost more than the limit or change too many
        features. The check of a certificate does not know that they can be left out.

    Attributes
    ----------
    features : array of int of shape (k,)
        The features that may move.
    sizes, offset, home : array of int of shape (k,)
        The number of cells of each feature, the place of its first cell among all cells, and the
        cell of the query.
    is_line : mask of shape (k,)
        Whether the cells of a feature are in order.
    code, lowest, highest : array of shape (cells,)
        Per cell the code nearest to the query, the lowest and the highest one.
    least, most : array of shape (cells,)
        The lowest and highest code of a cell and all that follow it.
    root : array of shape (words,)
        The leaves that the query can reach. Words without any, and trees that have one value left,
        are left out.
    upper, lower, own : array of shape (cells, words)
        The leaves of cells up to the given one, from it on, and in it alone.
    """

    def __init__(
        self,
        table: LeafTable,
        region: Region,
        accepted: Intervals,
        slack: float = 0.0,
        limit: float = np.inf,
        *,
        keep_costly: bool = False,
    ) -> None:
        self.table = table
        self.region = region
        ruled = features_of_rules(region)
        self.cells, sources = _cells_of_query(table, region, limit, ruled)
        is_reached = find_reached(table, region, self.cells, sources)
        if not keep_costly:
            self._set_cells()
            self._drop_costly(is_reached, sources, limit)
        leaves = np.flatnonzero(is_reached)
        for k, cells in enumerate(self.cells):
            if cells.feature not in ruled:
                self.cells[k] = merge_cells(table, leaves, sources[k], cells)
        self._set_cells()
        self.is_ruled = np.isin(self.features, list(ruled))
        self._set_leaves(pack_leaves(table, is_reached, self.cells, sources))
        self.cuts = self._make_cuts(sources)
        margin = slack + ROUNDING * float(np.abs(table.leaf_value).sum())
        self.accepted = [(low - margin, high + margin) for low, high in accepted]

    # ── tables of this query ──

    def _set_cells(self) -> None:
        """Set up the arrays over all cells."""
        self.features = np.array([cells.feature for cells in self.cells], dtype=np.intp)
        self.sizes = np.array([len(cells.cell) for cells in self.cells], dtype=np.intp)
        self.offset = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)[:-1]
        self.home = np.array([cells.home for cells in self.cells], dtype=np.intp)
        self.is_line = np.array([cells.is_line for cells in self.cells], dtype=np.bool_)
        self.code = _joined([cells.code for cells in self.cells])
        self.lowest = _joined([cells.lowest for cells in self.cells])
        self.highest = _joined([cells.highest for cells in self.cells])
        self.least = _joined([_from_each(np.minimum, cells.lowest) for cells in self.cells])
        self.most = _joined([_from_each(np.maximum, cells.highest) for cells in self.cells])
        self.costs = self._make_costs()

    def _drop_costly(self, is_reached: Mask, sources: list[int | None], limit: float) -> None:
        """Drop leaves ``(l,)`` whose nearest row costs too much or changes too much, in place."""
        if not np.isfinite(limit) and self.region.max_changes is None:
            return
        leaves = np.flatnonzero(is_reached)
        nearest = nearest_cells(self.table, leaves, self.cells, sources)
        is_useful = self.costs.total(nearest + self.offset) <= limit
        if self.region.max_changes is not None:
            is_useful &= (nearest != self.home).sum(axis=1) <= self.region.max_changes
        is_reached[leaves[~is_useful]] = False

    def _set_leaves(self, leaves: QueryLeaves) -> None:
        """Set up the words of the leaves that the query can reach."""
        self.base = leaves.base
        self.root = leaves.root
        self.flat_values = leaves.flat_values
        self.trees = leaves.trees
        self.tree_start = leaves.tree_start
        self.tree_of_word = leaves.tree_of_word
        self.group = self.table.group[self.trees]
        self.upper = leaves.upper
        self.lower = leaves.lower
        self.own = self.upper & self.lower

    def _make_costs(self) -> Costs:
        """Return what each cell costs."""
        region = self.region
        feature = np.repeat(self.features, self.sizes)
        each = np.arange(len(feature))
        X = np.repeat(region.query[None], len(feature), axis=0)
        X[each, feature] = self.code
        norm = region.price.norm
        if norm == 0:
            power = region.weight[feature] * region.changes(X)[each, feature]
        else:
            power = region.units(X)[each, feature] ** norm
        is_change = region.changes(X)[each, feature]
        price = np.where(is_change, float(region.price.per_change), 0.0)
        starts = self.offset
        has_any = len(starts) > 0
        return Costs(
            power=power,
            price=price,
            most_price=np.maximum.reduceat(price, starts) if has_any else np.empty(0),
            norm=norm,
        )

    def _make_cuts(self, sources: list[int | None]) -> Cuts:
        """Return the cuts, and how much each matters to each tree."""
        weights = [np.empty((len(self.trees), 0))]
        for source, cells in zip(sources, self.cells, strict=True):
            weights.append(cut_weights(self.table, source, cells, self.trees))
        feature = np.repeat(np.arange(len(self.cells)), self.sizes - 1)
        cell = _joined([np.arange(size - 1) for size in self.sizes]).astype(np.intp)
        at = self.offset[feature] + cell
        is_above = cell >= self.home[feature]
        far_power = self.costs.power[at + is_above]
        from scipy.sparse import csr_array

        weight = csr_array(np.hstack(weights).T.astype(np.float32))
        return Cuts(feature, cell, weight, far_power)

    @property
    def accepted_range(self) -> tuple[float, float]:
        """The lowest and highest accepted score."""
        return min(low for low, _ in self.accepted), max(high for _, high in self.accepted)

    # ── rows ──

    def corner(self, low: Indices, high: Indices) -> Indices:
        """Return the nearest cells ``(n, k)`` to the query in each box."""
        return np.clip(self.home, low, high)

    def rows(self, corner: Indices) -> Array:
        """Return the codes ``(n, d)`` of corners ``(n, k)``."""
        X = np.repeat(self.region.query[None], len(corner), axis=0)
        X[:, self.features] = self.code[corner + self.offset]
        return self.region.complete(X)

    def code_ranges(self, low: Indices, high: Indices) -> tuple[Array, Array]:
        """Return the lowest and highest code ``(n, k)`` of the cells from `low` to `high`.

        Cells of a line are in the order of their codes. Listed cells are in the order of their
        costs; boxes hold one of them, or all from one on.
        """
        start = low + self.offset
        end = high + self.offset
        is_one = self.is_line | (low == high)
        least = np.where(
            is_one, np.minimum(self.lowest[start], self.lowest[end]), self.least[start]
        )
        most = np.where(
            is_one, np.maximum(self.highest[start], self.highest[end]), self.most[start]
        )
        return least, most

    # ── bounds on the score ──

    def scores(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return bounds ``(n,)`` on the score from bounds on the summands ``(n, t)``.

        With several sums the score is the log-odds of the chosen one.
        """
        if len(self.base) == 1:
            return row_sums(low) + self.base[0], row_sums(high) + self.base[0]
        chosen = self.table.form.chosen
        lows = np.stack([low[:, self.group == g].sum(axis=1) for g in range(len(self.base))])
        highs = np.stack([high[:, self.group == g].sum(axis=1) for g in range(len(self.base))])
        lows += self.base[:, None]
        highs += self.base[:, None]
        others = np.arange(len(self.base)) != chosen
        with np.errstate(invalid="ignore"):
            lower = lows[chosen] - np.logaddexp.reduce(highs[others])
            upper = highs[chosen] - np.logaddexp.reduce(lows[others])
        return lower, upper

    def is_possible(self, low: Array, high: Array) -> Mask:
        """Return whether a score between two bounds ``(n,)`` may be accepted."""
        found = np.zeros(len(low), dtype=np.bool_)
        for start, end in self.accepted:
            found |= (low <= end) & (high >= start)
        return found

    def corner_scores(self, corner: Indices) -> Array:
        """Return the score ``(n,)`` of corners ``(n, k)``."""
        mask = np.repeat(self.root[None], len(corner), axis=0)
        for j in range(corner.shape[1]):
            mask &= self.own[corner[:, j] + self.offset[j]]
        low, _ = tree_bounds(self, mask)
        return self.scores(low, low)[0]


def features_of_rules(region: Region) -> Collection[int]:
    """Return the features whose single codes matter to a rule, not only their cells."""
    if not region.rules:
        return set()
    if region.curved or region.derived:
        return set(region.free.tolist())
    is_used = (region.A != 0.0).any(axis=0)
    is_used[[j for block in region.blocks for j in block]] = True
    return set(region.free[is_used[region.free]].tolist())


def _from_each(ufunc: np.ufunc, codes: Array) -> Array:
    """Return the least or most ``(c,)`` of the codes from each place on."""
    return np.asarray(ufunc.accumulate(codes[::-1])[::-1])


def _joined(parts: list[Array]) -> Array:
    return np.concatenate([np.empty(0), *parts])


def _cells_of_query(
    table: LeafTable, region: Region, limit: float, ruled: Collection[int]
) -> tuple[list[LocalCells], list[int | None]]:
    """Return the cells of the features that may move, and their places in the table.

    Features that the model does not test may move only where rules read them; they have no place.
    """
    is_free = np.zeros(len(region.query), dtype=np.bool_)
    is_free[region.free] = True
    sources: list[int | None] = [i for i, each in enumerate(table.cells) if is_free[each.feature]]
    tested = {each.feature for each in table.cells}
    all_cells = [table.cells[i] for i in sources if i is not None]
    for feature in sorted(set(ruled) - tested):
        nothing = np.empty(0, dtype=np.intp)
        all_cells.append(Line(feature, np.empty(0), nothing, nothing, nothing > 0))
        sources.append(None)
    farthest = np.inf
    if region.price.norm != 0:  # a change has its price beside its distance
        farthest = max(limit * (1.0 + ROUNDING) - region.price.per_change, 0.0)
    return local_cells(region, all_cells, farthest, ruled), sources
