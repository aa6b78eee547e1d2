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
from bayescfx.propose.halfspaces import Halfspaces


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
) -> tuple[Array, Array, Array]:
    """Climb from every row of `X` ``(m, d)`` at once; return points, values and inverse Hessians.

    `evaluate` maps points ``(n, d)`` to values ``(n,)`` and gradients ``(n, d)``. `H` ``(m, c, c)``
    are inverse Hessians of the negated function from an earlier ascent, in units of the ranges;
    zeros mean unknown. A row stops once its direction promises less than `tolerance`.
    """
    climb = _Climb(X, box, H)
    rows, x = np.arange(len(X)), climb.x
    for call in range(iterations):
        if call:
            rows, x = climb.trials(tolerance)
        if not rows.size:
            break
        points, at = climb.X[rows], np.arange(len(rows))[:, None]
        points[at, box.columns[rows]] = x
        held = x == box.kink[rows]
        if held.any():  # a slope at a kink is taken beside it
            beside = np.where(held, x + climb.side[rows] * climb.nudge[rows], x)
            points[at, box.columns[rows]] = np.clip(beside, box.low[rows], box.high[rows])
        value, gradient = evaluate(points)
        climb.receive(rows, x, value, gradient[at, box.columns[rows]] * box.span[rows])
    return climb.X, climb.value, np.where(climb.first[:, None, None], 0.0, climb.H)


