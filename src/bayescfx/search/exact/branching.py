"""Branch and bound over boxes of cells: the nearest row of a target, and extreme outputs.

The leaves that a box meets bound the model's score from both sides. A box is closed if the bounds
exclude the target, if it costs too much, if a rule excludes it, or if its corner reaches the
target. Otherwise it is split, at several features at once while there are few boxes. Boxes with the
lowest cost come first, many at a time; before the first answer, those that miss the target least.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.deadline import NEVER, Deadline
from bayescfx.potentials.potential import misses
from bayescfx.search.exact.leaves import Words
from bayescfx.search.exact.near_rows import near_corners
from bayescfx.search.exact.problem import BoxProblem


@dataclass(frozen=True)
class BranchTuning:
    """Numbers of the branch and bound.

    Evidence: 20 questions of `python -m benchmarks exact`, diabetes with LightGBM (2026-11-18).
    Cuts are chosen among all features at once: an eighth of the boxes that it takes to choose a
    feature first. `far_side` between 0.1 and 1 changes the number of boxes by less than 5 %.
    """

    batch: int = 128  # boxes that are split at once
    few: int = 64  # boxes up to which each is split at several features at once ...
    halvings: int = 4  # ... at most so many
    asked: int = 32  # corners that the model scores at once
    asked_first: int = 4  # rows that the model scores before the first box
    greedy_work: float = 1.5e6  # goes into bettering a known answer first; a tenth by default
    far_side: float = 0.1  # weight of a cut whose far side costs nothing
    least_room: float = 1e-12  # numerical: avoids a division by 0
    same_cost: float = 1e-9  # share of the cost by which a row must be nearer
    report_work: float = 1.5e6  # work between two reports of the bound; about a tenth of a second


TUNING = BranchTuning()
Singles = NDArray[np.float32]


@dataclass(eq=False)
class Boxes:
    """Some boxes, as arrays that grow and shrink together.

    Parameters
    ----------
    low, high : array of int of shape (n, k)
        The lowest and highest cell of each feature.
    mask : array of shape (n, words)
        The leaves that may hold an accepted row.
    cost : array of shape (n,)
        The cost of the corner.
    spread : array of shape (n, t)
        How far apart the smallest and largest summand of each tree were, in 32 bits.
    key : array of shape (n,)
        The order in which boxes are split, lowest first.
    is_new : mask of shape (n,)
        The corner is not that of the box from which this one was split off.
    is_candidate : mask of shape (n,)
        The corner may be an answer, but the model has not scored it.
    """

    low: Indices
    high: Indices
    mask: Words
    cost: Array
    spread: Singles
    key: Array
    is_new: Mask
    is_candidate: Mask

    def __len__(self) -> int:
        return len(self.cost)

    def parts(self) -> tuple[Array | Singles | Indices | Mask | Words, ...]:
        """Return the arrays in the order of the parameters."""
        ranges = (self.low, self.high, self.mask)
        return *ranges, self.cost, self.spread, self.key, self.is_new, self.is_candidate

    def take(self, chosen: Indices | Mask) -> Boxes:
        """Return some of the boxes."""
        return Boxes(*(part[chosen] for part in self.parts()))  # type: ignore[arg-type]  # in order


class Pool:
    """The open boxes, those with the lowest key first.

    Boxes are kept in arrays that grow; a heap has their keys and places.
    """

    def __init__(self, boxes: Boxes) -> None:
        self._stored = boxes.take(np.empty(0, dtype=np.intp))
        self._heap: list[tuple[float, int]] = []
        self._free: list[int] = []
        self.push(boxes)

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def least_key(self) -> float:
        """The lowest key of an open box; infinite without any."""
        return self._heap[0][0] if self._heap else np.inf

    @property
    def costs(self) -> Array:
        """The costs ``(n,)`` of the open boxes."""
        return self._stored.cost[[place for _, place in self._heap]]

    def push(self, boxes: Boxes) -> None:
        """Add boxes."""
        n = len(boxes)
        if n > len(self._free):
            self._grow(n - len(self._free))
        places = [self._free.pop() for _ in range(n)]
        for stored, part in zip(self._stored.parts(), boxes.parts(), strict=True):
            stored[places] = part
        for key, place in zip(boxes.key.tolist(), places, strict=True):
            heappush(self._heap, (key, place))

    def _grow(self, least: int) -> None:
        """Make room for more boxes."""
        old = len(self._stored)
        new = max(least, old, TUNING.batch)
        grown = []
        for part in self._stored.parts():
            room = np.empty((new, *part.shape[1:]), dtype=part.dtype)
            grown.append(np.concatenate([part, room]))
        self._stored = Boxes(*grown)
        self._free += range(old, old + new)

    def pop(self, most: int) -> Boxes:
        """Remove and return the boxes with the lowest keys."""
        places = [heappop(self._heap)[1] for _ in range(min(most, len(self._heap)))]
        self._free += places
        return self._stored.take(np.array(places, dtype=np.intp))

    def sort_by_cost(self) -> None:
        """Order the boxes by their cost from now on."""
        self._stored.key = self._stored.cost.copy()
        self._heap = [(float(self._stored.cost[place]), place) for _, place in self._heap]
        heapify(self._heap)


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
        is_used = np.zeros(boxes.low.shape, dtype=np.bool_)
        chosen = self._choose_cuts(boxes, is_used)
        is_split = chosen >= 0
        self._note_stuck(boxes.take(~is_split))
        boxes, is_used = self._halve(boxes.take(is_split), chosen[is_split], is_used[is_split])
        for _ in range(1, TUNING.halvings):
            if not 0 < len(boxes) <= TUNING.few:
                break
            chosen = self._choose_cuts(boxes, is_used)
            boxes, is_used = self._halve(boxes, chosen, is_used)
        return self._bound(boxes)

    def _halve(self, boxes: Boxes, chosen: Indices, is_used: Mask) -> tuple[Boxes, Mask]:
        """Return boxes halved at chosen cuts ``(n,)``, if any, and the features used ``(n, k)``."""
        problem = self.problem
        whole = np.flatnonzero(chosen < 0)
        each = np.flatnonzero(chosen >= 0)
        feature = problem.cuts.feature[chosen[each]]
        cut = problem.cuts.cell[chosen[each]]
        is_used[each, feature] = True
        order = np.concatenate([each, each, whole])
        children = boxes.take(order)
        n = len(each)
        first = np.arange(n)
        children.high[first, feature] = cut
        children.low[n + first, feature] = cut + 1
        at = problem.offset[feature] + cut
        children.mask[:n] &= problem.upper[at]
        children.mask[n : 2 * n] &= problem.lower[at + 1]
        is_far_first = problem.home[feature] > cut
        children.is_new[:n] |= is_far_first
        children.is_new[n : 2 * n] |= ~is_far_first
        return children, is_used[order]

    def _bound(self, boxes: Boxes) -> Boxes:
        """Return the boxes that stay open, with costs and candidates."""
        problem = self.problem
        self.work.done += boxes.mask.size
        corner = problem.corner(boxes.low, boxes.high)
        boxes.cost = problem.costs.total(corner + problem.offset)
        is_open = self._pin(boxes)
        is_open &= self._keeps_rules(boxes)
        is_open &= boxes.cost < self.limit
        boxes = boxes.take(is_open)
        corner = corner[is_open]
        self._narrow(boxes, corner)
        low, high = problem.bounds(boxes.mask)
        is_open = np.asarray(np.isfinite(low).all(axis=1))
        with np.errstate(invalid="ignore"):
            is_open &= problem.is_possible(*problem.scores(low, high))
        boxes = boxes.take(is_open)
        if not len(boxes):
            return boxes
        low = low[is_open]
        high = high[is_open]
        boxes.spread = (high - low).astype(np.float32)
        problem.drop_leaves(boxes.mask, low, high)
        boxes.key = boxes.cost.copy()
        self._mark_candidates(boxes, corner[is_open])
        return boxes.take(problem.has_leaves(boxes.mask))

    def _mark_candidates(self, boxes: Boxes, corner: Indices) -> None:
        """Find the corners that may be answers; before the first answer, order boxes by them."""
        problem = self.problem
        new = np.arange(len(boxes)) if self.is_greedy else np.flatnonzero(boxes.is_new)
        if not len(new):
            return
        score = problem.corner_scores(corner[new])
        if self.is_greedy:
            boxes.key[new] = misses(tuple(problem.accepted), score)
        hits = new[problem.is_possible(score, score) & boxes.is_new[new]]
        boxes.is_candidate[hits[self._is_allowed(corner[hits])]] = True

    def _is_allowed(self, corner: Indices) -> Mask:
        """Return which corners ``(n, k)`` keep all rules."""
        if not len(corner) or not self.problem.region.rules:
            return np.ones(len(corner), dtype=np.bool_)
        return self.problem.region.contains(self.problem.rows(corner))

    def _pin(self, boxes: Boxes) -> Mask:
        """Fix the other features of boxes that have used up the changes; return which may go on."""
        problem = self.problem
        most = problem.region.max_changes
        if most is None:
            return np.ones(len(boxes), dtype=np.bool_)
        is_moved = (boxes.low > problem.home) | (boxes.high < problem.home)
        n_moved = is_moved.sum(axis=1)
        is_pinned = ~is_moved & (n_moved >= most)[:, None] & (boxes.low < boxes.high)
        for j in np.flatnonzero(is_pinned.any(axis=0)).tolist():
            pinned = is_pinned[:, j]
            boxes.low[pinned, j] = problem.home[j]
            boxes.high[pinned, j] = problem.home[j]
            boxes.mask[pinned] &= problem.own[problem.offset[j] + problem.home[j]]
        return np.asarray(n_moved <= most)

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

    def _narrow(self, boxes: Boxes, corner: Indices) -> None:
        """Leave out cells that cost too much together with the changes that a box needs.

        Only boxes with a new corner have less room than before.
        """
        new = np.flatnonzero(boxes.is_new)
        if not np.isfinite(self.limit) or not len(new):
            return
        problem = self.problem
        costs = problem.costs
        corner = corner[new]
        power = costs.power[corner + problem.offset]
        premium = costs.premium[corner + problem.offset]
        rest = power.sum(axis=1, keepdims=True) - power  # of the other features
        rest_premium = premium.sum(axis=1, keepdims=True) - premium
        room = costs.max_power(self.limit, rest_premium + costs.most_premium) - rest
        low = boxes.low[new]
        high = boxes.high[new]
        last = problem.farthest_cell(high, room, 1)
        is_above = (high > last) & (last >= low)
        is_above &= problem.is_line | (last == low)
        first = problem.farthest_cell(low, room, -1)
        is_below = (low < first) & (first <= high)
        for j in np.flatnonzero((is_above | is_below).any(axis=0)).tolist():
            above = new[is_above[:, j]]
            boxes.high[above, j] = last[is_above[:, j], j]
            boxes.mask[above] &= problem.upper[problem.offset[j] + boxes.high[above, j]]
            below = new[is_below[:, j]]
            boxes.low[below, j] = first[is_below[:, j], j]
            boxes.mask[below] &= problem.lower[problem.offset[j] + boxes.low[below, j]]

    def _choose_cuts(self, boxes: Boxes, is_used: Mask) -> Indices:
        """Return the cut ``(n,)`` at which to split each box; -1 where nothing is left.

        Features in `is_used` ``(n, k)`` are left out.

        It is the cut that matters most to the trees whose summands have the widest spread, and
        that leaves least to spend on the far side.
        """
        problem = self.problem
        cuts = problem.cuts
        if not len(cuts.cell) or not len(boxes):
            return np.full(len(boxes), -1)
        # Arrays of shape (cuts, n) from here on.
        cell = cuts.cell[:, None]
        start = boxes.low.T[cuts.feature]
        is_inside = (cell >= start) & (cell < boxes.high.T[cuts.feature])
        is_inside &= ~is_used.T[cuts.feature]
        if not problem.is_line.all():  # of listed cells the first is split off
            is_inside &= problem.is_line[cuts.feature][:, None] | (cell == start)
        power = problem.costs.power[problem.corner(boxes.low, boxes.high) + problem.offset]
        room = np.maximum(self.limit - power.sum(axis=1), TUNING.least_room)
        share = (cuts.far_power[:, None] - power.T[cuts.feature]) / room
        worth = cuts.weight @ boxes.spread.T
        worth *= TUNING.far_side + np.clip(share, 0.0, 1.0)
        chosen = np.where(is_inside, worth, -1.0).argmax(axis=0)
        return np.where(is_inside.any(axis=0), chosen, -1)

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
    while len(pool) and not branching.work.is_over:
        branching.work.report(pool, min(branching.stuck_cost, branching.limit))
        batch = pool.pop(TUNING.batch)
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
    return Bound(cost, open_cost >= branching.limit and not is_stuck, is_stuck)


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
    while len(pool) and not work.is_over:
        batch = pool.pop(TUNING.batch)
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

    def _mark_candidates(self, boxes: Boxes, corner: Indices) -> None:
        """Order boxes by their bounds, and note the most extreme corner."""
        problem = self.problem
        lower, upper = problem.scores(*problem.bounds(boxes.mask))
        boxes.key = np.asarray(-self.side * (upper if self.side > 0 else lower))
        score = problem.corner_scores(corner)
        is_better = self.side * score > self.side * self.best
        better = np.flatnonzero(is_better & boxes.is_new)
        if len(better) and problem.region.rules:
            better = better[problem.region.contains(problem.rows(corner[better]))]
        if not len(better):
            return
        at = better[np.argmax(self.side * score[better])]
        self.best = float(score[at])
        self.row = problem.rows(corner[[at]])[0]
        # Only boxes that may do better stay open.
        ends = (self.best, np.inf) if self.side > 0 else (-np.inf, self.best)
        problem.accepted = [ends]
