"""The model's output and its gradient on a slice of a region, given or by differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array
from bayescfx.errors import ModelError
from bayescfx.features import Integer, Real
from bayescfx.search.differences import nudges
from bayescfx.search.polytope import Slice
from bayescfx.search.question import Question


@dataclass(frozen=True, eq=False)
class Spot:
    """A row with the model's output and slope.

    Parameters
    ----------
    point : Array of shape (d,)
        Codes.
    output : float
        f(point).
    slope : Array of shape (k,)
        ∇f(point) by the coordinates of a slice.
    """

    point: Array
    output: float
    slope: Array


@dataclass(frozen=True, eq=False)
class Slopes:
    """The model as a differentiable function of a slice's coordinates.

    Parameters
    ----------
    question : Question
        Whose account pays for outputs.
    part : Slice
        The coordinates.
    gradient : callable, optional
        Rows to derivatives by their columns; without it finite differences.
    difference : float
        Width of finite differences, as a share of each feature's range.
    """

    question: Question
    part: Slice
    gradient: Callable[[Any], Any] | None
    difference: float

    def at(self, x: Array) -> Spot | None:
        """Return output and slope at a row of codes ``(d,)``; None if the model fails there."""
        if self.gradient is not None:
            output = float(self.question.account.evaluate(x[None, :])[0])
            return None if np.isnan(output) else Spot(x, output, self._stated(x[None, :])[0])
        part = self.part
        span = (part.region.high - part.region.low)[part.features]
        near = nudges(part.region, x, part.features, self.difference * span)
        output, *others = self.question.account.evaluate(np.vstack([x, near.rows])).tolist()
        if np.isnan(output):
            return None
        slope = near.quotients(output, np.array(others))[part.features] * part.scale
        return Spot(x, output, slope)

    def outputs(self, Z: Array) -> Array:
        """Return f ``(n,)`` at coordinates ``(n, k)``."""
        return self.question.account.evaluate(self.part.codes(Z))

    def gradients(self, Z: Array) -> Array:
        """Return ∇f ``(n, k)`` at coordinates ``(n, k)``; 0 where the model fails."""
        rows = self.part.codes(Z)
        if self.gradient is not None:
            return self._stated(rows)
        spots = [self.at(x) for x in rows]
        return np.array([np.zeros(Z.shape[1]) if s is None else s.slope for s in spots])

    def _stated(self, X: Array) -> Array:
        """Return the given gradient at rows of codes, by coordinates, shape (n, k)."""
        assert self.gradient is not None  # the callers have looked
        found = self.gradient(self.part.region.rows(X))
        if isinstance(found, pd.DataFrame):
            found = found.reindex(columns=list(self._names)).to_numpy()
            columns = list(range(len(self._names)))
        else:
            found = np.asarray(found, dtype=float)
            columns = self._columns(found, len(X))
        slope = np.asarray(found[:, columns], dtype=float)
        if not np.isfinite(slope).all():
            i, j = np.argwhere(~np.isfinite(slope))[0]
            raise ModelError(
                f"`gradient` must return finite numbers; got {slope[i, j]} for "
                f"{self._names[j]!r}. Leave it out to use finite differences."
            )
        return slope * self.part.scale

    @cached_property
    def _names(self) -> tuple[Any, ...]:
        """The columns that move."""
        return tuple(self.part.region.names[j] for j in self.part.features)

    def _columns(self, found: np.ndarray[Any, Any], n: int) -> list[int]:
        """Return which columns of a gradient belong to the coordinates, or explain."""
        schema = self.part.region.schema
        every = [column.name for column in schema.columns]
        numeric = [c for c in every if isinstance(schema.features.get(c), Real | Integer)]
        for names in (every, numeric):
            if found.shape == (n, len(names)):
                return [names.index(name) for name in self._names]
        raise ModelError(
            f"`gradient` must return shape ({n}, {len(every)}), one derivative per column of the "
            f"rows; got {found.shape}."
        )
