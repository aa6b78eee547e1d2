"""What the search maximises over a region: functions composed with the surrogate.

*Hit first* (:class:`Gain`): log EI-CFX, the cost of moving as a threshold that depends on x.
*Then nearer* (:class:`Nearer`): the expected cost improvement inside the target set.
:class:`SurrogateFunction` is any other function of the surrogate's mean and deviation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bayescfx.acquisition import LogEI, log_probability_in
from bayescfx.arrays import Array, Indices, Mask, row_keys
from bayescfx.potentials import Intervals, LevelPotential
from bayescfx.search.selection import different, further
from bayescfx.space.effort import clear_changes, effort, effort_rise
from bayescfx.space.region import Region
from bayescfx.surrogate.coordinates import Coordinates
from bayescfx.surrogate.fit import Surrogate


@dataclass(frozen=True, eq=False)
class Gain:
    """Log EI-CFX of ``v(x) = rho(f(x)) / peak - weight * cost(x)`` over the best `v` so far.

    The cost is known and never modelled: improvement of `v` is improvement of the potential over
    the threshold ``rho*(x) = peak * (best + weight * cost(x))``. Weight 0 is the paper.
    """

    surrogate: Surrogate
    region: Region
    potential: LevelPotential  # on the surrogate's scale
    best: float  # the best `v` so far
    weight: float  # what a unit of distance is worth, as a share of the peak
    terraces: Terraces | None = None  # where nothing is proposed
    centre: Array | None = None  # a row (d,) from which others may differ ...
    few: int = 0  # ... in so many features

    @cached_property
    def _shared(self) -> LogEI:
        """The acquisition where one threshold serves all points."""
        return LogEI(self.potential, self.potential.peak * self.best)

    def _log_ei(self, X: Array, nudge: float = 0.0) -> LogEI:
        if self.weight == 0.0:
            return self._shared
        best = self.best + nudge + self.weight * self.region.distance(X)
        return LogEI(self.potential, self.potential.peak * best)

    def value(self, X: Array) -> Array:
        """Return log EI-CFX ``(n,)`` at codes ``(n, d)``; minus infinity where barred."""
        out, Z = np.full(len(X), -np.inf), self.surrogate.coordinates(X)
        if len(open_ := np.flatnonzero(~self._barred(X, Z))):
            mean, std = self.surrogate.process.predict(Z[open_])
            out[open_] = self._log_ei(X[open_]).value_and_gradient(mean, std).value
        return out

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return log EI-CFX ``(n,)`` and its derivative by each code ``(n, d)``."""
        Z = self.surrogate.coordinates(X)
        mean, std, mean_x, std_x = self.surrogate.predict_gradient(X, Z)
        value, d_mean, d_std = self._log_ei(X).value_and_gradient(mean, std)
        slope = d_mean[:, None] * mean_x + d_std[:, None] * std_x
        if self.weight > 0.0:
            nudge = 1e-6  # finite difference of the threshold, relative to the peak
            nudged = self._log_ei(X, nudge).value_and_gradient(mean, std).value
            finite = np.isfinite(nudged) & np.isfinite(value)
            rise = np.where(finite, nudged, 0.0) - np.where(finite, value, 0.0)
            slope += (rise / nudge * self.weight)[:, None] * self.region.distance_gradient(X)
        if self.centre is not None:  # what is as in the centre stays
            slope = np.where(self.centre == X, 0.0, slope)
        return np.where(self._barred(X, Z), -np.inf, value), slope

    def _barred(self, X: Array, Z: Array) -> Mask:
        """Return where nothing is proposed, of codes ``(n, d)`` and their coordinates."""
        barred = np.zeros(len(X), dtype=bool)
        if self.centre is not None:
            barred = self.region.changes(X, self.centre).sum(axis=1) > self.few
        if self.terraces is not None and len(self.terraces.codes) and not barred.all():
            barred[~barred] = self.terraces.near(X[~barred], Z[~barred])
        return barred


