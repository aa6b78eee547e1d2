"""The paper's l0 bound: at most so many features change."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

from bayescfx.checks import check, is_a, is_number
from bayescfx.errors import SpaceError
from bayescfx.space.rule import Rule, Words

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
