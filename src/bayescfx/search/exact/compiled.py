"""The step of the branch and bound, compiled by numba: one box after the other.

The functions do what those of `steps` do, and give the same results to the last bit; see there.
`acceleration` imports this module where numba is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from scipy.sparse import csr_array

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.search.exact.leaves import BITS, Words
from bayescfx.search.exact.pool import Boxes
from bayescfx.search.exact.steps import FAR_SIDE, LEAST_ROOM, BoxScores

if TYPE_CHECKING:
    from bayescfx.search.exact.problem import BoxProblem

_LAST_BIT = BITS - 1
Function = TypeVar("Function", bound=Callable[..., Any])


def _compiled(function: Function) -> Function:
    """Compile a function at its first call; the result is kept in a file."""
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))


#: Marks a function that generates the code of one machine instruction.
_generated = cast(Callable[[Callable[..., Any]], Any], intrinsic)


def choose_cuts(problem: BoxProblem, boxes: Boxes, limit: float, is_used: Mask) -> Indices:
    """Return the cut ``(n,)`` at which to split each box; -1 where nothing is left."""
    cuts = problem.cuts
    chosen = np.full(len(boxes), -1)
    _choose_cuts(
        (boxes.low, boxes.high, boxes.spread),
        (cuts.feature, cuts.cell, cuts.far_power),
        (cuts.weight.data, cuts.weight.indices, cuts.weight.indptr),
        (problem.home, problem.offset, problem.is_line, problem.costs.power),
        float(limit),
        is_used,
        chosen,
    )
    return chosen


def halve(problem: BoxProblem, boxes: Boxes, chosen: Indices, is_used: Mask) -> tuple[Boxes, Mask]:
    """Return boxes halved at chosen cuts ``(n,)``, if any, and the features used ``(n, k)``."""
    n_cut = int((chosen >= 0).sum())
    n = len(boxes) + n_cut
    children = Boxes(*(np.empty((n, *part.shape[1:]), part.dtype) for part in boxes.parts()))
    used = np.empty((n, is_used.shape[1]), dtype=np.bool_)
    _halve(
        (boxes.low, boxes.high, boxes.mask, boxes.spread, boxes.is_new, is_used),
        (children.low, children.high, children.mask, children.spread, children.is_new, used),
        (problem.cuts.feature, problem.cuts.cell),
        (problem.home, problem.offset, problem.upper, problem.lower),
        chosen,
        n_cut,
    )
    children.is_candidate[:] = False
    return children, used


def bound(
    problem: BoxProblem, boxes: Boxes, limit: float, *, scores_all: bool
) -> tuple[Boxes, BoxScores]:
    """Return the boxes that may hold an answer, shrunk to what may matter, and their scores."""
    costs = problem.costs
    n_features = len(problem.home)
    most = n_features if problem.region.max_changes is None else problem.region.max_changes
    scores = BoxScores(*(np.empty(len(boxes)) for _ in range(3)))
    n = _bound(
        (boxes.low, boxes.high, boxes.mask, boxes.cost, boxes.spread, boxes.is_new),
        (scores.corner, scores.low, scores.high),
        (problem.home, problem.offset, problem.is_line),
        (problem.root, problem.upper, problem.lower, problem.own),
        (problem.flat_values, problem.tree_of_word, float(problem.base[0])),
        (costs.power, costs.price, costs.most_price),
        np.array(problem.accepted, dtype=np.float64).reshape(-1, 2),
        (float(limit), int(most), bool(scores_all)),
    )
    first = slice(n)
    kept = Boxes(*(part[first] for part in boxes.parts()))  # type: ignore[arg-type]  # in order
    return kept, BoxScores(scores.corner[first], scores.low[first], scores.high[first])


def warm_up() -> None:
    """Compile all functions, or load them from files: call each once, for a box of two cells."""
    number = np.zeros(2)
    place = np.zeros(1, dtype=np.intp)
    is_line = np.ones(1, dtype=np.bool_)
    word = np.ones((2, 1), dtype=np.uint64)
    spread = np.zeros((1, 1), dtype=np.float32)
    boxes = Boxes(
        low=np.zeros((1, 1), dtype=np.intp),
        high=np.ones((1, 1), dtype=np.intp),
        mask=np.ones((1, 1), dtype=np.uint64),
        cost=np.zeros(1),
        spread=spread,
        key=np.zeros(1),
        is_new=np.ones(1, dtype=np.bool_),
        is_candidate=np.zeros(1, dtype=np.bool_),
    )
    weight = csr_array(np.ones((1, 1), dtype=np.float32))
    problem = cast("BoxProblem", SimpleNamespace(
        cuts=SimpleNamespace(feature=place, cell=place, far_power=number, weight=weight),
        costs=SimpleNamespace(power=number, price=number, most_price=number),
        home=place, offset=place, is_line=is_line,
        root=word[0], upper=word, lower=word, own=word,
        flat_values=np.zeros(BITS), tree_of_word=place, base=number,
        accepted=[(0.0, 0.0)], region=SimpleNamespace(max_changes=1),
    ))  # fmt: skip
    is_used = np.zeros((1, 1), dtype=np.bool_)
    chosen = choose_cuts(problem, boxes, 1.0, is_used)
    children, _ = halve(problem, boxes, chosen, is_used)
    bound(problem, children, 1.0, scores_all=True)


# ── bits of words ──


@_generated
def _lowest_bit(typingctx: Any, word: Any) -> Any:
    """Return the place of the lowest bit of a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        is_zero_undefined = context.get_constant(types.boolean, True)
        return builder.cttz(arguments[0], is_zero_undefined)

    return types.uint64(types.uint64), generate


