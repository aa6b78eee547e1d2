"""The continuous part of a region: a box with linear rules, in units of the features' scales.

This is the paper's domain ``X = {x : A x <= b}``. Its coordinates are ``z = x / scale`` (one
unit of each is a change of one scale, as in the distance), and "Euclidean" means the ordinary
2-norm of ``z``; the paper's statements hold for the model as a function of ``z``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.space.linear import Polytope
from bayescfx.space.region import Region
from bayescfx.space.repair import repair


@dataclass(frozen=True, eq=False)
class Slice:
    """The continuous features of a region, all others held at the values of one row."""

    region: Region
    row: Array  # codes (d,)

    @cached_property
    def features(self) -> Indices:
        """Positions ``(k,)`` of the features that move: free, ordered, and without a grid."""
        region = self.region
        return np.flatnonzero(region.sliding & (region.step == 0.0) & (region.low < region.high))

    @cached_property
    def scale(self) -> Array:
        """Units ``(k,)`` of the coordinates."""
        return np.asarray(self.region.scale[self.features])

    @cached_property
    def polytope(self) -> Polytope:
        """Limits and linear rules; rules on derived or missing features are left out."""
        region = self.region
        at = self.features
        is_held = np.ones(len(self.row), dtype=np.bool_)
        is_held[at] = False
        is_unknown = region.recomputed | np.isnan(self.row)
        uses = region.A != 0.0
        is_usable = uses[:, at].any(axis=1) & ~uses[:, is_unknown].any(axis=1)
        A = region.A[is_usable]
        held_part = A[:, is_held] @ np.nan_to_num(self.row[is_held])
        low = region.low[at] / self.scale
        high = region.high[at] / self.scale
        return Polytope(low, high, A[:, at] * self.scale, region.b[is_usable] - held_part)

    def coordinates(self, x: Array) -> Array:
        """Return the coordinates ``(k,)`` of a row of codes."""
        return np.asarray(x[self.features] / self.scale)

    def codes(self, Z: Array) -> Array:
        """Return rows of codes ``(n, d)`` at coordinates ``(n, k)``, derived columns recomputed."""
        rows = np.repeat(self.row[None, :], len(Z), axis=0)
        rows[:, self.features] = Z * self.scale
        return self.region.snap(rows)

    def moves(self, steps: Array) -> Array:
        """Return steps ``(n, k)`` of coordinates as moves of codes ``(n, d)``."""
        found = np.zeros((len(steps), len(self.row)))
        found[:, self.features] = steps * self.scale
        return found

    def project(self, z: Array) -> Array:
        """Return the projection of coordinates ``(k,)`` onto box and linear rules."""
        return self.polytope.project(z)

    def contains(self, Z: Array) -> Mask:
        """Return which coordinates ``(n, k)`` are allowed rows."""
        return self.region.contains(self.codes(Z))

    def settle(self, Z: Array) -> Array:
        """Return the coordinates ``(n, k)`` of the codes nearest to given ones."""
        return np.asarray(self.codes(Z)[:, self.features] / self.scale)

    def land(self, z: Array) -> Array | None:
        """Return an allowed row ``(d,)`` at coordinates ``(k,)``, or repaired near, or None."""
        rows = self.codes(z[None, :])
        if self.region.contains(rows)[0]:
            return np.asarray(rows[0])
        rows, allowed = repair(self.region, rows)
        if allowed[0] and self.holds(rows[0]):
            return np.asarray(rows[0])
        return None

    def holds(self, x: Array) -> bool:
        """Return whether a row of codes ``(d,)`` has the slice's values in all held features."""
        is_held = ~self.region.recomputed  # derived features follow
        is_held[self.features] = False
        return np.array_equal(x[is_held], self.row[is_held], equal_nan=True)
