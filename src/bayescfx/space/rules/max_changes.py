"""The paper's l0 bound: at most so many features change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayescfx.errors import SpaceError
from bayescfx.space.rule import Rule

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space


@dataclass(frozen=True)
class MaxChanges(Rule):
    """At most `k` features change; a region keeps the bound as its `max_changes`."""

    k: int

    @property
    def label(self) -> str:
        """What messages call the rule."""
        return f"at most {self.k} changes"

    @property
    def words(self) -> str:
        """Its line in ``print(space)``."""
        return self.label

    @property
    def most_changes(self) -> int:
        """The bound."""
        return self.k

    def seen_from(self, region: Region) -> None:
        """Return nothing: the region has the bound."""
        return


def max_changes(space: Space, k: int) -> Space:
    """Return the space in which at most `k` features change (the paper's l0 bound)."""
    given: object = k
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise SpaceError(f"`k` must be a whole number >= 1; got {k!r}.")
    old = [rule for rule in space.rules if isinstance(rule, MaxChanges)]
    return space.adding(MaxChanges(min([int(k), *(rule.k for rule in old)])), instead_of=old)
