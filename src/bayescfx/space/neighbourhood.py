"""The neighbourhood of a row: the values of a feature, and the rows that few changes lead to.

A *move* takes a row, the base, and changes one block of features. Moves of a block that go the same
way, farther and farther, are a *ray*. Every search builds its candidates from these parts: values
of a feature, single moves, two moves at once, a change taken back, shortened or exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, firsts
from bayescfx.space.region import Region
from bayescfx.space.repair import between, repair


@dataclass(frozen=True)
class NeighbourhoodTuning:
    """Numbers of the neighbourhood.

    Beside each is what fewer of it change in a sweep, in per cent of cost / of rows
    (`python -m benchmarks.tuning`, 140 questions, 2026-11-18). The last three are used by the
    finisher of Bayes-CFX, set by judgement; benchmark `make quality`.
    """

    # At most about so many data rows show the values of a feature; half +0.5 / -0.7, double 0 / 0.
    data_rows: int = 1000
    # Small moves, in scales; every other +0.3 / -4.8, only one +1.6 / -9.
    near: tuple[float, ...] = (-0.3, -0.1, -0.03, 0.03, 0.1, 0.3)
    # Shares of the way to the query; every other +0.5 / -1.5, only one +1.1 / -2.8.
    back: tuple[float, ...] = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
    # Where a ray is refined between two moves; every other +1.0 / -1.7, only one +1.8 / -2.3.
    between: tuple[float, ...] = (0.25, 0.5, 0.75)
    lengths: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)  # of exchanged changes
    exchanged: int = 12  # at most so many changes of a row are exchanged, the costliest
    worthwhile: float = 0.99  # a row must cost less than this share of the one it replaces


TUNING = NeighbourhoodTuning()


# ── values of a feature ──


def listed_values(region: Region, j: int, most: int) -> Array | None:
    """Return all allowed codes of feature `j`, sorted, or None if there are more than `most`."""
    choices = region.choices[j]
    return choices if choices is not None and len(choices) <= most else None


def frequent_levels(region: Region, j: int, most: int) -> Array:
    """Return allowed levels of an unordered feature: at most `most`, the most frequent ones.

    Levels are counted in the data; the query's own level is always among them.
    """
    choices = region.choices[j]
    assert choices is not None  # levels are always listed
    if len(choices) <= most:
        return choices
    number = (region.data[:, [j]] == choices).sum(axis=0)
    number[choices == region.query[j]] = len(region.data) + 1
    return np.asarray(choices[np.sort(np.argsort(-number, kind="stable")[:most])])


def spread_values(region: Region, j: int, shares: Array) -> Array:
    """Return codes of feature `j` at the given shares, in [0, 1), of its allowed values."""
    low = region.low[j]
    choices = region.choices[j]
    if region.step[j] == 0:
        return np.asarray(low + shares * (region.high[j] - low))
    if choices is not None:
        return np.asarray(choices[(shares * len(choices)).astype(int)])
    n_steps = np.floor((region.high[j] - low) / region.step[j] + 1e-9)
    return np.asarray(low + region.step[j] * np.minimum(np.floor(shares * (n_steps + 1)), n_steps))


def data_values(region: Region, j: int, least: int) -> Array:
    """Return the codes of feature `j` that occur in the data, sorted, with both limits.

    Where the data have fewer than `least`, evenly spaced codes are added.
    """
    low = region.low[j]
    high = region.high[j]
    pool = region.data[:: max(1, len(region.data) // TUNING.data_rows), j]
    if len(pool) < least:
        pool = np.append(pool, np.linspace(low, high, least))
    inside = pool[(pool > low) & (pool < high)]
    return np.unique(region.axes[j].snap(np.concatenate([inside, [low, high]])))


def step_values(region: Region, block: list[int], reach: float) -> Array:
    """Return codes ``(k, block)`` one step of `reach` scales away from the query, either way.

    The side on which most data lie comes first; a step is never shorter than the grid's.
    """
    query = region.query[block]
    first = block[0]
    if reach == 0.0:
        return np.empty((0, len(block)))
    unit = np.maximum(reach * region.scale, region.step)[block]
    sides = np.array([[1.0], [-1.0]])
    if region.cyclic[first]:
        return np.asarray((query + sides * unit) % region.period[block])
    data = region.data[:, first]
    upwards = np.mean(data > query[0]) >= np.mean(data < query[0]) if len(data) else True
    if not upwards:
        sides = -sides
    steps = np.clip(query + sides * unit, region.low[block], region.high[block])
    return np.asarray(steps[(steps != query).all(axis=1)])


def block_values(region: Region, block: list[int], most: int, reach: float) -> Array:
    """Return codes ``(k, block)`` that a block may take instead of the query's, nearest first.

    All levels of an unordered feature and all values of one with at most `most`, but at most
    ``most - 1`` of them; of other features a step of `reach` scales either way.
    """
    j = block[0]
    listed = region.choices[j] if region.categorical[j] else listed_values(region, j, most)
    if len(block) > 1 or listed is None:
        return step_values(region, block, reach)
    values = listed[listed != region.query[j]]
    count = (region.data[:, [j]] == values).sum(axis=0)
    rows = np.repeat(region.query[None], len(values), axis=0)
    rows[:, j] = values
    order = np.lexsort((-count, region.units(rows)[:, j]))[: most - 1]
    return np.asarray(values[order, None])


def line_values(region: Region, count: int) -> dict[int, Array]:
    """Return by feature on a line its values, sorted: all if at most `count`, else the data's."""
    found = {}
    for j in np.flatnonzero(region.sliding).tolist():
        listed = listed_values(region, j, count)
        found[j] = data_values(region, j, 2 * count) if listed is None else listed
    return found


