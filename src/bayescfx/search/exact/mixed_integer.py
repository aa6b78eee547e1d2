"""Questions about sums of gains as mixed-integer linear programs, solved by HiGHS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.search.exact.contributions import ruled_rows
from bayescfx.search.exact.gain_columns import GainColumns

if TYPE_CHECKING:  # loading it takes longer than everything else
    from scipy.optimize import OptimizeResult

#: Objectives are about so large, since HiGHS stops at an absolute gap of 1e-6.
OBJECTIVE_SIZE = 100.0
#: Share by which bounds of HiGHS are lowered, as its tolerances are about so large.
BOUND_TOLERANCE = 1e-7
#: Share by which linear rules are widened, by strictness; equalities hold up to 1e-9.
RULE_TOLERANCE = (2e-9, 0.0, -1e-12)
#: Seconds of a time limit that never ends.
LONGEST = 1e6
SOLVED = 0
INFEASIBLE = 2
FAILED = 4
OPEN = 5  # the runs of a program disagree


@dataclass(frozen=True)
class Piece:
    """One interval of accepted sums, and what is known about its rows.

    Parameters
    ----------
    target : tuple of float
        The lowest and highest sum that is accepted.
    has_price : bool
        Whether the cost is minimised; otherwise the distance, whose program is smaller.
    bound : float
        No row of the piece costs less.
    tries : int
        How often the piece has been solved without a conclusion.
    """

    target: tuple[float, float]
    has_price: bool
    bound: float = 0.0
    tries: int = 0


@dataclass(frozen=True, eq=False)
class Solution:
    """What the solver returned.

    Parameters
    ----------
    values : array of shape (n,) or None
        The values of the columns; None without a solution.
    bound : float
        The lowest value that the objective can have; infinite if there is no solution at all.
    is_complete : bool
        Whether the solver ended by itself.
    n_nodes : int
        The number of nodes of the solver's tree.
    """

    values: Array | None
    bound: float
    is_complete: bool
    n_nodes: int = 0


@dataclass(frozen=True, eq=False)
class Program:
    """A mixed-integer linear program.

    One column follows those of the gains: the distance in units of `columns.size`, for norms other
    than 0 and 1.

    Parameters
    ----------
    columns : GainColumns
        The columns, and the rows that tie them together.
    """

    columns: GainColumns

    @property
    def n_entries(self) -> int:
        """The size of the matrix, as a measure of work; rows of norms are left out."""
        return (len(self.columns.high) + 1) * (len(self.columns.rows) + 3)

    def _target_row(self, target: tuple[float, float], precision: float) -> tuple[Array, Array]:
        """Return the row ``(n,)`` of the gain, and its two ends."""
        largest = float(np.abs(self.columns.gain * self.columns.high).max(initial=0.0)) or 1.0
        factor = precision / largest
        ends = (np.array(target) - self.columns.parts.start) * factor
        return self.columns.gain * factor, ends

    def solve(
        self,
        piece: Piece,
        cuts: list[Array],
        *,
        precision: float = 1.0,
        inward: float = 0.0,
        strictness: int = 0,
        fixed: Array | None = None,
        limits: tuple[float, int | None] = (np.inf, None),
        is_reversed: bool = False,
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
            By how much the sum must lie inside of the target.
        strictness : {0, 1, 2}
            Whether linear rules are widened, exact, or narrowed by rounding.
        fixed : array of shape (n,), optional
            A solution whose whole numbers are kept.
        limits : tuple of float and int
            Seconds, and nodes of the solver's tree.
        is_reversed : bool
            Whether the solver gets rows and columns in reversed order, so that it branches in
            another way.
        """
        n = len(self.columns.high)
        size = self.columns.size
        low, high = piece.target
        target, ends = self._target_row((low + inward, high - inward), precision)
        rules, room = linear_rules(self.columns, strictness)
        blocks = [self._padded(self.columns.rows), self._padded(rules), self._padded(target[None])]
        lows = [self.columns.row_low, np.full(len(room), -np.inf), ends[:1]]
        highs = [self.columns.row_high, room, ends[1:]]
        cost = self._objective(has_price=piece.has_price)
        gradients = self._gradient_rows(cuts)
        blocks += [gradients, cost[None]]
        lows += [np.zeros(len(gradients)), np.array([-np.inf])]
        highs += [np.full(len(gradients), np.inf), np.array([self.columns.limit / size])]
        if not n or bool(ends[0] > ends[1]):
            return Solution(None, np.inf, True)
        rows = np.vstack(blocks), np.concatenate(lows), np.concatenate(highs)
        return self._run(cost, rows, fixed, limits, step=-1 if is_reversed else 1)

    def _run(
        self,
        cost: Array,
        rows: tuple[Array, Array, Array],
        fixed: Array | None,
        limits: tuple[float, int | None],
        step: int,
    ) -> Solution:
        """Return the solver's result; with the step -1 it gets rows and columns reversed."""
        n = len(self.columns.high)
        top = np.append(self.columns.high, np.inf)
        bottom = np.zeros(n + 1)
        is_whole = np.append(self.columns.is_whole, False)
        if fixed is not None:
            whole = np.flatnonzero(is_whole)
            bottom[whole] = np.rint(fixed[whole])
            top[whole] = bottom[whole]
            is_whole[:] = False
        block, low, high = rows
        limited = block[::step, ::step], low[::step], high[::step]
        bounds = bottom[::step], top[::step]
        result = run_solver(
            OBJECTIVE_SIZE * cost[::step], is_whole[::step], bounds, limited, *limits
        )
        if result.x is not None:
            result["x"] = result.x[::step]
        return self._read(result, has_whole=bool(is_whole.any()))

    def solve_extreme(
        self, sign: int, *, strictness: int = 0, time_limit: float = np.inf
    ) -> Solution:
        """Return the solution with the highest (1) or lowest (-1) gain; its bound is not set."""
        rules, room = linear_rules(self.columns, strictness)
        gain, _ = self._target_row((0.0, 0.0), OBJECTIVE_SIZE)
        rows = (
            np.vstack([self.columns.rows, rules]),
            np.concatenate([self.columns.row_low, np.full(len(room), -np.inf)]),
            np.concatenate([self.columns.row_high, room]),
        )
        bounds = np.zeros(len(self.columns.high)), self.columns.high
        result = run_solver(-sign * gain, self.columns.is_whole, bounds, rows, time_limit)
        columns = None if result.x is None else np.asarray(result.x)
        return Solution(columns, -np.inf, result.status in (SOLVED, INFEASIBLE))

    def _padded(self, rows: Array) -> Array:
        """Return rows over columns ``(r, n)`` with zeros for the distance."""
        return np.hstack([rows, np.zeros((len(rows), 1))])

    def _objective(self, *, has_price: bool) -> Array:
        """Return the cost, or the distance alone, as a combination ``(n + 1,)`` of columns."""
        columns = self.columns
        n = len(columns.high)
        cost = np.zeros(n + 1)
        if columns.region.price.norm in (0, 1):
            cost[:n] = columns.units.sum(axis=0)
        else:
            cost[n] = 1.0
        if has_price:
            cost[:n] += columns.price / columns.size
        return cost

    def _gradient_rows(self, cuts: list[Array]) -> Array:
        """Return rows that are at least 0 where the column of the distance is above its tangents.

        There are none for the norms 0 and 1.
        """
        if self.columns.region.price.norm in (0, 1):
            return self._padded(np.empty((0, len(self.columns.high))))
        is_moved: Mask = np.asarray(self.columns.units.any(axis=1))
        gradients = np.vstack([np.eye(len(is_moved))[is_moved], *cuts])
        rows = self._padded(-gradients @ self.columns.units)
        rows[:, -1] = 1.0
        return rows

    def _read(self, result: OptimizeResult, *, has_whole: bool) -> Solution:
        """Return a result of HiGHS in the units of the question."""
        status = result.status
        columns = result.x
        n_nodes = int(getattr(result, "mip_node_count", None) or 0)
        if status == INFEASIBLE:
            return Solution(None, np.inf, True, n_nodes)
        dual = result.mip_dual_bound if has_whole else result.fun
        bound = 0.0
        if dual is not None and np.isfinite(dual):
            bound = max(
                float(dual) / OBJECTIVE_SIZE * self.columns.size * (1.0 - BOUND_TOLERANCE), 0.0
            )
        values = None if columns is None else np.asarray(columns)[:-1]
        return Solution(values, bound, status == SOLVED, n_nodes)


