"""The nearest row of a target, and extreme outputs, for ReLU networks.

A question is searched in stages: rows up to growing costs. Each stage is one mixed-integer program.
The fewer rows a stage holds, the tighter are the bounds on its neurons.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.models.readers.forms import ReluNetwork
from bayescfx.potentials import Intervals
from bayescfx.search.exact.branching import Bound, Extreme, Work
from bayescfx.search.exact.cells import NoProof
from bayescfx.search.exact.contributions import breaks_other_rules_only
from bayescfx.search.exact.gain_columns import GainColumns, changes_all_of
from bayescfx.search.exact.network_columns import NetworkParts, take_network_apart
from bayescfx.search.exact.network_program import NetworkProgram, NetworkSolution, agreed
from bayescfx.search.exact.problem import ROUNDING
from bayescfx.search.exact.tangents import new_gradient
from bayescfx.space.region import Region


@dataclass(frozen=True)
class NetworkTuning:
    """Numbers of the search.

    Work is counted per entry of a program's matrix, in summands as for trees: 15 million take about
    a second. Measured with networks of 16, 16 + 16 and 32 + 32 neurons on diabetes, 2026-11-18: the
    root of the solver's tree takes 400 to 1600 per entry, a node 2 to 3, a linear program 5, and
    most stages without a solution below 100.
    """

    same_cost: float = 1e-6  # share of the cost within which an answer counts as the nearest
    same_distance: float = 1e-7  # share of the distance within which a tangent is exact
    rungs: tuple[float, ...] = (1.0, 2.0, 4.0)  # costs up to which the stages go, beside
    # the price of one change
    ladder: tuple[float, ...] = (0.25, 0.5, 0.75)  # costs that better the bound of a stage that
    # was cut short, as shares of the way from its bound to the best answer
    ladder_share: float = 0.3  # of the work of a proof, in addition to it
    tries: int = 2  # how often a stage is solved, each time more exactly
    precision: float = 1e3  # how much more exactly
    cuts: int = 60  # gradients of the distance, for norms other than 0 and 1
    polishing: int = 3  # how often a row is moved into the target
    root_work: float = 1600.0  # of a stage, for two runs
    excluded_work: float = 160.0  # of a stage that has no solution
    node_work: float = 5.0  # of a node in both runs
    program_work: float = 5.0  # of a linear program
    overrun: float = 2.0  # a stage starts if its root takes at most this share of the work left
    first_share: float = 0.6  # of the seconds left, for a stage that may be cut short


TUNING = NetworkTuning()


class _Stage(NamedTuple):
    """A part of the rows of a question.

    Parameters
    ----------
    target : tuple of float
        The lowest and highest sum that is accepted.
    most : float
        The largest cost.
    least : float
        No row of the stage costs less.
    """

    target: tuple[float, float]
    most: float
    least: float = 0.0


@dataclass(frozen=True)
class _Result:
    """What is known about the rows of a stage.

    Parameters
    ----------
    bound : float
        None costs less.
    is_final : bool
        Whether more work would not better the bound.
    """

    bound: float
    is_final: bool


@dataclass(eq=False)
class _NetworkSearch:
    """The search for the nearest row of one question."""

    form: ReluNetwork
    region: Region
    parts: NetworkParts
    margin: float
    limit: float
    work: Work
    avoided: Mask
    cuts: list[Array] = field(default_factory=list)
    is_stuck: bool = False
    is_inexact: bool = False

    def run(self, accepted: Intervals) -> Generator[Array, Mask, Bound]:
        """Search for rows; see :func:`find_nearest_network`."""
        targets = [(low - self.margin, high + self.margin) for low, high in accepted]
        if (yield from self._ask_query(targets)):
            return Bound(0.0, True, False)
        bounds = [self.limit]
        for target in targets:
            bounds.append((yield from self._search_target(target)))
        return self._conclude(min(bounds))

    def _ask_query(self, targets: list[tuple[float, float]]) -> Generator[Array, Mask, bool]:
        """Yield the query if it may reach the target; return whether it does."""
        query = self.region.complete(self.region.query[None])
        miss = min(self._miss(query[0], target) for target in targets)
        if miss > 0.0 or not self.region.contains(query)[0]:
            return False
        is_hit = yield query
        return bool(is_hit[0])

    def _conclude(self, bound: float) -> Bound:
        """Return what is proven, given the cost below which there is no answer."""
        if self._is_closed(bound):
            return Bound(min(bound, self.limit), True, False)
        reason = "rounding leaves a small gap" if self.is_inexact else ""
        return Bound(bound, False, self.is_stuck, reason)

    def _is_closed(self, bound: float) -> bool:
        """Return whether nothing above a bound is of interest."""
        return bound >= self.limit * (1.0 - TUNING.same_cost)

    # ── stages ──

    def _search_target(self, target: tuple[float, float]) -> Generator[Array, Mask, float]:
        """Search for rows of one interval of sums; return the cost below which there are none."""
        lower = 0.0
        costliest = self._largest_cost()
        for step in TUNING.rungs:
            rung = self.region.price.per_change + step
            if rung >= min(costliest, self.limit):
                break
            lower = yield from self._search_stage(_Stage(target, rung, lower))
            if lower < rung:
                yield from self._find_any(target)
                return lower
        return (yield from self._search_stage(_Stage(target, np.inf, lower)))

    def _find_any(self, target: tuple[float, float]) -> Generator[Array, Mask, None]:
        """Search everywhere for some answer if there is none yet."""
        if not np.isfinite(self.limit):
            yield from self._treat(_Stage(target, np.inf), self.work)

    def _largest_cost(self) -> float:
        """Return a cost that no allowed row exceeds."""
        columns = GainColumns(self.parts.gains, self.region)
        distance = float((columns.units @ columns.high).sum()) * columns.size
        return distance + self.region.price.per_change * len(self.region.free)

    def _search_stage(self, stage: _Stage) -> Generator[Array, Mask, float]:
        """Search a stage; if it is cut short, search parts of it to better the bound.

        Returns the cost below which the stage has no row, or the cost up to which it reaches.
        """
        if self._is_closed(stage.least):
            return stage.least
        result = yield from self._treat(stage, self.work)
        lower = max(stage.least, result.bound)
        most = min(stage.most, self.limit)
        if result.is_final or most == np.inf:
            return lower
        extra = Work(TUNING.ladder_share * self.work.most, self.work.deadline)
        return (yield from self._climb(stage._replace(least=lower, most=most), extra))

    def _climb(self, stage: _Stage, work: Work) -> Generator[Array, Mask, float]:
        """Search parts of a stage that reach up to growing costs; return its bound."""
        lower = stage.least
        for share in TUNING.ladder:
            most = stage.least + share * (stage.most - stage.least)
            if self._is_closed(lower) or work.is_over:
                break
            step = yield from self._treat(stage._replace(most=most), work)
            lower = max(lower, min(step.bound, most))
            if lower < most:
                break
        return lower

    def _treat(self, stage: _Stage, work: Work) -> Generator[Array, Mask, _Result]:
        """Solve one stage; yield rows; return what is known about its rows."""
        most = min(stage.most, self.limit)
        program = self._make_program(most)
        bound = self._bound_at_once(program, stage)
        if bound == most or self._is_closed(bound):
            return _Result(bound, True)
        if not _can_start(program, work):
            return _Result(bound, False)
        program = self._tightened(program, work)
        result: _Result | None = None
        tries = 0
        while result is None:
            solution = self._solve(program, stage, TUNING.precision**tries, work)
            bound = max(bound, min(solution.bound, most))
            is_allowed = yield from self._ask(program, stage, solution)
            is_new = self._add_cut(program, solution)
            tries += not is_new
            result = self._judge(bound, solution, is_allowed, tries)
        return result

    def _judge(
        self, bound: float, solution: NetworkSolution, is_allowed: bool, tries: int
    ) -> _Result | None:
        """Return the result of a stage, or None if it must be solved once more."""
        if solution.values is None:
            return _Result(bound, solution.is_complete)
        if self._is_closed(bound):
            return _Result(bound, True)
        if not solution.is_complete:
            return _Result(bound, False)
        if not is_allowed:
            self.is_stuck = True
            return _Result(bound, True)
        if tries < TUNING.tries:
            return None
        self.is_inexact = True
        return _Result(bound, True)

    def _make_program(self, most: float) -> NetworkProgram:
        """Return the program for rows that cost at most as much."""
        columns = GainColumns(
            self.parts.gains, self.region, most, has_price=True, avoided=self.avoided
        )
        return NetworkProgram(self.form, self.parts, columns, most, tightens=False)

    def _bound_at_once(self, program: NetworkProgram, stage: _Stage) -> float:
        """Return the cost below which a stage has no row, as far as it is known without a tree."""
        if not program.may_reach(stage.target):
            return program.limit
        relaxed = program.solve(stage.target, self.cuts, is_relaxed=True)
        return max(0.0, min(relaxed.bound, program.limit))

    def _tightened(self, program: NetworkProgram, work: Work) -> NetworkProgram:
        """Return a program with tighter bounds on neurons behind the first layer."""
        if len(self.form.weights) == 2:
            return program
        tight = NetworkProgram(self.form, self.parts, program.columns, program.limit)
        work.done += TUNING.program_work * tight.n_programs * tight.n_entries
        return tight

    def _solve(
        self, program: NetworkProgram, stage: _Stage, precision: float, work: Work
    ) -> NetworkSolution:
        """Return the solution of a stage, with what is left of work and time."""
        if work.is_over:
            return NetworkSolution(None, 0.0, False)
        return solve_twice(
            partial(program.solve, stage.target, self.cuts, precision=precision), program, work
        )

    def _add_cut(self, program: NetworkProgram, solution: NetworkSolution) -> bool:
        """Add the gradient of the distance at a solution if it tells something new."""
        if solution.values is None or len(self.cuts) >= TUNING.cuts:
            return False
        units = program.units(solution.values)
        found = new_gradient(units, self.region.price.norm, self.cuts, TUNING.same_distance)
        if found is not None:
            self.cuts.append(found)
        return found is not None

    # ── rows ──

    def _ask(
        self, program: NetworkProgram, stage: _Stage, solution: NetworkSolution
    ) -> Generator[Array, Mask, bool]:
        """Yield rows near a solution; return False if only a rule that is not linear forbids it."""
        is_blocked = False
        inward = 2.0 * self.margin
        values = solution.values
        strictness = 0
        while values is not None:
            row = program.row(values)
            is_blocked |= self._is_blocked(row)
            miss = self._miss(row, stage.target)
            is_hit = yield from self._ask_row(row, miss)
            strictness += 1
            if is_hit or program.columns.is_discrete or strictness > TUNING.polishing:
                break
            # The signs and whole numbers of a solution are right, but its shares are not exact.
            inward += 2.0 * max(miss, 0.0)
            values = program.solve(
                stage.target, self.cuts, inward=inward, strictness=strictness, fixed=values
            ).values
            inward *= 2.0
        return not is_blocked

    def _ask_row(self, row: Array, miss: float) -> Generator[Array, Mask, bool]:
        """Yield a row if it is of interest; return whether it is a new best answer."""
        cost = float(self.region.cost(row[None])[0])
        is_nearer = miss <= 0.0 and cost < self.limit
        if not is_nearer or not self.region.contains(row[None])[0]:
            return False
        if changes_all_of(self.region, row[None], self.avoided)[0]:
            return False
        is_hit = yield row[None]
        if is_hit[0]:
            self.limit = cost
        return bool(is_hit[0])

    def _is_blocked(self, row: Array) -> bool:
        """Return whether rules that are not linear, and only those, exclude a row."""
        if self.region.contains(row[None])[0]:
            return False
        return breaks_other_rules_only(self.region, row)

    def _miss(self, row: Array, target: tuple[float, float]) -> float:
        """Return by how much the sum of a row misses a target; negative inside."""
        total = float(self.form.raw(self.region.rows(row[None]))[0, 0])
        return max(target[0] - total, total - target[1])


def _can_start(program: NetworkProgram, work: Work) -> bool:
    """Return whether the work that is left allows for solving a program."""
    left = work.most - work.done
    is_small = TUNING.root_work * program.n_entries <= TUNING.overrun * left
    return is_small and not work.is_over


def solve_twice(
    solve: Callable[..., NetworkSolution], program: NetworkProgram, work: Work
) -> NetworkSolution:
    """Return what two runs of the solver agree on, with what is left of work and time.

    HiGHS has returned solutions as optimal that were not. The second run gets the program in
    reversed order, which leads to other cuts and branches; a proof needs both. If the first run is
    cut short, so would be the second.
    """
    limits = _limits_of(program, work)
    found = solve(limits=limits)
    if found.is_complete:
        found = agreed(found, solve(limits=limits, is_reversed=True))
    _count_work(program, work, found, limits)
    return found


def _limits_of(program: NetworkProgram, work: Work) -> tuple[float, int | None]:
    """Return the seconds and nodes that the solver may take for a program."""
    seconds = work.deadline.left * TUNING.first_share
    if not np.isfinite(work.most):
        return seconds, None
    nodes = (work.most - work.done) / program.n_entries / TUNING.node_work
    return seconds, max(1, int(nodes))


def _count_work(
    program: NetworkProgram,
    work: Work,
    solution: NetworkSolution,
    limits: tuple[float, int | None],
) -> None:
    """Add the work of a program; the solver tells its nodes only along with a solution."""
    n_nodes = solution.nodes if solution.is_complete else limits[1] or 0
    root = TUNING.excluded_work if solution.is_impossible else TUNING.root_work
    work.done += program.n_entries * (root + TUNING.node_work * n_nodes)


def find_nearest_network(
    form: ReluNetwork,
    region: Region,
    accepted: Intervals,
    limit: float = np.inf,
    work: Work | None = None,
    avoided: Mask | None = None,
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
    parts = take_network_apart(form, region)
    margin = _rounding_of(form, parts)
    avoided = np.zeros((0, len(region.query)), dtype=np.bool_) if avoided is None else avoided
    search = _NetworkSearch(form, region, parts, margin, limit, work or Work(), avoided)
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
    program = NetworkProgram(form, parts, columns, np.inf)
    ends = program.bounds[-1]
    bound = float(ends.high[0] if sign > 0 else ends.low[0])
    rows = [region.complete(region.query[None])[0]]
    for strictness in range(TUNING.polishing):
        solve = partial(program.solve_extreme, sign, strictness)
        solution = solve_twice(solve, program, work)
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
