"""Batched projected quasi-Newton ascent: every restart advances in the same function call.

Rows maximise the same function from different starts. Each keeps its own inverse Hessian (BFGS),
its own place in a backtracking line search and its own box; one call of the function serves all of
them. Three things differ from a textbook L-BFGS-B:

* *Kinks.* A cost of moving has a kink where a coordinate equals the query's value. A coordinate
  never jumps across its kink: it stops there, the slope is taken on one side and then on the other
  (as in OWL-QN), and it leaves only towards a side where the function rises.
* *Linear rules.* With ``A x <= b`` the direction is projected on the active rules in the metric of
  the inverse Hessian, and the step is cut where the next rule begins.
* *Holes.* A trial of value ``-inf`` (outside a rule, or no chance of improvement) shortens the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask

_ARMIJO = 1e-4  # share of the promised increase that a step must deliver
_SHORTEST = 1e-7  # a shorter step than this share of the first one is a failure
_LONGEST = 0.5  # longest first move of a coordinate, in units of its range
_NUDGE = 1e-9  # how far beside its kink a coordinate's slope is taken, in units of its range
_ROUNDS = 12  # most changes of the active set per direction
_MARGIN = 1e-9  # distance kept from linear rules, in units of the ranges
_TOUCH = 1e-7  # a rule with less slack than this (in its own norm) is active

Evaluate = Callable[[Indices, Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Box:
    """Where the rows of an ascent may go.

    Parameters
    ----------
    low, high : Array of shape (m, d)
        Limits of each row's coordinates; equal where a coordinate stays.
    span : Array of shape (d,)
        Length by which a coordinate is scaled.
    kink : Array of shape (d,)
        Where the function may have a kink in a coordinate; ``nan`` where it has none.
    A, b : Array of shape (r, d) and (r,)
        Linear rules ``A x <= b``.
    """

    low: Array
    high: Array
    span: Array
    kink: Array
    A: Array
    b: Array


def ascend(
    evaluate: Evaluate, X: Array, box: Box, *, iterations: int = 50, tolerance: float = 1e-6
) -> tuple[Array, Array]:
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
    iterations : int
        Most calls of `evaluate`.
    tolerance : float
        A row stops once the increase that its direction promises is smaller.

    Returns
    -------
    X : Array of shape (m, d)
    value : Array of shape (m,)
        Never lower than at the starts (up to the rounding of slopes taken beside kinks).

    Examples
    --------
    >>> def parabola(rows, X):
    ...     return -np.sum((X - 0.3) ** 2, axis=1), -2 * (X - 0.3)
    >>> one, none = np.ones(2), np.full(2, np.nan)
    >>> box = Box(np.zeros((1, 2)), np.ones((1, 2)), one, none, np.empty((0, 2)), np.empty(0))
    >>> X, value = ascend(parabola, np.array([[0.9, 0.1]]), box)
    >>> np.allclose(X, 0.3, atol=1e-3)
    True
    """
    moving = np.flatnonzero((box.high > box.low).any(axis=0))
    if not (len(X) and moving.size):
        return X.copy(), evaluate(np.arange(len(X)), X)[0] if len(X) else np.empty(0)
    climb = _Climb(evaluate, X, box, moving)
    for _ in range(iterations):
        if not climb.advance(tolerance):
            break
    return climb.X, climb.value


