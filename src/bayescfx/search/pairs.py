"""Moves two at a time, or several: what they are expected to do, and which are worth a row.

The guess for two moves is the sum of what each does alone, plus an interaction that is learnt from
its own errors: a Gaussian process on each pair of blocks whose kernel is the Brownian sheet
``min(s, s') min(t, t')`` over places on two rays. It is exactly zero where either move is none, it
suits functions with steps, and it comes with a deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from bayescfx.arrays import Array, Indices, Mask, firsts
from bayescfx.potentials import Intervals
from bayescfx.search.objectives import Record
from bayescfx.search.sweep_state import SweepState
from bayescfx.space.effort import PREMIUM, clear_changes, effort
from bayescfx.space.neighbourhood import Moves, crossings
from bayescfx.space.region import Region
from bayescfx.space.repair import between


@dataclass(frozen=True)
class PairsTuning:
    """Numbers of the pairs; evidence as for `SweepTuning`."""

    # Pairs of moves.
    first_scale: float = 1.0 / 9.0  # variance of interactions, as a share of that of the gains
    noise: float = 0.01  # variance of an interaction that the kernel does not explain
    least_variance: float = 1e-4
    least_prior: float = 1e-3
    rounding: float = 1e-9  # no guess is surer than this share of the output
    errors: int = 24  # at most so many known interactions per pair of blocks
    chunk: int = 4096  # pairs per matrix operation
    typical_cost: float = 0.7  # share of the cost to beat at which two rays are screened
    shortlist: int = 6  # candidates per pair that is chosen
    allowed_shortlist: int = 4  # the same before rules are checked
    logistic: float = 1.7  # slope at which a logistic curve resembles the normal one

    # Several moves at once.
    prices: int = 24  # values of a unit of output that are tried
    several: int = 12  # rows of several moves
    crossings: int = 48  # rows between two moves on either side of the target, before a hit ...
    later_crossings: int = 12  # ... and after one
    beyond: float = 0.02  # of the wanted change, where the target has no middle


TUNING = PairsTuning()


class EffortParts(NamedTuple):
    """The effort of rows as sums over features, so that moves can be added up."""

    powers: Array  # (n,) of the distance
    premiums: Array  # (n,) of changed features

    @classmethod
    def of(cls, region: Region, X: Array) -> EffortParts:
        """Return the prices of rows ``(n, d)``."""
        norm = region.cost.norm
        if norm == 0:
            powers = region.changes(X) * region.weight
        else:  # a cap, or the power overflows
            powers = np.minimum(region.units(X), 1e280 ** (1.0 / norm)) ** norm
        premium = PREMIUM if region.cost.weight != 0.0 else 0.0
        return cls(powers.sum(axis=1), premium * (clear_changes(region, X) @ region.weight))

    def effort(self, region: Region) -> Array:
        """Return the effort ``(n,)``."""
        root = 1.0 / max(region.cost.norm, 1.0)
        distance = np.maximum(self.powers, 0.0) ** root
        return np.asarray(distance + self.premiums * np.minimum(distance, 1.0))


class Pairs:
    """Pairs of scored moves from one base: their rows, costs and expected outputs.

    Parameters
    ----------
    region : Region
    moves : Moves
        Moves ``(m,)`` whose gains are known.
    origin, value : float
        Outputs of the query and of the base, on the surrogate's scale.
    limit : float, optional
        Pairs that cost as much or more are left out.

    Attributes
    ----------
    i, j : arrays of shape (p,)
        The two moves of each pair.
    cost : array of shape (p,)
        The effort of its row.
    is_open : mask of shape (p,)
        Whether it was not tried yet.
    lane, blocks : arrays of shape (p,)
        Which two rays, and which two blocks, it combines.
    price : EffortParts
        What each move adds to the effort of the base, ``(m,)`` each.
    """

    def __init__(
        self, region: Region, moves: Moves, origin: float, value: float, limit: float = np.inf
    ) -> None:
        self.region = region
        self.moves = moves
        self.gain = moves.gain
        self.origin = origin
        self.value = value
        self._touched = region.changes(moves.X, moves.base)  # (m, d)
        prices = EffortParts.of(region, np.vstack([moves.base, moves.X]))
        self._base_price = EffortParts(prices.powers[:1], prices.premiums[:1])
        self.price = EffortParts(
            prices.powers[1:] - prices.powers[0], prices.premiums[1:] - prices.premiums[0]
        )
        self.i, self.j = np.nonzero(np.triu(~self._clashes()))
        self.cost = self._costs()
        if np.isfinite(limit):
            is_cheap = np.flatnonzero(self.cost < limit)
            self.i = self.i[is_cheap]
            self.j = self.j[is_cheap]
            self.cost = self.cost[is_cheap]
        n = len(self.i)
        n_rays = moves.ray.max(initial=0) + 1
        self.is_open = np.ones(n, dtype=bool)
        self.lane = moves.ray[self.i] * n_rays + moves.ray[self.j]
        self.blocks = moves.block[self.i] * len(region.moving) + moves.block[self.j]
        # (p,) variance of the interaction, relative to that at the end of both rays
        self._prior = moves.place[self.i] * moves.place[self.j]
        self._interaction = np.zeros(n)  # (p,) its mean
        self._variance = self._prior.copy()
        self._error = np.full(n, np.nan)  # (p,) of the sum, where it is known
        self._least = TUNING.rounding * (1.0 + abs(value))
        self._scale = float(np.var(self.gain)) * TUNING.first_scale if len(self.gain) else 0.0

    def _clashes(self) -> Mask:
        """Return which two moves ``(m, m)`` can't be made together."""
        region = self.region
        touched = self._touched.astype(np.float32)
        clashes = np.asarray(touched @ touched.T > 0.0)
        if region.max_changes is not None:
            n_changes = region.changes(np.vstack([self.moves.base, self.moves.X])).sum(axis=1)
            more = n_changes[1:] - n_changes[0]
            clashes |= np.add.outer(more, more) > region.max_changes - n_changes[0]
        return clashes

    def _costs(self) -> Array:
        """Return the effort ``(p,)`` of the pairs."""
        powers = self.price.powers[self.i] + self.price.powers[self.j]
        premiums = self.price.premiums[self.i] + self.price.premiums[self.j]
        base = self._base_price
        return EffortParts(base.powers + powers, base.premiums + premiums).effort(self.region)

    def rows(self, pairs: Indices) -> Array:
        """Return the rows ``(k, d)`` of some pairs."""
        first = self.i[pairs]
        second = self.j[pairs]
        return np.where(self._touched[second], self.moves.X[second], self.moves.X[first])

    def guess(self, pairs: Indices) -> tuple[Array, Array]:
        """Return mean and deviation ``(k,)`` of the expected outputs of some pairs."""
        mean = self.value + self.gain[self.i[pairs]] + self.gain[self.j[pairs]]
        variance = self._scale * np.maximum(self._variance[pairs], TUNING.least_variance)
        return mean + self._interaction[pairs], np.sqrt(variance) + self._least

    @property
    def n_base_changes(self) -> int:
        """The number of features of the base that differ from the query."""
        return int(self.region.changes(self.moves.base[None]).sum())

    @property
    def deviation(self) -> float:
        """The typical error of the sum of two moves that both go far."""
        return float(np.sqrt(self._scale)) + self._least

    def learn(self, pairs: Indices, outputs: Array, limit: float) -> None:
        """Learn from outputs ``(k,)`` what to expect of pairs that cost less than `limit`."""
        is_known = np.isfinite(outputs)
        pairs = pairs[is_known]
        expected = self.gain[self.i[pairs]]
        self._error[pairs] = outputs[is_known] - self.value - expected
        self._error[pairs] -= self.gain[self.j[pairs]]
        seen = np.flatnonzero(np.isfinite(self._error))
        if not len(seen):
            return
        prior = np.maximum(self._prior[seen], TUNING.least_prior)
        self._scale = float(np.mean(self._error[seen] ** 2 / prior))
        self._learn_interactions(seen, limit)

    def _learn_interactions(self, seen: Indices, limit: float) -> None:
        """Condition the process of each pair of blocks on the errors of the `seen` pairs."""
        blocks, at, is_there = self._by_blocks(seen)
        a = self.i[at]
        b = self.j[at]
        both_there = is_there[:, :, None] & is_there[:, None, :]
        K = self._kernel(a, a) * self._kernel(b, b) * both_there
        K += np.where(is_there, TUNING.noise, 1.0)[:, :, None] * np.eye(at.shape[1])
        inverse = np.linalg.inv(K)
        weights = np.einsum("bmn,bn->bm", inverse, np.where(is_there, self._error[at], 0.0))
        slot = np.full(len(self.region.moving) ** 2, -1)
        slot[blocks] = np.arange(len(blocks))
        is_useful = self.is_open & (self.cost < limit) & (slot[self.blocks] >= 0)
        useful = np.flatnonzero(is_useful)
        for start in range(0, len(useful), TUNING.chunk):  # each pair needs its own matrix
            part = useful[start : start + TUNING.chunk]
            own = slot[self.blocks[part]]
            across = self._kernel(self.i[part][:, None], a[own])[:, 0]
            across *= self._kernel(self.j[part][:, None], b[own])[:, 0]
            across *= is_there[own]
            self._interaction[part] = (across * weights[own]).sum(axis=1)
            drop = (np.einsum("um,umn->un", across, inverse[own]) * across).sum(axis=1)
            self._variance[part] = np.maximum(self._prior[part] - drop, 0.0)

    def _by_blocks(self, seen: Indices) -> tuple[Indices, Indices, Mask]:
        """Return seen pairs by pair of blocks, the last few of each.

        Returns
        -------
        blocks : array of shape (b,)
        at : array of shape (b, most)
            Pairs; short lists are filled up.
        is_there : mask of shape (b, most)
            Which of them are not filled up.
        """
        seen = seen[np.argsort(self.blocks[seen], kind="stable")]
        blocks, starts, sizes = np.unique(self.blocks[seen], return_index=True, return_counts=True)
        most = min(int(sizes.max()), TUNING.errors)
        at = starts[:, None] + np.maximum(sizes[:, None] - most, 0) + np.arange(most)
        is_there = np.arange(most) < sizes[:, None]
        return blocks, seen[np.where(is_there, at, 0)], is_there

    def _kernel(self, first: Indices, second: Indices) -> Array:
        """Return ``min(s, s')`` of moves on the same ray, else 0, over the last axes."""
        ray = self.moves.ray
        place = self.moves.place
        near = np.minimum(place[first][..., None], place[second][..., None, :])
        return np.where(ray[first][..., None] == ray[second][..., None, :], near, 0.0)

    def combinations(self, aim: float) -> tuple[Array, Array]:
        """Return rows of many moves at once that come to `aim` if effects add up, and the guesses.

        The value of a unit of output towards `aim` grows from row to row, and each block makes the
        move with the largest value less its cost. Where guesses cross `aim` the steps get finer.
        """
        gain = np.sign(aim - self.origin) * self.gain
        price = self.price.powers + self.price.premiums
        pays = gain * price > 0.0
        if not pays.any():
            return self.moves.X[:0], self.gain[:0]
        shares = np.linspace(0.0, 1.0, TUNING.prices)
        worth = np.quantile(price[pays] / gain[pays], shares)
        rows, mean = self._buy(worth, gain, price)
        crossed = _crossed(mean, aim)
        if not len(crossed):
            return rows, mean
        k = crossed[0]
        fine_worth = np.linspace(worth[k], worth[k + 1], TUNING.prices)
        fine, fine_mean = self._buy(fine_worth, gain, price)
        i = _crossed(fine_mean, aim)
        j = i + 1
        share = (aim - fine_mean[i]) / (fine_mean[j] - fine_mean[i])
        part = between(self.region, fine[j], fine[i], share[:, None], fine[j])
        rows = np.vstack([self.region.on_grid(part), fine, rows])
        mean = np.concatenate([np.full(len(part), aim), fine_mean, mean])
        return rows, mean

    def _buy(self, worth: Array, gain: Array, price: Array) -> tuple[Array, Array]:
        """Return the rows ``(n, d)`` that pay if a unit of gain is `worth` ``(n,)``; guesses."""
        moves = self.moves
        region = self.region
        starts = np.flatnonzero(np.diff(moves.block, prepend=-1))
        sizes = np.diff(starts, append=len(price))
        at = starts[:, None] + np.minimum(np.arange(sizes.max()), sizes[:, None] - 1)
        net = np.multiply.outer(worth, gain[at]) - price[at]  # (n, blocks, moves of a block)
        choice = net.argmax(axis=2)
        best = np.take_along_axis(at, choice.T, axis=1).T  # (n, blocks)
        value = np.take_along_axis(net, choice[:, :, None], axis=2)[:, :, 0]
        is_made = value > 0.0
        if region.max_changes is not None:
            rank = np.argsort(np.argsort(-value, axis=1, kind="stable"), axis=1)
            room = region.max_changes - self.n_base_changes
            is_made &= (rank < room) | (self.price.premiums[best] < 0.0)
        rows = np.repeat(moves.base[None], len(worth), axis=0)
        for k, move in enumerate(best.T):
            rows = np.where(self._touched[move] & is_made[:, [k]], moves.X[move], rows)
        return rows, self.value + (self.gain[best] * is_made).sum(axis=1)


