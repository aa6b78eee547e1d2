"""A column that is recomputed from the others on every candidate."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescfx.arrays import Array, Mask, same_codes
from bayescfx.checks import check
from bayescfx.data import Feature
from bayescfx.data.tables import Rows, lent
from bayescfx.errors import SpaceError
from bayescfx.space.rule import Rule, Words
from bayescfx.space.rules.require import call_function

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space


@dataclass(frozen=True, eq=False)
class Derived(Rule):
    """A column that is a function of the others."""

    function: Callable[[Any], Any] = field(repr=False)
    derives: Hashable
    base: float = np.nan  # code of the recomputed value for the query

    rank = 2
    written = False

    @property
    def words(self) -> Words:
        """The rule in words; it is no binding constraint."""
        return Words(f"derive({self.derives!r})", "", "")

    def describe_feature(self, name: Hashable, feature: Feature) -> str:
        """Mark the column as derived."""
        return "derived" if name == self.derives else ""

    def for_query(self, region: Region) -> Derived:
        """Return the rule with the recomputed value of the query."""
        base = self._codes(region, region.rows(region.query[None]))
        return replace(self, base=float(base[0]))

    def holds(self, region: Region, X: Array) -> Mask:
        """Return where the column equals its recomputed value."""
        at = region.schema.positions[self.derives]
        return same_codes(region.complete(X)[:, at], X[:, at])

    def recompute(self, region: Region, X: Array, rows: Rows) -> None:
        """Write the recomputed column to codes and rows, in place."""
        j = region.schema.positions[self.derives]
        codes = self._codes(region, lent(rows))
        # A result that equals the query's recomputed value keeps the query's own cell.
        X[:, j] = np.where(same_codes(codes, self.base), region.query[j], codes)
        region.schema.write(rows, j, X[:, j], region.own)

    def _codes(self, region: Region, rows: Rows) -> Array:
        """Return the codes ``(n,)`` that the function gives for rows."""
        label = self.words.label
        values = call_function(self.function, rows, label)
        if values.shape != (len(rows),):
            raise SpaceError(
                f"the function of {label} must return one value per row; got shape {values.shape} "
                f"for {len(rows)} rows."
            )
        return region.schema.encode_column(self.derives, values)


def recompute(region: Region, X: Array) -> Array:
    """Return the codes ``(n, m)`` of derived columns, which are also written to `X`."""
    rows = region.rows(X)
    at = region.recomputed
    *others, last = region.derived
    for rule in region.derived:
        rule.recompute(region, X, rows)
    for _ in region.derived:
        before = X[:, at]
        for rule in others:  # one may depend on another that was added later
            rule.recompute(region, X, rows)
        if np.array_equal(X[:, at], before, equal_nan=True):
            return before
        last.recompute(region, X, rows)
    names = ", ".join(rule.words.label for rule in region.derived)
    raise SpaceError(
        f"{names} depend on each other in a circle, or give other values when asked again. "
        "Derive each from other columns."
    )


def derive(space: Space, name: Hashable, function: Callable[[Any], Any]) -> Space:
    """Return the space in which a column is recomputed on every candidate.

    Parameters
    ----------
    name : feature
    function : callable
        Raw rows to the values of the column, shape (n,).
    """
    column = space.name(name)
    if column in space.schema.groups:
        raise SpaceError(f"{column!r} can't be derived: it stands for one-hot columns.")
    check(callable(function), "function", "a function of rows", function, SpaceError)
    if any(column in rule.block for rule in space.rules):
        raise SpaceError(f"{column!r} can't be derived: it moves together with others.")
    old = [rule for rule in space.rules if rule.derives == column]
    return space.with_rules(Derived(function, column), instead_of=old)