class _Climb:
    """The state of all rows; coordinates that move in no row are left out of the algebra."""

    def __init__(self, evaluate: Evaluate, X: Array, box: Box, moving: Indices) -> None:
        self.evaluate, self.moving = evaluate, moving
        self.X = X.copy()
        self.span = box.span[moving]
        self.low, self.high = box.low[:, moving], box.high[:, moving]
        self.kink = np.broadcast_to(box.kink[moving], self.low.shape)
        rules = (box.A[:, moving] != 0).any(axis=1)
        norm = np.maximum(np.linalg.norm(box.A[rules][:, moving] * self.span, axis=1), 1e-300)
        self.A_all = box.A[rules] / norm[:, None]
        # A hair inside the rules, so that rounding errors never add up to a violation.
        self.b = np.maximum(box.b[rules] / norm - _MARGIN, X @ self.A_all.T)
        self.A = self.A_all[:, moving] * self.span
        m, c = self.low.shape
        self.x = self.X[:, moving]
        self.nudge = np.maximum(_NUDGE * self.span, 8 * np.finfo(float).eps * np.abs(self.x))
        self.H = np.tile(np.eye(c), (m, 1, 1))
        self.first = np.ones(m, dtype=bool)  # H is still the identity
        self.alive = np.ones(m, dtype=bool)
        self.quiet = np.zeros(m, dtype=int)
        self.step = np.ones(m)
        self.p = np.zeros((m, c))
        self.gain = np.zeros(m)
        self.side = np.zeros((m, c))
        everyone = np.arange(m)
        self.value, self.g = self._call(everyone, self.x, self.side)
        self.side = np.where(self.g >= 0, 1.0, -1.0)
        if (self.x == self.kink).any():
            self.value, self.g = self._call(everyone, self.x, self.side)
        self.alive &= np.isfinite(self.value)
        self.fresh = self.alive.copy()

    def _call(self, rows: Indices, x: Array, side: Array) -> tuple[Array, Array]:
        """Evaluate rows, slopes at kinks taken on `side`; the gradient in units of the range."""
        X = self.X[rows]
        beside = np.where(x == self.kink[rows], x + side * self.nudge[rows], x)
        X[:, self.moving] = np.clip(beside, self.low[rows], self.high[rows])
        value, gradient = self.evaluate(rows, X)
        g = gradient[:, self.moving] * self.span
        bad = ~(np.isfinite(value) & np.isfinite(g).all(axis=1))
        return np.where(bad, -np.inf, value), np.where(bad[:, None], 0.0, g)

    def _limits(self, rows: Indices) -> tuple[Array, Array]:
        """Box of each row up to the next kink."""
        x, kink, side = self.x[rows], self.kink[rows], self.side[rows]
        above = (x > kink) | ((x == kink) & (side > 0))
        below = (x < kink) | ((x == kink) & (side < 0))
        low = np.where(above, np.maximum(self.low[rows], kink), self.low[rows])
        high = np.where(below, np.minimum(self.high[rows], kink), self.high[rows])
        return low, high

    def advance(self, tolerance: float) -> bool:
        """Make one call for all living rows; return whether any is left."""
        fresh = np.flatnonzero(self.fresh & self.alive)
        if fresh.size:
            self._aim(fresh, tolerance)
        rows = np.flatnonzero(self.alive)
        if not rows.size:
            return False
        low, high = self._limits(rows)
        x = np.clip(self.x[rows] + self.step[rows, None] * self.p[rows] * self.span, low, high)
        near = 1e-12 * self.span
        x = np.where(x - low <= near, low, np.where(high - x <= near, high, x))
        value, g = self._call(rows, x, self.side[rows])
        slack = 1e-9 * (1.0 + np.abs(self.value[rows]))
        wanted = _ARMIJO * self.step[rows] * self.gain[rows] - slack
        good = value >= self.value[rows] + wanted
        self._accept(rows[good], x[good], value[good], g[good])
        self._shorten(rows[~good], value[~good])
        return True

    def _aim(self, rows: Indices, tolerance: float) -> None:
        """Choose a new direction for `rows`; rows with nothing left to gain stop."""
        low, high = self._limits(rows)
        x, g = self.x[rows], self.g[rows]
        if len(self.A):
            p, stuck = self._along_rules(rows, low, high)
            slope = np.where(stuck, 0.0, g)
        else:
            stuck = ((x <= low) & (g <= 0)) | ((x >= high) & (g >= 0)) | (low >= high)
            slope = np.where(stuck, 0.0, g)
            p = np.where(stuck, 0.0, np.einsum("mij,mj->mi", self.H[rows], slope))
        gain = np.einsum("mi,mi->m", slope, p)
        steep = np.einsum("mi,mi->m", slope, slope)
        weak = gain < 1e-8 * np.sqrt(steep * np.einsum("mi,mi->m", p, p))
        longest = np.abs(p).max(axis=1)
        limit = np.where(self.first[rows], 0.1, _LONGEST)
        scale = np.where(self.first[rows], limit / np.maximum(longest, 1e-300), 1.0)
        scale = np.minimum(scale, limit / np.maximum(longest, 1e-300))
        p *= scale[:, None]
        calm = weak | (gain * scale <= tolerance)
        if len(self.A):
            p *= self._room(x, p, rows, low, high)[:, None]
        gain = np.einsum("mi,mi->m", slope, p)
        self.p[rows], self.gain[rows], self.step[rows] = p, gain, 1.0
        self.fresh[rows] = False
        held = x == self.kink[rows]
        self.side[rows] = np.where(held & stuck, -self.side[rows], self.side[rows])
        self._settle(rows, calm, held.any(axis=1))

    def _settle(self, rows: Indices, calm: Mask, held: Mask) -> None:
        """Stop rows that are calm on both sides of their kinks; look at the other side first."""
        self.quiet[rows] = np.where(calm, self.quiet[rows] + 1, 0)
        self.p[rows[calm]] = 0.0
        self.gain[rows[calm]] = 0.0
        self.alive[rows[calm & ((self.quiet[rows] > 1) | ~held)]] = False

    def _along_rules(self, rows: Indices, low: Array, high: Array) -> tuple[Array, Mask]:
        """Directions along the active rules, in the metric of `H`, and which coordinates stay.

        An active-set method: each round drops the rule that pulls inwards most and holds the
        coordinates that would leave their box.
        """
        x, g, H = self.x[rows], self.g[rows], self.H[rows]
        floor, ceiling = x <= low, x >= high
        active = self._slack(rows) <= _TOUCH
        pull = np.zeros(active.shape)
        outward = low >= high
        for _ in range(_ROUNDS):
            rest = g - pull @ self.A
            stuck = outward | (floor & (rest <= 0)) | (ceiling & (rest >= 0))
            move = np.where(stuck[:, :, None] | stuck[:, None, :], 0.0, H)
            AH = np.einsum("ri,mij->mrj", self.A, move) * active[:, :, None]
            pull = _multipliers(AH @ self.A.T, np.einsum("mrj,mj->mr", AH, g), active)
            p = np.einsum("mij,mj->mi", move, g) - np.einsum("mr,mrj->mj", pull, AH)
            leaving = ((floor & (p < 0)) | (ceiling & (p > 0))) & ~stuck
            worst = pull == pull.min(axis=1, keepdims=True)
            inward = worst & (pull < -1e-12)
            if not (leaving.any() or inward.any()):
                break
            outward = outward | leaving
            active = active & ~inward
        return np.where(leaving, 0.0, p), stuck

    def _slack(self, rows: Indices) -> Array:
        return np.asarray(self.b[rows] - self.X[rows] @ self.A_all.T)

    def _room(self, x: Array, p: Array, rows: Indices, low: Array, high: Array) -> Array:
        """Share of the step `p` that fits into the linear rules; `p` is clipped if that helps."""
        slack = np.maximum(self._slack(rows), 0.0)
        clipped = (np.clip(x + p * self.span, low, high) - x) / self.span
        share = _share(slack, clipped @ self.A.T)
        whole = _share(slack, p @ self.A.T)
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.where(p > 0, (high - x) / self.span / p, np.inf)
            down = np.where(p < 0, (low - x) / self.span / p, np.inf)
        whole = np.minimum(whole, np.minimum(up, down).min(axis=1))
        use = share >= 0.05
        p[use] = clipped[use]
        return np.where(use, share, whole)

    def _accept(self, rows: Indices, x: Array, value: Array, g: Array) -> None:
        """Move `rows` and learn the curvature of the step."""
        if not rows.size:
            return
        s = (x - self.x[rows]) / self.span
        # A coordinate that stayed says nothing of curvature; at a kink its slope may have jumped.
        self._learn(rows, s, np.where(s == 0, 0.0, self.g[rows] - g))
        self.x[rows], self.value[rows], self.g[rows] = x, value, g
        self.X[np.ix_(rows, self.moving)] = x
        kink = self.kink[rows]
        self.side[rows] = np.where(x > kink, 1.0, np.where(x < kink, -1.0, self.side[rows]))
        self.fresh[rows] = True

    def _learn(self, rows: Indices, s: Array, y: Array) -> None:
        """BFGS update of the inverse Hessian of the negated function."""
        sy = np.einsum("mi,mi->m", s, y)
        yy = np.einsum("mi,mi->m", y, y)
        ss = np.einsum("mi,mi->m", s, s)
        sound = sy > 1e-10 * np.sqrt(ss * yy)
        convex = ~sound & (ss > 0)
        self.H[rows[convex]] *= 4.0  # the slope grows along the step: be bolder
        self.first[rows[convex]] = False
        rows, s, y, sy, yy = rows[sound], s[sound], y[sound], sy[sound], yy[sound]
        if not rows.size:
            return
        new = self.first[rows]
        H = self.H[rows]
        H[new] *= (sy[new] / yy[new])[:, None, None]
        Hy = np.einsum("mij,mj->mi", H, y)
        rate = (1.0 + np.einsum("mi,mi->m", y, Hy) / sy) / sy
        cross = Hy[:, :, None] * (s / sy[:, None])[:, None, :]
        H += rate[:, None, None] * s[:, :, None] * s[:, None, :] - cross - cross.transpose(0, 2, 1)
        self.H[rows] = H
        self.first[rows] = False

    def _shorten(self, rows: Indices, value: Array) -> None:
        """Backtrack by the parabola through the two values and the slope."""
        if not rows.size:
            return
        promised = self.step[rows] * self.gain[rows]
        missing = promised - (value - self.value[rows])
        with np.errstate(divide="ignore", invalid="ignore"):
            shrink = np.where(missing > 0, promised / (2.0 * missing), 0.5)
        shrink = np.clip(np.nan_to_num(shrink, nan=0.25), 0.1, 0.5)
        self.step[rows] *= np.where(np.isfinite(value), shrink, 0.25)
        failed = rows[self.step[rows] < _SHORTEST]
        self.alive[failed[self.first[failed]]] = False
        again = failed[~self.first[failed]]
        self.H[again] = np.eye(self.H.shape[1])
        self.first[again] = True
        self.fresh[again] = True


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
    """Largest share of a step, at most 1, whose `rise` stays within `slack`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(rise > 1e-13, slack / rise, np.inf)
    return np.minimum(1.0, share.min(axis=1, initial=np.inf))
