"""Where an answer stays valid: for each changed feature the codes that reach the target too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.models.readers import TreeEnsemble
from bayescfx.potentials import Intervals
from bayescfx.search.exact.cells import cells_of_codes, local_cells
from bayescfx.search.exact.certificate_space import AllowedCodes
from bayescfx.search.exact.leaves import LeafTable
from bayescfx.search.exact.problem import features_of_rules
from bayescfx.space.region import Region


@dataclass(frozen=True, eq=False)
class ValidCodes:
    """The codes of one feature for which a row reaches the target, its other cells unchanged.

    Parameters
    ----------
    feature : int
        Position of the feature.
    low, high : float
        The ends of the range of allowed codes around the row's own, for a feature on a line. All
        allowed codes between them reach the target. For other features the row's own code.
    codes : array of shape (c,) or None
        All codes that reach the target, sorted, for a feature with levels or on a circle.
    is_exact : bool
        Whether allowed codes just outside do not reach the target. False if a rule that is not
        linear restricts a continuous feature: then the range is only as large as could be checked.
    """

    feature: int
    low: float
    high: float
    codes: Array | None = None
    is_exact: bool = True


@dataclass(frozen=True, eq=False)
class ReachedCells:
    """Cells of a feature in the order of their codes, and which reach; arrays of shape (c,)."""

    code: Array
    lowest: Array
    highest: Array
    is_reached: Mask


@dataclass(frozen=True, eq=False)
class ScoredRow:
    """A row that reaches the target, among the leaves of a tree ensemble.

    Parameters
    ----------
    table : LeafTable
        The model.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        Scores that reach the target for certain: rounding can't change it.
    row : array of shape (d,)
        The codes of the row.
    """

    table: LeafTable
    region: Region
    accepted: Intervals
    row: Array

    @cached_property
    def is_met(self) -> Mask:
        """Whether the leaves ``(l, features)`` agree with each tested feature of the row."""
        table = self.table
        found = np.empty((len(table.leaf_value), len(table.cells)), dtype=np.bool_)
        for i, cells in enumerate(table.cells):
            code = self.row[cells.feature]
            if np.isnan(code):
                found[:, i] = table.missing[:, i]
            else:
                cell = cells_of_codes(cells, np.array([code]))
                found[:, i] = _meets(table, i, cell, slice(None))[0]
        return found

    def is_known(self, j: int) -> bool:
        """Return whether the valid codes of a feature can be found: always."""
        return 0 <= j < len(self.row)

    def changed_cells(self) -> dict[int, ReachedCells]:
        """Return the cells of the changed features that the model tests, by feature."""
        return _changed_cells(self)

    def reaches(self, place: int, cell: Indices) -> Mask:
        """Return which cells ``(c,)`` of a tested feature reach the target in this row.

        The feature is given by its place in the table. The same leaves as those of the row, which
        the model has scored, reach it in any case.
        """
        table = self.table
        leaves = np.flatnonzero(np.delete(self.is_met, place, axis=1).all(axis=1))
        own = _meets(table, place, cell, leaves)
        is_met = np.vstack([own, self.is_met[leaves, place]])
        tree_of_leaf = np.repeat(np.arange(len(table.group)), table.leaf_counts)
        trees, start = np.unique(tree_of_leaf[leaves], return_index=True)
        # Each cell meets one leaf of every tree.
        values = np.where(is_met, table.leaf_value[leaves], np.inf)
        summands = np.minimum.reduceat(values, start, axis=1)
        scores = score_of_summands(table.form, summands, table.group[trees])
        reached = (summands[:-1] == summands[-1]).all(axis=1)
        for low, high in self.accepted:
            reached |= (scores[:-1] >= low) & (scores[:-1] <= high)
        return np.asarray(reached)


def _meets(table: LeafTable, place: int, cell: Indices, leaves: Indices | slice) -> Mask:
    """Return to which of some leaves ``(c, l)`` the cells of a tested feature lead."""
    if place in table.listed:
        return table.listed[place][leaves][:, cell].T
    column = cell[:, None]
    first = table.first[leaves, place]
    last = table.last[leaves, place]
    return np.asarray((first <= column) & (column <= last))


def score_of_summands(form: TreeEnsemble, summands: Array, group: Indices) -> Array:
    """Return the scores ``(n,)`` of summands ``(n, t)``, which belong to the sums `group`."""
    n_sums = len(form.base)
    sums = np.stack([summands[:, group == g].sum(axis=1) for g in range(n_sums)])
    sums += np.asarray(form.base, dtype=np.float64)[:, None]
    if n_sums == 1:
        return np.asarray(sums[0])
    others = np.arange(n_sums) != form.chosen
    return np.asarray(sums[form.chosen] - np.logaddexp.reduce(sums[others]))


class Scored(Protocol):
    """A row that reaches the target, and what its features do to the model."""

    @property
    def region(self) -> Region:
        """The rows that are allowed."""
        ...

    @property
    def row(self) -> Array:
        """The codes ``(d,)`` of the row."""
        ...

    def is_known(self, j: int) -> bool:
        """Return whether the valid codes of a changed feature can be found."""
        ...

    def changed_cells(self) -> dict[int, ReachedCells]:
        """Return the cells of the changed features that the model reads, by feature."""
        ...


def find_valid_codes(scored: Scored) -> list[ValidCodes]:
    """Return the valid codes of the changed features of a row, in the order of the features."""
    region = scored.region
    cells = scored.changed_cells()
    found = []
    for j in np.flatnonzero(region.changes(scored.row[None])[0]).tolist():
        if not scored.is_known(j):
            continue
        find = _range_on_line if region.sliding[j] else _listed_codes
        found.append(find(scored, j, cells.get(j)))
    return found


def _changed_cells(scored: ScoredRow) -> dict[int, ReachedCells]:
    """Return the cells of the changed features that the model tests, by feature."""
    table = scored.table
    region = scored.region
    is_changed = region.changes(scored.row[None])[0]
    places = [i for i, cells in enumerate(table.cells) if is_changed[cells.feature]]
    ruled = features_of_rules(region)
    tested = [table.cells[i] for i in places]
    found = {}
    for i, cells in zip(places, local_cells(region, tested, np.inf, ruled), strict=True):
        order = np.argsort(cells.lowest, kind="stable")  # codes may fall from cell to cell
        found[cells.feature] = ReachedCells(
            code=cells.code[order],
            lowest=cells.lowest[order],
            highest=cells.highest[order],
            is_reached=scored.reaches(i, cells.cell[order]),
        )
    return found


def _is_allowed(region: Region, row: Array, j: int, codes: Array) -> Mask:
    """Return which codes ``(n,)`` of a feature are allowed in a row."""
    X = np.repeat(row[None], len(codes), axis=0)
    X[:, j] = codes
    return region.contains(region.complete(X))


def _listed_codes(scored: Scored, j: int, cells: ReachedCells | None) -> ValidCodes:
    """Return the valid codes of a feature with levels or on a circle."""
    region = scored.region
    row = scored.row
    own = float(row[j])
    codes = row[[j]]
    choices = region.axes[j].choices
    if cells is not None:
        codes = cells.code[cells.is_reached]
    elif choices is not None:  # the model does not test it
        codes = choices
    codes = np.union1d(codes[_is_allowed(region, row, j, codes)], row[[j]])
    return ValidCodes(j, own, own, codes)


def _range_on_line(scored: Scored, j: int, cells: ReachedCells | None) -> ValidCodes:
    """Return the valid range of a feature on a line."""
    region = scored.region
    row = scored.row
    own = float(row[j])
    allowed = allowed_codes(region, j)
    lowest, highest = allowed.ends
    borders = np.empty(0)
    if cells is not None:
        borders = np.concatenate([cells.lowest, cells.highest])
        lowest, highest = _reached_run(cells, own)
    least, most = _linear_ends(region, row, j)
    low = min(allowed.first_from(max(lowest, least)), own)
    high = max(allowed.last_up_to(min(highest, most)), own)
    if not region.rules:
        return ValidCodes(j, low, high)
    if allowed.codes is not None:
        return _checked_codes(region, row, j, allowed.codes, (low, high))
    points = np.unique(np.concatenate([[low, high], borders, [own, region.query[j]]]))
    return _checked_codes(region, row, j, points, (low, high), is_exact=not region.curved)


def _reached_run(cells: ReachedCells, code: float) -> tuple[float, float]:
    """Return the lowest and highest code of the run of cells around a code that reach."""
    own = int(np.flatnonzero((cells.lowest <= code) & (code <= cells.highest))[0])
    misses = np.flatnonzero(~cells.is_reached)
    first = misses[misses < own].max(initial=-1) + 1
    last = misses[misses > own].min(initial=len(cells.code)) - 1
    return float(cells.lowest[first]), float(cells.highest[last])


def _checked_codes(
    region: Region,
    row: Array,
    j: int,
    points: Array,
    ends: tuple[float, float],
    *,
    is_exact: bool = True,
) -> ValidCodes:
    """Return the range around a row's code in which all points ``(n,)`` keep the rules."""
    low, high = ends
    points = points[(points >= low) & (points <= high)]
    axis_codes = allowed_codes(region, j)
    points = points[[axis_codes.last_up_to(float(code)) == code for code in points]]
    is_kept = _is_allowed(region, row, j, points)
    below = points[~is_kept & (points < row[j])]
    above = points[~is_kept & (points > row[j])]
    kept = points[is_kept]
    if len(below):
        low = float(kept[(kept > below[-1]) & (kept <= row[j])].min(initial=row[j]))
    if len(above):
        high = float(kept[(kept < above[0]) & (kept >= row[j])].max(initial=row[j]))
    return ValidCodes(j, low, high, is_exact=is_exact)


def _linear_ends(region: Region, row: Array, j: int) -> tuple[float, float]:
    """Return the codes between which a feature keeps the linear rules, in a row."""
    low = -np.inf
    high = np.inf
    if not region.rules:
        return low, high
    for coefficients, bound in zip(region.A, region.b, strict=True):
        factor = coefficients[j]
        used = np.flatnonzero(coefficients)
        if factor == 0.0 or region.recomputed[used].any():
            continue
        rest = float(coefficients[used] @ row[used] - factor * row[j])
        if factor > 0.0:
            high = min(high, (bound - rest) / factor)
        else:
            low = max(low, (bound - rest) / factor)
    return low, high


def allowed_codes(region: Region, j: int) -> AllowedCodes:
    """Return the allowed codes of one feature."""
    axis = region.axes[j]
    return AllowedCodes(
        feature=axis.feature,
        query=axis.query,
        low=axis.low,
        high=axis.high,
        codes=axis.choices,
        narrow=axis.narrow,
        is_line=bool(region.sliding[j]),
    )
