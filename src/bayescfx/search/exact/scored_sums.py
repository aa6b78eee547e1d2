"""Where an answer of a linear model or a network stays valid, by evaluating its form.

The sum of one feature's codes is computed for each of them if they are listed. Of a continuous
feature, the sum of a linear model rises or falls throughout, so that the codes that reach the
target are an interval, whose ends are found by narrowing brackets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.models.readers import LinearModel, ReluNetwork
from bayescfx.potentials import Intervals, contains
from bayescfx.search.exact.cells import features_of_inputs
from bayescfx.search.exact.intervals import ReachedCells, allowed_codes
from bayescfx.search.exact.problem import ROUNDING
from bayescfx.space.region import Region

#: Share of a feature's range to which the ends of a range are found.
_PRECISION = 1e-9
#: Points in a bracket, and how often a bracket is narrowed.
_POINTS = 32
_ROUNDS = 12
#: Shares of the range by which first points lie off the end that a straight line has.
_OFFSETS = np.array([-1e-3, -1e-6, -1e-9, -1e-12, 0.0, 1e-12, 1e-9])


@dataclass(eq=False)
class _Bracket:
    """A side of a row's code: the farthest code known to reach, and the nearest that does not."""

    feature: int
    reached: float
    missed: float
    points: Array

    def refine(self, sums: Array, is_inside: Mask, own: tuple[float, float], edge: float) -> None:
        """Move both ends by the sums ``(n,)`` of the points; place new points between them."""
        inside = self.points[is_inside]
        distance = np.abs(inside - own[0])
        if len(inside) and distance.max() > abs(self.reached - own[0]):
            self.reached = float(inside[distance.argmax()])
        beyond = ~is_inside & (np.abs(self.points - own[0]) > abs(self.reached - own[0]))
        if beyond.any():
            outside = self.points[beyond]
            self.missed = float(outside[np.abs(outside - own[0]).argmin()])
        guess = np.empty(0)
        last = sums[-1]
        if np.isfinite(edge) and last != own[1]:  # the end of a straight line
            share = (edge - own[1]) / (last - own[1])
            guess = own[0] + (share + _OFFSETS) * (self.points[-1] - own[0])
        between = np.linspace(self.reached, self.missed, _POINTS + 2)[1:-1]
        low, high = sorted((self.reached, self.missed))
        guess = guess[(guess > low) & (guess < high)]
        points = np.concatenate([between, guess])
        self.points = points[np.argsort(np.abs(points - own[0]))]


