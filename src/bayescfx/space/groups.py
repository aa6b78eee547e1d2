"""One-hot columns as one feature, for models that only take encoded columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayescfx.checks import check, is_hashable, is_several
from bayescfx.errors import SpaceError
from bayescfx.features import Categorical, Feature
from bayescfx.space.schema import group_codes

if TYPE_CHECKING:
    from bayescfx.space.space import Space


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
    _check(space, name, members)
    schema, background = space.schema, space.background
    places = [schema.positions[column] for column in members]
    first = min(places)  # the feature takes the place of its first column
    kept = [j for j in range(len(schema.names)) if j == first or j not in places]
    items: list[tuple[Hashable, Feature]] = list(schema.features.items())
    items[first] = name, Categorical(members)
    features = dict(items[j] for j in kept)
    merged = replace(schema, features=features, groups={**schema.groups, name: members})
    block = background[:, places]  # the columns' own codes are 0 and 1, booleans included
    codes = group_codes(block)
    good = codes != -1  # other rows are left out
    if len(background) and not good.any():
        raise SpaceError(f"no row of the data has exactly one 1 in the group {name!r}.")
    at = merged.positions[name]
    rows, scale = background[good][:, kept], space.scale[kept]
    rows[:, at], scale[at] = codes[good], 1.0
    graded = space.graded - {*members}
    return space.changed(schema=merged, scale=np.asarray(scale), background=rows, graded=graded)


def _check(space: Space, name: Hashable, members: tuple[Hashable, ...]) -> None:
    if len(members) < 2 or len(set(members)) < len(members):
        raise SpaceError(f"`columns` of the group {name!r} must be distinct and at least two.")
    if name in space.schema.names and name not in members:
        raise SpaceError(f"`name` must be new; {name!r} is a feature already.")
    if any(rule.most_changes is None for rule in space.rules):
        raise SpaceError("`group` must come first. Group columns before stating any rule.")
    columns = {column.name: column for column in space.schema.columns}
    for member in members:
        if member in space.schema.groups or columns[member].kind not in "biuf":
            raise SpaceError(f"{member!r} must be a column of 0 and 1 to be in a group.")
