"""The nearest row of a target, and extreme outputs, for ReLU networks.

A question is searched in stages: rows up to distance 1, where the effort is a product, and rows
from there on, where it is a sum, up to growing efforts. Each stage is one mixed-integer program.
The fewer rows a stage holds, the tighter are the bounds on its neurons.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.models.readers.forms import ReluNetwork
from bayescfx.potentials import Intervals
from bayescfx.search.exact.branching import Bound, Extreme, Work
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.contributions import ruled_rows
from bayescfx.search.exact.gain_columns import GainColumns
from bayescfx.search.exact.network_columns import NetworkParts, take_network_apart
from bayescfx.search.exact.network_program import NetworkProgram, NetworkSolution
from bayescfx.search.exact.problem import ROUNDING
from bayescfx.search.exact.tangents import gradient
from bayescfx.space.effort import effort
from bayescfx.space.region import Region


@dataclass(frozen=True)
class NetworkTuning:
    """Numbers of the search.

    Work is counted per entry of a program's matrix, in summands as for trees: 15 million take about
    a second. Measured with networks of 16, 16 + 16 and 32 + 32 neurons on diabetes, 2026-11-20: the
    root of the solver's tree takes 400 to 1600 per entry, a node 2 to 3, a linear program 5.
    """

    same_cost: float = 1e-6  # share of the cost within which an answer counts as the nearest
    same_distance: float = 1e-7  # share of the distance within which a tangent is exact
    rungs: tuple[float, ...] = (2.0, 4.0)  # efforts up to which a search without an answer goes
    ladder: tuple[float, ...] = (0.25, 0.5, 0.75)  # efforts that better the bound of a stage that
    # was cut short, as shares of the way from its bound to the best answer
    ladder_share: float = 0.5  # of the work of a proof, in addition to it
    tries: int = 2  # how often a stage is solved, each time more exactly
    precision: float = 1e3  # how much more exactly
    cuts: int = 60  # gradients of the distance, for norms other than 0 and 1
    polishing: int = 3  # how often a row is moved into the target
    root_work: float = 800.0  # of a stage
    node_work: float = 2.5
    program_work: float = 5.0  # of a linear program
    overrun: float = 2.0  # a stage starts if its root takes at most this share of the work left
    first_share: float = 0.6  # of the seconds left, for a stage that may be cut short


TUNING = NetworkTuning()


class _Stage(NamedTuple):
    """A part of the rows of a question: `kind` as in `NetworkProgram`, efforts up to `most`."""

    target: tuple[float, float]
    kind: str
    most: float


@dataclass(frozen=True)
class _Result:
    """What is known about the rows of a stage: none costs less than `bound`."""

    bound: float
    is_complete: bool


@dataclass(eq=False)
class _NetworkSearch:
    """The search for the nearest row of one question."""

    form: ReluNetwork
    region: Region
    parts: NetworkParts
    margin: float
    limit: float
    work: Work
    cuts: list[Array] = field(default_factory=list)
    is_stuck: bool = False
    is_inexact: bool = False

    def run(self, accepted: Intervals) -> Generator[Array, Mask, Bound]:
        """Search for rows; see :func:`find_nearest_network`."""
        targets = [(low - self.margin, high + self.margin) for low, high in accepted]
        query = self.region.complete(self.region.query[None])
        is_there = any(self._miss(query[0], target) <= 0.0 for target in targets)
        if is_there and self.region.contains(query)[0]:
            is_hit = yield query
            if is_hit[0]:
                return Bound(0.0, True, False)
        bounds = []
        for target in targets:
            bounds.append((yield from self._search_target(target)))
        cost = min([self.limit, *bounds])
        is_complete = all(self._is_closed(bound) for bound in bounds)
        reason = "rounding leaves a small gap" if self.is_inexact and not is_complete else ""
        return Bound(cost, is_complete, self.is_stuck and not is_complete, reason)

    def _is_closed(self, bound: float) -> bool:
        """Return whether nothing above a bound is of interest."""
        return bound >= self.limit * (1.0 - TUNING.same_cost)

    # ── stages ──

    def _search_target(self, target: tuple[float, float]) -> Generator[Array, Mask, float]:
        """Search for rows of one interval of sums; return the cost below which there are none."""
        if self.region.cost.weight == 0.0:
            return (yield from self._search_range(_Stage(target, "plain", np.inf), 0.0))
        near = yield from self._search_range(_Stage(target, "near", np.inf), 0.0)
        lower = 1.0
        for most in (*TUNING.rungs, np.inf):
            is_last = most >= self.limit or self._is_everything(most)
            if most <= lower or self._is_closed(lower):
                continue
            stage = _Stage(target, "far", np.inf if is_last else most)
            lower = yield from self._search_range(stage, lower)
            if not (is_last or lower >= most or np.isfinite(self.limit)):
                yield from self._treat(
                    _Stage(target, "far", np.inf), self.work
                )  # there may be any answer
            if is_last or lower < most:
                break
        return min(near, lower)

    def _is_everything(self, most: float) -> bool:
        """Return whether no allowed row costs more than an effort."""
        columns = GainColumns(self.parts.gains, self.region, has_premium=True)
        distances = [0.0]
        for j in np.unique(columns.feature):
            own = columns.feature == j
            distances.append(float(columns.units[j, own] @ columns.high[own]) * columns.size)
        return sum(distances) + columns.most_premium <= most

    def _search_range(self, stage: _Stage, lower: float) -> Generator[Array, Mask, float]:
        """Search a stage; if it is cut short, search parts of it to better the bound.

        No row of the stage costs less than `lower`. Returns the cost below which it has no row, or
        what the stage reaches up to.
        """
        result = yield from self._treat(stage, self.work)
        lower = max(lower, result.bound)
        if result.is_complete or self.is_stuck or self.is_inexact:
            return lower
        extra = Work(TUNING.ladder_share * self.work.most, self.work.deadline)
        start = lower
        for share in TUNING.ladder:
            most = start + share * (min(stage.most, self.limit) - start)
            if self._is_closed(lower) or not np.isfinite(most) or extra.is_over:
                break
            step = yield from self._treat(stage._replace(most=most), extra)
            lower = max(lower, min(step.bound, most))
            if lower < most:
                break
        return lower

    def _treat(self, stage: _Stage, work: Work) -> Generator[Array, Mask, _Result]:
        """Solve one stage; yield rows; return what is known about its rows."""
        most = min(stage.most, self.limit)
        has_premium = stage.kind != "plain"
        farthest = min(most, 1.0) if stage.kind == "near" else most
        columns = GainColumns(self.parts.gains, self.region, farthest, has_premium=has_premium)
        program = NetworkProgram(self.form, self.parts, columns, stage.kind, most, tightens=False)
        ends = program.bounds[-1]
        if stage.target[0] > ends.high[0] or stage.target[1] < ends.low[0]:
            return _Result(most, True)
        relaxed = program.solve(stage.target, self.cuts, is_relaxed=True)
        bound = max(0.0, min(relaxed.bound, most))
        if self._is_closed(bound) or bound == most:
            return _Result(bound, True)
        if not _can_start(program, work):
            return _Result(bound, False)
        program = self._tightened(program, work)
        tries = 0
        while tries < TUNING.tries:
            precision = TUNING.precision**tries
            solution = self._solve(program, stage, precision, work)
            bound = max(bound, min(solution.bound, most))
            if solution.values is None:
                return _Result(bound, solution.is_complete)
            is_allowed = yield from self._ask(program, stage, solution)
            if self._is_closed(bound) or not solution.is_complete:
                return _Result(bound, self._is_closed(bound))
            if not is_allowed:
                self.is_stuck = True
                return _Result(bound, False)
            if not self._add_cut(columns, solution):
                tries += 1
        self.is_inexact = True
        return _Result(bound, False)

    def _tightened(self, program: NetworkProgram, work: Work) -> NetworkProgram:
        """Return a program with tighter bounds on neurons behind the first layer."""
        if len(self.form.weights) == 2:
            return program
        tight = NetworkProgram(self.form, self.parts, program.columns, program.kind, program.limit)
        work.done += TUNING.program_work * tight.n_programs * tight.n_entries
        return tight

    def _solve(
        self, program: NetworkProgram, stage: _Stage, precision: float, work: Work
    ) -> NetworkSolution:
        """Return the solution of a stage, with what is left of work and time."""
        if work.is_over:
            return NetworkSolution(None, 0.0, False)
        limits = work_limits(program, work)
        solution = program.solve(stage.target, self.cuts, precision=precision, limits=limits)
        count_work(program, work, solution, limits[1])
        return solution

    def _add_cut(self, columns: GainColumns, solution: NetworkSolution) -> bool:
        """Add the gradient of the distance at a solution if it tells something new."""
        norm = self.region.cost.norm
        if norm in (0, 1) or len(self.cuts) >= TUNING.cuts:
            return False
        assert solution.values is not None
        units = columns.units @ solution.values[: len(columns.high)]
        distance = float(np.linalg.norm(units, norm))
        if distance == 0.0:
            return False
        known = max([units.max(), *(cut @ units for cut in self.cuts)])
        if known >= distance * (1.0 - TUNING.same_distance):
            return False
        self.cuts.append(gradient(units, norm))
        return True

    # ── rows ──

    def _ask(
        self, program: NetworkProgram, stage: _Stage, solution: NetworkSolution
    ) -> Generator[Array, Mask, bool]:
        """Yield rows near a solution; return False if only a rule that is not linear forbids it."""
        assert solution.values is not None
        values = solution.values
        is_blocked = False
        inward = 0.0
        for strictness in range(1, TUNING.polishing + 1):
            row = program.row(values)
            is_allowed = bool(self.region.contains(row[None])[0])
            is_blocked |= not is_allowed and self._keeps_linear_rules(row)
            miss = self._miss(row, stage.target)
            cost = float(effort(self.region, row[None])[0])
            if is_allowed and miss <= 0.0 and cost < self.limit:
                is_hit = yield row[None]
                if is_hit[0]:
                    self.limit = cost
                    break
            if program.columns.is_discrete:
                break
            # The signs and whole numbers of a solution are right, but its shares are not exact.
            inward = max(2.0 * inward, 2.0 * self.margin) + 2.0 * max(miss, 0.0)
            nearer = program.solve(
                stage.target, self.cuts, inward=inward, strictness=strictness, fixed=values
            )
            if nearer.values is None:
                break
            values = nearer.values
        return not is_blocked

    def _miss(self, row: Array, target: tuple[float, float]) -> float:
        """Return by how much the sum of a row misses a target; negative inside."""
        total = float(self.form.raw(self.region.rows(row[None]))[0, 0])
        return max(target[0] - total, total - target[1])

    def _keeps_linear_rules(self, row: Array) -> bool:
        """Return whether a row that is not allowed breaks only rules that are not linear."""
        region = self.region
        if not region.within(row[None])[0]:
            return False
        rows = ruled_rows(region)
        A = region.A[rows]
        is_known = ~np.isnan(row)
        keeps = bool((A[:, is_known] @ row[is_known] <= region.b[rows]).all())
        return keeps and (region.curved or not rows.all())


def _can_start(program: NetworkProgram, work: Work) -> bool:
    """Return whether the work that is left allows for solving a program."""
    left = work.most - work.done
    is_small = TUNING.root_work * program.n_entries <= TUNING.overrun * left
    return is_small and not work.is_over


def work_limits(program: NetworkProgram, work: Work) -> tuple[float, int | None]:
    """Return the seconds and nodes that the solver may take for a program."""
    seconds = work.deadline.left * TUNING.first_share
    if not np.isfinite(work.most):
        return seconds, None
    nodes = (work.most - work.done) / program.n_entries - TUNING.root_work
    return seconds, max(1, int(nodes / TUNING.node_work))


def count_work(
    program: NetworkProgram, work: Work, solution: NetworkSolution, most_nodes: int | None
) -> None:
    """Add the work of a program; the solver tells its nodes only along with a solution."""
    n_nodes = solution.nodes
    if not solution.is_complete and most_nodes is not None:
        n_nodes = most_nodes
    work.done += program.n_entries * (TUNING.root_work + TUNING.node_work * n_nodes)


def find_nearest_network(
    form: ReluNetwork,
    region: Region,
    accepted: Intervals,
    limit: float = np.inf,
    work: Work | None = None,
) -> Generator[Array, Mask, Bound]:
    """Search for the nearest row; yield codes ``(n, d)``, receive which reach the target.

    Parameters
    ----------
    form : ReluNetwork
        The model.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        Sums that reach the target.
    limit : float
        Rows are wanted that cost less.
    work : Work
        What limits the search.

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
    parts = take_network_apart(form, region)
    margin = _rounding_of(form, parts)
    search = _NetworkSearch(form, region, parts, margin, limit, work or Work())
    return (yield from search.run(accepted))


