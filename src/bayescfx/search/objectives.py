"""Objectives that a search maximises over a region: functions composed with the surrogate.

*Hit first* (:class:`PotentialImprovement`): log EI-CFX, with the cost of moving as a threshold
that depends on x. *Then nearer* (:class:`CostImprovement`): the expected cost improvement inside
the target set. :class:`SurrogateFunction` is any other function of the surrogate's mean and
deviation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bayescfx.acquisition import LogEI, log_probability_in
from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials import Intervals, LevelPotential
from bayescfx.search.finish import different, further
from bayescfx.space.region import Region
from bayescfx.surrogate.coordinates import Coordinates
from bayescfx.surrogate.fit import Surrogate


@dataclass(frozen=True)
class ObjectiveTuning:
    """Tuned numbers of the objectives.

    Lengths are Euclidean in the surrogate's coordinates, where each feature spans [0, 1].
    Evidence: the questions of `python -m benchmarks.tuning` (2026-11-18). Without terraces, hits of
    192 answers are 4.7 ± 1.7 % fewer. Without boxes, 120 answers of 100 rows cost 0.9 ± 0.6 % more.
    For failed hits see `BayesTuning.n_prior_errors`.
    """

    #: Rows with the same output mark a terrace if they are closer than this.
    max_tie: float = 0.1
    #: The radius around scored rows, in units of the widest terrace, and its limits.
    terrace_radius: float = 2.0
    min_terrace_radius: float = 0.03
    max_terrace_radius: float = 0.1
    #: After this number of scored rows the radii have halved.
    terrace_half_life: float = 200.0
    #: The loss of log probability inside a box in which the model is constant and misses.
    flat_loss: float = 20.0
    #: The loss of log probability at a hit that was expected with certainty and failed ...
    failed_hit_loss: float = 2.0
    #: ... and the length over which it fades.
    failed_hit_length: float = 0.05
    #: The share of the distance beside the cost where the first hit is sought near the query. With
    #: 16 targets near and far, 8 seeds and 50 rows, answers cost 1.51 times those of a sweep; 1.57
    #: with 0; with 1 it is 1.52, but fewer different answers are found (2026-11-19).
    distance_share: float = 0.5
    #: How many deviations a row must be sure of to count as near the target.
    nearness_deviations: float = 2.0
    #: Width of the finite difference by the threshold, relative to the peak (numerical).
    threshold_difference: float = 1e-6


TUNING = ObjectiveTuning()


@dataclass(frozen=True, eq=False)
class PotentialImprovement:
    """Log EI-CFX of ``v(x) = rho(f(x)) / peak - weight * cost(x)`` over the best `v` so far.

    The cost is known and never modelled: improvement of `v` is improvement of the potential over
    the threshold ``rho*(x) = peak * (best + weight * cost(x))``. Weight 0 is the paper.
    """

    surrogate: Surrogate
    region: Region
    potential: LevelPotential  # on the surrogate's scale
    best: float  # the best `v` so far
    weight: float  # what a unit of cost is worth, as a share of the peak
    terraces: Terraces | None = None  # places where nothing is proposed
    centre: Array | None = None  # a row (d,) from which proposals may differ ...
    max_changes: int = 0  # ... in this number of features

    @cached_property
    def _shared(self) -> LogEI:
        """The acquisition where one threshold serves all points."""
        return LogEI(self.potential, self.potential.peak * self.best)

    def _log_ei(self, X: Array, rise: float = 0.0) -> LogEI:
        """Return the acquisition at codes ``(n, d)``, with the threshold raised by a share."""
        if self.weight == 0.0:
            return self._shared
        best = self.best + rise + self.weight * self.region.cost(X)
        return LogEI(self.potential, self.potential.peak * best)

    def value(self, X: Array) -> Array:
        """Return log EI-CFX ``(n,)`` at codes ``(n, d)``; minus infinity where barred."""
        value = np.full(len(X), -np.inf)
        Z = self.surrogate.coordinates(X)
        open_rows = np.flatnonzero(~self._barred(X, Z))
        if len(open_rows):
            mean, std = self.surrogate.posterior.predict(Z[open_rows])
            value[open_rows] = self._log_ei(X[open_rows]).value_and_gradient(mean, std).value
        return value

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return log EI-CFX ``(n,)`` and its derivative by each code ``(n, d)``."""
        Z = self.surrogate.coordinates(X)
        mean, std, mean_x, std_x = self.surrogate.predict_gradient(X, Z)
        value, d_mean, d_std = self._log_ei(X).value_and_gradient(mean, std)
        slope = d_mean[:, None] * mean_x + d_std[:, None] * std_x
        if self.weight > 0.0:
            width = TUNING.threshold_difference
            raised = self._log_ei(X, width).value_and_gradient(mean, std).value
            finite = np.isfinite(raised) & np.isfinite(value)
            rise = np.where(finite, raised, 0.0) - np.where(finite, value, 0.0)
            slope += (rise / width * self.weight)[:, None] * self.region.distance_gradient(X)
        if self.centre is not None:  # features that equal the centre's stay
            slope = np.where(self.centre == X, 0.0, slope)
        return np.where(self._barred(X, Z), -np.inf, value), slope

    def _barred(self, X: Array, Z: Array) -> Mask:
        """Return the mask ``(n,)`` of codes ``(n, d)`` at coordinates `Z` that are not proposed."""
        barred = np.zeros(len(X), dtype=bool)
        if self.centre is not None:
            barred = self.region.changes(X, self.centre).sum(axis=1) > self.max_changes
        if self.terraces is not None and not barred.all():
            barred[~barred] = self.terraces.near(X[~barred], Z[~barred])
        return barred


