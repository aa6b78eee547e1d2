"""A `Region`: the space seen from one query.

The contract between space, propose and search. Rows are codes of shape (n, d); see `Grid` for
limits and distance. Rules are checked on raw values, and only for rows that pass the cheap checks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.space.axis import MOST_CHOICES, Axis
from bayescfx.space.limits import Limits
from bayescfx.space.near import NearAll, NearHere
from bayescfx.space.rules import Cost, Derived, FunctionRule, TextRule
from bayescfx.space.schema import Own, Rows, Schema

Test: TypeAlias = Callable[[Array], Mask]


@dataclass(frozen=True, eq=False, repr=False)
class Region:
    """Where a counterfactual of one query may lie; made by ``space.around(query)``.

    Parameters
    ----------
    axes : tuple of Axis
        Allowed codes per feature.
    scale : ndarray of shape (d,)
        One unit of change for the distance.
    max_changes : int or None
        The l0 bound.
    schema : Schema
        The user's table.
    own : Own
        The query's own cells.
    data : ndarray of shape (m, d)
        Background rows, as codes.
    cost : Cost
        What moving costs; its weight is not part of `distance`.
    rules : tuple of TextRule or FunctionRule
    derived : tuple of Derived
    blocks : tuple of tuple of int
        Features that move together.
    bounds : tuple of (position, Limits)
        What the user said of derived features.
    near : NearHere or NearAll, optional
        The data to stay close to.
    """

    axes: tuple[Axis, ...]
    scale: Array
    max_changes: int | None
    schema: Schema
    own: Own
    data: Array
    cost: Cost
    rules: tuple[TextRule | FunctionRule, ...] = ()
    derived: tuple[Derived, ...] = ()
    blocks: tuple[tuple[int, ...], ...] = ()
    bounds: tuple[tuple[int, Limits], ...] = ()
    near: NearHere | NearAll | None = None

    def __repr__(self) -> str:
        return f"Region({len(self.query)} features, {len(self.free)} free, size {self.size:g})"

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Feature names in the order of the codes."""
        return self.schema.names

    @property
    def norm(self) -> float:
        """The p of the distance; 0 counts changes."""
        return self.cost.norm

    @cached_property
    def weight(self) -> Array:
        """What a unit of change costs, shape (d,)."""
        return np.array([float(self.cost.per_feature.get(name, 1.0)) for name in self.names])

    @cached_property
    def recomputed(self) -> Mask:
        """Features that are recomputed and never count as changes, shape (d,)."""
        derived = {rule.name for rule in self.derived}
        return np.array([name in derived for name in self.names])

    # ── limits, grid, levels, the l0 bound and the distance ──

    @cached_property
    def query(self) -> Array:
        """The query's codes, shape (d,)."""
        return np.array([axis.query for axis in self.axes])

    @cached_property
    def free(self) -> Indices:
        """Positions of the features that may move."""
        return np.flatnonzero([axis.free for axis in self.axes])

    @cached_property
    def low(self) -> Array:
        """Lowest allowed code per feature; the query's where it can't move."""
        return self._ends(0)

    @cached_property
    def high(self) -> Array:
        """Highest allowed code per feature; the query's where it can't move."""
        return self._ends(-1)

    def _ends(self, end: int) -> Array:
        found = self.query.copy()
        for j in self.free:
            axis = self.axes[j]
            if axis.choices is not None:
                found[j] = axis.choices[end]
            else:
                found[j] = min(axis.low, axis.query) if end == 0 else max(axis.high, axis.query)
        return found

    @cached_property
    def step(self) -> Array:
        """Grid step per feature; 0 where continuous."""
        return np.array([axis.step for axis in self.axes])

    @cached_property
    def categorical(self) -> Mask:
        """Features with unordered levels."""
        return np.array([axis.unordered for axis in self.axes], dtype=np.bool_)

    @cached_property
    def cyclic(self) -> Mask:
        """Features on a circle."""
        return self._period > 0

    @cached_property
    def choices(self) -> tuple[Array | None, ...]:
        """Allowed codes per feature where finite and at most 10,000, else None."""
        return tuple(
            np.array([axis.query])
            if not axis.free
            else None
            if axis.choices is None or len(axis.choices) > MOST_CHOICES
            else axis.choices
            for axis in self.axes
        )

    @cached_property
    def size(self) -> float:
        """Number of distinct points under limits, grid and the l0 bound; may be infinite."""
        others = [
            np.inf if (c := self.axes[j].choices) is None else float(len(c) - 1) for j in self.free
        ]
        if self.max_changes is None:
            return float(np.prod([1.0, *(n + 1 for n in others)]))
        # elementary symmetric polynomials: points with exactly 0, 1, ... changes
        counts = [1.0] + [0.0] * min(self.max_changes, len(others))
        for n in others:
            for c in range(len(counts) - 1, 0, -1):
                counts[c] += counts[c - 1] * n if counts[c - 1] else 0.0
        return float(sum(counts))

    @cached_property
    def _period(self) -> Array:
        return np.array([axis.period for axis in self.axes])

    @cached_property
    def _frame(self) -> tuple[Array, Array]:
        """Limits for one clip of all features; derived ones are let through."""
        low = np.where(self.recomputed, -np.inf, self.low)
        return low, np.where(self.recomputed, np.inf, self.high)

    @cached_property
    def _rounding(self) -> tuple[Mask, Array, Array] | None:
        """Features on a regular grid with their anchors and steps; None if there are none."""
        regular = np.array([axis.free and axis.regular for axis in self.axes])
        if not regular.any():
            return None
        anchor = np.array([axis.anchor if axis.regular else 0.0 for axis in self.axes])
        return regular, anchor, np.where(regular, self.step, 1.0)

    @cached_property
    def _irregular(self) -> tuple[int, ...]:
        """Features whose nearest allowed code needs more than rounding and clipping."""
        return tuple(
            int(j) for j in self.free if not self.axes[j].regular and not self.axes[j].continuous
        )

    def on_grid(self, X: Array) -> Array:
        """Return the nearest allowed code per feature; fixed ones are the query's."""
        snapped = X
        if self._rounding is not None:
            regular, anchor, step = self._rounding
            snapped = np.where(regular, anchor + np.rint((X - anchor) / step) * step, X)
        snapped = np.clip(snapped, *self._frame)
        for j in self._irregular:
            snapped[:, j] = self.axes[j].snap(X[:, j])
        return snapped

    def within(self, X: Array) -> Mask:
        """Return which rows keep limits, grid and the l0 bound; derived features not looked at."""
        same = self.on_grid(X) == X
        missing = self._missing
        if missing.any():
            same |= missing & np.isnan(X)
        if self.recomputed.any():
            same |= self.recomputed
        inside: Mask = same.all(axis=1)
        if self.max_changes is not None:
            inside &= self.changes(X).sum(axis=1) <= self.max_changes
        return inside

    @cached_property
    def _missing(self) -> Mask:
        return np.isnan(self.query)

    @cached_property
    def _counted(self) -> Mask:
        counted = ~self.recomputed
        return counted & ~self._missing

    def changes(self, X: Array) -> Mask:
        """Return which features differ from the query, derived ones not counted; shape (n, d)."""
        changed: Mask = self.query != X
        if not self._counted.all():
            changed &= self._counted
        return changed

    @cached_property
    def _inverse(self) -> Array:
        """Cost of one code unit; 0 for features that can't move."""
        inverse = np.zeros(len(self.axes))
        inverse[self.free] = (self.weight / self.scale)[self.free]
        inverse[self.categorical & (inverse > 0)] = self.weight[self.categorical & (inverse > 0)]
        return inverse

    @cached_property
    def _filled(self) -> Array:
        return np.nan_to_num(self.query)

    def units(self, X: Array) -> Array:
        """Return the weighted change per feature in units of its scale, shape (n, d)."""
        delta = np.abs(X - self._filled)
        if self._missing.any():
            delta[:, self._missing] = 0.0
        if self.categorical.any():
            delta[:, self.categorical] = delta[:, self.categorical] != 0
        if self.cyclic.any():
            turn = delta[:, self.cyclic]
            delta[:, self.cyclic] = np.minimum(turn, self._period[self.cyclic] - turn)
        delta *= self._inverse
        return delta

    def distance(self, X: Array) -> Array:
        """Return the cost of moving from the query to each row, its weight not included."""
        units = self.units(X)
        if self.norm == 1:
            return np.asarray(units.sum(axis=1))
        if self.norm == 0:
            return np.asarray((self.changes(X) * self.weight).sum(axis=1))
        # scaled by the largest, or the power overflows
        largest = units.max(axis=1, initial=0.0)
        safe = np.where(largest > 0, largest, 1.0)
        powers = ((units / safe[:, None]) ** self.norm).sum(axis=1)
        return np.asarray(largest * powers ** (1 / self.norm))

    def distance_gradient(self, X: Array) -> Array:
        """Return d distance / d code, shape (n, d); 0 at the kinks and for unordered levels."""
        direction = np.sign(np.where(self._missing, 0.0, X - self._filled))
        if self.cyclic.any():
            delta = X[:, self.cyclic] - self.query[self.cyclic]
            far = np.abs(delta) > self._period[self.cyclic] / 2
            direction[:, self.cyclic] *= np.where(far, -1.0, 1.0)
        slope = direction * np.where(self.categorical, 0.0, self._inverse)
        if self.norm == 1:
            return slope
        if self.norm == 0:
            return np.zeros_like(X)
        total = self.distance(X)[:, None]
        safe = np.where(total > 0, total, 1.0)
        return np.asarray(slope * (self.units(X) / safe) ** (self.norm - 1))

    def trimmed(self, X: Array, limit: int | None) -> Array:
        """Return the rows with only the `limit` largest changes kept, the rest as in the query."""
        if limit is None:
            return X
        changed = self.changes(X)
        over = changed.sum(axis=1) > limit
        if not over.any():
            return X
        X = X.copy()
        size = np.where(changed[over], self.units(X[over]), -1.0)
        order = np.argsort(-size, axis=1, kind="stable")
        drop = order[:, limit:]
        rows = np.flatnonzero(over)[:, None]
        dropped = changed[rows, drop]
        X[rows, drop] = np.where(dropped, self.query[drop], X[rows, drop])
        return X

    def listing(self) -> Array:
        """Return every point under limits, grid and the l0 bound; check `size` first."""
        rows = self.query[None, :]
        used = np.zeros(1, dtype=np.intp)
        bound = len(self.free) if self.max_changes is None else self.max_changes
        for j in self.free:
            others = self.axes[j].others()
            base = rows[used < bound]
            moved = np.repeat(base, len(others), axis=0)
            moved[:, j] = np.tile(others, len(base))
            count = np.repeat(used[used < bound] + 1, len(others))
            rows, used = np.concatenate([rows, moved]), np.concatenate([used, count])
        return rows

    # ── rules ──

    @cached_property
    def A(self) -> Array:
        """Linear rules over codes, ``A x <= b``; shape (rules, d)."""
        rows = [a for a, _ in self._halfspaces]
        return np.array(rows).reshape(len(rows), len(self.query))

    @cached_property
    def b(self) -> Array:
        """Right-hand sides of the linear rules, shape (rules,)."""
        return np.array([bound for _, bound in self._halfspaces])

    @cached_property
    def _halfspaces(self) -> list[tuple[Array, float]]:
        found: list[tuple[Array, float]] = []
        for rule in self.rules:
            if isinstance(rule, TextRule):
                found += rule.halfspaces(self.schema.features)
        return found

    @cached_property
    def ruled(self) -> bool:
        """Whether anything but limits, grid and the l0 bound restricts the region."""
        return bool(self.rules or self.derived or self.blocks or self.near)

    # ── tests ──

    def contains(self, X: Array) -> Mask:
        """Return which rows satisfy everything: limits, grid, l0, directions, every rule.

        Parameters
        ----------
        X : ndarray of shape (n, d)

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        inside = self.within(X)
        for _, test in self.tests:
            left = np.flatnonzero(inside)
            if not len(left):
                break
            inside[left] = test(X[left])
        return inside

    @cached_property
    def tests(self) -> tuple[tuple[str, Test], ...]:
        """Label and test of everything beyond the grid, cheap ones first."""
        found: list[tuple[str, Test]] = []
        for block in self.blocks:
            named = ", ".join(repr(self.names[j]) for j in block)
            found.append((f"together({named})", partial(self._moves_together, list(block))))
        for rule in self.rules:
            if isinstance(rule, TextRule):
                found.append((rule.label, partial(rule.holds, features=self.schema.features)))
        for j, limits in self.bounds:
            found.append((f"the limits of {self.names[j]!r}", partial(self._bounded, j, limits)))
        if self.derived:
            found.append(("derived columns up to date", self._up_to_date))
        for rule in self.rules:
            if isinstance(rule, FunctionRule):
                found.append((rule.label, partial(self._function_holds, rule)))
        if self.near is not None:
            found.append((self.near.label, self.near.holds))
        return tuple(found)

    def _moves_together(self, block: list[int], X: Array) -> Mask:
        direction = np.sign(X[:, block] - self.query[block])
        return np.asarray((direction == direction[:, :1]).all(axis=1))

    def _bounded(self, j: int, limits: Limits, X: Array) -> Mask:
        """Return where a derived feature keeps its limits, or is as in the query."""
        codes = X[:, j]
        return np.asarray(limits.allow(codes, self.query[j]) | (codes == self.query[j]))

    def _function_holds(self, rule: FunctionRule, X: Array) -> Mask:
        return rule.holds(self.rows(X))

    def _up_to_date(self, X: Array) -> Mask:
        at = np.flatnonzero(self.recomputed)
        fresh, held = self.complete(X)[:, at], X[:, at]
        return np.asarray(((fresh == held) | (np.isnan(fresh) & np.isnan(held))).all(axis=1))

    # ── moves ──

    def complete(self, X: Array) -> Array:
        """Return the rows with derived columns recomputed.

        A derived cell whose recomputed value is the one recomputed for the query stays the
        query's own, so that nothing changes where nothing was moved.
        """
        if not self.derived or not len(X):
            return X
        X = X.copy()
        for rule, base in zip(self.derived, self._derived_base, strict=True):
            j = self.schema.positions[rule.name]
            codes = self._derive(rule, X)
            same = (codes == base) | (np.isnan(codes) & np.isnan(base))
            X[:, j] = np.where(same, self.query[j], codes)
        return X

    @cached_property
    def _derived_base(self) -> tuple[float, ...]:
        """What each derived column would be for the query, recomputed."""
        own = self.query[None, :]
        return tuple(float(self._derive(rule, own)[0]) for rule in self.derived)

    def _derive(self, rule: Derived, X: Array) -> Array:
        return self.schema.encode_column(rule.name, rule.values(self.rows(X)))

    def snap(self, X: Array) -> Array:
        """Return the nearest allowed code per feature, derived columns recomputed."""
        return self.complete(self.on_grid(X))

    def enumerate(self, limit: int) -> Array | None:
        """Return all allowed rows if there are at most `limit` before rules, else None."""
        if self.size > limit:
            return None
        X = self.complete(self.listing())
        return X[self.contains(X)]

    # ── the user's rows ──

    def rows(self, X: Array) -> Rows:
        """Return the user's rows, ready for the model: DataFrame or array."""
        return self.schema.rows(X, self.own)

    def encode(self, rows: object) -> Array:
        """Return the codes of the user's rows, shape (n, d)."""
        return self.schema.encode(rows)
