"""Queries as codes, and the regions around them.

This is the only place where queries are encoded. A table is encoded column by column, once. Nothing
is warned of here: notes and errors are returned by position, and the caller decides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayescfx.arrays import Array, Mask
from bayescfx.data.schema import Own, Schema
from bayescfx.data.tables import as_pandas
from bayescfx.errors import BayesCFXError, QueryError, SpaceWarning, warn
from bayescfx.space.axis import Axis
from bayescfx.space.region import Region, axis_fields
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
    shared = schema or space.schema
    extended: dict[int, Schema] = {}
    notes: dict[int, list[str]] = {}
    errors: dict[int, BayesCFXError] = {}
    own, positions = _encode_all(space.schema, as_pandas(rows), errors)
    is_outside = space.schema.is_outside(own.codes).any(axis=1)
    # New rows have new names and numbers.
    by_name = limits_of(space)
    identifiers = {name for name, limits in by_name.items() if limits.identifies_rows}
    for k in np.flatnonzero(is_outside).tolist():
        cells = own.part(k).cells
        i = positions[k]
        try:
            extended[i], _, growth = space.schema.covering(cells, "query")
        except BayesCFXError as error:
            errors[i] = error
            continue
        shared, _, _ = shared.covering(cells, "query")
        grown = "; ".join(text for name, text in growth.items() if name not in identifiers)
        if grown:
            notes[i] = [f"the query lies outside the space, which grew for it: {grown}."]
    if errors:
        good = [k for k, i in enumerate(positions) if i not in errors]
        own = Own(own.codes[good], tuple(column[good] for column in own.cells))
        positions = [positions[k] for k in good]
    if shared is not space.schema and positions:
        own = Own(shared.encode_cells(own.cells, what="query"), own.cells)
    if np.isnan(own.codes).any():
        _note_missing(space, own.codes, positions, notes)
    if by_name:
        _note_outside(space, shared, own.codes, positions, notes)
    return EncodedQueries(shared, own, positions, extended, notes, errors)


def _encode_all(
    schema: Schema, rows: Any, errors: dict[int, BayesCFXError]
) -> tuple[Own, list[int]]:
    """Return the rows that can be encoded, with -1 for unknown levels, and their positions.

    The errors of the others are added to `errors`.
    """
    if isinstance(rows, pd.DataFrame | np.ndarray) and rows.ndim == 2 and len(rows):
        with contextlib.suppress(BayesCFXError):  # look at each row, to say which is wrong
            return _encode(schema, rows), list(range(len(rows)))
    good: list[Own] = []
    positions: list[int] = []
    if isinstance(rows, pd.DataFrame):
        rows = [rows.iloc[i : i + 1] for i in range(len(rows))]
    for i, row in enumerate(rows):
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


def _note_missing(
    space: Space, codes: Array, positions: list[int], notes: dict[int, list[str]]
) -> None:
    """Add a note for each query that misses a cell of a feature that may move."""
    is_missing = np.isnan(codes)
    still = space.fixed | {rule.derives for rule in space.rules if rule.derives is not None}
    for k in np.flatnonzero(is_missing.any(axis=1)).tolist():
        names = [
            repr(name)
            for name, missing in zip(space.schema.names, is_missing[k], strict=True)
            if missing and name not in still
        ]
        if names:
            text = f"the query has no value for {', '.join(names)}; treated as fixed."
            notes.setdefault(positions[k], []).append(text)


def _note_outside(
    space: Space, schema: Schema, codes: Array, positions: list[int], notes: dict[int, list[str]]
) -> None:
    """Add a note for each query with values outside absolute limits, where they may stay."""
    texts: dict[int, list[str]] = {}
    for name, limits, is_outside in values_outside(space, schema, codes):
        feature = schema.features[name]
        for k in np.flatnonzero(is_outside).tolist():
            value = feature.display(float(codes[k, schema.positions[name]]))[0]
            texts.setdefault(k, []).append(
                f"{name!r} is {value} ({limits.describe_values(feature)})"
            )
    for k, found in sorted(texts.items()):
        text = (
            f"the query lies outside its limits: {'; '.join(found)}. Such a value may stay, and "
            "changes only to one inside. To require a value inside, make the limit strict "
            "(strict=True)."
        )
        notes.setdefault(positions[k], []).append(text)


def values_outside(
    space: Space, schema: Schema, codes: Array
) -> Iterator[tuple[Hashable, Limits, Mask]]:
    """Yield the features with absolute limits that a query may stay outside of.

    With each come its limits and the mask ``(n,)`` of the codes ``(n, d)`` that lie outside.
    """
    for name, limits in limits_of(space).items():
        if limits.is_absolute:
            is_outside = limits.is_outside(codes[:, schema.positions[name]])
            if is_outside.any():
                yield name, limits, is_outside


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
    notes = {i: [*texts] for i, texts in queries.notes.items()}
    built: dict[int, Region] = {}
    for k, i in enumerate(queries.positions):
        try:
            built[i] = builder.build(queries.own.part(k), queries.extended.get(i, space.schema))
        except BayesCFXError as error:  # a rule or a derived column fails for this query
            errors[i] = error
            continue
        texts = [rule.mismatch(built[i]) for rule in built[i].derived]
        for text in filter(None, texts):
            notes.setdefault(i, []).append(text)
    return Regions(built, notes, errors)


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
        If the query lies outside the ranges, which then grow for it, has a missing value in a
        feature that may move, which then stays, or lies outside limits that are not strict.
    """
    found = regions(space, [query], schema=schema)
    for error in found.errors.values():
        raise error
    for note in found.notes.get(0, ()):
        warn(note, SpaceWarning)
    return found.regions[0]


def _rebuild(
    space: Space, schema: Schema, own: Own, extended: Schema, rules: Sequence[Rule]
) -> Region:
    """Return the region around a query in the space with other rules."""
    return _Builder(space.with_fields(rules=tuple(rules)), schema).build(own, extended)


class _Builder:
    """Builds regions around queries whose codes belong to one schema.

    Everything that does not depend on the query is prepared once: the order of the rules, the l0
    bound, the weights and the limits of each feature.
    """

    def __init__(self, space: Space, schema: Schema) -> None:
        self.space = space
        self.schema = schema
        self.rules: list[Rule] = sorted(space.rules, key=attrgetter("rank"))
        bounds = [rule.most_changes for rule in self.rules if rule.most_changes is not None]
        self.max_changes = min(bounds, default=None)
        factors = space.price.per_feature
        self.weight = np.array([float(factors.get(name, 1.0)) for name in schema.names])
        self.limits: dict[Hashable, Limits] = limits_of(space)
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
            schema=self.schema,
            names=self.schema.names,
            own=own,
            recomputed=self.recomputed,
            scale=self.space.scale,
            weight=self.weight,
            price=self.space.price,
            max_changes=self.max_changes,
            data=self.space.sample.rows,
            of_space=self.space.rules,
            rebuild=partial(_rebuild, self.space, self.schema, own, extended),
            **axis_fields(axes, self.recomputed, self.weight, self.space.scale),
        )
        adapted = [rule.for_query(region) for rule in self.rules]
        return region.with_rules(rule for rule in adapted if rule is not None)

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
