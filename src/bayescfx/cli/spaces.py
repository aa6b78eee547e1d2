"""From data and settings to a `Space`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pandas as pd

from bayescfx.cli.console import about
from bayescfx.data import Feature
from bayescfx.errors import SettingsError, SpaceError, suggest
from bayescfx.models.loaders import import_name
from bayescfx.space.space import Space
from bayescfx.space.verbs import VERBS, apply_verbs, load_functions, read_verbs

__all__ = ["VERBS", "as_values", "make_space", "value_of", "with_wishes"]


def make_space(data: pd.DataFrame, features: Mapping[str, Any], wishes: Mapping[str, Any]) -> Space:
    """Return the space of the data, which has exactly the columns that the model takes.

    `features` corrects what is inferred: ``"integer"``, or ``{"kind": "real", "step": 0.5}``;
    `wishes` are verbs as in the table ``[space]`` of a settings file.
    """
    made: dict[Any, Any] = {}
    more: dict[str, dict[str, Any]] = {}
    with about("kinds"):
        for name, said in features.items():
            more[name] = table = dict(said) if isinstance(said, dict) else {"kind": said}
            made[name] = table.pop("kind", "categorical" if "levels" in table else None)
            kind = Feature.kinds.get(made[name]) if isinstance(made[name], str) else None
            if "levels" in table and kind is not None and kind.levelled:
                made[name] = kind(table.pop("levels"))  # type: ignore[call-arg]  # has levels
        space = Space.from_data(data, made)
    for name, table in more.items():
        feature: Any = space.features[name]
        known = [f.name for f in fields(feature)]
        for key in [key for key in table if key not in known]:
            told = f"features.{name} must have only kind, {', '.join(known)}; got {key!r}."
            raise SettingsError(told + suggest(key, known))
        made[name] = replace(feature, **table) if table else made[name]
    return with_wishes(Space.from_data(data, made), wishes, data)


def with_wishes(space: Space, wishes: Mapping[str, Any], data: pd.DataFrame) -> Space:
    """Return the space with the verbs of a settings file or a request applied."""
    return apply_verbs(space, load_functions(wishes, import_name), data)


def as_values(space: Space, wishes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of verbs with all texts read."""
    return read_verbs(space, wishes)


def value_of(feature: Feature, text: Any) -> Any:
    """Return the value of a feature that a text stands for; the text itself if there is none."""
    try:
        return feature.parse(text)
    except SpaceError:
        return text
