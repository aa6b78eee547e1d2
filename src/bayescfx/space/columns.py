"""What columns are: how finely numbers move, and one-hot columns as one feature."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayescfx.checks import check, is_hashable, is_several
from bayescfx.data import Categorical
from bayescfx.data.schema import group_codes
from bayescfx.errors import SpaceError

if TYPE_CHECKING:
    from bayescfx.space.space import Space


def steps(space: Space, steps: Mapping[Any, float | None]) -> Space:
    """Return the space in which the features named move by other steps.

    Parameters
    ----------
    steps : dict of name to float or None
        Values are then multiples of it. ``None`` allows every number, or every whole number of an
        `Integer`.

    Examples
    --------
    >>> from bayescfx import Real, Space
    >>> print(Space({"bmi": Real(18.2, 42)}).steps({"bmi": 0.5}).features["bmi"])
    Real(low=18.0, high=42.0, step=0.5)
    """
    features, named = dict(space.features), space.wishes(steps, "steps")
    for name, step in named.items():
        features[name] = features[name].stepped(name, step)
    schema = replace(space.schema, features=features)
    return space.changed(schema=schema, graded=space.graded - named.keys())


def group(space: Space, name: Hashable, columns: Iterable[Hashable]) -> Space:
    """Return the space in which one-hot columns are one feature with the columns as levels.

    Group columns before saying anything else about them.

    Parameters
    ----------
    name : hashable
        Name of the new feature.
    columns : iterable of column names
    """
    check(is_hashable(name) and name is not pd.NA, "name", "a new name", name, SpaceError)
    check(is_several(columns), "columns", "a list of columns", columns, SpaceError)
    members = tuple(space.name(column) for column in columns)
    _check_group(space, name, members)
    schema, items = space.schema, list[Any](space.features.items())
    places = [schema.positions[column] for column in members]
    at = min(places)  # the feature takes the place of its first column
    items[at] = name, Categorical(members)
    kept = [j for j in range(len(items)) if j == at or j not in places]
    features, groups = dict(items[j] for j in kept), {**schema.groups, name: members}
    codes = group_codes(space.background[:, places])  # the columns' own codes are 0 and 1
    good = codes != -1  # other rows are left out
    if len(codes) and not good.any():
        raise SpaceError(f"no row of the data has exactly one 1 in the group {name!r}.")
    rows, scale = space.background[good][:, kept], space.scale[kept]
    rows[:, at], scale[at] = codes[good], 1.0
    return space.changed(
        schema=replace(schema, features=features, groups=groups),
        scale=scale,
        background=rows,
        graded=space.graded - {*members},
    )


def _check_group(space: Space, name: Hashable, members: tuple[Hashable, ...]) -> None:
    if len(members) < 2 or len(set(members)) < len(members):
        raise SpaceError(f"`columns` of the group {name!r} must be distinct and at least two.")
    if name in space.schema.names and name not in members:
        raise SpaceError(f"`name` must be new; {name!r} is a feature already.")
    if any(rule.most_changes is None for rule in space.rules):
        raise SpaceError("`group` must come first. Group columns before stating any rule.")
    columns = {column.name: column for column in space.schema.columns}
    for member in members:
        if member in space.schema.groups or columns[member].dtype.kind not in "biuf":
            raise SpaceError(f"{member!r} must be a column of 0 and 1 to be in a group.")
