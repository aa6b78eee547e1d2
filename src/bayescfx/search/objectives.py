"""What the search maximises over a region: acquisitions composed with the surrogate.

*Hit first* (:class:`Gain`): log EI-CFX, the cost of moving as a threshold that depends on x.
*Then nearer* (:class:`Nearer`): the expected cost improvement inside the target set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayescfx.acquisition.ei import (
    LogEI,
    log_probability_in,
    log_probability_in_with_gradient,
)
from bayescfx.arrays import Array, Indices, Mask
from bayescfx.potentials.family import Intervals, LevelPotential
from bayescfx.propose.ledger import Acquisition
from bayescfx.search.coordinates import Coordinates
from bayescfx.search.question import clear_changes, effort
from bayescfx.search.selection import apart
from bayescfx.search.surrogate import Surrogate
from bayescfx.space.region import Region

_CLIFF = 0.004  # closest pair that a continuous model can separate, per coordinate ...
_WIDEST_CLIFF = 0.04  # ... and at most, in the unit cube
_TERRACE, _WIDEST_TERRACE = 0.03, 0.1  # how far a terrace is taken to reach, at least and at most
_FADING = 200.0  # rows after which both are half as wide
_NUDGE = 1e-6  # finite difference of the threshold, relative to the peak


@dataclass(frozen=True)
class Gain:
    """Log EI-CFX of ``v(x) = rho(f(x)) / peak - weight * cost(x)`` over the best `v` so far.

    The cost is known and never modelled: improvement of `v` is improvement of the potential over
    the threshold ``rho*(x) = peak * (best + weight * cost(x))``. Weight 0 is the paper.

    Parameters
    ----------
    surrogate : Surrogate
        The surrogate of f.
    region : Region
        Knows the cost.
    potential : LevelPotential
        On the surrogate's scale.
    best : float
        The best `v` so far.
    weight : float
        What a unit of distance is worth, as a share of the peak.
    terraces : Terraces, optional
        Where nothing is proposed.
    """

    surrogate: Surrogate
    region: Region
    potential: LevelPotential
    best: float
    weight: float
    terraces: Terraces | None = None

    @cached_property
    def _shared(self) -> LogEI:
        """The acquisition where one threshold serves all points."""
        return LogEI(self.potential, self.potential.peak * self.best)

    def _acquisition(self, X: Array, nudge: float = 0.0) -> LogEI:
        if self.weight == 0.0:
            return self._shared
        best = self.best + nudge + self.weight * self.region.distance(X)
        return LogEI(self.potential, self.potential.peak * best)

    def value(self, X: Array) -> Array:
        """Return log EI-CFX ``(n,)`` at codes ``(n, d)``."""
        mean, std = self.surrogate.predict(X)
        return self._open(X, self._acquisition(X).value_and_gradient(mean, std).value)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return log EI-CFX ``(n,)`` and its derivative by each code ``(n, d)``."""
        mean, std, mean_x, std_x = self.surrogate.predict_gradient(X)
        value, d_mean, d_std = self._acquisition(X).value_and_gradient(mean, std)
        slope = d_mean[:, None] * mean_x + d_std[:, None] * std_x
        if self.weight > 0.0:
            nudged = self._acquisition(X, _NUDGE).value_and_gradient(mean, std).value
            finite = np.isfinite(nudged) & np.isfinite(value)
            rise = np.where(finite, nudged, 0.0) - np.where(finite, value, 0.0)
            slope += (rise / _NUDGE * self.weight)[:, None] * self.region.distance_gradient(X)
        return self._open(X, value), slope

    def _open(self, X: Array, value: Array) -> Array:
        """Return values ``(n,)``, minus infinity where nothing is proposed."""
        barred = self.terraces is not None and self.terraces.near(X)
        return np.where(barred, -np.inf, value)


