"""A `Region`: the space seen from one query.

The contract between space, propose and search. Rows are codes of shape (n, d). Rules are checked
on raw values, and only for rows that pass the cheap checks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import InitVar, dataclass, replace
from functools import cached_property, partial
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescfx.arrays import Array, Indices, Mask, Memory, same_codes
from bayescfx.data.schema import Own, Schema
from bayescfx.data.tables import Rows
from bayescfx.deadline import NEVER, Deadline
from bayescfx.errors import QueryError, SpaceWarning, warn
from bayescfx.space.axis import Axis
from bayescfx.space.cost import Cost
from bayescfx.space.rule import Rule
from bayescfx.space.rules.derived import recompute
from bayescfx.space.rules.limits import Limits

if TYPE_CHECKING:
    from bayescfx.space.space import Space


@dataclass(eq=False, repr=False)
class Region:
    """Where a counterfactual of one query may lie; made by ``space.around(query)``."""

    axes: tuple[Axis, ...]  # allowed codes per feature
    scale: Array  # (d,) one unit of change for the distance
    max_changes: int | None  # the l0 bound
    schema: Schema  # the user's table
    own: Own  # the query's own cells
    data: Array  # (m, d) background rows
    cost: Cost  # what moving costs; its weight is not part of `distance`
    rules: tuple[Rule, ...] = ()  # what is to be tested beyond the axes, cheap ones first
    deadline: Deadline = NEVER  # no rule is tested after it; see `Turns`
    said: InitVar[tuple[Rule, ...]] = ()  # rules of the space, still to be seen from here

    def __post_init__(self, said: tuple[Rule, ...]) -> None:
        self.names, places = self.schema.names, self.schema.positions  # in the order of the codes
        numbers, masks, lattices, choices = [], [], [], []
        for name, axis in zip(self.names, self.axes, strict=True):
            (low, high, listed), feature, snapping = axis.allowed, axis.feature, axis.snapping
            weight = float(self.cost.per_feature.get(name, 1.0))
            numbers.append((axis.query, low, high, feature.code_step, feature.period, weight))
            masks.append((low < high, feature.categorical, snapping == "round", snapping == "look"))
            lattices.append(feature.lattice or (0.0, 1.0, 1.0))
            choices.append(listed)
        columns = np.array(numbers, dtype=np.float64).T.copy()
        free, categorical, rounded, other = np.array(masks, dtype=np.bool_).T
        rounded, other = rounded & free, other & free
        self.query: Array = columns[0]  # (d,) the query's codes
        self.free: Indices = np.flatnonzero(free)  # positions of the features that may move
        self.low: Array = columns[1]  # (d,) lowest allowed code; the query's where it can't move
        self.high: Array = columns[2]
        self.step: Array = columns[3]  # (d,) grid step; 0 where continuous
        self.period: Array = columns[4]  # (d,) length of the circle, or 0
        self.weight: Array = columns[5]  # (d,) what a unit of change costs
        self.categorical: Mask = categorical  # (d,) unordered levels
        self.cyclic: Mask = self.period > 0  # (d,) on a circle
        self.sliding: Mask = free & ~categorical & ~self.cyclic  # (d,) free, and on a line
        self.choices: tuple[Array | None, ...] = tuple(choices)  # allowed codes, if at most 10,000
        few = (self.step > 0) & (self.high - self.low <= 32 * self.step)
        self.coarse: Mask = free & (~self.sliding | few)  # (d,) not even nearly continuous

        self.recomputed = np.zeros(len(free), dtype=np.bool_)  # (d,) they never count as changes
        for rule in (*self.rules, *said):
            if rule.derives is not None:
                self.recomputed[places[rule.derives]] = True
        self._missing = np.isnan(self.query)
        self._counted = ~self.recomputed & ~self._missing  # what may count as a change
        self._moves = free | self.recomputed  # what may differ from the query's
        self._still = np.flatnonzero(~self._moves).tolist()
        self._rounded: Mask | None = rounded[free] if rounded.any() else None
        self._lattice = np.array(lattices, dtype=np.float64).T[:, free]  # see `Feature.lattice`
        self._box = columns[1:3, free]  # lowest and highest
        self._inverse = np.where(categorical, self.weight, self.weight / self.scale)[free]
        self._levels = np.flatnonzero(categorical[free])  # among the free ones, as the next
        self._circles = np.flatnonzero(self.cyclic[free])
        looked_up = np.flatnonzero(other[free]).tolist()
        self._others = [*zip(looked_up, compress(self.axes, other), strict=True)]
        self._memories: dict[object, Memory] = {}

        for rule in said:
            if (seen := rule.seen_from(self)) is not None:
                self.rules += (seen,)
        self.blocks: list[list[int]] = []
        self.derived: list[Rule] = []
        self.curved = False  # whether others than linear rules restrict the continuous features
        linear, alone, whole = [], free.copy(), []
        for rule in self.rules:
            if rule.block:
                self.blocks.append(block := [places[name] for name in rule.block])
                whole += [block] if free[block].all() else []
                alone[block] = False
            if rule.derives is not None:
                self.derived.append(rule)
            linear += rule.halfspaces(self)
            self.curved |= rule.curved(self)
        # Free features, as blocks that move as one.
        self.moving: list[list[int]] = np.flatnonzero(alone)[:, None].tolist() + whole
        normals, bounds = zip(*linear, strict=True) if linear else ((), ())
        self.A: Array = np.array(normals).reshape(-1, len(free))  # A x <= b, (r, d)
        self.b: Array = np.array(bounds, dtype=np.float64)
        if len(linear) > 200:  # the work of some searches grows with their square
            self._bound_linear(200)

    def __repr__(self) -> str:
        return f"Region({len(self.query)} features, {len(self.free)} free, size {self.size:g})"

    def _bound_linear(self, most: int) -> None:
        """Leave out linear rules that the limits imply, and all but those next to the query."""
        changing = (self.A != 0) & (self.recomputed | self._missing)
        ends = np.where(self.A > 0, np.nan_to_num(self.high), np.nan_to_num(self.low))
        needed = changing.any(axis=1) | ~((self.A * ends).sum(axis=1) <= self.b)
        A, b = self.A[needed], self.b[needed]
        room = (b - A @ np.nan_to_num(self.query)) / (np.abs(A) @ self.scale)
        nearest = np.sort(np.argsort(np.abs(room), kind="stable")[:most])
        self.A, self.b, self.curved = A[nearest], b[nearest], self.curved or len(b) > most

    @cached_property
    def size(self) -> float:
        """Number of distinct points under limits, grid and the l0 bound; may be infinite."""
        counts = np.ones(1)  # elementary symmetric polynomials: points with 0, 1, ... changes
        for j in self.free:
            codes = self.axes[j].choices
            others = np.inf if codes is None else len(codes) - 1.0
            if self.max_changes is None:
                counts *= others + 1.0
            else:
                counts = np.convolve(counts, [1.0, others])[: self.max_changes + 1]
        return float(counts.sum())

    @cached_property
    def members(self) -> Array:
        """Which features belong to each of the blocks in `moving`: 1 or 0, shape (blocks, d)."""
        found = np.zeros((len(self.moving), len(self.query)))
        for b, block in enumerate(self.moving):
            found[b, block] = 1.0
        return found

    # ── limits, grid and the l0 bound ──

    def on_grid(self, X: Array) -> Array:
        """Return the nearest allowed code per feature; fixed ones are the query's."""
        part = X[:, self.free]
        snapped = np.clip(part, *self._box)
        if self._rounded is not None:
            first, stride, unit = self._lattice
            whole = first + np.rint((snapped * unit - first) / stride) * stride
            np.divide(whole, unit, out=snapped, where=self._rounded)
        for i, axis in self._others:
            snapped[:, i] = axis.snap(part[:, i])
        if len(self.free) == X.shape[1]:
            return snapped
        out = np.where(self.recomputed, X, self.query)
        out[:, self.free] = snapped
        return out

    def within(self, X: Array, most: int = 4096) -> Mask:
        """Return which rows keep limits, grid and the l0 bound; derived features not looked at."""
        if len(X) > most:  # than a processor has at hand
            return np.concatenate([self.within(X[i : i + most]) for i in range(0, len(X), most)])
        if not self._moves.all() and not (inside := self._stays(X)).all():
            inside[inside] = self.within(X[inside])  # others are rows of other questions, mostly
            return inside
        part = X.T[self.free]  # (k, n)
        low, high = self._box[:, :, None]
        kept = (part >= low) & (part <= high)
        if self._rounded is not None:
            first, stride, unit = self._lattice[:, :, None]
            whole = np.rint(part * unit)
            kept &= (whole / unit == part) | ~self._rounded[:, None]
            for i in np.flatnonzero(self._rounded & (stride[:, 0] != 1)).tolist():
                steps = (whole[i] - first[i]) / stride[i]
                kept[i] &= steps == np.rint(steps)
        for i, axis in self._others:
            kept[i] = axis.snap(part[i]) == part[i]
        inside = np.asarray(kept.all(axis=0))
        if self.max_changes is not None:
            inside &= self.changes(X).sum(axis=1) <= self.max_changes
        return inside

    def _stays(self, X: Array) -> Mask:
        """Return which rows leave alone what can't move."""
        kept = np.arange(len(X))
        for j in self._still:  # most rows of other questions differ in the first
            kept = kept[same_codes(X[kept, j], self.query[j])]
        stays = np.zeros(len(X), dtype=np.bool_)
        stays[kept] = True
        return stays

    def same_missing(self, X: Array) -> Mask:
        """Return which rows miss the cells that the query misses, derived ones not looked at."""
        return np.asarray(((np.isnan(X) == self._missing) | self.recomputed).all(axis=1))

    def changes(self, X: Array, base: Array | None = None) -> Mask:
        """Return which features differ from the query, or a base ``(d,)``; shape (n, d).

        Derived and missing ones are not counted.
        """
        changed: Mask = (self.query if base is None else base) != X
        if not self._counted.all():
            changed &= self._counted
        return changed

    def sides(self, X: Array, at: list[int]) -> Array:
        """Return where features move: up 1, down -1, not 0; nan below a millionth of the scale."""
        delta = X[:, at] - self.query[at]
        dust = (delta != 0) & (np.abs(delta) < 1e-6 * self.scale[at])
        return np.where(dust, np.nan, np.sign(delta))

    def enumerate(self, limit: int) -> Array | None:
        """Return all allowed rows if there are at most `limit` before rules, else None."""
        if self.size > limit:
            return None
        rows = self.query[None, :]
        used = np.zeros(1, dtype=np.intp)
        bound = len(self.free) if self.max_changes is None else self.max_changes
        for j in self.free:
            codes = self.axes[j].choices
            assert codes is not None  # the size is finite
            others, base = codes[codes != self.query[j]], rows[used < bound]
            moved = np.repeat(base, len(others), axis=0)
            moved[:, j] = np.tile(others, len(base))
            count = np.repeat(used[used < bound] + 1, len(others))
            rows, used = np.concatenate([rows, moved]), np.concatenate([used, count])
        X = self.complete(rows)
        return np.asarray(X[self.contains(X)])

    # ── the distance ──

    def units(self, X: Array) -> Array:
        """Return the weighted change per feature in units of its scale, shape (n, d)."""
        units = np.zeros(X.shape)
        units[:, self.free] = self._units(X)
        return units

    def _units(self, X: Array) -> Array:
        """Return the weighted changes ``(n, k)`` of the free features."""
        delta: Array = np.abs(X[:, self.free] - self.query[self.free])
        if len(self._levels):
            delta[:, self._levels] = delta[:, self._levels] != 0
        if len(self._circles):
            turn = delta[:, self._circles]
            period = self.period[self.free[self._circles]]
            delta[:, self._circles] = np.minimum(turn, period - turn)
        delta *= self._inverse
        return delta

    def distance(self, X: Array) -> Array:
        """Return the cost of moving from the query to each row, its weight not included."""
        units, norm = self._units(X), self.cost.norm
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
        """Return d distance / d code, shape (n, d); 0 at the kinks and for unordered levels."""
        norm, slope = self.cost.norm, np.zeros(X.shape)
        if norm == 0:
            return slope
        delta = X - self.query
        if self.cyclic.any():
            backwards = self.cyclic & (np.abs(delta) > self.period / 2)
            delta = np.where(backwards, -delta, delta)
        slope[:, self.free] = np.sign(delta[:, self.free]) * self._inverse
        slope[:, self.categorical] = 0.0
        if norm == 1:
            return slope
        total = self.distance(X)[:, None]
        safe = np.where(total > 0, total, 1.0)
        return np.asarray(slope * (self.units(X) / safe) ** (norm - 1))

    # ── rules ──

    def without(self, *rules: Rule) -> Region:
        """Return the region with some of its rules left out."""
        gone = {id(rule) for rule in rules}
        return replace(self, rules=tuple(rule for rule in self.rules if id(rule) not in gone))

    def contains(self, X: Array) -> Mask:
        """Return which rows ``(n, d)`` satisfy everything: limits, grid, l0, every rule."""
        inside = self.within(X)
        for rule in self.rules:
            left = np.flatnonzero(inside)
            if not len(left):
                break
            self.deadline.check()
            inside[left] = rule.holds(self, X[left])
        return inside

    def complete(self, X: Array) -> Array:
        """Return the rows with derived columns recomputed."""
        if not self.derived or not len(X):
            return X
        X = X.copy()
        X[:, self.recomputed] = self.remembered("derived", X, partial(recompute, self), self.free)
        return X

    def remembered(
        self, who: object, X: Array, ask: Callable[[Array], Any], at: Indices | None = None
    ) -> Any:
        """Return what a function says of rows, one value or line each; it is asked once about each.

        `who` asks: a rule, or a name. Rows are the same if the features `at` are, by default all
        that may change, derived ones included; rows that change others are not remembered.
        """
        if not len(X) or not self._stays(X).all():
            return ask(X)
        at = np.flatnonzero(self._moves) if at is None else at
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


