"""Changes of one thing at a time, and what several of them together are expected to do.

A *move* takes a row, the base, and changes one block of features; moves of a block that go the same
way, farther and farther, are a *ray*. The guess for two moves is the sum of what each does alone,
plus an interaction that is learnt from its own errors: a Gaussian process on each pair of blocks
whose kernel is the Brownian sheet ``min(s, s') min(t, t')`` over places on two rays. It is exactly
zero where either move is none, it is at home with steps, and it says how sure it is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials import Intervals
from bayescfx.search.question import PREMIUM, clear_changes, effort
from bayescfx.space.region import Region
from bayescfx.space.repair import between, repair


class Moves(NamedTuple):
    """Rows that differ from a base in one block of features each."""

    base: Array  # (d,)
    X: Array  # (m, d)
    block: Indices  # (m,) which of the region's blocks moves
    ray: Indices  # (m,)
    place: Array  # (m,) how far out on its ray, 0 to 1
    gain: Array  # (m,) what it adds to the base's output, on the surrogate's scale; nan if unknown

    def take(self, which: Indices | Mask) -> Moves:
        """Return some of the moves."""
        base, X, block, ray, place, gain = self
        return Moves(base, X[which], block[which], ray[which], place[which], gain[which])

    def along(self, other: Moves) -> Moves:
        """Return these and other moves of the same rays, in order, those whose gain is known."""
        parts: list[Any] = [np.concatenate(two) for two in zip(self[1:], other[1:], strict=True)]
        both = Moves(self.base, *parts)
        order = np.lexsort((both.place, both.ray))
        return both.take(order[np.isfinite(both.gain[order])])

    def before(self) -> tuple[Mask, Array, Array]:
        """Return whether another move precedes on the ray, or the base; that row, and its gain."""
        behind = np.concatenate([[-1], self.ray[:-1]]) == self.ray
        start = np.where(behind[:, None], np.vstack([self.base, self.X[:-1]]), self.base)
        return behind, start, np.where(behind, np.concatenate([[0.0], self.gain[:-1]]), 0.0)

    def steps(self) -> Moves:
        """Return the moves that gain something else than those before, and each ray's last."""
        behind, _, gain = self.before()
        last = np.append(~behind[1:], True)
        return self.take(~behind | last | (self.gain != gain))


