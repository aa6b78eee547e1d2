"""The step of the branch and bound in NumPy, for many boxes at a time.

`compiled` has the same functions for numba, and gives the same results to the last bit. Therefore
sums add one number after the other, see `row_sums`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.search.exact.leaves import BITS, Words
from bayescfx.search.exact.pool import Boxes

if TYPE_CHECKING:
    from bayescfx.search.exact.problem import BoxProblem

#: Weight of a cut whose far side costs nothing. Between 0.1 and 1 it changes the number of boxes by
#: less than 5 % (20 questions of `python -m benchmarks exact`, diabetes, LightGBM, 2026-11-18).
FAR_SIDE = 0.1
#: Numerical: avoids a division by 0.
LEAST_ROOM = 1e-12
_ALL = np.uint64(2**64 - 1)
_ONE = np.uint64(1)
#: Halving steps that find a place among the 64 values of a word.
_STEPS = (32, 16, 8, 4, 2, 1, 1)


@dataclass(eq=False)
class BoxScores:
    """The scores of some boxes.

    Parameters
    ----------
    corner : array of shape (n,)
        The score of the corner; of no meaning where it was not asked for.
    low, high : array of shape (n,)
        Bounds on the score of all rows.
    """

    corner: Array
    low: Array
    high: Array

    def take(self, chosen: Indices | Mask) -> BoxScores:
        """Return the scores of some of the boxes."""
        return BoxScores(self.corner[chosen], self.low[chosen], self.high[chosen])


def row_sums(values: Array) -> Array:
    """Return the sums ``(n,)`` of rows ``(n, m)``, added up from left to right."""
    if not values.shape[1]:
        return np.zeros(len(values))
    return np.asarray(np.add.accumulate(values, axis=1)[:, -1])


# ── splitting ──


def choose_cuts(problem: BoxProblem, boxes: Boxes, limit: float, is_used: Mask) -> Indices:
    """Return the cut ``(n,)`` at which to split each box; -1 where nothing is left.

    It is the cut that matters most to the trees whose summands have the widest spread, and that
    leaves least to spend on the far side.

    Parameters
    ----------
    limit : float
        Rows are wanted that cost less.
    is_used : mask of shape (n, k)
        Features that are left out.
    """
    cuts = problem.cuts
    if not len(cuts.cell) or not len(boxes):
        return np.full(len(boxes), -1)
    power = problem.costs.power[problem.corner(boxes.low, boxes.high) + problem.offset]
    room = np.maximum(limit - row_sums(power), LEAST_ROOM)
    # Arrays of shape (cuts, n) from here on.
    cell = cuts.cell[:, None]
    start = boxes.low.T[cuts.feature]
    is_inside = (cell >= start) & (cell < boxes.high.T[cuts.feature])
    is_inside &= ~is_used.T[cuts.feature]
    if not problem.is_line.all():  # of listed cells the first is split off
        is_inside &= problem.is_line[cuts.feature][:, None] | (cell == start)
    share = (cuts.far_power[:, None] - power.T[cuts.feature]) / room
    spread = cuts.weight @ boxes.spread.T.astype(np.float64)
    worth = spread * (FAR_SIDE + np.clip(share, 0.0, 1.0))
    chosen = np.where(is_inside, worth, -1.0).argmax(axis=0)
    return np.where(is_inside.any(axis=0), chosen, -1)


def halve(problem: BoxProblem, boxes: Boxes, chosen: Indices, is_used: Mask) -> tuple[Boxes, Mask]:
    """Return boxes halved at chosen cuts ``(n,)``, if any, and the features used ``(n, k)``.

    The first halves of all boxes come first, then the second ones, then boxes without a cut.
    """
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


# ── bounding ──


def bound(
    problem: BoxProblem, boxes: Boxes, limit: float, *, scores_all: bool
) -> tuple[Boxes, BoxScores]:
    """Return the boxes that may hold an answer, shrunk to what may matter, and their scores.

    The boxes are changed. Their keys and candidates are not set.

    Parameters
    ----------
    limit : float
        Rows are wanted that cost less.
    scores_all : bool
        Whether all corners are scored, not only new ones.
    """
    corner = problem.corner(boxes.low, boxes.high)
    boxes.cost = problem.costs.total(corner + problem.offset)
    is_open = pin(problem, boxes)
    is_open &= boxes.cost < limit
    boxes = boxes.take(is_open)
    narrow(problem, boxes, limit)
    low, high = tree_bounds(problem, boxes.mask)
    lowest, highest = problem.scores(low, high)
    is_open = np.asarray(np.isfinite(low).all(axis=1))
    is_open &= problem.is_possible(lowest, highest)
    chosen = np.flatnonzero(is_open)
    boxes = boxes.take(chosen)
    bounds = low[chosen], high[chosen]
    boxes.spread = (bounds[1] - bounds[0]).astype(np.float32)
    drop_leaves(problem, boxes.mask, bounds)
    has_leaves = np.flatnonzero(_has_leaves(problem, boxes.mask))
    boxes = boxes.take(has_leaves)
    scores = BoxScores(np.full(len(chosen), np.nan), lowest[chosen], highest[chosen]).take(
        has_leaves
    )
    asked = np.arange(len(boxes)) if scores_all else np.flatnonzero(boxes.is_new)
    corner = problem.corner(boxes.low[asked], boxes.high[asked])
    scores.corner[asked] = problem.corner_scores(corner)
    return boxes, scores


def pin(problem: BoxProblem, boxes: Boxes) -> Mask:
    """Fix the other features of boxes that have used up the changes; return which may go on."""
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


def narrow(problem: BoxProblem, boxes: Boxes, limit: float) -> None:
    """Leave out cells that cost too much together with the changes that a box needs, in place.

    Only boxes with a new corner have less room than before.
    """
    new = np.flatnonzero(boxes.is_new)
    if not np.isfinite(limit) or not len(new):
        return
    low = boxes.low[new]
    high = boxes.high[new]
    room = _room(problem, problem.corner(low, high), limit)
    last = _farthest_cell(problem, high, room, 1)
    is_above = (high > last) & (last >= low)
    is_above &= problem.is_line | (last == low)
    first = _farthest_cell(problem, low, room, -1)
    is_below = (low < first) & (first <= high)
    for j in np.flatnonzero((is_above | is_below).any(axis=0)).tolist():
        above = new[is_above[:, j]]
        boxes.high[above, j] = last[is_above[:, j], j]
        boxes.mask[above] &= problem.upper[problem.offset[j] + boxes.high[above, j]]
        below = new[is_below[:, j]]
        boxes.low[below, j] = first[is_below[:, j], j]
        boxes.mask[below] &= problem.lower[problem.offset[j] + boxes.low[below, j]]


def _room(problem: BoxProblem, corner: Indices, limit: float) -> Array:
    """Return what the cells ``(n, k)`` of each feature may cost in boxes with given corners."""
    costs = problem.costs
    power = costs.power[corner + problem.offset]
    price = costs.price[corner + problem.offset]
    others = row_sums(price)[:, None] - price + costs.most_price
    return np.asarray(costs.max_power(limit, others) - (row_sums(power)[:, None] - power))


def _farthest_cell(problem: BoxProblem, end: Indices, room: Array, side: int) -> Indices:
    """Return the last cells ``(n, k)`` from the query's towards `end` that cost at most `room`.

    `side` is 1 for cells above the query's and -1 for cells below; costs rise on either side.
    """
    near = np.zeros(end.shape, dtype=np.intp)
    far = np.maximum(side * (end - problem.home), 0)
    home = problem.home + problem.offset
    for _ in range(int(far.max(initial=0)).bit_length()):
        middle = (near + far + 1) // 2
        is_within = problem.costs.power[home + side * middle] <= room
        near = np.where(is_within, middle, near)
        far = np.where(is_within, far, middle - 1)
        far = np.maximum(far, near)
    return problem.home + side * near


# ── the leaves of trees ──


def tree_bounds(problem: BoxProblem, mask: Words) -> tuple[Array, Array]:
    """Return the smallest and largest summand ``(n, t)`` of each tree; infinite if none."""
    low, high = extremes(mask, problem.flat_values)
    if len(problem.tree_start) < mask.shape[1]:
        low = np.minimum.reduceat(low, problem.tree_start, axis=1)
        high = np.maximum.reduceat(high, problem.tree_start, axis=1)
    return low, high


def extremes(mask: Words, flat_values: Array) -> tuple[Array, Array]:
    """Return the values ``(n, words)`` of the lowest and highest bit; infinite if there is none."""
    start = np.arange(mask.shape[1]) * BITS
    lowest = mask & (~mask + _ONE)
    # No two neighbouring bits are left, so that the float does not round up to the next power.
    highest = mask & ~(mask >> _ONE)
    low = flat_values[start + np.maximum(np.frexp(lowest.astype(np.float64))[1] - 1, 0)]
    high = flat_values[start + np.maximum(np.frexp(highest.astype(np.float64))[1] - 1, 0)]
    is_empty = mask == 0
    if is_empty.any():
        low = np.where(is_empty, np.inf, low)
        high = np.where(is_empty, -np.inf, high)
    return low, high


def drop_leaves(problem: BoxProblem, mask: Words, bounds: tuple[Array, Array]) -> None:
    """Drop leaves that exclude the target whatever the other trees do, in place.

    Parameters
    ----------
    mask : array of shape (n, words)
        The leaves of boxes.
    bounds : tuple of arrays of shape (n, t)
        The smallest and largest summand of each tree.
    """
    if len(problem.base) > 1 or not problem.accepted:
        return
    low, high = bounds
    start, end = problem.accepted_range
    lack = start - (row_sums(high) + problem.base[0])
    excess = end - (row_sums(low) + problem.base[0])
    least = high + lack[:, None]
    most = low + excess[:, None]
    is_useless = (low < least) | (high > most)
    row, word = np.nonzero(is_useless[:, problem.tree_of_word])
    if not len(row):
        return
    tree = problem.tree_of_word[word]
    up_to_most = _bits_up_to(problem.flat_values, word, most[row, tree])
    below_least = _bits_up_to(problem.flat_values, word, np.nextafter(least[row, tree], -np.inf))
    mask[row, word] &= up_to_most & ~below_least


def _bits_up_to(flat_values: Array, word: Indices, bound: Array) -> Words:
    """Return words with the bits of all values that are at most a bound ``(n,)``."""
    start = word * BITS
    count = np.zeros(len(word), dtype=np.intp)
    for step in _STEPS:
        place = np.minimum(count + step, BITS) - 1
        is_within = (flat_values[start + place] <= bound) & (count + step <= BITS)
        count += step * is_within
    shift = np.minimum(count, BITS - 1).astype(np.uint64)
    return np.where(count == BITS, _ALL, (_ONE << shift) - _ONE)


def _has_leaves(problem: BoxProblem, mask: Words) -> Mask:
    """Return which boxes ``(n,)`` have a leaf of every tree."""
    is_used = mask != 0
    if len(problem.tree_start) < mask.shape[1]:
        is_used = np.logical_or.reduceat(is_used, problem.tree_start, axis=1)
    return np.asarray(is_used.all(axis=1))