class Terraces:
    """Places where the model is known to be flat, so that another row is wasted.

    Trees are constant on terraces; no surrogate can resolve that. Two rows with exactly the same
    output mark a terrace as wide as they are apart, around every scored row. The radius shrinks as
    rows are added, so that no place is excluded for ever. Codes of `discrete` features ``(d,)``
    must be equal.
    """

    def __init__(self, coordinates: Coordinates, X: Array, y: Array, discrete: Mask) -> None:
        self.coordinates = coordinates
        self.discrete = discrete
        self.radius = 0.0
        self.codes = X
        self._places = coordinates(X)
        widest = _widest_tie(y, coordinates.distances(self._places, self._places))
        if widest > 0.0:
            fading = 1.0 + len(X) / TUNING.terrace_half_life
            radius = max(TUNING.terrace_radius * widest, TUNING.min_terrace_radius)
            self.radius = min(radius, TUNING.max_terrace_radius) / fading

    def near(self, X: Array, Z: Array | None = None) -> Mask:
        """Return which codes ``(n, d)``, at coordinates `Z`, are too close to one of the places."""
        if self.radius == 0.0:
            return np.zeros(len(X), dtype=bool)
        Z = self.coordinates(X) if Z is None else Z
        close = self.coordinates.distances(Z, self._places) < self.radius
        for k in np.flatnonzero(self.discrete):
            close &= X[:, k, None] == self.codes[:, k]
        return np.asarray(close.any(axis=1))


def _widest_tie(y: Array, distance: Array) -> float:
    """Return the largest of the distances ``(n, n)`` between close rows with equal outputs."""
    ties = distance[(y[:, None] == y) & (distance < TUNING.max_tie)]
    return float(ties.max(initial=0.0))


class FlatBoxes:
    """Boxes in which the model is known to be constant and to miss the target.

    Trees are constant in boxes: rows with exactly the same output lie in one, and so does
    everything between them, unless a scored row shows otherwise. Levels of categorical features
    have no order, so a box has one level of each.
    """

    def __init__(self, region: Region, X: Array, y: Array, missed: Mask) -> None:
        self._free = region.free
        codes = X[:, self._free]
        order, starts = _rows_alike(y, codes[:, region.categorical[self._free]], missed)
        self._low = np.minimum.reduceat(codes[order], starts)
        self._high = np.maximum.reduceat(codes[order], starts)
        # A box that holds any other row is not constant.
        is_constant = self._inside(X).sum(axis=0) == np.diff(starts, append=len(order))
        self._low = self._low[is_constant]
        self._high = self._high[is_constant]

    def _inside(self, X: Array) -> Mask:
        """Return which codes ``(n, d)`` lie in which of the boxes ``(n, b)``."""
        codes = X[:, None, self._free]
        return np.asarray(((codes >= self._low) & (codes <= self._high)).all(axis=2))

    def hold(self, X: Array) -> Mask:
        """Return which codes ``(n, d)`` lie in one of the boxes."""
        return np.asarray(self._inside(X).any(axis=1))


