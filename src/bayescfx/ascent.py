"""Uphill from many starts at once, inside boxes and under linear rules.

Projected quasi-Newton: all rows maximise the same function from different starts. Each has its own
inverse Hessian (BFGS), backtracking line search and box; one call of the function serves all of
them. Three things differ from a textbook L-BFGS-B:

* *Kinks.* A cost of moving has a kink where a coordinate equals the query's value. A coordinate
  never jumps across its kink: it stops there, the slope is taken on one side and then on the other
  (as in OWL-QN), and it leaves only towards a side where the function rises.
* *Linear rules.* With ``A x <= b`` the direction is projected onto the rules in the metric of
  the inverse Hessian.
* *Holes.* A trial of value ``-inf`` (outside a rule, or no chance to improve) shortens the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.space.linear import project_linear


@dataclass(frozen=True)
class AscentTuning:
    """Numbers of the ascent, in units of the coordinates' ranges where they are lengths.

    Evidence: `python -m benchmarks.tuning --only ascent` (36 proposals, and 12 fits of the
    surrogate, 2026-11-18). Half and double of the two step lengths change the evaluations of a fit
    by +2 and -1 %, and by +1 and +4 %; of the others, nothing. Those of the line search are
    textbook values.
    """

    first_step: float = 0.1  # the longest move of a coordinate while the curvature is unknown
    longest_step: float = 0.5  # and afterwards
    armijo: float = 1e-4  # share of the promised rise that a step must deliver
    least_shrink: float = 0.1  # backtracking multiplies a step by at least this ...
    most_shrink: float = 0.5  # ... and by at most this
    changes: int = 12  # limit: of the coordinates held at their limits, for one direction
    # Share of a step clipped to the box that linear rules must leave: else it would not move.
    least_share: float = 0.05

    # Numerical.
    nudge: float = 1e-9  # how far beside a kink the slope is taken
    edge: float = 1e-12  # a trial this close to a limit is at the limit
    weakest: float = 1e-8  # least cosine of the angle between slope and direction
    rounding: float = 1e-9  # a loss of this share of the value counts as rounding
    curvature: float = 1e-10  # least cosine of the angle between step and change of slope
    shortest: float = 1e-7  # share of a step below which a line search has failed
    inside: float = 1e-9  # distance to linear rules, so that rounding never breaks one


TUNING = AscentTuning()
TINY = 1e-300  # instead of a division by zero


@dataclass(frozen=True, eq=False)
class AscentBox:
    """Where the `m` rows of an ascent may go, in `c` coordinates each."""

    columns: Indices  # (m, c) coordinates a row may move; a row with fewer repeats fixed ones
    low: Array  # (m, c) limits of these coordinates ...
    high: Array  # (m, c) ... equal where a coordinate is fixed
    span: Array  # (m, c) lengths by which coordinates are scaled
    kink: Array  # (m, c) where the function may have a kink in a coordinate; nan where it has none
    A: Array  # (r, d) linear rules A x <= b
    b: Array  # (r,)


def ascend(
    evaluate: Callable[[Array], tuple[Array, Array]],
    X: Array,
    box: AscentBox,
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
        places = (climb.at, climb.columns)
        points = climb.X.copy()
        points[places] = climb.beside_kinks(x)
        value, gradient = evaluate(points)
        climb.receive(x, value, gradient[places] * climb.span)
    return climb.ends()


class _Climb:
    """The state of the `m` rows that still climb; directions and slopes are in units of the ranges.

    Attributes
    ----------
    rows : array of shape (m,)
        Positions of the rows among all.
    x, g, value : arrays of shape (m, c), (m, c) and (m,)
        Coordinates, slopes and values of the rows.
    p, step, gain : arrays of shape (m, c), (m,) and (m,)
        Directions, the shares of them that are tried, and the rises that they promise.
    H : array of shape (m, c, c)
        Inverse Hessians of the negated function.
    is_first, is_alive, is_fresh : masks of shape (m,)
        Whether the curvature is unknown, the row still climbs, it needs a new direction.
    quiet : array of shape (m,)
        Directions in turn that promised nothing.
    floor, ceiling : arrays of shape (m, c)
        Limits; `low` and `high` are those up to the next kink, `bottom` and `top` those above and
        below a kink.
    side : array of shape (m, c)
        The side of the kink on which a coordinate is, or on which its slope is taken.
    """

    #: Attributes with one entry per row that still climbs.
    PER_ROW = (
        *("rows", "X", "columns", "floor", "ceiling", "span", "kink", "x", "nudge", "H"),
        *("is_first", "is_alive", "is_fresh", "quiet", "step", "gain", "p", "g", "low", "high"),
        *("bottom", "top", "side", "value"),
    )

    def __init__(self, X: Array, box: AscentBox, H: Array | None, doubt: float) -> None:
        m, c = box.columns.shape
        self.doubt = doubt
        self.rows = np.arange(m)
        self.at = self.rows[:, None]
        self.X = X.copy()
        self.columns = box.columns
        self.floor = box.low
        self.ceiling = box.high
        self.span = box.span
        self.kink = box.kink
        self.x = X[self.at, box.columns]
        rounding = 8 * np.finfo(float).eps * np.abs(self.x)
        self.nudge = np.maximum(TUNING.nudge * box.span, rounding)
        self.H = np.tile(np.eye(c), (m, 1, 1))
        self.is_first: Mask = np.ones(m, dtype=bool)
        if H is not None:
            self.is_first = np.asarray(~H.any(axis=(1, 2)))
            self.H[~self.is_first] = H[~self.is_first]
        self.rules = _Halfspaces(box, X) if len(box.A) else None
        self.is_alive = np.ones(m, dtype=bool)
        self.is_fresh = np.ones(m, dtype=bool)
        self.quiet = np.zeros(m, dtype=int)
        self.step = np.ones(m)
        self.gain = np.zeros(m)
        self.p = np.zeros((m, c))
        self.g = np.zeros((m, c))
        self.low = box.low
        self.high = box.high
        self.bottom = np.fmax(box.low, box.kink)
        self.top = np.fmin(box.high, box.kink)
        self.side = np.where(self.x < box.kink, -1.0, 1.0)
        self.value = np.full(m, -np.inf)
        self._end_points = self.X.copy()
        self._end_values = self.value.copy()
        self._end_hessians = self.H.copy()

    def ends(self) -> tuple[Array, Array, Array]:
        """Return points, values and inverse Hessians of all rows; zeros where unknown."""
        self._end_points[self.rows] = self.X
        self._end_values[self.rows] = self.value
        self._end_hessians[self.rows] = np.where(self.is_first[:, None, None], 0.0, self.H)
        return self._end_points, self._end_values, self._end_hessians

    def beside_kinks(self, x: Array) -> Array:
        """Return trials ``(m, c)`` moved off their kinks, to the side where a slope is taken."""
        held = x == self.kink
        if not held.any():
            return x
        beside = np.where(held, x + self.side * self.nudge, x)
        return np.minimum(np.maximum(beside, self.floor), self.ceiling)

    def trials(self, tolerance: float) -> Array:
        """Return where each row looks next; rows that have ended are taken out."""
        if self.is_fresh.any():
            self._aim(tolerance)
        if not self.is_alive.all():
            self.ends()
            alive = self.is_alive
            for name in self.PER_ROW:
                setattr(self, name, getattr(self, name)[alive])
            self.at = np.arange(len(self.rows))[:, None]
        near = TUNING.edge * self.span
        x = self.x + self.step[:, None] * self.p * self.span
        x_below = np.where(self.high - x <= near, self.high, x)
        return np.where(x - self.low <= near, self.low, x_below)

    def _aim(self, tolerance: float) -> None:
        """Choose new directions for fresh rows; rows with nothing left to gain stop."""
        above = self.side > 0
        low = np.where(above, self.bottom, self.floor)
        high = np.where(above, self.ceiling, self.top)
        p, stuck = self._directions(low, high)
        slope = np.where(stuck, 0.0, self.g)
        gain = (slope * p).sum(axis=1)
        steep = (slope * slope).sum(axis=1)
        weak = gain < TUNING.weakest * np.sqrt(steep * (p * p).sum(axis=1))
        calm = weak | (gain <= tolerance)
        doubtful = self.is_fresh & calm & ~self.is_first & (steep > self.doubt * tolerance)
        if doubtful.any():  # steep, yet nothing promised: the learnt curvature is wrong
            self._forget(doubtful)
            self._aim(tolerance)
            return
        if self.rules is not None:
            p = self.rules.shortened(self, p, low, high)
        self._take_directions(p, calm & self.is_fresh, slope, stuck, low, high)

    def _directions(self, low: Array, high: Array) -> tuple[Array, Mask]:
        """Return steps ``(m, c)``, and which coordinates can't move the way they should."""
        if self.rules is not None:
            return self.rules.along(self, low, high)
        stuck = ((self.x <= low) & (self.g <= 0)) | ((self.x >= high) & (self.g >= 0))
        slope = np.where(stuck, 0.0, self.g)
        p = np.where(stuck, 0.0, (self.H @ slope[:, :, None])[:, :, 0])
        return p * self.shrinkage(p)[:, None], stuck

    def shrinkage(self, p: Array) -> Array:
        """Return the factors ``(m,)`` that keep steps within their longest allowed length."""
        reach = np.maximum(np.abs(p).max(axis=1), TINY)
        later = np.minimum(1.0, TUNING.longest_step / reach)
        return np.asarray(np.where(self.is_first, TUNING.first_step / reach, later))

    def _take_directions(
        self, p: Array, calm: Mask, slope: Array, stuck: Mask, low: Array, high: Array
    ) -> None:
        """Store new directions of fresh rows; `calm` rows expect nothing from theirs."""
        fresh = self.is_fresh
        every = fresh[:, None]
        self.low = np.where(every, low, self.low)
        self.high = np.where(every, high, self.high)
        p = np.where(calm[:, None], 0.0, p)
        self.p = np.where(every, p, self.p)
        self.gain = np.where(fresh, (slope * p).sum(axis=1), self.gain)
        self.step = np.where(fresh, 1.0, self.step)
        held = self.x == self.kink
        self.side = np.where(every & held & stuck, -self.side, self.side)
        # A row that is calm on one side of a kink looks at the other side before it stops.
        self.quiet = np.where(fresh, (self.quiet + 1) * calm, self.quiet)
        self.is_alive &= ~(calm & ((self.quiet > 1) | ~held.any(axis=1)))
        self.is_fresh = np.zeros(len(p), dtype=bool)

    def receive(self, x: Array, value: Array, g: Array) -> None:
        """Move rows whose trial `x` delivers what was promised; shorten the others' steps."""
        bad = ~(np.isfinite(value) & np.isfinite(g).all(axis=1))
        if bad.any():
            value = np.where(bad, -np.inf, value)
            g = np.where(bad[:, None], 0.0, g)
        slack = TUNING.rounding * (1.0 + np.abs(self.value))
        required = TUNING.armijo * self.step * self.gain - slack
        good = value >= self.value + required
        if not good.all():
            self._shorten(~good, value)
        if not good.any():
            return
        every = good[:, None]
        s = np.where(every, (x - self.x) / self.span, 0.0)
        # A coordinate that stayed tells no curvature; at a kink its slope may have jumped.
        self._learn(s, np.where(s == 0, 0.0, self.g - g))
        self.x = np.where(every, x, self.x)
        self.g = np.where(every, g, self.g)
        self.value = np.where(good, value, self.value)
        self.X[self.at, self.columns] = self.x
        below_kink = np.where(x < self.kink, -1.0, self.side)
        side = np.where(x > self.kink, 1.0, below_kink)
        self.side = np.where(every, side, self.side)
        self.is_fresh = self.is_fresh | good
        self.is_alive = np.where(good, np.isfinite(value), self.is_alive)

    def _learn(self, s: Array, y: Array) -> None:
        """BFGS update of the inverse Hessian of the negated function, for rows that moved."""
        sy = (s * y).sum(axis=1)
        yy = (y * y).sum(axis=1)
        ss = (s * s).sum(axis=1)
        sound = (sy > TUNING.curvature * np.sqrt(ss * yy)) & (yy > 0)
        if not sound.any():
            return
        sy = np.where(sound, sy, 1.0)
        yy = np.where(sound, yy, 1.0)
        new = self.is_first & sound
        H = self.H * np.where(new, sy / yy, 1.0)[:, None, None]
        Hy = (H @ y[:, :, None])[:, :, 0]
        half = 0.5 * (1.0 + (y * Hy).sum(axis=1) / sy)[:, None] * s - Hy
        cross = half[:, :, None] * (s / sy[:, None])[:, None, :]
        H += cross + cross.transpose(0, 2, 1)
        self.H = np.where(sound[:, None, None], H, self.H)
        self.is_first = self.is_first & ~sound

    def _shorten(self, rows: Mask, value: Array) -> None:
        """Backtrack by the parabola through the two values and the slope."""
        promised = self.step * self.gain
        with np.errstate(invalid="ignore"):
            missing = promised - (value - self.value)  # positive: the step was refused
        vertex = promised / (2.0 * np.maximum(missing, TINY))
        shrink = np.clip(vertex, TUNING.least_shrink, TUNING.most_shrink)
        self.step = np.where(rows, self.step * shrink, self.step)
        failed = rows & (self.step < TUNING.shortest)
        if failed.any():
            self.is_alive &= ~(failed & self.is_first)
            self._forget(failed & ~self.is_first)

    def _forget(self, rows: Mask) -> None:
        """Start again with the steepest ascent."""
        self.H[rows] = np.eye(self.H.shape[1])
        self.is_first = self.is_first | rows
        self.is_fresh = self.is_fresh | rows