@dataclass(frozen=True, eq=False)
class ScoredSum:
    """A row that reaches the target, and the model whose sum it has.

    Parameters
    ----------
    form : LinearModel or ReluNetwork
        The model.
    region : Region
        The rows that are allowed.
    accepted : Intervals
        Sums that reach the target whatever the model's rounding.
    row : array of shape (d,)
        The codes of the row.
    """

    form: LinearModel | ReluNetwork
    region: Region
    accepted: Intervals
    row: Array

    @cached_property
    def _source(self) -> Indices:
        """The feature of each input that matters."""
        source = features_of_inputs(self.form, self.region)
        return source[self._is_used]

    @cached_property
    def _is_used(self) -> Mask:
        """Whether each input matters."""
        if isinstance(self.form, LinearModel):
            return np.asarray(self.form.weights != 0.0)
        return np.asarray(self.form.weights[0].any(axis=0))

    @cached_property
    def _margin(self) -> float:
        """By how much sums may be rounded differently."""
        if not isinstance(self.form, LinearModel):
            return 0.0  # the rounding errors of the outputs were compared
        numbers = self.form.inputs.compute(self.region.rows(self.row[None]))[0, self._is_used]
        size = np.abs(numbers * self.form.weights[self._is_used]).sum() + abs(self.form.base)
        return ROUNDING * float(size)

    def is_known(self, j: int) -> bool:
        """Return whether the valid codes of a changed feature can be found."""
        if self.region.recomputed[self._source].any():
            return False
        is_read = j in self._source
        return not is_read or self.region.axes[j].choices is not None or self._direction(j) != 0

    def _direction(self, j: int) -> int:
        """Return 1 or -1 if the sum rises or falls throughout with a feature; 0 if unknown."""
        if not isinstance(self.form, LinearModel):
            return 0
        own = self._source == j
        direction = self.form.inputs.direction[self._is_used][own]
        signs = np.unique(direction * np.sign(self.form.weights[self._is_used][own]))
        return int(signs[0]) if len(signs) == 1 else 0

    def changed_cells(self) -> dict[int, ReachedCells]:
        """Return codes of the changed features that the model reads, by feature."""
        is_changed = self.region.changes(self.row[None])[0]
        changed = [int(j) for j in np.flatnonzero(is_changed) if j in self._source]
        changed = [j for j in changed if self.is_known(j)]
        listed = [j for j in changed if self.region.axes[j].choices is not None]
        found = self._listed_cells(listed)
        return found | self._runs(sorted(set(changed) - set(listed)))

    def _sums(self, feature: Indices, codes: Array) -> Array:
        """Return the sums ``(n,)`` of the row with one other code each."""
        if not len(codes):
            return np.empty(0)
        X = np.repeat(self.row[None], len(codes), axis=0)
        X[np.arange(len(codes)), feature] = codes
        return self.form.raw(self.region.rows(self.region.complete(X)))[:, 0]

    def _is_inside(self, sums: Array) -> Mask:
        """Return which sums ``(n,)`` are accepted for certain."""
        margin = self._margin
        return contains(tuple((a + margin, b - margin) for a, b in self.accepted), sums)

    def _listed_cells(self, features: list[int]) -> dict[int, ReachedCells]:
        """Return each allowed code of some features as a cell."""
        codes = [np.asarray(self.region.axes[j].choices) for j in features]
        sizes = [len(part) for part in codes]
        sums = self._sums(np.repeat(features, sizes).astype(np.intp), np.concatenate([[], *codes]))
        parts = np.split(self._is_inside(sums), np.cumsum(sizes)[:-1]) if features else []
        found = {}
        for j, own, is_reached in zip(features, codes, parts, strict=True):
            found[j] = ReachedCells(own, own, own, is_reached | (own == self.row[j]))
        return found

    def _runs(self, features: list[int]) -> dict[int, ReachedCells]:
        """Return three cells of each continuous feature: the run that reaches, and both sides."""
        brackets = []
        for j in features:
            own = float(self.row[j])
            for end in allowed_codes(self.region, j).ends:
                brackets.append(_Bracket(j, own, end, np.linspace(own, end, _POINTS + 1)[1:]))
        self._narrow(brackets)
        found = {}
        for below, above in zip(brackets[::2], brackets[1::2], strict=True):
            low, high = allowed_codes(self.region, below.feature).ends
            lowest = np.array([low, below.reached, np.nextafter(above.reached, np.inf)])
            highest = np.array([np.nextafter(below.reached, -np.inf), above.reached, high])
            is_there = lowest <= highest
            is_reached = np.array([False, True, False])
            found[below.feature] = ReachedCells(
                lowest[is_there], lowest[is_there], highest[is_there], is_reached[is_there]
            )
        return found

    def _narrow(self, brackets: list[_Bracket]) -> None:
        """Narrow brackets until the ends of the runs are known."""
        total = float(self.form.raw(self.region.rows(self.row[None]))[0, 0])
        for _ in range(_ROUNDS):
            is_open = [not self._is_narrow(each) for each in brackets]
            waiting = [each for each, open_ in zip(brackets, is_open, strict=True) if open_]
            if not waiting:
                return
            sizes = [len(each.points) for each in waiting]
            feature = np.repeat([each.feature for each in waiting], sizes).astype(np.intp)
            sums = self._sums(feature, np.concatenate([each.points for each in waiting]))
            parts = np.split(sums, np.cumsum(sizes)[:-1])
            for each, part in zip(waiting, parts, strict=True):
                own = (float(self.row[each.feature]), total)
                edge = self._edge(total, rises=bool(part[-1] > total))
                each.refine(part, self._in_own(part, total), own, edge)

    def _is_narrow(self, bracket: _Bracket) -> bool:
        """Return whether both ends of a bracket are the same, but for rounding."""
        low, high = allowed_codes(self.region, bracket.feature).ends
        return abs(bracket.missed - bracket.reached) <= _PRECISION * (high - low)

    def _own_interval(self, total: float) -> tuple[float, float]:
        """Return the accepted sums around the row's own."""
        ends = np.array(self.accepted)
        distance = np.maximum(ends[:, 0] - total, total - ends[:, 1])
        low, high = ends[int(distance.argmin())]
        return float(low) + self._margin, float(high) - self._margin

    def _edge(self, total: float, *, rises: bool) -> float:
        """Return the end of the accepted sums in one direction."""
        return self._own_interval(total)[int(rises)]

    def _in_own(self, sums: Array, total: float) -> Mask:
        """Return which sums are accepted, without a gap between them and the row's own."""
        low, high = self._own_interval(total)
        return np.asarray((sums >= low) & (sums <= high))
