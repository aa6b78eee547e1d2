"""Moves two at a time, or several: what they are expected to do, and which are worth a row.

The guess for two moves is the sum of what each does alone. Its deviation grows with how far both
moves go: that is the variance of a Brownian sheet over places on two rays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from bayescfx.arrays import Array, Indices, Mask, firsts
from bayescfx.potentials import Intervals
from bayescfx.search.objectives import Record
from bayescfx.space.neighbourhood import Moves, crossings
from bayescfx.space.region import Region
from bayescfx.space.repair import between


@dataclass(frozen=True)
class PairsTuning:
    """Numbers of the pairs.

    Beside each is what half and double of it change, in per cent of cost / of rows
    (`python -m benchmarks.tuning`, 140 questions, 2026-11-18). What *none* of them changes was
    measured before other rules of the sweep were removed.
    """

    # Variance of interactions, as a share of that of the gains; half 0 / -0.1, double -0.2 / -0.1.
    interaction: float = 1.0 / 9.0
    rounding: float = 1e-9  # no guess is surer than this share of the output (numerical)
    # Share of the cost to beat at which two rays are screened; 0 / +0.1, 0 / +0.3. The median cost
    # of all pairs instead costs +0.5.
    typical_cost: float = 0.7
    # At most so many pairs are compared with several answers (memory); +0.2 / -0.3, 0 / +0.4.
    compared: int = 4096
    # Slope at which a logistic curve resembles the normal one; half +1.5 / -0.8, double -0.2 / 0.
    logistic: float = 1.7
    prices: int = 24  # values of a unit of output that are tried; +0.1 / +0.7, -0.1 / -0.4
    several: int = 12  # rows of several moves; -0.1 / 0, -0.1 / 0; none +0.8 / -0.6
    # Rows between two moves on either side of the target; half and double 0 / 0, none -0.1 / +1.9.
    crossings: int = 24
    beyond: float = 0.02  # of the wanted change, where the target has no middle; 0 / -0.3, 0 / -0.2


TUNING = PairsTuning()


class Pairs:
    """Pairs of scored moves from one base: their rows, costs and expected outputs.

    Parameters
    ----------
    region : Region
    moves : Moves
        Moves ``(m,)`` whose gains are known.
    accepted : Intervals
        The outputs that reach the target, on the surrogate's scale.
    origin, value : float
        Outputs of the query and of the base, on the surrogate's scale.
    limit : float, optional
        Pairs that cost as much or more are left out.

    Attributes
    ----------
    i, j : arrays of shape (p,)
        The two moves of each pair.
    cost : array of shape (p,)
        The cost of its row.
    mean, std : arrays of shape (p,)
        Mean and deviation of its expected output.
    is_open : mask of shape (p,)
        Whether it was not tried yet.
    """

    def __init__(
        self,
        region: Region,
        moves: Moves,
        accepted: Intervals,
        origin: float,
        value: float,
        limit: float = np.inf,
    ) -> None:
        self.region = region
        self.moves = moves
        self.accepted = accepted
        self.origin = origin
        self.value = value
        self._touched = region.changes(moves.X, moves.base)  # (m, d)
        rows = np.vstack([moves.base, moves.X])
        powers = _powers(region, rows)
        n_changes = region.changes(rows).sum(axis=1)
        # (m,) what each move adds to the powers and to the number of changes of the base
        self._powers = powers[1:] - powers[0]
        self._n_more = n_changes[1:] - n_changes[0]
        self._room = np.inf if region.max_changes is None else region.max_changes - n_changes[0]
        i, j = np.nonzero(np.triu(~self._clashes()))
        # The cost of a pair is that of the base and what each of its moves adds.
        distance = np.maximum(powers[0] + self._powers[i] + self._powers[j], 0.0)
        if region.price.norm > 1:
            distance **= 1.0 / region.price.norm
        n_moved = n_changes[0] + self._n_more[i] + self._n_more[j]
        cost = distance + region.price.per_change * n_moved
        is_cheap = cost < limit
        self.i = i[is_cheap]
        self.j = j[is_cheap]
        self.cost = cost[is_cheap]
        self.is_open = np.ones(len(self.i), dtype=bool)
        self._least = TUNING.rounding * (1.0 + abs(value))
        #: The typical error of the sum of two moves that both go far.
        self.deviation = self._least
        if len(moves.gain):
            self.deviation += float(np.std(moves.gain)) * np.sqrt(TUNING.interaction)
        self.mean = value + moves.gain[self.i] + moves.gain[self.j]
        self.std = self.deviation * np.sqrt(moves.place[self.i] * moves.place[self.j])

    def _clashes(self) -> Mask:
        """Return which two moves ``(m, m)`` can't be made together."""
        touched = self._touched.astype(np.float32)
        clashes = np.asarray(touched @ touched.T > 0.0)
        if np.isfinite(self._room):
            clashes |= np.add.outer(self._n_more, self._n_more) > self._room
        return clashes

    def rows(self, pairs: Indices) -> Array:
        """Return the rows ``(k, d)`` of some pairs."""
        first = self.i[pairs]
        second = self.j[pairs]
        return np.asarray(
            np.where(self._touched[second], self.moves.X[second], self.moves.X[first])
        )

    def screen(self, k: int, record: Record | None) -> Array:
        """Return at most `k` rows of pairs, one of each two rays, at costs that matter."""
        pairs, worth, bar = self._promising(record)
        if not len(pairs):
            return self.moves.X[:0]
        cost = self.cost[pairs]
        # Well on the way to the cost to beat, where the first hits are expected.
        typical = np.median(cost) if bar is None else TUNING.typical_cost * np.mean(bar)
        away = np.abs(cost - typical)
        ray = self.moves.ray
        n_rays = ray.max(initial=0) + 1
        lane = ray[self.i[pairs]] * n_rays + ray[self.j[pairs]]
        least = np.full(n_rays**2, np.inf)
        np.minimum.at(least, lane, away)
        first = np.flatnonzero(away == least[lane])
        first = first[firsts(lane[first][:, None])]
        return self._take(pairs[first], worth[first], k)

    def choose(self, k: int, record: Record | None) -> Array:
        """Return at most `k` rows of pairs, those with the largest expected saving."""
        pairs, worth, _ = self._promising(record)
        return self._take(pairs, worth, k)

    def _take(self, pairs: Indices, worth: Array, k: int) -> Array:
        """Return the rows of the `k` pairs with the largest worth, which are then closed."""
        loss = -worth
        some = np.arange(len(loss))
        if 0 < k < len(loss):  # only pairs that may be taken are sorted
            some = np.flatnonzero(~(loss > np.partition(loss, k - 1)[k - 1]))
        top = pairs[some[np.argsort(loss[some], kind="stable")[:k]]]
        self.is_open[top] = False
        return self.rows(top)

    def _promising(self, record: Record | None) -> tuple[Indices, Array, Array | float | None]:
        """Return the open pairs that are cheap enough, their worth, and the costs to beat."""
        if record is None:
            pairs = np.flatnonzero(self.is_open)
            worth = self._worth(self.mean[pairs], self.std[pairs], self.cost[pairs], None)
            return pairs, worth, None
        pairs = np.flatnonzero(self.is_open & (self.cost < record.most))
        worth = self._worth(self.mean[pairs], self.std[pairs], self.cost[pairs], record.most)
        if record.n == 1:
            return pairs, worth, record.most
        # Rows take memory: of many pairs only the most promising are compared with the answers.
        pairs = pairs[np.argsort(-worth, kind="stable")[: TUNING.compared]]
        bar = record.beat(self.rows(pairs))
        is_cheap = self.cost[pairs] < bar
        pairs = pairs[is_cheap]
        bar = bar[is_cheap]
        return pairs, self._worth(self.mean[pairs], self.std[pairs], self.cost[pairs], bar), bar

    def _worth(self, mean: Array, std: Array, cost: Array, bar: Array | float | None) -> Array:
        """Return the expected saving of rows: the probability of a hit times what it saves."""
        probability = chance(self.accepted, mean, std + self._least)
        if bar is None:
            return np.asarray(probability / np.maximum(cost, TUNING.rounding))
        return np.asarray(probability * np.maximum(bar - cost, 0.0))

    def several(self, record: Record | None) -> Array:
        """Return rows with many moves at once, and rows where outputs cross the target."""
        region = self.region
        bar = None if record is None else float(record.cost[record.leaders[-1]])
        found = [crossings(region, self.moves, self.value, self.accepted, TUNING.crossings)]
        for low, high in self.accepted:
            aim = 0.5 * (low + high)
            if not np.isfinite(aim):  # no middle: a little beyond the target's end
                end = high if self.origin > high else low
                aim = end + TUNING.beyond * (end - self.origin)
            rows, mean = self.combinations(aim)
            cost = region.cost(region.complete(rows))
            worth = self._worth(mean, np.full(len(rows), self.deviation), cost, bar)
            found.append(rows[np.argsort(-worth, kind="stable")[: TUNING.several]])
        X = np.vstack(found)
        return np.asarray(X[firsts(X)])

    def combinations(self, aim: float) -> tuple[Array, Array]:
        """Return rows of many moves at once that come to `aim` if effects add up, and the guesses.

        The value of a unit of output towards `aim` grows from row to row, and each block makes the
        move with the largest value less its cost. Where guesses cross `aim` the steps get finer.
        """
        gain = np.sign(aim - self.origin) * self.moves.gain
        price = self._powers + self.region.price.per_change * self._n_more
        pays = gain * price > 0.0
        if not pays.any():
            return self.moves.X[:0], gain[:0]
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
        starts = np.flatnonzero(np.diff(moves.block, prepend=-1))
        sizes = np.diff(starts, append=len(price))
        at = starts[:, None] + np.minimum(np.arange(sizes.max()), sizes[:, None] - 1)
        net = np.multiply.outer(worth, gain[at]) - price[at]  # (n, blocks, moves of a block)
        choice = net.argmax(axis=2)
        best = np.take_along_axis(at, choice.T, axis=1).T  # (n, blocks)
        value = np.take_along_axis(net, choice[:, :, None], axis=2)[:, :, 0]
        is_made = value > 0.0
        if np.isfinite(self._room):
            rank = np.argsort(np.argsort(-value, axis=1, kind="stable"), axis=1)
            is_made &= (rank < self._room) | (self._n_more[best] < 0)
        rows = np.repeat(moves.base[None], len(worth), axis=0)
        for k in np.flatnonzero(is_made.any(axis=0)).tolist():
            move = best[:, k]
            rows = np.where(self._touched[move] & is_made[:, [k]], moves.X[move], rows)
        return rows, self.value + (moves.gain[best] * is_made).sum(axis=1)