def linear_rules(columns: GainColumns, strictness: int) -> tuple[Array, Array]:
    """Return the linear rules over columns: coefficients ``(r, n)`` and bounds ``(r,)``."""
    region = columns.region
    usable = ruled_rows(region)
    A = region.A[usable]
    is_known = ~np.isnan(region.query) & ~region.recomputed
    terms = A[:, is_known] * region.query[is_known]
    size = np.abs(terms).sum(axis=1) + np.abs(region.b[usable])
    room = region.b[usable] - terms.sum(axis=1)
    room += RULE_TOLERANCE[min(strictness, len(RULE_TOLERANCE) - 1)] * size
    coefficients = A @ columns.delta
    largest = np.abs(coefficients * columns.high).max(axis=1, initial=0.0)
    largest = np.where(largest > 0.0, largest, 1.0)
    return coefficients / largest[:, None], room / largest


def run_solver(
    cost: Array,
    is_whole: Mask,
    bounds: tuple[Array, Array],
    rows: tuple[Array, Array, Array],
    time_limit: float,
    node_limit: int | None = None,
) -> OptimizeResult:
    """Return the result of HiGHS.

    Programs are not presolved unless HiGHS fails without: presolving made HiGHS 1.12 return a
    solution as optimal that is not, in 1 of 9,000 programs of random networks (2026-11-18).
    See https://github.com/ERGO-Code/HiGHS/issues/1725. Without presolving it called 3 of 7,800
    programs infeasible that have solutions (2026-11-19), so that this needs both.

    `bounds` are the lowest and highest values of the columns, `rows` are a matrix and the lowest
    and highest values of its rows.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    options: dict[str, Any] = {"mip_rel_gap": 0.0, "time_limit": min(time_limit, LONGEST)}
    if node_limit is not None:
        options["node_limit"] = node_limit

    def run(*, presolve: bool) -> OptimizeResult:
        return milp(
            cost,
            integrality=is_whole.astype(np.intp),
            bounds=Bounds(*bounds),
            constraints=LinearConstraint(*rows),
            options=cast("Any", {**options, "presolve": presolve}),
        )

    result = run(presolve=False)
    if result.status not in (FAILED, INFEASIBLE):
        return result
    again = run(presolve=True)
    if result.status == INFEASIBLE and again.status != INFEASIBLE:
        again.update(status=OPEN, mip_dual_bound=None, fun=None)
    return again
