"""Branch and bound over boxes of cells: the nearest row of a target, and extreme outputs.

The leaves that a box meets bound the model's score from both sides. A box is closed if the bounds
exclude the target, if it costs too much, if a rule excludes it, or if its corner reaches the
target. Otherwise it is split, at several features at once while there are few boxes. Boxes with the
lowest cost come first, many at a time; before the first answer, those that miss the target least.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.deadline import NEVER, Deadline
from bayescfx.potentials.potential import misses
from bayescfx.search.exact.acceleration import LOADER
from bayescfx.search.exact.near_rows import near_corners
from bayescfx.search.exact.pool import Boxes, Pool
from bayescfx.search.exact.problem import BoxProblem
from bayescfx.search.exact.steps import BoxScores


@dataclass(frozen=True)
class BranchTuning:
    """Numbers of the branch and bound.

    Evidence: 20 questions of `python -m benchmarks exact`, diabetes with LightGBM (2026-11-18).
    Cuts are chosen among all features at once: an eighth of the boxes that it takes to choose a
    feature first.
    """

    batch: int = 128  # boxes that are split at once, at least ...
    one_in: int = 16  # ... and one in so many of those that are open ...
    most_at_once: int = 1024  # ... but no more than these
    few: int = 64  # boxes up to which each is split at several features at once ...
    halvings: int = 4  # ... at most so many
    asked: int = 32  # corners that the model scores at once
    asked_first: int = 4  # rows that the model scores before the first box
    greedy_work: float = 1.5e6  # goes into bettering a known answer first; a tenth by default
    same_cost: float = 1e-9  # share of the cost by which a row must be nearer
    most_bytes: float = 1e9  # of the open boxes
    report_work: float = 1.5e6  # work between two reports of the bound; about a tenth of a second


TUNING = BranchTuning()


@dataclass(eq=False)
class Work:
    """The work of a search, and what limits it.

    Parameters
    ----------
    most : float
        The number of summands of boxes that may be bounded.
    deadline : Deadline
        When the search ends at the latest.
    only_if_near : bool
        Whether a search without a known answer ends at once if no row with one or two changes
        reaches the target.
    done : float
        The number of summands bounded so far.
    on_bound : callable or None
        Receives the cost below which there is no answer, now and then.
    """

    most: float = np.inf
    deadline: Deadline = NEVER
    only_if_near: bool = False
    done: float = 0.0
    on_bound: Callable[[float], object] | None = None
    _reported: float = 0.0

    def report(self, pool: Pool, limit: float) -> None:
        """Pass on the bound that the open boxes and the limit give, if it is time for it."""
        if self.on_bound is not None and self.done >= self._reported + TUNING.report_work:
            self._reported = self.done
            self.on_bound(min(float(pool.costs.min(initial=np.inf)), limit))

    @property
    def is_over(self) -> bool:
        """Whether the search must end."""
        return self.done >= self.most or self.deadline.passed


@dataclass(eq=False)
class Branching:
    """The branch and bound of one question.

    Parameters
    ----------
    problem : BoxProblem
        The boxes.
    limit : float
        Rows are wanted that cost less; it falls as answers are found.
    work : Work
        The work done so far.

    Attributes
    ----------
    stuck_cost : float
        The lowest cost of a box that could not be closed: a rule that is not linear excludes its
        corner, and nothing is left to split.
    is_greedy : bool
        Whether boxes are ordered by how far their corners miss the target, to find a first answer
        or a better one, and not by their costs.
    starts_near : bool
        Whether rows with one or two changes are tried first, if no answer is known.
    """

    problem: BoxProblem
    limit: float = np.inf
    work: Work = field(default_factory=Work)
    stuck_cost: float = np.inf
    is_greedy: bool = True
    starts_near: bool = True

    def __post_init__(self) -> None:
        self._first_limit = self.limit

    @property
    def is_greed_over(self) -> bool:
        """Whether an answer was found, or the known one was not bettered in time."""
        is_found = self.limit < self._first_limit
        has_answer = np.isfinite(self.limit)
        return bool(is_found or (has_answer and self.work.done > TUNING.greedy_work))

    # ── one batch of boxes ──

    def start(self) -> Boxes:
        """Return the box of all cells, unless it is closed."""
        return self._bound(self.whole())

    def whole(self) -> Boxes:
        """Return the box of all cells."""
        problem = self.problem
        return Boxes(
            low=np.zeros((1, len(problem.sizes)), dtype=np.intp),
            high=(problem.sizes - 1)[None].copy(),
            mask=problem.root[None].copy(),
            cost=np.zeros(1),
            spread=np.zeros((1, len(problem.trees)), dtype=np.float32),
            key=np.zeros(1),
            is_new=np.ones(1, dtype=np.bool_),
            is_candidate=np.zeros(1, dtype=np.bool_),
        )

    def split(self, boxes: Boxes) -> Boxes:
        """Return the parts of boxes that stay open.

        A few boxes are split at several features at once: a batch takes about the same time
        whether it is full or not.
        """
        boxes.is_new[:] = False
        boxes.is_candidate[:] = False
        problem = self.problem
        steps = LOADER.find_steps(problem)
        is_used = np.zeros(boxes.low.shape, dtype=np.bool_)
        chosen = steps.choose_cuts(problem, boxes, self.limit, is_used)
        is_split = chosen >= 0
        self._note_stuck(boxes.take(~is_split))
        boxes = boxes.take(is_split)
        boxes, is_used = steps.halve(problem, boxes, chosen[is_split], is_used[is_split])
        for _ in range(1, TUNING.halvings):
            if not 0 < len(boxes) <= TUNING.few:
                break
            chosen = steps.choose_cuts(problem, boxes, self.limit, is_used)
            boxes, is_used = steps.halve(problem, boxes, chosen, is_used)
        return self._bound(boxes)

    def _bound(self, boxes: Boxes) -> Boxes:
        """Return the boxes that stay open, with costs and candidates."""
        self.work.done += boxes.mask.size
        LOADER.note_work(boxes.mask.size)
        steps = LOADER.find_steps(self.problem)
        boxes, scores = steps.bound(self.problem, boxes, self.limit, scores_all=self.is_greedy)
        is_open = np.flatnonzero(self._keeps_rules(boxes) & self._is_wanted(boxes))
        if len(is_open) < len(boxes):
            boxes = boxes.take(is_open)
            scores = scores.take(is_open)
        boxes.key = boxes.cost.copy()
        if len(boxes):
            self._mark_candidates(boxes, scores)
        return boxes

    def _mark_candidates(self, boxes: Boxes, scores: BoxScores) -> None:
        """Find the corners that may be answers; before the first answer, order boxes by them."""
        problem = self.problem
        if self.is_greedy:
            boxes.key = misses(tuple(problem.accepted), scores.corner)
        hits = np.flatnonzero(boxes.is_new)
        hits = hits[problem.is_possible(scores.corner[hits], scores.corner[hits])]
        corner = problem.corner(boxes.low[hits], boxes.high[hits])
        boxes.is_candidate[hits[self._is_allowed(corner)]] = True

    def _is_wanted(self, boxes: Boxes) -> Mask:
        """Return which boxes ``(n,)`` are not excluded for a reason of their own."""
        return np.ones(len(boxes), dtype=np.bool_)

    def _is_allowed(self, corner: Indices) -> Mask:
        """Return which corners ``(n, k)`` keep all rules."""
        if not len(corner) or not self.problem.region.rules:
            return np.ones(len(corner), dtype=np.bool_)
        return self.problem.region.contains(self.problem.rows(corner))

    def _keeps_rules(self, boxes: Boxes) -> Mask:
        """Return which boxes may hold a row that keeps the linear rules."""
        problem = self.problem
        region = problem.region
        keeps = np.ones(len(boxes), dtype=np.bool_)
        if not region.rules or not len(region.A):
            return keeps
        least = np.repeat(region.query[None], len(boxes), axis=0)
        most = least.copy()
        lowest, highest = problem.code_ranges(boxes.low, boxes.high)
        least[:, problem.features] = lowest
        most[:, problem.features] = highest
        for a, b in zip(region.A, region.b, strict=True):
            if (region.recomputed & (a != 0.0)).any():
                continue
            ends = np.where(a > 0.0, least, most)[:, a != 0.0]
            slack = TUNING.same_cost * (abs(b) + np.abs(ends * a[a != 0.0]).sum(axis=1))
            keeps &= ~(ends @ a[a != 0.0] > b + slack)
        return keeps

    def _note_stuck(self, boxes: Boxes) -> None:
        """Note boxes that can't be split although they may hold other rows than their corner."""
        stuck = boxes.cost[self._is_stuck(boxes)]
        self.stuck_cost = min(self.stuck_cost, float(stuck.min(initial=np.inf)))

    def _is_stuck(self, boxes: Boxes) -> Mask:
        """Return which unsplittable boxes ``(n,)`` may hold other rows than their corner."""
        problem = self.problem
        if not problem.region.rules:
            return np.zeros(len(boxes), dtype=np.bool_)
        at = boxes.low + problem.offset
        is_wide = (problem.lowest[at] < problem.highest[at]) & problem.is_ruled
        return np.asarray(is_wide.any(axis=1))


