"""A space in words, and as plain JSON values and back.

Features, columns, rules and cost are written in full. Functions and data are not: their labels
are kept, so that a space read back can say what it can no longer check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescfx.data import Feature
from bayescfx.data.schema import Schema
from bayescfx.data.tables import Column, dtype_from_plain, dtype_to_plain
from bayescfx.data.values import Plain, from_plain, to_plain
from bayescfx.errors import SpaceError
from bayescfx.space.cost import Cost
from bayescfx.space.rule import Rule

if TYPE_CHECKING:
    from bayescfx.space.space import Space

FORMAT = 2


def describe(space: Space, most: int = 60) -> str:
    """Return a table of at most so many features, those that may move first, and the rules."""
    lines, still = [("feature", "kind", "values", "unit of change", "limits")], list[Any]()
    for (name, feature), scale in zip(space.features.items(), space.scale, strict=True):
        said = [words for rule in space.rules if (words := rule.told(name, feature))]
        # three digits, with an exponent only where a person would write one
        unit = f"{float(f'{scale:.3g}'):g}"
        line = (str(name), feature.kind, feature.words, unit, ", ".join(said))
        (still if {"fixed", "derived"} & {*said} else lines).append(line)
    lines += still
    shown, hidden = lines[: most + 1], len(lines) - 1 - most
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    text = [f"Space of {len(space.features)} features"]
    for line in shown:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        text.append(f"  {'  '.join(cells)}".rstrip())
    if hidden > 0:
        text.append(f"  … and {hidden} more")
    text += [rule.words.line for rule in space.rules if rule.words.line]
    return "\n".join([*text, *(f"not restored: {v}" for v in space.unrestored), space.price.words])


def to_dict(space: Space) -> dict[str, Plain]:
    """Return the space in JSON's own types, without background.

    Functions and data can't be written: their labels are, and a space read back lists them in
    `unrestored`.
    """
    schema, price = space.schema, space.price
    lost = [rule.words.label for rule in space.rules if not rule.written]
    return {
        "format": FORMAT,
        "features": [[to_plain(n), f.to_plain()] for n, f in schema.features.items()],
        "columns": [[to_plain(c.name), dtype_to_plain(c.dtype)] for c in schema.columns],
        "array": None if schema.array is None else str(schema.array),
        "groups": [[to_plain(n), to_plain(tuple(c))] for n, c in schema.groups.items()],
        "scale": [to_plain(float(s)) for s in space.scale],
        "rules": [rule.to_plain() for rule in space.rules if rule.written],
        "cost": {
            "weight": float(price.weight),
            "norm": float(price.norm),
            "per_feature": [[to_plain(n), float(v)] for n, v in price.per_feature.items()],
        },
        "inferred": [to_plain(name) for name in schema.names if name in space.inferred],
        "graded": [to_plain(name) for name in schema.names if name in space.graded],
        "unrestored": [*space.unrestored, *lost],
    }


def read_space(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a space from what `to_dict` wrote; derived columns come back plain."""
    if plain.get("format") not in (1, FORMAT):
        raise SpaceError(
            f"`format` of a saved space must be 1 or {FORMAT}; got {plain.get('format')!r}."
        )
    features = {from_plain(name): Feature.from_plain(f) for name, f in plain["features"]}
    columns = tuple(Column(from_plain(name), dtype_from_plain(d)) for name, d in plain["columns"])
    array = None if plain["array"] is None else np.dtype(plain["array"])
    groups = dict(from_plain(plain["groups"]))
    said = plain["rules"] if plain["format"] == FORMAT else _rules_of_format_1(plain)
    known = [rule for rule in said if rule["rule"] in Rule.kinds]
    unknown = [rule["rule"] for rule in said if rule not in known]
    cost = plain["cost"]
    return {
        "schema": Schema(features, columns, array, groups),
        "scale": np.array(from_plain(plain["scale"]), dtype=np.float64),
        "background": np.empty((0, len(features))),
        "rules": tuple(Rule.kinds[rule["rule"]].from_plain(rule, features) for rule in known),
        "price": Cost(cost["weight"], cost["norm"], dict(from_plain(cost["per_feature"]))),
        "inferred": frozenset(from_plain(plain["inferred"])),
        "graded": frozenset(from_plain(plain.get("graded", []))),
        "unrestored": (*map(str, plain["unrestored"]), *map(str, unknown)),
    }


def _rules_of_format_1(plain: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rules of a space that had one list per verb."""
    bound = plain["max_changes"]
    limits = [({k: v for k, v in said.items() if v is not None}, n) for n, said in plain["limits"]]
    return [
        *({"rule": "Limits", "name": name, **said} for said, name in limits),
        *({"rule": "TextRule", "text": text, "label": label} for text, label in plain["rules"]),
        *({"rule": "Together", "block": block} for block in plain["together"]),
        *([] if bound is None else [{"rule": "MaxChanges", "most_changes": bound}]),
    ]