def values_of(region: Region, count: int) -> dict[int, Array]:
    """Return by feature on a line which values are tried, sorted: all if few, or the data's."""
    found = {}
    for j in np.flatnonzero(region.sliding).tolist():
        choices, low, high = region.choices[j], region.low[j], region.high[j]
        if choices is not None and len(choices) <= count:
            found[j] = choices
            continue
        pool = region.data[:: max(1, len(region.data) // 1000), j]
        if len(pool) < 2 * count:
            pool = np.append(pool, np.linspace(low, high, 2 * count))
        pool = np.concatenate([pool[(pool > low) & (pool < high)], [low, high]])
        found[j] = np.unique(region.axes[j].snap(pool))
    return found


def single_moves(
    region: Region, base: Array, count: int, values: dict[int, Array], below: float = np.inf
) -> Moves:
    """Return allowed moves of every block from a base ``(d,)`` to about `count` of its `values`.

    If rows that cost less than `below` are wanted: moves that may be a part of one, with another.
    """
    sides = _sides(region, base, count, values, below)
    found: list[tuple[int, list[int], Array]] = []  # block, features, codes
    for b, features in enumerate(region.moving):
        if len(features) > 1 and (base[features] == region.query[features]).all():
            found += [(b, features, ray) for ray in _joint_rays([sides[j] for j in features])]
            continue
        for j in features:
            rays = sides[j] if j in sides else _levels(region, base, j, count)
            found += [(b, [j], ray[:, None]) for ray in rays if len(ray)]
        if len(features) > 1:  # back as a whole
            found.append((b, features, region.query[None, features]))
    sizes = np.array([len(ray) for _, _, ray in found], dtype=np.intp)
    X = np.repeat(base[None], sizes.sum(), axis=0)
    ends = np.cumsum(sizes)
    for (_, at, ray), end in zip(found, ends.tolist(), strict=True):
        X[end - len(ray) : end, at] = ray
    place = (np.arange(len(X)) - np.repeat(ends - sizes, sizes) + 1.0) / np.repeat(sizes, sizes)
    whose = np.repeat(np.array([b for b, _, _ in found], dtype=np.intp), sizes)
    ray = np.repeat(np.arange(len(sizes)), sizes)
    moves = Moves(base, X, whose, ray, place, np.full(len(X), np.nan))
    if region.rules:
        X, allowed = repair(region, X)
        moved = allowed & ((base != X) & ~np.isnan(base)).any(axis=1)
        moves = moves._replace(X=X).take(moved)
    if np.isfinite(below):
        cost = effort(region, np.vstack([base, moves.X]))
        moves = moves.take(cost[1:] < below + cost[0] - cost.min())
    return moves


def finer(region: Region, moves: Moves, values: dict[int, Array], below: float, most: int) -> Moves:
    """Return at most `most` moves between neighbours on a ray of other gain, dear ones first."""
    feature = np.array([at[0] if len(at) == 1 and at[0] in values else -1 for at in region.moving])
    behind, start, before = moves.before()
    cost = effort(region, np.vstack([start, moves.X])).reshape(2, -1)
    worth = np.abs(moves.gain - before) * np.abs(cost[1] - cost[0])
    worth[(feature[moves.block] < 0) | (cost[0] >= below)] = 0.0
    picked, codes = [np.empty(0, dtype=np.intp)], [np.empty(0)]
    order = np.argsort(-worth, kind="stable")[: most // 3]
    for k in order[worth[order] > 0.0].tolist():
        pool = values[j := feature[moves.block[k]]]
        low, high = sorted((start[k, j], moves.X[k, j]))
        inside = pool[np.searchsorted(pool, low, side="right") : np.searchsorted(pool, high)]
        if len(inside):
            quarters = (np.array([0.25, 0.5, 0.75]) * len(inside)).astype(np.intp)
            codes.append(inside[np.unique(quarters)])
            picked.append(np.full(len(codes[-1]), k))
    at, value = np.concatenate(picked), np.concatenate(codes)
    found, j = moves.take(at), feature[moves.block[at]]
    each = np.arange(len(at))
    share = (value - start[at, j]) / (found.X[each, j] - start[at, j])
    found.X[each, j] = value
    inner = np.where(behind, np.concatenate([[0.0], moves.place[:-1]]), 0.0)[at]
    place = inner + share * (found.place - inner)
    return found._replace(place=place, gain=np.full(len(at), np.nan))


def _sides(
    region: Region, base: Array, count: int, values: dict[int, Array], below: float
) -> dict[int, tuple[Array, Array]]:
    """Return by feature with an order the codes above and below the base, nearest first.

    On a line about `count` of its values, if the base is not the query also some around the base
    and on the way back, of those that a row may have which costs less than `below`.
    """
    query, found = region.query, {}
    for j in np.flatnonzero(region.cyclic & ~np.isnan(base)).tolist():
        choices = region.choices[j]
        assert choices is not None  # circles are always listed
        turn = np.mod(choices - base[j], region.period[j])
        codes = choices[np.argsort(turn, kind="stable")]
        half = int(np.count_nonzero(turn <= region.period[j] / 2))
        up, down = codes[1:half], codes[half:][::-1]
        found[j] = up[_thinned(len(up), count)], down[_thinned(len(down), count)]
    units = region.units(base[None])[0]
    room = np.full(len(units), below if region.cost.norm else np.inf)
    if region.cost.norm == 1:  # the longest change may be taken back for it
        room = np.maximum(below - units.sum() + units.max() + units, 0.0)
    dear = region.weight > 0.0
    reach = np.divide(room * region.scale, region.weight, out=np.full(len(room), np.inf), where=dear)
    starts, ends = np.stack([query - reach, query]).T, np.stack([query, query + reach]).T
    near = np.multiply.outer([-0.3, -0.1, -0.03, 0.03, 0.1, 0.3], region.scale)
    way = np.multiply.outer([0.1, 0.2, 0.35, 0.5, 0.7, 1.0], query - base)
    beside = np.vstack([region.on_grid(base + np.vstack([near, way])), query]).T.tolist()
    for j, codes in values.items():
        low, under = codes.searchsorted(starts[j]).tolist()
        over, high = codes.searchsorted(ends[j], side="right").tolist()
        up, down = codes[over:high], codes[low:under][::-1]
        many = high - low > count
        if many:
            up, down = (side[_thinned(len(side), count // 2)] for side in (up, down))
        if base is not query:
            own = codes[under:over].tolist()
            stops = sorted({*up.tolist(), *down.tolist(), *own, *(beside[j] if many else [])})
            left, right = bisect_left(stops, base[j]), bisect_right(stops, base[j])
            up, down = np.array(stops[right:]), np.array(stops[:left][::-1])
        found[j] = up, down
    return found


def _joint_rays(sides: list[tuple[Array, Array]]) -> list[Array]:
    """Return rays ``(k, features)`` of features that move together: all up, and all down."""
    found = []
    for side in zip(*sides, strict=True):
        shortest, longest = min(map(len, side)), max(map(len, side))
        if shortest:
            at = np.arange(1, longest + 1)
            picked = [codes[np.ceil(at * len(codes) / longest).astype(int) - 1] for codes in side]
            found.append(np.stack(picked, axis=1))
    return found


def _levels(region: Region, base: Array, j: int, count: int) -> list[Array]:
    """Return the levels of feature `j`, the frequent ones if they are many, each by itself."""
    choices = region.choices[j]
    assert choices is not None  # levels are always listed
    if len(choices) > 2 * count:  # the query's, and those that are frequent in the data
        number = (region.data[:, [j]] == choices).sum(axis=0)
        number[choices == region.query[j]] = len(region.data) + 1
        choices = choices[np.sort(np.argsort(-number, kind="stable")[: 2 * count])]
    return [np.array([code]) for code in choices if code != base[j]]


@lru_cache(maxsize=1024)
def _thinned(n: int, count: int) -> Indices:
    """Return at most `count` places of a list of `n`: many close by, few farther out."""
    if n <= count:
        return np.arange(n)
    at = np.ceil(n * (np.arange(1, count + 1) / count) ** 2).astype(np.intp)
    return np.unique(at) - 1


def crossings(region: Region, moves: Moves, value: float, accepted: Intervals, most: int) -> Array:
    """Return rows between neighbours on a ray on either side of a target, cheapest first."""
    _, start, before = moves.before()
    before, after = value + before, value + moves.gain
    rows = [moves.X[:0]]
    for low, high in accepted:  # where a smooth model would hit its middle, and beside that
        across = (np.minimum(before, after) < low) & (np.maximum(before, after) > high)
        at = np.flatnonzero(across)
        share = (0.5 * (low + high) - before[at]) / (after[at] - before[at])
        for f in (share, 0.5 * share, 0.5 + 0.5 * share):
            rows.append(between(region, moves.X[at], start[at], f[:, None], moves.X[at]))
    X = region.on_grid(np.vstack(rows))
    return np.asarray(X[np.argsort(effort(region, X), kind="stable")[:most]])


class Pairs:
    """Moves whose outputs are known, two at a time: what they cost, and what they may do."""

    def __init__(
        self, region: Region, moves: Moves, origin: float, value: float, below: float = np.inf
    ) -> None:
        self.region, self.moves, self.gain = region, moves, moves.gain
        self.origin, self.value = origin, value  # outputs of query and base, surrogate's scale
        base, X, gain = moves.base, moves.X, moves.gain
        self._touched = (base != X) & ~region.recomputed & ~np.isnan(base)  # (m, d)
        touched = self._touched.astype(np.float32)
        clash = touched @ touched.T
        if region.max_changes is not None:
            changes = region.changes(np.vstack([base, X])).sum(axis=1)
            more = changes[1:] - changes[0]
            clash += np.add.outer(more, more) > region.max_changes - changes[0]
        powers, extras = _prices(region, np.vstack([base, X]))
        self._own = powers[0], extras[0]
        power, extra = self.price = powers[1:] - powers[0], extras[1:] - extras[0]  # (m,) each
        i, j = np.nonzero(np.triu(clash == 0.0))
        cost = self.total(power[i] + power[j], extra[i] + extra[j])
        if np.isfinite(below):
            cheap = np.flatnonzero(cost < below)
            i, j, cost = i[cheap], j[cheap], cost[cheap]
        self.i, self.j, self.cost = i, j, cost  # (p,) of pairs that cost less than `below`
        self.open = np.ones(len(i), dtype=bool)  # (p,) not tried yet
        rays = moves.ray.max(initial=0) + 1
        self.lane = moves.ray[i] * rays + moves.ray[j]  # (p,) which two rays
        self.blocks = moves.block[i] * len(region.moving) + moves.block[j]  # (p,) which two blocks
        self._prior = moves.place[i] * moves.place[j]  # (p,) variance of interactions, relative
        self._excess, self._variance = np.zeros(len(i)), self._prior.copy()
        self._error = np.full(len(i), np.nan)  # (p,) of the sum, where it is known
        self._least = 1e-9 * (1.0 + abs(value))  # no guess is surer than this
        # Until errors are known: a third of what moves do.
        self._scale = float(np.var(gain)) / 9.0 if len(gain) else 0.0

    def total(self, power: Array, extra: Array) -> Array:
        """Return the effort of rows that add so much to the base's, ``(k,)`` each."""
        root = 1.0 / max(self.region.cost.norm, 1.0)
        distance = np.maximum(self._own[0] + power, 0.0) ** root
        return np.asarray(distance + (self._own[1] + extra) * np.minimum(distance, 1.0))

    def rows(self, pairs: Indices) -> Array:
        """Return the rows ``(k, d)`` of some pairs."""
        first, second = self.i[pairs], self.j[pairs]
        return np.where(self._touched[second], self.moves.X[second], self.moves.X[first])

    def guess(self, pairs: Indices) -> tuple[Array, Array]:
        """Return mean and deviation ``(k,)`` of what some pairs are expected to come to."""
        mean = self.value + self.gain[self.i[pairs]] + self.gain[self.j[pairs]]
        spread = self._scale * np.maximum(self._variance[pairs], 1e-4)
        return mean + self._excess[pairs], np.sqrt(spread) + self._least

    @property
    def changes(self) -> int:
        """How many features of the base differ from the query."""
        return int(self.region.changes(self.moves.base[None]).sum())

    @property
    def deviation(self) -> float:
        """How far the sum of moves errs where both go far."""
        return float(np.sqrt(self._scale)) + self._least

    def learn(self, pairs: Indices, outputs: Array, below: float) -> None:
        """Learn from outputs ``(k,)`` what to expect of pairs that cost less than `below`."""
        known = np.isfinite(outputs)
        pairs, (ray, place) = pairs[known], (self.moves.ray, self.moves.place)
        self._error[pairs] = outputs[known] - self.value - self.gain[self.i[pairs]]
        self._error[pairs] -= self.gain[self.j[pairs]]
        seen = np.flatnonzero(np.isfinite(self._error))
        if not len(seen):
            return
        self._scale = float(np.mean(self._error[seen] ** 2 / np.maximum(self._prior[seen], 1e-3)))
        # Errors by pair of blocks, the last few of each: (blocks, errors), short lists filled up.
        names = self.blocks
        seen = seen[np.argsort(names[seen], kind="stable")]
        blocks, starts, sizes = np.unique(names[seen], return_index=True, return_counts=True)
        most = min(int(sizes.max()), 24)
        at = starts[:, None] + np.maximum(sizes[:, None] - most, 0) + np.arange(most)
        there = np.arange(most) < sizes[:, None]
        at = seen[np.where(there, at, 0)]
        slot = np.full(len(self.region.moving) ** 2, -1)
        slot[blocks] = np.arange(len(blocks))
        useful = np.flatnonzero(self.open & (self.cost < below) & (slot[names] >= 0))
        which = slot[names[useful]]

        def kernel(first: Indices, second: Indices) -> Array:
            near = np.minimum(place[first][..., None], place[second][..., None, :])
            return np.where(ray[first][..., None] == ray[second][..., None, :], near, 0.0)

        a, b = self.i[at], self.j[at]
        K = kernel(a, a) * kernel(b, b) * (there[:, :, None] & there[:, None, :])
        K += np.where(there, 0.01, 1.0)[:, :, None] * np.eye(most)
        inverse = np.linalg.inv(K)
        weights = np.einsum("bmn,bn->bm", inverse, np.where(there, self._error[at], 0.0))
        across = kernel(self.i[useful][:, None], a[which])[:, 0]
        across *= kernel(self.j[useful][:, None], b[which])[:, 0]
        across *= there[which]
        self._excess[useful] = (across * weights[which]).sum(axis=1)
        drop = (np.einsum("um,umn->un", across, inverse[which]) * across).sum(axis=1)
        self._variance[useful] = np.maximum(self._prior[useful] - drop, 0.0)

    def combinations(self, aim: float) -> tuple[Array, Array]:
        """Return rows of many moves at once that come to `aim` if effects add up, and the guesses.

        What a unit of output towards `aim` is worth grows from row to row, and each block makes the
        move that gains most less its cost. Where guesses cross `aim` the steps are made finer.
        """
        gain, price = np.sign(aim - self.origin) * self.gain, self.price[0] + self.price[1]
        fair = gain * price > 0.0
        if not fair.any():
            return self.moves.X[:0], self.gain[:0]
        worth = np.quantile(price[fair] / gain[fair], np.linspace(0.0, 1.0, 24))
        rows, mean = self._bought(worth, gain, price)
        crossed = np.flatnonzero((mean[:-1] < aim) != (mean[1:] < aim))
        if len(crossed):
            k = crossed[0]
            finer, finer_mean = self._bought(np.linspace(worth[k], worth[k + 1], 24), gain, price)
            crossed = np.flatnonzero((finer_mean[:-1] < aim) != (finer_mean[1:] < aim))
            i, j = crossed, crossed + 1
            share = (aim - finer_mean[i]) / (finer_mean[j] - finer_mean[i])
            part = between(self.region, finer[j], finer[i], share[:, None], finer[j])
            rows = np.vstack([self.region.on_grid(part), finer, rows])
            mean = np.concatenate([np.full(len(part), aim), finer_mean, mean])
        return rows, mean

    def _bought(self, worth: Array, gain: Array, price: Array) -> tuple[Array, Array]:
        """Return the rows ``(n, d)`` that pay if a unit of gain is `worth` ``(n,)``; guesses."""
        moves, region = self.moves, self.region
        starts = np.flatnonzero(np.diff(moves.block, prepend=-1))
        sizes = np.diff(starts, append=len(price))
        at = starts[:, None] + np.minimum(np.arange(sizes.max()), sizes[:, None] - 1)
        net = np.multiply.outer(worth, gain[at]) - price[at]  # (n, blocks, moves of a block)
        choice = net.argmax(axis=2)
        best = np.take_along_axis(at, choice.T, axis=1).T  # (n, blocks)
        value = np.take_along_axis(net, choice[:, :, None], axis=2)[:, :, 0]
        made = value > 0.0
        if region.max_changes is not None:
            rank = np.argsort(np.argsort(-value, axis=1, kind="stable"), axis=1)
            made &= (rank < region.max_changes - self.changes) | (self.price[1][best] < 0.0)
        rows = np.repeat(moves.base[None], len(worth), axis=0)
        for k, move in enumerate(best.T):
            rows = np.where(self._touched[move] & made[:, [k]], moves.X[move], rows)
        return rows, self.value + (self.gain[best] * made).sum(axis=1)


def _prices(region: Region, X: Array) -> tuple[Array, Array]:
    """Return the effort of rows ``(n, d)`` as sums over features: powers, premiums."""
    norm = region.cost.norm
    powers = region.changes(X) * region.weight if norm == 0 else region.units(X) ** norm
    premium = PREMIUM if region.cost.weight != 0.0 else 0.0
    return powers.sum(axis=1), premium * (clear_changes(region, X) @ region.weight)


def chance(accepted: Intervals, mean: Array, std: Array) -> Array:
    """Return roughly how likely outputs are accepted; tails are so heavy that few are zero."""
    found = np.zeros(len(mean))
    for low, high in accepted:
        a, b = (low - mean) / std, (high - mean) / std
        a, b = np.where(a > 0.0, -b, a), np.where(a > 0.0, -a, b)
        found += expit(1.7 * b) - expit(1.7 * a)
    return found
