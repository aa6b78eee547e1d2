"""Queries as codes, and the regions around them.

This is the only place where queries are encoded. A table is encoded column by column, once. Nothing
is warned of here: notes and errors are returned by position, and the caller decides.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Mask
from bayescfx.data.schema import Own, Schema
from bayescfx.data.tables import as_pandas
from bayescfx.errors import BayesCFXError, QueryError, SpaceWarning, warn
from bayescfx.space.axis import Axis, Box
from bayescfx.space.region import Region
from bayescfx.space.rule import Rule
from bayescfx.space.rules.limits import Limits, limits_of

if TYPE_CHECKING:
    from bayescfx.space.space import Space


@dataclass(frozen=True, eq=False)
class EncodedQueries:
    """Queries as codes that mean the same in all of them.

    Parameters
    ----------
    schema : Schema
        It covers every query.
    own : Own
        Cells and codes of the queries that could be encoded.
    positions : list of int
        Positions of these queries among those given.
    extended : dict of position to Schema
        For each query outside the space, the schema that covers it alone.
    notes : dict of position to texts
        What users should know about a query.
    errors : dict of position to error
        Why a query is not valid.
    """

    schema: Schema
    own: Own
    positions: list[int]
    extended: dict[int, Schema]
    notes: dict[int, list[str]]
    errors: dict[int, BayesCFXError]


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions of several queries, by position, with notes and errors by position."""

    regions: dict[int, Region]
    notes: dict[int, list[str]]
    errors: dict[int, BayesCFXError]


def encode_queries(space: Space, rows: object, *, schema: Schema | None = None) -> EncodedQueries:
    """Return queries as codes.

    Parameters
    ----------
    rows : DataFrame, 2-D array, or sequence of rows
        A row is a Series, a dict, an array or a one-row DataFrame.
    schema : Schema, optional
        One that covers other rows too, if codes are to mean the same there. It does not widen
        the regions.
    """
    errors: dict[int, BayesCFXError] = {}
    own, positions = _encode_all(space.schema, as_pandas(rows), errors)
    shared, extended, notes = _extend(space.schema, schema, own, positions, errors)
    if errors:
        good = [k for k, i in enumerate(positions) if i not in errors]
        own = Own(own.codes[good], tuple(column[good] for column in own.cells))
        positions = [positions[k] for k in good]
    if shared is not space.schema and positions:
        own = Own(shared.encode_cells(own.cells, what="query"), own.cells)
    _note_missing(space, own.codes, positions, notes)
    return EncodedQueries(shared, own, positions, extended, notes, errors)


def _extend(
    original: Schema,
    schema: Schema | None,
    own: Own,
    positions: list[int],
    errors: dict[int, BayesCFXError],
) -> tuple[Schema, dict[int, Schema], dict[int, list[str]]]:
    """Return the schema that covers all queries, those that cover single ones, and notes.

    Only queries outside the original schema need one of their own. An error of one that can't be
    covered is added to `errors`.
    """
    shared = schema or original
    extended: dict[int, Schema] = {}
    notes: dict[int, list[str]] = {}
    for k in np.flatnonzero(_is_outside(original, own.codes)).tolist():
        cells = own.part(k).cells
        i = positions[k]
        try:
            extended[i], _, growth = original.covering(cells, "query")
        except BayesCFXError as error:
            errors[i] = error
            continue
        shared, _, _ = shared.covering(cells, "query")
        grown = "; ".join(growth)
        notes[i] = [f"the query lies outside the space, which grew for it: {grown}."]
    return shared, extended, notes


def _encode_all(
    schema: Schema, rows: Any, errors: dict[int, BayesCFXError]
) -> tuple[Own, list[int]]:
    """Return the rows that can be encoded, with -1 for unknown levels, and their positions.

    The errors of the others are added to `errors`.
    """
    is_table = isinstance(rows, pd.DataFrame) or (isinstance(rows, np.ndarray) and rows.ndim == 2)
    if is_table and len(rows):
        try:
            return _encode(schema, rows), list(range(len(rows)))
        except BayesCFXError:  # look at each row, to say which is wrong
            pass
    good: list[Own] = []
    positions: list[int] = []
    for i, row in enumerate(_single_rows(rows)):
        try:
            encoded = _encode(schema, row)
            if len(encoded.codes) != 1:
                raise QueryError(f"`query` must be one row; got {len(encoded.codes)}.")
        except BayesCFXError as error:
            errors[i] = error
        else:
            good.append(encoded)
            positions.append(i)
    if not good:
        empty = tuple(np.empty(0, dtype=object) for _ in schema.columns)
        return Own(np.empty((0, len(schema.names))), empty), positions
    return Own.of_all(good), positions


def _encode(schema: Schema, rows: Any) -> Own:
    """Return a table, or one row, as cells and codes."""
    cells = schema.cells(rows, what="query")
    return Own(schema.encode_cells(cells, what="query"), cells)


def _single_rows(rows: Any) -> Iterator[Any]:
    """Yield the rows of a table, or the items of a sequence."""
    if isinstance(rows, pd.DataFrame):
        for i in range(len(rows)):
            yield rows.iloc[i : i + 1]
    else:
        yield from rows


