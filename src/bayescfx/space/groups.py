"""One-hot columns as one feature, for models that only take encoded columns."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from bayescfx.errors import SpaceError
from bayescfx.features import Categorical, Feature
from bayescfx.space.terms import Terms


def regroup(terms: Terms, name: Hashable, members: tuple[Hashable, ...]) -> dict[str, Any]:
    """Return schema, scale and background with `members` merged into the feature `name`.

    The feature takes the place of its first column; its levels are the column names. Background
    rows that have not exactly one 1 are left out.
    """
    _check(terms, name, members)
    schema, scale, background = terms.schema, terms.scale, terms.background
    features: dict[Hashable, Feature] = {}
    kept = []
    for j, (feature_name, feature) in enumerate(schema.features.items()):
        if feature_name == next(iter(c for c in schema.names if c in members)):
            features[name] = Categorical(members)
            kept.append(j)
        elif feature_name not in members:
            features[feature_name] = feature
            kept.append(j)
    merged = replace(schema, features=features, groups={**schema.groups, name: members})
    # the columns' own codes are 0 and 1, booleans included
    block = background[:, [schema.positions[column] for column in members]]
    good = (block.sum(axis=1) == 1) & ((block == 0) | (block == 1)).all(axis=1)
    if len(background) and not good.any():
        raise SpaceError(f"no row of the data has exactly one 1 in the group {name!r}.")
    at = merged.positions[name]
    rows = background[good][:, kept]
    rows[:, at] = block[good].argmax(axis=1)
    new_scale = scale[kept]
    new_scale[at] = 1.0
    return {"schema": merged, "scale": np.asarray(new_scale), "background": rows}


def _check(terms: Terms, name: Hashable, members: tuple[Hashable, ...]) -> None:
    if len(members) < 2 or len(set(members)) < len(members):
        raise SpaceError(f"`columns` of the group {name!r} must be distinct and at least two.")
    if name in terms.schema.names and name not in members:
        raise SpaceError(f"`name` must be new; {name!r} is a feature already.")
    if terms.rules or terms.derived or terms.blocks or terms.near or terms.limits:
        raise SpaceError("`group` must come first. Group columns before stating any rule.")
    for column in members:
        codec = terms.schema.codecs.get(column)
        if codec is None or codec.column.kind not in "biuf":
            raise SpaceError(f"{column!r} must be a column of 0 and 1 to be in a group.")