def _crossed(mean: Array, aim: float) -> Indices:
    """Return the positions after which a sequence crosses `aim`."""
    return np.flatnonzero((mean[:-1] < aim) != (mean[1:] < aim))


def chance(accepted: Intervals, mean: Array, std: Array) -> Array:
    """Return the approximate probability that outputs are accepted, by a logistic curve.

    Its heavy tails keep far outputs apart, which a normal distribution would round to 0.
    """
    found = np.zeros(len(mean))
    for low, high in accepted:
        with np.errstate(invalid="ignore"):  # nothing is expected of outputs that overflow
            ends = (low - mean) / std, (high - mean) / std
        a, b = np.nan_to_num(ends, posinf=np.inf, neginf=-np.inf)
        # On the side where the curve is small, differences do not cancel.
        is_above = a > 0.0
        left = np.where(is_above, -b, a)
        right = np.where(is_above, -a, b)
        found += expit(TUNING.logistic * right) - expit(TUNING.logistic * left)
    return found


def choose_to_learn(state: SweepState, pairs: Pairs, k: int, record: Record | None) -> Indices:
    """Return at most `k` pairs, one of each two rays, at costs that matter."""
    some, worth, bar = _promising(state, pairs, record)
    if not len(some):
        return some
    cost = pairs.cost[some]
    lane = pairs.lane[some]
    # Well on the way to the cost to beat, where interactions matter.
    typical = np.median(cost) if bar is None else TUNING.typical_cost * np.mean(bar)
    away = np.abs(cost - typical)
    least = np.full(lane.max() + 1, np.inf)
    np.minimum.at(least, lane, away)
    first = np.flatnonzero(away == least[lane])
    first = first[np.unique(lane[first], return_index=True)[1]]
    top = some[first[np.argsort(-worth[first], kind="stable")[:k]]]
    pairs.is_open[top] = False
    return top