# ── single moves ──


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

    def merge(self, other: Moves) -> Moves:
        """Return these and other moves of the same rays, in order, those whose gain is known."""
        parts: list[Any] = [np.concatenate(two) for two in zip(self[1:], other[1:], strict=True)]
        both = Moves(self.base, *parts)
        order = np.lexsort((both.place, both.ray))
        return both.take(order[np.isfinite(both.gain[order])])

    def previous(self) -> tuple[Mask, Array, Array]:
        """Return the row before each move on its ray.

        Returns
        -------
        has_previous : mask of shape (m,)
            Whether the ray has a move before; otherwise the base is the row before.
        rows : array of shape (m, d)
        gains : array of shape (m,)
        """
        has_previous = np.concatenate([[-1], self.ray[:-1]]) == self.ray
        rows_before = np.vstack([self.base, self.X[:-1]])
        gains_before = np.concatenate([[0.0], self.gain[:-1]])
        rows = np.where(has_previous[:, None], rows_before, self.base)
        return has_previous, rows, np.where(has_previous, gains_before, 0.0)

    @property
    def has_steps(self) -> bool:
        """Whether a move gains exactly as much as the one before on a ray that has some effect."""
        has_previous, _, gain = self.previous()
        has_effect = np.zeros(self.ray.max(initial=-1) + 1, dtype=np.bool_)  # by ray
        has_effect[self.ray[self.gain != 0.0]] = True
        return bool((has_previous & has_effect[self.ray] & (self.gain == gain)).any())

    def distinct_gains(self) -> Moves:
        """Return the moves that gain something else than those before, and each ray's last."""
        has_previous, _, gain = self.previous()
        is_last = np.append(~has_previous[1:], True)
        return self.take(~has_previous | is_last | (self.gain != gain))


