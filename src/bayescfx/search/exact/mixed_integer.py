"""Questions about sums of gains as mixed-integer linear programs, solved by HiGHS.

A feature on a line has one column per side of the query, which counts steps or shares of the way.
Listed codes have a binary column each. Binary columns also say whether a feature has changed, and
whether its change is clear, so that it costs a premium.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.search.exact.contributions import (
    REGULAR,
    Contributions,
    ListedGain,
    Side,
    StraightGain,
    ruled_rows,
)
from bayescfx.space.effort import PREMIUM, TRIVIAL, clear_changes
from bayescfx.space.region import DUST, Region

#: Objectives are about so large, since HiGHS stops at an absolute gap of 1e-6.
OBJECTIVE_SIZE = 100.0
#: Share by which bounds of HiGHS are lowered, as its tolerances are about so large.
BOUND_TOLERANCE = 1e-7
#: Share by which the sides of linear rules are rounded; equalities hold up to 1e-9.
RULE_TOLERANCE = 2e-9
#: Trivial changes stay below their limit by this share.
BELOW = 1e-9
#: Columns with smaller values are 0 (numerical).
NOTHING = 1e-9
_TIMED_OUT = 1
_INFEASIBLE = 2


@dataclass(frozen=True)
class Piece:
    """A part of the rows of a question, in which the effort has a linear lower bound.

    Parameters
    ----------
    target : tuple of float
        The lowest and highest sum that is accepted.
    kind : {"distance", "near", "far"}
        Minimise the distance; the effort up to distance 1, which is ``distance * (1 + premium)``;
        or the effort from distance 1 on, which is ``distance + premium``.
    bound : float
        No row of the piece costs less.
    least_distance : float
        No row of the piece is nearer.
    premium : tuple of float
        The lowest and highest sum of premiums.
    tries : int
        How often the piece has been solved without a conclusion.
    """

    target: tuple[float, float]
    kind: str = "distance"
    bound: float = 0.0
    least_distance: float = 0.0
    premium: tuple[float, float] = (0.0, np.inf)
    tries: int = 0


@dataclass(frozen=True, eq=False)
class Solution:
    """What the solver returned.

    Parameters
    ----------
    columns : array of shape (n,) or None
        The values of the columns; None without a solution.
    bound : float
        The lowest value that the objective can have; infinite if there is no solution at all.
    is_complete : bool
        Whether the solver ended by itself.
    """

    columns: Array | None
    bound: float
    is_complete: bool


class Program:
    """The columns and rows of a question.

    Parameters
    ----------
    parts : Contributions
        The gains of features.
    region : Region
        The rows that are allowed. Rules that are not linear are left out.
    limit : float
        Rows are wanted that cost less.
    has_premium : bool
        Whether columns are needed that say which changes are clear.
    useful : {-1, 0, 1}
        The sign of gains that are of use; 0 if all are.

    Attributes
    ----------
    delta : array of shape (d, n)
        How each column changes the codes.
    gain : array of shape (n,)
        How each column changes the sum.
    units : array of shape (d, n)
        The distance that each column adds, by feature, in units of `size`.
    premium : array of shape (n,)
        The premium of each column.
    high : array of shape (n,)
        The largest value of each column; the lowest is 0.
    is_whole : mask of shape (n,)
        Which columns are whole numbers.
    """

    def __init__(
        self,
        parts: Contributions,
        region: Region,
        limit: float = np.inf,
        *,
        has_premium: bool = False,
        useful: int = 0,
    ) -> None:
        self.parts = parts
        self.region = region
        self.limit = limit
        self._has_premium = has_premium and region.cost.weight != 0.0
        self._useful = useful
        self._norm = region.cost.norm
        self._blocked = {j for block in region.blocks for j in block}
        self._columns: list[tuple[int, float, float, float, float, float, bool]] = []
        self._rows: list[tuple[dict[int, float], float, float]] = []
        self._changed: dict[tuple[int, int], dict[int, float]] = {}  # by feature and side
        for each in parts.gains:
            if isinstance(each, ListedGain):
                self._add_listed(each)
            else:
                self._add_straight(each)
        self._tie_blocks()
        self._join_columns()

    # ── columns ──

    def _add_column(
        self,
        feature: int,
        delta: float = 0.0,
        gain: float = 0.0,
        unit: float = 0.0,
        premium: float = 0.0,
        high: float = 1.0,
        is_whole: bool = True,
    ) -> int:
        """Add a column; return its place."""
        self._columns.append((feature, delta, gain, unit, premium, high, is_whole))
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
        premium = PREMIUM * weight * clear_changes(region, X)[:, j] * self._has_premium
        is_kept = units <= self.limit
        if self._useful:
            is_kept &= self._useful * each.gain > 0.0
        places = {}
        for i in np.flatnonzero(is_kept).tolist():
            delta = float(each.codes[i] - region.query[j])
            at = self._add_column(j, delta, each.gain[i], units[i], premium[i])
            places[at] = 1.0
            self._changed.setdefault((j, int(np.sign(delta))), {})[at] = 1.0
        if len(places) > 1:
            self._rows.append((places, -np.inf, 1.0))

    def _add_straight(self, each: StraightGain) -> None:
        """Add the columns of a feature whose gain is proportional to its change."""
        region = self.region
        j = each.feature
        weight = float(region.weight[j])
        is_count = self._norm == 0
        if is_count and weight > self.limit:
            return
        unit = 0.0 if is_count else weight / float(region.scale[j])
        clear: int | None = None
        for side in each.sides:
            if self._useful and self._useful * side.sign * each.slope <= 0.0:
                continue
            last = side.last if unit == 0.0 else min(side.last, self.limit / unit)
            n_more = np.floor((last - side.first) / side.step + REGULAR) if side.step else 0.0
            if n_more < 0.0 or last < side.first:
                continue
            if side.step:
                last = side.first + n_more * side.step
            clear = self._add_side(each, side, last, unit, clear)
        both = [self._changed.get((j, sign), {}) for sign in (-1, 1)]
        if all(both):
            self._rows.append((both[0] | both[1], -np.inf, 1.0))

    def _add_side(
        self, each: StraightGain, side: Side, last: float, unit: float, clear: int | None
    ) -> int | None:
        """Add the columns of one side up to `last`; return the one for clear changes, if any."""
        region = self.region
        j = each.feature
        weight = float(region.weight[j])
        slope = each.slope * side.sign
        is_count = self._norm == 0
        # The first step of a grid that begins one step from the query needs no column of its own.
        is_even = side.step > 0.0 and abs(side.first - side.step) <= REGULAR * side.step
        first = 0.0 if is_even else side.first
        stride = side.step or last - first
        high = float(np.rint((last - first) / stride)) if side.step else 1.0
        move: dict[int, float] = {}
        if high and stride > 0.0:
            args = (side.sign * stride, slope * stride, unit * stride)
            at = self._add_column(j, *args, high=high, is_whole=side.step > 0.0)
            move[at] = stride
        trivial = _largest_trivial(side, last, TRIVIAL * float(region.scale[j]) * (1.0 - BELOW))
        premium = PREMIUM * weight * self._has_premium
        has_clear = premium > 0.0 and last > trivial
        needs_changed = region.max_changes is not None or is_count or j in self._blocked
        if needs_changed or first > 0.0:
            own_premium = premium if has_clear and trivial == 0.0 else 0.0
            args = (side.sign * first, slope * first, weight if is_count else unit * first)
            changed = self._add_column(j, *args, own_premium)
            self._changed[j, side.sign] = {changed: 1.0}
            for at in move:
                self._rows.append(({at: 1.0 / high, changed: -1.0}, -np.inf, 0.0))
            move[changed] = first
            has_clear &= trivial > 0.0
            if j in self._blocked:
                least = side.first if side.step else max(first, DUST * float(region.scale[j]))
                shares = {at: length / last for at, length in move.items()}
                shares[changed] -= least / last
                self._rows.append((shares, 0.0, np.inf))
        if not has_clear:
            return clear
        if clear is None:
            clear = self._add_column(j, premium=premium)
        shares = {at: length / last for at, length in move.items()}
        shares[clear] = trivial / last - 1.0
        self._rows.append((shares, -np.inf, trivial / last))
        return clear

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
                        self._rows.append((row, 0.0, 0.0))

    def _join_columns(self) -> None:
        """Make arrays of all columns, and of the rows that every solution keeps."""
        region = self.region
        n = len(self._columns)
        d = len(region.query)
        table = np.array(self._columns, dtype=np.float64).reshape(n, 7)
        feature: Indices = table[:, 0].astype(np.intp)
        each = np.arange(n)
        self.delta = np.zeros((d, n))
        self.delta[feature, each] = table[:, 1]
        self.gain = table[:, 2]
        self.units = np.zeros((d, n))
        self.units[feature, each] = table[:, 3]
        self.premium = table[:, 4]
        self.high = table[:, 5]
        self.is_whole: Mask = table[:, 6] > 0.0
        total = float((self.units @ self.high).sum())
        self.size = self.limit if np.isfinite(self.limit) else total
        self.size = self.size if self.size > 0.0 else 1.0
        self.units /= self.size
        if region.max_changes is not None:
            changed = {at: 1.0 for places in self._changed.values() for at in places}
            self._rows.append((changed, -np.inf, float(region.max_changes)))
        self._fixed_rows = np.zeros((len(self._rows), n))
        for i, (row, _, _) in enumerate(self._rows):
            self._fixed_rows[i, list(row)] = list(row.values())
        self._fixed_low = np.array([low for _, low, _ in self._rows])
        self._fixed_high = np.array([high for _, _, high in self._rows])

    @property
    def most_premium(self) -> float:
        """A bound on the sum of premiums."""
        region = self.region
        premiums = np.sort(PREMIUM * region.weight[region.free])[::-1]
        return float(premiums[: region.max_changes].sum())

    # ── rows ──

    def _rules(self, inward: float) -> tuple[Array, Array]:
        """Return the linear rules over columns: coefficients ``(r, n)`` and bounds ``(r,)``."""
        region = self.region
        usable = ruled_rows(region)
        A = region.A[usable]
        is_known = ~np.isnan(region.query) & ~region.recomputed
        terms = A[:, is_known] * region.query[is_known]
        size = np.abs(terms).sum(axis=1) + np.abs(region.b[usable])
        room = region.b[usable] - terms.sum(axis=1)
        room += RULE_TOLERANCE * np.where(inward > 0.0, -1.0, 1.0) * size
        coefficients = A @ self.delta
        largest = np.abs(coefficients * self.high).max(axis=1, initial=0.0)
        largest = np.where(largest > 0.0, largest, 1.0)
        return coefficients / largest[:, None], room / largest

    def _target_row(self, target: tuple[float, float], precision: float) -> tuple[Array, Array]:
        """Return the row ``(n,)`` of the gain, and its two ends."""
        largest = float(np.abs(self.gain * self.high).max(initial=0.0)) or 1.0
        factor = precision / largest
        ends = (np.array(target) - self.parts.start) * factor
        return self.gain * factor, ends

    def solve(
        self,
        piece: Piece,
        cuts: list[Array],
        *,
        precision: float = 1.0,
        inward: float = 0.0,
        fixed: Array | None = None,
        time_limit: float = np.inf,
    ) -> Solution:
        """Solve a piece of the question.

        Parameters
        ----------
        piece : Piece
        cuts : list of arrays of shape (d,)
            Gradients of the distance, for norms other than 0 and 1.
        precision : float
            The factor by which the sum must be met more exactly.
        inward : float
            By how much the sum must lie inside of the target; rules are kept exactly if positive.
        fixed : array of shape (n,), optional
            A solution whose whole numbers are kept.
        time_limit : float
            Seconds.
        """
        n = len(self.high)
        low, high = piece.target
        target, ends = self._target_row((low + inward, high - inward), precision)
        rules, room = self._rules(inward)
        blocks = [self._padded(self._fixed_rows), self._padded(rules), self._padded(target[None])]
        lows = [self._fixed_low, np.full(len(room), -np.inf), ends[:1]]
        highs = [self._fixed_high, room, ends[1:]]
        for block, block_low, block_high in (self._distance_rows(cuts), self._effort_rows(piece)):
            blocks.append(block)
            lows.append(block_low)
            highs.append(block_high)
        cost = np.zeros(n + 2)
        cost[n + 1] = OBJECTIVE_SIZE
        top = np.append(self.high, [np.inf, np.inf])
        bottom = np.zeros(n + 2)
        if fixed is not None:
            whole = np.flatnonzero(self.is_whole)
            bottom[whole] = np.rint(fixed[whole])
            top[whole] = bottom[whole]
        is_whole = np.append(self.is_whole if fixed is None else np.zeros(n), [0, 0])
        if (ends[0] > ends[1]) or not n:
            return Solution(None, np.inf, True)
        result = milp(
            cost,
            integrality=is_whole,
            bounds=Bounds(bottom, top),
            constraints=LinearConstraint(
                np.vstack(blocks), np.concatenate(lows), np.concatenate(highs)
            ),
            options={"mip_rel_gap": 0.0, "time_limit": min(time_limit, 1e6)},
        )
        return self._read(result, has_whole=bool(is_whole.any()))

    def solve_extreme(self, sign: int, time_limit: float = np.inf) -> Solution:
        """Return the solution with the highest (1) or lowest (-1) gain; its bound is not set."""
        rules, room = self._rules(0.0)
        gain, _ = self._target_row((0.0, 0.0), OBJECTIVE_SIZE)
        result = milp(
            -sign * gain,
            integrality=self.is_whole,
            bounds=Bounds(0.0, self.high),
            constraints=LinearConstraint(
                np.vstack([self._fixed_rows, rules]),
                np.concatenate([self._fixed_low, np.full(len(room), -np.inf)]),
                np.concatenate([self._fixed_high, room]),
            ),
            options={"mip_rel_gap": 0.0, "time_limit": min(time_limit, 1e6)},
        )
        columns = None if result.x is None else np.asarray(result.x)
        return Solution(columns, -np.inf, result.status != _TIMED_OUT)

    def _padded(self, rows: Array) -> Array:
        """Return rows over columns ``(r, n)`` with zeros for distance and effort."""
        return np.hstack([rows, np.zeros((len(rows), 2))])

    def _distance_rows(self, cuts: list[Array]) -> tuple[Array, Array, Array]:
        """Return rows that tie the distance, which is the last column but one, to the columns."""
        if self._norm in (0, 1):
            rows = self._padded(-self.units.sum(axis=0)[None])
            rows[:, -2] = 1.0
            return rows, np.zeros(1), np.zeros(1)
        is_moved = self.units.any(axis=1)
        gradients = np.vstack([np.eye(len(is_moved))[is_moved], *cuts])
        rows = self._padded(-gradients @ self.units)
        rows[:, -2] = 1.0
        return rows, np.zeros(len(rows)), np.full(len(rows), np.inf)

    def _effort_rows(self, piece: Piece) -> tuple[Array, Array, Array]:
        """Return rows that tie the effort, which is the last column, to distance and premium.

        Up to distance 1 the effort has the product of distance D and premium P. It is at least
        ``D p + d P - d p`` where D >= d and P >= p, or D <= d and P <= p.
        """
        n = len(self.high)
        most = self.limit / self.size if np.isfinite(self.limit) else np.inf
        one = 1.0 / self.size
        least = piece.least_distance / self.size
        rows = []

        def add(distance: float, premium: float, effort: float, low: float, high: float) -> None:
            row = np.zeros(n + 2)
            row[:n] = premium * self.premium
            row[n:] = (distance, effort)
            rows.append((row, low, high))

        add(0.0, 0.0, 1.0, -np.inf, most)
        if piece.kind == "distance":
            add(-1.0, 0.0, 1.0, 0.0, np.inf)
        elif piece.kind == "far":
            add(-1.0, -one, 1.0, 0.0, np.inf)
            add(1.0, 0.0, 0.0, one, np.inf)
        else:
            start, end = piece.premium
            farthest = min(one, most / (1.0 + start))
            add(1.0, 0.0, 0.0, least, farthest)
            add(0.0, 1.0, 0.0, start - NOTHING, end + NOTHING)
            add(-1.0 - start, -least, 1.0, -least * start, np.inf)
            add(-1.0 - end, -farthest, 1.0, -farthest * end, np.inf)
        block = np.array([row for row, _, _ in rows])
        return block, np.array([r[1] for r in rows]), np.array([r[2] for r in rows])

    def _read(self, result: object, *, has_whole: bool) -> Solution:
        """Return a result of HiGHS in the units of the question."""
        status = getattr(result, "status")
        columns = getattr(result, "x")
        if status == _INFEASIBLE:
            return Solution(None, np.inf, True)
        dual = getattr(result, "mip_dual_bound", None)
        if not has_whole and status == 0:
            dual = getattr(result, "fun")
        bound = 0.0
        if dual is not None and np.isfinite(dual):
            bound = max(float(dual) / OBJECTIVE_SIZE * self.size * (1.0 - BOUND_TOLERANCE), 0.0)
        values = None if columns is None else np.asarray(columns)[:-2]
        return Solution(values, bound, status == 0)

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


def _largest_trivial(side: Side, last: float, most: float) -> float:
    """Return the largest change of a side that is not above `most`; 0 if there is none."""
    if side.first > most:
        return 0.0
    if not side.step:
        return min(most, last)
    return min(side.first + side.step * float(np.floor((most - side.first) / side.step)), last)