class _Climb:
    """The state of all rows; directions and slopes are in units of the ranges."""

    def __init__(self, X: Array, box: Box, H: Array | None) -> None:
        self.box = box
        m, c = box.columns.shape
        self.X = X.copy()
        self.x = X[np.arange(m)[:, None], box.columns]
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
        self.low, self.high = box.low.copy(), box.high.copy()  # up to the next kink
        self.side = np.where(self.x < box.kink, -1.0, 1.0)
        self.value = np.full(m, -np.inf)

    def trials(self, tolerance: float) -> tuple[Indices, Array]:
        """Return the rows still climbing and where each looks next."""
        fresh = np.flatnonzero(self.fresh & self.alive)
        if fresh.size:
            self._aim(fresh, tolerance)
        rows = np.flatnonzero(self.alive)
        low, high, span = self.low[rows], self.high[rows], self.box.span[rows]
        x = self.x[rows] + self.step[rows, None] * self.p[rows] * span
        near = 1e-12 * span
        return rows, np.where(x - low <= near, low, np.where(high - x <= near, high, x))

    def _aim(self, rows: Indices, tolerance: float) -> None:
        """Choose a new direction for `rows`; rows with nothing left to gain stop."""
        box, x, g = self.box, self.x[rows], self.g[rows]
        kink, side = box.kink[rows], self.side[rows]
        held = x == kink
        above, below = (x > kink) | (held & (side > 0)), (x < kink) | (held & (side < 0))
        low = np.where(above, np.maximum(box.low[rows], kink), box.low[rows])
        high = np.where(below, np.minimum(box.high[rows], kink), box.high[rows])
        self.low[rows], self.high[rows] = low, high
        if self.rules is None:
            stuck = ((x <= low) & (g <= 0)) | ((x >= high) & (g >= 0))
            slope = np.where(stuck, 0.0, g)
            p = np.where(stuck, 0.0, (self.H[rows] @ slope[:, :, None])[:, :, 0])
        else:
            p, stuck = self.rules.along(rows, self.X[rows], x, g, self.H[rows], low, high)
            slope = np.where(stuck, 0.0, g)
        gain, steep = (slope * p).sum(axis=1), (slope * slope).sum(axis=1)
        weak = gain < 1e-8 * np.sqrt(steep * (p * p).sum(axis=1))
        reach = np.maximum(np.abs(p).max(axis=1), 1e-300)
        # No coordinate moves by more than half its range, or a tenth while nothing is known.
        scale = np.where(self.first[rows], 0.1 / reach, np.minimum(1.0, 0.5 / reach))
        p = p * scale[:, None]
        calm = weak | (gain * scale <= tolerance)
        doubtful = calm & ~self.first[rows] & (steep > 50.0 * tolerance)
        if doubtful.any():  # steep, yet nothing promised: the curvature learnt is wrong
            self._forget(rows[doubtful])
            self._aim(rows, tolerance)
            return
        if self.rules is not None:
            p = self.rules.shortened(rows, self.X[rows], x, p, box.span[rows], low, high)
        self.p[rows] = np.where(calm[:, None], 0.0, p)
        self.gain[rows] = np.where(calm, 0.0, (slope * p).sum(axis=1))
        self.step[rows], self.fresh[rows] = 1.0, False
        self.side[rows] = np.where(held & stuck, -side, side)
        # A row that is calm on one side of a kink looks at the other side before it stops.
        self.quiet[rows] = np.where(calm, self.quiet[rows] + 1, 0)
        self.alive[rows[calm & ((self.quiet[rows] > 1) | ~held.any(axis=1))]] = False

    def receive(self, rows: Indices, x: Array, value: Array, g: Array) -> None:
        """Move rows whose trial `x` delivers what was promised; shorten the others' steps."""
        bad = ~(np.isfinite(value) & np.isfinite(g).all(axis=1))
        if bad.any():
            value, g = np.where(bad, -np.inf, value), np.where(bad[:, None], 0.0, g)
        slack = 1e-9 * (1.0 + np.abs(self.value[rows]))
        wanted = 1e-4 * self.step[rows] * self.gain[rows] - slack  # Armijo's condition
        good = value >= self.value[rows] + wanted
        if not good.all():
            self._shorten(rows[~good], value[~good])
            rows, x, value, g = rows[good], x[good], value[good], g[good]
        if not rows.size:
            return
        s = (x - self.x[rows]) / self.box.span[rows]
        # A coordinate that stayed says nothing of curvature; at a kink its slope may have jumped.
        self._learn(rows, s, np.where(s == 0, 0.0, self.g[rows] - g))
        self.x[rows], self.value[rows], self.g[rows] = x, value, g
        self.X[rows[:, None], self.box.columns[rows]] = x
        kink = self.box.kink[rows]
        self.side[rows] = np.where(x > kink, 1.0, np.where(x < kink, -1.0, self.side[rows]))
        self.fresh[rows] = True
        self.alive[rows] = np.isfinite(value)

    def _learn(self, rows: Indices, s: Array, y: Array) -> None:
        """BFGS update of the inverse Hessian of the negated function."""
        sy, yy, ss = (s * y).sum(axis=1), (y * y).sum(axis=1), (s * s).sum(axis=1)
        sound = sy > 1e-10 * np.sqrt(ss * yy)
        if not sound.all():
            convex = rows[~sound & (ss > 0)]
            self.H[convex] *= 4.0  # the slope grows along the step: be bolder
            self.first[convex] = False
            rows, s, y, sy, yy = rows[sound], s[sound], y[sound], sy[sound], yy[sound]
        if not rows.size:
            return
        H = self.H[rows]
        new = self.first[rows]
        H[new] *= (sy[new] / yy[new])[:, None, None]
        Hy = (H @ y[:, :, None])[:, :, 0]
        half = 0.5 * (1.0 + (y * Hy).sum(axis=1) / sy)[:, None] * s - Hy
        cross = half[:, :, None] * (s / sy[:, None])[:, None, :]
        self.H[rows] = H + cross + cross.transpose(0, 2, 1)
        self.first[rows] = False

    def _shorten(self, rows: Indices, value: Array) -> None:
        """Backtrack by the parabola through the two values and the slope."""
        promised = self.step[rows] * self.gain[rows]
        missing = promised - (value - self.value[rows])  # positive: the step was refused
        shrink = np.clip(promised / (2.0 * np.maximum(missing, 1e-300)), 0.1, 0.5)
        self.step[rows] *= np.where(np.isfinite(value), shrink, 0.25)
        failed = rows[self.step[rows] < 1e-7]
        self.alive[failed[self.first[failed]]] = False
        self._forget(failed[~self.first[failed]])

    def _forget(self, rows: Indices) -> None:
        """Start again with the steepest ascent."""
        self.H[rows] = np.eye(self.H.shape[1])
        self.first[rows] = True
        self.fresh[rows] = True