def choose_to_hit(state: SweepState, pairs: Pairs, k: int, record: Record | None) -> Indices:
    """Return at most `k` pairs, those with the largest expected saving.

    Under rules a longer list is checked first; pairs that break one are not tried again.
    """
    some, worth, _ = _promising(state, pairs, record)
    if not len(some):
        return some
    most = TUNING.shortlist * k
    if len(worth) > most:
        kept = np.argpartition(-worth, most)[:most]
        some = some[kept]
        worth = worth[kept]
    top = some[_spread_order(pairs.lane[some], worth)]
    if state.region.rules:
        top = top[: TUNING.allowed_shortlist * k]
        pairs.is_open[top] = False
        top = top[state.region.contains(state.region.complete(pairs.rows(top)))]
    top = top[:k]
    pairs.is_open[top] = False
    return top


def _promising(
    state: SweepState, pairs: Pairs, record: Record | None
) -> tuple[Indices, Array, Array | float | None]:
    """Return the open pairs that are cheap enough, their worth, and the costs to beat of all."""
    bar = _bars(state, pairs, record)
    is_cheap = pairs.is_open if bar is None else pairs.is_open & (pairs.cost < bar)
    some = np.flatnonzero(is_cheap)
    own_bar = bar[some] if isinstance(bar, np.ndarray) else bar
    worth = _worth(state, *pairs.guess(some), pairs.cost[some], own_bar)
    return some, worth, bar


