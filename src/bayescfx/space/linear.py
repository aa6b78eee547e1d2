"""Linear rules: the projection onto ``{x : A x <= b, low <= x <= high}``, the paper's domain.

The projection is found through its dual problem, which has one multiplier per rule and only asks
that multipliers are not negative. The dual is concave and piecewise quadratic, so a projected
Newton method with a line search solves it exactly, usually in fewer than ten rounds. All points
are projected at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.errors import InfeasibleError

ROUNDS = 50  # of Newton's method; a cap for empty sets, others need about five
HALVINGS = 40  # of one Newton step
ARMIJO = 1e-4  # share of the promised rise that a step must deliver
RIDGE = 1e-10  # keeps the Newton system regular where rules depend on each other
ROUNDING = 1e-12  # rules are met by this margin, relative to the numbers that they add up
EQUAL = 1e-12  # relative difference up to which two rules are the same


class Projection(NamedTuple):
    """Projected points, and how hard each rule pushes them."""

    points: Array  # (n, k)
    multipliers: Array  # (n, rules), 0 where a rule does not push


def violation(X: Array, A: Array, b: Array) -> Array:
    """Return by how much rows break each rule ``A x <= b``, shape (n, rules); 0 if it holds."""
    return np.maximum(X @ A.T - b, 0.0)


def project_linear(
    Z: Array, A: Array, b: Array, metric: Array, low: Array | None = None, high: Array | None = None
) -> Projection:
    """Return the nearest points to ``(n, k)`` that satisfy linear rules and limits.

    Where the rules contradict each other, points break them as little as the method manages.

    Parameters
    ----------
    A, b : arrays of shape (rules, k) and (rules,), or (n, rules, k) and (n, rules)
        The rules ``A x <= b``, the same for all points or for each its own. They are met with a
        small margin, so that rounding does not break them.
    metric : array of shape (n, k) or (n, k, k)
        The inverse of the matrix of the squared distance; a vector is its diagonal. A coordinate
        moves the more easily the larger its entry is; one with entry 0 stays.
    low, high : arrays of shape (k,) or (n, k), optional
        Limits of the coordinates that move; only for a diagonal metric.
    """
    problem = _Dual.of(Z, A, b, metric, low, high)
    multipliers = np.zeros(problem.b.shape)
    points = problem.points(multipliers)
    rows = np.arange(len(Z))
    part = problem
    for _ in range(ROUNDS):
        excess = part.excess(points[rows])
        open_ = part.is_open(multipliers[rows], excess)
        if not open_.any():
            break
        rows = rows[open_]
        part = part.take(open_)
        multipliers[rows] = part.improve(multipliers[rows], excess[open_])
        points[rows] = part.points(multipliers[rows])
    return Projection(points, multipliers / problem.length)


@dataclass(frozen=True, eq=False)
class _Dual:
    """The dual problems of `n` projections; rules have unit length in the metric."""

    Z: Array  # (n, k) points to project
    A: Array  # (n, rules, k)
    b: Array  # (n, rules), less the margin
    metric: Array  # (n, k) or (n, k, k)
    low: Array  # (n, k), infinite where there is no limit
    high: Array
    length: Array  # (n, rules) by which the rules were divided
    margin: Array  # (n, rules)

    @classmethod
    def of(
        cls, Z: Array, A: Array, b: Array, metric: Array, low: Array | None, high: Array | None
    ) -> _Dual:
        """Return the problems for the arguments of :func:`project_linear`."""
        n, k = Z.shape
        rules = np.broadcast_to(A, (n, *A.shape[-2:]))
        bounds = np.broadcast_to(b, (n, b.shape[-1]))
        movable = metric > 0.0 if metric.ndim == 2 else np.ones((n, k), dtype=np.bool_)
        lowest = np.full((n, k), -np.inf) if low is None else np.where(movable, low, -np.inf)
        highest = np.full((n, k), np.inf) if high is None else np.where(movable, high, np.inf)
        length = np.sqrt((_scaled(rules, metric) * rules).sum(axis=2))
        length = np.where(length > 0.0, length, 1.0)
        size = 1.0 + np.abs(bounds) + _times(np.abs(rules), np.abs(Z))
        margin = ROUNDING * size / length
        bound = bounds / length - margin
        return cls(Z, rules / length[:, :, None], bound, metric, lowest, highest, length, margin)

    def take(self, rows: Mask) -> _Dual:
        """Return some of the problems."""
        return _Dual(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def _unlimited(self, multipliers: Array) -> Array:
        """Return the nearest points ``(n, k)`` without limits for given multipliers."""
        push = (multipliers[:, None, :] @ self.A)[:, 0, :]
        if self.metric.ndim == 2:
            return np.asarray(self.Z - push * self.metric)
        return self.Z - _times(self.metric, push)

    def points(self, multipliers: Array) -> Array:
        """Return the points ``(n, k)`` that minimise the Lagrangian within the limits."""
        return np.minimum(np.maximum(self._unlimited(multipliers), self.low), self.high)

    def excess(self, X: Array) -> Array:
        """Return by how much points go beyond each rule, the gradient of the dual."""
        return _times(self.A, X) - self.b

    def is_open(self, multipliers: Array, excess: Array) -> Mask:
        """Return which problems ``(n,)`` are not solved yet."""
        missed = np.where(multipliers > 0.0, np.abs(excess), excess)
        return np.asarray((missed > self.margin).any(axis=1))

    def value(self, multipliers: Array) -> Array:
        """Return the dual function ``(n,)``: half the squared distance, and the rules' part."""
        X = self.points(multipliers)
        moved = self.Z - X
        if self.metric.ndim == 2:
            movable = self.metric > 0.0
            force = np.divide(moved, self.metric, out=np.zeros(moved.shape), where=movable)
        else:
            force = (multipliers[:, None, :] @ self.A)[:, 0, :]
        rules = (multipliers * self.excess(X)).sum(axis=1)
        return np.asarray(0.5 * (moved * force).sum(axis=1) + rules)

    def improve(self, multipliers: Array, excess: Array) -> Array:
        """Return better multipliers ``(n, rules)``: one projected Newton step, halved if needed."""
        direction = self._newton(multipliers, excess)
        before = self.value(multipliers)
        slack = ROUNDING * (1.0 + np.abs(before))
        step = np.ones((len(before), 1))
        for _ in range(HALVINGS):
            trial = np.maximum(multipliers + step * direction, 0.0)
            promised = (excess * (trial - multipliers)).sum(axis=1)
            short = self.value(trial) < before + ARMIJO * promised - slack
            if not short.any():
                break
            step[short] *= 0.5
        return trial

    def _newton(self, multipliers: Array, excess: Array) -> Array:
        """Return the Newton direction over the rules that push, or should."""
        if self.metric.ndim == 3:
            gram = _scaled(self.A, self.metric) @ self.A.transpose(0, 2, 1)
            return _solve_over(gram, excess, (multipliers > 0.0) | (excess > self.margin))
        loose = self._unlimited(multipliers)
        inside = (loose > self.low) & (loose < self.high)  # others do not respond to a push
        response = _scaled(self.A, np.where(inside, self.metric, 0.0))
        gram = response @ self.A.transpose(0, 2, 1)
        responds = np.einsum("nrr->nr", gram) > RIDGE
        broken = excess > self.margin
        free = (broken & responds) | ((multipliers > 0.0) & (responds | (excess < 0.0)))
        direction = _solve_over(gram, excess, free)
        stuck = broken & ~responds
        if stuck.any():
            push = self._until_response(loose) + excess
            direction = np.where(stuck & np.isfinite(push), push, direction)
        return direction

    def _until_response(self, loose: Array) -> Array:
        """Return by how much multipliers must grow until a coordinate leaves its limit.

        `loose` ``(n, k)`` are the points without limits; infinite for rules that no coordinate
        can follow, shape (n, rules).
        """
        beyond = (loose - np.clip(loose, self.low, self.high))[:, None, :]
        speed = _scaled(self.A, self.metric)
        inwards = beyond * speed > 0.0
        needed = np.divide(beyond, speed, out=np.full(speed.shape, np.inf), where=inwards)
        return np.asarray(needed.min(axis=2))


