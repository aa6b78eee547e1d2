"""How the model answers to one feature: itself, and as a surrogate sees it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.arrays import Array, same_codes
from bayescfx.io.protocols import cell
from bayescfx.plots.info.view import Scale, View
from bayescfx.result.assessment import around
from bayescfx.space.region import Region
from bayescfx.tables import cells_of
from bayescfx.web.ends import finite
from bayescfx.web.site import Site

POINTS = 41  # values along a feature that has more


def curve(
    site: Site, cells: dict[str, Any], feature: str, view: View | None, *, ask: bool
) -> dict[str, Any]:
    """Return the outputs along a feature, the rest as in a row; the model's only if asked."""
    region = around(site.space, site.row(cells))
    j = region.schema.position(feature)
    scale = Scale.of(region, j)
    codes = _codes(region, scale, j)
    X = _along(region, j, codes)
    rows = region.rows(X)
    found: dict[str, Any] = {"mean": None, "low": None, "high": None, "seen": []}
    if view is not None and view.surrogate is not None:
        found |= _learnt(view, view.region.encode(rows), j)
    places = region.schema.places
    column = cells_of(rows) if feature in places else [[label] for label in map(scale.label, codes)]
    k = [*places].index(feature) if feature in places else 0
    return found | {
        "feature": feature,
        "at": None
        if np.isnan(region.query[j])
        else int(np.argmin(np.abs(codes - region.query[j]))),
        "values": [cell(line[k]) for line in column],
        "texts": [scale.label(code) for code in codes.tolist()],
        "x": codes.tolist(),
        "numeric": scale.feature.numeric,
        "model": [finite(y) for y in site.model.scores(rows)] if ask else None,
        "rows": len(rows) if ask else 0,
    }


def _codes(region: Region, scale: Scale, j: int) -> Array:
    """Return codes along the whole range of a feature, the row's own among them."""
    feature, query = scale.feature, region.query[j]
    step = 1.0 if feature.levelled or feature.period else feature.code_step
    many = (scale.high - scale.low) / step if step else np.inf
    codes = np.linspace(scale.low, scale.high, POINTS)
    if many < 4 * POINTS:
        codes = np.arange(scale.low, scale.high + step / 2, step)
    elif step:
        codes = scale.low + np.round((codes - scale.low) / step) * step
    return np.unique(codes if np.isnan(query) else np.append(codes, query))


def _along(region: Region, j: int, codes: Array) -> Array:
    X = np.tile(region.query, (len(codes), 1))
    X[:, j] = codes
    return region.complete(X)


def _learnt(view: View, X: Array, j: int) -> dict[str, Any]:
    """Return the surrogate's curve and band, and the rows on the line that the model scored."""
    low, mean, high = (view.predict(X, deviations).tolist() for deviations in (-2.0, 0.0, 2.0))
    others = ~view.region.recomputed & (np.arange(X.shape[1]) != j)
    on = same_codes(view.X, X[0])[:, others].all(axis=1)
    seen = np.column_stack([view.X[on, j], view.y[on]]).tolist()
    return {"mean": mean, "low": low, "high": high, "seen": seen}
