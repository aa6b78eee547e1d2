"""Verbs about columns: the steps of numbers, and one-hot columns as one feature."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayescfx.checks import check, is_hashable, is_several
from bayescfx.data import Categorical, Feature
from bayescfx.data.schema import Schema, group_codes
from bayescfx.errors import SpaceError

if TYPE_CHECKING:
    from bayescfx.space.space import Space


def steps(space: Space, steps: Mapping[Any, float | None]) -> Space:
    """Return the space in which the features named move by other steps.

    Parameters
    ----------
    steps : dict of name to float or None
        Values are then multiples of the step. ``None`` allows every number, or every whole number
        of an `Integer`.

    Examples
    --------
    >>> from bayescfx import Real, Space
    >>> print(Space({"bmi": Real(18.2, 42)}).steps({"bmi": 0.5}).features["bmi"])
    Real(low=18.0, high=42.0, step=0.5)
    """
    features = dict(space.features)
    named = space.by_name(steps, "steps")
    for name, step in named.items():
        features[name] = features[name].with_step(name, step)
    schema = replace(space.schema, features=features)
    return space.with_fields(schema=schema, graded=space.graded - named.keys())


def group(space: Space, name: Hashable, columns: Iterable[Hashable]) -> Space:
    """Return the space in which one-hot columns are one feature with the columns as levels.

    Group columns before any other verb names them.

    Parameters
    ----------
    name : hashable
        Name of the new feature.
    columns : iterable of column names
    """
    check(is_hashable(name) and name is not pd.NA, "name", "a new name", name, SpaceError)
    check(is_several(columns), "columns", "a list of columns", columns, SpaceError)
    members = tuple(space.name(column) for column in columns)
    _check_name(space, name, members)
    _check_members(space, members)
    schema = space.schema
    places = [schema.positions[column] for column in members]
    first = min(places)  # the feature takes the place of its first column
    kept = [j for j in range(len(schema.names)) if j == first or j not in places]
    codes = group_codes(space.sample.rows[:, places])  # the columns' own codes are 0 and 1
    is_valid = codes != -1  # other rows are left out
    if len(codes) and not is_valid.any():
        raise SpaceError(f"no row of the data has exactly one 1 in the group {name!r}.")
    rows = space.sample.rows[is_valid][:, kept]
    rows[:, first] = codes[is_valid]
    scale = space.scale[kept]
    scale[first] = 1.0
    return space.with_data(
        rows,
        schema=_with_group(schema, name, members),
        scale=scale,
        graded=space.graded - {*members},
    )


def _with_group(schema: Schema, name: Hashable, members: tuple[Hashable, ...]) -> Schema:
    """Return a schema in which a group takes the place of the first of its columns."""
    features: dict[Hashable, Feature] = {}
    for column, feature in schema.features.items():
        if column not in members:
            features[column] = feature
        else:
            features.setdefault(name, Categorical(members))
    return replace(schema, features=features, groups={**schema.groups, name: members})


def _check_name(space: Space, name: Hashable, members: tuple[Hashable, ...]) -> None:
    """Raise unless a group has several columns and a new name, and no rule was stated before."""
    if len(set(members)) < max(2, len(members)):
        raise SpaceError(f"`columns` of the group {name!r} must be distinct and at least two.")
    if name in set(space.schema.names) - set(members):
        raise SpaceError(f"`name` must be new; {name!r} is a feature already.")
    if any(rule.most_changes is None for rule in space.rules):
        raise SpaceError("`group` must come first. Group columns before stating any rule.")


def _check_members(space: Space, members: tuple[Hashable, ...]) -> None:
    """Raise unless every member of a group is a column of numbers or booleans."""
    columns = {column.name: column for column in space.schema.columns}
    for member in members:
        if member in space.schema.groups or columns[member].dtype.kind not in "biuf":
            raise SpaceError(f"{member!r} must be a column of 0 and 1 to be in a group.")