@_generated
def _leading_zeros(typingctx: Any, word: Any) -> Any:
    """Return the number of zeros above the highest bit of a word that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        is_zero_undefined = context.get_constant(types.boolean, True)
        return builder.ctlz(arguments[0], is_zero_undefined)

    return types.uint64(types.uint64), generate


@_compiled
def _bits_between(bits: np.uint64, values: Array, word: int, least: float, most: float) -> Any:
    """Return the bits of a word with values between two bounds."""
    one = np.uint64(1)
    while bits != 0:
        bit = _lowest_bit(bits)
        if values[BITS * word + np.int64(bit)] >= least:
            break
        bits &= ~(one << bit)
    while bits != 0:
        bit = np.uint64(_LAST_BIT) - _leading_zeros(bits)
        if values[BITS * word + np.int64(bit)] <= most:
            break
        bits &= ~(one << bit)
    return bits


# ── splitting ──


@_compiled
def _nearest(home: Indices, low: Indices, high: Indices, i: int, j: int) -> int:
    """Return the cell of a box that is nearest to the query's."""
    return int(min(max(home[j], low[i, j]), high[i, j]))


@_compiled
def _choose_cuts(
    boxes: Any,
    cuts: Any,
    weights: Any,
    features: Any,
    limit: float,
    is_used: Mask,
    chosen: Indices,
) -> None:
    """Fill in the best cut ``(n,)`` of each box."""
    low, high, spread = boxes
    home, offset, is_line, power = features
    feature, cell, far_power = cuts
    weight, tree, end = weights
    own = np.empty(len(home))
    for i in range(low.shape[0]):
        total = 0.0
        for j in range(len(home)):
            own[j] = power[offset[j] + _nearest(home, low, high, i, j)]
            total += own[j]
        room = max(limit - total, LEAST_ROOM)
        best = -1.0
        for cut in range(len(cell)):
            j = feature[cut]
            if is_used[i, j] or cell[cut] < low[i, j] or cell[cut] >= high[i, j]:
                continue
            if not is_line[j] and cell[cut] != low[i, j]:
                continue
            share = (far_power[cut] - own[j]) / room
            worth = 0.0
            for at in range(end[cut], end[cut + 1]):
                worth += np.float64(weight[at]) * np.float64(spread[i, tree[at]])
            value = worth * (FAR_SIDE + min(max(share, 0.0), 1.0))
            if value > best:
                best = value
                chosen[i] = cut


@_compiled
def _halve(boxes: Any, children: Any, cuts: Any, cells: Any, chosen: Indices, n_cut: int) -> None:
    """Fill in the first halves of boxes, then the second ones, then boxes without a cut."""
    feature, cell = cuts
    home, offset, upper, lower = cells
    first = 0
    whole = 2 * n_cut
    low, high, mask, _, is_new, is_used = children
    for i in range(len(chosen)):
        if chosen[i] < 0:
            _copy_box(boxes, i, children, whole)
            whole += 1
            continue
        j = feature[chosen[i]]
        end = cell[chosen[i]]
        _copy_box(boxes, i, children, first)
        high[first, j] = end
        is_used[first, j] = True
        is_new[first] |= home[j] > end
        _intersect(mask, first, upper, offset[j] + end)
        second = first + n_cut
        _copy_box(boxes, i, children, second)
        low[second, j] = end + 1
        is_used[second, j] = True
        is_new[second] |= home[j] <= end
        _intersect(mask, second, lower, offset[j] + end + 1)
        first += 1