@dataclass(frozen=True)
class Few:
    """An objective restricted to rows that differ from `centre` in few features.

    Parameters
    ----------
    objective : Acquisition
        What is maximised.
    centre : Array of shape (d,)
        A row.
    most : int
        In how many features others may differ.
    """

    objective: Acquisition
    centre: Array
    most: int

    def _outside(self, X: Array) -> Mask:
        # A missing value is the same in every row.
        differs = (self.centre != X) & ~np.isnan(self.centre)
        return np.asarray(differs.sum(axis=1) > self.most)

    def value(self, X: Array) -> Array:
        """Return the objective ``(n,)`` at codes ``(n, d)``."""
        return np.where(self._outside(X), -np.inf, self.objective.value(X))

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the objective ``(n,)`` and its derivative by each code ``(n, d)``."""
        value, slope = self.objective.gradient(X)
        same = self.centre == X
        return np.where(self._outside(X), -np.inf, value), np.where(same, 0.0, slope)


@dataclass(frozen=True)
class Terraces:
    """Places where the model is known to be flat or to jump, so that another look is wasted.

    Trees are constant on terraces and jump between them; no surrogate can resolve that. Two
    findings tell. Two evaluated rows, one on either side of the target set and so close to each
    other that a continuous model would have hit it in between, mark a jump across it. Two with
    exactly the same output mark a terrace: around every evaluated row, what is not farther than
    they are from each other is taken to be on its terrace. Both are believed the less the more rows
    there are, so that no place is excluded for ever.

    Parameters
    ----------
    coordinates : Coordinates
        In which distances are measured.
    codes : Array of shape (c, d)
        Places.
    radii : Array of shape (c,)
        How far around them nothing is proposed.
    discrete : Mask of shape (d,)
        Features in which only equal codes are close.
    """

    coordinates: Coordinates
    codes: Array
    radii: Array
    discrete: Mask

    @classmethod
    def of(
        cls, coordinates: Coordinates, X: Array, y: Array, accepted: Intervals, discrete: Mask
    ) -> Terraces:
        """Return what evaluated codes ``X (n, d)`` with outputs `y` ``(n,)`` tell."""
        fading = 1.0 + len(X) / _FADING
        distance = coordinates.distances(coordinates(X), coordinates(X))
        below = y < min(low for low, _ in accepted)
        above = y > max(high for _, high in accepted)
        cliff = min(_CLIFF * coordinates.width, _WIDEST_CLIFF) / fading
        i, j = np.nonzero(below[:, None] & above & (distance < cliff))
        codes, radii = 0.5 * (X[i] + X[j]), np.full(len(i), 2.0 * cliff)
        ties = distance[(y[:, None] == y) & (distance < _WIDEST_TERRACE)]
        if (widest := float(ties.max(initial=0.0))) > 0.0:
            width = min(max(2.0 * widest, _TERRACE), _WIDEST_TERRACE) / fading
            codes, radii = np.vstack([codes, X]), np.append(radii, np.full(len(X), width))
        return cls(coordinates, codes, radii, discrete)

    def near(self, X: Array) -> Mask:
        """Return which codes ``(n, d)`` are too close to one of the places."""
        if not len(self.codes):
            return np.zeros(len(X), dtype=bool)
        centres = self.coordinates(self.codes)
        close = self.coordinates.distances(self.coordinates(X), centres) < self.radii
        for k in np.flatnonzero(self.discrete):
            close &= X[:, k, None] == self.codes[:, k]
        return np.asarray(close.any(axis=1))


@dataclass(frozen=True)
class Nearer:
    """Expected cost improvement inside the target set, as a logarithm.

    ``log (c*(x) - cost(x)) + log P(f(x) in T)``, minus infinity where a row would be no nearer
    than what is found already.

    Parameters
    ----------
    surrogate : Surrogate
        The surrogate of f.
    region : Region
        Knows the cost.
    acceptance : Intervals
        The target set on the surrogate's scale.
    record : Record
        The costs to beat.
    """

    surrogate: Surrogate
    region: Region
    acceptance: Intervals
    record: Record

    def value(self, X: Array) -> Array:
        """Return the objective ``(n,)`` at codes ``(n, d)``."""
        room = self.record.beat(X) - effort(self.region, X)
        out = np.full(len(X), -np.inf)
        nearer = np.flatnonzero(room > 0.0)
        if len(nearer):
            mean, std = self.surrogate.predict(X[nearer])
            out[nearer] = np.log(room[nearer]) + log_probability_in(mean, std, self.acceptance)
        return out

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the objective ``(n,)`` and its derivative by each code ``(n, d)``."""
        room = self.record.beat(X) - effort(self.region, X)
        out, slope = np.full(len(X), -np.inf), np.zeros(X.shape)
        nearer = np.flatnonzero(room > 0.0)
        if len(nearer):
            mean, std, mean_x, std_x = self.surrogate.predict_gradient(X[nearer])
            inside, d_mean, d_std = log_probability_in_with_gradient(mean, std, self.acceptance)
            out[nearer] = np.log(room[nearer]) + inside
            slope[nearer] = (
                d_mean[:, None] * mean_x
                + d_std[:, None] * std_x
                - self.region.distance_gradient(X[nearer]) / room[nearer, None]
            )
        return out, slope


@dataclass(frozen=True)
class Record:
    """The costs that a new answer has to beat.

    For one answer this is the lowest cost found. For `n` answers with different sets of changed
    features: the cost of the answer with the same set, or nearly the same row, or else that of the
    n-th best.

    Parameters
    ----------
    region : Region
        Knows cost and changes.
    X : Array of shape (m, d)
        Codes of the points that reach the target.
    n : int
        How many answers are wanted.
    """

    region: Region
    X: Array
    n: int = 1

    @cached_property
    def cost(self) -> Array:
        """What each point of `X` costs."""
        return effort(self.region, self.X)

    @cached_property
    def leaders(self) -> Indices:
        """Positions in `X` of the best point of each of the best `n` sets of features."""
        changed = clear_changes(self.region, self.X)
        chosen: dict[bytes, int] = {}
        for i in np.lexsort((changed.sum(axis=1), self.cost)):
            support, others = changed[i].tobytes(), self.X[list(chosen.values())]
            if support not in chosen and apart(self.region, self.X[[i]], others).all():
                chosen[support] = int(i)
            if len(chosen) == self.n:
                break
        return np.array(list(chosen.values()), dtype=np.intp)

    @cached_property
    def _open_end(self) -> float:
        """A cost that any row beats: while sets are missing, a new one is an improvement."""
        region = self.region
        low, high = region.query - region.low, region.high - region.query
        farthest = np.where(high >= low, region.high, region.low)
        return 2.0 * float(region.distance(farthest[None])[0] + self.cost.max()) + 1.0

    def beat(self, X: Array) -> Array:
        """Return the cost ``(k,)`` that each of the codes ``(k, d)`` has to beat."""
        best, cost = self.leaders, self.cost
        if self.n == 1:
            return np.full(len(X), cost[best[0]])
        bar = np.full(len(X), cost[best[-1]] if len(best) == self.n else self._open_end)
        changed, leading = clear_changes(self.region, X), clear_changes(self.region, self.X[best])
        same = (changed[:, None, :] == leading).all(axis=2)
        # A leader with a trifle added is no answer of its own.
        same |= ~apart(self.region, X, self.X[best])
        held = np.where(same, cost[best], np.inf).min(axis=1)
        return np.asarray(np.minimum(bar, held))
