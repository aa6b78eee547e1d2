"""What moving costs: the paper's lp regulariser."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bayescfx.checks import check, is_number
from bayescfx.errors import SpaceError

if TYPE_CHECKING:
    from bayescfx.space.space import Space


@dataclass(frozen=True)
class Cost:
    """How much a unit of distance counts against the potential, and what the distance is."""

    weight: float = 0.1  # 0 switches the cost off
    norm: float = 1.0  # the p of the norm: any number from 1 on, or 0 to count changes
    per_feature: Mapping[Hashable, float] = field(default_factory=dict)  # factors; else 1

    def __post_init__(self) -> None:
        factors = [(f"per_feature[{name!r}]", value) for name, value in self.per_feature.items()]
        for name, value in (("weight", self.weight), *factors):
            check(is_number(value, 0), name, "a number >= 0", value, SpaceError)
        good = is_number(self.norm, 1) or (is_number(self.norm) and self.norm == 0)
        check(good, "norm", "0 or a number >= 1", self.norm, SpaceError)

    @property
    def words(self) -> str:
        """Its line in ``print(space)``."""
        if self.weight == 0:
            return "cost: none"
        factors = ", ".join(f"{name} × {factor:g}" for name, factor in self.per_feature.items())
        return f"cost: {self.weight:g} × l{self.norm:g} distance" + f" ({factors})" * bool(factors)


def cost(
    space: Space,
    *,
    weight: float | None = None,
    norm: float | None = None,
    per_feature: Mapping[Any, float] | None = None,
) -> Space:
    """Return the space with another cost of moving; what is not given stays.

    Parameters
    ----------
    weight : float
        How much the distance counts; 0 switches the cost off.
    norm : float
        The p of the norm: 0 counts changes, 1 is the default.
    per_feature : dict of name to float
        Factors for single features.
    """
    old = space.price
    factors = {} if per_feature is None else space.wishes(per_feature, "per_feature")
    weight, norm = old.weight if weight is None else weight, old.norm if norm is None else norm
    return space.changed(price=Cost(weight, norm, {**old.per_feature, **factors}))
