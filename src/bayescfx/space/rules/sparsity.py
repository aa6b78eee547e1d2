"""Which changes may go together: the paper's l0 bound, and features that move as one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
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
    """At most so many features change; a region keeps the bound as its `max_changes`."""

    most_changes: int

    @property
    def words(self) -> Words:
        """The rule in words; a region that is relaxed allows one change more."""
        label = f"at most {self.most_changes} changes"
        return Words(label, label, "")

    def seen_from(self, region: Region) -> None:
        return


def max_changes(space: Space, k: int) -> Space:
    """Return the space in which at most `k` features change (the paper's l0 bound)."""
    good = is_a(k, Integral) and is_number(k, 1)
    check(good, "k", "a whole number >= 1", k, SpaceError)
    old = [rule for rule in space.rules if rule.most_changes is not None]
    least = min([int(k), *(rule.most_changes or k for rule in old)])
    return space.adding(MaxChanges(least), instead_of=old)


@dataclass(frozen=True, eq=False)
class Together(Rule):
    """Features that move in the same direction or not at all."""

    block: tuple[Hashable, ...]

    rank = 1

    @property
    def words(self) -> Words:
        names = list(map(repr, self.block))
        return Words(
            f"together({', '.join(names)})",
            f"together: {', '.join(map(str, self.block))}",
            f"moving {' and '.join(names)} together",
        )

    def narrow(self, axes: list[Axis], places: Mapping[Hashable, int], most: int | None) -> None:
        """Fix all of them where one can't follow the others."""
        at = [places[name] for name in self.block]
        fits = most is None or len(at) <= most
        if not fits or not any(all(axes[j].room(side) for j in at) for side in (-1, 1)):
            for j in at:
                axes[j] = replace(axes[j], choices=np.array([axes[j].query]))

    def seen_from(self, region: Region) -> Together | None:
        """Return the rule where its features may move; else the axes keep it."""
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
    found = dict.fromkeys(map(space.name, names))
    if len(found) < 2:
        raise SpaceError(f"`together` needs at least two features; got {names!r}.")
    derived = {rule.derives for rule in space.rules}
    for name in found:
        check_ordered(name, space.features[name], "together")
        if name in derived:
            raise SpaceError(f"`together` can't name {name!r}: it is derived from other columns.")
    met = [rule for rule in space.rules if set(rule.block) & set(found)]
    merged = set(found).union(*(rule.block for rule in met))
    block = tuple(name for name in space.features if name in merged)
    return space.adding(Together(block), instead_of=met)
