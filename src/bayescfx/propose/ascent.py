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

_ARMIJO = 1e-4  # share of the promised increase that a step must deliver
_STEEP = 50.0  # curvature, in units of the ranges, that a slope is given before it counts as flat
_SHORTEST = 1e-7  # a shorter step than this share of the first one is a failure
_FIRST = 0.1  # longest move of a coordinate while nothing is known, in units of its range
_LONGEST = 0.5  # longest move of a coordinate later
_NUDGE = 1e-9  # how far beside its kink a coordinate's slope is taken, in units of its range

Evaluate = Callable[[Indices, Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Box:
    """Where the rows of an ascent may go.

    Parameters
    ----------
    columns : Indices of shape (m, c)
        Coordinates that each row may move; a row with fewer than `c` names some that stay.
    low, high : Array of shape (m, c)
        Limits of these coordinates; equal where a coordinate stays.
    span : Array of shape (m, c)
        Lengths by which coordinates are scaled.
    kink : Array of shape (m, c)
        Where the function may have a kink in a coordinate; ``nan`` where it has none.
    A, b : Array of shape (r, d) and (r,)
        Linear rules ``A x <= b``.
    """

    columns: Indices
    low: Array
    high: Array
    span: Array
    kink: Array
    A: Array
    b: Array


def ascend(
    evaluate: Evaluate,
    X: Array,
    box: Box,
    *,
    H: Array | None = None,
    iterations: int = 50,
    tolerance: float = 1e-6,
) -> tuple[Array, Array, Array]:
    """Climb from every row of `X` at once.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(rows, X)`` returns values ``(n,)`` and gradients ``(n, d)`` for trial points
        `X` that belong to the restarts `rows`; ``-inf`` marks a point that can't be used.
    X : Array of shape (m, d)
        Starts, inside the box and the rules.
    box : Box
        Where the rows may go.
    H : Array of shape (m, c, c), optional
        Inverse Hessians of the negated function from an earlier ascent, in units of the ranges;
        a row of zeros means unknown.
    iterations : int
        Most calls of `evaluate`.
    tolerance : float
        A row stops once the increase that its direction promises is smaller.

    Returns
    -------
    X : Array of shape (m, d)
    value : Array of shape (m,)
        Never lower than at the starts (up to the rounding of slopes taken beside kinks).
    H : Array of shape (m, c, c)
        Inverse Hessians at the end; zeros where none was learnt.

    Examples
    --------
    >>> def parabola(rows, X):
    ...     return -np.sum((X - 0.3) ** 2, axis=1), -2 * (X - 0.3)
    >>> zero, one = np.zeros((1, 2)), np.ones((1, 2))
    >>> no_rules = np.empty((0, 2)), np.empty(0)
    >>> box = Box(np.array([[0, 1]]), zero, one, one, np.nan * one, *no_rules)
    >>> X, value, H = ascend(parabola, np.array([[0.9, 0.1]]), box)
    >>> np.allclose(X, 0.3, atol=1e-3)
    True
    """
    climb = _Climb(evaluate, X, box, H)
    for _ in range(iterations - 1):
        if not climb.advance(tolerance):
            break
    H = np.where(climb.first[:, None, None], 0.0, climb.H)
    return climb.X, climb.value, H


class _Climb:
    """The state of all rows."""

    def __init__(self, evaluate: Evaluate, X: Array, box: Box, H: Array | None) -> None:
        self.evaluate, self.box = evaluate, box
        m, c = box.columns.shape
        everyone = np.arange(m)
        self.X = X.copy()
        self.x = X[everyone[:, None], box.columns]
        self.nudge = np.maximum(_NUDGE * box.span, 8 * np.finfo(float).eps * np.abs(self.x))
        self.H = np.tile(np.eye(c), (m, 1, 1))
        self.first: Mask = np.ones(m, dtype=bool)  # nothing is known of the curvature
        if H is not None:
            self.first = np.asarray(~H.any(axis=(1, 2)))
            self.H[~self.first] = H[~self.first]
        self.rules = Halfspaces.of(box.A, box.b, box.columns, box.span, X) if len(box.A) else None
        self.alive = np.ones(m, dtype=bool)
        self.quiet = np.zeros(m, dtype=int)
        self.step, self.gain = np.ones(m), np.zeros(m)
        self.p = np.zeros((m, c))
        self.low, self.high = box.low.copy(), box.high.copy()  # up to the next kink
        self.side = np.where(self.x < box.kink, -1.0, 1.0)
        self.value, self.g = self._call(everyone, self.x)
        self.alive &= np.isfinite(self.value)
        self.fresh = self.alive.copy()

    def _call(self, rows: Indices, x: Array) -> tuple[Array, Array]:
        """Evaluate rows, slopes at kinks taken beside them; the gradient in units of the range."""
        X, columns = self.X[rows], self.box.columns[rows]
        held = x == self.box.kink[rows]
        if held.any():
            x = np.where(held, x + self.side[rows] * self.nudge[rows], x)
            x = np.minimum(np.maximum(x, self.box.low[rows]), self.box.high[rows])
        at = np.arange(len(rows))[:, None]
        X[at, columns] = x
        value, gradient = self.evaluate(rows, X)
        g = gradient[at, columns] * self.box.span[rows]
        bad = ~(np.isfinite(value) & np.isfinite(g).all(axis=1))
        if bad.any():
            value, g = np.where(bad, -np.inf, value), np.where(bad[:, None], 0.0, g)
        return value, g

    def _fence(self, rows: Indices) -> tuple[Array, Array]:
        """Limit each row to its side of the kinks."""
        x, kink, side = self.x[rows], self.box.kink[rows], self.side[rows]
        low, high = self.box.low[rows], self.box.high[rows]
        held = x == kink
        above = (x > kink) | (held & (side > 0))
        below = (x < kink) | (held & (side < 0))
        low = np.where(above, np.maximum(low, kink), low)
        high = np.where(below, np.minimum(high, kink), high)
        self.low[rows], self.high[rows] = low, high
        return low, high

    def advance(self, tolerance: float) -> bool:
        """Make one call for all living rows; return whether any is left."""
        fresh = np.flatnonzero(self.fresh & self.alive)
        if fresh.size:
            self._aim(fresh, tolerance)
        rows = np.flatnonzero(self.alive)
        if not rows.size:
            return False
        low, high, span = self.low[rows], self.high[rows], self.box.span[rows]
        x = self.x[rows] + self.step[rows, None] * self.p[rows] * span
        near = 1e-12 * span
        x = np.where(x - low <= near, low, np.where(high - x <= near, high, x))
        value, g = self._call(rows, x)
        slack = 1e-9 * (1.0 + np.abs(self.value[rows]))
        wanted = _ARMIJO * self.step[rows] * self.gain[rows] - slack
        good = value >= self.value[rows] + wanted
        if good.all():
            self._accept(rows, x, value, g)
        else:
            self._accept(rows[good], x[good], value[good], g[good])
            self._shorten(rows[~good], value[~good])
        return True

    def _aim(self, rows: Indices, tolerance: float) -> None:
        """Choose a new direction for `rows`; rows with nothing left to gain stop."""
        low, high = self._fence(rows)
        x, g = self.x[rows], self.g[rows]
        if self.rules is None:
            stuck = ((x <= low) & (g <= 0)) | ((x >= high) & (g >= 0))
            slope = np.where(stuck, 0.0, g)
            p = np.where(stuck, 0.0, (self.H[rows] @ slope[:, :, None])[:, :, 0])
        else:
            p, stuck = self.rules.along(rows, self.X[rows], x, g, self.H[rows], low, high)
            slope = np.where(stuck, 0.0, g)
        gain = (slope * p).sum(axis=1)
        weak = gain < 1e-8 * np.sqrt((slope * slope).sum(axis=1) * (p * p).sum(axis=1))
        reach = np.maximum(np.abs(p).max(axis=1), 1e-300)
        scale = np.where(self.first[rows], _FIRST / reach, np.minimum(1.0, _LONGEST / reach))
        p = p * scale[:, None]
        calm = weak | (gain * scale <= tolerance)
        doubtful = calm & ~self.first[rows] & ((slope * slope).sum(axis=1) > _STEEP * tolerance)
        if doubtful.any():  # steep, yet nothing promised: the curvature learnt is wrong
            self._forget(rows[doubtful])
            self._aim(rows, tolerance)
            return
        if self.rules is not None:
            span = self.box.span[rows]
            p = self.rules.shortened(rows, self.X[rows], x, p, span, low, high)
        self.p[rows], self.gain[rows], self.step[rows] = p, (slope * p).sum(axis=1), 1.0
        self.fresh[rows] = False
        held = x == self.box.kink[rows]
        self.side[rows] = np.where(held & stuck, -self.side[rows], self.side[rows])
        self._settle(rows, calm, held.any(axis=1))

    def _settle(self, rows: Indices, calm: Mask, held: Mask) -> None:
        """Stop rows that are calm on both sides of their kinks; look at the other side first."""
        self.quiet[rows] = np.where(calm, self.quiet[rows] + 1, 0)
        self.p[rows[calm]] = 0.0
        self.gain[rows[calm]] = 0.0
        self.alive[rows[calm & ((self.quiet[rows] > 1) | ~held)]] = False

    def _accept(self, rows: Indices, x: Array, value: Array, g: Array) -> None:
        """Move `rows` and learn the curvature of the step."""
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
        failed = rows[self.step[rows] < _SHORTEST]
        self.alive[failed[self.first[failed]]] = False
        self._forget(failed[~self.first[failed]])

    def _forget(self, rows: Indices) -> None:
        """Start again with the steepest ascent."""
        self.H[rows] = np.eye(self.H.shape[1])
        self.first[rows] = True
        self.fresh[rows] = True
