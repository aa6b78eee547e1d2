"""Finite differences inside a region: every row that is evaluated is an allowed one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.space.region import Region


@dataclass(frozen=True)
class Nudges:
    """Allowed rows that differ from one row in one feature each.

    Parameters
    ----------
    rows : Array of shape (m, d)
        Codes.
    features : Indices of shape (m,)
        Which feature was nudged.
    by : Array of shape (m,)
        How far, in code units, after snapping to the feature's grid; never 0.
    """

    rows: Array
    features: Indices
    by: Array

    def quotients(self, value: float, values: Array) -> Array:
        """Return the difference quotients ``(d,)``; 0 for features without a nudge or an output.

        Parameters
        ----------
        value : float
            The function at the row itself.
        values : Array of shape (m,)
            The function at `rows`; nan where there is none.
        """
        found = np.zeros(self.rows.shape[1])
        found[self.features] = (values - value) / self.by
        return np.nan_to_num(found, nan=0.0)


def nudges(region: Region, x: Array, features: Indices, by: Array) -> Nudges:
    """Return rows one nudge away from an allowed row: upwards, or else downwards.

    A feature that can be nudged neither way without leaving the region (its rules included) is
    left out. On a grid a nudge is at least one step.

    Parameters
    ----------
    region : Region
        Where rows must stay.
    x : Array of shape (d,)
        The row, in the region.
    features : Indices of shape (k,)
        Ordered features.
    by : Array of shape (k,)
        Wanted nudges in code units, positive.

    Examples
    --------
    >>> from bayescfx.features import Integer, Real
    >>> from bayescfx.space.space import Space
    >>> region = Space({"a": Real(0, 1), "b": Integer(0, 9)}).around({"a": 1.0, "b": 3})
    >>> found = nudges(region, region.query, region.free, np.array([0.25, 0.25]))
    >>> found.rows.tolist(), found.by.tolist()
    ([[0.75, 3.0], [1.0, 4.0]], [-0.25, 1.0])
    """
    reach = np.maximum(by, region.step[features])
    rows, moved = _moved(region, x, features, reach)
    back = np.flatnonzero(~moved)
    if len(back):
        rows[back], moved[back] = _moved(region, x, features[back], -reach[back])
    kept = np.flatnonzero(moved)
    at = features[kept]
    return Nudges(rows[kept], at, rows[kept, at] - x[at])


def _moved(region: Region, x: Array, features: Indices, by: Array) -> tuple[Array, Mask]:
    """Return one row per feature, moved in it, and which of them moved and are allowed."""
    rows = np.repeat(x[None, :], len(features), axis=0)
    rows[np.arange(len(features)), features] += by
    rows = region.snap(rows)
    reached = rows[np.arange(len(features)), features]
    good: Mask = reached != x[features]
    good[good] = region.contains(rows[good])
    return rows, good