def around(space: Space, query: object, *, schema: Schema | None = None) -> Region:
    """Return the space as seen from one query.

    Parameters
    ----------
    query : Series, dict, one-row DataFrame, or array of shape (columns,)
    schema : Schema, optional
        One that covers other queries too, for regions whose codes are to mean the same. It
        does not widen the region.

    Warns
    -----
    SpaceWarning
        If the query lies outside the ranges, which then grow for it, or has a missing value
        in a feature that may move, which then stays.
    """
    cells = space.schema.cells(query, what="query")
    if len(cells[0]) != 1:
        raise QueryError(f"`query` must be one row; got {len(cells[0])}.")
    grown, codes, notes = space.schema.covering(cells, "query")
    if notes:
        text = f"the query lies outside the space, which grew for it: {'; '.join(notes)}."
        warn(text, SpaceWarning)
    shared = schema or grown
    own = Own(codes if schema is None else schema.encode_cells(cells, what="query"), cells)
    rules = sorted(space.rules, key=attrgetter("rank"))
    most = min(filter(None, map(attrgetter("most_changes"), rules)), default=None)
    axes = _axes(space, grown, own, shared)
    for rule in rules:
        rule.narrow(axes, grown.positions, most)
    data, cost = space.background, space.price
    return Region(tuple(axes), space.scale, most, shared, own, data, cost, said=tuple(rules))