def _is_outside(schema: Schema, codes: Array) -> Mask:
    """Return which rows of codes ``(n, d)`` lie outside a range, or have an unknown level."""
    is_outside = np.zeros(len(codes), dtype=np.bool_)
    for j, (name, feature) in enumerate(schema.features.items()):
        if name not in schema.groups:
            low, high = feature.code_range
            is_outside |= (codes[:, j] < low) | (codes[:, j] > high)
    return is_outside


def _note_missing(
    space: Space, codes: Array, positions: list[int], notes: dict[int, list[str]]
) -> None:
    """Add a note for each query that misses a cell of a feature that may move."""
    is_missing = np.isnan(codes)
    if not is_missing.any():
        return
    limits = limits_of(space)
    still = {name for name, limit in limits.items() if limit.fixed}
    still |= {rule.derives for rule in space.rules if rule.derives is not None}
    for k in np.flatnonzero(is_missing.any(axis=1)).tolist():
        names = [
            repr(name)
            for name, missing in zip(space.schema.names, is_missing[k], strict=True)
            if missing and name not in still
        ]
        if names:
            text = f"the query has no value for {', '.join(names)}; treated as fixed."
            notes.setdefault(positions[k], []).append(text)


def regions(space: Space, rows: object, *, schema: Schema | None = None) -> Regions:
    """Return the region around each query, with notes and errors by position.

    Parameters
    ----------
    rows : EncodedQueries, DataFrame, 2-D array, or sequence of rows
        See :func:`encode_queries`.
    schema : Schema, optional
        One that covers other rows too, if codes are to mean the same there.
    """
    queries = (
        rows if isinstance(rows, EncodedQueries) else encode_queries(space, rows, schema=schema)
    )
    builder = _Builder(space, queries.schema)
    errors = dict(queries.errors)
    built: dict[int, Region] = {}
    for k, i in enumerate(queries.positions):
        try:
            built[i] = builder.build(queries.own.part(k), queries.extended.get(i, space.schema))
        except BayesCFXError as error:  # a rule or a derived column fails for this query
            errors[i] = error
    return Regions(built, queries.notes, errors)


def around(space: Space, query: object, *, schema: Schema | None = None) -> Region:
    """Return the space as seen from one query.

    Parameters
    ----------
    query : Series, dict, one-row DataFrame, or array of shape (columns,)
    schema : Schema, optional
        One that covers other rows too, for regions whose codes are to mean the same. It
        does not widen the region.

    Warns
    -----
    SpaceWarning
        If the query lies outside the ranges, which then grow for it, or has a missing value
        in a feature that may move, which then stays.
    """
    found = regions(space, [query], schema=schema)
    for error in found.errors.values():
        raise error
    for note in found.notes.get(0, ()):
        warn(note, SpaceWarning)
    return found.regions[0]


class _Builder:
    """Builds regions around queries whose codes belong to one schema.

    Everything that does not depend on the query is prepared once: the order of the rules, the l0
    bound, and the limits of each feature.
    """

    def __init__(self, space: Space, schema: Schema) -> None:
        self.space = space
        self.schema = schema
        self.rules: list[Rule] = sorted(space.rules, key=attrgetter("rank"))
        bounds = [rule.most_changes for rule in self.rules if rule.most_changes is not None]
        self.max_changes = min(bounds, default=None)
        self.limits: dict[Hashable, Limits] = dict(limits_of(space))
        self.recomputed = np.zeros(len(schema.names), dtype=np.bool_)
        for rule in self.rules:
            if rule.derives is not None:  # it follows from other features
                self.recomputed[schema.positions[rule.derives]] = True
                self.limits[rule.derives] = Limits(rule.derives, fixed=True)

    def build(self, own: Own, extended: Schema) -> Region:
        """Return the region around one query; `extended` covers that query alone."""
        codes = own.codes[0].tolist()
        axes = [
            self._axis(name, code, extended)
            for name, code in zip(self.schema.names, codes, strict=True)
        ]
        for rule in self.rules:
            rule.narrow(axes, self.schema.positions, self.max_changes)
        region = Region(
            box=Box.of(tuple(axes)),
            scale=self.space.scale,
            max_changes=self.max_changes,
            schema=self.schema,
            own=own,
            data=self.space.background,
            cost=self.space.price,
            recomputed=self.recomputed,
        )
        return region.with_rules(self.rules)

    def _axis(self, name: Hashable, code: float, extended: Schema) -> Axis:
        """Return the allowed codes of one feature around the query's code."""
        limits = self.limits.get(name) or Limits(name)
        feature = extended.features[name]
        original = self.space.schema.features[name]
        if original.has_levels and self.schema.features[name] is not original:
            # Levels of other queries are not allowed for this one.
            feature = self.schema.features[name]
            if limits.levels is None:
                levels = tuple(float(place) for place in range(len(original.levels)))
                limits = replace(limits, levels=levels)
        is_group = name in extended.groups  # one-hot columns, whose numbers are no codes
        column = None if is_group else extended.columns[extended.places[name]]
        dtype = np.dtype(object) if column is None else column.dtype
        return limits.axis(feature, code, dtype, inferred=name in self.space.inferred)
