"""Uphill from many starts at once, inside boxes and under linear rules.

Projected quasi-Newton: rows maximise the same function from different starts. Each has an inverse
Hessian (BFGS), a place in a backtracking line search and a box of its own; one call of the function
serves all of them. Three things differ from a textbook L-BFGS-B:

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
        points, places = climb.X.copy(), (climb.at, climb.columns)
        beside, held = x, x == climb.kink
        if held.any():  # a slope at a kink is taken beside it
            beside = np.where(held, x + climb.side * climb.nudge, x)
            beside = np.minimum(np.maximum(beside, climb.floor), climb.ceiling)
        points[places] = beside
        value, gradient = evaluate(points)
        climb.receive(x, value, gradient[places] * climb.span)
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
        self.rules = _Halfspaces(box.A, box.b, box.columns, box.span, X) if len(box.A) else None
        self.alive = np.ones(m, dtype=bool)
        self.fresh = np.ones(m, dtype=bool)  # wants a new direction
        self.quiet = np.zeros(m, dtype=int)  # directions in turn that promised nothing
        self.step, self.gain = np.ones(m), np.zeros(m)
        self.p, self.g = np.zeros((m, c)), np.zeros((m, c))
        self.low, self.high = box.low, box.high  # up to the next kink
        self.bottom = np.fmax(box.low, box.kink)  # limits above and below a kink
        self.top = np.fmin(box.high, box.kink)
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
        x, g, side = self.x, self.g, self.side
        first, fresh, above = self.first, self.fresh, side > 0
        low = np.where(above, self.bottom, self.floor)
        high = np.where(above, self.ceiling, self.top)
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
        held = x == self.kink
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


class _Halfspaces:
    """Linear rules ``A x <= b`` in units of the ranges, for rows `X` that move in own `columns`."""

    def __init__(self, A: Array, b: Array, columns: Indices, span: Array, X: Array) -> None:
        moving = A.T[columns].transpose(0, 2, 1) * span[:, None, :]
        norm = np.sqrt((moving * moving).sum(axis=2))
        norm = np.where(norm > 0, norm, 1.0)
        self.A = moving / norm[:, :, None]  # (m, r, c) over the columns that each row may move
        self.whole = A / norm[:, :, None]  # (m, r, d) over all coordinates, in their own units
        # A hair inside the rules, so that rounding errors never add up to a violation.
        self.b = np.maximum(b / norm - 1e-9, _products(self.whole, X))  # (m, r)

    def slack(self, rows: Indices, X: Array) -> Array:
        """Return the room ``(n, r)`` that each rule leaves to each row."""
        return self.b[rows] - _products(self.whole[rows], X)

    def along(
        self, rows: Indices, X: Array, x: Array, g: Array, H: Array, low: Array, high: Array
    ) -> tuple[Array, Mask]:
        """Return directions along the active rules, in the metric of `H`, and what stays."""
        A = self.A[rows]
        floor, ceiling = x <= low, x >= high
        active = self.slack(rows, X) <= 1e-7
        pull = np.zeros(active.shape)
        outward = low >= high
        # each round drops the rule that pulls inwards most, and holds what would leave its box
        for _ in range(12):  # more changes of the active set are hardly ever needed
            rest = g - np.einsum("mr,mrc->mc", pull, A)
            stuck = outward | (floor & (rest <= 0)) | (ceiling & (rest >= 0))
            move = np.where(stuck[:, :, None] | stuck[:, None, :], 0.0, H)
            AH = (A @ move) * active[:, :, None]
            pull = _multipliers(AH @ A.transpose(0, 2, 1), (AH @ g[:, :, None])[:, :, 0], active)
            p = (move @ g[:, :, None])[:, :, 0] - np.einsum("mr,mrc->mc", pull, AH)
            leaving = ((floor & (p < 0)) | (ceiling & (p > 0))) & ~stuck
            inward = (pull < -1e-12) & (pull == pull.min(axis=1, keepdims=True))
            if not (leaving.any() or inward.any()):
                break
            outward = outward | leaving
            active = active & ~inward
        return np.where(leaving, 0.0, p), stuck

    def shortened(
        self, rows: Indices, X: Array, x: Array, p: Array, span: Array, low: Array, high: Array
    ) -> Array:
        """Cut steps `p` where a rule begins, after clipping to the box where that leaves room."""
        slack = np.maximum(self.slack(rows, X), 0.0)
        A = self.A[rows]
        clipped = (np.minimum(np.maximum(x + p * span, low), high) - x) / span
        share = _share(slack, (A @ clipped[:, :, None])[:, :, 0])
        whole = _share(slack, (A @ p[:, :, None])[:, :, 0])
        room = np.where(p > 0, high - x, low - x) / span
        whole = np.minimum(whole, _share(np.abs(room), np.abs(p)))
        use = (share >= 0.05)[:, None]
        return np.where(use, clipped * share[:, None], p * whole[:, None])


def _products(A: Array, X: Array) -> Array:
    """Return ``A x`` of each row; missing cells, which no rule uses, count as 0."""
    return np.asarray((A @ np.nan_to_num(X)[:, :, None])[:, :, 0])


def _multipliers(gram: Array, rise: Array, active: Mask) -> Array:
    """Solve ``gram z = rise`` over the active rules of each row; 0 elsewhere."""
    r = active.shape[1]
    gram = gram * active[:, None, :]
    size = np.maximum(np.einsum("mrr->m", gram), 1e-300)[:, None, None] / r
    regular = gram / size + np.eye(r) * np.where(active, 1e-10, 1.0)[:, :, None]
    wanted = rise[:, :, None] / size
    pull = np.linalg.solve(regular, wanted)
    pull += np.linalg.solve(regular, wanted - gram / size @ pull)  # undo what the ridge did
    return np.asarray(pull[:, :, 0] * active)


def _share(slack: Array, rise: Array) -> Array:
    """Return the largest share of a step, at most 1, whose `rise` stays within `slack`."""
    rising = rise > 1e-13
    share = np.where(rising, slack / np.where(rising, rise, 1.0), np.inf)
    return np.asarray(np.minimum(1.0, share.min(axis=1, initial=np.inf)))