@dataclass(frozen=True)
class Bound:
    """What a search has proven.

    Parameters
    ----------
    cost : float
        There is no answer that costs less; infinite if there is none at all.
    is_complete : bool
        Whether the search ended by itself.
    is_stuck : bool
        Whether a rule that is not linear left boxes open.
    reason : str
        Why the search is not complete, if it is for another reason than a rule or its limits.
    """

    cost: float
    is_complete: bool
    is_stuck: bool
    reason: str = ""


def find_nearest(branching: Branching) -> Generator[Array, Mask, Bound]:
    """Search for rows below the limit; yield codes ``(n, d)``, receive which reach the target.

    Returns
    -------
    Bound
        The cost below which there is no answer. It is the limit if the search is complete.
    """
    if branching.starts_near and not np.isfinite(branching.limit):
        yield from _ask_near_rows(branching)
        if branching.work.only_if_near and not np.isfinite(branching.limit):
            return Bound(0.0, is_complete=False, is_stuck=False)
    pool = Pool(branching.start())
    while len(pool) and not branching.work.is_over and pool.size <= TUNING.most_bytes:
        branching.work.report(pool, min(branching.stuck_cost, branching.limit))
        batch = pool.pop(_batch_size(len(pool)))
        batch = batch.take(batch.cost < branching.limit)
        batch = yield from _ask_candidates(branching, batch)
        if branching.is_greedy and branching.is_greed_over:
            branching.is_greedy = False
            pool.sort_by_cost()
            batch.key = batch.cost.copy()
        pool.push(batch.take(batch.is_candidate))
        pool.push(branching.split(batch.take(~batch.is_candidate)))
    open_cost = float(pool.costs.min(initial=np.inf))
    cost = min(open_cost, branching.stuck_cost, branching.limit)
    is_stuck = branching.stuck_cost < branching.limit
    is_complete = open_cost >= branching.limit and not is_stuck
    reason = "" if pool.size <= TUNING.most_bytes else "the proof needs more than 1 GB of memory"
    return Bound(cost, is_complete, is_stuck, reason)


