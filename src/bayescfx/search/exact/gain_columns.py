"""The columns of a mixed-integer program over the gains of features.

A feature on a line has one column per side of the query, which counts steps or shares of the way.
Listed codes have a binary column each. Binary columns also say whether a feature has changed, so
that the change has its price.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.search.exact.contributions import (
    REGULAR,
    Contributions,
    ListedGain,
    Side,
    StraightGain,
)
from bayescfx.space.region import DUST, Region

#: Share of the scale that features must move together, a little above dust.
LEAST_MOVE = DUST * (1.0 + 1e-6)
#: Columns with smaller values are 0 (numerical).
NOTHING = 1e-11


class _Column(NamedTuple):
    """One column: what it adds per unit, and its values."""

    feature: int
    delta: float
    gain: float
    unit: float
    price: float
    high: float
    is_whole: bool


class GainColumns:
    """The columns of a question, and the rows that tie them together.

    Parameters
    ----------
    parts : Contributions
        The gains of features.
    region : Region
        The rows that are allowed. Rules that are not linear are left out.
    limit : float
        Rows are wanted that cost less.
    has_price : bool
        Whether columns are needed that give changes their price.
    useful : {-1, 0, 1}
        The sign of gains that are of use; 0 if all are.
    avoided : mask of shape (m, d), optional
        Sets of features. Rows are wanted that change not all features of any of them.

    Attributes
    ----------
    feature : array of int of shape (n,)
        The feature of each column.
    delta : array of shape (d, n)
        How each column changes the codes.
    gain : array of shape (n,)
        How each column changes the sum.
    units : array of shape (d, n)
        The distance that each column adds, by feature, in units of `size`.
    price : array of shape (n,)
        The price of each column.
    high : array of shape (n,)
        The largest value of each column; the lowest is 0.
    is_whole : mask of shape (n,)
        Which columns are whole numbers.
    rows : array of shape (r, n)
        Coefficients of the rows that tie columns together.
    row_low, row_high : array of shape (r,)
        The limits of these rows.
    size : float
        The unit of distances: the limit, or the largest distance.
    """

    def __init__(
        self,
        parts: Contributions,
        region: Region,
        limit: float = np.inf,
        *,
        has_price: bool = False,
        useful: int = 0,
        avoided: Mask | None = None,
    ) -> None:
        self.parts = parts
        self.region = region
        self.limit = limit
        self._per_change = region.price.per_change * has_price
        # No single change is farther, as it has its price, too.
        self._farthest = limit - region.price.per_change
        self._useful = useful
        self._norm = region.price.norm
        self._blocked = {j for block in region.blocks for j in block}
        self._avoided = np.zeros((0, len(region.query)), bool) if avoided is None else avoided
        self._is_avoided: Mask = np.asarray(self._avoided.any(axis=0))
        self._columns: list[_Column] = []
        self._ties: list[tuple[dict[int, float], float, float]] = []
        self._changed: dict[tuple[int, int], dict[int, float]] = {}  # by feature and side
        for each in parts.gains:
            if isinstance(each, ListedGain):
                self._add_listed(each)
            else:
                self._add_straight(each)
        self._tie_blocks()
        self._tie_avoided()
        self._join_columns()

    # ── columns ──

    def _add_column(
        self,
        feature: int,
        delta: float = 0.0,
        gain: float = 0.0,
        unit: float = 0.0,
        price: float = 0.0,
        high: float = 1.0,
        is_whole: bool = True,
    ) -> int:
        """Add a column; return its place."""
        self._columns.append(_Column(feature, delta, gain, unit, price, high, is_whole))
        return len(self._columns) - 1

    def _add_listed(self, each: ListedGain) -> None:
        """Add a binary column for each listed code."""
        region = self.region
        j = each.feature
        X = np.repeat(region.query[None], len(each.codes), axis=0)
        X[:, j] = each.codes
        weight = region.weight[j]
        is_count = self._norm == 0
        units = np.full(len(X), weight) if is_count else region.units(X)[:, j]
        is_changed = region.changes(X)[:, j]
        price = self._per_change * is_changed
        is_kept = ~is_changed | (units <= self._farthest)
        if self._useful:
            is_kept &= self._useful * each.gain > 0.0
        places = {}
        for i in np.flatnonzero(is_kept).tolist():
            delta = float(each.codes[i] - region.query[j])
            at = self._add_column(j, delta, each.gain[i], units[i], price[i])
            places[at] = 1.0
            self._changed.setdefault((j, int(np.sign(delta))), {})[at] = 1.0
        if len(places) > 1:
            self._ties.append((places, -np.inf, 1.0))

    def _add_straight(self, each: StraightGain) -> None:
        """Add the columns of a feature whose gain is proportional to its change."""
        region = self.region
        j = each.feature
        weight = float(region.weight[j])
        is_count = self._norm == 0
        if self._farthest < weight * is_count:
            return
        unit = 0.0 if is_count else weight / float(region.scale[j])
        moved: int | None = None
        for own in each.sides:
            side = own
            if j in self._blocked and not own.step:
                least = LEAST_MOVE * float(region.scale[j])
                side = replace(own, first=max(own.first, least))
            if self._useful and self._useful * side.sign * each.slope <= 0.0:
                continue
            last = side.last if unit == 0.0 else min(side.last, self._farthest / unit)
            n_more = np.floor((last - side.first) / side.step + REGULAR) if side.step else 0.0
            if n_more < 0.0 or last < side.first:
                continue
            if side.step:
                last = side.first + n_more * side.step
            moved = self._add_side(each, side, last, unit, moved)
        both = [self._changed.get((j, sign), {}) for sign in (-1, 1)]
        if all(both):
            self._ties.append((both[0] | both[1], -np.inf, 1.0))

    def _add_side(
        self, each: StraightGain, side: Side, last: float, unit: float, moved: int | None
    ) -> int | None:
        """Add the columns of one side up to `last`; return the one that prices a change, if any."""
        region = self.region
        j = each.feature
        is_blocked = j in self._blocked
        # The first step of a grid that begins one step from the query needs no column of its own.
        is_even = side.step > 0.0 and abs(side.first - side.step) <= REGULAR * side.step
        first = 0.0 if is_even and not is_blocked else side.first
        stride = side.step or last - first
        high = float(np.rint((last - first) / stride)) if side.step else 1.0
        length: dict[int, float] = {}  # of the change, by column
        if high and stride > 0.0:
            args = (side.sign * stride, each.slope * side.sign * stride, unit * stride)
            at = self._add_column(j, *args, high=high, is_whole=side.step > 0.0)
            length[at] = stride
        price = self._per_change
        is_counted = region.max_changes is not None or self._norm == 0 or self._is_avoided[j]
        if is_counted or is_blocked or first > 0.0:
            changed = self._add_changed(each, side.sign, first, unit, price)
            price = 0.0
            for at in length:
                self._ties.append(({at: 1.0 / high, changed: -1.0}, -np.inf, 0.0))
            length[changed] = first
        if price == 0.0:
            return moved
        if moved is None:
            moved = self._add_column(j, price=price)
        shares = {at: part / last for at, part in length.items()}
        shares[moved] = -1.0
        self._ties.append((shares, -np.inf, 0.0))
        return moved

    def _add_changed(
        self, each: StraightGain, sign: int, first: float, unit: float, price: float
    ) -> int:
        """Add a column that says whether a feature has changed; return its place."""
        j = each.feature
        cost = float(self.region.weight[j]) if self._norm == 0 else unit * first
        at = self._add_column(j, sign * first, each.slope * sign * first, cost, price)
        self._changed[j, sign] = {at: 1.0}
        return at

    def _tie_blocks(self) -> None:
        """Let the features of a block rise or fall together."""
        for block in self.region.blocks:
            for sign in (-1, 1):
                lead = self._changed.get((block[0], sign), {})
                for j in block[1:]:
                    row = dict(lead)
                    for at, share in self._changed.get((j, sign), {}).items():
                        row[at] = row.get(at, 0.0) - share
                    if row:
                        self._ties.append((row, 0.0, 0.0))

    def _tie_avoided(self) -> None:
        """Let at least one feature of each avoided set keep its value."""
        for features in self._avoided:
            changed = [self._changes_of(j) for j in np.flatnonzero(features).tolist()]
            if all(changed):  # a feature without columns keeps its value
                places = {at: 1.0 for each in changed for at in each}
                self._ties.append((places, -np.inf, len(changed) - 1.0))

    def _changes_of(self, j: int) -> dict[int, float]:
        """Return the columns that say whether a feature has changed."""
        return self._changed.get((j, -1), {}) | self._changed.get((j, 1), {})

    def _join_columns(self) -> None:
        """Make arrays of all columns, and of the rows that every solution keeps."""
        region = self.region
        n = len(self._columns)
        d = len(region.query)
        table = np.array(self._columns, dtype=np.float64).reshape(n, len(_Column._fields))
        features, delta, self.gain, unit, self.price, self.high, is_whole = table.T
        self.feature: Indices = features.astype(np.intp)
        each = np.arange(n)
        self.delta = np.zeros((d, n))
        self.delta[self.feature, each] = delta
        self.units = np.zeros((d, n))
        self.units[self.feature, each] = unit
        self.is_whole: Mask = is_whole > 0.0
        total = float((self.units @ self.high).sum())
        self.size = self.limit if np.isfinite(self.limit) else total
        self.size = self.size if self.size > 0.0 else 1.0
        self.units /= self.size
        if region.max_changes is not None:
            changed = {at: 1.0 for places in self._changed.values() for at in places}
            self._ties.append((changed, -np.inf, float(region.max_changes)))
        self.rows = np.zeros((len(self._ties), n))
        for i, (row, _, _) in enumerate(self._ties):
            self.rows[i, list(row)] = list(row.values())
        self.row_low = np.array([low for _, low, _ in self._ties])
        self.row_high = np.array([high for _, _, high in self._ties])

    # ── solutions ──

    @property
    def is_discrete(self) -> bool:
        """Whether all columns are whole numbers."""
        return bool(self.is_whole.all())

    def row(self, columns: Array) -> Array:
        """Return the allowed codes ``(d,)`` of a solution."""
        values = np.where(self.is_whole, np.rint(columns), columns)
        values = np.where(np.abs(values) < NOTHING * self.high, 0.0, values)
        X = self.region.query + self.delta @ values
        return np.asarray(self.region.snap(X[None])[0])


def changes_all_of(region: Region, X: Array, sets: Mask) -> Mask:
    """Return which codes ``(n, d)`` change all features of any of the sets ``(m, d)``."""
    is_left = np.asarray(~region.changes(X)[:, None] & sets)  # (n, m, d)
    return np.asarray(~np.asarray(is_left.any(axis=2)).all(axis=1))