def single_moves(
    region: Region, base: Array, count: int, values: dict[int, Array], below: float = np.inf
) -> Moves:
    """Return allowed moves of every block from a base ``(d,)`` to about `count` of its `values`.

    If only rows that cost less than `below` are useful: moves that may be part of one, together
    with another move.
    """
    rays = _rays(region, base, count, values, below)
    sizes = np.array([len(codes) for _, _, codes in rays], dtype=np.intp)
    X = np.repeat(base[None], sizes.sum(), axis=0)
    ends = np.cumsum(sizes)
    for (_, features, codes), end in zip(rays, ends.tolist(), strict=True):
        X[end - len(codes) : end, features] = codes
    rank = np.arange(len(X)) - np.repeat(ends - sizes, sizes) + 1.0
    block = np.repeat(np.array([b for b, _, _ in rays], dtype=np.intp), sizes)
    ray = np.repeat(np.arange(len(sizes)), sizes)
    place = rank / np.repeat(sizes, sizes)
    moves = Moves(base, X, block, ray, place, np.full(len(X), np.nan))
    if region.rules:
        X, allowed = repair(region, X)
        is_moved = allowed & region.changes(X, base).any(axis=1)
        moves = moves._replace(X=X).take(is_moved)
    if np.isfinite(below):
        cost = region.cost(np.vstack([base, moves.X]))
        moves = moves.take(cost[1:] < below + cost[0] - cost.min())
    return moves


def _rays(
    region: Region, base: Array, count: int, values: dict[int, Array], below: float
) -> list[tuple[int, list[int], Array]]:
    """Return the rays from a base: block, features, and their codes ``(k, features)``."""
    sides = _circle_sides(region, base, count) | _line_sides(region, base, count, values, below)
    found: list[tuple[int, list[int], Array]] = []
    for b, features in enumerate(region.moving):
        if len(features) > 1 and (base[features] == region.query[features]).all():
            joint = _joint_rays([sides[j] for j in features])
            found += [(b, features, codes) for codes in joint]
            continue
        for j in features:
            rays = sides[j] if j in sides else _level_rays(region, base, j, 2 * count)
            found += [(b, [j], codes[:, None]) for codes in rays if len(codes)]
        if len(features) > 1:  # back as a whole
            found.append((b, features, region.query[None, features]))
    return found


def _circle_sides(region: Region, base: Array, count: int) -> dict[int, tuple[Array, Array]]:
    """Return by cyclic feature the codes on either way around from the base, nearest first."""
    found = {}
    for j in np.flatnonzero(region.cyclic & ~np.isnan(base)).tolist():
        choices = region.choices[j]
        assert choices is not None  # circles are always listed
        turn = np.mod(choices - base[j], region.period[j])
        codes = choices[np.argsort(turn, kind="stable")]
        half = int(np.count_nonzero(turn <= region.period[j] / 2))
        up = codes[1:half]
        down = codes[half:][::-1]
        found[j] = up[_thinned(len(up), count)], down[_thinned(len(down), count)]
    return found


