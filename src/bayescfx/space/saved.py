"""A space as plain JSON values and back.

Features, columns, limits, text rules and cost are written in full. Functions and data are not:
their labels are kept, so that a space read back can say what it can no longer check.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from bayescfx.errors import SpaceError
from bayescfx.features import FEATURES, Feature
from bayescfx.space.cells import Column, Dtype
from bayescfx.space.limits import Limits
from bayescfx.space.rules import Cost, TextRule
from bayescfx.space.schema import Schema
from bayescfx.space.terms import Terms
from bayescfx.values import Plain, from_plain, to_plain

FORMAT = 1
_KINDS = {kind.__name__: kind for kind in FEATURES}


def write_space(space: Terms) -> dict[str, Plain]:
    """Return the space as a dict of JSON values; the inverse of :func:`read_space`."""
    schema = space.schema
    lost = [rule.label for rule in space.rules if not isinstance(rule, TextRule)]
    lost += [f"derive({rule.name!r})" for rule in space.derived]
    lost += [rule.label for rule in space.near]
    return {
        "format": FORMAT,
        "features": [[to_plain(n), write_feature(f)] for n, f in schema.features.items()],
        "columns": [[to_plain(c.name), write_dtype(c.dtype)] for c in schema.columns],
        "array": None if schema.array is None else str(schema.array),
        "groups": [[to_plain(n), to_plain(tuple(c))] for n, c in schema.groups.items()],
        "scale": [to_plain(float(s)) for s in space.scale],
        "limits": [[to_plain(n), _write_limits(v)] for n, v in space.limits.items()],
        "rules": [[r.text, r.label] for r in space.rules if isinstance(r, TextRule)],
        "derived": [to_plain(rule.name) for rule in space.derived],
        "together": [to_plain(tuple(block)) for block in space.blocks],
        "max_changes": space.most_changes,
        "cost": {
            "weight": float(space.price.weight),
            "norm": float(space.price.norm),
            "per_feature": [[to_plain(n), float(v)] for n, v in space.price.per_feature.items()],
        },
        "inferred": [to_plain(name) for name in schema.names if name in space.inferred],
        "unrestored": [*space.unrestored, *lost],
    }


def read_space(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a space from what :func:`write_space` wrote.

    Derived columns come back as fixed by name only: nothing recomputes them, and `unrestored`
    says so.
    """
    if plain.get("format") != FORMAT:
        raise SpaceError(
            f"`format` of a saved space must be {FORMAT}; got {plain.get('format')!r}."
        )
    features = {from_plain(name): read_feature(f) for name, f in plain["features"]}
    columns = tuple(Column(from_plain(name), read_dtype(d)) for name, d in plain["columns"])
    array = None if plain["array"] is None else np.dtype(plain["array"])
    groups = {from_plain(name): from_plain(cols) for name, cols in plain["groups"]}
    cost = plain["cost"]
    return {
        "schema": Schema(features, columns, array, groups),
        "scale": np.array([from_plain(s) for s in plain["scale"]], dtype=np.float64),
        "background": np.empty((0, len(features))),
        "limits": {from_plain(name): _read_limits(v) for name, v in plain["limits"]},
        "rules": tuple(TextRule.parse(text, features, label) for text, label in plain["rules"]),
        "derived": (),
        "blocks": tuple(from_plain(block) for block in plain["together"]),
        "most_changes": plain["max_changes"],
        "price": Cost(
            cost["weight"],
            cost["norm"],
            {from_plain(name): value for name, value in cost["per_feature"]},
        ),
        "near": (),
        "inferred": frozenset(from_plain(name) for name in plain["inferred"]),
        "unrestored": tuple(plain["unrestored"]),
    }


def write_feature(feature: Feature) -> Plain:
    """Return a feature as JSON values.

    Examples
    --------
    >>> from bayescfx.features import Integer
    >>> write_feature(Integer(0, 6, cyclic=True))
    {'kind': 'Integer', 'low': 0, 'high': 6, 'step': 1, 'cyclic': True}
    """
    values = {f.name: to_plain(getattr(feature, f.name)) for f in fields(feature)}
    return {"kind": type(feature).__name__, **values}


def read_feature(plain: Mapping[str, Any]) -> Feature:
    """Return the feature that :func:`write_feature` wrote."""
    values = {key: from_plain(value) for key, value in plain.items() if key != "kind"}
    return _KINDS[plain["kind"]](**values)


def write_dtype(dtype: Dtype) -> Plain:
    """Return a dtype as JSON values; categories in full."""
    if isinstance(dtype, pd.CategoricalDtype):
        return {
            "categories": [to_plain(level) for level in dtype.categories.astype(object)],
            "dtype": str(dtype.categories.dtype),
            "ordered": bool(dtype.ordered),
        }
    return str(dtype)


def read_dtype(plain: Any) -> Dtype:
    """Return the dtype that :func:`write_dtype` wrote."""
    if isinstance(plain, dict):
        levels = [from_plain(level) for level in plain["categories"]]
        index = pd.Index(levels, dtype=plain["dtype"])
        return pd.CategoricalDtype(index, ordered=plain["ordered"])
    return pd.api.types.pandas_dtype(plain)


def _write_limits(limits: Limits) -> Plain:
    return {f.name: to_plain(getattr(limits, f.name)) for f in fields(limits)}


def _read_limits(plain: Mapping[str, Any]) -> Limits:
    return Limits(**{key: from_plain(value) for key, value in plain.items()})
