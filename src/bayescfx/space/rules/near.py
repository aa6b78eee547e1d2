"""Counterfactuals stay close to the data: see :mod:`bayescfx.space.plausibility`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.checks import check, is_number
from bayescfx.errors import SpaceError
from bayescfx.space.inference import as_table, background
from bayescfx.space.plausibility import Plausibility
from bayescfx.space.rule import Rule

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space

# Numerical: scores closer than this are equal up to rounding.
_TOLERANCE = 1e-9
# Rows of the data that the model is fitted to; set by judgement, 2026-11-18.
_MAX_ROWS = 100_000


@dataclass(frozen=True, eq=False)
class NearData(Rule):
    """A lower bound on the plausibility score."""

    plausibility: Plausibility
    least: float
    label: str

    rank = 5
    written = False

    def for_query(self, region: Region) -> NearData:
        """Return the rule for one query: rows as plausible as the query itself are allowed."""
        own_score = float(self.plausibility.score(region.query[None])[0])
        return replace(self, least=min(self.least, own_score))

    def holds(self, region: Region, X: Array) -> Mask:
        """Return which rows are plausible enough."""
        return np.asarray(self.plausibility.score(X) >= self.least - _TOLERANCE)


def near_data(space: Space, X: object, quantile: float = 0.95) -> Space:
    """Return the space in which counterfactuals stay close to data.

    A counterfactual is rejected if its values occur together less often than those of nearly all
    data rows, and less often than the query's own.

    Parameters
    ----------
    X : DataFrame or array
        Rows of this space; at most 100,000 of them are used.
    quantile : float, default 0.95
        Share of the data rows that satisfy the rule.
    """
    good = is_number(quantile, 0, 1) and quantile > 0
    check(good, "quantile", "a number in (0, 1]", quantile, SpaceError)
    frame, _ = as_table(X)
    missing = [c.name for c in space.schema.columns if c.name not in frame.columns]
    check(not missing, "X", f"rows of this space, with the columns {missing[:3]}", X, SpaceError)
    try:
        data = background(frame, space.schema, most=_MAX_ROWS)
    except (TypeError, ValueError, OverflowError) as error:
        raise SpaceError(f"`X` must have rows of this space; {error}") from error
    if len(data) < 2:
        raise SpaceError(f"`X` must have at least 2 rows of the space; got {len(data)}.")
    plausibility = Plausibility.fit(data, space.features.values())
    least = float(np.quantile(plausibility.scores, 1.0 - quantile, method="lower"))
    return space.with_rules(NearData(plausibility, least, f"near_data(quantile={quantile:g})"))
