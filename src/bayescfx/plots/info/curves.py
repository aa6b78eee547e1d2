"""Response curves: the outputs along one feature of any row, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.data.tables import Rows, cells_of
from bayescfx.plots.info.view import Scale, View, along
from bayescfx.space.region import Region

N_POINTS = 41  # values along a feature that has more; set by judgement, 2026-11-18


@dataclass(frozen=True, eq=False)
class ResponseCurve:
    """The rows along one feature of a row.

    Parameters
    ----------
    feature : str
        Its name.
    position : int
        Its position among the features.
    codes : ndarray of shape (n,)
        The codes of its values, ascending.
    texts : list of str
        The values for reading.
    rows : Rows
        The row with each value, derived features recomputed; the model can score them.
    at : int or None
        The position of the row's own value; None if it is missing.
    is_numeric : bool
        Whether the values are numbers.
    """

    feature: str
    position: int
    codes: Array
    texts: list[str]
    rows: Rows
    at: int | None
    is_numeric: bool

    @classmethod
    def of(cls, region: Region, feature: str) -> ResponseCurve:
        """Return the curve of a feature through the query of a region."""
        j = region.schema.position(feature)
        scale = Scale.of(region, j)
        query = float(region.query[j])
        codes = _codes(scale, query)
        return cls(
            feature=feature,
            position=j,
            codes=codes,
            texts=[scale.label(code) for code in codes.tolist()],
            rows=region.rows(along(region, j, codes, region.query)),
            at=None if np.isnan(query) else int(np.argmin(np.abs(codes - query))),
            is_numeric=scale.feature.numeric,
        )

    def values(self, columns: list[str]) -> list[Any]:
        """Return the cells of the feature; its texts if it is a group of columns."""
        if self.feature not in columns:
            return list(self.texts)
        at = columns.index(self.feature)
        return [line[at] for line in cells_of(self.rows)]

    def surrogate(self, view: View) -> tuple[Array, Array, Array, tuple[Array, Array]] | None:
        """Return the surrogate of an answer along the curve: mean, band, and scored rows.

        None if there is no surrogate, or if other cells are missing than in its rows.
        """
        if view.surrogate is None:
            return None
        X = view.region.encode(self.rows)
        if not view.region.same_missing(X).all():
            return None
        return view.line(X, self.position)


def _codes(scale: Scale, query: float) -> Array:
    """Return codes along the whole range of a feature, the row's own among them."""
    feature = scale.feature
    step = 1.0 if feature.has_levels or feature.period else feature.code_step
    codes = _codes_in_steps(scale, step) if step else np.linspace(scale.low, scale.high, N_POINTS)
    return np.unique(codes if np.isnan(query) else np.append(codes, query))


def _codes_in_steps(scale: Scale, step: float) -> Array:
    """Return all multiples of a step along a scale if they are few, else some of them."""
    if (scale.high - scale.low) / step < 4 * N_POINTS:
        return np.arange(scale.low, scale.high + step / 2, step)
    codes = np.linspace(scale.low, scale.high, N_POINTS)
    return np.asarray(scale.low + np.round((codes - scale.low) / step) * step)