def _batch_size(n_open: int) -> int:
    """Return how many of the open boxes are split at once."""
    return min(max(TUNING.batch, n_open // TUNING.one_in), TUNING.most_at_once)


def _ask_near_rows(branching: Branching) -> Generator[Array, Mask, None]:
    """Ask for the cheapest rows that are easily found, and lower the limit to their cost."""
    problem = branching.problem
    corner, n_scored = near_corners(problem)
    branching.work.done += n_scored * len(problem.root)
    corner = corner[: TUNING.asked_first]
    if not len(corner):
        return
    is_hit = yield problem.rows(corner)
    cost = problem.costs.total(corner[is_hit] + problem.offset)
    branching.limit = float(cost.min(initial=np.inf)) * (1.0 - TUNING.same_cost)


def _ask_candidates(branching: Branching, batch: Boxes) -> Generator[Array, Mask, Boxes]:
    """Ask for the corners of a batch that may be answers; return the boxes that stay open."""
    candidates = np.flatnonzero(batch.is_candidate)[: TUNING.asked]
    if not len(candidates):
        return batch
    problem = branching.problem
    corner = problem.corner(batch.low[candidates], batch.high[candidates])
    is_hit = yield problem.rows(corner)
    batch.is_candidate[candidates] = False
    hits = candidates[is_hit]
    lowest = float(batch.cost[hits].min(initial=np.inf)) * (1.0 - TUNING.same_cost)
    branching.limit = min(branching.limit, lowest)
    is_open = batch.cost < branching.limit
    is_open[hits] = False
    return batch.take(is_open)


@dataclass(frozen=True, eq=False)
class Extreme:
    """The lowest or highest score of a region.

    Parameters
    ----------
    row : array of shape (d,)
        The codes of the best row found.
    score : float
        Its score.
    bound : float
        No allowed row has a lower, or higher, score.
    """

    row: Array
    score: float
    bound: float


def find_extreme(problem: BoxProblem, side: int, work: Work) -> Extreme:
    """Return the lowest (`side` -1) or highest (1) score of a region, without asking the model.

    The targets of `problem` are replaced. Boxes with the most extreme bound come first.
    """
    problem.accepted = [(-np.inf, np.inf)]
    branching = _ExtremeBranching(problem, work=work, side=side)
    pool = Pool(branching.start())
    while len(pool) and not work.is_over and pool.size <= TUNING.most_bytes:
        batch = pool.pop(_batch_size(len(pool)))
        pool.push(branching.split(batch.take(batch.key < -side * branching.best)))
    bound = min(pool.least_key, branching.stuck_key, -side * branching.best)
    return Extreme(branching.row, branching.best, -side * bound)


@dataclass(eq=False)
class _ExtremeBranching(Branching):
    """Branch and bound for the lowest or highest score, whatever the cost.

    Attributes
    ----------
    side : int
        -1 for the lowest score, 1 for the highest.
    best : float
        The most extreme score of an allowed corner.
    row : array of shape (d,)
        Its codes.
    stuck_key : float
        The lowest key of a box that could not be closed, as `stuck_cost`.
    """

    side: int = 1
    stuck_key: float = np.inf
    best: float = field(init=False)
    row: Array = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.best = -self.side * np.inf
        self.row = self.problem.region.query

    def _note_stuck(self, boxes: Boxes) -> None:
        """Note the bounds of boxes that may hold other rows than their corner."""
        stuck = boxes.key[self._is_stuck(boxes)]
        self.stuck_key = min(self.stuck_key, float(stuck.min(initial=np.inf)))

    def _mark_candidates(self, boxes: Boxes, scores: BoxScores) -> None:
        """Order boxes by their bounds, and note the most extreme corner."""
        problem = self.problem
        boxes.key = np.asarray(-self.side * (scores.high if self.side > 0 else scores.low))
        is_better = self.side * scores.corner > self.side * self.best
        better = np.flatnonzero(is_better & boxes.is_new)
        rows = problem.rows(problem.corner(boxes.low[better], boxes.high[better]))
        if len(better) and problem.region.rules:
            is_allowed = problem.region.contains(rows)
            better = better[is_allowed]
            rows = rows[is_allowed]
        if not len(better):
            return
        at = int(np.argmax(self.side * scores.corner[better]))
        self.best = float(scores.corner[better[at]])
        self.row = rows[at]
        # Only boxes that may do better stay open.
        ends = (self.best, np.inf) if self.side > 0 else (-np.inf, self.best)
        problem.accepted = [ends]
