"""How the model answers to one feature: itself, and as a surrogate sees it."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayescfx.arrays import Array
from bayescfx.io.protocols import cell
from bayescfx.plots.info.view import Scale, View, along
from bayescfx.result.assessment import around
from bayescfx.tables import cells_of
from bayescfx.web.site import Site

POINTS = 41  # values along a feature that has more


def curve(
    site: Site, cells: dict[str, Any], feature: str, view: View | None, *, ask: bool
) -> dict[str, Any]:
    """Return the outputs along a feature, the rest as in a row; the model's only if asked."""
    region = around(site.space, site.row(cells))
    j = region.schema.position(feature)
    scale, query = Scale.of(region, j), region.query[j]
    codes = _codes(scale, query)
    rows = region.rows(along(region, j, codes, region.query))
    found: dict[str, Any] = {"mean": None, "low": None, "high": None, "seen": []}
    if view is not None and view.surrogate is not None:
        mean, low, high, seen = view.line(view.region.encode(rows), j)
        found |= {"mean": mean.tolist(), "low": low.tolist(), "high": high.tolist()}
        found["seen"] = np.column_stack(seen).tolist()
    texts, places = [scale.label(code) for code in codes.tolist()], [*region.schema.places]
    values = texts  # of a group
    if feature in places:
        values = [cell(line[places.index(feature)]) for line in cells_of(rows)]
    return found | {
        "feature": feature,
        "at": None if np.isnan(query) else int(np.argmin(np.abs(codes - query))),
        "values": values,
        "texts": texts,
        "x": codes.tolist(),
        "numeric": scale.feature.numeric,
        "model": list(map(cell, site.model.scores(rows))) if ask else None,
        "rows": len(rows) if ask else 0,
    }


def _codes(scale: Scale, query: float) -> Array:
    """Return codes along the whole range of a feature, the row's own among them."""
    feature = scale.feature
    step = 1.0 if feature.levelled or feature.period else feature.code_step
    codes = np.linspace(scale.low, scale.high, POINTS)
    if step and (scale.high - scale.low) / step < 4 * POINTS:
        codes = np.arange(scale.low, scale.high + step / 2, step)
    elif step:
        codes = scale.low + np.round((codes - scale.low) / step) * step
    return np.unique(codes if np.isnan(query) else np.append(codes, query))
