"""Stay close to data: as usual as most of the data itself, see :mod:`bayescfx.space.usual`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bayescfx.arrays import Array, Mask
from bayescfx.checks import check, is_number
from bayescfx.errors import SpaceError
from bayescfx.space.inference import as_table, background
from bayescfx.space.rule import Rule
from bayescfx.space.usual import Usual

if TYPE_CHECKING:
    from bayescfx.space.region import Region
    from bayescfx.space.space import Space


@dataclass(frozen=True, eq=False)
class NearData(Rule):
    """What is usual in data, and the score that a share of the data keeps."""

    usual: Usual
    least: float
    label: str

    rank = 5
    written = False

    def seen_from(self, region: Region) -> NearData:
        """Return the rule as a query sees it: what is as usual as itself is usual enough."""
        return replace(self, least=min(self.least, float(self.usual.score(region.query[None])[0])))

    def holds(self, region: Region, X: Array) -> Mask:
        return np.asarray(self.usual.score(X) >= self.least - 1e-9)


def near_data(space: Space, X: object, quantile: float = 0.95) -> Space:
    """Return the space in which counterfactuals stay close to data.

    A counterfactual is refused if its values go together less often than in nearly all of the data
    (and less often than the query's own).

    Parameters
    ----------
    X : DataFrame or array
        Rows of this space; at most 100,000 of them are used.
    quantile : float, default 0.95
        Share of the data that is itself close enough.
    """
    good = is_number(quantile, 0, 1) and quantile > 0
    check(good, "quantile", "a number in (0, 1]", quantile, SpaceError)
    frame, _ = as_table(X)
    missing = [c.name for c in space.schema.columns if c.name not in frame.columns]
    check(not missing, "X", f"rows of this space, with the columns {missing[:3]}", X, SpaceError)
    try:
        data = background(frame, space.schema, most=100_000)
    except (TypeError, ValueError, OverflowError) as error:
        raise SpaceError(f"`X` must have rows of this space; {error}") from error
    if len(data) < 2:
        raise SpaceError(f"`X` must have at least 2 rows of the space; got {len(data)}.")
    usual = Usual.learn(data, space.features.values())
    least = float(np.quantile(usual.scores, 1.0 - quantile, method="lower"))
    return space.adding(NearData(usual, least, f"near_data(quantile={quantile:g})"))
