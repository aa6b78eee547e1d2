"""A column that is recomputed from the others on every candidate."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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

#: Numerical: a derivation reproduces the query's number if they differ by at most this share.
SAME_VALUE = 1e-6


@dataclass(frozen=True, eq=False)
class Derived(Rule):
    """A column that is a function of the others.

    Parameters
    ----------
    function : callable
        Raw rows to values of shape (n,).
    derives : hashable
        The column.
    residual : bool
        Whether the query's residual, its own value minus that of the function, is added.
    shift : float
        The residual of the query.
    base : float
        The code of the recomputed value for the query.
    """

    function: Callable[[Any], Any] = field(repr=False)
    derives: Hashable
    residual: bool = False
    shift: float = 0.0
    base: float = np.nan

    rank = 2
    written = False

    @property
    def words(self) -> Words:
        """The rule in words; it is no binding constraint."""
        return Words(f"derive({self.derives!r})", "", "")

    def describe_feature(self, name: Hashable, feature: Feature) -> str:
        """Mark the column as derived."""
        if name != self.derives:
            return ""
        return "derived, keeps the residual" if self.residual else "derived"

    def for_query(self, region: Region) -> Derived:
        """Return the rule with the recomputed value, and the residual, of the query."""
        rows = region.rows(region.query[None])
        rule = self
        if self.residual:
            own = float(region.query[region.schema.positions[self.derives]])
            shift = own - float(self._values(rows)[0])
            rule = replace(self, shift=shift if np.isfinite(shift) else 0.0)
        return replace(rule, base=float(rule._codes(region, rows)[0]))

    def mismatch(self, region: Region) -> str:
        """Return how far the function is from the query's own cell, in words; or nothing."""
        feature = region.schema.features[self.derives]
        own = float(region.query[region.schema.positions[self.derives]])
        if np.isclose(own, self.base, rtol=SAME_VALUE, atol=0.0, equal_nan=True):
            return ""
        given, kept = (
            "missing" if np.isnan(c) else feature.display(c)[0] for c in (self.base, own)
        )
        text = (
            f"{self.words.label} gives {given}, but the query has {kept}. The cell stays until "
            "what it depends on changes, and then takes the value of the function."
        )
        difference = own - self.base
        if not feature.numeric or np.isnan(difference):
            return text
        return f"{text} To keep the difference of {difference:+.4g}, derive it with residual=True."

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
        """Return the codes ``(n,)`` that the function, and the residual, give for rows."""
        return region.schema.encode_column(self.derives, self._values(rows))

    def _values(self, rows: Rows) -> NDArray[Any]:
        """Return the values ``(n,)`` that the function gives for rows, the residual added."""
        label = self.words.label
        values = call_function(self.function, rows, label)
        if values.shape != (len(rows),):
            raise SpaceError(
                f"the function of {label} must return one value per row; got shape {values.shape} "
                f"for {len(rows)} rows."
            )
        return values + self.shift if self.shift else values


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


def derive(
    space: Space, name: Hashable, function: Callable[[Any], Any], *, residual: bool = False
) -> Space:
    """Return the space in which a column is recomputed on every candidate.

    The column follows the others and is no change of its own: it has no cost, and `max_changes`
    does not count it. The query's own cell stays as long as the function gives the same value for
    the row as for the query. A warning says so if that value is not the query's own.

    Parameters
    ----------
    name : feature
    function : callable
        Raw rows to the values of the column, shape (n,).
    residual : bool, default False
        Whether the difference between the query's own number and that of the function is added
        to every value: ``function(row) + (own - function(query))``.
    """
    check(isinstance(residual, bool), "residual", "True or False", residual, SpaceError)
    column = space.name(name)
    if column in space.schema.groups:
        raise SpaceError(f"{column!r} can't be derived: it stands for one-hot columns.")
    check(callable(function), "function", "a function of rows", function, SpaceError)
    if any(column in rule.block for rule in space.rules):
        raise SpaceError(f"{column!r} can't be derived: it moves together with others.")
    if residual:
        _check_numbers(column, space.features[column])
    old = [rule for rule in space.rules if rule.derives == column]
    return space.with_rules(Derived(function, column, residual), instead_of=old)


def _check_numbers(column: Hashable, feature: Feature) -> None:
    """Raise unless a feature can have a residual."""
    kind = "cyclic" if feature.period else type(feature).__name__
    if feature.period or not feature.numeric:
        raise SpaceError(f"`residual` needs numbers on a line, but {column!r} is {kind}.")
