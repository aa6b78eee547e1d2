"""A comparison of arithmetic expressions, such as ``"a + 2*b <= 10"``, in the user's units."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.errors import SpaceError
from bayescfx.features import Feature
from bayescfx.space.expressions import Comparison, parse_rule
from bayescfx.space.rule import Rule
from bayescfx.values import Plain

if TYPE_CHECKING:
    from bayescfx.space.region import Region


@dataclass(frozen=True)
class TextRule(Rule):
    """A comparison of arithmetic expressions over features."""

    text: str
    title: str
    comparisons: tuple[Comparison, ...] = field(repr=False)

    rank = 1

    @classmethod
    def parse(
        cls, text: str, features: Mapping[Hashable, Feature], label: str | None = None
    ) -> TextRule:
        """Return the rule that `text` states about `features`."""
        comparisons = parse_rule(text, tuple(features))
        for comparison in comparisons:
            units = {features[name].measure(name, text) for name in comparison.features}
            if len(units - {""}) > 1:
                raise SpaceError(f"rule {text!r} mixes times of different units. Use one unit.")
        return cls(text, label or text, comparisons)

    @property
    def label(self) -> str:
        """What messages call the rule."""
        return self.title

    def holds(self, region: Region, X: Array) -> Mask:
        """Return which rows satisfy every comparison."""
        schema = region.schema

        def values(name: Hashable) -> Array:
            return schema.features[name].numbers(X[:, schema.positions[name]])

        holds = np.ones(len(X), dtype=np.bool_)
        for comparison in self.comparisons:
            holds &= comparison.holds(values)
        return holds

    @cached_property
    def _linear(self) -> list[tuple[dict[Hashable, float], float]]:
        return [pair for comparison in self.comparisons for pair in comparison.linear() or ()]

    def halfspaces(self, region: Region) -> list[tuple[Array, float]]:
        """Return the linear comparisons over codes."""
        schema, found = region.schema, []
        for coefficients, bound in self._linear:
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
        """Return whether a comparison is not linear."""
        straight = all(comparison.linear() for comparison in self.comparisons)
        return not straight or len(self.halfspaces(region)) < len(self._linear)

    def to_plain(self) -> dict[str, Plain]:
        """Return text and label."""
        return {"rule": "TextRule", "text": self.text, "title": self.title}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], features: Mapping[Hashable, Feature]) -> TextRule:
        """Return the rule, parsed anew."""
        return cls.parse(plain["text"], features, plain["title"])
