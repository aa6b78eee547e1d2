"""From a space and a query to the region around it."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from bayescfx.errors import QueryError, SpaceWarning
from bayescfx.features import Categorical
from bayescfx.space.axis import Axis
from bayescfx.space.limits import Limits, make_axis
from bayescfx.space.near import NearAll, NearData, NearHere
from bayescfx.space.region import Region
from bayescfx.space.schema import Own, Schema
from bayescfx.space.terms import Terms


def make_region(terms: Terms, query: object, shared: Schema | None = None) -> Region:
    """Return the region around a query; see `Space.around`."""
    cells = terms.schema.cells(query, what="query")
    if len(cells[0]) != 1:
        raise QueryError(f"`query` must be one row; got {len(cells[0])}.")
    schema, _, notes = terms.schema.covering(cells, "query")
    if notes:
        _warn(f"the query lies outside the space, which grew for it: {'; '.join(notes)}.")
    shared = schema if shared is None else shared
    own = Own(shared.encode_cells(cells, what="query")[0], cells)
    missing = [
        repr(name)
        for j, name in enumerate(schema.names)
        if np.isnan(own.codes[j]) and not _is_fixed(terms, name)
    ]
    if missing:
        _warn(f"the query has no value for {', '.join(missing)}; treated as fixed.")
    return _region(terms, schema, own, shared)


def _region(terms: Terms, schema: Schema, own: Own, shared: Schema) -> Region:
    blocks = tuple(tuple(schema.positions[n] for n in block) for block in terms.blocks)
    region = Region(
        _axes(terms, schema, own, blocks, shared),
        terms.scale,
        terms.most_changes,
        shared,
        own,
        terms.background,
        terms.price,
        rules=terms.rules,
        derived=terms.derived,
        blocks=blocks,
        bounds=tuple(
            (schema.positions[rule.name], terms.limits[rule.name])
            for rule in terms.derived
            if rule.name in terms.limits
        ),
    )
    return replace(region, near=_near_here(terms.near, region)) if terms.near else region


def _axes(
    terms: Terms, schema: Schema, own: Own, blocks: tuple[tuple[int, ...], ...], shared: Schema
) -> tuple[Axis, ...]:
    axes = [
        _axis(terms, schema, name, float(own.codes[j]), shared)
        for j, name in enumerate(schema.names)
    ]
    for block in blocks:
        if not _can_move([axes[j] for j in block], terms.most_changes):
            for j in block:
                axes[j] = replace(axes[j], movable=False)
    return tuple(axes)


def _axis(terms: Terms, schema: Schema, name: Hashable, code: float, shared: Schema) -> Axis:
    limits = Limits(fixed=True) if _is_fixed(terms, name) else terms.limits_of(name)
    column = None if name in schema.groups else schema.columns[schema.places[name]]
    feature, known = schema.features[name], terms.schema.features[name]
    if isinstance(known, Categorical) and shared.features[name] is not known:
        # Levels of other queries are none of this one's.
        feature = shared.features[name]
        if limits.levels is None:
            limits = replace(limits, levels=tuple(map(float, range(len(known.levels)))))
    return make_axis(feature, limits, code, column, inferred=name in terms.inferred)


def _is_fixed(terms: Terms, name: Hashable) -> bool:
    return terms.limits_of(name).fixed or terms.is_derived(name)


def _can_move(axes: list[Axis], bound: int | None) -> bool:
    """Return whether features that move together can move at all."""
    if not all(axis.free for axis in axes) or (bound is not None and len(axes) > bound):
        return False
    return any(all(axis.room(side) for axis in axes) for side in (-1, 1))


def _near_here(near: tuple[NearData, ...], region: Region) -> NearHere | NearAll:
    moving = region.recomputed.copy()
    moving[region.free] = True
    low = np.where(region.recomputed, -np.inf, region.low)
    high = np.where(region.recomputed, np.inf, region.high)
    parts = tuple(rule.here(region.query, moving, low, high) for rule in near)
    return parts[0] if len(parts) == 1 else NearAll(parts)


def _warn(message: str) -> None:
    # the caller of `Space.around`: above this, `make_region` and `around`
    warnings.warn(message, SpaceWarning, stacklevel=4)