class _Halfspaces:
    """Linear rules ``A x <= b`` in units of the ranges, for rows that move in their own columns."""

    def __init__(self, box: AscentBox, X: Array) -> None:
        moving = box.A.T[box.columns].transpose(0, 2, 1) * box.span[:, None, :]
        norm = np.sqrt((moving * moving).sum(axis=2))
        norm = np.where(norm > 0, norm, 1.0)
        self.A = moving / norm[:, :, None]  # (m, r, c) over the columns that each row may move
        self.whole = box.A / norm[:, :, None]  # (m, r, d) over all coordinates, in their own units
        bound = box.b / norm - TUNING.inside
        self.b = np.maximum(bound, _products(self.whole, X))  # (m, r)

    def slack(self, climb: _Climb) -> Array:
        """Return the room ``(n, r)`` that each rule leaves to each row."""
        room = self.b[climb.rows] - _products(self.whole[climb.rows], climb.X)
        return np.maximum(room, 0.0)

    def along(self, climb: _Climb, low: Array, high: Array) -> tuple[Array, Mask]:
        """Return steps within the rules, in the metric of the Hessian, and which coordinates stay.

        Coordinates that would leave their limits are held and taken out of the metric.
        """
        A = self.A[climb.rows]
        slack = self.slack(climb)
        g = climb.g
        at_low = climb.x <= low
        at_high = climb.x >= high
        held = low >= high
        push = np.zeros(g.shape)  # of the rules, against the slope
        for _ in range(TUNING.changes):
            rest = g - push
            stuck = held | (at_low & (rest <= 0)) | (at_high & (rest >= 0))
            metric = np.where(stuck[:, :, None] | stuck[:, None, :], 0.0, climb.H)
            free_step = (metric @ g[:, :, None])[:, :, 0]
            factor = climb.shrinkage(free_step)
            metric = metric * factor[:, None, None]
            p, multipliers = project_linear(free_step * factor[:, None], A, slack, metric)
            push = (multipliers[:, None, :] @ A)[:, 0, :]
            leaving = ((at_low & (p < 0)) | (at_high & (p > 0))) & ~stuck
            if not leaving.any():
                break
            held = held | leaving
        return np.where(leaving, 0.0, p), stuck

    def shortened(self, climb: _Climb, p: Array, low: Array, high: Array) -> Array:
        """Return steps cut where a rule begins, after clipping to the box if that leaves room."""
        slack = self.slack(climb)
        A = self.A[climb.rows]
        x = climb.x
        span = climb.span
        clipped = (np.minimum(np.maximum(x + p * span, low), high) - x) / span
        share = _share(slack, (A @ clipped[:, :, None])[:, :, 0])
        whole = _share(slack, (A @ p[:, :, None])[:, :, 0])
        room = np.where(p > 0, high - x, low - x) / span
        whole = np.minimum(whole, _share(np.abs(room), np.abs(p)))
        use = (share >= TUNING.least_share)[:, None]
        return np.where(use, clipped * share[:, None], p * whole[:, None])


def _products(A: Array, X: Array) -> Array:
    """Return ``A x`` of each row; missing cells, which no rule uses, count as 0."""
    return np.asarray((A @ np.nan_to_num(X)[:, :, None])[:, :, 0])


def _share(slack: Array, rise: Array) -> Array:
    """Return the largest share of a step, at most 1, whose `rise` stays within `slack`."""
    rising = rise > 1e-13  # numerical: anything less is rounding
    share = np.where(rising, slack / np.where(rising, rise, 1.0), np.inf)
    return np.asarray(np.minimum(1.0, share.min(axis=1, initial=np.inf)))