def _line_sides(
    region: Region, base: Array, count: int, values: dict[int, Array], below: float
) -> dict[int, tuple[Array, Array]]:
    """Return by feature on a line the codes above and below the base, nearest first.

    About `count` of its values that a row may have which costs less than `below`. If the base is
    not the query, also codes near the base and on the way back.
    """
    query = region.query
    reach = _reach(region, base, below)
    starts = np.stack([query - reach, query]).T
    ends = np.stack([query, query + reach]).T
    near = np.multiply.outer(TUNING.near, region.scale)
    way = np.multiply.outer(TUNING.back, query - base)
    beside = np.vstack([region.on_grid(base + np.vstack([near, way])), query]).T.tolist()
    found = {}
    for j, codes in values.items():
        low, under = codes.searchsorted(starts[j]).tolist()
        over, high = codes.searchsorted(ends[j], side="right").tolist()
        up = codes[over:high]
        down = codes[low:under][::-1]
        has_many = high - low > count
        if has_many:
            up = up[_thinned(len(up), count // 2)]
            down = down[_thinned(len(down), count // 2)]
        if base is not query:
            stops = {*up.tolist(), *down.tolist(), *codes[under:over].tolist()}
            if has_many:
                stops.update(beside[j])
            ordered = np.array(sorted(stops))
            first = ordered.searchsorted(base[j])
            last = ordered.searchsorted(base[j], side="right")
            up = ordered[last:]
            down = ordered[:first][::-1]
        found[j] = up, down
    return found


def _reach(region: Region, base: Array, below: float) -> Array:
    """Return how far ``(d,)`` each code may be from the query's in a row that costs `below`."""
    units = region.units(base[None])[0]
    below = max(below - region.price.per_change, 0.0)  # the price of the change itself
    room = np.full(len(units), below if region.price.norm else np.inf)
    if region.price.norm == 1:  # the longest change may be taken back for it
        room = np.maximum(below - units.sum() + units.max() + units, 0.0)
    has_cost = region.weight > 0.0
    unlimited = np.full(len(room), np.inf)
    found = np.divide(room * region.scale, region.weight, out=unlimited, where=has_cost)
    return np.asarray(found)


def _joint_rays(sides: list[tuple[Array, Array]]) -> list[Array]:
    """Return rays ``(k, features)`` of features that move together: all up, and all down."""
    found = []
    for side in zip(*sides, strict=True):
        sizes = [len(codes) for codes in side]
        longest = max(sizes)
        if min(sizes) == 0:
            continue
        at = np.arange(1, longest + 1)
        picked = [codes[np.ceil(at * len(codes) / longest).astype(int) - 1] for codes in side]
        found.append(np.stack(picked, axis=1))
    return found


def _level_rays(region: Region, base: Array, j: int, most: int) -> list[Array]:
    """Return the frequent levels of feature `j` other than the base's, each as its own ray."""
    levels = frequent_levels(region, j, most)
    return [np.array([code]) for code in levels if code != base[j]]


@lru_cache(maxsize=1024)
def _thinned(n: int, count: int) -> Indices:
    """Return at most `count` places of a list of `n`: many close by, few farther out."""
    if n <= count:
        return np.arange(n)
    at = np.ceil(n * (np.arange(1, count + 1) / count) ** 2).astype(np.intp)
    return np.unique(at) - 1


def finer_moves(
    region: Region, moves: Moves, values: dict[int, Array], below: float, most: int
) -> Moves:
    """Return at most `most` moves between neighbours on a ray whose gains differ.

    Only features on a line are refined, first where gain and cost differ most.
    """
    on_line = [at[0] if len(at) == 1 and at[0] in values else -1 for at in region.moving]
    feature = np.array(on_line)[moves.block]  # (m,)
    has_previous, start, gain_before = moves.previous()
    cost = region.cost(np.vstack([start, moves.X])).reshape(2, -1)
    worth = np.abs(moves.gain - gain_before) * np.abs(cost[1] - cost[0])
    worth[(feature < 0) | (cost[0] >= below)] = 0.0
    order = np.argsort(-worth, kind="stable")[: most // len(TUNING.between)]
    order = order[worth[order] > 0.0]
    picked = [order[:0]]
    codes = [np.empty(0)]
    for j in np.unique(feature[order]).tolist():
        own = order[feature[order] == j]
        k, code = _values_between(values[j], start[own, j], moves.X[own, j])
        picked.append(own[k])
        codes.append(code)
    at = np.concatenate(picked)
    code = np.concatenate(codes)
    found = moves.take(at)
    each = np.arange(len(at))
    j = feature[at]
    share = (code - start[at, j]) / (found.X[each, j] - start[at, j])
    found.X[each, j] = code
    place_before = np.concatenate([[0.0], moves.place[:-1]])
    inner_place = np.where(has_previous, place_before, 0.0)[at]
    place = inner_place + share * (found.place - inner_place)
    return found._replace(place=place, gain=np.full(len(at), np.nan))


def _values_between(pool: Array, starts: Array, ends: Array) -> tuple[Indices, Array]:
    """Return a few of the sorted values in `pool` strictly between two codes, evenly spread.

    For each start and end ``(m,)``; the position of the two among all, and the value.
    """
    low = np.searchsorted(pool, np.minimum(starts, ends), side="right")
    size = np.searchsorted(pool, np.maximum(starts, ends)) - low
    at = low[:, None] + (np.multiply.outer(size, TUNING.between)).astype(np.intp)
    is_new = np.diff(at, axis=1, prepend=-1) > 0  # of few values some would come twice
    is_new &= size[:, None] > 0
    k, _ = np.nonzero(is_new)
    return k, pool[at[is_new]]


def crossings(
    region: Region,
    moves: Moves,
    value: float,
    accepted: Iterable[tuple[float, float]],
    most: int,
) -> Array:
    """Return rows between neighbours on a ray whose outputs lie on either side of a target.

    `value` is the base's output. The cheapest come first, at most `most`.
    """
    _, start, gain_before = moves.previous()
    before = value + gain_before
    after = value + moves.gain
    rows = [moves.X[:0]]
    for low, high in accepted:
        is_across = (np.minimum(before, after) < low) & (np.maximum(before, after) > high)
        at = np.flatnonzero(is_across)
        # Where a smooth model would hit the middle of the target, and half way on either side.
        share = (0.5 * (low + high) - before[at]) / (after[at] - before[at])
        for part in (share, 0.5 * share, 0.5 + 0.5 * share):
            rows.append(between(region, moves.X[at], start[at], part[:, None], moves.X[at]))
    X = region.on_grid(np.vstack(rows))
    return np.asarray(X[np.argsort(region.cost(X), kind="stable")[:most]])


def cumulative_moves(region: Region, x: Array, X: Array) -> Array:
    """Return a row ``(d,)`` with the first change of others ``(n, d)``, the first two, and so on.

    One change per block: the first of the rows that differ from the row in this block alone.
    """
    differs = region.changes(X, x)
    blocks = differs @ region.members.T > 0.0  # (n, blocks)
    is_single = np.flatnonzero(blocks.sum(axis=1) == 1)
    rows = []
    for k in is_single[firsts(blocks[is_single])]:
        x = np.where(differs[k], X[k], x)
        rows.append(x)
    return region.complete(np.array(rows).reshape(-1, len(x)))


# ── changes taken back, shortened, exchanged ──


def take_back(region: Region, X: Array) -> Array:
    """Return rows ``(n, d)`` with each change taken back alone, where that is allowed.

    Features that move together are taken back together, too.
    """
    changed = region.changes(X)
    at, j = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, None])
    rows = X[at]
    rows[np.arange(len(at)), j] = region.query[j]
    parts = [rows]
    for block in region.moving:
        if len(block) > 1:
            is_part = changed[:, block].any(axis=1) & (np.delete(changed, block, 1).any(axis=1))
            back = X[is_part]
            back[:, block] = region.query[block]
            parts.append(back)
    rows = region.complete(np.vstack(parts))
    return np.asarray(rows[region.contains(rows)])


def n_to_settle(region: Region, X: Array) -> Indices:
    """Return how many rows it may take to show that rows ``(n, d)`` need all their changes."""
    k = region.changes(X).sum(axis=1)
    return np.asarray(np.minimum(k * (k + 1) // 2 - 1, 2 * k))


def shorten(region: Region, x: Array, features: list[int], shares: Array) -> Array:
    """Return the row ``(d,)`` with only shares ``(k,)`` of its changes of some features."""
    rows = np.repeat(x[None], len(shares), axis=0)
    query = region.query[features]
    rows[:, features] = query + shares[:, None] * (x[features] - query)
    return rows


def exchange(region: Region, X: Array) -> Array:
    """Return rows ``(n, d)`` with one change dropped and another longer or shorter, if cheaper."""
    changed = region.changes(X)
    units = np.where(changed, region.units(X), 0.0)
    rank = np.argsort(np.argsort(-units, axis=1), axis=1)
    changed &= rank < TUNING.exchanged
    pairs = changed[:, :, None] & (changed & region.sliding)[:, None, :]
    found = np.stack(np.nonzero(pairs & ~np.eye(X.shape[1], dtype=bool)))
    lengths = np.array(TUNING.lengths)
    at, dropped, j = found.repeat(len(lengths), axis=1)
    rows = X[at]
    each = np.arange(len(at))
    rows[each, dropped] = region.query[dropped]
    length = np.resize(lengths, len(at))
    rows[each, j] = region.query[j] + length * (rows[each, j] - region.query[j])
    rows, allowed = repair(region, rows)
    is_cheaper = region.cost(rows) < TUNING.worthwhile * region.cost(X)[at]
    return np.asarray(rows[allowed & is_cheaper])