@_compiled
def _copy_box(boxes: Any, i: int, others: Any, to: int) -> None:
    """Copy a box to a place among others."""
    low, high, mask, spread, is_new, is_used = boxes
    other_low, other_high, other_mask, other_spread, other_is_new, other_is_used = others
    other_low[to] = low[i]
    other_high[to] = high[i]
    other_mask[to] = mask[i]
    other_spread[to] = spread[i]
    other_is_used[to] = is_used[i]
    other_is_new[to] = is_new[i]


@_compiled
def _intersect(mask: Words, i: int, cells: Words, at: int) -> None:
    """Keep the leaves of a box that a row of a table has, in place."""
    for word in range(mask.shape[1]):
        mask[i, word] &= cells[at, word]


# ── bounding ──


@_compiled
def _bound(
    boxes: Any,
    scores: Any,
    features: Any,
    leaves: Any,
    trees: Any,
    costs: Any,
    accepted: Array,
    settings: Any,
) -> int:
    """Move the boxes that stay open to the front, shrink them, and return their number."""
    low, high, mask, _, spread, is_new = boxes
    corner_score, lowest, highest = scores
    home, offset, _ = features
    root, _, _, own = leaves
    _, _, base = trees
    _, _, scores_all = settings
    bounds = np.empty((2, spread.shape[1]))
    corner = np.empty((1, len(root)), dtype=np.uint64)
    n = 0
    for i in range(low.shape[0]):
        if not _has_room(boxes, i, features, leaves, costs, settings):
            continue
        if not _find_bounds(mask, i, trees, bounds):
            continue
        lowest[n] = _total(bounds, 0) + base
        highest[n] = _total(bounds, 1) + base
        if not _may_reach(accepted, lowest[n], highest[n]):
            continue
        for tree in range(spread.shape[1]):
            spread[n, tree] = np.float32(bounds[1, tree] - bounds[0, tree])
        rest = _rest(accepted, lowest[n], highest[n])
        if not _drop_leaves(mask, i, trees, bounds, rest):
            continue
        if is_new[i] or scores_all:
            corner[0] = root
            for j in range(len(home)):
                _intersect(corner, 0, own, offset[j] + _nearest(home, low, high, i, j))
            _find_bounds(corner, 0, trees, bounds)
            corner_score[n] = _total(bounds, 0) + base
        else:
            corner_score[n] = np.nan
        _move_box(boxes, i, n)
        n += 1
    return n


@_compiled
def _move_box(boxes: Any, i: int, to: int) -> None:
    """Move a box to an earlier place; its spread is there already."""
    low, high, mask, cost, _, is_new = boxes
    low[to] = low[i]
    high[to] = high[i]
    mask[to] = mask[i]
    cost[to] = cost[i]
    is_new[to] = is_new[i]


@_compiled
def _has_room(boxes: Any, i: int, features: Any, leaves: Any, costs: Any, settings: Any) -> bool:
    """Set the cost of a box, shrink it to what it may cost, and return whether it stays open."""
    low, high, mask, cost, _, is_new = boxes
    home, offset, _ = features
    power, price, _ = costs
    limit, most, _ = settings
    power_sum = 0.0
    price_sum = 0.0
    n_moved = 0
    for j in range(len(home)):
        at = offset[j] + _nearest(home, low, high, i, j)
        power_sum += power[at]
        price_sum += price[at]
        n_moved += low[i, j] > home[j] or high[i, j] < home[j]
    cost[i] = power_sum + price_sum
    if n_moved > most or not cost[i] < limit:
        return False
    if n_moved == most:
        _pin(low, high, mask, i, features, leaves)
    if is_new[i] and np.isfinite(limit):
        sums = (power_sum, price_sum)
        _narrow(boxes, i, features, leaves, costs, sums, limit)
    return True


