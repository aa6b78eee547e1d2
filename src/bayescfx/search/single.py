"""Changes of one thing at a time.

A *move* takes a row, the base, and changes one block of features; moves of a block that go the same
way, farther and farther, are a *ray*.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials import Intervals
from bayescfx.space.effort import effort
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

    @property
    def stepped(self) -> bool:
        """Whether some moves do no more than those before on a ray that does something."""
        behind, _, gain = self.before()
        works = np.isin(self.ray, self.ray[self.gain != 0.0])
        return bool((behind & works & (self.gain == gain)).any())

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
    which = np.repeat(np.arange(len(sizes)), sizes)
    moves = Moves(base, X, whose, which, place, np.full(len(X), np.nan))
    if region.rules:
        X, allowed = repair(region, X)
        moved = allowed & region.changes(X, base).any(axis=1)
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
    reach = np.divide(
        room * region.scale, region.weight, out=np.full(len(room), np.inf), where=dear
    )
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
