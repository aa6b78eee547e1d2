"""A `Region`: the space seen from one query.

The contract between space, propose and search. Rows are codes of shape (n, d). Rules are checked
on raw values, and only for rows that pass the cheap checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, Memory, same_codes
from bayescfx.data.schema import Own, Schema
from bayescfx.data.tables import Rows
from bayescfx.deadline import time_limit
from bayescfx.space.axis import Axis, FreeAxes
from bayescfx.space.cost import Cost
from bayescfx.space.rule import Rule
from bayescfx.space.rules.derived import recompute

#: Linear rules beyond this number are thinned out: the work of some searches grows with their
#: square. Set by judgement, 2026-11-18.
MOST_HALFSPACES = 200
#: Rows that are checked at once, so that they fit into a processor's cache. Set by judgement,
#: 2026-11-18.
CHUNK = 4096
#: So few rows are compared with a query in all features at once. Set by judgement, 2026-11-19.
_FEW_ROWS = 64
#: Ordered grids with at most so many steps are searched value by value, not as continuous ones.
#: Set by judgement, 2026-11-18; benchmark `make quality`.
MOST_COARSE_STEPS = 32
#: Numerical: moves below this share of a feature's scale are rounding errors.
DUST = 1e-6
#: Changes of numbers below this share of the feature's scale make no other answer.
#: Set by judgement; benchmark `make quality` (2026-11-18).
TRIVIAL = 0.01


class HalfSpaces(NamedTuple):
    """The linear rules ``A x <= b``, and whether other rules restrict continuous features too."""

    A: Array  # (r, d)
    b: Array  # (r,)
    curved: bool


@dataclass(frozen=True, eq=False, repr=False)
class Region:
    """Where a counterfactual of one query may lie; made by ``space.around(query)``.

    Parameters
    ----------
    axes : tuple of Axis
        Allowed codes per feature.
    schema : Schema
        Features and columns of the user's table.
    names : tuple
        Names of the features, in the order of the codes.
    own : Own
        The query's own cells.
    query : array of shape (d,)
        The query's codes.
    low, high : array of shape (d,)
        Lowest and highest allowed codes; the query's where a feature can't move.
    free : array of shape (k,)
        Positions of the features that may move.
    free_axes : FreeAxes
        Limits and grids of these features as arrays.
    choices : tuple
        Per feature: the allowed codes, the query's included, if at most 10,000; else None.
    step : array of shape (d,)
        Grid steps; 0 where continuous.
    period : array of shape (d,)
        Lengths of the circles, or 0.
    categorical, cyclic : mask of shape (d,)
        Features with unordered levels, and features on a circle.
    sliding : mask of shape (d,)
        Features that are free and on a line.
    coarse : mask of shape (d,)
        Features that are free and not even nearly continuous.
    recomputed : mask of shape (d,)
        Derived features, which never count as changes.
    counted : mask of shape (d,), or None
        Features that may count as a change: neither derived nor missing; None if all may.
    varying : array of positions
        Features that may differ from the query's: free or derived.
    constant : list of int
        Positions of all other features.
    scale : array of shape (d,)
        One unit of change for the distance.
    weight : array of shape (d,)
        The factor of each feature in the distance.
    unit_costs : array of shape (k,)
        Distance of one code of each free feature; of a changed level if unordered.
    price : Cost
        The norm of the distance, and the price of each change.
    max_changes : int or None
        The l0 bound.
    data : array of shape (m, d)
        Background rows.
    rules : tuple of Rule
        The rules that the axes do not imply, cheap ones first.
    blocks : sequence of lists of int
        Positions of the features that move together, one list per rule.
    derived : sequence of Rule
        Rules that recompute a column.
    of_space : tuple of Rule
        All rules of the space, limits included, as its verbs added them.
    rebuild : callable or None
        Returns the region around the same query in the space with other rules.
    """

    axes: tuple[Axis, ...]
    schema: Schema
    names: tuple[Hashable, ...]
    own: Own
    query: Array
    low: Array
    high: Array
    free: Indices
    free_axes: FreeAxes
    choices: tuple[Array | None, ...]
    step: Array
    period: Array
    categorical: Mask
    cyclic: Mask
    sliding: Mask
    coarse: Mask
    recomputed: Mask
    counted: Mask | None
    varying: Indices
    constant: list[int]
    scale: Array
    weight: Array
    unit_costs: Array
    price: Cost
    max_changes: int | None
    data: Array
    rules: tuple[Rule, ...] = ()
    blocks: Sequence[list[int]] = ()
    derived: Sequence[Rule] = ()
    of_space: tuple[Rule, ...] = ()
    rebuild: Callable[[Sequence[Rule]], Region] | None = None

    def __repr__(self) -> str:
        return f"Region({len(self.query)} features, {len(self.free)} free, size {self.size:g})"

    def with_rules(self, rules: Iterable[Rule]) -> Region:
        """Return the region with other rules, each of them as this query sees it."""
        kept = tuple(rules)
        places = self.schema.positions
        return replace(
            self,
            rules=kept,
            blocks=[[places[name] for name in rule.block] for rule in kept if rule.block],
            derived=[rule for rule in kept if rule.derives is not None],
        )

    def without(self, *rules: Rule) -> Region:
        """Return the region with some of its rules left out."""
        left_out = {id(rule) for rule in rules}
        return self.with_rules(rule for rule in self.rules if id(rule) not in left_out)

    def with_axis(self, j: int, axis: Axis) -> Region:
        """Return the region with other allowed codes of feature `j`."""
        axes = (*self.axes[:j], axis, *self.axes[j + 1 :])
        return replace(self, **axis_fields(axes, self.recomputed, self.weight, self.scale))

    @cached_property
    def size(self) -> float:
        """Number of distinct points under limits, grid and the l0 bound; may be infinite."""
        counts = np.ones(1)  # elementary symmetric polynomials: points with 0, 1, ... changes
        for j in self.free:
            codes = self.axes[j].choices
            n_others = np.inf if codes is None else len(codes) - 1.0
            if self.max_changes is None:
                counts *= n_others + 1.0
            else:
                counts = np.convolve(counts, [1.0, n_others])[: self.max_changes + 1]
        return float(counts.sum())

    # ── blocks of features, and linear rules ──

    @cached_property
    def moving(self) -> list[list[int]]:
        """All free features as blocks that move as one; most of them are single."""
        is_free = self.low < self.high
        is_single = is_free.copy()
        whole = []
        for block in self.blocks:
            if is_free[block].all():
                whole.append(block)
            is_single[block] = False
        single: list[list[int]] = np.flatnonzero(is_single)[:, None].tolist()
        return single + whole

    @cached_property
    def members(self) -> Array:
        """Which features belong to each of the blocks in `moving`: 1 or 0, shape (blocks, d)."""
        members = np.zeros((len(self.moving), len(self.query)))
        for b, block in enumerate(self.moving):
            members[b, block] = 1.0
        return members

    @cached_property
    def _halfspaces(self) -> HalfSpaces:
        """The linear rules."""
        pairs = [pair for rule in self.rules for pair in rule.halfspaces(self)]
        A = np.array([a for a, _ in pairs]).reshape(-1, len(self.query))
        b = np.array([bound for _, bound in pairs], dtype=np.float64)
        curved = any(rule.curved(self) for rule in self.rules)
        if len(pairs) <= MOST_HALFSPACES:
            return HalfSpaces(A, b, curved)
        return self._nearest_halfspaces(A, b, curved)

    def _nearest_halfspaces(self, A: Array, b: Array, curved: bool) -> HalfSpaces:
        """Return the linear rules that the limits do not imply, those nearest to the query."""
        changing = (A != 0) & (self.recomputed | np.isnan(self.query))
        ends = np.where(A > 0, np.nan_to_num(self.high), np.nan_to_num(self.low))
        is_needed = changing.any(axis=1) | ~((A * ends).sum(axis=1) <= b)
        A = A[is_needed]
        b = b[is_needed]
        room = (b - A @ np.nan_to_num(self.query)) / (np.abs(A) @ self.scale)
        nearest = np.sort(np.argsort(np.abs(room), kind="stable")[:MOST_HALFSPACES])
        return HalfSpaces(A[nearest], b[nearest], curved or len(b) > MOST_HALFSPACES)

    @property
    def A(self) -> Array:
        """Coefficients ``(r, d)`` of the linear rules ``A x <= b``."""
        return self._halfspaces.A

    @property
    def b(self) -> Array:
        """Bounds ``(r,)`` of the linear rules ``A x <= b``."""
        return self._halfspaces.b

    @property
    def curved(self) -> bool:
        """Whether rules that are not linear restrict the region too."""
        return self._halfspaces.curved

    # ── limits, grid and the l0 bound ──

    def on_grid(self, X: Array) -> Array:
        """Return the nearest allowed code per feature; fixed ones are the query's."""
        snapped = self.free_axes.snap(X[:, self.free])
        if len(self.free) == X.shape[1]:
            return snapped
        out = np.where(self.recomputed, X, self.query)
        out[:, self.free] = snapped
        return out

    def within(self, X: Array) -> Mask:
        """Return which rows keep limits, grid and the l0 bound; derived features not looked at."""
        if len(X) > CHUNK:
            chunks = [X[i : i + CHUNK] for i in range(0, len(X), CHUNK)]
            return np.concatenate([self.within(chunk) for chunk in chunks])
        if self.constant:
            inside = self._keeps_fixed(X)
            if not inside.all():
                inside[inside] = self.within(X[inside])  # most others belong to other queries
                return inside
        inside = self.free_axes.contains(X.T[self.free])
        if self.max_changes is not None:
            inside &= self.changes(X).sum(axis=1) <= self.max_changes
        return inside

    def _keeps_fixed(self, X: Array) -> Mask:
        """Return which rows have the query's code wherever a feature can't move."""
        if len(X) <= _FEW_ROWS:
            at = self.constant
            return np.asarray(same_codes(X[:, at], self.query[at]).all(axis=1))
        kept = np.arange(len(X))
        for j in self.constant:  # most rows of other queries differ in the first
            kept = kept[same_codes(X[kept, j], self.query[j])]
        keeps = np.zeros(len(X), dtype=np.bool_)
        keeps[kept] = True
        return keeps

    def same_missing(self, X: Array) -> Mask:
        """Return which rows miss the cells that the query misses, derived ones not looked at."""
        return np.asarray(((np.isnan(X) == np.isnan(self.query)) | self.recomputed).all(axis=1))

    def changes(self, X: Array, base: Array | None = None) -> Mask:
        """Return which features differ from the query, or a base ``(d,)``; shape (n, d).

        Derived and missing ones are not counted.
        """
        changed: Mask = (self.query if base is None else base) != X
        if self.counted is not None:
            changed &= self.counted
        return changed

    def clear_changes(self, X: Array) -> Mask:
        """Return the changed features ``(n, d)`` of each row without trivial changes of numbers."""
        is_trivial = np.abs(X - self.query) < TRIVIAL * self.scale
        return np.asarray(self.changes(X) & ~is_trivial)

    @cached_property
    def fine(self) -> Mask:
        """Which features ``(d,)`` are numbers that may move by less than people notice."""
        is_number = np.array([axis.feature.numeric for axis in self.axes])
        return np.asarray(self.sliding & is_number & (self.step < least_changes(self.scale)))

    @cached_property
    def least(self) -> Array:
        """The smallest change ``(d,)`` that people notice; 0 for features with larger steps."""
        return np.where(self.fine, least_changes(self.scale), 0.0)

    def sides(self, X: Array, at: list[int]) -> Array:
        """Return where features move: up 1, down -1, not 0; nan below a millionth of the scale."""
        delta = X[:, at] - self.query[at]
        is_dust = (delta != 0) & (np.abs(delta) < DUST * self.scale[at])
        return np.where(is_dust, np.nan, np.sign(delta))

    def enumerate(self, limit: int) -> Array | None:
        """Return all allowed rows if there are at most `limit` before rules, else None."""
        if self.size > limit:
            return None
        rows = self.query[None, :]
        n_changes = np.zeros(1, dtype=np.intp)
        bound = len(self.free) if self.max_changes is None else self.max_changes
        for j in self.free:
            codes = self.axes[j].choices
            assert codes is not None  # the size is finite
            others = codes[codes != self.query[j]]
            base = rows[n_changes < bound]
            moved = np.repeat(base, len(others), axis=0)
            moved[:, j] = np.tile(others, len(base))
            count = np.repeat(n_changes[n_changes < bound] + 1, len(others))
            rows = np.concatenate([rows, moved])
            n_changes = np.concatenate([n_changes, count])
        X = self.complete(rows)
        return np.asarray(X[self.contains(X)])

    # ── the cost ──

    def cost(self, X: Array) -> Array:
        """Return the cost ``(n,)`` of each row ``(n, d)``, which every search minimises.

        It is the distance plus the price of each change.
        """
        distance = self.distance(X)
        if self.price.per_change == 0.0:
            return distance
        n_changes = self.changes(X) @ np.ones(X.shape[1])  # faster than a sum of booleans
        return np.asarray(distance + self.price.per_change * n_changes)

    def units(self, X: Array) -> Array:
        """Return the weighted change per feature in units of its scale, shape (n, d)."""
        units = np.zeros(X.shape)
        units[:, self.free] = self.free_axes.distances(X[:, self.free]) * self.unit_costs
        return units

    def distance(self, X: Array) -> Array:
        """Return how far each row ``(n, d)`` is from the query: the norm of its units."""
        units = self.free_axes.distances(X[:, self.free]) * self.unit_costs
        norm = self.price.norm
        if norm == 1:
            return np.asarray(units.sum(axis=1))
        if norm == 0:
            return np.asarray((self.changes(X) * self.weight).sum(axis=1))
        # scaled by the largest, or the power overflows
        largest = units.max(axis=1, initial=0.0)
        safe = np.where(largest > 0, largest, 1.0)
        powers = ((units / safe[:, None]) ** norm).sum(axis=1)
        return np.asarray(largest * powers ** (1 / norm))

    def distance_gradient(self, X: Array) -> Array:
        """Return d distance / d code, shape (n, d); 0 at the kinks and for unordered levels.

        It is also the gradient of the cost: the price of the changes is the same all around a row,
        except where a feature equals the query's.
        """
        norm = self.price.norm
        slope = np.zeros(X.shape)
        if norm == 0:
            return slope
        delta = X - self.query
        if self.cyclic.any():
            backwards = self.cyclic & (np.abs(delta) > self.period / 2)
            delta = np.where(backwards, -delta, delta)
        slope[:, self.free] = np.sign(delta[:, self.free]) * self.unit_costs
        slope[:, self.categorical] = 0.0
        if norm == 1:
            return slope
        total = self.distance(X)[:, None]
        safe = np.where(total > 0, total, 1.0)
        return np.asarray(slope * (self.units(X) / safe) ** (norm - 1))

    # ── rules ──

    def contains(self, X: Array) -> Mask:
        """Return which rows ``(n, d)`` satisfy everything: limits, grid, l0, every rule."""
        inside = self.within(X)
        for rule in self.rules:
            left = np.flatnonzero(inside)
            if not len(left):
                break
            time_limit.get().check()
            inside[left] = rule.holds(self, X[left])
        return inside

    def complete(self, X: Array) -> Array:
        """Return the rows with derived columns recomputed."""
        if not self.derived or not len(X):
            return X
        X = X.copy()
        X[:, self.recomputed] = self.remembered("derived", X, partial(recompute, self), self.free)
        return X

    @cached_property
    def _memories(self) -> dict[object, Memory]:
        """Results of users' functions, by rule."""
        return {}

    @cached_property
    def coordinate_tables(self) -> dict[tuple[int, float, float], Array]:
        """Coordinates by feature, lowest and highest code; filled by `surrogate.coordinates`."""
        return {}

    def remembered(
        self, who: object, X: Array, ask: Callable[[Array], Any], at: Indices | None = None
    ) -> Any:
        """Return the results of a user's function for rows; it is called once for each row.

        `who` owns the memory: a rule, or a name. Rows are the same if the features `at` are, by
        default all that may differ from the query. Rows that change others are not remembered.
        """
        if not len(X) or not self._keeps_fixed(X).all():
            return ask(X)
        at = self.varying if at is None else at
        memory = self._memories.setdefault(who, Memory())
        return memory.recall(X[:, at], lambda new: ask(X[new]))

    def snap(self, X: Array) -> Array:
        """Return the nearest allowed code per feature, derived columns recomputed."""
        return self.complete(self.on_grid(X))

    # ── the user's rows ──

    def rows(self, X: Array) -> Rows:
        """Return the user's rows, ready for the model: DataFrame or array."""
        return self.schema.rows(X, self.own)

    def encode(self, rows: object) -> Array:
        """Return the codes of the user's rows, shape (n, d)."""
        return self.schema.encode(rows)


