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
from bayescfx.space import sampling
from bayescfx.space.draws import draw
from bayescfx.space.grid import Grid
from bayescfx.space.limits import Limits
from bayescfx.space.near import NearAll, NearHere
from bayescfx.space.neighbours import neighbours
from bayescfx.space.repair import repair
from bayescfx.space.rules import Cost, Derived, FunctionRule, TextRule
from bayescfx.space.schema import Own, Rows, Schema

Test: TypeAlias = Callable[[Array], Mask]


@dataclass(frozen=True, eq=False, repr=False)
class Region:
    """Where a counterfactual of one query may lie; made by ``space.around(query)``.

    Parameters
    ----------
    grid : Grid
        Limits, grid, l0 bound and distance.
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

    grid: Grid
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

    # ── what the contract names ──

    @property
    def query(self) -> Array:
        """The query's codes, shape (d,)."""
        return self.grid.query

    @property
    def free(self) -> Indices:
        """Positions of the features that may move, shape (k,)."""
        return self.grid.free

    @property
    def low(self) -> Array:
        """Lower limits, shape (d,); the query's code where fixed."""
        return self.grid.low

    @property
    def high(self) -> Array:
        """Upper limits, shape (d,); the query's code where fixed."""
        return self.grid.high

    @property
    def step(self) -> Array:
        """Grid steps, shape (d,); 0 where continuous, 1 where categorical."""
        return self.grid.step

    @property
    def categorical(self) -> Mask:
        """Features with unordered levels, shape (d,)."""
        return self.grid.categorical

    @property
    def cyclic(self) -> Mask:
        """Features ordered on a circle, shape (d,)."""
        return self.grid.cyclic

    @property
    def choices(self) -> tuple[Array | None, ...]:
        """Per feature the allowed codes, sorted, if finite and at most 10,000; else None."""
        return self.grid.choices

    @property
    def scale(self) -> Array:
        """One unit of change for the distance, shape (d,)."""
        return self.grid.scale

    @property
    def max_changes(self) -> int | None:
        """The l0 bound."""
        return self.grid.max_changes

    @property
    def size(self) -> float:
        """Number of distinct points before rules, or infinity."""
        return self.grid.size

    @property
    def names(self) -> tuple[Hashable, ...]:
        """Feature names in the order of the codes."""
        return self.schema.names

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
        inside = self.grid.contains(X)
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
        at = np.flatnonzero(self.grid.derived)
        fresh, held = self.complete(X)[:, at], X[:, at]
        return np.asarray(((fresh == held) | (np.isnan(fresh) & np.isnan(held))).all(axis=1))

    def report(self, n: int, rng: np.random.Generator) -> dict[str, tuple[int, int]]:
        """Return, per rule, how many of `n` draws within the limits pass it.

        Returns
        -------
        dict of label to (passed, tried)
        """
        X = self.complete(draw(self, n, rng))
        return {label: (int(test(X).sum()), n) for label, test in self.tests}

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
        return self.complete(self.grid.snap(X))

    def changes(self, X: Array) -> Mask:
        """Return which features differ from the query, derived ones not counted; shape (n, d)."""
        return self.grid.changes(X)

    def distance(self, X: Array) -> Array:
        """Return the cost of moving to each row, the weight not included; shape (n,)."""
        return self.grid.distance(X)

    def distance_gradient(self, X: Array) -> Array:
        """Return d distance / d code, shape (n, d)."""
        return self.grid.distance_gradient(X)

    def neighbours(self, x: Array) -> Array:
        """Return the allowed rows one move away from a row: grid steps, levels, back to the query.

        Parameters
        ----------
        x : ndarray of shape (d,)

        Returns
        -------
        ndarray of shape (m, d)
        """
        return neighbours(self, x)

    def sample(self, n: int, rng: np.random.Generator, changes: int | None = None) -> Array:
        """Return at most `n` allowed rows other than the query.

        Parameters
        ----------
        n : int
        rng : numpy Generator
        changes : int, optional
            Number of features changed in each row; without it any number the region allows.

        Raises
        ------
        InfeasibleError
            If no row but the query can be found, with the tightest rule.
        """
        return sampling.sample(self, n, rng, changes)

    def project(self, X: Array) -> Array:
        """Return the nearest allowed rows; rows that can't be repaired are dropped."""
        rows, kept = repair(self, X)
        return rows[kept]

    def repair(self, X: Array) -> tuple[Array, Mask]:
        """Return the nearest allowed rows and which of them are allowed; order is kept."""
        return repair(self, X)

    def background_rows(
        self, n: int, rng: np.random.Generator, changes: int | None = None
    ) -> Array:
        """Return at most `n` allowed rows with values copied from data rows.

        Parameters
        ----------
        changes : int, optional
            How many randomly chosen free features are copied; without it all of them.
        """
        return sampling.background_rows(self, n, rng, changes)

    def background(self) -> Array:
        """Return the allowed rows made of the query's fixed and the data's free features."""
        return sampling.background(self)

    def enumerate(self, limit: int) -> Array | None:
        """Return all allowed rows if there are at most `limit` before rules, else None."""
        if self.size > limit:
            return None
        X = self.complete(self.grid.enumerate())
        return X[self.contains(X)]

    # ── the user's rows ──

    def rows(self, X: Array) -> Rows:
        """Return the user's rows, ready for the model: DataFrame or array."""
        return self.schema.rows(X, self.own)

    def encode(self, rows: object) -> Array:
        """Return the codes of the user's rows, shape (n, d)."""
        return self.schema.encode(rows)