def _spread_order(lane: Indices, worth: Array) -> Indices:
    """Return an order by worth in which pairs of the same two rays count less and less.

    Neighbours show the same thing, so the k-th of two rays counts by the square root of k less.
    """
    order = np.lexsort((-worth, lane))
    starts = np.flatnonzero(np.diff(lane[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    return np.asarray(order[np.argsort(-worth[order] / np.sqrt(1.0 + rank), kind="stable")])


def _bars(state: SweepState, pairs: Pairs, record: Record | None) -> Array | float | None:
    """Return the cost that each pair has to beat; one number for all if one answer is wanted."""
    if record is None:
        return None
    if state.question.n == 1:
        return float(record.cost[record.leaders[0]])
    # Rows take memory: of many pairs only the most promising are compared with the answers.
    some = np.flatnonzero(pairs.is_open & (pairs.cost < record.most))
    worth = _worth(state, *pairs.guess(some), pairs.cost[some], record.most)
    some = some[np.argsort(-worth, kind="stable")[: TUNING.chunk]]
    bar = np.zeros(len(pairs.cost))
    bar[some] = record.beat(pairs.rows(some))
    return bar


def _worth(
    state: SweepState, mean: Array, std: Array, cost: Array, bar: Array | float | None
) -> Array:
    """Return the expected saving of rows: the probability of a hit times what it saves."""
    probability = chance(state.question.surrogate_acceptance, mean, std)
    if bar is None:
        return np.asarray(probability / np.maximum(cost, TUNING.rounding))
    return np.asarray(probability * np.maximum(bar - cost, 0.0))


def several(state: SweepState, pairs: Pairs, record: Record | None) -> Array:
    """Return rows with many moves at once, and rows where outputs cross the target."""
    region = state.region
    accepted = state.question.surrogate_acceptance
    bar = None
    most = TUNING.crossings
    if record is not None:
        bar = float(record.cost[record.leaders[-1]])
        most = TUNING.later_crossings
    found = [crossings(region, pairs.moves, pairs.value, accepted, most)]
    for low, high in accepted:
        aim = 0.5 * (low + high)
        if not np.isfinite(aim):  # no middle: a little beyond the target's end
            end = high if state.origin > high else low
            aim = end + TUNING.beyond * (end - state.origin)
        rows, mean = pairs.combinations(aim)
        cost = effort(region, region.complete(rows))
        worth = _worth(state, mean, np.full(len(rows), pairs.deviation), cost, bar)
        found.append(rows[np.argsort(-worth, kind="stable")[: TUNING.several]])
    X = np.vstack(found)
    return np.asarray(X[firsts(X)])