def least_changes(scale: Array) -> Array:
    """Return the smallest changes ``(d,)`` that people notice, given the units of change ``(d,)``.

    At most a hundredth of the unit: 1, 2 or 5 times a power of ten. Smaller changes are no change.
    """
    found = []
    for most in (TRIVIAL * scale).tolist():
        power = math.floor(math.log10(most))
        candidates = [float(f"{digit}e{power}") for digit in (1, 2, 5)]
        found.append(max(each for each in candidates if each <= most or each == candidates[0]))
    return np.array(found)


def axis_fields(
    axes: Sequence[Axis], recomputed: Mask, weight: Array, scale: Array
) -> dict[str, Any]:
    """Return the fields of a region that follow from its axes, by name."""
    features = [axis.feature for axis in axes]
    lowest, highest, choices = zip(*(axis.allowed for axis in axes), strict=True)
    query = np.array([axis.query for axis in axes], dtype=np.float64)
    low = np.array(lowest, dtype=np.float64)
    high = np.array(highest, dtype=np.float64)
    step = np.array([feature.code_step for feature in features], dtype=np.float64)
    period = np.array([feature.period for feature in features], dtype=np.float64)
    categorical = np.array([feature.categorical for feature in features], dtype=np.bool_)
    cyclic = period > 0
    is_free = low < high
    free = np.flatnonzero(is_free)
    sliding = is_free & ~categorical & ~cyclic
    has_few_steps = (step > 0) & (high - low <= MOST_COARSE_STEPS * step)
    counted = ~recomputed & ~np.isnan(query)
    is_varying = is_free | recomputed
    return {
        "axes": tuple(axes),
        "query": query,
        "low": low,
        "high": high,
        "free": free,
        "free_axes": FreeAxes.of(
            [axes[j] for j in free.tolist()],
            query[free],
            low[free],
            high[free],
            period[free],
            categorical[free],
        ),
        "choices": choices,
        "step": step,
        "period": period,
        "categorical": categorical,
        "cyclic": cyclic,
        "sliding": sliding,
        "coarse": is_free & (~sliding | has_few_steps),
        "counted": None if counted.all() else counted,
        "varying": np.flatnonzero(is_varying),
        "constant": np.flatnonzero(~is_varying).tolist(),
        "unit_costs": np.where(categorical, weight, weight / scale)[free],
    }
