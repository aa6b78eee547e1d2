"""What must hold for several features at once, written as text or given as a function.

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
from bayescfx.errors import SpaceError
from bayescfx.space.axis import Axis
from bayescfx.space.conditions import Condition, Member, parse_rule
from bayescfx.space.expressions import Comparison
from bayescfx.space.rule import Rule

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space


@dataclass(frozen=True, eq=False)
class TextRule(Rule):
    """What a text says about features: all of its conditions."""

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
        """Leave the levels that it names, and the query's own."""
        for condition in self.conditions:
            if isinstance(condition, Member):
                axis = axes[j := places[condition.feature]]
                if axis.choices is not None:
                    kept = condition.allows(axis.choices) | (axis.choices == axis.query)
                    axes[j] = replace(axis, choices=axis.choices[kept])

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
        """The linear parts ``sum_j a_j x_j <= b``, and None for each condition that is none."""
        compared = (c.linear() if isinstance(c, Comparison) else None for c in self.conditions)
        return [part for parts in compared for part in (parts or (None,))]

    def halfspaces(self, region: Region) -> list[tuple[Array, float]]:
        schema, found = region.schema, []
        for coefficients, bound in filter(None, self._linear):
            a, b = np.zeros(len(schema.names)), bound
            for name, coefficient in coefficients.items():
                line = schema.features[name].line
                if line is None:
                    break
                a[schema.positions[name]] += coefficient * line[1]
                b -= coefficient * line[0]
            else:
                found.append((a, b))
        return found

    def curved(self, region: Region) -> bool:
        return len(self.halfspaces(region)) < len(self._linear)

    def to_plain(self) -> dict[str, Plain]:
        return {"rule": "TextRule", "text": self.text, "label": self.label}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], features: Mapping[Hashable, Feature]) -> TextRule:
        return cls.parse(plain["text"], features, plain["label"])


@dataclass(frozen=True, eq=False)
class FunctionRule(Rule):
    """A function of raw rows that says which of them are allowed."""

    function: Callable[[Any], Any] = field(repr=False)
    label: str

    rank = 4
    opaque = True
    written = False

    def holds(self, region: Region, X: Array) -> Mask:
        found: Mask = region.remembered(self, X, lambda new: self.allows(region.rows(new)))
        return found

    def allows(self, rows: Any) -> Mask:
        """Return which raw rows the function allows; it must return one boolean per row."""
        found = called(self.function, rows, f"rule {self.label!r}")
        if found.shape == (len(rows),) and found.dtype == object:
            return np.array([value is True or value is np.True_ for value in found])
        if found.shape != (len(rows),) or found.dtype != np.bool_:
            raise SpaceError(
                f"rule {self.label!r} must return one boolean per row; got shape {found.shape} "
                f"and dtype {found.dtype} for {len(rows)} rows. Compare whole columns."
            )
        return found


def called(function: Callable[[Any], Any], rows: Any, what: str) -> NDArray[Any]:
    """Return what a user's function says of rows, as an array; what it raises has a note."""
    try:
        return np.asarray(returned(function(rows), rows, what, SpaceError))
    except Exception as error:
        error.add_note(f"in {what}, for {len(rows)} rows")
        raise


def require(space: Space, rule: str | Callable[[Any], Any], label: str | None = None) -> Space:
    """Return the space with a rule every counterfactual must satisfy.

    Parameters
    ----------
    rule : str or callable
        Text such as ``"a + 2*b <= 10"``, ``"cut == 'Ideal' or price <= 500"``,
        ``"colour in ['D', 'E']"`` or ``"smoker == 'yes' -> age >= 18"``; or a function of raw
        rows that returns one boolean per row.
    label : str, optional
        What to call the rule in messages.
    """
    check(isinstance(label, str | None), "label", "text", label, SpaceError)
    if isinstance(rule, str):
        return space.adding(TextRule.parse(rule, space.features, label))
    check(callable(rule), "rule", "text or a function of rows", rule, SpaceError)
    return space.adding(FunctionRule(rule, label or str(getattr(rule, "__name__", repr(rule)))))
