"""The model's output and its gradient inside a region: as given, or by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Indices, Mask
from bayescfx.errors import ModelError
from bayescfx.search.polytope import Slice
from bayescfx.search.question import Question
from bayescfx.space.region import Region


def difference_quotients(
    function: Callable[[Array], Array], region: Region, x: Array, features: Indices, by: Array
) -> tuple[float, Array]:
    """Return a function at an allowed row ``(d,)``, and its slope ``(k,)`` along ordered features.

    Each is moved by a width ``(k,)``, on a grid by one step at least, up or else down; the slope is
    0 where neither is allowed, or the function is nan. All rows are asked for at once.
    """
    reach = np.maximum(by, region.step[features])
    rows, moved = _moved(region, x, features, reach)
    back = np.flatnonzero(~moved)
    if len(back):
        rows[back], moved[back] = _moved(region, x, features[back], -reach[back])
    values = function(np.vstack([x, rows[moved]]))
    at = features[moved]
    slope = np.zeros(len(features))
    slope[moved] = (values[1:] - values[0]) / (rows[moved, at] - x[at])
    return float(values[0]), np.nan_to_num(slope, nan=0.0)


def _moved(region: Region, x: Array, features: Indices, by: Array) -> tuple[Array, Mask]:
    """Return one row per feature, moved in it, and which of them moved and are allowed."""
    rows = np.repeat(x[None, :], len(features), axis=0)
    rows[np.arange(len(features)), features] += by
    rows = region.snap(rows)
    good: Mask = rows[np.arange(len(features)), features] != x[features]
    good[good] = region.contains(rows[good])
    return rows, good


@dataclass(frozen=True, eq=False)
class Slopes:
    """The model as a differentiable function of a slice's coordinates."""

    question: Question  # whose account pays for outputs
    part: Slice
    gradient: Callable[[Any], Any] | None  # rows to derivatives by their columns
    difference: float  # without `gradient`: width of differences, as a share of a feature's range

    def at(self, x: Array) -> tuple[float, Array] | None:
        """Return f and ∇f ``(k,)`` at a row of codes ``(d,)``; None if the model fails there."""
        part, evaluate = self.part, self.question.account.evaluate
        if self.gradient is not None:
            output = float(evaluate(x[None, :])[0])
            return None if np.isnan(output) else (output, self._stated(x[None, :])[0])
        region, at = part.region, part.features
        width = self.difference * (region.high - region.low)[at]
        output, slope = difference_quotients(evaluate, region, x, at, width)
        return None if np.isnan(output) else (output, slope * part.scale)

    def outputs(self, Z: Array) -> Array:
        """Return f ``(n,)`` at coordinates ``(n, k)``."""
        return self.question.account.evaluate(self.part.codes(Z))

    def gradients(self, Z: Array) -> Array:
        """Return ∇f ``(n, k)`` at coordinates ``(n, k)``; 0 where the model fails."""
        rows = self.part.codes(Z)
        if self.gradient is not None:
            return self._stated(rows)
        found = [self.at(x) for x in rows]
        return np.array([np.zeros(Z.shape[1]) if one is None else one[1] for one in found])

    def _stated(self, X: Array) -> Array:
        """Return the given gradient at rows of codes, by coordinates, shape (n, k), or explain."""
        assert self.gradient is not None  # the callers have looked
        region = self.part.region
        names = [region.names[j] for j in self.part.features]
        found = self.gradient(region.rows(X))
        if isinstance(found, pd.DataFrame):
            slope = found.reindex(columns=names).to_numpy(dtype=float)
        else:
            slope = np.asarray(found, dtype=float)
            every, kinds = [c.name for c in region.schema.columns], region.schema.features
            numeric = [c for c in every if c in kinds and kinds[c].numeric]
            given = [c for c in (every, numeric) if slope.shape == (len(X), len(c))]
            if not given:
                raise ModelError(
                    f"`gradient` must return shape ({len(X)}, {len(every)}), one derivative per "
                    f"column of the rows; got {slope.shape}."
                )
            slope = slope[:, [given[0].index(name) for name in names]]
        if not np.isfinite(slope).all():
            i, j = np.argwhere(~np.isfinite(slope))[0]
            raise ModelError(
                f"`gradient` must return finite numbers; got {slope[i, j]} for "
                f"{names[j]!r}. Leave it out to use finite differences."
            )
        return slope * self.part.scale