class Terraces:
    """Places where the model is known to be flat or to jump, so that another look is wasted.

    Trees are constant on terraces and jump between them; no surrogate can resolve that. Two
    evaluated rows on either side of the target set, so close that a continuous model would have hit
    it in between, mark a jump across it. Two with exactly the same output mark a terrace as wide as
    they are apart, around every evaluated row. Both are believed the less the more rows there are,
    so that no place is excluded for ever. Codes of `discrete` features ``(d,)`` must be equal.
    """

    def __init__(
        self, coordinates: Coordinates, X: Array, y: Array, accepted: Intervals, discrete: Mask
    ) -> None:
        self.coordinates, self.discrete = coordinates, discrete
        fading = 1.0 + len(X) / 200.0
        distance = coordinates.distances(coordinates(X), coordinates(X))
        low, high = np.transpose(accepted)
        # The closest pair that a continuous model can separate, in the unit cube.
        cliff = min(0.004 * coordinates.width, 0.04) / fading
        across = (y < low.min())[:, None] & (y > high.max())
        i, j = np.nonzero(across & (distance < cliff))
        self.codes, self.radii = 0.5 * (X[i] + X[j]), np.full(len(i), 2.0 * cliff)
        ties = distance[(y[:, None] == y) & (distance < 0.1)]
        if (widest := float(ties.max(initial=0.0))) > 0.0:
            width = min(max(2.0 * widest, 0.03), 0.1) / fading
            self.codes = np.vstack([self.codes, X])
            self.radii = np.append(self.radii, np.full(len(X), width))
        self._places = coordinates(self.codes)

    def near(self, X: Array, Z: Array | None = None) -> Mask:
        """Return which codes ``(n, d)``, at coordinates `Z`, are too close to one of the places."""
        if not len(self.codes):
            return np.zeros(len(X), dtype=bool)
        Z = self.coordinates(X) if Z is None else Z
        close = self.coordinates.distances(Z, self._places) < self.radii
        for k in np.flatnonzero(self.discrete):
            close &= X[:, k, None] == self.codes[:, k]
        return np.asarray(close.any(axis=1))


class Flats:
    """Boxes in which the model is known to be flat and to miss the target.

    Trees are constant in boxes: rows with exactly the same output lie in one, and so does whatever
    lies between them, unless a known row says otherwise. No level is between two others.
    """

    def __init__(self, region: Region, X: Array, y: Array, missed: Mask) -> None:
        self._free = region.free
        codes, at = X[:, self._free], np.flatnonzero(missed)
        keys = np.column_stack([y, codes[:, region.categorical[self._free]]])[at]
        alike: dict[bytes, list[int]] = {}
        for key, row in zip(row_keys(keys), at.tolist(), strict=True):
            alike.setdefault(key, []).append(row)
        boxes, sizes = list[tuple[Array, Array]](), list[int]()
        for rows in alike.values():
            if len(rows) > 1:
                boxes.append((codes[rows].min(axis=0), codes[rows].max(axis=0)))
                sizes.append(len(rows))
        self._boxes = np.array(boxes).reshape(-1, 2, codes.shape[1])
        self._boxes = self._boxes[self._inside(X).sum(axis=0) == sizes]

    def _inside(self, X: Array) -> Mask:
        """Return which codes ``(n, d)`` lie in which of the boxes ``(n, b)``."""
        codes, (low, high) = X[:, None, self._free], self._boxes.transpose(1, 0, 2)
        return np.asarray(((codes >= low) & (codes <= high)).all(axis=2))

    def hold(self, X: Array) -> Mask:
        """Return which codes ``(n, d)`` lie in one of the boxes."""
        return np.asarray(self._inside(X).any(axis=1))


class Letdowns(NamedTuple):
    """Rows that were expected to hit, and did not: around them the surrogate is believed less.

    Where the model jumps over the target set, a surrogate sees a way through it, again and again.
    """

    coordinates: Coordinates
    places: Array  # (m, width), as coordinates
    chance: Array  # (m,) of a hit, as expected

    def near(self, Z: Array) -> Array:
        """Return what the log chance of a hit loses ``(n,)`` at coordinates ``(n, width)``."""
        gap = self.coordinates.distances(Z, self.places)
        return np.asarray(2.0 * np.exp(-0.5 * (gap / 0.05) ** 2) @ self.chance)