def _rounding_of(form: ReluNetwork, parts: NetworkParts) -> float:
    """Return by how much the sum may differ from its parts."""
    error = 2.0 * parts.error
    size = np.abs(parts.numbers)
    for weights, biases in zip(form.weights, form.biases, strict=True):
        error = np.abs(weights) @ error
        size = np.abs(weights) @ size + np.abs(biases)
    return float(error[0] + ROUNDING * size[0])


# ── extreme outputs ──


def find_network_extreme(form: ReluNetwork, region: Region, sign: int, work: Work) -> Extreme:
    """Return the row with the highest (1) or lowest (-1) sum, and a bound on all sums.

    Raises
    ------
    NoProof
        If the model or the region can't be written as a mixed-integer linear program, or no
        allowed row was found.
    """
    parts = take_network_apart(form, region)
    columns = GainColumns(parts.gains, region)
    program = NetworkProgram(form, parts, columns, "plain", np.inf)
    ends = program.bounds[-1]
    bound = float(ends.high[0] if sign > 0 else ends.low[0])
    rows = [region.complete(region.query[None])[0]]
    for strictness in range(TUNING.polishing):
        limits = work_limits(program, work)
        solution = program.solve_extreme(sign, strictness, limits)
        count_work(program, work, solution, limits[1])
        if strictness == 0:
            bound = sign * min(sign * bound, -solution.bound)
        if solution.values is None:
            break
        rows.append(program.row(solution.values))
        if region.contains(rows[-1][None])[0]:
            break
    return _best_extreme(form, region, np.array(rows), sign, bound)


def _best_extreme(
    form: ReluNetwork, region: Region, rows: Array, sign: int, bound: float
) -> Extreme:
    """Return the best of some rows ``(n, d)`` that is allowed."""
    allowed = rows[region.contains(rows)]
    if not len(allowed):
        raise NoProof("no allowed row was found")
    sums = form.raw(region.rows(allowed))[:, 0]
    best = int((sign * sums).argmax())
    return Extreme(allowed[best], float(sums[best]), bound)
