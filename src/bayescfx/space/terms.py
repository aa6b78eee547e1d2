"""The terms of a space: everything that was learnt from data and said by the user."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from bayescfx.arrays import Array
from bayescfx.features import Feature
from bayescfx.space.limits import Limits
from bayescfx.space.near import NearData
from bayescfx.space.rules import Cost, Derived, FunctionRule, TextRule
from bayescfx.space.schema import Schema


@dataclass(frozen=True, eq=False)
class Terms:
    """What a space holds; its verbs are in `Space`.

    Parameters
    ----------
    schema : Schema
        Features and the user's columns.
    scale : ndarray of shape (d,)
        One unit of change per feature.
    background : ndarray of shape (m, d)
        At most 5,000 data rows, as codes.
    limits : dict of name to Limits
        What was said of single features.
    rules : tuple of TextRule or FunctionRule
    derived : tuple of Derived
        Recomputed columns.
    blocks : tuple of tuple of names
        Features that move together.
    most_changes : int or None
        The l0 bound.
    price : Cost
        What moving costs.
    near : tuple of NearData
        The data to stay close to.
    inferred : frozenset of names
        Features whose range came from data.
    unrestored : tuple of str
        Rules that were lost on the way through a file.
    """

    schema: Schema
    scale: Array
    background: Array
    limits: Mapping[Hashable, Limits]
    rules: tuple[TextRule | FunctionRule, ...]
    derived: tuple[Derived, ...]
    blocks: tuple[tuple[Hashable, ...], ...]
    most_changes: int | None
    price: Cost
    near: tuple[NearData, ...]
    inferred: frozenset[Hashable]
    unrestored: tuple[str, ...]

    @property
    def features(self) -> Mapping[Hashable, Feature]:
        """Features by name, in the order of the codes."""
        return self.schema.features

    def limits_of(self, name: Hashable) -> Limits:
        """Return what was said of one feature."""
        return self.limits.get(name, Limits())

    def is_derived(self, name: Hashable) -> bool:
        """Return whether a feature is recomputed from others."""
        return any(rule.name == name for rule in self.derived)
