"""The cost of a counterfactual, which every search minimises: distance plus a price per change."""

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
    """How the cost ``distance + per_change * n_changes`` is measured, and how much it counts.

    Parameters
    ----------
    weight : float
        How much the cost counts beside the potential until the target is reached; see
        `Question.weight`. With 0 a search ends at the first row that reaches the target.
    norm : float
        The p of the norm: any number from 1 on, or 0 to count changes.
    per_feature : dict of name to float
        Factors of single features in the distance; 1 for all others.
    per_change : float
        The price of each changed feature. 0.2 was set by judgement: an answer may be a fifth of a
        unit farther away to change one feature less.
    """

    weight: float = 0.1
    norm: float = 1.0
    per_feature: Mapping[Hashable, float] = field(default_factory=dict)
    per_change: float = 0.2

    def __post_init__(self) -> None:
        """Raise unless weight, norm, factors and price are valid."""
        check(is_number(self.weight, 0), "weight", "a number >= 0", self.weight, SpaceError)
        for name, factor in self.per_feature.items():
            parameter = f"per_feature[{name!r}]"
            check(is_number(factor, 0), parameter, "a number >= 0", factor, SpaceError)
        is_norm = is_number(self.norm, 1) or (is_number(self.norm) and self.norm == 0)
        check(is_norm, "norm", "0 or a number >= 1", self.norm, SpaceError)
        is_price = is_number(self.per_change, 0)
        check(is_price, "per_change", "a number >= 0", self.per_change, SpaceError)

    @property
    def words(self) -> str:
        """Its line in ``print(space)``."""
        text = f"cost: l{self.norm:g} distance"
        if self.per_feature:
            factors = [f"{name} × {factor:g}" for name, factor in self.per_feature.items()]
            text = f"{text} ({', '.join(factors)})"
        if self.per_change:
            text = f"{text} + {self.per_change:g} per change"
        if self.weight == 0.0:
            return f"{text}, not minimised"
        return text if self.weight == Cost.weight else f"{text}, weight {self.weight:g}"


def cost(
    space: Space,
    *,
    per_change: float | None = None,
    per_feature: Mapping[Any, float] | None = None,
    norm: float | None = None,
    weight: float | None = None,
) -> Space:
    """Return the space with another cost; parameters that are not given stay.

    The cost of a row is its distance from the query plus a price for each changed feature:
    ``distance + per_change * n_changes``. Every search minimises it among the rows that reach the
    target.

    Parameters
    ----------
    per_change : float
        The price of each changed feature, 0.2 by default. With 0 the distance alone is minimised;
        the larger it is, the fewer features change.
    per_feature : dict of name to float
        Factors of single features in the distance.
    norm : float
        The p of the norm of the distance: 0 counts changes, 1 is the default.
    weight : float
        How much the cost counts beside the potential until the target is reached, 0.1 by default.
        With 0 a search ends as soon as the target is reached.
    """
    old = space.price
    factors = {} if per_feature is None else space.by_name(per_feature, "per_feature")
    price = Cost(
        weight=old.weight if weight is None else weight,
        norm=old.norm if norm is None else norm,
        per_feature={**old.per_feature, **factors},
        per_change=old.per_change if per_change is None else per_change,
    )
    return space.with_fields(price=price)
