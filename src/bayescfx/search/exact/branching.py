"""Branch and bound over boxes of cells: the nearest row of a target, and extreme outputs.

The leaves that a box meets bound the model's score from both sides. A box is closed if the bounds
exclude the target, if it costs too much, if a rule excludes it, or if its corner reaches the
target. Otherwise it is split in two. Boxes with the lowest cost come first, many at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.deadline import NEVER, Deadline
from bayescfx.potentials.potential import misses
from bayescfx.search.exact.leaves import Words
from bayescfx.search.exact.problem import BoxProblem


@dataclass(frozen=True)
class BranchTuning:
    """Numbers of the branch and bound.

    Evidence: 20 questions of `python -m benchmarks exact`, diabetes with LightGBM (2026-11-18).
    Cuts are chosen among all features at once: an eighth of the boxes that it takes to choose a
    feature first. `far_side` between 0.1 and 1 changes the number of boxes by less than 5 %.
    """

    batch: int = 128  # boxes that are split at once
    asked: int = 32  # corners that the model scores at once
    greedy_work: float = 1.5e6  # goes into bettering a known answer first; a tenth by default
    far_side: float = 0.1  # weight of a cut whose far side costs nothing
    least_room: float = 1e-12  # numerical: avoids a division by 0
    same_cost: float = 1e-9  # share of the cost by which a row must be nearer
    report_work: float = 1.5e6  # work between two reports of the bound; about a tenth of a second


TUNING = BranchTuning()


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
    key : array of shape (n,)
        The order in which boxes are split, lowest first.
    is_candidate : mask of shape (n,)
        The corner may be an answer, but the model has not scored it.
    """

    low: Indices
    high: Indices
    mask: Words
    cost: Array
    key: Array
    is_candidate: Mask

    def __len__(self) -> int:
        return len(self.cost)

    def parts(self) -> tuple[Array | Indices | Mask | Words, ...]:
        """Return the arrays in the order of the parameters."""
        return self.low, self.high, self.mask, self.cost, self.key, self.is_candidate

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
    done : float
        The number of summands bounded so far.
    on_bound : callable or None
        Receives the cost below which there is no answer, now and then.
    """

    most: float = np.inf
    deadline: Deadline = NEVER
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
    """

    problem: BoxProblem
    limit: float = np.inf
    work: Work = field(default_factory=Work)
    stuck_cost: float = np.inf
    is_greedy: bool = True

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
        problem = self.problem
        boxes = Boxes(
            low=np.zeros((1, len(problem.sizes)), dtype=np.intp),
            high=(problem.sizes - 1)[None].copy(),
            mask=problem.root[None].copy(),
            cost=np.zeros(1),
            key=np.zeros(1),
            is_candidate=np.zeros(1, dtype=np.bool_),
        )
        return self._bound(boxes, np.ones(1, dtype=np.bool_))

    def split(self, boxes: Boxes) -> Boxes:
        """Return the halves of boxes that stay open."""
        problem = self.problem
        low, high = problem.bounds(boxes.mask)
        is_alive = np.asarray(np.isfinite(low).all(axis=1))  # leaves may have been dropped since
        boxes = boxes.take(is_alive)
        chosen = self._choose_cuts(boxes, (high - low)[is_alive])
        is_split = chosen >= 0
        self._note_stuck(boxes.take(~is_split))
        boxes = boxes.take(is_split)
        chosen = chosen[is_split]
        n = len(boxes)
        if not n:
            return boxes
        feature = problem.cuts.feature[chosen]
        cut = problem.cuts.cell[chosen]
        each = np.arange(n)
        children = boxes.take(np.concatenate([each, each]))
        children.is_candidate[:] = False
        children.high[each, feature] = cut
        children.low[n + each, feature] = cut + 1
        at = problem.offset[feature] + cut
        children.mask[:n] &= problem.upper[at]
        children.mask[n:] &= problem.lower[at + 1]
        is_far_first = problem.home[feature] > cut
        return self._bound(children, np.concatenate([is_far_first, ~is_far_first]))

    def _bound(self, boxes: Boxes, is_new_corner: Mask) -> Boxes:
        """Return the boxes that stay open, with costs and candidates."""
        problem = self.problem
        self.work.done += boxes.mask.size
        corner = problem.corner(boxes.low, boxes.high)
        is_open = self._pin(boxes)
        is_open &= self._keeps_rules(boxes)
        self._narrow(boxes, corner)
        boxes.cost = problem.costs.total(corner + problem.offset)
        is_open &= boxes.cost < self.limit
        low, high = problem.bounds(boxes.mask)
        is_open &= np.isfinite(low).all(axis=1)
        with np.errstate(invalid="ignore"):
            is_open &= problem.is_possible(*problem.scores(low, high))
        kept = np.flatnonzero(is_open)
        boxes = boxes.take(kept)
        if not len(boxes):
            return boxes
        problem.drop_leaves(boxes.mask, low[kept], high[kept])
        boxes.key = boxes.cost.copy()
        self._mark_candidates(boxes, corner[kept], is_new_corner[kept])
        return boxes

    def _mark_candidates(self, boxes: Boxes, corner: Indices, is_new: Mask) -> None:
        """Find the corners that may be answers; before the first answer, order boxes by them."""
        problem = self.problem
        new = np.arange(len(boxes)) if self.is_greedy else np.flatnonzero(is_new)
        if not len(new):
            return
        score = problem.corner_scores(corner[new])
        if self.is_greedy:
            boxes.key[new] = misses(tuple(problem.accepted), score)
        hits = new[problem.is_possible(score, score) & is_new[new]]
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
        low = np.repeat(region.query[None], len(boxes), axis=0)
        high = low.copy()
        low[:, problem.features] = problem.lowest[boxes.low + problem.offset]
        high[:, problem.features] = problem.highest[boxes.high + problem.offset]
        # Cells of a number that falls as the code rises are in falling order of the codes.
        least = np.minimum(low, high)
        most = np.maximum(low, high)
        for a, b in zip(region.A, region.b, strict=True):
            if (region.recomputed & (a != 0.0)).any():
                continue
            ends = np.where(a > 0.0, least, most)[:, a != 0.0]
            slack = TUNING.same_cost * (abs(b) + np.abs(ends * a[a != 0.0]).sum(axis=1))
            keeps &= ~(ends @ a[a != 0.0] > b + slack)
        return keeps

    def _narrow(self, boxes: Boxes, corner: Indices) -> None:
        """Leave out cells that cost too much together with the changes that a box needs."""
        if not np.isfinite(self.limit):
            return
        problem = self.problem
        costs = problem.costs
        power = costs.power[corner + problem.offset]
        premium = costs.premium[corner + problem.offset]
        rest = power.sum(axis=1, keepdims=True) - power  # of the other features
        rest_premium = premium.sum(axis=1, keepdims=True) - premium
        room = costs.max_power(self.limit, rest_premium + costs.most_premium) - rest
        for j in range(corner.shape[1]):
            self._cut_above(boxes, j, room[:, j])
            if problem.home[j]:
                self._cut_below(boxes, j, room[:, j])

    def _cut_above(self, boxes: Boxes, j: int, room: Array) -> None:
        """Leave out cells of a feature above the query's that cost more than `room` ``(n,)``."""
        problem = self.problem
        offset = problem.offset[j]
        home = problem.home[j]
        rising = problem.costs.power[offset + home : offset + problem.sizes[j]]
        last = home + np.maximum(np.searchsorted(rising, room, side="right") - 1, 0)
        is_cut = (boxes.high[:, j] > last) & (last >= boxes.low[:, j])
        is_cut &= problem.is_line[j] | (last == boxes.low[:, j])
        if is_cut.any():
            boxes.high[is_cut, j] = last[is_cut]
            boxes.mask[is_cut] &= problem.upper[offset + last[is_cut]]

    def _cut_below(self, boxes: Boxes, j: int, room: Array) -> None:
        """Leave out cells of a feature below the query's that cost more than `room` ``(n,)``."""
        problem = self.problem
        offset = problem.offset[j]
        home = problem.home[j]
        falling = problem.costs.power[offset : offset + home + 1][::-1]
        first = home - np.maximum(np.searchsorted(falling, room, side="right") - 1, 0)
        is_cut = (boxes.low[:, j] < first) & (first <= boxes.high[:, j])
        if is_cut.any():
            boxes.low[is_cut, j] = first[is_cut]
            boxes.mask[is_cut] &= problem.lower[offset + first[is_cut]]

    def _choose_cuts(self, boxes: Boxes, spread: Array) -> Indices:
        """Return the cut ``(n,)`` at which to split each box; -1 where nothing is left.

        It is the cut that matters most to the trees whose summands have the widest `spread`
        ``(n, t)``, and that leaves least to spend on the far side.
        """
        problem = self.problem
        cuts = problem.cuts
        if not len(cuts.cell):
            return np.full(len(boxes), -1)
        start = boxes.low[:, cuts.feature]
        end = boxes.high[:, cuts.feature]
        is_inside = (cuts.cell >= start) & (cuts.cell < end)
        if not problem.is_line.all():  # of listed cells the first is split off
            is_inside &= problem.is_line[cuts.feature] | (cuts.cell == start)
        worth = spread @ cuts.weight
        power = problem.costs.power[problem.corner(boxes.low, boxes.high) + problem.offset]
        rise = cuts.far_power - power[:, cuts.feature]
        room = np.maximum(self.limit - power.sum(axis=1, keepdims=True), TUNING.least_room)
        worth *= TUNING.far_side + np.clip(rise / room, 0.0, 1.0)
        chosen = np.where(is_inside, worth, -1.0).argmax(axis=1)
        return np.where(is_inside.any(axis=1), chosen, -1)

    def _note_stuck(self, boxes: Boxes) -> None:
        """Note boxes that can't be split although they may hold other rows than their corner."""
        problem = self.problem
        if not len(boxes) or not problem.region.rules:
            return
        at = boxes.low + problem.offset
        is_wide = (problem.lowest[at] < problem.highest[at]) & problem.is_ruled
        stuck = boxes.cost[is_wide.any(axis=1)]
        self.stuck_cost = min(self.stuck_cost, float(stuck.min(initial=np.inf)))


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
    """

    cost: float
    is_complete: bool
    is_stuck: bool


def find_nearest(branching: Branching) -> Generator[Array, Mask, Bound]:
    """Search for rows below the limit; yield codes ``(n, d)``, receive which reach the target.

    Returns
    -------
    Bound
        The cost below which there is no answer. It is the limit if the search is complete.
    """
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
    bound = min(pool.least_key, -side * branching.best)
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
    """

    side: int = 1
    best: float = field(init=False)
    row: Array = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.best = -self.side * np.inf
        self.row = self.problem.region.query

    def _mark_candidates(self, boxes: Boxes, corner: Indices, is_new: Mask) -> None:
        """Order boxes by their bounds, and note the most extreme corner."""
        problem = self.problem
        lower, upper = problem.scores(*problem.bounds(boxes.mask))
        boxes.key = np.asarray(-self.side * (upper if self.side > 0 else lower))
        score = problem.corner_scores(corner)
        is_better = self.side * score > self.side * self.best
        better = np.flatnonzero(is_better & is_new)
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