@dataclass(frozen=True, eq=False)
class Nearer:
    """Expected cost improvement in the target set, ``log (c*(x) - cost(x)) + log P(f(x) in T)``.

    Without a record to beat, the chance of a hit per cost, ``log P(f(x) in T) - log cost(x)``.
    """

    surrogate: Surrogate
    region: Region
    acceptance: Intervals  # the target set on the surrogate's scale
    record: Record | None  # the costs to beat
    flats: Flats | None = None  # where a hit is most unlikely
    doubt: float = 1.0  # by what factor the surrogate's deviations are too small
    letdowns: Letdowns | None = None  # hits that were expected in vain
    margin: float = 0.0  # the share of a cost that is too small a saving to be worth a call

    def value(self, X: Array) -> Array:
        """Return the objective ``(n,)`` at codes ``(n, d)``."""
        nearer, Z, worth, _ = self._worth(X)
        out = np.full(len(X), -np.inf)
        if len(nearer):
            mean, std = self.surrogate.process.predict(Z)
            inside = log_probability_in(mean, self.doubt * std, self.acceptance)
            out[nearer] = worth + inside.value
        return out

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the objective ``(n,)`` and its derivative by each code ``(n, d)``."""
        nearer, Z, worth, price = self._worth(X)
        out, slope = np.full(len(X), -np.inf), np.zeros(X.shape)
        if len(nearer):
            X = X[nearer]
            mean, std, mean_x, std_x = self.surrogate.predict_gradient(X, Z)
            std = self.doubt * std
            inside, d_mean, d_std = log_probability_in(mean, std, self.acceptance)
            out[nearer] = worth + inside
            price *= effort_rise(self.region, X)
            inner = d_mean[:, None] * mean_x + (self.doubt * d_std)[:, None] * std_x
            slope[nearer] = inner - self.region.distance_gradient(X) * price[:, None]
        return out, slope

    def _worth(self, X: Array) -> tuple[Indices, Array, Array, Array]:
        """Return which codes are nearer, their coordinates, a hit's log worth and its slope."""
        cost = effort(self.region, X)
        room = cost if self.record is None else (1.0 - self.margin) * self.record.beat(X) - cost
        possible = np.flatnonzero(room > 0.0)
        X, worth = X[possible], np.log(room[possible])
        Z = self.surrogate.coordinates(X)
        if self.record is None:
            worth = -worth
        if self.flats is not None:
            worth -= 20.0 * self.flats.hold(X)
        if self.letdowns is not None:
            worth -= self.letdowns.near(Z)
        return possible, Z, worth, 1.0 / room[possible]


class Record:
    """The costs that a new answer has to beat, from the rows `X` ``(m, d)`` that reach the target.

    For one answer the lowest. For `n` answers that say different things that of the answer which
    changes the same features or moves nothing clearly further, or else that of the n-th best.
    """

    def __init__(self, region: Region, X: Array, n: int = 1) -> None:
        self.region, self.X, self.n = region, X, n
        self.cost = effort(region, X)
        changed = clear_changes(region, X)
        order, chosen = np.lexsort((changed.sum(axis=1), self.cost)), list[int]()
        while len(order):
            chosen.append(int(order[0]))
            if len(chosen) == n:
                break
            order = order[(changed[order] != changed[order[0]]).any(axis=1)]
            order = order[different(region, X[order], X[chosen[-1:]])[:, 0]]
        # Positions in X of the nearest points that change different features.
        self.leaders = np.array(chosen, dtype=np.intp)
        self.answers = X[self.leaders]  # (k, d)

    @cached_property
    def _open_end(self) -> float:
        """A cost that any row beats: while sets are missing, a new one is an improvement."""
        region = self.region
        low, high = region.query - region.low, region.high - region.query
        farthest = np.where(high >= low, region.high, region.low)
        return 2.0 * float(region.distance(farthest[None])[0] + self.cost.max()) + 1.0

    @property
    def most(self) -> float:
        """The cost that a row has to beat which says something new."""
        full = len(self.leaders) == self.n
        return float(self.cost[self.leaders[-1]]) if full else self._open_end

    def beat(self, X: Array) -> Array:
        """Return the cost ``(k,)`` that each of the codes ``(k, d)`` has to beat."""
        bar = np.full(len(X), self.most)
        if self.n == 1:
            return bar
        # A leader with more of the same, or a trifle less, is no answer of its own.
        changed, leading = (clear_changes(self.region, rows) for rows in (X, self.answers))
        same = (changed[:, None, :] == leading).all(axis=2) | ~further(
            self.region, self.answers, X
        ).T
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
    """Return minus the mean's distance from accepted values, less two deviations: surely near."""

    def near(mean: Array, std: Array) -> tuple[Array, Array, Array]:
        gaps = np.array([np.clip(mean, low, high) - mean for low, high in accepted])
        gap = np.take_along_axis(gaps, np.abs(gaps).argmin(axis=0)[None], axis=0)[0]
        return -np.abs(gap) - 2.0 * std, np.sign(gap), np.full(len(mean), -2.0)

    return SurrogateFunction(surrogate, near)