def _powers(region: Region, X: Array) -> Array:
    """Return the distance ``(n,)`` of codes ``(n, d)`` to the power of the norm: a sum of moves."""
    norm = region.price.norm
    if norm == 0:
        powers = region.changes(X) * region.weight
    else:  # a cap, or the power overflows
        powers = np.minimum(region.units(X), 1e280 ** (1.0 / norm)) ** norm
    return np.asarray(powers.sum(axis=1))


def _crossed(mean: Array, aim: float) -> Indices:
    """Return the positions after which a sequence crosses `aim`."""
    return np.flatnonzero((mean[:-1] < aim) != (mean[1:] < aim))


def chance(accepted: Intervals, mean: Array, std: Array) -> Array:
    """Return the approximate probability that outputs are accepted, by a logistic curve.

    Its heavy tails keep far outputs apart, which a normal distribution would round to 0.
    """
    found = np.zeros(len(mean))
    for low, high in accepted:
        with np.errstate(invalid="ignore"):
            a = (low - mean) / std
            b = (high - mean) / std
        a[np.isnan(a)] = 0.0  # nothing is expected of outputs that overflow
        b[np.isnan(b)] = 0.0
        # On the side where the curve is small, differences do not cancel.
        is_above = a > 0.0
        left = np.where(is_above, -b, a)
        right = np.where(is_above, -a, b)
        found += expit(TUNING.logistic * right) - expit(TUNING.logistic * left)
    return found
