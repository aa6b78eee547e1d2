"""Batched projected quasi-Newton ascent: every restart advances in the same function call.

Rows maximise the same function from different starts. Each keeps its own inverse Hessian (BFGS),
its own place in a backtracking line search and its own box; one call of the function serves all of
them. Three things differ from a textbook L-BFGS-B:

* *Kinks.* A cost of moving has a kink where a coordinate equals the query's value. A coordinate
  never jumps across its kink: it stops there, the slope is taken on one side and then on the other
  (as in OWL-QN), and it leaves only towards a side where the function rises.
* *Linear rules.* With ``A x <= b`` the direction is projected on the active rules in the metric of
  the inverse Hessian, and the step is cut where the next rule begins.
* *Holes.* A trial of value ``-inf`` (outside a rule, or no chance to improve) shortens the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.ascent.halfspaces import Halfspaces


@dataclass(frozen=True, eq=False)
class Box:
    """Where the `m` rows of an ascent may go, in `c` coordinates each."""

    columns: Indices  # (m, c) coordinates a row may move; one with fewer names some that stay
    low: Array  # (m, c) limits of these coordinates ...
    high: Array  # (m, c) ... equal where a coordinate stays
    span: Array  # (m, c) lengths by which coordinates are scaled
    kink: Array  # (m, c) where the function may have a kink in a coordinate; nan where it has none
    A: Array  # (r, d) linear rules A x <= b
    b: Array  # (r,)


def ascend(
    evaluate: Callable[[Array], tuple[Array, Array]],
    X: Array,
    box: Box,
    H: Array | None = None,
    iterations: int = 50,
    tolerance: float = 1e-6,
    doubt: float = 50.0,
) -> tuple[Array, Array, Array]:
    """Climb from every row of `X` ``(m, d)`` at once; return points, values and inverse Hessians.

    `evaluate` maps points ``(n, d)`` to values ``(n,)`` and gradients ``(n, d)``. `H` ``(m, c, c)``
    are inverse Hessians of the negated function from an earlier ascent, in units of the ranges;
    zeros mean unknown. A row stops once its direction promises less than `tolerance`; if the square
    of its slope is more than `doubt` times that, only after a look along the slope itself.
    """
    climb = _Climb(X, box, H, doubt)
    x = climb.x
    for call in range(iterations):
        if call:
            x = climb.trials(tolerance)
        if not len(x):
            break
        points, columns, at = climb.X.copy(), climb.columns, climb.at
        beside, held = x, x == climb.kink
        if held.any():  # a slope at a kink is taken beside it
            beside = np.where(held, x + climb.side * climb.nudge, x)
            beside = np.minimum(np.maximum(beside, climb.floor), climb.ceiling)
        points[at, columns] = beside
        value, gradient = evaluate(points)
        climb.receive(x, value, gradient[at, columns] * climb.span)
    return climb.ends()


class _Climb:
    """The state of the rows that still climb; directions and slopes are in units of the ranges."""

    def __init__(self, X: Array, box: Box, H: Array | None, doubt: float) -> None:
        m, c = box.columns.shape
        self.doubt, self.rows, self.X = doubt, np.arange(m), X.copy()
        self.at = self.rows[:, None]
        self.columns, self.floor, self.ceiling = box.columns, box.low, box.high
        self.span, self.kink = box.span, box.kink
        self.x = X[self.at, box.columns]
        self.nudge = np.maximum(1e-9 * box.span, 8 * np.finfo(float).eps * np.abs(self.x))
        self.H = np.tile(np.eye(c), (m, 1, 1))
        self.first: Mask = np.ones(m, dtype=bool)  # nothing is known of the curvature
        if H is not None:
            self.first = np.asarray(~H.any(axis=(1, 2)))
            self.H[~self.first] = H[~self.first]
        self.rules = Halfspaces(box.A, box.b, box.columns, box.span, X) if len(box.A) else None
        self.alive = np.ones(m, dtype=bool)
        self.fresh = np.ones(m, dtype=bool)  # wants a new direction
        self.quiet = np.zeros(m, dtype=int)  # directions in turn that promised nothing
        self.step, self.gain = np.ones(m), np.zeros(m)
        self.p, self.g = np.zeros((m, c)), np.zeros((m, c))
        self.low, self.high = box.low, box.high  # up to the next kink
        self.side = np.where(self.x < box.kink, -1.0, 1.0)
        self.value = np.full(m, -np.inf)
        self._ended = self.X.copy(), self.value.copy(), self.H.copy()

    def ends(self) -> tuple[Array, Array, Array]:
        """Return points, values and inverse Hessians of all rows, zeros where nothing is known."""
        X, value, H = self._ended
        X[self.rows], value[self.rows] = self.X, self.value
        H[self.rows] = np.where(self.first[:, None, None], 0.0, self.H)
        return X, value, H

    def trials(self, tolerance: float) -> Array:
        """Return where each row looks next; those that have ended are taken out."""
        if self.fresh.any():
            self._aim(tolerance)
        if not self.alive.all():
            self.ends()
            alive = self.alive
            for name, part in vars(self).items():
                if isinstance(part, np.ndarray):
                    setattr(self, name, part[alive])
            self.at = np.arange(len(self.rows))[:, None]
        low, high, near = self.low, self.high, 1e-12 * self.span
        x = self.x + self.step[:, None] * self.p * self.span
        return np.where(x - low <= near, low, np.where(high - x <= near, high, x))

    def _aim(self, tolerance: float) -> None:
        """Choose new directions for fresh rows; rows with nothing left to gain stop."""
        x, g, kink, side = self.x, self.g, self.kink, self.side
        first, fresh = self.first, self.fresh
        held = x == kink
        above, below = (x > kink) | (held & (side > 0)), (x < kink) | (held & (side < 0))
        low = np.where(above, np.maximum(self.floor, kink), self.floor)
        high = np.where(below, np.minimum(self.ceiling, kink), self.ceiling)
        if self.rules is None:
            stuck = ((x <= low) & (g <= 0)) | ((x >= high) & (g >= 0))
            slope = np.where(stuck, 0.0, g)
            p = np.where(stuck, 0.0, (self.H @ slope[:, :, None])[:, :, 0])
        else:
            p, stuck = self.rules.along(self.rows, self.X, x, g, self.H, low, high)
            slope = np.where(stuck, 0.0, g)
        gain, steep = (slope * p).sum(axis=1), (slope * slope).sum(axis=1)
        weak = gain < 1e-8 * np.sqrt(steep * (p * p).sum(axis=1))
        reach = np.maximum(np.abs(p).max(axis=1), 1e-300)
        # No coordinate moves by more than half its range, or a tenth while nothing is known.
        scale = np.where(first, 0.1 / reach, np.minimum(1.0, 0.5 / reach))
        p = p * scale[:, None]
        calm = weak | (gain * scale <= tolerance)
        doubtful = fresh & calm & ~first & (steep > self.doubt * tolerance)
        if doubtful.any():  # steep, yet nothing promised: the curvature learnt is wrong
            self._forget(doubtful)
            self._aim(tolerance)
            return
        if self.rules is not None:
            p = self.rules.shortened(self.rows, self.X, x, p, self.span, low, high)
        every, calm = fresh[:, None], calm & fresh
        self.low, self.high = np.where(every, low, self.low), np.where(every, high, self.high)
        p = np.where(calm[:, None], 0.0, p)
        self.p = np.where(every, p, self.p)
        self.gain = np.where(fresh, (slope * p).sum(axis=1), self.gain)
        self.step = np.where(fresh, 1.0, self.step)
        self.side = np.where(every & held & stuck, -side, side)
        # A row that is calm on one side of a kink looks at the other side before it stops.
        self.quiet = np.where(fresh, (self.quiet + 1) * calm, self.quiet)
        self.alive &= ~(calm & ((self.quiet > 1) | ~held.any(axis=1)))
        self.fresh = np.zeros(len(x), dtype=bool)

    def receive(self, x: Array, value: Array, g: Array) -> None:
        """Move rows whose trial `x` delivers what was promised; shorten the others' steps."""
        bad = ~(np.isfinite(value) & np.isfinite(g).all(axis=1))
        if bad.any():
            value, g = np.where(bad, -np.inf, value), np.where(bad[:, None], 0.0, g)
        slack = 1e-9 * (1.0 + np.abs(self.value))
        wanted = 1e-4 * self.step * self.gain - slack  # Armijo's condition
        good = value >= self.value + wanted
        if not good.all():
            self._shorten(~good, value)
        if not good.any():
            return
        every = good[:, None]
        s = np.where(every, (x - self.x) / self.span, 0.0)
        # A coordinate that stayed says nothing of curvature; at a kink its slope may have jumped.
        self._learn(s, np.where(s == 0, 0.0, self.g - g))
        self.x, self.g = np.where(every, x, self.x), np.where(every, g, self.g)
        self.value = np.where(good, value, self.value)
        self.X[self.at, self.columns] = self.x
        side = np.where(x > self.kink, 1.0, np.where(x < self.kink, -1.0, self.side))
        self.side = np.where(every, side, self.side)
        self.fresh = self.fresh | good
        self.alive = np.where(good, np.isfinite(value), self.alive)

    def _learn(self, s: Array, y: Array) -> None:
        """BFGS update of the inverse Hessian of the negated function, for rows that moved."""
        sy, yy, ss = (s * y).sum(axis=1), (y * y).sum(axis=1), (s * s).sum(axis=1)
        sound = sy > 1e-10 * np.sqrt(ss * yy)
        if not sound.all():
            convex = ~sound & (ss > 0)
            self.H[convex] *= 4.0  # the slope grows along the step: be bolder
            self.first = self.first & ~convex
            if not sound.any():
                return
        sy, yy = np.where(sound, sy, 1.0), np.where(sound, yy, 1.0)
        new = self.first & sound
        H = self.H * np.where(new, sy / yy, 1.0)[:, None, None]
        Hy = (H @ y[:, :, None])[:, :, 0]
        half = 0.5 * (1.0 + (y * Hy).sum(axis=1) / sy)[:, None] * s - Hy
        cross = half[:, :, None] * (s / sy[:, None])[:, None, :]
        H += cross + cross.transpose(0, 2, 1)
        self.H = np.where(sound[:, None, None], H, self.H)
        self.first = self.first & ~sound

    def _shorten(self, rows: Mask, value: Array) -> None:
        """Backtrack by the parabola through the two values and the slope."""
        promised = self.step * self.gain
        with np.errstate(invalid="ignore"):
            missing = promised - (value - self.value)  # positive: the step was refused
        shrink = np.clip(promised / (2.0 * np.maximum(missing, 1e-300)), 0.1, 0.5)
        shrink = np.where(np.isfinite(value), shrink, 0.25)
        self.step = np.where(rows, self.step * shrink, self.step)
        failed = rows & (self.step < 1e-7)
        if failed.any():
            self.alive &= ~(failed & self.first)
            self._forget(failed & ~self.first)

    def _forget(self, rows: Mask) -> None:
        """Start again with the steepest ascent."""
        self.H[rows] = np.eye(self.H.shape[1])
        self.first = self.first | rows
        self.fresh = self.fresh | rows
