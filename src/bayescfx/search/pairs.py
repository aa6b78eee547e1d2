"""Moves two at a time, or several: what they are expected to do, and which are worth a row.

The guess for two moves is the sum of what each does alone, plus an interaction that is learnt from
its own errors: a Gaussian process on each pair of blocks whose kernel is the Brownian sheet
``min(s, s') min(t, t')`` over places on two rays. It is exactly zero where either move is none, it
is at home with steps, and it says how sure it is.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from bayescfx.arrays import Array, Indices, firsts
from bayescfx.potentials import Intervals
from bayescfx.search.objectives import Record
from bayescfx.search.single import Moves, crossings
from bayescfx.search.sweep_state import Swept
from bayescfx.space.effort import PREMIUM, clear_changes, effort
from bayescfx.space.region import Region
from bayescfx.space.repair import between


class Pairs:
    """Moves whose outputs are known, two at a time: what they cost, and what they may do."""

    def __init__(
        self, region: Region, moves: Moves, origin: float, value: float, below: float = np.inf
    ) -> None:
        self.region, self.moves, self.gain = region, moves, moves.gain
        self.origin, self.value = origin, value  # outputs of query and base, surrogate's scale
        base, X, gain = moves.base, moves.X, moves.gain
        self._touched = region.changes(X, base)  # (m, d)
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
        for begin in range(0, len(useful), 4096):  # each needs a matrix of its own
            some, own = useful[begin : begin + 4096], which[begin : begin + 4096]
            across = kernel(self.i[some][:, None], a[own])[:, 0]
            across *= kernel(self.j[some][:, None], b[own])[:, 0]
            across *= there[own]
            self._excess[some] = (across * weights[own]).sum(axis=1)
            drop = (np.einsum("um,umn->un", across, inverse[own]) * across).sum(axis=1)
            self._variance[some] = np.maximum(self._prior[some] - drop, 0.0)

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
    if norm == 0:
        powers = region.changes(X) * region.weight
    else:  # what costs so much that its power overflows is as dear as can be
        powers = np.minimum(region.units(X), 1e280 ** (1.0 / norm)) ** norm
    premium = PREMIUM if region.cost.weight != 0.0 else 0.0
    return powers.sum(axis=1), premium * (clear_changes(region, X) @ region.weight)


def chance(accepted: Intervals, mean: Array, std: Array) -> Array:
    """Return roughly how likely outputs are accepted; tails are so heavy that few are zero."""
    found = np.zeros(len(mean))
    for low, high in accepted:
        with np.errstate(invalid="ignore"):  # of outputs that overflow nothing is expected
            ends = (low - mean) / std, (high - mean) / std
        a, b = np.nan_to_num(ends, posinf=np.inf, neginf=-np.inf)
        a, b = np.where(a > 0.0, -b, a), np.where(a > 0.0, -a, b)
        found += expit(1.7 * b) - expit(1.7 * a)
    return found


def choose(swept: Swept, pairs: Pairs, k: int, record: Record | None, *, screen: bool) -> Indices:
    """Return at most `k` pairs worth a look: the most promising, or of each two rays one."""
    bar = _bar(swept, pairs, record)
    some = np.flatnonzero(pairs.open if bar is None else pairs.open & (pairs.cost < bar))
    if not len(some):
        return some
    least = bar if bar is None or isinstance(bar, float) else bar[some]
    worth = _worth(swept, *pairs.guess(some), pairs.cost[some], least)
    lane, cost = pairs.lane[some], pairs.cost[some]
    if screen:
        # One of each two rays, well on the way to the costs that matter.
        typical = float(np.median(cost)) if bar is None else 0.7 * float(np.mean(bar))
        away = np.abs(cost - typical)
        gap = np.full(lane.max() + 1, np.inf)
        np.minimum.at(gap, lane, away)
        first = np.flatnonzero(away == gap[lane])
        first = first[np.unique(lane[first], return_index=True)[1]]
        top = some[first[np.argsort(-worth[first], kind="stable")[:k]]]
    else:
        if len(worth) > 6 * k:
            kept = np.argpartition(-worth, 6 * k)[: 6 * k]
            some, worth, lane = some[kept], worth[kept], lane[kept]
        # Neighbours tell the same: the k-th of two rays counts by the square root less.
        order = np.lexsort((-worth, lane))
        starts = np.flatnonzero(np.diff(lane[order], prepend=-1))
        sizes = np.diff(starts, append=len(order))
        rank = np.arange(len(order)) - np.repeat(starts, sizes)
        top = some[order[np.argsort(-worth[order] / np.sqrt(1.0 + rank), kind="stable")]]
        if not swept.region.rules:
            top = top[:k]
        else:
            top = top[: 4 * k]
            pairs.open[top] = False
            top = top[swept.region.contains(swept.region.complete(pairs.rows(top)))][:k]
    pairs.open[top] = False
    return top


def _bar(swept: Swept, pairs: Pairs, record: Record | None) -> Array | float | None:
    """Return the cost that each pair has to beat, one for all if one answer is wanted."""
    if record is None:
        return None
    if swept.question.n == 1:
        return float(record.cost[record.leaders[0]])
    # Of many pairs, which have many rows, the most promising are looked at.
    some = np.flatnonzero(pairs.open & (pairs.cost < record.most))
    worth = _worth(swept, *pairs.guess(some), pairs.cost[some], record.most)
    some = some[np.argsort(-worth, kind="stable")[:4096]]
    bar = np.zeros(len(pairs.cost))
    bar[some] = record.beat(pairs.rows(some))
    return bar


def _worth(swept: Swept, mean: Array, std: Array, cost: Array, bar: Array | float | None) -> Array:
    """Return what rows are worth: how likely they hit, times what they save if they do."""
    likely = chance(swept.question.surrogate_acceptance, mean, std)
    if bar is None:
        return np.asarray(likely / np.maximum(cost, 1e-9))
    return np.asarray(likely * np.maximum(bar - cost, 0.0))


def several(swept: Swept, pairs: Pairs, record: Record | None) -> Array:
    """Return rows with many moves at once, and others where outputs cross the target."""
    accepted = swept.question.surrogate_acceptance
    bar = None if record is None else float(record.cost[record.leaders[-1]])
    most = 48 if record is None else 12
    found = [crossings(swept.region, pairs.moves, pairs.value, accepted, most)]
    for low, high in accepted:
        # The middle; where there is none, a little more than is asked for.
        end = high if swept.origin > high else low
        aim = 0.5 * (low + high)
        if not np.isfinite(aim):
            aim = end + 0.02 * (end - swept.origin)
        rows, mean = pairs.combinations(aim)
        cost = effort(swept.region, swept.region.complete(rows))
        worth = _worth(swept, mean, np.full(len(rows), pairs.deviation), cost, bar)
        found.append(rows[np.argsort(-worth, kind="stable")[:12]])
    X = np.vstack(found)
    return X[firsts(X)]