def _scaled(A: Array, metric: Array) -> Array:
    """Return ``A M`` for rules ``(n, r, k)`` and metrics ``(n, k)`` or ``(n, k, k)``."""
    return np.asarray(A * metric[:, None, :] if metric.ndim == 2 else A @ metric)


def _times(A: Array, X: Array) -> Array:
    """Return matrix times vector for ``(n, r, k)`` and ``(n, k)``, shape (n, r)."""
    return np.asarray((A @ X[:, :, None])[:, :, 0])


def _solve_over(gram: Array, excess: Array, free: Mask) -> Array:
    """Solve ``gram z = excess`` over the free rules ``(n, r)`` of each point; 0 elsewhere."""
    part = gram * (free[:, :, None] & free[:, None, :])
    regular = part + np.eye(free.shape[1]) * np.where(free, RIDGE, 1.0)[:, :, None]
    wanted = np.where(free, excess, 0.0)[:, :, None]
    found = np.linalg.solve(regular, wanted)
    found += np.linalg.solve(regular, wanted - part @ found)  # undo the ridge
    return np.asarray(found[:, :, 0] * free)


@dataclass(frozen=True, eq=False)
class Polytope:
    """The set ``{z : low <= z <= high, A z <= b}``."""

    low: Array  # (k,), finite
    high: Array
    A: Array  # (rules, k), possibly none
    b: Array  # (rules,)

    def project(self, z: Array) -> Array:
        """Return the Euclidean projection of a point ``(k,)``."""
        boxed = np.clip(z, self.low, self.high)
        # The nearest point of the box is the nearest of any subset that contains it.
        if not len(self.A) or (self.A @ boxed <= self.b).all():
            return boxed
        Z = np.asarray(z, dtype=float)[None]
        nearest = project_linear(Z, self.A, self.b, np.ones(Z.shape), self.low, self.high).points
        if not self._nearly_contains(nearest)[0]:
            raise InfeasibleError(
                "no point of the limits satisfies every linear rule while the other features "
                "stay. Relax a rule or free a feature."
            )
        return np.asarray(nearest[0])

    def _nearly_contains(self, Z: Array) -> Mask:
        """Return which points ``(n, k)`` satisfy the rules up to a billionth of their size."""
        size = 1.0 + np.abs(self.b) + np.abs(Z) @ np.abs(self.A.T)
        return np.asarray((violation(Z, self.A, self.b) <= 1e-9 * size).all(axis=1))

    @cached_property
    def directions(self) -> Array:
        """An orthonormal basis ``(m, k)`` of the directions that linear equations leave open."""
        length = np.linalg.norm(self.A, axis=1)
        used = length > 0.0
        rules = np.column_stack([self.A, self.b])[used] / length[used, None]
        size = EQUAL * np.maximum(1.0, np.abs(rules).max(axis=1, initial=0.0))
        # An equation is a rule and its reverse.
        gaps = np.abs(rules[:, None] + rules[None]).max(axis=-1)
        reversed_too = (gaps <= size).any(axis=1)
        if not reversed_too.any():
            return np.eye(len(self.low))
        return np.asarray(scipy.linalg.null_space(rules[reversed_too, :-1]).T)

    def contains(self, Z: Array) -> Mask:
        """Return which points ``(n, k)`` belong to the set, up to rounding."""
        in_box = ((self.low <= Z) & (self.high >= Z)).all(axis=1)
        rounding = 16.0 * np.finfo(float).eps * (np.abs(Z) @ np.abs(self.A.T) + np.abs(self.b))
        return np.asarray(in_box & (Z @ self.A.T - self.b <= rounding).all(axis=1))

    def settle(self, Z: Array) -> Array:
        """Return the points ``(n, k)`` unchanged: each one can be represented exactly."""
        return Z


def coordinate_corrections(
    X: Array, A: Array, b: Array, step: Array, moving: Mask
) -> tuple[Array, Indices]:
    """Return rows with one coordinate moved so that their most broken rule holds.

    Parameters
    ----------
    X : array of shape (n, d)
    A, b : arrays of shape (rules, d) and (rules,)
    step : array of shape (d,)
        Grid steps; 0 where a coordinate is continuous.
    moving : mask of shape (n, d)
        The coordinates that may move.

    Returns
    -------
    rows : array of shape (m, d)
    origin : array of shape (m,)
        The row of `X` that each of them corrects.
    """
    excess = X @ A.T - b
    worst = excess.argmax(axis=1)
    most = excess[np.arange(len(X)), worst]
    a = A[worst]
    origin, at = np.nonzero(moving & (a != 0) & (most > 0)[:, None])
    shift = -most[origin] / a[origin, at]
    on_grid = step[at] > 0
    size = np.where(on_grid, step[at], 1.0)
    whole_steps = np.sign(shift) * np.ceil(np.abs(shift) / size - 1e-9) * size
    rows = X[origin]
    rows[np.arange(len(at)), at] += np.where(on_grid, whole_steps, shift * (1.0 + ROUNDING))
    return rows, origin