def _axes(space: Space, grown: Schema, own: Own, shared: Schema) -> list[Axis]:
    """Return what limits leave of the features around a query; other queries share the codes."""
    said, derived = dict[Hashable, Limits](), dict[Hashable, Limits]()
    for rule in space.rules:
        if isinstance(rule, Limits):
            said[rule.name] = rule
        elif rule.derives is not None:  # it never moves by itself
            derived[rule.derives] = Limits(rule.derives, fixed=True)
    axes, missing = list[Axis](), list[str]()
    for name, code in zip(grown.names, own.codes[0].tolist(), strict=True):
        limits = derived.get(name) or said.get(name) or Limits(name)
        feature, known = grown.features[name], space.schema.features[name]
        if known.levelled and shared.features[name] is not known:
            # levels of other queries are none of this one's
            feature = shared.features[name]
            if limits.levels is None:
                limits = replace(limits, levels=tuple(map(float, range(len(known.levels)))))
        grouped = name in grown.groups  # one-hot columns, whose numbers are no codes
        dtype = np.dtype(object) if grouped else grown.columns[grown.places[name]].dtype
        axes.append(limits.axis(feature, code, dtype, inferred=name in space.inferred))
        if np.isnan(code) and not limits.fixed:
            missing.append(repr(name))
    if missing:
        text = f"the query has no value for {', '.join(missing)}; treated as fixed."
        warn(text, SpaceWarning)
    return axes
