"""Rules over several features, written as text or given as a function.

Both see values in the user's units, never codes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayescfx.arrays import Array, Mask
from bayescfx.checks import check
from bayescfx.data import Feature
from bayescfx.data.tables import returned
from bayescfx.data.values import Plain
from bayescfx.errors import BayesCFXError, SpaceError
from bayescfx.space.axis import Axis
from bayescfx.space.conditions import Condition, Member, parse_rule
from bayescfx.space.expressions import Comparison
from bayescfx.space.rule import Rule

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space


@dataclass(frozen=True, eq=False)
class TextRule(Rule):
    """A rule written as text; all of its conditions must hold."""

    text: str
    label: str
    conditions: tuple[Condition, ...] = field(repr=False)

    rank = 1

    @classmethod
    def parse(
        cls, text: str, features: Mapping[Hashable, Feature], label: str | None = None
    ) -> TextRule:
        """Return the rule that `text` states about `features`."""
        return cls(text, label or text, parse_rule(text, features))

    def narrow(self, axes: list[Axis], places: Mapping[Hashable, int], most: int | None) -> None:
        """Keep the levels that it names, and the query's own."""
        for condition in self.conditions:
            if not isinstance(condition, Member):
                continue
            j = places[condition.feature]
            codes = axes[j].choices
            if codes is not None:
                kept = condition.allows(codes) | (codes == axes[j].query)
                axes[j] = replace(axes[j], choices=codes[kept])

    def holds(self, region: Region, X: Array) -> Mask:
        schema = region.schema

        def codes(name: Hashable) -> Array:
            return X[:, schema.positions[name]]

        def numbers(name: Hashable) -> Array:
            return schema.features[name].numbers(codes(name))

        holds = np.ones(len(X), dtype=np.bool_)
        for condition in self.conditions:
            holds &= condition.holds(numbers, codes)
        return holds

    @cached_property
    def _linear(self) -> list[tuple[dict[Hashable, float], float] | None]:
        """The linear parts ``sum_j a_j x_j <= b``, and None for each other condition."""
        found: list[tuple[dict[Hashable, float], float] | None] = []
        for condition in self.conditions:
            parts = condition.linear() if isinstance(condition, Comparison) else None
            found += parts or [None]
        return found

    def halfspaces(self, region: Region) -> list[tuple[Array, float]]:
        """Return the linear comparisons, over codes."""
        found = []
        for part in self._linear:
            pair = None if part is None else _over_codes(region, *part)
            if pair is not None:
                found.append(pair)
        return found

    def curved(self, region: Region) -> bool:
        """Return whether a condition is not linear over codes."""
        return len(self.halfspaces(region)) < len(self._linear)

    def to_plain(self) -> dict[str, Plain]:
        """Return text and label; the conditions are parsed again."""
        return {"rule": "TextRule", "text": self.text, "label": self.label}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], features: Mapping[Hashable, Feature]) -> TextRule:
        """Return the rule of a text that :meth:`to_plain` wrote."""
        return cls.parse(plain["text"], features, plain["label"])


def _over_codes(
    region: Region, coefficients: Mapping[Hashable, float], bound: float
) -> tuple[Array, float] | None:
    """Return ``a @ x <= b`` over codes for numbers; None if numbers are no line over codes."""
    schema = region.schema
    a = np.zeros(len(schema.names))
    for name, coefficient in coefficients.items():
        line = schema.features[name].line
        if line is None:
            return None
        a[schema.positions[name]] += coefficient * line[1]
        bound -= coefficient * line[0]
    return a, bound


@dataclass(frozen=True, eq=False)
class FunctionRule(Rule):
    """A function of raw rows that returns which of them are allowed."""

    function: Callable[[Any], Any] = field(repr=False)
    label: str

    rank = 4
    opaque = True
    written = False

    def holds(self, region: Region, X: Array) -> Mask:
        allowed: Mask = region.remembered(self, X, lambda new: self.allows(region.rows(new)))
        return allowed

    def allows(self, rows: Any) -> Mask:
        """Return which raw rows the function allows; it must return one boolean per row."""
        allowed = call_function(self.function, rows, f"rule {self.label!r}")
        may_be_boolean = allowed.dtype in (np.dtype(np.bool_), np.dtype(object))
        if allowed.shape != (len(rows),) or not may_be_boolean:
            raise SpaceError(
                f"rule {self.label!r} must return one boolean per row; got shape {allowed.shape} "
                f"and dtype {allowed.dtype} for {len(rows)} rows. Compare whole columns."
            )
        if allowed.dtype == object:  # a missing result allows nothing
            return np.array([value is True or value is np.True_ for value in allowed])
        return allowed


def call_function(function: Callable[[Any], Any], rows: Any, what: str) -> NDArray[Any]:
    """Return the result of a user's function as an array; what it raises becomes a SpaceError."""
    try:
        return np.asarray(returned(function(rows), rows, what, SpaceError))
    except BayesCFXError:
        raise
    except Exception as error:
        raise SpaceError(
            f"{what} raised {type(error).__name__}: {error}. It must take any allowed row."
        ) from error


def require(space: Space, rule: str | Callable[[Any], Any], label: str | None = None) -> Space:
    """Return the space with a rule every counterfactual must satisfy.

    Parameters
    ----------
    rule : str or callable
        Text such as ``"a + 2*b <= 10"``, ``"cut == 'Ideal' or price <= 500"``,
        ``"colour in ['D', 'E']"`` or ``"smoker == 'yes' -> age >= 18"``; or a function of raw
        rows that returns one boolean per row.
    label : str, optional
        Name of the rule in messages.
    """
    check(isinstance(label, str | None), "label", "text", label, SpaceError)
    if isinstance(rule, str):
        return space.with_rules(TextRule.parse(rule, space.features, label))
    check(callable(rule), "rule", "text or a function of rows", rule, SpaceError)
    name = label or str(getattr(rule, "__name__", repr(rule)))
    return space.with_rules(FunctionRule(rule, name))
