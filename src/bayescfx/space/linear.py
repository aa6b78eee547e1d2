"""Boxes with linear rules: the paper's domain ``X = {x : A x <= b}`` and the projection onto it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from bayescfx.arrays import Array, Mask
from bayescfx.errors import InfeasibleError, optional


@dataclass(frozen=True, eq=False)
class Polytope:
    """The set ``{z : low <= z <= high, A z <= b}``."""

    low: Array  # (k,), finite
    high: Array
    A: Array  # (rules, k), possibly none
    b: Array  # (rules,)

    def project(self, z: Array) -> Array:
        """Return the Euclidean projection of a point ``(k,)``; linear rules need quadprog."""
        boxed = np.clip(z, self.low, self.high)
        # the nearest point of the box is the nearest of any subset that it lies in
        if not len(self.A) or (self.A @ boxed <= self.b).all():
            return boxed
        solve_qp = optional("quadprog", "projection onto linear rules needs", "gradient").solve_qp
        unit = np.eye(len(z))
        length = np.linalg.norm(self.A, axis=1)
        C = np.vstack([-self.A / length[:, None], unit, -unit])
        ends = np.concatenate([-self.b / length, self.low, -self.high])
        try:
            nearest = solve_qp(unit, np.asarray(z, dtype=float), C.T, ends)[0]
        except ValueError as error:
            raise InfeasibleError(
                "no point of the limits satisfies every linear rule while the other features "
                "stay. Relax a rule or free a feature."
            ) from error
        return np.asarray(np.clip(nearest, self.low, self.high))

    @cached_property
    def directions(self) -> Array:
        """An orthonormal basis ``(m, k)`` of the directions that linear equations leave open."""
        length = np.linalg.norm(self.A, axis=1)
        rules = np.column_stack([self.A, self.b])[length > 0.0] / length[length > 0.0, None]
        size = 1e-12 * np.maximum(1.0, np.abs(rules).max(axis=1, initial=0.0))
        # An equation is a rule and its reverse.
        reverse = (np.abs(rules[:, None] + rules[None]).max(axis=-1) <= size).any(axis=1)
        unit = np.eye(len(self.low))
        return scipy.linalg.null_space(rules[reverse, :-1]).T if reverse.any() else unit

    def contains(self, Z: Array) -> Mask:
        """Return which points ``(n, k)`` belong to the set, but for rounding."""
        boxed = ((self.low <= Z) & (self.high >= Z)).all(axis=1)
        rounding = 16.0 * np.finfo(float).eps * (np.abs(Z) @ np.abs(self.A.T) + np.abs(self.b))
        return np.asarray(boxed & (Z @ self.A.T - self.b <= rounding).all(axis=1))

    def settle(self, Z: Array) -> Array:
        """Return the points as they are: every one can be told exactly."""
        return Z
