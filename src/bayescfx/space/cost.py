"""The cost of changes: the paper's lp regulariser."""

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
    """The weight of the distance against the potential, and the norm of the distance."""

    weight: float = 0.1  # 0 switches the cost off
    norm: float = 1.0  # the p of the norm: any number from 1 on, or 0 to count changes
    per_feature: Mapping[Hashable, float] = field(default_factory=dict)  # factors; else 1

    def __post_init__(self) -> None:
        """Raise unless weight, norm and factors are valid."""
        check(is_number(self.weight, 0), "weight", "a number >= 0", self.weight, SpaceError)
        for name, factor in self.per_feature.items():
            parameter = f"per_feature[{name!r}]"
            check(is_number(factor, 0), parameter, "a number >= 0", factor, SpaceError)
        is_norm = is_number(self.norm, 1) or (is_number(self.norm) and self.norm == 0)
        check(is_norm, "norm", "0 or a number >= 1", self.norm, SpaceError)

    @property
    def words(self) -> str:
        """Its line in ``print(space)``."""
        if self.weight == 0:
            return "cost: none"
        text = f"cost: {self.weight:g} × l{self.norm:g} distance"
        if not self.per_feature:
            return text
        factors = ", ".join(f"{name} × {factor:g}" for name, factor in self.per_feature.items())
        return f"{text} ({factors})"


def cost(
    space: Space,
    *,
    weight: float | None = None,
    norm: float | None = None,
    per_feature: Mapping[Any, float] | None = None,
) -> Space:
    """Return the space with another cost of changes; parameters that are not given stay.

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
    factors = {} if per_feature is None else space.by_name(per_feature, "per_feature")
    price = Cost(
        weight=old.weight if weight is None else weight,
        norm=old.norm if norm is None else norm,
        per_feature={**old.per_feature, **factors},
    )
    return space.with_fields(price=price)
