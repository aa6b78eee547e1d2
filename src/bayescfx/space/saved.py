"""A space in words, and as plain JSON values and back.

Features, columns, rules and cost are written in full. Functions and data are not: their labels
are kept, so that a space read back can list the rules that it no longer checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayescfx import markup
from bayescfx.data import Feature
from bayescfx.data.schema import Schema
from bayescfx.data.tables import Column, dtype_from_plain, dtype_to_plain
from bayescfx.data.values import Plain, from_plain, to_plain
from bayescfx.errors import SpaceError
from bayescfx.space.cost import Cost
from bayescfx.space.region import least_changes
from bayescfx.space.rule import Rule

if TYPE_CHECKING:
    from bayescfx.space.space import Space

FORMAT = 2
_HEAD = ("feature", "kind", "values", "unit of change", "limits")


def describe(space: Space, most: int = 60) -> str:
    """Return a table of at most so many features, those that may move first, and the rules."""
    lines = _feature_lines(space)
    text = [_title(space)]
    text += _aligned([_HEAD, *lines[:most]])
    if len(lines) > most:
        text.append(f"  … and {len(lines) - most} more")
    return "\n".join([*text, *_rule_lines(space)])


def describe_html(space: Space) -> str:
    """Return the description as a block of HTML with all features, as notebooks show it."""
    table = markup.table(_HEAD, _feature_lines(space), all_left=True)
    rules = [markup.paragraph(line) for line in _rule_lines(space)]
    return markup.page(markup.paragraph(_title(space)), table, *rules)


def _title(space: Space) -> str:
    """Return ``Space of 10 features``."""
    return f"Space of {len(space.features)} features"


def _rule_lines(space: Space) -> list[str]:
    """Return the rules over several features, those that are not restored, and the cost."""
    rules = [rule.words.line for rule in space.rules if rule.words.line]
    lost = [f"not restored: {label}" for label in space.unrestored]
    return [*rules, *lost, space.price.words]


def _feature_lines(space: Space) -> list[tuple[str, ...]]:
    """Return the cells of a table of the features, those that may move first."""
    movable = []
    still = []
    for (name, feature), scale in zip(space.features.items(), space.scale, strict=True):
        limits = [rule.describe_feature(name, feature) for rule in space.rules]
        limits = [text for text in limits if text]
        # three digits, with an exponent only for very large or small numbers
        unit = f"{float(f'{scale:.3g}'):g}"
        values = f"{feature.words}{_smallest_change(feature, scale)}"
        line = (str(name), feature.kind, values, unit, ", ".join(limits))
        if any(text.startswith(("fixed", "derived")) for text in limits):
            still.append(line)
        else:
            movable.append(line)
    return [*movable, *still]


def _smallest_change(feature: Feature, scale: float) -> str:
    """Return the smallest change that people notice, for a number with finer steps or none."""
    least = float(least_changes(np.array([scale]))[0])
    is_fine = feature.numeric and not feature.period and feature.code_step < least
    return f" (smallest change {least:g})" if is_fine else ""


def _aligned(lines: Sequence[tuple[str, ...]]) -> list[str]:
    """Return lines of cells as text with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = []
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        text.append(f"  {'  '.join(cells)}".rstrip())
    return text


def to_dict(space: Space) -> dict[str, Plain]:
    """Return the space in JSON's own types, without background.

    Functions and data can't be written: their labels are, and a space read back lists them in
    `unrestored`.
    """
    schema = space.schema
    price = space.price
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
            "per_change": float(price.per_change),
            "per_feature": [[to_plain(n), float(v)] for n, v in price.per_feature.items()],
        },
        "inferred": [to_plain(name) for name in schema.names if name in space.inferred],
        "graded": [to_plain(name) for name in schema.names if name in space.graded],
        "unrestored": [*space.unrestored, *lost],
    }


def read_space(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a space that `to_dict` wrote; derived columns become ordinary ones."""
    if plain.get("format") != FORMAT:
        raise SpaceError(
            f"`format` of a saved space must be {FORMAT}; got {plain.get('format')!r}. Make the "
            "space again."
        )
    schema = _read_schema(plain)
    rules = []
    unrestored = [str(label) for label in plain["unrestored"]]
    for rule in plain["rules"]:
        kind = Rule.kinds.get(rule["rule"])
        if kind is None:
            unrestored.append(str(rule["rule"]))
        else:
            rules.append(kind.from_plain(rule, schema.features))
    return {
        "schema": schema,
        "scale": np.array(from_plain(plain["scale"]), dtype=np.float64),
        "rules": tuple(rules),
        "price": _read_cost(plain["cost"]),
        "inferred": frozenset(from_plain(plain["inferred"])),
        "graded": frozenset(from_plain(plain["graded"])),
        "unrestored": tuple(unrestored),
    }


def _read_cost(plain: Mapping[str, Any]) -> Cost:
    """Return the cost of changes of a saved space."""
    return Cost(
        weight=plain["weight"],
        norm=plain["norm"],
        per_feature=dict(from_plain(plain["per_feature"])),
        per_change=plain["per_change"],
    )


def _read_schema(plain: Mapping[str, Any]) -> Schema:
    """Return the features and columns of a saved space."""
    features = {from_plain(name): Feature.from_plain(f) for name, f in plain["features"]}
    columns = tuple(Column(from_plain(name), dtype_from_plain(d)) for name, d in plain["columns"])
    array = None if plain["array"] is None else np.dtype(plain["array"])
    return Schema(features, columns, array, dict(from_plain(plain["groups"])))