def _rows_alike(y: Array, levels: Array, chosen: Mask) -> tuple[Indices, Indices]:
    """Return the positions of chosen rows with equal outputs and equal levels, group by group.

    Also where each group, of at least two rows, starts among them.
    """
    rows = np.flatnonzero(chosen)
    keys = np.column_stack([y, levels])[rows]
    order = np.lexsort(keys.T)
    is_first = np.ones(len(rows), dtype=np.bool_)
    is_first[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    group = np.cumsum(is_first) - 1
    kept = np.bincount(group)[group] > 1
    return rows[order[kept]], np.flatnonzero(is_first[kept])


class FailedHits(NamedTuple):
    """Rows that were expected to hit and did not: around them the surrogate is trusted less.

    Where the model jumps over the target set, a surrogate predicts a way through it every time.
    """

    coordinates: Coordinates
    places: Array  # (m, width), as coordinates
    probability: Array  # (m,) of a hit, as expected

    def loss(self, Z: Array) -> Array:
        """Return the loss of log probability ``(n,)`` at coordinates ``(n, width)``."""
        gap = self.coordinates.distances(Z, self.places) / TUNING.failed_hit_length
        return np.asarray(TUNING.failed_hit_loss * np.exp(-0.5 * gap**2) @ self.probability)


@dataclass(frozen=True, eq=False)
class CostImprovement:
    """Expected cost improvement in the target set, ``log (c*(x) - cost(x)) + log P(f(x) in T)``.

    Without a record to beat, the probability of a hit per cost and distance d,
    ``log P(f(x) in T) - s log d(x) - (1 - s) log cost(x)``: near the query the cost alone is about
    the price of the changes, however near a row is.
    """

    surrogate: Surrogate
    region: Region
    acceptance: Intervals  # the target set on the surrogate's scale
    record: Record | None  # the costs to beat
    flat_boxes: FlatBoxes | None = None  # where a hit is most unlikely
    widening: float = 1.0  # the factor by which the surrogate's deviations are too small
    failed_hits: FailedHits | None = None  # hits that were expected and failed
    margin: float = 0.0  # the share of a cost that is too small a saving for a model call

    def value(self, X: Array) -> Array:
        """Return the objective ``(n,)`` at codes ``(n, d)``."""
        nearer, Z, worth, _ = self._worth(X)
        value = np.full(len(X), -np.inf)
        if len(nearer):
            mean, std = self.surrogate.posterior.predict(Z)
            inside = log_probability_in(mean, self.widening * std, self.acceptance)
            value[nearer] = worth + inside.value
        return value

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the objective ``(n,)`` and its derivative by each code ``(n, d)``."""
        nearer, Z, worth, rate = self._worth(X)
        value = np.full(len(X), -np.inf)
        slope = np.zeros(X.shape)
        if len(nearer):
            X = X[nearer]
            mean, std, mean_x, std_x = self.surrogate.predict_gradient(X, Z)
            std = self.widening * std
            inside, d_mean, d_std = log_probability_in(mean, std, self.acceptance)
            value[nearer] = worth + inside
            inner = d_mean[:, None] * mean_x + (self.widening * d_std)[:, None] * std_x
            slope[nearer] = inner - self.region.distance_gradient(X) * rate[:, None]
        return value, slope

    def _worth(self, X: Array) -> tuple[Indices, Array, Array, Array]:
        """Return the nearer codes, their coordinates, the log worth of a hit, and its slope."""
        cost = self.region.cost(X)
        saving = self.region.distance(X)
        if self.record is not None:
            saving = (1.0 - self.margin) * self.record.beat(X) - cost
        nearer = np.flatnonzero(saving > 0.0)
        X = X[nearer]
        saving = saving[nearer]
        worth = np.log(saving)
        rate = 1.0 / saving
        Z = self.surrogate.coordinates(X)
        if self.record is None:
            share = TUNING.distance_share
            worth = -share * worth - (1.0 - share) * np.log(cost[nearer])
            rate = share * rate + (1.0 - share) / cost[nearer]
        if self.flat_boxes is not None:
            worth -= TUNING.flat_loss * self.flat_boxes.hold(X)
        if self.failed_hits is not None:
            worth -= self.failed_hits.loss(Z)
        return nearer, Z, worth, rate


class Record:
    """The costs that a new answer has to beat, from rows `X` ``(m, d)`` that reach the target.

    For one answer the lowest cost. For `n` different answers the cost of the answer that changes
    the same features or moves nothing clearly further, or else that of the n-th best.
    """

    def __init__(self, region: Region, X: Array, n: int = 1) -> None:
        self.region = region
        self.X = X
        self.n = n
        self.cost = region.cost(X)
        #: Positions in X of the nearest rows that change different features.
        self.leaders = self._different_leaders()
        self.answers = X[self.leaders]  # (k, d)
        #: The cost that a row has to beat which is unlike all answers.
        self.most = float(self.cost[self.leaders[-1]])
        if len(self.leaders) < n:  # any row beats it: while answers are missing, a new one counts
            farthest = np.where(
                region.high - region.query >= region.query - region.low, region.high, region.low
            )
            self.most = 2.0 * float(region.cost(farthest[None])[0] + self.cost.max()) + 1.0

    def _different_leaders(self) -> Indices:
        """Return the positions of up to n rows, nearest first, that are different answers."""
        changed = self.region.clear_changes(self.X)
        order = np.lexsort((changed.sum(axis=1), self.cost))
        chosen: list[int] = []
        while len(order):
            leader = int(order[0])
            chosen.append(leader)
            if len(chosen) == self.n:
                break
            order = order[(changed[order] != changed[leader]).any(axis=1)]
            order = order[different(self.region, self.X[order], self.X[[leader]])[:, 0]]
        return np.array(chosen, dtype=np.intp)

    def beat(self, X: Array) -> Array:
        """Return the cost ``(k,)`` that each of the codes ``(k, d)`` has to beat."""
        bar = np.full(len(X), self.most)
        if self.n == 1:
            return bar
        # A row that changes what a leader changes, or a little less, is no answer of its own.
        changed = self.region.clear_changes(X)
        leading = self.region.clear_changes(self.answers)
        same = (changed[:, None, :] == leading).all(axis=2)
        same |= ~further(self.region, self.answers, X).T
        held = np.where(same, self.cost[self.leaders], np.inf)
        return np.asarray(np.minimum(bar, held.min(axis=1)))


@dataclass(frozen=True, eq=False)
class SurrogateFunction:
    """Any function of the surrogate's mean and deviation, given with its slopes by them."""

    surrogate: Surrogate
    f: Callable[[Array, Array], tuple[Array, Array, Array]]

    def value(self, X: Array) -> Array:
        """Return the function ``(n,)`` at codes ``(n, d)``."""
        return self.f(*self.surrogate.predict(X))[0]

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the function ``(n,)`` and its derivative by each code ``(n, d)``."""
        mean, std, mean_x, std_x = self.surrogate.predict_gradient(X)
        value, d_mean, d_std = self.f(mean, std)
        return value, d_mean[:, None] * mean_x + d_std[:, None] * std_x


def confidence_bound(surrogate: Surrogate, side: int, deviations: float) -> SurrogateFunction:
    """Return the surrogate's upper (`side` 1) or negated lower (-1) confidence bound."""

    def bound(mean: Array, std: Array) -> tuple[Array, Array, Array]:
        one = np.ones(len(mean))
        return side * mean + deviations * std, side * one, deviations * one

    return SurrogateFunction(surrogate, bound)


def nearness(surrogate: Surrogate, accepted: Intervals) -> SurrogateFunction:
    """Return minus the mean's distance from accepted values, less some deviations: surely near."""
    deviations = TUNING.nearness_deviations

    def near(mean: Array, std: Array) -> tuple[Array, Array, Array]:
        gaps = np.array([np.clip(mean, low, high) - mean for low, high in accepted])
        nearest = np.abs(gaps).argmin(axis=0)[None]
        gap = np.take_along_axis(gaps, nearest, axis=0)[0]
        value = -np.abs(gap) - deviations * std
        return value, np.sign(gap), np.full(len(mean), -deviations)

    return SurrogateFunction(surrogate, near)
