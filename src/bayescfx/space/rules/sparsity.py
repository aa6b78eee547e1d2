"""Rules on sets of changes: the paper's l0 bound, and features that change together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.checks import check, is_a, is_number
from bayescfx.errors import SpaceError
from bayescfx.space.axis import Axis
from bayescfx.space.rule import Rule, Words
from bayescfx.space.rules.limits import check_ordered

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space


@dataclass(frozen=True, eq=False)
class MaxChanges(Rule):
    """At most so many features change; a region holds the bound as its `max_changes`."""

    most_changes: int

    @property
    def words(self) -> Words:
        """The rule in words; a region that is relaxed allows one change more."""
        label = f"at most {self.most_changes} changes"
        return Words(label, label, "")

    def for_query(self, region: Region) -> None:
        """Return None: the region holds the bound."""
        return


def max_changes(space: Space, k: int) -> Space:
    """Return the space in which at most `k` features change (the paper's l0 bound)."""
    is_valid = is_a(k, Integral) and is_number(k, 1)
    check(is_valid, "k", "a whole number >= 1", k, SpaceError)
    old = [rule for rule in space.rules if rule.most_changes is not None]
    bounds = [rule.most_changes for rule in old if rule.most_changes is not None]
    return space.with_rules(MaxChanges(min([int(k), *bounds])), instead_of=old)


@dataclass(frozen=True, eq=False)
class Together(Rule):
    """Features that move in the same direction or not at all."""

    block: tuple[Hashable, ...]

    rank = 1

    @property
    def words(self) -> Words:
        names = [repr(name) for name in self.block]
        return Words(
            f"together({', '.join(names)})",
            f"together: {', '.join(map(str, self.block))}",
            f"moving {' and '.join(names)} together",
        )

    def narrow(self, axes: list[Axis], places: Mapping[Hashable, int], most: int | None) -> None:
        """Fix all of them where one can't follow the others."""
        at = [places[name] for name in self.block]
        sides = [side for side in (-1, 1) if all(axes[j].room(side) for j in at)]
        fits = most is None or len(at) <= most
        if fits and sides:
            return
        for j in at:
            axes[j] = replace(axes[j], choices=np.array([axes[j].query]))

    def for_query(self, region: Region) -> Together | None:
        """Return the rule if its features may move; else the axes imply it."""
        at = [region.schema.positions[name] for name in self.block]
        return self if np.isin(at, region.free).all() else None

    def holds(self, region: Region, X: Array) -> Mask:
        at = [region.schema.positions[name] for name in self.block]
        sides = region.sides(X, at)
        return np.asarray((sides == sides[:, :1]).all(axis=1))


def together(space: Space, *names: Hashable) -> Space:
    """Return the space in which these features all rise, all fall, or all stay.

    A move counts from a millionth of the feature's unit of change on.
    """
    wanted = list(dict.fromkeys(space.name(name) for name in names))
    if len(wanted) < 2:
        raise SpaceError(f"`together` needs at least two features; got {names!r}.")
    _check_independent(space, wanted)
    overlapping = [rule for rule in space.rules if set(wanted) & set(rule.block)]
    merged = set(wanted).union(*(rule.block for rule in overlapping))
    block = tuple(name for name in space.features if name in merged)
    return space.with_rules(Together(block), instead_of=overlapping)


def _check_independent(space: Space, names: Iterable[Hashable]) -> None:
    """Raise unless features that move together have an order, and none of them is derived."""
    derived = {rule.derives for rule in space.rules}
    for name in names:
        check_ordered(name, space.features[name], "together")
        if name in derived:
            raise SpaceError(f"`together` can't name {name!r}: it is derived from other columns.")
