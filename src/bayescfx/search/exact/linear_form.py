"""The nearest row of a target, and extreme outputs, for linear models.

Each interval of accepted sums is one piece. The least distance is found first: its row limits the
cost, and the program of the cost, with a binary column for each change, becomes smaller.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.deadline import NEVER, Deadline
from bayescfx.models.readers.forms import LinearModel
from bayescfx.potentials import Intervals
from bayescfx.search.exact.branching import Bound, Work
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.contributions import (
    Contributions,
    best_changes,
    breaks_other_rules_only,
    ruled_rows,
    take_apart,
)
from bayescfx.search.exact.gain_columns import NOTHING, GainColumns, changes_all_of
from bayescfx.search.exact.mixed_integer import BOUND_TOLERANCE, Piece, Program, Solution
from bayescfx.search.exact.tangents import gradient, nearest_point, new_gradient
from bayescfx.space.region import Region


@dataclass(frozen=True)
class LinearTuning:
    """Numbers of the search; set by judgement, 2026-11-18."""

    same_cost: float = 1e-6  # share of the cost within which an answer counts as the nearest
    same_distance: float = 1e-7  # share of the distance within which a tangent is exact
    tries: int = 3  # how often a piece is solved, each time more exactly
    precision: float = 1e3  # how much more exactly
    margin: float = 1.01  # how much more than the limit rows may cost inside the solver
    cuts: int = 200  # gradients of the distance, for norms other than 0 and 1
    polishing: int = 3  # how often a row is moved into the target
    program_work: float = 3e4  # of a program, in summands as for trees: 15 million take a second
    node_work: float = 3.0  # of a node, per entry of the matrix


TUNING = LinearTuning()
#: What is known if the solver fails.
NO_RESULT = Solution(None, 0.0, False)


@dataclass(eq=False)
class _Search:
    """The search for the nearest row of one question."""

    form: LinearModel
    region: Region
    parts: Contributions
    slack: float
    limit: float
    work: Work
    avoided: Mask
    is_reversed: bool = False
    cuts: list[Array] = field(default_factory=list)
    closed: float = np.inf
    open: float = np.inf
    is_stuck: bool = False

    def run(self, accepted: Intervals) -> Generator[Array, Mask, Bound]:
        """Search for rows; see :func:`find_nearest_linear`."""
        margin = self.slack + self.parts.rounding
        targets = [(low - margin, high + margin) for low, high in accepted]
        query = self.region.complete(self.region.query[None])
        start = self.parts.start
        if any(low <= start <= high for low, high in targets) and self.region.contains(query)[0]:
            is_hit = yield query
            if is_hit[0]:
                return Bound(0.0, True, False)
        is_distance = self.region.price.per_change == 0.0  # the distance is the cost already
        pieces = [Piece(target, has_price=is_distance) for target in targets]
        while pieces and not self.work.is_over:
            pieces.sort(key=lambda piece: -piece.bound)
            piece = pieces.pop()
            if self._is_closed(piece.bound):
                self.closed = min(self.closed, piece.bound)
                continue
            pieces += yield from self._treat(piece)
        self.open = min([self.open, *(piece.bound for piece in pieces)])
        cost = min(self.open, self.closed, self.limit)
        is_complete = self._is_closed(self.open)
        return Bound(cost, is_complete, self.is_stuck and not is_complete)

    def _is_closed(self, bound: float) -> bool:
        """Return whether nothing above a bound is of interest."""
        return bound >= self.limit * (1.0 - TUNING.same_cost)

    def _treat(self, piece: Piece) -> Generator[Array, Mask, list[Piece]]:
        """Solve a piece; yield rows; return the pieces that are left of it."""
        if self._is_beyond(piece.target):
            return []
        columns = self._make_columns(piece)
        if not self.cuts:
            everything = np.ones(len(self.region.query), dtype=np.bool_)
            yield from self._ask_nearest(columns, piece, everything)
        limit = self.limit
        program = Program(columns)
        precision = TUNING.precision**piece.tries
        solution = self._solve(program, piece, precision)
        if solution.values is None and self._has_solution(piece, columns):
            solution = NO_RESULT
        # At least one feature changes.
        least = solution.bound + (0.0 if piece.has_price else self.region.price.per_change)
        piece = replace(piece, bound=max(piece.bound, min(least, limit)))
        if solution.values is None:
            return self._leave(piece, is_closed=solution.is_complete)
        is_allowed = yield from self._ask(program, piece, solution)
        is_moved = (columns.units @ solution.values) > NOTHING
        yield from self._ask_nearest(columns, piece, is_moved)
        if not solution.is_complete:
            return self._leave(piece, is_closed=False)
        if not piece.has_price:
            return [replace(piece, has_price=True)]
        is_closed = self._is_closed(piece.bound)
        if is_closed or not is_allowed:
            self.is_stuck |= not is_closed
            return self._leave(piece, is_closed=is_closed)
        return self._refine(piece, columns, solution)

    def _solve(self, program: Program, piece: Piece, precision: float) -> Solution:
        """Return the solution of a piece, with what is left of work and time."""
        work = self.work
        per_node = TUNING.node_work * program.n_entries
        n_nodes = None
        if np.isfinite(work.most):
            n_nodes = max(int((work.most - work.done) / per_node), 1)
        solution = program.solve(
            piece,
            self.cuts,
            precision=precision,
            limits=(work.deadline.left, n_nodes),
            is_reversed=self.is_reversed,
        )
        work.done += TUNING.program_work + per_node * solution.n_nodes
        return solution

    def _make_columns(self, piece: Piece) -> GainColumns:
        """Return the columns of a piece."""
        # Solutions close to a limit of the solver would suffer from its tolerances.
        return GainColumns(
            self.parts,
            self.region,
            self.limit * TUNING.margin,
            has_price=piece.has_price,
            useful=_useful_gains(self.region, piece.target),
            avoided=self.avoided,
        )

    def _has_solution(self, piece: Piece, columns: GainColumns) -> bool:
        """Return whether the row with the largest gains is known to solve a piece."""
        if len(self.avoided) or np.isfinite(columns.limit):
            return False
        return _useful_gains(self.region, piece.target) != 0

    def _is_beyond(self, target: tuple[float, float]) -> bool:
        """Return whether a target is out of reach even without rules over several features."""
        ends = []
        for sign in (-1, 1):
            gains = np.sort(best_changes(self.parts.gains, sign)[2])[::-1]
            ends.append(self.parts.start + sign * gains[: self.region.max_changes].sum())
        return bool(target[0] > ends[1] or target[1] < ends[0])

    def _leave(self, piece: Piece, *, is_closed: bool) -> list[Piece]:
        """Note the bound of a piece that is not split further."""
        if is_closed:
            self.closed = min(self.closed, piece.bound)
        else:
            self.open = min(self.open, piece.bound)
        return []

    def _refine(self, piece: Piece, columns: GainColumns, solution: Solution) -> list[Piece]:
        """Return smaller pieces, or the same piece to be solved more exactly."""
        assert solution.values is not None
        if self._add_cut(columns, solution.values):
            return [piece]
        if piece.tries + 1 < TUNING.tries:
            return [replace(piece, tries=piece.tries + 1)]
        return self._leave(piece, is_closed=False)

    def _add_cut(self, columns: GainColumns, values: Array) -> bool:
        """Add the gradient of the distance at a solution if it tells something new."""
        units = columns.units @ values
        found = new_gradient(units, self.region.price.norm, self.cuts, TUNING.same_distance)
        if found is None or len(self.cuts) >= TUNING.cuts:
            return False
        self.cuts.append(found)
        return True

    def _ask_nearest(
        self, columns: GainColumns, piece: Piece, is_moved: Mask
    ) -> Generator[Array, Mask, None]:
        """Yield the nearest row where some features move, and add the gradient there."""
        norm = self.region.price.norm
        if norm in (0, 1) or len(self.cuts) >= TUNING.cuts:
            return
        inward = 2.0 * (self.slack + self.parts.rounding)
        inner = (piece.target[0] + inward, piece.target[1] - inward)
        values = nearest_point(columns, inner, is_moved, norm)
        if values is None:
            return
        self.cuts.append(gradient(columns.units @ values, norm))
        row = columns.row(values)
        is_inside = self._miss(row, piece.target) <= 0.0
        yield from self._offer(row, is_wanted=is_inside and self._is_allowed(row))

    # ── rows ──

    def _is_allowed(self, row: Array) -> bool:
        """Return whether a row keeps all rules."""
        return bool(self.region.contains(row[None])[0])

    def _offer(self, row: Array, *, is_wanted: bool) -> Generator[Array, Mask, bool | None]:
        """Yield a row that is wanted if it is the cheapest; return whether it is an answer.

        None if it was not yielded.
        """
        cost = float(self.region.cost(row[None])[0])
        if not is_wanted or not cost < self.limit:
            return None
        if changes_all_of(self.region, row[None], self.avoided)[0]:
            return None
        is_hit = yield row[None]
        if is_hit[0]:
            self.limit = cost
        return bool(is_hit[0])

    def _is_enough(self, piece: Piece, *, is_hit: bool) -> bool:
        """Return whether a row that was yielded ends the search near a solution."""
        is_tight = self.limit <= piece.bound * (1.0 + 2.0 * BOUND_TOLERANCE)
        return is_tight or (is_hit and not piece.has_price)

    def _ask(
        self, program: Program, piece: Piece, solution: Solution
    ) -> Generator[Array, Mask, bool]:
        """Yield rows near a solution; return False if only a rule that is not linear forbids it."""
        assert solution.values is not None
        values = solution.values
        inward = 0.0
        is_blocked = False
        margin = self.slack + self.parts.rounding
        for strictness in range(1, TUNING.polishing + 1):
            row = program.columns.row(values)
            is_allowed = self._is_allowed(row)
            is_blocked |= not is_allowed and breaks_other_rules_only(self.region, row)
            miss = self._miss(row, piece.target)
            is_hit = yield from self._offer(row, is_wanted=is_allowed and miss <= 0.0)
            if is_hit is not None and self._is_enough(piece, is_hit=is_hit):
                break
            if program.columns.is_discrete:
                break
            # The whole numbers of a solution are right, but its shares are not exact.
            is_inexact = strictness > 1 and miss > 0.0
            inward = max(2.0 * inward, 2.0 * margin) + 2.0 * miss * is_inexact
            nearer = program.solve(
                piece,
                self.cuts,
                inward=inward,
                strictness=strictness,
                fixed=values,
                limits=(self.work.deadline.left, None),
            )
            self.work.done += TUNING.program_work
            if nearer.values is None:
                break
            values = nearer.values
        return not is_blocked

    def _miss(self, row: Array, target: tuple[float, float]) -> float:
        """Return by how much the sum of a row misses a target; negative inside."""
        total = float(self.form.raw(self.region.rows(row[None]))[0, 0])
        return max(target[0] - total, total - target[1])


def find_nearest_linear(
    form: LinearModel,
    region: Region,
    accepted: Intervals,
    slack: float = 0.0,
    limit: float = np.inf,
    work: Work | None = None,
    parts: Contributions | None = None,
    avoided: Mask | None = None,
) -> Generator[Array, Mask, Bound]:
    """Search for the nearest row; yield codes ``(n, d)``, receive which reach the target.

    HiGHS has returned solutions as optimal that were not. So the search is run again, with all
    programs in reversed order, which leads to other branches; a proof needs both runs.

    Parameters
    ----------
    form : LinearModel
        The model.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        Sums that reach the target.
    slack : float
        By how much sums may differ from the model's through rounding.
    limit : float
        Rows are wanted that cost less.
    work : Work, optional
        What limits the work.
    parts : Contributions, optional
        The gains of the features that may move; by default those of all.
    avoided : mask of shape (m, d), optional
        Sets of features. Rows are wanted that change not all features of any of them.

    Returns
    -------
    Bound
        The cost below which there is no answer. A complete search leaves a gap of at most a
        millionth between it and the nearest row; it is infinite if the target is out of reach.

    Raises
    ------
    NoProof
        If the model or the region can't be written as a mixed-integer linear program.
    """
    parts = take_apart(form, region) if parts is None else parts
    work = Work() if work is None else work
    avoided = np.zeros((0, len(region.query)), dtype=np.bool_) if avoided is None else avoided
    first = _Search(form, region, parts, slack, limit, work, avoided)
    bound = yield from first.run(accepted)
    if not bound.is_complete or bound.cost == 0.0:
        return bound
    second = _Search(form, region, parts, slack, first.limit, work, avoided, is_reversed=True)
    again = yield from second.run(accepted)
    if second.limit < first.limit:
        return Bound(again.cost, False, False, "two runs of the solver disagree")
    return Bound(min(bound.cost, again.cost), again.is_complete, again.is_stuck)


def _useful_gains(region: Region, target: tuple[float, float]) -> int:
    """Return the sign of gains that may be of use; 0 if both may.

    Without rules over several features, a change in the wrong direction can be taken back.
    """
    if ruled_rows(region).any() or region.blocks:
        return 0
    if target[1] == np.inf:
        return 1
    return -1 if target[0] == -np.inf else 0


class Extremes(NamedTuple):
    """The rows with the lowest and the highest output.

    Parameters
    ----------
    lowest, highest : array of shape (d,)
        Their codes.
    is_exact : bool
        Whether both are allowed. Otherwise they break a rule that is not linear, and their
        outputs are bounds.
    """

    lowest: Array
    highest: Array
    is_exact: bool


def extreme_outputs(form: LinearModel, region: Region, deadline: Deadline = NEVER) -> Extremes:
    """Return the rows with the lowest and the highest sum, and whether both are allowed.

    Raises
    ------
    NoProof
        If the model or the region can't be written as a mixed-integer linear program, no row
        keeps the linear rules, or time has run out.
    """
    parts = take_apart(form, region)
    is_separable = not (ruled_rows(region).any() or region.blocks)
    find = _separate_extreme if is_separable else _ruled_extreme
    rows = np.stack([find(region, parts, sign, deadline) for sign in (-1, 1)])
    return Extremes(rows[0], rows[1], bool(region.contains(rows).all()))


def _separate_extreme(region: Region, parts: Contributions, sign: int, deadline: Deadline) -> Array:
    """Return the row with the largest gains of single features, as many as may change."""
    features, deltas, gains = best_changes(parts.gains, sign)
    order = np.argsort(-gains, kind="stable")[: region.max_changes]
    row = region.query.copy()
    row[features[order]] += deltas[order]
    return np.asarray(region.snap(row[None])[0])


def _ruled_extreme(region: Region, parts: Contributions, sign: int, deadline: Deadline) -> Array:
    """Return the row with the largest gain that keeps the linear rules."""
    columns = GainColumns(parts, region)
    program = Program(columns)
    best: Array | None = None
    for strictness in range(TUNING.polishing):
        solution = program.solve_extreme(sign, strictness=strictness, time_limit=deadline.left)
        if not solution.is_complete:
            raise NoProof("the time limit is over")
        if solution.values is None:
            break
        row = columns.row(solution.values)
        if region.contains(row[None])[0]:
            return row
        best = row if best is None else best
    if best is None:
        raise NoProof("no row keeps the linear rules")
    return best