@_compiled
def _pin(low: Indices, high: Indices, mask: Words, i: int, features: Any, leaves: Any) -> None:
    """Fix the features of a box that have not moved."""
    home, offset, _ = features
    _, _, _, own = leaves
    for j in range(len(home)):
        if low[i, j] < high[i, j] and low[i, j] <= home[j] and home[j] <= high[i, j]:
            low[i, j] = home[j]
            high[i, j] = home[j]
            _intersect(mask, i, own, offset[j] + home[j])


@_compiled
def _narrow(
    boxes: Any, i: int, features: Any, leaves: Any, costs: Any, sums: Any, limit: float
) -> None:
    """Leave out cells that cost too much together with the changes that a box needs."""
    low, high, mask, _, _, _ = boxes
    home, offset, is_line = features
    _, upper, lower, _ = leaves
    power, price, most_price = costs
    for j in range(len(home)):
        start = low[i, j]
        end = high[i, j]
        if start == end:
            continue
        at = offset[j] + _nearest(home, low, high, i, j)
        others = sums[1] - price[at] + most_price[j]
        room = limit - others - (sums[0] - power[at])
        here = offset[j] + home[j]
        last = home[j] + _farthest(power, here, end - home[j], room, 1)
        first = home[j] - _farthest(power, here, home[j] - start, room, -1)
        if start <= last and last < end and (is_line[j] or last == start):
            high[i, j] = last
            _intersect(mask, i, upper, offset[j] + last)
        if start < first and first <= end:
            low[i, j] = first
            _intersect(mask, i, lower, offset[j] + first)


@_compiled
def _farthest(power: Array, here: int, far: int, room: float, side: int) -> int:
    """Return the number of cells, up to `far`, from one on to a side that cost at most `room`."""
    near = 0
    far = max(far, 0)
    while near < far:
        middle = (near + far + 1) // 2
        if power[here + side * middle] <= room:
            near = middle
        else:
            far = middle - 1
    return near


@_compiled
def _find_bounds(mask: Words, i: int, trees: Any, bounds: Array) -> bool:
    """Fill in the smallest and largest summand ``(2, t)`` of each tree; False if one has none."""
    values, tree_of_word, _ = trees
    bounds[0] = np.inf
    bounds[1] = -np.inf
    for word in range(mask.shape[1]):
        bits = mask[i, word]
        if bits != 0:
            tree = tree_of_word[word]
            smallest = values[BITS * word + np.int64(_lowest_bit(bits))]
            largest = values[BITS * word + _LAST_BIT - np.int64(_leading_zeros(bits))]
            if smallest < bounds[0, tree]:
                bounds[0, tree] = smallest
            if largest > bounds[1, tree]:
                bounds[1, tree] = largest
    for tree in range(bounds.shape[1]):
        if bounds[0, tree] == np.inf:
            return False
    return True


@_compiled
def _total(bounds: Array, side: int) -> float:
    """Return the sum of one of the bounds of all trees."""
    total = 0.0
    for tree in range(bounds.shape[1]):
        total += bounds[side, tree]
    return total


@_compiled
def _may_reach(accepted: Array, lowest: float, highest: float) -> bool:
    """Return whether a score between two bounds may be accepted."""
    for n in range(len(accepted)):
        if lowest <= accepted[n, 1] and highest >= accepted[n, 0]:
            return True
    return False


@_compiled
def _rest(accepted: Array, lowest: float, highest: float) -> tuple[float, float]:
    """Return what must be added to bounds on a tree, see `steps.drop_leaves`."""
    start = np.inf
    end = -np.inf
    for n in range(len(accepted)):
        start = min(start, accepted[n, 0])
        end = max(end, accepted[n, 1])
    return start - highest, end - lowest


@_compiled
def _drop_leaves(mask: Words, i: int, trees: Any, bounds: Array, rest: Any) -> bool:
    """Drop leaves that exclude the target whatever the other trees do.

    Returns whether each tree has a leaf left.
    """
    values, tree_of_word, _ = trees
    last_used = -1
    for word in range(mask.shape[1]):
        tree = tree_of_word[word]
        least = bounds[1, tree] + rest[0]
        most = bounds[0, tree] + rest[1]
        if bounds[0, tree] < least or bounds[1, tree] > most:
            mask[i, word] = _bits_between(mask[i, word], values, word, least, most)
        if mask[i, word] != 0:
            if tree > last_used + 1:
                return False
            last_used = tree
    return bool(last_used == bounds.shape[1] - 1)
